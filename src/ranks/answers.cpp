// From matched collectives to answers (answers.h).
#include "ranks/answers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/saturating.h"
#include "base/text/demangle.h"
#include "ranks/match/late_senders.h"
#include "ranks/match/links.h"
#include "report/text.h"

namespace tacho::ranks {
namespace {

template <typename T>
T median_of(std::vector<T> values) {
  if (values.empty()) return T{};
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Value>
int64_t median_of_others(std::span<const Participant> all, size_t one, Value value) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < all.size(); ++i)
    if (i != one) values.push_back(value(all[i].arrival));
  return median_of(std::move(values));
}

// The name on which `one` spent most time beyond the others' median, and how much.
template <size_t N>
void most_beyond(std::span<const Participant> all, size_t one, NamedTime (Arrival::*list)[N], uint64_t& name,
                 int64_t& beyond) {
  name = 0;
  beyond = 0;
  for (const NamedTime& own : all[one].arrival.*list) {
    if (own.name == 0) continue;
    const int64_t others = median_of_others(all, one, [&](const Arrival& arrival) {
      for (const NamedTime& theirs : arrival.*list)
        if (theirs.name == own.name) return theirs.time;
      return int64_t{0};
    });
    if (own.time - others > beyond) {
      beyond = own.time - others;
      name = own.name;
    }
  }
}

// Why participant `last` came `late` ns after the median of the others. `before`: the cause of the communicator's
// collective before, when the same rank was last there in the same step; `waited_before`: how long the others had
// waited then. `messages`: how long each waited for messages in its stretch.
Cause cause_of(std::span<const Participant> all, size_t last, int64_t late, const Cause* before, int64_t late_before,
               std::span<const Waited> messages) {
  Cause cause;
  const Arrival& own = all[last].arrival;
  cause.by_host = own.by_host;
  const auto beyond = [&](auto value) { return value(own) - median_of_others(all, last, value); };
  const int64_t compute = beyond([](const Arrival& a) { return a.compute; });
  const int64_t copy = beyond([](const Arrival& a) { return a.copy; });
  const int64_t idle = beyond([](const Arrival& a) { return a.idle; });
  const int64_t host = beyond([](const Arrival& a) { return a.host; });
  const int64_t unlaunched = beyond([](const Arrival& a) { return a.unlaunched; });
  const int64_t kernels = beyond([](const Arrival& a) { return a.kernels; });
  const int64_t stretch = beyond([](const Arrival& a) { return a.start - a.from; });
  const int64_t earlier = late - stretch;  // it began its stretch so much later
  const int64_t mpi = beyond([](const Arrival& a) { return a.mpi; });
  const int64_t most = std::max({compute, copy, idle, mpi, earlier});
  if (most * 2 < late) {
    cause.kind = Cause::Kind::kUnknown;
    return cause;
  }
  cause.time = std::min(most, late);
  // The others ran their share of the work while they waited for this rank at the collective before.
  if (most == compute && before != nullptr && before->kind != Cause::Kind::kNone &&
      before->kind != Cause::Kind::kUnknown && (late_before >= late || before->carried) &&
      (kernels <= 0 || (before->kind == Cause::Kind::kMoreKernels && kernels == before->kernels))) {
    cause = *before;
    cause.carried = true;
    cause.time = std::min(most, late);
    return cause;
  }
  if (most == compute) {
    cause.kind = kernels > 0 ? Cause::Kind::kMoreKernels : Cause::Kind::kLongerKernel;
    cause.kernels = std::max<int64_t>(kernels, 0);
    most_beyond(all, last, &Arrival::kernel, cause.name, cause.name_time);
  } else if (most == copy) {
    cause.kind = Cause::Kind::kCopies;
  } else if (most == mpi) {
    std::vector<int64_t> others;
    for (size_t i = 0; i < messages.size(); ++i)
      if (i != last) others.push_back(messages[i].time);
    if ((messages[last].time - median_of(std::move(others))) * 2 >= mpi) {
      cause.kind = Cause::Kind::kMessages;
      cause.peer = messages[last].blamed;  // a run; the caller knows its rank
    } else {
      cause.kind = Cause::Kind::kMpi;
      most_beyond(all, last, &Arrival::call, cause.name, cause.name_time);
    }
  } else if (most == idle) {
    if (host * 2 >= idle) {
      cause.kind = Cause::Kind::kHost;
      uint64_t call = 0, range = 0;
      int64_t in_call = 0, in_range = 0;
      most_beyond(all, last, &Arrival::call, call, in_call);
      most_beyond(all, last, &Arrival::range, range, in_range);
      if (in_call * 2 >= late) {
        cause.name = call;
        cause.name_time = in_call;
      } else if (in_range * 2 >= late) {
        cause.name = range;
        cause.name_time = in_range;
        cause.range = true;
      }
    } else {
      cause.kind = unlaunched * 2 >= idle ? Cause::Kind::kIdle : Cause::Kind::kUnknown;
    }
  } else {
    cause.kind = own.previous_communicator == Arrival::kNobody ? Cause::Kind::kBegan : Cause::Kind::kEarlier;
  }
  return cause;
}

uint64_t key_of(uint32_t communicator, uint32_t sequence) {
  return static_cast<uint64_t>(communicator) << 32 | sequence;
}

// What one communicator's rank gives to others, bytes: by operation, for the ring or for all to all.
struct Traffic {
  double ring = 0, all_to_all = 0;  // of each rank, in all
};

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

// The way back from a step's end: the transfer of the last collective, the stretch of the rank that came last to it,
// the collective at which that stretch began, and so on to the step's begin.
std::vector<PathPiece> path_of(const Report& report, const std::unordered_map<uint64_t, size_t>& by_key, size_t last,
                               int32_t step) {
  std::vector<PathPiece> path;
  size_t at = last;
  constexpr size_t kMostPieces = 100'000;
  while (path.size() < kMostPieces) {
    const Collective& collective = report.collectives[at];
    path.push_back({collective.last_rank, PathPiece::Kind::kTransfer, collective.transfer, 0, 0, 0, 0, at});
    path.push_back({collective.last_rank, PathPiece::Kind::kStretch,
                    std::max<int64_t>(0, collective.last_start - collective.from), collective.compute, collective.copy,
                    collective.idle, collective.host, at});
    if (collective.previous_communicator == Arrival::kNobody) break;
    const auto previous = by_key.find(key_of(collective.previous_communicator, collective.previous_sequence));
    if (previous == by_key.end()) break;
    const Collective& before = report.collectives[previous->second];
    if (before.step != step || before.last_start >= collective.last_start) break;
    at = previous->second;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::string short_name(const std::string& full) {
  std::string name = demangle(full);
  if (name.starts_with("void ")) name.erase(0, 5);
  for (const char bracket : {'<', '('})
    if (const size_t at = name.find(bracket); at != std::string::npos && at > 0) name.resize(at);
  return report::shortened(name, 28);
}

std::string cause_text(const Cause& cause, const Names& names) {
  const std::string name = cause.name != 0 ? short_name(names.text(cause.name)) : std::string();
  std::string text;
  switch (cause.kind) {
    case Cause::Kind::kNone:
      return "";
    case Cause::Kind::kMoreKernels:
      text = fmt::format("{} more kernel{}", cause.kernels, cause.kernels == 1 ? "" : "s");
      if (!name.empty()) text += fmt::format(" (most: {})", name);
      break;
    case Cause::Kind::kLongerKernel:
      text = name.empty() ? std::string("longer kernels")
                          : fmt::format("longer kernels: {} +{}", name,
                                        report::format_duration(static_cast<double>(cause.name_time)));
      break;
    case Cause::Kind::kCopies:
      text = "copies";
      break;
    case Cause::Kind::kMessages:
      text = fmt::format("waited for rank {}'s messages", cause.peer);
      break;
    case Cause::Kind::kMpi:
      text = name.empty() ? std::string("longer in MPI")
                          : fmt::format("longer in MPI: {} +{}", name,
                                        report::format_duration(static_cast<double>(cause.name_time)));
      break;
    case Cause::Kind::kLateSends:
      text = fmt::format("late messages, most to rank {}: one {} late", cause.peer,
                         report::format_duration(static_cast<double>(cause.time)));
      if (const std::string did = meanwhile_text(cause.meanwhile, names); !did.empty())
        text += fmt::format(" (meanwhile: {})", did);
      break;
    case Cause::Kind::kHost:
      if (cause.by_host && (name.empty() || cause.range))
        text = name.empty() ? std::string("its own code on the host") : "its code on the host, in " + name;
      else if (name.empty())
        text = "the host launched late; why is unknown";
      else if (cause.range)
        text = "the host launched late, in " + name;
      else
        text = fmt::format("the host: {} +{}", name, report::format_duration(static_cast<double>(cause.name_time)));
      break;
    case Cause::Kind::kIdle:
      text = "its GPU idled; unknown why (no API calls in the trace)";
      break;
    case Cause::Kind::kEarlier:
      text = cause.by_host ? "it left the collective before later" : "late from another group's collective";
      break;
    case Cause::Kind::kBegan:
      text = cause.by_host ? "it began later; why is not in the trace"
                           : "its GPU work began later; why is not in the trace";
      break;
    case Cause::Kind::kUnknown:
      return "unknown";
  }
  if (cause.carried) text += ", carried over";
  return text;
}

namespace {

// What a group's bus bandwidth is compared with. `of`: its runs.
void find_peak(const std::vector<RankRun>& runs, const std::vector<bool>& of, int64_t ranks, bool by_host,
               Group& group) {
  if (group.bus_bandwidth <= 0) return;
  if (by_host) {
    group.peak_of = "the traces do not tell what MPI sends over";
    return;
  }
  std::set<std::string> devices, hosts;
  bool all_known = true;
  for (size_t run = 0; run < of.size(); ++run) {
    if (!of[run]) continue;
    devices.insert(runs[run].device);
    hosts.insert(runs[run].host);
    all_known = all_known && !runs[run].host.empty();
  }
  hosts.erase("");
  if (hosts.size() > 1) {
    group.peak_of = "the traces do not tell the network between the ranks' hosts";
    return;
  }
  const std::string device = devices.size() == 1 ? *devices.begin() : std::string();
  const LinkPeak peak = link_peak(device, ranks);
  if (peak.gb_s <= 0) {
    group.peak_of = device.empty() ? "the traces do not tell one kind of GPU"
                                   : fmt::format("the name {} does not tell its links", device);
    return;
  }
  group.peak = peak.gb_s;
  group.peak_of = fmt::format("what {} of {} carries in one direction{}", peak.link, device,
                              all_known ? "" : ", if the ranks are on one host");
}

}  // namespace

Result<Report> answer(Job& job, bool details) {
  const std::vector<RankRun>& runs = job.runs;
  size_t found = 0;
  for (const RankRun& run : runs) found += run.arrivals + run.messages;
  if (found == 0) {
    int64_t kernels = 0;
    std::set<std::string_view> files;
    for (const RankRun& run : runs) {
      kernels += run.kernels;
      files.insert(run.file);
    }
    return fail(
        "{}{}: no collective among the {} kernels of {} rank{}, and no message or collective of MPI: tacho looked for "
        "kernels named ncclDevKernel_*, ncclKernel_*, nccl*Sym*, rccl* and *msccl*, for torch.distributed's "
        "\"Collective name\" in Kineto files, and for table message; record a span in which the ranks communicate",
        runs[0].file,
        files.size() > 1 ? fmt::format(" and {} more file{}", files.size() - 1, files.size() == 2 ? "" : "s") : "",
        kernels, runs.size(), runs.size() == 1 ? "" : "s");
  }
  Report report;
  report.ranks.resize(runs.size());
  constexpr size_t kArrivalsAtOnce = 16384;
  std::vector<RankArrival> arrived;
  size_t spooled = 0;
  if (details) {
    for (size_t run = 0; run < runs.size(); ++run) report.ranks[run].steps.resize(runs[run].steps);
    TACHO_ASSIGN(report.arrivals, Spool<RankArrival>::create());
  }
  Status spooling;
  const auto spool_arrivals = [&] {
    if (arrived.empty()) return;
    if (auto at = report.arrivals->append(arrived); !at && spooling) spooling = tl::unexpected<Error>(at.error());
    spooled += arrived.size();
    arrived.clear();
  };
  const auto step_at = [&](uint32_t run, int32_t step) -> RankStep* {
    std::vector<RankStep>& steps = report.ranks[run].steps;
    return step >= 0 && static_cast<size_t>(step) < steps.size() ? &steps[static_cast<size_t>(step)] : nullptr;
  };

  // Clocks: corrected where collectives say that they differ, and not within one host.
  TACHO_ASSIGN(std::vector<RunClock> clocks, relate_clocks(runs, job.spools));
  report.aligned = runs.size() > 1;
  for (size_t run = 0; run < runs.size(); ++run) {
    const RunClock& clock = clocks[run];
    RankAnswer& rank = report.ranks[run];
    rank.related = clock.related;
    rank.clock_residual = clock.residual;
    if (!clock.related) report.aligned = false;
    report.clock_residual = std::max(report.clock_residual, clock.residual);
  }
  for (const uint32_t run : drop_equal_clocks(runs, clocks))
    report.remarks.push_back(fmt::format(
        "rank {}: its collectives end {} from rank {}'s of the same number: does its trace begin at another "
        "collective? Record all ranks over the same steps",
        runs[run].rank, report::format_duration(std::abs(static_cast<double>(clocks[run].typical))),
        runs[clocks[run].against].rank));
  for (size_t run = 1; run < runs.size(); ++run) {
    report.ranks[run].corrected = !clocks[run].fit.pieces.empty();
    if (report.ranks[run].corrected) report.ranks[run].clock_offset = clocks[run].typical;
  }

  // Messages: who waited for whom, and in which step.
  TACHO_ASSIGN(report.messages, look_at_messages(runs, job.spools.messages, clocks));
  explain_late_messages(runs, job.names, report.messages);
  // `from`, `to`: of the common clock.
  const auto add_meanwhile = [&](uint32_t sender, int64_t from, int64_t to, Cause& cause) {
    if (cause.kind != Cause::Kind::kLateSends) return;
    for (const LateMessage& message : report.messages.late)  // the latest first
      if (message.from == sender && message.sent_at >= from && message.sent_at <= to) {
        cause.meanwhile = message.meanwhile;
        return;
      }
  };
  const auto on_common = [&](uint32_t run, int64_t time) {
    return common_time(clocks, run, time + runs[run].clock_shift);
  };
  const auto step_of = [&](uint32_t run, std::span<const Times> steps, int64_t time) {  // common clock
    const auto after = std::partition_point(steps.begin(), steps.end(), [&](const Times& step) {
      return step.first == kUnknown || on_common(run, step.first) <= time;
    });
    return static_cast<int32_t>(after - steps.begin()) - 1;
  };

  // Collectives.
  std::unordered_map<uint32_t, size_t> newest;  // of each communicator, in report.collectives
  std::unordered_map<uint64_t, size_t> by_key;
  std::vector<std::vector<int64_t>> waited_in(runs.size());  // by run and step, ns
  const auto add_waited = [&](uint32_t run, int32_t step, int64_t time) {
    if (step < 0 || static_cast<size_t>(step) >= runs[run].steps) return;
    if (waited_in[run].empty()) waited_in[run].resize(runs[run].steps);
    add_saturating(waited_in[run][static_cast<size_t>(step)], time);
  };
  std::map<uint32_t, Traffic> traffic;
  std::set<uint32_t> by_host;                      // communicators of MPI
  std::map<uint32_t, std::vector<bool>> in_group;  // by communicator: which runs take part
  std::string example;
  TACHO_TRY(match_collectives(runs, job.spools.arrivals, [&](std::span<Participant> all, bool complete) {
    const Arrival& first = all[0].arrival;
    if (first.operation == Operation::kSendReceive) {
      ++report.point_to_point;  // two ranks of the group only: counting does not match them
      return;
    }
    for (const Participant& other : all)
      if (other.arrival.operation != first.operation || other.arrival.bytes != first.bytes) {
        if (report.mismatched++ == 0)
          example = fmt::format("number {} of group {} is {} of {} on rank {}, and {} of {} on rank {}", first.sequence,
                                job.names.communicator(first.communicator).name, operation_name(first.operation),
                                report::format_bytes(static_cast<double>(first.bytes)), runs[all[0].run].rank,
                                operation_name(other.arrival.operation),
                                report::format_bytes(static_cast<double>(other.arrival.bytes)), runs[other.run].rank);
        return;
      }
    if (!complete) ++report.incomplete;
    if (first.by_host) by_host.insert(first.communicator);
    Collective collective;
    collective.communicator = first.communicator;
    collective.sequence = first.sequence;
    collective.operation = first.operation;
    collective.bytes = first.bytes;
    collective.step = first.step;
    collective.ranks = static_cast<uint32_t>(all.size());
    collective.complete = complete;
    std::vector<int64_t> starts;
    std::vector<bool>& members = in_group[first.communicator];
    members.resize(runs.size());
    size_t last = 0;
    collective.arrivals_at = spooled + arrived.size();
    for (size_t i = 0; i < all.size(); ++i) {
      const RankRun& run = runs[all[i].run];
      starts.push_back(common_time(clocks, all[i].run, all[i].arrival.start + run.clock_shift));
      const int64_t end = common_time(clocks, all[i].run, all[i].arrival.end + run.clock_shift);
      if (details) arrived.push_back({starts[i], end, all[i].run});
      collective.end = i == 0 ? end : std::max(collective.end, end);
      if (starts[i] > starts[last]) last = i;
      members[all[i].run] = true;
    }
    if (arrived.size() >= kArrivalsAtOnce) spool_arrivals();
    collective.first_start = *std::min_element(starts.begin(), starts.end());
    collective.last_start = starts[last];
    collective.last_run = all[last].run;
    collective.last_rank = runs[all[last].run].rank;
    collective.blamed_run = collective.last_run;
    collective.spread = collective.last_start - collective.first_start;
    collective.transfer = std::max<int64_t>(0, collective.end - collective.last_start);
    if (all.size() > 1) {
      std::vector<int64_t> others;
      for (size_t i = 0; i < all.size(); ++i)
        if (i != last) others.push_back(starts[i]);
      collective.late = collective.last_start - median_of(std::move(others));
      for (size_t i = 0; i < all.size(); ++i) {
        const int64_t waited = collective.last_start - starts[i];
        add_saturating(collective.waited, waited);
        add_saturating(report.ranks[all[i].run].waited, waited);
        add_waited(all[i].run, all[i].arrival.step, waited);
        if (RankStep* const step = step_at(all[i].run, collective.step); step != nullptr)
          step->late = std::max(step->late, starts[i] - collective.first_start);
      }
      ++report.ranks[collective.last_run].last_in;
      const Collective* before = nullptr;
      if (const auto at = newest.find(first.communicator); at != newest.end()) {
        const Collective& candidate = report.collectives[at->second];
        if (candidate.last_run == collective.last_run && candidate.step == collective.step) before = &candidate;
      }
      std::vector<Waited> messages;
      for (size_t i = 0; i < all.size(); ++i)
        messages.push_back(
            waited_between(report.messages.waits[all[i].run], on_common(all[i].run, all[i].arrival.from), starts[i]));
      collective.cause = cause_of(all, last, collective.late, before != nullptr ? &before->cause : nullptr,
                                  before != nullptr ? before->late : 0, messages);
      if (collective.cause.kind == Cause::Kind::kMessages && !collective.cause.carried) {
        collective.blamed_run = messages[last].blamed;
        collective.cause.peer = runs[collective.blamed_run].rank;
      } else if (collective.cause.carried && before != nullptr) {
        collective.blamed_run = before->blamed_run;
      }
      add_saturating(report.ranks[collective.blamed_run].caused, collective.waited);
      if (RankStep* const step = step_at(collective.blamed_run, collective.step); step != nullptr)
        add_saturating(step->caused, collective.waited);
    }
    const int64_t size =
        std::max<int64_t>(job.names.communicator(first.communicator).size, static_cast<int64_t>(all.size()));
    if (collective.bytes > 0 && collective.transfer > 0 && complete && all.size() > 1) {
      collective.algorithm_bandwidth = static_cast<double>(collective.bytes) / static_cast<double>(collective.transfer);
      collective.bus_bandwidth = collective.algorithm_bandwidth * bus_factor(collective.operation, size);
    }
    if (!first.by_host) add_traffic(traffic[first.communicator], collective.operation, collective.bytes, size);
    const Arrival& own = all[last].arrival;
    collective.from = common_time(clocks, collective.last_run, own.from + runs[collective.last_run].clock_shift);
    collective.compute = own.compute;
    collective.copy = own.copy;
    collective.idle = own.idle;
    collective.host = own.host;
    collective.previous_communicator = own.previous_communicator;
    collective.previous_sequence = own.previous_sequence;
    by_key[key_of(collective.communicator, collective.sequence)] = report.collectives.size();
    newest[first.communicator] = report.collectives.size();
    report.collectives.push_back(collective);
  }));
  spool_arrivals();
  TACHO_TRY(std::move(spooling));

  // Steps.
  struct Blame {
    size_t collectives = 0;
    int64_t waited = 0, late = 0, for_messages = 0;
    // What explains how much waiting, by kind and then by name.
    struct Part {
      int64_t waited = 0, longest = -1;
      Cause cause;  // of the longest delay
    };
    std::map<Cause::Kind, std::map<uint64_t, Part>> causes;
    Cause cause() const {
      const std::map<uint64_t, Part>* best = nullptr;
      int64_t most = -1;
      for (const auto& [kind, parts] : causes) {
        int64_t sum = 0;
        for (const auto& [name, part] : parts) add_saturating(sum, part.waited);
        if (sum > most) {
          most = sum;
          best = &parts;
        }
      }
      const Part* worst = nullptr;
      if (best != nullptr)
        for (const auto& [name, part] : *best)
          if (worst == nullptr || part.waited > worst->waited) worst = &part;
      return worst != nullptr ? worst->cause : Cause{};
    }
  };
  struct StepSums {
    std::map<uint32_t, Blame> blame;
    size_t last = 0;
    bool any = false;
    StepReport report;
    size_t ranks = 0;  // that have this step
    uint32_t last_run = 0;
    double own = 0, longest = 0;  // ns without waiting: the ranks' sum, and the longest
  };
  std::map<int32_t, StepSums> steps;
  std::map<uint32_t, Blame> blame_in_all;
  std::map<uint32_t, std::set<int32_t>> blame_steps;
  const auto add_blame = [](Blame& blame, const Collective& collective) {
    if (collective.blamed_run == collective.last_run) ++blame.collectives;
    add_saturating(blame.waited, collective.waited);
    blame.late = std::max(blame.late, collective.spread);
    // Who is blamed for another's lateness sent it messages late.
    Cause cause = collective.cause;
    if (cause.kind == Cause::Kind::kMessages) {
      cause.kind = Cause::Kind::kLateSends;
      cause.peer = collective.last_rank;
    }
    Blame::Part& part = blame.causes[cause.kind][cause.name];
    add_saturating(part.waited, collective.waited);
    if (collective.late > part.longest) {
      part.longest = collective.late;
      part.cause = cause;
    }
  };
  for (size_t i = 0; i < report.collectives.size(); ++i) {
    const Collective& collective = report.collectives[i];
    if (collective.ranks < 2) continue;
    add_blame(blame_in_all[collective.blamed_run], collective);
    if (collective.step < 0) continue;
    StepSums& sums = steps[collective.step];
    if (!sums.any || collective.end > report.collectives[sums.last].end) sums.last = i;
    sums.any = true;
    ++sums.report.collectives;
    add_saturating(sums.report.waited, collective.waited);
    add_blame(sums.blame[collective.blamed_run], collective);
  }
  for (uint32_t run = 0; run < runs.size(); ++run) {
    if (report.messages.waits[run].empty()) continue;
    TACHO_ASSIGN(const std::vector<Times> own_steps, steps_of(runs[run], job.spools));
    for (const MessageWait& wait : report.messages.waits[run]) {
      const int64_t time = wait.end - wait.start;
      add_saturating(report.ranks[run].waited, time);
      add_saturating(report.ranks[wait.blamed].caused, time);
      const int32_t step = step_of(run, own_steps, wait.start);
      add_waited(run, step, time);
      if (RankStep* const blamed = step_at(wait.blamed, step); blamed != nullptr) add_saturating(blamed->caused, time);
      const auto add = [&](Blame& blame) {
        add_saturating(blame.waited, time);
        add_saturating(blame.for_messages, time);
        blame.late = std::max(blame.late, time);
        Blame::Part& part = blame.causes[Cause::Kind::kLateSends][0];
        add_saturating(part.waited, time);
        if (time <= part.longest) return;
        part.longest = time;
        part.cause.kind = Cause::Kind::kLateSends;
        part.cause.peer = runs[run].rank;
        part.cause.time = time;
        part.cause.by_host = true;
      };
      add(blame_in_all[wait.blamed]);
      if (step < 0) continue;
      StepSums& sums = steps[step];
      add_saturating(sums.report.waited, time);
      add(sums.blame[wait.blamed]);
    }
  }
  const int64_t first_number = runs[0].first_step;
  // The ranks' own times, rank by rank: only one rank's steps are in memory.
  for (uint32_t run = 0; run < runs.size(); ++run) {
    TACHO_ASSIGN(const std::vector<Times> own_steps, steps_of(runs[run], job.spools));
    for (size_t step = 0; step < report.ranks[run].steps.size() && step < own_steps.size(); ++step) {
      RankStep& with_others = report.ranks[run].steps[step];
      if (own_steps[step].first == kUnknown) continue;
      with_others.begin = on_common(run, own_steps[step].first);
      with_others.end = on_common(run, own_steps[step].last);
      if (!waited_in[run].empty()) with_others.waited = waited_in[run][step];
    }
    for (auto& [number, sums] : steps) {
      const auto place = static_cast<size_t>(number);
      if (place >= own_steps.size() || own_steps[place].first == kUnknown) continue;
      const Times& times = own_steps[place];
      const int64_t begin = on_common(run, times.first), end = on_common(run, times.last);
      StepReport& step = sums.report;
      step.begin = sums.ranks == 0 ? begin : std::min(step.begin, begin);
      if (sums.ranks == 0 || end > step.end) {
        step.end = end;
        sums.last_run = run;
      }
      const int64_t waited = waited_in[run].empty() ? 0 : waited_in[run][place];
      const auto own = static_cast<double>(times.span() - waited);
      sums.own += own;
      sums.longest = std::max(sums.longest, own);
      ++sums.ranks;
    }
    std::vector<int64_t>().swap(waited_in[run]);
  }
  for (auto& [number, sums] : steps) {
    StepReport& step = sums.report;
    step.number = first_number + number;
    uint32_t worst = sums.blame.begin()->first;
    for (const auto& [run, blame] : sums.blame)
      if (blame.waited > sums.blame[worst].waited) worst = run;
    const Blame& blame = sums.blame[worst];
    step.last_rank = runs[worst].rank;
    step.last_in = blame.collectives;
    step.late = blame.late;
    step.cause = blame.cause();
    add_meanwhile(worst, step.begin, step.end, step.cause);
    blame_steps[worst].insert(number);
    if (sums.ranks > 0 && sums.own > 0)
      step.imbalance = (sums.longest / (sums.own / static_cast<double>(sums.ranks)) - 1) * 100;
    if (sums.any) step.path = path_of(report, by_key, sums.last, number);
    if (const int64_t tail = sums.any ? step.end - report.collectives[sums.last].end : 0; sums.ranks > 0 && tail > 0)
      step.path.push_back({runs[sums.last_run].rank, PathPiece::Kind::kTail, tail, 0, 0, 0, 0, sums.last});
    report.steps.push_back(std::move(step));
  }

  // Who is to blame.
  for (const auto& [run, blame] : blame_in_all) {
    Straggler straggler{runs[run].rank, blame.collectives, blame.waited, blame.for_messages, {}, blame.cause()};
    add_meanwhile(run, INT64_MIN, INT64_MAX, straggler.cause);
    for (const int32_t step : blame_steps[run]) straggler.steps.push_back(first_number + step);
    report.stragglers.push_back(std::move(straggler));
  }
  std::stable_sort(report.stragglers.begin(), report.stragglers.end(),
                   [](const Straggler& a, const Straggler& b) { return a.waited > b.waited; });

  // Collectives of one kind.
  struct GroupSums {
    std::vector<int64_t> spreads, transfers;
    int64_t waited = 0;
  };
  std::map<std::tuple<uint32_t, Operation, int64_t>, GroupSums> kinds;
  for (const Collective& collective : report.collectives) {
    GroupSums& sums = kinds[{collective.communicator, collective.operation, collective.bytes}];
    sums.spreads.push_back(collective.spread);
    sums.transfers.push_back(collective.transfer);
    add_saturating(sums.waited, collective.waited);
  }
  for (auto& [key, sums] : kinds) {
    const auto [communicator, operation, bytes] = key;
    Group group{};
    group.operation = operation;
    group.communicator = communicator;
    group.bytes = bytes;
    group.count = sums.spreads.size();
    group.most_spread = *std::max_element(sums.spreads.begin(), sums.spreads.end());
    group.waited = sums.waited;
    group.median_spread = median_of(std::move(sums.spreads));
    group.median_transfer = median_of(std::move(sums.transfers));
    const int64_t size =
        std::max<int64_t>(job.names.communicator(communicator).size, std::ranges::count(in_group[communicator], true));
    // One rank's kernels also waited for the others.
    if (bytes > 0 && group.median_transfer > 0 && std::ranges::count(in_group[communicator], true) > 1) {
      group.algorithm_bandwidth = static_cast<double>(bytes) / static_cast<double>(group.median_transfer);
      group.bus_bandwidth = group.algorithm_bandwidth * bus_factor(operation, size);
    }
    find_peak(runs, in_group[communicator], size, by_host.contains(communicator), group);
    report.groups.push_back(group);
  }
  std::stable_sort(report.groups.begin(), report.groups.end(),
                   [](const Group& a, const Group& b) { return a.waited > b.waited; });

  // Bytes between ranks, and ranks that no file is of.
  std::set<int64_t> present, missing;
  for (const RankRun& run : runs) present.insert(run.rank);
  for (const RankRun& run : runs)
    for (int64_t rank = 0; rank < std::min<int64_t>(run.world, 1 << 20); ++rank)
      if (!present.contains(rank)) missing.insert(rank);
  constexpr size_t kMostPairs = 4096;
  for (uint32_t communicator = 0; communicator < job.names.communicators(); ++communicator) {
    const Names::Communicator told = job.names.communicator(communicator);
    std::vector<int64_t> members = members_of(told.members);
    for (const int64_t member : members)
      if (!present.contains(member)) missing.insert(member);
    if (members.empty())
      for (size_t run = 0; run < in_group[communicator].size(); ++run)
        if (in_group[communicator][run]) members.push_back(runs[run].rank);
    const Traffic& sums = traffic[communicator];
    const size_t count = members.size();
    if (count < 2) continue;
    if (sums.ring > 0)
      for (size_t i = 0; i < count; ++i)
        report.bytes[{members[i], members[(i + 1) % count]}] += std::llround(sums.ring);
    if (sums.all_to_all > 0 && count <= kMostPairs)
      for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < count; ++k)
          if (i != k) report.bytes[{members[i], members[k]}] += std::llround(sums.all_to_all);
  }
  report.missing.assign(missing.begin(), missing.end());

  // What the answers leave out.
  if (!report.missing.empty()) {
    std::string list;
    for (size_t i = 0; i < report.missing.size() && i < 8; ++i)
      list += fmt::format("{}{}", i > 0 ? ", " : "", report.missing[i]);
    if (report.missing.size() > 8) list += fmt::format(" and {} more", report.missing.size() - 8);
    report.remarks.push_back(fmt::format("no file is of rank{} {}: the answers cover the other ranks only",
                                         report.missing.size() == 1 ? "" : "s", list));
  }
  if (report.mismatched > 0)
    report.remarks.push_back(
        fmt::format("{} collective{} left out because the ranks disagree ({}): do all traces begin at the same step?",
                    report.mismatched, report.mismatched == 1 ? " is" : "s are", example));
  if (report.incomplete > 0)
    report.remarks.push_back(
        fmt::format("{} collective{} on some ranks only: did a rank die, or are the traces of different lengths?",
                    report.incomplete, report.incomplete == 1 ? " is" : "s are"));
  if (report.messages.unmatched > 0)
    report.remarks.push_back(
        fmt::format("{} message{} of MPI lack{} the other half: of ranks without a file, of processes that "
                    "MPI_Comm_spawn started, or lost",
                    report.messages.unmatched, report.messages.unmatched == 1 ? "" : "s",
                    report.messages.unmatched == 1 ? "s" : ""));
  if (report.point_to_point > 0)
    report.remarks.push_back(
        fmt::format("{} sends and receives count as communication but are not matched", report.point_to_point));
  for (size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].arrivals == 0 && !report.collectives.empty())
      report.remarks.push_back(fmt::format("rank {} takes part in no collective", runs[run].rank));
    if (report.ranks[run].corrected && std::abs(report.ranks[run].clock_offset) > 1'000'000)
      report.remarks.push_back(
          clocks[run].numbered
              ? fmt::format("the clock of rank {} is taken to be {} off", runs[run].rank,
                            report::format_duration(static_cast<double>(std::abs(report.ranks[run].clock_offset))))
              : fmt::format("the clock of rank {} is taken to be {} off; if its trace begins at "
                            "another collective than rank {}'s, that is why",
                            runs[run].rank,
                            report::format_duration(static_cast<double>(std::abs(report.ranks[run].clock_offset))),
                            runs[0].rank));
  }
  if (runs.size() > 1 && !report.aligned) {
    bool one_host = true;
    for (const RankRun& run : runs) one_host = one_host && !run.host.empty() && run.host == runs[0].host;
    if (!one_host)
      report.remarks.emplace_back("unaligned: some ranks share no collective or message with rank 0's, so their clocks "
                                  "cannot be compared with its own");
  }
  if (runs.size() == 1)
    report.remarks.push_back(fmt::format(
        "{} holds one rank only: who waits for whom shows when the files of all ranks are given", runs[0].file));
  std::set<std::string> programs;
  for (const RankRun& run : runs)
    if (!run.program.empty()) programs.insert(run.program);
  if (programs.size() > 1) {
    std::string list;
    for (const std::string& program : programs) list += (list.empty() ? "" : ", ") + program;
    report.remarks.push_back("the traces are of different programs (" + list + "): are all of one job?");
  }
  return report;
}

}  // namespace tacho::ranks
