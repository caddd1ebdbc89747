// CUPTI's activity records, byte for byte, declared without NVIDIA's headers: one build reads what any CUPTI from 11.8
// on writes. The source in the target and the decoder share these tables.
//
// The layouts of a kind differ between versions only in fields added at the end, so a record has a field exactly when
// the field ends within the record. The length of a record depends on the library that wrote it: the target asks that
// library's iterator and reports the lengths to the decoder; if it did not, size_by_version() knows them. Facts from
// the public headers cupti_activity.h and cupti_activity_deprecated.h and their release notes;
// tests/vendor/nvidia/activity_abi_test.cpp compares with the headers if they are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tacho::vendor::cupti {

namespace kind {
inline constexpr uint32_t kCopy = 1, kFill = 2, kSerialKernel = 3, kDriver = 4, kRuntime = 5, kDevice = 8, kContext = 9,
                          kKernel = 10, kName = 11, kMarker = 12, kMarkerData = 13, kOverhead = 17, kCdpKernel = 18,
                          kEnvironment = 20, kPeerCopy = 22, kFunction = 26, kModule = 27, kCudaEvent = 36,
                          kStream = 37, kSynchronization = 38, kExternalCorrelation = 39, kMemory = 45,
                          kInternalLaunch = 48, kMemory2 = 49, kMemoryPool = 50, kGraphTrace = 51, kJit = 52,
                          kDeviceGraphTrace = 53;
// From CUPTI 13.1 on. Numbers by the order of CUpti_ActivityKind in NVIDIA's documentation; seen in no buffer so far.
inline constexpr uint32_t kGraphHostNode = 56, kHostLaunch = 58, kGreenContext = 59;
}  // namespace kind
/// Set in the kind of a record that CUPTI has not completed (seen in buffers of killed processes, CUPTI 13.0).
inline constexpr uint32_t kIncomplete = 1u << 31;
inline constexpr uint32_t kKinds = 128;  // kinds above are counted as unknown

/// A field of a record: read() gives `absent` if the record of this version lacks it.
template <typename T>
struct RecordField {
  uint32_t offset;
  bool in(uint32_t size) const { return offset + sizeof(T) <= size; }
  T read(const std::byte* record, uint32_t size, T absent = T{}) const {
    if (!in(size)) return absent;
    T value;
    std::memcpy(&value, record + offset, sizeof value);
    return value;
  }
};

//  CUpti_ActivityAPI, 40 bytes in every version
//   0     4     8          16         24    28    32     36
//  +-----+-----+----------+----------+-----+-----+------+--------+
//  | kind| cbid| start    | end      | pid | tid | corr | result |
//  +-----+-----+----------+----------+-----+-----+------+--------+
namespace api {
inline constexpr RecordField<uint32_t> callback{4}, thread{28}, correlation{32}, result{36};
inline constexpr RecordField<uint64_t> start{8}, end{16};
}  // namespace api

// CUpti_ActivityKernel8 (11.8) 200, Kernel9 (12.0) 208, Kernel10 (13.0) 216 bytes; earlier ones end before cluster.
namespace kernel {
inline constexpr RecordField<uint8_t> cache_config{4};
inline constexpr RecordField<uint16_t> registers{6};
inline constexpr RecordField<uint64_t> start{16}, end{24}, completed{32};
inline constexpr RecordField<uint32_t> device{40}, context{44}, stream{48};
inline constexpr uint32_t kShapeOffset =
    52;  // grid x y z, block x y z, static and dynamic shared, local per thread: 9 words
inline constexpr RecordField<int32_t> grid_x{52}, grid_y{56}, grid_z{60}, block_x{64}, block_y{68}, block_z{72};
inline constexpr RecordField<int32_t> shared_static{76}, shared_dynamic{80};
inline constexpr RecordField<uint32_t> local_per_thread{84}, correlation{92};
inline constexpr RecordField<uint64_t> name{104}, queued{120}, submitted{128}, graph_node{144};
inline constexpr RecordField<uint8_t> carveout_requested{137}, carveout{138};
inline constexpr RecordField<uint32_t> graph{156}, cluster_x{176}, cluster_y{180}, cluster_z{184};
inline constexpr RecordField<uint8_t> device_launched{208};
inline constexpr uint32_t kLeast = 144;
}  // namespace kernel

// CUpti_ActivityMemcpy5 (11.8) 88, Memcpy6 (12.8) 96 bytes.
namespace copy {
inline constexpr RecordField<uint8_t> direction{4}, source{5}, target{6}, flags{7};
inline constexpr RecordField<uint64_t> bytes{8}, start{16}, end{24}, graph_node{64};
inline constexpr RecordField<uint32_t> device{32}, context{36}, stream{40}, correlation{44}, graph{72};
inline constexpr uint32_t kLeast = 64;
}  // namespace copy

// CUpti_ActivityMemcpyPtoP4 (11.8) 96 bytes; begins like a copy.
namespace peer_copy {
inline constexpr RecordField<uint32_t> source_device{44}, target_device{52}, correlation{60};
inline constexpr RecordField<uint64_t> graph_node{72};
inline constexpr uint32_t kLeast = 72;
}  // namespace peer_copy

// CUpti_ActivityMemset4 (11.8) 88 bytes.
namespace fill {
inline constexpr RecordField<uint32_t> value{4}, device{32}, context{36}, stream{40}, correlation{44};
inline constexpr RecordField<uint64_t> bytes{8}, start{16}, end{24}, graph_node{64};
inline constexpr RecordField<uint16_t> memory{50};
inline constexpr uint32_t kLeast = 64;
}  // namespace fill

// CUpti_ActivityMemory2 112, Memory3 (11.6) 120, Memory4 128 bytes.
namespace memory {
inline constexpr RecordField<uint32_t> operation{4}, memory_kind{8}, correlation{12}, device{52}, context{56},
    stream{60}, asynchronous{72};
inline constexpr RecordField<uint64_t> address{16}, bytes{24}, time{32}, name{64};
inline constexpr uint32_t kLeast = 80;
}  // namespace memory

// CUpti_ActivitySynchronization 40, Synchronization2 (12.8) 56 bytes.
namespace sync {
inline constexpr RecordField<uint32_t> type{4}, correlation{24}, context{28}, stream{32};
inline constexpr RecordField<uint64_t> start{8}, end{16};
inline constexpr uint32_t kLeast = 40;
}  // namespace sync

// CUpti_ActivityOverhead 40, Overhead2 (12.2) 48, Overhead3 (12.4) 56 bytes.
namespace overhead {
inline constexpr RecordField<uint32_t> type{4}, object{8}, process{12}, thread{16}, correlation{40};
inline constexpr RecordField<uint64_t> start{24}, end{32};
inline constexpr uint32_t kLeast = 40;
inline constexpr uint32_t kObjectThread = 2;
}  // namespace overhead

// CUpti_ActivityGraphTrace 48, GraphTrace2 56 bytes.
namespace graph_trace {
inline constexpr RecordField<uint32_t> correlation{4}, device{24}, graph{28}, context{32}, stream{36};
inline constexpr RecordField<uint64_t> start{8}, end{16};
inline constexpr uint32_t kLeast = 48;
}  // namespace graph_trace

// CUpti_ActivityJit 64, Jit2 (12.4) 72 bytes.
namespace jit {
inline constexpr RecordField<uint32_t> entry{4}, operation{8}, device{12}, correlation{32}, thread{68};
inline constexpr RecordField<uint64_t> start{16}, end{24}, cache_bytes{48}, cache_path{56};
inline constexpr uint32_t kLeast = 64;
}  // namespace jit

// CUpti_ActivityDevice4 176, Device5 184 bytes.
namespace device {
inline constexpr RecordField<uint64_t> bandwidth{8}, memory{16}, name{136};
inline constexpr RecordField<uint32_t> l2_bytes{28}, core_clock_khz{36}, multiprocessors{44},
    warps_per_multiprocessor{52}, shared_per_multiprocessor{60}, registers_per_multiprocessor{64},
    capability_major{104}, capability_minor{108}, id{112};
inline constexpr uint32_t kUuidOffset = 120;
inline constexpr RecordField<uint8_t> mig_enabled{145};
inline constexpr RecordField<uint32_t> gpu_instance{152}, compute_instance{156};
inline constexpr uint32_t kMigUuidOffset = 160;
inline constexpr uint32_t kLeast = 144;
}  // namespace device

// CUpti_ActivityContext 16, Context2 (12.4) 24, Context3 32 bytes.
namespace context {
inline constexpr RecordField<uint32_t> id{4}, device{8};
inline constexpr RecordField<uint16_t> null_stream{14};
inline constexpr uint32_t kLeast = 16;
}  // namespace context

// CUpti_ActivityStream, 24 bytes.
namespace stream {
inline constexpr RecordField<uint32_t> context{4}, id{8}, priority{12}, flag{16};
inline constexpr uint32_t kLeast = 24;
}  // namespace stream

// CUpti_ActivityName, 32 bytes.
namespace name {
inline constexpr RecordField<uint32_t> object{4}, device{8}, context{12}, stream{16};
inline constexpr RecordField<uint64_t> text{24};
inline constexpr uint32_t kLeast = 32;
inline constexpr uint32_t kObjectThread = 2, kObjectStream = 5;
}  // namespace name

// CUpti_ActivityHostLaunch (13.1): 4 words less than a host node before the process, 48 bytes either way: the
// documentation does not tell whether the 28 bytes before the times are padded.
namespace host_launch {
inline constexpr RecordField<uint32_t> stream{4}, context{8}, device{12}, correlation{16}, process{20}, thread{24};
inline constexpr RecordField<uint64_t> start{32}, end{40}, packed_start{28}, packed_end{36};
inline constexpr uint32_t kLeast = 44;
}  // namespace host_launch

// CUpti_ActivityGraphHostNode (13.1), 56 bytes.
namespace graph_host_node {
inline constexpr RecordField<uint32_t> stream{4}, context{8}, device{12}, correlation{16}, graph{20}, process{32},
    thread{36};
inline constexpr RecordField<uint64_t> node{24}, start{40}, end{48};
inline constexpr uint32_t kLeast = 56;
}  // namespace graph_host_node

// CUpti_ActivityGreenContext (13.1) 152 bytes; later ones add the work queue.
namespace green_context {
inline constexpr RecordField<uint32_t> context{4}, parent{8}, device{12}, texture_clusters{16};
inline constexpr RecordField<uint16_t> multiprocessors{20};
inline constexpr uint32_t kLeast = 24;
}  // namespace green_context

/// Size of records of `kind` in CUPTI `version` (cuptiGetVersion()); 0 = unknown. For buffers whose writer did not
/// report its sizes.
constexpr uint32_t size_by_version(uint32_t record_kind, uint32_t version) {
  constexpr uint32_t k11_8 = 18, k12_0 = 19, k12_2 = 20, k12_4 = 22, k12_8 = 26, k13_0 = 130000, k13_1 = 130100;
  if (version < k11_8) return 0;
  switch (record_kind) {
    case kind::kCopy:
      return version >= k12_8 ? 96 : 88;
    case kind::kFill:
      return 88;
    case kind::kSerialKernel:
    case kind::kKernel:
      return version >= k13_1 ? 0 : version >= k13_0 ? 216 : version >= k12_0 ? 208 : 200;
    case kind::kDriver:
    case kind::kRuntime:
    case kind::kInternalLaunch:
      return 40;
    case kind::kName:
      return 32;
    case kind::kMarker:
      return 56;
    case kind::kMarkerData:
      return version >= k13_1 ? 40 : 32;
    case kind::kOverhead:
      return version >= k12_4 ? 56 : version >= k12_2 ? 48 : 40;
    case kind::kCdpKernel:
      return 144;
    case kind::kEnvironment:
      return 40;
    case kind::kPeerCopy:
      return 96;
    case kind::kFunction:
      return 32;
    case kind::kModule:
      return 24;
    case kind::kCudaEvent:
      return version >= k12_8 ? 56 : 24;
    case kind::kStream:
      return 24;
    case kind::kSynchronization:
      return version >= k12_8 ? 56 : 40;
    case kind::kExternalCorrelation:
      return 24;
    case kind::kMemory2:
      return version >= k13_0 ? 128 : version < k12_0 ? 120 : 0;
    case kind::kGraphTrace:
      return version >= k13_0 ? 56 : version < k12_0 ? 48 : 0;
    case kind::kJit:
      return version >= k12_4 ? 72 : 64;
    case kind::kDevice:
      return version >= k13_0 && version < k13_1 ? 184 : version < k12_0 ? 176 : 0;
    case kind::kContext:
      return version >= k13_0 && version < k13_1 ? 32 : version < k12_4 ? 16 : 0;
    default:
      return 0;
  }
}

}  // namespace tacho::vendor::cupti
