// Turns call stacks sampled from outside of a process (perf_event) into rows. Unwinds and writes them like the stacks
// that libtacho.so samples inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/records/samples.h"
#include "trace/write/writer.h"

namespace tacho::decode {

class Decoder;

struct OutsideSample {
  uint32_t pid = 0, tid = 0;
  int64_t time = 0;        // CLOCK_MONOTONIC_RAW ns
  uint64_t period = 0;     // ns
  uint64_t registers[17];  // DWARF order, as event/sample.h
  std::span<const std::byte> stack;
  uint64_t stack_begin = 0;
  bool stack_whole = false;
};

/// Follows processes as the kernel reports them. Make all calls in order of time.
class OutsideStacks {
 public:
  OutsideStacks(trace::TraceWriter& writer, Decoder& decoder);
  ~OutsideStacks();

  void fork(uint32_t pid, uint32_t parent);
  /// Names a process; `exec`: it now runs a new program.
  void name(uint32_t pid, std::string_view name, bool exec);
  /// `time`: CLOCK_MONOTONIC_RAW ns.
  void map(uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, std::string_view path, int64_t time);
  void sample(const OutsideSample& sample);
  /// A thread has ended; `ns` of its CPU time have no sample. `time`: CLOCK_MONOTONIC_RAW ns.
  void rest(uint32_t pid, uint32_t tid, int64_t time, uint64_t ns);
  /// Looks up the names of functions. Make no further calls.
  void finish();

 private:
  class Process;
  Process& process(uint32_t pid);
  void hand_over(uint32_t pid, const event::SampleRecord& record);

  trace::TraceWriter& writer_;
  Decoder& decoder_;
  ModuleCache modules_;
  std::map<uint32_t, std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Process>> before_;  // images that an exec replaced
  std::vector<std::byte> bytes_;
};

}  // namespace tacho::decode
