// Sums over a span of time (run.h).
#include <algorithm>

#include "base/saturating.h"
#include "event/times.h"
#include "trace/read/rows.h"
#include "view/answers/name_sums.h"
#include "view/run.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr size_t kMostNamesOfSpan = 2000;

// The sizes of copies and fills; kUnknown for rows of other tables.
Status read_bytes(const trace::Trace& trace, Table table, size_t chunk, size_t rows, std::vector<int64_t>& bytes) {
  trace::ChunkReader<column::Copy::bytes> copies(trace);
  trace::ChunkReader<column::Fill::bytes> fills(trace);
  if (table == Table::kCopy) {
    TACHO_TRY(copies.read(chunk));
    bytes.assign(copies->bytes.begin(), copies->bytes.end());
  } else if (table == Table::kFill) {
    TACHO_TRY(fills.read(chunk));
    bytes.assign(fills->bytes.begin(), fills->bytes.end());
  } else {
    bytes.assign(rows, kUnknown);
  }
  return {};
}

}  // namespace

Result<Run::Sums> Run::sums(Table table, int64_t from, int64_t to) {
  Sums result;
  const bool bytes = table == Table::kCopy || table == Table::kFill;  // which no summary holds with their number
  const int64_t t0 = index_.t0();
  const bool whole = from <= 0 && to >= index_.length();
  if (trace_->aggregated()) {
    TACHO_TRY(trace_->visit_summaries(table, [&](std::span<const trace::Summary> entries) {
      for (const trace::Summary& entry : entries) {
        analysis::Sums& sums = result.of[names_.of(table, entry.dim)];
        sums.add(entry);
        add_saturating(sums.bytes, entry.bytes);
      }
    }));
    for (auto& [name, sums] : result.of) sums.assume_sizes();
  } else if (whole && !bytes) {
    for (const NameSum& sum : index_.name_sums(table)) add_name(sum, result);
  } else {
    using F = column::Fact;
    trace::ChunkReader<F::start, F::duration, F::dim> reader(*trace_, table);
    std::vector<int64_t> moved;
    const auto chunks = trace_->chunks(table);
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const trace::Chunk& zone = chunks[chunk];
      if (zone.rows == 0 || zone.min_start - t0 >= to || std::max(zone.max_end, zone.max_start) - t0 < from) continue;
      if (!bytes && zone.min_start - t0 >= from && zone.max_end - t0 <= to && zone.max_start - t0 < to) {
        if (const auto known = index_.name_sums(table, chunk)) {
          for (const NameSum& sum : *known) add_name(sum, result);
          continue;
        }
        TACHO_ASSIGN(const auto entries, trace_->summaries(table, chunk));
        for (const trace::Summary& entry : entries) result.of[names_.of(table, entry.dim)].add(entry);
        continue;
      }
      TACHO_TRY(reader.read(chunk));
      const auto& rows = *reader;
      TACHO_TRY(read_bytes(*trace_, table, chunk, rows.size(), moved));
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t begin = rows.start[i] - t0, known = event::known_duration(rows.duration[i]);
        const int64_t end = known == kUnknown ? begin : begin + known;
        if (begin >= to || (end <= from && begin < from)) continue;
        analysis::Sums& sums = result.of[names_.of(table, rows.dim[i])];
        const int64_t inside = known == kUnknown ? kUnknown : std::min(end, to) - std::max(begin, from);
        if (inside == kUnknown)
          ++sums.unknown;
        else
          sums.add(inside);
        sums.add_size(moved[i], inside);
      }
    }
  }
  for (const auto& [name, sums] : result.of) add_saturating(result.total, sums.total);
  return result;
}

// Calls of APIs without operators of frameworks and functions of Python, or only those.
Run::Sums Run::calls_of(const Sums& all, bool framework) const {
  Sums calls;
  for (const auto& [name, sums] : all.of)
    if (names_.framework(name) == framework) {
      calls.of.emplace(name, sums);
      add_saturating(calls.total, sums.total);
    }
  return calls;
}

Result<std::string> Run::span(int64_t from, int64_t to) {
  if (to <= from) return fail("the span of time is empty: choose a `to` behind `from`");
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().member("from", from).member("to", to).member("provisional", index_.ready() < 1);
  const auto put = [&](JsonLiteral name, const Sums& of, bool bytes) {
    const auto rows = of.sorted();
    json.name(name).begin_array();
    for (size_t i = 0; i < rows.size() && i < kMostNamesOfSpan; ++i) {
      json.newline();
      put_sums(json, names_, rows[i].first, rows[i].second, of.total, bytes);
    }
    json.end_array();
  };
  TACHO_ASSIGN(const Sums kernels, sums(Table::kDispatch, from, to));
  TACHO_ASSIGN(const Sums calls, sums(Table::kApi, from, to));
  TACHO_ASSIGN(Sums copies, sums(Table::kCopy, from, to));
  TACHO_ASSIGN(const Sums fills, sums(Table::kFill, from, to));
  TACHO_ASSIGN(const Sums markers, sums(Table::kMarker, from, to));
  for (const auto& [name, sums] : fills.of) copies.of[name].add(sums);
  add_saturating(copies.total, fills.total);
  put("kernels", kernels, false);
  put("calls", calls_of(calls, false), false);
  put("operators", calls_of(calls, true), false);
  put("copies", copies, true);
  put("markers", markers, false);
  json.name("devices").begin_array();
  const int64_t begin = std::max<int64_t>(from, 0), end = std::min(to, index_.length());
  for (const size_t device : index_.devices()) {
    if (end <= begin) break;
    // Before its first and after its last operation a device is not in use, which is not idling.
    const walk::Span used = index_.span_of(device);
    const int64_t first = std::max(begin, used.first), last = std::max(std::min(end, used.last), first);
    TACHO_ASSIGN(const BusySums did, index_.activity(device, first, last));
    json.begin_object()
        .member("text", tree_.lines()[index_.lines_of_device(device).front()].device)
        .member("busy", did.busy)
        .member("idle", last - first - did.busy)
        .member("longest_gap", did.longest_gap())
        .member("copy", did.copies)
        .member("overlap_copy", did.copies - did.exposed)
        .member("exposed_copy", did.exposed)
        .member("comm", did.collectives)
        .end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace tacho::view
