// The tables of schema.h as data, and the schema's hash.
#include "event/schema.h"

#include <array>

#include "event/records.h"

namespace tacho::event {
namespace {

#define TACHO_COLUMN(name, type, target, text) Column{#name, Type::type, Table::target, text},
#define TACHO_ARRAY(table, list, sql, text) \
  constexpr std::array<Column, column::table::kCount> kColumns##table = {{list(TACHO_COLUMN)}};
TACHO_TABLES(TACHO_ARRAY)
#undef TACHO_ARRAY
#undef TACHO_COLUMN

constexpr TableInfo kTables[] = {
#define TACHO_INFO(table, list, sql, text) {Table::k##table, sql, text, kColumns##table},
    TACHO_TABLES(TACHO_INFO)
#undef TACHO_INFO
};
static_assert(std::size(kTables) == kFactTables + kDimensionTables);

constexpr uint64_t mix(uint64_t hash, std::string_view text) {  // FNV-1a, 64 bit
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return (hash ^ 0xff) * 0x100000001b3ULL;
}

constexpr uint64_t compute_hash() {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const TableInfo& info : kTables) {
    hash = mix(hash, info.name);
    hash = (hash ^ static_cast<uint64_t>(info.table)) * 0x100000001b3ULL;
    for (const Column& column : info.columns) {
      hash = mix(hash, column.name);
      hash = (hash ^ (static_cast<uint64_t>(column.type) << 8 | static_cast<uint64_t>(column.target))) *
             0x100000001b3ULL;
    }
  }
  for (const RecordInfo& record : kRecordInfos) {
    hash = mix(hash, record.name);
    hash = (hash ^ (static_cast<uint64_t>(record.kind) << 16 | record.size)) * 0x100000001b3ULL;
  }
  return hash;
}
constexpr uint64_t kSchemaHash = compute_hash();

template <typename E, size_t N>
std::string_view pick(const std::array<std::string_view, N>& names, E value) {
  static_assert(N == static_cast<size_t>(E::kEnd), "one name per enumerator");
  const auto index = static_cast<size_t>(value);
  return index < N ? names[index] : std::string_view("unknown");
}

}  // namespace

const TableInfo& table_info(Table table) {
  const auto number = static_cast<size_t>(table);
  return kTables[number < kFactTables ? number : number - kFirstDimension + kFactTables];
}
std::span<const TableInfo> all_tables() {
  return kTables;
}
uint64_t schema_hash() {
  return kSchemaHash;
}

#define TACHO_NAMES(E, ...)                                                                             \
  std::string_view to_string(E value) {                                                                 \
    static constexpr std::array<std::string_view, static_cast<size_t>(E::kEnd)> kNames = {__VA_ARGS__}; \
    return pick(kNames, value);                                                                         \
  }
TACHO_NAMES(Domain, "unknown", "opencl", "cuda_runtime", "cuda_driver", "hip", "hip_compiler", "hsa", "rccl",
            "marker", "python", "mpi", "host", "operator")
TACHO_NAMES(TrackKind, "unknown", "thread", "queue", "counter", "memory", "range")
TACHO_NAMES(DeviceKind, "unknown", "CPU", "GPU", "accelerator")
TACHO_NAMES(DispatchKind, "kernel", "native kernel", "graph", "task")
TACHO_NAMES(CopyDirection, "unknown", "host to host", "host to device", "device to host", "device to device",
            "peer to peer")
TACHO_NAMES(CopyKind, "plain", "rectangle", "image", "buffer to image", "image to buffer", "map", "unmap",
            "migrate", "svm")
TACHO_NAMES(MemoryKind, "unknown", "pageable", "pinned", "device", "array", "managed", "device static",
            "managed static", "svm", "host")
TACHO_NAMES(AllocationOperation, "allocate", "free")
TACHO_NAMES(MarkerKind, "push/pop", "start/stop", "mark")
TACHO_NAMES(PayloadKind, "none", "integer", "double")
TACHO_NAMES(SyncKind, "unknown", "device", "context", "queue", "event", "queue waits for event", "barrier",
            "marker")
TACHO_NAMES(OverheadKind, "unknown", "profiler", "runtime", "compiler", "module load", "lazy function load",
            "flush", "buffer full", "instrumentation")
TACHO_NAMES(FrameKind, "native", "python", "kernel", "truncated")
TACHO_NAMES(LinkKind, "none", "nested api", "marker child", "graph node", "sample open", "flow")
TACHO_NAMES(LossReason, "pool full", "dropped by the vendor's library", "in flight when the process ended",
            "--max-size reached", "overwritten by --ring", "unknown record kind", "times out of order",
            "open at exit", "launch without a record", "child not followed", "write error", "bad input row",
            "filtered", "summed up without a name by --aggregate")
TACHO_NAMES(NoteSeverity, "info", "warning", "error")

}  // namespace tacho::event
