// The metric catalog: the blocks, tables and metrics of an architecture, with their names, formulas and meaning.
// Formulas are text here; src/metric/formula parses and evaluates them.
//
// The YAML files behind it (catalog/<vendor>/*.yaml, docs/metrics.md) are compiled into the binary by
// tacho_catalog_compiler; load_catalog() decodes one architecture from that form in well under a millisecond, and
// nothing is decoded before it is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "metric/catalog/architecture.h"

namespace tacho::metric {

/// How values of several dispatches go together. A Sum is a count, given per $denom; a Rate is a quantity per time; a
/// Ratio is anything whose mean over dispatches is meaningful and whose total is not (percentages, latencies, sizes).
enum class Kind : uint8_t { kSum, kRate, kRatio };

/// The content of a column of a metric table.
enum class ColumnRole : uint8_t {
  kName,   ///< the metric's name ("Metric"), or the instance number in a repeated table ("Channel")
  kUnit,   ///< the metric's unit
  kText,   ///< a fixed word of the metric (16.4 "Xfer", "Coherency"; 17.5 "Type", "Transaction")
  kValue,  ///< a number, computed by the cell
};

/// How a cell's formula, which has one value a dispatch, becomes one number. None: the formula needs no reduction (it
/// is a constant or contains its own AVG(...)).
enum class Reduction : uint8_t { kNone, kAvg, kMin, kMax, kMedian, kStd, kQ1, kQ3, kSum };

struct MetricColumn {
  std::string_view title;  ///< as printed: "Avg", "Pct of Peak", "L2 Read"
  std::string_view key;    ///< as in YAML and in --cols style selections: "avg", "pct", "read"
  ColumnRole role = ColumnRole::kValue;
  Reduction reduction = Reduction::kNone;  ///< of the column's cells, unless a cell says otherwise
};

/// One cell of a metric's row; cells[i] belongs to the table's columns[i].
struct Cell {
  Reduction reduction = Reduction::kNone;
  /// Role Value: the formula under the reduction, in the language of docs/metrics.md, definitions expanded; "" = this
  /// metric has no such value (a latency has no peak). Role Text: the word itself. Roles Name and Unit: "". In a
  /// repeated table the row's instance number replaces "[$channel]".
  std::string_view formula;

  bool operator==(const Cell&) const = default;
};

/// The reduction written out: {Avg, "A / B"} is "AVG(A / B)", {Q1, "A"} is "QUANTILE(A, 0.25)".
std::string formula_text(const Cell& cell);

/// "2", "2.1" or "2.1.3"; table and row are -1 if the id names the whole block or table.
struct MetricId {
  int block = -1;
  int table = -1;
  int row = -1;

  bool operator==(const MetricId&) const = default;
};
std::string to_string(const MetricId& id);
/// Reads "2", "2.1", "2.1.3"; nullopt for anything else.
std::optional<MetricId> parse_metric_id(std::string_view text);

struct Metric {
  MetricId id;            ///< 3.3.0 number on this architecture
  std::string_view slug;  ///< stable on every architecture, unique in the catalog: "valu-utilization"
  std::string_view name;  ///< "VALU Utilization"
  /// "pct", "GB/s", "Cycles", "Instr $norm" ($norm = "per kernel", "per wave", ...); may be ""
  std::string_view unit;
  Kind kind = Kind::kRatio;
  /// "" or the pass that all counters and timestamps are read from: "SQ_LEVEL_WAVES"
  std::string_view coll_level;
  std::string_view description;  ///< one sentence
  std::string_view advice;       ///< one sentence
  /// The formula of one dispatch that the statistics columns share, definitions expanded; "" = not computable on this
  /// architecture, or every column has a formula of its own. For explaining; evaluation uses `cells`.
  std::string_view value;
  std::vector<Cell> cells;  ///< as many as the table has columns
  /// The cells of upstream 3.3.0 if the catalog's are better (18.1 on gfx942 reads 16 of 128 channels): empty, or as
  /// many as cells. --compat 3.3 evaluates these instead.
  std::vector<Cell> compat_cells;
  /// the unit upstream 3.3.0 prints, if it is wrong ("Gbps" for GB/s); else ""
  std::string_view compat_unit;
  /// the name upstream 3.3.0 prints, if it is misspelt; else ""; used by --compat 3.3
  std::string_view compat_name;
};

enum class TableType : uint8_t {
  kMetrics,     ///< rows of metrics
  kTopKernels,  ///< 0.1, computed from the dispatches
  kDispatches,  ///< 0.2
  kSystemInfo,  ///< 1.1, sysinfo.csv, one row a property
  kRoofline,    ///< 4.1, without rows
  kPcSampling,  ///< 21.1
};

/// How a terminal shows the table when it has more than text to offer.
enum class TableStyle : uint8_t { kTable, kBar, kBox, kMultiBar, kMemoryChart };

struct MetricTable {
  int block = 0;
  int number = 0;          ///< 1 in "2.1"
  std::string_view slug;   ///< "speed-of-light"
  std::string_view title;  ///< "Speed-of-Light"
  TableType type = TableType::kMetrics;
  TableStyle style = TableStyle::kTable;
  bool comparable = true;  ///< shown when several runs are compared
  /// "" or the spec value ("$total_l2_chan") that says how often the one row repeats
  std::string_view repeat;
  std::vector<MetricColumn> columns;
  std::vector<Metric> metrics;  ///< in the order of their numbers; empty if the architecture has none

  /// Index of the column with that key or title, or nullopt.
  std::optional<size_t> column(std::string_view key_or_title) const;
};

struct Block {
  int number = 0;                         ///< 11
  std::string_view slug;                  ///< "compute-pipeline"
  std::string_view title;                 ///< "Compute Units - Compute Pipeline"
  std::vector<std::string_view> aliases;  ///< "lds", "l2", ...; lower case
  std::string_view description;
  std::vector<MetricTable> tables;
};

/// Which meaning a number has: that of 3.3.0, or exactly the ids printed in the users' documents, which come from other
/// versions (any id not printed there means 3.3.0). Analyze and profile documents differ for 2.1.2.
enum class IdScheme : uint8_t { kV33, kSeedAnalyze, kSeedProfile };

struct SeedId {
  MetricId id;            ///< as printed in the users' documents
  std::string_view slug;  ///< the name that the id has there
  bool analyze = true;    ///< holds in analyze
  bool profile = true;    ///< holds in profile and in lists
};

/// A formula with a name, shared by several metrics: written $name in YAML, expanded in every Cell.
struct Definition {
  std::string_view name;  ///< without the $
  std::string_view formula;
};

/// A $name that stays in the formulas because the run or the machine provides it: $denom, $cu_per_gpu, ...
struct RunValue {
  std::string_view name;     ///< without the $
  std::string_view meaning;  ///< one sentence
};

/// A set of metrics that fits in one pass (profile --set).
struct MetricSet {
  std::string_view name;  ///< "compute_thruput_util"
  std::string_view title;
  std::string_view description;
  std::vector<std::string_view> metrics;  ///< slugs; all exist on this architecture
};

/// A name for one or several architectures, as `only`, `except` and `arch` of the YAML files use it.
struct ArchitectureGroup {
  static constexpr int kFamily = 1, kSelf = 100;
  std::string_view name;  ///< "gfx942", or a family: "gfx94x"
  /// How closely the name means this catalog's architecture: 0 = not at all, kFamily = it belongs to that family, then
  /// the architectures that it is like, kSelf = itself. The highest rank wins.
  int rank = 0;
};

/// Everything known for one architecture. Plain data; copying shares the text behind the string_views.
struct Catalog {
  std::string_view vendor;        ///< "amd"
  std::string_view architecture;  ///< "gfx942"
  Architecture facts;             ///< of that architecture
  std::vector<Block> blocks;      ///< by number
  std::vector<Definition> definitions;
  std::vector<RunValue> run_values;
  std::vector<SeedId> seed_ids;
  std::vector<MetricSet> sets;
  std::vector<ArchitectureGroup> groups;
  std::shared_ptr<StringStore> strings;  ///< owns text that is not part of the binary

  const Block* block(int number) const;
  const MetricTable* table(int block, int number) const;
  const Metric* metric(const MetricId& id) const;
  const Metric* metric(std::string_view slug) const;  ///< exact slug
  const MetricTable& table_of(const Metric& metric) const;
  size_t metric_count() const;
};

/// The definition of $denom on the catalog's architecture: denom_per_wave, denom_per_cycle, ...; "" = it defines none:
/// per_kernel and per_second need none.
std::string_view denominator_of(const Catalog& catalog, std::string_view normalisation);

/// Checks the syntax of one formula. Readers call it for every formula of a user's files, so that the error names the
/// line; check_syntax() of src/metric/formula is one.
using FormulaCheck = std::function<Status(std::string_view formula)>;

/// Adds one YAML document to a catalog; error messages name `file`. A failure leaves the catalog as it was.
Status add_yaml(Catalog& catalog, std::string_view yaml, std::string_view file, const FormulaCheck& check = {});

/// A catalog of nothing but this document, for the fuzzer. Never throws, never crashes.
Result<Catalog> parse_catalog(std::string_view yaml, std::string_view file, std::string_view architecture);

/// A selection on the command line: a whole block, one table or one metric.
struct Selection {
  const Block* block = nullptr;
  const MetricTable* table = nullptr;  ///< null: the whole block
  const Metric* metric = nullptr;      ///< null: the whole table or block
  /// Set when the text is a number that the users' documents print with another meaning than the scheme in use gives
  /// it.
  const SeedId* differs = nullptr;
  /// Set when documents of the other kind (of analyze, of profile) print the number for yet another metric.
  const SeedId* elsewhere = nullptr;
};

/// Resolves "2", "11.2", "11.2.3", a slug of a block, table or metric, a block alias ("lds", "l2"), or a metric's name
/// ("VALU Utilization", case ignored, if only one has it). The error suggests similar names. Pointers point into
/// `catalog`.
Result<Selection> resolve(const Catalog& catalog, std::string_view text, IdScheme scheme = IdScheme::kV33);

/// The meaning of the number `text`, resolved to `selection`, in the users' documents, for a sentence: "2.1.2 is MFMA
/// FLOPs (F8) where profile lists it and MFMA FLOPs (BF16) where analyze prints it". "" if they mean only that.
std::string documents_meaning(const Catalog& catalog, std::string_view text, const Selection& selection);
/// The whole sentence for numbers that were read as those of 3.3; "" for no meanings.
std::string ids_note(const Catalog& catalog, std::span<const std::string> meanings);

/// "per kernel" for "per_kernel" put in place of $norm: normalised_unit("Instr $norm", "per_wave") == "Instr per wave".
std::string normalised_unit(std::string_view unit, std::string_view normalisation);

}  // namespace tacho::metric
