// Keeps and asks the ranges of threads (host_ranges.h).
#include "analysis/time/host_ranges.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "analysis/stacks/own_code.h"
#include "base/format.h"
#include "base/saturating.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::analysis {

namespace {

namespace column = event::column;

std::string_view text_of(const trace::Trace& trace, RangeName name) {
  return name > 0   ? trace::text<column::Function::name>(trace, name)
         : name < 0 ? trace::text<column::Label::name>(trace, -name)
                    : std::string_view();
}

// Ranges around everything say nothing about what is done in them.
bool says_nothing(std::string_view name) {
  return name.empty() || name.starts_with("ProfilerStep") || name.starts_with("PyTorch Profiler");
}

// "path/train.py(31): step", as torch.profiler names Python's functions; nullopt for other names.
std::optional<StackFrame> frame_of(std::string_view name) {
  const size_t open = name.find(".py("), close = name.find("): ", open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  StackFrame frame;
  frame.part = StackPart::kPython;
  frame.file = name.substr(0, open + 3);
  frame.name = name.substr(close + 3);
  return frame;
}

// Without the folder of its file.
std::string short_place(std::string_view name) {
  const size_t open = name.find(".py("), slash = name.rfind('/', open);
  return std::string(open == std::string_view::npos || slash == std::string_view::npos ? name : name.substr(slash + 1));
}

// "CUDACachingAllocator#17" and "#18" are one thing.
std::string without_count(std::string_view name) {
  const size_t hash = name.rfind('#');
  if (hash == std::string_view::npos || hash == 0 || hash + 1 == name.size()) return std::string(name);
  const bool number = std::all_of(name.begin() + static_cast<ptrdiff_t>(hash) + 1, name.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  return std::string(number ? name.substr(0, hash) : name);
}

std::string percent(int64_t part, int64_t whole) {
  return report::format_fixed(100 * static_cast<double>(part) / static_cast<double>(whole), 0) + " %";
}

}  // namespace

void HostRanges::add(int64_t start, int64_t end, RangeName name) {
  if (end - start < kShortest) return;
  if (ranges_.size() >= kMost) forget();
  // Of those that begin together the longest is the outer one, whichever table had it first.
  auto at = ranges_.end();
  while (at != ranges_.begin() && std::prev(at)->start == start && std::prev(at)->end < end) --at;
  ranges_.insert(at, {start, end, name});
}

void HostRanges::forget() {
  const int64_t now = ranges_.back().start;
  const auto newest = ranges_.end() - static_cast<ptrdiff_t>(kMost / 2);
  std::vector<Range> open;
  std::copy_if(ranges_.begin(), newest, std::back_inserter(open), [&](const Range& each) { return each.end > now; });
  // The inner ones of very many.
  const size_t kept = std::min(open.size(), kMost / 4);
  std::move(newest, ranges_.end(), std::copy(open.end() - static_cast<ptrdiff_t>(kept), open.end(), ranges_.begin()));
  ranges_.resize(kept + kMost / 2);
}

void HostRanges::self_times(int64_t from, int64_t to, std::map<RangeName, int64_t>& sums) const {
  std::vector<std::pair<int64_t, RangeName>> open;  // ends and names, the innermost last
  int64_t at = from;
  const auto until = [&](int64_t end) {
    end = std::min(end, to);
    if (end <= at) return;
    add_saturating(sums[open.empty() ? 0 : open.back().second], end - at);
    at = end;
  };
  for (const Range& each : ranges_) {
    if (each.end <= from || each.start >= to) continue;
    while (!open.empty() && open.back().first <= each.start) {
      until(open.back().first);
      open.pop_back();
    }
    until(each.start);
    // Where clocks make ranges overlap, the inner one ends with the outer one.
    open.emplace_back(open.empty() ? each.end : std::min(each.end, open.back().first), each.name);
  }
  for (; !open.empty(); open.pop_back()) until(open.back().first);
  until(to);
}

std::vector<RangeName> HostRanges::around(int64_t at) const {
  constexpr size_t kFar = 512, kDeep = 64;
  std::vector<RangeName> out;
  size_t looked = 0;
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), at,
                                      [](int64_t time, const Range& each) { return time < each.start; });
  for (auto each = std::make_reverse_iterator(after); each != ranges_.rend() && ++looked <= kFar; ++each)
    if (each->end > at) {
      out.push_back(each->name);
      if (out.size() == kDeep) break;
    }
  return out;
}

PlaceSums::Kind PlaceSums::kind_of(const trace::Trace& trace, RangeName name) {
  const auto [at, fresh] = kinds_.try_emplace(name, Kind::kOther);
  if (!fresh) return at->second;
  const std::string_view text = text_of(trace, name);
  if (says_nothing(text))
    at->second = Kind::kNothing;
  else if (text.starts_with("aten::"))
    at->second = Kind::kOperator;
  else if (const auto frame = frame_of(text); frame && own_frame(*frame))
    at->second = Kind::kOwnFunction;
  return at->second;
}

void PlaceSums::add(const trace::Trace& trace, const std::vector<RangeName>& around, int64_t ns) {
  add_saturating(all_, ns);
  // The operator that the program called, not the ones that it is made of.
  RangeName called = 0, place = 0;
  bool framework = false;
  for (const RangeName name : around) {
    const Kind kind = kind_of(trace, name);
    if (kind == Kind::kNothing) continue;
    const bool is_operator = kind == Kind::kOperator;
    if (called == 0 || (framework && is_operator)) called = name;
    framework = is_operator && (framework || called == name);
    if (place == 0 && kind == Kind::kOwnFunction) place = name;
  }
  if (called == 0) return;
  const auto known = sums_.find({called, place});
  if (known != sums_.end())
    add_saturating(known->second, ns);
  else if (sums_.size() < kMost)
    sums_.emplace(std::pair(called, place), ns);
}

std::string PlaceSums::most(const trace::Trace& trace) const {
  std::map<std::pair<std::string, std::string>, int64_t> by_text;
  for (const auto& [names, ns] : sums_)
    add_saturating(
        by_text[{short_place(without_count(text_of(trace, names.first))), short_place(text_of(trace, names.second))}],
        ns);
  const auto most = std::max_element(by_text.begin(), by_text.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == by_text.end() || most->second <= all_ / 2) return {};
  const auto& [called, place] = most->first;
  return place.empty() || place == called ? called : fmt::format("{}, called in {}", called, place);
}

std::string most_of(const trace::Trace& trace, const std::map<RangeName, int64_t>& sums) {
  std::map<std::string, int64_t> by_text;
  int64_t all = 0;
  for (const auto& [name, ns] : sums) {
    add_saturating(all, ns);
    if (const std::string_view text = text_of(trace, name); !says_nothing(text))
      add_saturating(by_text[without_count(text)], ns);
  }
  const auto most = std::max_element(by_text.begin(), by_text.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == by_text.end() || most->second <= all / 3) return {};
  return fmt::format("{} of the time in {}", percent(most->second, all), short_place(most->first));
}

}  // namespace tacho::analysis
