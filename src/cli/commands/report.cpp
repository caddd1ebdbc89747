// `tacho report WHAT FILE`: findings, gaps, launch-delay, queue-depth, overlap, topex, binop; `tacho diff A B`.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "analysis/diff.h"
#include "analysis/questions.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/output/findings.h"
#include "cli/output/pages.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"
#include "format/format.h"
#include "report/output.h"
#include "report/table.h"

namespace tacho::cli {
namespace {

// Prints the answer, at most `most` rows of it (0 = all).
void show(analysis::Answer& answer, size_t most, const std::string& format, const std::string& when_empty) {
  if (most != 0 && answer.rows.size() > most) answer.rows.resize(most);
  Pages pages(format, when_empty);
  size_t given = answer.rows.size();
  std::vector<report::Cell> row;
  for (bool more = true; more;) {
    while (answer.rows.size() < Pages::kRows &&
           (more = answer.next && (most == 0 || given < most) && answer.next(row))) {
      answer.rows.push_back(std::exchange(row, {}));
      ++given;
    }
    pages.give(pages.text() ? analysis::readable_table(answer) : analysis::exact_table(answer), !more);
    answer.rows.clear();
  }
  report::flush_output();
  for (const std::string& sentence : answer.remarks) complain(0, sentence);
}

int show_findings(const trace::Trace& trace, size_t top, const std::string& format) {
  auto findings = findings_of(trace);
  if (!findings) return complain(kBadInput, findings.error().message);
  if (format == "csv") {
    analysis::Answer answer = analysis::findings_answer(*findings);
    show(answer, top, format, answer.when_empty);
    return kOk;
  }
  if (format == "json") {
    if (top != 0 && findings->findings.size() > top) findings->findings.resize(top);
    report::print("{}", findings_json(*findings));
  } else {
    report::print("{}", findings_text(*findings, trace, top, report::screen_of(1)));
  }
  report::flush_output();
  for (const std::string& remark : findings->remarks) complain(0, remark);
  return kOk;
}

// "10us,25us,1ms" -> ns, ascending.
Result<std::vector<int64_t>> parse_bins(const std::string& text) {
  std::vector<int64_t> bounds;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    double number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string_view unit(stop, static_cast<size_t>(word.data() + word.size() - stop));
    const double scale = unit.empty() || unit == "ns" ? 1
                         : unit == "us"               ? 1e3
                         : unit == "ms"               ? 1e6
                         : unit == "s"                ? 1e9
                                                      : 0;
    if (error != std::errc() || scale == 0 || !(number * scale >= 1) || number * scale > 9e18)
      return fail("--bins {}: '{}' is no duration; write them like 10us,25us,1ms", text, word);
    bounds.push_back(static_cast<int64_t>(std::llround(number * scale)));
    if (bounds.size() > 1 && bounds[bounds.size() - 2] >= bounds.back())
      return fail("--bins {}: the bounds must ascend", text);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  if (bounds.empty()) return fail("--bins: give at least one bound, like 10us,25us,1ms");
  return bounds;
}

}  // namespace

int run_ranks(int argc, char** argv);  // ranks.cpp

int run_report(int argc, char** argv) {
  // Many files and options of its own: a command of its own by another name.
  if (argc > 1 && std::string_view(argv[1]) == "ranks") return run_ranks(argc - 1, argv + 1);
  CommandOptions app("Answers to common questions about a trace.", "tacho report");
  std::string what, file, format = "text", bins;
  size_t top = 0;
  static const std::vector<std::string> kReports = {"findings", "gaps",  "launch-delay", "queue-depth",
                                                    "overlap",  "topex", "binop"};
  app.add_option("report", what, "findings, gaps, launch-delay, queue-depth, overlap, topex or binop").required();
  app.add_option("file", file, "trace of any format that tacho reads").required();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  app.add_option("--top", top, "only the first N rows; 0 = all").capture_default_str();
  app.add_option("--bins", bins, "binop: bounds, like 10us,25us,100us,1ms");
  app.footer("findings      where time went that need not, in sentences, by what it could save\n"
             "gaps          times in which a GPU ran nothing, and how much of that with work waiting\n"
             "launch-delay  from the end of the API call to the start of the kernel, on an idle GPU\n"
             "queue-depth   how long how many operations were asked for and not done\n"
             "overlap       operations at the same time; copies beside kernels\n"
             "topex         API calls and GPU operations by the time that is theirs alone\n"
             "binop         operations by duration\n"
             "ranks         who made whom wait in a run of many ranks; takes several files (tacho ranks --help)");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (std::find(kReports.begin(), kReports.end(), what) == kReports.end()) {
    const std::string best = nearest(what, kReports);
    return complain(kBadInput, fmt::format("there is no report '{}'{}; reports are findings, gaps, launch-delay, "
                                           "queue-depth, overlap, topex, binop",
                                           what, best.empty() ? "" : ", did you mean '" + best + "'"));
  }
  std::vector<int64_t> bounds(std::begin(analysis::kDefaultBins), std::end(analysis::kDefaultBins));
  if (!bins.empty()) {
    const auto parsed = parse_bins(bins);
    if (!parsed) return complain(kBadInput, parsed.error().message);
    bounds = *parsed;
  }
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  if (what == "findings") return show_findings(**trace, top, format);
  auto answer = what == "gaps"           ? analysis::gaps(**trace)
                : what == "launch-delay" ? analysis::launch_delay(**trace)
                : what == "queue-depth"  ? analysis::queue_depth(**trace)
                : what == "overlap"      ? analysis::overlap(**trace)
                : what == "topex"        ? analysis::exclusive(**trace)
                                         : analysis::bins(**trace, bounds);
  if (!answer) return complain(kBadInput, answer.error().message);
  show(*answer, top, format, fmt::format("{}: {}", file, answer->when_empty));
  return kOk;
}

int run_diff(int argc, char** argv) {
  CommandOptions app("Compare two traces: per kernel, API function, marker, copy direction or framework operator.",
                     "tacho diff");
  std::string a, b, by_text = "kernel", format = "text", limit;
  size_t top = 0;
  app.add_option("a", a, "trace of any format that tacho reads: before").required();
  app.add_option("b", b, "the other one: after").required();
  app.add_option("--by", by_text,
                 "kernel, api, marker, copy or operator (GPU time under the innermost framework operator)")
      .capture_default_str();
  app.add_option("--fail-above", limit, "exit with 3 when B's total time is more than so much above A's, like 5%")
      .type_name("PERCENT");
  app.add_option("--top", top, "only the first N rows; 0 = all").capture_default_str();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  app.footer("p is the probability that durations differ so much by chance alone "
             "(Mann-Whitney U); without one: fewer than 8 calls.");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  double percent = -1;
  if (!limit.empty()) {
    std::string_view digits = limit;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    if (error != std::errc() || stop != digits.data() + digits.size() || !(percent >= 0))
      return complain(kBadInput, "--fail-above " + limit + ": write a percentage, like 5%");
  }
  const auto by = analysis::parse_diff_by(by_text);
  if (!by) return complain(kBadInput, by.error().message);
  const auto before = open_trace(a);
  if (!before) return complain(kBadInput, before.error().message);
  const auto after = open_trace(b);
  if (!after) return complain(kBadInput, after.error().message);
  const auto diff = analysis::diff(**before, **after, *by);
  if (!diff) return complain(kBadInput, diff.error().message);
  analysis::Answer answer = analysis::diff_answer(*diff);
  if (format == "text") {
    // People get the columns that fit; programs get all of them.
    analysis::Answer fewer;
    static constexpr int kShown[] = {0, 1, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14};
    for (const int column : kShown) fewer.columns.push_back(answer.columns[static_cast<size_t>(column)]);
    fewer.next = [all = answer.next](std::vector<report::Cell>& shown) {
      std::vector<report::Cell> row;
      if (!all(row)) return false;
      shown.clear();
      for (const int column : kShown) shown.push_back(std::move(row[static_cast<size_t>(column)]));
      return true;
    };
    fewer.remarks = answer.remarks;
    answer = std::move(fewer);
  }
  const double change =
      diff->total_a > 0 ? (static_cast<double>(diff->total_b) / static_cast<double>(diff->total_a) - 1) * 100.0 : 0.0;
  if (format == "text" && diff->rows > 0)
    report::print("A  {}  {}\nB  {}  {}  ({:+.2f} %)\n\n", report::format_duration(static_cast<double>(diff->total_a)),
                  report::clean(a), report::format_duration(static_cast<double>(diff->total_b)), report::clean(b),
                  change);
  report::flush_output();
  show(answer, top, format, fmt::format("neither trace has anything to compare by {}", by_text));
  if (percent >= 0 && change > percent)
    return complain(kFailAbove, fmt::format("{} takes {:.2f} % more than {}: above the {} % that --fail-above allows",
                                            b, change, a, percent));
  return kOk;
}

}  // namespace tacho::cli
