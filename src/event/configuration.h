// The configuration that tacho gives to the targets of a run before it starts. One list of keys defines the struct, its
// text in the pool's header ("key=value" lines), the parser of that text and docs/target-configuration.md. tacho writes
// the text (configuration_text.h), libtacho.so reads it (parse). Both come from one build, so a key that one side does
// not know is an error.
#pragma once

#include <cstdint>
#include <string_view>

#include "event/sample.h"

namespace tacho::event {

/// How call stacks are sampled: not at all, by a timer in the target, by perf_event from tacho's process.
enum class Sampler : uint8_t { kOff, kTimer, kPerf };
/// Where AMD's kernels, copies and calls come from: AMD's library rocprofiler-sdk if there is one, it alone, or the
/// HSA runtime's interface for tools.
enum class AmdSource : uint8_t { kAuto, kSdk, kHsa };

/// How the values of a choice are written, in the order of the enumerators.
template <typename Choice>
inline constexpr int kChoiceNames = 0;
template <>
inline constexpr std::string_view kChoiceNames<Sampler>[] = {"off", "timer", "perf"};
template <>
inline constexpr std::string_view kChoiceNames<SampleClock>[] = {"cpu", "wall"};
template <>
inline constexpr std::string_view kChoiceNames<AmdSource>[] = {"auto", "sdk", "hsa"};

// FLAG(key, meaning): false unless given. NUMBER(key, default, least, most, meaning). CHOICE(key, enum, default,
// meaning). TEXT(key, meaning): empty unless given; no line breaks.
#define TACHO_CONFIGURATION_KEYS(FLAG, NUMBER, CHOICE, TEXT)                                                \
  TEXT(kernel_include, "record only kernels whose name matches this regular expression")                    \
  TEXT(kernel_exclude, "record no kernels whose name matches this regular expression")                      \
  TEXT(start_marker, "a mark or range with this text switches recording on")                                \
  TEXT(stop_marker, "a mark or range with this text switches recording off")                                \
  CHOICE(sampler, Sampler, kOff, "who samples call stacks")                                                 \
  NUMBER(sample_hz, 100, 1, 10000, "samples a second and thread")                                           \
  CHOICE(sample_clock, SampleClock, kCpu, "which time of a thread the sampler counts")                      \
  NUMBER(sample_stack, 16384, 512, 57344, "bytes of stack copied per sample at most")                       \
  TEXT(sample_threads, "threads that are sampled, by number: 0,2-5; empty = all")                           \
  FLAG(api_args, "record the arguments of API calls, kernels and copies")                                   \
  TEXT(cpu_events, "CPU counters, as TYPE:CONFIG of perf_event_open,..., read at samples and launches")     \
  TEXT(cpu_event_names, "their names, in the same order")                                                   \
  FLAG(launch_stacks, "read the Python stack at every call that launches device work")                      \
  FLAG(memory, "record what PyTorch's allocators hand out and take back, with the Python stack")            \
  FLAG(all_driver_calls, "CUDA: record every driver call, not only those that launch")                      \
  FLAG(all_api_calls, "CUDA, HIP: record runtime calls that only ask, too")                                 \
  FLAG(hsa_calls, "AMD: record the calls of HSA, the layer below HIP")                                      \
  CHOICE(amd_source, AmdSource, kAuto, "AMD: rocprofiler-sdk, or HSA's interface for tools")                \
  TEXT(device_counters, "AMD: hardware counters of the GPUs, by name, read while the program runs: A,B")    \
  NUMBER(device_counter_ms, 100, 1, 60000, "milliseconds between two readings of device_counters")          \
  FLAG(graph_nodes, "CUDA graphs: a record per node instead of one per launch")                             \
  FLAG(sync_trace, "CUDA: records of waiting, with stream and event")                                       \
  FLAG(profiler_api, "CUDA: cudaProfilerStart and cudaProfilerStop switch recording on and off")            \
  FLAG(yield_to_app, "CUDA: leave CUPTI to a program that uses it itself")                                  \
  FLAG(cupti_clock, "CUDA: times by CUPTI's own clock, converted afterwards")                               \
  FLAG(leave_cupti_idle, "CUDA, attached: never finalise CUPTI when leaving, also where no graph was seen") \
  NUMBER(cupti_device_buffers, 0, 0, 1000000, "CUDA: most device buffers per context; 0 = CUPTI's default") \
  TEXT(counter_folder, "CUDA, AMD: collect counters into this spool folder instead of tracing")

/// One value per key. `Text` is std::string for the side that writes, std::string_view for the side that reads.
template <typename Text>
struct BasicConfiguration {
#define TACHO_FLAG(key, meaning) bool key = false;
#define TACHO_NUMBER(key, otherwise, least, most, meaning) uint32_t key = otherwise;
#define TACHO_CHOICE(key, type, otherwise, meaning) type key = type::otherwise;
#define TACHO_TEXT(key, meaning) Text key = {};
  TACHO_CONFIGURATION_KEYS(TACHO_FLAG, TACHO_NUMBER, TACHO_CHOICE, TACHO_TEXT)
#undef TACHO_FLAG
#undef TACHO_NUMBER
#undef TACHO_CHOICE
#undef TACHO_TEXT
  bool operator==(const BasicConfiguration&) const = default;
};
using ConfigurationView = BasicConfiguration<std::string_view>;

/// Fills `out` from "key=value" lines; keys that are not there keep their defaults. Texts of `out` point into `lines`.
/// Lines with an unknown key or a value that is none are passed over; the result is the first of them, empty when there
/// is none. Allocates nothing.
std::string_view parse(std::string_view lines, ConfigurationView& out);

}  // namespace tacho::event
