// Starting and following the watched program (session.h).
#include "watch/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/files/temporary.h"
#include "base/thread.h"
#include "launch/environment.h"
#include "launch/library_names.h"
#include "launch/signals.h"
#include "watch/live/server.h"
#include "watch/metrics/otlp.h"
#include "watch/metrics/push.h"
#include "watch/metrics/telemetry.h"
#include "watch/sums/file.h"

namespace tacho::watch {
namespace {

using launch::LaunchError;

// fork and exec with the signals that the program would have without tacho.
tl::expected<pid_t, LaunchError> start_program(const std::string& path, const std::vector<std::string>& command,
                                               const std::vector<std::string>& environment,
                                               const launch::SignalInbox& signals, const launch::TargetLimits& limits,
                                               const WatchOptions& options) {
  std::vector<char*> argv, envp;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  int channel[2];
  if (pipe2(channel, O_CLOEXEC) != 0) return tl::unexpected(LaunchError(125, fmt::format("pipe: {}", strerror(errno))));
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(channel[0]);
    close(channel[1]);
    return tl::unexpected(LaunchError(125, fmt::format("cannot start the program: fork: {}", strerror(error))));
  }
  if (pid == 0) {
    limits.apply();
    sigprocmask(SIG_SETMASK, &signals.original(), nullptr);
    if (options.stdin_fd >= 0) dup2(options.stdin_fd, STDIN_FILENO);
    if (options.stdout_fd >= 0) dup2(options.stdout_fd, STDOUT_FILENO);
    if (options.stderr_fd >= 0) dup2(options.stderr_fd, STDERR_FILENO);
    execve(path.c_str(), argv.data(), envp.data());
    int error = errno;
    if (error == ENOEXEC) {  // a script without #!: as the shell does
      argv[0] = const_cast<char*>(path.c_str());
      argv.insert(argv.begin(), const_cast<char*>("sh"));
      execve("/bin/sh", argv.data(), envp.data());
      error = errno;
    }
    const ssize_t ignored = write(channel[1], &error, sizeof error);
    static_cast<void>(ignored);
    _exit(127);
  }
  close(channel[1]);
  int error = 0;
  ssize_t size;
  do size = read(channel[0], &error, sizeof error);
  while (size < 0 && errno == EINTR);
  close(channel[0]);
  if (error == 0) return pid;
  waitpid(pid, nullptr, 0);
  return tl::unexpected(LaunchError(
      error == ENOENT ? 127 : 126,
      fmt::format("{}: {}", path,
                  error == ENOENT ? "its interpreter (#! line or loader) was not found" : strerror(error))));
}

// What programs are to do before the governor has seen anything of them.
WatchSetting first_setting(const WatchOptions& options) {
  WatchSetting setting = Governor(options.timing ? options.budget : 0).setting();
  if (!options.timing) setting.timing = event::WatchTiming::kNever;
  return setting;
}

// The moments of one run, for the loop below and for the page of metrics.
class Moments {
 public:
  Moments(WatchSegment& segment, const WatchOptions& options)
      : segment_(segment), governor_(options.timing ? options.budget : 0), began_(raw_now()) {
    moment_.budget = options.budget;
    moment_.counts_only = !options.timing;
    moment_.keeps = options.keep.has_value();
    moment_.graph_times = options.graph_times;
    setting_ = first_setting(options);
    if (options.interval_s > 0 || options.prometheus || options.otlp || options.view || !options.sums.empty())
      gpus_ = std::make_unique<GpuTelemetry>();
    if (options.host_code || options.view)
      host_code_ = std::make_unique<HostSampler>([&segment] { return segment.users(); });
  }
  double seconds() const { return static_cast<double>(raw_now() - began_) * 1e-9; }
  void govern() {
    if (moment_.counts_only) return;
    const WatchSetting wanted = governor_.step(segment_.load(seconds()));
    segment_.set(wanted);
    const std::lock_guard held(lock_);
    setting_ = wanted;
    moment_.cost = governor_.cost();
    moment_.gave_up = governor_.gave_up();
  }
  WatchMoment now() const {
    WatchMoment moment;
    {
      const std::lock_guard held(lock_);
      moment = moment_;
      moment.setting = setting_;
    }
    moment.snapshot = segment_.snapshot(seconds());
    if (gpus_) {
      moment.gpus = gpus_->latest();
      moment.gpu_problems = gpus_->problems();
    }
    if (host_code_) moment.host_code = host_code_->latest();
    return moment;
  }

 private:
  WatchSegment& segment_;
  Governor governor_;
  int64_t began_;
  mutable std::mutex lock_;
  WatchSetting setting_;
  WatchMoment moment_;  // without its snapshot
  std::unique_ptr<GpuTelemetry> gpus_;
  std::unique_ptr<HostSampler> host_code_;
};

std::string host_name() {
  char host[256] = {};
  return gethostname(host, sizeof host - 1) == 0 ? host : "";
}

// Pushes to a collector while it lives.
std::unique_ptr<OtlpPusher> start_pushing(const WatchOptions& options, const Moments& moments) {
  if (!options.otlp) return nullptr;
  OtlpSource source;
  if (const char* const service = getenv("OTEL_SERVICE_NAME"); service != nullptr) source.service = service;
  if (source.service.empty() && !options.command.empty())
    source.service = options.command[0].substr(options.command[0].rfind('/') + 1);
  source.host = host_name();
  source.start_unix = read_clock(CLOCK_REALTIME) - static_cast<int64_t>(moments.seconds() * 1e9);
  const auto message = [source, &moments, labels = Labels()]() mutable {
    const WatchMoment moment = moments.now();
    // Of programs that ran already, the first one; OpenTelemetry's word where there is none.
    if (source.service.empty() && !moment.snapshot.processes.empty())
      source.service = moment.snapshot.processes.front().name;
    return otlp_message(source, read_clock(CLOCK_REALTIME), moment.snapshot, labels.gather(moment.snapshot),
                        moment.cost, moment.gpus);
  };
  return std::make_unique<OtlpPusher>(*options.otlp, options.otlp_interval_s, message);
}

// What is watched, for whoever asks the watch itself.
WatchFacts facts_of(const WatchOptions& options) {
  WatchFacts facts;
  facts.title = options.title;
  facts.host = host_name();
  facts.run = random_name();
  return facts;
}

// Servers that listen before the program begins, so that a port that is taken is said before.
struct Listening {
  std::unique_ptr<MomentServer> metrics, page;
  static Result<Listening> begin(const WatchOptions& options) {
    Listening listening;
    if (options.prometheus) {
      TACHO_ASSIGN(listening.metrics, MomentServer::listen_for_metrics(*options.prometheus));
    }
    if (options.view) {
      TACHO_ASSIGN(listening.page, MomentServer::listen_for_page());
    }
    return listening;
  }
  void serve(const WatchFacts& facts, const MomentSource& now) {
    for (const auto* const server : {&metrics, &page})
      if (*server) (*server)->serve(facts, now);
  }
};

// Until the programs' end.
void follow(WatchSegment& segment, const WatchedPrograms& programs, Moments& moments, const WatchOptions& options) {
  constexpr int kStepMs = 20;
  double next = options.interval_s;
  for (;;) {
    pollfd wait{programs.descriptor, POLLIN, 0};
    poll(&wait, 1, kStepMs);
    if (programs.ended()) return;
    segment.note_ends();
    moments.govern();
    if (options.step) options.step();
    if (options.tick && options.interval_s > 0 && moments.seconds() >= next) {
      options.tick(moments.now());
      next = std::max(next + options.interval_s, moments.seconds());
    }
  }
}

}  // namespace

void keep_on(Recorder& recorder, const WatchOptions& options) {
  if (options.wants_file && options.wants_file()) recorder.ask();
  recorder.step();
  for (const std::string& sentence : recorder.messages())
    if (options.say) options.say(sentence);
}

void keep_no_more(Recorder& recorder, const WatchOptions& options) {
  recorder.end();
  for (const std::string& sentence : recorder.messages())
    if (options.say) options.say(sentence);
}

Result<std::string> find_watch_library() {
  TACHO_ASSIGN(std::string path, launch::find_library());
  path.resize(path.rfind('/') + 1);
  path += event::kWatchLibrary;
  if (access(path.c_str(), R_OK) != 0) return fail("{}: {}; reinstall tacho", path, strerror(errno));
  return path;
}

tl::expected<WatchMoment, LaunchError> watch_table(WatchSegment& segment, const WatchOptions& options,
                                                   const WatchedPrograms& programs) {
  TACHO_ASSIGN(Listening listening, Listening::begin(options));
  segment.set(first_setting(options));
  if (const auto begun = programs.begin(); !begun) return launch::fail_with(begun);
  Moments moments(segment, options);
  // Ends before the moments that it answers with: a client may ask at any time.
  Listening served = std::move(listening);
  served.serve(facts_of(options), [&moments] { return moments.now(); });
  if (options.started)
    options.started(served.metrics ? served.metrics->address() : "", served.page ? served.page->address() : "");
  const std::unique_ptr<OtlpPusher> pusher = start_pushing(options, moments);
  std::unique_ptr<SumKeeper> sums;
  if (!options.sums.empty())
    sums = std::make_unique<SumKeeper>(options.sums, options.title, [&moments] { return moments.now(); });
  follow(segment, programs, moments, options);
  segment.note_ends();
  if (programs.leave) programs.leave();
  if (pusher) pusher->finish();
  WatchMoment last = moments.now();
  if (pusher) {
    last.pushes = pusher->counts();
    last.pushes_to = pusher->address().text();
  }
  if (sums)
    if (const Status written = sums->finish(watch_sentences(last, true)); !written)
      last.sums_problem = written.error().message;
  return last;
}

tl::expected<WatchResult, LaunchError> watch(const WatchOptions& options) {
  auto executable = launch::find_executable(options.command.empty() ? "" : options.command[0]);
  if (!executable) return launch::fail_with(executable);
  TACHO_ASSIGN(const std::string library, find_watch_library());
  TACHO_ASSIGN(launch::LibraryLinks links, launch::LibraryLinks::create(library));
  launch::SignalInbox signals;
  if (signals.descriptor() < 0) return fail("signalfd: {}", strerror(errno));
  const launch::TargetLimits limits;
  TACHO_ASSIGN(WatchSegment segment, WatchSegment::create());
  std::unique_ptr<Recorder> recorder;
  if (options.keep) {
    TACHO_ASSIGN(recorder, Recorder::create(segment, *options.keep, options.command));
  }
  std::vector<std::string> notes;
  const std::vector<std::string> environment =
      launch::watched_environment(links.names(), event::kWatchVariable, segment.path(), recorder != nullptr, notes);
  for (const std::string& note : notes)
    if (options.say) options.say(note);
  pid_t child = 0;
  int status = 0;
  WatchedPrograms programs;
  programs.descriptor = signals.descriptor();
  programs.begin = [&]() -> tl::expected<void, LaunchError> {
    const auto started = start_program(*executable, options.command, environment, signals, limits, options);
    if (!started) return launch::fail_with(started);
    child = *started;
    return {};
  };
  programs.ended = [&] {
    while (const auto signal = signals.next()) {
      if (signal->from_terminal && signal->number == SIGTSTP)
        raise(SIGSTOP);  // Ctrl-Z stopped the program; stop with it, so that the shell sees the job stopped
      else if (signal->for_target && (!recorder || !recorder->takes(signal->number)))
        kill(child, signal->number);
    }
    if (waitpid(child, &status, WNOHANG) == child) return true;
    if (recorder) keep_on(*recorder, options);
    return false;
  };
  auto last = watch_table(segment, options, programs);
  if (!last) return launch::fail_with(last);
  if (recorder) {
    recorder->ended(status, "the program");
    keep_no_more(*recorder, options);
  }
  WatchResult result;
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.last = std::move(*last);
  for (const WatchedProcess& process : result.last.snapshot.processes)
    if (!process.ended && static_cast<pid_t>(process.pid) != child && kill(static_cast<pid_t>(process.pid), 0) == 0)
      ++result.last.still_running;
  // What still runs may start further programs with the library.
  if (result.last.still_running > 0) links.keep();
  return result;
}

}  // namespace tacho::watch
