// The decoder of records of AMD's rocprofiler-sdk (BlockKind::kRocprofiler; vendor/amd/sdk.h says how they lie in a
// block).
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/name_filter.h"
#include "decode/block_decoder.h"
#include "decode/clock_map.h"
#include "decode/memory_failures.h"
#include "decode/process_context.h"
#include "decode/records/left_out.h"
#include "event/records.h"
#include "event/schema.h"
#include "tape/layout.h"
#include "trace/write/work_times.h"
#include "trace/write/writer.h"
#include "vendor/amd/call_parameters.h"
#include "vendor/amd/sdk.h"

namespace tacho::decode {

namespace sdk = vendor::sdk;

class RocprofilerDecoder : public BlockDecoder {
 public:
  RocprofilerDecoder(ProcessContext& process, trace::TraceWriter& writer);
  ~RocprofilerDecoder() override;
  RocprofilerDecoder(const RocprofilerDecoder&) = delete;
  RocprofilerDecoder& operator=(const RocprofilerDecoder&) = delete;

  void define(const std::byte* at, const event::RecordHeader& header) override;
  void block(const tape::BlockHeader& header, std::span<const std::byte> bytes, bool completed) override;
  int64_t gpu(int64_t index) override {
    for (const auto& [handle, agent] : agents_)
      if (agent.gpu && agent.row != 0 && agent.index == index) return agent.row;
    return 0;
  }
  void settle() override { work_.settle(); }
  void finish() override;

  /// The name "KIND/operation" of `number` (a kind of records and one of its operations, sdk::operation_number).
  void operation(uint64_t number, std::string_view text);
  /// A kernel symbol's payload and the kernel's name.
  void kernel(std::span<const std::byte> symbol, std::string_view name);
  /// A rocprofiler_agent_v0_t and its texts.
  void agent(std::span<const std::byte> agent, std::string_view name, std::string_view product);
  void fact(event::BlockFact which, uint64_t number, std::string_view text);
  /// One record of the library in version `version`.
  void record(uint32_t version, const sdk::PieceHeader& header, std::span<const std::byte> bytes);

 private:
  enum class Role : uint8_t {
    kUnknown,
    kApi,
    kApiWithResult,
    kCopy,
    kDispatch,
    kAllocation,
    kScratch,
    kMigration,
    kMigrationEvent
  };
  struct Kind {
    Role role = Role::kUnknown;
    event::Domain domain = event::Domain::kUnknown;
  };
  struct Operation {
    int64_t row = 0;   // of table function, for calls
    std::string name;  // likewise
    event::CallRole tells = event::CallRole::kPlain;
    event::CopyDirection direction = event::CopyDirection::kUnknown;
    bool frees = false, has_result = false, begins = false, ends = false;
    const vendor::CallParameters* parameters = nullptr;  // of a HIP call; nullptr = unknown
  };
  struct KernelFacts {
    int64_t name = 0;
    uint32_t group_bytes = 0, scalar = event::kUnknown32, vector = event::kUnknown32, accumulation = event::kUnknown32;
    bool wanted = true;
    std::string left_out;  // its name, if it is not wanted
  };
  struct Shape {
    uint64_t kernel;
    uint32_t words[8];  // grid, group, LDS, scratch
    bool operator==(const Shape&) const = default;
  };
  struct ShapeSlot {
    Shape shape{};
    int64_t row = 0;
  };
  struct Agent {
    int64_t row = 0;  // of table device; 0 for a processor
    int64_t copies = 0, migrations = 0;
    bool gpu = true;
    int64_t index = 0;  // among the GPUs
  };
  // A counter of a whole GPU: its last reading.
  struct Counted {
    int64_t track = 0;
    uint64_t time = 0;
    double value = 0;
  };
  struct Memory {
    uint64_t bytes, agent;
  };
  struct Times {
    int64_t start, duration;
  };
  // Work whose correlation may be that of an HSA call within a HIP call, until that call's record has come.
  template <typename Row>
  struct Held {
    Row row;
    uint64_t correlation;
    trace::WorkTimes::Origin origin;
  };

  int64_t time(uint64_t ns);
  bool device_times(event::Table table, uint64_t start, uint64_t end, Times& times);
  int64_t thread(uint64_t tid);
  Agent& agent_of(uint64_t handle);
  int64_t copies_track(uint64_t handle);
  int64_t queue_track(uint64_t agent, uint64_t queue, uint64_t stream);
  Operation& operation_of(int32_t kind, int32_t operation);
  const KernelFacts& kernel_of(uint64_t id);
  int64_t kernel_row(const Shape& shape, const KernelFacts& facts);
  bool wanted(std::string_view name) const;
  /// The correlation of the outermost call around `correlation`; false while that call's own record is missing.
  bool outermost(uint64_t correlation, uint64_t& found) const;
  void write_work(const event::row::Dispatch& row, const trace::WorkTimes::Origin& origin);
  void write_work(const event::row::Copy& row, const trace::WorkTimes::Origin& origin);
  template <typename Row>
  void add_work(Row row, uint64_t correlation, const trace::WorkTimes::Origin& origin);
  template <typename Row>
  void release(std::vector<Held<Row>>& held, bool all);

  void tracing(uint32_t version, const std::byte* at, size_t size);
  void api(const Kind& kind, const std::byte* at, size_t size);
  void dispatch(const std::byte* at, size_t size);
  void copy(const std::byte* at, size_t size);
  void allocation(const std::byte* at, size_t size);
  void scratch(uint32_t version, const std::byte* at, size_t size);
  struct Migration {
    uint64_t start, end, address, address_end, source, target;
  };
  void migration(const Migration& moved);
  void migration_event(const std::byte* at, size_t size);
  void reading(const std::byte* at, size_t size);
  void unknown(uint32_t category, uint32_t kind);
  /// Recording was off when that call was made.
  bool paused(uint64_t correlation) const;

  static constexpr uint32_t kMostKinds = 256;
  static constexpr size_t kShapeSlots = 4096;
  static constexpr size_t kMostNested = 1 << 20;
  static constexpr size_t kMostHeld = 1 << 16;

  ProcessContext& process_;
  trace::TraceWriter& writer_;
  trace::WorkTimes work_{writer_};
  MemoryFailures memory_failures_{process_, writer_};
  PiecewiseLinear clock_;
  std::array<Kind, kMostKinds> kinds_{};
  tsl::robin_map<uint64_t, Operation> operations_;
  tsl::robin_map<uint64_t, KernelFacts> kernels_;
  std::vector<ShapeSlot> shapes_;
  tsl::robin_map<uint32_t, int64_t> counter_names_;                 // of --device-counters: strings
  std::map<std::pair<uint64_t, uint32_t>, Counted> device_counts_;  // by agent and counter
  tsl::robin_map<uint64_t, Agent> agents_;
  std::vector<std::pair<std::array<uint64_t, 3>, int64_t>> queues_;  // agent, queue, stream -> track
  tsl::robin_map<uint64_t, Memory> allocated_;                       // by address
  std::map<uint64_t, uint64_t> migrating_;                           // 0.x: by address, since when
  OwnNameFilter filter_;                                             // --kernel-include, --kernel-exclude
  // With HSA's calls in the trace: a call's number -> the call's around it (0 = none).
  bool nested_calls_ = false;
  tsl::robin_map<uint64_t, uint64_t> around_;
  std::vector<Held<event::row::Dispatch>> held_dispatches_;
  std::vector<Held<event::row::Copy>> held_copies_;
  std::vector<std::pair<uint64_t, bool>> windows_;  // recording begins (true) or ends with this call; ascending
  uint64_t last_tid_ = ~0ull;
  int64_t last_thread_ = 0;
  int64_t filtered_ = 0, counter_records_ = 0;
  LeftOutKernels left_out_;
  tsl::robin_map<uint64_t, int64_t> unknown_;  // category << 32 | kind -> how many
};

}  // namespace tacho::decode
