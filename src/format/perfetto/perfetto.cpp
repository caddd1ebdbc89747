// Writes a trace as Perfetto packets (perfetto.h): what becomes a track, slice, annotation or counter.
#include "format/perfetto/perfetto.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/files/output_file.h"
#include "format/perfetto/encode.h"
#include "format/perfetto/gpu_model.h"
#include "format/perfetto/packets.h"
#include "format/perfetto/work_ids.h"
#include "format/shared/rocprof_words.h"
#include "trace/read/rows.h"
#include "walk/calls/launches.h"
#include "walk/counters.h"
#include "walk/hash_ids.h"
#include "walk/names/agents.h"
#include "walk/names/names.h"
#include "walk/names/tracks.h"
#include "walk/time/clock.h"
#include "walk/timeline.h"

namespace tacho::format {

namespace column = event::column;
using event::kUnknown;
using event::Table;
using namespace perfetto;
using walk::Agents;
using walk::cell_text;
using walk::check_has_events;
using walk::clock_moments;
using walk::dimension_of;
using walk::Happening;
using walk::KernelNames;
using walk::Lane;
using walk::Launch;
using walk::Launches;
using walk::name_of_event;
using walk::OutputClock;
using walk::RowNumbers;
using walk::Threads;
using walk::Timeline;
using walk::Tracks;
using walk::type_word;

namespace {

// Up to this many rows of a dimension, keeps encoded names. Beyond it, encodes them each time and does not intern them.
constexpr int64_t kMostRemembered = 1 << 18;

// What the machines of a trace share.
struct Scene {
  Scene(const trace::Trace& shown, const ExportOptions& wanted, OutputFile& to, OutputClock times)
      : trace(shown),
        options(wanted),
        file{to},
        clock(std::move(times)),
        agents(trace, options.process),
        tracks(trace, agents, options),
        kernels(trace, options),
        timeline(trace, options, options.group_by_queue, ~0ull) {
    if (options.kernel_rename) launches = std::make_unique<Launches>(trace, Launches::Around::kRanges);
  }

  const trace::Trace& trace;
  const ExportOptions& options;
  PacketFile file;
  OutputClock clock;
  Agents agents;
  Tracks tracks;
  KernelNames kernels;
  Timeline timeline;
  std::unique_ptr<Launches> launches;
  std::unique_ptr<WorkIds> ids;  // for Perfetto's model of GPUs
};

// Writes what happened on one machine.
class Exporter {
 public:
  // `machine`: its number; 0 = the only one. `pids`: of the rows of table process that ran there; 0 for others.
  Exporter(Scene& scene, uint32_t machine, std::vector<int64_t> pids, std::string_view host)
      : trace_(scene.trace),
        options_(scene.options),
        packets_(scene.file, machine),
        clock_(scene.clock),
        agents_(scene.agents),
        tracks_(scene.tracks),
        kernels_(scene.kernels),
        timeline_(scene.timeline),
        launches_(scene.launches.get()),
        pids_(std::move(pids)),
        host_(host) {
    more_.keep_annotations(options_.annotations);
    scratch_.keep_annotations(options_.annotations);
    if (scene.ids != nullptr)
      gpu_ = std::make_unique<GpuModel>(
          GpuModel::Scene{trace_, options_, agents_, tracks_, kernels_, *scene.ids, pids_}, packets_);
    processes_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kProcess), 1)));
    track_facts_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kTrack), 1)));
  }

  Status begin() {
    TACHO_TRY(write_head());
    if (!host_.empty()) {
      std::string info;
      add_text(info, system_machine_name, host_);
      packets_.fact(packet_system_info, info);
    }
    if (gpu_ != nullptr) TACHO_TRY(gpu_->describe());
    for (int64_t shape = 1; shape < trace_.rows(Table::kAllocationShape); ++shape)
      calls_allocate_ |= trace_.cell(Table::kAllocationShape, shape, column::AllocationShape::level) ==
                         static_cast<int64_t>(event::AllocationLevel::kRuntime);
    return read_launch_stacks();
  }
  void finish() {
    close_samples(std::numeric_limits<int64_t>::max());
    flush_counters(std::numeric_limits<int64_t>::max());
    if (gpu_ != nullptr) gpu_->fall(std::numeric_limits<int64_t>::max());
  }

  void begin(const Happening& what) {
    const int64_t time = advance(what.start);
    if (gpu_ != nullptr && GpuModel::takes(what.table)) {
      work(what, time);
    } else {
      more_.clear();
      const std::string_view body = describe(what);
      const bool flow = has_flow(what);
      packets_.slice_begin(time, lane(what.lane), body, more_.bytes(), flow, flow_id(what));
    }
    begin_counts(what, time);
  }

  void end(const Happening& what, int64_t end) {
    const int64_t time = advance(end);
    if (gpu_ == nullptr || !GpuModel::takes(what.table)) packets_.slice_end(time, lane(what.lane));
    if (counts_bytes(what)) copy_bytes(what, time, -what.cell<column::Copy::bytes>());
  }

  void point(const Happening& what) {
    switch (what.table) {
      case Table::kReading:
        return reading(what);
      case Table::kCounterValue:
        return counter_value(what);
      case Table::kAllocation:
        return allocation(what);
      case Table::kSample:
        return sample(what);
      default:
        break;
    }
    const int64_t time = advance(what.start);
    if (gpu_ != nullptr && GpuModel::takes(what.table)) return work(what, time);
    more_.clear();
    const std::string_view body = describe(what);
    const bool flow = has_flow(what);
    packets_.instant(time, lane(what.lane), body, more_.bytes(), flow, flow_id(what));
  }

 private:
  int64_t pid(int64_t process) const { return pids_[static_cast<size_t>(process)]; }

  // The track of a lane, described before its first event.
  uint64_t lane(uint32_t number) {
    if (lanes_.size() <= number) lanes_.resize(number + 1);
    uint64_t& uuid = lanes_[number];
    if (uuid == 0) open_lane(number, uuid);
    return uuid;
  }

  void open_lane(uint32_t number, uint64_t& uuid) {
    const Lane& lane = timeline_.lane(number);
    const int64_t process = tracks_.process(lane.track);
    const uint64_t parent = process_track(process);
    const std::string name = options_.rocprof_sys ? rocprof_sys_track(lane.track) : tracks_.name(lane.track);
    const int64_t tid = tracks_.own_tid(lane.track);
    uuid = packets_.new_track();
    if (tid > 0 && tid <= 0x7fffffff && lane.index == 0) {
      packets_.thread(uuid, pid(process), tid, name);
    } else {
      packets_.track(uuid, parent, name);
    }
  }

  void begin_counts(const Happening& what, int64_t time) {
    if (counts_bytes(what)) copy_bytes(what, time, what.cell<column::Copy::bytes>());
    if (what.table == Table::kDispatch) {
      auto& facts = track_facts_[static_cast<size_t>(what.track)];
      facts.last_start = what.start;
      facts.last_end = what.end;
    }
  }

  // A kernel, copy or fill in Perfetto's model of GPUs.
  void work(const Happening& what, int64_t time) {
    std::string_view renamed;
    if (what.table == Table::kDispatch && launches_ != nullptr)
      if (const int64_t label = label_around(what); label != 0) renamed = trace_.string(label);
    gpu_->work(what, time, timeline_.track_of(what.track), renamed);
  }

  // The name (row of a string) of the marker around the launch of a kernel, for --kernel-rename; 0 = none.
  int64_t label_around(const Happening& what) {
    const Launch* const launch = launches_->find(tracks_.process(what.track), what.correlation, what.start);
    return launch == nullptr || launch->label == 0 ? 0 : trace_.cell(Table::kLabel, launch->label, column::Label::name);
  }

  // In the model of GPUs an arrow leads from a call to work by the work's id, which becomes part of more_, and to other
  // slices as without it.
  bool has_flow(const Happening& what) {
    if (what.correlation == 0) return false;
    if (gpu_ == nullptr || what.table != Table::kApi) return true;
    const int64_t process = tracks_.process(what.track);
    submissions_.clear();
    gpu_->ids().each(process, what.correlation,
                     [&](uint64_t id) { add_number(submissions_, gpu_correlation_submissions, id); });
    if (!submissions_.empty()) more_.add_message(event_gpu_correlation, submissions_);
    return gpu_->ids().has_others(process, what.correlation);
  }

  struct TrackFacts {
    bool described = false;
    std::string annotations;                             // agent, queue, stream
    uint64_t counter = 0;                                // readings
    double scale = 1;                                    // from a reading to its value in the file
    int64_t last_start = kUnknown, last_end = kUnknown;  // of the newest dispatch
  };
  struct Zero {
    int64_t time;
    uint64_t track;
    bool operator<(const Zero& other) const { return time > other.time; }  // earliest on top
  };

  Status write_head() {
    const auto [first, last] = trace_.time_range();
    static_cast<void>(last);
    TACHO_ASSIGN(const auto realtime, OutputClock::make(trace_, OutputClock::Clock::kRealtime));
    TACHO_ASSIGN(const auto monotonic, OutputClock::make(trace_, OutputClock::Clock::kMonotonic));
    const auto values = [&](int64_t raw) {
      Packets::ClockValues at{clock_(raw), -1, -1, -1};
      if (clock_.known()) {
        at.raw = raw;
        if (realtime.known()) at.realtime = realtime(raw);
        if (monotonic.known()) at.monotonic = monotonic(raw);
      }
      return at;
    };
    packets_.begin(values(first));
    if (clock_.known()) {
      TACHO_ASSIGN(const auto moments, clock_moments(trace_));
      const size_t step = moments.size() / 1000 + 1;
      for (size_t i = 0; i < moments.size(); i += step)
        if (moments[i].raw > first) packets_.clock_snapshot(values(moments[i].raw));
    }
    return {};
  }

  uint64_t process_track(int64_t process) {
    if (process == 0) return 0;  // the machine's: no process group
    uint64_t& uuid = processes_[static_cast<size_t>(process)];
    if (uuid == 0) {
      uuid = packets_.new_track();
      const std::string name = tracks_.process_name(process);
      std::vector<std::string> labels;
      if (gpu_ != nullptr) {
        const int64_t rank = trace_.cell(Table::kProcess, process, column::Process::rank);
        const int64_t run = trace_.cell(Table::kProcess, process, column::Process::run);
        if (rank != kUnknown) labels.push_back(fmt::format("rank {}", rank));
        if (name.ends_with(fmt::format(" run {}", run))) labels.push_back(fmt::format("run {}", run));
      }
      packets_.process(uuid, pid(process), name, trace_.text(Table::kProcess, process, column::Process::command),
                       labels);
    }
    return uuid;
  }

  // The file's time for a moment of the trace. First writes the counters that are due before it.
  int64_t advance(int64_t raw) {
    if (!counters_.empty() || !zeros_.empty()) flush_counters(raw);
    if (raw >= samples_close_) close_samples(raw);
    const int64_t time = clock_(raw);
    if (gpu_ != nullptr && gpu_->next_fall() < time) gpu_->fall(time);
    return time;
  }

  static uint64_t flow_id_of(int64_t process, int64_t correlation) {
    // Unique over all processes, although a correlation is unique only within its own.
    return static_cast<uint64_t>(correlation) ^ static_cast<uint64_t>(process) * 0x9e3779b97f4a7c15ull;
  }
  uint64_t flow_id(const Happening& what) const { return flow_id_of(tracks_.process(what.track), what.correlation); }

  uint32_t key(std::string_view name) { return packets_.intern(interned_annotation_names, name); }
  uint32_t category(std::string_view name) { return packets_.intern(interned_categories, name); }
  // Interned by the row of its string; writes names beyond the limit in full.
  void set_name(EventBody& body, int64_t string, std::string_view text) {
    int64_t& known = name_of_string_.of(string);
    if (known == 0) known = packets_.intern_fresh(interned_event_names, text);
    body.name(static_cast<uint32_t>(known));
  }

  uint32_t kernel_name(int64_t string, int64_t kernel) {
    int64_t& known = kernel_name_.of(string);
    if (known == 0) known = packets_.intern_fresh(interned_event_names, kernels_.name(kernel));
    return static_cast<uint32_t>(known);
  }

  // Category, name and constant annotations of an event; more_ gets what differs from row to row.
  std::string_view describe(const Happening& what) {
    switch (what.table) {
      case Table::kDispatch:
        return describe_dispatch(what);
      case Table::kApi: {
        if (what.correlation != 0) more_.add_uint(key("corr_id"), static_cast<uint64_t>(what.correlation));
        if (const int64_t result = what.cell<column::Api::result>(); result != 0 && result != kUnknown)
          more_.add_int(key("result"), result);
        arguments(what.cell<column::Api::arguments>());
        if (!launch_stacks_.empty()) python_stack(what);
        unfinished(what);
        return remembered(what, [&](EventBody& body) {
          const auto domain =
              event::from_cell<event::Domain>(trace_.cell(Table::kFunction, what.dim, column::Function::domain));
          const int64_t name = trace_.cell(Table::kFunction, what.dim, column::Function::name);
          body.category(api_category(domain));
          set_name(body, name, trace_.string(name));
        });
      }
      case Table::kCopy:
        known_int("copy_bytes", what.cell<column::Copy::bytes>());
        arguments(what.cell<column::Copy::arguments>());
        more_.add_uint(key("corr_id"), static_cast<uint64_t>(what.correlation));
        return remembered(what, [&](EventBody& body) {
          const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, what.dim, at); };
          body.category(category(options_.rocprof_sys ? "rocm_memory_copy" : "memory_copy"));
          body.name(packets_.intern(interned_event_names, copy_direction_name(cell(column::CopyShape::direction))));
          const auto agent = [&](int64_t device) {
            const auto [word, number] = agents_.label_parts(device, options_.agent_index);
            return fmt::format("{}-{}", word, number);
          };
          body.add_string(key("src_agent"), agent(cell(column::CopyShape::source_device)));
          body.add_string(key("dst_agent"), agent(cell(column::CopyShape::target_device)));
        });
      case Table::kFill:
        known_int("fill_bytes", what.cell<column::Fill::bytes>());
        more_.add_uint(key("corr_id"), static_cast<uint64_t>(what.correlation));
        return remembered(what, [&](EventBody& body) {
          body.category(category(options_.rocprof_sys ? "rocm_memory_copy" : "memory_fill"));
          body.name(packets_.intern(interned_event_names, "MEMORY_FILL"));
        });
      case Table::kMarker:
        return describe_marker(what);
      case Table::kSync:
        unfinished(what);
        return remembered(what, [&](EventBody& body) {
          body.category(category("synchronization"));
          const int64_t kind = trace_.cell(Table::kSyncShape, what.dim, column::SyncShape::kind);
          body.name(
              packets_.intern(interned_event_names,
                              keep(fmt::format("wait for {}", event::to_string(static_cast<event::SyncKind>(kind))))));
        });
      case Table::kOverhead:
        unfinished(what);
        return remembered(what, [&](EventBody& body) {
          body.category(category("overhead"));
          const int64_t name = trace_.cell(Table::kOverheadShape, what.dim, column::OverheadShape::name);
          const int64_t kind = trace_.cell(Table::kOverheadShape, what.dim, column::OverheadShape::kind);
          if (name != 0) {
            set_name(body, name, trace_.string(name));
          } else {
            body.name(packets_.intern(interned_event_names, event::to_string(static_cast<event::OverheadKind>(kind))));
          }
        });
      default: {
        unfinished(what);
        what.each_own([&](const event::Column& column, int64_t cell) { annotate(more_, column, cell); });
        return remembered(what, [&](EventBody& body) {
          const event::TableInfo& dimension = event::table_info(dimension_of(what.table));
          body.category(category(event::table_info(what.table).name));
          body.name(packets_.intern(interned_event_names, name_of_event(trace_, what.table, what.dim)));
          for (size_t i = 0; i < dimension.columns.size(); ++i)
            annotate(body, dimension.columns[i], trace_.cell(dimension.table, what.dim, static_cast<int>(i)));
        });
      }
    }
  }

  // An annotation of a table without a special rule; nothing for unknown values and references.
  void annotate(EventBody& body, const event::Column& column, int64_t cell) {
    if (const std::string text = cell_text(trace_, column, cell); !text.empty())
      body.add_string(key(column.name), text);
  }

  void unfinished(const Happening& what) {
    if (what.end == kUnknown) more_.add_bool(key("open_at_exit"), true);
  }

  // The encoded body of a dimension row; `make` encodes it once.
  template <typename Make>
  std::string_view remembered(const Happening& what, Make make) {
    auto& bodies = bodies_[static_cast<size_t>(what.table)];
    if (what.dim < 0 || what.dim >= kMostRemembered) {
      scratch_.clear();
      make(scratch_);
      return scratch_.bytes();
    }
    const auto at = static_cast<size_t>(what.dim);
    if (bodies.size() <= at) bodies.resize(at + 1);
    if (bodies[at].empty()) {
      scratch_.clear();
      make(scratch_);
      bodies[at] = scratch_.bytes();
    }
    return bodies[at];
  }

  std::string_view describe_marker(const Happening& what) {
    const auto cell = [&](int at) { return trace_.cell(Table::kLabel, what.dim, at); };
    unfinished(what);
    const auto payload = static_cast<event::PayloadKind>(cell(column::Label::payload));
    const int64_t value = what.cell<column::Marker::payload>();
    if (payload == event::PayloadKind::kInteger) more_.add_int(key("payload"), value);
    if (payload == event::PayloadKind::kDouble) more_.add_double(key("payload"), std::bit_cast<double>(value));
    if (const int64_t fields = what.cell<column::Marker::fields>(); fields != 0)
      more_.add_string(key("fields"), trace_.string(fields));
    return remembered(what, [&](EventBody& body) {
      body.category(category(options_.rocprof_sys ? "rocm_marker_api" : "marker_api"));
      const std::string_view text = trace_.string(cell(column::Label::name));
      if (what.dim < kMostRemembered) {
        set_name(body, cell(column::Label::name), text);
      } else {
        body.name(text);
      }
      if (cell(column::Label::domain) != 0) body.add_string(key("domain"), trace_.string(cell(column::Label::domain)));
      if (cell(column::Label::category) != 0)
        body.add_string(key("category"), trace_.string(cell(column::Label::category)));
    });
  }

  void known_int(std::string_view name, int64_t value) {
    if (value != kUnknown) more_.add_int(key(name), value);
  }
  // Arguments of a call, kernel or copy, if recorded.
  void arguments(int64_t string) {
    if (string != 0) more_.add_string(key("arguments"), trace_.string(string));
  }

  std::string_view describe_dispatch(const Happening& what) {
    if (what.correlation != 0) more_.add_uint(key("corr_id"), static_cast<uint64_t>(what.correlation));
    if (const int64_t id = dispatch_id(what.cell<column::Dispatch::ordinal>()); id != kUnknown)
      more_.add_uint(key("dispatch_id"), static_cast<uint64_t>(id));
    if (const int64_t node = what.cell<column::Dispatch::graph_node>(); node != 0)
      more_.add_uint(key("graph_node"), static_cast<uint64_t>(node));
    arguments(what.cell<column::Dispatch::arguments>());
    if (what.end == kUnknown) more_.add_bool(key("end_not_recorded"), true);
    TrackFacts& facts = track_facts_[static_cast<size_t>(what.track)];
    if (!facts.described) describe_track(what.track, facts);
    more_.add_bytes(facts.annotations);
    const std::string_view body = remembered(what, [&](EventBody& made) {
      made.category(category(options_.rocprof_sys ? "rocm_kernel_dispatch" : "kernel_dispatch"));
      const int64_t name = trace_.cell(Table::kKernel, what.dim, column::Kernel::name);
      if (launches_ == nullptr) made.name(kernel_name(name, what.dim));
      shape_annotations(made, what.dim);
    });
    if (launches_ != nullptr) {
      // --kernel-rename: the name depends on the marker around the launch.
      if (const int64_t string = label_around(what); string != 0) {
        set_name(more_, string, trace_.string(string));
      } else {
        more_.name(kernel_name(trace_.cell(Table::kKernel, what.dim, column::Kernel::name), what.dim));
      }
    }
    return body;
  }

  void shape_annotations(EventBody& body, int64_t kernel) {
    const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
    body.add_uint(key("kernel_id"), static_cast<uint64_t>(kernels_.id(kernel)));
    const auto number = [&](const char* name, int64_t value) {
      if (value != kUnknown) body.add_int(key(name), value);
    };
    number("Scratch_Size", cell(column::Kernel::private_bytes));
    const int64_t fixed = cell(column::Kernel::shared_static), dynamic = cell(column::Kernel::shared_dynamic);
    if (fixed != kUnknown || dynamic != kUnknown)
      number("LDS_Block_Size", (fixed == kUnknown ? 0 : fixed) + (dynamic == kUnknown ? 0 : dynamic));
    number("VGPR_Count", cell(column::Kernel::registers));
    number("Accum_VGPR_Count", cell(column::Kernel::accum_registers));
    number("SGPR_Count", cell(column::Kernel::scalar_registers));
    const auto extent = [&](const char* name, const char* shape, int x, int y, int z) {
      const int64_t a = cell(x), b = cell(y), c = cell(z);
      if (a == kUnknown || b == kUnknown || c == kUnknown) return;
      int64_t product = 0;
      if (!__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product))
        number(name, product);
      body.add_string(key(shape), fmt::format("({},{},{})", a, b, c));
    };
    extent("workgroup_size", "workgroup", column::Kernel::group_x, column::Kernel::group_y, column::Kernel::group_z);
    extent("grid_size", "grid", column::Kernel::grid_x, column::Kernel::grid_y, column::Kernel::grid_z);
    if (cell(column::Kernel::graph) != 0) number("graph", cell(column::Kernel::graph));
  }

  void describe_track(int64_t track, TrackFacts& facts) {
    facts.described = true;
    const int64_t device = trace_.cell(Table::kTrack, track, column::Track::device);
    const auto [word, number] = agents_.label_parts(device, options_.agent_index);
    EventBody body;
    body.add_interned(key("agent"),
                      packets_.intern(interned_annotation_strings, keep(fmt::format("{}-{}", word, number))));
    body.add_interned(key("agent_type"),
                      packets_.intern(interned_annotation_strings, type_word(agents_.of(device).kind)));
    if (tracks_.queue(track) != kUnknown) body.add_uint(key("queue"), static_cast<uint64_t>(tracks_.queue(track)));
    if (tracks_.stream(track) != kUnknown)
      body.add_uint(key("stream_ID"), static_cast<uint64_t>(tracks_.stream(track)));
    if (tracks_.tid(track) > 0) body.add_uint(key("tid"), static_cast<uint64_t>(tracks_.tid(track)));
    facts.annotations = body.bytes();
  }

  uint32_t api_category(event::Domain domain) {
    const std::string_view api = api_of(domain);
    if (options_.rocprof_sys && (api == "hip" || api == "hsa" || api == "rccl"))
      return category(keep(fmt::format("rocm_{}_api", api)));
    return category(keep(api.empty() ? std::string("none") : fmt::format("{}_api", api)));
  }

  // Counters

  uint64_t counter_track(uint64_t& uuid, uint64_t parent, const std::string& name, CounterUnit unit,
                         std::string_view unit_name = {}) {
    if (uuid == 0) {
      uuid = packets_.new_track();
      packets_.counter(uuid, parent, name, unit, unit_name);
    }
    return uuid;
  }

  std::string on_agent(std::string_view what, int64_t device, bool with_type) {
    const auto [word, number] = agents_.label_parts(device, options_.agent_index);
    return with_type ? fmt::format("{} {} [{}] ({})", what, word, number, type_word(agents_.of(device).kind))
                     : fmt::format("{} {} [{}]", what, word, number);
  }

  static bool counts_bytes(const Happening& what) {
    return what.table == Table::kCopy && what.end != kUnknown && what.cell<column::Copy::bytes>() != kUnknown;
  }

  struct Level {
    uint64_t track = 0;
    int64_t value = 0;
  };

  void copy_bytes(const Happening& what, int64_t time, int64_t bytes) {
    const int64_t device = trace_.cell(Table::kCopyShape, what.dim, column::CopyShape::target_device);
    const int64_t process = tracks_.process(what.track);
    Level& level = copying_[{process, device}];
    counter_track(level.track, process_track(process), on_agent("COPY BYTES to", device, true), CounterUnit::kBytes);
    level.value += bytes;
    packets_.counter_value(time, level.track, level.value);
  }

  void allocation(const Happening& what) {
    const int64_t time = advance(what.start);
    const auto cell = [&](int at) { return trace_.cell(Table::kAllocationShape, what.dim, at); };
    const int64_t process = tracks_.process(what.track);
    int64_t device = cell(column::AllocationShape::device), bytes = what.cell<column::Allocation::bytes>();
    const int64_t address = what.cell<column::Allocation::address>();
    // A segment of an allocator and the first block in it have one address: each level is a memory of its own.
    const int64_t level = cell(column::AllocationShape::level), owner = process * 4 + (level & 3);
    if (cell(column::AllocationShape::operation) == static_cast<int64_t>(event::AllocationOperation::kFree)) {
      const auto live = live_.find({owner, address});
      if (live != live_.end()) {
        device = live->second.first;
        bytes = live->second.second;
        live_.erase(live);
      }
      if (bytes == kUnknown) return;
      bytes = -bytes;
    } else {
      if (bytes == kUnknown) return;
      if (live_.size() < 1'000'000) live_[{owner, address}] = {device, bytes};
    }
    Level& sum = allocated_[{owner, device}];
    const bool reserve = level == static_cast<int64_t>(event::AllocationLevel::kSegment);
    const bool tensors = level == static_cast<int64_t>(event::AllocationLevel::kBlock) && calls_allocate_;
    counter_track(sum.track, process_track(process),
                  on_agent(reserve   ? "RESERVED BYTES on"
                           : tensors ? "TENSOR BYTES on"
                                     : "ALLOCATE BYTES on",
                           device, true),
                  CounterUnit::kBytes);
    sum.value += bytes;
    packets_.counter_value(time, sum.track, sum.value);
  }

  void reading(const Happening& what) {
    const int64_t time = advance(what.start);
    if (gpu_ != nullptr && gpu_->reads(what.track))
      return gpu_->reading(what.track, time, what.cell<column::Reading::value>().value());
    TrackFacts& facts = track_facts_[static_cast<size_t>(what.track)];
    if (facts.counter == 0) {
      const auto cell = [&](int at) { return trace_.cell(Table::kTrack, what.track, at); };
      const int64_t counter = cell(column::Track::counter);
      std::string name(trace_.string(cell(column::Track::name)));
      if (name.empty()) name = trace_.text(Table::kCounter, counter, column::Counter::name);
      if (name.empty()) name = fmt::format("counter {}", counter);
      const std::string_view unit = trace_.text(Table::kCounter, counter, column::Counter::unit);
      if (cell(column::Track::device) != 0) name = on_agent(name, cell(column::Track::device), false);
      std::string_view shown = unit;
      if (options_.rocprof_sys) {
        name += " (S)";
        // rocprof-sys's own units: megabytes, seconds, watts.
        if (unit == "B") {
          shown = name.starts_with("GPU ") ? "megabytes" : "MB";
          facts.scale = 1e-6;
        } else if (unit == "s") {
          shown = "sec";
        } else if (unit == "W") {
          shown = "watts";
        }
      } else if (!unit.empty()) {
        name += fmt::format(" ({})", unit);  // v46 shows no units
      }
      counter_track(facts.counter, process_track(cell(column::Track::process)), name,
                    shown == "B" ? CounterUnit::kBytes : CounterUnit::kNone, shown);
    }
    packets_.counter_value(time, facts.counter, what.cell<column::Reading::value>().value() * facts.scale);
  }

  // Sums up the instances of a dispatch's counter. Writes the sums once the sweep has passed their moment, with a zero
  // at the dispatch's end.
  void counter_value(const Happening& what) {
    if (!counters_.empty() && (counters_.front().start != what.start)) flush_counters(what.start);
    const int64_t ordinal = what.cell<column::CounterValue::ordinal>();
    auto of = std::find_if(counters_.begin(), counters_.end(),
                           [&](const Counted& one) { return one.track == what.track && one.ordinal == ordinal; });
    if (of == counters_.end()) of = counters_.insert(of, {what.start, what.track, ordinal, {}});
    of->sums.add(what.dim, what.cell<column::CounterValue::value>().value());
  }

  void flush_counters(int64_t until) {
    // until == a counter's own start: more of its instances may come.
    if (!counters_.empty() && counters_.front().start < until) {
      const auto due = std::move(counters_);
      counters_.clear();
      flush_zeros(due.front().start);
      for (const Counted& counted : due) {
        const int64_t device = trace_.cell(Table::kTrack, counted.track, column::Track::device);
        const int64_t process = tracks_.process(counted.track);
        const TrackFacts& facts = track_facts_[static_cast<size_t>(counted.track)];
        if (gpu_ != nullptr) {
          const bool known = facts.last_start == counted.start && facts.last_end != kUnknown;
          gpu_->kernel_counters(counted.track, clock_(counted.start), known ? clock_(facts.last_end) : kUnknown,
                                counted.sums.values());
          continue;
        }
        for (const auto& [counter, sum] : counted.sums.values()) {
          uint64_t& uuid = counter_tracks_[{process * 65537 + device, counter}];
          counter_track(uuid, process_track(process),
                        fmt::format("{} PMC {}", on_agent("", device, false).substr(1),
                                    trace_.text(Table::kCounter, counter, column::Counter::name)),
                        CounterUnit::kNone, trace_.text(Table::kCounter, counter, column::Counter::unit));
          packets_.counter_value(clock_(counted.start), uuid, sum);
          if (facts.last_start == counted.start && facts.last_end != kUnknown) zeros_.push({facts.last_end, uuid});
        }
      }
    }
    flush_zeros(until);
  }

  void flush_zeros(int64_t until) {
    while (!zeros_.empty() && zeros_.top().time <= until) {
      packets_.counter_value(clock_(zeros_.top().time), zeros_.top().track, 0.0);
      zeros_.pop();
    }
  }

  // Call stacks

  void sample(const Happening& what) {
    if (what.end == what.start) return;  // taken at a launch: an annotation of the call
    const int64_t time = advance(what.start);
    if (options_.rocprof_sys) return sample_slices(what, time);
    const int64_t process = tracks_.process(what.track);
    process_track(process);
    const uint32_t stack = callstack(what.dim);
    const int64_t tid = tracks_.tid(what.track);
    packets_.sample(time, pid(process), tid > 0 ? tid : pid(process), stack);
  }

  // rocprof-sys draws the frames of a sample as nested slices, outermost first, for the time that the sample stands
  // for. Frames that are also in the next sample continue.
  void sample_slices(const Happening& what, int64_t time) {
    SampleLine& line = sample_lines_[what.track];
    if (line.uuid == 0) {
      line.uuid = packets_.new_track();
      const int64_t thread = trace_.cell(Table::kTrack, what.track, column::Track::thread);
      packets_.track(line.uuid, process_track(tracks_.process(what.track)),
                     fmt::format("Thread {} (S) {}", thread_index(thread), tracks_.tid(what.track)));
    }
    std::vector<int64_t>& frames = frames_scratch_;
    frames.clear();
    for (int64_t row = what.dim; row > 0 && frames.size() < 512;
         row = trace_.cell(Table::kStack, row, column::Stack::parent))
      frames.push_back(trace_.cell(Table::kStack, row, column::Stack::frame));
    std::reverse(frames.begin(), frames.end());
    size_t same = 0;
    while (same < frames.size() && same < line.open.size() && same_function(frames[same], line.open[same])) ++same;
    const bool fresh = line.open.empty() && !line.outer;
    while (line.open.size() > same) {
      packets_.slice_end(time, line.uuid);
      line.open.pop_back();
    }
    if (fresh) {
      scratch_.clear();
      scratch_.category(category("timer_sampling"));
      scratch_.name(packets_.intern(interned_event_names, "samples [rocprof-sys]"));
      packets_.slice_begin(time, line.uuid, scratch_.bytes(), {}, false, 0);
      line.outer = true;
    }
    for (size_t i = same; i < frames.size(); ++i) {
      packets_.slice_begin(time, line.uuid, frame_slice(frames[i]), {}, false, 0);
      line.open.push_back(frames[i]);
    }
    // A little longer than the period: timers are inexact, and a frame that continues is one slice.
    line.until = what.end + (what.end - what.start) / 4;
    samples_close_ = std::min(samples_close_, line.until);
  }

  void close_samples(int64_t until) {
    if (until < samples_close_) return;
    samples_close_ = std::numeric_limits<int64_t>::max();
    std::vector<SampleLine*> due;
    for (auto& [track, line] : sample_lines_) {
      if (line.until <= until && line.outer) {
        due.push_back(&line);
      } else if (line.outer) {
        samples_close_ = std::min(samples_close_, line.until);
      }
    }
    std::sort(due.begin(), due.end(), [](const SampleLine* a, const SampleLine* b) { return a->until < b->until; });
    for (SampleLine* line : due) {
      for (size_t i = 0; i <= line->open.size(); ++i) packets_.slice_end(clock_(line->until), line->uuid);
      line->open.clear();
      line->outer = false;
    }
  }

  bool same_function(int64_t a, int64_t b) const {
    const auto cell = [&](int64_t row, int at) { return trace_.cell(Table::kFrame, row, at); };
    if (a == b) return true;
    const int64_t function = cell(a, column::Frame::function);
    return function != 0 && function == cell(b, column::Frame::function) &&
           cell(a, column::Frame::kind) == cell(b, column::Frame::kind) &&
           cell(a, column::Frame::module) == cell(b, column::Frame::module) &&
           (cell(a, column::Frame::kind) != static_cast<int64_t>(event::FrameKind::kPython) ||
            cell(a, column::Frame::file) == cell(b, column::Frame::file));
  }

  const std::string& frame_slice(int64_t row) {
    const auto [at, fresh] = frame_slices_.try_emplace(row);
    if (!fresh) return at->second;
    const auto cell = [&](int index) { return trace_.cell(Table::kFrame, row, index); };
    const int64_t address = cell(column::Frame::address), line = cell(column::Frame::line);
    const std::string_view module = trace_.string(cell(column::Frame::module)),
                           file = trace_.string(cell(column::Frame::file));
    std::string name(trace_.string(cell(column::Frame::function)));
    if (name.empty())
      name = module.empty() ? fmt::format("{:#x}", address) : fmt::format("[{}]", module.substr(module.rfind('/') + 1));
    scratch_.clear();
    scratch_.category(category("timer_sampling"));
    scratch_.name(packets_.intern(interned_event_names, keep(std::move(name))));
    if (!file.empty()) {
      scratch_.add_string(key("file"), file);
      if (line > 0) scratch_.add_string(key("lineinfo"), fmt::format("{}:{}", file, line));
    } else if (!module.empty()) {
      scratch_.add_string(key("file"), module);
    }
    if (address != 0) scratch_.add_string(key("line_address"), fmt::format("{:#x}", address));
    return at->second = scratch_.bytes();
  }

  // Python stacks taken at calls (sample rows without duration), by the call's correlation.
  Status read_launch_stacks() {
    if (!options_.annotations || !options_.wants(Table::kApi)) return {};
    using S = column::Sample;
    Status status;
    for (const auto& samples : trace::chunks<S::track, S::duration, S::dim, S::correlation>(trace_, status))
      for (size_t i = 0; i < samples.size(); ++i)
        if (samples.duration[i] == 0 && samples.correlation[i] != 0 && launch_stacks_.size() < 2'000'000 &&
            pid(tracks_.process(samples.track[i])) != 0)
          launch_stacks_[{tracks_.process(samples.track[i]), samples.correlation[i]}] = samples.dim[i];
    return status;
  }

  // "outer (a.py:3) > inner (b.py:7)": the Python line that made a call.
  void python_stack(const Happening& what) {
    const auto found = launch_stacks_.find({tracks_.process(what.track), what.correlation});
    if (found == launch_stacks_.end()) return;
    const auto [at, fresh] = python_texts_.try_emplace(found->second, 0);
    if (fresh) {
      std::string text;
      for (int64_t row = found->second; row > 0; row = trace_.cell(Table::kStack, row, column::Stack::parent)) {
        const int64_t frame = trace_.cell(Table::kStack, row, column::Stack::frame);
        const std::string_view file = trace_.text(Table::kFrame, frame, column::Frame::file);
        const int64_t line = trace_.cell(Table::kFrame, frame, column::Frame::line);
        std::string one = fmt::format("{} ({}{})", trace_.text(Table::kFrame, frame, column::Frame::function),
                                      file.substr(file.rfind('/') + 1), line > 0 ? fmt::format(":{}", line) : "");
        text = text.empty() ? std::move(one) : one + " > " + text;
      }
      at->second = packets_.intern(interned_annotation_strings, keep(std::move(text)));
    }
    more_.add_interned(key("python"), at->second);
  }

  int64_t thread_index(int64_t thread) {
    if (threads_ == nullptr) threads_ = std::make_unique<Threads>(trace_);
    return threads_->index(thread);
  }

  // Track names as in rocprof-sys.
  std::string rocprof_sys_track(int64_t track) {
    const auto cell = [&](int at) { return trace_.cell(Table::kTrack, track, at); };
    switch (static_cast<event::TrackKind>(cell(column::Track::kind))) {
      case event::TrackKind::kThread: {
        const int64_t index = thread_index(cell(column::Track::thread));
        return index > 0 ? fmt::format("Thread {}", index) : tracks_.name(track);
      }
      case event::TrackKind::kQueue:
        if (tracks_.stream(track) != kUnknown && !options_.group_by_queue)
          return fmt::format("HIP Activity Stream {}", tracks_.stream(track));
        return fmt::format("GPU Kernel Dispatch [{}] Queue {}",
                           agents_.label_parts(cell(column::Track::device), options_.agent_index).second,
                           tracks_.queue(track));
      default:
        return tracks_.name(track);
    }
  }

  uint32_t callstack(int64_t stack) {
    const auto [at, fresh] = callstacks_.try_emplace(stack, static_cast<uint32_t>(callstacks_.size() + 1));
    if (!fresh) return at->second;
    const uint32_t iid = at->second;
    std::vector<uint32_t> frames;
    for (int64_t row = stack; row > 0 && frames.size() < 1024;
         row = trace_.cell(Table::kStack, row, column::Stack::parent))
      frames.push_back(frame(trace_.cell(Table::kStack, row, column::Stack::frame)));
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint32(callstack_iid, iid);
    for (auto outer = frames.rbegin(); outer != frames.rend(); ++outer) out.add_uint64(callstack_frames, *outer);
    packets_.intern_message(interned_callstacks, bytes);
    return iid;
  }

  uint32_t frame(int64_t row) {
    const auto [at, fresh] = frames_.try_emplace(row, static_cast<uint32_t>(frames_.size() + 1));
    if (!fresh) return at->second;
    const auto cell = [&](int index) { return trace_.cell(Table::kFrame, row, index); };
    const int64_t address = cell(column::Frame::address);
    std::string function(trace_.string(cell(column::Frame::function)));
    if (function.empty()) function = address != 0 ? fmt::format("{:#x}", address) : "?";
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint32(frame_iid, at->second);
    out.add_uint32(frame_function, packets_.intern(interned_functions, keep(std::move(function))));
    out.add_uint32(frame_mapping, mapping(cell(column::Frame::module), cell(column::Frame::file)));
    // This and the name distinguish the frames of a mapping; interpreted frames have no address.
    out.add_uint64(frame_rel_pc, address != 0 ? static_cast<uint64_t>(address) : static_cast<uint64_t>(row));
    packets_.intern_message(interned_frames, bytes);
    return at->second;
  }

  // v46 drops stacks that have a frame without a mapping.
  uint32_t mapping(int64_t module, int64_t file) {
    const int64_t string = module != 0 ? module : file;
    const auto [at, fresh] = mappings_.try_emplace(string, static_cast<uint32_t>(mappings_.size() + 1));
    if (!fresh) return at->second;
    const std::string_view path = string != 0 ? trace_.string(string) : "[unknown]";
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_uint32(mapping_iid, at->second);
    out.add_uint32(mapping_path, packets_.intern(interned_mapping_paths, path));
    packets_.intern_message(interned_mappings, bytes);
    return at->second;
  }

  // Keeps a text made here alive as long as the interning index.
  std::string_view keep(std::string text) {
    const auto found = kept_.find(text);
    return found != kept_.end() ? *found : *kept_.insert(std::move(text)).first;
  }

  struct PairHash {
    size_t operator()(const std::pair<int64_t, int64_t>& pair) const {
      return static_cast<size_t>(static_cast<uint64_t>(pair.first) * 0x9e3779b97f4a7c15ull ^
                                 static_cast<uint64_t>(pair.second));
    }
  };
  template <typename T>
  using PairMap = std::unordered_map<std::pair<int64_t, int64_t>, T, PairHash>;
  struct SampleLine {
    uint64_t uuid = 0;
    std::vector<int64_t> open;  // frames, outermost first
    bool outer = false;         // the slice around them is open
    int64_t until = 0;
  };
  struct Counted {  // the counters of one dispatch
    int64_t start, track, ordinal;
    walk::CounterSums sums;
  };

  const trace::Trace& trace_;
  const ExportOptions& options_;
  Packets packets_;
  OutputClock& clock_;
  const Agents& agents_;
  const Tracks& tracks_;
  KernelNames& kernels_;
  const Timeline& timeline_;
  Launches* launches_;
  std::vector<int64_t> pids_;
  std::string host_;
  std::unique_ptr<GpuModel> gpu_;
  std::string submissions_;
  std::vector<uint64_t> processes_, lanes_;
  std::vector<TrackFacts> track_facts_;
  std::vector<std::string> bodies_[event::kFactTables];
  EventBody more_, scratch_;
  RowNumbers name_of_string_{trace_.rows(Table::kString)}, kernel_name_{trace_.rows(Table::kString)};
  std::unordered_map<int64_t, uint32_t> callstacks_, frames_, mappings_;
  PairMap<Level> copying_, allocated_;
  bool calls_allocate_ = false;                // the trace has memory that calls of the runtime allocated
  PairMap<std::pair<int64_t, int64_t>> live_;  // (process, address) -> (device, bytes)
  PairMap<uint64_t> counter_tracks_;
  std::unordered_map<int64_t, SampleLine> sample_lines_;         // by track
  int64_t samples_close_ = std::numeric_limits<int64_t>::max();  // the earliest `until`
  std::vector<int64_t> frames_scratch_;
  std::unordered_map<int64_t, std::string> frame_slices_;
  PairMap<int64_t> launch_stacks_;  // (process, correlation) -> stack
  std::unordered_map<int64_t, uint32_t> python_texts_;
  std::unique_ptr<Threads> threads_;
  std::vector<Counted> counters_;
  std::priority_queue<Zero> zeros_;
  std::unordered_set<std::string> kept_;
};

// The machines of a trace, each with packets of its own: numbers, names and clocks of one say nothing about another.
// Without the model of GPUs all of a trace is one machine.
class Machines {
 public:
  explicit Machines(Scene& scene) : scene_(scene) {
    const trace::Trace& trace = scene.trace;
    const int64_t processes = std::max<int64_t>(trace.rows(Table::kProcess), 1);
    of_process_.assign(static_cast<size_t>(processes), 0);
    std::vector<int64_t> hosts;
    for (int64_t process = 1; process < processes && scene.ids != nullptr; ++process) {
      const int64_t host = trace.cell(Table::kProcess, process, column::Process::host);
      const auto known = std::find(hosts.begin(), hosts.end(), host);
      of_process_[static_cast<size_t>(process)] = static_cast<size_t>(known - hosts.begin());
      if (known == hosts.end()) hosts.push_back(host);
    }
    const bool several = hosts.size() > 1;
    for (size_t at = 0; at < std::max<size_t>(hosts.size(), 1); ++at)
      exporters_.push_back(
          std::make_unique<Exporter>(scene, several ? static_cast<uint32_t>(at) + 1 : 0, pids_of(at, several),
                                     at < hosts.size() ? trace.string(hosts[at]) : std::string_view()));
  }

  Status run() {
    for (const auto& exporter : exporters_) TACHO_TRY(exporter->begin());
    TACHO_TRY(scene_.timeline.run(*this));
    for (const auto& exporter : exporters_) exporter->finish();
    if (scene_.launches == nullptr) return {};
    scene_.options.remark_forgotten(scene_.launches->forgotten());
    return scene_.launches->status();
  }

  // Visitor of Timeline

  bool keep_going(uint64_t done, uint64_t all) const {
    if (scene_.options.progress != nullptr) scene_.options.progress->at(done, all);
    return !scene_.file.file.failed();
  }
  void lane_opened(uint32_t /*lane*/) {}
  void begin(const Happening& what) { of(what).begin(what); }
  void end(const Happening& what, int64_t end) { of(what).end(what, end); }
  void point(const Happening& what) { of(what).point(what); }

 private:
  // The pids of a machine's processes; row 0 is on every machine, since devices that no process reported may be on any.
  // Of several machines each has its own pids: only one that two processes of a machine share needs another number.
  std::vector<int64_t> pids_of(size_t machine, bool several) const {
    std::vector<int64_t> pids(of_process_.size());
    std::set<int64_t> taken;
    for (size_t process = 0; process < pids.size(); ++process) {
      if (process != 0 && of_process_[process] != machine) continue;
      const auto row = static_cast<int64_t>(process);
      const int64_t own = scene_.trace.cell(Table::kProcess, row, column::Process::pid);
      const bool good = several && process != 0 && own > 0 && own <= 0x7fffffff && taken.insert(own).second;
      pids[process] = good ? own : scene_.tracks.pid(row);
    }
    return pids;
  }

  Exporter& of(const Happening& what) {
    if (exporters_.size() == 1) return *exporters_[0];
    const int64_t process = scene_.tracks.process(what.track);
    if (process != 0) return *exporters_[of_process_[static_cast<size_t>(process)]];
    const int64_t device = scene_.trace.cell(Table::kTrack, what.track, column::Track::device);
    return *exporters_[of_process_[static_cast<size_t>(
        scene_.trace.cell(Table::kDevice, device, column::Device::process))]];
  }

  Scene& scene_;
  std::vector<size_t> of_process_;
  std::vector<std::unique_ptr<Exporter>> exporters_;
};

}  // namespace

Status write_perfetto(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                      std::vector<std::string>& written) {
  TACHO_TRY(check_has_events(trace));
  TACHO_ASSIGN(OutputFile file, OutputFile::create(target.file, options.overwrite));
  TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kBoottime));
  Scene scene(trace, options, file, std::move(clock));
  if (options.gpu_model && !options.rocprof_sys) {
    TACHO_ASSIGN(WorkIds ids, WorkIds::make(trace, options));
    scene.ids = std::make_unique<WorkIds>(std::move(ids));
  }
  TACHO_TRY(Machines(scene).run());
  TACHO_TRY(file.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format
