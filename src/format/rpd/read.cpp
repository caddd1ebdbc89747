// Reads .rpd files. Scans each table once, in rowid order, and joins (operation to API call, API call to launch
// parameters) through sorted indexes that spill to disk.
#include <tsl/robin_map.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "base/text/how_many.h"
#include "event/times.h"
#include "format/import/origin.h"
#include "format/import/rows.h"
#include "format/import/times.h"
#include "format/import/words.h"
#include "format/rpd/op_type.h"
#include "format/rpd/rpd.h"
#include "format/rpd/tracks.h"
#include "format/sqlite/unpack.h"
#include "trace/write/work_times.h"
#include "trace/write/writer.h"
#include "vendor/call_roles.h"

namespace tacho::format::rpd {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
namespace row = event::row;
using sqlite::Database;
using sqlite::NamedScan;

// Rows of the trace are remembered by the numbers that the file has for them. The writer knows them all; what was
// forgotten here is asked for again.
constexpr size_t kMostKnown = 1 << 17;
constexpr int kNewestSchema = 3;

bool sane(int64_t time) {
  return event::is_time(time);
}

// Texts by id, mostly requested in ascending order.
class Strings {
 public:
  Strings(const Database& database, const sqlite::StoredTable& table) : scan_(database, table, {"id", "string"}) {}
  /// False if there is no such row.
  bool find(int64_t id, std::string_view& text) {
    if (!(valid_ && scan_.rowid() == id)) {
      valid_ = valid_ && id == scan_.rowid() + 1 ? scan_.next() && scan_.rowid() == id : false;
      if (!valid_) valid_ = scan_.seek(id);
    }
    if (!valid_) return false;
    text = scan_.string(1);
    return true;
  }
  Status status() const { return scan_.status(); }

 private:
  NamedScan scan_;
  bool valid_ = false;
};

// A stated domain of which the functions' names say too little comes first.
Domain domain_of(std::string_view function, std::string_view stated) {
  if (stated == "python" || stated == "hip" || stated == "hsa") return imported::domain_of_word(stated);
  const Domain told = imported::domain_of_function(function);
  return told != Domain::kUnknown ? told : imported::domain_of_word(stated);
}

// The ids that exist, as runs: ids ascend in a table, with few gaps.
class Ids {
 public:
  void add(int64_t id) {
    if (!runs_.empty() && id == runs_.back().second + 1) {
      runs_.back().second = id;
    } else if (runs_.size() < kMost) {
      runs_.emplace_back(id, id);
    } else {
      complete_ = false;
    }
  }
  /// Also true if there were too many gaps to remember.
  bool has(int64_t id) {
    if (last_ < runs_.size() && id >= runs_[last_].first && id <= runs_[last_].second) return true;
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), id,
                                        [](int64_t wanted, const auto& run) { return wanted < run.first; });
    if (after == runs_.begin()) return false;
    last_ = static_cast<size_t>(after - runs_.begin()) - 1;
    return id <= runs_[last_].second || (!complete_ && id > runs_.back().second);
  }

 private:
  static constexpr size_t kMost = 1 << 20;
  std::vector<std::pair<int64_t, int64_t>> runs_;
  size_t last_ = 0;
  bool complete_ = true;
};

class Reader {
 public:
  Reader(const Database& database, trace::TraceWriter& writer) : db_(database), writer_(writer) {}
  Status run();

 private:
  struct Launch {
    int64_t shape;  // index in shapes_
  };
  struct CopyCall {
    int64_t size;
    int64_t synchronous;
  };
  struct Shape {
    int64_t grid[3], group[3], shared, priv;
  };
  struct Name {
    bool marker = false, items = false, graph = false;
    event::CallRole role = event::CallRole::kPlain;
    int64_t function = 0;
    int64_t domain_text = 0;
  };

  struct Operation {
    int64_t id = 0, start = 0, duration = 0, type_id = kUnknown, name_id = 0;
    OpType type;
    int64_t correlation = 0, process = 0, gpu = 0, queue = 0, sequence = 0, track = 0;
    int64_t unit = 0;             // row of its GPU
    int64_t node = 0;             // of a graph
    bool launches_items = false;  // its call counts a grid in work-items
  };

  Status read_launches();
  Status read_launches(const sqlite::StoredTable& table, KeyIndex<Launch>& launches);
  Status read_copies();
  Status read_copies(const sqlite::StoredTable& table, KeyIndex<CopyCall>& copies);
  const Launch* launch_of(const Operation& of);
  const CopyCall* copy_of(const Operation& of);
  Status read_calls();
  void add_call(const row::Api& row, int64_t process, event::CallRole role);
  Status read_links();
  Status read_operations();
  Result<int64_t> queue_track(const Operation& of);
  const OpType& type_of(int64_t type_id);
  void add_dispatch(const Operation& of);
  void add_copy_or_fill(const Operation& of);
  Status read_monitor();
  Status read_metadata();

  void read_origins();
  int64_t process_of_pid(int64_t pid);
  int64_t thread_track(int64_t pid, int64_t tid);
  int64_t device(int64_t index, bool cuda);
  const Name& name_of(int64_t name_id, int64_t domain_id);
  int64_t text_row(int64_t string_id);  // trace string; kUnknown if there is none
  int64_t kernel_row(int64_t name_id, int64_t type_id, int64_t shape, bool items, const OpType& type);
  template <event::FactRow R>
  void add_work(const R& row, const Operation& of) {
    if (imported::UnmeasuredRows::looks_so(row.start, row.duration)) return unmeasured_.take(row);
    unmeasured_.saw(row.start, row.duration);
    const bool to_host = of.type.table == Table::kCopy && of.type.direction == event::CopyDirection::kDeviceToHost;
    work_times_.work({.process = of.process, .device = of.unit, .to_host = to_host}, row);
  }
  Status add_unmeasured();
  void bad(Table table, int64_t count = 1) { writer_.lose(0, table, event::LossReason::kBadInput, count); }

  const Database& db_;
  trace::TraceWriter& writer_;
  int version_ = 0;
  imported::UnmeasuredRows unmeasured_;
  trace::WorkTimes work_times_{writer_, trace::WorkTimes::Calls::kApart};
  std::unique_ptr<Strings> strings_, ustrings_;
  // By the call's id and, in files of schema 1, by the operation's.
  KeyIndex<Launch> launches_, launches_of_operations_;
  std::vector<Shape> shapes_;
  NumberMap<8> shape_index_;
  KeyIndex<CopyCall> copies_, copies_of_operations_;
  KeyIndex<int64_t> process_runs_;  // first API id of a run -> process
  KeyIndex<int64_t> special_;       // API ids of launches in work-items (1) and of graphs (2)
  KeyIndex<int64_t> cause_;         // operation id -> API id
  Ids calls_;
  int64_t links_ = 0;
  bool all_items_ = false;  // grids are in work-items for every launch function
  NumberMap<2> processes_, tracks_;
  tsl::robin_map<int64_t, int64_t> texts_, devices_;
  tsl::robin_map<int64_t, std::array<int64_t, 2>> labels_;
  std::vector<Name> names_;
  NumberMap<2> name_index_;
  NumberMap<4> kernels_, queue_tracks_, shapes_of_work_;
  tsl::robin_map<int64_t, OpType> op_types_;
  std::map<int64_t, std::string> process_origins_, gpu_origins_;  // by pid, by gpuId
  std::array<int64_t, 4> last_queue_ = {kUnknown, 0, 0, 0}, last_kernel_key_ = {kUnknown, 0, 0, 0};
  int64_t last_queue_track_ = 0, last_kernel_ = 0;
};

int64_t Reader::process_of_pid(int64_t pid) {
  const auto [found, fresh] = processes_.try_emplace({pid, 0}, 0);
  if (fresh) {
    found.value() = writer_.dimension(row::Process{.pid = pid});
    if (const auto origin = process_origins_.find(pid); origin != process_origins_.end())
      imported::set_process_origin(writer_, found->second, origin->second);
  }
  return found->second;
}

// What tacho tells about the pids and GPUs of its files.
void Reader::read_origins() {
  const sqlite::StoredTable* const metadata = db_.table("rocpd_metadata");
  if (metadata == nullptr) return;
  NamedScan scan(db_, *metadata, {"tag", "value"});
  constexpr int64_t kMostTags = 1 << 16;
  for (int64_t rows = 0; scan.next() && rows < kMostTags; ++rows) {
    std::string_view tag = scan.string(0);
    auto* const origins = tag.starts_with(kProcessTag) ? &process_origins_
                          : tag.starts_with(kGpuTag)   ? &gpu_origins_
                                                       : nullptr;
    if (origins == nullptr) continue;
    tag.remove_prefix(origins == &process_origins_ ? kProcessTag.size() : kGpuTag.size());
    int64_t number = 0;
    if (std::from_chars(tag.data(), tag.data() + tag.size(), number).ec == std::errc())
      origins->try_emplace(number, scan.string(1));
  }
}

int64_t Reader::thread_track(int64_t pid, int64_t tid) {
  const auto [found, fresh] = tracks_.try_emplace({pid, tid}, 0);
  if (fresh) {
    found.value() = imported::thread_line(writer_, process_of_pid(pid), tid, tid);
  }
  return found->second;
}

int64_t Reader::device(int64_t index, bool cuda) {
  const auto [found, fresh] = devices_.try_emplace(index, 0);
  if (fresh) {
    found.value() = writer_.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                                  .index = index,
                                                  .name = writer_.string(fmt::format("GPU {}", index)),
                                                  .vendor = cuda ? writer_.string("NVIDIA") : 0});
    if (const auto origin = gpu_origins_.find(index); origin != gpu_origins_.end())
      imported::set_device_origin(writer_, found->second, origin->second);
  }
  return found->second;
}

int64_t Reader::text_row(int64_t string_id) {
  if (texts_.size() > kMostKnown) texts_.clear();
  const auto [found, fresh] = texts_.try_emplace(string_id, kUnknown);
  if (fresh) {
    std::string_view text;
    if (strings_->find(string_id, text)) found.value() = writer_.string(text);
  }
  return found->second;
}

const Reader::Name& Reader::name_of(int64_t name_id, int64_t domain_id) {
  if (names_.size() > kMostKnown) {
    name_index_.clear();
    names_.clear();
  }
  const auto [found, fresh] = name_index_.try_emplace({name_id, domain_id}, static_cast<int64_t>(names_.size()));
  if (fresh) {
    Name name;
    std::string_view text;
    std::string stated;
    if (domain_id != kUnknown && strings_->find(domain_id, text)) {
      stated = text;
      name.domain_text = writer_.string(text);
    }
    if (strings_->find(name_id, text)) {
      name.marker = text == "UserMarker";
      name.items = launches_items(text);
      name.role = vendor::call_role(text);
      name.graph = text.find("GraphLaunch") != std::string_view::npos;
      if (!name.marker)
        name.function =
            writer_.dimension(row::Function{.name = writer_.string(text), .domain = domain_of(text, stated)});
    }
    names_.push_back(name);
  }
  return names_[static_cast<size_t>(found->second)];
}

// Schema 2 and later tell a launch's shape by the call that launched, schema 1 by the operation, with other spellings.
Status Reader::read_launches(const sqlite::StoredTable& table, KeyIndex<Launch>& launches) {
  const bool first = table.column("op_ptr_id") >= 0;
  NamedScan scan(
      db_, table,
      {first ? "op_ptr_id" : "api_ptr_id", "gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ",
       first ? "groupSegementSize" : "groupSegmentSize", first ? "privateSegementSize" : "privateSegmentSize"});
  while (scan.next()) {
    Shape shape;
    for (int i = 0; i < 3; ++i) {
      // No launch has 0 workgroups: the columns are NOT NULL.
      shape.grid[i] = scan.number(1 + i, 0) > 0 ? scan.number(1 + i) : kUnknown;
      shape.group[i] = scan.number(4 + i, 0) > 0 ? scan.number(4 + i) : kUnknown;
    }
    shape.shared = scan.number(7);
    shape.priv = scan.number(8);
    const auto [found, fresh] =
        shape_index_.try_emplace(std::bit_cast<std::array<int64_t, 8>>(shape), static_cast<int64_t>(shapes_.size()));
    if (fresh) shapes_.push_back(shape);
    launches.add(scan.id(0), {found->second});
  }
  return scan.status();
}

Status Reader::read_launches() {
  if (const sqlite::StoredTable* const table = db_.table("rocpd_kernelapi"))
    TACHO_TRY(read_launches(*table, launches_));
  if (const sqlite::StoredTable* const table = db_.table("rocpd_kernelop"))
    TACHO_TRY(read_launches(*table, launches_of_operations_));
  TACHO_TRY(launches_of_operations_.finish());
  return launches_.finish();
}

Status Reader::read_copies(const sqlite::StoredTable& table, KeyIndex<CopyCall>& copies) {
  NamedScan scan(db_, table, {table.column("op_ptr_id") >= 0 ? "op_ptr_id" : "api_ptr_id", "size", "sync"});
  while (scan.next()) {
    const int64_t size = scan.number(1);
    // The column is NOT NULL: writers that do not know a size, tacho among them, say 0.
    copies.add(scan.id(0), {size <= 0 ? kUnknown : size, scan.number(2)});
  }
  return scan.status();
}

Status Reader::read_copies() {
  if (const sqlite::StoredTable* const table = db_.table("rocpd_copyapi")) TACHO_TRY(read_copies(*table, copies_));
  if (const sqlite::StoredTable* const table = db_.table("rocpd_copyop"))
    TACHO_TRY(read_copies(*table, copies_of_operations_));
  TACHO_TRY(copies_of_operations_.finish());
  return copies_.finish();
}

const Reader::Launch* Reader::launch_of(const Operation& of) {
  if (const auto* const own = launches_of_operations_.find(of.id)) return &own->value;
  const auto* const of_call = of.correlation != 0 ? launches_.find(of.correlation) : nullptr;
  return of_call != nullptr ? &of_call->value : nullptr;
}

const Reader::CopyCall* Reader::copy_of(const Operation& of) {
  if (const auto* const own = copies_of_operations_.find(of.id)) return &own->value;
  const auto* const of_call = of.correlation != 0 ? copies_.find(of.correlation) : nullptr;
  return of_call != nullptr ? &of_call->value : nullptr;
}

void Reader::add_call(const row::Api& row, int64_t process, event::CallRole role) {
  writer_.add(row);
  work_times_.call({.process = process,
                    .correlation = row.correlation,
                    .start = row.start,
                    .end = row.duration == kUnknown ? kUnknown : row.start + row.duration,
                    .role = role});
}

Status Reader::read_calls() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_api"));
  NamedScan scan(db_, *table, {"id", "pid", "tid", "start", "end", "apiName_id", "args_id", "domain_id"});
  Strings& arguments = ustrings_ ? *ustrings_ : *strings_;
  int64_t last_pid = kUnknown, last_tid = kUnknown, track = 0, run_process = -1;
  int64_t last_name = kUnknown, last_domain = kUnknown;
  Name name;
  int64_t with_arguments = 0, no_name = 0, disordered = 0;
  // A file with arguments in JSON comes from rocprofiler-sdk, whose grids are always in work-items.
  bool sdk_known = false, sdk = false;
  while (scan.next()) {
    const int64_t id = scan.id(0);
    const int64_t pid = scan.number(1), tid = scan.number(2);
    const int64_t start = scan.number(3), end = scan.number(4);
    if (!sane(start) || !sane(end) || pid == kUnknown) {
      bad(Table::kApi);
      continue;
    }
    if (pid != last_pid || tid != last_tid) {
      track = thread_track(pid, tid);
      last_pid = pid;
      last_tid = tid;
      const int64_t process = process_of_pid(pid);
      if (process != run_process) process_runs_.add(id, process);
      run_process = process;
    }
    const int64_t name_id = scan.number(5), domain_id = scan.number(7);
    if (name_id != last_name || domain_id != last_domain) {
      name = name_of(name_id, domain_id);
      last_name = name_id;
      last_domain = domain_id;
    }
    const int64_t duration = event::duration_between(start, end);
    disordered += duration == kUnknown;
    unmeasured_.saw(start, duration);
    const int64_t args_id = scan.number(6);
    if (name.marker) {
      std::string_view text;
      if (!arguments.find(args_id, text)) {
        bad(Table::kMarker);
        continue;
      }
      const int64_t row = writer_.string(text);
      const bool mark = start == end;
      if (labels_.size() > kMostKnown) labels_.clear();
      auto found = labels_.find(row);
      if (found == labels_.end()) found = labels_.try_emplace(row, std::array<int64_t, 2>{0, 0}).first;
      int64_t& label = found.value()[mark ? 1 : 0];
      if (label == 0)
        label = writer_.dimension(row::Label{.name = row,
                                             .kind = mark ? event::MarkerKind::kMark : event::MarkerKind::kPushPop,
                                             .domain = name.domain_text});
      const row::Marker values{.track = track, .start = start, .duration = duration, .dim = label};
      writer_.add(values);
      calls_.add(id);
      continue;
    }
    if (name.function == 0) {
      ++no_name;
      continue;
    }
    if (args_id > 1 && (args_id & 0xffffffff) != 1) {
      std::string_view text;
      if (name.items || !sdk_known || !ustrings_) {
        // Looks only if it can matter, since this jumps within the file.
        if (arguments.find(args_id, text) && !text.empty()) {
          ++with_arguments;
          if (ustrings_ && !sdk_known) {
            sdk = text.front() == '{';
            sdk_known = true;
          }
        }
      } else {
        ++with_arguments;
      }
    }
    if (name.items || name.graph) special_.add(id, name.items ? 1 : 2);
    calls_.add(id);
    add_call({.track = track, .start = start, .duration = duration, .dim = name.function, .correlation = id},
             run_process, name.role);
  }
  TACHO_TRY(scan.status());
  TACHO_TRY(strings_->status());
  if (ustrings_) TACHO_TRY(ustrings_->status());
  if (sdk) writer_.property(Table::kEnd, 0, "rpd.grid", "work-items");
  if (no_name > 0) bad(Table::kApi, no_name);
  if (disordered > 0) writer_.lose(0, Table::kApi, event::LossReason::kClockOrder, disordered);
  if (with_arguments > 0)
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("the arguments of {} API calls are not carried over from "
                             "the .rpd; query the .rpd itself for them",
                             with_arguments));
  all_items_ = sdk;
  TACHO_TRY(work_times_.calls_end());
  TACHO_TRY(special_.finish());
  return process_runs_.finish();
}

Status Reader::read_links() {
  const sqlite::StoredTable* const table = db_.table("rocpd_api_ops");
  if (table == nullptr) return {};
  NamedScan scan(db_, *table, {"api_id", "op_id"});
  while (scan.next()) {
    cause_.add(scan.id(1), scan.id(0));
    ++links_;
  }
  TACHO_TRY(scan.status());
  return cause_.finish();
}

int64_t Reader::kernel_row(int64_t name_id, int64_t type_id, int64_t shape_at, bool items, const OpType& type) {
  if (kernels_.size() > kMostKnown) kernels_.clear();
  const auto [found, fresh] = kernels_.try_emplace({name_id, type_id, shape_at, items ? 1 : 0}, 0);
  if (!fresh) return found->second;
  int64_t name = text_row(name_id);
  if (name <= 0) name = text_row(type_id);  // like upstream's views: no description means the type's name
  if (name < 0) name = 0;
  static constexpr Shape kNone = {{kUnknown, kUnknown, kUnknown}, {kUnknown, kUnknown, kUnknown}, kUnknown, kUnknown};
  const Shape& shape = shape_at >= 0 ? shapes_[static_cast<size_t>(shape_at)] : kNone;
  row::Kernel values = imported::launch_of(name, shape.grid, shape.group, items);
  values.kind = type.dispatch;
  values.shared_dynamic = shape.shared;
  values.private_bytes = shape.priv;
  const int64_t row = writer_.dimension(values);
  kernels_[{name_id, type_id, shape_at, items ? 1 : 0}] = row;
  return row;
}

// The queue's track of an operation. Rows of a queue follow each other, so the last one usually fits.
Result<int64_t> Reader::queue_track(const Operation& of) {
  const std::array<int64_t, 4> key = {of.gpu, of.queue, of.sequence, of.process};
  if (key == last_queue_) return last_queue_track_;
  const auto [found, fresh] = queue_tracks_.try_emplace(key, 0);
  if (fresh)
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                 .process = of.process,
                                                 .device = device(of.gpu, of.type.cuda),
                                                 .native = of.queue,
                                                 .context = of.sequence});
  if (devices_.size() > kMostGpus)
    return fail("{}: operations on more than {} GPUs: damaged", db_.file().path(), kMostGpus);
  last_queue_ = key;
  return last_queue_track_ = found->second;
}

void Reader::add_dispatch(const Operation& of) {
  const Launch* const launch = launch_of(of);
  const bool items = all_items_ || (launch != nullptr && of.launches_items);
  const std::array<int64_t, 4> key = {of.name_id, of.type_id, launch != nullptr ? launch->shape : -1, items ? 1 : 0};
  if (key != last_kernel_key_) {
    OpType as = of.type;
    if (as.table != Table::kDispatch) as.dispatch = event::DispatchKind::kTask;
    last_kernel_ = kernel_row(key[0], key[1], key[2], items, as);
    last_kernel_key_ = key;
  }
  add_work(row::Dispatch{.track = of.track,
                         .start = of.start,
                         .duration = of.duration,
                         .dim = last_kernel_,
                         .correlation = of.correlation,
                         .graph_node = of.node},
           of);
}

void Reader::add_copy_or_fill(const Operation& of) {
  const CopyCall* const copy = copy_of(of);
  const int64_t bytes = copy != nullptr ? copy->size : kUnknown;
  const bool told = copy != nullptr && copy->synchronous != kUnknown;
  const int64_t asynchronous = !told ? kUnknown : copy->synchronous == 0 ? 1 : 0;
  const int64_t unit = of.unit;
  if (of.type.table == Table::kFill) {
    const auto [found, fresh] = shapes_of_work_.try_emplace({-1, unit, 0, 0}, 0);
    if (fresh) found.value() = writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = unit});
    add_work(row::Fill{.track = of.track,
                       .start = of.start,
                       .duration = of.duration,
                       .dim = found->second,
                       .correlation = of.correlation,
                       .bytes = bytes,
                       .graph_node = of.node},
             of);
    return;
  }
  using event::CopyDirection;
  const CopyDirection direction = of.type.direction;
  const auto [found, fresh] = shapes_of_work_.try_emplace(
      {static_cast<int64_t>(direction), unit, asynchronous, static_cast<int64_t>(of.type.copy)}, 0);
  if (fresh) {
    const bool from = direction == CopyDirection::kDeviceToHost || direction == CopyDirection::kDeviceToDevice;
    const bool to = direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToDevice;
    found.value() = writer_.dimension(row::CopyShape{.direction = direction,
                                                     .source_device = from ? unit : 0,
                                                     .target_device = to ? unit : 0,
                                                     .kind = of.type.copy,
                                                     .asynchronous = asynchronous});
  }
  add_work(row::Copy{.track = of.track,
                     .start = of.start,
                     .duration = of.duration,
                     .dim = found->second,
                     .correlation = of.correlation,
                     .bytes = bytes,
                     .graph_node = of.node},
           of);
}

const OpType& Reader::type_of(int64_t type_id) {
  auto found = op_types_.find(type_id);
  if (found == op_types_.end()) {
    std::string_view word;
    if (!strings_->find(type_id, word)) word = {};
    found = op_types_.emplace(type_id, parse_op_type(word)).first;
  }
  return found->second;
}

Status Reader::read_operations() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_op"));
  NamedScan scan(db_, *table, {"id", "gpuId", "queueId", "sequenceId", "start", "end", "description_id", "opType_id"});
  int64_t orphans = 0, disordered = 0, linked = 0, dangling = 0, last_graph = 0;
  const int64_t only_process = processes_.size() == 1 ? processes_.begin()->second : 0;
  Operation of;
  while (scan.next()) {
    const int64_t end = scan.number(5), type_id = scan.number(7);
    of.start = scan.number(4);
    of.name_id = scan.number(6);
    of.gpu = scan.number(1);
    if (!sane(of.start) || !sane(end) || of.gpu == kUnknown) {
      bad(Table::kDispatch);
      continue;
    }
    if (type_id != of.type_id) {
      of.type = type_of(type_id);
      of.type_id = type_id;
    }
    of.duration = event::duration_between(of.start, end);
    disordered += of.duration == kUnknown;
    of.id = scan.id(0);
    const auto* cause = cause_.find(of.id);
    if (cause != nullptr) ++linked;
    if (cause != nullptr && !calls_.has(cause->value)) {
      ++dangling;
      cause = nullptr;
    }
    of.correlation = cause != nullptr ? cause->value : 0;
    of.process = only_process;
    if (cause == nullptr) {
      ++orphans;
    } else if (only_process == 0) {
      const auto* const run = process_runs_.floor(of.correlation);
      of.process = run != nullptr ? run->value : 0;
    }
    of.queue = scan.id(2);
    of.sequence = scan.id(3);
    if (of.type.cuda) std::swap(of.queue, of.sequence);
    TACHO_ASSIGN(of.track, queue_track(of));
    of.unit = device(of.gpu, of.type.cuda);
    const auto* const special = cause != nullptr && special_.size() > 0 ? special_.find(of.correlation) : nullptr;
    of.launches_items = special != nullptr && special->value == 1;
    // Numbers a graph's operations in the file's order.
    const bool of_graph = special != nullptr && special->value == 2;
    of.node = !of_graph ? 0 : of.correlation == last_graph ? of.node + 1 : 1;
    last_graph = of_graph ? of.correlation : 0;
    const bool described = text_row(of.name_id) > 0;
    if (of.type.table == Table::kDispatch || described)
      add_dispatch(of);
    else
      add_copy_or_fill(of);
  }
  TACHO_TRY(scan.status());
  TACHO_TRY(strings_->status());
  TACHO_TRY(work_times_.work_ends());
  work_times_.finish(0);
  if (disordered > 0) writer_.lose(0, Table::kDispatch, event::LossReason::kClockOrder, disordered);
  if (orphans > 0)
    writer_.note(0, event::NoteSeverity::kWarning,
                 how_many(orphans, "GPU operation of the .rpd belongs", "GPU operations of the .rpd belong") +
                     " to no API call in it");
  if (dangling > 0 || links_ > linked)
    writer_.note(
        0, event::NoteSeverity::kWarning,
        fmt::format(
            "{} to calls that are not there, {} to operations that are not there or that another row links",
            how_many(dangling, "row of the .rpd's rocpd_api_ops refers", "rows of the .rpd's rocpd_api_ops refer"),
            std::max<int64_t>(links_ - linked, 0)));
  return {};
}

// Operations that were not measured lie at the end of their calls, with unknown durations.
Status Reader::add_unmeasured() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_api"));
  NamedScan calls(db_, *table, {"end"});
  TACHO_TRY(unmeasured_.finish(
      writer_, [&](int64_t, int64_t call) { return call != 0 && calls.seek(call) ? calls.number(0) : kUnknown; }));
  return calls.status();
}

Status Reader::read_monitor() {
  const sqlite::StoredTable* const table = db_.table("rocpd_monitor");
  if (table == nullptr) return {};
  NamedScan scan(db_, *table, {"deviceType", "deviceId", "monitorType", "start", "end", "value"});
  struct Last {
    int64_t track, start, end, value;
  };
  std::vector<Last> series;
  tsl::robin_map<std::string, size_t> index;
  while (scan.next()) {
    const int64_t start = scan.number(3), end = scan.number(4), unit = scan.number(1);
    const double value = scan.decimal(5, __builtin_nan(""));
    if (!sane(start) || !sane(end) || value != value || unit == kUnknown) {
      bad(Table::kReading);
      continue;
    }
    const std::string_view what = scan.string(2);
    // Upstream knows only GPUs, whatever the word.
    const std::string_view word = scan.string(0);
    const size_t type = word == kMonitorTypes[kMonitorOfProcess] ? kMonitorOfProcess
                        : word == kMonitorTypes[kMonitorOfHost]  ? kMonitorOfHost
                                                                 : kMonitorOfGpu;
    const auto [found, fresh] = index.try_emplace(fmt::format("{}\n{}\n{}", type, unit, what), series.size());
    if (fresh) {
      if (series.size() >= 100000)
        return fail("{}: rocpd_monitor has more than 100000 series: not a trace", db_.file().path());
      const int64_t counter =
          writer_.dimension(row::Counter{.name = writer_.string(what),
                                         .unit = what == "sclk" || what == "mclk" ? writer_.string("MHz") : 0,
                                         .block = writer_.string("monitor")});
      const int64_t track =
          writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                       .process = type == kMonitorOfProcess ? process_of_pid(unit) : 0,
                                       .device = type == kMonitorOfGpu ? device(unit, false) : 0,
                                       .category = writer_.string("monitor"),
                                       .counter = counter});
      series.push_back({track, INT64_MIN, INT64_MIN, 0});
    }
    Last& last = series[found->second];
    const auto bits = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value));
    writer_.add(row::Reading{.track = last.track, .start = start, .value = bits});
    if (end >= last.end) last = {last.track, start, end, bits};
  }
  // A row is a run of equal values, so the last run's end is a reading too.
  for (const Last& last : series)
    if (last.end > last.start && last.start != INT64_MIN)
      writer_.add(row::Reading{.track = last.track, .start = last.end, .value = last.value});
  return scan.status();
}

Status Reader::read_metadata() {
  writer_.property(Table::kEnd, 0, "source", "rpd");
  writer_.property(Table::kEnd, 0, "source_file", db_.file().path());
  writer_.property(Table::kEnd, 0, "clock", "CLOCK_MONOTONIC");
  writer_.property(Table::kEnd, 0, "rpd.schema", std::to_string(version_));
  if (version_ > kNewestSchema)
    writer_.note(0, event::NoteSeverity::kWarning,
                 fmt::format("the .rpd has schema version {}; tacho knows 1 to {}, and reads the columns that it knows",
                             version_, kNewestSchema));
  if (db_.file().unpacked()) writer_.note(0, event::NoteSeverity::kInfo, db_.file().unpacked_sentence());
  std::string unknown;
  for (const sqlite::StoredTable& table : db_.tables())
    if (table.name.starts_with("ext_") || table.name == "rocpd_stackframe" || table.name == "rocpd_counter") {
      NamedScan scan(db_, table, {"id"});
      if (scan.next()) unknown += (unknown.empty() ? "" : ", ") + table.name;
    }
  if (!unknown.empty())
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("tables of the .rpd that are not carried over: {}", unknown));
  return {};
}

Status Reader::run() {
  TACHO_TRY(check(db_));
  version_ = schema_version(db_);
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, db_.required("rocpd_string"));
  strings_ = std::make_unique<Strings>(db_, *strings);
  if (const sqlite::StoredTable* const ustrings = db_.table("rocpd_ustring"))
    ustrings_ = std::make_unique<Strings>(db_, *ustrings);
  TACHO_TRY(read_metadata());
  read_origins();
  TACHO_TRY(read_launches());
  TACHO_TRY(read_copies());
  TACHO_TRY(read_calls());
  TACHO_TRY(read_links());
  TACHO_TRY(read_operations());
  TACHO_TRY(add_unmeasured());
  return read_monitor();
}

}  // namespace

Status check(const Database& database) {
  static constexpr std::pair<std::string_view, std::string_view> kNeeded[] = {
      {"rocpd_api", "apiName_id"}, {"rocpd_api", "pid"},      {"rocpd_api", "start"}, {"rocpd_api", "end"},
      {"rocpd_op", "gpuId"},       {"rocpd_op", "start"},     {"rocpd_op", "end"},    {"rocpd_op", "description_id"},
      {"rocpd_op", "opType_id"},   {"rocpd_string", "string"}};
  for (const auto& [table, column] : kNeeded) {
    const sqlite::StoredTable* const info = database.table(table);
    if (info == nullptr) return fail("{}: not an .rpd file: it has no table {}", database.file().path(), table);
    if (info->column(column) < 0)
      return fail("{}: not an .rpd file that tacho knows: its table {} has no column {}", database.file().path(), table,
                  column);
  }
  return {};
}

int schema_version(const Database& database) {
  if (!check(database)) return 0;
  if (const sqlite::StoredTable* const metadata = database.table("rocpd_metadata")) {
    NamedScan scan(database, *metadata, {"tag", "value"});
    int64_t rows = 0;
    while (scan.next() && ++rows < 10000)
      if (scan.string(0) == "schema_version") {
        const double version = scan.decimal(1, 0);
        if (version >= 1 && version < 1000) return static_cast<int>(version);
      }
  }
  if (database.table("rocpd_ustring") != nullptr) return 3;
  // Schema 1 told shapes and sizes by operation and had no table of metadata.
  const bool by_call = database.table("rocpd_kernelapi") != nullptr || database.table("rocpd_copyapi") != nullptr;
  const bool by_operation = database.table("rocpd_kernelop") != nullptr || database.table("rocpd_copyop") != nullptr;
  return by_operation && !by_call ? 1 : 2;
}

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder || !head.starts_with(sqlite::kDatabaseHead)) return false;
  if (path.ends_with(".rpd") || path.ends_with(".rpd.gz")) return true;
  // Another SQLite trace may be a rocpd database: the tables decide.
  const auto database = Database::open(std::string(path));
  return database && schema_version(*database) != 0;
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(const Database database, Database::open(path));
  return Reader(database, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::rpd
