// Showing sums (sums.h).
#include "cli/watch/sums.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/command.h"

namespace tacho::cli {
namespace {

constexpr std::string_view kWork[] = {"kernel", "graph"}, kCopies[] = {"copy"};

// Two times, of one file of `tacho watch` or of two.
struct SumSides {
  std::string name_a, name_b;  // the file, and the time if it is a part of it
  analysis::SumTotals a, b;
  std::string since;  // begins sentences
};

int show_sums(const SumSides& sides, analysis::DiffBy by, const report::ShowOptions& options, double fail_above) {
  const std::span<const std::string_view> kinds =
      by == analysis::DiffBy::kCopy ? std::span<const std::string_view>(kCopies) : kWork;
  const auto share = [&](const analysis::SumTotals& totals) {
    double all = 0;
    for (const analysis::SumRow& row : totals.rows)
      if (std::find(kinds.begin(), kinds.end(), row.kind) != kinds.end()) all += row.total_ns().value_or(0);
    return all * 1e-9 / totals.seconds;
  };
  const double before = share(sides.a), after = share(sides.b);
  const bool text = options.face == report::AnswerFormat::kText;
  if (text) {
    const auto line = [](std::string_view side, const std::string& name, const analysis::SumTotals& totals,
                         double share_of) {
      report::print("{}  {}  {} in {} period{}, {:.1f} % of it on the device\n", side, report::clean(name),
                    report::format_duration(totals.seconds * 1e9), totals.periods, totals.periods == 1 ? "" : "s",
                    share_of * 100);
    };
    line("A", sides.name_a, sides.a, before);
    line("B", sides.name_b, sides.b, after);
    report::print("\n");
  }
  report::Answer answer = analysis::change_answer(sides.a, sides.b, kinds);
  report::show(answer, options);
  if (text) {
    report::print("\n");
    for (const std::string& sentence : analysis::change_sentences(sides.a, sides.b, kinds, sides.since))
      report::put(report::screen_of(STDOUT_FILENO).sentence(sentence));
  }
  const double change = before > 0 ? (after / before - 1) * 100 : 0;
  if (fail_above >= 0 && change > fail_above)
    return complain(kFailAbove, fmt::format("{} takes {:.2f} % more device time a second than {}: above the {} % that "
                                            "--fail-above allows",
                                            sides.name_b, change, sides.name_a, fail_above));
  return kOk;
}

// Parts of one file's time.
Result<SumSides> parts_of_time(const trace::Trace& trace, const std::string& file, const std::string& before,
                               const std::string& after) {
  if (!analysis::holds_sums(trace))
    return fail("{}: --before and --after are for files of tacho watch; cut two parts out with tacho trim, and compare "
                "these",
                file);
  TACHO_ASSIGN(const analysis::TimeRange span, analysis::span_of_sums(trace));
  TACHO_ASSIGN(const analysis::TimeRange a, analysis::parse_time_range(trace, before, span, "--before"));
  TACHO_ASSIGN(const analysis::TimeRange b, analysis::parse_time_range(trace, after, span, "--after"));
  TACHO_ASSIGN(std::vector<analysis::SumTotals> sums, analysis::sum_up(trace, std::array{a, b}));
  for (const auto& [option, text, totals] :
       {std::tuple("--before", &before, &sums[0]), std::tuple("--after", &after, &sums[1])})
    if (totals->periods == 0)
      return fail("{} {}: the sums of that time are of longer periods (a minute or an hour); give a longer range",
                  option, *text);
  const bool dated = span.to - span.from > int64_t{86400} * 1'000'000'000;
  const auto name = [&](const analysis::SumTotals& totals) {
    return fmt::format("{} to {}", analysis::clock_text(trace, totals.covered.from, span, dated),
                       analysis::clock_text(trace, totals.covered.to, span, dated));
  };
  SumSides sides;
  sides.name_a = name(sums[0]);
  sides.name_b = name(sums[1]);
  sides.since = fmt::format("since {}", analysis::clock_text(trace, sums[1].covered.from, span, dated));
  sides.a = std::move(sums[0]);
  sides.b = std::move(sums[1]);
  return sides;
}

Result<analysis::SumTotals> all_sums(const trace::Trace& trace) {
  TACHO_ASSIGN(const analysis::TimeRange span, analysis::span_of_sums(trace));
  TACHO_ASSIGN(std::vector<analysis::SumTotals> sums, analysis::sum_up(trace, std::span(&span, 1)));
  return std::move(sums[0]);
}

Result<SumSides> two_files(const trace::Trace& a, const trace::Trace& b, const std::string& name_a,
                           const std::string& name_b) {
  for (const auto& [trace, name] : {std::pair(&a, &name_a), std::pair(&b, &name_b)})
    if (!analysis::holds_sums(*trace))
      return fail("{}: is no file of tacho watch, the other one is: their times do not compare", *name);
  SumSides sides;
  sides.name_a = name_a;
  sides.name_b = name_b;
  sides.since = "in B";
  TACHO_ASSIGN(sides.a, all_sums(a));
  TACHO_ASSIGN(sides.b, all_sums(b));
  return sides;
}

Status only_work(analysis::DiffBy by, const std::string& file) {
  if (by == analysis::DiffBy::kKernel || by == analysis::DiffBy::kCopy) return {};
  return fail("{}: holds sums of tacho watch: choose --by kernel or copy", file);
}

}  // namespace

int stats_of_sums(const trace::Trace& trace, const std::string& file, const std::string& by_text,
                  const report::ShowOptions& options) {
  static constexpr std::pair<std::string_view, std::array<std::string_view, 2>> kKinds[] = {
      {"kernel", {"kernel", "graph"}}, {"copy", {"copy"}}, {"fill", {"fill"}}, {"sync", {"wait"}},
      {"allocation", {"allocation"}},
  };
  const auto* const found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& one) { return one.first == by_text; });
  if (found == std::end(kKinds))
    return complain(kBadInput, fmt::format("{}: holds sums of tacho watch: choose --by kernel, copy, fill, sync or "
                                           "allocation",
                                           file));
  const auto span = analysis::span_of_sums(trace);
  if (!span) return complain(kBadInput, span.error().message);
  const auto sums = analysis::sum_up(trace, std::span(&*span, 1));
  if (!sums) return complain(kBadInput, sums.error().message);
  const analysis::SumTotals& totals = sums->front();
  if (options.face == report::AnswerFormat::kText)
    report::print("{} to {}, sums of {} period{}{}\n\n", analysis::clock_text(trace, totals.covered.from, *span, true),
                  analysis::clock_text(trace, totals.covered.to, *span, true), totals.periods,
                  totals.periods == 1 ? "" : "s",
                  std::any_of(totals.rows.begin(), totals.rows.end(),
                              [](const analysis::SumRow& row) { return row.timed > 0 && row.kind != "wait"; })
                      ? "; times are estimates from 1 of N operations"
                      : "");
  report::Answer answer = analysis::sums_answer(totals, found->second);
  report::show(answer, options);
  return kOk;
}

int diff_times(const trace::Trace& trace, const std::string& file, const TwoSides& times, analysis::DiffBy by,
               const report::ShowOptions& options, double fail_above) {
  const auto sides = parts_of_time(trace, file, times.a, times.b);
  if (!sides) return complain(kBadInput, sides.error().message);
  if (const Status good = only_work(by, file); !good) return complain(kBadInput, good.error().message);
  return show_sums(*sides, by, options, fail_above);
}

int diff_sums(const trace::Trace& a, const trace::Trace& b, const TwoSides& files, analysis::DiffBy by,
              const report::ShowOptions& options, double fail_above) {
  const auto sides = two_files(a, b, files.a, files.b);
  if (!sides) return complain(kBadInput, sides.error().message);
  if (const Status good = only_work(by, files.a); !good) return complain(kBadInput, good.error().message);
  return show_sums(*sides, by, options, fail_above);
}

}  // namespace tacho::cli
