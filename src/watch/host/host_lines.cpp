// Events and rings of the kernel, and the names of what they saw (host_lines.h).
#include "watch/host/host_lines.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/format.h"
#include "base/text/demangle.h"
#include "base/thread.h"

namespace tacho::watch {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr const char* kNoFile = "[code without a file]";

// Ring of a thread: the kernel's page, and one of data, which holds three seconds of samples.
size_t ring_bytes() {
  return 2 * kPage;
}

int open_event(pid_t tid) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_CPU_CLOCK;
  event.sample_period = 1'000'000'000 / HostSampler::kRate;
  event.sample_type = PERF_SAMPLE_IP;
  // Without the kernel's code, so that it needs no permission beyond that of the program's user.
  event.exclude_kernel = event.exclude_hv = event.exclude_guest = event.exclude_callchain_kernel = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &event, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::string paranoid() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  std::string level;
  std::getline(file, level);
  return level;
}

// Whether the file would take what tacho needs for its own: pages that it serves, files that it writes.
bool is_one_too_many(int file) {
  constexpr rlim_t kOwn = 64;
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(file) + kOwn >= limit.rlim_cur;
}

// Numbers of the threads of a process; nothing when it has gone.
std::vector<pid_t> threads_of(uint32_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator at(fmt::format("/proc/{}/task", pid), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    pid_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec == std::errc()) threads.push_back(tid);
  }
  return threads;
}

}  // namespace

HostSampler::HostSampler(std::function<std::vector<uint32_t>()> processes) : processes_(std::move(processes)) {
  thread_ = thread_without_signals([this] { loop(); });
}

HostSampler::~HostSampler() {
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (auto& [tid, thread] : threads_) close_thread(thread);
}

HostLines HostSampler::latest() const {
  const std::lock_guard held(lock_);
  return latest_;
}

void HostSampler::loop() {
  std::unique_lock held(lock_);
  while (!end_) {
    held.unlock();
    look();
    held.lock();
    changed_.wait_for(held, std::chrono::seconds(1), [this] { return end_; });
  }
}

// What happened in the last second, and which threads there are for the next one.
void HostSampler::look() {
  seconds_.emplace_back();
  if (seconds_.size() > kSeconds) seconds_.pop_front();
  mapped_now_.clear();
  for (auto& [tid, thread] : threads_) {
    read(thread);
    thread.seen = false;
  }
  const std::vector<uint32_t> processes = processes_();
  for (const uint32_t pid : processes) follow(pid);
  for (auto at = threads_.begin(); at != threads_.end();) {
    if (at->second.seen) {
      ++at;
      continue;
    }
    read(at->second);
    close_thread(at->second);
    at = threads_.erase(at);
  }
  std::erase_if(maps_, [&](const auto& each) {
    return std::find(processes.begin(), processes.end(), each.first) == processes.end();
  });
  publish();
}

void HostSampler::follow(uint32_t pid) {
  for (const pid_t tid : threads_of(pid)) {
    if (const auto known = threads_.find(tid); known != threads_.end()) {
      known->second.seen = known->second.pid == pid;
      if (known->second.seen) continue;
      close_thread(known->second);  // the number is another thread's by now
      threads_.erase(known);
    }
    open_thread(pid, tid);
  }
}

void HostSampler::open_thread(uint32_t pid, pid_t tid) {
  if (threads_.size() >= kMostThreads) {
    problem_ = fmt::format("The lines of the host are those of {} threads; the others are not sampled.", kMostThreads);
    return;
  }
  const int file = open_event(tid);
  if (file < 0) {
    if (errno == ESRCH) return;  // it has ended
    problem_ =
        errno == EACCES || errno == EPERM
            ? fmt::format("The kernel does not let tacho sample the host's code (perf_event_open: {}; "
                          "kernel.perf_event_paranoid is {}): sysctl kernel.perf_event_paranoid=2, or a container that "
                          "allows the call.",
                          strerror(errno), paranoid())
            : fmt::format("The kernel cannot sample the host's code (perf_event_open: {}).", strerror(errno));
    return;
  }
  if (is_one_too_many(file)) {
    problem_ =
        fmt::format("The lines of the host are those of {} threads; for more, raise ulimit -n.", threads_.size());
    close(file);
    return;
  }
  void* const ring = mmap(nullptr, ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (ring == MAP_FAILED) {
    problem_ = fmt::format("No memory for sampling all threads of the host ({}): raise ulimit -l or "
                           "kernel.perf_event_mlock_kb.",
                           strerror(errno));
    close(file);
    return;
  }
  threads_[tid] = {pid, file, ring, true};
}

void HostSampler::close_thread(Thread& thread) {
  munmap(thread.ring, ring_bytes());
  close(thread.file);
}

// All that the kernel has written into the ring.
void HostSampler::read(const Thread& thread) {
  auto* const page = static_cast<perf_event_mmap_page*>(thread.ring);
  const std::byte* const data = static_cast<const std::byte*>(thread.ring) + kPage;
  const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  uint64_t tail = page->data_tail;
  const auto copy = [&](uint64_t from, void* to, size_t size) {
    const size_t first = std::min<size_t>(size, kPage - from % kPage);
    memcpy(to, data + from % kPage, first);
    memcpy(static_cast<std::byte*>(to) + first, data, size - first);
  };
  while (head - tail >= sizeof(perf_event_header)) {
    perf_event_header header;
    copy(tail, &header, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    uint64_t address = 0;
    if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof header + sizeof address) {
      copy(tail + sizeof header, &address, sizeof address);
      count(thread.pid, address);
    }
    tail += header.size;
  }
  std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
}

void HostSampler::count(uint32_t pid, uint64_t address) {
  Map* const map = map_of(pid, address);
  if (map == nullptr || (!map->path.starts_with('/') && map->path != "[vdso]")) {
    ++seconds_.back()[Line{"", "", 0, kNoFile}];
    return;
  }
  if (map->module == nullptr) map->module = modules_.module(map->path, pid);
  ++seconds_.back()[line_of(*map->module, map->module->address_of(address - map->begin + map->offset))];
}

// Reads the maps anew where an address is in none of those that are known, once a second.
HostSampler::Map* HostSampler::map_of(uint32_t pid, uint64_t address) {
  std::vector<Map>& maps = maps_[pid];
  const auto find = [&]() -> Map* {
    const auto after = std::upper_bound(maps.begin(), maps.end(), address,
                                        [](uint64_t value, const Map& map) { return value < map.begin; });
    return after != maps.begin() && address < std::prev(after)->end ? &*std::prev(after) : nullptr;
  };
  if (Map* const found = find(); found != nullptr || std::exchange(mapped_now_[pid], true)) return found;
  std::ifstream file(fmt::format("/proc/{}/maps", pid));
  std::vector<Map> fresh;
  for (std::string line; std::getline(file, line);) {
    Map map;
    char may[5] = {};
    int path = 0;
    if (sscanf(line.c_str(), "%lx-%lx %4s %lx %*x:%*x %*u %n", &map.begin, &map.end, may, &map.offset, &path) < 4 ||
        may[2] != 'x')
      continue;
    map.path = line.substr(std::min<size_t>(static_cast<size_t>(path), line.size()));
    fresh.push_back(std::move(map));
  }
  if (!fresh.empty()) maps = std::move(fresh);
  return find();
}

const HostSampler::Line& HostSampler::line_of(decode::CodeModule& module, uint64_t address) {
  constexpr size_t kMostAddresses = 1 << 16;
  if (known_.size() >= kMostAddresses) known_.clear();
  const auto [at, is_new] = known_.try_emplace({&module, address});
  if (!is_new) return at->second;
  const decode::Symbol symbol = module.symbol(address);
  const decode::SourceLine source = module.line(address);
  at->second = {demangle(symbol.name), source.line > 0 ? source.file : "", source.line, module.name()};
  return at->second;
}

void HostSampler::publish() {
  std::map<Line, uint64_t> sums;
  HostLines now;
  for (const auto& second : seconds_)
    for (const auto& [line, samples] : second) {
      sums[line] += samples;
      now.samples += samples;
    }
  std::vector<std::pair<uint64_t, const Line*>> order;
  for (const auto& [line, samples] : sums) order.emplace_back(samples, &line);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.size() > kMostLines) order.resize(kMostLines);
  for (const auto& [samples, line] : order)
    now.lines.push_back({std::get<0>(*line), std::get<1>(*line), std::get<2>(*line), std::get<3>(*line),
                         static_cast<double>(samples) / static_cast<double>(now.samples)});
  // The first look finds nothing yet.
  const size_t seconds = std::max<size_t>(seconds_.size() - (seconds_.size() < kSeconds ? 1 : 0), 1);
  now.processors = static_cast<double>(now.samples) / static_cast<double>(kRate * seconds);
  now.problem = problem_;
  const std::lock_guard held(lock_);
  latest_ = std::move(now);
}

}  // namespace tacho::watch
