// Writes a trace as Chrome trace events (chrome_json.h).
#include "format/chrome_json/chrome_json.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <unordered_map>

#include "base/files/output_file.h"
#include "base/text/json_check.h"
#include "base/text/json_writer.h"
#include "format/chrome_json/operator_arrows.h"
#include "format/chrome_json/torch_words.h"
#include "format/import/origin.h"
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

constexpr int64_t kMostRemembered = 1 << 17;          // rows of a dimension whose text is kept ready
constexpr size_t kMostOfBeginning = 512;              // characters of an event before the text of its dimension row
constexpr size_t kMostOfNumbers = 512;                // of the numbers behind it
constexpr size_t kMostReady = 32 << 10;               // of that text, where the whole event is written at once
constexpr int64_t kFirstLane = 1 << 23;               // thread numbers of lines without a thread: above every Linux tid
constexpr size_t kMostAround = 4096;                  // operators open on a thread
constexpr int64_t kFurtherArrows = int64_t{1} << 48;  // ids of arrows that are no correlations
constexpr std::string_view kCounterRange = "cuda_profiler_range";
constexpr int64_t kSecond = 1'000'000'000;
// torch.profiler counts times from the last multiple of a quarter of a year, so that the files of all ranks and hosts
// of a job have one zero and a double holds every nanosecond.
constexpr int64_t kQuarter = 7'889'238 * kSecond;
constexpr int64_t kMostExact = int64_t{1} << 53;  // the highest integer below which a double holds all

bool is_device_work(Table table) {
  return table == Table::kDispatch || table == Table::kCopy || table == Table::kFill;
}

// Operators' correlations lie far above what a double holds exactly in other tools' hands: their External ids are the
// lower 48 bits.
int64_t external_id(int64_t correlation) {
  return correlation & ((int64_t{1} << 48) - 1);
}

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
        devices_(trace, agents_),
        inputs_(trace),
        kernels_(trace, options),
        timeline_(trace, options, options.group_by_queue, ~0ull),
        calls_(trace.rows(Table::kApi)),
        calls_runtime_(walk::calls_of_runtimes(trace)) {
    for (int64_t track = 0; track < std::max<int64_t>(trace.rows(Table::kTrack), 1); ++track)
      queues_.push_back(trace.cell(Table::kTrack, track, column::Track::kind) ==
                        static_cast<int64_t>(event::TrackKind::kQueue));
    for (int64_t row = 0; row < trace.rows(Table::kFunction); ++row)
      domains_.push_back(event::from_cell<event::Domain>(trace.cell(Table::kFunction, row, column::Function::domain)));
    named_processes_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)));
    devices_as_processes_ = have_one_host();
    if (options.kernel_rename) launches_ = std::make_unique<Launches>(trace, Launches::Around::kRanges);
    counter_names_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
    places_.resize(counter_names_.size());
    thread_lines_.resize(counter_names_.size(), kNoLine);
    around_.resize(counter_names_.size());
  }

  Status run() {
    TACHO_TRY(arrows_.read(trace_));
    TACHO_TRY(write_head());
    TACHO_TRY(timeline_.run(*this));
    if (launches_ != nullptr) TACHO_TRY(launches_->status());
    options_.remark_forgotten(calls_.forgotten());
    if (not_finite_ > 0)
      options_.remark(
          fmt::format("JSON cannot express infinite values and those that are not a number: {} of counters {} "
                      "left out",
                      not_finite_, not_finite_ == 1 ? "was" : "were"));
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
    Cause* launch = nullptr;
    int64_t external = 0;
    if (what.table == Table::kApi) external = follow_call(what);
    if (is_device_work(what.table)) {
      launch = calls_.find(tracks_.process(what.track), what.correlation);
      if (launch != nullptr) external = launch->external;
    }
    if (!write_plain(what, line, start, end - start, external)) {
      begin_event("X", line, start, [&](auto& json) { json.name("dur").microseconds(end - start); });
      describe(what, external);
    }
    if (launch != nullptr) flow(what, *launch, line, start);
    if (what.table == Table::kApi && is_operator(what)) forward_arrows(what, line, start);
  }
  void end(const Happening&, int64_t) {}

  void point(const Happening& what) {
    const int64_t time = clock_(what.start);
    if (what.table == Table::kReading || what.table == Table::kCounterValue) return counter(what, time);
    const Line& line = what.table == Table::kSample ? sample_line(what.track) : lanes_[what.lane];
    begin_event("i", line, time, [](auto&) {});
    describe(what, 0);
  }

 private:
  struct Line {
    std::string numbers;     // "pid":1,"tid":2
    bool is_stream = false;  // its pid is the device's number and its tid the stream's
    // What events begin with, up to their times.
    std::string slice = {}, launch = {}, work = {};  // of a slice, of both ends of an arrow from a call to its work
  };
  struct Cause {
    int64_t start = 0;     // of the call, trace time
    int64_t external = 0;  // of the operator around it; 0 = none
    int64_t track = 0;     // of the calling thread
    bool drawn = false;    // an arrow has its correlation as its id
  };
  struct Around {
    int64_t end, id;
  };
  struct PythonIds {
    int64_t own = 0, parent = 0;  // 0 = none
  };

  Status write_head() {
    const auto [first, last] = trace_.time_range();
    last_ = clock_(last);
    json_.begin_object().name("displayTimeUnit").text("ns").member("schemaVersion", 1);
    TACHO_TRY(choose_zero(first));
    json_.name("metadata").begin_object();
    json_.member("producer", "tacho " TACHO_PROGRAM_VERSION).member("boottimeOfZeroNanoseconds", base_);
    json_.end_object();
    devices_.put_properties(json_);
    write_distributed();
    json_.newline().name("traceEvents").begin_array();
    return {};
  }

  // Chooses the time that the file counts from, and says when that was. Whole microseconds stay whole: readers round.
  Status choose_zero(int64_t first) {
    TACHO_ASSIGN(const auto realtime, OutputClock::make(trace_, OutputClock::Clock::kRealtime));
    const int64_t start = clock_(first);
    if (realtime.known() && realtime(first) >= 0) {
      const int64_t now = realtime(first), zero = now - now % kQuarter;
      base_ = start - (now - zero);
      json_.member("baseTimeNanoseconds", zero);
      return {};
    }
    if (start < 0 || last_ >= kMostExact) base_ = start - ((start % kSecond) + kSecond) % kSecond;
    // What an imported file counted from.
    int64_t zero = 0;
    const auto told = trace_.property(Table::kEnd, 0, "kineto.baseTimeNanoseconds");
    if (told && std::from_chars(told->data(), told->data() + told->size(), zero).ec == std::errc() &&
        !__builtin_add_overflow(zero, base_, &zero))
      json_.member("baseTimeNanoseconds", zero);
    return {};
  }

  // As in torch.profiler's files, GPUs are processes of their own and streams their threads where one process that made
  // calls has all queues. Otherwise readers could not tell whose a GPU's work is: it lies under the process.
  bool have_one_host() const {
    int64_t host = 0;
    bool calls = false;
    for (int64_t track = 1; track < trace_.rows(Table::kTrack); ++track) {
      const int64_t process = tracks_.process(track);
      if (!is_queue(track)) continue;
      if (host != 0 && process != host) return false;
      host = process;
    }
    if (host == 0) return false;
    for (int64_t track = 1; track < trace_.rows(Table::kTrack); ++track)
      calls = calls || (tracks_.process(track) == host && tracks_.own_tid(track) > 0);
    for (int64_t process = 1; process < trace_.rows(Table::kProcess); ++process)
      for (int64_t device = 1; device < trace_.rows(Table::kDevice); ++device)
        if (devices_.of(device) == tracks_.pid(process)) return false;
    return calls && trace_.rows(Table::kApi) > 0;
  }

  // The rank, if the trace is of one.
  void write_distributed() {
    int64_t rank = kUnknown;
    for (int64_t process = 1; process < trace_.rows(Table::kProcess); ++process) {
      const int64_t of_process = trace_.cell(Table::kProcess, process, column::Process::rank);
      if (of_process == kUnknown) continue;
      if (rank != kUnknown && rank != of_process) return;
      rank = of_process;
    }
    const auto world = trace_.property(Table::kEnd, 0, "kineto.world_size");
    if (const auto id = trace_.property(Table::kEnd, 0, "kineto.trace_id")) json_.newline().member("trace_id", *id);
    if (rank == kUnknown && !world) return;
    // With the blanks of torch.profiler's files: HTA looks for "rank": and blanks in the text.
    std::string told;
    if (rank != kUnknown) told = fmt::format("\"rank\": {}", rank);
    if (world && !world->empty() &&
        std::all_of(world->begin(), world->end(), [](char c) { return c >= '0' && c <= '9'; }))
      told += fmt::format("{}\"world_size\": {}", told.empty() ? "" : ", ", *world);
    json_.newline().name("distributedInfo").ready("{" + told + "}");
  }

  event::Domain domain_of(const Happening& what) const {
    const auto row = static_cast<size_t>(what.dim);
    return row < domains_.size() ? domains_[row] : event::Domain{};
  }
  bool is_operator(const Happening& what) const { return domain_of(what) == event::Domain::kOperator; }

  // What is open on a track when `what` begins, innermost last.
  static std::vector<Around>& still_open(std::vector<Around>& around, const Happening& what) {
    while (!around.empty() && around.back().end <= what.start) around.pop_back();
    return around;
  }
  static void open(std::vector<Around>& around, const Happening& what, int64_t id) {
    if (around.size() < kMostAround)
      around.push_back({what.end == kUnknown ? std::numeric_limits<int64_t>::max() : what.end, id});
  }

  // Keeps what later events need to know of a call; the External id of the operator that it is, or that is around it.
  int64_t follow_call(const Happening& what) {
    const event::Domain domain = domain_of(what);
    if (domain == event::Domain::kPython) {
      std::vector<Around>& around = still_open(frames_[what.track], what);
      python_ = {.own = python_.own + 1, .parent = around.empty() ? 0 : around.back().id};
      open(around, what, python_.own);
      return 0;
    }
    const bool runtime = what.dim >= 0 && what.dim < static_cast<int64_t>(calls_runtime_.size()) &&
                         calls_runtime_[static_cast<size_t>(what.dim)];
    if (!runtime && (domain != event::Domain::kOperator || what.correlation == 0)) return 0;
    std::vector<Around>& around = still_open(around_[static_cast<size_t>(what.track)], what);
    if (!runtime) {
      const int64_t own = external_id(what.correlation);
      open(around, what, own);
      return own;
    }
    const int64_t external = around.empty() ? 0 : around.back().id;
    if (what.correlation != 0)
      calls_.add(tracks_.process(what.track), what.correlation,
                 {.start = what.start, .external = external, .track = what.track});
    return external;
  }

  // "device":0,"stream":7 of a queue's track. A context means a CUDA device to readers of such files.
  // Ranges only have what their line does not tell, and not as "stream", by which readers know device work.
  const std::string& place(const Happening& what) {
    const int64_t track = what.track;
    const bool range = what.table == Table::kMarker;
    if (range && lanes_[what.lane].is_stream) return kNowhere;
    if (range) {
      range_place_ = members([&](JsonWriter& json) {
        const int64_t device = trace_.cell(Table::kTrack, track, column::Track::device);
        if (device != 0) json.member("device", devices_.of(device));
        json.member("on stream", stream_number(track));
      });
      return range_place_;
    }
    std::string& ready = places_[static_cast<size_t>(track)];
    if (!ready.empty()) return ready;
    ready = members([&](JsonWriter& json) {
      const auto cell = [&](int at) { return trace_.cell(Table::kTrack, track, at); };
      const int64_t device = cell(column::Track::device);
      if (device != 0) json.member("device", devices_.of(device));
      if (cell(column::Track::context) != 0 && trace_.text(Table::kDevice, device, column::Device::vendor) == "NVIDIA")
        json.member("context", static_cast<uint64_t>(cell(column::Track::context)));
      json.member("stream", stream_number(track));
      const auto fact = [&](JsonLiteral key, std::string_view property) {
        const auto text = trace_.property(Table::kTrack, track, property);
        if (!text) return;
        if (int64_t number = 0; std::from_chars(text->data(), text->data() + text->size(), number).ec == std::errc())
          json.member(key, number);
      };
      fact("priority", "priority");
      fact("hsa_queue", "queue");
    });
    return ready;
  }

  uint64_t stream_number(int64_t track) const {
    const int64_t stream = tracks_.stream(track);
    return static_cast<uint64_t>(stream != kUnknown ? stream
                                                    : trace_.cell(Table::kTrack, track, column::Track::native));
  }

  bool is_queue(int64_t track) const { return queues_[static_cast<size_t>(track)]; }

  void meta(JsonLiteral kind, std::string_view numbers, std::string_view text) {
    json_.newline().begin_object().name("ph").text("M").name("name").text(kind).splice(numbers);
    json_.name("args").begin_object();
    if (kind.text() == "process_labels")
      json_.member("labels", text);
    else
      json_.member("name", text);
    json_.end_object().end_object();
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
      if (devices_as_processes_) meta("process_labels", process_numbers(pid), "CPU");
      if (process > 0)
        json_.newline()
            .begin_object()
            .name("ph")
            .text("M")
            .name("name")
            .text("tacho_process")
            .splice(process_numbers(pid))
            .name("args")
            .ready(imported::process_origin(trace_, process))
            .end_object();
    }
    return pid;
  }

  void name_device(int64_t process, int64_t number) {
    if (!named_devices_.insert(number).second) return;
    meta("process_name", process_numbers(number), tracks_.process_name(process));
    meta("process_labels", process_numbers(number), fmt::format("GPU {}", number));
  }

  Line open_line(int64_t track, uint32_t index) {
    const int64_t device = trace_.cell(Table::kTrack, track, column::Track::device);
    int64_t pid = name_process(tracks_.process(track)), tid = tracks_.own_tid(track);
    bool is_stream = false;
    if (devices_as_processes_ && device != 0 && is_queue(track)) {
      pid = devices_.of(device);
      name_device(tracks_.process(track), pid);
      const uint64_t stream = stream_number(track);
      is_stream = index == 0 && stream < static_cast<uint64_t>(kFirstLane) &&
                  streams_.insert({pid, static_cast<int64_t>(stream)}).second;
      if (is_stream) tid = static_cast<int64_t>(stream);
    }
    if (!is_stream && (tid <= 0 || index != 0)) tid = kFirstLane + track * 256 + index;
    // With millions of tracks, the formula exceeds 31 bits: then hands out numbers instead, from the highest down.
    if (tid > 0x7fffffff) tid = next_line_--;
    Line line{members([&](JsonWriter& json) { json.member("pid", pid).member("tid", tid); }), is_stream};
    line.slice = members([&](JsonWriter& json) { json.name("ph").text("X").splice(line.numbers); });
    line.launch = members([&](JsonWriter& json) {
      json.name("ph").text("s").name("cat").text("ac2g").name("name").text("ac2g").splice(line.numbers);
    });
    line.work = members([&](JsonWriter& json) {
      json.name("ph").text("f").name("bp").text("e");
      json.name("cat").text("ac2g").name("name").text("ac2g").splice(line.numbers);
    });
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
    return members([&](JsonWriter& json) { json.member("pid", pid).member("tid", 0); });
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

  // Most events: a kernel or a call with numbers alone behind the text of its dimension row. Written at once.
  bool write_plain(const Happening& what, const Line& line, int64_t start, int64_t duration, int64_t external) {
    if (what.table == Table::kDispatch ? what.cell<column::Dispatch::arguments>() != 0
                                       : what.table != Table::kApi || what.cell<column::Api::arguments>() != 0 ||
                                             what.cell<column::Api::inputs>() != 0 || is_operator(what) ||
                                             domain_of(what) == event::Domain::kPython)
      return false;
    const std::string_view constant = remembered(what), where = is_queue(what.track) ? place(what) : kNowhere;
    if (constant.size() + where.size() > kMostReady) return false;
    json_.burst(kMostOfBeginning + constant.size() + where.size() + kMostOfNumbers, [&](auto& json) {
      json.newline().begin_object().splice(line.slice);
      put_time(json, start);
      json.name("dur").microseconds(duration).splice(constant).splice(where);
      put_numbers(json, what);
      put_ties(json, what, external, 0);
    });
    return true;
  }

  // Times ascend, so that what is above the seconds seldom changes.
  template <typename Json>
  void put_time(Json& json, int64_t time) {
    json.name("ts");
    const int64_t since = time - base_;
    if (since < kSecond) {
      json.microseconds(since);
      return;
    }
    if (since / kSecond != second_) {
      second_ = since / kSecond;
      above_ = static_cast<size_t>(write_signed(time_text_, second_) - time_text_);
    }
    auto rest = static_cast<uint32_t>(since % kSecond);
    char* at = time_text_ + above_ + 10;
    const auto digits = [&](uint32_t value) {
      at -= 2;
      std::memcpy(at, decimal_internal::kPairs + value * 2, 2);
    };
    const uint32_t nanoseconds = rest % 1000;
    rest /= 1000;
    digits(nanoseconds % 100);
    *--at = static_cast<char>('0' + nanoseconds / 100);
    *--at = '.';
    digits(rest % 100);
    digits(rest / 100 % 100);
    digits(rest / 10000);
    json.ready({time_text_, above_ + 10});
  }

  // Numbers of kernels and calls that differ from row to row.
  template <typename Json>
  void put_numbers(Json& json, const Happening& what) const {
    if (what.table == Table::kDispatch) {
      const int64_t id = dispatch_id(what.cell<column::Dispatch::ordinal>());
      if (id != kUnknown) json.member("dispatch", id);
      const int64_t node = what.cell<column::Dispatch::graph_node>();
      if (node != 0) json.member("graph node id", static_cast<uint64_t>(node));
    } else if (what.table == Table::kApi) {
      const int64_t result = what.cell<column::Api::result>();
      if (result != 0 && result != kUnknown) json.member("result", result);
    }
  }

  // What ties an event to others, and its end.
  template <typename Json>
  void put_ties(Json& json, const Happening& what, int64_t external, int64_t sequence) const {
    const auto count = [&](JsonLiteral name, int64_t value) {
      if (value != 0) json.member(name, static_cast<uint64_t>(value));
    };
    count("External id", external);
    count("Sequence number", sequence);
    if (what.table != Table::kApi || !is_operator(what)) count("correlation", what.correlation);
    if (what.end == kUnknown && what.table != Table::kSample && what.table != Table::kAllocation)
      json.name("end").text("not recorded");
    json.end_object().end_object();
  }

  // Writes "cat":..,"name":..,"args":{constants ... and then what differs from row to row.
  void describe(const Happening& what, int64_t external) {
    json_.splice(remembered(what));
    if (is_queue(what.track)) json_.splice(place(what));
    const auto number = [&](JsonLiteral name, int64_t value) {
      if (value != kUnknown) json_.member(name, value);
    };
    const auto count = [&](JsonLiteral name, int64_t value) { json_.member(name, static_cast<uint64_t>(value)); };
    const auto node = [&](int64_t id) {
      if (id != 0) count("graph node id", id);
    };
    const auto moved = [&](int64_t bytes) {
      number("bytes", bytes);
      if (bytes != kUnknown && what.end != kUnknown && what.end > what.start)
        json_.member("memory bandwidth (GB/s)",
                     static_cast<double>(bytes) / static_cast<double>(what.end - what.start));
    };
    switch (what.table) {
      case Table::kDispatch:
        put_numbers(json_, what);
        put_arguments(told_, trace_.string(what.cell<column::Dispatch::arguments>()), json_);
        break;
      case Table::kCopy:
        put_arguments(told_, trace_.string(what.cell<column::Copy::arguments>()), json_);
        moved(what.cell<column::Copy::bytes>());
        node(what.cell<column::Copy::graph_node>());
        break;
      case Table::kFill:
        moved(what.cell<column::Fill::bytes>());
        node(what.cell<column::Fill::graph_node>());
        break;
      case Table::kAllocation:
        describe_memory(what);
        break;
      case Table::kApi:
        put_numbers(json_, what);
        put_arguments(told_, trace_.string(what.cell<column::Api::arguments>()), json_);
        inputs_.put(what.cell<column::Api::inputs>(), json_);
        if (domain_of(what) == event::Domain::kPython) {
          json_.name("Python parent id");
          python_.parent == 0 ? json_.null() : json_.value(python_.parent);
          json_.member("Python id", python_.own);
        }
        break;
      case Table::kMarker: {
        const int64_t payload = trace_.cell(Table::kLabel, what.dim, column::Label::payload);
        const int64_t value = what.cell<column::Marker::payload>();
        if (payload == static_cast<int64_t>(event::PayloadKind::kInteger)) json_.member("payload", value);
        if (payload == static_cast<int64_t>(event::PayloadKind::kDouble))
          json_.member("payload", std::bit_cast<double>(value));
        if (const std::string_view fields = trace_.string(what.cell<column::Marker::fields>()); !fields.empty())
          is_json(fields) ? json_.name("fields").ready(fields) : json_.member("fields", fields);
        break;
      }
      default:
        what.each_own([&](const event::Column& column, int64_t cell) { put_cell(json_, column, cell); });
    }
    int64_t sequence = 0;  // readers tie arrows to the operators that have one
    if (what.table == Table::kApi && is_operator(what))
      arrows_.each(tracks_.process(what.track), what.correlation,
                   [&](const OperatorArrows::ArrowEnd& end) { sequence = sequence == 0 ? end.arrow : sequence; });
    put_ties(json_, what, external, sequence);
  }

  // As torch names what its allocators do; it tells nothing of their segments.
  std::string_view memory_name(const Happening& what) const {
    if (trace::cell<column::AllocationShape::operation>(trace_, what.dim) == event::AllocationOperation::kOutOfMemory)
      return "[OutOfMemory]";
    return trace::cell<column::AllocationShape::level>(trace_, what.dim) == event::AllocationLevel::kSegment
               ? "[memory segment]"
               : "[memory]";
  }

  // As torch tells of its allocators: memory taken back has a negative size.
  void describe_memory(const Happening& what) {
    const auto cell = [&](int at) { return trace_.cell(Table::kAllocationShape, what.dim, at); };
    const bool freed = is_free(cell(column::AllocationShape::operation));
    const int64_t bytes = what.cell<column::Allocation::bytes>();
    if (bytes != kUnknown) json_.member("Bytes", freed ? -bytes : bytes);
    json_.member("Addr", static_cast<uint64_t>(what.cell<column::Allocation::address>()));
    const int64_t device = cell(column::AllocationShape::device);
    const bool on_device =
        device != 0 || cell(column::AllocationShape::memory) == static_cast<int64_t>(event::MemoryKind::kDevice);
    json_.member("Device Type", on_device ? 1 : 0);
    json_.member("Device Id", device != 0 ? devices_.of(device) : -1);
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
        category = "kernel";
        name = kernel_name(what);
        put_launch_shape(trace_, what.dim, json);
        devices_.put_load(what.dim, json);
        break;
      case Table::kCopy:
        category = "gpu_memcpy";
        name = copy_name(trace_, what.dim);
        put_ends(json, what.dim);
        break;
      case Table::kFill:
        category = "gpu_memset";
        name = fill_name(trace_, what.dim);
        break;
      case Table::kApi:
        name = trace_.text(Table::kFunction, what.dim, column::Function::name);
        category = call_category(domain_of(what), name);
        break;
      case Table::kMarker: {
        const std::string_view domain = trace_.text(Table::kLabel, what.dim, column::Label::domain),
                               group = trace_.text(Table::kLabel, what.dim, column::Label::category);
        category = range_category(domain, group);
        // The ranges of torch.profiler's counters lie on a queue, too.
        if (is_queue(what.track)) category = group == kCounterRange ? kCounterRange : "gpu_user_annotation";
        name = trace_.text(Table::kLabel, what.dim, column::Label::name);
        if (!domain.empty()) json.member("domain", domain);
        if (!group.empty() && group != category) json.member("category", group);
        break;
      }
      case Table::kSync:
        category = "cuda_sync";  // torch's word on every vendor's device
        name = sync_name(trace_.cell(Table::kSyncShape, what.dim, column::SyncShape::kind));
        break;
      case Table::kOverhead:
        category = "overhead";
        name = trace_.text(Table::kOverheadShape, what.dim, column::OverheadShape::name);
        if (name.empty())
          name = event::to_string(static_cast<event::OverheadKind>(
              trace_.cell(Table::kOverheadShape, what.dim, column::OverheadShape::kind)));
        break;
      case Table::kAllocation:
        category = "cpu_instant_event";
        name = memory_name(what);
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

  // Between which devices a copy goes; the host has no number.
  void put_ends(JsonWriter& json, int64_t shape) const {
    const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, shape, at); };
    if (const int64_t from = cell(column::CopyShape::source_device); from != 0)
      json.member("fromDevice", devices_.of(from));
    if (const int64_t to = cell(column::CopyShape::target_device); to != 0) json.member("toDevice", devices_.of(to));
  }

  std::string_view kernel_name(const Happening& what) {
    if (options_.kernel_rename) {
      const Launch* const launch = launches_->find(tracks_.process(what.track), what.correlation, what.start);
      if (launch != nullptr && launch->label != 0)
        return trace_.text(Table::kLabel, launch->label, column::Label::name);
    }
    return kernels_.name(what.dim);
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
  // The first arrow of a call has its correlation as its id, by which tools for torch.profiler's files follow it. Ids
  // of other arrows are numbers of their own: viewers draw one arrow for each.
  void flow(const Happening& what, Cause& launch, const Line& line, int64_t start) {
    const auto caller = line_of_thread(launch.track);
    if (caller == nullptr) return;
    const int64_t call = clock_(launch.start);
    if (call > start) return;  // clock error; an arrow back in time would bind to other slices
    if (arrows_of_ == 0) arrows_of_ = tracks_.process(what.track);
    const bool plain = !launch.drawn && what.correlation > 0 && what.correlation < kFurtherArrows &&
                       arrows_of_ == tracks_.process(what.track);
    const int64_t id = plain ? what.correlation : kFurtherArrows + ++flows_;
    launch.drawn = true;
    json_.burst(2 * kMostOfBeginning, [&](auto& json) {
      json.newline().begin_object().splice(caller->launch);
      put_time(json, call);
      json.member("id", id).end_object().newline().begin_object().splice(line.work);
      put_time(json, start);
      json.member("id", id).end_object();
    });
  }

  void forward_arrows(const Happening& what, const Line& line, int64_t start) {
    arrows_.each(tracks_.process(what.track), what.correlation, [&](const OperatorArrows::ArrowEnd& end) {
      arrow(end.begins ? JsonLiteral("s") : JsonLiteral("f"), "fwdbwd", line, start, end.arrow);
    });
  }

  void arrow(JsonLiteral phase, JsonLiteral kind, const Line& line, int64_t time, int64_t id) {
    json_.burst(kMostOfBeginning, [&](auto& json) {
      json.newline().begin_object().name("ph").text(phase);
      if (phase.text() == "f") json.name("bp").text("e");
      json.name("cat").text(kind).name("name").text(kind).splice(line.numbers);
      json.name("ts").microseconds(time - base_).member("id", id).end_object();
    });
  }

  const Line* line_of_thread(int64_t track) {
    uint32_t& known = thread_lines_[static_cast<size_t>(track)];
    if (known != kNoLine) return &lanes_[known];
    for (uint32_t number = 0; number < lanes_.size(); ++number)
      if (timeline_.lane(number).track == timeline_.track_of(track) && timeline_.lane(number).index == 0) {
        known = number;
        return &lanes_[number];
      }
    return nullptr;
  }

  void counter(const Happening& what, int64_t time) {
    const double value =
        (what.table == Table::kReading ? what.cell<column::Reading::value>() : what.cell<column::CounterValue::value>())
            .value();
    if (!std::isfinite(value)) {
      ++not_finite_;
      return;
    }
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

  static inline const std::string kNowhere;
  const trace::Trace& trace_;
  ExportOptions options_;
  OutputFile& file_;
  JsonFileWriter json_;
  OutputClock clock_;
  Agents agents_;
  Tracks tracks_;
  TorchDevices devices_;
  OperatorInputs inputs_;
  KernelNames kernels_;
  Timeline timeline_;
  OperatorArrows arrows_;
  CallIndex<Cause> calls_;              // where arrows start; the sweep itself fills it
  std::vector<bool> calls_runtime_;     // by row of table function
  std::vector<event::Domain> domains_;  // likewise
  std::vector<bool> queues_;            // by track: whether it is a queue's
  std::unique_ptr<Launches> launches_;  // names for --kernel-rename
  std::vector<Line> lanes_;
  std::unordered_map<int64_t, Line> points_;
  static constexpr uint32_t kNoLine = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> thread_lines_;  // by track, of threads
  std::vector<bool> named_processes_;
  std::vector<std::vector<Around>> around_;                  // by track: operators open on a thread
  std::unordered_map<int64_t, std::vector<Around>> frames_;  // by track: Python's functions open on a thread
  PythonIds python_;                                         // of the latest Python function
  bool devices_as_processes_ = false;
  std::set<int64_t> named_devices_;
  std::set<std::pair<int64_t, int64_t>> streams_;  // lines that have their stream's number
  int64_t arrows_of_ = 0;                          // the process whose arrows have correlations as ids
  std::string range_place_;
  std::vector<std::string> counter_names_;
  std::vector<std::string> places_;  // by track
  std::vector<std::pair<std::string_view, std::string_view>> told_;
  std::vector<std::string> ready_[event::kFactTables];
  std::string scratch_;
  char time_text_[kMostDigits + 10];  // the whole seconds of the latest time, and room for the rest
  size_t above_ = 0;                  // characters of those
  int64_t second_ = -1;
  int64_t base_ = 0, last_ = 0, flows_ = 0, not_finite_ = 0, next_line_ = 0x7fffffff;
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
