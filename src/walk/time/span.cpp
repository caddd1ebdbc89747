// The run's length from summaries (span.h).
#include "walk/time/span.h"

#include <algorithm>
#include <limits>

#include "event/times.h"
#include "trace/read/rows.h"

namespace tacho::walk {

using event::kUnknown;
using event::Table;

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Whether a row counts however long it is.
bool always_counts(Table table) {
  return table == Table::kDispatch || table == Table::kCopy || table == Table::kFill || table == Table::kSample;
}

struct Ends {
  int64_t first = kNever, last = -kNever;
  void add(int64_t begin, int64_t end) {
    first = std::min(first, begin);
    last = std::max(last, end);
  }
};

// Adds the rows with a length of chunks that reach beyond `ends`.
Status add_rows(const trace::Trace& trace, Table table, Ends& ends) {
  using F = event::column::Fact;
  trace::ChunkReader<F::start, F::duration> reader(trace, table);
  const auto chunks = trace.chunks(table);
  for (size_t number = 0; number < chunks.size(); ++number) {
    const trace::Chunk& zone = chunks[number];
    if (zone.rows == 0 || (zone.min_start >= ends.first && std::max(zone.max_start, zone.max_end) <= ends.last))
      continue;
    TACHO_TRY(reader.read(number));
    for (size_t i = 0; i < reader->size(); ++i) {
      const int64_t duration = event::known_duration(reader->duration[i]);
      if (duration != 0) ends.add(reader->start[i], reader->start[i] + (duration == kUnknown ? 0 : duration));
    }
  }
  return {};
}

}  // namespace

Span timeline_span(const trace::Trace& trace) {
  const auto [first, last] = trace.time_range();
  Span span{first, std::max(first, last)};
  for (const trace::Chunk& chunk : trace.chunks(Table::kReading)) {
    const bool none = span.first == 0 && span.last == 0;
    span.first = none ? chunk.min_start : std::min(span.first, chunk.min_start);
    span.last = none ? chunk.max_start : std::max(span.last, chunk.max_start);
  }
  return span;
}

Result<Span> run_span(const trace::Trace& trace) {
  Ends ends;
  // If a name has rows with and without a length, the summary does not say which were first and last.
  Ends mixed[event::kFactTables];
  for (size_t number = 0; number < event::kFactTables; ++number) {
    const auto table = static_cast<Table>(number);
    if (!event::is_timed(table)) continue;
    TACHO_TRY(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries) {
        if (always_counts(table) || (summary.unknown == 0 && summary.min > 0))
          ends.add(summary.first, summary.last);
        else if (summary.unknown > 0 || summary.max > 0)
          mixed[number].add(summary.first, summary.last);
      }
    }));
  }
  for (size_t number = 0; number < event::kFactTables; ++number) {
    if (mixed[number].first >= ends.first && mixed[number].last <= ends.last) continue;
    if (trace.aggregated())
      ends.add(mixed[number].first, mixed[number].last);  // there are no rows to look at
    else
      TACHO_TRY(add_rows(trace, static_cast<Table>(number), ends));
  }
  if (ends.first <= ends.last) return Span{ends.first, ends.last};
  const auto [first, last] = trace.time_range();
  return Span{first, std::max(first, last)};
}

}  // namespace tacho::walk
