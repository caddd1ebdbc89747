// The compute analysis of a profile folder: every selected metric of the catalog evaluated over the chosen dispatches,
// with top kernels, roofline points and findings. `tacho analyze` prints these numbers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "metric/analysis/left_out.h"
#include "metric/analysis/results.h"
#include "metric/catalog/catalog.h"
#include "metric/formula/program.h"
#include "report/table.h"
#include "workload/pc_samples/pc_samples.h"
#include "workload/workload.h"

namespace tacho::metric {

struct AnalysisOptions {
  std::vector<std::string> blocks;          ///< -b: ids, slugs, aliases; empty = everything that was recorded
  std::vector<std::string> kernels;         ///< -k: ids (rows of table 0.1), names or regular expressions
  std::vector<std::string> dispatches;      ///< -d: "3", "1:4", "> 5"
  std::vector<std::string> gpus;            ///< --gpu-id
  std::optional<std::set<int64_t>> within;  ///< only these Dispatch_IDs, of those that -d and --gpu-id leave
  std::string normalisation = "per_kernel";
  bool every_normalisation = false;  ///< page_program() will be called: read its inputs too
  std::string time_unit = "ns";
  IdScheme ids = IdScheme::kV33;
  bool sum_ratios = true;               ///< false: --ratio avg, which --compat 3.3 implies
  bool compat = false;                  ///< --compat 3.3: upstream's values where ours differ
  bool sort_samples_by_source = false;  ///< --pc-sampling-sorting-type offset
  bool errors = false;                  ///< computes ResultRow::error
  bool advice = true;
  int run = 0;               ///< --run: which run of a folder that tacho profile wrote; 0 = the newest
  size_t most_findings = 5;  ///< of one kernel
  std::vector<std::string> config_dirs;
  std::vector<std::pair<std::string, std::string>> specs_correction;
};

struct ResultRow {
  const Metric* metric = nullptr;
  std::string id;  ///< "2.1.3", "18.2.17"; as the id scheme prints it
  int32_t channel = -1;
  std::vector<report::Cell> cells;  ///< one a column of the table; no value = not computable
  /// Of the mean in the column "avg": half of its 95 % confidence interval, from repeats of the same launches.
  std::optional<double> error;
  /// Uses a counter that was extrapolated from a part of the GPU's units (Workload::extrapolated).
  bool extrapolated = false;
};

struct ResultTable {
  const Block* block = nullptr;
  const MetricTable* table = nullptr;
  std::vector<ResultRow> rows;
  std::vector<LeftOut> left_out;  ///< dispatches that are in no value of some of the rows

  std::string id() const;
  /// The table's title; "normUnit" in it is the normalisation: "L2 Requests (per kernel)".
  std::string title(std::string_view normalisation) const;
  /// True when the row has a value; a peak alone, which needs no counters, is none.
  bool has_value(const ResultRow& row) const;
  /// True when no row has a value.
  bool empty() const;
};

struct KernelStatistics {
  uint32_t kernel = 0;  ///< index into Workload::kernels
  size_t count = 0;
  double sum = 0, mean = 0, median = 0;  ///< ns
  double share = 0;                      ///< percent of all kernels' time
  bool selected = true;                  ///< passes -k
};

/// A metric that has no value at all, and why.
struct NotComputable {
  const Metric* metric = nullptr;
  std::string id;
  std::vector<std::string> missing;  ///< counters, values ("$max_sclk") and passes that the run does not have
  std::vector<std::string> apart;    ///< counters that the run has, but no dispatch has all of
  bool on_this_gpu = true;           ///< false: the architecture cannot count it; with nothing else: 0 / 0
};

/// Everything computed over one choice of dispatches.
struct Evaluation {
  std::vector<ResultTable> tables;
  std::vector<NotComputable> not_computable;
};

constexpr std::array<std::string_view, 4> kNormalisations = {"per_kernel", "per_wave", "per_cycle", "per_second"};

/// The analysis as a program over all dispatches of the folder, whatever -k, -d and -n chose, so that a page can
/// evaluate any choice.
struct PageProgram {
  struct Place {
    size_t table, row, column;  ///< column: one behind the last is the row's error
  };
  std::vector<ResultTable> tables;  ///< names and texts; their values are missing
  std::vector<Place> places;        ///< the cells that are computed
  Program::Graph graph;
  /// Of each normalisation: the operation behind each place, 0 if it is not computable.
  std::array<std::vector<uint32_t>, kNormalisations.size()> values;
  /// Columns over the dispatches: duration in ns, FLOPs, bytes at L1, L2, HBM and LDS, then FLOPs of each kind.
  std::vector<uint32_t> dispatch_values;
};

class Analysis {
 public:
  /// Reads the folder, selects and evaluates. The error is one sentence for the user.
  static Result<Analysis> run(const std::string& path, const AnalysisOptions& options);

  Analysis(Analysis&&) noexcept;
  Analysis& operator=(Analysis&&) noexcept;
  ~Analysis();

  const AnalysisOptions& options() const;
  const workload::Workload& workload() const;
  const Catalog& catalog() const;
  /// Dispatches that passed -d, -k and --gpu-id (indices into workload().dispatches).
  const std::vector<uint32_t>& rows() const;
  /// Kernels by total time, over the dispatches that passed -d and --gpu-id.
  const std::vector<KernelStatistics>& kernels() const;
  /// The number that table 0.1, -k and every drawing give a kernel (an index into workload().kernels): its row in
  /// kernels().
  size_t kernel_id(uint32_t kernel) const;
  /// Dispatches that passed -d and --gpu-id.
  const std::vector<uint32_t>& listed_rows() const;
  /// Of every dispatch of the workload the number of its launch (kernel and sizes); empty when none was repeated.
  const std::vector<uint32_t>& repeats() const;
  const Evaluation& all() const;
  const std::vector<std::string>& warnings() const;
  /// Sentences about the ids given that the users' documents use with another meaning, or with two.
  const std::vector<std::string>& id_notes() const;
  bool shows(int block, int table) const;  ///< selected by -b (or recorded)
  const std::vector<IntensityPoint>& kernel_points() const;
  const std::vector<IntensityPoint>& dispatch_points() const;
  /// Counters whose operations are missing in the points, because the run lacks them.
  const std::vector<std::string>& uncounted_flops() const;
  /// Which counters the intensities come from, for people; "" if there are none.
  std::string_view intensity_definition() const;
  /// The kinds of operation that the FLOPs of the points consist of.
  std::vector<FlopKind> flop_kinds() const;
  /// The data type that did most of a point's FLOPs, "" for a point without any.
  std::string_view data_type(const IntensityPoint& point) const;
  /// The data types whose roofs belong over the points of this run (roofline_points.h).
  std::vector<std::string> roofline_types() const;
  /// Table 21.1, nothing without PC samples or where -b leaves it out.
  const std::optional<workload::PcSamples>& pc_samples() const;
  const std::vector<Finding>& findings() const { return diagnosis().findings; }
  const Diagnosis& diagnosis() const;

  /// The same over the dispatches of one kernel only, or with another normalisation ("": the options'); units in it
  /// stay those of the options.
  Evaluation evaluate(std::optional<uint32_t> kernel, std::string_view normalisation = {}) const;
  /// The tables as a program for the browser. Its columns live in workload().
  PageProgram page_program() const;
  /// A value of $name as formulas see it.
  double specification(std::string_view name) const;
  /// Value of one metric's column over the analysed dispatches; nullptr when it is not in the tables.
  const report::Cell* cell(std::string_view slug, std::string_view column) const;

  /// The text of --explain: formula, inputs and every step on this run. Tables fit into `width` columns; 0 = any.
  Result<std::string> explain(std::string_view metric, size_t width = 0) const;

 private:
  struct Impl;
  explicit Analysis(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Divisor from ns for "s", "ms", "us", "ns"; 0 for anything else.
double time_unit_divisor(std::string_view unit);

}  // namespace tacho::metric
