// Words for a MemoryReport (answers.h).
#include "analysis/memory/answers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/memory/faults.h"
#include "base/format.h"
#include "base/saturating.h"
#include "report/text.h"

namespace tacho::analysis {

namespace {

using event::kUnknown;
using report::Answer;
using report::Cell;
using report::Unit;

std::string bytes(int64_t count) {
  return report::format_bytes(static_cast<double>(count));
}
std::string times(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}
double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}
Cell known(const std::optional<int64_t>& value) {
  return value ? Cell(*value) : Cell();
}
Cell text(const std::string& value) {
  return value.empty() ? Cell() : Cell(value);
}
int64_t live(const MemoryOwner& owner, size_t moment) {
  return moment < owner.live.size() ? owner.live[moment].bytes : 0;
}
int64_t count(const MemoryOwner& owner, size_t moment) {
  return moment < owner.live.size() ? owner.live[moment].count : 0;
}

void name_columns(Answer& answer, MemoryBy by) {
  if (tells_apart(by, MemoryBy::kUse))
    answer.columns.push_back({.name = "Category", .title = "Category", .whole = true});
  if (tells_apart(by, MemoryBy::kLine))
    answer.columns.push_back({.name = "Line", .title = "Line", .cut = report::Cut::kPath});
  if (tells_apart(by, MemoryBy::kModule))
    answer.columns.push_back(
        {.name = "Module", .title = "Module", .leave_out = by == MemoryBy::kModule ? 0 : 2, .cut = report::Cut::kPath});
  if (tells_apart(by, MemoryBy::kOperator)) answer.columns.push_back({.name = "Operator", .title = "Operator"});
}
void name_cells(std::vector<Cell>& cells, const MemoryOwner& owner, MemoryBy by) {
  if (tells_apart(by, MemoryBy::kUse)) cells.push_back(text(std::string(to_string(owner.use))));
  if (tells_apart(by, MemoryBy::kLine)) cells.push_back(text(owner.line));
  if (tells_apart(by, MemoryBy::kModule)) cells.push_back(text(owner.module));
  if (tells_apart(by, MemoryBy::kOperator)) cells.push_back(text(owner.operation));
}

const char* const kBefore = "(before the recording)";

// The names of a row for what no owner has.
void before_cells(std::vector<Cell>& cells, MemoryBy by) {
  if (by == MemoryBy::kOwner || by == MemoryBy::kOwnerOfModules) cells.emplace_back();
  cells.emplace_back(std::string(kBefore));
}

// All that an owner is told apart by.
std::string whole_name(const MemoryOwner& owner, MemoryBy by) {
  std::vector<Cell> cells;
  name_cells(cells, owner, by);
  std::string name;
  for (const Cell& cell : cells)
    if (const auto* const part = std::get_if<std::string>(&cell)) name += (name.empty() ? "" : ", ") + *part;
  return name.empty() ? "(unknown)" : name;
}

// When bucket `i` of a place's curve begins.
int64_t bucket_begin(const MemoryPlace& place, size_t i, int64_t from, int64_t to) {
  const double share = static_cast<double>(i) / static_cast<double>(place.curve.size());
  return from + static_cast<int64_t>(static_cast<double>(to - from) * share);
}

std::string at_time(int64_t time, int64_t zero) {
  return report::format_duration(static_cast<double>(time - zero));
}

}  // namespace

Answer memory_places(const MemoryReport& report, int64_t zero) {
  Answer answer{.columns = {{.name = "Memory", .title = "Memory"},
                            {.name = "PeakBytes", .title = "Peak", .unit = Unit::kBytes},
                            {.name = "PeakNs", .title = "At", .unit = Unit::kNs},
                            {.name = "EndBytes", .title = "End", .unit = Unit::kBytes},
                            {.name = "BeforeBytes", .unit = Unit::kBytes},
                            {.name = "ReservedAtPeakBytes", .title = "Reserved", .unit = Unit::kBytes, .leave_out = 2},
                            {.name = "ReservedMostBytes", .unit = Unit::kBytes},
                            {.name = "ReservedEndBytes", .unit = Unit::kBytes},
                            {.name = "Allocations", .title = "Allocations", .unit = Unit::kCount, .leave_out = 1},
                            {.name = "Frees", .unit = Unit::kCount},
                            {.name = "OutOfMemory", .unit = Unit::kCount},
                            {.name = "FreesOfEarlierMemory", .unit = Unit::kCount},
                            {.name = "FreesWithoutSize", .unit = Unit::kCount},
                            {.name = "AddressesUsedAgain", .unit = Unit::kCount},
                            {.name = "AllocationsWithoutSize", .unit = Unit::kCount},
                            {.name = "Gaps", .unit = Unit::kCount}},
                .when_empty = "no allocations",
                .id = "places",
                .title = "Memory"};
  for (const MemoryPlace& place : report.places)
    answer.rows.push_back({place.name, place.peak, place.peak_time - zero, place.end, place.before,
                           known(place.reserved_at_peak), known(place.reserved_most), known(place.reserved_end),
                           place.allocations, place.frees, place.failures, place.before_frees, place.unsized_frees,
                           place.reused, place.unsized, place.gaps});
  return answer;
}

Answer memory_holders(const MemoryPlace& place, MemoryBy by, size_t moments) {
  Answer answer;
  answer.id = "holders";
  answer.title = "Who held the memory of " + place.name;
  answer.when_empty = "nothing was live";
  const std::vector<MemoryOwner> owners = memory_owners(place, by);
  if (moments == 0) {
    answer.columns = {{.name = "Bytes", .title = "Bytes", .unit = Unit::kBytes},
                      {.name = "Percent", .title = "%", .unit = Unit::kPercent},
                      {.name = "Count", .title = "Count", .unit = Unit::kCount, .leave_out = 1}};
    name_columns(answer, by);
    int64_t rest = place.peak;
    for (const MemoryOwner& owner : owners) {
      if (live(owner, 0) == 0) continue;
      rest -= live(owner, 0);
      auto& cells = answer.rows.emplace_back();
      cells = {live(owner, 0), percent(live(owner, 0), place.peak), count(owner, 0)};
      name_cells(cells, owner, by);
    }
    if (rest > 0) {
      std::vector<Cell> cells = {rest, percent(rest, place.peak), Cell()};
      before_cells(cells, by);
      const auto at = std::find_if(answer.rows.begin(), answer.rows.end(),
                                   [&](const auto& row) { return std::get<int64_t>(row[0]) < rest; });
      answer.rows.insert(at, std::move(cells));
    }
    return answer;
  }
  for (size_t i = 0; i < moments; ++i)
    answer.columns.push_back({.name = fmt::format("Moment{}Bytes", i + 1),
                              .title = moments == 1 ? "Bytes" : fmt::format("Moment {}", i + 1),
                              .unit = Unit::kBytes});
  if (moments > 1) answer.columns.push_back({.name = "ChangeBytes", .title = "Change", .unit = Unit::kBytes});
  name_columns(answer, by);
  std::vector<std::pair<int64_t, std::vector<Cell>>> rows;
  for (const MemoryOwner& owner : owners) {
    std::vector<Cell> cells;
    int64_t most = 0;
    for (size_t i = 0; i < moments; ++i) {
      cells.emplace_back(live(owner, 2 + i));
      most = std::max(most, live(owner, 2 + i));
    }
    if (most == 0) continue;
    const int64_t change = live(owner, 1 + moments) - live(owner, 2);
    if (moments > 1) cells.emplace_back(change);
    name_cells(cells, owner, by);
    rows.emplace_back(moments > 1 ? std::abs(change) : most, std::move(cells));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [order, cells] : rows) answer.rows.push_back(std::move(cells));
  if (place.before > 0)
    answer.notes.push_back(fmt::format(
        "{} were allocated before the recording; who holds what of them later is not known, so they are left out here.",
        bytes(place.before)));
  return answer;
}

Answer memory_unfreed(const MemoryPlace& place, MemoryBy by) {
  Answer answer;
  answer.id = "unfreed";
  answer.title = "Allocated and never freed";
  answer.when_empty = "everything was freed";
  answer.columns = {{.name = "Bytes", .title = "Bytes", .unit = Unit::kBytes},
                    {.name = "Count", .title = "Count", .unit = Unit::kCount},
                    {.name = "Steps", .title = "Parts", .unit = Unit::kCount, .leave_out = 1}};
  name_columns(answer, by);
  std::vector<MemoryOwner> owners = memory_owners(place, by);
  std::stable_sort(owners.begin(), owners.end(),
                   [](const MemoryOwner& a, const MemoryOwner& b) { return live(a, 1) > live(b, 1); });
  for (const MemoryOwner& owner : owners) {
    if (count(owner, 1) == 0) continue;
    auto& cells = answer.rows.emplace_back();
    cells = {live(owner, 1), count(owner, 1), owner.steps};
    name_cells(cells, owner, by);
  }
  return answer;
}

Answer memory_lifetimes(const MemoryPlace& place) {
  Answer answer{.columns = {{.name = "Lifetime", .title = "Lived", .whole = true},
                            {.name = "Count", .title = "Allocations", .unit = Unit::kCount},
                            {.name = "Bytes", .title = "Bytes in all", .unit = Unit::kBytes}},
                .id = "lifetimes",
                .title = "How long memory lived"};
  static constexpr std::string_view kWords[] = {"under 100 us", "under 1 ms",   "under 10 ms", "under 100 ms",
                                                "under 1 s",    "1 s and more", "never freed"};
  for (size_t i = 0; i < place.lifetimes.size(); ++i)
    if (place.lifetimes[i].count > 0)
      answer.rows.push_back({std::string(kWords[i]), place.lifetimes[i].count, place.lifetimes[i].bytes});
  return answer;
}

Answer memory_curve(const MemoryPlace& place, int64_t from, int64_t to, int64_t zero) {
  Answer answer{.columns = {{.name = "StartNs", .title = "From", .unit = Unit::kNs},
                            {.name = "LiveBytes", .title = "Live", .unit = Unit::kBytes},
                            {.name = "ReservedBytes", .title = "Reserved", .unit = Unit::kBytes}},
                .id = "curve",
                .title = "Memory of " + place.name + " over time"};
  for (size_t i = 0; i < place.curve.size(); ++i) {
    const MemoryPlace::Bucket& each = place.curve[i];
    answer.rows.push_back(
        {bucket_begin(place, i, from, to) - zero, each.live, each.reserved == kUnknown ? Cell() : Cell(each.reserved)});
  }
  return answer;
}

std::vector<MemoryArea> memory_areas(const MemoryPlace& place, MemoryBy by, size_t most) {
  std::vector<std::pair<int64_t, MemoryOwner>> owners;
  for (MemoryOwner& owner : memory_owners(place, by))
    if (!owner.curve.empty()) {
      double sum = 0;
      for (const int64_t value : owner.curve) sum += static_cast<double>(value);
      const auto mean = static_cast<int64_t>(sum / static_cast<double>(owner.curve.size()));
      if (sum > 0) owners.emplace_back(std::max(live(owner, 0), mean), std::move(owner));
    }
  std::stable_sort(owners.begin(), owners.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<MemoryArea> areas;
  MemoryArea others{.name = "(others)", .names = {}, .live = std::vector<int64_t>(place.curve.size())};
  MemoryArea before{.name = kBefore, .names = {}, .live = {}};
  for (const MemoryPlace::Bucket& bucket : place.curve) before.live.push_back(bucket.live);
  for (size_t n = 0; n < owners.size(); ++n) {
    MemoryOwner& owner = owners[n].second;
    for (size_t i = 0; i < before.live.size(); ++i) {
      add_saturating(before.live[i], -owner.curve[i]);
      if (n >= most) add_saturating(others.live[i], owner.curve[i]);
    }
    if (n >= most) continue;
    MemoryArea& area = areas.emplace_back();
    area.name = whole_name(owner, by);
    name_cells(area.names, owner, by);
    area.live = std::move(owner.curve);
  }
  // Where the allocator's own sum is below what the events add up to, memory_doubts() says so.
  for (int64_t& value : before.live) value = std::max<int64_t>(value, 0);
  for (MemoryArea* const area : {&others, &before})
    if (std::any_of(area->live.begin(), area->live.end(), [](int64_t value) { return value > 0; }))
      areas.push_back(std::move(*area));
  return areas;
}

Answer memory_owner_curves(const MemoryPlace& place, MemoryBy by, size_t most, int64_t from, int64_t to, int64_t zero) {
  Answer answer{.columns = {{.name = "StartNs", .title = "From", .unit = Unit::kNs}},
                .id = "owner_curves",
                .title = "Memory of " + place.name + " over time, by owner"};
  const std::vector<MemoryArea> areas = memory_areas(place, by, most);
  for (const MemoryArea& area : areas)
    answer.columns.push_back({.name = area.name, .title = area.name, .unit = Unit::kBytes});
  for (size_t i = 0; i < place.curve.size(); ++i) {
    auto& cells = answer.rows.emplace_back();
    cells.emplace_back(bucket_begin(place, i, from, to) - zero);
    for (const MemoryArea& area : areas) cells.emplace_back(area.live[i]);
  }
  return answer;
}

Answer memory_difference(const MemoryPlace& one, const MemoryPlace& other, MemoryBy by) {
  Answer answer;
  answer.id = "difference";
  answer.title = fmt::format("Peak of {}: first and second run", one.name);
  answer.when_empty = "nothing was live";
  answer.columns = {{.name = "FirstBytes", .title = "First", .unit = Unit::kBytes},
                    {.name = "SecondBytes", .title = "Second", .unit = Unit::kBytes},
                    {.name = "ChangeBytes", .title = "Change", .unit = Unit::kBytes}};
  name_columns(answer, by);
  using Key = std::tuple<std::string, std::string, std::string, MemoryUse>;
  std::map<Key, std::pair<int64_t, int64_t>> rows;
  std::map<Key, MemoryOwner> owners;
  int64_t rest_one = one.peak, rest_other = other.peak;
  const auto put = [&](const MemoryPlace& place, bool first, int64_t& rest) {
    for (MemoryOwner& owner : memory_owners(place, by)) {
      const int64_t held = live(owner, 0);
      if (held == 0) continue;
      rest -= held;
      const Key key(owner.line, owner.module, owner.operation, owner.use);
      (first ? rows[key].first : rows[key].second) += held;
      owners.try_emplace(key, std::move(owner));
    }
  };
  put(one, true, rest_one);
  put(other, false, rest_other);
  std::vector<std::pair<int64_t, std::vector<Cell>>> sorted;
  for (const auto& [key, held] : rows) {
    std::vector<Cell> cells = {held.first, held.second, held.second - held.first};
    name_cells(cells, owners.at(key), by);
    sorted.emplace_back(std::abs(held.second - held.first), std::move(cells));
  }
  if (rest_one > 0 || rest_other > 0) {
    std::vector<Cell> cells = {rest_one, rest_other, rest_other - rest_one};
    before_cells(cells, by);
    sorted.emplace_back(std::abs(rest_other - rest_one), std::move(cells));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [order, cells] : sorted) answer.rows.push_back(std::move(cells));
  return answer;
}

std::string memory_sparkline(const MemoryPlace& place) {
  static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  if (place.peak <= 0) return line;
  for (const MemoryPlace::Bucket& each : place.curve) {
    const double share = std::clamp(static_cast<double>(each.live) / static_cast<double>(place.peak), 0.0, 1.0);
    line += kBlocks[each.live <= 0 ? 0 : std::clamp<int64_t>(std::llround(share * 8), 1, 8)];
  }
  return line;
}

std::vector<std::string> memory_sentences(const MemoryPlace& place, int64_t zero) {
  std::vector<std::string> out;
  std::string first =
      fmt::format("Peak {} at {}, {} at the end", bytes(place.peak), at_time(place.peak_time, zero), bytes(place.end));
  if (place.before > 0) first += fmt::format("; {} were there before the recording", bytes(place.before));
  out.push_back(first + ".");
  if (place.reserved_at_peak && place.reserved_most) {
    const int64_t free = *place.reserved_at_peak - place.peak;
    std::string reserve = fmt::format("Reserved: {} at the peak", bytes(*place.reserved_at_peak));
    if (free >= 0)
      reserve += fmt::format(", {} of it free ({} %)", bytes(free),
                             report::format_fixed(percent(free, *place.reserved_at_peak), 1));
    out.push_back(reserve + fmt::format("; {} at most.", bytes(*place.reserved_most)));
  }
  return out;
}

std::vector<std::string> memory_findings(const MemoryPlace& place, const MemoryReport& report) {
  std::vector<std::string> out;
  if (place.failures > 0) out.push_back(fmt::format("Memory ran out {}.", times(place.failures, "time", "times")));
  if (place.peak < kMemoryWorthwhile) return out;
  const MemoryFaults faults = memory_faults(place, report);
  // One temporary that the peak would be lower without. What comes next to the peak in time is lower by at most that.
  if (faults.temporary && faults.temporary->bytes >= place.peak / 10)
    out.push_back(fmt::format("Temporary memory of {} makes {} of the peak ({} %): without it the peak would be lower "
                              "by that much at most.",
                              faults.temporary->owner, bytes(faults.temporary->bytes),
                              report::format_fixed(percent(faults.temporary->bytes, place.peak), 1)));
  for (const MemoryFaults::Held& each : faults.growing)
    out.push_back(fmt::format("Memory grows: {} allocated in {} of {} what was never freed, {} in all.", each.owner,
                              each.steps,
                              faults.by_steps ? fmt::format("{} steps", faults.parts)
                                              : fmt::format("{} equal parts of the recording", faults.parts),
                              bytes(each.bytes)));
  if (percent(faults.idle, faults.reserved) >= 25)
    out.push_back(fmt::format("Fragmentation: the allocator reserved up to {}, {} % more than was ever live together. "
                              "The allocator's setting expandable_segments:True often reduces it.",
                              bytes(faults.reserved), report::format_fixed(percent(faults.idle, place.peak), 1)));
  if (faults.activations >= place.peak / 2)
    out.push_back(fmt::format("Activations are {} of the peak ({} %): checkpointing half of them would free up to {}, "
                              "and costs up to half of another forward pass.",
                              bytes(faults.activations),
                              report::format_fixed(percent(faults.activations, place.peak), 1),
                              bytes(faults.activations / 2)));
  return out;
}

std::vector<std::string> memory_doubts(const MemoryPlace& place, const MemoryReport& report) {
  std::vector<std::string> out;
  if (report.lost > 0)
    out.push_back(
        fmt::format("The recording lost {} (tacho info says why): what is live is what the others tell, what was "
                    "never freed may have been, and nothing is said of memory that grows.",
                    times(report.lost, "allocation or free", "allocations and frees")));
  if (place.before_frees > 0)
    out.push_back(fmt::format(
        "{} of memory that was allocated before the recording{}.", times(place.before_frees, "free", "frees"),
        place.unsized_frees > 0 ? fmt::format(", {} of them without a size: they change no sum", place.unsized_frees)
                                : std::string()));
  if (place.reused > 0)
    out.push_back(fmt::format("{} allocated again without a free between: the older memory counts as freed by then.",
                              times(place.reused, "address was", "addresses were")));
  if (place.unsized > 0)
    out.push_back(
        fmt::format("{} without a size: they change no sum.", times(place.unsized, "allocation", "allocations")));
  if (place.gaps > 0)
    out.push_back(fmt::format("{} the allocator's own sum was another than these events add up to: some are missing or "
                              "out of order. The allocator's sum counts.",
                              times(place.gaps, "time", "times")));
  return out;
}

}  // namespace tacho::analysis
