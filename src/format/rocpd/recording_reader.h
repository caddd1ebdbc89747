// Reads one recording of a rocpd database into a trace: each table once, in the order of its rows. Finds an event, to
// which nearly every row refers, beside the row that it belongs to. Memory is bounded: what grows with the recording
// lies in temporary files.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "event/schema.h"
#include "format/import/rows.h"
#include "format/import/times.h"
#include "format/rocpd/layout.h"
#include "format/sqlite/database.h"
#include "trace/write/work_times.h"
#include "trace/write/writer.h"

namespace tacho::format::rocpd {

class RecordingReader {
 public:
  /// `suffix` names the recording's tables ("_0000ddb5_...").
  RecordingReader(const sqlite::Database& database, trace::TraceWriter& writer, std::string suffix)
      : db_(database), writer_(writer), suffix_(std::move(suffix)) {}
  Status run();

 private:
  using NamedScan = sqlite::NamedScan;
  using Columns = std::initializer_list<std::string_view>;

  // The columns that rows of all kinds begin with; those of one kind follow from kOwn on.
  enum Common : int {
    kPid,
    kTid,
    kAgent,
    kQueue,
    kStream,
    kTrack,
    kStart,
    kEnd,
    kStartId,
    kEndId,
    kEventId,
    kData,
    kOwn
  };
  // Where something happened, by ids of the database; 0 = not told.
  struct Line {
    int64_t process = 0, thread = 0, agent = 0, queue = 0, stream = 0, name = 0;
  };
  struct About {  // a row of rocpd_event
    int64_t category = 0, stack = 0;
    std::string_view extdata;
  };
  struct Happened {
    Line line;
    imported::SpanRead span;
    int64_t event_id = 0;
    About about;
  };
  // Where the values of an event's counters belong.
  struct Target {
    int64_t track, start, ordinal;
    int64_t process = 0, device = 0;  // rows; of device work
  };
  // A dispatch that was replayed: it counts once, by the event of its first pass.
  struct Replay {
    int64_t first_event, pass;
  };
  struct PmcInfo {
    int64_t counter, device;  // rows
    int64_t process;          // id
  };
  struct PmcValue;
  class PassFinder;

  // recording_reader.cpp: how rows are found
  const sqlite::StoredTable* table(std::string_view name) const { return db_.table(std::string(name) + suffix_); }
  std::unique_ptr<NamedScan> scan_of(std::string_view name, Columns columns) const;
  /// Calls each(scan) for every row of a table, if the recording has it.
  template <typename Each>
  Status rows(std::string_view name, Columns columns, Each each) {
    const std::unique_ptr<NamedScan> scan = scan_of(name, columns);
    if (scan == nullptr) return {};
    while (scan->next()) each(*scan);
    return scan->status();
  }
  std::unique_ptr<NamedScan> happened_scan(std::string_view name, Columns own) const;
  /// Calls each(scan, happened) for every row with times; counts the others as bad input of `of`.
  template <typename Each>
  Status happened(std::string_view name, event::Table of, Columns own, Each each) {
    const std::unique_ptr<NamedScan> scan = happened_scan(name, own);
    if (scan == nullptr) return {};
    int64_t disordered = 0;
    while (scan->next()) {
      const imported::SpanRead span = span_in(*scan);
      if (span.verdict == imported::SpanRead::Verdict::kBad) {
        bad(of);
        continue;
      }
      disordered += span.verdict == imported::SpanRead::Verdict::kDisordered;
      const int64_t event_id = scan->id(kEventId);
      each(*scan, Happened{line_in(*scan), span, event_id, about(event_id)});
    }
    if (disordered > 0) writer_.lose(0, of, event::LossReason::kClockOrder, disordered);
    return scan->status();
  }
  bool has_rows(std::string_view name) const;
  imported::SpanRead span_in(const NamedScan& scan);
  int64_t time_in(const NamedScan& scan, int value, int value_id);
  Line line_in(const NamedScan& scan);
  Line line_of_track(int64_t id);
  About about(int64_t event_id);
  std::string_view text(int64_t id);
  int64_t text_row(int64_t id);
  const std::string& category(int64_t id);
  int64_t process(int64_t id);
  int64_t device(int64_t agent) const;
  int64_t thread_track(const Line& line);
  int64_t queue_track(const Line& line, int64_t agent);
  void bad(event::Table of, int64_t count = 1) { writer_.lose(0, of, event::LossReason::kBadInput, count); }
  /// Adds device work, or keeps it until all times are known.
  template <event::FactRow R>
  void work(const R& row, const trace::WorkTimes::Origin& origin, int64_t event_id, int64_t ordinal = event::kUnknown) {
    const bool measured = !imported::UnmeasuredRows::looks_so(row.start, row.duration);
    if (measured) {
      unmeasured_.saw(row.start, row.duration);
      work_times_.work(origin, row);
    } else {
      unmeasured_.take(row);
    }
    if (counters_ && event_id != 0)
      targets_.add(event_id,
                   {row.track, measured ? row.start : event::kUnknown, ordinal, origin.process, origin.device});
  }

  // recording_dimensions.cpp: what it happened to and with
  Status dimensions();
  Status processes_and_threads();
  Status agents();
  int64_t unused_run(event::row::Process process);
  struct Symbol {
    int64_t name, shared, scalar_registers, registers, accum_registers;
  };
  const Symbol& symbol(int64_t id);
  void tables_left_out();

  // recording_work.cpp: what happened
  Status regions();
  Status marks();
  Status replays();
  Status dispatches();
  int64_t kernel_row(const NamedScan& scan, int64_t graph);
  Status copies();
  Status allocations();
  Status graph_launches();
  Status hip_events();
  Status add_unmeasured();

  // recording_counters.cpp
  Status counters();
  Status counter_infos();
  template <typename Each>
  Status values_by_event(Each each);
  PmcValue value_in(const NamedScan& scan) const;
  bool add_reading(const PmcInfo& info, const PmcValue& value, int64_t sample);
  int64_t reading_track(const PmcInfo& info, const PmcValue& value, int64_t track_id);

  const sqlite::Database& db_;
  trace::TraceWriter& writer_;
  std::string suffix_;
  RecordingSchema schema_;
  imported::UnmeasuredRows unmeasured_;
  trace::WorkTimes work_times_{writer_, trace::WorkTimes::Calls::kApart};

  std::unique_ptr<NamedScan> strings_, events_, tracks_, timestamps_, categories_table_, symbols_table_, samples_;
  tsl::robin_map<int64_t, int64_t> text_rows_, processes_, agents_, threads_;
  tsl::robin_map<int64_t, int64_t> next_runs_;         // of processes with the same facts, by the row of the first
  tsl::robin_map<int64_t, int64_t> process_of_track_;  // ids by rows of queues' tracks
  tsl::robin_map<int64_t, std::string> categories_, hosts_;
  tsl::robin_map<int64_t, Line> lines_;
  tsl::robin_map<int64_t, Symbol> symbols_;
  tsl::robin_map<int64_t, PmcInfo> pmcs_;
  NumberMap<2> functions_, thread_tracks_;
  NumberMap<4> queue_tracks_, copy_shapes_;
  NumberMap<7> reading_tracks_;
  imported::RecentRows<event::row::Kernel> kernels_;
  imported::RecentRows<event::row::Label> labels_;

  bool counters_ = false;              // there are values of counters
  KeyIndex<Target> targets_;           // by event
  KeyIndex<Replay> replays_;           // by event of a later pass
  KeyIndex<int64_t> sample_of_event_;  // ids
  KeyIndex<char> counted_samples_;     // by id of samples that carry counters
  KeyIndex<char> graph_work_;          // by correlation of work of graphs
  int64_t forgotten_ = 0;              // descriptions that were too many
};

}  // namespace tacho::format::rocpd
