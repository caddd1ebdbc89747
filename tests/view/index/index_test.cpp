// The timeline's index against a plain renderer of the rows: tiles of any level of random traces.
#include "view/index/index.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "event/times.h"
#include "trace/write/writer.h"

namespace tacho::view {
namespace {

using event::Table;
namespace row = event::row;

struct PlainSlice {
  int64_t line, start, end;
  Table table;
  std::string name;
};

// A trace of two processes with threads, queues, marks, unfinished work and counters; small chunks, so that many of
// them overlap.
std::shared_ptr<const trace::Trace> random_trace(unsigned seed, int events, uint32_t chunk_rows) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  auto made = trace::TraceWriter::create_temporary({.slab_rows = chunk_rows});
  trace::TraceWriter& out = **made;
  std::vector<int64_t> threads, queues, kernels, functions, labels, counters;
  for (int p = 0; p < 2; ++p) {
    const int64_t process = out.dimension(row::Process{.pid = 100 + p, .name = out.string("app")});
    const int64_t device = out.dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = p});
    for (int i = 0; i < 2; ++i) {
      const int64_t thread = out.dimension(row::Thread{.process = process, .tid = 100 + p + 10 * i});
      threads.push_back(out.dimension(
          row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 10 * p + i}));
      queues.push_back(out.dimension(
          row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device, .native = 10 * p + i}));
    }
    counters.push_back(out.dimension(row::Track{
        .kind = event::TrackKind::kCounter, .process = process, .name = out.string(p == 0 ? "power" : "clock")}));
  }
  for (int i = 0; i < 5; ++i) {
    kernels.push_back(out.dimension(row::Kernel{.name = out.string("kernel" + std::to_string(i)), .grid_x = i}));
    functions.push_back(out.dimension(
        row::Function{.name = out.string("call" + std::to_string(i)), .domain = event::Domain::kHipRuntime}));
    labels.push_back(
        out.dimension(row::Label{.name = out.string("label" + std::to_string(i)),
                                 .kind = i == 0 ? event::MarkerKind::kMark : event::MarkerKind::kPushPop}));
  }
  const int64_t copy = out.dimension(row::CopyShape{.direction = event::CopyDirection::kHostToDevice});
  const int64_t base = 1'000'000'000'000 + below(1000);
  const int64_t span = int64_t{1} << (10 + below(25));
  const auto duration = [&]() -> int64_t {
    switch (below(12)) {
      case 0:
        return 0;
      case 1:
        return below(span);
      case 2:
        return event::kUnknown;
      default:
        return below(span / 64 + 2);
    }
  };
  const auto pick = [&](const std::vector<int64_t>& of) {
    return of[static_cast<size_t>(below(static_cast<int64_t>(of.size())))];
  };
  for (int i = 0; i < events; ++i) {
    const int64_t start = base + (below(4) == 0 ? below(span) : span * i / events);
    switch (below(6)) {
      case 0:
      case 1:
        out.add(row::Dispatch{.track = pick(queues), .start = start, .duration = duration(), .dim = pick(kernels)});
        break;
      case 2:
        out.add(row::Copy{.track = pick(queues), .start = start, .duration = duration(), .dim = copy, .bytes = 8});
        break;
      case 3:
        out.add(row::Marker{.track = pick(threads), .start = start, .duration = duration(), .dim = pick(labels)});
        break;
      case 4:
        out.add(row::Reading{
            .track = pick(counters), .start = start, .value = std::bit_cast<int64_t>(static_cast<double>(below(100)))});
        break;
      default:
        out.add(row::Api{.track = pick(threads),
                         .start = start,
                         .duration = duration(),
                         .dim = pick(functions),
                         .result = below(20) == 0 ? 1 : 0});
    }
  }
  auto opened = (*made)->finish_and_open();
  EXPECT_TRUE(opened) << opened.error().message;
  return *opened;
}

// All rows as slices, by a loop over the columns and nothing else.
std::vector<PlainSlice> plain_slices(const trace::Trace& trace, const Tree& tree, int64_t t0) {
  std::vector<PlainSlice> slices;
  for (const Table table : slice_tables()) {
    static constexpr int kColumns[] = {0, 1, 2, 3};
    EXPECT_TRUE(trace::visit_chunks(trace, table, kColumns, [&](size_t, auto columns) {
      for (size_t i = 0; i < columns[0].size(); ++i) {
        PlainSlice slice{tree.line_of(table, columns[0][i]), columns[1][i] - t0, 0, table,
                         display_name(trace, table, columns[3][i])};
        const int64_t known = columns[2][i];
        const bool queue = tree.lines()[static_cast<size_t>(slice.line)].kind == LineKind::kQueue;
        const bool mark = table == Table::kMarker && slice.name == "label0";
        slice.end = mark                       ? slice.start
                    : known != event::kUnknown ? slice.start + known
                    : queue                    ? slice.start
                                               : kOpenEnd;
        slices.push_back(slice);
      }
      return true;
    }));
  }
  return slices;
}

bool touches(const PlainSlice& slice, int64_t from, int64_t to) {
  return slice.start < to && (slice.end > from || (slice.end == slice.start && slice.start >= from) ||
                              (slice.start >= from && slice.start < to));
}

class Indexed : public testing::TestWithParam<unsigned> {};

TEST_P(Indexed, TilesShowExactlyTheRows) {
  const unsigned seed = GetParam();
  const auto trace = random_trace(seed, 3000 + static_cast<int>(seed % 5) * 1500, seed % 2 == 0 ? 64 : 400);
  const Tree tree(*trace);
  const SliceNames names(*trace);
  // A few lines stay in memory, the others are read from their chunks.
  // Small limits, so that tiles of every kind come up.
  TileIndex index(
      trace, tree, names,
      {.resident = 2000, .chunks = 3, .together = 2, .slices = seed % 3 == 0 ? 4096u : 60u, .most_bins = 1024});
  index.start();
  ASSERT_TRUE(index.wait());
  const auto slices = plain_slices(*trace, tree, index.t0());
  std::map<uint64_t, uint16_t> lane_of_row;
  for (size_t line = 0; line < tree.lines().size(); ++line) {
    if (tree.lines()[line].group() || tree.lines()[line].kind == LineKind::kCounter) continue;
    std::vector<PlainSlice> mine;
    for (const PlainSlice& slice : slices)
      if (slice.line == static_cast<int64_t>(line)) mine.push_back(slice);
    for (unsigned level = 0; level < 40; ++level) {
      const int64_t width = int64_t{1} << level, tiles = (index.length() >> level >> kTileBits) + 1;
      std::set<int64_t> some = {0, tiles / 2, tiles - 1};
      if (tiles < 5)
        for (int64_t i = 0; i < tiles; ++i) some.insert(i);
      for (const int64_t number : some) {
        const auto tile = index.tile(line, level, number);
        ASSERT_TRUE(tile) << tile.error().message;
        EXPECT_FALSE(tile->provisional);
        const int64_t from = number * width * kTileBins, to = from + width * kTileBins;
        std::multiset<std::tuple<int64_t, int64_t, std::string>> expected, got;
        for (const PlainSlice& slice : mine)
          if (touches(slice, from, to)) expected.emplace(slice.start, slice.end, slice.name);
        if (tile->kind == Tile::Kind::kEmpty) {
          EXPECT_TRUE(expected.empty()) << "line " << line << " level " << level << " tile " << number;
        } else if (tile->kind == Tile::Kind::kSlices) {
          std::map<uint16_t, int64_t> ends;
          for (const Slice& slice : tile->slices) {
            got.emplace(slice.start, slice.end, names.text(slice.name));
            const auto [place, fresh] = lane_of_row.emplace(slice.row, slice.lane);
            EXPECT_EQ(place->second, slice.lane) << "a lane changed with the zoom";
            if (ends.contains(slice.lane)) {
              EXPECT_LE(ends[slice.lane], slice.start) << "slices of a lane overlap";
            }
            ends[slice.lane] = std::max(ends[slice.lane], slice.end);
          }
          EXPECT_EQ(got, expected) << "line " << line << " level " << level << " tile " << number;
        } else {
          ASSERT_EQ(tile->kind, Tile::Kind::kDensity);
          // Over all lanes: covered time and slices of each bin.
          std::map<int64_t, double> cover;
          std::map<int64_t, int64_t> events, lanes;
          for (const Tile::Density& each : tile->density) {
            cover[each.entry.bin] += each.entry.cover == 65535 ? 1.0 : each.entry.cover / 65535.0;
            events[each.entry.bin] += each.entry.events;
            ++lanes[each.entry.bin];
          }
          for (int64_t bin = (seed + level) % 8; bin < kTileBins; bin += 8) {
            const int64_t begin = from + bin * width;
            double covered = 0;
            int64_t count = 0;
            for (PlainSlice slice : mine) {
              slice.end = std::max(std::min(slice.end, index.length()), slice.start);  // open: until the end
              if (!touches(slice, begin, begin + width)) continue;
              ++count;
              covered += static_cast<double>(
                             std::max<int64_t>(std::min(slice.end, begin + width) - std::max(slice.start, begin), 0)) /
                         static_cast<double>(width);
            }
            EXPECT_EQ(events[bin], count)
                << "line " << line << " level " << level << " tile " << number << " bin " << bin;
            // Cover is rounded down, but never to nothing.
            EXPECT_NEAR(cover[bin], covered, 1.01 * static_cast<double>(lanes[bin]) / 65535.0)
                << "line " << line << " level " << level << " tile " << number << " bin " << bin;
          }
        }
      }
    }
  }
}

// A gap is a gap at every level: a bin of a lane is full only when all of it is covered.
TEST_P(Indexed, GroupsAndDevicesAreUnions) {
  const unsigned seed = GetParam();
  const auto trace = random_trace(seed + 1000, 2500, 100);
  const Tree tree(*trace);
  const SliceNames names(*trace);
  TileIndex index(trace, tree, names, {.resident = 500, .chunks = 3, .together = 3, .most_bins = 1024});
  index.start();
  ASSERT_TRUE(index.wait());
  const auto slices = plain_slices(*trace, tree, index.t0());
  const auto busy_in = [&](size_t device, int64_t from, int64_t to, bool copies_only_exposed) {
    // A sweep over sorted ends, for one device.
    std::vector<std::pair<int64_t, int64_t>> kernels, all;
    for (const PlainSlice& slice : slices) {
      const Line& line = tree.lines()[static_cast<size_t>(slice.line)];
      if (line.kind != LineKind::kQueue || line.device_number != device) continue;
      const int64_t begin = std::max(slice.start, from), end = std::min({slice.end, to, index.length()});
      if (end <= begin) continue;
      all.emplace_back(begin, end);
      if (slice.table == Table::kDispatch) kernels.emplace_back(begin, end);
    }
    const auto length = [](std::vector<std::pair<int64_t, int64_t>> list) {
      std::sort(list.begin(), list.end());
      int64_t sum = 0, until = std::numeric_limits<int64_t>::min();
      for (const auto& [begin, end] : list) {
        if (end > until) sum += end - std::max(begin, until);
        until = std::max(until, end);
      }
      return sum;
    };
    return copies_only_exposed ? length(all) - length(kernels) : length(all);
  };
  std::mt19937_64 random(seed);
  for (const size_t device : index.devices())
    for (int i = 0; i < 20; ++i) {
      auto from = static_cast<int64_t>(random() % static_cast<uint64_t>(index.length()));
      auto to = static_cast<int64_t>(random() % static_cast<uint64_t>(index.length())) + 1;
      if (i == 0) {
        from = 0;
        to = index.length();
      }
      if (from >= to) std::swap(from, to);
      if (from == to) continue;
      const auto did = index.activity(device, from, to);
      ASSERT_TRUE(did);
      EXPECT_EQ(did->busy, busy_in(device, from, to, false)) << from << " " << to;
      EXPECT_EQ(did->exposed, busy_in(device, from, to, true)) << from << " " << to;
      EXPECT_EQ(did->width, to - from);
      // The longest gap: no idle stretch is longer.
      std::vector<std::pair<int64_t, int64_t>> all;
      for (const PlainSlice& slice : slices) {
        const Line& line = tree.lines()[static_cast<size_t>(slice.line)];
        if (line.kind == LineKind::kQueue && line.device_number == device && slice.end > from && slice.start < to &&
            slice.end > slice.start)
          all.emplace_back(std::max(slice.start, from), std::min(slice.end, to));
      }
      std::sort(all.begin(), all.end());
      int64_t gap = 0, until = from;
      for (const auto& [begin, end] : all) {
        gap = std::max(gap, begin - until);
        until = std::max(until, end);
      }
      EXPECT_EQ(did->longest_gap(), std::max(gap, to - until)) << from << " " << to;
    }
}

// A group's fine tiles are the union of the queues below, whether they are stretches or bins.
TEST_P(Indexed, FineTilesOfGroupsAreUnions) {
  const unsigned seed = GetParam();
  const auto trace = random_trace(seed + 4000, 2500, 100);
  const Tree tree(*trace);
  const SliceNames names(*trace);
  TileIndex index(
      trace, tree, names,
      {.resident = 500, .chunks = 3, .together = 3, .slices = seed % 2 == 0 ? 4096u : 20u, .most_bins = 1024});
  index.start();
  ASSERT_TRUE(index.wait());
  const auto slices = plain_slices(*trace, tree, index.t0());
  for (size_t group = 0; group < tree.lines().size(); ++group) {
    if (!tree.lines()[group].group()) continue;
    const auto below = index.lines_below(group);
    for (unsigned level = 0; level < index.base_level(); ++level) {
      const int64_t number = (index.length() / 2) >> level >> kTileBits;
      const int64_t from = number << kTileBits << level, to = from + (kTileBins << level);
      std::vector<bool> expected(static_cast<size_t>(kTileBins)), got(expected);
      for (const PlainSlice& slice : slices)
        if (std::find(below.begin(), below.end(), static_cast<size_t>(slice.line)) != below.end() &&
            (slice.table == Table::kDispatch || slice.table == Table::kCopy) && touches(slice, from, to))
          for_bins(slice.start, std::max(std::min(slice.end, index.length()), slice.start), level, number << kTileBits,
                   (number + 1) << kTileBits, [&](int64_t bin, int64_t, bool) {
                     expected[static_cast<size_t>(bin - (number << kTileBits))] = true;
                   });
      const auto tile = index.tile(group, level, number);
      ASSERT_TRUE(tile);
      for (const Tile::Density& each : tile->density) got[each.entry.bin] = true;
      int64_t until = std::numeric_limits<int64_t>::min();
      for (const Slice& stretch : tile->slices) {
        EXPECT_EQ(stretch.row, kNoRow);
        EXPECT_GE(stretch.start, until) << "stretches overlap";
        until = stretch.end;
        for_bins(stretch.start, stretch.end, level, number << kTileBits, (number + 1) << kTileBits,
                 [&](int64_t bin, int64_t, bool) { got[static_cast<size_t>(bin - (number << kTileBits))] = true; });
      }
      EXPECT_EQ(got, expected) << "group " << group << " level " << level;
    }
  }
}

TEST_P(Indexed, CountersKeepTheirExtremes) {
  const auto trace = random_trace(GetParam() + 2000, 1500, 100);
  const Tree tree(*trace);
  const SliceNames names(*trace);
  TileIndex index(trace, tree, names);
  index.start();
  ASSERT_TRUE(index.wait());
  std::map<int64_t, std::vector<std::pair<int64_t, double>>> readings;
  static constexpr int kColumns[] = {event::column::Reading::track, event::column::Reading::start,
                                     event::column::Reading::value};
  EXPECT_TRUE(trace::visit_by_time(*trace, Table::kReading, kColumns, std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max(), [&](auto cells) {
                                     readings[tree.line_of(Table::kReading, cells[0])].emplace_back(
                                         cells[1] - index.t0(), std::bit_cast<double>(cells[2]));
                                     return true;
                                   }));
  EXPECT_EQ(readings.size(), 2u);
  for (const auto& [line, values] : readings)
    for (unsigned level = 0; level < 30; level += 3) {
      const auto tile = index.tile(static_cast<size_t>(line), level, (index.length() / 2) >> level >> kTileBits);
      ASSERT_TRUE(tile);
      const int64_t from = (index.length() / 2) >> level >> kTileBits << kTileBits << level;
      std::map<int64_t, std::pair<double, double>> expected;
      for (const auto& [time, value] : values) {
        const int64_t bin = (time - from) >> level;
        if (time < from || bin >= kTileBins) continue;
        const auto [place, fresh] = expected.try_emplace(bin, value, value);
        place->second = {std::min(place->second.first, value), std::max(place->second.second, value)};
      }
      std::map<int64_t, std::pair<double, double>> got;
      for (const Tile::Reading& each : tile->readings) got[each.bin] = {each.min, each.max};
      EXPECT_EQ(got, expected) << "level " << level;
    }
}

TEST_P(Indexed, FindsEveryRowOfAName) {
  const auto trace = random_trace(GetParam() + 3000, 2000, 50);
  const Tree tree(*trace);
  const SliceNames names(*trace);
  TileIndex index(trace, tree, names, {.resident = 0, .chunks = 4, .together = 2, .most_bins = 1024});
  index.start();
  ASSERT_TRUE(index.wait());
  std::vector<bool> wanted(names.size());
  for (uint32_t i = 1; i < names.size(); ++i) wanted[i] = names.text(i) == "kernel3" || names.text(i) == "call1";
  std::multiset<std::pair<int64_t, std::string>> expected, got;
  for (const PlainSlice& slice : plain_slices(*trace, tree, index.t0()))
    if (slice.name == "kernel3" || slice.name == "call1") expected.emplace(slice.start, slice.name);
  int64_t start = std::numeric_limits<int64_t>::min();
  uint64_t row = std::numeric_limits<uint64_t>::max();
  int64_t last = start;
  for (int i = 0; i < 10'000; ++i) {
    const auto hits = index.find(wanted, start, row, 7, 1000);
    ASSERT_TRUE(hits);
    for (const auto& hit : hits->hits) {
      EXPECT_GE(hit.slice.start, last) << "hits come in order of time";
      last = hit.slice.start;
      got.emplace(hit.slice.start, names.text(hit.slice.name));
      const auto again = index.slice(hit.slice.row);
      ASSERT_TRUE(again && *again);
      EXPECT_EQ((*again)->second.start, hit.slice.start);
      EXPECT_EQ((*again)->first, hit.line);
    }
    if (!hits->more) break;
    start = hits->start;
    row = hits->row;
  }
  EXPECT_EQ(got, expected);
}

INSTANTIATE_TEST_SUITE_P(Random, Indexed, testing::Range(0u, 8u));

}  // namespace
}  // namespace tacho::view
