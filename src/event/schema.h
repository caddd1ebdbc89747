// The vocabulary of a trace: every table, column, type, unit and meaning, once. The column enums, the file's codec, the
// SQL tables, docs/events.md and the schema hash are all derived from the lists in this file.
//
// A trace has facts (many narrow rows: track, start, duration, dimension, correlation and a few columns of their own),
// dimensions (few wide rows, deduplicated, referred to by row number) and links (1:N between facts). Row 0 of every
// dimension means "none". Every value is an int64; kUnknown means that the source could not know it (never write 0 for
// that). Strings are row numbers of the string table; doubles are stored as their bit pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace tacho::event {

inline constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

/// Type and unit of a column. kRow* refer to rows of the dimension named.
enum class Type : uint8_t {
  kInteger,   // a count or number without a unit
  kTime,      // CLOCK_MONOTONIC_RAW, ns
  kDuration,  // ns
  kBytes,     // bytes
  kDouble,    // IEEE double, bit pattern
  kEnum,      // one of the enum class named in the column's text
  kId,        // an identifier: compare for equality only
  kString,    // row of the string table
  kRow,       // row of the table named by Column::target
};

/// Every table. Facts first, then dimensions. The numbers are written to files: append only.
enum class Table : uint8_t {
  kDispatch = 0,
  kCopy,
  kFill,
  kAllocation,
  kApi,
  kMarker,
  kSync,
  kOverhead,
  kSample,
  kReading,
  kCounterValue,
  kLink,
  kClock,
  kLoss,
  kNote,
  kFactEnd,  // not a table: the number of fact tables
  kString = 32,
  kProcess,
  kThread,
  kDevice,
  kTrack,
  kFunction,
  kKernel,
  kCopyShape,
  kFillShape,
  kAllocationShape,
  kLabel,
  kSyncShape,
  kOverheadShape,
  kFrame,
  kStack,
  kCounter,
  kProperty,
  kEnd,  // not a table
};
inline constexpr size_t kFactTables = static_cast<size_t>(Table::kFactEnd);
inline constexpr size_t kFirstDimension = static_cast<size_t>(Table::kString);
inline constexpr size_t kDimensionTables = static_cast<size_t>(Table::kEnd) - kFirstDimension;

struct Column {
  std::string_view name;
  Type type;
  Table target;  // for kRow; otherwise kEnd
  std::string_view text;
};

// The five columns that every timed fact starts with, in this order.
#define TACHO_FACT_COLUMNS(C, dimension)                                                                 \
  C(track, kRow, kTrack, "where it happened: a thread, a queue or stream, a counter")                    \
  C(start, kTime, kEnd, "begin")                                                                         \
  C(duration, kDuration, kEnd, "end - begin; kUnknown while it had not ended when the trace was closed") \
  C(dim, kRow, dimension, "what it was")                                                                 \
  C(correlation, kId, kEnd,                                                                              \
    "links it to the API call that caused it; unique within (process, correlation source of "            \
    "the track); 0 = none")

#define TACHO_DISPATCH(C)                                                                                  \
  TACHO_FACT_COLUMNS(C, kKernel)                                                                           \
  C(queued_ahead, kDuration, kEnd, "start - time of enqueueing; kUnknown where the runtime does not tell") \
  C(submit_ahead, kDuration, kEnd, "start - time of submission to the device; kUnknown likewise")          \
  C(ordinal, kInteger, kEnd,                                                                               \
    "the process's n-th dispatch in launch order, from 0; kUnknown where not counted")                     \
  C(graph_node, kId, kEnd, "node id within its graph launch; 0 = not from a graph")
#define TACHO_COPY(C)                                \
  TACHO_FACT_COLUMNS(C, kCopyShape)                  \
  C(bytes, kBytes, kEnd, "bytes moved")              \
  C(queued_ahead, kDuration, kEnd, "as in dispatch") \
  C(submit_ahead, kDuration, kEnd, "as in dispatch") \
  C(graph_node, kId, kEnd, "as in dispatch")
#define TACHO_FILL(C)                                \
  TACHO_FACT_COLUMNS(C, kFillShape)                  \
  C(bytes, kBytes, kEnd, "bytes written")            \
  C(queued_ahead, kDuration, kEnd, "as in dispatch") \
  C(submit_ahead, kDuration, kEnd, "as in dispatch") \
  C(graph_node, kId, kEnd, "as in dispatch")
#define TACHO_ALLOCATION(C)                                             \
  TACHO_FACT_COLUMNS(C, kAllocationShape)                               \
  C(bytes, kBytes, kEnd, "size; for a free the size freed where known") \
  C(address, kId, kEnd, "address or handle of the memory")
#define TACHO_API(C)               \
  TACHO_FACT_COLUMNS(C, kFunction) \
  C(result, kInteger, kEnd, "the call's return code as its API defines it; kUnknown where it has none")
#define TACHO_MARKER(C)         \
  TACHO_FACT_COLUMNS(C, kLabel) \
  C(payload, kId, kEnd,         \
    "numeric payload: integer, or a double's bit pattern (label.payload says which); 0 = none")
#define TACHO_SYNC(C) TACHO_FACT_COLUMNS(C, kSyncShape)
#define TACHO_OVERHEAD(C) TACHO_FACT_COLUMNS(C, kOverheadShape)
#define TACHO_SAMPLE(C)                                                                                    \
  C(track, kRow, kTrack, "the thread sampled")                                                             \
  C(start, kTime, kEnd, "when")                                                                            \
  C(duration, kDuration, kEnd, "time this sample stands for (CPU or wall time, see the track's category)") \
  C(dim, kRow, kStack, "the call stack, innermost frame")                                                  \
  C(correlation, kId, kEnd, "the API call open on the thread; 0 = none")
#define TACHO_READING(C)                      \
  C(track, kRow, kTrack, "the counter track") \
  C(start, kTime, kEnd, "when it was read")   \
  C(value, kDouble, kEnd, "in the unit of the track's counter")
#define TACHO_COUNTER_VALUE(C)                                                           \
  C(track, kRow, kTrack, "track of the dispatch")                                        \
  C(start, kTime, kEnd, "start of the dispatch it belongs to")                           \
  C(ordinal, kInteger, kEnd, "ordinal of the dispatch")                                  \
  C(dim, kRow, kCounter, "the counter")                                                  \
  C(instance, kInteger, kEnd, "hardware instance (channel, XCD, SE ...); 0 when summed") \
  C(pass, kInteger, kEnd, "replay pass in which it was read")                            \
  C(value, kDouble, kEnd, "in the unit of the counter")
#define TACHO_LINK(C)                                \
  C(kind, kEnum, kEnd, "LinkKind")                   \
  C(process, kRow, kProcess, "process of both ends") \
  C(from, kId, kEnd, "correlation of the cause")     \
  C(to, kId, kEnd, "correlation of the effect")
#define TACHO_CLOCK(C)                                                            \
  C(process, kRow, kProcess, "who sampled; 0 = tacho itself")                     \
  C(raw, kTime, kEnd, "CLOCK_MONOTONIC_RAW")                                      \
  C(monotonic, kInteger, kEnd, "CLOCK_MONOTONIC, ns")                             \
  C(boottime, kInteger, kEnd, "CLOCK_BOOTTIME, ns")                               \
  C(realtime, kInteger, kEnd, "CLOCK_REALTIME, ns since 1970")                    \
  C(vendor, kInteger, kEnd, "the vendor's clock, its own ticks; kUnknown = none") \
  C(device, kRow, kDevice, "whose vendor clock; 0 = none")
#define TACHO_LOSS(C)                                                              \
  C(process, kRow, kProcess, "in which process; 0 = in tacho")                     \
  C(table, kEnum, kEnd, "Table of the rows lost; kEnd's number = of unknown kind") \
  C(reason, kEnum, kEnd, "LossReason")                                             \
  C(count, kInteger, kEnd, "how many")
#define TACHO_NOTE(C)                                                    \
  C(process, kRow, kProcess, "about which process; 0 = the whole trace") \
  C(start, kTime, kEnd, "when")                                          \
  C(severity, kEnum, kEnd, "NoteSeverity")                               \
  C(text, kString, kEnd, "one sentence for the user")

#define TACHO_STRING(C)
#define TACHO_PROCESS(C)                                               \
  C(pid, kInteger, kEnd, "process id")                                 \
  C(parent_pid, kInteger, kEnd, "its parent's")                        \
  C(start, kTime, kEnd, "first seen")                                  \
  C(name, kString, kEnd, "executable's base name")                     \
  C(command, kString, kEnd, "command line, words separated by spaces") \
  C(host, kString, kEnd, "host name")                                  \
  C(rank, kInteger, kEnd, "MPI or job rank; kUnknown = none")          \
  C(run, kInteger, kEnd, "which of several merged runs, from 0")
#define TACHO_THREAD(C)                      \
  C(process, kRow, kProcess, "its process")  \
  C(tid, kInteger, kEnd, "kernel thread id") \
  C(name, kString, kEnd, "name at the end")
#define TACHO_DEVICE(C)                                                          \
  C(process, kRow, kProcess, "the process that reported it; 0 = of the machine") \
  C(kind, kEnum, kEnd, "DeviceKind")                                             \
  C(index, kInteger, kEnd, "logical index, as the vendor's tools number it")     \
  C(name, kString, kEnd, "marketing or product name")                            \
  C(vendor, kString, kEnd, "vendor")                                             \
  C(architecture, kString, kEnd, "architecture name (gfx942, sm_90, ...)")       \
  C(driver, kString, kEnd, "driver and its version")                             \
  C(uuid, kString, kEnd, "unique id; empty = none")                              \
  C(clock_error, kDuration, kEnd, "stated error of its timestamps after conversion; kUnknown = unstated")
#define TACHO_TRACK(C)                                                          \
  C(kind, kEnum, kEnd, "TrackKind")                                             \
  C(process, kRow, kProcess, "whose")                                           \
  C(thread, kRow, kThread, "for a thread's track")                              \
  C(device, kRow, kDevice, "for a queue's, stream's or device counter's track") \
  C(native, kId, kEnd, "the runtime's own number: queue, stream")               \
  C(context, kId, kEnd, "context the queue or stream belongs to; 0 = none")     \
  C(name, kString, kEnd, "name; empty = derived from the above")                \
  C(category, kString, kEnd, "category: groups tracks in viewers")              \
  C(counter, kRow, kCounter, "for a counter track")
#define TACHO_FUNCTION(C)                \
  C(name, kString, kEnd, "API function") \
  C(domain, kEnum, kEnd, "Domain")
#define TACHO_KERNEL(C)                                                                                      \
  C(name, kString, kEnd, "as the runtime names it (mangled)")                                                \
  C(kind, kEnum, kEnd, "DispatchKind")                                                                       \
  C(grid_x, kInteger, kEnd, "work-items (threads) in the whole grid")                                        \
  C(grid_y, kInteger, kEnd, "work-items (threads) in the whole grid")                                        \
  C(grid_z, kInteger, kEnd, "work-items (threads) in the whole grid")                                        \
  C(group_x, kInteger, kEnd, "work-items (threads) in a workgroup (block); kUnknown = the runtime's choice") \
  C(group_y, kInteger, kEnd, "work-items (threads) in a workgroup (block)")                                  \
  C(group_z, kInteger, kEnd, "work-items (threads) in a workgroup (block)")                                  \
  C(offset_x, kInteger, kEnd, "global offset")                                                               \
  C(offset_y, kInteger, kEnd, "global offset")                                                               \
  C(offset_z, kInteger, kEnd, "global offset")                                                               \
  C(cluster_x, kInteger, kEnd, "workgroups in a cluster; 0 = no clusters")                                   \
  C(cluster_y, kInteger, kEnd, "workgroups in a cluster")                                                    \
  C(cluster_z, kInteger, kEnd, "workgroups in a cluster")                                                    \
  C(registers, kInteger, kEnd, "registers (AMD: arch VGPRs) per work-item")                                  \
  C(accum_registers, kInteger, kEnd, "AMD: accumulation VGPRs")                                              \
  C(scalar_registers, kInteger, kEnd, "AMD: SGPRs per wave")                                                 \
  C(shared_static, kBytes, kEnd, "static shared memory (LDS) per workgroup")                                 \
  C(shared_dynamic, kBytes, kEnd, "dynamic shared memory (LDS) per workgroup")                               \
  C(private_bytes, kBytes, kEnd, "local (CUDA), private (OpenCL), scratch (AMD) memory per work-item")       \
  C(cache_config, kInteger, kEnd,                                                                            \
    "CUDA: requested and executed cache configuration, packed as CUPTI gives it")                            \
  C(carveout, kInteger, kEnd, "CUDA: shared memory carve-out requested, percent")                            \
  C(graph, kId, kEnd, "graph id; 0 = not from a graph")
#define TACHO_COPY_SHAPE(C)                                          \
  C(direction, kEnum, kEnd, "CopyDirection")                         \
  C(source_memory, kEnum, kEnd, "MemoryKind")                        \
  C(target_memory, kEnum, kEnd, "MemoryKind")                        \
  C(source_device, kRow, kDevice, "0 = the host")                    \
  C(target_device, kRow, kDevice, "0 = the host")                    \
  C(kind, kEnum, kEnd, "CopyKind: plain, rectangle, image, map ...") \
  C(asynchronous, kInteger, kEnd, "1 = the call did not wait")
#define TACHO_FILL_SHAPE(C)            \
  C(memory, kEnum, kEnd, "MemoryKind") \
  C(device, kRow, kDevice, "where")    \
  C(value, kInteger, kEnd, "the fill pattern's first 8 bytes; kUnknown = longer or not told")
#define TACHO_ALLOCATION_SHAPE(C)                             \
  C(operation, kEnum, kEnd, "AllocationOperation")            \
  C(memory, kEnum, kEnd, "MemoryKind")                        \
  C(device, kRow, kDevice, "where; 0 = the host or not told") \
  C(name, kString, kEnd, "what was allocated (buffer, image2D, svm, pool ...)")
#define TACHO_LABEL(C)                                              \
  C(name, kString, kEnd, "text of the marker")                      \
  C(kind, kEnum, kEnd, "MarkerKind")                                \
  C(domain, kString, kEnd, "domain (NVTX), library (tacho, ROCTx)") \
  C(category, kString, kEnd, "category")                            \
  C(color, kInteger, kEnd, "ARGB; kUnknown = none")                 \
  C(payload, kEnum, kEnd, "PayloadKind")
#define TACHO_SYNC_SHAPE(C)        \
  C(kind, kEnum, kEnd, "SyncKind") \
  C(device, kRow, kDevice, "which device")
#define TACHO_OVERHEAD_SHAPE(C)        \
  C(kind, kEnum, kEnd, "OverheadKind") \
  C(name, kString, kEnd, "what")
#define TACHO_FRAME(C)                                         \
  C(kind, kEnum, kEnd, "FrameKind")                            \
  C(function, kString, kEnd, "function; empty = not resolved") \
  C(file, kString, kEnd, "source file; empty = unknown")       \
  C(line, kInteger, kEnd, "source line; kUnknown = unknown")   \
  C(module, kString, kEnd, "executable or library")            \
  C(address, kId, kEnd, "module-relative address; 0 for interpreted frames")
#define TACHO_STACK(C)                                         \
  C(parent, kRow, kStack, "the caller's stack; 0 = outermost") \
  C(frame, kRow, kFrame, "the innermost frame")
#define TACHO_COUNTER(C)                           \
  C(name, kString, kEnd, "counter")                \
  C(unit, kString, kEnd, "SI unit; empty = count") \
  C(text, kString, kEnd, "description")            \
  C(block, kString, kEnd, "hardware block or source")
#define TACHO_PROPERTY(C)                                                        \
  C(table, kEnum, kEnd, "Table of the row described; kEnd's number = the trace") \
  C(row, kInteger, kEnd, "row described")                                        \
  C(key, kString, kEnd, "key")                                                   \
  C(value, kString, kEnd, "value as text")

// TABLE(enum name, column list, SQL name, what a row is)
#define TACHO_TABLES(TABLE)                                                                               \
  TABLE(Dispatch, TACHO_DISPATCH, "dispatch", "a kernel that ran on a device")                            \
  TABLE(Copy, TACHO_COPY, "copy", "a memory copy, read, write, map or unmap")                             \
  TABLE(Fill, TACHO_FILL, "fill", "a memory fill (memset)")                                               \
  TABLE(Allocation, TACHO_ALLOCATION, "allocation", "memory allocated or freed")                          \
  TABLE(Api, TACHO_API, "api", "a call of a GPU API by a host thread")                                    \
  TABLE(Marker, TACHO_MARKER, "marker", "a range or mark set by the program")                             \
  TABLE(Sync, TACHO_SYNC, "sync", "the host or a queue waiting for a device")                             \
  TABLE(Overhead, TACHO_OVERHEAD, "overhead", "time that the runtime or a profiler spent on itself")      \
  TABLE(Sample, TACHO_SAMPLE, "sample", "a call-stack sample of a host thread")                           \
  TABLE(Reading, TACHO_READING, "reading", "a telemetry value")                                           \
  TABLE(CounterValue, TACHO_COUNTER_VALUE, "counter_value", "a hardware counter's value of one dispatch") \
  TABLE(Link, TACHO_LINK, "link", "a 1:N relation that a shared correlation cannot express")              \
  TABLE(Clock, TACHO_CLOCK, "clock", "one moment in several clocks")                                      \
  TABLE(Loss, TACHO_LOSS, "loss", "what the trace misses")                                                \
  TABLE(Note, TACHO_NOTE, "note", "what the user should know about the trace")                            \
  TABLE(String, TACHO_STRING, "string", "text, stored as bytes")                                          \
  TABLE(Process, TACHO_PROCESS, "process", "a process that was traced")                                   \
  TABLE(Thread, TACHO_THREAD, "thread", "a thread of it")                                                 \
  TABLE(Device, TACHO_DEVICE, "device", "a device (agent); further facts are properties")                 \
  TABLE(Track, TACHO_TRACK, "track", "a line of the timeline")                                            \
  TABLE(Function, TACHO_FUNCTION, "function", "an API function")                                          \
  TABLE(Kernel, TACHO_KERNEL, "kernel", "a kernel with the shape of its launch")                          \
  TABLE(CopyShape, TACHO_COPY_SHAPE, "copy_shape", "what kind of copy")                                   \
  TABLE(FillShape, TACHO_FILL_SHAPE, "fill_shape", "what kind of fill")                                   \
  TABLE(AllocationShape, TACHO_ALLOCATION_SHAPE, "allocation_shape", "what kind of allocation")           \
  TABLE(Label, TACHO_LABEL, "label", "a marker's text and attributes")                                    \
  TABLE(SyncShape, TACHO_SYNC_SHAPE, "sync_shape", "what kind of waiting")                                \
  TABLE(OverheadShape, TACHO_OVERHEAD_SHAPE, "overhead_shape", "what kind of overhead")                   \
  TABLE(Frame, TACHO_FRAME, "frame", "a stack frame")                                                     \
  TABLE(Stack, TACHO_STACK, "stack", "a call stack, as a tree")                                           \
  TABLE(Counter, TACHO_COUNTER, "counter", "a hardware counter or telemetry quantity")                    \
  TABLE(Property, TACHO_PROPERTY, "property", "a key and value about a row or the whole trace")

// Column numbers: column::Dispatch::start and so on, plus kCount.
namespace column {
#define TACHO_ENUM_ENTRY(name, type, target, text) name,
#define TACHO_ENUM(table, list, sql, text)                  \
  struct table {                                            \
    enum Index : uint8_t { list(TACHO_ENUM_ENTRY) kCount }; \
  };
TACHO_TABLES(TACHO_ENUM)
#undef TACHO_ENUM
#undef TACHO_ENUM_ENTRY
/// The first five columns are the same in every timed fact (dispatch ... overhead; sample too).
struct Fact {
  enum Index : uint8_t { track, start, duration, dim, correlation };
};
}  // namespace column

inline constexpr size_t kMaxColumns = column::Kernel::kCount;

struct TableInfo {
  Table table;
  std::string_view name;  // in SQL and docs
  std::string_view text;  // what a row is
  std::span<const Column> columns;
};

/// The description of `table`. Contract: not kFactEnd, not kEnd.
const TableInfo& table_info(Table table);
/// All tables, facts first, in the order of their numbers.
std::span<const TableInfo> all_tables();
/// A hash over every name, type and layout constant: written to every pool and file; readers refuse another's.
uint64_t schema_hash();

constexpr bool is_fact(Table table) {
  return static_cast<size_t>(table) < kFactTables;
}
/// Facts with track, start, duration, dim and correlation as their first five columns.
constexpr bool is_timed(Table table) {
  return table <= Table::kSample;
}

// ---- the enums that columns refer to; numbers are written to files: append only -------------------------------

enum class Domain : uint8_t {
  kUnknown,
  kOpenCL,
  kCudaRuntime,
  kCudaDriver,
  kHipRuntime,
  kHipCompiler,
  kHsa,
  kRccl,
  kMarker,
  kPython,
  kMpi,
  kHost,
  kOperator,  // framework operators (aten::...)
  kEnd
};
enum class TrackKind : uint8_t { kUnknown, kThread, kQueue, kCounter, kMemory, kRange, kEnd };
enum class DeviceKind : uint8_t { kUnknown, kCpu, kGpu, kAccelerator, kEnd };
enum class DispatchKind : uint8_t { kKernel, kNativeKernel, kGraph, kTask, kEnd };
enum class CopyDirection : uint8_t {
  kUnknown,
  kHostToHost,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kPeerToPeer,
  kEnd
};
enum class CopyKind : uint8_t {
  kPlain,
  kRectangle,
  kImage,
  kBufferToImage,
  kImageToBuffer,
  kMap,
  kUnmap,
  kMigrate,
  kSvm,
  kEnd
};
enum class MemoryKind : uint8_t {
  kUnknown,
  kPageable,
  kPinned,
  kDevice,
  kArray,
  kManaged,
  kDeviceStatic,
  kManagedStatic,
  kSvm,
  kHost,
  kEnd
};
enum class AllocationOperation : uint8_t { kAllocate, kFree, kEnd };
enum class MarkerKind : uint8_t { kPushPop, kStartStop, kMark, kEnd };
enum class PayloadKind : uint8_t { kNone, kInteger, kDouble, kEnd };
enum class SyncKind : uint8_t {
  kUnknown,
  kDevice,
  kContext,
  kQueue,
  kEvent,
  kQueueWaitEvent,
  kBarrier,
  kMarker,
  kEnd
};
enum class OverheadKind : uint8_t {
  kUnknown,
  kProfiler,
  kRuntime,
  kCompiler,
  kModuleLoad,
  kLazyLoad,
  kFlush,
  kBufferFull,
  kInstrumentation,
  kEnd
};
enum class FrameKind : uint8_t { kNative, kPython, kKernel, kTruncated, kEnd };
enum class LinkKind : uint8_t {
  kNone,
  kNestedApi,    // runtime call -> driver call inside it
  kMarkerChild,  // range -> API call made in it
  kGraphNode,    // graph launch -> dispatch
  kSampleOpen,   // sample -> further open API calls
  kFlow,         // any other cause -> effect (fwdbwd, producer -> consumer)
  kEnd
};
enum class LossReason : uint8_t {
  kPoolFull,         // no free block in the pool
  kVendor,           // the vendor's library dropped it
  kKilled,           // in flight or buffered when the process ended
  kMaxSize,          // --max-size reached
  kRingOverwritten,  // --ring kept only the newest
  kUnknownRecord,    // of a kind that this version does not know
  kClockOrder,       // times out of order beyond the stated error; the row is kept
  kOpenAtExit,       // begun, never ended; the row is kept with unknown duration
  kUnmatched,        // launches seen without a dispatch record
  kFork,             // in a child that could not be followed
  kWriteError,       // disk full or other failure of tacho's own file
  kBadInput,         // an imported row that made no sense
  kFiltered,         // excluded by the user's filter (not a loss; counted for the check of launches)
  kAggregated,  // beyond what --aggregate tells apart: summed up without its name, or of a table that has no sums
  kEnd
};
enum class NoteSeverity : uint8_t { kInfo, kWarning, kError, kEnd };

std::string_view to_string(Domain value);
std::string_view to_string(TrackKind value);
std::string_view to_string(DeviceKind value);
std::string_view to_string(DispatchKind value);
std::string_view to_string(CopyDirection value);
std::string_view to_string(CopyKind value);
std::string_view to_string(MemoryKind value);
std::string_view to_string(AllocationOperation value);
std::string_view to_string(MarkerKind value);
std::string_view to_string(PayloadKind value);
std::string_view to_string(SyncKind value);
std::string_view to_string(OverheadKind value);
std::string_view to_string(FrameKind value);
std::string_view to_string(LinkKind value);
std::string_view to_string(LossReason value);
std::string_view to_string(NoteSeverity value);

}  // namespace tacho::event
