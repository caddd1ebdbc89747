// Facts of one GPU architecture from catalog/<vendor>/architectures.yaml (docs/metrics.md, "Architectures"). The text
// behind the views belongs to the binary or to `strings`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::metric {

class StringStore;

/// Counter names that begin with `from` begin with `to` instead.
struct Rename {
  std::string_view from;  ///< "TCC_EA0_"
  std::string_view to;    ///< "TCC_EA_"
};

/// A number or a word about the architecture.
struct ArchitectureFact {
  std::string_view name;  ///< "per_cycle.fp32"
  double number = 0;      ///< NaN for a word
  std::string_view text;  ///< "" for a number
};

/// Counters whose names begin with "<prefix>_" take slots of `block`, which has `slots` in one pass.
struct CounterBlock {
  std::string_view prefix;  ///< "SQC"
  std::string_view block;   ///< "SQ"
  int slots = 0;
};

/// The elements that operands of matrix instructions can have. e4m3fnuz is the FP8 of gfx942: a bias of 8, no
/// infinities, no minus zero.
inline constexpr std::string_view kElements[] = {"f16", "bf16", "tf32", "e4m3", "i8", "f64", "f32", "e4m3fnuz"};

/// A matrix instruction, for the benchmark of the roofline.
struct MatrixInstruction {
  std::string_view element;      ///< of A and B: one of kElements
  std::string_view instruction;  ///< in the assembler, without the prefix that all of the vendor's have
  std::string_view builtin;      ///< of the compiler, the same
  std::string_view operand;      ///< C type of A and B as the builtin takes them: "half 4" (a vector) or "float"
  uint32_t m = 0, n = 0, k = 0;  ///< A has m rows of k elements, B has n columns
  double per_cycle = 0;          ///< FLOP or operations a cycle and compute unit
};

/// A summand of a dispatch's FLOPs.
struct FlopTerm {
  /// Formulas for the same quantity, best first. The first one whose counters the run has is used, else the last one.
  std::vector<std::string_view> formulas;
  bool optional = false;  ///< left out, with a notice, if the run lacks a counter of the last formula
};

/// The summands of one unit and data type: {"BF16", true} is the matrix unit's BF16 work.
struct FlopTerms {
  std::string_view type;
  bool matrix = false;
  std::vector<FlopTerm> terms;  ///< empty: the architecture has no counters for them
};

/// As many units and data types a model may have.
inline constexpr size_t kMostFlopKinds = 10;

/// How the points of the roofline come from counters. "" = not computable. The formulas are complete: they hold no
/// definitions, and Architecture::renames do not apply to them.
struct RooflineModel {
  std::string_view definition;        ///< the counters' family and where they count, for people
  std::vector<FlopTerms> flops;       ///< empty: the architecture has no points
  std::string_view l1, l2, hbm, lds;  ///< bytes of a dispatch
  /// What people call the roofs and levels of this hardware, by "hbm", "l2", "l1", "lds", "valu" and "mfma"; one that
  /// is missing has AMD's name (roof_name()).
  std::vector<std::pair<std::string_view, std::string_view>> names;
  /// --compat 3.3 uses these instead: FLOPs of a run that has no counter of any term, what it says of itself and the
  /// bytes at L1 and L2 ("": as without it), and the bytes at the memory by gpu_series of sysinfo.csv ("other": every
  /// other one; none: `hbm`).
  std::string_view compat_flops, compat_definition, compat_l1, compat_l2;
  std::vector<std::pair<std::string_view, std::string_view>> compat_hbm;
};

struct Architecture {
  std::string_view name;                ///< "gfx942"
  std::string_view vendor;              ///< the folder in catalog/: "amd"
  std::string_view family;              ///< "MI300"
  std::vector<std::string_view> names;  ///< that users give it, lower case: "mi300x"
  /// The architectures that it resembles, the nearest first: catalog entries for them apply to it too.
  std::vector<std::string_view> like;
  bool metrics = true;          ///< there is a catalog of metrics for it
  std::vector<Rename> renames;  ///< of counters in formulas
  /// A counter that a run does not have under the formula's name may stand there under this one (old profilers called
  /// gfx908's TCC_EA0_* TCC_EA_*). Upstream 3.3.0 knows only the first: not for --compat 3.3.
  std::vector<Rename> recorded_as;
  /// Columns that old sysinfo.csv files do not have because they were the same on every GPU of their time.
  std::vector<std::pair<std::string_view, std::string_view>> missing_sysinfo;
  std::vector<std::string_view> features;  ///< kinds of instructions that benchmarks use: "wgmma"
  std::vector<ArchitectureFact> facts;
  std::vector<CounterBlock> counters;
  std::vector<MatrixInstruction> matrix;
  RooflineModel roofline;
  std::shared_ptr<StringStore> strings;

  /// The fact of that name ("caches.l1" in bytes, "per_cycle.fp32" in FLOP a cycle and unit,
  /// "typical.multiprocessors"); NaN if the architecture has none.
  double number(std::string_view fact) const;
  /// The word of that name ("chip", "typical.name"); "" if the architecture has none.
  std::string_view text(std::string_view fact) const;
  bool has(std::string_view feature) const;
};

}  // namespace tacho::metric
