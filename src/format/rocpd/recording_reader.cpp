// How the reader of rocpd databases finds the rows that others refer to (recording_reader.h).
#include "format/rocpd/recording_reader.h"

#include "event/times.h"
#include "format/rocpd/relations.h"

namespace tacho::format::rocpd {

using event::kUnknown;
using event::Table;
namespace row = event::row;

namespace {

// Rows of the trace are remembered by the ids that the database has for them. The writer knows them all; what was
// forgotten here is asked for again.
constexpr size_t kMostKnown = 1 << 17;

template <typename Map>
void forget(Map& map) {
  if (map.size() > kMostKnown) map.clear();
}

}  // namespace

std::unique_ptr<sqlite::NamedScan> RecordingReader::scan_of(std::string_view name, Columns columns) const {
  const sqlite::StoredTable* const info = table(name);
  return info != nullptr ? std::make_unique<NamedScan>(db_, *info, columns) : nullptr;
}

std::unique_ptr<sqlite::NamedScan> RecordingReader::happened_scan(std::string_view name, Columns own) const {
  const sqlite::StoredTable* const info = table(name);
  if (info == nullptr) return nullptr;
  std::vector<std::string_view> columns = {"pid",   "tid", "agent_id", "queue_id", "stream_id", "track_id",
                                           "start", "end", "start_id", "end_id",   "event_id",  "extdata"};
  columns.insert(columns.end(), own.begin(), own.end());
  return std::make_unique<NamedScan>(db_, *info, columns);
}

bool RecordingReader::has_rows(std::string_view name) const {
  const std::unique_ptr<NamedScan> scan = scan_of(name, {"id"});
  return scan != nullptr && scan->next();
}

// Schema 4.0 keeps times in a table of their own.
int64_t RecordingReader::time_in(const NamedScan& scan, int value, int value_id) {
  if (scan.has(value) || !scan.has(value_id)) return scan.number(value);
  const int64_t id = scan.number(value_id);
  return timestamps_ != nullptr && id != kUnknown && timestamps_->find(id) ? timestamps_->number(1) : kUnknown;
}

imported::SpanRead RecordingReader::span_in(const NamedScan& scan) {
  imported::SpanRead span = imported::span_of(time_in(scan, kStart, kStartId), time_in(scan, kEnd, kEndId));
  if (span.duration == 0 && scan.string(kData) == kEndUnknown) span.duration = kUnknown;
  return span;
}

// Schema 3 tells process, thread, agent and queue in each row, schema 4 in the row's track.
RecordingReader::Line RecordingReader::line_in(const NamedScan& scan) {
  Line line;
  if (const int64_t track_id = scan.id(kTrack); track_id != 0) line = line_of_track(track_id);
  const auto told = [&](Common column, int64_t& value) {
    if (const int64_t id = scan.id(column); id != 0) value = id;
  };
  told(kPid, line.process);
  told(kTid, line.thread);
  told(kAgent, line.agent);
  told(kQueue, line.queue);
  told(kStream, line.stream);
  return line;
}

RecordingReader::Line RecordingReader::line_of_track(int64_t id) {
  forget(lines_);
  const auto [found, fresh] = lines_.try_emplace(id, Line{});
  if (fresh && tracks_ != nullptr && tracks_->find(id))
    found.value() = {tracks_->id(1), tracks_->id(2), tracks_->id(3), tracks_->id(4), tracks_->id(5), tracks_->id(6)};
  return found->second;
}

RecordingReader::About RecordingReader::about(int64_t event_id) {
  if (events_ == nullptr || event_id == 0 || !events_->find(event_id)) return {};
  return {events_->id(1), events_->id(2), events_->string(3)};
}

std::string_view RecordingReader::text(int64_t id) {
  return id != 0 && strings_->find(id) ? strings_->string(1) : std::string_view();
}

int64_t RecordingReader::text_row(int64_t id) {
  forget(text_rows_);
  const auto [found, fresh] = text_rows_.try_emplace(id, 0);
  if (fresh) found.value() = writer_.string(text(id));
  return found->second;
}

const std::string& RecordingReader::category(int64_t id) {
  forget(categories_);
  const auto [found, fresh] = categories_.try_emplace(id, std::string());
  if (fresh) {
    const bool own = categories_table_ != nullptr && categories_table_->find(id);
    found.value() = own ? categories_table_->string(1) : schema_.major < 4 ? text(id) : std::string_view();
  }
  return found->second;
}

int64_t RecordingReader::process(int64_t id) {
  const auto [found, fresh] = processes_.try_emplace(id, 0);
  // In schema 3 the id of a process is its pid, in schema 4 it is the number of a row that is missing here.
  if (fresh) found.value() = writer_.dimension(row::Process{.pid = schema_.major < 4 && id != 0 ? id : kUnknown});
  return found->second;
}

int64_t RecordingReader::device(int64_t agent) const {
  const auto known = agents_.find(agent);
  return known != agents_.end() ? known->second : 0;
}

int64_t RecordingReader::thread_track(const Line& line) {
  const auto [found, fresh] = thread_tracks_.try_emplace({line.process, line.thread}, 0);
  if (fresh) {
    const int64_t owner = process(line.process);
    const auto known = threads_.find(line.thread);
    const int64_t tid = schema_.major < 4 && line.thread != 0 ? line.thread : kUnknown;
    const int64_t thread =
        known != threads_.end() ? known->second : writer_.dimension(row::Thread{.process = owner, .tid = tid});
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                 .process = owner,
                                                 .thread = thread,
                                                 .native = line.thread,
                                                 .category = writer_.string("thread")});
  }
  return found->second;
}

int64_t RecordingReader::queue_track(const Line& line, int64_t agent) {
  const auto [found, fresh] = queue_tracks_.try_emplace({line.process, agent, line.queue, line.stream}, 0);
  if (fresh) {
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                 .process = process(line.process),
                                                 .device = device(agent),
                                                 .native = line.stream != 0 ? line.stream : line.queue});
    process_of_track_.emplace(found->second, line.process);
  }
  return found->second;
}

Status RecordingReader::run() {
  TACHO_ASSIGN(schema_, schema_of(db_, suffix_));
  TACHO_TRY(db_.required("rocpd_string" + suffix_));
  strings_ = scan_of("rocpd_string", {"id", "string"});
  events_ = scan_of("rocpd_event", {"id", "category_id", "stack_id", "extdata"});
  tracks_ = scan_of("rocpd_track", {"id", "pid", "tid", "agent_id", "queue_id", "stream_id", "name_id"});
  timestamps_ = scan_of("rocpd_timestamp", {"id", "value"});
  categories_table_ = scan_of("rocpd_info_category", {"id", "name"});
  counters_ = has_rows("rocpd_pmc_event");
  TACHO_TRY(dimensions());
  TACHO_TRY(regions());
  TACHO_TRY(work_times_.calls_end(counters_));
  TACHO_TRY(replays());
  TACHO_TRY(dispatches());
  TACHO_TRY(copies());
  TACHO_TRY(allocations());
  TACHO_TRY(graph_launches());
  TACHO_TRY(hip_events());
  TACHO_TRY(counters());
  TACHO_TRY(work_times_.work_ends());
  work_times_.finish(0);
  TACHO_TRY(marks());
  TACHO_TRY(add_unmeasured());
  tables_left_out();
  for (const NamedScan* const scan : {strings_.get(), events_.get(), tracks_.get(), timestamps_.get(),
                                      categories_table_.get(), symbols_table_.get(), samples_.get()})
    if (scan != nullptr) TACHO_TRY(scan->status());
  return {};
}

}  // namespace tacho::format::rocpd
