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
#include <cmath>
#include <map>
#include <memory>

#include "attach/intruder.h"
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
    for (const pid_t pid : options_.processes) {
      TACHO_ASSIGN(TargetFacts facts, look_at(pid));
      TACHO_TRY(permitted_to_attach(facts));
      result_.targets.push_back(std::move(facts));
    }
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
    launch::DrainThread drain(pool, *writer, telemetry, nullptr);
    if (Status in = enter_all(pool); !in) {
      let_go(pool);
      telemetry.stop();
      drain.stop();
      return fail_with(std::move(in));
    }
    if (options_.begun) options_.begun();
    wait_for_end(pool.header(), signals);
    let_go(pool);
    telemetry.stop();
    drain.stop();
    finish(pool, *writer, telemetry, drain);
    return std::move(result_);
  }

 private:
  // In a folder that all processes see.
  Result<tape::Pool> make_pool(uint64_t max_bytes) {
    const TargetFacts& first = result_.targets.front();
    root_ = first.own_files ? fmt::format("/proc/{}/root", first.pid) : std::string();
    for (const TargetFacts& other : result_.targets)
      if (other.own_files != first.own_files || (first.own_files && !same_files(first.pid, other.pid)))
        return fail("processes {} and {} do not see the same files (containers); attach to them one after the other",
                    first.pid, other.pid);
    std::vector<std::string> folders;
    if (!root_.empty())
      for (const char* const folder : {"/dev/shm", "/tmp", "/var/tmp", "/run"}) folders.push_back(root_ + folder);
    TACHO_ASSIGN(tape::Pool pool, launch::make_pool(recording_, max_bytes, folders));
    if (!root_.empty() && !pool.path().starts_with(root_))
      return fail("process {} has no folder in which tacho could put the pool (its /dev/shm and /tmp are read-only)",
                  first.pid);
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

  Status enter_all(const tape::Pool& pool) {
    EnterRequest request;
    request.library = library_;
    request.pool = pool.path().substr(root_.size());
    std::vector<TargetFacts> in;
    std::string refused;
    for (const TargetFacts& target : result_.targets) {
      request.inner_library = inner_path(target.pid, library_);
      const auto entered = enter(target, request);
      if (!entered) {
        if (result_.targets.size() == 1) return fail("{}", entered.error().message);
        result_.warnings.push_back(entered.error().message);
        refused = entered.error().message;
        continue;
      }
      if (in.empty()) result_.attached_s = static_cast<double>(raw_now() - begin_) * 1e-9;
      result_.stopped_s = std::max(result_.stopped_s, entered->stopped_s);
      in.push_back(target);
    }
    if (in.empty()) return fail("{}", refused);
    result_.targets = std::move(in);
    return {};
  }

  bool all_ended() const { return std::all_of(result_.targets.begin(), result_.targets.end(), has_ended); }

  void wait_for_end(tape::PoolHeader& header, launch::SignalInbox& signals) {
    launch::Gate gate(header, recording_);
    const int64_t begin = raw_now();
    const double limit = recording_.duration_s > 0 ? recording_.delay_s + recording_.duration_s : 0;
    for (bool asked = false; !asked;) {
      const int change_ms = gate.tick();
      const double left = limit - static_cast<double>(raw_now() - begin) * 1e-9;
      if (limit > 0 && left <= 0) break;
      int wait_ms = options_.launches != 0 ? 5 : 100;
      if (change_ms >= 0) wait_ms = std::min(wait_ms, change_ms);
      if (limit > 0) wait_ms = std::min(wait_ms, static_cast<int>(std::ceil(left * 1000)));
      pollfd wait{signals.descriptor(), POLLIN, 0};
      poll(&wait, 1, wait_ms);
      while (const auto signal = signals.next())
        asked = asked || signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGHUP ||
                signal->number == SIGQUIT;
      release_late_threads();
      if (options_.launches != 0 && header.launches.load(std::memory_order_relaxed) >= options_.launches) break;
      if (all_ended()) {
        result_.ended = true;
        break;
      }
    }
    result_.seconds = static_cast<double>(raw_now() - begin) * 1e-9;
  }

  // Asks the processes to take everything away, and waits for those that live.
  void let_go(tape::Pool& pool) {
    tape::PoolHeader& header = pool.header();
    tape::set_gate(header, tape::gate::kTime, false);
    header.closing.store(1, std::memory_order_release);
    tape::wake_all(header.closing);
    constexpr int64_t kPatience = 10'000'000'000;
    const int64_t begin = raw_now();
    for (uint32_t left = 0; (left = header.guests.load(std::memory_order_acquire)) != 0;) {
      tape::wait_on(header.guests, left, 20'000'000);
      if (all_ended()) break;
      if (raw_now() - begin < kPatience) continue;
      result_.warnings.push_back(
          fmt::format("{} process{} not let tacho go within {} s: a call into a vendor's library "
                      "does not return; tacho's functions are still in {}",
                      left, left == 1 ? " has" : "es have", kPatience / 1'000'000'000, left == 1 ? "it" : "them"));
      break;
    }
  }

  void finish(tape::Pool& pool, trace::TraceWriter& writer, launch::Telemetry& telemetry, launch::DrainThread& drain) {
    result_.recorded = drain.decoder().processes();
    std::map<uint32_t, int64_t> rows;
    for (const decode::ProcessFacts& process : result_.recorded) rows[process.pid] = process.row;
    telemetry.finish(writer, rows);
    launch::count_losses(pool, writer, drain.decoder());
    if (std::string never = launch::never_began(recording_, pool.header(), result_.seconds); !never.empty())
      result_.warnings.push_back(std::move(never));
    for (const std::string& warning : result_.warnings) writer.note(0, event::NoteSeverity::kWarning, warning);
    const auto about = [&](std::string_view key, const std::string& value) {
      writer.property(Table::kEnd, 0, key, value);
    };
    about("attached", "1");
    about("attach.threads_stopped_ms", fmt::format("{:.3f}", result_.stopped_s * 1e3));
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
  std::string library_, root_;
  int64_t begin_ = 0;
};

}  // namespace

Result<SessionResult> record(const SessionOptions& options) {
  return Session(options).run();
}

}  // namespace tacho::attach
