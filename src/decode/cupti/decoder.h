// The decoder of CUPTI's activity buffers (BlockKind::kCupti).
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/name_filter.h"
#include "decode/block_decoder.h"
#include "decode/memory_failures.h"
#include "decode/process_context.h"
#include "decode/records/left_out.h"
#include "event/records.h"
#include "event/schema.h"
#include "tape/layout.h"
#include "trace/write/work_times.h"
#include "trace/write/writer.h"
#include "vendor/nvidia/cupti_activity.h"

namespace tacho::decode {

namespace cupti = vendor::cupti;

/// Counts of one process's records, for its summary and for checks.
struct CuptiFacts {
  int64_t launches = 0;   // successful calls that launch a kernel
  int64_t kernels = 0;    // records of kernels that no graph launched
  int64_t unmatched = 0;  // launches outside of stream captures without a kernel record
  int64_t graph_launches = 0;
  int64_t graph_spans = 0;   // records of whole graph launches (--graph-trace graph)
  int64_t without_time = 0;  // device work without times from CUPTI
  // In a program that tacho attached to: work launched before, and work that had not ended when tacho left
  int64_t before_attach = 0, after_leaving = 0, numberless = 0;
  int64_t in_flight = 0;  // device work unfinished when the process ended
  int64_t records = 0;
};

class CuptiDecoder : public BlockDecoder {
 public:
  CuptiDecoder(ProcessContext& process, trace::TraceWriter& writer);
  ~CuptiDecoder() override;
  CuptiDecoder(const CuptiDecoder&) = delete;
  CuptiDecoder& operator=(const CuptiDecoder&) = delete;

  /// Takes a NameRecord: `text` is the name of `number` in the process's buffers.
  void name(event::NameSpace space, uint64_t number, std::string_view text);
  /// Sets how to convert CUPTI's times to host time.
  void clock(const event::BlockClockRecord& record);
  /// Adds a pair of simultaneous times, for a CUPTI that did not accept tacho's clock.
  void clock_pair(uint64_t host_ticks, uint64_t cupti_ns);
  /// Sets the size of each kind of record; ignores impossible sizes.
  void record_sizes(std::span<const event::BlockSize> sizes);
  void fact(event::BlockFact which, uint64_t number, std::string_view text);
  void define(const std::byte* at, const event::RecordHeader& header) override;
  void arguments(uint64_t correlation, std::span<const std::byte> bytes) override;
  /// Decodes a completed buffer; header.aux 1 means that it came at exit and may hold unfinished work. With `completed`
  /// false, `bytes` is the whole payload of a buffer that CUPTI still held when the process ended; decodes it up to the
  /// end of the records.
  void block(const tape::BlockHeader& header, std::span<const std::byte> bytes, bool completed = true) override;
  /// Call after the last buffer: writes the rows still held back and checks launches against kernels.
  int64_t gpu(int64_t index) override { return device_row(static_cast<uint32_t>(index)); }
  void settle() override { work_.settle(); }
  void finish() override;

  const CuptiFacts& facts() const { return facts_; }

 private:
  struct Call {  // an API call that may be nested in the call of a later record
    int64_t start, end;
    uint32_t callback, correlation, result;
  };
  struct Thread {
    int64_t track = 0;
    std::vector<Call> held;  // driver calls since the last runtime call, at most kMostHeld
  };
  struct KernelKey {  // the content of a row of table kernel, as raw bytes
    uint64_t name;
    uint32_t shape[9];
    uint32_t cluster[3];
    uint32_t graph;
    uint16_t registers;
    uint8_t cache_config, carveout;
    bool operator==(const KernelKey&) const = default;
  };
  struct KernelSlot {
    KernelKey key;
    int64_t row = 0;
  };
  struct Segment {  // 2^21 ns of the conversion of CUPTI's time
    uint64_t number = ~0ull;
    int64_t base = 0;
    double slope = 1;
  };
  struct Callback {
    int64_t row = 0;  // of table function
    std::string name;
    event::CallRole tells = event::CallRole::kPlain;
    enum class Role : uint8_t { kPlain, kLaunch, kGraphLaunch, kBeginCapture, kEndCapture } role = Role::kPlain;
  };
  struct Times {
    int64_t start, duration;
    bool known;
  };

  /// Of the call of the runtime or driver with that number; 0 = not recorded.
  int64_t arguments_of(uint64_t correlation, bool driver) const;
  uint32_t record_size(uint32_t record_kind, uint32_t version) const;
  int64_t time(uint64_t cupti_ns);
  int64_t convert(uint64_t cupti_ns) const;
  Times device_times(event::Table table, uint64_t start, uint64_t end);
  void miss(event::Table table);
  bool paused(uint64_t correlation) const;
  uint64_t widen(uint32_t correlation);
  bool leaves_out(uint64_t correlation);
  bool is_tachos_own(const std::byte* record);
  bool is_numberless(uint64_t correlation);
  int64_t device_row(uint32_t device);
  int64_t device_of_context(uint32_t context);
  int64_t stream_track(uint32_t device, uint32_t context, uint32_t stream);
  int64_t text(uint64_t pointer) const;
  Thread& thread(uint32_t tid);
  Callback& callback(bool driver, uint32_t number);
  int64_t kernel_row(const KernelKey& key);  // kFilteredOut: the user's filter excludes it
  bool wanted(uint64_t name) const;

  void api(const std::byte* record, bool driver, uint32_t block_tid);
  void emit_call(const Thread& thread, bool driver, const Call& call, uint64_t correlation);
  void release(Thread& thread, const Call* outer);
  void follow_launch(const Callback& callback, const Call& call, uint64_t correlation);
  void match(uint64_t correlation, int64_t side);
  void kernel(const std::byte* record, uint32_t size);
  void copy(const std::byte* record, uint32_t size, bool peer);
  void fill(const std::byte* record, uint32_t size);
  void memory(const std::byte* record, uint32_t size, uint32_t block_tid);
  void synchronization(const std::byte* record, uint32_t block_tid);
  void overhead(const std::byte* record, uint32_t size, uint32_t block_tid);
  void graph(const std::byte* record);
  struct HostFunction {
    uint32_t stream, graph, thread;
    uint64_t correlation, start, end;
  };
  void host_function(const HostFunction& ran, uint32_t block_tid);
  void host_launch(const std::byte* record, uint32_t size, uint32_t block_tid);
  void graph_host_node(const std::byte* record, uint32_t size, uint32_t block_tid);
  void green_context(const std::byte* record, uint32_t size);
  void jit(const std::byte* record, uint32_t size, uint32_t block_tid);
  void device(const std::byte* record, uint32_t size);
  void context(const std::byte* record);
  void stream(const std::byte* record);
  void object_name(const std::byte* record);
  void unfinished(uint32_t record_kind, const std::byte* record, uint32_t size);

  static constexpr size_t kMostHeld = 256;
  static constexpr int64_t kFilteredOut = -1;
  static constexpr int64_t kKernelSide = event::kUnknown;
  static constexpr size_t kMostUnmatched = 1 << 20;
  static constexpr size_t kKernelSlots = 4096;
  static constexpr size_t kSegments = 64;

  ProcessContext& process_;
  trace::TraceWriter& writer_;
  trace::WorkTimes work_{writer_};
  MemoryFailures memory_failures_{process_, writer_};
  CuptiFacts facts_;
  std::array<uint32_t, cupti::kKinds> sizes_{};  // as the target reported them
  std::array<int64_t, cupti::kKinds + 1> unknown_{};

  event::BlockClock clock_ = event::BlockClock::kMonotonicRaw;
  uint64_t base_ticks_ = 0, base_ns_ = 0, multiplier_ = 0;
  int shift_ = 0;
  std::vector<std::pair<uint64_t, int64_t>> pairs_;  // CUPTI ns, trace time; ascending
  std::array<Segment, kSegments> segments_{};

  uint64_t newest_correlation_ = 0;
  tsl::robin_map<uint64_t, int64_t> texts_;            // pointer -> string row
  tsl::robin_map<uint32_t, std::string> graph_names_;  // graph id -> text
  std::set<uint32_t> graphs_told_;                     // graphs whose name is already a property
  std::array<std::vector<Callback>, 2> callbacks_;     // runtime, driver
  tsl::robin_map<uint32_t, std::unique_ptr<Thread>> threads_;
  Thread* last_thread_ = nullptr;
  uint32_t last_tid_ = 0;
  tsl::robin_map<uint64_t, int64_t> streams_;  // context << 32 | stream -> track
  uint64_t last_stream_key_ = ~0ull;
  int64_t last_stream_ = 0;
  tsl::robin_map<uint32_t, int64_t> devices_;    // CUDA device number -> row
  tsl::robin_map<uint32_t, uint32_t> contexts_;  // context -> device number
  tsl::robin_map<uint64_t, int64_t> copy_shapes_;
  std::vector<KernelSlot> kernel_slots_;
  // Launching calls and kernel records that wait for their counterpart, by correlation: the call's start, or
  // kKernelSide.
  tsl::robin_map<uint64_t, int64_t> unmatched_;
  uint64_t late_begin_ = 0;               // the first call's number after tacho attached; 0 = it started the program
  std::vector<uint64_t> left_out_calls_;  // of kernels from before
  uint64_t newest_kernel_ = 0;
  bool matching_ = true;  // false: gave up for lack of memory
  std::vector<std::pair<uint64_t, bool>>
      windows_;  // recording stopped (false) or started (true) with this call; ascending
  std::vector<std::pair<int64_t, bool>> span_windows_;  // spans that begin from then on are wanted; ascending
  std::vector<std::pair<int64_t, int>> captures_;       // stream captures: (time, +1 begin or -1 end)
  OwnNameFilter filter_;                                // --kernel-include, --kernel-exclude
  tsl::robin_map<uint64_t, std::string> names_;         // of kernels; empty without patterns
  int64_t filtered_ = 0;
  LeftOutKernels left_out_;
  std::string driver_version_;
  // Arguments of calls by number << 1 | driver: string rows. The newest, and those before them.
  static constexpr size_t kMostArguments = 1 << 19;
  tsl::robin_map<uint64_t, int64_t> arguments_, older_arguments_;
  bool thread_ids_ = false;  // records carry kernel thread ids; else they belong to the block's owner
  bool api_seen_ = false;
  event::LossReason missing_ = event::LossReason::kVendor;  // why work has no times in the buffer being decoded
};

}  // namespace tacho::decode
