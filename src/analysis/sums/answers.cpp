// Tables and sentences about sums (sums.h).
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/sums/sums.h"
#include "base/format.h"
#include "event/gpu_quantity.h"
#include "report/shorten.h"
#include "report/text.h"

namespace tacho::analysis {
namespace {

using report::Cell, report::Unit;

constexpr double kSmallestChange = 0.001;  // of an average, that is worth a sentence
constexpr uint64_t kFewest = 8;            // timed operations, for a statement about their average

bool one_of(std::span<const std::string_view> kinds, const SumRow& row) {
  return std::find(kinds.begin(), kinds.end(), row.kind) != kinds.end();
}
Cell cell(const std::optional<double>& value) {
  return value ? Cell(*value) : Cell();
}
Cell cell(uint64_t value) {
  return static_cast<int64_t>(value);
}

// A row on both sides; one may lack it.
struct SumChange {
  const SumRow *before = nullptr, *after = nullptr;
  double share_before = 0, share_after = 0;  // time in a second of the run

  double difference() const { return share_after - share_before; }
  std::string_view name() const { return (before != nullptr ? before : after)->name; }
  // Of the average, and half its 95 % interval.
  struct Relative {
    double change, interval;
  };
  std::optional<Relative> relative() const {
    if (before == nullptr || after == nullptr) return std::nullopt;
    const auto a = before->average_ns(), b = after->average_ns();
    if (!a || !b || *a <= 0) return std::nullopt;
    const double error_a = *before->chance_ns() / static_cast<double>(before->count) / *a,
                 error_b = *after->chance_ns() / static_cast<double>(after->count) / *a;
    const double ratio = *b / *a;
    return Relative{ratio - 1, std::sqrt(error_b * error_b + ratio * ratio * error_a * error_a)};
  }
  // More than chance, also if it is the largest of `names` changes (Bonferroni).
  bool certain(size_t names) const {
    const auto found = relative();
    if (!found || before->timed < kFewest || after->timed < kFewest) return false;
    constexpr double kStep = 0.45;  // of the normal quantile for each factor of ten, from 1.96 on: on the safe side
    const double factor = 1 + kStep * std::log10(static_cast<double>(std::max<size_t>(names, 1)));
    return std::abs(found->change) > found->interval * factor;
  }
};

std::vector<SumChange> changes_of(const SumTotals& before, const SumTotals& after,
                                  std::span<const std::string_view> kinds) {
  std::map<std::pair<std::string_view, std::string_view>, SumChange> found;
  for (const SumRow& row : before.rows)
    if (one_of(kinds, row)) found[{row.kind, row.name}].before = &row;
  for (const SumRow& row : after.rows)
    if (one_of(kinds, row)) found[{row.kind, row.name}].after = &row;
  std::vector<SumChange> changes;
  for (auto& [name, change] : found) {
    const auto share = [](const SumRow* row, const SumTotals& of) {
      return row != nullptr && of.seconds > 0 ? row->total_ns().value_or(0) * 1e-9 / of.seconds : 0;
    };
    change.share_before = share(change.before, before);
    change.share_after = share(change.after, after);
    changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const SumChange& a, const SumChange& b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  });
  return changes;
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", share * 100);
}

void say_gpus(const SumTotals& before, const SumTotals& after, std::vector<std::string>& sentences) {
  constexpr double kSmallest = 0.01;
  constexpr std::string_view kQuantities[] = {"Core Clock", "Memory Clock", "Current Power", "Temperature"};
  std::map<std::string, std::vector<std::string>> changes;
  for (const SumGauge& gauge : after.gauges) {
    const std::string_view quantity = event::gpu_quantity(gauge.name);
    if (std::find(std::begin(kQuantities), std::end(kQuantities), quantity) == std::end(kQuantities)) continue;
    const auto was = std::find_if(before.gauges.begin(), before.gauges.end(),
                                  [&](const SumGauge& one) { return one.name == gauge.name; });
    if (was == before.gauges.end() || was->mean == 0) continue;
    const size_t bracket = gauge.name.rfind('[');
    std::vector<std::string>& of = changes[gauge.name.substr(bracket + 1, gauge.name.size() - bracket - 2)];
    const double change = gauge.mean / was->mean - 1;
    if (std::abs(change) < kSmallest) continue;
    std::string word(quantity == "Current Power" ? "power" : quantity);
    word[0] = static_cast<char>(word[0] | 0x20);
    if (const size_t clock = word.find(" Clock"); clock != std::string::npos) word[clock + 1] = 'c';
    of.push_back(fmt::format("{} {:.0f} {} instead of {:.0f} ({})", word, gauge.mean, gauge.unit, was->mean,
                             signed_percent(change)));
  }
  for (const auto& [gpu, list] : changes) {
    std::string text;
    for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
    sentences.push_back(text.empty()
                            ? fmt::format("GPU {}: clocks, power and temperature are as before (within 1 %).", gpu)
                            : fmt::format("GPU {}: {}.", gpu, text));
  }
  if (changes.empty()) sentences.emplace_back("Nothing is known of the GPUs' clocks.");
}

}  // namespace

report::Answer sums_answer(const SumTotals& totals, std::span<const std::string_view> kinds) {
  report::Answer answer;
  answer.id = "sums";
  answer.columns = {{.name = "kind", .title = "Kind", .leave_out = 2},
                    {.name = "name", .title = "Name"},
                    {.name = "count", .title = "Count", .unit = Unit::kCount},
                    {.name = "bytes", .title = "Bytes", .unit = Unit::kBytes, .leave_out = 1, .dash_zero = true},
                    {.name = "total_ns", .title = "Time", .unit = Unit::kNs},
                    {.name = "interval", .title = "± %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "share", .title = "Share %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "average_ns", .title = "Average", .unit = Unit::kNs},
                    {.name = "timed", .title = "Timed", .unit = Unit::kCount, .leave_out = 3},
                    {.name = "without_time", .unit = Unit::kCount}};
  answer.shown = {0, 2, 3, 4, 5, 6, 7, 8, 1};  // whole names of C++ may be longer than all other columns
  answer.when_empty = "none";
  double all = 0;
  for (const SumRow& row : totals.rows)
    if (one_of(kinds, row)) all += row.total_ns().value_or(0);
  for (const SumRow& row : totals.rows) {
    if (!one_of(kinds, row)) continue;
    const auto total = row.total_ns(), interval = row.interval_ns();
    answer.rows.push_back({row.kind, row.name, cell(row.count), cell(row.bytes), cell(total),
                           total && *total > 0 ? Cell(*interval / *total) : Cell(),
                           total && all > 0 ? Cell(*total / all) : Cell(), cell(row.average_ns()), cell(row.timed),
                           cell(row.untold)});
  }
  return answer;
}

report::Answer change_answer(const SumTotals& before, const SumTotals& after, std::span<const std::string_view> kinds) {
  report::Answer answer;
  answer.id = "changes";
  answer.columns = {{.name = "share_change", .title = "Of the run %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "average_change", .title = "Average %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "interval", .title = "± %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "average_before_ns", .title = "Average A", .unit = Unit::kNs},
                    {.name = "average_after_ns", .title = "Average B", .unit = Unit::kNs},
                    {.name = "rate_before", .title = "/s A", .unit = Unit::kNumber, .leave_out = 1, .decimals = 1},
                    {.name = "rate_after", .title = "/s B", .unit = Unit::kNumber, .leave_out = 1, .decimals = 1},
                    {.name = "count_before", .unit = Unit::kCount},
                    {.name = "count_after", .unit = Unit::kCount},
                    {.name = "share_before", .unit = Unit::kShare},
                    {.name = "share_after", .unit = Unit::kShare},
                    {.name = "name", .title = "Name"}};
  answer.when_empty = "neither time has anything to compare";
  for (const SumChange& change : changes_of(before, after, kinds)) {
    const auto relative = change.relative();
    const auto average = [](const SumRow* row) { return row != nullptr ? cell(row->average_ns()) : Cell(); };
    const auto rate = [](const SumRow* row, const SumTotals& of) {
      return row != nullptr ? static_cast<double>(row->count) / of.seconds : 0.0;
    };
    answer.rows.push_back({change.difference(), relative ? Cell(relative->change) : Cell(),
                           relative ? Cell(relative->interval) : Cell(), average(change.before), average(change.after),
                           rate(change.before, before), rate(change.after, after),
                           cell(change.before != nullptr ? change.before->count : uint64_t{0}),
                           cell(change.after != nullptr ? change.after->count : uint64_t{0}), change.share_before,
                           change.share_after, std::string(change.name())});
  }
  return answer;
}

std::vector<std::string> change_sentences(const SumTotals& before, const SumTotals& after,
                                          std::span<const std::string_view> kinds, std::string_view since) {
  std::vector<std::string> sentences;
  const std::vector<SumChange> changes = changes_of(before, after, kinds);
  // The change that matters most: of the average times how much of the run it is.
  const SumChange* worst = nullptr;
  double most = 0;
  for (const SumChange& change : changes) {
    if (!change.certain(changes.size()) || std::abs(change.relative()->change) < kSmallestChange) continue;
    const double weight = std::abs(change.relative()->change) * change.share_before;
    if (worst != nullptr && weight <= most) continue;
    worst = &change;
    most = weight;
  }
  if (worst != nullptr) {
    constexpr size_t kName = 60;  // columns; the shape at its end stays
    const auto relative = *worst->relative();
    sentences.push_back(fmt::format("{} {} takes {:.1f} % {} (± {:.1f} %, 95 %): {} on average instead of {}.", since,
                                    report::shortened_middle(report::clean(worst->name()), kName),
                                    std::abs(relative.change) * 100, relative.change > 0 ? "longer" : "less time",
                                    relative.interval * 100, report::format_duration(*worst->after->average_ns()),
                                    report::format_duration(*worst->before->average_ns())));
    sentences.back()[0] = static_cast<char>(sentences.back()[0] & ~0x20);
  } else if (!changes.empty()) {
    sentences.emplace_back("No average differs by more than chance and 0.1 %.");
  }
  const auto rate = [&](const SumTotals& of) {
    double count = 0;
    for (const SumRow& row : of.rows)
      if (one_of(kinds, row)) count += static_cast<double>(row.count);
    return count / of.seconds;
  };
  if (const double was = rate(before), is = rate(after); was > 0 && std::abs(is / was - 1) >= 0.01)
    sentences.push_back(fmt::format("{} operations a second instead of {} ({}).", report::format_si(is, 1),
                                    report::format_si(was, 1), signed_percent(is / was - 1)));
  say_gpus(before, after, sentences);
  return sentences;
}

}  // namespace tacho::analysis
