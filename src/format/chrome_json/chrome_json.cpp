// A trace as Chrome trace events (chrome_json.h).
#include "format/chrome_json/chrome_json.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/decimal.h"
#include "base/output_file.h"
#include "format/view/agents.h"
#include "format/view/clock.h"
#include "format/view/launches.h"
#include "format/view/names.h"
#include "format/view/timeline.h"
#include "format/view/tracks.h"
#include "report/text.h"

namespace tacho::format {

namespace column = event::column;
using event::kUnknown;
using event::Table;

namespace {

constexpr int64_t kMostRemembered = 1 << 17;  // rows of a dimension whose text is kept ready
constexpr size_t kMostReady = 24 * 1024;      // longer texts are written piecewise
constexpr int64_t kFirstLane = 1 << 23;  // thread numbers of lines that are no thread: above every Linux tid

class Exporter {
 public:
  Exporter(const trace::Trace& trace, const ExportOptions& options, OutputFile& file, ClockMap boottime)
      : trace_(trace),
        options_(options),
        file_(file),
        clock_(std::move(boottime)),
        agents_(trace, options.process),
        tracks_(trace, agents_, options),
        kernels_(trace, options),
        timeline_(trace, options, ~0ull),
        calls_(trace.rows(Table::kApi)) {
    named_processes_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)));
    if (options.kernel_rename) launches_ = std::make_unique<Launches>(trace, true);
    counter_names_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  }

  Status run() {
    TACHO_TRY(write_head());
    TACHO_TRY(timeline_.run(*this));
    if (launches_ != nullptr) TACHO_TRY(launches_->status());
    file_.write("\n]}\n");
    return {};
  }

  // ---- visitor of Timeline

  bool keep_going() const { return !file_.failed(); }

  void lane_opened(uint32_t number) {
    if (lanes_.size() <= number) lanes_.resize(number + 1);
    const Lane& lane = timeline_.lane(number);
    lanes_[number] = open_line(lane.track, lane.index);
  }

  void begin(const Happening& what) {
    const int64_t start = clock_(what.start);
    // Without an end it lasts, as far as anybody knows, to the end of the trace.
    const int64_t end = what.end == kUnknown ? std::max(last_, start) : clock_(what.end);
    const Line& line = lanes_[what.lane];
    if (what.table == Table::kApi && what.correlation != 0)
      calls_.add(tracks_.process(what.track), what.correlation, {what.track, what.start, 0});
    char* at = start_event("{\"ph\":\"X\"", line, start);
    at = append(at, ",\"dur\":");
    at = write_microseconds(at, end - start);
    file_.advance(static_cast<size_t>(at - begin_));
    describe(what);
    if (what.table == Table::kDispatch || what.table == Table::kCopy || what.table == Table::kFill)
      flow(what, line, start);
  }
  void end(const Happening&, int64_t) {}

  void point(const Happening& what) {
    const int64_t time = clock_(what.start);
    if (what.table == Table::kReading || what.table == Table::kCounterValue) return counter(what, time);
    const Line& line = what.table == Table::kSample ? sample_line(what.track) : lanes_[what.lane];
    char* at = start_event("{\"ph\":\"i\",\"s\":\"t\"", line, time);
    file_.advance(static_cast<size_t>(at - begin_));
    describe(what);
  }

 private:
  struct Line {
    std::string numbers;  // ,"pid":1,"tid":2
  };

  Status write_head() {
    const auto [first, last] = trace_.time_range();
    base_ = clock_(first);
    last_ = clock_(last);
    TACHO_ASSIGN(const auto realtime, ClockMap::make(trace_, ClockMap::Clock::kRealtime));
    std::string head = "{\"displayTimeUnit\":\"ns\",\"schemaVersion\":1,";
    if (realtime.known()) head += fmt::format("\"baseTimeNanoseconds\":{},", realtime(first));
    head += fmt::format(
        "\"metadata\":{{\"producer\":\"tacho {}\",\"boottimeOfZeroNanoseconds\":{}}},\n\"traceEvents\":[",
        TACHO_PROGRAM_VERSION, base_);
    file_.write(head);
    return {};
  }

  void meta(const char* kind, std::string_view numbers, std::string_view text) {
    file_.write(first_event_ ? "\n" : ",\n");
    first_event_ = false;
    file_.write(fmt::format("{{\"ph\":\"M\",\"name\":\"{}\"{},\"args\":{{\"name\":{}}}}}", kind, numbers,
                            report::json_quoted(text)));
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
      meta("process_name", fmt::format(",\"pid\":{}", pid), tracks_.process_name(process));
    }
    return pid;
  }

  Line open_line(int64_t track, uint32_t index) {
    const int64_t pid = name_process(tracks_.process(track));
    int64_t tid = tracks_.tid(track);
    if (tid <= 0 || index != 0) tid = kFirstLane + track * 256 + index;
    // Distinct lines may overlap in that formula only when there are millions of tracks: numbers are then
    // given out.
    if (tid > 0x7fffffff) tid = next_line_--;
    const Line line{fmt::format(",\"pid\":{},\"tid\":{}", pid, tid)};
    std::string name = tracks_.name(track);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    if (index != 0) name += fmt::format(" ({})", index + 1);
    meta("thread_name", line.numbers, name);
    return line;
  }

  static char* append(char* at, std::string_view text) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return at + text.size();
  }

  // The part that every event has; at most 256 bytes. begin_ is where it began.
  char* start_event(std::string_view head, const Line& line, int64_t time) {
    begin_ = file_.reserve(512);
    char* at = begin_;
    if (!first_event_) *at++ = ',';
    first_event_ = false;
    *at++ = '\n';
    at = append(at, head);
    at = append(at, line.numbers);
    at = append(at, ",\"ts\":");
    return write_microseconds(at, time - base_);
  }

  void write_text(std::string_view text) {
    if (text.size() > kMostReady) return file_.write(text);
    append(file_.reserve(text.size()), text);
    file_.advance(text.size());
  }
  void write_number(std::string_view before, int64_t value, bool is_unsigned = false) {
    char* const begin = file_.reserve(before.size() + kMostDigits);
    char* at = append(begin, before);
    at = is_unsigned ? write_unsigned(at, static_cast<uint64_t>(value)) : write_signed(at, value);
    file_.advance(static_cast<size_t>(at - begin));
  }

  // ,"cat":..,"name":..,"args":{constants ... and then what differs from row to row.
  void describe(const Happening& what) {
    write_text(remembered(what));
    bool first = args_empty_;
    const auto number = [&](const char* name, int64_t value, bool is_unsigned = false) {
      write_number(fmt::format("{}\"{}\":", first ? "" : ",", name), value, is_unsigned);
      first = false;
    };
    switch (what.table) {
      case Table::kDispatch:
        if (what.extra[0] != kUnknown)
          write_number(first ? "\"dispatch\":" : ",\"dispatch\":", what.extra[0] + 1), first = false;
        if (what.extra[1] != 0) number("graph node", what.extra[1], true);
        if (tracks_.stream(what.track) != kUnknown)
          write_number(first ? "\"stream\":" : ",\"stream\":", tracks_.stream(what.track), true),
              first = false;
        break;
      case Table::kCopy:
      case Table::kFill:
        write_number(first ? "\"bytes\":" : ",\"bytes\":", what.extra[0]), first = false;
        break;
      case Table::kAllocation:
        if (what.extra[0] != kUnknown) number("bytes", what.extra[0]);
        number("address", what.extra[1], true);
        break;
      case Table::kApi:
        if (what.extra[0] != 0 && what.extra[0] != kUnknown) number("result", what.extra[0]);
        break;
      case Table::kMarker: {
        const int64_t payload = trace_.cell(Table::kLabel, what.dim, column::Label::payload);
        if (payload == static_cast<int64_t>(event::PayloadKind::kInteger)) number("payload", what.extra[0]);
        if (payload == static_cast<int64_t>(event::PayloadKind::kDouble)) {
          const auto value = std::bit_cast<double>(what.extra[0]);
          file_.write(fmt::format("{}\"payload\":{}", first ? "" : ",",
                                  std::isfinite(value) ? fmt::format("{}", value) : "null"));
          first = false;
        }
        break;
      }
      default:
        break;
    }
    if (what.correlation != 0)
      write_number(first ? "\"correlation\":" : ",\"correlation\":", what.correlation, true), first = false;
    if (what.end == kUnknown && what.table != Table::kSample && what.table != Table::kAllocation)
      file_.write(first ? "\"end\":\"not recorded\"" : ",\"end\":\"not recorded\"");
    file_.write("}}");
  }

  // The constant part for a dimension row; sets args_empty_.
  std::string_view remembered(const Happening& what) {
    auto& ready = ready_[static_cast<size_t>(what.table)];
    const bool renamed = what.table == Table::kDispatch && options_.kernel_rename;
    if (!renamed && what.dim >= 0 && what.dim < kMostRemembered) {
      const auto at = static_cast<size_t>(what.dim);
      if (ready.size() <= at) ready.resize(at + 1);
      if (ready[at].empty()) ready[at] = constant_part(what);
      args_empty_ = ready[at].back() == '{';
      return ready[at];
    }
    scratch_ = constant_part(what);
    args_empty_ = scratch_.back() == '{';
    return scratch_;
  }

  std::string constant_part(const Happening& what) {
    std::string category, name, args;
    const auto arg = [&](const char* key, std::string_view value) {
      args += fmt::format("{}\"{}\":{}", args.empty() ? "" : ",", key, report::json_quoted(value));
    };
    const auto number = [&](const char* key, int64_t value) {
      if (value != kUnknown) args += fmt::format("{}\"{}\":{}", args.empty() ? "" : ",", key, value);
    };
    switch (what.table) {
      case Table::kDispatch: {
        category = "kernel_dispatch";
        name = kernels_.name(what.dim);
        if (options_.kernel_rename) {
          const Launch* const launch =
              launches_->find(tracks_.process(what.track), what.correlation, what.start);
          if (launch != nullptr && launch->label != 0)
            name = trace_.text(Table::kLabel, launch->label, column::Label::name);
        }
        const auto cell = [&](int at) { return trace_.cell(Table::kKernel, what.dim, at); };
        const auto extent = [&](const char* key, int x, int y, int z) {
          if (cell(x) == kUnknown || cell(y) == kUnknown || cell(z) == kUnknown) return;
          args += fmt::format("{}\"{}\":[{},{},{}]", args.empty() ? "" : ",", key, cell(x), cell(y), cell(z));
        };
        // Work-items, as everywhere in tacho; torch.profiler's files count workgroups.
        extent("grid items", column::Kernel::grid_x, column::Kernel::grid_y, column::Kernel::grid_z);
        extent("workgroup", column::Kernel::group_x, column::Kernel::group_y, column::Kernel::group_z);
        number("registers", cell(column::Kernel::registers));
        number("static shared memory", cell(column::Kernel::shared_static));
        number("dynamic shared memory", cell(column::Kernel::shared_dynamic));
        number("private memory", cell(column::Kernel::private_bytes));
        break;
      }
      case Table::kCopy: {
        category = "memory_copy";
        const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, what.dim, at); };
        name = copy_direction_name(cell(column::CopyShape::direction));
        arg("from", agents_.label(cell(column::CopyShape::source_device), options_.agent_index));
        arg("to", agents_.label(cell(column::CopyShape::target_device), options_.agent_index));
        break;
      }
      case Table::kFill:
        category = "memory_fill";
        name = "MEMORY_FILL";
        break;
      case Table::kApi: {
        const std::string_view api =
            api_of(domain_of(trace_.cell(Table::kFunction, what.dim, column::Function::domain)));
        category = api.empty() ? "none" : fmt::format("{}_api", api);
        name = trace_.text(Table::kFunction, what.dim, column::Function::name);
        break;
      }
      case Table::kMarker:
        category = "marker_api";
        name = trace_.text(Table::kLabel, what.dim, column::Label::name);
        if (const auto text = trace_.text(Table::kLabel, what.dim, column::Label::domain); !text.empty())
          arg("domain", text);
        if (const auto text = trace_.text(Table::kLabel, what.dim, column::Label::category); !text.empty())
          arg("category", text);
        break;
      case Table::kSync:
        category = "synchronization";
        name = fmt::format("wait for {}", event::to_string(static_cast<event::SyncKind>(trace_.cell(
                                              Table::kSyncShape, what.dim, column::SyncShape::kind))));
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
        arg("agent",
            agents_.label(trace_.cell(Table::kAllocationShape, what.dim, column::AllocationShape::device),
                          options_.agent_index));
        break;
      case Table::kSample: {
        category = "sample";
        const int64_t frame = trace_.cell(Table::kStack, what.dim, column::Stack::frame);
        name = trace_.text(Table::kFrame, frame, column::Frame::function);
        if (name.empty()) name = "?";
        std::string stack;
        int depth = 0;
        for (int64_t row = what.dim; row > 0 && depth < 128;
             row = trace_.cell(Table::kStack, row, column::Stack::parent), ++depth)
          stack.append(depth == 0 ? "" : " < ")
              .append(trace_.text(Table::kFrame, trace_.cell(Table::kStack, row, column::Stack::frame),
                                  column::Frame::function));
        arg("stack", stack);
        break;
      }
      default:
        break;
    }
    return fmt::format(",\"cat\":\"{}\",\"name\":{},\"args\":{{{}", category, report::json_quoted(name),
                       args);
  }

  // An arrow from the call that launched it. Viewers bind both ends to the slices around these moments, so
  // the call's slice must stand in the file before: it does, calls begin before the work that they cause.
  void flow(const Happening& what, const Line& line, int64_t start) {
    const Launch* const launch = calls_.find(tracks_.process(what.track), what.correlation);
    if (launch == nullptr) return;
    const auto caller = line_of_thread(launch->track);
    if (caller == nullptr) return;
    const int64_t call = clock_(launch->start);
    if (call > start) return;  // by the clocks' error: an arrow back in time would bind to other slices
    ++flows_;
    char* at = start_event("{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\"", *caller, call);
    file_.advance(static_cast<size_t>(at - begin_));
    write_number(",\"id\":", flows_);
    file_.write("}");
    at = start_event("{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\"", line, start);
    file_.advance(static_cast<size_t>(at - begin_));
    write_number(",\"id\":", flows_);
    file_.write("}");
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
    const double value = std::bit_cast<double>(what.extra[what.table == Table::kReading ? 0 : 1]);
    if (!std::isfinite(value)) return;  // JSON has no word for it
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
        ready = report::json_quoted(ready);
      }
      name = ready;
    } else {
      name = report::json_quoted(fmt::format("{} PMC {} [{}]", agents_.label(device, options_.agent_index),
                                             trace_.text(Table::kCounter, what.dim, column::Counter::name),
                                             what.extra[2]));
    }
    const Line line{fmt::format(",\"pid\":{}", pid)};
    char* const at = start_event("{\"ph\":\"C\"", line, time);
    file_.advance(static_cast<size_t>(at - begin_));
    file_.write(fmt::format(",\"name\":{},\"args\":{{\"value\":{}}}}}", name, value));
  }

  const trace::Trace& trace_;
  ExportOptions options_;
  OutputFile& file_;
  ClockMap clock_;
  Agents agents_;
  Tracks tracks_;
  KernelNames kernels_;
  Timeline timeline_;
  LaunchIndex calls_;                   // whom arrows come from: filled by the sweep itself
  std::unique_ptr<Launches> launches_;  // names for --kernel-rename
  std::vector<Line> lanes_;
  std::unordered_map<int64_t, Line> points_;
  std::unordered_map<int64_t, uint32_t> thread_lines_;
  std::vector<bool> named_processes_;
  std::vector<std::string> counter_names_;
  std::vector<std::string> ready_[event::kFactTables];
  std::string scratch_;
  int64_t base_ = 0, last_ = 0, flows_ = 0, next_line_ = 0x7fffffff;
  char* begin_ = nullptr;
  bool first_event_ = true, args_empty_ = true;
};

}  // namespace

Status write_chrome_json(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                         std::vector<std::string>& written) {
  TACHO_TRY(check_has_events(trace));
  TACHO_ASSIGN(OutputFile file, OutputFile::create(target.file, options.overwrite));
  TACHO_ASSIGN(ClockMap clock, ClockMap::make(trace, ClockMap::Clock::kBoottime));
  Exporter exporter(trace, options, file, std::move(clock));
  TACHO_TRY(exporter.run());
  TACHO_TRY(file.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format
