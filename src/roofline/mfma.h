// Matrix benchmarks of AMD's CDNA GPUs: OpenCL C around the MFMA builtins of AMD's compiler. MFMA instructions multiply
// two matrices that lie in the registers of a wave's 64 lanes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/elements.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

/// One instruction on one architecture. Lane l holds e consecutive elements of row l % m of A and of column l % n of B,
/// from element e * (l / m) on, where e elements fill operand_words() words. Its results lie in column l % n of D, in
/// the rows that row_of() gives.
struct MfmaKind {
  std::string_view architecture;  ///< "gfx90a"
  Element element;
  std::string instruction;  ///< in the assembler of that architecture
  std::string builtin;
  std::string_view operand;  ///< C type of the builtin's A and B: "half 4" (a vector) or "float"
  uint32_t m, n, k;          ///< m = n
  double per_cycle;          ///< FLOP or operations per cycle and compute unit

  bool wide() const { return element == Element::kDouble; }  ///< accumulators are doubles
  uint32_t operand_words() const { return m * k * size_of(element) / 256; }
  uint32_t results() const { return m * n / 64; }  ///< accumulators of a lane
  /// Row of D of a lane's result r.
  uint32_t row_of(uint32_t lane, uint32_t r) const {
    return wide() ? 4 * r + lane / n : 4 * (64 / n) * (r / 4) + 4 * (lane / n) + r % 4;
  }
};
/// The instructions that catalog/amd/architectures.yaml lists for an architecture; may be empty.
std::vector<MfmaKind> mfma_kinds(std::string_view architecture);
/// The architectures that have such instructions, as text: "gfx908, gfx90a, gfx942 and gfx950".
std::string mfma_architectures();

inline constexpr const char* kMfmaEntry = "matrix_units";
inline constexpr uint32_t kMfmaGroup = 256, kMfmaTiles = 4, kMfmaUnroll = 4;
/// Number of work-items with distinct operands and results; items with equal numbers modulo this do the same work.
inline constexpr uint32_t kMfmaItems = 16 * kMfmaGroup;
inline constexpr uint32_t kMfmaTable = 1U << 14;  ///< operands in the table, a power of two

/// OpenCL C of a kernel (table, out, times, count). Each wave adds the products of one A and kMfmaTiles Bs to as many
/// accumulators, count * kMfmaUnroll times. Operand o (0 = A) of item i is operand (i * (1 + kMfmaTiles) + o) %
/// kMfmaTable of `table`. `out` gets kMfmaTiles * results() accumulators per item. `times` gets for each work-group its
/// core cycles, and its start and end in ticks of a clock that all groups share. If the compiler does not know the
/// builtin, an #error line that begins with kMfmaUnknown stops it.
std::string mfma_source(const MfmaKind& kind);
inline constexpr std::string_view kMfmaUnknown = "this compiler does not know ";

/// "gfx90a" from a device's name ("gfx90a:sramecc+:xnack-"); empty when the name has no such part.
std::string gfx_of(std::string_view device_name);

}  // namespace tacho::roofline
