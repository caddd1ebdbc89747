// The self-contained page: a run's slices as columns of varints, compressed, in the page itself (document.h).
//
//   u32 'TEMB' | u32 1 | u32 bytes of the JSON | u32 0 | JSON | columns
//
// The JSON names each column by [offset behind the JSON, bytes]. Integers are LEB128 varints: start, row and cause as
// zigzag differences, duration + 1 (0 = still open), everything else plain; a column of zeros only is left out.
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <unordered_map>

#include "analysis/operators/places.h"
#include "base/files/temporary.h"
#include "base/text/json_writer.h"
#include "base/version.h"
#include "view/answers/details.h"
#include "view/answers/flame.h"
#include "view/document.h"
#include "walk/names.h"

namespace tacho::view {

extern const std::string_view kViewPage;

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr int64_t kSummaryBins = 4096;       // over the run
constexpr int64_t kSlicesOfSummary = 5'000;  // a line with no more keeps its slices

uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

// The columns behind the JSON.
class Packed {
 public:
  // Writes [offset, bytes] of a column under `name`, unless all of it is 0.
  template <typename List, typename Get>
  void integers(JsonWriter& json, std::string_view name, const List& list, Get get) {
    const size_t begin = bytes_.size();
    bool any = false;
    for (const auto& each : list) {
      uint64_t value = get(each);
      any |= value != 0;
      while (value >= 0x80) {
        bytes_ += static_cast<char>(value | 0x80);
        value >>= 7;
      }
      bytes_ += static_cast<char>(value);
    }
    if (!any)
      bytes_.resize(begin);
    else
      json.key(name).begin_array().value(begin).value(bytes_.size() - begin).end_array();
  }
  void doubles(JsonWriter& json, std::string_view name, const std::vector<std::pair<int64_t, double>>& list) {
    const size_t begin = bytes_.size();
    for (const auto& each : list) {
      char raw[8];
      std::memcpy(raw, &each.second, sizeof raw);
      bytes_.append(raw, sizeof raw);
    }
    json.key(name).begin_array().value(begin).value(bytes_.size() - begin).end_array();
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Columns of a whole table that slices do not carry; empty where all of a column is 0 or the table lacks it.
struct Facts {
  std::vector<uint32_t> dim, process;
  std::vector<int64_t> correlation, bytes;
};

Result<Facts> facts_of(const trace::Trace& trace, Table table) {
  Facts facts;
  const int size = table == Table::kCopy         ? static_cast<int>(column::Copy::bytes)
                   : table == Table::kFill       ? static_cast<int>(column::Fill::bytes)
                   : table == Table::kAllocation ? static_cast<int>(column::Allocation::bytes)
                                                 : -1;
  const auto rows = static_cast<size_t>(trace.rows(table));
  std::vector<int64_t> values;
  bool linked = false;
  facts.dim.reserve(rows);
  for (size_t chunk = 0; chunk < trace.chunks(table).size(); ++chunk) {
    TACHO_TRY(trace.decode(table, chunk, column::Fact::dim, values));
    for (const int64_t dim : values) facts.dim.push_back(static_cast<uint32_t>(dim));
    TACHO_TRY(trace.decode(table, chunk, column::Fact::correlation, values));
    linked = linked || std::any_of(values.begin(), values.end(), [](int64_t value) { return value != 0; });
  }
  if (size >= 0) facts.bytes.reserve(rows);
  if (linked) {
    facts.correlation.reserve(rows);
    facts.process.reserve(rows);
  }
  for (size_t chunk = 0; chunk < trace.chunks(table).size(); ++chunk) {
    if (size >= 0) {
      TACHO_TRY(trace.decode(table, chunk, size, values));
      facts.bytes.insert(facts.bytes.end(), values.begin(), values.end());
    }
    if (!linked) continue;
    TACHO_TRY(trace.decode(table, chunk, column::Fact::correlation, values));
    facts.correlation.insert(facts.correlation.end(), values.begin(), values.end());
    TACHO_TRY(trace.decode(table, chunk, column::Fact::track, values));
    for (const int64_t track : values)
      facts.process.push_back(static_cast<uint32_t>(trace.cell(Table::kTrack, track, column::Track::process)));
  }
  return facts;
}

struct PairHash {
  size_t operator()(const std::pair<int64_t, int64_t>& key) const {
    return std::hash<int64_t>()(key.first * 0x1000193 ^ key.second);
  }
};

// Passes bytes on as gzip in base64.
class Compressor {
 public:
  explicit Compressor(const std::function<void(std::string_view)>& put) : put_(put), room_(size_t{1} << 16) {}
  Compressor(const Compressor&) = delete;
  ~Compressor() {
    if (begun_) deflateEnd(&stream_);
  }
  Status begin() {
    constexpr int kGzip = 15 + 16;
    if (deflateInit2(&stream_, 9, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK)
      return fail("the page's data cannot be compressed: there is too little memory");
    begun_ = true;
    return {};
  }
  void add(std::string_view piece) {
    if (!piece.empty()) feed(piece, Z_NO_FLUSH);
  }
  Status finish() {
    if (feed({}, Z_FINISH) != Z_STREAM_END) return fail("the page's data cannot be compressed");
    if (!left_.empty()) encode(left_);
    return {};
  }

 private:
  int feed(std::string_view piece, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    int done = Z_OK;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(room_.data());
      stream_.avail_out = static_cast<uInt>(room_.size());
      done = deflate(&stream_, flush);
      left_.append(room_.data(), room_.size() - stream_.avail_out);
      const size_t whole = left_.size() / 3 * 3;
      encode(std::string_view(left_).substr(0, whole));
      left_.erase(0, whole);
    } while (stream_.avail_out == 0 && done == Z_OK);
    return done;
  }
  void encode(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.size(); i += 3) {
      uint32_t three = 0;
      for (size_t k = 0; k < 3; ++k)
        three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
      for (size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
    }
    put_(text);
  }

  const std::function<void(std::string_view)>& put_;
  std::vector<char> room_;
  std::string left_;  // fewer than three bytes between calls
  z_stream stream_{};
  bool begun_ = false;
};

// The page's JSON while it grows. Its length comes before it, so it is there as a whole first: what is more than a few
// MiB lies in a temporary file.
class SpooledText {
 public:
  std::string text;  // the newest part
  Status spill_when_long() { return text.size() < kMostText ? Status() : spill(); }
  size_t bytes() const { return spilled_ + text.size(); }
  Status read(Compressor& to) {
    std::string block(std::min<size_t>(spilled_, kMostText), '\0');
    for (size_t at = 0; at < spilled_;) {
      const ssize_t got =
          pread(file_.descriptor(), block.data(), std::min(block.size(), spilled_ - at), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return fail("the page's data cannot be read back from {}", temporary_folder());
      to.add(std::string_view(block).substr(0, static_cast<size_t>(got)));
      at += static_cast<size_t>(got);
    }
    to.add(text);
    return {};
  }

 private:
  static constexpr size_t kMostText = size_t{4} << 20;
  Status spill() {
    if (!file_) {
      TACHO_ASSIGN(file_, TemporaryFile::create());
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t put =
          pwrite(file_.descriptor(), text.data() + at, text.size() - at, static_cast<off_t>(spilled_ + at));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0)
        return fail("{}: the page's data cannot be written: {}; set TMPDIR to a folder with more room",
                    temporary_folder(), std::strerror(errno));
      at += static_cast<size_t>(put);
    }
    spilled_ += text.size();
    text.clear();
    return {};
  }

  TemporaryFile file_;
  size_t spilled_ = 0;
};

// Slices of one line and table, in order of start.
void put_part(JsonWriter& json, Packed& packed, Table table, const std::vector<Slice>& slices, const Facts& facts,
              const std::function<uint64_t(int64_t dim)>& shape, const std::function<int64_t(const Slice&)>& cause) {
  json.begin_object().member("table", static_cast<unsigned>(table)).member("count", slices.size());
  json.name("columns").begin_object();
  int64_t last = 0;
  packed.integers(json, "start", slices, [&](const Slice& slice) {
    const uint64_t step = zigzag(slice.start - last);
    last = slice.start;
    return step;
  });
  packed.integers(json, "duration", slices, [](const Slice& slice) {
    return slice.end == kOpenEnd ? uint64_t{0} : static_cast<uint64_t>(slice.end - slice.start) + 1;
  });
  packed.integers(json, "name", slices, [](const Slice& slice) { return uint64_t{slice.name}; });
  packed.integers(json, "lane", slices, [](const Slice& slice) { return uint64_t{slice.lane}; });
  packed.integers(json, "flags", slices, [](const Slice& slice) { return uint64_t{slice.flags}; });
  last = 0;
  packed.integers(json, "row", slices, [&](const Slice& slice) {
    const int64_t row = number_of_row(slice.row);
    const uint64_t step = zigzag(row - last);
    last = row;
    return step;
  });
  const auto fact = [](const auto& of, const Slice& slice) {
    return of[static_cast<size_t>(number_of_row(slice.row))];
  };
  packed.integers(json, "shape", slices, [&](const Slice& slice) { return shape(fact(facts.dim, slice)); });
  last = 0;
  packed.integers(json, "cause", slices, [&](const Slice& slice) -> uint64_t {
    const int64_t row = cause(slice);
    if (row < 0) return 0;
    const uint64_t step = zigzag(row - last) + 1;
    last = row;
    return step;
  });
  json.end_object().member("cause_table", static_cast<unsigned>(Table::kApi));
  json.name("extra").begin_array();
  if (!facts.bytes.empty()) {
    json.begin_object().member("title", "bytes").member("unit", "B");
    packed.integers(json, "column", slices, [&](const Slice& slice) {
      const int64_t value = fact(facts.bytes, slice);
      return value == kUnknown || value < 0 ? uint64_t{0} : static_cast<uint64_t>(value) + 1;
    });
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace

Status embedded_page(Document& document, const std::function<void(std::string_view)>& put, int64_t most) {
  Run& run = *document.runs().front();
  TACHO_TRY(run.wait());
  const trace::Trace& trace = run.trace();
  TileIndex& index = run.index();
  int64_t slices = 0;
  for (const Table table : slice_tables()) slices += trace.rows(table);
  const bool all = slices <= most;
  const std::string summary =
      all ? std::string()
          : fmt::format(
                "This page holds a summary: the run has {} events, a page holds {}. `tacho view {}` shows every one.",
                slices, most, run.path());

  SpooledText spooled;
  JsonWriter json(spooled.text, kCompactJson);
  Packed packed;
  json.begin_object().name("document").begin_object().member("version", kProgramVersion);
  json.name("runs").begin_array().ready(run.document(summary)).end_array();
  json.name("views").begin_array();
  if (all) json.value("kernel");
  json.value("flame").end_array().name("compare").begin_object().name("aligned_on").null().end_object().end_object();
  TACHO_ASSIGN(const std::string overview, run.overview());
  json.name("overview").ready(overview);
  TACHO_ASSIGN(const std::string stacks, flame(run, nullptr, {}, kMostFlameNodesEmbedded));
  json.name("flame").ready(stacks);
  const Names& names = run.names();
  json.name("names").begin_object().name("texts").begin_array();
  for (uint32_t i = 0; i < names.size(); ++i) {
    json.value(names.text(i));
    TACHO_TRY(spooled.spill_when_long());
  }
  json.end_array().name("colors").begin_array();
  for (uint32_t i = 0; i < names.size(); ++i) {
    json.value(hue_of(names.text(i)));
    TACHO_TRY(spooled.spill_when_long());
  }
  json.end_array().name("kinds").begin_array();
  for (uint32_t i = 0; i < names.size(); ++i) {
    json.value(names.table(i) == Table::kEnd ? std::string_view() : event::table_info(names.table(i)).name);
    TACHO_TRY(spooled.spill_when_long());
  }
  json.end_array().end_object();
  json.name("tables").begin_array();
  for (const event::TableInfo& info : event::all_tables())
    if (event::is_fact(info.table)) json.value(info.name);
  json.end_array();

  const analysis::DeviceNumbers devices(trace);
  std::map<Table, Facts> facts;
  std::unordered_map<std::pair<int64_t, int64_t>, int64_t, PairHash> calls;
  std::map<Texts, uint64_t> shape_numbers = {{Texts(), 0}};
  std::vector<const Texts*> shapes = {&shape_numbers.begin()->first};
  std::map<Table, std::vector<uint32_t>> shape_of_row;  // by dimension row; 0 = not asked for so far
  for (const Table table : slice_tables()) {
    if (trace.rows(table) == 0) continue;
    if (!all) continue;
    TACHO_ASSIGN(facts[table], facts_of(trace, table));
  }
  if (const auto found = facts.find(Table::kApi); found != facts.end()) {
    const Facts& api = found->second;
    for (size_t i = 0; i < api.correlation.size(); ++i)
      if (api.correlation[i] != 0) calls.try_emplace({api.process[i], api.correlation[i]}, static_cast<int64_t>(i));
  }
  const auto put_line = [&](size_t line) -> Status {
    std::map<Table, std::vector<Slice>> parts;
    TACHO_TRY(index.visit(line, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                          [&](std::span<const Slice> some) {
                            for (const Slice& slice : some) {
                              std::vector<Slice>& part = parts[table_of_row(slice.row)];
                              if (part.empty()) part.reserve(static_cast<size_t>(index.events(line)));
                              part.push_back(slice);
                            }
                            return true;
                          }));
    json.newline().begin_object().member("track", line).member("kind", "slices").name("parts").begin_array();
    for (auto& part : parts) {
      const Table table = part.first;
      std::vector<Slice>& list = part.second;
      std::sort(list.begin(), list.end(), [](const Slice& a, const Slice& b) {
        return a.start != b.start ? a.start < b.start : a.end != b.end ? a.end > b.end : a.row < b.row;
      });
      if (!facts.contains(table)) {
        TACHO_ASSIGN(facts[table], facts_of(trace, table));
      }
      const Facts& of = facts.at(table);
      put_part(
          json, packed, table, list, of,
          [&](int64_t dim) {
            auto& known = shape_of_row[table];
            if (known.empty()) known.resize(static_cast<size_t>(trace.rows(walk::dimension_of(table))) + 1);
            uint32_t& number = known[static_cast<size_t>(dim)];
            if (number == 0) {
              const auto [text, fresh] =
                  shape_numbers.try_emplace(shape_texts(trace, devices, table, dim), shapes.size());
              if (fresh) shapes.push_back(&text->first);
              number = static_cast<uint32_t>(text->second) + 1;
            }
            return uint64_t{number - 1};
          },
          [&](const Slice& slice) -> int64_t {
            if (table == Table::kApi) return -1;
            const auto row = static_cast<size_t>(number_of_row(slice.row));
            if (of.correlation.empty() || of.correlation[row] == 0) return -1;
            const auto call = calls.find({of.process[row], of.correlation[row]});
            return call == calls.end() ? -1 : call->second;
          });
    }
    json.end_array().end_object();
    return {};
  };
  json.name("tracks").begin_array();
  const auto& lines = run.tree().lines();
  unsigned level = index.base_level();
  while ((index.length() >> level) >= kSummaryBins) ++level;
  for (size_t line = 0; line < lines.size(); ++line) {
    if (lines[line].kind == LineKind::kCounter) {
      const auto values = index.values(line);
      json.newline().begin_object().member("track", line).member("kind", "counter").member("count", values.size());
      json.name("columns").begin_object();
      int64_t last = 0;
      packed.integers(json, "start", values, [&](const auto& value) {
        const uint64_t step = zigzag(value.first - last);
        last = value.first;
        return step;
      });
      packed.doubles(json, "value", values);
      json.end_object().end_object();
    } else if (all || (!lines[line].group() && index.events(line) <= kSlicesOfSummary)) {
      if (!lines[line].group()) TACHO_TRY(put_line(line));
    } else {
      std::vector<std::pair<int64_t, Tile::Density>> bins;
      for (int64_t tile = 0; tile <= index.length() >> level >> kTileBits; ++tile) {
        TACHO_ASSIGN(const auto some, index.bins_of(line, level, tile));
        for (const Tile::Density& each : some) bins.emplace_back((tile << kTileBits) + each.entry.bin, each);
      }
      std::stable_sort(bins.begin(), bins.end(),
                       [](const auto& a, const auto& b) { return a.second.lane < b.second.lane; });
      json.newline()
          .begin_object()
          .member("track", line)
          .member("kind", "density")
          .member("level", level)
          .member("count", bins.size())
          .name("columns")
          .begin_object();
      packed.integers(json, "lane", bins, [](const auto& bin) { return uint64_t{bin.second.lane}; });
      int64_t last = 0;
      packed.integers(json, "bin", bins, [&](const auto& bin) {
        const uint64_t step = zigzag(bin.first - last);
        last = bin.first;
        return step;
      });
      packed.integers(json, "cover", bins, [](const auto& bin) { return uint64_t{bin.second.entry.cover}; });
      packed.integers(json, "events", bins, [](const auto& bin) { return uint64_t{bin.second.entry.events}; });
      packed.integers(json, "name", bins, [](const auto& bin) { return uint64_t{bin.second.entry.name}; });
      json.end_object().end_object();
    }
  }
  json.end_array().name("shapes").begin_array();
  for (const Texts* shape : shapes) {
    json.begin_array();
    for (const auto& [title, text] : *shape) json.begin_array().value(title).value(text).end_array();
    json.end_array();
    TACHO_TRY(spooled.spill_when_long());
  }
  json.end_array();
  // Why there is nothing to see in a view is something to see.
  json.name("extras").begin_object();
  for (const std::string& view : run.views()) {
    const Result<std::string> made = run.offered(view);
    json.key(view);
    made ? json.ready(*made) : json.begin_object().member("error", made.error().message).end_object();
    TACHO_TRY(spooled.spill_when_long());
  }
  json.end_object().end_object();

  std::string head("TEMB");
  for (const uint32_t number : {uint32_t{1}, static_cast<uint32_t>(spooled.bytes()), uint32_t{0}}) {
    char raw[4];
    std::memcpy(raw, &number, sizeof raw);
    head.append(raw, sizeof raw);
  }
  facts.clear();
  calls.clear();

  constexpr std::string_view kStart = "/*TACHO_START*/null", kData = "/*TACHO_DATA*/";
  const size_t start = kViewPage.find(kStart), data = kViewPage.find(kData);
  if (start == std::string_view::npos || data == std::string_view::npos || data < start)
    return fail("the page has no place for its data");
  put(kViewPage.substr(0, start));
  put(fmt::format("{{\"served\": false, \"version\": {}, \"live\": false}}", json_quoted(kProgramVersion)));
  const size_t after = start + kStart.size();
  put(kViewPage.substr(after, data - after));
  Compressor compressor(put);
  TACHO_TRY(compressor.begin());
  compressor.add(head);
  TACHO_TRY(spooled.read(compressor));
  compressor.add(packed.bytes());
  TACHO_TRY(compressor.finish());
  put(kViewPage.substr(data + kData.size()));
  return {};
}

}  // namespace tacho::view
