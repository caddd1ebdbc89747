// From an Activity to the quantities of the rules (quantities.h).
#include "analysis/findings/quantities.h"

#include <algorithm>
#include <span>

#include "analysis/findings/gpu_balance.h"
#include "analysis/memory/faults.h"
#include "analysis/operators/places.h"
#include "analysis/stacks/own_code.h"
#include "analysis/time/run_facts.h"
#include "analysis/time/slow_stretches.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "report/text.h"
#include "walk/time/span.h"

namespace tacho::analysis {

using event::Table;
namespace column = event::column;

namespace {

using enum SubjectKind;
constexpr Quantity kQuantities[] = {
    {"run-time", "Time of the run", "ns", kRun},
    {"device-work", "Kernels, copies and fills", "count", kRun},
    {"top-line", "The line", "word", kRun},
    {"top-line-time", "Time in the line and in the libraries that it calls", "ns", kRun},
    {"sampled-time", "Host time, by samples", "ns", kRun},
    {"line-samples", "Samples", "count", kRun},
    {"samples-of", "What the samples are of", "word", kRun},
    {"wall-samples", "samples of wall time count threads that wait, too", "reason", kRun},
    {"top-call", "The call", "word", kRun},
    {"top-call-thread", "Its thread", "word", kRun},
    {"top-call-time", "Time in it", "ns", kRun},
    {"top-call-count", "Calls", "count", kRun},
    {"lock-time", "Waiting for Python's lock", "ns", kRun},
    {"lock-thread-time", "Samples of that thread", "ns", kRun},
    {"lock-thread", "The thread", "word", kRun},
    {"gpus-used", "GPUs that did something", "count", kRun},
    {"gpus-compared", "GPUs of one run that did something", "count", kRun},
    {"gpus-unused", "GPUs that did nothing", "count", kRun},
    {"busiest-time", "Own work of the GPU with most of it", "ns", kRun},
    {"busy-mean", "Mean own work of these GPUs", "ns", kRun},
    {"compared-time", "Time of the run whose GPUs are compared", "ns", kRun},
    {"busiest", "The GPU with most work", "word", kRun},
    {"least-busy", "The GPU with the least work", "word", kRun},
    {"least-busy-time", "Its own work", "ns", kRun},
    {"many-ranks", "the process is one rank of a job whose other ranks use them", "reason", kRun},
    {"late-rank", "The rank", "word", kRun},
    {"roof-operator", "The operator", "word", kRun},
    {"roof-bound", "What its roof is of", "word", kRun},
    {"roof-percent", "What it reaches of its roof", "%", kRun},
    {"roof-lost", "Time of such operators above what their roofs ask", "ns", kRun},
    {"roof-lost-least", "Time above what healthy operators take", "ns", kRun},
    {"roof-gpu-time", "GPU time of the trace", "ns", kRun},
    {"roof-run-time", "Length of the run, times the part of its GPU time that has shapes", "ns", kRun},
    {"roof-together", "The operators far below their roof", "word", kRun},
    {"converting-time", "Operators' changes of type and layout", "ns", kRun},
    {"converting-worst", "The operator with most of it", "word", kRun},
    {"single-time", "Matrix products of 32-bit numbers", "ns", kRun},
    {"single-saved", "Of it, what faster types would save", "ns", kRun},
    {"single-worst", "The longest of them", "word", kRun},
    {"few-rows-time", "Matrix products of few rows", "ns", kRun},
    {"few-rows-worst", "The longest of them", "word", kRun},
    {"unfused-time", "Attention as separate products and softmax", "ns", kRun},
    {"unfused-saved", "Of it, what fast fused kernels would save", "ns", kRun},
    {"unfused-saved-least", "Of it, what slow fused kernels would save", "ns", kRun},
    {"unfused-worst", "The longest of them", "word", kRun},
    {"double-time", "Operators on 64-bit floating-point numbers", "ns", kRun},
    {"double-saved", "Of it, what 32 bits would save", "ns", kRun},
    {"double-worst", "The longest of them", "word", kRun},
    {"copying-time", "Copies of tensors on the device", "ns", kRun},
    {"copying-what", "What they change", "word", kRun},
    {"copying-worst", "The longest of them", "word", kRun},
    {"optimizer-time", "Optimizers that step one tensor at a time", "ns", kRun},
    {"optimizer-saved", "Of it, what a fused step would save", "ns", kRun},
    {"optimizer-worst", "The longest of them", "word", kRun},
    {"late-cause", "Why it is late", "word", kRun},
    {"late-collectives", "Collectives to which it came last", "count", kRun},
    {"all-collectives", "Collectives", "count", kRun},
    {"late-time", "Mean time that another rank waited for it", "ns", kRun},

    {"device", "Device", "word", kDevice},
    {"device-span", "First to last work of the device", "ns", kDevice},
    {"steady-span", "First to last work of the device, its start-up left out", "ns", kDevice},
    {"start-time", "From its first work to that which repeats", "ns", kDevice},
    {"start-idle", "Idle in this time", "ns", kDevice},
    {"start-cause", "What the host did in most of it", "word", kDevice},
    {"start-left-out", "The start-up, where it is not counted", "word", kDevice},
    {"device-busy", "Time in which the device did anything", "ns", kDevice},
    {"cpu-device", "The device is a CPU", "reason", kDevice},
    {"is-cpu", "The device is a CPU, to which no memory is pinned", "reason", kDevice},
    {"launch-gaps", "Gaps while the host launched", "count", kDevice},
    {"launch-gap-time", "Idle while the host launched", "ns", kDevice},
    {"launch-gap-mean", "Mean gap while the host launched", "ns", kDevice},
    {"few-launch-gaps", "there are few such gaps, and more of the same work may have none", "reason", kDevice},
    {"wait-gaps", "Gaps after the host had waited", "count", kDevice},
    {"wait-gap-time", "Idle after the host had waited", "ns", kDevice},
    {"wait-gap-mean", "Mean gap after the host had waited", "ns", kDevice},
    {"few-wait-gaps", "there are few such gaps, and more of the same work may have none", "reason", kDevice},
    {"wait-gap-hideable", "Of it no more than the host had waited before each gap", "ns", kDevice},
    {"copy-gaps", "Gaps after a copy that the host waited for", "count", kDevice},
    {"copy-gap-time", "Idle after a copy that the host waited for", "ns", kDevice},
    {"copy-gap-hideable", "Of it no more than the copies took", "ns", kDevice},
    {"host-gaps", "Gaps while the host ran its own code", "count", kDevice},
    {"host-gap-time", "Idle while the host ran its own code", "ns", kDevice},
    {"host-gap-mean", "Mean gap while the host ran its own code", "ns", kDevice},
    {"host-was-in", "What it did", "word", kDevice},
    {"host-after-waits", "What most of these gaps follow", "word", kDevice},
    {"host-gap-named", "Of it, in what has a finding of its own", "ns", kDevice},
    {"host-gaps-waited", "Such gaps after a wait for the device", "count", kDevice},
    {"host-gap-waited", "Of it, what would fit into that waiting", "ns", kDevice},
    {"waited-in", "Where the host waited", "word", kDevice},
    {"copied-in", "Where the host asked for copies", "word", kDevice},
    {"allocate-gap-time", "Idle while the host got or freed memory", "ns", kDevice},
    {"load-gap-time", "Idle while the host compiled or loaded", "ns", kDevice},
    {"call-gap-time", "Idle while the host was in other calls", "ns", kDevice},
    {"queued-gaps", "Gaps with work asked for", "count", kDevice},
    {"queued-gap-time", "Idle with work asked for", "ns", kDevice},
    {"queued-gap-mean", "Mean gap with work asked for", "ns", kDevice},
    {"few-queued-gaps", "there are few such gaps, and more of the same work may have none", "reason", kDevice},
    {"kernels", "Kernels", "count", kDevice},
    {"kernel-sum", "Kernels' durations added up", "ns", kDevice},
    {"kernel-time", "Time in which a kernel ran", "ns", kDevice},
    {"kernel-mean", "Mean kernel", "ns", kDevice},
    {"launch-call-mean", "Mean launching call", "ns", kDevice},
    {"launched-kernels", "Kernels with a launch of their own", "count", kDevice},
    {"long-kernels", "Of these, kernels of 10 us and more", "count", kDevice},
    {"waited-launches", "Of these, launches that returned only when the kernel had ended", "count", kDevice},
    {"waited-launch-share", "Launches of kernels of 10 us and more that waited for the kernel's end", "%", kDevice},
    {"launches-wait", "launches wait for their kernels", "reason", kDevice},
    {"tiny-kernels", "Kernels shorter than their launch", "count", kDevice},
    {"tiny-call-time", "Time in the calls that launched them", "ns", kDevice},
    {"tiny-kernel-time", "Their own time", "ns", kDevice},
    {"tiny-gap-time", "Idle while the host launched them", "ns", kDevice},
    {"tiny-kernel", "Most frequent of them", "word", kDevice},
    {"elementwise-rows", "Rows of elementwise kernels", "count", kDevice},
    {"elementwise-kernels", "Elementwise kernels in rows", "count", kDevice},
    {"elementwise-time", "Time of elementwise kernels in rows", "ns", kDevice},
    {"elementwise-saved", "Of it, what one kernel for each row would save", "ns", kDevice},
    {"copies", "Copies between host and device", "count", kDevice},
    {"copy-time", "Copies' durations added up", "ns", kDevice},
    {"copy-bytes", "Bytes copied", "bytes", kDevice},
    {"exposed-copy-time", "Copies with nothing beside them", "ns", kDevice},
    {"blocking-copies", "Copies that the host waited for", "count", kDevice},
    {"exposed-blocking-time", "Copies that the host waited for, with nothing beside them", "ns", kDevice},
    {"pageable-copies", "Copies of pageable memory", "count", kDevice},
    {"pageable-bytes", "Bytes of pageable memory", "bytes", kDevice},
    {"exposed-pageable-time", "Copies of pageable memory with nothing beside them", "ns", kDevice},
    {"small-copies", "Small copies in rows", "count", kDevice},
    {"small-copy-rows", "Rows of them", "count", kDevice},
    {"small-copy-time", "Time in rows of small copies", "ns", kDevice},
    {"small-copy-floor", "What one copy each would save at least", "ns", kDevice},
    {"small-copy-saved", "What one copy each would save at most", "ns", kDevice},
    {"collectives", "Collectives", "count", kDevice},
    {"collective-time", "Time in which a collective ran", "ns", kDevice},
    {"exposed-collective-time", "Collectives with no other kernel beside them", "ns", kDevice},
    {"streams", "Streams with a tenth of the kernels' time", "count", kDevice},
    {"stream-overlap", "Time in which two kernels ran at once", "ns", kDevice},
    {"stream-waits", "the program makes streams wait for each other's events, and may need to", "reason", kDevice},
    {"serial-kernels", "Kernels that waited for one of another stream", "count", kDevice},
    {"serial-time", "Time in which two kernels could have run at once", "ns", kDevice},
    {"compute-units", "Compute units", "count", kDevice},
    {"small-grid-time", "Kernels with fewer workgroups than compute units", "ns", kDevice},
    {"small-grid-idle", "The idle units' part of it", "ns", kDevice},
    {"small-grid-groups", "Workgroups", "count", kDevice},
    {"small-grid-kernel", "The longest of them", "word", kDevice},
    {"low-occupancy-time", "Kernels that leave three quarters of the threads empty", "ns", kDevice},
    {"low-occupancy-lost", "Their time times what is missing to half of the threads", "ns", kDevice},
    {"low-occupancy-percent", "Threads of the longest of them", "%", kDevice},
    {"low-occupancy-kernel", "The longest of them", "word", kDevice},
    {"low-occupancy-limit", "What limits it", "word", kDevice},
    {"loading-time", "Idle inside a data loader", "ns", kDevice},
    {"compiling-time", "Idle while the host compiled a model, after the start-up", "ns", kDevice},
    {"compiling-gaps", "Gaps while the host compiled a model", "count", kDevice},
    {"collecting-time", "Idle while Python collected garbage", "ns", kDevice},
    {"collecting-gaps", "Gaps while Python collected garbage", "count", kDevice},
    {"host-function-time", "Idle while a stream's function of the host ran", "ns", kDevice},
    {"host-function-gaps", "Gaps while a stream's function of the host ran", "count", kDevice},
    {"clock-readings", "Readings of the clock while the device was busy", "count", kDevice},
    {"slow-readings", "Readings under 85 % of the highest", "count", kDevice},
    {"clock-mean", "Mean clock while the device was busy", "MHz", kDevice},
    {"clock-highest", "Highest clock read", "MHz", kDevice},
    {"slowed-when", "When kernels take longer", "word", kDevice},
    {"slowed-time", "Kernels in it that take longer", "ns", kDevice},
    {"slowed-lost", "What they take longer", "ns", kDevice},
    {"slowed-factor", "How many times as long they take", "word", kDevice},
    {"slowed-clock", "How far the clock would have fallen", "%", kDevice},
    {"slowed-kinds", "Equal launches that take longer", "count", kDevice},
    {"slowed-compared", "What was compared", "word", kDevice},
    {"slowed-unsure", "the trace has no shapes that show that the work is the same", "reason", kDevice},
    {"slowed-others", "What the other kernels do", "word", kDevice},
    {"memory-used", "Most memory in use", "bytes", kDevice},
    {"memory", "Memory of the device", "bytes", kDevice},

    {"process", "Process", "word", kProcess},
    {"load-time", "Time in calls that compile, load or start up", "ns", kProcess},
    {"load-calls", "Calls that compile, load or start up", "count", kProcess},
    {"first-launch-time", "What first launches took longer than later ones", "ns", kProcess},
    {"allocations", "Memory got or freed between launches", "count", kProcess},
    {"allocation-time", "Time in these calls", "ns", kProcess},
    {"memory-got", "Of these calls, those that got memory", "count", kProcess},
    {"memory-parts", "Eighths of the trace's time with calls that got memory", "count", kProcess},
    {"memory-returned", "Of these calls, those that gave memory back", "count", kProcess},
    {"launches", "Kernels", "count", kProcess},

    {"memory-place", "Memory", "word", kMemory},
    {"memory-peak", "Most bytes that were live together", "bytes", kMemory},
    {"memory-failures", "Times that memory ran out", "count", kMemory},
    {"memory-times", "How often", "word", kMemory},
    {"temporary-bytes", "Its largest temporary at the peak", "bytes", kMemory},
    {"temporary-owner", "Who allocated it", "word", kMemory},
    {"growing-bytes", "What one owner allocated again and again and never freed", "bytes", kMemory},
    {"growing-steps", "Parts of the recording in which it did", "count", kMemory},
    {"growing-parts", "Parts of the recording", "word", kMemory},
    {"growing-owner", "Who allocated it", "word", kMemory},
    {"growing-others", "Other owners of memory that grows", "count", kMemory},
    {"memory-reserved", "The most that the allocator reserved", "bytes", kMemory},
    {"memory-idle", "Of it, what was never live together", "bytes", kMemory},
    {"activation-bytes", "Activations at the peak", "bytes", kMemory},
};

constexpr const char* kCalls =
    "API calls that the device's work can be tied to (tacho trace records them; rocprofv3 with --hip-trace)";

// The host's activity in gaps of this kind, to follow "in most of that time".
std::string_view host_in(Gap cause) {
  switch (cause) {
    case Gap::kLaunch:
      return "the host was launching";
    case Gap::kWait:
      return "the host had waited for the device before it launched more";
    case Gap::kCopy:
      return "the host was in copies that it waits for";
    case Gap::kHost:
      return "the thread that launches was in none of the GPU's calls";
    case Gap::kAllocate:
      return "the host got or freed memory";
    case Gap::kLoad:
      return "the host compiled or loaded code";
    case Gap::kCall:
      return "the host was in other calls of the API";
    case Gap::kQueued:
      return "the work had been asked for and the device had not begun it";
    default:
      return "the trace does not say what the host did";
  }
}

class Filler {
 public:
  explicit Filler(Subject& subject) : subject_(subject) {}
  void count(std::string_view slug, int64_t value) { put(slug, static_cast<double>(value), true); }
  void time(std::string_view slug, int64_t value, double off = 0) {
    put(slug, static_cast<double>(value), false);
    subject_.values[slug].off = off;
  }
  void real(std::string_view slug, double value) { put(slug, value, false); }
  void exact(std::string_view slug, double value) { put(slug, value, true); }
  void mean(std::string_view slug, int64_t sum, int64_t count) {
    if (count > 0) put(slug, static_cast<double>(sum) / static_cast<double>(count), false);
  }
  void word(std::string_view slug, std::string text) { subject_.words[slug] = std::move(text); }
  void spans(std::string_view slug, const Worst& worst) { subject_.spans[slug] = worst.kept(); }
  void lines(std::string_view slug, std::vector<std::string> lines) { subject_.lines[slug] = std::move(lines); }
  /// Whether so few gaps say nothing about a longer run: no if there are more than `few`, undecided if they take 1 ms
  /// and a hundredth of the run, else yes.
  void few(std::string_view slug, const GapSum& gaps, int64_t few, int64_t run) {
    constexpr int64_t kLong = 1'000'000;
    if (gaps.count > few)
      perhaps(slug, false);
    else if (gaps.time > std::max(kLong, run / 100))
      perhaps(slug, true);
    else
      this->count(slug, 1);
  }
  /// A yes or no that the trace cannot decide: half, give or take a half.
  void perhaps(std::string_view slug, bool perhaps) {
    subject_.values[slug] = perhaps ? Measured{0.5, 0.5, true, {}} : Measured{0, 0, true, {}};
  }
  void missing(std::string_view needs, std::initializer_list<std::string_view> slugs) {
    for (const std::string_view slug : slugs) subject_.values[slug] = {0, 0, true, std::string(needs)};
  }

 private:
  void put(std::string_view slug, double value, bool exact) { subject_.values[slug] = {value, 0, exact, {}}; }
  Subject& subject_;
};

std::string kernel_text(const trace::Trace& trace, int64_t kernel) {
  return short_name(demangle(trace.text(Table::kKernel, kernel, column::Kernel::name)));
}

// Whether most work of the trace is tied to the call that caused it.
bool tied_to_calls(const Activity& activity) {
  return activity.calls > 0 && activity.untied * 2 <= activity.operations;
}

// How long the device was in use, and what held it up before its work began to repeat.
void fill_span(Filler& fill, const Activity& activity, const DeviceActivity& device) {
  fill.time("device-span", device.last - device.first);
  const int64_t steady = std::clamp(device.steady, device.first, device.last);
  fill.time("steady-span", device.last - steady);
  fill.time("start-time", steady - device.first);
  int64_t start_idle = 0;
  size_t longest = 0;
  for (size_t gap = 0; gap < kGaps; ++gap) {
    add_saturating(start_idle, device.start_gaps[gap]);
    if (device.start_gaps[gap] > device.start_gaps[longest]) longest = gap;
  }
  fill.time("start-idle", start_idle);
  fill.word("start-cause", std::string(host_in(static_cast<Gap>(longest))));
  fill.word("start-left-out", start_idle > 0
                                  ? fmt::format("; the first {}, before its work repeats, left out",
                                                report::format_duration(static_cast<double>(steady - device.first)))
                                  : std::string());
  fill.spans("start", device.start_worst);
  fill.time("device-busy", device.busy);
  fill.perhaps("cpu-device", device.cpu);
  fill.count("is-cpu", device.cpu ? 1 : 0);
  fill.perhaps("stream-waits", activity.queue_waits);
}

void fill_gaps(Filler& fill, const Activity& activity, const DeviceActivity& device, int64_t run) {
  struct Named {
    Gap gap;
    std::string_view count, time, mean, hideable;
  };
  static constexpr Named kNamed[] = {
      {Gap::kLaunch, "launch-gaps", "launch-gap-time", "launch-gap-mean", {}},
      {Gap::kWait, "wait-gaps", "wait-gap-time", "wait-gap-mean", "wait-gap-hideable"},
      {Gap::kCopy, "copy-gaps", "copy-gap-time", {}, "copy-gap-hideable"},
      {Gap::kHost, "host-gaps", "host-gap-time", "host-gap-mean", {}},
      {Gap::kAllocate, {}, "allocate-gap-time", {}, {}},
      {Gap::kLoad, {}, "load-gap-time", {}, {}},
      {Gap::kCall, {}, "call-gap-time", {}, {}},
      {Gap::kQueued, "queued-gaps", "queued-gap-time", "queued-gap-mean", {}},
  };
  // Gaps whose cause is not known may be of any kind.
  const bool tied = tied_to_calls(activity);
  const auto unknown = static_cast<double>(device.gap(Gap::kUnknown).time);
  for (const Named& named : kNamed) {
    const GapSum& sum = device.gap(named.gap);
    for (const std::string_view slug : {named.count, named.time, named.mean, named.hideable})
      if (!tied && !slug.empty()) fill.missing(kCalls, {slug});
    if (!tied) continue;
    if (!named.count.empty()) fill.count(named.count, sum.count);
    fill.time(named.time, sum.time, unknown);
    if (!named.mean.empty()) fill.mean(named.mean, sum.time, sum.count);
    if (!named.hideable.empty()) fill.time(named.hideable, sum.hideable);
    if (!named.count.empty()) fill.spans(named.count, sum.worst);
  }
  fill.word("host-was-in",
            device.host_was_in.empty() ? std::string("it computed, read data or slept") : device.host_was_in);
  fill.word("waited-in", device.waited_in.empty() ? std::string() : ", mostly in " + device.waited_in);
  fill.time("host-gap-named", device.host_gap_named);
  const bool after_waits = 2 * device.host_gaps_waited > device.gap(Gap::kHost).count;
  fill.word("host-after-waits", !after_waits ? std::string()
                                : device.waited_in.empty()
                                    ? std::string("; most of these gaps follow a wait for the device")
                                    : "; most of these gaps follow a wait for the device in " + device.waited_in);
  if (device.host_gaps_waited > 0) {
    fill.count("host-gaps-waited", device.host_gaps_waited);
    fill.time("host-gap-waited", device.host_gap_waited);
  }
  if (!tied) {
    fill.missing(kCalls, {"few-launch-gaps", "few-wait-gaps", "few-queued-gaps"});
    return;
  }
  constexpr int64_t kFewLaunches = 20, kFewWaits = 5;
  const GapSum& launch = device.gap(Gap::kLaunch);
  const GapSum& wait = device.gap(Gap::kWait);
  fill.few("few-launch-gaps", launch, kFewLaunches, run);
  const GapSum& queued = device.gap(Gap::kQueued);
  fill.few("few-wait-gaps", wait, kFewWaits, run);
  fill.few("few-queued-gaps", queued, kFewLaunches, run);
}

void fill_kernels(Filler& fill, const trace::Trace& trace, bool tied, const DeviceActivity& device) {
  fill.count("kernels", device.kernels);
  fill.time("kernel-sum", device.kernel_sum);
  fill.time("kernel-time", device.kernel_time);
  fill.mean("kernel-mean", device.kernel_sum, device.kernels);
  fill.count("elementwise-rows", device.elementwise_rows);
  fill.count("elementwise-kernels", device.elementwise_kernels);
  fill.time("elementwise-time", device.elementwise_time);
  fill.time("elementwise-saved", device.elementwise_saved);
  fill.spans("elementwise", device.elementwise_worst);
  if (tied) {
    fill.mean("launch-call-mean", device.launch_calls, device.launched);
    fill.count("launched-kernels", device.launched);
    fill.count("tiny-kernels", device.tiny);
    fill.count("long-kernels", device.long_launched);
    fill.count("waited-launches", device.waited_launches);
    const double waited = device.long_launched > 0 ? 100 * static_cast<double>(device.waited_launches) /
                                                         static_cast<double>(device.long_launched)
                                                   : 0;
    fill.exact("waited-launch-share", waited);
    fill.count("launches-wait", waited > 90 ? 1 : 0);
    fill.spans("waited-launches", device.waited_worst);
    fill.time("tiny-call-time", device.tiny_calls);
    fill.time("tiny-kernel-time", device.tiny_time);
    fill.time("tiny-gap-time", device.tiny_gaps);
    if (device.tiny_kernel > 0) fill.word("tiny-kernel", kernel_text(trace, device.tiny_kernel));
    fill.spans("tiny", device.tiny_worst);
  } else {
    fill.missing(kCalls, {"launched-kernels", "waited-launches", "waited-launch-share", "launches-wait", "tiny-kernels",
                          "tiny-call-time", "tiny-gap-time"});
  }
}

void fill_copies(Filler& fill, const DeviceActivity& device) {
  fill.word("copied-in", device.copied_in.empty() ? std::string() : "; most of these calls are in " + device.copied_in);
  fill.count("copies", device.copies);
  fill.time("copy-time", device.copy_sum);
  fill.real("copy-bytes", static_cast<double>(device.copy_bytes));
  fill.time("exposed-copy-time", device.exposed_copy);
  fill.spans("exposed-copies", device.exposed_worst);
  fill.count("blocking-copies", device.blocking);
  fill.time("exposed-blocking-time", device.exposed_blocking);
  fill.spans("synchronous-copies", device.blocking_worst);
  if (device.copies > 0 && device.memory_known == 0) {
    fill.missing("a runtime that tells whether the host's memory is pinned (OpenCL does not)",
                 {"pageable-copies", "exposed-pageable-time"});
  } else {
    fill.count("pageable-copies", device.pageable);
    fill.real("pageable-bytes", static_cast<double>(device.pageable_bytes));
    fill.time("exposed-pageable-time", device.exposed_pageable);
    fill.spans("pageable-copies", device.pageable_worst);
  }
  fill.count("small-copies", device.small);
  fill.count("small-copy-rows", device.small_rows);
  fill.time("small-copy-time", device.small_time);
  fill.time("small-copy-floor", device.small_least);
  fill.time("small-copy-saved", device.small_saved);
  fill.spans("small-copies", device.small_worst);
}

void fill_streams(Filler& fill, const DeviceActivity& device) {
  fill.count("collectives", device.collectives);
  fill.time("collective-time", device.collective_time);
  fill.time("exposed-collective-time", device.exposed_collective);
  fill.spans("collectives", device.collective_worst);

  fill.count("streams", device.streams);
  fill.time("stream-overlap", device.overlap);
  fill.count("serial-kernels", device.serial_kernels);
  fill.time("serial-time", device.serial);
  fill.spans("serial", device.serial_worst);
}

// How much of the device the kernels use.
void fill_occupancy(Filler& fill, const trace::Trace& trace, const DeviceActivity& device) {
  if (device.units > 0) fill.count("compute-units", device.units);
  if (device.kernels > 0 && device.small_grid < 0) {
    fill.missing("the number of the device's compute units and the kernels' workgroups",
                 {"small-grid-time", "small-grid-idle"});
  } else {
    fill.time("small-grid-time", std::max<int64_t>(device.small_grid, 0));
    fill.time("small-grid-idle", device.small_grid_idle);
    fill.count("small-grid-groups", device.small_grid_groups);
    if (device.small_grid_kernel > 0) fill.word("small-grid-kernel", kernel_text(trace, device.small_grid_kernel));
  }
  if (device.kernels > 0 && device.low_occupancy < 0) {
    fill.missing("the kernels' registers and shared memory, and facts about the GPU (known of NVIDIA's from sm_80 on)",
                 {"low-occupancy-time", "low-occupancy-lost"});
  } else {
    fill.time("low-occupancy-time", std::max<int64_t>(device.low_occupancy, 0));
    fill.real("low-occupancy-lost", device.low_occupancy_lost);
    fill.real("low-occupancy-percent", device.low_occupancy_percent);
    fill.word("low-occupancy-limit", device.low_occupancy_limit);
    if (device.low_occupancy_kernel > 0)
      fill.word("low-occupancy-kernel", kernel_text(trace, device.low_occupancy_kernel));
  }
}

void fill_readings(Filler& fill, const DeviceActivity& device) {
  if (device.clock_readings > 0) {
    fill.count("clock-readings", device.clock_readings);
    fill.count("slow-readings", device.slow_readings);
    fill.real("clock-mean", device.clock_mean);
    fill.real("clock-highest", device.clock_highest);
    fill.spans("slow-clock", device.slow_worst);
  } else if (!device.cpu) {
    fill.missing("readings of the GPU's clock (tacho trace --telemetry gpu)",
                 {"clock-readings", "slow-readings", "clock-mean", "clock-highest"});
  }
  if (device.memory_used > 0 && device.memory > 0) {
    fill.real("memory-used", device.memory_used);
    fill.real("memory", device.memory);
  } else if (!device.cpu) {
    fill.missing("readings of the GPU's memory (tacho trace --telemetry gpu)", {"memory-used", "memory"});
  }
}

// Kernels that take longer together, where no reading tells the clock. `origin`: what times are counted from.
void fill_slow(Filler& fill, std::span<const SlowStretch> all, size_t number, const DeviceActivity& device,
               int64_t origin) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const SlowStretch& each) { return each.device == number; });
  const bool any = found != all.end() && device.clock_readings == 0;
  fill.time("slowed-lost", any ? found->lost : 0);
  fill.perhaps("slowed-unsure", any && !found->shapes);
  if (!any) return;
  const auto at = [&](int64_t ns) { return report::format_duration(static_cast<double>(ns - origin)); };
  fill.word("slowed-when", found->to_the_end ? fmt::format("from {} on", at(found->from))
                                             : fmt::format("from {} to {}", at(found->from), at(found->to)));
  fill.time("slowed-time", found->time);
  fill.word("slowed-factor", fmt::format("{:.2f}", found->factor));
  fill.exact("slowed-clock", 100 * (1 - 1 / found->factor));
  fill.count("slowed-kinds", found->kinds);
  fill.word("slowed-compared", found->shapes ? "the same launches and shapes" : "the same launches");
  fill.word("slowed-others", found->same == 0   ? std::string()
                             : found->same == 1 ? std::string("; another takes as long as before")
                                                : fmt::format("; {} others take as long as before", found->same));
  Worst worst;
  worst.add({found->from, found->to, found->lost, found->track, 0});
  fill.spans("slowed", worst);
  fill.lines("slowed", found->lines);
}

// Idle time in what the host did by the names of ranges and functions.
void fill_works(Filler& fill, const Activity& activity, const DeviceActivity& device) {
  const DeviceActivity::IdleIn& loading = device.idle_while(HostWork::kLoading);
  if (activity.works[static_cast<size_t>(HostWork::kLoading)]) {
    fill.time("loading-time", loading.time);
    fill.spans("loading", loading.worst);
  } else {
    fill.missing("ranges or functions of a data loader (markers, torch.profiler, --torch-trace)", {"loading-time"});
  }
  const DeviceActivity::IdleIn& compiling = device.idle_while(HostWork::kCompiling);
  fill.time("compiling-time", compiling.time);
  fill.count("compiling-gaps", compiling.gaps);
  fill.spans("compiling", compiling.worst);
  const DeviceActivity::IdleIn& collecting = device.idle_while(HostWork::kCollecting);
  fill.time("collecting-time", collecting.time);
  fill.count("collecting-gaps", collecting.gaps);
  fill.spans("collecting", collecting.worst);
  const DeviceActivity::IdleIn& in_queue = device.idle_while(HostWork::kInQueue);
  fill.time("host-function-time", in_queue.time);
  fill.count("host-function-gaps", in_queue.gaps);
  fill.spans("host-functions", in_queue.worst);
}

// `run`: its length, ns.
Subject device_subject(const trace::Trace& trace, const Activity& activity, const DeviceActivity& device,
                       std::span<const SlowStretch> slow, int64_t run, int64_t origin) {
  Subject subject;
  subject.kind = SubjectKind::kDevice;
  subject.text = device.text;
  Filler fill(subject);
  fill.word("device", device.text);
  fill_span(fill, activity, device);
  fill_gaps(fill, activity, device, run);
  fill_kernels(fill, trace, tied_to_calls(activity), device);
  fill_copies(fill, device);
  fill_streams(fill, device);
  fill_occupancy(fill, trace, device);
  fill_works(fill, activity, device);
  fill_readings(fill, device);
  fill_slow(fill, slow, DeviceNumbers(trace).device(device.row), device, origin);
  return subject;
}

// Without the time in which only collectives ran: they wait for the other devices.
// The line of the user's code that takes the most time of the host, by samples.
Status fill_lines(Filler& fill, const trace::Trace& trace) {
  int64_t work = 0;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill}) work += trace.rows(table);
  fill.count("device-work", work);
  if (trace.rows(Table::kSample) == 0) {
    fill.missing("call stacks (tacho sys sample)", {"top-line-time", "sampled-time", "line-samples", "wall-samples"});
    return {};
  }
  StackOptions options;
  options.gpu = false;
  TACHO_ASSIGN(const StackTree all, stack_tree(trace, options));
  const StackTree tree = own_code(all);
  const StackRow* top = nullptr;
  const std::vector<StackRow> rows = stack_rows(tree, StackBy::kLine);
  for (const StackRow& row : rows)
    if (row.frame.line > 0 && (top == nullptr || row.self_ns > top->self_ns)) top = &row;
  fill.time("top-line-time", top != nullptr ? top->self_ns : 0);
  fill.time("sampled-time", tree.host_ns);
  fill.count("line-samples", tree.samples);
  fill.perhaps("wall-samples", tree.wall);
  fill.word("samples-of", tree.wall ? tree.cpu ? "CPU and wall time" : "wall time" : "CPU time");
  if (top != nullptr) {
    const size_t folder = top->frame.file.rfind('/');
    const std::string file = top->frame.file.substr(folder == std::string::npos ? 0 : folder + 1);
    fill.word("top-line", fmt::format("{}:{} ({})", file, top->frame.line, top->frame.name));
  }
  return {};
}

// What operators of PyTorch do that they need not.
void fill_operators(Filler& fill, const FindOptions& options, int64_t run_time) {
  if (options.operators) {
    const OperatorRoofs& roofs = *options.operators;
    fill.word("roof-operator", roofs.worst);
    fill.word("roof-bound", roofs.bound);
    fill.word("roof-together", roofs.operators < 2    ? std::string("it")
                               : roofs.operators == 2 ? std::string("it and another")
                                                      : fmt::format("it and {} others", roofs.operators - 1));
    fill.real("roof-percent", roofs.percent);
    fill.time("roof-lost", roofs.lost);
    fill.time("roof-lost-least", roofs.lost_least);
    fill.time("roof-gpu-time", roofs.gpu);
    fill.time("roof-run-time", std::llround(static_cast<double>(run_time) * roofs.part));
    fill.time("converting-time", roofs.converting.ns);
    fill.word("converting-worst", roofs.converting.worst);
    fill.time("single-time", roofs.single.ns);
    fill.time("single-saved", roofs.single.saved);
    fill.word("single-worst", roofs.single.worst);
    fill.time("few-rows-time", roofs.few_rows.ns);
    fill.word("few-rows-worst", roofs.few_rows.worst);
    fill.time("unfused-time", roofs.unfused.ns);
    fill.time("unfused-saved", roofs.unfused.saved);
    fill.time("unfused-saved-least", roofs.unfused.saved_least);
    fill.word("unfused-worst", roofs.unfused.worst);
    fill.time("double-time", roofs.doubles.ns);
    fill.time("double-saved", roofs.doubles.saved);
    fill.word("double-worst", roofs.doubles.worst);
    fill.time("copying-time", roofs.copying.ns);
    fill.word("copying-what", roofs.copying.what);
    fill.word("copying-worst", roofs.copying.worst);
    fill.time("optimizer-time", roofs.optimizer.ns);
    fill.time("optimizer-saved", roofs.optimizer.saved);
    fill.word("optimizer-worst", roofs.optimizer.worst);
  } else {
    fill.missing(
        "shapes of operators' inputs (torch.profiler with record_shapes=True)",
        {"roof-percent", "roof-lost", "roof-lost-least", "roof-gpu-time", "roof-run-time", "converting-time",
         "single-time", "single-saved", "few-rows-time", "unfused-time", "unfused-saved", "unfused-saved-least",
         "double-time", "double-saved", "copying-time", "optimizer-time", "optimizer-saved"});
  }
}

Status run_subject(const trace::Trace& trace, const Activity& activity, const FindOptions& options, Subject& subject,
                   std::vector<std::string>& remarks) {
  Filler fill(subject);
  TACHO_ASSIGN(const walk::Span run, walk::run_span(trace));
  fill.time("run-time", run.length());
  TACHO_ASSIGN(const RunFacts facts, run_facts(trace));
  if (activity.calls == 0) {
    fill.missing(kCalls, {"top-call-time", "top-call-count"});
  } else {
    fill.time("top-call-time", facts.call_time);
    fill.count("top-call-count", facts.call_count);
    fill.word("top-call", facts.call);
    fill.word("top-call-thread", facts.call_thread);
    subject.spans["top-call"] = {{facts.call_first, facts.call_last, facts.call_time, facts.call_track, 0}};
  }
  if (facts.wall_samples == 0) {
    fill.missing("call stacks of Python by wall time (tacho trace --sampler timer --sample-clock wall)",
                 {"lock-time", "lock-thread-time"});
  } else {
    fill.time("lock-time", facts.lock_time);
    fill.time("lock-thread-time", facts.lock_of);
    fill.word("lock-thread", facts.lock_thread);
    if (facts.lock_time > 0)
      subject.spans["lock"] = {{facts.lock_first, facts.lock_last, facts.lock_time, facts.lock_track, 0}};
  }

  TACHO_TRY(fill_lines(fill, trace));
  const bool any_collectives = std::any_of(activity.devices.begin(), activity.devices.end(),
                                           [](const DeviceActivity& device) { return device.collectives > 0; });
  const int64_t used = std::count_if(activity.devices.begin(), activity.devices.end(),
                                     [](const DeviceActivity& device) { return !device.cpu && device.row != 0; });
  fill.count("gpus-used", used);
  fill.count("gpus-unused", std::max<int64_t>(facts.gpus - used, 0));
  // Collectives are work of a job whose other ranks have the other GPUs.
  fill.count("many-ranks", facts.ranks || any_collectives ? 1 : 0);
  TACHO_ASSIGN(const GpuBalance balance, gpu_balance(trace, activity));
  fill.count("gpus-compared", balance.gpus);
  if (balance.busiest != nullptr) {
    fill.time("busiest-time", own_work(*balance.busiest));
    fill.time("busy-mean", balance.mean);
    fill.time("compared-time", balance.length);
    fill.word("busiest", balance.busiest->text);
    fill.word("least-busy", balance.least->text);
    fill.time("least-busy-time", own_work(*balance.least));
  }

  fill_operators(fill, options, run.length());
  if (options.ranks) {
    const RankLateness& late = *options.ranks;
    fill.time("late-time", late.waited);
    fill.count("late-collectives", late.late_in);
    fill.count("all-collectives", late.collectives);
    fill.word("late-rank", fmt::format("rank {}", late.rank));
    fill.word("late-cause", late.cause);
    std::vector<Stretch>& spans = subject.spans["late-rank"];
    for (const FindingSpan& span : late.spans)
      spans.push_back({span.from, span.to, span.to - span.from, span.tracks.empty() ? 0 : span.tracks[0],
                       span.tracks.size() > 1 ? span.tracks[1] : 0});
  } else if (facts.ranks || any_collectives) {
    fill.missing("the traces of all ranks in one (tacho merge), or tacho ranks",
                 {"late-time", "late-collectives", "all-collectives"});
  }

  const int64_t length = run.length();
  if (facts.profiler_time > length / 20 && length > 0)
    remarks.push_back(fmt::format("a profiler says that it took {} itself, {:.0f} % of the run: "
                                  "calls are slower in this trace than without it",
                                  report::format_duration(static_cast<double>(facts.profiler_time)),
                                  100 * static_cast<double>(facts.profiler_time) / static_cast<double>(length)));
  return {};
}

Subject process_subject(const trace::Trace& trace, const Activity& activity, const ProcessActivity& process) {
  Subject subject;
  subject.kind = SubjectKind::kProcess;
  subject.text = process.process > 0 ? process_name(trace, process.process) : std::string("the program");
  if (subject.text.empty()) {
    const int64_t pid = trace.cell(Table::kProcess, process.process, column::Process::pid);
    subject.text = pid == event::kUnknown ? std::string("without a name") : std::to_string(pid);
  }
  Filler fill(subject);
  fill.word("process", process.process > 0 ? subject.text : "of the program");  // "The process ..."
  if (activity.calls == 0) {
    fill.missing(kCalls, {"load-time", "first-launch-time", "allocations", "allocation-time", "memory-got",
                          "memory-returned", "memory-parts"});
    return subject;
  }
  fill.time("load-time", process.load);
  fill.count("load-calls", process.load_calls);
  fill.time("first-launch-time", process.first_excess);
  fill.spans("loading-code", process.load_worst);
  fill.count("allocations", process.allocations);
  fill.time("allocation-time", process.allocation_time);
  fill.count("memory-got", process.allocations - process.frees);
  fill.count("memory-returned", process.frees);
  fill.count("memory-parts", process.allocation_parts);
  fill.count("launches", process.launches);
  fill.spans("allocations", process.allocation_worst);
  return subject;
}

Subject memory_subject(const MemoryPlace& place, const MemoryReport& report) {
  Subject subject;
  subject.kind = SubjectKind::kMemory;
  subject.text = place.name;
  Filler fill(subject);
  const MemoryFaults faults = memory_faults(place, report);
  const auto bytes = [&](std::string_view slug, int64_t value) { fill.exact(slug, static_cast<double>(value)); };
  fill.word("memory-place", place.name);
  bytes("memory-peak", place.peak);
  fill.count("memory-failures", place.failures);
  fill.word("memory-times", place.failures == 1 ? std::string("once") : fmt::format("{} times", place.failures));
  bytes("temporary-bytes", faults.temporary ? faults.temporary->bytes : 0);
  fill.word("temporary-owner", faults.temporary ? faults.temporary->owner : std::string());
  bytes("growing-bytes", faults.growing.empty() ? 0 : faults.growing[0].bytes);
  fill.count("growing-steps", faults.growing.empty() ? 0 : faults.growing[0].steps);
  fill.word("growing-owner", faults.growing.empty() ? std::string() : faults.growing[0].owner);
  fill.word("growing-parts",
            fmt::format("{} {}", faults.parts, faults.by_steps ? "steps" : "equal parts of the recording"));
  if (faults.growing.size() > 1) fill.count("growing-others", static_cast<int64_t>(faults.growing.size()) - 1);
  bytes("memory-reserved", faults.reserved);
  bytes("memory-idle", faults.idle);
  bytes("activation-bytes", faults.activations);
  return subject;
}

}  // namespace

const Quantity* quantity_named(std::string_view slug) {
  for (const Quantity& quantity : kQuantities)
    if (quantity.slug == slug) return &quantity;
  return nullptr;
}

Result<std::vector<Subject>> measure(const trace::Trace& trace, const FindOptions& options,
                                     std::vector<std::string>& remarks) {
  TACHO_ASSIGN(const Activity activity,
               analysis::activity(trace, options.operators ? options.operators->near_peak : std::vector<bool>()));
  std::vector<Subject> subjects(1);
  TACHO_TRY(run_subject(trace, activity, options, subjects[0], remarks));
  TACHO_ASSIGN(const walk::Span run, walk::run_span(trace));
  std::vector<SlowStretch> slow;
  if (options.operators) {
    slow = options.operators->slow;
  } else {
    TACHO_ASSIGN(slow, slow_stretches(trace));
  }
  const int64_t origin = walk::timeline_span(trace).first;
  for (const DeviceActivity& device : activity.devices)
    subjects.push_back(device_subject(trace, activity, device, slow, run.length(), origin));
  for (const ProcessActivity& process : activity.processes)
    if (process.calls > 0 || process.launches > 0) subjects.push_back(process_subject(trace, activity, process));
  if (trace.rows(Table::kAllocation) > 0) {
    TACHO_ASSIGN(const MemoryReport report, memory_report(trace));
    for (const MemoryPlace& place : report.places)
      if (place.allocations > 0 || place.failures > 0) subjects.push_back(memory_subject(place, report));
  }
  return subjects;
}

}  // namespace tacho::analysis
