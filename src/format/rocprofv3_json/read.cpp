// Translates the sections of rocprofv3's JSON into tacho's terms (rocprofv3_json.h).
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "base/text/how_many.h"
#include "base/text/json_writer.h"
#include "event/schema.h"
#include "event/times.h"
#include "format/import/origin.h"
#include "format/import/times.h"
#include "format/import/words.h"
#include "format/json/stream.h"
#include "format/rocprofv3_json/bits.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/shared/rocprof_words.h"
#include "trace/write/work_times.h"
#include "vendor/call_roles.h"

namespace tacho::format::rocprofv3 {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using json::JsonStream;
namespace row = event::row;

struct Symbol {
  int64_t name = 0;  // string row
  int64_t scalar = kUnknown, arch = kUnknown, accum = kUnknown, shared = kUnknown;
};

struct Dispatch {
  int64_t thread = 0, correlation = 0, start = 0, end = 0, agent = 0, queue = 0, kernel = 0, id = 0,
          private_bytes = kUnknown, shared = kUnknown, stream = -1, graph = 0, node = 0;
  int64_t group[3] = {kUnknown, kUnknown, kUnknown}, grid[3] = {kUnknown, kUnknown, kUnknown};
};

// A record of any other buffer: the members that all share, and those of one kind or the other.
struct Record {
  int64_t kind = kUnknown, operation = 0, thread = 0, correlation = 0, start = 0, end = 0, source = 0, target = 0,
          agent = 0, bytes = kUnknown, address = 0, stream = -1, queue = 0, graph = 0, node = 0;
  // Of the kernel driver's events.
  int64_t first_address = kUnknown, last_address = kUnknown, dropped = kUnknown, error = 0;
  bool moment = false, fault = false, migration = false;
};

class Reader {
 public:
  Reader(const std::string& path, trace::TraceWriter& writer) : path_(path), writer_(writer) {}

  Status run() {
    TACHO_TRY(pass(false));
    // Some records came before the names that they refer to: reads those again.
    if (records_early_) TACHO_TRY(pass(true));
    for (Process& process : processes_) {
      process_ = &process;
      TACHO_TRY(finish_graphs());
      TACHO_TRY(process.call_ends.finish());
      TACHO_TRY(process.unmeasured.finish(writer_, [&](int64_t, int64_t correlation) {
        const auto* const call = process.call_ends.find(correlation);
        return call == nullptr ? kUnknown : call->value;
      }));
    }
    make_unused();
    TACHO_TRY(work_times_.work_ends());
    work_times_.finish(0);
    return {};
  }

 private:
  static constexpr size_t kMostFlat = 1 << 16;  // characters

  struct GraphLaunch {
    Record record;
    bool operator<(const GraphLaunch& other) const { return record.correlation < other.record.correlation; }
  };
  struct Process {
    int64_t row = 0, pid = 0;
    bool agents = false, strings = false, symbols = false;
    bool again = false;  // another process of the file has the same metadata
    bool complete() const { return agents && strings && symbols; }
    bool of_tacho = false;
    struct ToldAgent {
      row::Device device;
      std::map<std::string, std::string, std::less<>> facts = {};
      std::string model = {}, origin = {};
    };
    std::map<int64_t, int64_t> devices;          // agent handle -> row
    std::map<int64_t, ToldAgent> unused_agents;  // that are no devices until something is on them, by handle
    std::map<int64_t, std::string> agent_words;  // agent handle -> "GPU 1"
    std::unordered_map<int64_t, Symbol> kernels;
    std::vector<std::pair<std::string, std::vector<std::string>>> kinds;  // of buffer records: name, operations
    std::unordered_map<int64_t, int64_t> messages;                        // correlation -> string row
    std::unordered_map<int64_t, int64_t> counters;                        // counter handle -> row
    std::vector<bool> counted;                                            // dispatches that arrived with their counters
    // Of dispatches that arrive with counters several times, because their kernel was replayed: the start of the first,
    // and how often they came.
    struct Replayed {
      int64_t start = kUnknown, times = 0;
    };
    std::unordered_map<int64_t, Replayed> replayed;
    std::unordered_map<int64_t, int64_t> threads, thread_tracks;
    NumberMap<4> queue_tracks;
    KeyIndex<int64_t> call_ends;   // by correlation
    KeyIndex<int64_t> graph_work;  // kernels and copies of graphs, by correlation
    SortedFile<GraphLaunch> graph_launches;
    imported::UnmeasuredRows unmeasured;
    std::set<std::string> skipped;  // sections of records that came before the names
  };

  Status pass(bool records_only) {
    TACHO_ASSIGN(JsonStream in, JsonStream::open(path_));
    in_ = &in;
    records_only_ = records_only;
    size_t number = 0;
    bool found = false;
    const auto document = [&] {
      in.object([&](std::string_view key) {
        if (key != "rocprofiler-sdk-tool") {
          in.skip();
          return;
        }
        found = true;
        const auto one = [&] {
          if (number == processes_.size()) processes_.emplace_back();
          process_ = &processes_[number++];
          read_process();
        };
        if (in.peek() == '[')
          in.array(one);
        else
          one();
      });
    };
    document();
    if (!in.ok()) return in.status();
    TACHO_TRY(further_documents(document));
    if (const std::string foreign = in_->foreign_bytes(); !foreign.empty() && !records_only_)
      writer_.note(0, event::NoteSeverity::kWarning, foreign);
    if (!found) return fail("{}: has no member rocprofiler-sdk-tool", path_);
    return {};
  }

  // Files that were put one behind the other, and text that is none.
  template <typename Document>
  Status further_documents(Document document) {
    std::string trouble;
    while (trouble.empty() && in_->peek() != 0) {
      const uint64_t at = in_->offset();
      const size_t before = processes_.size();
      if (in_->peek() == '{') document();
      if (!in_->ok() && processes_.size() > before)
        trouble = fmt::format("the document at byte {} is read in part: {}", at, in_->status().error().message);
      else if (!in_->ok() || in_->offset() == at)
        trouble = fmt::format("text after the end at byte {} is not read", at);
    }
    if (trouble.empty()) return in_->status();  // the bytes themselves may be damaged
    if (!records_only_) writer_.note(0, event::NoteSeverity::kWarning, trouble);
    return {};
  }

  void read_process() {
    in_->object([&](std::string_view key) {
      if (process_->again) {
        in_->skip();
        return;
      }
      if (key == "metadata" && !records_only_)
        read_metadata();
      else if (key == "agents" && !records_only_)
        read_agents();
      else if (key == "counters" && !records_only_)
        read_counters();
      else if (key == "strings" && !records_only_)
        read_strings();
      else if (key == "kernel_symbols" && !records_only_)
        read_symbols();
      else if (key == "callback_records")
        read_records(key, &Reader::callback_section);
      else if (key == "buffer_records")
        read_records(key, &Reader::buffer_section);
      else
        in_->skip();
    });
  }

  void read_records(std::string_view name, void (Reader::*section)(std::string_view)) {
    const std::string group(name);
    if (!records_only_ && !process_->complete()) {
      records_early_ = true;
      process_->skipped.insert(group);
      in_->skip();
    } else if (records_only_ && !process_->skipped.contains(group)) {
      in_->skip();  // the first pass read it
    } else {
      in_->object([&](std::string_view key) { (this->*section)(key); });
    }
  }

  int64_t text(std::string_view value) { return writer_.string(value); }

  // Who and where

  void read_metadata() {
    std::string host, command, name;
    int64_t pid = 0, first = 0, last = 0;
    std::string origin;
    in_->object([&](std::string_view key) {
      if (key == "tacho" && in_->peek() == '{') {
        process_->of_tacho = true;
        origin = read_flat();
      } else if (key == "node") {
        in_->object([&](std::string_view member) {
          if (member == "hostname")
            in_->string(host);
          else
            in_->skip();
        });
      } else if (key == "pid") {
        pid = in_->integer();
      } else if (key == "init_time") {
        first = in_->integer();
      } else if (key == "fini_time") {
        last = in_->integer();
      } else if (key == "command" && in_->peek() == '[') {
        in_->array([&] {
          std::string word;
          in_->string(word);
          if (name.empty()) name = word.substr(word.rfind('/') + 1);
          command += (command.empty() ? "" : " ") + word;
        });
      } else {
        in_->skip();
      }
    });
    if (!in_->ok()) return;
    process_->pid = pid;
    if (pid > 0 && first > 0 && !recordings_.insert(fmt::format("{} {} {} {}", pid, first, last, host)).second) {
      process_->again = true;
      writer_.note(0, event::NoteSeverity::kWarning,
                   fmt::format("the recording of process {} comes twice in the file and is read once", pid));
      return;
    }
    // Another run for each of tacho's processes, until it is known whose they are: several may have no pid.
    const int64_t run = process_->of_tacho ? static_cast<int64_t>(processes_.size()) - 1 : 0;
    const row::Process told{
        .pid = pid, .start = first, .name = text(name), .command = text(command), .host = text(host), .run = run};
    if (process_->row == 0) {
      process_->row = writer_.dimension(told);
    } else {  // sections that need it came first
      const auto cells = event::cells(told);
      using P = event::column::Process;
      for (const int cell : {P::pid, P::start, P::name, P::command, P::host})
        writer_.update(Table::kProcess, process_->row, cell, cells[static_cast<size_t>(cell)]);
    }
    imported::set_process_origin(writer_, process_->row, origin);
    // Trace time is the file's time: both clocks get the same number.
    for (const int64_t time : {first, last})
      if (time > 0) writer_.add(row::Clock{.raw = time, .boottime = time});
    if (process_ == &processes_.front()) {
      writer_.property(Table::kEnd, 0, "command", command);
      writer_.property(Table::kEnd, 0, "host", host);
      writer_.property(Table::kEnd, 0, "source", "rocprofv3 JSON");
    }
  }

  int64_t process_row() {
    if (process_->row == 0) {
      const std::string name =
          process_ == &processes_.front() ? "process" : fmt::format("process {}", processes_.size());
      process_->row = writer_.dimension(row::Process{.start = 0, .name = text(name)});
    }
    return process_->row;
  }

  // An object of numbers and texts as JSON again.
  std::string read_flat() {
    std::string out;
    in_->object([&](std::string_view key) {
      const char c = in_->peek();
      if (c == '{' || c == '[' || out.size() > kMostFlat) {
        in_->skip();
        return;
      }
      std::string value;
      const std::string name = json_quoted(key);
      if (c == '"')
        in_->string(value);
      else
        value = fmt::format("{}", in_->integer());
      out += fmt::format("{}{}: {}", out.empty() ? "{" : ", ", name, c == '"' ? json_quoted(value) : value);
    });
    return out.empty() ? "{}" : out + "}";
  }

  int64_t make_device(const Process::ToldAgent& told) {
    const int64_t device = writer_.dimension(told.device);
    if (!told.origin.empty()) writer_.update(Table::kDevice, device, event::column::Device::uuid, 0);
    for (const auto& [name, value] : told.facts)
      if (!value.empty()) writer_.property(Table::kDevice, device, name, value);
    if (!told.model.empty()) writer_.property(Table::kDevice, device, "model_name", told.model);
    imported::set_device_origin(writer_, device, told.origin);
    made_.insert(told.origin);
    return device;
  }

  // The devices of tacho's files that nothing is on, each once.
  void make_unused() {
    for (Process& process : processes_) {
      process_ = &process;
      for (const auto& [handle, told] : process.unused_agents)
        if (!told.origin.empty() && !made_.contains(told.origin)) make_device(told);
    }
  }

  void read_agents() {
    process_->agents = true;
    in_->array([&] {
      int64_t handle = 0, type = 0;
      std::map<std::string, std::string, std::less<>> facts, names;
      std::string uuid, origin;
      in_->object([&](std::string_view key) {
        const std::string member(key);
        if (member == "tacho" && in_->peek() == '{') {
          origin = read_flat();
        } else if (member == "id") {
          handle = in_->handle();
        } else if (member == "type") {
          type = in_->integer();
        } else if (member == "uuid" && in_->peek() == '{') {
          uuid = read_uuid();
        } else if (const auto fields = bit_fields(member); !fields.empty()) {
          facts[member] = bits(fields);
        } else if (member == "workgroup_max_dim" || member == "grid_max_dim") {
          in_->object([&](std::string_view axis) {
            facts[fmt::format("{}_{}", member, axis)] = fmt::format("{}", static_cast<uint64_t>(in_->integer()));
          });
        } else if (in_->peek() == '"') {
          in_->string(names[member]);
        } else if (const char c = in_->peek(); c != '{' && c != '[') {
          // hive_id and similar members are unsigned.
          facts[member] = fmt::format("{}", static_cast<uint64_t>(in_->integer()));
        } else {
          in_->skip();
        }
      });
      if (!in_->ok()) return;
      const bool gpu = type == 2;
      const std::string& product = names["product_name"].empty() ? names["name"] : names["product_name"];
      int64_t index = 0;
      const std::string& of_type = facts["logical_node_type_id"];
      std::from_chars(of_type.data(), of_type.data() + of_type.size(), index);
      // A file of tacho's names the product where it knows no architecture.
      const bool architecture = gpu && !(process_->of_tacho && names["name"] == product);
      Process::ToldAgent told{.device = row::Device{.process = process_row(),
                                                    .kind = gpu         ? event::DeviceKind::kGpu
                                                            : type == 1 ? event::DeviceKind::kCpu
                                                                        : event::DeviceKind::kUnknown,
                                                    .index = index,
                                                    .name = text(product),
                                                    .vendor = text(names["vendor_name"]),
                                                    .architecture = architecture ? text(names["name"]) : 0,
                                                    .uuid = text(uuid.empty() ? "node " + facts["node_id"] : uuid)}};
      process_->agent_words[handle] = fmt::format("{} {}", gpu ? "GPU" : type == 1 ? "CPU" : "agent", index);
      told.facts = std::move(facts);
      told.model = names["model_name"];
      told.origin = std::move(origin);
      // tacho lists devices of no process, and the host, with every process.
      if (process_->of_tacho && (told.origin.empty() || made_.contains(told.origin)))
        process_->unused_agents.emplace(handle, std::move(told));
      else
        process_->devices[handle] = make_device(told);
    });
  }

  // {"bytes": {"value0": 203, ...}} as hexadecimal text; "" if all bytes are zero (CPUs).
  std::string read_uuid() {
    std::string hex;
    bool any = false;
    in_->object([&](std::string_view key) {
      if (key != "bytes" || in_->peek() != '{') {
        in_->skip();
        return;
      }
      in_->object([&](std::string_view) {
        const int64_t byte = in_->integer();
        any |= byte != 0;
        if (hex.size() < 32) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
      });
    });
    return any ? hex : std::string();
  }

  // The number behind a C bit field that the JSON gives member by member.
  std::string bits(std::span<const BitField> members) {
    std::map<std::string, uint64_t, std::less<>> values;
    in_->object([&](std::string_view key) {
      const std::string name(key);
      values[name] = static_cast<uint64_t>(in_->integer());
    });
    uint64_t number = 0;
    int at = 0;
    for (const auto& [name, width] : members) {
      const auto found = values.find(name);
      if (found != values.end()) number |= (found->second & ((uint64_t{1} << width) - 1)) << at;
      at += width;
    }
    return fmt::format("{}", number);
  }

  void read_counters() {
    in_->array([&] {
      int64_t handle = 0;
      std::string name, text_about, block;
      in_->object([&](std::string_view key) {
        if (key == "id")
          handle = in_->handle();
        else if (key == "name")
          in_->string(name);
        else if (key == "description")
          in_->string(text_about);
        else if (key == "block")
          in_->string(block);
        else
          in_->skip();
      });
      if (in_->ok())
        process_->counters[handle] =
            writer_.dimension(row::Counter{.name = text(name), .text = text(text_about), .block = text(block)});
    });
  }

  void read_strings() {
    process_->strings = true;
    in_->object([&](std::string_view key) {
      if (key == "buffer_records") {
        in_->array([&] {
          auto& kind = process_->kinds.emplace_back();
          in_->object([&](std::string_view member) {
            if (member == "kind") {
              in_->string(kind.first);
            } else if (member == "operations") {
              in_->array([&] { in_->string(kind.second.emplace_back()); });
            } else {
              in_->skip();
            }
          });
        });
      } else if (key == "marker_api") {
        in_->array([&] {
          int64_t correlation = 0;
          std::string message;
          in_->object([&](std::string_view member) {
            if (member == "key")
              correlation = in_->integer();
            else if (member == "value")
              in_->string(message);
            else
              in_->skip();
          });
          process_->messages[correlation] = text(message);
        });
      } else {
        in_->skip();
      }
    });
  }

  void read_symbols() {
    process_->symbols = true;
    in_->array([&] {
      int64_t id = 0;
      Symbol symbol;
      std::string name;
      in_->object([&](std::string_view key) {
        if (key == "kernel_id")
          id = in_->integer();
        else if (key == "kernel_name")
          in_->string(name);
        else if (key == "sgpr_count")
          symbol.scalar = in_->integer();
        else if (key == "arch_vgpr_count")
          symbol.arch = in_->integer();
        else if (key == "accum_vgpr_count")
          symbol.accum = in_->integer();
        else if (key == "group_segment_size")
          symbol.shared = in_->integer();
        else
          in_->skip();
      });
      symbol.name = text(name);
      if (in_->ok()) process_->kernels[id] = symbol;
    });
  }

  // Tracks

  int64_t device(int64_t handle) {
    const auto found = process_->devices.find(handle);
    if (found != process_->devices.end()) return found->second;
    const auto unused = process_->unused_agents.find(handle);
    if (unused == process_->unused_agents.end()) return 0;
    const int64_t made = process_->devices[handle] = make_device(unused->second);
    process_->unused_agents.erase(unused);
    return made;
  }
  int64_t thread(int64_t tid) {
    int64_t& row = process_->threads[tid];
    if (row == 0) row = writer_.dimension(row::Thread{.process = process_row(), .tid = tid});
    return row;
  }
  int64_t thread_track(int64_t tid) {
    int64_t& row = process_->thread_tracks[tid];
    if (row == 0)
      row = writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                         .process = process_row(),
                                         .thread = thread(tid),
                                         .native = tid,
                                         .category = text("thread")});
    return row;
  }
  // One row per stream, hardware queue and launching thread: the file gives all three for each record.
  int64_t queue_track(int64_t agent, int64_t queue, int64_t stream, int64_t tid) {
    const std::array<int64_t, 4> key{agent, queue, stream, tid};
    int64_t& row = process_->queue_tracks[key];
    if (row != 0) return row;
    const bool streamed = stream >= 0;
    row = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                       .process = process_row(),
                                       .thread = tid != 0 ? thread(tid) : 0,
                                       .device = device(agent),
                                       .native = streamed ? stream : queue,
                                       .context = streamed ? queue : 0,
                                       .category = text(streamed ? "stream" : "queue")});
    if (streamed && queue != 0)
      writer_.property(Table::kTrack, row, "queue", fmt::format("{}", static_cast<uint64_t>(queue)));
    return row;
  }

  // Dispatches

  void read_correlation(int64_t& correlation) {
    if (in_->peek() != '{') {
      correlation = in_->integer();
      return;
    }
    in_->object([&](std::string_view key) {
      if (key == "internal")
        correlation = in_->integer();
      else
        in_->skip();
    });
  }
  void read_extent(int64_t (&extent)[3]) {
    in_->object([&](std::string_view axis) {
      const int64_t value = in_->integer();
      if (axis.size() == 1 && axis[0] >= 'x' && axis[0] <= 'z') extent[axis[0] - 'x'] = value;
    });
  }
  void read_dispatch_member(std::string_view key, Dispatch& dispatch) {
    if (key == "thread_id")
      dispatch.thread = in_->integer();
    else if (key == "correlation_id")
      read_correlation(dispatch.correlation);
    else if (key == "start_timestamp")
      dispatch.start = in_->integer();
    else if (key == "end_timestamp")
      dispatch.end = in_->integer();
    else if (key == "stream_id")
      dispatch.stream = in_->handle();
    else if (key == "graph_exec_id")
      dispatch.graph = in_->handle();
    else if (key == "graph_node_id")
      dispatch.node = in_->handle();
    else if (key == "dispatch_info")
      in_->object([&](std::string_view member) {
        if (member == "agent_id")
          dispatch.agent = in_->handle();
        else if (member == "queue_id")
          dispatch.queue = in_->handle();
        else if (member == "kernel_id")
          dispatch.kernel = in_->integer();
        else if (member == "dispatch_id")
          dispatch.id = in_->integer();
        else if (member == "private_segment_size")
          dispatch.private_bytes = in_->integer();
        else if (member == "group_segment_size")
          dispatch.shared = in_->integer();
        else if (member == "workgroup_size")
          read_extent(dispatch.group);
        else if (member == "grid_size")
          read_extent(dispatch.grid);
        else
          in_->skip();
      });
    else
      in_->skip();
  }

  // False if the times make no sense; counts the row as bad.
  bool times(Table table, int64_t start, int64_t end, int64_t& duration) {
    const bool work = table == Table::kDispatch || table == Table::kCopy || table == Table::kFill;
    if (work && start == 0 && end == 0) {  // not measured, if all others are far from it
      duration = 0;
      return true;
    }
    if (start <= 0 || !event::is_time(start)) {
      writer_.lose(process_row(), table, event::LossReason::kBadInput, 1);
      return false;
    }
    duration = end == 0 ? kUnknown : event::duration_between(start, end);
    if (end != 0 && duration == kUnknown) writer_.lose(process_row(), table, event::LossReason::kClockOrder, 1);
    return true;
  }

  // Device work that was not measured waits for the other times.
  template <typename Row>
  void add_work(const Row& row, int64_t agent, bool to_host = false) {
    if (imported::UnmeasuredRows::looks_so(row.start, row.duration)) return process_->unmeasured.take(row);
    process_->unmeasured.saw(row.start, row.duration);
    work_times_.work({.process = process_row(), .device = device(agent), .to_host = to_host}, row);
  }

  int64_t add_dispatch(const Dispatch& dispatch) {
    const int64_t track = queue_track(dispatch.agent, dispatch.queue, dispatch.stream, dispatch.thread);
    int64_t duration = 0;
    if (!times(Table::kDispatch, dispatch.start, dispatch.end, duration)) return track;
    const auto found = process_->kernels.find(dispatch.kernel);
    Symbol symbol;
    if (found != process_->kernels.end()) symbol = found->second;
    if (symbol.name == 0) symbol.name = text(fmt::format("kernel #{}", dispatch.kernel));
    // The dispatch's size is the total; the code object fixes the static part.
    const bool split = symbol.shared != kUnknown && dispatch.shared != kUnknown && dispatch.shared >= symbol.shared;
    const int64_t kernel =
        writer_.dimension(row::Kernel{.name = symbol.name,
                                      .grid_x = dispatch.grid[0],
                                      .grid_y = dispatch.grid[1],
                                      .grid_z = dispatch.grid[2],
                                      .group_x = dispatch.group[0],
                                      .group_y = dispatch.group[1],
                                      .group_z = dispatch.group[2],
                                      .registers = symbol.arch,
                                      .accum_registers = symbol.accum,
                                      .scalar_registers = symbol.scalar,
                                      .shared_static = split ? symbol.shared : dispatch.shared,
                                      .shared_dynamic = split ? dispatch.shared - symbol.shared : kUnknown,
                                      .private_bytes = dispatch.private_bytes,
                                      .graph = std::max<int64_t>(dispatch.graph, 0)});
    if (dispatch.graph > 0) process_->graph_work.add(dispatch.correlation, 0);
    if (kernel_ids_.emplace(kernel, dispatch.kernel).second)
      writer_.property(Table::kKernel, kernel, "kernel_id", fmt::format("{}", dispatch.kernel));
    add_work(row::Dispatch{.track = track,
                           .start = dispatch.start,
                           .duration = duration,
                           .dim = kernel,
                           .correlation = dispatch.correlation,
                           .ordinal = dispatch.id > 0 ? dispatch.id - 1 : kUnknown,
                           .graph_node = std::max<int64_t>(dispatch.node, 0)},
             dispatch.agent);
    return track;
  }

  // Sections

  void callback_section(std::string_view section) {
    if (section != "counter_collection") {
      const std::string name(section);
      int64_t unread = 0;
      if (in_->peek() == '[')
        in_->array([&] {
          in_->skip();
          ++unread;
        });
      else
        in_->skip();
      if (in_->ok()) tell_unread(name, unread);
      return;
    }
    in_->array([&] {
      Dispatch dispatch;
      int64_t pass = kUnknown;  // of a kernel that was replayed; its dispatch has one number in all passes
      std::vector<std::pair<int64_t, double>> values;
      in_->object([&](std::string_view key) {
        if (key == "dispatch_data") {
          in_->object([&](std::string_view member) {
            if (member == "replay_pass")
              pass = in_->integer();
            else
              read_dispatch_member(member, dispatch);
          });
        } else if (key == "records") {
          in_->array([&] {
            int64_t counter = 0;
            double value = 0;
            in_->object([&](std::string_view member) {
              if (member == "counter_id")
                counter = in_->handle();
              else if (member == "value" || member == "counter_value")
                value = in_->real();
              else if (member == "replay_pass")
                pass = in_->integer();
              else
                in_->skip();
            });
            values.emplace_back(counter, value);
          });
        } else if (key == "thread_id") {
          dispatch.thread = in_->integer();
        } else if (key == "stream_id") {
          dispatch.stream = in_->handle();
        } else if (key == "replay_pass") {
          pass = in_->integer();
        } else {
          in_->skip();
        }
      });
      if (!in_->ok()) return;
      constexpr int64_t kMostDispatches = int64_t{1} << 30;
      bool again = false;
      if (dispatch.id > 0 && dispatch.id < kMostDispatches) {
        const auto id = static_cast<size_t>(dispatch.id);
        if (process_->counted.size() <= id) process_->counted.resize(id + 1);
        again = process_->counted[id];
        process_->counted[id] = true;
      }
      // The program launched the kernel once, however often it was run to count.
      const int64_t track = again ? queue_track(dispatch.agent, dispatch.queue, dispatch.stream, dispatch.thread)
                                  : add_dispatch(dispatch);
      const bool told = pass >= 0 && pass <= INT32_MAX;
      if (again || told) {
        Process::Replayed& first = process_->replayed[dispatch.id];
        if (!again) first.start = dispatch.start;
        if (first.start != kUnknown) dispatch.start = first.start;
        if (again) ++first.times;
        if (!told) pass = first.times;
      } else {
        pass = 0;
      }
      std::map<int64_t, int64_t> instances;
      for (const auto& [counter, value] : values) {
        int64_t& row = process_->counters[counter];
        if (row == 0) row = writer_.dimension(row::Counter{.name = text(fmt::format("counter #{}", counter))});
        work_times_.counter_value({.process = process_row(), .device = device(dispatch.agent)},
                                  {.track = track,
                                   .start = dispatch.start,
                                   .ordinal = dispatch.id > 0 ? dispatch.id - 1 : kUnknown,
                                   .dim = row,
                                   .instance = instances[counter]++,
                                   .pass = pass,
                                   .value = std::bit_cast<int64_t>(value)});
      }
    });
  }

  void buffer_section(std::string_view section) {
    if (section == "kernel_dispatch") {
      in_->array([&] {
        Dispatch dispatch;
        in_->object([&](std::string_view key) { read_dispatch_member(key, dispatch); });
        if (!in_->ok()) return;
        const auto& counted = process_->counted;
        if (dispatch.id > 0 && static_cast<size_t>(dispatch.id) < counted.size() &&
            counted[static_cast<size_t>(dispatch.id)])
          return;
        add_dispatch(dispatch);
      });
      return;
    }
    const std::string name(section);
    int64_t unread = 0;
    in_->array([&] {
      const Record record = read_record();
      if (!in_->ok()) return;
      if (name == "memory_copy")
        add_copy(record);
      else if (name == "memory_fill")  // tacho's own
        add_fill(record);
      else if (name == "memory_allocation")
        add_allocation(record);
      else if (name == "marker_api")
        add_marker(record);
      else if (name == "hip_graph")
        process_->graph_launches.add({record});
      else if (name == "hip_event")
        add_event(record);
      else if (name == "kfd")
        add_driver_event(record);
      else if (name.ends_with("_api"))
        add_call(record, name);
      else
        ++unread;
    });
    tell_unread(name, unread);
  }

  void tell_unread(std::string_view section, int64_t records) {
    if (records == 0) return;
    writer_.lose(process_row(), Table::kEnd, event::LossReason::kUnknownRecord, records);
    writer_.note(process_row(), event::NoteSeverity::kWarning,
                 fmt::format("{} of section {} {} of a kind that is not read", how_many(records, "record", "records"),
                             presentable(section), records == 1 ? "is" : "are"));
  }

  // A name from the file, fit for a sentence: one line, not too long.
  static std::string presentable(std::string_view name) {
    std::string out(name.substr(0, 60));
    for (char& c : out)
      if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
    return out;
  }

  // A number, also in hexadecimal digits, or an object with it.
  int64_t read_address() {
    int64_t address = 0;
    if (in_->peek() == '"') {
      std::string hex;
      in_->string(hex);
      json::integer(hex, address);
    } else if (in_->peek() == '{') {
      in_->object([&](std::string_view) { address = read_address(); });
    } else {
      address = in_->integer();
    }
    return address;
  }

  Record read_record() {
    Record record;
    in_->object([&](std::string_view key) {
      if (key == "kind")
        record.kind = in_->integer();
      else if (key == "operation")
        record.operation = in_->integer();
      else if (key == "thread_id")
        record.thread = in_->integer();
      else if (key == "correlation_id")
        read_correlation(record.correlation);
      else if (key == "start_timestamp")
        record.start = in_->integer();
      else if (key == "end_timestamp")
        record.end = in_->integer();
      else if (key == "src_agent_id" || key == "src_agent")
        record.source = in_->handle();
      else if (key == "dst_agent_id")
        record.target = in_->handle();
      else if (key == "agent_id")
        record.agent = in_->handle();
      else if (key == "bytes" || key == "allocation_size")
        record.bytes = in_->integer();
      else if (key == "stream_id")
        record.stream = in_->handle();
      else if (key == "queue_id")
        record.queue = in_->handle();
      else if (key == "graph_exec_id")
        record.graph = in_->handle();
      else if (key == "graph_node_id")
        record.node = in_->handle();
      else
        read_driver_member(key, record);
    });
    return record;
  }

  void read_driver_member(std::string_view key, Record& record) {
    if (key == "timestamp") {
      record.start = record.end = in_->integer();
      record.moment = true;
    } else if (key == "address") {
      record.address = read_address();
      record.fault = true;
    } else if (key == "start_address") {
      record.first_address = read_address();
    } else if (key == "end_address") {
      record.last_address = read_address();
    } else if (key == "dst_agent") {
      record.target = in_->handle();
      record.migration = true;
    } else if (key == "error_code") {
      record.error = in_->integer();
    } else if (key == "count") {
      record.dropped = in_->integer();
    } else {
      in_->skip();
    }
  }

  std::string_view kind_name(const Record& record) const {
    return record.kind >= 0 && static_cast<size_t>(record.kind) < process_->kinds.size()
               ? std::string_view(process_->kinds[static_cast<size_t>(record.kind)].first)
               : std::string_view();
  }
  std::string_view operation_name(const Record& record) const {
    if (record.kind < 0 || static_cast<size_t>(record.kind) >= process_->kinds.size()) return {};
    const auto& operations = process_->kinds[static_cast<size_t>(record.kind)].second;
    return record.operation >= 0 && static_cast<size_t>(record.operation) < operations.size()
               ? std::string_view(operations[static_cast<size_t>(record.operation)])
               : std::string_view();
  }

  void add_copy(const Record& record) {
    int64_t duration = 0;
    if (!times(Table::kCopy, record.start, record.end, duration)) return;
    const std::string_view operation = operation_name(record);
    const event::CopyDirection direction = imported::copy_direction(operation);
    const bool down = direction == event::CopyDirection::kHostToDevice;
    const int64_t shape = writer_.dimension(row::CopyShape{.direction = direction,
                                                           .source_device = device(record.source),
                                                           .target_device = device(record.target),
                                                           .asynchronous = 1});
    // One line per stream; rocprofv3 does not say which hardware queue or engine made a copy.
    const int64_t agent = down ? record.target : record.source;
    const int64_t track = queue_track(agent, 0, record.stream, record.thread);
    add_work(row::Copy{.track = track,
                       .start = record.start,
                       .duration = duration,
                       .dim = shape,
                       .correlation = record.correlation,
                       .bytes = record.bytes,
                       .graph_node = std::max<int64_t>(record.node, 0)},
             agent, direction == event::CopyDirection::kDeviceToHost);
    if (record.graph > 0) process_->graph_work.add(record.correlation, 0);
  }

  void add_fill(const Record& record) {
    int64_t duration = 0;
    if (!times(Table::kFill, record.start, record.end, duration)) return;
    const int64_t shape =
        writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = device(record.agent)});
    add_work(row::Fill{.track = queue_track(record.agent, 0, record.stream, record.thread),
                       .start = record.start,
                       .duration = duration,
                       .dim = shape,
                       .correlation = record.correlation,
                       .bytes = record.bytes},
             record.agent);
  }

  void add_allocation(const Record& record) {
    int64_t duration = 0;
    if (!times(Table::kAllocation, record.start, record.end, duration)) return;
    const bool free = operation_name(record).find("FREE") != std::string_view::npos;
    const int64_t shape = writer_.dimension(row::AllocationShape{
        .operation = free ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
        .device = device(record.agent),
        .name = text("hsa")});
    writer_.add(row::Allocation{.track = thread_track(record.thread),
                                .start = record.start,
                                .duration = duration,
                                .dim = shape,
                                .correlation = record.correlation,
                                .bytes = free && record.bytes == 0 ? kUnknown : record.bytes,
                                .address = record.address});
  }

  void add_marker(const Record& record) {
    int64_t duration = 0;
    if (!times(Table::kMarker, record.start, record.end, duration)) return;
    const auto message = process_->messages.find(record.correlation);
    const int64_t name = message != process_->messages.end() ? message->second : text(operation_name(record));
    const std::string_view operation = operation_name(record);
    const auto kind = operation.find("Mark") != std::string_view::npos    ? event::MarkerKind::kMark
                      : operation.find("Start") != std::string_view::npos ? event::MarkerKind::kStartStop
                                                                          : event::MarkerKind::kPushPop;
    const int64_t label = writer_.dimension(row::Label{.name = name, .kind = kind, .domain = text("ROCTx")});
    writer_.add(row::Marker{.track = thread_track(record.thread),
                            .start = record.start,
                            .duration = duration,
                            .dim = label,
                            .correlation = record.correlation});
  }

  // Records and waits of HIP events on a queue.
  void add_event(const Record& record) {
    int64_t duration = 0;
    if (!times(Table::kSync, record.start, record.end, duration)) return;
    const bool waits = operation_name(record).find("WAIT") != std::string_view::npos;
    const int64_t shape = writer_.dimension(row::SyncShape{
        .kind = waits ? event::SyncKind::kQueueWaitEvent : event::SyncKind::kEvent, .device = device(record.agent)});
    work_times_.sync({.process = process_row(), .device = device(record.agent)},
                     {.track = queue_track(record.agent, record.queue, record.stream, record.thread),
                      .start = record.start,
                      .duration = duration,
                      .dim = shape,
                      .correlation = record.correlation});
  }

  // A launch of a graph is the sum of its kernels and copies, where the file has them.
  Status finish_graphs() {
    TACHO_TRY(process_->graph_work.finish());
    TACHO_TRY(process_->graph_launches.finish());
    GraphLaunch each;
    while (process_->graph_launches.next(each)) {
      const Record& record = each.record;
      int64_t duration = 0;
      if (process_->graph_work.find(record.correlation) != nullptr ||
          !times(Table::kDispatch, record.start, record.end, duration))
        continue;
      const int64_t kernel = writer_.dimension(row::Kernel{.name = text(fmt::format("graph {}", record.graph)),
                                                           .kind = event::DispatchKind::kGraph,
                                                           .graph = std::max<int64_t>(record.graph, 0)});
      add_work(row::Dispatch{.track = queue_track(record.agent, record.queue, record.stream, record.thread),
                             .start = record.start,
                             .duration = duration,
                             .dim = kernel,
                             .correlation = record.correlation},
               record.agent);
    }
    return {};
  }

  // What the kernel driver did, as ranges on a line for each kind and agent: pages that it moved or unmapped with their
  // bytes, faults with their address, and the time for which it took queues off a GPU.
  void add_driver_event(const Record& record) {
    if (record.dropped != kUnknown) {
      writer_.lose(process_row(), Table::kMarker, event::LossReason::kVendor, std::max<int64_t>(record.dropped, 1));
      return;
    }
    int64_t duration = 0;
    if (!times(Table::kMarker, record.start, record.end, duration)) return;
    const bool pages = record.first_address != kUnknown && record.last_address >= record.first_address;
    const std::string_view word = record.fault       ? "PAGE_FAULT"
                                  : record.migration ? "PAGE_MIGRATE"
                                  : pages            ? "UNMAP_FROM_GPU"
                                                     : "QUEUE";
    const std::string_view line = record.fault       ? "page faults"
                                  : record.migration ? "page migrations"
                                  : pages            ? "pages unmapped"
                                                     : "queue evictions";
    Record named = record;
    std::string kind(kind_name(record));
    if (kind.empty()) {  // earlier releases leave it out
      kind = fmt::format("KFD_{}{}", record.moment ? "EVENT_" : "", word);
      const auto& kinds = process_->kinds;
      const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == kind; });
      if (found != kinds.end()) named.kind = found - kinds.begin();
    }
    std::string name(operation_name(named));
    if (name.empty()) name = fmt::format("{} operation {}", kind, record.operation);
    if (record.error != 0) name += fmt::format(", error {}", record.error);
    const int64_t agent = record.migration ? record.target : record.agent;
    const auto about = process_->agent_words.find(agent);
    const int64_t track = writer_.dimension(row::Track{
        .kind = event::TrackKind::kRange,
        .process = process_row(),
        .name =
            text(about == process_->agent_words.end() ? std::string(line) : fmt::format("{}, {}", line, about->second)),
        .category = text("kernel driver")});
    const bool tells = record.fault || pages;
    const int64_t label =
        writer_.dimension(row::Label{.name = text(name),
                                     .kind = record.moment ? event::MarkerKind::kMark : event::MarkerKind::kStartStop,
                                     .domain = text("KFD"),
                                     .category = text(kind),
                                     .payload = tells ? event::PayloadKind::kInteger : event::PayloadKind::kNone});
    writer_.add(row::Marker{.track = track,
                            .start = record.start,
                            .duration = duration,
                            .dim = label,
                            .payload = record.fault ? record.address
                                       : pages      ? record.last_address - record.first_address
                                                    : 0});
  }

  void add_call(const Record& record, const std::string& section) {
    int64_t duration = 0;
    if (!times(Table::kApi, record.start, record.end, duration)) return;
    const Domain domain = domain_of_kind(kind_name(record));
    std::string name(operation_name(record));
    if (name.empty()) name = fmt::format("{} operation {}", section, record.operation);
    const int64_t function = writer_.dimension(row::Function{.name = text(name), .domain = domain});
    work_times_.call({.process = process_row(),
                      .correlation = record.correlation,
                      .start = record.start,
                      .end = duration == kUnknown ? kUnknown : record.start + duration,
                      .role = vendor::call_role(name)});
    process_->unmeasured.saw(record.start, duration);
    if (record.correlation != 0)
      process_->call_ends.add(record.correlation, record.start + std::max<int64_t>(duration, 0));
    writer_.add(row::Api{.track = thread_track(record.thread),
                         .start = record.start,
                         .duration = duration,
                         .dim = function,
                         .correlation = record.correlation});
  }

  std::string path_;
  trace::TraceWriter& writer_;
  trace::WorkTimes work_times_{writer_, trace::WorkTimes::Calls::kApart};
  JsonStream* in_ = nullptr;
  std::deque<Process> processes_;
  Process* process_ = nullptr;
  std::unordered_map<int64_t, int64_t> kernel_ids_;
  std::set<std::string> made_;        // origins of devices
  std::set<std::string> recordings_;  // by pid, times and host
  bool records_only_ = false, records_early_ = false;
};

}  // namespace

bool accepts(std::string_view, std::string_view head, bool folder) {
  if (folder) return false;
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         head.find("\"rocprofiler-sdk-tool\"") != std::string_view::npos;
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  return Reader(path, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::rocprofv3
