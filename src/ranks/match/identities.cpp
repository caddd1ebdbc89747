// Collectives by identity (identities.h).
#include "ranks/match/identities.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ranks/match/matching.h"

namespace tacho::ranks {
namespace {

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// Operations that torch coalesces share their identity: they meet in their order.
class Keys {
 public:
  uint64_t of(const Arrival& arrival) {
    const uint64_t own = arrival.identity ^ mixed(arrival.communicator);
    return own + mixed(seen_[own]++);
  }

 private:
  std::unordered_map<uint64_t, uint32_t> seen_;
};

struct Found {                // one collective
  uint32_t communicator = 0;  // as the files name it, then its final one
  uint32_t count = 0;         // runs that have it
  int32_t size = -1;          // of its group, as stated
  uint64_t members = 0;       // the sum of mixed(run + 1): equal for equal sets of runs
  int64_t start = 0;          // its earliest
  uint32_t sequence = 0;
  uint64_t group() const { return members ^ mixed(static_cast<uint64_t>(static_cast<uint32_t>(size)) << 8 | 1); }
};

struct Group {  // all collectives with the same runs, of groups of one size
  std::vector<uint32_t> runs;
  uint32_t communicator = 0;  // final
  int32_t size = -1;
  bool is_whole() const { return size > 0 ? runs.size() == static_cast<size_t>(size) : runs.size() > 1; }
};

class Identified {
 public:
  Identified(std::span<RankRun* const> runs, Spools& spools, Names& names)
      : runs_(runs), spools_(spools), names_(names), unnamed_(names.unnamed_communicator()) {}

  Status match() {
    choose();
    if (chosen_.empty()) return {};
    TACHO_TRY(find());
    form_groups();
    number();
    for (RankRun* const run : runs_) TACHO_TRY(rewrite(*run));
    return {};
  }

 private:
  // The communicators to match by identity.
  void choose() {
    std::vector<RankRun> headers;  // what numbered_on_all() asks of them
    std::map<uint32_t, size_t> identified;
    std::map<uint32_t, size_t> present;
    for (const RankRun* const run : runs_) {
      RankRun& header = headers.emplace_back();
      header.communicators = run->communicators;
      header.numbered = run->numbered;
      for (const uint32_t each : run->communicators) ++present[each];
      for (const uint32_t each : run->identified) ++identified[each];
      if (!run->identities.empty() && std::ranges::binary_search(run->communicators, unnamed_))
        chosen_.insert(unnamed_);
    }
    const std::map<uint32_t, int64_t> numbered = numbered_on_all(headers);
    for (const auto& [communicator, runs] : present)
      if (communicator != unnamed_ && runs > 1 && identified[communicator] == runs && !numbered.contains(communicator))
        chosen_.insert(communicator);
  }

  bool takes_part(const Arrival& arrival) const {
    return arrival.identity != 0 && !arrival.by_host && chosen_.contains(arrival.communicator);
  }

  Result<std::vector<Arrival>> arrivals_of(const RankRun& run) const {
    std::vector<Arrival> arrivals(run.arrivals);
    TACHO_TRY(spools_.arrivals.read(run.spool_at, run.arrivals, arrivals.data()));
    return arrivals;
  }

  Status find() {
    for (size_t run = 0; run < runs_.size(); ++run) {
      TACHO_ASSIGN(const std::vector<Arrival> arrivals, arrivals_of(*runs_[run]));
      Keys keys;
      for (const Arrival& arrival : arrivals) {
        if (!takes_part(arrival)) continue;
        Found& found = found_[keys.of(arrival)];
        const int64_t start = arrival.start + runs_[run]->clock_shift;
        found.start = found.count == 0 ? start : std::min(found.start, start);
        found.communicator = arrival.communicator;
        found.size = std::max(found.size, arrival.group_size);
        found.members += mixed(run + 1);
        ++found.count;
      }
    }
    return {};
  }

  // Of the collectives without a named group: those with the same runs are of one group.
  void form_groups() {
    if (!chosen_.contains(unnamed_)) return;
    for (const auto& [key, found] : found_)
      if (found.communicator == unnamed_) {
        groups_[found.group()].size = found.size;
        sample_.try_emplace(found.group(), key);
      }
    list_runs();
    for (auto& [number, group] : groups_)
      if (group.is_whole()) make(group);
    // The larger ones first, so that smaller ones may belong to them.
    std::vector<Group*> rest;
    for (auto& [number, group] : groups_)
      if (!group.is_whole()) rest.push_back(&group);
    std::ranges::sort(rest, [](const Group* a, const Group* b) {
      return a->runs.size() != b->runs.size() ? a->runs.size() > b->runs.size() : a->runs < b->runs;
    });
    for (Group* const group : rest) {
      const auto holders = holders_of(*group);
      if (holders.empty())
        make(*group);
      else if (holders.size() == 1)
        group->communicator = *holders.begin();
      else
        group->communicator = stray();
    }
  }

  // The communicator of collectives of which nothing tells the group. All runs are said to take part in it, so that
  // each of its collectives lacks some.
  uint32_t stray() {
    if (!stray_) stray_ = names_.new_communicator({});
    return *stray_;
  }

  // Which runs have one collective of each group.
  void list_runs() {
    std::unordered_map<uint64_t, Group*> wanted;
    for (const auto& [group, key] : sample_) wanted.emplace(key, &groups_[group]);
    for (size_t run = 0; run < runs_.size(); ++run) {
      Keys keys;
      const auto arrivals = arrivals_of(*runs_[run]);
      if (!arrivals) continue;  // find() has read them
      for (const Arrival& arrival : *arrivals) {
        if (!takes_part(arrival)) continue;
        const auto found = wanted.find(keys.of(arrival));
        if (found != wanted.end()) found->second->runs.push_back(static_cast<uint32_t>(run));
      }
    }
  }

  void make(Group& group) {
    std::string members;
    for (const uint32_t run : group.runs) {
      if (runs_[run]->rank == kUnknown) {
        members.clear();
        break;
      }
      members += fmt::format("{}{}", members.empty() ? "[" : ", ", runs_[run]->rank);
    }
    if (!members.empty()) members += ']';
    group.communicator = names_.new_communicator({{}, {}, members, group.size});
    made_.push_back(&group);
  }

  // The communicators of made groups that have more runs than this one, all of its own among them, and its size.
  std::set<uint32_t> holders_of(const Group& group) const {
    std::set<uint32_t> holders;
    for (const Group* const other : made_)
      if (other->runs.size() > group.runs.size() && (other->size == group.size || group.size < 0) &&
          std::ranges::includes(other->runs, group.runs))
        holders.insert(other->communicator);
    return holders;
  }

  // The final communicator and sequence of each collective, in the order of their starts.
  void number() {
    std::vector<Found*> order;
    order.reserve(found_.size());
    for (auto& [key, found] : found_) {
      if (found.communicator == unnamed_) found.communicator = groups_[found.group()].communicator;
      order.push_back(&found);
    }
    std::ranges::sort(order, [](const Found* a, const Found* b) {
      return a->start != b->start ? a->start < b->start : a->members < b->members;
    });
    std::map<uint32_t, uint32_t> next;
    for (Found* const found : order) found->sequence = next[found->communicator]++;
  }

  Status rewrite(RankRun& run) {
    TACHO_ASSIGN(std::vector<Arrival> arrivals, arrivals_of(run));
    Keys keys;
    std::map<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>> renamed;
    std::set<uint32_t> communicators;
    bool any = false;
    for (Arrival& arrival : arrivals) {
      const auto before = renamed.find({arrival.previous_communicator, arrival.previous_sequence});
      if (before != renamed.end()) {
        std::tie(arrival.previous_communicator, arrival.previous_sequence) = before->second;
        arrival.previous_number = -1;
      }
      if (takes_part(arrival)) {
        const Found& found = found_.at(keys.of(arrival));
        renamed[{arrival.communicator, arrival.sequence}] = {found.communicator, found.sequence};
        arrival.communicator = found.communicator;
        arrival.sequence = found.sequence;
        arrival.number = -1;
        any = true;
      }
      communicators.insert(arrival.communicator);
    }
    if (stray_) communicators.insert(*stray_);
    if (!any && !stray_) return {};
    for (const uint32_t each : chosen_) run.numbered.erase(each);
    run.communicators.assign(communicators.begin(), communicators.end());
    TACHO_ASSIGN(run.spool_at, spools_.arrivals.append(arrivals));
    return {};
  }

  std::span<RankRun* const> runs_;
  Spools& spools_;
  Names& names_;
  uint32_t unnamed_;
  std::optional<uint32_t> stray_;
  std::set<uint32_t> chosen_;
  std::unordered_map<uint64_t, Found> found_;  // by key
  std::map<uint64_t, Group> groups_;           // by Found::group()
  std::map<uint64_t, uint64_t> sample_;        // likewise: the key of one collective
  std::vector<Group*> made_;
};

}  // namespace

Status match_by_identity(std::span<RankRun* const> runs, Spools& spools, Names& names) {
  return Identified(runs, spools, names).match();
}

}  // namespace tacho::ranks
