// Records of rocprofiler-sdk in the pool (sdk.h). The library owns its buffers and writes records at addresses of its
// choice, so each buffer is copied once, behind a header with its kind and length. Nothing is decoded here.
#include <string.h>

#include <atomic>
#include <string_view>

#include "base/clock.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

constinit const sdk::Functions* g_sdk = nullptr;
constinit uint32_t g_version = 0;

constexpr int32_t kMostKinds = 128, kMostOperations = 1024;
struct KindFacts {
  char name[40];
  event::Table table;
  bool extended;                                      // arguments and result follow a call
  bool work;                                          // sdk_work.cpp counts it as it begins
  std::atomic<uint64_t> named[kMostOperations / 64];  // operations that have been defined
};
constinit KindFacts g_kinds[kMostKinds] = {};

uint64_t load_word(const void* at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

void define_operation(int32_t kind, int32_t operation) {
  char text[256];
  const char* name = nullptr;
  uint64_t length = 0;
  if (g_sdk->buffer_operation_name(kind, operation, &name, &length) != sdk::kSuccess || name == nullptr) name = "";
  const size_t prefix = strlen(g_kinds[kind].name);
  size_t rest = strlen(name);
  if (rest > sizeof text - prefix - 2) rest = sizeof text - prefix - 2;
  memcpy(text, g_kinds[kind].name, prefix);
  text[prefix] = '/';
  memcpy(text + prefix + 1, name, rest);
  tape::define_name(kSdkBlocks, event::NameSpace::kOperation, sdk::operation_number(kind, operation),
                    {text, prefix + 1 + rest});
}

// Once for every operation: its name must be in the pool before records that refer to it.
void see_operation(int32_t kind, int32_t operation) {
  if (operation < 0 || operation >= kMostOperations) return;
  std::atomic<uint64_t>& word = g_kinds[kind].named[operation / 64];
  const uint64_t bit = uint64_t{1} << (operation % 64);
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) define_operation(kind, operation);
}

constinit std::atomic<int64_t> g_waited{0};
constinit std::atomic<uint64_t> g_dropped{0}, g_work_back{0};

// The library's threads wait in here, and the program's with them: not for long.
tape::BlockHeader* open_block() {
  constexpr int64_t kTurn = 2'000'000, kMost = 500'000'000;
  for (;;) {
    const uint32_t backed = tape::pool()->populated_blocks.load(std::memory_order_acquire);
    tape::BlockHeader* const block = tape::open_extent(kSdkBlocks, 1, g_version);
    if (block != nullptr || !tape::can_grow() || g_waited.load(std::memory_order_relaxed) >= kMost) return block;
    g_waited.fetch_add(kTurn, std::memory_order_relaxed);
    tape::wait_for_growth(backed, kTurn);
  }
}

class Appender {
 public:
  ~Appender() { close(); }
  /// Room for a record of `bytes`; nullptr when the pool has none.
  std::byte* next(uint64_t bytes) {
    const uint64_t need = sizeof(sdk::PieceHeader) + ((bytes + 7) & ~uint64_t{7});
    if (need > tape::kBlockPayload) return nullptr;
    if (block_ != nullptr && used_ + need > tape::kBlockPayload) close();
    if (block_ == nullptr) {
      block_ = open_block();
      used_ = 0;
      if (block_ == nullptr) return nullptr;
    }
    std::byte* const at = tape::payload(block_) + used_;
    used_ += static_cast<uint32_t>(need);
    return at;
  }

 private:
  void close() {
    if (block_ != nullptr) tape::close_extent(block_, used_);
    block_ = nullptr;
  }
  tape::BlockHeader* block_ = nullptr;
  uint32_t used_ = 0;
};

// Bytes of a record: all but values of counters begin with their size. 0: nonsense.
uint64_t bytes_of(const sdk::SdkRecordHeader& header) {
  if (header.category == sdk::category::kCounters && header.kind == sdk::kCounterValue)
    return sdk::counter::value_bytes(g_version);
  const uint64_t bytes = load_word(header.payload);
  return bytes >= 8 && bytes <= 16384 ? bytes : 0;
}

void copy_record(Appender& pool, const sdk::SdkRecordHeader& header) {
  const uint64_t bytes = bytes_of(header);
  if (bytes == 0) return tape::loss(event::Table::kFactEnd, event::LossReason::kUnknownRecord, 1);
  const auto* const from = static_cast<const std::byte*>(header.payload);
  auto table = event::Table::kFactEnd;
  uint64_t kept = bytes, tail = 0;
  if (header.category == sdk::category::kTracing && header.kind < kMostKinds) {
    const auto kind = static_cast<int32_t>(header.kind);
    see_operation(kind, sdk::any::operation.read(from, bytes));
    table = g_kinds[kind].table;
    if (g_kinds[kind].work) g_work_back.fetch_add(1, std::memory_order_relaxed);
    // Of a call with its arguments only the result is kept, unless they were asked for.
    if (g_kinds[kind].extended && !tape::configuration().api_args && bytes > sdk::Api::kWide + sdk::Api::kResultBytes) {
      kept = sdk::Api::kWide;
      tail = sdk::Api::kResultBytes;
    }
  }
  std::byte* const to = pool.next(kept + tail);
  if (to == nullptr) return tape::count_dropped(table);
  const sdk::PieceHeader piece{header.category, header.kind, kept + tail};
  memcpy(to, &piece, sizeof piece);
  memcpy(to + sizeof piece, from, kept);
  memcpy(to + sizeof piece + kept, from + bytes - tail, tail);
}

}  // namespace

void put_piece(uint32_t category, uint32_t kind, const void* record, uint64_t bytes) {
  Appender pool;
  std::byte* const to = pool.next(bytes);
  if (to == nullptr) return tape::count_dropped(event::Table::kFactEnd);
  const sdk::PieceHeader piece{category, kind, bytes};
  memcpy(to, &piece, sizeof piece);
  memcpy(to + sizeof piece, record, bytes);
}

void set_up_sdk_buffers(const sdk::Functions& functions, uint32_t version) {
  g_sdk = &functions;
  g_version = version;
}

uint64_t work_back() {
  return g_work_back.load(std::memory_order_relaxed) + g_dropped.load(std::memory_order_relaxed);
}

void describe_kind(int32_t kind, const char* name, event::Table table) {
  if (kind < 0 || kind >= kMostKinds) return;
  KindFacts& facts = g_kinds[kind];
  strncpy(facts.name, name, sizeof facts.name - 1);
  facts.table = table;
  const std::string_view text(facts.name);
  facts.work = text == sdk::kind::kDispatch || text == sdk::kind::kCopy;
  facts.extended = text == "HIP_RUNTIME_API_EXT" || text == "HIP_COMPILER_API_EXT";
}

void copy_records(sdk::Context, sdk::Buffer, sdk::SdkRecordHeader** headers, size_t count, void*, uint64_t dropped) {
  if (!sdk_active()) return;  // a forked child gets what its parent had recorded
  const uint16_t before = tape::t_state.hidden;
  tape::t_state.hidden = 1;  // no samples in here
  sign_of_life();
  describe_agents();
  // Since the buffer was made.
  const uint64_t told = g_dropped.exchange(dropped, std::memory_order_relaxed);
  if (dropped > told) tape::loss(event::Table::kFactEnd, event::LossReason::kVendor, dropped - told);
  {
    Appender pool;
    for (size_t at = 0; at < count; ++at)
      if (headers[at] != nullptr && headers[at]->payload != nullptr) copy_record(pool, *headers[at]);
  }
  tape::t_state.hidden = before;
}

}  // namespace tacho::capture::rocm
