// Small valid .tacho files of every kind, and a mutator that changes bytes, fields of heads and the text of the
// description, and then repairs the checksums, so that readers get to what lies behind them. For one fuzz target at a
// time.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "event/times.h"
#include "trace/cells.h"
#include "trace/layout_helpers.h"
#include "trace/raw_file.h"
#include "trace/read/reader.h"
#include "trace/store/codec.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tacho::trace {
namespace {

using event::Table;
namespace row = event::row;

std::vector<std::vector<uint8_t>> seeds;

std::vector<uint8_t> read_file(const std::string& path) {
  std::vector<uint8_t> bytes;
  FILE* file = fopen(path.c_str(), "rb");
  if (file == nullptr) abort();
  uint8_t block[4096];
  for (size_t got = 0; (got = fread(block, 1, sizeof block, file)) > 0;) bytes.insert(bytes.end(), block, block + got);
  fclose(file);
  return bytes;
}

// One small file; its contents depend on the bits of `kind`.
std::vector<uint8_t> make_seed(const std::string& path, unsigned kind) {
  WriterOptions options;
  options.overwrite = true;
  options.slab_rows = kind % 2 == 0 ? 40 : 65536;
  options.aggregate = kind == 6;
  auto writer = TraceWriter::create(path, options);
  if (!writer) abort();
  std::mt19937_64 random(kind);
  const int rows = kind == 5 ? 300 : 90;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t name = (*writer)->string(fmt::format("a name {} that is repeated a name that is repeated", i % 9));
    const int64_t dim = (*writer)->dimension(row::Function{.name = name, .domain = static_cast<event::Domain>(i % 3)});
    const auto noise = [&](uint64_t range) { return static_cast<int64_t>(random() % range); };
    (*writer)->add(row::Api{.track = 1 + i % 2,
                            .start = i * 1000 + noise(3000),
                            .duration = i % 11 == 0 ? event::kUnknown : noise(90),
                            .dim = dim,
                            .correlation = i,
                            .result = 0});
    if (kind >= 2)
      (*writer)->add(row::Copy{.track = 3,
                               .start = i * 900,
                               .duration = noise(5000),
                               .dim = i % 4,
                               .correlation = i,
                               .bytes = int64_t{1} << (12 + i % 5 * 7),
                               .submit_ahead = i});
    if (kind == 4) (*writer)->add(row::Reading{.track = 5, .start = i * i, .value = noise(UINT64_MAX)});
    if (i % 30 == 29) {
      (*writer)->note(0, event::NoteSeverity::kWarning, "something to know");
      (*writer)->lose(0, Table::kApi, event::LossReason::kPoolFull, 3);
      (*writer)->update(Table::kFunction, 1, 1, i);
      if (!(*writer)->flush()) abort();
    }
  }
  if (kind == 3) {
    if (!(*writer)->flush()) abort();
    return read_file((*writer)->temporary_path());
  }
  if (!(*writer)->finish()) abort();
  return read_file(path);
}

// A few rows of every table, whose references all lead somewhere, so that every dialect and every exporter has data.
// `endless`: every duration is as long as one may be, so that no sum of theirs fits.
std::vector<uint8_t> make_whole_seed(const std::string& path, uint32_t slab_rows, int64_t rows, bool endless = false) {
  WriterOptions options;
  options.overwrite = true;
  options.slab_rows = slab_rows;
  auto writer = TraceWriter::create(path, options);
  if (!writer) abort();
  for (int64_t i = 1; i <= 6; ++i) (*writer)->string(fmt::format("text {}", i));
  const auto make = [&](const event::TableInfo& info, int64_t i) {
    std::vector<int64_t> cells;
    for (const event::Column& column : info.columns) {
      int64_t cell = i;
      if (column.type == event::Type::kEnum)
        cell = column.enumeration->values[static_cast<size_t>(i) % column.enumeration->values.size()].code;
      if (column.type == event::Type::kRow)
        cell =
            column.target == info.table ? (i - 1) % 4 : std::min((i - 1) % 4 + 1, (*writer)->rows(column.target) - 1);
      if (column.type == event::Type::kString) cell = (i - 1) % 6 + 1;
      if (column.type == event::Type::kTime) cell = i * 100;
      if (column.type == event::Type::kDuration && endless) cell = event::kFarthestTime;
      if (column.type == event::Type::kDouble) cell = __builtin_bit_cast(int64_t, static_cast<double>(i) / 3);
      cells.push_back(cell);
    }
    return cells;
  };
  for (const event::TableInfo& info : event::all_tables()) {
    if (event::is_fact(info.table) || info.table == Table::kString) continue;
    for (int64_t i = 1; i <= 4; ++i) Cells::dimension(**writer, info.table, make(info, i));
  }
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table) || info.table == Table::kLoss) continue;
    for (int64_t i = 1; i <= rows; ++i) Cells::add(**writer, info.table, make(info, i));
  }
  (*writer)->lose(1, Table::kDispatch, event::LossReason::kVendor, 3);
  if (!(*writer)->finish()) abort();
  return read_file(path);
}

// Puts interesting numbers into cells of a column: rows, texts and codes that exist or do not, times at the ends of
// their range. Now and then into all of them, so that sums of many reach the ends of theirs.
void change_cells(std::vector<uint8_t>& bytes, std::minstd_rand& random) {
  std::optional<RawFile> file = RawFile::parse(bytes);
  if (!file || file->sections.empty()) return;
  RawSection& section = file->sections[random() % file->sections.size()];
  if (section.chunks.empty()) return;
  RawChunk& chunk = section.chunks[random() % section.chunks.size()];
  if (chunk.head.columns == 0 || chunk.head.rows == 0 || chunk.head.rows > 4096) return;
  std::vector<uint8_t>& blob = chunk.blobs[random() % chunk.head.columns];
  std::vector<int64_t> cells(chunk.head.rows);
  if (!decode_column(blob, cells.data(), cells.size())) return;
  for (auto changes = 1 + random() % 3; changes > 0; --changes) {
    const int64_t telling[] = {0,
                               1,
                               -1,
                               5,
                               7,
                               255,
                               65536,
                               -13,
                               int64_t{1} << 61,
                               -(int64_t{1} << 61),
                               INT64_MAX,
                               INT64_MIN,
                               INT64_MIN + 1,
                               cells[random() % cells.size()]};
    const int64_t value = telling[random() % std::size(telling)];
    cells[random() % cells.size()] = value;
    if (random() % 8 == 0) std::ranges::fill(cells, value);
  }
  blob = column_blob(cells);
  bytes = file->bytes();
}

// Sets a field of a section, chunk or blob head to an interesting value.
void change_field(std::vector<uint8_t>& bytes, std::minstd_rand& random) {
  const std::vector<SectionSpan> sections = sections_of(bytes);
  if (sections.empty()) return;
  const SectionSpan& section = sections[random() % sections.size()];
  const uint64_t telling[] = {0,           1,          2,         8,          64,
                              255,         256,        65535,     65536,      65537,
                              1u << 31,    UINT32_MAX, INT64_MAX, UINT64_MAX, section.header.bytes,
                              bytes.size()};
  const uint64_t value = telling[random() % std::size(telling)];
  const size_t width = size_t{1} << (random() % 4);
  const size_t head = section.header.head_bytes;
  size_t at = section.offset;
  switch (random() % 4) {
    case 0:
      at += random() % sizeof(SectionHeader);
      break;
    case 1:
      at += sizeof(SectionHeader) + (head == 0 ? 0 : random() % head);
      break;
    default:  // the beginnings of columns: encoding, widths, counts
      if (head < 8 + sizeof(ChunkHead) + sizeof(Blob) || section.offset + sizeof(SectionHeader) + head > bytes.size())
        return;
      const size_t blobs = (head - 8 - sizeof(ChunkHead)) / sizeof(Blob);
      const auto blob = load<Blob>(bytes.data() + section.offset + sizeof(SectionHeader) + 8 + sizeof(ChunkHead) +
                                   random() % blobs * sizeof(Blob));
      at += sizeof(SectionHeader) + head + blob.offset + random() % 12;
  }
  if (at + width <= bytes.size()) memcpy(bytes.data() + at, &value, width);
}

// A seed with another description: tables, columns, types and texts swapped, renamed, doubled, left out.
std::vector<uint8_t> with_other_description(std::minstd_rand& random) {
  std::optional<RawFile> file;
  while (!file) file = RawFile::parse(seeds[random() % seeds.size()]);
  std::string& text = file->description;
  for (auto changes = 1 + random() % 4; changes > 0; --changes) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    if (lines.empty()) break;
    std::string& line = lines[random() % lines.size()];
    const auto fields = [&] {
      std::vector<std::string> found(1);
      for (const char c : line) {
        if (c == '\t') {
          found.emplace_back();
        } else {
          found.back() += c;
        }
      }
      return found;
    };
    const auto join = [&](const std::vector<std::string>& all) {
      line.clear();
      for (size_t i = 0; i < all.size(); ++i) line += (i == 0 ? "" : "\t") + all[i];
    };
    std::vector<std::string> parts = fields();
    const size_t one = random() % parts.size(), two = random() % parts.size();
    switch (random() % 8) {
      case 0:  // another column, kind, number or enumerator in its place
        std::swap(parts[one], parts[two]);
        join(parts);
        break;
      case 1:
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(one));
        join(parts);
        break;
      case 2:
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(one), parts[two]);
        join(parts);
        break;
      case 3:  // a name that nobody knows
        parts[one].insert(0, 1, static_cast<char>('a' + random() % 26));
        join(parts);
        break;
      case 4: {  // a number
        constexpr const char* kTelling[] = {"0",   "-1",  "8",   "31",   "32",         "48",
                                            "254", "255", "256", "4096", "99999999999"};
        parts[one] = kTelling[random() % std::size(kTelling)];
        join(parts);
        break;
      }
      case 5:
        std::swap(line, lines[random() % lines.size()]);
        break;
      case 6:
        lines.erase(lines.begin() + static_cast<ptrdiff_t>(random() % lines.size()));
        break;
      default:
        if (!line.empty()) line[random() % line.size()] = static_cast<char>(random());
    }
    text.clear();
    for (const std::string& each : lines) text += each + '\n';
  }
  if (text.empty()) text = "\n";
  return file->bytes();
}

}  // namespace
}  // namespace tacho::trace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  // The seeds are larger than libFuzzer's own limit, 4096 bytes. The user's option comes later and counts.
  static char most[] = "-max_len=65536";
  static std::vector<char*> words(*argv, *argv + *argc);
  words.insert(words.begin() + 1, most);
  words.push_back(nullptr);
  *argc = static_cast<int>(words.size()) - 1;
  *argv = words.data();
  const char* folder = getenv("TMPDIR");
  std::string path = fmt::format("{}/tacho-fuzz-XXXXXX", folder != nullptr ? folder : "/tmp");
  if (mkdtemp(path.data()) == nullptr) abort();
  for (unsigned kind = 0; kind < 7; ++kind)
    tacho::trace::seeds.push_back(tacho::trace::make_seed(path + "/seed.tacho", kind));
  tacho::trace::seeds.push_back(tacho::trace::make_whole_seed(path + "/seed.tacho", 65536, 12));
  tacho::trace::seeds.push_back(tacho::trace::make_whole_seed(path + "/seed.tacho", 10, 25));
  tacho::trace::seeds.push_back(tacho::trace::make_whole_seed(path + "/seed.tacho", 65536, 12, true));
  using tacho::trace::RawFile;
  tacho::trace::seeds.push_back(RawFile::parse(tacho::trace::seeds[4])->bytes(1));
  remove((path + "/seed.tacho").c_str());
  remove(path.c_str());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace tacho::trace;
  std::minstd_rand random(seed);
  if (size < sizeof(FileHeader) || random() % 200 == 0) {
    const std::vector<uint8_t>& fresh = seeds[random() % seeds.size()];
    size = std::min(fresh.size(), max_size);
    memcpy(data, fresh.data(), size);
  }
  if (random() % 8 == 0) {
    const std::vector<uint8_t> described = with_other_description(random);
    if (described.size() <= max_size) {
      memcpy(data, described.data(), described.size());
      if (random() % 2 == 0) return described.size();
      size = described.size();
    }
  }
  const bool cells = random() % 2 == 0;
  if (!cells && random() % 2 == 0) size = LLVMFuzzerMutate(data, size, max_size);
  std::vector<uint8_t> bytes(data, data + size);
  if (cells) {
    change_cells(bytes, random);
    if (bytes.size() > max_size) bytes.assign(data, data + size);
    if (random() % 4 != 0) {
      memcpy(data, bytes.data(), bytes.size());
      return bytes.size();
    }
  }
  for (unsigned changes = static_cast<unsigned>(random() % 4); changes > 0; --changes) change_field(bytes, random);
  if (random() % 50 == 0) bytes.resize(random() % (bytes.size() + 1));
  if (random() % 16 != 0) {
    if (bytes.size() >= sizeof(FileHeader)) {  // the magic right too, mostly the version, and version 1's schema
      const bool old = random() % 8 == 0;
      memcpy(bytes.data(), (old ? seeds.back() : seeds[0]).data(), old ? 24 : random() % 16 == 0 ? 8 : 12);
    }
    reseal(bytes);
  }
  memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
