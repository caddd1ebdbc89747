// Running a target under tracing (launcher.h).
#include "launch/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "launch/environment.h"
#include "launch/perf_sampler.h"
#include "launch/run/address_space.h"
#include "launch/run/drain_thread.h"
#include "launch/run/gaps.h"
#include "launch/run/gate.h"
#include "launch/run/pool_of_recording.h"
#include "launch/run/process_tree.h"
#include "launch/run/window_report.h"
#include "launch/signals.h"
#include "launch/torch_hooks.h"
#include "tape/pool.h"

namespace tacho::launch {
namespace {

using event::Table;

struct Child {
  pid_t pid = -1;
  int error = 0;  // errno of a failed exec
};

// fork + exec with the signal state the target would have without us. A close-on-exec pipe reports a failed exec.
Result<Child> start_target(const std::string& path, const std::vector<std::string>& command,
                           const std::vector<std::string>& environment, const SignalInbox& signals,
                           const TargetLimits& limits, const LaunchOptions& options,
                           const std::function<void(pid_t)>& before_exec) {
  std::vector<char*> argv, envp;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  int channel[2];
  if (pipe2(channel, O_CLOEXEC) != 0) return fail("cannot start the target: pipe: {}", strerror(errno));
  int gate[2] = {-1, -1};  // closed when the child may go on
  if (before_exec && pipe2(gate, O_CLOEXEC) != 0) {
    const int error = errno;
    close(channel[0]);
    close(channel[1]);
    return fail("cannot start the target: pipe: {}", strerror(error));
  }
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    for (const int file : {channel[0], channel[1], gate[0], gate[1]})
      if (file >= 0) close(file);
    return fail("cannot start the target: fork: {}", strerror(error));
  }
  if (pid == 0) {
    if (before_exec) {
      char nothing;
      close(gate[1]);
      while (read(gate[0], &nothing, 1) < 0 && errno == EINTR) {
      }
    }
    limits.apply();
    sigprocmask(SIG_SETMASK, &signals.original(), nullptr);
    if (options.stdout_fd >= 0) dup2(options.stdout_fd, STDOUT_FILENO);
    if (options.stderr_fd >= 0) dup2(options.stderr_fd, STDERR_FILENO);
    execve(path.c_str(), argv.data(), envp.data());
    int error = errno;
    if (error == ENOEXEC) {  // a script without #!: as the shell does
      std::vector<char*> shell = {const_cast<char*>("sh"), const_cast<char*>(path.c_str())};
      shell.insert(shell.end(), argv.begin() + 1, argv.end());
      execve("/bin/sh", shell.data(), envp.data());
      error = errno;
    }
    const ssize_t ignored = write(channel[1], &error, sizeof error);
    static_cast<void>(ignored);
    _exit(127);
  }
  close(channel[1]);
  if (before_exec) {
    close(gate[0]);
    before_exec(pid);
    close(gate[1]);
  }
  Child child{pid, 0};
  ssize_t size;
  do size = read(channel[0], &child.error, sizeof child.error);
  while (size < 0 && errno == EINTR);
  close(channel[0]);
  return child;
}

LaunchError not_started(const std::string& executable, int error) {
  return {error == ENOENT ? 127 : 126,
          fmt::format("{}: {}", executable,
                      error == ENOENT ? "its interpreter (#! line or loader) was not found" : strerror(error))};
}

void take_status(int wait_status, RunResult& result) {
  if (WIFSIGNALED(wait_status)) {
    result.signal = WTERMSIG(wait_status);
    result.exit_code = 128 + result.signal;
  } else {
    result.exit_code = WEXITSTATUS(wait_status);
  }
}

// The sampler that looks at the target from outside; nothing, with a warning, if it cannot.
std::unique_ptr<PerfSampler> open_sampler(pid_t pid, const event::Configuration& target,
                                          std::vector<std::string>& warnings) {
  auto opened = PerfSampler::open(pid, target.sample_hz, target.sample_stack);
  if (!opened) {
    warnings.push_back("call stacks are not sampled: " + opened.error().message);
    return nullptr;
  }
  if (!(*opened)->kernel_time())
    warnings.push_back(
        "call stacks are without the time spent in the kernel (kernel.perf_event_paranoid is 2 or more)");
  return std::move(*opened);
}

struct End {
  int wait_status = 0;
  double cpu_s = 0;  // of the target and of its children that ended
};

// Forwards signals and advances the gate until the target ends, with --follow until its last process does.
End wait_for_end(pid_t child, SignalInbox& signals, Gate& gate, ProcessTree& tree, const LaunchOptions& options) {
  End end;
  for (bool ended = false;;) {
    const int change_ms = gate.tick();
    pollfd wait{signals.descriptor(), POLLIN, 0};
    const int longest = options.tick || ended ? 200 : 1000;
    const int timeout = change_ms >= 0 ? std::min(change_ms, longest) : longest;
    poll(&wait, 1, timeout);
    bool interrupted = false;
    while (const auto signal = signals.next()) {
      if (signal->number != SIGCHLD && gate.wants(signal->number))
        gate.signal(signal->number);
      else if (signal->from_terminal && signal->number == SIGTSTP)
        // Ctrl-Z stopped the target; stop with it, so that the shell sees the job stopped.
        raise(SIGSTOP);
      else if (ended)
        interrupted = interrupted || signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGHUP;
      else if (signal->for_target)
        kill(child, signal->number);
    }
    rusage used{};
    if (!ended && wait4(child, &end.wait_status, WNOHANG, &used) == child) {
      ended = true;
      for (const timeval& time : {used.ru_utime, used.ru_stime})
        end.cpu_s += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    }
    if (ended && (!options.follow || interrupted || still_recorded(tree, child).empty())) break;
    if (options.tick) options.tick();
  }
  return end;
}

// Looks for gaps and writes them down: processes and their number, in notes and among the losses.
void write_gaps(const RunEvidence& evidence, trace::TraceWriter& writer, RunResult& result) {
  Gaps gaps = find_gaps(evidence);
  for (std::string& warning : gaps.warnings) result.warnings.push_back(std::move(warning));
  for (const std::string& warning : result.warnings) writer.note(0, event::NoteSeverity::kWarning, warning);
  for (const std::string& remark : gaps.remarks) writer.note(0, event::NoteSeverity::kInfo, remark);
  if (gaps.processes > 0) writer.lose(0, Table::kEnd, event::LossReason::kUnrecorded, gaps.processes);
}

void describe_end(trace::TraceWriter& writer, const RunResult& result, uint32_t refused) {
  const auto about = [&](std::string_view key, const std::string& value) {
    writer.property(Table::kEnd, 0, key, value);
  };
  about("exit_code", fmt::format("{}", result.exit_code));
  if (result.signal != 0) about("signal", fmt::format("{}", result.signal));
  about("target_seconds", fmt::format("{:.6f}", result.seconds));
  about("pool_bytes", fmt::format("{}", result.pool_bytes));
  about("drain_cpu_seconds", fmt::format("{:.6f}", result.drain_cpu_s));
  about("pid", fmt::format("{}", result.pid));
  if (refused != 0) about("unrecorded_processes", fmt::format("{}", refused));
}

// What the hooks of PyTorch read: `hooks` leads Python to them.
void add_torch(std::pair<std::string, std::string> hooks, const LaunchOptions& options,
               std::vector<std::pair<std::string, std::string>>& extra) {
  extra.push_back(std::move(hooks));
  if (options.recording.target.memory) extra.emplace_back("TACHO_MEMORY", "1");
  if (options.torch_shapes != TorchShapes::kNone)
    extra.emplace_back("TACHO_TORCH_SHAPES", options.torch_shapes == TorchShapes::kAll ? "all" : "sampled");
}

// By process number.
std::map<uint32_t, int64_t> rows_of(const std::vector<decode::ProcessFacts>& processes) {
  std::map<uint32_t, int64_t> rows;
  for (const decode::ProcessFacts& process : processes) rows[process.pid] = process.row;
  return rows;
}

}  // namespace

tl::expected<RunResult, LaunchError> run(const LaunchOptions& options) {
  const Recording& recording = options.recording;
  const bool by_perf = recording.target.sampler == event::Sampler::kPerf;
  auto executable = find_executable(options.command.empty() ? "" : options.command[0]);
  if (!executable) return fail_with(executable);
  TACHO_TRY(check(recording));
  TACHO_ASSIGN(const std::string library, find_library());
  TACHO_ASSIGN(LibraryLinks links, LibraryLinks::create(library));

  std::optional<std::pair<std::string, std::string>> torch;
  if (options.torch_trace) {
    TACHO_ASSIGN(torch, torch_hooks(options.command));
  }

  // From here on nothing ends tacho before the trace is written and the pool is removed.
  SignalInbox signals;
  if (signals.descriptor() < 0) return fail("signalfd: {}", strerror(errno));
  const TargetLimits limits;
  RunResult result;
  TACHO_ASSIGN(const Room room, address_space(recording, limits));
  if (!room.sentence.empty()) result.warnings.push_back(room.sentence);

  remove_empty_recordings(std::filesystem::path(recording.output).parent_path().string());
  TACHO_ASSIGN(const auto writer, trace::TraceWriter::create(recording.output, recording.writer));
  TACHO_ASSIGN(tape::Pool pool, make_pool(recording, room.pool_max));
  describe_recording(*writer, recording, options.command);
  if (options.torch_trace) writer->property(Table::kEnd, 0, "torch_trace", "1");

  EnvironmentOptions environment_options = {.names = links.names(),
                                            .pool = pool.path(),
                                            .preload = options.preload,
                                            .inject = options.inject,
                                            .extra = options.environment};
  if (torch) add_torch(std::move(*torch), options, environment_options.extra);
  const std::vector<std::string> environment = target_environment(environment_options, result.warnings);

  const int64_t began = raw_now();
  std::unique_ptr<PerfSampler> perf;
  std::function<void(pid_t)> before_exec;
  if (by_perf) before_exec = [&](pid_t pid) { perf = open_sampler(pid, recording.target, result.warnings); };
  TACHO_ASSIGN(const Child child,
               start_target(*executable, options.command, environment, signals, limits, options, before_exec));
  if (child.error != 0) {
    waitpid(child.pid, nullptr, 0);
    return tl::unexpected<LaunchError>(not_started(*executable, child.error));
  }
  result.pid = child.pid;
  if (options.started) options.started(writer->temporary_path());
  Telemetry telemetry(recording.telemetry);
  telemetry.obey(pool.header().enabled);
  telemetry.start(child.pid);
  DrainThread drain(pool, *writer, telemetry, std::move(perf), options.samples);
  if (options.samples != nullptr) options.samples->start();
  ProcessTree tree({pool.path(), environment_options.names.preload, device_marks()});
  if (options.inject) tree.start(child.pid);
  Gate gate(pool.header(), recording);

  const End end = wait_for_end(child.pid, signals, gate, tree, options);
  result.seconds = static_cast<double>(raw_now() - began) * 1e-9;
  take_status(end.wait_status, result);
  tree.stop();
  std::vector<Survivor> left;
  if (options.inject) left = survivors(tree, child.pid);
  pool.header().closing.store(1, std::memory_order_relaxed);
  if (options.samples != nullptr) options.samples->stop();
  telemetry.stop();
  drain.stop();
  result.processes = drain.decoder().processes();
  telemetry.finish(*writer, rows_of(result.processes));
  if (options.samples != nullptr) options.samples->finish(*writer);
  result.pool_bytes = drain.bytes();
  result.drain_cpu_s = drain.cpu_s();

  count_losses(pool, *writer, drain.decoder());
  result.still_running = !left.empty();
  if (result.still_running) links.keep();
  const uint32_t refused = pool.refused();
  if (std::string never = never_began(recording, pool.header(), result.seconds); !never.empty()) {
    result.began = false;
    result.warnings.push_back(std::move(never));
  }
  write_gaps({.recording = recording,
              .executable = *executable,
              .inject = options.inject,
              .preload = options.preload,
              .attached = result.processes,
              .members = tree.members(),
              .survivors = std::move(left),
              .refused = refused,
              .cpu_s = end.cpu_s,
              .cpu_seen_s = tree.cpu_s()},
             *writer, result);

  describe_end(*writer, result, refused);
  result.written = writer->finish();
  // Not before: `tacho recover` finds an unfinished trace by its pool.
  pool.unlink();
  result.giving_back = std::jthread([gone = std::move(pool)] {});
  return result;
}

}  // namespace tacho::launch
