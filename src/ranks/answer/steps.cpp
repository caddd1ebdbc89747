// Steps of the program and the ranks that held them up (answering.h).
#include <algorithm>
#include <climits>

#include "base/saturating.h"
#include "ranks/answer/answering.h"

namespace tacho::ranks {
namespace {

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

// How long the others waited for a run.
struct Blame {
  size_t collectives = 0;
  int64_t waited = 0, late = 0, for_messages = 0;
  // How much waiting each cause explains, by kind and then by name.
  struct Part {
    int64_t waited = 0, longest = -1;
    Cause cause;  // of the longest delay
  };
  std::map<Cause::Kind, std::map<uint64_t, Part>> causes;

  void add(const Collective& collective) {
    if (collective.blamed_run == collective.last_run) ++collectives;
    add_saturating(waited, collective.waited);
    late = std::max(late, collective.spread);
    // The blamed rank made the other late by sending late.
    Cause cause = collective.cause;
    if (cause.kind == Cause::Kind::kMessages) {
      cause.kind = Cause::Kind::kLateSends;
      cause.peer = collective.last_rank;
    }
    Part& part = causes[cause.kind][cause.name];
    add_saturating(part.waited, collective.waited);
    if (collective.late > part.longest) {
      part.longest = collective.late;
      part.cause = cause;
    }
  }
  // A wait of `time` ns of rank `receiver` for a message.
  void add(int64_t time, int64_t receiver) {
    add_saturating(waited, time);
    add_saturating(for_messages, time);
    late = std::max(late, time);
    Part& part = causes[Cause::Kind::kLateSends][0];
    add_saturating(part.waited, time);
    if (time <= part.longest) return;
    part.longest = time;
    part.cause.kind = Cause::Kind::kLateSends;
    part.cause.peer = receiver;
    part.cause.time = time;
    part.cause.by_host = true;
  }
  Cause cause() const {
    const std::map<uint64_t, Part>* const best = best_kind();
    const Part* worst = nullptr;
    if (best != nullptr)
      for (const auto& [name, part] : *best)
        if (worst == nullptr || part.waited > worst->waited) worst = &part;
    return worst != nullptr ? worst->cause : Cause{};
  }
  // The same, and of a late host without a name what explains the largest part.
  Cause cause_with_part() const {
    Cause out = cause();
    if (out.kind != Cause::Kind::kHost || out.name != 0) return out;
    int64_t all = 0, explained = 0;
    for (const auto& [name, part] : *best_kind()) {
      add_saturating(all, part.waited);
      if (name == 0 || part.waited <= explained) continue;
      explained = part.waited;
      out.part_name = name;
    }
    out.part = all > 0 ? static_cast<double>(explained) / static_cast<double>(all) : 0;
    return out;
  }

 private:
  const std::map<uint64_t, Part>* best_kind() const {
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
    return best;
  }
};

struct StepSums {
  std::map<uint32_t, Blame> blame;  // by run
  size_t last = 0;                  // collective that ended last
  bool any = false;
  StepReport report;
  size_t ranks = 0;  // that have this step
  uint32_t last_run = 0;
  double own = 0, longest = 0;  // ns without waiting: the ranks' sum, and the longest
};

class StepAnswers {
 public:
  explicit StepAnswers(Answering& work)
      : work_(work), runs_(work.runs), report_(work.report), first_number_(work.runs[0].first_step) {}

  Status all() {
    collectives();
    TACHO_TRY(messages());
    TACHO_TRY(own_times());
    reports();
    stragglers();
    return {};
  }

 private:
  void collectives() {
    for (size_t i = 0; i < report_.collectives.size(); ++i) {
      const Collective& collective = report_.collectives[i];
      if (collective.ranks < 2) continue;
      blame_in_all_[collective.blamed_run].add(collective);
      if (collective.step < 0) continue;
      StepSums& sums = steps_[collective.step];
      if (!sums.any || collective.end > report_.collectives[sums.last].end) sums.last = i;
      sums.any = true;
      ++sums.report.collectives;
      add_saturating(sums.report.waited, collective.waited);
      sums.blame[collective.blamed_run].add(collective);
    }
  }

  // The step that holds a time of the common clock; -1 where none does.
  int32_t step_of(uint32_t run, std::span<const Times> steps, int64_t time) const {
    const auto after = std::partition_point(steps.begin(), steps.end(), [&](const Times& step) {
      return step.first == kUnknown || work_.on_common(run, step.first) <= time;
    });
    return static_cast<int32_t>(after - steps.begin()) - 1;
  }

  Status messages() {
    for (uint32_t run = 0; run < runs_.size(); ++run) {
      if (report_.messages.waits[run].empty()) continue;
      TACHO_ASSIGN(const std::vector<Times> own_steps, steps_of(runs_[run], work_.job.spools));
      for (const MessageWait& wait : report_.messages.waits[run]) {
        const int64_t time = wait.end - wait.start;
        add_saturating(report_.ranks[run].waited, time);
        add_saturating(report_.ranks[wait.blamed].caused, time);
        const int32_t step = step_of(run, own_steps, wait.start);
        work_.add_waited(run, step, time);
        if (RankStep* const blamed = work_.step_at(wait.blamed, step); blamed != nullptr)
          add_saturating(blamed->caused, time);
        blame_in_all_[wait.blamed].add(time, runs_[run].rank);
        if (step < 0) continue;
        StepSums& sums = steps_[step];
        add_saturating(sums.report.waited, time);
        sums.blame[wait.blamed].add(time, runs_[run].rank);
      }
    }
    return {};
  }

  // The ranks' own times, rank by rank: only one rank's steps are in memory.
  Status own_times() {
    for (uint32_t run = 0; run < runs_.size(); ++run) {
      std::vector<int64_t>& waited_in = work_.waited_in[run];
      TACHO_ASSIGN(const std::vector<Times> own_steps, steps_of(runs_[run], work_.job.spools));
      for (size_t step = 0; step < report_.ranks[run].steps.size() && step < own_steps.size(); ++step) {
        RankStep& with_others = report_.ranks[run].steps[step];
        if (own_steps[step].first == kUnknown) continue;
        with_others.begin = work_.on_common(run, own_steps[step].first);
        with_others.end = work_.on_common(run, own_steps[step].last);
        if (!waited_in.empty()) with_others.waited = waited_in[step];
      }
      for (auto& [number, sums] : steps_) {
        const auto place = static_cast<size_t>(number);
        if (place >= own_steps.size() || own_steps[place].first == kUnknown) continue;
        const Times& times = own_steps[place];
        const int64_t begin = work_.on_common(run, times.first), end = work_.on_common(run, times.last);
        StepReport& step = sums.report;
        step.begin = sums.ranks == 0 ? begin : std::min(step.begin, begin);
        if (sums.ranks == 0 || end > step.end) {
          step.end = end;
          sums.last_run = run;
        }
        const auto own = static_cast<double>(times.span() - (waited_in.empty() ? 0 : waited_in[place]));
        sums.own += own;
        sums.longest = std::max(sums.longest, own);
        ++sums.ranks;
      }
      std::vector<int64_t>().swap(waited_in);
    }
    return {};
  }

  void reports() {
    for (auto& [number, sums] : steps_) {
      StepReport& step = sums.report;
      step.number = first_number_ + number;
      uint32_t worst = sums.blame.begin()->first;
      for (const auto& [run, blame] : sums.blame)
        if (blame.waited > sums.blame[worst].waited) worst = run;
      const Blame& blame = sums.blame[worst];
      step.last_rank = runs_[worst].rank;
      step.last_in = blame.collectives;
      step.late = blame.late;
      step.cause = blame.cause();
      work_.add_meanwhile(worst, step.begin, step.end, step.cause);
      blame_steps_[worst].insert(number);
      if (sums.ranks > 0 && sums.own > 0)
        step.imbalance = (sums.longest / (sums.own / static_cast<double>(sums.ranks)) - 1) * 100;
      if (sums.any) step.path = path_of(report_, work_.by_key, sums.last, number);
      if (const int64_t tail = sums.any ? step.end - report_.collectives[sums.last].end : 0; sums.ranks > 0 && tail > 0)
        step.path.push_back({runs_[sums.last_run].rank, PathPiece::Kind::kTail, tail, 0, 0, 0, 0, sums.last});
      report_.steps.push_back(std::move(step));
    }
  }

  void stragglers() {
    for (const auto& [run, blame] : blame_in_all_) {
      Straggler straggler{runs_[run].rank,        blame.collectives, blame.waited, blame.for_messages, {},
                          blame.cause_with_part()};
      work_.add_meanwhile(run, INT64_MIN, INT64_MAX, straggler.cause);
      for (const int32_t step : blame_steps_[run]) straggler.steps.push_back(first_number_ + step);
      report_.stragglers.push_back(std::move(straggler));
    }
    std::stable_sort(report_.stragglers.begin(), report_.stragglers.end(),
                     [](const Straggler& a, const Straggler& b) { return a.waited > b.waited; });
  }

  Answering& work_;
  const std::vector<RankRun>& runs_;
  Report& report_;
  const int64_t first_number_;
  std::map<int32_t, StepSums> steps_;
  std::map<uint32_t, Blame> blame_in_all_;             // by run
  std::map<uint32_t, std::set<int32_t>> blame_steps_;  // of which a run held up most
};

}  // namespace

Status answer_steps(Answering& work) {
  return StepAnswers(work).all();
}

}  // namespace tacho::ranks
