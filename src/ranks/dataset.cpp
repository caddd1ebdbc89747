// Fills in dataset.sql: an engine's words, and the paths of the dataset's files (dataset.h).
#include "ranks/dataset.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "base/format.h"

namespace tacho::ranks {

extern const std::string_view kDatasetSql;  // dataset.sql

namespace {

namespace fs = std::filesystem;

// A table of the dataset, and the columns of it that the script reads; those in `texts` are no numbers.
struct EventTable {
  std::string_view name;
  std::vector<std::string_view> numbers, texts;
};

const std::vector<EventTable>& event_tables() {
  static const std::vector<EventTable> tables = {
      {"dispatch", {"rank", "pid", "correlation", "start", "start_unix", "duration"}, {"name", "arguments"}},
      {"copy", {"rank", "start", "duration"}, {}},
      {"fill", {"rank", "start", "duration"}, {}},
      {"api", {"rank", "pid", "tid", "correlation", "start", "duration"}, {"name", "domain"}},
      {"marker", {"rank", "pid", "tid", "start"}, {"name", "domain"}},
      {"message",
       {"rank", "identity", "size", "sent", "received", "peer", "sequence", "begun_ahead", "start", "start_unix",
        "duration"},
       {"kind", "function", "name", "origin", "members"}}};
  return tables;
}

// operation_of() of ranks/match/communication.h in SQL: the first part that fits.
std::string operation_case() {
  struct Part {
    std::string_view part, operation;
  };
  static constexpr Part kParts[] = {
      {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
      {"alltoall", "all_to_all"},  {"broadcast", "broadcast"},  {"bcast", "broadcast"},
      {"barrier", "barrier"},      {"scatter", "scatter"},      {"gather", "gather"},
      {"send", "send_recv"},       {"recv", "send_recv"},       {"reduce", "reduce"}};
  std::string text = "CASE";
  for (const Part& part : kParts)
    text += fmt::format("{}WHEN called LIKE '%{}%' THEN '{}'", &part == kParts ? " " : "\n      ", part.part,
                        part.operation);
  return text + " ELSE '' END";
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

// Between single quotes. Both engines take '' for a quote; ClickHouse takes a backslash for an escape.
std::string quoted_path(SqlEngine engine, std::string_view path) {
  std::string text;
  for (const char c : path) {
    text += c;
    if (c == '\'' || (c == '\\' && engine == SqlEngine::kClickHouse)) text += c;
  }
  return text;
}

std::string source_of(SqlEngine engine, const EventTable& table, const std::string& folder, bool there) {
  const bool duck = engine == SqlEngine::kDuckDb;
  if (there) {
    const std::string files = quoted_path(engine, fmt::format("{}/*/*/*/table={}/*.parquet", folder, table.name));
    return duck ? fmt::format("read_parquet('{}', hive_partitioning = true)", files)
                : fmt::format("file('{}', Parquet)", files);
  }
  std::string columns;
  const auto add = [&](std::string_view column, std::string_view type) {
    columns += fmt::format("{}CAST(NULL AS {}) AS {}", columns.empty() ? "" : ", ", type, column);
  };
  for (const std::string_view column : table.numbers) add(column, duck ? "BIGINT" : "Nullable(Int64)");
  for (const std::string_view column : table.texts) add(column, duck ? "VARCHAR" : "Nullable(String)");
  return fmt::format("(SELECT {} WHERE 1 = 0) nothing", columns);
}

}  // namespace

Result<std::string> dataset_sql(SqlEngine engine, const std::string& folder) {
  const bool duck = engine == SqlEngine::kDuckDb;
  std::set<std::string> there;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (at.depth() == 0 && !name.starts_with("run=")) at.disable_recursion_pending();
    if (at.depth() == 4 && name.ends_with(".parquet")) there.insert(at->path().parent_path().filename().string());
  }
  if (error) return fail("{}: {}", folder, error.message());
  if (!there.contains("table=dispatch") && !there.contains("table=message"))
    return fail("{}: no Parquet dataset with kernels or messages of MPI lies here: "
                "make one with tacho export FILE -f parquet -d {}",
                folder, folder);
  std::string text(kDatasetSql);
  const std::string name = duck ? "duckdb" : "clickhouse";
  const std::pair<std::string_view, std::string> words[] = {
      {"{command}", fmt::format("tacho ranks --sql {} {}", name, one_line(folder))},
      {"{engine}", duck ? "DuckDB" : "ClickHouse"},
      // ClickHouse 26.5 loses the columns that stand in a path where it filters while it reads.
      {"{settings}", duck ? "" : "SET optimize_move_to_prewhere = 0;\n"},
      {"{view}", duck ? "CREATE OR REPLACE TEMP VIEW" : "CREATE OR REPLACE VIEW"},
      {"{table}", "CREATE OR REPLACE TABLE"},
      {"{matches}", duck ? "regexp_matches" : "match"},
      {"{extract}", duck ? "regexp_extract" : "regexpExtract"},
      {"{integer}", duck ? "BIGINT" : "Nullable(Int64)"},
      {"{text}", duck ? "VARCHAR" : "Nullable(String)"},
      {"{median(}", duck ? "quantile_disc(" : "quantileExactLow(0.5)("},
      {"{)}", duck ? ", 0.5)" : ")"},
      // In ascending order, with commas between.
      {"{list(}",
       duck ? "array_to_string(list_sort(list(" : "arrayStringConcat(arrayMap(x -> toString(x), arraySort(groupArray("},
      {"{)list}", duck ? ")), ', ')" : "))), ', ')"},
      {"{operation of called}", operation_case()}};
  for (const auto& [word, by] : words) replace_all(text, word, by);
  if (!duck)
    for (const std::string_view table : {"rank_time", "arrival_of_kernel", "kernel_to_match", "identified_collective",
                                         "found_group", "arrival", "collective", "straggler", "kind_of_collective"})
      replace_all(text, fmt::format("TABLE {} AS", table),
                  fmt::format("TABLE {} ENGINE = MergeTree ORDER BY tuple() AS", table));
  for (const EventTable& table : event_tables())
    replace_all(text, fmt::format("{{{}}}", table.name),
                source_of(engine, table, folder, there.contains(fmt::format("table={}", table.name))));
  return text;
}

}  // namespace tacho::ranks
