// `tacho diff A B`: two traces, compared name by name.
#include "analysis/diff.h"

#include <unistd.h>

#include <charconv>
#include <optional>

#include "analysis/sums/sums.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "cli/shared/suggest.h"
#include "cli/watch/sums.h"
#include "report/answer.h"
#include "report/output.h"
#include "report/shorten.h"

namespace tacho::cli {
namespace {

// People read "only in A" where there is nothing to compare with.
void name_sides(report::Answer& answer) {
  constexpr size_t kChange = 1, kCallsA = 3, kCallsB = 4;
  answer.next = [next = answer.next](std::vector<report::Cell>& cells) {
    if (!next(cells)) return false;
    if (cells[kCallsA] == report::Cell(int64_t{0})) cells[kChange] = "only in B";
    if (cells[kCallsB] == report::Cell(int64_t{0})) cells[kChange] = "only in A";
    return true;
  };
}

}  // namespace

int run_diff(int argc, char** argv) {
  CommandOptions app("Compare two traces: per kernel, API function, marker, copy direction or framework operator.",
                     "tacho diff");
  std::string a, b, by_text = "kernel", format = "text", limit, before_text, after_text;
  size_t top = 0;
  bool input_shapes = false;
  app.add_option("a", a, "trace of any format that tacho reads: before").required();
  app.add_option("b", b, "the other one: after");
  app.add_option("--before", before_text, "of one file of tacho watch: this time, as in 14:00-14:10 or 0s-90s")
      .type_name("TIMES");
  app.add_option("--after", after_text, "compared with this one").type_name("TIMES");
  app.add_option("--by", by_text,
                 "kernel, api, marker, copy or operator (GPU time under the innermost framework operator)")
      .capture_default_str();
  app.add_flag("--input-shapes", input_shapes, "with --by operator: one row per shapes of inputs");
  app.add_option("--fail-above", limit, "exit with 3 when B's total time is more than so much above A's, like 5%")
      .type_name("PERCENT");
  app.add_option("--top", top, "only the first N rows; 0 = all").capture_default_str();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  app.footer("Examples:\n"
             "  tacho diff before.tacho after.tacho\n"
             "  tacho diff before.tacho after.tacho --by operator\n"
             "  tacho diff main.tacho branch.tacho --fail-above 5%      in CI\n"
             "  tacho diff watch.tacho --before 14:00-14:10 --after 14:10-14:20\n"
             "p is the probability that durations differ so much by chance alone "
             "(Mann-Whitney U); without one: fewer than 8 calls.");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  const bool parts = !before_text.empty() || !after_text.empty();
  if (parts && (before_text.empty() || after_text.empty() || !b.empty()))
    return complain(kBadInput, "--before and --after go together, with one file of tacho watch");
  if (!parts && b.empty())
    return complain(
        kBadInput,
        "B is missing: tacho diff A B, or two parts of one file of tacho watch (--before, --after); see tacho diff --help");
  double percent = -1;
  if (!limit.empty()) {
    std::string_view digits = limit;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    if (error != std::errc() || stop != digits.data() + digits.size() || !(percent >= 0))
      return complain(kBadInput, "--fail-above " + limit + ": write a percentage, like 5%");
  }
  const auto by = analysis::parse_diff_by(by_text);
  if (!by) {
    static const std::vector<std::string> kWords = {"kernel", "api", "marker", "copy", "operator"};
    const std::string best = nearest(by_text, kWords);
    return complain(kBadInput, by.error().message + (best.empty() ? "" : "; did you mean " + best + "?"));
  }
  if (input_shapes && *by != analysis::DiffBy::kOperator)
    return complain(kBadInput, fmt::format("--input-shapes goes with --by operator, not with --by {}", by_text));
  if (is_profile(a) && is_profile(b))
    return complain(kBadInput,
                    fmt::format("{} and {} are profile folders (counters); did you mean: tacho analyze -p {} "
                                "-p {}",
                                a, b, shell_word(a), shell_word(b)));
  const auto before = open_trace(a);
  if (!before) return complain(kBadInput, before.error().message);
  const report::ShowOptions options = {.face = report::face_of(format), .most = top};
  if (parts) return diff_times(**before, a, {before_text, after_text}, *by, options, percent);
  const auto after = open_trace(b);
  if (!after) return complain(kBadInput, after.error().message);
  if (analysis::holds_sums(**before) || analysis::holds_sums(**after))
    return diff_sums(**before, **after, {a, b}, *by, options, percent);
  auto diff = analysis::diff(**before, **after, *by, input_shapes);
  if (!diff) return complain(kBadInput, diff.error().message);
  std::optional<analysis::DiffRow> largest;
  diff->next = [&largest, next = diff->next](analysis::DiffRow& row) {
    if (!next(row)) return false;
    if (!largest) largest = row;
    return true;
  };
  report::Answer answer = analysis::diff_answer(*diff);
  const double change =
      diff->total_a > 0 ? (static_cast<double>(diff->total_b) / static_cast<double>(diff->total_a) - 1) * 100.0 : 0.0;
  if (options.face == report::AnswerFormat::kText && diff->rows > 0) {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    const auto time = [](int64_t ns) { return report::format_duration(static_cast<double>(ns)); };
    const auto line = [&](std::string_view head, const std::string& path, const std::string& tail) {
      const size_t beside = report::display_width(head) + report::display_width(tail);
      const size_t room = screen.fit() == 0 ? SIZE_MAX : screen.fit() - std::min(beside, screen.fit() - 10);
      report::print("{}{}{}\n", head, report::shortened_path(report::clean(path), room), tail);
    };
    line(fmt::format("A  {}  ", time(diff->total_a)), a, "");
    line(fmt::format("B  {}  ", time(diff->total_b)), b, fmt::format("  ({:+.2f} %)", change));
    report::print("\n");
  }
  answer.when_empty = fmt::format("neither trace has anything to compare by {}", by_text);
  if (options.face == report::AnswerFormat::kText) name_sides(answer);
  report::show(answer, options);
  if (options.face == report::AnswerFormat::kText && largest)
    report::put("\n" + report::screen_of(STDOUT_FILENO).sentence(analysis::diff_sentence(*diff, *largest)));
  if (percent >= 0 && change > percent)
    return complain(kFailAbove, fmt::format("{} takes {:.2f} % more than {}: above the {} % that --fail-above allows",
                                            b, change, a, percent));
  return kOk;
}

}  // namespace tacho::cli
