// `tacho query FILE SQL`: queries any trace as a database.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/export_trace.h"
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

// What an answer is written as.
struct AnswerForm {
  std::string word;  // of --output-format
  format::arrow::Framing framing = format::arrow::Framing::kStream;
};

// As --output-format says, or where it says nothing the ending of `output`; "" is standard output.
Result<AnswerForm> form_of(const std::string& word, const std::string& output) {
  using format::arrow::Framing;
  static const std::pair<std::string_view, AnswerForm> kEndings[] = {{".csv", {"csv"}},
                                                                     {".json", {"json"}},
                                                                     {".arrow", {"arrow", Framing::kFile}},
                                                                     {".feather", {"arrow", Framing::kFile}},
                                                                     {".arrows", {"arrow"}},
                                                                     {".txt", {"table"}}};
  for (const auto& [ending, form] : kEndings)
    if (output.ends_with(ending) && (word.empty() || word == form.word)) return form;
  if (!word.empty()) return AnswerForm{word};
  if (output.empty() || is_standard_output(output)) return AnswerForm{"table"};
  for (const std::string_view packed : {".gz", ".zst", ".zip", ".bz2", ".xz"})
    if (output.ends_with(packed))
      return fail("-o {}: tacho packs no output; leave the ending off and pack the file afterwards", output);
  if (output.ends_with(".parquet"))
    return fail("-o {}: answers are no Parquet; choose .arrow, or write the whole trace with tacho export -f parquet",
                output);
  return fail("-o {}: the ending says no format: choose .csv, .json, .arrow, .arrows or .txt, or give --output-format",
              output);
}

// Where an answer goes: standard output, or the file of -o, which appears when the answer is complete.
class AnswerTarget {
 public:
  static Result<AnswerTarget> open(const std::string& path, bool overwrite) {
    AnswerTarget result;
    if (path.empty()) return result;
    ignore_output_signals();
    TACHO_ASSIGN(OutputFile file, OutputFile::create(path, overwrite));
    result.file_ = std::make_unique<OutputFile>(std::move(file));
    return result;
  }
  bool is_file() const { return file_ != nullptr; }
  /// False when nobody gets what follows.
  bool put(std::string_view bytes) const {
    if (file_ == nullptr) return report::put(bytes);
    file_->write(bytes);
    return !file_->failed();
  }
  /// The exit code of a complete answer.
  int end() const {
    if (file_ == nullptr) return kOk;
    if (const Status done = file_->commit(); !done) return complain(kBadInput, done.error().message);
    print_outputs({&file_->path(), 1});
    return kOk;
  }

 private:
  std::unique_ptr<OutputFile> file_;
};

std::string parts_of(const report::Answer& answer, const report::Screen& screen) {
  std::string last, text;
  for (const auto& row : answer.rows) {
    constexpr size_t kPart = 8;
    const auto& part = std::get<std::string>(row[0]);
    const std::string head = report::padded_right(part == last ? "" : part, kPart);
    const std::string lines = report::paragraph(std::get<std::string>(row[1]), screen.fit(), kPart, kPart);
    text += fmt::format("{}{}\n", head, lines.substr(kPart));
    last = part;
  }
  return text;
}

// The stream of an answer whose rows are here.
Status show_arrow(const report::Answer& answer, const query::ArrowOutput& output) {
  query::ArrowRows stream(output, false);
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

int answer_arrow(query::Session& session, const Question& question, format::arrow::Framing framing,
                 const AnswerTarget& to, TimeLimit& limit) {
  const query::ArrowOutput output = {[&](std::string_view bytes) {
                                       limit.answered();
                                       return to.put(bytes);
                                     },
                                     framing};
  query::ArrowNotes notes;
  Status done;
  if (question.explain) {
    const auto explanation = session.explain(question.sql, query::Answers::kColumns);
    if (!explanation) return complain_sql(session, explanation.error());
    done = show_arrow(answer_of(*explanation), output);
  } else if (question.schema) {
    const auto answer = session.schema();
    if (!answer) return complain(kBadInput, answer.error().message);
    done = show_arrow(*answer, output);
  } else {
    auto run = session.run_arrow(question.sql, output);
    if (run)
      notes = std::move(*run);
    else
      done = fail_with(std::move(run));
  }
  if (!done) return complain_sql(session, done.error());
  report::flush_output();
  const int code = to.end();
  for (const std::string& note : notes.sentences()) complain(kOk, note);
  return code;
}

int answer_rows(query::Session& session, const Question& question, report::AnswerFormat face, const AnswerTarget& to,
                TimeLimit& limit) {
  report::ShowOptions options = {.face = face, .sql = true, .page = 5000};
  if (to.is_file()) options.put = [&](std::string_view bytes) { return to.put(bytes); };
  if (question.explain) {
    const auto explanation = session.explain(question.sql);
    if (!explanation) return complain_sql(session, explanation.error());
    report::Answer answer = answer_of(*explanation);
    if (face == report::AnswerFormat::kText)
      to.put(parts_of(answer, to.is_file() ? report::Screen() : report::screen_of(STDOUT_FILENO)));
    else
      report::show(answer, options);
    return to.end();
  }
  if (question.schema) {
    auto answer = session.schema();
    if (!answer) return complain(kBadInput, answer.error().message);
    report::show(*answer, options);
    return to.end();
  }
  report::Answer answer;
  std::optional<report::RowPrinter> printer;
  const Status done = session.run(question.sql, {[&](std::span<const std::string> names) {
                                                   answer = result_of(names);
                                                   printer.emplace(answer, options);
                                                 },
                                                 [&](std::span<const report::Cell> row) {
                                                   limit.answered();
                                                   return printer->row({row.begin(), row.end()});
                                                 }});
  if (!done) return complain_sql(session, done.error());
  if (printer) printer->end();
  return to.end();
}

// Replaces `sql` by the content of `script`, if there is one.
Status read_script(const std::string& script, std::string& sql) {
  if (script.empty()) return {};
  if (!sql.empty()) return fail("give the statement either as an argument or with --script, not both");
  if (script == "-") {
    for (int c; (c = std::getchar()) != EOF;) sql += static_cast<char>(c);
    return {};
  }
  std::ifstream in(script, std::ios::binary);
  if (!in) return fail("{}: cannot be read", script);
  sql.assign(std::istreambuf_iterator<char>(in), {});
  return {};
}

}  // namespace

int run_query(int argc, char** argv) {
  CommandOptions app("SQL over a trace: .tacho, .rpd, rocpd databases, Kineto and Chrome JSON, rocprofv3's files.",
                     "tacho query");
  std::string file, sql, script, dialect, word, output;
  bool schema = false, explain = false, overwrite = false;
  double timeout = 0;
  app.add_option("file", file, "trace").required();
  app.add_option("sql", sql, "one SELECT statement");
  app.add_option("--script", script, "read the statement from a file; - = standard input");
  app.add_option("--dialect", dialect,
                 "what unqualified names mean: rpd, rocpd or tacho (default: the file's own, else rpd)")
      .one_of({"rpd", "rocpd", "tacho"});
  app.add_option("--output-format", word,
                 "table, csv, json or arrow (default: what the ending of -o says; table on standard output)")
      .one_of({"table", "csv", "json", "arrow"});
  app.add_option("-o,--output", output, "file to write: .csv, .json, .arrow, .arrows (Arrow's stream) or .txt");
  app.add_flag("--overwrite", overwrite, "-o may replace a file");
  app.add_option("--timeout", timeout, "end with exit code 1 after this many seconds (default: no limit)")
      .between(0.001, 1e9);
  app.add_flag("--schema", schema, "list tables and views with their columns");
  app.add_flag("--explain", explain, "say which engine answers the statement, why and how, without running it");
  app.footer("Examples:\n"
             "  tacho query app.tacho --schema\n"
             "  tacho query app.tacho \"SELECT * FROM top\"\n"
             "  tacho query app.tacho \"SELECT name, count(*), sum(duration) FROM tacho.dispatch "
             "GROUP BY name ORDER BY 3 DESC\"\n"
             "  tacho query app.tacho \"SELECT * FROM tacho.dispatch\" -o dispatch.arrow\n"
             "Qualified names reach every schema: rpd.top, rocpd.top_kernels, tacho.dispatch.");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (const Status read = read_script(script, sql); !read) return complain(kBadInput, read.error().message);
  const Result<AnswerForm> form = form_of(word, output);
  if (!form) return complain(kBadInput, form.error().message);
  const bool screen = (output.empty() || is_standard_output(output)) && ::isatty(STDOUT_FILENO) == 1;
  if (form->word == "arrow" && screen)
    return complain(kBadInput, "--output-format arrow is not for a terminal: send it to a file or a pipe");
  if (sql.empty() && !schema)
    return complain(kBadInput, "give a SELECT statement, or --schema for the tables there are");
  if (same_file(file, output))
    return complain(kBadInput, fmt::format("-o {}: is the trace itself; choose another name", output));
  const Result<AnswerTarget> to = AnswerTarget::open(output, overwrite);
  if (!to) return complain(kBadInput, to.error().message);
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
  if (!(*session)->passes().empty()) complain(kOk, fmt::format("{}: {}", file, (*session)->passes()));
  const Question question = {sql, schema, explain};
  if (form->word == "arrow") return answer_arrow(**session, question, form->framing, *to, limit);
  return answer_rows(**session, question, report::face_of(form->word), *to, limit);
}

}  // namespace tacho::cli
