// Slices by line, row and name (index.h).
#include <algorithm>
#include <chrono>

#include "view/index/index.h"

namespace tacho::view {

using event::Table;

Status TileIndex::visit(size_t number, int64_t from, int64_t to,
                        const std::function<bool(std::span<const Slice>)>& visit) {
  std::vector<Segment> segments;
  {
    const std::shared_lock held(lock_);
    if (number >= lines_.size()) return {};
    const LineState& line = lines_[number];
    for (const auto& lane : line.kept) {
      const auto first = &lane == &line.kept.back() && line.kept.size() == kMostLanes
                             ? lane.begin()  // slices of the last lane may overlap
                             : std::partition_point(lane.begin(), lane.end(), [&](const Slice& slice) {
                                 return slice.end <= from && slice.start < from;
                               });
      const auto last = std::partition_point(first, lane.end(), [&](const Slice& slice) { return slice.start < to; });
      if (first == last) continue;
      if (!visit(std::span<const Slice>(first, last))) return {};
    }
    for (const Segment& segment : line.segments)
      if (segment.min_start < to && segment.max_end >= from && parts_[segment.part].done) segments.push_back(segment);
  }
  std::vector<Slice> found;
  for (const Segment& segment : segments) {
    TACHO_ASSIGN(const auto rows, this->rows(segment.part));
    found.clear();
    for (size_t i = segment.first; i < segment.first + segment.rows && rows->start[i] < to; ++i) {
      if (rows->end[i] - rows->start[i] >= long_) continue;
      if (rows->end[i] <= from && rows->start[i] < from) continue;
      found.push_back(rows->slice(i));
    }
    if (!found.empty() && !visit(found)) return {};
  }
  return {};
}

Result<std::optional<std::vector<Slice>>> TileIndex::slices(size_t number, int64_t from, int64_t to, size_t most,
                                                            size_t chunks) {
  {
    const std::shared_lock held(lock_);
    if (number >= lines_.size()) return std::vector<Slice>();
    size_t needed = 0;
    for (const Segment& segment : lines_[number].segments)
      needed += segment.min_start < to && segment.max_end >= from ? 1 : 0;
    if (needed > chunks) return std::nullopt;
  }
  std::vector<Slice> found;
  bool many = false;
  TACHO_TRY(visit(number, from, to, [&](std::span<const Slice> slices) {
    for (const Slice& slice : slices) {
      if (!slice.overlaps(from, to)) continue;
      if (found.size() == most) {
        many = true;
        return false;
      }
      found.push_back(slice);
    }
    return true;
  }));
  if (many) return std::nullopt;
  return found;
}

std::optional<RowPlace> TileIndex::place_of(uint64_t row) const {
  const auto table = static_cast<size_t>(row >> 48);
  if (table >= first_row_.size() || first_row_[table].empty()) return std::nullopt;
  const auto& numbers = first_row_[table];
  const int64_t number = number_of_row(row);
  if (number >= numbers.back()) return std::nullopt;
  const auto chunk =
      static_cast<size_t>(std::upper_bound(numbers.begin(), numbers.end(), number) - numbers.begin()) - 1;
  return RowPlace{chunk, static_cast<size_t>(number - numbers[chunk])};
}

Result<std::optional<std::pair<size_t, Slice>>> TileIndex::slice(uint64_t row) {
  const auto place = place_of(row);
  if (!place) return std::nullopt;
  const Table table = table_of_row(row);
  size_t number = parts_.size();
  {
    const std::shared_lock held(lock_);
    const Part* const part = part_of(table, place->chunk);
    if (part != nullptr && part->done) number = static_cast<size_t>(part - parts_.data());
  }
  if (number == parts_.size()) return std::nullopt;
  TACHO_ASSIGN(const auto rows, this->rows(number));
  const size_t i = place->row;
  for (const Rows::Run& run : rows->runs)
    if (i >= run.at && i < run.end) return std::pair(run.line, rows->slice(i));
  return std::nullopt;
}

TileIndex::NameSet TileIndex::set_of(const std::vector<bool>& names) {
  NameSet set;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i]) set.set(i % NameSet().size());
  return set;
}

Result<TileIndex::Hits> TileIndex::find(const std::vector<bool>& names, int64_t start, uint64_t row, size_t most,
                                        int milliseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  const NameSet wanted = set_of(names);
  const auto after = [&](const Hit& hit) {
    return hit.slice.start != start ? hit.slice.start > start : hit.slice.row > row;
  };
  const auto earlier = [](const Hit& a, const Hit& b) {
    return a.slice.start != b.slice.start ? a.slice.start < b.slice.start : a.slice.row < b.slice.row;
  };
  Hits found;
  int64_t covered = kOpenEnd;  // hits that begin before it are complete
  for (size_t number = 0; number < parts_.size(); ++number) {
    const int64_t begins = parts_[number].min_start;
    {
      const std::shared_lock held(lock_);
      if (!parts_[number].done) {
        covered = std::min(begins, frontier_);
        break;
      }
      if (parts_[number].max_start < start || (parts_[number].names & wanted).none()) continue;
    }
    // The hits that begin before this part are complete.
    if (found.hits.size() >= most && std::count_if(found.hits.begin(), found.hits.end(), [&](const Hit& hit) {
                                       return hit.slice.start < begins;
                                     }) >= static_cast<ptrdiff_t>(most)) {
      covered = begins;
      break;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      covered = begins;
      break;
    }
    TACHO_ASSIGN(const auto rows, this->rows(number));
    for (const Rows::Run& run : rows->runs)
      for (size_t i = run.at; i < run.end; ++i) {
        if (rows->name[i] >= names.size() || !names[rows->name[i]]) continue;
        const Hit hit{run.line, rows->slice(i)};
        if (after(hit)) found.hits.push_back(hit);
      }
  }
  std::erase_if(found.hits, [&](const Hit& hit) { return hit.slice.start >= covered; });
  std::sort(found.hits.begin(), found.hits.end(), earlier);
  found.more = covered != kOpenEnd || found.hits.size() > most;
  if (found.hits.size() > most) found.hits.resize(most);
  if (!found.hits.empty() && found.hits.size() == most) {
    found.start = found.hits.back().slice.start;
    found.row = found.hits.back().slice.row;
  } else if (covered != kOpenEnd) {
    found.start = covered - 1;
    found.row = std::numeric_limits<uint64_t>::max();
  }
  return found;
}

Result<TileIndex::All> TileIndex::all_of(const std::vector<bool>& names, int64_t from, int64_t to, size_t chunks) {
  const NameSet wanted = set_of(names);
  std::vector<size_t> parts;
  {
    const std::shared_lock held(lock_);
    for (size_t number = 0; number < parts_.size(); ++number) {
      const Part& part = parts_[number];
      const trace::Chunk& zone = trace_->chunks(part.table)[part.chunk];
      if (part.done && part.min_start < to && std::max(zone.max_end, zone.max_start) - t0_ >= from &&
          (part.names & wanted).any())
        parts.push_back(number);
    }
  }
  All all;
  const size_t step = std::max<size_t>((parts.size() + chunks - 1) / chunks, 1);
  all.sampled = step > 1;
  all.share = 1.0 / static_cast<double>(step);
  for (size_t at = 0; at < parts.size(); at += step) {
    const size_t number = parts[at];
    TACHO_ASSIGN(const auto rows, this->rows(number));
    for (const Rows::Run& run : rows->runs)
      for (size_t i = run.at; i < run.end; ++i) {
        if (rows->name[i] >= names.size() || !names[rows->name[i]]) continue;
        const Slice slice = rows->slice(i);
        if (slice.overlaps(from, to)) all.slices.push_back(slice);
      }
  }
  return all;
}

}  // namespace tacho::view
