// The records that tacho's own sources write into the pool, byte for byte. Vendors' buffers lie in the pool as the
// vendor's library wrote them and are not described here.
//
// A record is a multiple of 8 bytes and starts with
//
//    byte 0      1       2..3            4..7
//   +------+--------+-----------+---------------------+
//   | kind | flags  | size in B | value (kind's own)  |
//   +------+--------+-----------+---------------------+
//
// "host time" is the target's clock (clock.h: ticks of the clock that the process record names), "device time" is in
// the clock domain of the queue. Numbers that define things (strings, queues, kernels, devices) are unique in their
// process; a definition is always committed before the first record that uses it, in a block of kind kDefinitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tacho::event {

enum class RecordKind : uint8_t {
  kPad = 0,  // value: nothing; skips the rest of a block
  // definitions
  kString,
  kProcess,
  kThread,
  kDevice,
  kQueue,
  kKernel,
  kProperty,
  kNote,
  kClockPair,
  kName,  // the name of a number in a vendor's blocks (callback id, kernel name pointer ...)
  kAttached,
  kBlockClock,
  kBlockSizes,
  kBlockFact,
  // facts
  kApi,
  kDispatch,
  kDispatchWide,
  kCopy,
  kFill,
  kAllocation,
  kSync,
  kPush,
  kPop,
  kMark,
  kRangeStart,
  kRangeStop,
  kSample,
  kLoss,
  // definitions that call stacks need
  kModule,
  kCode,
  kCounts,
  kArguments,
  kBlockObject,
  kMessage,
  kCommunicator,
  // counters and payloads of the program's own
  kCounter,
  kReading,
  kFields,
  kEnumeration,
  kBlockMemory,
  kEnd
};

struct RecordHeader {
  RecordKind kind;
  uint8_t flags;
  uint16_t size;
  uint32_t value;
};
static_assert(sizeof(RecordHeader) == 8);

/// value: the string's number. Followed by the bytes; `length` of them (the rest of size is padding).
struct StringRecord {
  RecordHeader header;
  uint64_t length;
};

/// Text fields are numbers of strings. value: process generation within its pid (0 = first image). flags:
/// kFlagPreloaded.
struct ProcessRecord {
  RecordHeader header;
  uint32_t pid, parent_pid;
  uint32_t slot;         // number of this process in the pool
  uint32_t parent_slot;  // slot whose definitions are inherited after fork; 0xffffffff = none
  uint32_t name, command, host, rank_text;
  uint32_t clock;             // HostClock
  uint32_t hook_picoseconds;  // measured cost of one empty hook, ps
  uint64_t start;             // host time
  uint64_t start_raw;         // the same moment, CLOCK_MONOTONIC_RAW ns
  double ns_per_tick;         // of the host clock
};
/// libtacho.so was there before the program's main function, through LD_PRELOAD: it sees all threads, calls of MPI, and
/// markers through any library. Without it a process is recorded by a runtime's own way in only.
inline constexpr uint8_t kFlagPreloaded = 1;
enum class HostClock : uint32_t { kTsc, kMonotonicRaw, kMonotonic };

/// value: thread index of the block header. name: string, 0 = none.
struct ThreadRecord {
  RecordHeader header;
  uint32_t tid, name;
};

/// value: device number (from 1).
struct DeviceRecord {
  RecordHeader header;
  uint32_t kind;  // DeviceKind
  uint32_t index;
  uint32_t name, vendor, architecture, driver, uuid;
  uint32_t clock_error_ns;  // 0xffffffff = not stated
};

/// value: queue number (from 1). Describes a queue or stream and names the clock of its device times.
struct QueueRecord {
  RecordHeader header;
  uint32_t device;
  uint32_t name;      // string, 0 = none
  uint32_t category;  // string, 0 = none
  uint32_t clock;     // DeviceClock
  uint64_t native;    // the runtime's handle or number
  uint64_t context;
  uint64_t properties;  // the runtime's property bits
};
inline constexpr uint8_t kQueueNumbered = 1;  // flags: `native` is a number to be shown
inline constexpr uint8_t kQueueStream = 2;    // flags: a stream; `context` is the hardware queue's number, 0 = none
enum class DeviceClock : uint32_t {
  kMonotonicRaw,  // CLOCK_MONOTONIC_RAW ns (PoCL)
  kMonotonic,
  kRealtime,  // (Oclgrind)
  kPaired,    // ClockPairRecords of this queue's device
  kHost,      // same ticks as the host clock
};

/// value: kernel number (from 1). Fields are kUnknown32 if the runtime does not report them.
struct KernelRecord {
  RecordHeader header;
  uint32_t name;
  uint32_t kind;  // DispatchKind
  uint32_t registers, accum_registers, scalar_registers;
  uint32_t shared_static;
  uint32_t private_bytes;
  uint32_t reserved;
};
inline constexpr uint32_t kUnknown32 = 0xffffffff;

/// value: Table of the object described. Key and text are strings.
struct PropertyRecord {
  RecordHeader header;
  uint32_t object;  // the object's number in this process; 0 = the process itself
  uint32_t key;
  uint32_t text;
  uint32_t reserved;
};

/// value: NoteSeverity.
struct NoteRecord {
  RecordHeader header;
  uint64_t time;  // host time
  uint32_t text;  // string
  uint32_t reserved;
};

/// value: device number (0 = host clock against CLOCK_MONOTONIC_RAW); with flags not 0 the clock of blocks of that
/// tape::BlockKind instead. The same moment in two clocks.
struct ClockPairRecord {
  RecordHeader header;
  uint64_t host;         // host time
  uint64_t device;       // device time; for device 0 CLOCK_MONOTONIC_RAW ns
  uint64_t uncertainty;  // ns: half of the interval within which both were read
};

/// flags: tape::BlockKind. value: NameSpace. `text` is the name of `number` in the process's blocks of that kind.
struct NameRecord {
  RecordHeader header;
  uint64_t number;
  uint32_t text;
  uint32_t reserved;
};
enum class NameSpace : uint32_t {
  kRuntimeFunction,
  kDriverFunction,  // of the layer below the runtime
  kKernel,
  kGraph,      // text: the target's description of it, see the source
  kOperation,  // of a kind of records: its name and its type of record
};

/// value: low 16 bits function number in `flags`' Domain (tables in event/functions*.h), high 16 bits int16 result.
struct ApiRecord {
  RecordHeader header;
  uint64_t start, end;  // host time; end 0 = still open (never returned)
  uint64_t correlation;
};

/// value: kernel number. Device times; 0 = unknown. With kFlagGraph the number of its node (uint64_t) follows, as it
/// does DispatchWideRecord and, with kCopyGraph, CopyRecord.
struct DispatchRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t queued, submit, start, end;
  uint32_t queue;
  uint32_t ordinal;
  uint32_t grid[3];   // work-items
  uint32_t group[3];  // 0 = chosen by the runtime
};
inline constexpr uint8_t kFlagGraph = 1;
inline constexpr uint8_t kFlagNoDynamicShared = 2;  // the launch asked for no dynamic shared memory

/// As DispatchRecord for launches that do not fit there.
struct DispatchWideRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t queued, submit, start, end;
  uint32_t queue;
  uint32_t ordinal;
  uint64_t grid[3];
  uint64_t group[3];
  uint64_t offset[3];
  uint32_t cluster[3];
  uint32_t shared_dynamic;
};

/// value: byte 0 CopyDirection, byte 1 CopyKind, byte 2 source MemoryKind, byte 3 target MemoryKind. flags bit 0: the
/// call did not wait; bit 1: times are host time.
struct CopyRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t queued, submit, start, end;
  uint64_t bytes;
  uint32_t queue;
  uint32_t peer_queue;  // queue whose device is the other end of a device-to-device copy; 0 = the same
};
inline constexpr uint8_t kCopyAsynchronous = 1;
inline constexpr uint8_t kTimesAreHost = 2;
inline constexpr uint8_t kCopyGraph = 4;

/// value: MemoryKind.
struct FillRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t queued, submit, start, end;
  uint64_t bytes;
  uint64_t pattern;  // first 8 bytes of the pattern
  uint32_t queue;
  uint32_t pattern_bytes;
};

/// value: byte 0 AllocationOperation, byte 1 MemoryKind, high 16 bits: device number.
struct AllocationRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t start, end;  // host time
  uint64_t bytes;       // ~0 = unknown
  uint64_t address;
  uint32_t name;  // string
  uint32_t reserved;
};

/// What a framework's allocator did with a device's memory. value: byte 0 AllocationOperation, byte 1 MemoryKind,
/// byte 2 AllocationLevel, byte 3 the device's index as the framework numbers it, 255 = none. A SampleRecord before
/// it whose SampleHeader::launch is 2 is its call stack.
struct BlockMemoryRecord {
  RecordHeader header;
  uint64_t time;  // host time
  uint64_t bytes;
  uint64_t address;
  uint64_t in_use, reserved;  // of the allocator on that device afterwards; ~0 = not told
  uint32_t name;              // string
  uint32_t unused;
};

/// value: SyncKind. Host time unless flags has no kTimesAreHost: then device time of `queue`.
struct SyncRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t start, end;
  uint32_t queue;
  uint32_t reserved;
};

/// value: bytes of text that follow (not interned: a marker's text may change from call to call), unless
/// kMarkerInterned: then a string's number. flags say which 8-byte fields follow the text, in the order of the bits.
struct PushRecord {
  RecordHeader header;
  uint64_t time;
};
using MarkRecord = PushRecord;
inline constexpr uint8_t kMarkerInterned = 1;
inline constexpr uint8_t kMarkerDomain = 2;    // low 32 bits: string number of the domain
inline constexpr uint8_t kMarkerCategory = 4;  // low 32 bits: string number of the category
inline constexpr uint8_t kMarkerColor = 8;     // low 32 bits: ARGB
inline constexpr uint8_t kMarkerInteger = 16;  // payload
inline constexpr uint8_t kMarkerDouble = 32;   // payload

inline constexpr uint8_t kMarkerFields = 64;  // extended payloads follow: low 32 bits: their bytes, all together

/// An extended payload. Followed by a word for each field of its FieldsRecord; a text is its length in bytes and then
/// the bytes, padded to a whole word.
struct FieldsHeader {
  uint32_t fields;  // number of the FieldsRecord
  uint32_t bytes;   // that follow
};
inline constexpr uint32_t kMostFieldBytes = 4096;  // of all payloads of a marker

/// value: string number of the domain whose stack is popped, 0 = the default domain. With kMarkerFields extended
/// payloads follow, as behind RangeStopRecord.
struct PopRecord {
  RecordHeader header;
  uint64_t time;
};

/// As PushRecord, with the range's id between time and text.
struct RangeStartRecord {
  RecordHeader header;
  uint64_t time;
  uint64_t id;
};
struct RangeStopRecord {
  RecordHeader header;
  uint64_t time;
  uint64_t id;
};

/// value: number of 8-byte words that follow; their layout is in event/sample.h.
struct SampleRecord {
  RecordHeader header;
  uint64_t time;         // host time
  uint64_t period;       // ns that the sample represents
  uint64_t correlation;  // API call open on the thread, 0 = none
  uint32_t tid;
  uint32_t reserved;
};

/// value: byte 0 Table, byte 1 LossReason.
struct LossRecord {
  RecordHeader header;
  uint64_t count;
};

/// A file mapped for execution, or that it no longer is. value: 0. Written at the start of sampling, when the program
/// asks a new library for a function, and around dlclose(); files loaded otherwise are found in /proc.
enum class ModuleState : uint32_t { kKnown, kOpened, kClosed };
struct ModuleRecord {
  RecordHeader header;
  uint64_t start, end;  // addresses of the executable part
  uint64_t offset;      // of `start` in the file
  uint32_t path;        // string
  ModuleState state;
  uint64_t time;           // host time. kOpened: when it was there; kClosed: until then it was
  uint64_t device, inode;  // of the file at that time, as stat() says; 0 = unknown
  int64_t modified;        // ns since 1970
};

/// A Python code object. value: its number (from 1). Followed by `table_bytes` of its line table.
struct CodeRecord {
  RecordHeader header;
  uint32_t name, file;  // strings; the name is the qualified one if there is one
  int32_t first_line;
  uint32_t version;  // of the interpreter, PY_VERSION_HEX >> 16: says how the line table is encoded
  uint64_t table_bytes;
};

/// value: Domain of the API whose calls a source of the process sees from here on.
struct AttachedRecord {
  RecordHeader header;
};

// A source's facts about the blocks in which it hands over its vendor's buffers. flags: their tape::BlockKind.

/// value: BlockClock. With kScaled a moment in the blocks is base_ns + (ticks - base_ticks) * multiplier >> shift,
/// where `ticks` are host time.
struct BlockClockRecord {
  RecordHeader header;
  uint64_t base_ticks, base_ns, multiplier;
  uint32_t shift, reserved;
};
enum class BlockClock : uint32_t {
  kMonotonicRaw,  // CLOCK_MONOTONIC_RAW ns
  kScaled,        // from host time by one multiplication, which the decoder inverts exactly
  kPaired,        // the vendor's own, ns: ClockPairRecords relate it to host time
};

/// Followed by `count` BlockSize: how long records are in the version of the vendor's library that writes them.
struct BlockSizesRecord {
  RecordHeader header;
  uint64_t count;
};
struct BlockSize {
  uint16_t kind, bytes;
};

/// value: BlockFact.
struct BlockFactRecord {
  RecordHeader header;
  uint64_t number;
  uint32_t text;  // string
  uint32_t reserved;
};
enum class BlockFact : uint32_t {
  kThreadIds,        // number 1: records carry the kernel's thread ids, 0: a record's thread is its block's
  kDriver,           // text: the vendor's driver and its version
  kKernelInclude,    // text: a POSIX extended regular expression; only kernels that match are wanted
  kKernelExclude,    // text: the same, for kernels that are not wanted
  kRecordingStarts,  // number: correlation of the call with which recording starts
  kRecordingStops,   // or stops
  kSpansStart,       // number: host time; spans of graphs that begin from then on are wanted
  kSpansStop,        // or are not: the vendor's library keeps making them
  kEnd
};

/// An object that the vendor's library defined: `bytes` of its own description follow, in which pointers mean nothing;
/// texts are strings. value: its kind, as the decoder of the blocks numbers it.
struct BlockObjectRecord {
  RecordHeader header;
  uint32_t bytes;
  uint32_t texts[3];
};
static_assert(sizeof(BlockObjectRecord) == 24);

/// CPU counters of a thread. value: their number. flags: CountsOf. Followed by as many doubles, in the order of the
/// process's property "cpu events"; negative = unknown.
struct CountsRecord {
  RecordHeader header;
  uint64_t time;         // host time of the reading
  uint64_t correlation;  // kCall: of the call
  uint32_t tid;
  uint32_t reserved;
};
enum class CountsOf : uint8_t {
  kSample,  // since the sample before
  kCall,    // during a call that launches device work
  kEnd
};
inline constexpr uint32_t kMostCpuEvents = 16;

/// Arguments. flags: ArgumentsOf. OpenCL's and HIP's precede the record that they belong to, on the same thread. They
/// follow this header; the meaning of value:
///    kOpenClCall    function number; a 64-bit word per parameter
///    kOpenClKernel  number of KernelArguments
///    kVendorCall    the tape::BlockKind of the decoder that they are for, which knows what follows
///    kHipCall       function number; the words in which the arguments are handed over: six registers, then the stack
struct ArgumentsRecord {
  RecordHeader header;
  uint64_t correlation;
};
enum class ArgumentsOf : uint8_t { kOpenClCall, kOpenClKernel, kVendorCall, kHipCall, kEnd };

/// One argument that clSetKernelArg has set.
struct KernelArgument {
  uint32_t size;  // as the program gave it
  uint8_t index;
  enum class Kind : uint8_t {
    kValue,   // value: its first bytes, 16 at most
    kLocal,   // local memory of `size` bytes
    kBuffer,  // value[0]: the handle of a memory object, value[1]: its bytes
    kPointer  // value[0]: a pointer to shared memory
  } kind;
  uint16_t reserved;
  uint64_t value[2];
};
static_assert(sizeof(KernelArgument) == 24);
inline constexpr uint32_t kMostKernelArguments = 32;

/// A message or collective of MPI (table message). flags: MessageKind. value: low 16 bits number of the function that
/// began it (Domain::kMpi), kMessageShown: the call that comes next on the thread shows it among its arguments. Host
/// times. ~0 in sent and received, kNoPeer and kNoTag: unknown or none.
struct MessageRecord {
  RecordHeader header;
  uint64_t correlation;
  uint64_t begun;  // start; earlier if this call completes an earlier one
  uint64_t start, end;
  uint64_t sent, received;
  int32_t peer;  // as MPI_COMM_WORLD numbers ranks
  int32_t tag;
  uint32_t communicator;  // number of a CommunicatorRecord, 0 = unknown
  uint32_t sequence;      // of a collective; kNoSequence: unknown
};
inline constexpr int32_t kNoPeer = INT32_MIN, kNoTag = INT32_MIN;
inline constexpr uint32_t kNoSequence = UINT32_MAX;
inline constexpr uint32_t kMessageShown = 1 << 16;

/// A communicator of MPI. value: its number (from 1). The newest of a number counts: it may have been named.
struct CommunicatorRecord {
  RecordHeader header;
  uint64_t id;  // the same on all of its ranks, 0 = unknown
  uint32_t size;
  uint32_t name, members;  // strings, 0 = none
  uint32_t origin;         // number of the function that made it, 0 = MPI itself
};

/// A counter that the program reports. value: its number (from 1). Texts are strings, 0 = none.
struct ProgramCounterRecord {
  RecordHeader header;
  uint32_t group, name;  // a counter of a group is called group.name
  uint32_t unit, text, domain;
  uint32_t reserved;
};
/// value: number of a ProgramCounterRecord. The value is that of `ago` ns before `time`.
struct ReadingRecord {
  RecordHeader header;
  uint64_t time;  // host time
  int64_t ago;
  double value;
};

/// What extended payloads consist of. value: its number (from 1). Followed by `count` PayloadField.
struct FieldsRecord {
  RecordHeader header;
  uint32_t count;
  uint32_t name;  // string, 0 = none
};
enum class FieldKind : uint32_t {
  kSigned,
  kUnsigned,
  kDouble,
  kAddress,
  kText,
  kString,  // the number of a string
  kEnd
};
struct PayloadField {
  uint32_t name;  // string
  FieldKind kind;
  uint32_t enumeration;  // number of an EnumerationRecord, 0 = none
  uint32_t outer;        // string: the struct in which the field lies, 0 = none
};
/// Names of an enumeration's values. value: its number (from 1). Followed by `count` EnumerationValue.
struct EnumerationRecord {
  RecordHeader header;
  uint64_t count;
};
struct EnumerationValue {
  uint64_t value;
  uint32_t name;  // string
  uint32_t flag;  // 1: a set of bits
};

struct RecordInfo {
  RecordKind kind;
  uint16_t size;  // fixed part
  std::string_view name;
};
inline constexpr RecordInfo kRecordInfos[] = {
    {RecordKind::kPad, sizeof(RecordHeader), "pad"},
    {RecordKind::kString, sizeof(StringRecord), "string"},
    {RecordKind::kProcess, sizeof(ProcessRecord), "process"},
    {RecordKind::kThread, sizeof(ThreadRecord), "thread"},
    {RecordKind::kDevice, sizeof(DeviceRecord), "device"},
    {RecordKind::kQueue, sizeof(QueueRecord), "queue"},
    {RecordKind::kKernel, sizeof(KernelRecord), "kernel"},
    {RecordKind::kProperty, sizeof(PropertyRecord), "property"},
    {RecordKind::kNote, sizeof(NoteRecord), "note"},
    {RecordKind::kClockPair, sizeof(ClockPairRecord), "clock_pair"},
    {RecordKind::kName, sizeof(NameRecord), "name"},
    {RecordKind::kAttached, sizeof(AttachedRecord), "attached"},
    {RecordKind::kBlockClock, sizeof(BlockClockRecord), "block_clock"},
    {RecordKind::kBlockSizes, sizeof(BlockSizesRecord), "block_sizes"},
    {RecordKind::kBlockFact, sizeof(BlockFactRecord), "block_fact"},
    {RecordKind::kApi, sizeof(ApiRecord), "api"},
    {RecordKind::kDispatch, sizeof(DispatchRecord), "dispatch"},
    {RecordKind::kDispatchWide, sizeof(DispatchWideRecord), "dispatch_wide"},
    {RecordKind::kCopy, sizeof(CopyRecord), "copy"},
    {RecordKind::kFill, sizeof(FillRecord), "fill"},
    {RecordKind::kAllocation, sizeof(AllocationRecord), "allocation"},
    {RecordKind::kSync, sizeof(SyncRecord), "sync"},
    {RecordKind::kPush, sizeof(PushRecord), "push"},
    {RecordKind::kPop, sizeof(PopRecord), "pop"},
    {RecordKind::kMark, sizeof(MarkRecord), "mark"},
    {RecordKind::kRangeStart, sizeof(RangeStartRecord), "range_start"},
    {RecordKind::kRangeStop, sizeof(RangeStopRecord), "range_stop"},
    {RecordKind::kSample, sizeof(SampleRecord), "sample"},
    {RecordKind::kLoss, sizeof(LossRecord), "loss"},
    {RecordKind::kModule, sizeof(ModuleRecord), "module"},
    {RecordKind::kCode, sizeof(CodeRecord), "code"},
    {RecordKind::kCounts, sizeof(CountsRecord), "counts"},
    {RecordKind::kArguments, sizeof(ArgumentsRecord), "arguments"},
    {RecordKind::kBlockObject, sizeof(BlockObjectRecord), "block_object"},
    {RecordKind::kMessage, sizeof(MessageRecord), "message"},
    {RecordKind::kCommunicator, sizeof(CommunicatorRecord), "communicator"},
    {RecordKind::kCounter, sizeof(ProgramCounterRecord), "counter"},
    {RecordKind::kReading, sizeof(ReadingRecord), "reading"},
    {RecordKind::kFields, sizeof(FieldsRecord), "fields"},
    {RecordKind::kEnumeration, sizeof(EnumerationRecord), "enumeration"},
    {RecordKind::kBlockMemory, sizeof(BlockMemoryRecord), "block_memory"},
};
static_assert(sizeof(kRecordInfos) / sizeof(RecordInfo) == static_cast<size_t>(RecordKind::kEnd));
/// schema_hash() with other records in place of kRecordInfos.
uint64_t schema_hash(std::span<const RecordInfo> records);

/// The domain byte of an ApiRecord's flags; correlation sources keep their ids apart by it.
inline constexpr uint32_t api_value(uint16_t function, int16_t result) {
  return function | static_cast<uint32_t>(static_cast<uint16_t>(result)) << 16;
}

}  // namespace tacho::event
