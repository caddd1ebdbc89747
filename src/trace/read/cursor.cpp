// Rows in order of time: a merge over the chunks that are open at the same moment. A chunk is decoded when its first
// row is due; of chunks that overlap in great numbers only a window of rows is kept, so that memory stays bounded.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "trace/store/layout.h"
#include "trace/store/summary.h"
#include "trace/trace.h"

namespace tacho::trace {
namespace {

constexpr size_t kBudget = size_t{64} << 20;  // bytes of decoded rows over all open chunks
constexpr size_t kLeastWindow = 512;          // rows, however many chunks are open

// Rows of one chunk in order of time: all of them, or a window.
struct OpenChunk {
  size_t chunk = 0;
  size_t rows = 0;    // in the chunk
  size_t window = 0;  // rank in time of the window's first row
  size_t next = 0;    // within the window: the row that is due
  std::vector<int64_t> starts;
  std::vector<int64_t> cells;  // row by row

  int64_t due() const { return starts[next]; }
};

struct StartAndRow {
  int64_t start;
  uint32_t row;
};

// Sorts by (start, row) rows that are made of a few ascending runs (one a track): merges neighbouring runs until one is
// left. `spare` is as long as `rows`.
void merge_runs(std::vector<StartAndRow>& rows, std::vector<StartAndRow>& spare) {
  std::vector<size_t> ends;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].start < rows[i - 1].start) ends.push_back(i);
  }
  ends.push_back(rows.size());
  // A run lies before its neighbour, so among equal starts the left one's row is the smaller: std::merge keeps that.
  const auto less = [](const StartAndRow& a, const StartAndRow& b) { return a.start < b.start; };
  while (ends.size() > 1) {
    std::vector<size_t> merged;
    size_t begin = 0;
    for (size_t i = 0; i < ends.size(); i += 2) {
      const size_t middle = ends[i];
      const size_t end = i + 1 < ends.size() ? ends[i + 1] : middle;
      const auto at = [&](size_t n) { return rows.begin() + static_cast<ptrdiff_t>(n); };
      std::merge(at(begin), at(middle), at(middle), at(end), spare.begin() + static_cast<ptrdiff_t>(begin), less);
      merged.push_back(end);
      begin = end;
    }
    rows.swap(spare);
    ends.swap(merged);
  }
}

}  // namespace

struct TimeCursor::State {
  const Trace& trace;
  event::Table table;
  std::vector<int> wanted;
  int64_t from, to;
  int start_column = -1;
  Status status;
  std::vector<size_t> waiting;  // chunks by falling min_start: the next one is at the back
  std::vector<std::unique_ptr<OpenChunk>> heap;
  size_t window_rows = kMaxChunkRows;
  std::span<const int64_t> current;
  int64_t current_start = 0;
  bool started = false;
  // scratch
  std::vector<int64_t> decoded;
  std::vector<StartAndRow> order, spare;

  State(const Trace& of, event::Table which, std::span<const int> columns, int64_t begin, int64_t end)
      : trace(of), table(which), wanted(columns.begin(), columns.end()), from(begin), to(end) {
    if (!event::is_fact(table)) {
      status = fail("table {} has no rows in time", event::table_info(table).name);
      return;
    }
    start_column = fact_columns(table).start;
    if (start_column < 0) {
      status = fail("table {} has no start, so its rows have no order of time", event::table_info(table).name);
      return;
    }
    const std::span<const Chunk> chunks = trace.chunks(table);
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].min_start < to && chunks[i].max_start >= from) waiting.push_back(i);
    }
    std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
      return chunks[a].min_start != chunks[b].min_start ? chunks[a].min_start > chunks[b].min_start : a > b;
    });
    choose_window(chunks);
  }

  // How many rows of a chunk may be kept, given how many chunks will be open at once.
  void choose_window(std::span<const Chunk> chunks) {
    std::vector<int64_t> begins, ends;
    for (const size_t i : waiting) {
      begins.push_back(chunks[i].min_start);
      ends.push_back(chunks[i].max_start);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    size_t most = 1;
    size_t closed = 0;
    for (size_t opened = 0; opened < begins.size(); ++opened) {
      while (closed < ends.size() && ends[closed] < begins[opened]) ++closed;
      most = std::max(most, opened + 1 - closed);
    }
    const size_t row_bytes = (wanted.size() + 1) * sizeof(int64_t);
    window_rows = std::clamp(kBudget / most / row_bytes, kLeastWindow, kMaxChunkRows);
  }

  // Decodes the window that begins at `rank`. First call for a chunk: starts at the first row >= from.
  Status load(OpenChunk& open, size_t rank, bool first) {
    TACHO_TRY(trace.decode(table, open.chunk, start_column, decoded));
    open.rows = decoded.size();
    order.resize(decoded.size());
    spare.resize(decoded.size());
    for (size_t i = 0; i < decoded.size(); ++i) order[i] = {decoded[i], static_cast<uint32_t>(i)};
    merge_runs(order, spare);
    if (first) {
      rank =
          static_cast<size_t>(std::lower_bound(order.begin(), order.end(), from,
                                               [](const StartAndRow& row, int64_t time) { return row.start < time; }) -
                              order.begin());
    }
    const size_t count = std::min(window_rows, open.rows - rank);
    open.window = rank;
    open.next = 0;
    open.starts.resize(count);
    for (size_t i = 0; i < count; ++i) open.starts[i] = order[rank + i].start;
    const size_t width = wanted.size();
    open.cells.resize(count * width);
    for (size_t c = 0; c < width; ++c) {
      int64_t* to_cell = open.cells.data() + c;
      if (wanted[c] == start_column) {
        for (size_t i = 0; i < count; ++i) to_cell[i * width] = open.starts[i];
        continue;
      }
      TACHO_TRY(trace.decode(table, open.chunk, wanted[c], decoded));
      for (size_t i = 0; i < count; ++i) to_cell[i * width] = decoded[order[rank + i].row];
    }
    return {};
  }

  static bool before(const OpenChunk& a, const OpenChunk& b) {
    return a.due() != b.due() ? a.due() < b.due() : a.chunk < b.chunk;
  }

  void sift_down() {
    size_t at = 0;
    while (true) {
      size_t least = at;
      for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap.size(); ++child) {
        if (before(*heap[child], *heap[least])) least = child;
      }
      if (least == at) return;
      heap[at].swap(heap[least]);
      at = least;
    }
  }

  void push(std::unique_ptr<OpenChunk> open) {
    heap.push_back(std::move(open));
    for (size_t at = heap.size() - 1; at > 0;) {
      const size_t parent = (at - 1) / 2;
      if (!before(*heap[at], *heap[parent])) return;
      heap[at].swap(heap[parent]);
      at = parent;
    }
  }

  void drop_top() {
    heap.front().swap(heap.back());
    heap.pop_back();
    if (!heap.empty()) sift_down();
  }

  // Opens the chunks that may hold the next row.
  Status open_due() {
    const std::span<const Chunk> chunks = trace.chunks(table);
    while (!waiting.empty() && (heap.empty() || chunks[waiting.back()].min_start <= heap.front()->due())) {
      auto open = std::make_unique<OpenChunk>();
      open->chunk = waiting.back();
      waiting.pop_back();
      TACHO_TRY(load(*open, 0, true));
      if (!open->starts.empty()) push(std::move(open));
    }
    return {};
  }

  // Steps over the row that was given out.
  Status advance() {
    OpenChunk& top = *heap.front();
    if (++top.next < top.starts.size()) {
      sift_down();
      return {};
    }
    if (top.window + top.next >= top.rows) {
      drop_top();
      return {};
    }
    TACHO_TRY(load(top, top.window + top.next, false));
    sift_down();
    return {};
  }

  bool next() {
    if (!status) return false;
    if (started && !heap.empty()) status = advance();
    started = true;
    if (status && !waiting.empty()) status = open_due();
    if (!status || heap.empty()) return false;
    const OpenChunk& top = *heap.front();
    current_start = top.due();
    if (current_start >= to) {
      heap.clear();
      waiting.clear();
      return false;
    }
    current = {top.cells.data() + top.next * wanted.size(), wanted.size()};
    return true;
  }
};

TimeCursor::TimeCursor(const Trace& trace, event::Table table, std::span<const int> columns, int64_t from, int64_t to)
    : state_(std::make_unique<State>(trace, table, columns, from, to)) {}
TimeCursor::~TimeCursor() = default;
bool TimeCursor::next() {
  return state_->next();
}
int64_t TimeCursor::start() const {
  return state_->current_start;
}
std::span<const int64_t> TimeCursor::row() const {
  return state_->current;
}
Status TimeCursor::status() const {
  return state_->status;
}

Status visit_by_time(const Trace& trace, event::Table table, std::span<const int> columns, int64_t from, int64_t to,
                     const std::function<bool(std::span<const int64_t> row)>& visit) {
  TimeCursor cursor(trace, table, columns, from, to);
  while (cursor.next()) {
    if (!visit(cursor.row())) break;
  }
  return cursor.status();
}

Status visit_chunks(const Trace& trace, event::Table table, std::span<const int> columns,
                    const std::function<bool(size_t chunk, std::span<const std::span<const int64_t>> values)>& visit) {
  std::vector<std::vector<int64_t>> decoded(columns.size());
  std::vector<std::span<const int64_t>> values(columns.size());
  const size_t chunks = trace.chunks(table).size();
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    for (size_t c = 0; c < columns.size(); ++c) {
      TACHO_TRY(trace.decode(table, chunk, columns[c], decoded[c]));
      values[c] = decoded[c];
    }
    if (!visit(chunk, values)) break;
  }
  return {};
}

}  // namespace tacho::trace
