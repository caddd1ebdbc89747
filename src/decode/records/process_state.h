// ProcessState: the decoder's state of one traced process: its strings, threads, devices, queues and kernels by the
// numbers in its records, and the open calls and ranges of each thread.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number_map.h"
#include "base/saturating.h"
#include "decode/block_decoder.h"
#include "decode/clock_map.h"
#include "decode/memory_failures.h"
#include "decode/process_context.h"
#include "decode/process_facts.h"
#include "event/records.h"
#include "event/schema.h"
#include "tape/layout.h"
#include "trace/write/work_times.h"
#include "trace/write/writer.h"

namespace tacho::decode {

class ModuleCache;
class ProcessSamples;

class ProcessState : public ProcessContext {
 public:
  ProcessState(trace::TraceWriter& writer, ClockMap& clocks, ModuleCache& modules, uint32_t slot);
  ~ProcessState() override;

  int64_t row() override;  // of table process; a placeholder until described
  const ProcessFacts& facts() const { return facts_; }
  /// Uses a row that was already made for this process. Call before describe().
  void take_row(int64_t row) {
    if (row_ == 0) row_ = row;
  }

  /// Takes the process's own description. `parent`: the process whose numbers it inherited by fork, or nullptr.
  /// `before`: the newest process of the same pid that has already described itself, which may be the program that an
  /// exec replaced; or nullptr.
  void describe(const event::ProcessRecord& record, const ProcessState* parent, const ProcessState* before);
  /// Takes any record but kProcess. `at` holds header.size bytes, at least the fixed part of its kind.
  void record(const tape::BlockHeader& block, const std::byte* at, const event::RecordHeader& header);
  void vendor_buffer(const tape::BlockHeader& block, std::span<const std::byte> bytes);
  /// Call about once a second: device work waits for its clock to be compared no longer than two calls.
  void settle();
  void finish();

  /// By table: commands issued to devices (tape::CommandCounts), rows made from them, and the process's own report on
  /// the rest.
  struct Commands {
    bool known = false, ended = false;
    uint64_t issued[event::kFactTables] = {}, rows[event::kFactTables] = {}, said[event::kFactTables] = {};
    uint64_t filtered = 0, filtered_said = 0;
  };
  void progress(std::span<const std::byte> bytes);
  const Commands& commands() const { return commands_; }

  // For block decoders.
  trace::TraceWriter& writer() { return writer_; }
  /// Trace row of the process's string number; 0 when unknown.
  int64_t string(uint32_t number) const;
  std::string_view text(uint32_t number) const override;
  int64_t host_time(uint64_t ticks) const override;
  int64_t raw_time(int64_t ns) const override { return saturating_add(ns, -ahead_); }
  /// Track of a thread by its kernel id.
  int64_t thread_track(uint32_t tid) override;
  void received(event::Table table) override { ++commands_.rows[static_cast<size_t>(table)]; }

 private:
  ProcessSamples& samples();
  struct Open {
    int64_t label, start, payload;
    uint32_t domain;
    std::string fields;  // members of a JSON object
    int64_t inputs;      // row of operator_input
  };
  struct Thread {
    int64_t track = 0;
    uint32_t tid = 0;
    std::vector<Open> stack;
    // Arguments that belong to the record that comes next.
    struct {
      uint64_t correlation = 0;
      event::ArgumentsOf of = event::ArgumentsOf::kEnd;
      int64_t text = 0;  // string
    } arguments;
    // Messages that the call which comes next shows among its arguments.
    struct {
      uint64_t correlation = 0;
      size_t count = 0;
      std::string text;
    } messages;
    int64_t take(event::ArgumentsOf of, uint64_t correlation) {
      return arguments.text != 0 && arguments.of == of && arguments.correlation == correlation
                 ? std::exchange(arguments.text, 0)
                 : 0;
    }
  };
  // The bytes of a known marker (flags and everything after the fixed part), and the result of decoding them.
  struct KnownMarker {
    std::string bytes;
    uint8_t flags = 0;
    event::MarkerKind kind = event::MarkerKind::kMark;
    int64_t label = 0, payload = 0;
    uint32_t domain = 0;
    int64_t inputs = 0;
  };
  // A range that is not nested belongs to the thread that began it, on its own line.
  struct Range {
    Open open;
    int64_t track;
  };
  struct Lines {
    int64_t thread = 0, track = 0, ranges = 0;  // 0 = no range yet
    // Of CPU counters, by CountsOf and event; empty = none yet.
    std::vector<int64_t> counts[static_cast<size_t>(event::CountsOf::kEnd)];
  };
  struct Queue {
    int64_t track = 0, device = 0;
    event::DeviceClock clock = event::DeviceClock::kMonotonicRaw;
    uint32_t device_number = 0;
  };
  struct Shape {
    uint64_t grid[3], group[3], offset[3];
    uint32_t cluster[3], shared_dynamic;
    int64_t row;
    bool same(const Shape& other) const;
  };
  struct Kernel {
    bool defined = false;
    int64_t name = 0;
    event::KernelRecord record{};
    std::vector<Shape> shapes;  // newest first, few
  };
  struct Text {
    int64_t row;
    std::string text;
  };
  struct DeviceTimes {
    int64_t start, duration, queued_ahead, submit_ahead;
  };

  void compare_clocks(const event::ProcessRecord& record);
  Thread& thread(const tape::BlockHeader& block);
  Lines& lines(uint32_t tid);
  int64_t ranges_track(uint32_t tid);
  const Queue& queue(uint32_t number);
  Kernel& kernel(uint32_t number);
  int64_t kernel_row(Kernel& kernel, Shape shape);
  int64_t device_row(uint32_t number) const;
  int64_t device_time(const Queue& queue, uint64_t value) const;
  DeviceTimes device_times(const Queue& queue, event::Table table, uint64_t queued, uint64_t submit, uint64_t start,
                           uint64_t end);
  static trace::WorkTimes::Origin origin_of(const Queue& queue, uint64_t start);
  int64_t function(event::Domain domain, uint32_t number);
  void marker(const tape::BlockHeader& block, const std::byte* at, const event::RecordHeader& header);
  template <typename Record>  // DispatchRecord, DispatchWideRecord
  void write_dispatch(const Record& record, const Shape& shape, const tape::BlockHeader& block);
  Open parse_marker(const std::byte* at, const event::RecordHeader& header, size_t fixed, event::MarkerKind kind,
                    uint64_t time);
  // Extended payloads: appends their values to the members of a JSON object.
  void read_fields(std::span<const std::byte> bytes, std::string& members);
  bool read_payload(const event::FieldsHeader& head, std::span<const std::byte> bytes, std::string& members) const;
  std::string enumeration_text(uint32_t number, uint64_t value) const;
  int64_t fields_text(const std::string& members);
  void close(int64_t track, const Open& open, int64_t duration);
  // Definitions.
  void take(const event::StringRecord& record);
  void take(const event::ThreadRecord& record);
  void take(const event::DeviceRecord& record);
  void take(const event::QueueRecord& record);
  void take(const event::KernelRecord& record);
  void take(const event::PropertyRecord& record);
  void take(const event::ClockPairRecord& record);
  void take(const event::CommunicatorRecord& record);
  void take(const event::ProgramCounterRecord& record);
  void take(const event::FieldsRecord& record);
  void take(const event::EnumerationRecord& record);
  void define_for_blocks(const std::byte* at, const event::RecordHeader& header);
  // Facts.
  void take(const event::ApiRecord& record, const tape::BlockHeader& block);
  void take(const event::DispatchRecord& record, const tape::BlockHeader& block);
  void take(const event::DispatchWideRecord& record, const tape::BlockHeader& block);
  void take(const event::CopyRecord& record, const tape::BlockHeader& block);
  void take(const event::FillRecord& record);
  void take(const event::AllocationRecord& record, const tape::BlockHeader& block);
  void take(const event::BlockMemoryRecord& record, const tape::BlockHeader& block);
  void finish_block_memory();
  void take(const event::SyncRecord& record, const tape::BlockHeader& block);
  void take(const event::MessageRecord& record, const tape::BlockHeader& block);
  void take(const event::ArgumentsRecord& record, const tape::BlockHeader& block);
  void take(const event::CountsRecord& record);
  void take(const event::ReadingRecord& record);
  void take(const event::LossRecord& record);
  int64_t shown_messages(Thread& caller, uint64_t correlation);
  void count_bad(event::Table table);
  /// The row of operator_input with these shapes; 0 for none.
  int64_t inputs_of(std::string_view shapes);
  uint64_t shapes_left_out_ = 0;
  /// The decoder of blocks of that kind; nullptr when this build has none.
  BlockDecoder* blocks(tape::BlockKind kind);

  trace::TraceWriter& writer_;
  ClockMap& clocks_;
  uint32_t slot_;
  int64_t row_ = 0;
  bool described_ = false;
  bool tsc_ = true;
  int64_t ahead_ = 0;  // ns by which the process's CLOCK_MONOTONIC and _RAW are ahead of tacho's (time namespaces)
  ProcessFacts facts_;
  Commands commands_;
  trace::WorkTimes work_{writer_};
  MemoryFailures memory_failures_{*this, writer_};
  std::vector<Text> strings_;
  std::vector<Queue> queues_;
  std::vector<Kernel> kernels_;
  std::vector<int64_t> devices_;        // rows
  std::vector<int64_t> communicators_;  // rows
  std::vector<int64_t> counters_;       // the program's own: rows of tracks
  std::vector<std::vector<event::PayloadField>> layouts_;
  std::vector<std::vector<event::EnumerationValue>> enumerations_;
  std::vector<PiecewiseLinear> device_clocks_;
  std::vector<std::unique_ptr<Thread>> threads_;  // by index
  tsl::robin_map<uint32_t, Lines> lines_;         // by thread id
  std::vector<std::string> cpu_events_;
  NumberMap<2>
      block_memory_;  // shapes of a framework's memory: by the device's index and the name, and the rest of the value
  std::map<int64_t, int64_t> block_memory_names_;  // strings by shape
  std::vector<KnownMarker> known_markers_;         // direct-mapped cache by hash
  tsl::robin_map<uint64_t, Range> ranges_;
  std::array<std::vector<int64_t>, static_cast<size_t>(event::Domain::kEnd)> functions_;
  ModuleCache& modules_;
  std::unique_ptr<ProcessSamples> samples_;                          // from the first record about call stacks on
  std::map<tape::BlockKind, std::unique_ptr<BlockDecoder>> blocks_;  // of the vendors that the process spoke of
};

}  // namespace tacho::decode
