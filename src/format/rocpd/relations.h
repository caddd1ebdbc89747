// The tables of rocpd databases and the views that tacho answers without joins, once: name, SQL type and derivation of
// each column (format/relation/derivation.h). schema.cpp makes CREATE TABLE of them, write.cpp a file,
// query/dialect/rocpd.cpp virtual tables.
//
// SQL types: k = integer primary key, g = the guid, t = text, T = required text, U = required and unique text, e = text
// that is '' by default, i = integer, I = required integer, N = required and unique bigint, b = bigint, B = required
// bigint, r = real, j = JSON text, J = JSON text or NULL; after a colon: the table of the row referred to. Codes of
// texts are rows of the trace's string table or, negative, words (words.h). z = required integer, 0 by default.
//
// The derivations ask `x`, the face's facts:
//   x.trace(), x.clock(time), x.unknown_end(start)      the end of what has none
//   x.id(row_number), x.event(row_number)               ids of the row and of its event
//   x.node(track), x.process(track), x.thread(track), x.agent(track), x.queue(track), x.sample_track(track)
//   x.launching_thread(track, correlation)              id of the thread that requested device work
//   x.agent_of(device), x.symbol(kernel), x.code_object(), x.pmc(counter), x.owner_node(), x.owner(), x.pmc_agent()
//   x.dispatch_event(track, start)                      id of the event of a counter value's dispatch
//   x.counts(track, start, ordinal, counter, pass)      whether a counter's value is one of the first pass
#pragma once

#include <string>
#include <string_view>

#include "base/text/json_writer.h"
#include "format/relation/fact_columns.h"
#include "format/rocpd/words.h"
#include "format/shared/rocprof_words.h"
#include "trace/trace.h"

namespace tacho::format::rocpd {

namespace derive {

using namespace relation::fact_columns;
using relation::choose;
using relation::from;
using relation::kRowNumber;
using relation::kStored;
namespace column = event::column;

inline constexpr auto kOne = from<>([](auto&) { return int64_t{1}; });
inline constexpr auto kNull = from<>([](auto&) { return kUnknown; });
template <RocpdWord kTheWord>
inline constexpr auto kWord = from<>([](auto&) { return code_of(kTheWord); });

inline constexpr auto kEvent = from<kRowNumber>([](auto& x, int64_t row) { return x.event(row); });
inline constexpr auto kNode = from<F::track>([](auto& x, int64_t track) { return x.node(track); });
inline constexpr auto kProcess = from<F::track>([](auto& x, int64_t track) { return x.process(track); });
inline constexpr auto kThread = from<F::track>([](auto& x, int64_t track) { return x.thread(track); });
inline constexpr auto kAgent = from<F::track>([](auto& x, int64_t track) { return x.agent(track); });
inline constexpr auto kQueue = from<F::track>([](auto& x, int64_t track) { return x.queue(track); });
inline constexpr auto kSampleTrack = from<F::track>([](auto& x, int64_t track) { return x.sample_track(track); });
inline constexpr auto kLauncher = from<F::track, F::correlation>(
    [](auto& x, int64_t track, int64_t correlation) { return x.launching_thread(track, correlation); });

inline constexpr auto kFunctionCategory = from<F::dim>([](auto& x, int64_t function) {
  return words().of_domain(x.trace().cell(Table::kFunction, function, column::Function::domain));
});
inline constexpr auto kCategory = choose<Table::kApi>(
    kFunctionCategory,
    choose<Table::kMarker>(kWord<RocpdWord::kMarkerCoreApi>,
                           choose<Table::kDispatch>(kWord<RocpdWord::kKernelDispatch>,
                                                    choose<Table::kAllocation>(kWord<RocpdWord::kMemoryAllocation>,
                                                                               kWord<RocpdWord::kMemoryCopy>))));
inline int64_t marker_kind(auto& x, int64_t label) {
  return x.trace().cell(Table::kLabel, label, column::Label::kind);
}
inline constexpr auto kIsMark = from<F::dim>([](auto& x, int64_t label) {
  return int64_t{marker_kind(x, label) == static_cast<int64_t>(event::MarkerKind::kMark)};
});
inline constexpr auto kIsRegion =
    choose<Table::kMarker>(from<F::dim>([](auto& x, int64_t label) {
                             return int64_t{marker_kind(x, label) != static_cast<int64_t>(event::MarkerKind::kMark)};
                           }),
                           relation::kEveryRow);
inline constexpr auto kFunctionName = from<F::dim>(
    [](auto& x, int64_t function) { return x.text_cell(Table::kFunction, function, column::Function::name); });
inline constexpr auto kMarkerCall = from<F::dim>([](auto& x, int64_t label) {
  const auto kind = static_cast<event::MarkerKind>(marker_kind(x, label));
  return code_of(kind == event::MarkerKind::kMark        ? RocpdWord::kRoctxMark
                 : kind == event::MarkerKind::kStartStop ? RocpdWord::kRoctxProcessRange
                                                         : RocpdWord::kRoctxThreadRange);
});
inline constexpr auto kRegionName = choose<Table::kApi>(kFunctionName, kMarkerCall);
// The text of a marker, as the code of the event's JSON; -1: {}.
inline constexpr auto kMessageText = choose<Table::kMarker>(
    from<F::dim>([](auto& x, int64_t label) { return x.text_cell(Table::kLabel, label, column::Label::name); }),
    from<>([](auto&) { return int64_t{-1}; }));

inline constexpr auto kKernelName =
    from<F::dim>([](auto& x, int64_t kernel) { return x.text_cell(Table::kKernel, kernel, K::name); });
inline constexpr auto kSymbol = from<F::dim>([](auto& x, int64_t kernel) { return x.symbol(kernel); });
// Ordinals of a trace count from 0, rocprofv3's dispatch ids from 1. Without an ordinal, uses the row.
inline constexpr auto kDispatchId = from<column::Dispatch::ordinal, kRowNumber>(
    [](auto& x, int64_t ordinal, int64_t row) { return ordinal == kUnknown ? x.id(row) : dispatch_id(ordinal); });

inline constexpr auto kCopyName = choose<Table::kCopy>(
    from<F::dim>([](auto& x, int64_t shape) {
      return words().of_direction(x.trace().cell(Table::kCopyShape, shape, column::CopyShape::direction));
    }),
    kWord<RocpdWord::kMemoryFill>);
// The agent at one end of a copy: the device that the shape names, else the host if the direction says so, else the
// queue's.
template <int kDevice, event::CopyDirection kFromHost>
inline constexpr auto kCopyAgent = choose<Table::kCopy>(
    from<F::dim, F::track>([](auto& x, int64_t shape, int64_t track) {
      const int64_t device = x.trace().cell(Table::kCopyShape, shape, kDevice);
      if (device > 0) return x.agent_of(device);
      const auto way =
          static_cast<event::CopyDirection>(x.trace().cell(Table::kCopyShape, shape, column::CopyShape::direction));
      const bool host = way == event::CopyDirection::kHostToHost || way == kFromHost;
      return host ? x.agent_of(0) : x.agent(track);
    }),
    kAgent);
inline constexpr auto kTarget = kCopyAgent<column::CopyShape::target_device, event::CopyDirection::kDeviceToHost>;
inline constexpr auto kSource = kCopyAgent<column::CopyShape::source_device, event::CopyDirection::kHostToDevice>;

inline constexpr auto kAllocationAgent = from<F::dim>([](auto& x, int64_t shape) {
  return x.agent_of(x.trace().cell(Table::kAllocationShape, shape, column::AllocationShape::device));
});
inline constexpr auto kAllocationType = from<F::dim>([](auto& x, int64_t shape) {
  const bool freed = x.trace().cell(Table::kAllocationShape, shape, column::AllocationShape::operation) ==
                     static_cast<int64_t>(event::AllocationOperation::kFree);
  return code_of(freed ? RocpdWord::kFree : RocpdWord::kAlloc);
});

inline constexpr auto kOwnerNode = from<>([](auto& x) { return x.owner_node(); });
inline constexpr auto kOwner = from<>([](auto& x) { return x.owner(); });
inline constexpr auto kDispatchEvent = from<column::CounterValue::track, column::CounterValue::start>(
    [](auto& x, int64_t track, int64_t start) { return x.dispatch_event(track, start); });

}  // namespace derive

using relation::kFew;
using relation::kId;
using relation::kReal;
using relation::kText;
using relation::kTime;
using relation::plain_columns;
/// Texts: the database's guid; {}; {"message": TEXT}, {} for -1; {"instance": N}, {} for 0; a kernel's readable name;
/// "Queue N"; "Stream N"; a kernel's names as JSON; kEndUnknown for an unknown duration, else {}.
inline constexpr unsigned kGuid = relation::kOwnFlag, kObject = kGuid << 1, kMessage = kGuid << 2,
                          kInstance = kGuid << 3, kReadable = kGuid << 4, kQueueName = kGuid << 5,
                          kStreamName = kGuid << 6, kKernelNames = kGuid << 7, kUnended = kGuid << 8;

/// What the data of an event says whose duration is not known: the column "end" must hold a number.
inline constexpr std::string_view kEndUnknown = R"({"end":null})";

/// The text of a column with kObject, kMessage, kInstance or kUnended.
inline std::string_view object_text(const trace::Trace& trace, unsigned flags, int64_t value, std::string& scratch) {
  if ((flags & kUnended) != 0) return value == event::kUnknown ? kEndUnknown : "{}";
  const bool empty = (flags & kMessage) != 0 ? value < 0 : (flags & kInstance) == 0 || value == 0;
  if (empty) return "{}";
  scratch.clear();
  JsonWriter json(scratch);
  json.begin_object();
  if ((flags & kMessage) != 0)
    json.member("message", trace.string(value));
  else
    json.member("instance", value);
  json.end_object();
  return scratch;
}

inline constexpr auto kIdAndGuid = [](auto& face) {
  face.column("id", "k", kId, derive::kRowId);
  face.column("guid", "g", kFew | kGuid, derive::kZero);
};

// Tables of what happened

inline constexpr auto kEventTable = [](auto& face) {
  face.relation("rocpd_event");
  kIdAndGuid(face);
  face.column("category_id", "i:rocpd_string", kFew, derive::kCategory);
  face.column("stack_id", "i", 0, derive::kStored<derive::F::correlation>);
  face.column("parent_stack_id", "i", kFew, derive::kZero);
  face.column("correlation_id", "i", 0, derive::kZero);
  face.column("call_stack", "j", kFew | kObject, derive::kZero);
  face.column("line_info", "j", kFew | kObject, derive::kZero);
  face.column("extdata", "j", kMessage, derive::kMessageText);
};

inline constexpr auto kRegionTable = [](auto& face) {
  face.relation("rocpd_region");
  face.keep(derive::kIsRegion);
  kIdAndGuid(face);
  face.column("nid", "I:rocpd_info_node", kFew, derive::kNode);
  face.column("pid", "I:rocpd_info_process", kFew, derive::kProcess);
  face.column("tid", "I:rocpd_info_thread", kFew, derive::kThread);
  face.column("start", "B", kTime, derive::kStart);
  face.column("end", "B", 0, derive::kEnd);
  face.column("name_id", "I:rocpd_string", kFew, derive::kRegionName);
  face.column("event_id", "i:rocpd_event", 0, derive::kEvent);
  face.column("extdata", "j", kUnended, derive::kStored<derive::F::duration>);
};

inline constexpr auto kSampleTable = [](auto& face) {
  face.relation("rocpd_sample");
  face.keep(derive::kIsMark);
  kIdAndGuid(face);
  face.column("track_id", "I:rocpd_track", kFew, derive::kSampleTrack);
  face.column("timestamp", "B", 0, derive::kStart);
  face.column("event_id", "i:rocpd_event", 0, derive::kEvent);
  face.column("extdata", "j", kFew | kObject, derive::kZero);
};

inline constexpr auto kKernelDispatchTable = [](auto& face) {
  using K = derive::K;
  face.relation("rocpd_kernel_dispatch");
  kIdAndGuid(face);
  face.column("nid", "I:rocpd_info_node", kFew, derive::kNode);
  face.column("pid", "I:rocpd_info_process", kFew, derive::kProcess);
  face.column("tid", "i:rocpd_info_thread", 0, derive::kLauncher);
  face.column("agent_id", "I:rocpd_info_agent", kFew, derive::kAgent);
  face.column("kernel_id", "I:rocpd_info_kernel_symbol", kFew, derive::kSymbol);
  face.column("dispatch_id", "I", 0, derive::kDispatchId);
  face.column("queue_id", "I:rocpd_info_queue", kFew, derive::kQueue);
  face.column("stream_id", "I:rocpd_info_stream", kFew, derive::kQueue);
  face.column("start", "B", kTime, derive::kStart);
  face.column("end", "B", 0, derive::kEnd);
  face.column("private_segment_size", "i", kFew, derive::kKernelCell<K::private_bytes>);
  face.column("group_segment_size", "i", kFew, derive::kShared);
  face.column("workgroup_size_x", "I", kFew, derive::kKernelCell<K::group_x>);
  face.column("workgroup_size_y", "I", kFew, derive::kKernelCell<K::group_y>);
  face.column("workgroup_size_z", "I", kFew, derive::kKernelCell<K::group_z>);
  face.column("grid_size_x", "I", kFew, derive::kKernelCell<K::grid_x>);
  face.column("grid_size_y", "I", kFew, derive::kKernelCell<K::grid_y>);
  face.column("grid_size_z", "I", kFew, derive::kKernelCell<K::grid_z>);
  face.column("graph_exec_id", "z", kFew, derive::kKernelCell<K::graph>);
  face.column("graph_node_id", "z", 0, derive::kStored<event::column::Dispatch::graph_node>);
  face.column("region_name_id", "i:rocpd_string", kFew, derive::kZero);
  face.column("event_id", "i:rocpd_event", 0, derive::kEvent);
  face.column("extdata", "j", kUnended, derive::kStored<derive::F::duration>);
};

inline constexpr auto kMemoryCopyTable = [](auto& face) {
  face.relation("rocpd_memory_copy");
  kIdAndGuid(face);
  face.column("nid", "I:rocpd_info_node", kFew, derive::kNode);
  face.column("pid", "I:rocpd_info_process", kFew, derive::kProcess);
  face.column("tid", "i:rocpd_info_thread", 0, derive::kLauncher);
  face.column("start", "B", kTime, derive::kStart);
  face.column("end", "B", 0, derive::kEnd);
  face.column("name_id", "I:rocpd_string", kFew, derive::kCopyName);
  face.column("dst_agent_id", "i:rocpd_info_agent", 0, derive::kTarget);
  face.column("dst_address", "i", kFew, derive::kNull);
  face.column("src_agent_id", "i:rocpd_info_agent", 0, derive::kSource);
  face.column("src_address", "i", kFew, derive::kNull);
  face.column("size", "I", 0, derive::kStored<event::column::Copy::bytes>);  // of a fill at the same place
  face.column("queue_id", "i:rocpd_info_queue", kFew, derive::kQueue);
  face.column("stream_id", "i:rocpd_info_stream", kFew, derive::kQueue);
  face.column("graph_exec_id", "z", kFew, derive::kZero);
  face.column("graph_node_id", "z", 0, derive::kStored<event::column::Copy::graph_node>);  // likewise
  face.column("region_name_id", "i:rocpd_string", kFew, derive::kZero);
  face.column("event_id", "i:rocpd_event", 0, derive::kEvent);
  face.column("extdata", "j", kUnended, derive::kStored<derive::F::duration>);
};

inline constexpr auto kMemoryAllocateTable = [](auto& face) {
  face.relation("rocpd_memory_allocate",
                ", CHECK (\"type\" IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')), CHECK (\"level\" IN ('REAL', "
                "'VIRTUAL', 'SCRATCH'))");
  kIdAndGuid(face);
  face.column("nid", "I:rocpd_info_node", kFew, derive::kNode);
  face.column("pid", "I:rocpd_info_process", kFew, derive::kProcess);
  face.column("tid", "i:rocpd_info_thread", kFew, derive::kThread);
  face.column("agent_id", "i:rocpd_info_agent", kFew, derive::kAllocationAgent);
  face.column("type", "t", kFew, derive::kAllocationType);
  face.column("level", "t", kFew, derive::kWord<RocpdWord::kRealMemory>);
  face.column("start", "B", kTime, derive::kStart);
  face.column("end", "B", 0, derive::kEnd);
  face.column("address", "i", 0, derive::kStored<event::column::Allocation::address>);
  face.column("size", "I", 0, derive::kStored<event::column::Allocation::bytes>);
  face.column("queue_id", "i:rocpd_info_queue", kFew, derive::kZero);
  face.column("stream_id", "i:rocpd_info_stream", kFew, derive::kZero);
  face.column("event_id", "i:rocpd_event", 0, derive::kEvent);
  face.column("extdata", "j", kUnended, derive::kStored<derive::F::duration>);
};

// A value belongs to the dispatch that starts on the value's track at the value's start. Of several passes that read a
// counter the first counts.
inline constexpr auto kPmcEventTable = [](auto& face) {
  using V = event::column::CounterValue;
  face.relation("rocpd_pmc_event");
  face.keep(derive::from<V::track, V::start, V::ordinal, V::dim, V::pass>(
      [](auto& x, int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t pass) {
        return int64_t{x.counts(track, start, ordinal, counter, pass)};
      }));
  kIdAndGuid(face);
  face.column("event_id", "i:rocpd_event", 0, derive::kDispatchEvent);
  face.column("pmc_id", "I:rocpd_info_pmc", kFew,
              derive::from<V::dim>([](auto& x, int64_t counter) { return x.pmc(counter); }));
  face.column("value", "r", kReal, derive::kStored<V::value>);
  face.column("extdata", "J", kInstance, derive::kStored<V::instance>);
};

// Tables of what it happened to and with. Those without derivations are filled by each face.

inline constexpr auto kKernelSymbolTable = [](auto& face) {
  using K = derive::K;
  face.relation("rocpd_info_kernel_symbol");
  face.keep(derive::kStored<derive::kRowNumber>);  // not row 0
  kIdAndGuid(face);
  face.column("nid", "I:rocpd_info_node", 0, derive::kOwnerNode);
  face.column("pid", "I:rocpd_info_process", 0, derive::kOwner);
  face.column("code_object_id", "I:rocpd_info_code_object", 0, derive::from<>([](auto& x) { return x.code_object(); }));
  face.column("kernel_name", "t", 0, derive::kStored<K::name>);
  face.column("display_name", "t", kReadable, derive::kStored<K::name>);
  face.column("kernel_object", "i", 0, derive::kNull);
  face.column("kernarg_segment_size", "i", 0, derive::kNull);
  face.column("kernarg_segment_alignment", "i", 0, derive::kNull);
  face.column("group_segment_size", "i", 0, derive::kStored<K::shared_static>);
  face.column("private_segment_size", "i", 0, derive::kStored<K::private_bytes>);
  face.column("sgpr_count", "i", 0, derive::kStored<K::scalar_registers>);
  face.column("arch_vgpr_count", "i", 0, derive::kStored<K::registers>);
  face.column("accum_vgpr_count", "i", 0, derive::kStored<K::accum_registers>);
  face.column("extdata", "j", kKernelNames, derive::kStored<K::name>);
};

inline constexpr auto kPmcTable = [](auto& face) {
  using N = event::column::Counter;
  face.relation(
      "rocpd_info_pmc",
      ", CHECK (\"target_arch\" IN ('CPU', 'GPU', 'NIC')), CHECK (\"value_type\" IN ('ABS', 'ACCUM', 'RELATIVE'))");
  face.keep(derive::kStored<derive::kRowNumber>);  // not row 0
  kIdAndGuid(face);
  face.column("nid", "I:rocpd_info_node", 0, derive::kOwnerNode);
  face.column("pid", "I:rocpd_info_process", 0, derive::kOwner);
  face.column("agent_id", "i:rocpd_info_agent", 0, derive::from<>([](auto& x) { return x.pmc_agent(); }));
  face.column("target_arch", "t", 0, derive::from<>([](auto& x) {
                return code_of(x.pmc_agent() == derive::kUnknown ? RocpdWord::kCpu : RocpdWord::kGpu);
              }));
  face.column("event_code", "i", 0, derive::kRowId);
  face.column("instance_id", "i", 0, derive::kZero);
  face.column("name", "T", 0, derive::kStored<N::name>);
  face.column("symbol", "T", 0, derive::kStored<N::name>);
  face.column("description", "t", 0, derive::kStored<N::text>);
  face.column("long_description", "e", 0, derive::kZero);
  face.column("component", "t", 0, derive::kWord<RocpdWord::kTacho>);
  face.column("units", "e", 0, derive::kStored<N::unit>);
  face.column("value_type", "t", 0, derive::kWord<RocpdWord::kAbs>);
  face.column("block", "t", 0, derive::kStored<N::block>);
  face.column("expression", "t", 0, derive::kZero);
  face.column("is_constant", "i", 0, derive::kZero);
  face.column("is_derived", "i", 0, derive::kZero);
  face.column("extdata", "j", kObject, derive::kZero);
};

inline constexpr auto kMetadataTable = [](auto& face) {
  face.relation("rocpd_metadata");
  plain_columns(face, "id k tag T value T");
};
inline constexpr auto kStringTable = [](auto& face) {
  face.relation("rocpd_string");
  kIdAndGuid(face);
  plain_columns(face, "string U");
};
inline constexpr auto kNodeTable = [](auto& face) {
  face.relation("rocpd_info_node");
  kIdAndGuid(face);
  plain_columns(face, "hash N machine_id U system_name t hostname t release t version t hardware_name t domain_name t");
};
inline constexpr auto kProcessTable = [](auto& face) {
  face.relation("rocpd_info_process");
  kIdAndGuid(face);
  plain_columns(face,
                "nid I:rocpd_info_node ppid i pid I init b fini b start b end b command t environment j extdata j");
};
inline constexpr auto kThreadTable = [](auto& face) {
  face.relation("rocpd_info_thread");
  kIdAndGuid(face);
  plain_columns(face, "nid I:rocpd_info_node ppid i pid I:rocpd_info_process tid I name t start b end b extdata j");
};
inline constexpr auto kAgentTable = [](auto& face) {
  face.relation("rocpd_info_agent", ", CHECK (\"type\" IN ('CPU', 'GPU', 'NIC'))");
  kIdAndGuid(face);
  plain_columns(face,
                "nid I:rocpd_info_node pid I:rocpd_info_process type t absolute_index i logical_index i type_index i "
                "uuid i name t model_name t vendor_name t product_name t user_name t extdata j");
};
inline constexpr auto kQueueTable = [](auto& face) {
  face.relation("rocpd_info_queue");
  kIdAndGuid(face);
  plain_columns(face, "nid I:rocpd_info_node pid I:rocpd_info_process name t extdata j");
};
inline constexpr auto kStreamTable = [](auto& face) {
  face.relation("rocpd_info_stream");
  kIdAndGuid(face);
  plain_columns(face, "nid I:rocpd_info_node pid I:rocpd_info_process name t extdata j");
};
inline constexpr auto kCodeObjectTable = [](auto& face) {
  face.relation("rocpd_info_code_object", ", CHECK (\"storage_type\" IN ('FILE', 'MEMORY'))");
  kIdAndGuid(face);
  plain_columns(
      face, "nid I:rocpd_info_node pid I:rocpd_info_process agent_id i:rocpd_info_agent uri t load_base b load_size "
            "b load_delta b storage_type t extdata j");
};
inline constexpr auto kTrackTable = [](auto& face) {
  face.relation("rocpd_track");
  kIdAndGuid(face);
  plain_columns(face,
                "nid I:rocpd_info_node pid i:rocpd_info_process tid i:rocpd_info_thread name_id i:rocpd_string extdata "
                "j");
};
inline constexpr auto kGraphLaunchTable = [](auto& face) {
  face.relation("rocpd_graph_launch");
  kIdAndGuid(face);
  plain_columns(face,
                "nid I:rocpd_info_node pid I:rocpd_info_process tid i:rocpd_info_thread agent_id i:rocpd_info_agent "
                "queue_id i:rocpd_info_queue start B end B graph_exec_id I kernel_dispatch_count z event_id "
                "i:rocpd_event extdata j");
};
inline constexpr auto kArgTable = [](auto& face) {
  face.relation("rocpd_arg");
  kIdAndGuid(face);
  plain_columns(face, "event_id I:rocpd_event position I type T name T value t extdata j");
};

// Views without joins: what SQL over a trace answers in place of the views of the same names in schema.cpp.

inline constexpr auto kKernelsView = [](auto& face) {
  using K = derive::K;
  using derive::from;
  using derive::F;
  face.relation("kernels");
  kIdAndGuid(face);
  face.column("tid", "i", 0, from<F::track, F::correlation>([](auto& x, int64_t track, int64_t correlation) {
                return x.launching_tid(track, correlation);
              }));
  face.column("category", "t", kFew, derive::kWord<RocpdWord::kKernelDispatch>);
  face.column("region", "t", kFew, derive::kZero);
  face.column("name", "t", kFew | kReadable, derive::kKernelName);
  face.column("nid", "i", kFew, derive::kNode);
  face.column("pid", "i", kFew, from<F::track>([](auto& x, int64_t track) { return x.pid(track); }));
  face.column("agent_abs_index", "i", kFew, derive::kAgent);
  face.column("agent_log_index", "i", kFew,
              from<F::track>([](auto& x, int64_t track) { return x.agent_of_track(track).logical; }));
  face.column("agent_type_index", "i", kFew,
              from<F::track>([](auto& x, int64_t track) { return x.agent_of_track(track).of_type; }));
  face.column(
      "agent_type", "t", kFew, from<F::track>([](auto& x, int64_t track) {
        return code_of(x.agent_of_track(track).kind == event::DeviceKind::kCpu ? RocpdWord::kCpu : RocpdWord::kGpu);
      }));
  face.column("code_object_id", "i", kFew, derive::kOne);
  face.column("kernel_id", "i", kFew, derive::kSymbol);
  face.column("dispatch_id", "i", 0, derive::kDispatchId);
  face.column("stream_id", "i", kFew, derive::kQueue);
  face.column("queue_id", "i", kFew, derive::kQueue);
  face.column("queue", "t", kFew | kQueueName, derive::kQueue);
  face.column("stream", "t", kFew | kStreamName, derive::kQueue);
  face.column("start", "i", kTime, derive::kStart);
  face.column("end", "i", 0, derive::kEnd);
  face.column("duration", "i", 0, derive::kDuration);
  face.column("grid_x", "i", kFew, derive::kKernelCell<K::grid_x>);
  face.column("grid_y", "i", kFew, derive::kKernelCell<K::grid_y>);
  face.column("grid_z", "i", kFew, derive::kKernelCell<K::grid_z>);
  face.column("workgroup_x", "i", kFew, derive::kKernelCell<K::group_x>);
  face.column("workgroup_y", "i", kFew, derive::kKernelCell<K::group_y>);
  face.column("workgroup_z", "i", kFew, derive::kKernelCell<K::group_z>);
  face.column("lds_size", "i", kFew, derive::kShared);
  face.column("scratch_size", "i", kFew, derive::kKernelCell<K::private_bytes>);
  face.column("vgpr_count", "i", kFew, derive::kKernelCell<K::registers>);
  face.column("accum_vgpr_count", "i", kFew, derive::kKernelCell<K::accum_registers>);
  face.column("sgpr_count", "i", kFew, derive::kKernelCell<K::scalar_registers>);
  face.column("static_lds_size", "i", kFew, derive::kKernelCell<K::shared_static>);
  face.column("static_scratch_size", "i", kFew, derive::kKernelCell<K::private_bytes>);
  face.column("stack_id", "i", 0, derive::kStored<F::correlation>);
  face.column("parent_stack_id", "i", kFew, derive::kZero);
  face.column("corr_id", "i", kFew, derive::kZero);
};

inline constexpr auto kRegionsView = [](auto& face) {
  using derive::from;
  using derive::F;
  face.relation("regions");
  face.keep(derive::kIsRegion);
  kIdAndGuid(face);
  face.column("category", "t", kFew, derive::kCategory);
  face.column("name", "t", kFew, derive::kRegionName);
  face.column("nid", "i", kFew, derive::kNode);
  face.column("pid", "i", kFew, from<F::track>([](auto& x, int64_t track) { return x.pid(track); }));
  face.column("tid", "i", kFew, from<F::track>([](auto& x, int64_t track) { return x.tid(track); }));
  face.column("start", "i", kTime, derive::kStart);
  face.column("end", "i", 0, derive::kEnd);
  face.column("duration", "i", 0, derive::kDuration);
  face.column("event_id", "i", 0, derive::kEvent);
  face.column("stack_id", "i", 0, derive::kStored<F::correlation>);
  face.column("parent_stack_id", "i", kFew, derive::kZero);
  face.column("corr_id", "i", kFew, derive::kZero);
  face.column("extdata", "j", kMessage, derive::kMessageText);
  face.column("call_stack", "j", kFew | kObject, derive::kZero);
  face.column("line_info", "j", kFew | kObject, derive::kZero);
};

}  // namespace tacho::format::rocpd
