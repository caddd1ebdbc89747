// `tacho query FILE SQL`: queries any trace as a database.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/command.h"
#include "cli/files/writer_names.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "cli/shared/suggest.h"
#include "cli/shared/time_limit.h"
#include "query/sql/session.h"
#include "report/answer.h"
#include "report/output.h"

namespace tacho::cli {
namespace {

// A result of SQL: what each column holds, its rows tell.
report::Answer result_of(std::span<const std::string> names) {
  report::Answer answer;
  for (const std::string& name : names) answer.columns.push_back({name, name, report::Unit::kAny});
  return answer;
}

// --explain: three parts with headings for people, otherwise a table with two columns.
report::Answer answer_of(const query::Explanation& explanation) {
  const std::string names[] = {"part", "text"};
  report::Answer answer = result_of(names);
  answer.rows = {{"engine", explanation.engine}, {"reason", explanation.reason}};
  for (const std::string& step : explanation.plan) answer.rows.push_back({"plan", step});
  return answer;
}

void show_parts(const report::Answer& answer) {
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  std::string last;
  for (const auto& row : answer.rows) {
    constexpr size_t kPart = 8;
    const auto& part = std::get<std::string>(row[0]);
    const std::string head = report::padded_right(part == last ? "" : part, kPart);
    const std::string text = report::paragraph(std::get<std::string>(row[1]), screen.fit(), kPart, kPart);
    report::print("{}{}\n", head, text.substr(kPart));
    last = part;
  }
}

// The stream of an answer whose rows are here.
Status show_arrow(const report::Answer& answer, const query::ArrowPut& put) {
  query::ArrowRows stream(put, false);
  const query::RowSink rows = stream.sink();
  std::vector<std::string> names;
  for (const report::Answer::Column& column : answer.columns) names.push_back(column.name);
  rows.columns(names);
  for (const std::vector<report::Cell>& row : answer.rows)
    if (!rows.row(row)) return {};
  if (stream.again())
    for (const std::vector<report::Cell>& row : answer.rows)
      if (!rows.row(row)) return {};
  query::ArrowNotes notes;
  return stream.end(notes);
}

// "; did you mean kernel?" where SQL's `message` names a table or column that is not there.
std::string meant_name(query::Session& session, std::string_view message) {
  for (const std::string_view unknown : {"no such table: ", "no such column: "}) {
    const size_t at = message.find(unknown);
    if (at == std::string_view::npos) continue;
    std::string_view word = message.substr(at + unknown.size());
    word = word.substr(0, word.find_first_of(" ;,"));
    if (const size_t dot = word.rfind('.'); dot != std::string_view::npos) {
      if (word.substr(0, dot) != session.dialect()) return {};
      word.remove_prefix(dot + 1);
    }
    const auto schema = session.schema();
    if (!schema) return {};
    std::vector<std::string> names;
    for (const std::vector<report::Cell>& row : schema->rows) {
      const auto text = [&](size_t i) {
        const auto* const held = std::get_if<std::string>(&row[i]);
        return held == nullptr ? std::string() : *held;
      };
      if (unknown.find("table") != std::string_view::npos)
        names.push_back(text(0));
      else
        for (const std::string& column : words_of(text(2)))
          names.push_back(column.substr(std::min(column.find_first_not_of(' '), column.size())));
    }
    const std::string best = nearest(word, names);
    return best.empty() ? "; --schema lists the tables and their columns" : fmt::format("; did you mean {}?", best);
  }
  return {};
}

int complain_sql(query::Session& session, const Error& error) {
  return complain(kBadInput, error.message + meant_name(session, error.message));
}

// What is asked: one of the last two, or the rows of a statement.
struct Question {
  const std::string& sql;
  bool schema = false, explain = false;
};

int answer_arrow(query::Session& session, const Question& question, TimeLimit& limit) {
  const query::ArrowPut put = [&](std::string_view bytes) {
    limit.answered();
    return report::put(bytes);
  };
  query::ArrowNotes notes;
  Status done;
  if (question.explain) {
    const auto explanation = session.explain(question.sql, query::Answers::kColumns);
    if (!explanation) return complain_sql(session, explanation.error());
    done = show_arrow(answer_of(*explanation), put);
  } else if (question.schema) {
    const auto answer = session.schema();
    if (!answer) return complain(kBadInput, answer.error().message);
    done = show_arrow(*answer, put);
  } else {
    auto run = session.run_arrow(question.sql, put);
    if (run)
      notes = std::move(*run);
    else
      done = fail_with(std::move(run));
  }
  if (!done) return complain_sql(session, done.error());
  report::flush_output();
  for (const std::string& note : notes.sentences()) complain(kOk, note);
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
  app.add_option("--output-format", format, "table, csv, json or arrow (Arrow's IPC stream)")
      .one_of({"table", "csv", "json", "arrow"})
      .capture_default_str();
  app.add_option("--timeout", timeout, "end with exit code 1 after this many seconds (default: no limit)")
      .between(0.001, 1e9);
  app.add_flag("--schema", schema, "list tables and views with their columns");
  app.add_flag("--explain", explain, "say which engine answers the statement, why and how, without running it");
  app.footer("Examples:\n"
             "  tacho query app.tacho --schema\n"
             "  tacho query app.tacho \"SELECT * FROM top\"\n"
             "  tacho query app.tacho \"SELECT name, count(*), sum(duration) FROM tacho.dispatch "
             "GROUP BY name ORDER BY 3 DESC\"\n"
             "  tacho query app.tacho \"SELECT * FROM tacho.dispatch\" --output-format arrow > dispatch.arrows\n"
             "Qualified names reach every schema: rpd.top, rocpd.top_kernels, tacho.dispatch.");
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
  if (format == "arrow" && ::isatty(STDOUT_FILENO) == 1)
    return complain(kBadInput, "--output-format arrow is not for a terminal: send it to a file or a pipe");
  if (sql.empty() && !schema)
    return complain(kBadInput, "give a SELECT statement, or --schema for the tables there are");
  TimeLimit limit(timeout);
  const auto session = query::Session::open(file, dialect);
  if (!session) {
    const std::string other = not_a_trace(file);
    return complain(kBadInput, other.empty() ? session.error().message : other);
  }
  if (!(*session)->cut_off().empty() && (*session)->empty())
    return complain(kBadInput, fmt::format("{}; no event is left", (*session)->cut_off()));
  if (!(*session)->cut_off().empty()) complain(kOk, (*session)->cut_off());
  if (!(*session)->unknown().empty()) complain(kOk, (*session)->unknown());
  if (!(*session)->unaligned().empty()) complain(kOk, fmt::format("{}: {}", file, (*session)->unaligned()));
  if (format == "arrow") return answer_arrow(**session, {sql, schema, explain}, limit);
  const report::ShowOptions options = {.face = report::face_of(format), .sql = true, .page = 5000};
  if (explain) {
    const auto explanation = (*session)->explain(sql);
    if (!explanation) return complain_sql(**session, explanation.error());
    report::Answer answer = answer_of(*explanation);
    if (options.face == report::AnswerFormat::kText)
      show_parts(answer);
    else
      report::show(answer, options);
    return kOk;
  }
  if (schema) {
    auto answer = (*session)->schema();
    if (!answer) return complain(kBadInput, answer.error().message);
    report::show(*answer, options);
    return kOk;
  }
  report::Answer answer;
  std::optional<report::RowPrinter> printer;
  const Status done = (*session)->run(sql, {[&](std::span<const std::string> names) {
                                              answer = result_of(names);
                                              printer.emplace(answer, options);
                                            },
                                            [&](std::span<const report::Cell> row) {
                                              limit.answered();
                                              return printer->row({row.begin(), row.end()});
                                            }});
  if (!done) return complain_sql(**session, done.error());
  if (printer) printer->end();
  return kOk;
}

}  // namespace tacho::cli
