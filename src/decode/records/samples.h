// ProcessSamples turns the registers and stack memory that targets copy at each sample (event/sample.h) into call
// stacks. It unwinds native frames with .eh_frame tables, replaces the frames of the Python interpreter by Python
// frames, and writes rows of frame, stack and sample.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decode/process_context.h"
#include "decode/records/jit_code.h"
#include "decode/records/module.h"
#include "event/records.h"
#include "event/sample.h"
#include "tape/layout.h"
#include "trace/write/writer.h"

namespace tacho::decode {

/// Known facts about a frame of a native stack.
struct FrameFacts {
  int64_t row = 0;
  bool hidden = false;  // tacho's own
  bool named = false;
  enum : uint8_t { kNotAsked, kNo, kYes } evaluates = kNotAsked;  // the interpreter's loop, replaced by Python frames
};

/// A native frame of an unwound stack.
struct NativeFrame {
  uint64_t address = 0;  // as executed; the look-up address of a return address is one less
  CodeModule* module = nullptr;
  uint64_t in_module = 0;                       // look-up address in the module's own terms
  const UnwindRule* rule = nullptr;             // with a module
  FrameFacts* facts = nullptr;                  // null: not looked up yet
  int64_t from = INT64_MIN, until = INT64_MAX;  // trace time in which the address means this
};

class ProcessSamples {
 public:
  /// All processes share `modules`. `parent`: the process it was forked from, whose code objects and maps it inherits.
  ProcessSamples(ProcessContext& process, trace::TraceWriter& writer, ModuleCache& modules,
                 const ProcessSamples* parent);

  void module(const event::ModuleRecord& record, std::string_view path);
  /// `bytes`: the whole record.
  void code(const event::CodeRecord& record, std::span<const std::byte> bytes, std::string_view name,
            std::string_view file);
  /// The CPU time of all samples so far, ns; with that of the earlier programs of the process that an exec replaced.
  uint64_t cpu_time() const { return cpu_time_; }
  /// What earlier programs of the process used, ns: the first sample of CPU time holds it, too.
  void continue_after_exec(uint64_t cpu_time) { cpu_time_ = cpu_time; }
  /// `bytes`: the whole record. False when it is malformed.
  bool sample(const tape::BlockHeader& block, const event::SampleRecord& record, std::span<const std::byte> bytes);

  /// The row of the stack that the thread read for the BlockMemoryRecord which comes next; 0 = it read none.
  int64_t take_memory_stack(uint32_t tid) {
    const auto found = memory_stacks_.find(tid);
    return found == memory_stacks_.end() ? 0 : std::exchange(found.value(), 0);
  }

  /// Looks up the functions and source lines of native frames, which takes too long while the drainer runs.
  void finish();

  /// Source line of a Python instruction. `offset` in bytes as in the frame, -1 = not started. Returns -1 when the
  /// table has no line for it or before it.
  static int python_line(uint32_t version, int first_line, std::span<const uint8_t> table, int64_t offset);

 private:
  // What an address means from one time until another: files come and go.
  struct Map {
    uint64_t start, end, offset;
    std::string path;
    FileIdentity file = {};
    CodeModule* module = nullptr;
    int64_t from = INT64_MIN, until = INT64_MAX;  // trace time
    bool late = false;                            // opened while the program ran
    bool at(int64_t time) const { return time >= from && time < until; }
  };
  struct Code {
    int64_t name = 0, file = 0;  // strings
    int first_line = 0;
    uint32_t version = 0;
    std::vector<uint8_t> table;
  };
  // Hashes keys made of addresses and rows, whose low bits vary little.
  struct Mixed {
    size_t operator()(uint64_t key) const {
      key *= 0x9e3779b97f4a7c15ull;
      return static_cast<size_t>(key ^ key >> 32);
    }
  };
  struct Memory {
    const std::byte* bytes;
    uint64_t begin, size;
    bool load(uint64_t address, uint64_t& out) const;
  };
  struct Unwound {
    std::vector<NativeFrame> frames;
    bool whole = false;  // unwinding reached the outermost frame
  };

  const Map* find_map(uint64_t address);
  void add_map(Map map, int64_t time);
  void name(CodeModule& module, uint64_t address, FrameFacts& facts);
  void read_maps();
  NativeFrame place(uint64_t address, bool return_address);
  void unwind(const event::SampleHeader& header, std::span<const uint64_t> chain, const Memory& memory,
              uint64_t (&registers)[17], Unwound& out);
  bool step(const NativeFrame& frame, const UnwindRule& rule, const Memory& memory, uint64_t (&registers)[17],
            bool& missing);
  FrameFacts& native(NativeFrame& frame);
  bool evaluates(NativeFrame& frame);
  int64_t python(uint64_t word);
  int64_t stack_of_line();
  int64_t plain_frame(event::FrameKind kind, std::string_view function);
  int64_t routine_frame(uint64_t address);
  bool time_alone(const event::SampleRecord& record, const event::SampleHeader& header);
  void add_row(const event::SampleRecord& record, event::SampleClock clock);

  ProcessContext& process_;
  trace::TraceWriter& writer_;
  ModuleCache& modules_;
  std::map<uint64_t, std::vector<Map>> maps_;  // by start, oldest first
  size_t map_count_ = 0;
  int64_t now_ = 0;          // trace time of the sample that is looked at
  std::vector<Code> codes_;  // by number
  uint32_t pid_ = 0;         // 0: not of our pid namespace
  static constexpr int64_t kShortestPause = 2'000'000,
                           kLongestPause = 500'000'000;  // ns between two looks at the maps
  int64_t maps_read_ = 0;                                // when, CLOCK_MONOTONIC_RAW ns
  int64_t maps_pause_ = kShortestPause;
  std::shared_ptr<JitCode> jit_;
  std::unordered_map<CodeModule*, std::unordered_map<uint64_t, FrameFacts>> frames_;
  // Addresses outside of all files, each with what lay there, null = nobody said.
  std::map<std::pair<uint64_t, const JitCode::Code*>, FrameFacts> strange_;
  tsl::robin_map<uint64_t, NativeFrame, Mixed> places_;           // address << 1 | return address; while maps_ stay
  tsl::robin_map<uint64_t, int64_t, Mixed> python_rows_;          // words of Python frames without their flags
  tsl::robin_map<uint64_t, int64_t, Mixed> stacks_;               // parent row << 32 | frame row
  tsl::robin_map<uint64_t, int64_t, Mixed> tracks_;               // tid << 1 | clock
  std::map<std::pair<CodeModule*, uint64_t>, int64_t> routines_;  // module, address in it -> frame row
  tsl::robin_map<uint32_t, int64_t> memory_stacks_;               // by thread id
  uint64_t cpu_time_ = 0;                                         // ns
  std::vector<int64_t> line_;                                     // scratch: frame rows, innermost first
  // Frame rows of the last stack, outermost first, with the row of the stack up to each. The next stack shares most of
  // them.
  std::vector<std::pair<int64_t, int64_t>> last_line_;
  Unwound unwound_;
};

}  // namespace tacho::decode
