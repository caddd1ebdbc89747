// The run's length from the chunks' ranges of time (span.h).
#include "walk/time/span.h"

#include <algorithm>
#include <limits>
#include <vector>

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

// Adds what counts of a table's rows. The chunks' ranges of time say which chunks can reach beyond `ends`: only their
// rows are read, the outermost chunks first, so that a trace of any length costs a few chunks.
Status add_rows(const trace::Trace& trace, Table table, Ends& ends) {
  using F = event::column::Fact;
  trace::ChunkReader<F::start, F::duration> reader(trace, table);
  const auto chunks = trace.chunks(table);
  std::vector<size_t> order;
  for (size_t number = 0; number < chunks.size(); ++number)
    if (chunks[number].rows > 0) order.push_back(number);
  const auto last_of = [&](size_t number) { return std::max(chunks[number].max_start, chunks[number].max_end); };
  const auto look = [&](size_t number) -> Status {
    if (always_counts(table)) return ends.add(chunks[number].min_start, last_of(number)), Status();
    TACHO_TRY(reader.read(number));
    for (size_t i = 0; i < reader->size(); ++i) {
      const int64_t duration = event::known_duration(reader->duration[i]);
      if (duration != 0) ends.add(reader->start[i], reader->start[i] + (duration == kUnknown ? 0 : duration));
    }
    return {};
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return chunks[a].min_start < chunks[b].min_start; });
  for (const size_t number : order) {
    if (chunks[number].min_start >= ends.first) break;
    TACHO_TRY(look(number));
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return last_of(a) > last_of(b); });
  for (const size_t number : order) {
    if (last_of(number) <= ends.last) break;
    TACHO_TRY(look(number));
  }
  return {};
}

// Adds what counts of the sums that an aggregated trace has in place of rows.
Status add_sums(const trace::Trace& trace, Table table, Ends& ends) {
  return trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries)
      if (always_counts(table) || summary.unknown > 0 || summary.max > 0) ends.add(summary.first, summary.last);
  });
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
  for (size_t number = 0; number < event::kFactTables; ++number) {
    const auto table = static_cast<Table>(number);
    if (event::is_timed(table))
      TACHO_TRY(trace.aggregated() ? add_sums(trace, table, ends) : add_rows(trace, table, ends));
  }
  if (ends.first <= ends.last) return Span{ends.first, ends.last};
  const auto [first, last] = trace.time_range();
  return Span{first, std::max(first, last)};
}

}  // namespace tacho::walk
