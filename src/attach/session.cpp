// Recording of running programs (session.h).
#include "attach/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "attach/intruder.h"
#include "attach/listen_file.h"
#include "attach/listener.h"
#include "attach/own_folders.h"
#include "attach/steps.h"
#include "base/clock.h"
#include "launch/installation.h"
#include "launch/run/address_space.h"
#include "launch/run/drain_thread.h"
#include "launch/run/gaps.h"
#include "launch/run/gate.h"
#include "launch/run/pool_of_recording.h"
#include "launch/run/window_report.h"
#include "launch/signals.h"
#include "launch/telemetry.h"
#include "tape/gate.h"
#include "tape/sleep.h"

namespace tacho::attach {
namespace {

using event::Table;

// The process's own view of a file that tacho sees as `path`; "" where it does not see the same file.
std::string inner_path(pid_t pid, const std::string& path) {
  struct stat ours {
  }, theirs{};
  if (stat(path.c_str(), &ours) != 0 || stat(fmt::format("/proc/{}/root{}", pid, path).c_str(), &theirs) != 0)
    return {};
  return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev ? path : std::string();
}

// A process that tacho is in.
struct Guest {
  TargetFacts facts;
  std::optional<RemoteMemory> memory;  // of one that listens it may not be shown
  bool outside = false;                // nothing of tacho's is in it

  bool is_gone() const {
    if (outside) return has_ended(facts);
    return memory ? memory->is_gone() : has_ended(facts) || !listener_of(facts.pid, facts.inner_pid);
  }
};

class Session {
 public:
  explicit Session(const SessionOptions& options) : options_(options), recording_(options.recording) {
    // Recording stops before the launch after the last one that is wanted.
    if (options.launches == 0 || recording_.stop_trigger.kind != launch::Trigger::Kind::kNone) return;
    recording_.stop_trigger.kind = launch::Trigger::Kind::kLaunch;
    recording_.stop_trigger.launch = options.launches + 1;
  }

  Result<SessionResult> run() {
    begin_ = raw_now();
    TACHO_TRY(launch::check(recording_));
    if (options_.begin_at != 0 && !recording_.periods.empty())
      return fail("--at and collection periods both say when recording begins; give one of them");
    result_.warnings = options_.left;
    TACHO_TRY(look_at_targets());
    // All begin together: not before tacho is in the last of them.
    if (options_.begin_at != 0 || (result_.targets.size() > 1 && recording_.periods.empty()))
      recording_.delay_s = std::max(recording_.delay_s, kSoon);
    TACHO_ASSIGN(library_, launch::find_library());
    // From here on nothing ends tacho before the trace is written and the pool is removed.
    launch::SignalInbox signals;
    if (signals.descriptor() < 0) return fail("signalfd: {}", strerror(errno));
    const launch::TargetLimits limits;
    TACHO_ASSIGN(const launch::Room room, launch::address_space(recording_, limits));
    TACHO_ASSIGN(tape::Pool pool, make_pool(room.pool_max));
    TACHO_ASSIGN(const auto writer, trace::TraceWriter::create(recording_.output, recording_.writer));
    describe_recording(*writer, recording_, command_of(result_.targets.front().pid));
    launch::Telemetry telemetry(recording_.telemetry);
    telemetry.obey(pool.header().enabled);
    telemetry.start(result_.targets.front().pid);
    launch::DrainThread drain(pool, *writer, telemetry, nullptr, options_.samples);
    if (Status in = options_.stay_out ? stay_out() : enter_all(); !in) {
      let_go(pool);
      telemetry.stop();
      drain.stop();
      return fail_with(std::move(in));
    }
    at_step("attached");
    set_begin();
    if (options_.samples != nullptr) options_.samples->start();
    if (options_.begun) options_.begun(result_);
    wait_for_end(pool.header(), signals);
    let_go(pool);
    if (options_.samples != nullptr) options_.samples->stop();
    telemetry.stop();
    drain.stop();
    finish(pool, *writer, telemetry, drain);
    return std::move(result_);
  }

 private:
  static constexpr double kSoon = 1e-6;  // s

  // Those that tacho may attach to. One pool serves them all, in a folder that all see.
  Status look_at_targets() {
    const bool several = options_.processes.size() > 1;
    Status refused;
    for (const pid_t pid : options_.processes) {
      const auto leave_out = [&](const std::string& why) {
        if (refused) refused = fail("{}", why);
        result_.warnings.push_back(fmt::format("process {} was left out: {}", pid, why));
      };
      auto facts = look_at(pid);
      if (!facts) {
        leave_out(facts.error().message);
      } else if (const Status good = options_.stay_out ? alive(*facts) : permitted_to_attach(*facts); !good) {
        leave_out(good.error().message);
      } else if (!options_.stay_out && !result_.targets.empty() && !see_the_same(result_.targets.front(), *facts)) {
        leave_out(fmt::format("it does not see the same files as process {} (containers); attach to it by itself",
                              result_.targets.front().pid));
      } else {
        result_.targets.push_back(std::move(*facts));
      }
    }
    if (!result_.targets.empty()) return {};
    if (several && !refused)
      return fail("none of the {} processes can be attached to; the first: {}", options_.processes.size(),
                  refused.error().message);
    return refused;
  }

  // What is looked at from outside only has to be there.
  static Status alive(const TargetFacts& facts) {
    if (facts.state == 'Z' || facts.state == 'X') return fail("process {} has ended", facts.pid);
    if (facts.process != facts.pid)
      return fail("{} is a thread of process {}: give that number", facts.pid, facts.process);
    return {};
  }

  static bool see_the_same(const TargetFacts& one, const TargetFacts& other) {
    return one.own_files == other.own_files && (!one.own_files || same_files(one.pid, other.pid));
  }

  // The moment that the user gave, as a delay from now.
  void set_begin() {
    recording_.delay_s = options_.recording.delay_s;
    if (options_.begin_at == 0) {
      if (result_.targets.size() > 1 && recording_.periods.empty())
        recording_.delay_s = std::max(recording_.delay_s, kSoon);
      return;
    }
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t left = options_.begin_at - (int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
    if (left < 0)
      result_.warnings.push_back(fmt::format("the moment of --at had passed by {:.2f} s when tacho was in: recording "
                                             "began at once",
                                             static_cast<double>(-left) * 1e-9));
    recording_.delay_option = "--at";
    recording_.delay_s += std::max(static_cast<double>(left) * 1e-9, kSoon);
  }

  Result<tape::Pool> make_pool(uint64_t max_bytes) {
    const TargetFacts& first = result_.targets.front();
    if (options_.stay_out) return launch::make_pool(recording_, max_bytes, {});
    if (first.own_files) own_folders_ = OwnFolders(first.pid);
    TACHO_ASSIGN(tape::Pool pool, launch::make_pool(recording_, max_bytes, own_folders_.ours()));
    const auto inner = first.own_files ? own_folders_.theirs(pool.path()) : std::optional(pool.path());
    if (!inner)
      return fail("process {} has no folder in which tacho could put the pool (its /dev/shm and /tmp are read-only, "
                  "full or links)",
                  first.pid);
    inner_pool_ = *inner;
    if (first.users[1] != geteuid() && !pool.give_to(first.users[1], first.groups[1]))
      return fail("the pool cannot be given to the user of process {}: {}", first.pid, strerror(errno));
    return pool;
  }

  static bool same_files(pid_t one, pid_t other) {
    struct stat a {
    }, b{};
    return stat(fmt::format("/proc/{}/root/", one).c_str(), &a) == 0 &&
           stat(fmt::format("/proc/{}/root/", other).c_str(), &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
  }

  Status stay_out() {
    for (const TargetFacts& target : result_.targets) {
      guests_.push_back({target, std::nullopt, true});
      commands_[target.pid] = command_of(target.pid);
    }
    result_.attached_s = static_cast<double>(raw_now() - begin_) * 1e-9;
    return {};
  }

  Status enter_all() {
    EnterRequest request;
    request.library = library_;
    request.pool = inner_pool_;
    std::vector<TargetFacts> in;
    std::string refused;
    for (const TargetFacts& target : result_.targets) {
      request.inner_library = inner_path(target.pid, library_);
      const auto listener = listener_of(target.pid, target.inner_pid);
      const auto entered = listener ? ask(target, *listener, request) : enter(target, request);
      if (!entered) {
        if (result_.targets.size() == 1) return fail("{}", entered.error().message);
        result_.warnings.push_back(fmt::format("process {} was left out: {}", target.pid, entered.error().message));
        refused = entered.error().message;
        continue;
      }
      result_.attached_s = static_cast<double>(raw_now() - begin_) * 1e-9;
      result_.stopped_s = std::max(result_.stopped_s, entered->stopped_s);
      result_.stops += entered->attempts;
      auto memory = RemoteMemory::open(target.pid);
      // One that listens may not show its memory.
      guests_.push_back({target, memory ? std::optional(std::move(*memory)) : std::nullopt, false});
      in.push_back(target);
    }
    if (in.empty()) return fail("{}", refused);
    result_.targets = std::move(in);
    return {};
  }

  // Processes that have ended or run another program since: nothing of tacho's is in them.
  uint32_t gone() const {
    return static_cast<uint32_t>(std::count_if(guests_.begin(), guests_.end(), std::mem_fn(&Guest::is_gone)));
  }
  bool all_gone() const { return gone() == guests_.size(); }

  // True after Enter. At the end of the input there will be none: it is not looked at any more.
  static bool read_line(int& from) {
    if (tcgetpgrp(from) != getpgrp()) {  // in the background, where reading would stop tacho
      from = -1;
      return false;
    }
    std::array<char, 256> text;
    const ssize_t size = read(from, text.data(), text.size());
    if (size <= 0 && errno != EINTR) from = -1;
    return size > 0 && memchr(text.data(), '\n', static_cast<size_t>(size)) != nullptr;
  }

  // The launch after the last one that is wanted closes recording by itself, exactly; the program may make none.
  bool has_launched(const tape::PoolHeader& header) {
    const uint64_t launches = header.launches.load(std::memory_order_relaxed);
    if (launches != options_.launches) return launches > options_.launches;
    constexpr int64_t kPatience = 200'000'000;  // ns
    if (launched_ == 0) launched_ = raw_now();
    return raw_now() - launched_ > kPatience;
  }

  void wait_for_end(tape::PoolHeader& header, launch::SignalInbox& signals) {
    launch::Gate gate(header, recording_);
    const int64_t begin = raw_now();
    const double limit = recording_.duration_s > 0 ? recording_.delay_s + recording_.duration_s : 0;
    int enter = options_.enter;
    for (bool asked = false; !asked;) {
      const int change_ms = gate.tick();
      const double left = limit - static_cast<double>(raw_now() - begin) * 1e-9;
      if (limit > 0 && left <= 0) break;
      int wait_ms = options_.launches != 0 ? 5 : 100;
      if (change_ms >= 0) wait_ms = std::min(wait_ms, change_ms);
      if (limit > 0) wait_ms = std::min(wait_ms, static_cast<int>(std::ceil(left * 1000)));
      std::array<pollfd, 2> wait = {{{signals.descriptor(), POLLIN, 0}, {enter, POLLIN, 0}}};
      poll(wait.data(), wait.size(), wait_ms);
      if (wait[1].revents != 0) asked = read_line(enter);
      while (const auto signal = signals.next())
        asked = asked || signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGHUP ||
                signal->number == SIGQUIT;
      release_late_threads();
      if (options_.launches != 0 && has_launched(header)) break;
      if (all_gone()) {
        result_.ended = true;
        break;
      }
    }
    result_.seconds = static_cast<double>(raw_now() - begin) * 1e-9;
  }

  // Whether no process that lives has the pool mapped.
  bool nobody_holds(const tape::Pool& pool) const {
    const std::string name = pool.path().substr(pool.path().rfind('/') + 1);
    for (const Guest& guest : guests_) {
      std::ifstream maps(fmt::format("/proc/{}/maps", guest.facts.pid));
      for (std::string line; !guest.is_gone() && std::getline(maps, line);)
        if (line.ends_with(name)) return false;
    }
    return true;
  }

  // Says of which processes the end was not the program's.
  void tell_other_programs() {
    for (const Guest& guest : guests_)
      if (!guest.outside && guest.is_gone() && has_memory(guest.facts.pid))
        result_.warnings.push_back(fmt::format("process {} began to run another program (exec) while tacho was "
                                               "attached: tacho's library went with the one before",
                                               guest.facts.pid));
  }

  // Asks the processes to take everything away, and waits for those that live.
  void let_go(tape::Pool& pool) {
    at_step("leaving");
    tape::PoolHeader& header = pool.header();
    tape::set_gate(header, tape::gate::kTime, false);
    header.closing.store(1, std::memory_order_release);
    tape::wake_all(header.closing);
    constexpr int64_t kPatience = 10'000'000'000;
    const int64_t begin = raw_now();
    for (uint32_t left = 0; (left = header.guests.load(std::memory_order_acquire)) != 0;) {
      tape::wait_on(header.guests, left, 20'000'000);
      // Those that have gone do not say so, and may have let go before.
      if (left <= gone() && nobody_holds(pool)) break;
      if (raw_now() - begin < kPatience) continue;
      result_.warnings.push_back(
          fmt::format("{} process{} not let tacho go within {} s: a call into a vendor's library "
                      "does not return; tacho's functions are still in {}",
                      left, left == 1 ? " has" : "es have", kPatience / 1'000'000'000, left == 1 ? "it" : "them"));
      break;
    }
  }

  // Of a process that nobody in it has told of.
  int64_t row_of(const TargetFacts& facts, trace::TraceWriter& writer) const {
    std::string command;
    for (const std::string& word : commands_.at(facts.pid)) command += (command.empty() ? "" : " ") + word;
    return writer.dimension(event::row::Process{.pid = facts.inner_pid != 0 ? facts.inner_pid : facts.pid,
                                                .parent_pid = facts.parent,
                                                .start = begin_,
                                                .name = writer.string(facts.name),
                                                .command = writer.string(command)});
  }

  // Of a trace without events, of which none was lost.
  void tell_nothing(const trace::TraceWriter& writer) {
    if (options_.stay_out || recording_.writer.aggregate) return;
    if (writer.rows(Table::kLoss) > 0) return;
    for (const event::TableInfo& table : event::all_tables())
      if (table.timed && writer.rows(table.table) > 0) return;
    const bool one = result_.targets.size() == 1;
    const bool sampled = recording_.target.sampler != event::Sampler::kOff;
    result_.warnings.push_back(
        fmt::format("while tacho was attached the program{} did nothing that tacho sees and was asked to record: the "
                    "trace has no events{}",
                    one ? "" : "s", sampled ? "" : " (--sampler timer records the call stacks of what computes)"));
  }

  void finish(tape::Pool& pool, trace::TraceWriter& writer, launch::Telemetry& telemetry, launch::DrainThread& drain) {
    at_step("left");
    tell_other_programs();
    result_.recorded = drain.decoder().processes();
    std::map<uint32_t, int64_t> rows;
    for (const Guest& guest : guests_)
      if (guest.outside) rows[static_cast<uint32_t>(guest.facts.pid)] = row_of(guest.facts, writer);
    for (const decode::ProcessFacts& process : result_.recorded) rows[process.pid] = process.row;
    telemetry.finish(writer, rows);
    if (options_.samples != nullptr) options_.samples->finish(writer);
    launch::count_losses(pool, writer, drain.decoder());
    if (std::string never = launch::never_began(recording_, pool.header(), result_.seconds); !never.empty())
      result_.warnings.push_back(std::move(never));
    else
      tell_nothing(writer);
    for (const std::string& warning : result_.warnings) writer.note(0, event::NoteSeverity::kWarning, warning);
    const auto about = [&](std::string_view key, const std::string& value) {
      writer.property(Table::kEnd, 0, key, value);
    };
    about("attached", "1");
    if (options_.stay_out) about("attach.stayed_out", "1");
    about("attach.threads_stopped_ms", fmt::format("{:.3f}", result_.stopped_s * 1e3));
    about("attach.threads_stopped", fmt::format("{}", result_.stops));
    about("attach.attached_ms", fmt::format("{:.3f}", result_.attached_s * 1e3));
    if (options_.begin_at != 0) about("attach.begin_unix_ns", fmt::format("{}", options_.begin_at));
    about("target_seconds", fmt::format("{:.6f}", result_.seconds));
    about("pool_bytes", fmt::format("{}", drain.bytes()));
    about("drain_cpu_seconds", fmt::format("{:.6f}", drain.cpu_s()));
    about("pid", fmt::format("{}", result_.targets.front().pid));
    result_.written = writer.finish();
    pool.unlink();
  }

  const SessionOptions& options_;
  launch::Recording recording_;
  SessionResult result_;
  std::vector<Guest> guests_;                           // of result_.targets
  std::map<pid_t, std::vector<std::string>> commands_;  // of those that nothing enters
  OwnFolders own_folders_;                              // of processes with files of their own
  std::string library_, inner_pool_;                    // the pool's path as the processes see it
  int64_t begin_ = 0, launched_ = 0;
};

}  // namespace

Result<SessionResult> record(const SessionOptions& options) {
  return Session(options).run();
}

}  // namespace tacho::attach
