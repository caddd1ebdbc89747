// Writes rocpd databases: regions first, in time order, so that operations find their calling thread.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "format/rocpd/rocpd.h"
#include "format/rocpd/schema.h"
#include "format/shared/rocprof_words.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"
#include "report/text.h"
#include "trace/read/rows.h"
#include "walk/agents.h"
#include "walk/causes.h"
#include "walk/clock.h"
#include "walk/counters.h"
#include "walk/hash_ids.h"
#include "walk/names.h"

namespace tacho::format::rocpd {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using sqlite::BulkTable;
namespace column = event::column;
using walk::Agent;
using walk::Agents;
using walk::Causes;
using walk::HashIds;
using walk::OutputClock;

// A UUID of version 7: milliseconds since 1970, then random bits.
std::string make_guid(int64_t realtime_ns) {
  std::random_device random;
  const auto ms = static_cast<uint64_t>(std::max<int64_t>(realtime_ns, 0) / 1'000'000);
  const uint64_t a = random(), b = random(), c = random();
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:08x}{:04x}", ms >> 16 & 0xffffffff, ms & 0xffff, a & 0xfff,
                     0x8000 | (a >> 12 & 0x3fff), b & 0xffffffff, c & 0xffff);
}

class Writer {
 public:
  Writer(const trace::Trace& trace, const ExportOptions& options, sqlite::BulkFile& file, OutputClock clock,
         std::string suffix, std::string guid)
      : trace_(trace),
        options_(options),
        file_(file),
        clock_(std::move(clock)),
        suffix_(std::move(suffix)),
        guid_(std::move(guid)),
        agents_(trace, options.process) {}
  Status run();

 private:
  struct Process {
    int64_t id = 0, pid = 0, node = 0, main_thread = 0;
    bool wanted = true;
  };
  struct Track {
    int64_t process = 0, thread = 0, queue = 0, agent = 0;  // process: row; the others: ids in the database
    bool wanted = true;
  };

  BulkTable& table(const char* name) { return file_.table(std::string(name) + suffix_); }
  /// Begins a row and writes its id and the guid.
  BulkTable& begin(BulkTable& table, int64_t id) {
    table.begin(id);
    return table.null().text(guid_);
  }
  int64_t text(std::string_view value);
  int64_t event(int64_t category, int64_t stack, std::string_view extdata);
  void nodes_and_processes();
  void agents_and_queues();
  int64_t symbol(int64_t process, int64_t kernel);
  Status regions();
  Status operations();
  Status allocations();
  Status counters();
  int64_t thread_of(const Track& track, int64_t correlation);
  const Process& process(int64_t row) const {
    const auto count = static_cast<int64_t>(processes_.size());
    const int64_t at = row > 0 && row < count ? row : 0;
    return processes_[static_cast<size_t>(at == 0 && processes_[0].id == 0 && count > 1 ? 1 : at)];
  }
  const Track& track(int64_t row) const { return tracks_[static_cast<size_t>(row)]; }

  const trace::Trace& trace_;
  const ExportOptions& options_;
  sqlite::BulkFile& file_;
  OutputClock clock_;
  std::string suffix_, guid_;
  Agents agents_;
  std::vector<Process> processes_;
  std::vector<Track> tracks_;
  HashIds texts_;
  int64_t next_text_ = 1, next_event_ = 1, empty_text_ = 0;
  HashIds symbols_;    // by process, name and resource needs
  HashIds symbol_of_;  // by process and row of table kernel
  int64_t symbol_count_ = 0;
  std::map<int64_t, int64_t> code_objects_;
  int64_t host_agent_ = 0;
  Causes threads_;  // of API calls: the calling thread's id
  struct Place {
    int64_t track, start;
    bool operator<(const Place& other) const {
      return track != other.track ? track < other.track : start < other.start;
    }
    bool operator==(const Place& other) const { return track == other.track && start == other.start; }
  };
  KeyIndex<int64_t, Place> dispatch_events_;
};

template <size_t kCount>
std::string_view bytes_of(const int64_t (&numbers)[kCount]) {
  return {reinterpret_cast<const char*>(numbers), sizeof numbers};
}

int64_t Writer::text(std::string_view value) {
  const std::string clean = sqlite::valid_utf8(value);
  int64_t& known = texts_.of(clean);
  if (known != 0) return known;
  const int64_t id = known = next_text_++;
  begin(table("rocpd_string"), id).text(clean).end();
  return id;
}

int64_t Writer::event(int64_t category, int64_t stack, std::string_view extdata) {
  const int64_t id = next_event_++;
  begin(table("rocpd_event"), id)
      .integer(category)
      .integer(stack)
      .integer(0)
      .integer(0)
      .text("{}")
      .text("{}")
      .text(extdata)
      .end();
  return id;
}

void Writer::nodes_and_processes() {
  std::map<std::string, int64_t> nodes;
  const int64_t count = std::max<int64_t>(trace_.rows(Table::kProcess), 1);
  processes_.resize(static_cast<size_t>(count));
  std::map<int64_t, int64_t> pids;
  int64_t next_extra = 1;
  BulkTable& info = table("rocpd_info_process");
  std::vector<std::pair<int64_t, int64_t>> order;  // (id, row): ids must ascend in the file
  bool nameless = count == 1;
  for (int64_t row = 1; row < trace_.rows(Table::kTrack) && !nameless; ++row)
    nameless = trace_.cell(Table::kTrack, row, column::Track::process) <= 0;
  for (int64_t row = 0; row < count; ++row) {
    Process& process = processes_[static_cast<size_t>(row)];
    if (row == 0 && !nameless) continue;
    process.wanted = options_.process == 0 || options_.process == row;
    std::string host(row > 0 ? trace_.text(Table::kProcess, row, column::Process::host) : std::string_view());
    // Row 0 stands for tracks that name no process; it becomes a process only if such tracks are used.
    const auto [node, fresh] = nodes.try_emplace(host, 0);
    if (fresh) {
      uint64_t hash = 1469598103934665603ULL;
      for (const char c : host) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
      node->second = static_cast<int64_t>(hash % 0xfffffffe) + 1;
    }
    process.node = node->second;
    process.pid = row > 0 ? trace_.cell(Table::kProcess, row, column::Process::pid) : 0;
    process.id = process.pid;
    if (process.id <= 0 || pids.contains(process.id)) process.id = (int64_t{1} << 32) + next_extra++;
    pids[process.id] = row;
    order.emplace_back(process.id, row);
  }
  BulkTable& info_node = table("rocpd_info_node");
  std::vector<std::pair<int64_t, std::string>> by_id;
  for (const auto& [host, id] : nodes) by_id.emplace_back(id, host);
  std::sort(by_id.begin(), by_id.end());
  by_id.erase(std::unique(by_id.begin(), by_id.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
              by_id.end());
  for (const auto& [id, host] : by_id)
    begin(info_node, id)
        .integer(id)
        .text(host.empty() ? fmt::format("unknown-{}", id) : sqlite::valid_utf8(host))
        .text("Linux")
        .text(sqlite::valid_utf8(host))
        .null()
        .null()
        .null()
        .null()
        .end();
  std::sort(order.begin(), order.end());
  const auto [first, last] = trace_.time_range();
  for (const auto& [id, row] : order) {
    const int64_t start = row > 0 ? trace_.cell(Table::kProcess, row, column::Process::start) : kUnknown;
    const int64_t parent = row > 0 ? trace_.cell(Table::kProcess, row, column::Process::parent_pid) : kUnknown;
    const int64_t from = clock_(start == kUnknown || start == 0 ? first : start), to = clock_(last);
    const std::string_view command =
        row > 0 ? trace_.text(Table::kProcess, row, column::Process::command) : std::string_view();
    begin(info, id)
        .integer(process(row).node)
        .known(parent)
        .integer(process(row).pid)
        .integer(from)
        .integer(to)
        .integer(from)
        .integer(to)
        .text(sqlite::valid_utf8(command))
        .text("{}")
        .text("{}")
        .end();
  }
  // A thread's id is its tid, unless another thread has taken that.
  std::vector<std::array<int64_t, 3>> threads;  // (id, process row, thread row)
  std::map<int64_t, bool> used;
  int64_t extra = (int64_t{1} << 33);
  const auto number = [&](int64_t wanted) {
    const int64_t id = wanted > 0 && !used.contains(wanted) ? wanted : ++extra;
    used[id] = true;
    return id;
  };
  std::vector<int64_t> thread_ids(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kThread), 1)), 0);
  for (int64_t row = 1; row < trace_.rows(Table::kThread); ++row) {
    const int64_t of = trace_.cell(Table::kThread, row, column::Thread::process);
    const int64_t id = number(trace_.cell(Table::kThread, row, column::Thread::tid));
    thread_ids[static_cast<size_t>(row)] = id;
    threads.push_back({id, of, row});
    if (of > 0 && of < count &&
        trace_.cell(Table::kThread, row, column::Thread::tid) == processes_[static_cast<size_t>(of)].pid)
      processes_[static_cast<size_t>(of)].main_thread = id;
  }
  for (int64_t row = nameless ? 0 : 1; row < count; ++row) {
    Process& of = processes_[static_cast<size_t>(row)];
    if (of.main_thread != 0) continue;
    of.main_thread = number(of.pid);
    threads.push_back({of.main_thread, row, 0});
  }
  std::sort(threads.begin(), threads.end());
  BulkTable& info_thread = table("rocpd_info_thread");
  for (const auto& [id, of, row] : threads) {
    const Process& owner = process(of);
    const int64_t parent = of > 0 ? trace_.cell(Table::kProcess, of, column::Process::parent_pid) : kUnknown;
    begin(info_thread, id)
        .integer(owner.node)
        .known(parent)
        .integer(owner.id)
        .integer(row > 0 ? trace_.cell(Table::kThread, row, column::Thread::tid) : owner.pid);
    info_thread
        .text(row > 0 ? sqlite::valid_utf8(trace_.text(Table::kThread, row, column::Thread::name)) : std::string())
        .null()
        .null()
        .text("{}")
        .end();
  }
  const int64_t tracks = std::max<int64_t>(trace_.rows(Table::kTrack), 1);
  tracks_.resize(static_cast<size_t>(tracks));
  for (int64_t row = 0; row < tracks; ++row) {
    Track& one = tracks_[static_cast<size_t>(row)];
    one.process = trace_.cell(Table::kTrack, row, column::Track::process);
    const int64_t thread = trace_.cell(Table::kTrack, row, column::Track::thread);
    one.thread =
        thread > 0 ? thread_ids[static_cast<size_t>(thread)] : processes_[static_cast<size_t>(one.process)].main_thread;
    one.wanted = options_.process == 0 || options_.process == one.process;
  }
}

void Writer::agents_and_queues() {
  BulkTable& info = table("rocpd_info_agent");
  std::vector<const Agent*> order;
  for (const Agent& agent : agents_.all()) order.push_back(&agent);
  std::sort(order.begin(), order.end(), [](const Agent* a, const Agent* b) { return a->node < b->node; });
  const Process& first = process(processes_.size() > 1 ? 1 : 0);
  int64_t last = -1;
  for (const Agent* const agent : order) {
    if (agent->node == last) continue;  // the same device, seen by another process
    last = agent->node;
    const int64_t owner = agent->device > 0 ? trace_.cell(Table::kDevice, agent->device, column::Device::process) : 0;
    const Process& of = owner > 0 ? process(owner) : first;
    const auto cell = [&](int at) {
      return agent->device > 0 ? sqlite::valid_utf8(trace_.text(Table::kDevice, agent->device, at)) : std::string();
    };
    const std::string product = agent->device > 0 ? cell(column::Device::name) : "host",
                      architecture = cell(column::Device::architecture);
    const bool cpu = agent->kind == event::DeviceKind::kCpu || agent->device == 0;
    if (cpu && host_agent_ == 0) host_agent_ = agent->node;
    begin(info, agent->node)
        .integer(of.node)
        .integer(of.id)
        .text(cpu ? "CPU" : "GPU")
        .integer(agent->node)
        .integer(agent->logical)
        .integer(agent->of_type)
        .integer(0);
    info.text(architecture.empty() ? product : architecture)
        .text(product)
        .text(cell(column::Device::vendor))
        .text(product)
        .text(product)
        .text("{}")
        .end();
  }
  host_agent_ = agents_.of(0).node;
  // Each line of device work gets a queue and a stream, numbered in order; 0 are the default ones.
  BulkTable& queues = table("rocpd_info_queue");
  BulkTable& streams = table("rocpd_info_stream");
  begin(queues, 0).integer(first.node).integer(first.id).text("Default Queue").text("{}").end();
  begin(streams, 0).integer(first.node).integer(first.id).text("Default Stream").text("{}").end();
  int64_t next = 1;
  std::map<std::array<int64_t, 4>, int64_t> known;
  for (int64_t row = 1; row < static_cast<int64_t>(tracks_.size()); ++row) {
    const int64_t device = trace_.cell(Table::kTrack, row, column::Track::device);
    Track& one = tracks_[static_cast<size_t>(row)];
    one.agent = agents_.of(device).node;
    if (trace_.cell(Table::kTrack, row, column::Track::kind) != static_cast<int64_t>(event::TrackKind::kQueue))
      continue;
    const auto [found, fresh] =
        known.try_emplace({one.process, device, trace_.cell(Table::kTrack, row, column::Track::native),
                           trace_.cell(Table::kTrack, row, column::Track::context)},
                          next);
    one.queue = found->second;
    if (!fresh) continue;
    ++next;
    const Process& of = process(one.process);
    begin(queues, one.queue).integer(of.node).integer(of.id).text(fmt::format("Queue {}", one.queue)).text("{}").end();
    begin(streams, one.queue)
        .integer(of.node)
        .integer(of.id)
        .text(fmt::format("Stream {}", one.queue))
        .text("{}")
        .end();
  }
}

int64_t Writer::symbol(int64_t process_row, int64_t kernel) {
  const int64_t place[] = {process_row, kernel};
  int64_t& known = symbol_of_.of(bytes_of(place));
  if (known != 0) return known;
  using K = column::Kernel;
  const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
  const int64_t key[] = {process_row,
                         cell(K::name),
                         cell(K::registers),
                         cell(K::accum_registers),
                         cell(K::scalar_registers),
                         cell(K::shared_static),
                         cell(K::private_bytes)};
  int64_t& id = symbols_.of(bytes_of(key));
  if (id == 0) {
    id = ++symbol_count_;
    const Process& of = process(process_row);
    const auto [object, first] = code_objects_.try_emplace(process_row, static_cast<int64_t>(code_objects_.size()) + 1);
    if (first)
      begin(table("rocpd_info_code_object"), object->second)
          .integer(of.node)
          .integer(of.id)
          .null()
          .text("")
          .integer(0)
          .integer(0)
          .integer(0)
          .null()
          .text("{}")
          .end();
    const std::string_view raw = trace_.string(cell(K::name));
    const std::string readable = demangle(raw), truncated = short_name(readable);
    const std::string shown = options_.mangled ? std::string(raw) : options_.truncate ? truncated : readable;
    BulkTable& info = table("rocpd_info_kernel_symbol");
    begin(info, id)
        .integer(of.node)
        .integer(of.id)
        .integer(object->second)
        .text(sqlite::valid_utf8(raw))
        .text(sqlite::valid_utf8(shown))
        .null()
        .null()
        .null();
    info.known(cell(K::shared_static))
        .known(cell(K::private_bytes))
        .known(cell(K::scalar_registers))
        .known(cell(K::registers))
        .known(cell(K::accum_registers));
    std::string about;
    JsonWriter json(about);
    json.begin_object().member("kernel_id", id).member("formatted_kernel_name", readable);
    json.member("demangled_kernel_name", readable).member("truncated_kernel_name", truncated).end_object();
    info.text(about).end();
  }
  return known = id;
}

Status Writer::regions() {
  static constexpr int kColumns[] = {column::Fact::track, column::Fact::start, column::Fact::duration,
                                     column::Fact::dim, column::Fact::correlation};
  trace::TimeCursor api(trace_, Table::kApi, kColumns), marker(trace_, Table::kMarker, kColumns);
  bool more_api = options_.wants(Table::kApi) && api.next(),
       more_marker = options_.wants(Table::kMarker) && marker.next();
  struct Function {
    int64_t name = 0, category = 0;
    bool wanted = true;
  };
  std::vector<Function> functions(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1)));
  for (size_t row = 0; row < functions.size(); ++row) {
    const Domain domain = event::from_cell<event::Domain>(
        trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
    functions[row].name = text(trace_.text(Table::kFunction, static_cast<int64_t>(row), column::Function::name));
    functions[row].category = text(api_domain_name(domain));
    functions[row].wanted = options_.wants(domain);
  }
  const int64_t marker_category = text("MARKER_CORE_API");
  const int64_t pushed = text("roctxThreadRangeA"), started = text("roctxProcessRangeA"), marked = text("roctxMarkA");
  BulkTable& regions = table("rocpd_region");
  BulkTable& samples = table("rocpd_sample");
  BulkTable& sample_tracks = table("rocpd_track");
  std::map<int64_t, int64_t> marks;  // thread -> rocpd_track
  int64_t region = 0, sample = 0;
  std::string extdata;
  while (more_api || more_marker) {
    const bool take_api = more_api && (!more_marker || api.start() <= marker.start());
    const std::span<const int64_t> row = take_api ? api.row() : marker.row();
    const Track& on = track(row[0]);
    const auto dim = static_cast<size_t>(row[3]);
    if (on.wanted && (!take_api || functions[dim].wanted)) {
      const Process& of = process(on.process);
      const int64_t start = clock_(row[1]), end = row[2] == kUnknown ? start : clock_(row[1] + row[2]);
      if (take_api) {
        const int64_t about = event(functions[dim].category, row[4], "{}");
        begin(regions, ++region)
            .integer(of.node)
            .integer(of.id)
            .integer(on.thread)
            .integer(start)
            .integer(end)
            .integer(functions[dim].name)
            .integer(about)
            .text("{}")
            .end();
        if (row[4] != 0) threads_.add(on.process, row[4], on.thread);
      } else {
        extdata.clear();
        JsonWriter(extdata)
            .begin_object()
            .member("message", trace_.text(Table::kLabel, row[3], column::Label::name))
            .end_object();
        const int64_t about = event(marker_category, row[4], extdata);
        const auto kind = static_cast<event::MarkerKind>(trace_.cell(Table::kLabel, row[3], column::Label::kind));
        if (kind == event::MarkerKind::kMark) {
          const auto [found, fresh] = marks.try_emplace(on.thread, static_cast<int64_t>(marks.size()) + 1);
          if (fresh)
            begin(sample_tracks, found->second)
                .integer(of.node)
                .integer(of.id)
                .integer(on.thread)
                .integer(marked)
                .text("{}")
                .end();
          begin(samples, ++sample).integer(found->second).integer(start).integer(about).text("{}").end();
        } else {
          begin(regions, ++region)
              .integer(of.node)
              .integer(of.id)
              .integer(on.thread)
              .integer(start)
              .integer(end)
              .integer(kind == event::MarkerKind::kPushPop ? pushed : started);
          regions.integer(about).text("{}").end();
        }
      }
    }
    if (take_api)
      more_api = api.next();
    else
      more_marker = marker.next();
  }
  TACHO_TRY(api.status());
  TACHO_TRY(marker.status());
  return threads_.finish();
}

int64_t Writer::thread_of(const Track& on, int64_t correlation) {
  const int64_t thread = threads_.find(on.process, correlation);
  return thread != 0 ? thread : process(on.process).main_thread;
}

Status Writer::operations() {
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  static constexpr int kDispatchColumns[] = {column::Dispatch::track,       column::Dispatch::start,
                                             column::Dispatch::duration,    column::Dispatch::dim,
                                             column::Dispatch::correlation, column::Dispatch::ordinal};
  static constexpr int kCopyColumns[] = {column::Copy::track, column::Copy::start,       column::Copy::duration,
                                         column::Copy::dim,   column::Copy::correlation, column::Copy::bytes};
  trace::TimeCursor dispatch(trace_, Table::kDispatch, kDispatchColumns), copy(trace_, Table::kCopy, kCopyColumns),
      fill(trace_, Table::kFill, kCopyColumns);
  trace::TimeCursor* const cursors[] = {&dispatch, &copy, &fill};
  bool more[3];
  for (int i = 0; i < 3; ++i) more[i] = options_.wants(kTables[i]) && cursors[i]->next();
  const bool counters = trace_.rows(Table::kCounterValue) > 0;
  const int64_t dispatch_category = text("KERNEL_DISPATCH"), copy_category = text("MEMORY_COPY"),
                fill_name = text("MEMORY_FILL");
  BulkTable& dispatches = table("rocpd_kernel_dispatch");
  BulkTable& copies = table("rocpd_memory_copy");
  int64_t dispatch_id = 0, copy_id = 0;
  while (more[0] || more[1] || more[2]) {
    int which = -1;
    for (int i = 0; i < 3; ++i)
      if (more[i] && (which < 0 || cursors[i]->start() < cursors[which]->start())) which = i;
    const std::span<const int64_t> row = cursors[which]->row();
    const Track& on = track(row[0]);
    if (on.wanted) {
      const Process& of = process(on.process);
      const int64_t start = clock_(row[1]), end = row[2] == kUnknown ? start : clock_(row[1] + row[2]);
      const int64_t thread = thread_of(on, row[4]);
      const int64_t about = event(which == 0 ? dispatch_category : copy_category, row[4], "{}");
      if (which == 0) {
        using K = column::Kernel;
        const auto cell = [&](int at) {
          const int64_t value = trace_.cell(Table::kKernel, row[3], at);
          return value == kUnknown ? 0 : value;
        };
        ++dispatch_id;
        begin(dispatches, dispatch_id)
            .integer(of.node)
            .integer(of.id)
            .integer(thread)
            .integer(on.agent)
            .integer(symbol(on.process, row[3]))
            .integer(row[5] == kUnknown ? dispatch_id : saturating_add(row[5], 1));
        dispatches.integer(on.queue)
            .integer(on.queue)
            .integer(start)
            .integer(end)
            .integer(cell(K::private_bytes))
            .integer(saturating_add(cell(K::shared_static), cell(K::shared_dynamic)));
        for (const int at : {K::group_x, K::group_y, K::group_z, K::grid_x, K::grid_y, K::grid_z})
          dispatches.integer(cell(at));
        dispatches.integer(empty_text_).integer(about).text("{}").end();
        if (counters) dispatch_events_.add({row[0], row[1]}, about);
      } else {
        int64_t name = fill_name, from = on.agent, to = on.agent;
        if (which == 1) {
          const int64_t direction = trace_.cell(Table::kCopyShape, row[3], column::CopyShape::direction);
          name = text(copy_direction_name(direction));
          using event::CopyDirection;
          const auto way = static_cast<CopyDirection>(direction);
          const auto agent = [&](int at, bool host) {
            const int64_t device = trace_.cell(Table::kCopyShape, row[3], at);
            return device > 0 ? agents_.of(device).node : host ? host_agent_ : on.agent;
          };
          from = agent(column::CopyShape::source_device,
                       way == CopyDirection::kHostToDevice || way == CopyDirection::kHostToHost);
          to = agent(column::CopyShape::target_device,
                     way == CopyDirection::kDeviceToHost || way == CopyDirection::kHostToHost);
        }
        begin(copies, ++copy_id)
            .integer(of.node)
            .integer(of.id)
            .integer(thread)
            .integer(start)
            .integer(end)
            .integer(name)
            .integer(to)
            .integer(0)
            .integer(from)
            .integer(0);
        copies.integer(row[5] == kUnknown ? 0 : row[5])
            .integer(on.queue)
            .integer(on.queue)
            .integer(empty_text_)
            .integer(about)
            .text("{}")
            .end();
      }
    }
    more[which] = cursors[which]->next();
  }
  for (const trace::TimeCursor* cursor : cursors) TACHO_TRY(cursor->status());
  return dispatch_events_.finish();
}

Status Writer::allocations() {
  if (!options_.wants(Table::kAllocation)) return {};
  static constexpr int kColumns[] = {
      column::Allocation::track,       column::Allocation::start, column::Allocation::duration, column::Allocation::dim,
      column::Allocation::correlation, column::Allocation::bytes, column::Allocation::address};
  const int64_t category = text("MEMORY_ALLOCATION");
  BulkTable& rows = table("rocpd_memory_allocate");
  int64_t id = 0;
  return trace::visit_by_time(
      trace_, Table::kAllocation, kColumns, INT64_MIN, INT64_MAX, [&](std::span<const int64_t> row) {
        const Track& on = track(row[0]);
        if (!on.wanted) return true;
        const Process& of = process(on.process);
        const int64_t about = event(category, row[4], "{}");
        const int64_t device = trace_.cell(Table::kAllocationShape, row[3], column::AllocationShape::device);
        const bool freed = trace_.cell(Table::kAllocationShape, row[3], column::AllocationShape::operation) ==
                           static_cast<int64_t>(event::AllocationOperation::kFree);
        const int64_t start = clock_(row[1]), end = row[2] == kUnknown ? start : clock_(row[1] + row[2]);
        begin(rows, ++id)
            .integer(of.node)
            .integer(of.id)
            .integer(on.thread)
            .integer(device > 0 ? agents_.of(device).node : host_agent_)
            .text(freed ? "FREE" : "ALLOC")
            .text("REAL");
        rows.integer(start)
            .integer(end)
            .integer(row[6])
            .integer(row[5] == kUnknown ? 0 : row[5])
            .integer(0)
            .integer(0)
            .integer(about)
            .text("{}")
            .end();
        return true;
      });
}

Status Writer::counters() {
  if (trace_.rows(Table::kCounterValue) == 0 || !options_.wants(Table::kCounterValue)) return {};
  std::map<std::pair<int64_t, int64_t>, int64_t> infos;  // (agent, counter) -> rocpd_info_pmc.id
  BulkTable& info = table("rocpd_info_pmc");
  BulkTable& values = table("rocpd_pmc_event");
  int64_t id = 0;
  using C = column::CounterValue;
  TACHO_ASSIGN(const walk::FirstPasses passes, walk::FirstPasses::make(trace_));
  Status status;
  for (const auto& read :
       trace::chunks<C::track, C::start, C::ordinal, C::dim, C::instance, C::pass, C::value>(trace_, status))
    for (size_t i = 0; i < read.size(); ++i) {
      const int64_t counter = read.dim[i];
      const Track& on = track(read.track[i]);
      if (!on.wanted || !passes.count(read.track[i], read.start[i], read.ordinal[i], counter, read.pass[i])) continue;
      const auto* const found = dispatch_events_.find({read.track[i], read.start[i]});
      if (found == nullptr) continue;
      const auto [known, fresh] = infos.try_emplace({on.agent, counter}, static_cast<int64_t>(infos.size()) + 1);
      if (fresh) {
        const Process& of = process(on.process);
        const auto of_counter = trace::row<event::row::Counter>(trace_, counter);
        const auto text_of = [&](int64_t string) { return sqlite::valid_utf8(trace_.string(string)); };
        const std::string name = text_of(of_counter.name);
        begin(info, known->second)
            .integer(of.node)
            .integer(of.id)
            .integer(on.agent)
            .text("GPU")
            .integer(known->second)
            .integer(0)
            .text(name)
            .text(name)
            .text(text_of(of_counter.text));
        info.text("")
            .text("tacho")
            .text(text_of(of_counter.unit))
            .text("ABS")
            .text(text_of(of_counter.block))
            .text("")
            .integer(0)
            .integer(0)
            .text("{}")
            .end();
      }
      begin(values, ++id).integer(found->value).integer(known->second).real(read.value[i].value());
      std::string about;
      JsonWriter json(about);
      json.begin_object();
      if (read.instance[i] != 0) json.member("instance", read.instance[i]);
      json.end_object();
      values.text(about).end();
    }
  return status;
}

Status Writer::run() {
  empty_text_ = text("");
  nodes_and_processes();
  agents_and_queues();
  TACHO_TRY(regions());
  TACHO_TRY(operations());
  TACHO_TRY(allocations());
  TACHO_TRY(counters());
  BulkTable& metadata = table("rocpd_metadata");
  int64_t id = 0;
  const auto tag = [&](std::string_view name, std::string_view value) {
    metadata.begin(++id);
    metadata.null().text(name).text(sqlite::valid_utf8(value)).end();
  };
  tag("schema_version", "3");
  tag("uuid", suffix_);
  tag("guid", guid_);
  tag("tacho_version", TACHO_PROGRAM_VERSION);
  return file_.status();
}

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  if (trace.aggregated())
    return fail("{}: recorded with --aggregate: it holds no events that a database could hold", trace.path());
  TACHO_ASSIGN(sqlite::DatabaseOutput output, sqlite::DatabaseOutput::create(target.file, options.overwrite));
  TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kBoottime));
  TACHO_ASSIGN(OutputClock realtime, OutputClock::make(trace, OutputClock::Clock::kRealtime));
  const std::string guid = make_guid(realtime(trace.time_range().first));
  std::string suffix = "_" + guid;
  std::replace(suffix.begin(), suffix.end(), '-', '_');
  TACHO_ASSIGN(const std::unique_ptr<sqlite::BulkFile> file,
               sqlite::BulkFile::create(output.temporary(), table_schema(suffix, guid)));
  TACHO_TRY(Writer(trace, options, *file, std::move(clock), suffix, guid).run());
  std::string script;
  const std::string suffixes[] = {suffix};
  for (const ViewDefinition& view : plain_views(suffixes))
    script += "CREATE VIEW \"" + view.name + "\" AS " + view.select + ";\n";
  for (const ViewDefinition& view : data_views())
    script += "CREATE VIEW \"" + view.name + "\" AS " + view.select + ";\n";
  if (trace.rows(Table::kCounterValue) > 0)
    script += fmt::format(
        "CREATE INDEX \"rocpd_kernel_dispatch{0}_event\" ON \"rocpd_kernel_dispatch{0}\" (event_id);\n", suffix);
  TACHO_TRY(file->finish(script));
  TACHO_TRY(output.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::rocpd
