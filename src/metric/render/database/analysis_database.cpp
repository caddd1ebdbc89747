// Rows of the analysis database (analysis_database.h).
#include "metric/render/database/analysis_database.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/files/output_file.h"
#include "base/files/temporary.h"
#include "base/text/csv.h"
#include "base/text/utf8.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"
#include "report/text.h"
#include "report/value.h"
#include "workload/runs.h"

namespace tacho::metric {
namespace {

using report::JsonValue;
using sqlite::BulkTable;

constexpr char kTables[] = R"(
CREATE TABLE compute_workload (workload_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR, sub_name VARCHAR,
  sys_info_extdata JSON, roofline_bench_extdata JSON, profiling_config_extdata JSON);
CREATE TABLE compute_metric_definition (metric_uuid INTEGER NOT NULL PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES compute_workload (workload_id), name VARCHAR, metric_id VARCHAR,
  description TEXT, table_name VARCHAR, sub_table_name VARCHAR, unit VARCHAR, UNIQUE (workload_id, metric_id));
CREATE TABLE compute_kernel (kernel_uuid INTEGER NOT NULL PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES compute_workload (workload_id), kernel_name VARCHAR,
  UNIQUE (workload_id, kernel_name));
CREATE TABLE compute_dispatch (dispatch_uuid INTEGER NOT NULL PRIMARY KEY,
  kernel_uuid INTEGER NOT NULL REFERENCES compute_kernel (kernel_uuid), dispatch_id INTEGER, gpu_id INTEGER,
  start_timestamp INTEGER, end_timestamp INTEGER, UNIQUE (kernel_uuid, dispatch_id));
CREATE TABLE compute_kernel_roofline_data (roofline_uuid INTEGER NOT NULL PRIMARY KEY,
  kernel_uuid INTEGER NOT NULL UNIQUE REFERENCES compute_kernel (kernel_uuid), total_flops FLOAT, l0_cache_data FLOAT,
  l1_cache_data FLOAT, l2_cache_data FLOAT, hbm_cache_data FLOAT, lds_cache_data FLOAT);
CREATE TABLE compute_workload_roofline_data (roofline_uuid INTEGER NOT NULL PRIMARY KEY,
  workload_id INTEGER NOT NULL UNIQUE REFERENCES compute_workload (workload_id), total_flops FLOAT, l0_cache_data FLOAT,
  l1_cache_data FLOAT, l2_cache_data FLOAT, hbm_cache_data FLOAT, lds_cache_data FLOAT);
CREATE TABLE compute_kernel_metric_value (value_uuid INTEGER NOT NULL PRIMARY KEY,
  metric_uuid INTEGER NOT NULL REFERENCES compute_metric_definition (metric_uuid),
  kernel_uuid INTEGER NOT NULL REFERENCES compute_kernel (kernel_uuid), value_name VARCHAR, value FLOAT,
  UNIQUE (kernel_uuid, metric_uuid, value_name));
CREATE TABLE compute_workload_metric_value (value_uuid INTEGER NOT NULL PRIMARY KEY,
  metric_uuid INTEGER NOT NULL REFERENCES compute_metric_definition (metric_uuid),
  workload_id INTEGER NOT NULL REFERENCES compute_workload (workload_id), value_name VARCHAR, value FLOAT,
  UNIQUE (workload_id, metric_uuid, value_name));
CREATE TABLE compute_code_object_store (code_object_uuid INTEGER NOT NULL PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES compute_workload (workload_id), pid INTEGER, code_object_id INTEGER,
  load_base INTEGER, UNIQUE (workload_id, pid, code_object_id));
CREATE TABLE compute_instruction_line (instruction_uuid INTEGER NOT NULL PRIMARY KEY,
  code_object_uuid INTEGER NOT NULL REFERENCES compute_code_object_store (code_object_uuid),
  kernel_uuid INTEGER REFERENCES compute_kernel (kernel_uuid), code_object_offset INTEGER, comment TEXT,
  instruction TEXT, UNIQUE (code_object_uuid, code_object_offset, kernel_uuid));
CREATE TABLE compute_pc_sample_state (pc_sample_state_uuid INTEGER NOT NULL PRIMARY KEY,
  instruction_uuid INTEGER NOT NULL REFERENCES compute_instruction_line (instruction_uuid), total_count INTEGER,
  issue_count INTEGER, stall_count INTEGER);
CREATE TABLE compute_pc_sample_stall_reason_type (pc_sample_stall_reason_type_uuid INTEGER NOT NULL PRIMARY KEY,
  text VARCHAR UNIQUE);
CREATE TABLE compute_pc_sample_stall_reason (pc_sample_stall_reason_uuid INTEGER NOT NULL PRIMARY KEY,
  pc_sample_state_uuid INTEGER NOT NULL REFERENCES compute_pc_sample_state (pc_sample_state_uuid),
  pc_sample_stall_reason_type_uuid INTEGER NOT NULL
    REFERENCES compute_pc_sample_stall_reason_type (pc_sample_stall_reason_type_uuid), count INTEGER);
CREATE TABLE compute_instruction_sample_type (instruction_sample_type_uuid INTEGER NOT NULL PRIMARY KEY,
  text VARCHAR UNIQUE);
CREATE TABLE compute_instruction_sample (instruction_sample_uuid INTEGER NOT NULL PRIMARY KEY,
  pc_sample_state_uuid INTEGER NOT NULL REFERENCES compute_pc_sample_state (pc_sample_state_uuid),
  instruction_sample_type_uuid INTEGER NOT NULL
    REFERENCES compute_instruction_sample_type (instruction_sample_type_uuid), count INTEGER);
CREATE TABLE compute_metadata (id INTEGER NOT NULL PRIMARY KEY, compute_version VARCHAR, git_version VARCHAR,
  schema_version VARCHAR);
)";

constexpr char kViews[] = R"(
CREATE VIEW compute_kernel_view AS
WITH took AS (
  SELECT kernel_uuid, end_timestamp - start_timestamp AS ns,
         row_number() OVER (PARTITION BY kernel_uuid ORDER BY end_timestamp - start_timestamp) AS place,
         count(*) OVER (PARTITION BY kernel_uuid) AS places
  FROM compute_dispatch),
middle AS (SELECT kernel_uuid, avg(ns) AS ns FROM took WHERE 2 * place BETWEEN places AND places + 2 GROUP BY kernel_uuid)
SELECT k.kernel_uuid AS kernel_uuid, k.workload_id AS workload_id, w.name AS workload_name,
       k.kernel_name AS kernel_name, count(d.dispatch_id) AS dispatch_count,
       sum(d.end_timestamp - d.start_timestamp) AS duration_ns_sum,
       min(d.end_timestamp - d.start_timestamp) AS duration_ns_min,
       max(d.end_timestamp - d.start_timestamp) AS duration_ns_max, middle.ns AS duration_ns_median,
       avg(d.end_timestamp - d.start_timestamp) AS duration_ns_mean
FROM compute_dispatch d JOIN compute_kernel k USING (kernel_uuid) JOIN compute_workload w USING (workload_id)
     JOIN middle USING (kernel_uuid)
GROUP BY k.kernel_uuid;
CREATE VIEW compute_kernel_metric_view AS
SELECT w.workload_id AS workload_id, w.name AS workload_name, k.kernel_uuid AS kernel_uuid,
       k.kernel_name AS kernel_name, m.metric_uuid AS metric_uuid, m.name AS metric_name, m.metric_id AS metric_id,
       m.description AS description, m.table_name AS table_name, m.sub_table_name AS sub_table_name, m.unit AS unit,
       v.value_uuid AS value_uuid, v.value_name AS value_name, v.value AS value
FROM compute_kernel_metric_value v JOIN compute_metric_definition m USING (metric_uuid)
     JOIN compute_kernel k USING (kernel_uuid) JOIN compute_workload w ON w.workload_id = m.workload_id;
CREATE VIEW compute_workload_metric_view AS
SELECT w.workload_id AS workload_id, w.name AS workload_name, m.metric_uuid AS metric_uuid, m.name AS metric_name,
       m.metric_id AS metric_id, m.description AS description, m.table_name AS table_name,
       m.sub_table_name AS sub_table_name, m.unit AS unit, v.value_uuid AS value_uuid, v.value_name AS value_name,
       v.value AS value
FROM compute_workload_metric_value v JOIN compute_metric_definition m USING (metric_uuid)
     JOIN compute_workload w ON w.workload_id = m.workload_id;
CREATE VIEW compute_pc_sampling_view AS
SELECT o.workload_id AS workload_id, i.kernel_uuid AS kernel_uuid, k.kernel_name AS kernel_name,
       i.code_object_offset AS offset, i.instruction AS instruction, i.comment AS source, s.total_count AS count,
       s.issue_count AS count_issue, s.stall_count AS count_stall,
       (SELECT json_group_object(t.text, r.count) FROM compute_pc_sample_stall_reason r
        JOIN compute_pc_sample_stall_reason_type t USING (pc_sample_stall_reason_type_uuid)
        WHERE r.pc_sample_state_uuid = s.pc_sample_state_uuid HAVING count(*) > 0) AS stall_reason
FROM compute_pc_sample_state s JOIN compute_instruction_line i USING (instruction_uuid)
     JOIN compute_code_object_store o USING (code_object_uuid) LEFT JOIN compute_kernel k USING (kernel_uuid);
)";

// Text that looks like a number is one, an empty text is unknown.
JsonValue json_of_text(const std::string& text) {
  if (text.empty()) return {};
  if (const CellNumber number = parse_number(text); number.ok && std::isfinite(number.value)) {
    const double whole = std::nearbyint(number.value);
    if (whole == number.value && std::abs(whole) < 9e15) return static_cast<int64_t>(whole);
    return number.value;
  }
  return text;
}

struct Level {
  double flops = 0, bytes = 0;
  void add(double more_flops, double more_bytes) {
    if (std::isnan(more_flops) || std::isnan(more_bytes) || more_bytes <= 0) return;
    flops += more_flops;
    bytes += more_bytes;
  }
  double ratio() const { return bytes > 0 ? flops / bytes : NAN; }
};

class Database {
 public:
  Database(sqlite::BulkFile& file, std::string_view producer)
      : workloads_(file.table("compute_workload")),
        definitions_(file.table("compute_metric_definition")),
        kernels_(file.table("compute_kernel")),
        dispatches_(file.table("compute_dispatch")),
        kernel_points_(file.table("compute_kernel_roofline_data")),
        workload_points_(file.table("compute_workload_roofline_data")),
        kernel_values_(file.table("compute_kernel_metric_value")),
        workload_values_(file.table("compute_workload_metric_value")),
        code_objects_(file.table("compute_code_object_store")),
        instructions_(file.table("compute_instruction_line")),
        states_(file.table("compute_pc_sample_state")),
        reason_types_(file.table("compute_pc_sample_stall_reason_type")),
        reasons_(file.table("compute_pc_sample_stall_reason")) {
    next(file.table("compute_metadata")).text(valid_utf8(producer)).text("").text(kAnalysisSchema).end();
  }

  Status add(const Analysis& run) {
    workload_id_ = workloads_.rows() + 1;
    uuids_.clear();
    metrics_.clear();
    TACHO_TRY(workload(run));
    dispatches(run);
    points(run);
    values(workload_values_, workload_id_, run.all(), run);
    for (const auto& [kernel, uuid] : uuids_) values(kernel_values_, uuid, run.evaluate(kernel), run);
    if (run.pc_samples()) samples(run, *run.pc_samples());
    return {};
  }

 private:
  // The next row of a table, from its second column on: the first is its number.
  static BulkTable& next(BulkTable& table) {
    table.begin(table.rows() + 1);
    return table.null();
  }
  static BulkTable& number(BulkTable& table, double value) {
    return std::isfinite(value) ? table.real(value) : table.null();
  }

  Status workload(const Analysis& run) {
    std::error_code ignored;
    const std::filesystem::path full = std::filesystem::absolute(run.workload().path, ignored).lexically_normal();
    const std::filesystem::path folder = full.has_filename() ? full : full.parent_path();
    JsonValue info = JsonValue::object({});
    for (const auto& [name, value] : run.workload().sysinfo.fields()) info.set(name, json_of_text(value));
    next(workloads_)
        .text(valid_utf8(folder.parent_path().filename().string()))
        .text(valid_utf8(folder.filename().string()))
        .text(info.text());
    if (run.workload().ceilings.empty()) {
      workloads_.null();
    } else {
      JsonValue ceilings = JsonValue::object({});
      for (const auto& [name, value] : run.workload().ceilings.front().values)
        if (std::isfinite(value)) ceilings.set(name, value);
      workloads_.text(ceilings.text());
    }
    TACHO_ASSIGN(const std::string config, workload::config_as_json(run.workload().path));
    if (config.empty())
      workloads_.null();
    else
      workloads_.text(config);
    workloads_.end();
    return {};
  }

  int64_t kernel_uuid(const Analysis& run, uint32_t kernel) {
    const auto [at, fresh] = uuids_.try_emplace(kernel, kernels_.rows() + 1);
    if (fresh) next(kernels_).integer(workload_id_).text(valid_utf8(run.workload().kernels[kernel])).end();
    return at->second;
  }

  void dispatches(const Analysis& run) {
    if (run.workload().passes.empty()) return;  // PC samples alone
    const workload::CounterTable& table = run.workload().passes.front().counters;
    const auto start = table.column(workload::kStart), end = table.column(workload::kEnd);
    std::set<std::pair<int64_t, int64_t>> taken;
    int64_t highest = 0;
    for (const uint32_t row : run.rows()) highest = std::max(highest, run.workload().dispatches[row].id);
    for (const uint32_t row : run.rows()) {
      const workload::Dispatch& dispatch = run.workload().dispatches[row];
      const int64_t kernel = kernel_uuid(run, dispatch.kernel);
      // Several GPUs or runs may number their dispatches alike: a later one gets a number behind all others.
      int64_t id = dispatch.id;
      if (!taken.insert({kernel, id}).second) taken.insert({kernel, id = ++highest});
      next(dispatches_).integer(kernel).integer(id).integer(dispatch.gpu);
      for (const auto& time : {start, end})
        if (row < time.size() && std::isfinite(time[row]))
          dispatches_.integer(static_cast<int64_t>(std::llround(time[row])));
        else
          dispatches_.null();
      dispatches_.end();
    }
  }

  // Kernels with their rate in GFLOP/s and FLOP/byte of each level; the workload is their sum.
  void points(const Analysis& run) {
    std::map<std::string_view, Level> levels;
    double flops = 0, time = 0;
    for (const IntensityPoint& point : run.kernel_points()) {
      next(kernel_points_).integer(kernel_uuid(run, point.kernel));
      number(kernel_points_, point.performance).null();  // there is no level 0
      for (const double intensity : {point.l1, point.l2, point.hbm, point.lds}) number(kernel_points_, intensity);
      kernel_points_.end();
      const double whole = point.performance * point.total_duration;
      for (size_t i = 0; i < kRooflineLevels.size(); ++i) levels[kRooflineLevels[i]].add(whole, point.bytes[i]);
      if (!std::isfinite(whole)) continue;
      flops += whole;
      time += point.total_duration;
    }
    if (run.kernel_points().empty()) return;
    next(workload_points_).integer(workload_id_);
    number(workload_points_, time > 0 ? flops / time : NAN).null();
    for (const std::string_view level : {"l1", "l2", "hbm", "lds"}) number(workload_points_, levels[level].ratio());
    workload_points_.end();
  }

  int64_t metric_uuid(const Analysis& run, const ResultTable& table, const ResultRow& row) {
    const auto [at, fresh] = metrics_.try_emplace(row.id, definitions_.rows() + 1);
    if (!fresh) return at->second;
    const std::string name = row.channel >= 0 ? fmt::format("{}", row.channel) : std::string(row.metric->name);
    next(definitions_)
        .integer(workload_id_)
        .text(valid_utf8(name))
        .text(row.id)
        .text(valid_utf8(row.metric->description))
        .text(valid_utf8(table.block->title))
        .text(valid_utf8(table.title(run.options().normalisation)))
        .text(valid_utf8(normalised_unit(row.metric->unit, run.options().normalisation)))
        .end();
    return at->second;
  }

  void values(BulkTable& to, int64_t owner, const Evaluation& evaluation, const Analysis& run) {
    for (const ResultTable& table : evaluation.tables)
      for (const ResultRow& row : table.rows)
        for (size_t c = 0; c < row.cells.size(); ++c) {
          const MetricColumn& column = table.table->columns[c];
          if (column.role != ColumnRole::kValue || row.metric->cells[c].formula.empty()) continue;
          double value = NAN;
          if (const auto* real = std::get_if<double>(&row.cells[c])) value = *real;
          if (const auto* whole = std::get_if<int64_t>(&row.cells[c])) value = static_cast<double>(*whole);
          if (!std::isfinite(value)) continue;
          const int64_t metric = metric_uuid(run, table, row);
          next(to).integer(metric).integer(owner);
          to.text(column.key == "pct" ? std::string_view("Percent of Peak") : column.title).real(value).end();
        }
  }

  void samples(const Analysis& run, const workload::PcSamples& samples) {
    // The files count by instruction and source line; which code object and offset they were at is unknown.
    next(code_objects_).integer(workload_id_).null().null().null().end();
    std::map<std::string_view, uint32_t> kernels;
    for (const auto& [kernel, uuid] : uuids_) kernels.emplace(run.workload().kernels[kernel], kernel);
    for (const workload::SampledInstruction& each : samples.instructions) {
      next(instructions_).integer(code_objects_.rows());
      if (const auto known = kernels.find(each.kernel); known != kernels.end())
        instructions_.integer(uuids_.at(known->second));
      else
        instructions_.null();
      instructions_.null().text(valid_utf8(each.source)).text(valid_utf8(each.instruction)).end();
      next(states_).integer(instructions_.rows()).integer(static_cast<int64_t>(each.samples));
      if (samples.stochastic)
        states_.integer(static_cast<int64_t>(each.issued)).integer(static_cast<int64_t>(each.samples - each.issued));
      else
        states_.null().null();
      states_.end();
      for (const auto& [reason, count] : each.stalls) {
        const auto [at, fresh] = reason_uuids_.try_emplace(reason, reason_types_.rows() + 1);
        if (fresh) next(reason_types_).text(valid_utf8(reason)).end();
        next(reasons_).integer(states_.rows()).integer(at->second).integer(static_cast<int64_t>(count)).end();
      }
    }
  }

  BulkTable &workloads_, &definitions_, &kernels_, &dispatches_, &kernel_points_, &workload_points_, &kernel_values_,
      &workload_values_, &code_objects_, &instructions_, &states_, &reason_types_, &reasons_;
  int64_t workload_id_ = 0;
  std::map<uint32_t, int64_t> uuids_;       // of the workload's kernels
  std::map<std::string, int64_t> metrics_;  // by id, of the workload
  std::map<std::string, int64_t> reason_uuids_;
};

Status build(std::span<const Analysis> runs, const std::string& path, std::string_view producer) {
  TACHO_ASSIGN(const auto file, sqlite::BulkFile::create(path, kTables));
  Database database(*file, producer);
  for (const Analysis& run : runs) TACHO_TRY(database.add(run));
  return file->finish(kViews);
}

report::Cell cell_of(sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(row, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    case SQLITE_TEXT:
      return std::string(reinterpret_cast<const char*>(sqlite3_column_text(row, column)),
                         static_cast<size_t>(sqlite3_column_bytes(row, column)));
    default:
      return {};
  }
}

}  // namespace

Status write_analysis_database(std::span<const Analysis> runs, const std::string& path, std::string_view producer,
                               bool overwrite) {
  TACHO_ASSIGN(sqlite::DatabaseOutput output, sqlite::DatabaseOutput::create(path, overwrite));
  TACHO_TRY(build(runs, output.temporary(), producer));
  return output.commit();
}

Status write_analysis_views(std::span<const Analysis> runs, const std::string& folder, bool overwrite) {
  TACHO_ASSIGN(const TemporaryFolder place, TemporaryFolder::create(temporary_folder() + "/tacho-analysis-"));
  const std::string path = place.path() + "/analysis.db";
  TACHO_TRY(build(runs, path, ""));
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const sqlite::Connection connection(opened);
  if (status != SQLITE_OK) return fail("{}: {}", path, sqlite3_errstr(status));
  TACHO_TRY(create_folders(folder));
  std::vector<OutputFile> files;
  for (const std::string_view view : {"kernel", "kernel_metric", "workload_metric", "pc_sampling"}) {
    TACHO_ASSIGN(const sqlite::Statement rows,
                 sqlite::prepare(connection.get(), fmt::format("SELECT * FROM compute_{}_view", view)));
    report::PrintedTable table;
    for (int c = 0; c < sqlite3_column_count(rows.get()); ++c)
      table.columns.push_back({sqlite3_column_name(rows.get(), c)});
    while (sqlite3_step(rows.get()) == SQLITE_ROW) {
      std::vector<report::Cell> cells;
      for (int c = 0; c < sqlite3_column_count(rows.get()); ++c) cells.push_back(cell_of(rows.get(), c));
      table.rows.push_back(std::move(cells));
    }
    TACHO_ASSIGN(OutputFile file, OutputFile::create(fmt::format("{}/{}.csv", folder, view), overwrite));
    file.write(report::to_csv(table));
    files.push_back(std::move(file));
  }
  return OutputFile::commit_all(files);
}

}  // namespace tacho::metric
