// Rounds over /proc and /sys (telemetry.h).
#include "launch/telemetry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/format.h"
#include "vendor/vendor.h"

namespace tacho::launch {

using event::Table;
namespace row = event::row;

namespace {

constexpr size_t kMostProcesses = 256;

// A small file as a whole; empty when it cannot be read. /proc files have no size, so it is read until its end.
std::string read_small(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char buffer[8192];
  for (;;) {
    const ssize_t size = read(file, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || text.size() > (1u << 22)) break;
    text.append(buffer, static_cast<size_t>(size));
  }
  close(file);
  return text;
}

uint64_t number_at(std::string_view text, size_t& at) {
  while (at < text.size() && text[at] == ' ') ++at;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  at = static_cast<size_t>(end - text.data());
  return error == std::errc() ? value : 0;
}

// "Key:   value unit" of /proc/meminfo, /proc/PID/status, /proc/PID/io.
std::optional<uint64_t> field(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    size_t from = at + key.size();
    if (from >= text.size() || text[from] != ':') continue;
    ++from;
    while (from < text.size() && (text[from] == ' ' || text[from] == '\t')) ++from;
    return number_at(text, from);
  }
  return std::nullopt;
}

pid_t pid_of(const char* name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name, name + strlen(name), pid);
  return error == std::errc() && *end == '\0' && pid > 0 ? pid : 0;
}

template <typename Visit>
void each_entry(const std::string& folder, Visit visit) {
  DIR* const open_folder = opendir(folder.c_str());
  if (open_folder == nullptr) return;
  while (const dirent* const entry = readdir(open_folder)) visit(entry->d_name);
  closedir(open_folder);
}

struct Stat {
  std::string name;
  char state = '?';
  pid_t parent = 0;
  uint64_t minor_faults = 0, major_faults = 0, user_ticks = 0, system_ticks = 0, threads = 0, virtual_bytes = 0,
           resident_pages = 0;
};

// /proc/PID/stat: "pid (name) state ppid ...". The name may hold anything, so the last ')' counts.
std::optional<Stat> parse_stat(const std::string& text) {
  const size_t open_at = text.find('('), close_at = text.rfind(')');
  if (open_at == std::string::npos || close_at == std::string::npos || close_at < open_at) return std::nullopt;
  Stat stat;
  stat.name = text.substr(open_at + 1, close_at - open_at - 1);
  size_t at = close_at + 2;
  if (at >= text.size()) return std::nullopt;
  stat.state = text[at++];  // fields count from 1, the state is the third
  uint64_t fields[25] = {};
  for (size_t number = 4; number < 25 && at < text.size(); ++number) {
    while (at < text.size() && text[at] == ' ') ++at;
    const bool negative = at < text.size() && text[at] == '-';
    if (negative) ++at;
    fields[number] = number_at(text, at);
    if (negative) fields[number] = 0;
  }
  stat.parent = static_cast<pid_t>(fields[4]);
  stat.minor_faults = fields[10];
  stat.major_faults = fields[12];
  stat.user_ticks = fields[14];
  stat.system_ticks = fields[15];
  stat.threads = fields[20];
  stat.virtual_bytes = fields[23];
  stat.resident_pages = fields[24];
  return stat;
}

}  // namespace

Telemetry::Telemetry(TelemetryOptions options) : options_(std::move(options)) {
  if (options_.gpu && !(options_.gpus && options_.gpus->empty())) {
    std::vector<std::string> problems;
    for (const vendor::Vendor* const vendor : vendor::vendors())
      if (auto monitor = vendor->monitor(problems); monitor != nullptr) gpus_.push_back(std::move(monitor));
    for (const std::string& problem : problems) complain_once(problem);
    for (const auto& monitor : gpus_)
      for (auto& fact : monitor->describe()) properties_.push_back(std::move(fact));
  }
}

Telemetry::~Telemetry() {
  stop();
}

void Telemetry::start(pid_t target) {
  if (!options_.any()) return;
  thread_ = std::thread([this, target] { loop(target); });
}

void Telemetry::stop() {
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_signal_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Telemetry::loop(pid_t target) {
  pthread_setname_np(pthread_self(), "tacho-telemetry");
  using Clock = std::chrono::steady_clock;
  const auto step = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(1.0 / std::clamp(options_.hz, 0.01, 1000.0)));
  auto due =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.delay_s));
  const auto begin = due;
  std::unique_lock lock(stop_mutex_);
  for (;;) {
    if (stop_signal_.wait_until(lock, due, [this] { return stopping_; })) break;
    if (options_.duration_s > 0 && Clock::now() - begin > std::chrono::duration<double>(options_.duration_s)) break;
    lock.unlock();
    round(target);
    lock.lock();
    due = std::max(due + step, Clock::now() + step / 4);
  }
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  cpu_s_ = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void Telemetry::round(pid_t target) {
  const int64_t now = raw_now();
  if (options_.cpu) read_machine(now);
  if (options_.process) read_processes(target, now);
  if (!gpus_.empty()) read_gpus(raw_now());
  ++rounds_;
}

void Telemetry::record(const Series& series, int64_t time, double value) {
  if (enabled_ != nullptr && enabled_->load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = series_of_.try_emplace({series.name, series.pid}, static_cast<uint32_t>(series_.size()));
  if (fresh) series_.push_back(series);
  if (values_.size() < 4'000'000) values_.push_back({at->second, time, value});
}

void Telemetry::complain_once(const std::string& sentence) {
  if (!complained_.insert(sentence).second) return;
  const std::lock_guard lock(mutex_);
  notes_.push_back(sentence);
}

// The machine

void Telemetry::read_machine(int64_t time) {
  const std::string stat = read_small(options_.proc + "/stat");
  if (stat.empty()) complain_once(fmt::format("{}/stat cannot be read: no utilisation of CPU cores", options_.proc));
  for (size_t line = 0; line < stat.size();) {
    const size_t end = std::min(stat.find('\n', line), stat.size());
    const std::string_view text = std::string_view(stat).substr(line, end - line);
    line = end + 1;
    if (!text.starts_with("cpu") || text.size() < 5 || text[3] < '0' || text[3] > '9') continue;
    size_t at = 3;
    const auto core = static_cast<int>(number_at(text, at));
    if (core >= 8192 || (options_.cpus && !options_.cpus->contains(core))) continue;
    // user nice system idle iowait irq softirq steal; guest times are in user already.
    uint64_t all = 0, idle = 0;
    for (int i = 0; i < 8 && at < text.size(); ++i) {
      const uint64_t ticks = number_at(text, at);
      all += ticks;
      if (i == 3 || i == 4) idle += ticks;
    }
    if (cpu_times_.size() <= static_cast<size_t>(core)) cpu_times_.resize(static_cast<size_t>(core) + 1);
    CpuTimes& before = cpu_times_[static_cast<size_t>(core)];
    if (before.known && all > before.all && !hidden("cpu_utilization"))
      record({fmt::format("CPU Utilization [{}]", core), "%", "share of time in which the core was not idle",
              "cpu_utilization"},
             time, 100.0 * static_cast<double>(all - idle - before.busy) / static_cast<double>(all - before.all));
    before = {all - idle, all, true};
  }
  if (!hidden("cpu_frequency")) {
    // cpufreq if there is a driver, else what /proc/cpuinfo says.
    bool any = false;
    for (size_t core = 0; core < cpu_times_.size(); ++core) {
      if (!cpu_times_[core].known) continue;
      const std::string text =
          read_small(fmt::format("{}/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", options_.sys, core));
      if (text.empty()) continue;
      size_t at = 0;
      any = true;
      record({fmt::format("CPU Frequency [{}]", core), "MHz", "clock of the core", "cpu_frequency"}, time,
             static_cast<double>(number_at(text, at)) / 1000);
    }
    if (!any) {
      const std::string info = read_small(options_.proc + "/cpuinfo");
      int core = -1;
      for (size_t line = 0; line < info.size();) {
        const size_t end = std::min(info.find('\n', line), info.size());
        const std::string_view text = std::string_view(info).substr(line, end - line);
        line = end + 1;
        const size_t colon = text.find(':');
        if (colon == std::string_view::npos) continue;
        if (text.starts_with("processor")) core = atoi(std::string(text.substr(colon + 1)).c_str());
        if (text.starts_with("cpu MHz") && core >= 0 && (!options_.cpus || options_.cpus->contains(core)))
          record({fmt::format("CPU Frequency [{}]", core), "MHz", "clock of the core", "cpu_frequency"}, time,
                 strtod(std::string(text.substr(colon + 1)).c_str(), nullptr));
      }
      if (core < 0) complain_once("neither cpufreq nor /proc/cpuinfo gives the frequency of CPU cores");
    }
  }
  if (!hidden("memory")) {
    const std::string memory = read_small(options_.proc + "/meminfo");
    const auto total = field(memory, "MemTotal"), available = field(memory, "MemAvailable");
    if (total && available) {
      record({"Memory Used", "B", "memory of the machine that is not available to programs", "memory"}, time,
             static_cast<double>(*total - std::min(*total, *available)) * 1024);
      record({"Memory Available", "B", "memory of the machine that programs could still get", "memory"}, time,
             static_cast<double>(*available) * 1024);
    } else {
      complain_once(fmt::format("{}/meminfo cannot be read: no memory of the machine", options_.proc));
    }
  }
}

// Processes

void Telemetry::find_descendants(pid_t target, std::vector<pid_t>& out) {
  out.push_back(target);
  const std::string own_children = fmt::format("{}/{}/task/{}/children", options_.proc, target, target);
  if (access(own_children.c_str(), R_OK) == 0) {
    for (size_t i = 0; i < out.size() && out.size() < kMostProcesses; ++i) {
      const std::string tasks = fmt::format("{}/{}/task", options_.proc, out[i]);
      size_t looked = 0;
      each_entry(tasks, [&](const char* name) {
        if (*name == '.' || ++looked > 1024) return;
        const std::string children = read_small(tasks + "/" + name + "/children");
        for (size_t at = 0; at < children.size() && out.size() < kMostProcesses;) {
          const auto child = static_cast<pid_t>(number_at(children, at));
          if (child <= 0) break;
          out.push_back(child);
        }
      });
    }
    return;
  }
  // A kernel without `children` files: everybody's parent.
  std::multimap<pid_t, pid_t> children;
  each_entry(options_.proc, [&](const char* name) {
    const pid_t pid = pid_of(name);
    if (pid == 0) return;
    if (const auto stat = parse_stat(read_small(options_.proc + "/" + name + "/stat")))
      children.emplace(stat->parent, pid);
  });
  for (size_t i = 0; i < out.size() && out.size() < kMostProcesses; ++i)
    for (auto [at, end] = children.equal_range(out[i]); at != end && out.size() < kMostProcesses; ++at)
      out.push_back(at->second);
}

void Telemetry::read_processes(pid_t target, int64_t time) {
  std::vector<pid_t> processes;
  find_descendants(target, processes);
  bool any = false;
  for (const pid_t pid : processes) any = read_process(pid, time) || any;
  // A program that has ended already has no entry, and nothing is missing.
  const std::string entry = fmt::format("{}/{}", options_.proc, target);
  const bool ended = access(options_.proc.c_str(), F_OK) == 0 && access(entry.c_str(), F_OK) != 0;
  if (!any && rounds_ == 0 && !ended)
    complain_once(entry + "/stat cannot be read: no telemetry of the program's processes");
  // Forgets processes that ended; their rows are in the trace.
  if (process_times_.size() > 2 * kMostProcesses)
    std::erase_if(process_times_, [&](const auto& entry) {
      return std::find(processes.begin(), processes.end(), entry.first) == processes.end();
    });
}

bool Telemetry::read_process(pid_t pid, int64_t time) {
  const std::string folder = fmt::format("{}/{}", options_.proc, pid);
  const auto stat = parse_stat(read_small(folder + "/stat"));
  // Of one that has ended, all is 0; its memory goes before its state says so.
  if (!stat || stat->state == 'Z' || stat->state == 'X' || stat->virtual_bytes == 0) return false;
  ProcessTimes& before = process_times_[pid];
  if (before.name != stat->name) {
    before.name = stat->name;
    const std::lock_guard lock(mutex_);
    seen_[pid] = {stat->name, stat->parent};
  }
  static const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  static const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto put = [&](const char* name, const char* unit, const char* text, const char* category, double value) {
    if (!hidden(category)) record({name, unit, text, category, pid, -1}, time, value);
  };
  const double user = static_cast<double>(stat->user_ticks) * tick,
               system = static_cast<double>(stat->system_ticks) * tick;
  put("CPU User Time", "s", "CPU time in user mode since the process began", "process_user_cpu_time", user);
  put("CPU Kernel Time", "s", "CPU time in the kernel since the process began", "process_kernel_cpu_time", system);
  if (before.time != 0 && time > before.time)
    put("CPU Usage", "%", "CPU time per time; 100 = one core", "process_cpu_usage",
        100.0 * (user + system - before.cpu_s) / (static_cast<double>(time - before.time) * 1e-9));
  before.cpu_s = user + system;
  before.time = time;
  put("CPU Memory Usage", "B", "resident memory (RSS)", "process_memory",
      static_cast<double>(stat->resident_pages) * page);
  put("CPU Virtual Memory Usage", "B", "virtual memory", "process_virtual_memory",
      static_cast<double>(stat->virtual_bytes));
  put("CPU Page Faults", "", "minor and major page faults since the process began", "process_page_fault",
      static_cast<double>(stat->minor_faults + stat->major_faults));
  put("Threads", "", "threads of the process", "process_threads", static_cast<double>(stat->threads));
  if (!hidden("process_memory_hwm"))
    if (const auto peak = field(read_small(folder + "/status"), "VmHWM"))
      put("CPU Peak Memory", "B", "most resident memory so far", "process_memory_hwm",
          static_cast<double>(*peak) * 1024);
  // The kernel counts context switches by thread; with many threads they are read less often.
  if (!hidden("process_context_switch") && (stat->threads <= 64 || before.round % (stat->threads / 32) == 0)) {
    each_entry(folder + "/task", [&](const char* name) {
      const pid_t tid = pid_of(name);
      if (tid == 0) return;
      const std::string status = read_small(folder + "/task/" + name + "/status");
      const auto voluntary = field(status, "voluntary_ctxt_switches"),
                 forced = field(status, "nonvoluntary_ctxt_switches");
      if (voluntary && forced && before.switches.size() < 100'000) before.switches[tid] = *voluntary + *forced;
    });
    uint64_t sum = 0;
    for (const auto& [tid, count] : before.switches) sum += count;
    put("CPU Context Switches", "", "voluntary and forced context switches of all threads", "process_context_switch",
        static_cast<double>(sum));
  }
  if (!hidden("process_io") && !before.io_refused) {
    const std::string io = read_small(folder + "/io");
    if (const auto bytes_read = field(io, "rchar"), written = field(io, "wchar"); bytes_read && written) {
      put("IO Read", "B", "bytes that read calls returned since the process began", "process_io",
          static_cast<double>(*bytes_read));
      put("IO Written", "B", "bytes that write calls took since the process began", "process_io",
          static_cast<double>(*written));
      put("Disk Read", "B", "bytes fetched from storage", "process_io",
          static_cast<double>(field(io, "read_bytes").value_or(0)));
      put("Disk Written", "B", "bytes sent to storage", "process_io",
          static_cast<double>(field(io, "write_bytes").value_or(0)));
    } else if (access((folder + "/stat").c_str(), F_OK) == 0) {
      before.io_refused = true;
      complain_once(fmt::format("{}/io of process {} cannot be read (another user's, or setuid): no I/O of it",
                                options_.proc, stat->name));
    }
  }
  ++before.round;
  return true;
}

// GPUs

void Telemetry::read_gpus(int64_t time) {
  std::vector<vendor::GpuReading> readings;
  std::vector<std::string> problems;
  const vendor::GpuSelection selection{options_.gpus, options_.gpu_metrics, options_.hz};
  for (const auto& monitor : gpus_) monitor->read(selection, readings, problems);
  for (const vendor::GpuReading& reading : readings)
    if (!hidden(reading.category))
      record({reading.name, reading.unit, reading.text, reading.category, 0, reading.gpu}, time, reading.value);
  for (const std::string& problem : problems) complain_once(problem);
}

// Into the trace

void Telemetry::deliver(trace::TraceWriter& writer) {
  std::vector<Value> values;
  {
    const std::lock_guard lock(mutex_);
    values.swap(values_);
    for (size_t i = tracks_.size(); i < series_.size(); ++i) {
      const Series& series = series_[i];
      const int64_t counter = writer.dimension(row::Counter{.name = writer.string(series.name),
                                                            .unit = writer.string(series.unit),
                                                            .text = writer.string(series.text),
                                                            .block = writer.string(series.category)});
      tracks_.push_back(writer.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                    .native = series.pid != 0 ? series.pid : series.device + 1,
                                                    .name = writer.string(series.name),
                                                    .category = writer.string(series.pid != 0      ? "telemetry.process"
                                                                              : series.device >= 0 ? "telemetry.gpu"
                                                                                                   : "telemetry.cpu"),
                                                    .counter = counter}));
    }
  }
  for (const Value& value : values)
    writer.add(row::Reading{
        .track = tracks_[value.series], .start = value.time, .value = std::bit_cast<int64_t>(value.value)});
}

std::set<pid_t> Telemetry::seen_processes() const {
  const std::lock_guard lock(mutex_);
  std::set<pid_t> pids;
  for (const auto& [pid, facts] : seen_) pids.insert(pid);
  return pids;
}

void Telemetry::finish(trace::TraceWriter& writer, const std::map<uint32_t, int64_t>& processes) {
  deliver(writer);
  std::map<pid_t, int64_t> made;
  for (size_t i = 0; i < tracks_.size(); ++i) {
    const Series& series = series_[i];
    if (series.pid == 0) continue;
    int64_t row = 0;
    if (const auto known = processes.find(static_cast<uint32_t>(series.pid)); known != processes.end()) {
      row = known->second;
    } else {
      // A process that libtacho.so is not in.
      int64_t& fresh = made[series.pid];
      if (fresh == 0) {
        const auto& [name, parent] = seen_[series.pid];
        fresh = writer.dimension(row::Process{.pid = series.pid,
                                              .parent_pid = parent,
                                              .start = 0,
                                              .name = writer.string(name),
                                              .command = writer.string(name)});
      }
      row = fresh;
    }
    writer.update(Table::kTrack, tracks_[i], event::column::Track::process, row);
  }
  for (const auto& [key, value] : properties_) writer.property(Table::kEnd, 0, key, value);
  for (const std::string& note : notes_) writer.note(0, event::NoteSeverity::kWarning, note);
  if (options_.any()) writer.property(Table::kEnd, 0, "telemetry_hz", fmt::format("{}", options_.hz));
  if (cpu_s_ > 0) writer.property(Table::kEnd, 0, "telemetry_cpu_seconds", fmt::format("{:.6f}", cpu_s_));
}

}  // namespace tacho::launch
