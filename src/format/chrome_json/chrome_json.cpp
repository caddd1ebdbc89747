// Writes a trace as Chrome trace events (chrome_json.h).
#include "format/chrome_json/chrome_json.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/files/output_file.h"
#include "base/text/json_writer.h"
#include "format/shared/rocprof_words.h"
#include "walk/calls/launches.h"
#include "walk/names/agents.h"
#include "walk/names/names.h"
#include "walk/names/tracks.h"
#include "walk/time/clock.h"
#include "walk/timeline.h"

namespace tacho::format {

namespace column = event::column;
using event::kUnknown;
using event::Table;
using walk::Agents;
using walk::CallIndex;
using walk::cell_text;
using walk::check_has_events;
using walk::dimension_of;
using walk::Happening;
using walk::KernelNames;
using walk::Lane;
using walk::Launch;
using walk::Launches;
using walk::name_of_event;
using walk::OutputClock;
using walk::Timeline;
using walk::Tracks;

namespace {

constexpr int64_t kMostRemembered = 1 << 17;  // rows of a dimension whose text is kept ready
constexpr size_t kMostOfBeginning = 512;      // characters of an event before the text of its dimension row
constexpr int64_t kFirstLane = 1 << 23;       // thread numbers of lines without a thread: above every Linux tid

class Exporter {
 public:
  Exporter(const trace::Trace& trace, const ExportOptions& options, OutputFile& file, OutputClock boottime)
      : trace_(trace),
        options_(options),
        file_(file),
        json_(file, kCompactJson),
        clock_(std::move(boottime)),
        agents_(trace, options.process),
        tracks_(trace, agents_, options),
        kernels_(trace, options),
        timeline_(trace, options, options.group_by_queue, ~0ull),
        calls_(trace.rows(Table::kApi)),
        calls_runtime_(walk::calls_of_runtimes(trace)) {
    named_processes_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)));
    if (options.kernel_rename) launches_ = std::make_unique<Launches>(trace, Launches::Around::kRanges);
    counter_names_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  }

  Status run() {
    TACHO_TRY(write_head());
    TACHO_TRY(timeline_.run(*this));
    if (launches_ != nullptr) TACHO_TRY(launches_->status());
    options_.remark_forgotten(calls_.forgotten());
    json_.end_line().end_array().end_object().end_line();
    return {};
  }

  // Visitor of Timeline

  bool keep_going(uint64_t done, uint64_t all) const {
    if (options_.progress != nullptr) options_.progress->at(done, all);
    return !file_.failed();
  }

  void lane_opened(uint32_t number) {
    if (lanes_.size() <= number) lanes_.resize(number + 1);
    const Lane& lane = timeline_.lane(number);
    lanes_[number] = open_line(lane.track, lane.index);
  }

  void begin(const Happening& what) {
    const int64_t start = clock_(what.start);
    // An event without an end lasts to the end of the trace, as far as anybody knows.
    const int64_t end = what.end == kUnknown ? std::max(last_, start) : clock_(what.end);
    const Line& line = lanes_[what.lane];
    if (what.table == Table::kApi && what.correlation != 0 &&
        calls_runtime_[what.dim > 0 && what.dim < static_cast<int64_t>(calls_runtime_.size())
                           ? static_cast<size_t>(what.dim)
                           : 0])
      calls_.add(tracks_.process(what.track), what.correlation,
                 {.start = what.start, .track = static_cast<int32_t>(what.track)});
    begin_event("X", line, start, [&](auto& json) { json.name("dur").microseconds(end - start); });
    describe(what);
    if (what.table == Table::kDispatch || what.table == Table::kCopy || what.table == Table::kFill)
      flow(what, line, start);
  }
  void end(const Happening&, int64_t) {}

  void point(const Happening& what) {
    const int64_t time = clock_(what.start);
    if (what.table == Table::kReading || what.table == Table::kCounterValue) return counter(what, time);
    const Line& line = what.table == Table::kSample ? sample_line(what.track) : lanes_[what.lane];
    begin_event("i", line, time, [](auto&) {});
    describe(what);
  }

 private:
  struct Line {
    std::string numbers;  // "pid":1,"tid":2
  };

  Status write_head() {
    const auto [first, last] = trace_.time_range();
    base_ = clock_(first);
    last_ = clock_(last);
    TACHO_ASSIGN(const auto realtime, OutputClock::make(trace_, OutputClock::Clock::kRealtime));
    json_.begin_object().name("displayTimeUnit").text("ns").member("schemaVersion", 1);
    if (realtime.known()) json_.member("baseTimeNanoseconds", realtime(first));
    json_.name("metadata").begin_object();
    json_.member("producer", "tacho " TACHO_PROGRAM_VERSION).member("boottimeOfZeroNanoseconds", base_);
    json_.end_object().newline().name("traceEvents").begin_array();
    return {};
  }

  void meta(JsonLiteral kind, std::string_view numbers, std::string_view text) {
    json_.newline().begin_object().name("ph").text("M").name("name").text(kind).splice(numbers);
    json_.name("args").begin_object().member("name", text).end_object().end_object();
  }

  const Line& sample_line(int64_t track) {
    if (const Line* const known = line_of_thread(track)) return *known;
    const auto [line, fresh] = points_.try_emplace(track);
    if (fresh) line->second = open_line(track, 0);
    return line->second;
  }

  int64_t name_process(int64_t process) {
    const int64_t pid = tracks_.pid(process);
    if (!named_processes_[static_cast<size_t>(process)]) {
      named_processes_[static_cast<size_t>(process)] = true;
      meta("process_name", process_numbers(pid), tracks_.process_name(process));
    }
    return pid;
  }

  Line open_line(int64_t track, uint32_t index) {
    const int64_t pid = name_process(tracks_.process(track));
    int64_t tid = tracks_.own_tid(track);
    if (tid <= 0 || index != 0) tid = kFirstLane + track * 256 + index;
    // With millions of tracks, the formula exceeds 31 bits: then hands out numbers instead, from the highest down.
    if (tid > 0x7fffffff) tid = next_line_--;
    const Line line{members([&](JsonWriter& json) { json.member("pid", pid).member("tid", tid); })};
    std::string name = tracks_.name(track);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    if (index != 0) name += fmt::format(" ({})", index + 1);
    meta("thread_name", line.numbers, name);
    return line;
  }

  // Members, formatted for splice().
  template <typename Fill>
  static std::string members(Fill fill) {
    std::string out;
    JsonWriter json(out, kCompactJson);
    fill(json);
    return out;
  }
  static std::string process_numbers(int64_t pid) {
    return members([&](JsonWriter& json) { json.member("pid", pid); });
  }

  // Writes what every event has, plus what `more` adds.
  template <typename More>
  void begin_event(JsonLiteral phase, const Line& line, int64_t time, More more) {
    json_.burst(kMostOfBeginning, [&](auto& json) {
      json.newline().begin_object().name("ph").text(phase);
      if (phase.text() == "i") json.name("s").text("t");
      json.splice(line.numbers).name("ts").microseconds(time - base_);
      more(json);
    });
  }

  // Writes "cat":..,"name":..,"args":{constants ... and then what differs from row to row.
  void describe(const Happening& what) {
    json_.splice(remembered(what));
    const auto number = [&](JsonLiteral name, int64_t value) {
      if (value != kUnknown) json_.member(name, value);
    };
    const auto count = [&](JsonLiteral name, int64_t value) { json_.member(name, static_cast<uint64_t>(value)); };
    const auto arguments = [&](int64_t string) {
      if (string != 0) json_.member("arguments", trace_.string(string));
    };
    switch (what.table) {
      case Table::kDispatch:
        number("dispatch", dispatch_id(what.cell<column::Dispatch::ordinal>()));
        if (const int64_t node = what.cell<column::Dispatch::graph_node>(); node != 0) count("graph node", node);
        arguments(what.cell<column::Dispatch::arguments>());
        if (tracks_.stream(what.track) != kUnknown) count("stream", tracks_.stream(what.track));
        break;
      case Table::kCopy:
        arguments(what.cell<column::Copy::arguments>());
        number("bytes", what.cell<column::Copy::bytes>());
        break;
      case Table::kFill:
        number("bytes", what.cell<column::Fill::bytes>());
        break;
      case Table::kAllocation:
        number("bytes", what.cell<column::Allocation::bytes>());
        count("address", what.cell<column::Allocation::address>());
        break;
      case Table::kApi:
        if (const int64_t result = what.cell<column::Api::result>(); result != 0) number("result", result);
        arguments(what.cell<column::Api::arguments>());
        break;
      case Table::kMarker: {
        const int64_t payload = trace_.cell(Table::kLabel, what.dim, column::Label::payload);
        const int64_t value = what.cell<column::Marker::payload>();
        if (payload == static_cast<int64_t>(event::PayloadKind::kInteger)) json_.member("payload", value);
        if (payload == static_cast<int64_t>(event::PayloadKind::kDouble))
          json_.member("payload", std::bit_cast<double>(value));
        break;
      }
      default:
        what.each_own([&](const event::Column& column, int64_t cell) { put_cell(json_, column, cell); });
    }
    if (what.correlation != 0) count("correlation", what.correlation);
    if (what.end == kUnknown && what.table != Table::kSample && what.table != Table::kAllocation)
      json_.name("end").text("not recorded");
    json_.end_object().end_object();
  }

  // An argument of a table without a special rule; nothing for unknown values and references.
  template <typename Json>
  void put_cell(Json& json, const event::Column& column, int64_t cell) const {
    const bool text = column.type == event::Type::kString || column.type == event::Type::kEnum;
    const std::string shown = cell_text(trace_, column, cell);
    if (shown.empty()) return;
    json.key(column.name);
    if (text)
      json.value(shown);
    else
      json.ready(shown);
  }

  // The constant part of a dimension row's text.
  std::string_view remembered(const Happening& what) {
    auto& ready = ready_[static_cast<size_t>(what.table)];
    const bool renamed = what.table == Table::kDispatch && options_.kernel_rename;
    if (!renamed && what.dim >= 0 && what.dim < kMostRemembered) {
      const auto at = static_cast<size_t>(what.dim);
      if (ready.size() <= at) ready.resize(at + 1);
      if (ready[at].empty()) ready[at] = constant_part(what);
      return ready[at];
    }
    scratch_ = constant_part(what);
    return scratch_;
  }

  std::string constant_part(const Happening& what) {
    std::string category, name, args;
    JsonWriter json(args, kCompactJson);
    switch (what.table) {
      case Table::kDispatch:
        category = "kernel_dispatch";
        name = kernel_name(what);
        put_shape(json, what.dim);
        break;
      case Table::kCopy: {
        category = "memory_copy";
        const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, what.dim, at); };
        name = copy_direction_name(cell(column::CopyShape::direction));
        json.member("from", agents_.label(cell(column::CopyShape::source_device), options_.agent_index));
        json.member("to", agents_.label(cell(column::CopyShape::target_device), options_.agent_index));
        break;
      }
      case Table::kFill:
        category = "memory_fill";
        name = "MEMORY_FILL";
        break;
      case Table::kApi: {
        const std::string_view api =
            api_of(event::from_cell<event::Domain>(trace_.cell(Table::kFunction, what.dim, column::Function::domain)));
        category = api.empty() ? "none" : fmt::format("{}_api", api);
        name = trace_.text(Table::kFunction, what.dim, column::Function::name);
        break;
      }
      case Table::kMarker:
        category = "marker_api";
        name = trace_.text(Table::kLabel, what.dim, column::Label::name);
        if (const auto text = trace_.text(Table::kLabel, what.dim, column::Label::domain); !text.empty())
          json.member("domain", text);
        if (const auto text = trace_.text(Table::kLabel, what.dim, column::Label::category); !text.empty())
          json.member("category", text);
        break;
      case Table::kSync:
        category = "synchronization";
        name = fmt::format("wait for {}", event::to_string(static_cast<event::SyncKind>(
                                              trace_.cell(Table::kSyncShape, what.dim, column::SyncShape::kind))));
        break;
      case Table::kOverhead:
        category = "overhead";
        name = trace_.text(Table::kOverheadShape, what.dim, column::OverheadShape::name);
        if (name.empty())
          name = event::to_string(static_cast<event::OverheadKind>(
              trace_.cell(Table::kOverheadShape, what.dim, column::OverheadShape::kind)));
        break;
      case Table::kAllocation:
        category = "memory_allocation";
        name = trace_.cell(Table::kAllocationShape, what.dim, column::AllocationShape::operation) ==
                       static_cast<int64_t>(event::AllocationOperation::kFree)
                   ? "MEMORY_ALLOCATION_FREE"
                   : "MEMORY_ALLOCATION_ALLOCATE";
        json.member("agent",
                    agents_.label(trace_.cell(Table::kAllocationShape, what.dim, column::AllocationShape::device),
                                  options_.agent_index));
        break;
      case Table::kSample:
        category = "sample";
        name = trace_.text(Table::kFrame, trace_.cell(Table::kStack, what.dim, column::Stack::frame),
                           column::Frame::function);
        if (name.empty()) name = "?";
        json.member("stack", stack(what.dim));
        break;
      default: {
        const event::TableInfo& dimension = event::table_info(dimension_of(what.table));
        category = event::table_info(what.table).name;
        name = name_of_event(trace_, what.table, what.dim);
        for (size_t i = 0; i < dimension.columns.size(); ++i)
          put_cell(json, dimension.columns[i], trace_.cell(dimension.table, what.dim, static_cast<int>(i)));
      }
    }
    return members([&](JsonWriter& out) {
      out.member("cat", category).member("name", name).name("args").begin_object().splice(args);
    });
  }

  std::string_view kernel_name(const Happening& what) {
    if (options_.kernel_rename) {
      const Launch* const launch = launches_->find(tracks_.process(what.track), what.correlation, what.start);
      if (launch != nullptr && launch->label != 0)
        return trace_.text(Table::kLabel, launch->label, column::Label::name);
    }
    return kernels_.name(what.dim);
  }

  void put_shape(JsonWriter& json, int64_t kernel) const {
    const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
    const auto number = [&](JsonLiteral key, int at) {
      if (cell(at) != kUnknown) json.member(key, cell(at));
    };
    const auto extent = [&](JsonLiteral key, int x, int y, int z) {
      if (cell(x) == kUnknown || cell(y) == kUnknown || cell(z) == kUnknown) return;
      json.name(key).begin_array().value(cell(x)).value(cell(y)).value(cell(z)).end_array();
    };
    // Work-items, as everywhere in tacho; torch.profiler's files give workgroups.
    extent("grid items", column::Kernel::grid_x, column::Kernel::grid_y, column::Kernel::grid_z);
    extent("workgroup", column::Kernel::group_x, column::Kernel::group_y, column::Kernel::group_z);
    number("registers", column::Kernel::registers);
    number("static shared memory", column::Kernel::shared_static);
    number("dynamic shared memory", column::Kernel::shared_dynamic);
    number("private memory", column::Kernel::private_bytes);
  }

  // "inner < outer": the functions of a stack.
  std::string stack(int64_t innermost) const {
    std::string text;
    int depth = 0;
    for (int64_t row = innermost; row > 0 && depth < 128;
         row = trace_.cell(Table::kStack, row, column::Stack::parent), ++depth)
      text.append(depth == 0 ? "" : " < ")
          .append(trace_.text(Table::kFrame, trace_.cell(Table::kStack, row, column::Stack::frame),
                              column::Frame::function));
    return text;
  }

  // Draws an arrow from the call that launched it. Viewers bind both ends to the slices around these moments, so the
  // call's slice must come first in the file. It does: calls begin before the work that they cause.
  void flow(const Happening& what, const Line& line, int64_t start) {
    const Launch* const launch = calls_.find(tracks_.process(what.track), what.correlation);
    if (launch == nullptr) return;
    const auto caller = line_of_thread(launch->track);
    if (caller == nullptr) return;
    const int64_t call = clock_(launch->start);
    if (call > start) return;  // clock error; an arrow back in time would bind to other slices
    ++flows_;
    const auto arrow = [&](JsonLiteral phase, const Line& place, int64_t time, bool end) {
      json_.burst(kMostOfBeginning, [&](auto& json) {
        json.newline().begin_object().name("ph").text(phase);
        if (end) json.name("bp").text("e");
        json.name("cat").text("ac2g").name("name").text("ac2g").splice(place.numbers);
        json.name("ts").microseconds(time - base_).member("id", flows_).end_object();
      });
    };
    arrow("s", *caller, call, false);
    arrow("f", line, start, true);
  }

  const Line* line_of_thread(int64_t track) {
    const auto known = thread_lines_.find(track);
    if (known != thread_lines_.end()) return &lanes_[known->second];
    for (uint32_t number = 0; number < lanes_.size(); ++number)
      if (timeline_.lane(number).track == timeline_.track_of(track) && timeline_.lane(number).index == 0) {
        thread_lines_.emplace(track, number);
        return &lanes_[number];
      }
    return nullptr;
  }

  void counter(const Happening& what, int64_t time) {
    const double value =
        (what.table == Table::kReading ? what.cell<column::Reading::value>() : what.cell<column::CounterValue::value>())
            .value();
    if (!std::isfinite(value)) return;  // JSON cannot express it
    const int64_t pid = name_process(tracks_.process(what.track));
    std::string name;
    const int64_t device = trace_.cell(Table::kTrack, what.track, column::Track::device);
    if (what.table == Table::kReading) {
      std::string& ready = counter_names_[static_cast<size_t>(what.track)];
      if (ready.empty()) {
        const int64_t counter = trace_.cell(Table::kTrack, what.track, column::Track::counter);
        ready = trace_.text(Table::kCounter, counter, column::Counter::name);
        if (device != 0) ready += " " + agents_.label(device, options_.agent_index);
        if (const auto unit = trace_.text(Table::kCounter, counter, column::Counter::unit); !unit.empty())
          ready += fmt::format(" ({})", unit);
      }
      name = ready;
    } else {
      name = fmt::format("{} PMC {} [{}]", agents_.label(device, options_.agent_index),
                         trace_.text(Table::kCounter, what.dim, column::Counter::name),
                         what.cell<column::CounterValue::instance>());
    }
    begin_event("C", Line{process_numbers(pid)}, time, [](auto&) {});
    json_.member("name", name).name("args").begin_object().member("value", value);
    json_.end_object().end_object();
  }

  const trace::Trace& trace_;
  ExportOptions options_;
  OutputFile& file_;
  JsonFileWriter json_;
  OutputClock clock_;
  Agents agents_;
  Tracks tracks_;
  KernelNames kernels_;
  Timeline timeline_;
  CallIndex<Launch> calls_;             // where arrows start; the sweep itself fills it
  std::vector<bool> calls_runtime_;     // by row of table function
  std::unique_ptr<Launches> launches_;  // names for --kernel-rename
  std::vector<Line> lanes_;
  std::unordered_map<int64_t, Line> points_;
  std::unordered_map<int64_t, uint32_t> thread_lines_;
  std::vector<bool> named_processes_;
  std::vector<std::string> counter_names_;
  std::vector<std::string> ready_[event::kFactTables];
  std::string scratch_;
  int64_t base_ = 0, last_ = 0, flows_ = 0, next_line_ = 0x7fffffff;
};

}  // namespace

Status write_chrome_json(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                         std::vector<std::string>& written) {
  TACHO_TRY(check_has_events(trace));
  TACHO_ASSIGN(OutputFile file, OutputFile::create(target.file, options.overwrite));
  TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kBoottime));
  Exporter exporter(trace, options, file, std::move(clock));
  TACHO_TRY(exporter.run());
  TACHO_TRY(file.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format
