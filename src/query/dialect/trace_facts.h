// Facts about a trace that the SQL dialects share: facts about tracks, display names, clocks, and the API call that
// caused each piece of device work.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "query/engine/relation.h"
#include "trace/trace.h"
#include "walk/calls/call_rows.h"
#include "walk/time/clock.h"

namespace tacho::query {

class TraceFacts {
 public:
  static Result<std::shared_ptr<TraceFacts>> make(std::shared_ptr<const trace::Trace> trace);

  const trace::Trace& trace() const { return *trace_; }

  struct Track {
    int64_t process = 0;  // row
    int64_t pid = 0, tid = 0;
    int64_t device = 0;  // row
    int64_t gpu = 0;     // the device's index
    int64_t native = 0;
  };
  /// Facts about a row of table track; row 0's for a row that does not exist.
  const Track& track(int64_t row) const {
    return tracks_[row >= 0 && row < static_cast<int64_t>(tracks_.size()) ? static_cast<size_t>(row) : 0];
  }

  /// The row of the string table that a dimension's cell names; 0 if it names none, as in a damaged file.
  int64_t string_row(event::Table table, int64_t row, int column) const {
    const int64_t named = trace_->cell(table, row, column);
    return named > 0 && named < trace_->rows(event::Table::kString) ? named : 0;
  }
  /// The readable form of a kernel's name, given the string row of that name. Valid as long as `scratch` stays
  /// untouched.
  std::string_view readable(int64_t string_row, std::string& scratch);

  /// The API calls that caused device work.
  walk::CallRows& calls() { return *calls_; }

  walk::OutputClock& monotonic() { return *monotonic_; }
  walk::OutputClock& boottime() { return *boottime_; }

 private:
  std::shared_ptr<const trace::Trace> trace_;
  std::vector<Track> tracks_;
  tsl::robin_map<int64_t, std::unique_ptr<std::string>> readable_;
  bool demangle_ = true;
  std::unique_ptr<walk::OutputClock> monotonic_, boottime_;
  std::unique_ptr<walk::CallRows> calls_;
};

/// The strings of a trace as rows from 0 (row 0 is ""), followed by the words that only one dialect has.
class TraceStrings : public Store {
 public:
  TraceStrings(std::shared_ptr<TraceFacts> facts, size_t words);
  size_t chunks(int table) const override;
  ChunkInfo chunk(int table, size_t chunk) const override;
  int64_t rows(int) const override { return strings_ + words_; }
  bool entries(int, size_t, int, std::vector<int64_t>&) const override { return false; }
  std::unique_ptr<trace::TimeCursor> by_time(int, std::span<const int>, int64_t, int64_t) const override {
    return nullptr;
  }
  const std::string& name() const override { return facts_->trace().path(); }
  int64_t strings() const { return strings_; }

 protected:
  Status decode(int table, size_t chunk, int column, std::vector<int64_t>& values) override;

 private:
  std::shared_ptr<TraceFacts> facts_;
  int64_t strings_, words_;
};

}  // namespace tacho::query
