// Descriptors and readings of CPU counters (counts.h). A thread opens its own counters, also inside the handler of a
// sample: system calls only.
#include "capture/source/sampler/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "capture/per_thread.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::sampler {
namespace {

constexpr uint32_t kMostEvents = event::kMostCpuEvents;

struct Event {
  uint32_t type;
  uint64_t config;
};
// Set before the first thread counts.
constinit Event g_events[kMostEvents] = {};
constinit uint32_t g_count = 0;
constinit std::atomic<bool> g_without_kernel{false}, g_refused{false};

struct Thread {
  uint64_t generation;
  uint64_t ids[kMostEvents];      // the kernel's, to know our descriptors again
  double at_sample[kMostEvents];  // counts at the sample before
  double at_call[kMostEvents];    // and before the outermost launching call
  int32_t files[kMostEvents];     // + 1; 0 = none
  uint32_t tid;                   // the counters' thread
  uint32_t calls;                 // launching calls that are open
  bool open, sampled;
};
constinit PerThread<Thread> g_threads;

// "TYPE:CONFIG,TYPE:CONFIG", decimal numbers.
void parse(std::string_view list) {
  uint64_t numbers[2] = {};
  int at = 0;
  for (size_t i = 0; i <= list.size() && g_count < kMostEvents; ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c >= '0' && c <= '9') {
      numbers[at] = numbers[at] * 10 + static_cast<uint64_t>(c - '0');
    } else if (c == ':') {
      at = 1;
    } else {
      if (at == 1) g_events[g_count++] = {static_cast<uint32_t>(numbers[0]), numbers[1]};
      numbers[0] = numbers[1] = 0;
      at = 0;
    }
  }
}

int open_event(const Event& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const auto open = [&] {
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  };
  int file = open();
  if (file < 0 && (errno == EACCES || errno == EPERM)) {
    attributes.exclude_kernel = 1;
    file = open();
    if (file >= 0) g_without_kernel.store(true, std::memory_order_relaxed);
  }
  if (file < 0) return file;
  // The low numbers are the program's.
  rlimit limit{};
  int least = 512;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1024) least = static_cast<int>(limit.rlim_cur / 2);
  const int high = fcntl(file, F_DUPFD_CLOEXEC, least);
  if (high < 0) return file;
  close(file);
  return high;
}

void open_all(Thread& thread) {
  thread.open = true;
  thread.tid = tape::t_state.tid;
  for (uint32_t i = 0; i < g_count; ++i) {
    const int file = open_event(g_events[i]);
    if (file < 0 || ioctl(file, PERF_EVENT_IOC_ID, &thread.ids[i]) != 0) {
      if (file >= 0) close(file);
      g_refused.store(true, std::memory_order_relaxed);
      continue;
    }
    thread.files[i] = file + 1;
  }
}

// The count since the thread's counters were opened; negative = unknown. Does not read a descriptor that the program
// has closed, and perhaps opened for itself.
double count_of(Thread& thread, uint32_t i) {
  const int file = thread.files[i] - 1;
  uint64_t id = 0;
  if (file < 0) return -1;
  if (ioctl(file, PERF_EVENT_IOC_ID, &id) != 0 || id != thread.ids[i]) {
    thread.files[i] = 0;
    return -1;
  }
  uint64_t words[3];  // value, time enabled, time running
  if (read(file, words, sizeof words) != static_cast<ssize_t>(sizeof words) || words[2] == 0) return -1;
  const auto value = static_cast<double>(words[0]);
  // More events than the CPU has counters take turns.
  return words[2] >= words[1] ? value : value * (static_cast<double>(words[1]) / static_cast<double>(words[2]));
}

// The thread's state with open counters.
Thread* counted_thread() {
  Thread* const thread = g_threads.get();
  if (thread == nullptr) return nullptr;
  if (!thread->open) open_all(*thread);
  return thread;
}

void write(const Thread& thread, event::CountsOf of, const double* now, const double* before, uint64_t time,
           uint64_t correlation) {
  auto* const record =
      tape::begin<event::CountsRecord>(event::RecordKind::kCounts, event::Table::kReading, g_count,
                                       static_cast<uint8_t>(of), g_count * static_cast<uint32_t>(sizeof(double)));
  if (record == nullptr) return;
  record->time = time;
  record->correlation = correlation;
  record->tid = thread.tid;
  record->reserved = 0;
  auto* const counts = reinterpret_cast<double*>(record + 1);
  for (uint32_t i = 0; i < g_count; ++i) {
    const double change = now[i] - before[i];
    counts[i] = now[i] < 0 || before[i] < 0 ? -1 : change < 0 ? 0 : change;
  }
  tape::commit();
}

}  // namespace

constinit std::atomic<bool> g_counting{false};

void start_counts() {
  static constinit std::atomic<bool> started{false};
  if (tape::configuration().cpu_events.empty() || started.exchange(true, std::memory_order_relaxed)) return;
  parse(tape::configuration().cpu_events);
  if (g_count == 0) return;
  tape::define_property(event::Table::kProcess, 0, "cpu events", tape::configuration().cpu_event_names);
  g_counting.store(true, std::memory_order_release);
}

void sample_counts(uint64_t time) {
  if (!counts_calls() || !tape::enabled(tape::source_bit::kCounter)) return;
  Thread* const thread = counted_thread();
  if (thread == nullptr) return;
  double now[kMostEvents];
  for (uint32_t i = 0; i < g_count; ++i) now[i] = count_of(*thread, i);
  // The first sample has nothing before it but the opening.
  if (thread->sampled) write(*thread, event::CountsOf::kSample, now, thread->at_sample, time, 0);
  thread->sampled = true;
  memcpy(thread->at_sample, now, sizeof now);
}

void end_counts() {
  if (!counts_calls()) return;
  Thread* const thread = g_threads.get();
  if (thread == nullptr || !thread->open) return;
  for (uint32_t i = 0; i < g_count; ++i) {
    const int file = thread->files[i] - 1;
    uint64_t id = 0;
    if (file >= 0 && ioctl(file, PERF_EVENT_IOC_ID, &id) == 0 && id == thread->ids[i]) close(file);
    thread->files[i] = 0;
  }
}

void begin_call_counts() {
  if (!tape::enabled(tape::source_bit::kCounter)) return;
  const int kept_errno = errno;
  Thread* const thread = counted_thread();
  // A runtime's call and the driver's call in it: the outer one counts.
  if (thread != nullptr && thread->calls++ == 0)
    for (uint32_t i = 0; i < g_count; ++i) thread->at_call[i] = count_of(*thread, i);
  errno = kept_errno;
}

void end_call_counts(uint64_t correlation, uint64_t time) {
  const int kept_errno = errno;
  Thread* const thread = g_threads.get();
  if (thread != nullptr && thread->calls != 0 && --thread->calls == 0 && tape::enabled(tape::source_bit::kCounter)) {
    double now[kMostEvents];
    for (uint32_t i = 0; i < g_count; ++i) now[i] = count_of(*thread, i);
    write(*thread, event::CountsOf::kCall, now, thread->at_call, time, correlation);
  }
  errno = kept_errno;
}

__attribute__((destructor)) void tell_limits() {
  if (!counts_calls() || !tape::attached()) return;
  if (g_without_kernel.load(std::memory_order_relaxed))
    tape::note(event::NoteSeverity::kWarning,
               "CPU counters leave out the time in the kernel (kernel.perf_event_paranoid is 2 or more): context "
               "switches and moves between CPUs count 0");
  if (g_refused.load(std::memory_order_relaxed))
    tape::note(event::NoteSeverity::kWarning, "the kernel gave some threads no CPU counters (too many open files, "
                                              "ulimit -n?): their counts are missing");
}

}  // namespace tacho::capture::sampler
