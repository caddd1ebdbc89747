// Matched collectives: which rank came last and why, how long the others waited, bandwidths (answering.h).
#include <algorithm>

#include "base/saturating.h"
#include "ranks/answer/answering.h"
#include "ranks/answer/cause.h"
#include "report/text.h"

namespace tacho::ranks {
namespace {

void add_traffic(Traffic& traffic, Operation operation, int64_t bytes, int64_t ranks) {
  if (bytes <= 0 || ranks < 2) return;
  const auto size = static_cast<double>(bytes), n = static_cast<double>(ranks);
  switch (operation) {
    case Operation::kAllReduce:
      traffic.ring += 2 * (n - 1) / n * size;
      break;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      traffic.ring += (n - 1) / n * size;
      break;
    case Operation::kAllToAll:
      traffic.all_to_all += size / n;
      break;
    default:
      break;
  }
}

class CollectiveAnswers {
 public:
  explicit CollectiveAnswers(Answering& work) : work_(work), runs_(work.runs), report_(work.report) {}

  Status all() {
    TACHO_TRY(match_collectives(runs_, work_.job.spools.arrivals,
                                [&](std::span<Participant> all, bool complete) { take(all, complete); }));
    spool_arrivals();
    return std::move(spooling_);
  }

 private:
  void spool_arrivals() {
    if (arrived_.empty()) return;
    if (auto at = report_.arrivals->append(arrived_); !at && spooling_) spooling_ = tl::unexpected<Error>(at.error());
    spooled_ += arrived_.size();
    arrived_.clear();
  }

  // Whether all ranks say that it was the same operation on as many bytes.
  bool agreed(std::span<const Participant> all) {
    const Arrival& first = all[0].arrival;
    for (const Participant& other : all)
      if (other.arrival.operation != first.operation || other.arrival.bytes != first.bytes) {
        if (report_.mismatched++ == 0) {
          const std::string group = work_.job.names.communicator(first.communicator).name;
          work_.disagreement =
              fmt::format("number {}{} is {} of {} on rank {}, and {} of {} on rank {}", first.sequence,
                          group.empty() ? "" : " of group " + group, operation_name(first.operation),
                          report::format_bytes(static_cast<double>(first.bytes)), runs_[all[0].run].rank,
                          operation_name(other.arrival.operation),
                          report::format_bytes(static_cast<double>(other.arrival.bytes)), runs_[other.run].rank);
        }
        return false;
      }
    return true;
  }

  void take(std::span<const Participant> all, bool complete) {
    const Arrival& first = all[0].arrival;
    if (first.operation == Operation::kSendReceive) {
      ++report_.point_to_point;  // two ranks of the group only: counting does not match them
      return;
    }
    if (!agreed(all)) return;
    if (!complete) ++report_.incomplete;
    if (first.by_host) work_.by_host.insert(first.communicator);
    Collective collective;
    collective.communicator = first.communicator;
    collective.sequence = first.sequence;
    collective.operation = first.operation;
    collective.bytes = first.bytes;
    collective.step = first.step;
    collective.ranks = static_cast<uint32_t>(all.size());
    collective.complete = complete;
    std::vector<int64_t> starts;
    const size_t last = come(all, collective, starts);
    if (all.size() > 1) blame(all, starts, last, collective);
    const int64_t size =
        std::max<int64_t>(work_.job.names.communicator(first.communicator).size, static_cast<int64_t>(all.size()));
    if (collective.bytes > 0 && collective.transfer > 0 && complete && all.size() > 1) {
      collective.algorithm_bandwidth = static_cast<double>(collective.bytes) / static_cast<double>(collective.transfer);
      collective.bus_bandwidth = collective.algorithm_bandwidth * bus_factor(collective.operation, size);
    }
    if (!first.by_host) add_traffic(work_.traffic[first.communicator], collective.operation, collective.bytes, size);
    const Arrival& own = all[last].arrival;
    collective.from = work_.on_common(collective.last_run, own.from);
    collective.compute = own.compute;
    collective.copy = own.copy;
    collective.idle = own.idle;
    collective.host = own.host;
    collective.host_from = own.from;
    collective.host_to = own.launch != kUnknown ? own.launch : own.start;
    collective.previous_communicator = own.previous_communicator;
    collective.previous_sequence = own.previous_sequence;
    work_.by_key[key_of(collective.communicator, collective.sequence)] = report_.collectives.size();
    newest_[first.communicator] = report_.collectives.size();
    report_.collectives.push_back(collective);
  }

  // When each rank came and when the last one left; returns the participant that came last.
  size_t come(std::span<const Participant> all, Collective& collective, std::vector<int64_t>& starts) {
    std::vector<bool>& members = work_.in_group[collective.communicator];
    members.resize(runs_.size());
    size_t last = 0;
    collective.arrivals_at = spooled_ + arrived_.size();
    for (size_t i = 0; i < all.size(); ++i) {
      starts.push_back(work_.on_common(all[i].run, all[i].arrival.start));
      const int64_t end = work_.on_common(all[i].run, all[i].arrival.end);
      if (work_.details) arrived_.push_back({starts[i], end, all[i].run});
      collective.end = i == 0 ? end : std::max(collective.end, end);
      if (starts[i] > starts[last]) last = i;
      members[all[i].run] = true;
    }
    constexpr size_t kArrivalsAtOnce = 16384;
    if (arrived_.size() >= kArrivalsAtOnce) spool_arrivals();
    collective.first_start = *std::min_element(starts.begin(), starts.end());
    collective.last_start = starts[last];
    collective.last_run = all[last].run;
    collective.last_rank = runs_[all[last].run].rank;
    collective.blamed_run = collective.last_run;
    collective.spread = collective.last_start - collective.first_start;
    collective.transfer = std::max<int64_t>(0, collective.end - collective.last_start);
    return last;
  }

  // How long the others waited, for which rank and why.
  void blame(std::span<const Participant> all, const std::vector<int64_t>& starts, size_t last,
             Collective& collective) {
    std::vector<int64_t> others;
    for (size_t i = 0; i < all.size(); ++i)
      if (i != last) others.push_back(starts[i]);
    collective.late = collective.last_start - median_of(std::move(others));
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t waited = collective.last_start - starts[i];
      add_saturating(collective.waited, waited);
      add_saturating(report_.ranks[all[i].run].waited, waited);
      work_.add_waited(all[i].run, all[i].arrival.step, waited);
      if (RankStep* const step = work_.step_at(all[i].run, collective.step); step != nullptr)
        step->late = std::max(step->late, starts[i] - collective.first_start);
    }
    ++report_.ranks[collective.last_run].last_in;
    const Collective* before = nullptr;
    if (const auto at = newest_.find(collective.communicator); at != newest_.end()) {
      const Collective& candidate = report_.collectives[at->second];
      if (candidate.last_run == collective.last_run && candidate.step == collective.step) before = &candidate;
    }
    std::vector<Waited> messages;
    for (size_t i = 0; i < all.size(); ++i)
      messages.push_back(waited_between(report_.messages.waits[all[i].run],
                                        work_.on_common(all[i].run, all[i].arrival.from), starts[i]));
    collective.cause = cause_of(all, last, collective.late, before != nullptr ? &before->cause : nullptr,
                                before != nullptr ? before->late : 0, messages);
    if (collective.cause.kind == Cause::Kind::kMessages && !collective.cause.carried) {
      collective.blamed_run = messages[last].blamed;
      collective.cause.peer = runs_[collective.blamed_run].rank;
    } else if (collective.cause.carried && before != nullptr) {
      collective.blamed_run = before->blamed_run;
    }
    add_saturating(report_.ranks[collective.blamed_run].caused, collective.waited);
    if (RankStep* const step = work_.step_at(collective.blamed_run, collective.step); step != nullptr)
      add_saturating(step->caused, collective.waited);
  }

  Answering& work_;
  const std::vector<RankRun>& runs_;
  Report& report_;
  std::unordered_map<uint32_t, size_t> newest_;  // of each communicator, in report.collectives
  std::vector<RankArrival> arrived_;             // not yet in the spool
  size_t spooled_ = 0;
  Status spooling_;
};

}  // namespace

Status answer_collectives(Answering& work) {
  return CollectiveAnswers(work).all();
}

}  // namespace tacho::ranks
