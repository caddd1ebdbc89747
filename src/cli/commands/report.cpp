// `tacho report WHAT FILE`: findings, gaps, launch-delay, queue-depth, overlap, topex, binop.
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "analysis/questions.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/output/findings.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "cli/shared/suggest.h"
#include "format/format.h"
#include "report/answer.h"
#include "report/output.h"

namespace tacho::cli {
namespace {

int show_findings(const trace::Trace& trace, const report::ShowOptions& options, bool missing) {
  auto findings = findings_of(trace);
  if (!findings) return complain(kBadInput, findings.error().message);
  if (options.face == report::AnswerFormat::kCsv) {
    report::Answer answer = analysis::findings_answer(*findings);
    report::show(answer, options);
    return kOk;
  }
  if (options.face == report::AnswerFormat::kJson) {
    if (options.most != 0 && findings->findings.size() > options.most) findings->findings.resize(options.most);
    report::put(findings_json(*findings));
  } else {
    report::put(findings_text(*findings, trace, options.most, missing, report::screen_of(STDOUT_FILENO)));
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
  app.examples("  tacho report findings app.tacho        what to improve first\n"
               "  tacho report gaps app.tacho --top 10   when a GPU had nothing to do");
  std::string what, file, format = "text", bins;
  size_t top = 0;
  bool missing = false;
  static const std::vector<std::string> kReports = {"findings", "gaps",  "launch-delay", "queue-depth",
                                                    "overlap",  "topex", "binop"};
  app.add_option("report", what, "findings, gaps, launch-delay, queue-depth, overlap, topex or binop").required();
  app.add_option("file", file, "trace of any format that tacho reads").required();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  app.add_option("--top", top, "only the first N rows; 0 = all").capture_default_str();
  app.add_option("--bins", bins, "binop: bounds, like 10us,25us,100us,1ms");
  app.add_flag("--missing", missing, "findings: list the rules that could not be judged, and what each needs");
  app.footer(
      "findings      where time went that need not, in sentences, by what it could save\n"
      "gaps          times in which a GPU ran nothing, and how much of that with work waiting\n"
      "launch-delay  from the end of the API call to the start of the kernel, on an idle GPU\n"
      "queue-depth   how long how many operations were asked for and not done\n"
      "overlap       operations at the same time; copies beside kernels\n"
      "topex         API calls, operators, functions, markers and GPU operations by the time that is theirs alone\n"
      "binop         operations by duration\n"
      "ranks         who made whom wait in a run of many ranks; takes several files (tacho ranks --help)");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (std::find(kReports.begin(), kReports.end(), what) == kReports.end()) {
    if (std::find(kReports.begin(), kReports.end(), file) != kReports.end())
      return complain(kBadInput, fmt::format("there is no report '{}'; did you mean: tacho report {} {}", what, file,
                                             shell_word(what)));
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
  const auto trace = open_events(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  const report::ShowOptions options = {.face = report::face_of(format), .most = top};
  if (what == "findings") return show_findings(**trace, options, missing);
  auto answer = what == "gaps"           ? analysis::gaps(**trace)
                : what == "launch-delay" ? analysis::launch_delay(**trace)
                : what == "queue-depth"  ? analysis::queue_depth(**trace)
                : what == "overlap"      ? analysis::overlap(**trace)
                : what == "topex"        ? analysis::exclusive(**trace)
                                         : analysis::bins(**trace, bounds);
  if (!answer) return complain(kBadInput, answer.error().message);
  answer->when_empty = fmt::format("{}: {}", file, answer->when_empty);
  report::show(*answer, options);
  return kOk;
}

}  // namespace tacho::cli
