// Judging triggers (keep_conditions.h).
#include "watch/recorder/keep_conditions.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "base/clock.h"
#include "base/text/demangle.h"
#include "vendor/collective_kernels.h"
#include "watch/recorder/kept_file.h"
#include "watch/segment.h"

namespace tacho::watch {
namespace {

using event::WatchRecordKind;

std::string time_text(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.3f} s", value * 1e-9);
  if (ns >= 1'000'000) return fmt::format("{:.3f} ms", value * 1e-6);
  return fmt::format("{:.1f} us", value * 1e-3);
}

// "train" names ranges "train" and "train 17", "train#17": frameworks put the number of a step into its name.
bool is_named(std::string_view range, std::string_view wanted) {
  if (!range.starts_with(wanted)) return false;
  range.remove_prefix(wanted.size());
  return range.find_first_not_of(" #:_-0123456789") == std::string_view::npos;
}
constexpr std::string_view kTorchStep = "ProfilerStep#";

}  // namespace

int64_t StepTimes::add(int64_t ns) {
  int64_t median = 0;
  if (last_.size() >= kFirst) {
    std::vector<int64_t> sorted = last_;
    const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    median = *middle;
  }
  if (last_.size() < kMost)
    last_.push_back(ns);
  else
    last_[next_++ % kMost] = ns;
  return median;
}

KeepConditions::KeepConditions(const event::WatchTable& table, const RingFile& ring,
                               const std::vector<KeepTrigger>& triggers, Fire fire)
    : table_(table), ring_(ring), triggers_(triggers), fire_(std::move(fire)), rows_(event::kWatchRows) {}

const KeepTrigger* KeepConditions::trigger_of(KeepCause cause) const {
  const auto found =
      std::find_if(triggers_.begin(), triggers_.end(), [&](const KeepTrigger& each) { return each.cause == cause; });
  return found == triggers_.end() ? nullptr : &*found;
}

std::string KeepConditions::row_name(uint32_t number) const {
  if (number >= event::kWatchRows) return {};
  const event::WatchRow& row = table_.rows[number];
  if (row.state.load(std::memory_order_acquire) != event::WatchRow::kReady) return {};
  return stored_name(row);
}

void KeepConditions::observe(const KeptRecord& record) {
  if (record.kind == WatchRecordKind::kText) {
    if (text_of_.ticket != 0) text_ += marker_text_of(record);
    if (text_of_.ticket + text_of_.flags == record.ticket) end_of_marker();
    return;
  }
  if (text_of_.ticket != 0) end_of_marker();
  switch (record.kind) {
    case WatchRecordKind::kWork:
      work(record, ring_.time(record.start), ring_.time(record.end));
      break;
    case WatchRecordKind::kWait:
      waited(record, ring_.time(record.start), ring_.time(record.end));
      break;
    case WatchRecordKind::kTimes:
      if (const auto found = collectives_.find(record.object); found != collectives_.end()) {
        const KeepTrigger* const trigger = trigger_of(KeepCause::kCollective);
        const auto ns = static_cast<int64_t>(record.end - record.start);
        if (trigger != nullptr && static_cast<double>(ns) > trigger->seconds * 1e9)
          fire_(*trigger, fmt::format("{} took {}", found->second, time_text(ns)), ranks_behind());
        collectives_.erase(found);
      }
      break;
    case WatchRecordKind::kAllocate:
    case WatchRecordKind::kFree:
      memory(record);
      break;
    case WatchRecordKind::kCollective:
      if (trigger_of(KeepCause::kCollective) != nullptr)
        ranks_.observe(record, ring_.call_name(record.call), ring_.time(record.end));
      break;
    case WatchRecordKind::kPush:
    case WatchRecordKind::kPop:
    case WatchRecordKind::kStart:
    case WatchRecordKind::kStop:
    case WatchRecordKind::kMark:
    case WatchRecordKind::kTrigger:
      marker(record);
      break;
    default:
      break;
  }
}

void KeepConditions::work(const KeptRecord& record, int64_t start, int64_t end) {
  if (record.result != 0) return;
  if (first_work_ == 0) {
    first_work_ = start;
    window_from_ = end;
  }
  busy_.insert({record.process, record.object});
  outstanding(end, true);
  if (record.row < event::kWatchRows) {
    const event::WatchKind kind = table_.rows[record.row].kind;
    if (kind == event::WatchKind::kKernel) kernel(record, start);
    if (kind == event::WatchKind::kGraph) graph(record, start);
  }
  if ((record.flags & event::kWatchWaitsForQueue) != 0) waited(record, start, end);
}

void KeepConditions::kernel(const KeptRecord& record, int64_t start) {
  constexpr size_t kMostCollectives = 4096;
  Row& row = rows_[record.row];
  if (row == Row::kCollective) {
    if (collectives_.size() < kMostCollectives) collectives_[record.ticket] = demangle(row_name(record.row));
    waiting_collectives_[record.process] = record.row;
  }
  if (row != Row::kUnseen) return;
  const std::string name = row_name(record.row);
  const bool collective = vendor::is_collective_kernel(name);
  row = collective ? Row::kCollective : Row::kSeen;
  if (collective) kernel(record, start);
  const bool fresh = kernels_.insert(name).second;
  const KeepTrigger* const trigger = trigger_of(KeepCause::kNewKernel);
  if (trigger == nullptr || !fresh || static_cast<double>(start - first_work_) < trigger->seconds * 1e9) return;
  fire_(*trigger,
        fmt::format("{} was launched for the first time, {} after the first work", demangle(name),
                    time_text(start - first_work_)),
        {});
}

void KeepConditions::step_took(const KeepTrigger& trigger, StepTimes& times, int64_t ns, const std::string& what) {
  const int64_t median = times.add(ns);
  if (median <= 0 || static_cast<double>(ns) <= static_cast<double>(median) * (1 + trigger.share)) return;
  fire_(trigger,
        fmt::format("{} took {}, {:.0f} % more than the {} of those before", what, time_text(ns),
                    100 * (static_cast<double>(ns) / static_cast<double>(median) - 1), time_text(median)),
        {});
}

// Launches of a graph are steps where no ranges are known to be.
void KeepConditions::graph(const KeptRecord& record, int64_t start) {
  const auto trigger = std::find_if(triggers_.begin(), triggers_.end(), [](const KeepTrigger& each) {
    return each.cause == KeepCause::kSlowStep && each.text.empty();
  });
  if (trigger == triggers_.end() || known_steps_) return;
  LastLaunch& last = graphs_[{record.process, record.row, record.object}];
  if (last.start != 0)
    step_took(*trigger, last.times, start - last.start,
              fmt::format("the time from a launch of {} to the next", row_name(record.row)));
  last.start = start;
}

void KeepConditions::waited(const KeptRecord& record, int64_t start, int64_t end) {
  if (record.result != 0) return;
  const auto collective = waiting_collectives_.find(record.process);
  const KeepTrigger* const trigger = trigger_of(KeepCause::kCollective);
  if (trigger != nullptr && collective != waiting_collectives_.end() &&
      static_cast<double>(end - start) > trigger->seconds * 1e9)
    fire_(*trigger,
          fmt::format("the program waited {} for work with {}", time_text(end - start),
                      demangle(row_name(collective->second))),
          ranks_behind());
  if ((record.flags & event::kWatchWaitsForAll) != 0) {
    std::erase_if(busy_, [&](const auto& each) { return each.first == record.process; });
    waiting_collectives_.erase(record.process);
  } else if ((record.flags & event::kWatchWaitsForQueue) != 0) {
    busy_.erase({record.process, record.object});
    waiting_collectives_.erase(record.process);
  }
  if (busy_.empty()) outstanding(end, false);
}

// Devices have work to do from now on, or none.
void KeepConditions::outstanding(int64_t at, bool now) {
  if (now && idle_since_ != 0) {
    idle_ns_ += std::max<int64_t>(at - std::max(idle_since_, window_from_), 0);
    idle_since_ = 0;
  } else if (!now && idle_since_ == 0) {
    idle_since_ = at;
  }
}

void KeepConditions::step(int64_t now) {
  if (const KeepTrigger* const trigger = trigger_of(KeepCause::kIdle); trigger != nullptr && first_work_ != 0)
    idle(*trigger, now);
  if (const KeepTrigger* const trigger = trigger_of(KeepCause::kCollective); trigger != nullptr)
    // The ranks wait for each other: while one has not called it, the call of the others' waits does not return.
    if (const auto late = ranks_.late(now, static_cast<int64_t>(trigger->seconds * 1e9),
                                      [this](uint16_t process) { return process_text(process); }))
      fire_(*trigger, *late, {});
}

std::vector<std::string> KeepConditions::ranks_behind() const {
  if (!ranks_.any()) return {};
  std::vector<std::string> all = ranks_.all(raw_now(), [this](uint16_t process) { return process_text(process); });
  if (all.empty()) all.emplace_back("the ranks that are watched here have called the same collectives");
  return all;
}

std::string KeepConditions::process_text(uint16_t process) const {
  if (process >= event::kWatchProcesses) return "an unknown process";
  const event::WatchProcess& known = table_.processes[process];
  const auto pid = static_cast<pid_t>(known.pid.load(std::memory_order_relaxed));
  const bool ended = known.ended.load(std::memory_order_relaxed) != 0 || (kill(pid, 0) != 0 && errno == ESRCH);
  return fmt::format("process {}{}", pid, ended ? ", which has ended" : "");
}

void KeepConditions::idle(const KeepTrigger& trigger, int64_t now) {
  const auto window = static_cast<int64_t>(trigger.seconds * 1e9);
  if (now < window_from_ + window) return;
  int64_t idle = idle_ns_;
  if (idle_since_ != 0) idle += std::max<int64_t>(now - std::max(idle_since_, window_from_), 0);
  const double share = static_cast<double>(idle) / static_cast<double>(now - window_from_);
  window_from_ = now;
  idle_ns_ = 0;
  if (share > trigger.share)
    fire_(trigger, fmt::format("no device had work for {:.0f} % of the last {}", 100 * share, time_text(window)), {});
}

void KeepConditions::memory(const KeptRecord& record) {
  const KeepTrigger* const trigger = trigger_of(KeepCause::kMemory);
  if (trigger == nullptr || record.result != 0) return;
  const std::pair<uint16_t, uint64_t> key{record.process, record.object};
  if (const auto held = held_.find(key); held != held_.end()) {
    held_sums_[held->second.second] -= held->second.first;
    held_.erase(held);
  }
  if (record.kind == WatchRecordKind::kFree) return;
  uint64_t size = 0;
  std::string device;
  for (const event::WatchObject& object : ring_.ring().objects)
    if (object.state.load(std::memory_order_acquire) == event::WatchRow::kReady && object.process == record.process &&
        object.handle == record.context && object.memory != 0) {
      size = object.memory;
      device = fmt::format("{} {}", std::string(object.name, strnlen(object.name, sizeof object.name)), object.device);
    }
  if (size == 0) {
    size_unknown_ = true;
    return;
  }
  size_known_ = true;
  held_[key] = {record.amount, device};
  const double share = static_cast<double>(held_sums_[device] += record.amount) / static_cast<double>(size);
  bool& above = above_[device];
  const bool was = std::exchange(above, share > trigger->share);
  if (above && !was)
    fire_(*trigger, fmt::format("the program's allocations take {:.1f} % of the memory of {}", 100 * share, device),
          {});
}

void KeepConditions::marker(const KeptRecord& record) {
  if (record.kind == WatchRecordKind::kPop) {
    std::vector<OpenMarker>& open = open_[{record.process, record.tid, record.call}];
    if (open.empty()) return;
    const OpenMarker range = std::move(open.back());
    open.pop_back();
    range_took(range, ring_.time(record.start));
    return;
  }
  if (record.kind == WatchRecordKind::kStop) {
    const auto found = started_.find(record.object);
    if (found == started_.end()) return;
    range_took(found->second, ring_.time(record.start));
    started_.erase(found);
    return;
  }
  text_of_ = record;
  text_ = marker_text_of(record);
  if (record.flags == 0) end_of_marker();
}

// Ranges of one name are the steps of all threads together: of a program's ranks, too, which wait for each other.
void KeepConditions::range_took(const OpenMarker& range, int64_t end) {
  for (const KeepTrigger& trigger : triggers_) {
    if (trigger.cause != KeepCause::kSlowStep) continue;
    const bool torch = trigger.text.empty() && std::string_view(range.name).starts_with(kTorchStep);
    known_steps_ = known_steps_ || torch;
    if (!torch && (trigger.text.empty() || !is_named(range.name, trigger.text))) continue;
    named_steps_ = true;
    step_took(trigger, ranges_[trigger.text], end - range.start, fmt::format("'{}'", range.name));
  }
}

// Its whole text is there.
void KeepConditions::end_of_marker() {
  const KeptRecord record = std::exchange(text_of_, {});
  std::string name = std::exchange(text_, {});
  name.resize(strnlen(name.data(), name.size()));
  if (record.kind == WatchRecordKind::kTrigger) {
    if (const KeepTrigger* const trigger = trigger_of(KeepCause::kProgram))
      fire_(*trigger, name.empty() ? "the program asked for it" : fmt::format("the program asked for it: '{}'", name),
            {});
    return;
  }
  markers_ = true;
  for (const KeepTrigger& trigger : triggers_)
    if (trigger.cause == KeepCause::kMarker && name == trigger.text)
      fire_(trigger,
            fmt::format("the program {} '{}'",
                        record.kind == WatchRecordKind::kMark ? "set the mark" : "began the range", name),
            {});
  constexpr size_t kDeepest = 256, kMostStarted = 4096;
  if (record.kind == WatchRecordKind::kPush) {
    std::vector<OpenMarker>& open = open_[{record.process, record.tid, record.call}];
    if (open.size() < kDeepest) open.push_back({ring_.time(record.start), std::move(name)});
  } else if (record.kind == WatchRecordKind::kStart && started_.size() < kMostStarted) {
    started_[record.ticket] = {ring_.time(record.start), std::move(name)};
  }
}

std::vector<std::string> KeepConditions::unjudged() const {
  std::vector<std::string> sentences;
  if (size_unknown_ && !size_known_)
    sentences.push_back(
        "--trigger memory could not be judged: the runtime does not say how much memory the device has");
  for (const KeepTrigger& trigger : triggers_) {
    if (trigger.cause == KeepCause::kMarker && !markers_)
      sentences.push_back(fmt::format("--trigger {}: the program set no markers", trigger.words));
    if (trigger.cause == KeepCause::kSlowStep && !trigger.text.empty() && !named_steps_)
      sentences.push_back(fmt::format("--trigger {}: the program ended no range '{}'{}", trigger.words, trigger.text,
                                      markers_ ? "" : ", and set no markers"));
    if (trigger.cause == KeepCause::kSlowStep && trigger.text.empty() && !known_steps_ && graphs_.empty())
      sentences.push_back(fmt::format("--trigger {}: the program had no steps: it launched no graph and ended no range "
                                      "'ProfilerStep#N'; slow-step:20%:RANGE takes ranges of its own",
                                      trigger.words));
  }
  return sentences;
}

}  // namespace tacho::watch
