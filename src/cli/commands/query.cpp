// `tacho query FILE SQL`: queries any trace as a database.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/text/json_writer.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/time_limit.h"
#include "query/sql/session.h"
#include "report/output.h"
#include "report/table.h"

namespace tacho::cli {
namespace {

// Prints rows as they come: csv and JSON at once, tables in pages of thousands of rows.
class RowPrinter {
 public:
  explicit RowPrinter(std::string format) : format_(std::move(format)), screen_(report::screen_of(STDOUT_FILENO)) {}
  void columns(std::span<const std::string> names) {
    for (const std::string& name : names) table_.columns.push_back({name, report::Align::kAutomatic, -1, true});
    if (format_ == "csv") {
      put(report::to_csv(table_));
    } else if (format_ == "json") {
      json_.begin_object().name("columns").begin_array();
      for (const std::string& name : names) json_.value(name);
      json_.end_array().name("rows").begin_array();
      put_json();
    }
  }
  bool row(std::span<const report::Cell> cells) {
    ++rows_;
    if (format_ == "json") {
      json_.newline().begin_array();
      for (const report::Cell& cell : cells) report::put_cell(json_, cell);
      json_.end_array();
      put_json();
      return !failed_;
    }
    table_.rows.emplace_back(cells.begin(), cells.end());
    if (table_.rows.size() >= (format_ == "csv" ? 256u : 5000u)) flush();
    return !failed_;
  }
  void end() {
    if (format_ == "json") {
      json_.end_line().end_array().end_object().end_line();
      put_json();
    } else if (format_ == "csv" || rows_ == 0 || !table_.rows.empty()) {
      flush();
    }
  }

 private:
  void put(const std::string& text) { failed_ = !report::put(text) || failed_; }
  void put_json() {
    put(text_);
    text_.clear();
  }
  void flush() {
    if (format_ == "csv") {
      // Leaves out the header line, which was printed first.
      const std::string text = report::to_csv(table_);
      put(text.substr(text.find('\n') + 1));
    } else {
      report::TextStyle style;
      style.width = screen_.terminal ? screen_.width : 0;
      style.colour = screen_.colour;
      style.decimals = 6;
      style.scaled = false;  // people copy SQL's results into other programs
      style.missing = "NULL";
      put(report::to_text(table_, style));
    }
    table_.rows.clear();
  }

  std::string format_;
  report::Screen screen_;
  report::Table table_;
  std::string text_;
  JsonWriter json_{text_, {.spaced = false, .infinities = true}};
  uint64_t rows_ = 0;
  bool failed_ = false;
};

// --explain: three parts with headings for people, otherwise a table with two columns.
int print(const query::Explanation& explanation, const std::string& format, RowPrinter& printer) {
  std::vector<std::pair<std::string, std::string>> lines = {{"engine", explanation.engine},
                                                            {"reason", explanation.reason}};
  for (const std::string& step : explanation.plan) lines.emplace_back("plan", step);
  if (format == "table") {
    std::string text, last;
    for (const auto& [part, line] : lines) {
      text += fmt::format("{:<8}{}\n", part == last ? "" : part, line);
      last = part;
    }
    report::put(text);
    return kOk;
  }
  const std::string names[] = {"part", "text"};
  printer.columns(names);
  for (const auto& [part, line] : lines) {
    const report::Cell row[] = {part, line};
    printer.row(row);
  }
  printer.end();
  return kOk;
}

}  // namespace

int run_query(int argc, char** argv) {
  CommandOptions app("SQL over a trace: .tacho, .rpd, rocpd databases, Kineto and Chrome JSON, rocprofv3's files.",
                     "tacho query");
  std::string file, sql, script, dialect, format = "table";
  bool schema = false, explain = false;
  double timeout = 0;
  app.add_option("file", file, "trace").required();
  app.add_option("sql", sql, "one SELECT statement");
  app.add_option("--script", script, "read the statement from a file; - = standard input");
  app.add_option("--dialect", dialect,
                 "what unqualified names mean: rpd, rocpd or tacho (default: the file's own, else rpd)")
      .one_of({"rpd", "rocpd", "tacho"});
  app.add_option("--output-format", format, "table, csv or json")
      .one_of({"table", "csv", "json"})
      .capture_default_str();
  app.add_option("--timeout", timeout, "end with exit code 1 after so many seconds (default: no limit)")
      .between(0.001, 1e9);
  app.add_flag("--schema", schema, "list tables and views with their columns");
  app.add_flag("--explain", explain, "say which engine answers the statement, why and how, without running it");
  app.footer("Qualified names reach every schema: rpd.top, rocpd.top_kernels, tacho.dispatch.\n"
             "Example: tacho query app.tacho \"SELECT name, count(*), sum(duration) "
             "FROM tacho.dispatch GROUP BY name ORDER BY 3 DESC\"");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (!script.empty()) {
    if (!sql.empty()) return complain(kBadInput, "give the statement either as an argument or with --script, not both");
    if (script == "-") {
      std::string line;
      for (int c; (c = std::getchar()) != EOF;) sql += static_cast<char>(c);
    } else {
      std::ifstream in(script, std::ios::binary);
      if (!in) return complain(kBadInput, script + ": cannot be read");
      sql.assign(std::istreambuf_iterator<char>(in), {});
    }
  }
  if (sql.empty() && !schema)
    return complain(kBadInput, "give a SELECT statement, or --schema for the tables there are");
  TimeLimit limit(timeout);
  const auto session = query::Session::open(file, dialect);
  if (!session) return complain(kBadInput, session.error().message);
  if (!(*session)->unknown().empty()) complain(kOk, (*session)->unknown());
  if (!(*session)->unaligned().empty()) complain(kOk, fmt::format("{}: {}", file, (*session)->unaligned()));
  RowPrinter printer(format);
  if (explain) {
    const auto explanation = (*session)->explain(sql);
    if (!explanation) return complain(kBadInput, explanation.error().message);
    return print(*explanation, format, printer);
  }
  if (schema) {
    const auto table = (*session)->schema();
    if (!table) return complain(kBadInput, table.error().message);
    std::vector<std::string> names;
    for (const report::Column& column : table->columns) names.push_back(column.title);
    printer.columns(names);
    for (const auto& row : table->rows) printer.row(row);
    printer.end();
    return kOk;
  }
  const Status done = (*session)->run(sql, {[&](std::span<const std::string> names) { printer.columns(names); },
                                            [&](std::span<const report::Cell> row) {
                                              limit.answered();
                                              return printer.row(row);
                                            }});
  if (!done) return complain(kBadInput, done.error().message);
  printer.end();
  return kOk;
}

}  // namespace tacho::cli
