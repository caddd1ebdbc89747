// Following the ring and writing files (recorder.h).
#include "watch/recorder/recorder.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "base/text/how_many.h"
#include "base/thread.h"
#include "vendor/definitions.h"
#include "vendor/lost_devices.h"

namespace tacho::watch {
namespace {

using event::WatchRecordKind;

int64_t whole_ns(double seconds) {
  return static_cast<int64_t>(seconds * 1e9);
}

std::string bytes_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1ull << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
  if (bytes >= 1ull << 20) return fmt::format("{:.2f} MiB", value / (1 << 20));
  return fmt::format("{:.2f} KiB", value / (1 << 10));
}

}  // namespace

// A file that a thread writes.
struct Recorder::Writing {
  std::thread thread;
  OutputClaim claim;
  KeptExcerpt excerpt;
  int64_t began = 0;
  Result<KeptCounts> result = KeptCounts{};
  int64_t ended = 0;
  std::atomic<bool> done{false};
};

Result<std::unique_ptr<Recorder>> Recorder::create(const WatchSegment& segment, const KeepOptions& options,
                                                   const std::vector<std::string>& command) {
  if (!options.folder.empty()) TACHO_TRY(may_write(options.folder + "/watch.tacho", true));
  TACHO_ASSIGN(RingFile ring, RingFile::create(segment.path(), options.bytes));
  return std::unique_ptr<Recorder>(new Recorder(segment, std::move(ring), options, command));
}

Recorder::Recorder(const WatchSegment& segment, RingFile ring, const KeepOptions& options,
                   std::vector<std::string> command)
    : segment_(segment),
      ring_(std::move(ring)),
      options_(options),
      command_(std::move(command)),
      stream_(ring_),
      conditions_(segment.table(), ring_, options_.triggers,
                  [this](const KeepTrigger& trigger, const std::string& why, std::vector<std::string> further) {
                    fire(trigger.cause, trigger.words, why,
                         trigger.cause == KeepCause::kMemory ? owners() : std::move(further));
                  }),
      began_(raw_now()) {}

Recorder::~Recorder() {
  if (writing_ && writing_->thread.joinable()) writing_->thread.join();
}

const KeepTrigger* Recorder::trigger_of(KeepCause cause) const {
  const auto found = std::find_if(options_.triggers.begin(), options_.triggers.end(),
                                  [&](const KeepTrigger& each) { return each.cause == cause; });
  return found == options_.triggers.end() ? nullptr : &*found;
}

bool Recorder::takes(int signal) {
  for (const KeepTrigger& trigger : options_.triggers) {
    if (trigger.cause != KeepCause::kSignal || trigger.signal != signal) continue;
    fire(KeepCause::kSignal, trigger.words, fmt::format("tacho got SIG{}", sigabbrev_np(signal)));
    return true;
  }
  return false;
}

void Recorder::ask() {
  fire(KeepCause::kKey, "key", "a key was pressed on the page");
}

void Recorder::fire(KeepCause cause, const std::string& words, const std::string& why,
                    std::vector<std::string> further) {
  const int64_t now = raw_now();
  const bool asked = cause == KeepCause::kKey || cause == KeepCause::kSignal || cause == KeepCause::kProgram;
  if (pending_) {  // the file that is coming shows this, too
    if (pending_->excerpt.trigger != words) {
      pending_->excerpt.further.push_back(
          fmt::format("{:.3f} s after that: {}", static_cast<double>(now - pending_->excerpt.at) * 1e-9, why));
      for (std::string& sentence : further) pending_->excerpt.further.push_back(std::move(sentence));
    }
    return;
  }
  int64_t& quiet_until = quiet_until_[words];
  if (!asked && now < quiet_until) return;
  quiet_until = now + whole_ns(options_.seconds + options_.after_s);
  if (files_ == options_.most_files) {
    if (refused_++ == 0)
      messages_.push_back(fmt::format("{}: no further file, since there are {} (--max-files)", why, files_));
    return;
  }
  KeptExcerpt excerpt;
  excerpt.path = cause_word(cause);
  excerpt.why = why;
  excerpt.trigger = words;
  excerpt.further = std::move(further);
  excerpt.at = now;
  if (cause == KeepCause::kOutOfMemory || cause == KeepCause::kMemory)
    for (const auto& [address, memory] : live_) excerpt.live.push_back(memory);
  begin_file(std::move(excerpt));
}

// What the ring has of the time before the trigger; what follows comes from the stream.
void Recorder::begin_file(KeptExcerpt excerpt) {
  ring_.follow();
  excerpt.from = std::max(began_, excerpt.at - whole_ns(options_.seconds));
  excerpt.complete_from = excerpt.from;
  const uint64_t last = stream_.next() - 1;
  const uint64_t first = last > ring_.capacity() ? last - ring_.capacity() + 1 : 1;
  KeptRecord record;
  bool any = false;
  for (uint64_t ticket = first; ticket <= last; ++ticket) {
    if (ring_.read(ticket, record) != RingFile::Found::kWhole) continue;
    const bool marker = record.kind >= WatchRecordKind::kPush;
    const int64_t time = record.kind == WatchRecordKind::kTimes ? static_cast<int64_t>(record.end)
                                                                : ring_.time(marker ? record.start : record.end);
    if (!any && record.kind != WatchRecordKind::kText) {
      any = true;
      if (first > 1) excerpt.complete_from = std::max(excerpt.from, time);
    }
    // The times of what was called shortly before, and texts of markers, come along with the next ones.
    if (time < excerpt.from && record.kind != WatchRecordKind::kText) continue;
    if (record.kind == WatchRecordKind::kText && excerpt.records.empty()) continue;
    excerpt.records.push_back(record);
  }
  const uint64_t first_kept = excerpt.records.empty() ? UINT64_MAX : excerpt.records.front().ticket;
  std::erase_if(excerpt.live, [&](const LiveMemory& each) { return each.allocated.ticket >= first_kept; });
  Pending pending;
  pending.deadline = excerpt.at + whole_ns(options_.after_s);
  pending.excerpt = std::move(excerpt);
  pending_ = std::move(pending);
}

void Recorder::observe(const KeptRecord& record) {
  // What makes a new file gets into it from the ring.
  if (pending_) pending_->excerpt.records.push_back(record);
  if (record.result != 0) observe_failure(record);
  follow_memory(record);
  conditions_.observe(record);
}

void Recorder::observe_failure(const KeptRecord& record) {
  if (record.call == 0 || record.call > event::kWatchCalls) return;
  const event::WatchCall& call = ring_.ring().calls[record.call - 1];
  const auto domain = static_cast<event::Domain>(call.domain);
  const std::string name(call.name, strnlen(call.name, sizeof call.name));
  if (vendor::out_of_memory(domain, record.result)) {
    const KeepTrigger* const trigger = trigger_of(KeepCause::kOutOfMemory);
    if (trigger != nullptr)
      fire(KeepCause::kOutOfMemory, trigger->words,
           record.kind == WatchRecordKind::kAllocate
               ? fmt::format("{} found no memory: it asked for {}", name, bytes_text(record.amount))
               : fmt::format("{} found no memory", name),
           owners());
    return;
  }
  const std::string_view what = vendor::lost_device(record.result);
  const KeepTrigger* const trigger = what.empty() ? nullptr : trigger_of(KeepCause::kCrash);
  if (trigger != nullptr)
    fire(KeepCause::kCrash, trigger->words, fmt::format("{} reported {} (result {})", name, what, record.result));
}

void Recorder::follow_memory(const KeptRecord& record) {
  constexpr size_t kMostLive = 1 << 20;
  const std::pair<uint16_t, uint64_t> key{record.process, record.object};
  if (record.kind == WatchRecordKind::kAllocate && record.result == 0) {
    if (live_.size() < kMostLive)
      live_[key] = {record};
    else
      ++unfollowed_;
  } else if (record.kind == WatchRecordKind::kFree && record.result == 0) {
    live_.erase(key);
  }
}

// Who holds memory: by process and call, most first.
std::vector<std::string> Recorder::owners() const {
  struct Sum {
    uint64_t bytes = 0, count = 0, largest = 0;
    std::pair<uint16_t, uint16_t> of;
  };
  std::map<std::pair<uint16_t, uint16_t>, Sum> sums;
  uint64_t all = 0;
  for (const auto& [key, memory] : live_) {
    Sum& sum = sums[{key.first, memory.allocated.call}];
    sum.of = {key.first, memory.allocated.call};
    sum.bytes += memory.allocated.amount;
    ++sum.count;
    sum.largest = std::max(sum.largest, memory.allocated.amount);
    all += memory.allocated.amount;
  }
  std::vector<Sum> order;
  for (const auto& [key, sum] : sums) order.push_back(sum);
  std::sort(order.begin(), order.end(), [](const Sum& a, const Sum& b) { return a.bytes > b.bytes; });
  std::vector<std::string> sentences{fmt::format("{} of device memory in {} allocation{} were not given back",
                                                 bytes_text(all), live_.size(), live_.size() == 1 ? "" : "s")};
  constexpr size_t kMostOwners = 8;
  for (size_t i = 0; i < std::min(order.size(), kMostOwners); ++i) {
    const auto [process, call] = order[i].of;
    const event::WatchCall* const known =
        call != 0 && call <= event::kWatchCalls ? &ring_.ring().calls[call - 1] : nullptr;
    sentences.push_back(fmt::format(
        "{} in {} allocation{} by {} of process {}, the largest {}", bytes_text(order[i].bytes), order[i].count,
        order[i].count == 1 ? "" : "s",
        known != nullptr ? std::string(known->name, strnlen(known->name, sizeof known->name)) : "an unknown call",
        process < event::kWatchProcesses ? segment_.table().processes[process].pid.load(std::memory_order_relaxed) : 0,
        bytes_text(order[i].largest)));
  }
  if (unfollowed_ > 0)
    sentences.push_back(how_many(unfollowed_, "further allocation was", "further allocations were") + " not followed");
  return sentences;
}

void Recorder::follow(bool final) {
  ring_.follow();
  stream_.poll([this](const KeptRecord& record) { observe(record); }, final);
}

void Recorder::step() {
  collect();
  follow(false);
  conditions_.step(raw_now());
  if (pending_ && raw_now() >= pending_->deadline && !writing_) write_pending();
}

void Recorder::crashed(const std::string& why) {
  follow(false);
  if (const KeepTrigger* const trigger = trigger_of(KeepCause::kCrash)) fire(KeepCause::kCrash, trigger->words, why);
}

void Recorder::ended(int status, const std::string& what) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : code > 128 ? code - 128 : 0;
  // SIGKILL is the kernel's when memory is short. The others are faults, or what meant to end the program.
  const bool crash = number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGFPE ||
                     number == SIGILL || number == SIGKILL || number == SIGTRAP || number == SIGSYS;
  if (crash) crashed(fmt::format("SIG{} ended {}", sigabbrev_np(number), what));
}

void Recorder::end() {
  follow(true);
  if (pending_) {
    if (writing_) {
      writing_->thread.join();
      collect();
    }
    write_pending();
  }
  if (writing_) {
    writing_->thread.join();
    collect();
  }
  for (std::string& sentence : conditions_.unjudged()) messages_.push_back(std::move(sentence));
  if (refused_ > 1) messages_.push_back(fmt::format("{} triggers came after the last file (--max-files)", refused_));
}

void Recorder::write_pending() {
  KeptExcerpt excerpt = std::move(pending_->excerpt);
  pending_.reset();
  excerpt.to = std::max(excerpt.at, std::min(raw_now(), excerpt.at + whole_ns(options_.after_s)));
  excerpt.overwritten = stream_.overwritten() - std::exchange(told_overwritten_, stream_.overwritten());
  excerpt.unfinished = stream_.unfinished() - std::exchange(told_unfinished_, stream_.unfinished());
  const std::string name =
      fmt::format("{}{}watch-{}.tacho", options_.folder, options_.folder.empty() ? "" : "/", excerpt.path);
  auto claim = OutputClaim::numbered(name);
  if (!claim) {
    messages_.push_back(fmt::format("{}: no file: {}", excerpt.why, claim.error().message));
    return;
  }
  excerpt.path = claim->name();
  ++files_;
  writing_ = std::make_unique<Writing>();
  writing_->claim = std::move(*claim);
  writing_->excerpt = std::move(excerpt);
  writing_->began = raw_now();
  writing_->thread = thread_without_signals([this, writing = writing_.get()] {
    writing->result = write_kept(writing->excerpt, segment_.table(), ring_, command_);
    writing->ended = raw_now();
    writing->done.store(true, std::memory_order_release);
  });
}

// Says what became of a file.
void Recorder::collect() {
  if (!writing_ || !writing_->done.load(std::memory_order_acquire)) return;
  if (writing_->thread.joinable()) writing_->thread.join();
  const KeptExcerpt& excerpt = writing_->excerpt;
  if (writing_->result)
    messages_.push_back(fmt::format(
        "{}: {}; {} operation{} of the {:.1f} s before it and the {:.1f} s after it, written in {:.2f} s", excerpt.path,
        excerpt.why, writing_->result->operations, writing_->result->operations == 1 ? "" : "s",
        static_cast<double>(excerpt.at - excerpt.complete_from) * 1e-9,
        static_cast<double>(excerpt.to - excerpt.at) * 1e-9,
        static_cast<double>(writing_->ended - writing_->began) * 1e-9));
  else
    messages_.push_back(fmt::format("{}: {}; the program goes on", excerpt.why, writing_->result.error().message));
  writing_.reset();
}

std::vector<std::string> Recorder::messages() {
  return std::exchange(messages_, {});
}

}  // namespace tacho::watch
