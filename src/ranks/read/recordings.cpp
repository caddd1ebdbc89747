// Same recordings and common jobs (recordings.h).
#include "ranks/read/recordings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "format/source/names.h"

namespace tacho::ranks {
namespace {

bool has_work(const RankRun& run) {
  return run.operations > 0 || run.calls > 0;
}

bool equal_counts(const RankRun& a, const RankRun& b) {
  return a.operations == b.operations && a.kernels == b.kernels && a.arrivals == b.arrivals && a.calls == b.calls &&
         a.messages == b.messages;
}

// By how much a merge may change a length that it corrects by the drift of a clock.
constexpr double kDrift = 1e-3;

bool nearly(int64_t a, int64_t b) {
  return std::abs(static_cast<double>(a - b)) <= kDrift * static_cast<double>(std::max(a, b));
}

bool same_recording(const RankRun& a, const RankRun& b, bool corrected) {
  if (!has_work(a) || !equal_counts(a, b)) return false;
  if (a.rank != kUnknown && b.rank != kUnknown && a.rank != b.rank) return false;
  if (corrected) return a.rank == b.rank && nearly(a.total.span(), b.total.span()) && nearly(a.mpi, b.mpi);
  return a.total.span() == b.total.span() && a.total.busy == b.total.busy && a.total.compute == b.total.compute &&
         a.mpi == b.mpi;
}

// Whether both begin at one time of their clock. Ranks may be alike but for that.
bool one_moment(const RankRun& a, const RankRun& b) {
  constexpr int64_t kRounded = 1000;  // ns
  if (a.total.first == kUnknown || b.total.first == kUnknown || a.has_realtime != b.has_realtime) return true;
  const int64_t apart = (a.total.first + a.clock_shift) - (b.total.first + b.clock_shift);
  return apart <= kRounded && apart >= -kRounded;
}

std::string_view ending_of(std::string_view file) {
  file = format::without_packing(file);
  return file.substr(std::min(file.size(), file.rfind('.')));
}

// The traces among `kept` in which all runs of traces[one] lie; nothing if some run lies in none.
std::optional<std::set<size_t>> holders(std::span<const PassedTrace> traces, const std::vector<bool>& kept,
                                        size_t one) {
  const PassedTrace& trace = traces[one];
  std::set<size_t> found;
  for (const RankRun& run : trace.runs) {
    std::optional<size_t> holder;
    for (size_t other = 0; other < traces.size() && !holder; ++other) {
      if (other == one || !kept[other]) continue;
      const bool one_form = trace.recordings == 1 && traces[other].recordings == 1 &&
                            ending_of(trace.file) == ending_of(traces[other].file);
      const bool corrected = trace.recordings > 1 && traces[other].recordings < trace.recordings;
      const auto same = [&](const RankRun& each) {
        if (one_form && !one_moment(run, each)) return false;
        return same_recording(run, each, false) || (corrected && same_recording(run, each, true));
      };
      if (std::ranges::any_of(traces[other].runs, same)) holder = other;
    }
    if (!holder) return std::nullopt;
    found.insert(*holder);
  }
  return found;
}

// Whether a merge without rank numbers, which is one run, is what all the other kept traces are together.
std::optional<std::set<size_t>> parts(std::span<const PassedTrace> traces, const std::vector<bool>& kept, size_t one) {
  const PassedTrace& merged = traces[one];
  if (merged.runs.size() != 1 || merged.recordings < 2 || !has_work(merged.runs[0])) return std::nullopt;
  RankRun sum;
  std::set<size_t> found;
  for (size_t other = 0; other < traces.size(); ++other) {
    if (other == one || !kept[other]) continue;
    found.insert(other);
    for (const RankRun& run : traces[other].runs) {
      sum.operations += run.operations;
      sum.kernels += run.kernels;
      sum.arrivals += run.arrivals;
      sum.calls += run.calls;
      sum.messages += run.messages;
    }
  }
  if (found.size() != merged.recordings || !equal_counts(sum, merged.runs[0])) return std::nullopt;
  return found;
}

std::string list_of(std::span<const PassedTrace> traces, const std::set<size_t>& places) {
  constexpr size_t kNamed = 3;
  std::string list;
  size_t named = 0;
  for (const size_t place : places) {
    if (++named > kNamed) break;
    const bool last = named == places.size();
    list += fmt::format("{}{}", named == 1 ? "" : last ? " and " : ", ", traces[place].file);
  }
  if (places.size() > kNamed) list += fmt::format(" and {} more", places.size() - kNamed);
  return list;
}

// The time in which a trace's ranks worked, on CLOCK_REALTIME, or on the clock of its host where it knows no other.
struct Window {
  int64_t first = kUnknown, last = kUnknown;
  bool realtime = false;
};

Window window_of(const PassedTrace& trace) {
  Window window;
  for (const RankRun& run : trace.runs) {
    if (run.total.first == kUnknown) continue;
    const int64_t first = run.total.first + run.clock_shift, last = run.total.last + run.clock_shift;
    window.first = window.first == kUnknown ? first : std::min(window.first, first);
    window.last = window.last == kUnknown ? last : std::max(window.last, last);
    window.realtime = run.has_realtime;
  }
  return window;
}

bool overlap(const Window& a, const Window& b) {
  return a.first != kUnknown && b.first != kUnknown && a.realtime == b.realtime && a.first <= b.last &&
         b.first <= a.last;
}

// Clocks of hosts may differ by minutes; ranks of a job that are traced one after the other lie within its run.
bool ran_apart(const Window& a, const Window& b) {
  constexpr int64_t kHour = 3'600'000'000'000;
  if (a.first == kUnknown || b.first == kUnknown || !a.realtime || !b.realtime) return false;
  return std::max(a.first, b.first) - std::min(a.last, b.last) > kHour;
}

// Of ascending numbers.
bool share_any(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  auto left = a.begin(), right = b.begin();
  while (left != a.end() && right != b.end()) {
    if (*left == *right) return true;
    ++(*left < *right ? left : right);
  }
  return false;
}

// Whether both take part in a group of ranks that the program named. Where no group has a name, ranks of one job take
// part in about as many collectives, and all of them or none have a number. An identity that both have is one
// collective.
bool share_group(const RankRun& a, const RankRun& b, uint32_t unnamed) {
  if (share_any(a.identities, b.identities)) return true;
  const auto only_unnamed = [unnamed](const RankRun& run) {
    return run.communicators.size() == 1 && run.communicators[0] == unnamed;
  };
  if (only_unnamed(a) && only_unnamed(b))
    return (a.identities.empty() || b.identities.empty()) && (a.rank == kUnknown) == (b.rank == kUnknown) &&
           10 * std::min(a.arrivals, b.arrivals) >= 9 * std::max(a.arrivals, b.arrivals);
  return std::ranges::any_of(a.communicators, [&](uint32_t each) {
    return each != unnamed && std::ranges::find(b.communicators, each) != b.communicators.end();
  });
}

bool communicates(const PassedTrace& trace) {
  return std::ranges::any_of(trace.runs, [](const RankRun& run) { return run.arrivals > 0 || run.messages > 0; });
}

bool tied(const PassedTrace& a, const PassedTrace& b, uint32_t unnamed) {
  bool both_ranked = true, same_rank = false, shared = false, one_host = false;
  for (const RankRun& of_a : a.runs)
    for (const RankRun& of_b : b.runs) {
      if (of_a.world > 0 && of_b.world > 0 && of_a.world != of_b.world) return false;
      both_ranked = both_ranked && of_a.rank != kUnknown && of_b.rank != kUnknown;
      same_rank = same_rank || (of_a.rank != kUnknown && of_a.rank == of_b.rank);
      shared = shared || share_group(of_a, of_b, unnamed);
      one_host = one_host || (!of_a.host.empty() && of_a.host == of_b.host);
    }
  const Window window_a = window_of(a), window_b = window_of(b);
  if (one_host && overlap(window_a, window_b)) return true;
  const bool one_world = both_ranked && a.runs[0].world > 1 && a.runs[0].world == b.runs[0].world;
  if (ran_apart(window_a, window_b) && !(one_world && !same_rank)) return false;
  if (communicates(a) && communicates(b)) return both_ranked || shared;
  return both_ranked && !same_rank;
}

}  // namespace

std::vector<size_t> without_repeated(std::span<const PassedTrace> traces, std::vector<std::string>& remarks) {
  std::vector<size_t> order(traces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return traces[a].recordings != traces[b].recordings ? traces[a].recordings > traces[b].recordings : a > b;
  });
  std::vector<bool> kept(traces.size(), true);
  for (const size_t one : order) {
    auto found = holders(traces, kept, one);
    if (!found) found = parts(traces, kept, one);
    if (!found || found->empty()) continue;
    kept[one] = false;
    remarks.push_back(fmt::format("left out: {}: {} the same recording{}", traces[one].file,
                                  list_of(traces, *found) + (found->size() == 1 ? " holds" : " hold"),
                                  found->size() == 1 ? "" : "s"));
  }
  std::vector<size_t> left;
  for (size_t i = 0; i < traces.size(); ++i)
    if (kept[i]) left.push_back(i);
  return left;
}

std::vector<std::vector<size_t>> jobs_of(std::span<const PassedTrace> traces, const Names& names) {
  const uint32_t unnamed = names.unnamed_communicator();
  std::vector<size_t> first(traces.size());  // of the same job; the root of a tree
  std::iota(first.begin(), first.end(), size_t{0});
  const auto root = [&](size_t at) {
    while (first[at] != at) at = first[at] = first[first[at]];
    return at;
  };
  for (size_t a = 0; a < traces.size(); ++a)
    for (size_t b = a + 1; b < traces.size(); ++b) {
      const size_t x = root(a), y = root(b);
      if (x != y && tied(traces[a], traces[b], unnamed)) first[std::max(x, y)] = std::min(x, y);
    }
  std::vector<std::vector<size_t>> jobs;
  std::vector<size_t> number(traces.size(), SIZE_MAX);
  for (size_t i = 0; i < traces.size(); ++i) {
    const size_t of = root(i);
    if (number[of] == SIZE_MAX) {
      number[of] = jobs.size();
      jobs.emplace_back();
    }
    jobs[number[of]].push_back(i);
  }
  return jobs;
}

}  // namespace tacho::ranks
