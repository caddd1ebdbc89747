// Rows of a chunk as slices, decoded when they are needed (index.h).
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "event/times.h"
#include "trace/read/rows.h"
#include "vendor/definitions.h"
#include "view/index/index.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

struct SliceFacts {
  int64_t start, end;
  uint16_t flags;
};

// A row's flags and name on the timeline. `extra`: an API call's result, a dispatch's node of a graph.
SliceFacts facts_of(const trace::Trace& trace, Table table, bool queue, int64_t t0, int64_t start, int64_t duration,
                    int64_t dim, int64_t extra) {
  SliceFacts facts{start - t0, 0, 0};
  const int64_t known = event::known_duration(duration);
  switch (table) {
    case Table::kAllocation:
    case Table::kSample:
      facts.end = facts.start;
      facts.flags = kPoint;
      return facts;
    case Table::kMarker:
      if (trace::cell<column::Label::kind>(trace, dim) == event::MarkerKind::kMark) {
        facts.end = facts.start;
        facts.flags = kPoint;
        return facts;
      }
      break;
    case Table::kApi:
      if (extra != 0 && vendor::call_failed(event::from_cell(trace::cell<column::Function::domain>(trace, dim)), extra))
        facts.flags = kFailed;
      break;
    case Table::kDispatch:
      if (extra != 0 && extra != kUnknown) facts.flags = kGraphNode;
      break;
    default:
      break;
  }
  if (known != kUnknown) {
    facts.end = facts.start + known;
  } else if (queue) {
    facts.end = facts.start;
    facts.flags |= kPoint | kUnfinished;
  } else {
    facts.end = kOpenEnd;
    facts.flags |= kUnfinished;
  }
  return facts;
}

template <typename Reader, typename Cells>
Status copy_cells(const trace::Trace& trace, size_t chunk, std::vector<int64_t>& extra, Cells cells) {
  Reader reader(trace);
  TACHO_TRY(reader.read(chunk));
  extra.assign(cells(*reader).begin(), cells(*reader).end());
  return {};
}
// Reads the column behind a row's flags: an API call's result, the node of a graph; empty for other tables.
Status read_extra(const trace::Trace& trace, Table table, size_t chunk, std::vector<int64_t>& extra) {
  const auto node = [](const auto& columns) { return columns.graph_node; };
  switch (table) {
    case Table::kApi:
      return copy_cells<trace::ChunkReader<column::Api::result>>(trace, chunk, extra,
                                                                 [](const auto& columns) { return columns.result; });
    case Table::kDispatch:
      return copy_cells<trace::ChunkReader<column::Dispatch::graph_node>>(trace, chunk, extra, node);
    case Table::kCopy:
      return copy_cells<trace::ChunkReader<column::Copy::graph_node>>(trace, chunk, extra, node);
    case Table::kFill:
      return copy_cells<trace::ChunkReader<column::Fill::graph_node>>(trace, chunk, extra, node);
    default:
      return {};
  }
}

void unpack_lanes(const std::vector<uint8_t>& packed, std::vector<uint16_t>& lanes) {
  if (packed.empty()) return;
  std::vector<uint8_t> raw(lanes.size() * packed[0]);
  ZSTD_decompress(raw.data(), raw.size(), packed.data() + 1, packed.size() - 1);
  if (packed[0] == 2)
    std::memcpy(lanes.data(), raw.data(), raw.size());
  else
    std::copy(raw.begin(), raw.end(), lanes.begin());
}

}  // namespace

Result<std::shared_ptr<TileIndex::Loaded>> TileIndex::load(size_t number, bool sums) const {
  auto loaded = std::make_shared<Loaded>();
  const Part& part = parts_[number];
  loaded->part = static_cast<uint32_t>(number);
  loaded->table = part.table;
  loaded->first_id = row_id(part.table, first_row(part.table, part.chunk));
  using F = column::Fact;
  trace::ChunkReader<F::track, F::start, F::duration, F::dim> reader(*trace_, part.table);
  TACHO_TRY(reader.read(part.chunk));
  const auto& columns = *reader;
  std::vector<int64_t> extra(columns.size());
  TACHO_TRY(read_extra(*trace_, part.table, part.chunk, extra));
  const size_t rows = columns.size();
  loaded->start.resize(rows);
  loaded->end.resize(rows);
  loaded->name.resize(rows);
  loaded->lane.resize(rows);
  loaded->flags.resize(rows);
  for (size_t i = 0; i < rows;) {
    size_t end = i + 1;
    while (end < rows && columns.track[end] == columns.track[i]) ++end;
    const int64_t line = tree_.line_of(part.table, columns.track[i]);
    if (line >= 0) {
      const bool queue = tree_.lines()[static_cast<size_t>(line)].kind == LineKind::kQueue;
      for (size_t row = i; row < end; ++row) {
        const SliceFacts facts = facts_of(*trace_, part.table, queue, t0_, columns.start[row], columns.duration[row],
                                          columns.dim[row], extra[row]);
        loaded->start[row] = facts.start;
        loaded->end[row] = facts.end;
        loaded->flags[row] = facts.flags;
        loaded->name[row] = names_.of(part.table, columns.dim[row]);
      }
      loaded->runs.push_back({static_cast<size_t>(line), static_cast<uint32_t>(i), static_cast<uint32_t>(end)});
      loaded->left += end - i;
    }
    i = end;
  }
  if (sums) {
    std::vector<uint32_t> place(names_.size(), std::numeric_limits<uint32_t>::max());
    for (const Rows::Run& run : loaded->runs)
      for (size_t row = run.at; row < run.end; ++row) {
        uint32_t& at = place[loaded->name[row]];
        if (at == std::numeric_limits<uint32_t>::max()) {
          at = static_cast<uint32_t>(loaded->sums.size());
          loaded->sums.push_back({.name = loaded->name[row]});
        }
        loaded->sums[at].add(event::known_duration(columns.duration[row]));
      }
  }
  return loaded;
}

Result<std::shared_ptr<const TileIndex::Rows>> TileIndex::rows(size_t number) {
  {
    const std::lock_guard held(cache_lock_);
    for (auto at = cache_.begin(); at != cache_.end(); ++at)
      if (at->first == number) {
        cache_.splice(cache_.begin(), cache_, at);
        return cache_.front().second;
      }
  }
  TACHO_ASSIGN(auto loaded, load(number, false));
  auto rows = std::make_shared<Rows>(std::move(static_cast<Rows&>(*loaded)));
  {
    const std::shared_lock held(lock_);
    unpack_lanes(parts_[number].lanes, rows->lane);
  }
  const std::lock_guard held(cache_lock_);
  cache_.emplace_front(number, rows);
  if (cache_.size() > limits_.chunks) cache_.pop_back();
  return rows;
}

}  // namespace tacho::view
