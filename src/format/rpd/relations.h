// The tables of .rpd files and the views that tacho answers without joins, once: name, SQL type and derivation of each
// column (format/relation/derivation.h). schema.cpp makes CREATE TABLE of them, write.cpp a file, query/dialect/rpd.cpp
// virtual tables.
//
// SQL types: k = integer primary key that the file counts up, p>TABLE = primary key that is a row of TABLE, i =
// integer, b = flag, r = real, s = any text, sN = text of about N characters, >TABLE = row of TABLE.
//
// The derivations ask `x`, the face's facts:
//   x.trace(), x.clock(time), x.unknown_end(start)    the end of what has none
//   x.track(row)                                      pid, tid, gpu, queue, sequence, native
//   x.id(row_number), x.operation(row_number)         ids of the row and of the operation that it is about
//   x.call(track, correlation)                        id of the call that caused it; event::kUnknown if there is none
//   x.call_counts_items(track, correlation)           true for calls whose grids upstream records in work-items
//   x.word(RpdWord), x.no_text(), x.kernel_name(kernel), x.function_name(function), x.function_domain(function),
//   x.argument(string row), x.counter_name(counter)   codes of texts
//   x.reading_end(start)                              until when a reading held
#pragma once

#include <string_view>

#include "format/relation/fact_columns.h"
#include "format/rpd/op_type.h"

namespace tacho::format::rpd {

namespace derive {

using namespace relation::fact_columns;
using relation::choose;
using relation::from;
using relation::kRowNumber;
using relation::kStored;
using S = event::column::CopyShape;

inline constexpr auto kOperation = from<kRowNumber>([](auto& x, int64_t row) { return x.operation(row); });
inline constexpr auto kCall = from<F::track, F::correlation>(
    [](auto& x, int64_t track, int64_t correlation) { return x.call(track, correlation); });
inline constexpr auto kPid = from<F::track>([](auto& x, int64_t track) { return x.track(track).pid; });
inline constexpr auto kTid = from<F::track>([](auto& x, int64_t track) { return x.track(track).tid; });
inline constexpr auto kGpu = from<F::track>([](auto& x, int64_t track) { return x.track(track).gpu; });
inline constexpr auto kQueue = from<F::track>([](auto& x, int64_t track) { return x.track(track).queue; });
inline constexpr auto kSequence = from<F::track>([](auto& x, int64_t track) { return x.track(track).sequence; });
inline constexpr auto kStream = from<F::track>([](auto& x, int64_t track) { return x.track(track).native; });

// Rows about launches: only operations that a call caused, and no nodes of graphs (one call launched many).
inline constexpr auto kCaused = from<F::track, F::correlation>(
    [](auto& x, int64_t track, int64_t correlation) { return int64_t{x.call(track, correlation) != kUnknown}; });
template <int16_t kGraphNode>
inline constexpr auto kLaunched = from<F::track, F::correlation, kGraphNode>([](auto& x, int64_t track,
                                                                                int64_t correlation, int64_t node) {
  return int64_t{node == 0 && x.call(track, correlation) != kUnknown};
});

inline constexpr auto kKernelName = from<F::dim>([](auto& x, int64_t kernel) { return x.kernel_name(kernel); });
inline constexpr auto kDescription = choose<Table::kDispatch>(kKernelName, from<>([](auto& x) { return x.no_text(); }));
inline constexpr auto kOpType = choose<Table::kDispatch>(
    from<F::dim>([](auto& x, int64_t kernel) {
      return x.word(
          op_type_of_dispatch(static_cast<event::DispatchKind>(x.trace().cell(Table::kKernel, kernel, K::kind))));
    }),
    choose<Table::kCopy>(from<F::dim>([](auto& x, int64_t shape) {
                           return x.word(op_type_of_copy(static_cast<event::CopyDirection>(
                               x.trace().cell(Table::kCopyShape, shape, S::direction))));
                         }),
                         from<>([](auto& x) { return x.word(RpdWord::kFillBuffer); })));
inline constexpr auto kApiName =
    choose<Table::kApi>(from<F::dim>([](auto& x, int64_t function) { return x.function_name(function); }),
                        from<>([](auto& x) { return x.word(RpdWord::kUserMarker); }));
inline constexpr auto kApiDomain =
    choose<Table::kApi>(from<F::dim>([](auto& x, int64_t function) { return x.function_domain(function); }),
                        from<>([](auto& x) { return x.word(RpdWord::kRoctx); }));
inline constexpr auto kArguments =
    choose<Table::kApi>(from<event::column::Api::arguments>([](auto& x, int64_t text) { return x.argument(text); }),
                        from<F::dim>([](auto& x, int64_t label) {
                          return x.argument(x.trace().cell(Table::kLabel, label, event::column::Label::name));
                        }));

// Workgroups along an axis; work-items where the call counts those or the group's size is not known.
template <int kItems, int kGroup>
inline constexpr auto kGrid = from<F::track, F::correlation, F::dim>([](auto& x, int64_t track, int64_t correlation,
                                                                        int64_t kernel) {
  const int64_t items = x.trace().cell(Table::kKernel, kernel, kItems),
                each = x.trace().cell(Table::kKernel, kernel, kGroup);
  const bool whole = items == kUnknown || each == kUnknown || each <= 0 || x.call_counts_items(track, correlation);
  return whole ? items : (items + each - 1) / each;
});

template <int kColumn>
inline constexpr auto kCopyDevice = from<F::dim>([](auto& x, int64_t shape) {
  const int64_t device = x.trace().cell(Table::kCopyShape, shape, kColumn);
  return device > 0 ? x.trace().cell(Table::kDevice, device, event::column::Device::index) : 0;
});
inline constexpr auto kCopyKind = from<F::dim>([](auto& x, int64_t shape) {
  const int64_t direction = x.trace().cell(Table::kCopyShape, shape, S::direction);  // the runtime's hipMemcpyKind
  return direction >= 1 && direction <= 4 ? direction - 1 : 4;
});
inline constexpr auto kSynchronous = from<F::dim>(
    [](auto& x, int64_t shape) { return int64_t{x.trace().cell(Table::kCopyShape, shape, S::asynchronous) == 0}; });
inline constexpr auto kPinned = from<F::dim>([](auto& x, int64_t shape) {
  const auto pinned = static_cast<int64_t>(event::MemoryKind::kPinned);
  return int64_t{x.trace().cell(Table::kCopyShape, shape, S::source_memory) == pinned ||
                 x.trace().cell(Table::kCopyShape, shape, S::target_memory) == pinned};
});

inline int64_t monitor_of(auto& x, int64_t track) {
  using T = event::column::Track;
  return static_cast<int64_t>(
      monitor_type(x.trace().cell(Table::kTrack, track, T::device), x.trace().cell(Table::kTrack, track, T::process)));
}
inline constexpr auto kMonitorType = from<F::track>([](auto& x, int64_t track) { return monitor_of(x, track); });
inline constexpr auto kMonitorOwner = from<F::track>([](auto& x, int64_t track) -> int64_t {
  const auto type = static_cast<size_t>(monitor_of(x, track));
  return type == kMonitorOfGpu ? x.track(track).gpu : type == kMonitorOfProcess ? x.track(track).pid : 0;
});
inline constexpr auto kMonitorName = from<F::track>([](auto& x, int64_t track) {
  return x.counter_name(x.trace().cell(Table::kTrack, track, event::column::Track::counter));
});
inline constexpr auto kReadingEnd = from<F::start>([](auto& x, int64_t start) { return x.reading_end(start); });

}  // namespace derive

using relation::kDecimal;
using relation::kFew;
using relation::kHex;
using relation::kId;
using relation::kText;
using relation::kTime;
using relation::plain_columns;
/// The value is a place in kMonitorTypes.
inline constexpr unsigned kMonitor = relation::kOwnFlag;

// Tables. Rows of operations come from the tables dispatch, copy and fill, rows of calls from api and marker.

inline constexpr auto kOperationColumns = [](auto& face) {
  face.column("id", "k", kId, derive::kRowId);
  face.column("gpuId", "i", kFew, derive::kGpu);
  face.column("queueId", "i", kFew, derive::kQueue);
  face.column("sequenceId", "i", kFew, derive::kSequence);
};
inline constexpr auto kCallColumns = [](auto& face) {
  face.column("id", "k", kId, derive::kRowId);
  face.column("pid", "i", kFew, derive::kPid);
  face.column("tid", "i", kFew, derive::kTid);
  face.column("start", "i", kTime, derive::kStart);
  face.column("end", "i", 0, derive::kEnd);
};

inline constexpr auto kOpTable = [](auto& face) {
  face.relation("rocpd_op");
  kOperationColumns(face);
  if (face.version() < 3) face.column("completionSignal", "s18", kFew, derive::kZero);
  face.column("start", "i", kTime, derive::kStart);
  face.column("end", "i", 0, derive::kEnd);
  face.column("description_id", ">string", kFew, derive::kDescription);
  face.column("opType_id", ">string", kFew, derive::kOpType);
};

inline constexpr auto kApiTable = [](auto& face) {
  face.relation("rocpd_api");
  kCallColumns(face);
  face.column("apiName_id", ">string", kFew, derive::kApiName);
  if (face.version() >= 3) {
    face.column("category_id", ">string", kFew, derive::from<>([](auto& x) { return x.no_text(); }));
    face.column("domain_id", ">string", kFew, derive::kApiDomain);
  }
  face.column("args_id", face.version() >= 3 ? relation::ColumnType(">ustring") : relation::ColumnType(">string"), kFew,
              derive::kArguments);
};

inline constexpr auto kApiOpsTable = [](auto& face) {
  face.relation("rocpd_api_ops");
  face.keep(derive::kCaused);
  face.column("id", "k", kId, derive::kRowId);
  face.column("api_id", ">api", 0, derive::kCall);
  face.column("op_id", ">op", 0, derive::kOperation);
};

inline constexpr auto kLaunchColumns = [](auto& face) {
  using K = derive::K;
  face.column("stream", "s18", kFew | kHex, derive::kStream);
  face.column("gridX", "i", 0, derive::kGrid<K::grid_x, K::group_x>);
  face.column("gridY", "i", 0, derive::kGrid<K::grid_y, K::group_y>);
  face.column("gridZ", "i", 0, derive::kGrid<K::grid_z, K::group_z>);
  face.column("workgroupX", "i", kFew, derive::kKernelCell<K::group_x>);
  face.column("workgroupY", "i", kFew, derive::kKernelCell<K::group_y>);
  face.column("workgroupZ", "i", kFew, derive::kKernelCell<K::group_z>);
  face.column("groupSegmentSize", "i", kFew, derive::kShared);
  face.column("privateSegmentSize", "i", kFew, derive::kKernelCell<K::private_bytes>);
};

inline constexpr auto kKernelapiTable = [](auto& face) {
  face.relation("rocpd_kernelapi");
  face.keep(derive::kLaunched<event::column::Dispatch::graph_node>);
  face.column("api_ptr_id", "p>api", 0, derive::kCall);
  kLaunchColumns(face);
  if (face.version() < 3) {
    face.column("kernelArgAddress", "s18", kFew, derive::kZero);
    face.column("aquireFence", "s8", kFew, derive::kZero);
    face.column("releaseFence", "s8", kFew, derive::kZero);
    face.column("codeObject_id", ">kernelcodeobject", kFew | kText, derive::kZero);
  }
  face.column("kernelName_id", ">string", kFew, derive::kKernelName);
};

inline constexpr auto kCopyapiTable = [](auto& face) {
  face.relation("rocpd_copyapi");
  face.keep(derive::kLaunched<event::column::Copy::graph_node>);
  face.column("api_ptr_id", "p>api", 0, derive::kCall);
  face.column("stream", "s18", kFew | kHex, derive::kStream);
  face.column("size", "i", 0, derive::kStored<event::column::Copy::bytes>);
  face.column("width", "i", kFew | kText, derive::kZero);
  face.column("height", "i", kFew | kText, derive::kZero);
  face.column("kind", "i", kFew, derive::kCopyKind);
  face.column("dst", "s18", kFew, derive::kZero);
  face.column("src", "s18", kFew, derive::kZero);
  face.column("dstDevice", "i", kFew, derive::kCopyDevice<derive::S::target_device>);
  face.column("srcDevice", "i", kFew, derive::kCopyDevice<derive::S::source_device>);
  face.column("sync", "b", kFew, derive::kSynchronous);
  face.column("pinned", "b", kFew, derive::kPinned);
};

inline constexpr auto kMonitorTable = [](auto& face) {
  face.relation("rocpd_monitor");
  face.column("id", "k", kId, derive::kRowId);
  face.column("deviceType", "s16", kFew | kMonitor, derive::kMonitorType);
  face.column("deviceId", "i", kFew, derive::kMonitorOwner);
  face.column("monitorType", "s16", kFew, derive::kMonitorName);
  face.column("start", "i", 0, derive::kStart);
  face.column("end", "i", 0, derive::kReadingEnd);
  face.column("value", "s255", kDecimal, derive::kStored<event::column::Reading::value>);
};

// Tables that are empty, or that each face fills by itself.

inline constexpr auto kStringTable = [](auto& face) {
  face.relation("rocpd_string");
  plain_columns(face, "id k string s4096");
};
inline constexpr auto kUstringTable = [](auto& face) {
  face.relation("rocpd_ustring");
  plain_columns(face, "id k string s4096");
};
inline constexpr auto kMetadataTable = [](auto& face) {
  face.relation("rocpd_metadata");
  plain_columns(face, "id k tag s4096 value s4096");
};
inline constexpr auto kKernelcodeobjectTable = [](auto& face) {
  face.relation("rocpd_kernelcodeobject");
  plain_columns(face, "id k vgpr i sgpr i fbar i");
};
inline constexpr auto kBarrieropTable = [](auto& face) {
  face.relation("rocpd_barrierop");
  plain_columns(face, "op_ptr_id p>op signalCount i aquireFence s8 releaseFence s8");
};
inline constexpr auto kOpInputSignalsTable = [](auto& face) {
  face.relation("rocpd_op_inputSignals");
  plain_columns(face, "id k from_op_id >op to_op_id >op");
};
inline constexpr auto kCounterTable = [](auto& face) {
  face.relation("rocpd_counter");
  plain_columns(face, "id k value r op_id >op name_id >string");
};
inline constexpr auto kStackframeTable = [](auto& face) {
  face.relation("rocpd_stackframe");
  plain_columns(face, "id k api_ptr_id >api depth i name_id >string");
};

// Views without joins: what SQL over a trace answers in place of the views of the same names in schema.cpp.

inline constexpr auto kOpView = [](auto& face) {
  face.relation("op");
  kOperationColumns(face);
  face.column("start", "i", kTime, derive::kStart);
  face.column("end", "i", 0, derive::kEnd);
  face.column("description", "s", kFew, derive::kDescription);
  face.column("opType", "s", kFew, derive::kOpType);
};

inline constexpr auto kApiView = [](auto& face) {
  face.relation("api");
  kCallColumns(face);
  face.column("apiName", "s", kFew, derive::kApiName);
  face.column("args", "s", kFew, derive::kArguments);
};

inline constexpr auto kKernelView = [](auto& face) {
  face.relation("kernel");
  face.keep(derive::kLaunched<event::column::Dispatch::graph_node>);
  kOperationColumns(face);
  face.column("start", "i", kTime, derive::kStart);
  face.column("end", "i", 0, derive::kEnd);
  face.column("duration", "i", 0, derive::kDuration);
  kLaunchColumns(face);
  face.column("kernelName", "s", kFew, derive::kKernelName);
};

}  // namespace tacho::format::rpd
