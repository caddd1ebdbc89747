// Runs the target and copies its output (target_run.h).
#include "counter/target_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "base/files/scratch_folder.h"
#include "base/job_rank.h"
#include "base/text/demangle.h"
#include "counter/kept_input.h"
#include "tape/layout.h"
#include "trace/trace.h"

namespace tacho::counter {

namespace {

namespace column = event::column;
using event::Table;

// Copies the target's output byte for byte to our stdout and stderr and shows it to the observer. If ours is a
// terminal, the target gets a pseudo-terminal of the same size in raw mode.
class Tee {
 public:
  explicit Tee(Observer& observer) : observer_(observer) {
    struct stat out {
    }, err{};
    const bool same = fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
                      out.st_ino == err.st_ino && !isatty(STDOUT_FILENO);
    open_channel(channels_[0], STDOUT_FILENO);
    if (same)
      channels_[1].target_end = channels_[0].target_end;  // one stream of bytes stays one
    else
      open_channel(channels_[1], STDERR_FILENO);
    shared_ = same;
  }
  ~Tee() {
    finish();
    close_target_ends();
    for (Channel& channel : channels_)
      if (channel.our_end >= 0) close(channel.our_end);
  }
  Tee(const Tee&) = delete;
  Tee& operator=(const Tee&) = delete;

  int stdout_fd() const { return channels_[0].target_end; }
  int stderr_fd() const { return channels_[1].target_end; }

  void start() {
    close_target_ends();
    thread_ = std::thread([this] { loop(); });
  }
  /// The target has ended: takes the output left in the channels. Never waits for descendants that hold them open.
  void finish() {
    if (!thread_.joinable()) return;
    ending_.store(true);
    thread_.join();
  }

 private:
  struct Channel {
    int our_end = -1, target_end = -1, to = -1;
  };

  static void open_channel(Channel& channel, int to) {
    channel.to = to;
    if (isatty(to)) {
      const int pseudo = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      if (pseudo >= 0 && grantpt(pseudo) == 0 && unlockpt(pseudo) == 0) {
        char name[256];
        const int end = ptsname_r(pseudo, name, sizeof name) == 0 ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
        termios modes{};
        winsize size{};
        if (end >= 0 && tcgetattr(end, &modes) == 0) {
          cfmakeraw(&modes);
          tcsetattr(end, TCSANOW, &modes);
          if (ioctl(to, TIOCGWINSZ, &size) == 0) ioctl(end, TIOCSWINSZ, &size);
          channel.our_end = pseudo;
          channel.target_end = end;
          return;
        }
        if (end >= 0) close(end);
      }
      if (pseudo >= 0) close(pseudo);
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;  // the target then inherits ours
    channel.our_end = ends[0];
    channel.target_end = ends[1];
  }

  void close_target_ends() {
    if (channels_[0].target_end >= 0) close(channels_[0].target_end);
    if (!shared_ && channels_[1].target_end >= 0) close(channels_[1].target_end);
    channels_[0].target_end = channels_[1].target_end = -1;
  }

  // False if the reader of our own output has closed it; the target's channel closes with it.
  bool pass_on(int to, const char* bytes, size_t size) {
    while (size > 0) {
      const ssize_t written = write(to, bytes, size);
      if (written < 0 && errno == EAGAIN) {
        pollfd wait{to, POLLOUT, 0};
        poll(&wait, 1, 1000);
      } else if (written < 0 && errno != EINTR) {
        return false;
      } else if (written > 0) {
        bytes += written;
        size -= static_cast<size_t>(written);
      }
    }
    return true;
  }

  void loop() {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    std::vector<char> buffer(64 << 10);
    for (;;) {
      const bool ending = ending_.load();
      pollfd wait[2] = {{channels_[0].our_end, POLLIN, 0}, {channels_[1].our_end, POLLIN, 0}};
      if (wait[0].fd < 0 && wait[1].fd < 0) return;
      const int ready = poll(wait, 2, 20);
      if (ready <= 0) {
        if (ending && ready == 0) return;
        continue;
      }
      for (int i = 0; i < 2; ++i) {
        if (wait[i].revents == 0) continue;
        Channel& channel = channels_[i];
        const ssize_t size = read(channel.our_end, buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) continue;
        if (size > 0) observer_.target_writes();
        // A pseudo-terminal ends with EIO.
        const bool open = size > 0 && pass_on(channel.to, buffer.data(), static_cast<size_t>(size));
        if (size > 0) observer_.target_output(channel.to, {buffer.data(), static_cast<size_t>(size)});
        if (!open) {
          close(channel.our_end);
          channel.our_end = -1;
        }
      }
    }
  }

  Observer& observer_;
  Channel channels_[2];
  bool shared_ = false;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

Result<std::vector<ObservedDispatch>> read_dispatches(const std::string& path) {
  TACHO_ASSIGN(const auto trace, trace::Trace::open(path));
  using D = column::Dispatch;
  using K = column::Kernel;
  const int columns[] = {D::track, D::start, D::duration, D::dim};
  const ClockTuple now = sample_clocks();
  std::vector<ObservedDispatch> dispatches;
  TACHO_TRY(trace::visit_by_time(
      *trace, Table::kDispatch, columns, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
      [&](std::span<const int64_t> row) {
        ObservedDispatch& dispatch = dispatches.emplace_back();
        dispatch.index = dispatches.size() - 1;
        const auto kernel = [&](int which) { return trace->cell(Table::kKernel, row[3], which); };
        const auto size = [&](int which) {
          const int64_t value = kernel(which);
          return value > 0 ? static_cast<uint64_t>(value) : uint64_t{0};
        };
        dispatch.kernel = demangle(trace->text(Table::kKernel, row[3], K::name));
        dispatch.grid = {size(K::grid_x), size(K::grid_y), size(K::grid_z)};
        dispatch.workgroup = {size(K::group_x), size(K::group_y), size(K::group_z)};
        dispatch.lds = size(K::shared_static) + size(K::shared_dynamic);
        dispatch.scratch = size(K::private_bytes);
        dispatch.arch_vgpr = static_cast<uint32_t>(size(K::registers));
        dispatch.accum_vgpr = static_cast<uint32_t>(size(K::accum_registers));
        dispatch.sgpr = static_cast<uint32_t>(size(K::scalar_registers));
        dispatch.queue = trace->cell(Table::kTrack, row[0], column::Track::native);
        const int64_t process = trace->cell(Table::kTrack, row[0], column::Track::process);
        dispatch.pid = static_cast<uint32_t>(trace->cell(Table::kProcess, process, column::Process::pid));
        dispatch.tid = dispatch.pid;
        dispatch.start = row[1] + (now.boottime - now.raw);
        dispatch.end = dispatch.start + std::max<int64_t>(0, row[2]);
        return true;
      }));
  return dispatches;
}

std::string shape_of(const ObservedDispatch& dispatch, bool with_group) {
  std::string key = fmt::format("{}\n{} {} {}", dispatch.kernel, dispatch.grid[0],
                                std::max<uint64_t>(1, dispatch.grid[1]), std::max<uint64_t>(1, dispatch.grid[2]));
  if (with_group)
    key += fmt::format(" / {} {} {}", dispatch.workgroup[0], std::max<uint64_t>(1, dispatch.workgroup[1]),
                       std::max<uint64_t>(1, dispatch.workgroup[2]));
  return key;
}

}  // namespace

tl::expected<TargetRun, launch::LaunchError> run_target(const TargetRunOptions& options, Observer& observer) {
  TACHO_ASSIGN(const ScratchFolder scratch,
               ScratchFolder::create(options.folder.empty() ? "." : options.folder, "run"));
  launch::LaunchOptions launch;
  launch.command = options.command;
  launch.recording.output = scratch.path() + "/run.tacho";
  launch.recording.writer.overwrite = true;
  launch.recording.sources = options.sources;
  launch.torch_trace = options.torch_trace;
  if (options.torch_trace)
    launch.recording.sources |= tape::source_bit::kDispatch | tape::source_bit::kMarker | tape::source_bit::kApi;
  launch.environment = options.environment;
  launch.recording.target = options.target;
  launch.inject = options.inject;
  launch.preload = options.inject;
  launch.tick = options.tick;
  // A run in which the program pauses recording launches the same kernels as one that cannot hear of it.
  launch.recording.ignores_program = !options.regions;
  if (options.regions) {
    launch.recording.start_paused = true;
    launch.recording.paused_option = options.regions->option;
    launch.recording.resume_calls = options.regions->resume_calls;
  }
  InputOfRun input;
  TACHO_TRY(input.begin());
  Tee tee(observer);
  launch.stdout_fd = tee.stdout_fd();
  launch.stderr_fd = tee.stderr_fd();
  launch.started = [&](const std::string&) {
    tee.start();
    input.started();
    observer.target_started();
  };
  auto outcome = launch::run(launch);
  input.end();
  tee.finish();
  if (!outcome) return launch::fail_with(outcome);
  TargetRun run;
  run.result = std::move(*outcome);
  if ((options.sources & tape::source_bit::kDispatch) != 0 && run.result.written) {
    auto dispatches = read_dispatches(launch.recording.output);
    if (dispatches)
      run.dispatches = std::move(*dispatches);
    else
      observer.warn(dispatches.error().message);
  }
  if (options.inject && run.result.written)
    if (const auto trace = trace::Trace::open(launch.recording.output))
      run.called_mpi = (*trace)->rows(Table::kCommunicator) > 1;  // MPI_COMM_WORLD at least
  if (!options.keep.empty() && run.result.written)
    static_cast<void>(std::rename(launch.recording.output.c_str(), options.keep.c_str()));
  return run;
}

void tell_never_began(const TargetRun& run, Outcome& outcome, Observer& observer) {
  if (run.result.began || outcome.explained) return;
  for (const std::string& warning : run.result.warnings)
    if (warning.starts_with("recording never began")) {
      observer.warn(warning);
      outcome.explained = true;
    }
}

bool mpi_ends_replay(const Outcome& outcome, size_t number, size_t runs, Observer& observer) {
  if (!outcome.called_mpi || number + 1 >= runs || !job_rank().known()) return false;
  observer.warn(fmt::format(
      "the program called MPI_Init, which a rank can do once in its job: stopped after run {} of {}, whose counters "
      "are kept; --iteration-multiplexing counts all in one run, --set NAME a few",
      number + 1, runs));
  return true;
}

bool mpi_ends_sampling(const Outcome& outcome, Observer& observer) {
  if (!outcome.called_mpi || !job_rank().known()) return false;
  observer.warn(
      "the program called MPI_Init, which a rank can do once in its job: the run that takes PC samples is not made; "
      "take them without the launcher");
  return true;
}

std::string operators_file(const std::string& folder) {
  return fmt::format("{}/.tacho-{}-operators-run.tacho", folder, getpid());
}

tl::expected<void, launch::LaunchError> record_operators(const CollectRequest& request,
                                                         std::vector<std::pair<std::string, std::string>> environment,
                                                         Observer& observer, Outcome& outcome) {
  observer.note("Recording which operators of PyTorch launch the kernels, in a run of its own");
  TargetRunOptions options;
  options.command = request.command;
  options.environment = std::move(environment);
  options.torch_trace = true;
  options.target.graph_nodes = true;  // a graph is measured as a whole, but its operators are known node by node
  options.folder = request.folder;
  options.keep = operators_file(request.folder);
  observer.run_begins({}, 1, 1);
  auto run = run_target(options, observer);
  if (!run) return launch::fail_with(run);
  ++outcome.runs;
  if (run->result.exit_code != 0)
    observer.warn(
        fmt::format("the program ended with code {} in the run that records its operators", run->result.exit_code));
  if (access(options.keep.c_str(), R_OK) == 0) outcome.operators = options.keep;
  return {};
}

size_t join_times(std::vector<ObservedDispatch>& dispatches, const std::vector<ObservedDispatch>& timed) {
  // If a launch leaves the workgroup to the runtime, each implementation chooses its own, so match it by grid alone.
  std::map<std::string, std::vector<const ObservedDispatch*>> exact, loose;
  for (const ObservedDispatch& each : timed) {
    if (each.workgroup[0] != 0) exact[shape_of(each, true)].push_back(&each);
    if (each.workgroup[0] == 0) loose[shape_of(each, false)].push_back(&each);
  }
  std::map<std::string, size_t> used;
  size_t missing = 0;
  for (ObservedDispatch& each : dispatches) {
    const auto take = [&](std::map<std::string, std::vector<const ObservedDispatch*>>& from,
                          const std::string& key) -> const ObservedDispatch* {
      const auto found = from.find(key);
      if (found == from.end()) return nullptr;
      size_t& next = used[key];
      return next < found->second.size() ? found->second[next++] : nullptr;
    };
    const ObservedDispatch* same = take(exact, shape_of(each, true));
    if (same == nullptr) same = take(loose, shape_of(each, false));
    if (same == nullptr) {
      each.start = each.end = 0;
      ++missing;
      continue;
    }
    each.start = same->start;
    each.end = same->end;
    if (each.lds == 0) each.lds = same->lds;
  }
  return missing;
}

}  // namespace tacho::counter
