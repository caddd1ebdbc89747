// Entering and leaving programs that run (running.h).
#include "watch/running.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "attach/intruder.h"
#include "attach/own_folders.h"
#include "attach/remote_memory.h"
#include "attach/steps.h"
#include "attach/target.h"
#include "base/clock.h"
#include "launch/signals.h"
#include "tape/sleep.h"
#include "watch/entries/entry_patches.h"
#include "watch/entries/stopped_process.h"

namespace tacho::watch {
namespace {

using attach::TargetFacts;

bool same_file(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

// How a process ended, while its parent has not asked yet: a status as wait() gives it.
std::optional<int> status_of(const TargetFacts& facts) {
  std::ifstream file(fmt::format("/proc/{}/stat", facts.pid));
  std::string text;
  if (!std::getline(file, text) || text.rfind(')') == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(text.rfind(')') + 1));
  std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
  // From field 3 on: the state, ... 22: when it was started, ... 52: its status.
  constexpr size_t kState = 0, kStarted = 19, kStatus = 49;
  int status = 0;
  if (fields.size() <= kStatus || fields[kState] != "Z" || fields[kStarted] != fmt::format("{}", facts.started))
    return std::nullopt;
  const std::string& last = fields[kStatus];
  if (std::from_chars(last.data(), last.data() + last.size(), status).ec != std::errc()) return std::nullopt;
  return status;
}

// A process that tacho is in.
struct Guest {
  TargetFacts facts;
  std::optional<attach::RemoteMemory> memory;  // of the program that it was: exec takes another one
  std::optional<EntryPatches> patches;

  bool told = false;  // the recorder knows that it has ended

  bool is_gone() const { return memory ? memory->is_gone() : attach::has_ended(facts); }
  bool runs_another_program() const { return is_gone() && !attach::has_ended(facts); }
};

class RunningWatch {
 public:
  explicit RunningWatch(const RunningOptions& options) : options_(options) {}

  Result<RunningResult> run() {
    const int64_t began = raw_now();
    TACHO_TRY(look_at_targets());
    TACHO_ASSIGN(library_, find_watch_library());
    // From here on nothing ends tacho before it has left the processes.
    launch::SignalInbox signals;
    if (signals.descriptor() < 0) return fail("signalfd: {}", strerror(errno));
    TACHO_ASSIGN(WatchSegment segment, make_segment());
    TACHO_TRY(make_recorder(segment));
    WatchedPrograms programs;
    programs.descriptor = signals.descriptor();
    programs.begin = [&]() -> tl::expected<void, launch::LaunchError> {
      if (Status in = enter_all(segment); !in) return tl::unexpected(launch::LaunchError(std::move(in.error())));
      attach::at_step("attached");
      if (options_.entered) options_.entered(sentences(began));
      return {};
    };
    const int64_t begin = raw_now();
    programs.ended = [&] {
      attach::release_late_threads();
      release_late();
      serve_patches();
      const double passed = static_cast<double>(raw_now() - begin) * 1e-9;
      if (asked_to_end(signals) || all_gone() || (options_.duration_s > 0 && passed >= options_.duration_s))
        return true;
      look_for_more(segment);
      if (recorder_) {
        tell_ends(segment);
        keep_on(*recorder_, options_.watch);
      }
      return false;
    };
    programs.leave = [&] {
      attach::at_step("leaving");
      if (recorder_) tell_ends(segment);
      leave_all(segment);
      attach::at_step("left");
      if (recorder_) keep_no_more(*recorder_, options_.watch);
    };
    auto last = watch_table(segment, options_.watch, programs);
    if (!last) return fail("{}", last.error().message);
    result_.last = std::move(*last);
    return std::move(result_);
  }

 private:
  // Those that tacho may enter. One table serves them all, in a folder that all see.
  Status look_at_targets() {
    Status refused;
    for (const pid_t pid : options_.processes) {
      const auto leave_out = [&](const std::string& why) {
        if (refused) refused = fail("{}", why);
        left_.push_back(fmt::format("process {} was left out: {}", pid, why));
      };
      auto facts = attach::look_at(pid);
      if (facts) known_.emplace(facts->pid, facts->started);
      if (!facts)
        leave_out(facts.error().message);
      else if (const Status good = attach::permitted_to_attach(*facts); !good)
        leave_out(good.error().message);
      else if (!targets_.empty() && !see_the_same(targets_.front(), *facts))
        leave_out(fmt::format("it does not see the same files as process {} (containers); watch it by itself",
                              targets_.front().pid));
      else
        targets_.push_back(std::move(*facts));
    }
    if (!targets_.empty()) return {};
    if (options_.processes.size() > 1 && !refused)
      return fail("none of the {} processes can be watched; the first: {}", options_.processes.size(),
                  refused.error().message);
    return refused;
  }

  static bool see_the_same(const TargetFacts& one, const TargetFacts& other) {
    return one.own_files == other.own_files && (!one.own_files || same_file(fmt::format("/proc/{}/root/", one.pid),
                                                                            fmt::format("/proc/{}/root/", other.pid)));
  }

  Result<WatchSegment> make_segment() {
    const TargetFacts& first = targets_.front();
    if (first.own_files) own_folders_ = attach::OwnFolders(first.pid);
    const std::vector<std::string> folders = own_folders_.ours();
    if (first.own_files && folders.empty())
      return fail(
          "process {} has no folder in which tacho could put the table of sums (its /dev/shm and /tmp are links)",
          first.pid);
    TACHO_ASSIGN(WatchSegment segment, WatchSegment::create_in(folders));
    inner_table_ = own_folders_.theirs(segment.path()).value_or(segment.path());
    segment.header().patches.store(options_.patch_entries ? 1 : 0, std::memory_order_relaxed);
    if (first.users[1] != geteuid() && !segment.give_to(first.users[1], first.groups[1]))
      return fail("the table of sums cannot be given to the user of process {}: {}", first.pid, strerror(errno));
    return segment;
  }

  Status make_recorder(const WatchSegment& segment) {
    if (!options_.watch.keep) return {};
    TACHO_ASSIGN(recorder_, Recorder::create(segment, *options_.watch.keep, {options_.watch.title}));
    const TargetFacts& first = targets_.front();
    if (first.users[1] != geteuid() && !recorder_->give_to(first.users[1], first.groups[1]))
      return fail("what is kept cannot be given to the user of process {}: {}", first.pid, strerror(errno));
    return {};
  }

  // What became of processes that have ended. Only a process's parent is told its status, and tacho may see it before.
  void tell_ends(const WatchSegment& segment) {
    for (Guest& guest : guests_) {
      if (guest.told || !guest.is_gone() || guest.runs_another_program()) continue;
      guest.told = true;
      const auto known = std::find_if(
          std::begin(segment.table().processes), std::end(segment.table().processes),
          [&](const event::WatchProcess& each) { return each.pid == static_cast<uint32_t>(guest.facts.pid); });
      const bool in_order = known != std::end(segment.table().processes) && known->ended.load() == 1;
      const std::string who = fmt::format("process {} ({})", guest.facts.pid, guest.facts.name);
      // Not every system shows a status; 0 belongs to an end in order alone.
      const auto status = status_of(guest.facts);
      if (status && (*status != 0 || in_order))
        recorder_->ended(*status, who);
      else if (!in_order)
        recorder_->crashed(who + " ended, and not by exit(); only its parent knows by what");
    }
  }

  Status enter_all(WatchSegment& segment) {
    std::string refused;
    for (const TargetFacts& target : targets_) {
      const Status entered = enter_one(target, segment);
      if (entered) continue;
      refused = entered.error().message;
      left_.push_back(fmt::format("process {} was left out: {}", target.pid, refused));
    }
    if (guests_.empty()) return fail("{}", refused);
    return {};
  }

  Status enter_one(const TargetFacts& target, WatchSegment& segment) {
    attach::EnterRequest request;
    request.library = library_;
    request.entry = event::kWatchEntry;
    request.pool = inner_table_;
    const bool seen = same_file(library_, fmt::format("/proc/{}/root{}", target.pid, library_));
    request.inner_library = seen ? library_ : std::string();
    TACHO_ASSIGN(const attach::EnterResult entered, attach::enter(target, request));
    segment.set_pid(static_cast<uint32_t>(target.inner_pid), static_cast<uint32_t>(target.pid));
    stopped_s_ = std::max(stopped_s_, entered.stopped_s);
    auto memory = attach::RemoteMemory::open(target.pid);
    guests_.push_back({target, memory ? std::optional(std::move(*memory)) : std::nullopt, std::nullopt});
    const uint64_t block = segment.patches_of(static_cast<uint32_t>(target.pid));
    if (auto patches = EntryPatches::open(target.pid, block)) guests_.back().patches.emplace(std::move(*patches));
    if (options_.patch_entries) patch_at_once(guests_.back());
    return {};
  }

  // Calls are counted from here on.
  void patch_at_once(Guest& guest) {
    constexpr int64_t kPatience = 5'000'000'000;
    const int64_t begin = raw_now();
    do serve_patches(guest);
    while (guest.patches && !guest.patches->is_settled() && !guest.is_gone() && raw_now() - begin < kPatience);
  }
  void serve_patches() {
    if (!options_.patch_entries) return;
    for (Guest& guest : guests_) {
      const size_t before = guest.patches ? guest.patches->patched() : 0;
      serve_patches(guest);
      if (guest.patches && guest.patches->patched() != before && options_.entered)
        options_.entered({patch_sentence(guest)});
    }
  }
  void serve_patches(Guest& guest) {
    if (!guest.patches || guest.is_gone()) return;
    if (const Status served = guest.patches->serve(); !served && !guest.is_gone()) {
      result_.warnings.push_back(served.error().message);
      guest.patches.reset();
    }
  }

  // "78 functions of process 4711 were patched while all of its threads were stopped for 1.2 ms"
  static std::string patch_sentence(const Guest& guest) {
    const EntryPatches& patches = *guest.patches;
    std::string text =
        fmt::format("{} function{} of process {} {} patched", patches.patched(), patches.patched() == 1 ? "" : "s",
                    guest.facts.pid, patches.patched() == 1 ? "was" : "were");
    if (patches.patched() > 0)
      text += fmt::format(" while all of its threads were stopped for {:.1f} ms", patches.stopped_s() * 1e3);
    if (patches.refused().empty()) return text;
    text += fmt::format("; {} not be, and {} seen only where loaded libraries hold {}: ",
                        patches.refused().size() == 1 ? "one could" : fmt::format("{} could", patches.refused().size()),
                        patches.refused().size() == 1 ? "is" : "are",
                        patches.refused().size() == 1 ? "its address" : "their addresses");
    constexpr size_t kNamed = 3;
    for (size_t i = 0; i < std::min(kNamed, patches.refused().size()); ++i)
      text += (i == 0 ? "" : "; ") + patches.refused().at(i);
    if (patches.refused().size() > kNamed) text += fmt::format("; and {} more", patches.refused().size() - kNamed);
    return text;
  }

  // Processes that have come since. Those that are there at two looks are entered: not what ends at once.
  void look_for_more(WatchSegment& segment) {
    constexpr int64_t kBetween = 1'000'000'000;
    if (!options_.meant || raw_now() - looked_ < kBetween) return;
    looked_ = raw_now();
    std::set<std::pair<pid_t, uint64_t>> fresh;
    for (const pid_t pid : options_.meant()) {
      const auto facts = attach::look_at(pid);
      if (!facts || known_.count({pid, facts->started}) != 0) continue;
      if (fresh_.count({pid, facts->started}) == 0) {
        fresh.emplace(pid, facts->started);
        continue;
      }
      known_.emplace(pid, facts->started);
      const std::string sentence = enter_late(*facts, segment);
      if (options_.entered) options_.entered({sentence});
    }
    fresh_ = std::move(fresh);
  }

  std::string enter_late(const TargetFacts& target, WatchSegment& segment) {
    Status good = attach::permitted_to_attach(target);
    if (good && !see_the_same(targets_.front(), target))
      good =
          fail("it does not see the same files as process {} (containers); watch it by itself", targets_.front().pid);
    if (good) good = enter_one(target, segment);
    if (good) segment.note_child_of(static_cast<uint32_t>(target.parent));
    return good ? fmt::format("watching process {} ({}), too", target.pid, target.name)
                : fmt::format("process {} was left out: {}", target.pid, good.error().message);
  }

  // "watching process 4711 after 0.03 s; a thread of it was stopped for 0.9 ms"
  std::vector<std::string> sentences(int64_t began) const {
    std::vector<std::string> all = left_;
    std::string who = guests_.size() == 1 ? "process " : fmt::format("{} processes, ", guests_.size());
    constexpr size_t kNamed = 8;
    for (size_t i = 0; i < std::min(guests_.size(), kNamed); ++i)
      who += fmt::format("{}{}", i == 0 ? "" : ", ", guests_.at(i).facts.pid);
    if (guests_.size() > kNamed) who += ", ...";
    all.push_back(fmt::format("watching {} after {:.2f} s; a thread of {} was stopped for {}{:.1f} ms{}", who,
                              static_cast<double>(raw_now() - began) * 1e-9, guests_.size() == 1 ? "it" : "each",
                              guests_.size() == 1 ? "" : "at most ", stopped_s_ * 1e3,
                              options_.duration_s > 0 ? "" : "; Ctrl-C ends it"));
    for (const Guest& guest : guests_)
      if (guest.patches && guest.patches->patched() + guest.patches->refused().size() > 0)
        all.insert(all.end() - 1, patch_sentence(guest));
    return all;
  }

  bool asked_to_end(launch::SignalInbox& signals) {
    bool asked = false;
    while (const auto signal = signals.next())
      if (!recorder_ || !recorder_->takes(signal->number))
        asked = asked || signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGHUP ||
                signal->number == SIGQUIT;
    return asked;
  }

  uint32_t gone() const {
    return static_cast<uint32_t>(
        std::count_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.is_gone(); }));
  }
  bool all_gone() const { return gone() == guests_.size(); }

  // Asks the processes to take everything out, and waits for those that live.
  void leave_all(WatchSegment& segment) {
    event::WatchHeader& header = segment.header();
    header.closed.store(1, std::memory_order_release);
    tape::wake_all(header.closed);
    constexpr int64_t kPatience = 10'000'000'000;
    const int64_t begin = raw_now();
    for (uint32_t left = 0; (left = header.guests.load(std::memory_order_acquire)) > gone();) {
      const bool any = take_patches_out();
      tape::wait_on(header.guests, left, any ? 1'000'000 : 20'000'000);
      if (raw_now() - begin < kPatience) continue;
      result_.warnings.push_back(
          fmt::format("{} process{} not let tacho go within {} s: a call into a vendor's library does not return; "
                      "tacho's functions are still in {}",
                      left, left == 1 ? " has" : "es have", kPatience / 1'000'000'000, left == 1 ? "it" : "them"));
      break;
    }
    for (const Guest& guest : guests_)
      if (guest.runs_another_program())
        result_.warnings.push_back(
            fmt::format("process {} began to run another program (exec), which is not watched", guest.facts.pid));
  }

  // Of processes that wait for it. Whether any may wait yet.
  bool take_patches_out() {
    bool any = false;
    for (Guest& guest : guests_) {
      if (!guest.patches || guest.is_gone()) continue;
      any = true;
      if (!guest.patches->leaves()) continue;
      if (const Status out = guest.patches->take_out(); !out && !guest.is_gone())
        result_.warnings.push_back(out.error().message);
      guest.patches.reset();
    }
    return any;
  }

  const RunningOptions& options_;
  RunningResult result_;
  std::unique_ptr<Recorder> recorder_;
  std::vector<TargetFacts> targets_;
  std::vector<Guest> guests_;
  std::vector<std::string> left_;
  attach::OwnFolders own_folders_;     // of processes with files of their own
  std::string library_, inner_table_;  // the table's path as the processes see it
  double stopped_s_ = 0;
  std::set<std::pair<pid_t, uint64_t>> known_, fresh_;  // by number and start: entered or left out; seen once
  int64_t looked_ = raw_now();
};

}  // namespace

Result<RunningResult> watch_running(const RunningOptions& options) {
  return RunningWatch(options).run();
}

}  // namespace tacho::watch
