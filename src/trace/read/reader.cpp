// Trace: opens a .tacho file and decodes from its memory map. Nothing in the file is believed before it is checked:
// every offset and length against the file, every count against a limit, every byte used against its checksum.
#include "trace/read/reader.h"

#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "base/saturating.h"
#include "base/text/how_many.h"
#include "event/times.h"
#include "trace/read/checked.h"
#include "trace/store/codec.h"
#include "trace/store/description.h"
#include "trace/store/layout.h"
#include "trace/store/packed_table.h"
#include "trace/store/section.h"
#include "trace/store/summary.h"

namespace tacho::trace {
namespace {

using event::Table;

// Bytes of memory that dimensions may take: a forged file cannot ask for more.
constexpr size_t kMaxDictionaryMemory = size_t{1} << 30;
// Dictionary rows of a file that was cut off that stand for those behind the cut, over all tables.
constexpr uint64_t kMostMissingRows = uint64_t{1} << 20;
// Bytes at the end of an unfinished file whose contents are verified.
constexpr uint64_t kVerifiedTail = uint64_t{64} << 20;

struct Section {
  SectionHeader header;
  uint64_t offset;                // in the file
  std::span<const uint8_t> head;  // in the footer or behind the header
  uint64_t payload() const { return offset + sizeof(SectionHeader) + header.head_bytes; }
  uint64_t end() const { return offset + header.bytes; }
};

// A chunk as its section describes it; blobs lie behind `head`.
struct ChunkPlace {
  ChunkHead head;  // `table` by our number; `columns` are the file's
  const uint8_t* blobs;
  uint64_t payload;  // offset in the file that blobs' offsets count from
  Blob blob(size_t number) const { return load<Blob>(blobs + number * sizeof(Blob)); }
};

class FileTrace final : public Trace {
 public:
  FileTrace(MappedFile file, std::string name)
      : file_(std::move(file)), bytes_(file_->bytes()), name_(std::move(name)) {}
  FileTrace(std::span<const uint8_t> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  Status load_all();

  const std::string& path() const override { return name_; }
  bool complete() const override { return complete_; }
  bool aggregated() const override { return (file_flags_ & kFileAggregate) != 0; }
  std::string_view note() const override { return note_; }
  std::string_view unknown() const override { return foreign_; }
  uint64_t file_size() const override { return bytes_.size(); }

  std::string_view string(int64_t row) const override {
    const PackedTable& strings = dimensions_[0];
    if (row <= 0 || static_cast<uint64_t>(row) > strings.rows()) return {};
    const auto index = static_cast<size_t>(row - 1);
    return {reinterpret_cast<const char*>(strings.cell(index, 0)), static_cast<size_t>(strings.cell(index, 1))};
  }

  int64_t rows(Table table) const override {
    const auto number = static_cast<size_t>(table);
    if (number < event::kFactTables) return fact_rows_[number];
    const PackedTable* dimension = dimension_of(table);
    return dimension == nullptr ? 0 : static_cast<int64_t>(dimension->rows()) + 1;
  }

  int64_t cell(Table table, int64_t row, int column) const override {
    const PackedTable* dimension = dimension_of(table);
    if (dimension == nullptr || table == Table::kString || row <= 0 || static_cast<uint64_t>(row) > dimension->rows() ||
        column < 0 || static_cast<size_t>(column) >= dimension->columns()) {
      return 0;
    }
    return dimension->cell(static_cast<size_t>(row - 1), static_cast<size_t>(column));
  }

  std::optional<std::string_view> property(Table table, int64_t row, std::string_view key) const override;

  std::span<const Chunk> chunks(Table table) const override {
    return event::is_fact(table) ? chunks_[static_cast<size_t>(table)] : std::span<const Chunk>();
  }
  Status decode(Table table, size_t chunk, int column, std::vector<int64_t>& out) const override;
  uint64_t columns_decoded() const override { return columns_decoded_.load(std::memory_order_relaxed); }

  Result<std::vector<Summary>> summaries(Table table, size_t chunk) const override {
    Computer computer;
    return summaries(table, chunk, computer);
  }
  Result<std::vector<HistogramEntry>> histogram(Table table, size_t chunk) const override {
    Computer computer;
    return histogram(table, chunk, computer);
  }
  Result<std::vector<Busy>> busy(Table table, size_t chunk) const override {
    Computer computer;
    return busy(table, chunk, computer);
  }
  Status visit_summaries(Table table, const std::function<void(std::span<const Summary>)>& visit) const override;
  Result<std::vector<Summary>> merged_summaries(Table table) const override;
  Result<std::vector<HistogramEntry>> merged_histogram(Table table) const override;
  Result<std::vector<Busy>> merged_busy(Table table) const override;
  std::pair<int64_t, int64_t> time_range() const override { return {first_time_, last_time_}; }

 private:
  Status check_header();
  Status read_description();
  void note_foreign();
  Status find_sections();
  bool read_footer(uint64_t offset);
  Status scan_sections();
  bool verified(const Section& section) const;
  enum class Part { kDictionary, kUpdates, kFacts };
  Status load_section(const Section& section, Part part);
  Status load_dictionary(const ChunkPlace& place, const Mapping::Table& described);
  bool fill_gap(Table table, int64_t first);
  Status check_memory() const;
  Status load_strings(const ChunkPlace& place, std::vector<std::vector<int64_t>>& columns);
  Status load_updates(const ChunkPlace& place);
  void to_our_codes(const CodeMap& codes, std::span<int64_t> values);
  Status load_chunk(const ChunkPlace& place);
  Status check_dimensions();
  Status check_dimension(Table table, size_t column);
  Status check_facts(const ChunkPlace& place, size_t column, std::span<int64_t> cells,
                     const ColumnRange& range = {}) const;
  template <typename Entry>
  Status check_entries(Table table, std::span<Entry> entries, uint64_t offset) const;
  Status damaged_cell(Table table, size_t column, int64_t cell, uint64_t offset) const;

  const PackedTable* dimension_of(Table table) const {
    const auto number = static_cast<size_t>(table);
    if (number < event::kFirstDimension || number >= static_cast<size_t>(Table::kEnd)) return nullptr;
    return &dimensions_[number - event::kFirstDimension];
  }

  // The bytes of a blob, after its checksum was right. `what` is named in the sentence otherwise.
  template <typename What>
  Result<std::span<const uint8_t>> blob_bytes(const ChunkPlace& place, size_t number, What what) const {
    const Blob blob = place.blob(number);
    const uint64_t offset = place.payload + blob.offset;
    const std::span<const uint8_t> bytes = bytes_.subspan(offset, blob.bytes);
    if (checksum(bytes) == blob.checksum) return bytes;
    return fail("{}: is damaged: {} at offset {} does not match its checksum", name_, what(), offset);
  }
  template <typename What>
  Status decode_blob(const ChunkPlace& place, size_t number, int64_t* out, What what,
                     ColumnRange* range = nullptr) const {
    TACHO_ASSIGN(const std::span<const uint8_t> bytes, blob_bytes(place, number, what));
    if (decode_column(bytes, out, place.head.rows, range)) return {};
    return fail("{}: is damaged: {} at offset {} cannot be decoded", name_, what(),
                place.payload + place.blob(number).offset);
  }

  Status check_fact(Table table, bool timed, size_t chunk) const {
    if (event::is_fact(table) && (!timed || event::is_timed(table)) &&
        chunk < places_[static_cast<size_t>(table)].size())
      return {};
    return fail("{}: has no chunk {} of table {} with what was asked for", name_, chunk, static_cast<int>(table));
  }
  // What computes statistics from rows, made when first needed and reused from chunk to chunk.
  struct Computer {
    std::optional<Summarizer> summarizer;
    std::vector<int64_t> track, start, duration, dim, bytes;
  };
  template <typename Entry, typename Decode>
  Result<std::vector<Entry>> extra(const ChunkPlace& place, size_t number, Decode decode, std::string_view name) const;
  template <typename Entry, typename Decode>
  Result<std::vector<Entry>> statistics(Table table, size_t chunk, size_t number, Decode decode, std::string_view name,
                                        std::vector<Entry> ChunkStatistics::*member, Summarizer::What what,
                                        Computer& computer) const;
  Result<std::vector<Summary>> summaries(Table table, size_t chunk, Computer& computer) const;
  Result<std::vector<HistogramEntry>> histogram(Table table, size_t chunk, Computer& computer) const;
  Result<std::vector<Busy>> busy(Table table, size_t chunk, Computer& computer) const;
  Result<bool> visit_totals(Table table, const std::function<void(std::span<const Summary>)>& visit) const;
  template <typename Entry, typename Decode, typename OfChunk>
  Status merge_into(SummaryMerger& merger, Table table, size_t number, Decode decode, std::string_view name,
                    OfChunk of_chunk) const;

  std::optional<MappedFile> file_;
  std::span<const uint8_t> bytes_;
  std::string name_;
  std::string note_, foreign_;
  uint64_t id_ = 0;
  uint32_t version_ = 0;
  uint32_t file_flags_ = 0;
  bool complete_ = false;
  uint64_t first_section_ = sizeof(FileHeader);  // behind the description
  std::shared_ptr<const Mapping> mapping_;
  std::array<std::vector<CellBounds>, static_cast<size_t>(Table::kEnd)> bounds_;  // of the columns of every table
  std::array<bool, kUpdateTable> seen_{};                                         // tables of the file that have rows
  std::vector<std::pair<const CodeMap*, size_t>> seen_codes_;                     // foreign values that dimensions hold
  std::vector<Section> sections_;
  std::vector<PackedTable> dimensions_;
  std::vector<std::unique_ptr<uint8_t[]>> texts_;  // decompressed text of strings
  size_t text_bytes_ = 0;
  uint64_t missing_rows_ = 0;  // of dictionaries, behind the place where the file is cut off
  std::array<std::vector<Chunk>, event::kFactTables> chunks_;
  std::array<std::vector<ChunkPlace>, event::kFactTables> places_;
  std::array<std::vector<ChunkPlace>, event::kFactTables> aggregates_;  // of --aggregate, in place of rows
  std::array<std::vector<ChunkPlace>, event::kFactTables> totals_;      // of whole tables, beside their rows
  std::array<int64_t, event::kFactTables> fact_rows_{};
  int64_t first_time_ = 0, last_time_ = 0;
  bool any_time_ = false;
  uint32_t slabs_ = 0;
  mutable std::atomic<uint64_t> columns_decoded_ = 0;
  mutable std::once_flag properties_once_;
  mutable std::map<std::tuple<int64_t, int64_t, std::string_view>, int64_t> properties_;  // -> string row of the value
};

std::string_view table_name(uint8_t table) {
  return table == kUpdateTable ? std::string_view("updates") : event::table_info(static_cast<Table>(table)).name;
}

// Of a column by our number.
std::string column_name(const ChunkPlace& place, size_t column) {
  const std::string_view table = table_name(place.head.table);
  if (place.head.role == ChunkRole::kUpdates) return fmt::format("column {} of the dictionary's updates", column);
  if (table == "string") return column == 0 ? "the strings' lengths" : "the strings' text";
  return fmt::format("column {} of table {}",
                     event::table_info(static_cast<Table>(place.head.table)).columns[column].name, table);
}

// Opening

Status FileTrace::check_header() {
  if (bytes_.empty()) return fail("{}: is empty, so it is not a trace file of tacho", name_);
  if (bytes_.size() < sizeof kFileMagic || std::memcmp(bytes_.data(), kFileMagic, sizeof kFileMagic) != 0) {
    return fail("{}: is not a trace file of tacho (.tacho)", name_);
  }
  if (bytes_.size() < sizeof(FileHeader)) {
    return fail("{}: is cut off: it has {} bytes, less than the {} of a trace file's header", name_, bytes_.size(),
                sizeof(FileHeader));
  }
  const auto header = load<FileHeader>(bytes_.data());
  if (header.version == 0 || header.version > kFormatVersion) {
    return fail("{}: was written by another version of tacho (file format {}, this is {}); open it with that version",
                name_, header.version, kFormatVersion);
  }
  if (header.checksum != checksum_of(header) || header.bytes != sizeof header) {
    return fail("{}: is damaged: the header at offset 0 does not match its checksum", name_);
  }
  if (header.version == 1 && header.schema != kSchemaOfVersion1) {
    return fail(
        "{}: was written by a version of tacho from before its files described themselves (schema {:016x}); open it "
        "with that version, or record it again with this one",
        name_, header.schema);
  }
  id_ = header.id;
  version_ = header.version;
  file_flags_ = header.flags;
  return read_description();
}

// Finds out where our tables and columns lie in this file.
Status FileTrace::read_description() {
  const auto header = load<FileHeader>(bytes_.data());
  if (version_ == 1) {
    static const auto of_version_1 = std::make_shared<const Mapping>(*Description::parse(description_of_version_1()));
    mapping_ = of_version_1;
    return {};
  }
  const auto damaged = [&](std::string_view what) {
    return fail("{}: is damaged: its description at offset {} {}", name_, sizeof(FileHeader), what);
  };
  const std::span<const uint8_t> rest = bytes_.subspan(sizeof header);
  if (rest.size() < sizeof(SectionHeader)) return damaged("is cut off");
  const auto section = load<SectionHeader>(rest.data());
  if (section.magic != kSectionMagic || section.kind != SectionKind::kDescription || section.id != id_ ||
      section.checksum != checksum_of(section))
    return damaged("does not match its checksum");
  if (section.bytes < sizeof section || section.bytes > rest.size() ||
      section.head_bytes > section.bytes - sizeof section)
    return damaged("is cut off");
  first_section_ = sizeof header + section.bytes;
  if (header.schema == description_hash(our_description())) {
    mapping_ = Mapping::ours();
    return {};
  }
  const std::span<const uint8_t> packed = rest.subspan(sizeof section, section.head_bytes);
  if (checksum(packed) != section.head_checksum) return damaged("does not match its checksum");
  const Result<std::string> text = unpack_description(packed);
  if (!text) return damaged(text.error().message);
  const Result<Description> described = Description::parse(*text);
  if (!described) return damaged(described.error().message);
  mapping_ = std::make_shared<const Mapping>(*described);
  return {};
}

// Says in one sentence what of the file's rows this build does not know.
void FileTrace::note_foreign() {
  std::vector<std::string> unknown;
  for (int number = 0; number < kUpdateTable; ++number) {
    const Mapping::Table* table = seen_[static_cast<size_t>(number)] ? mapping_->in_file(number) : nullptr;
    if (table == nullptr) continue;
    if (!table->known()) {
      unknown.push_back(fmt::format("table {}", table->name));
      continue;
    }
    for (const std::string& column : table->foreign)
      unknown.push_back(fmt::format("column {} of {}", column, table->name));
    // Facts are not decoded here: that the file has a value is enough to name it. Version 1 had values without a use.
    if (!event::is_fact(table->ours) || version_ == 1) continue;
    for (size_t c = 0; c < event::table_info(table->ours).columns.size(); ++c) {
      const CodeMap* codes = mapping_->column(table->ours, c).codes;
      for (size_t i = 0; codes != nullptr && i < codes->foreign.size(); ++i) seen_codes_.emplace_back(codes, i);
    }
  }
  std::sort(seen_codes_.begin(), seen_codes_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->known_as->name, a.second) < std::pair(b.first->known_as->name, b.second);
  });
  seen_codes_.erase(std::unique(seen_codes_.begin(), seen_codes_.end()), seen_codes_.end());
  for (const auto& [codes, i] : seen_codes_)
    unknown.push_back(fmt::format("'{}' of {}", codes->foreign[i].text, codes->known_as->name));
  if (unknown.empty()) return;
  constexpr size_t kMostNames = 8;
  const size_t shown = std::min(unknown.size(), kMostNames);
  std::string list;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == unknown.size();
    list += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", unknown[i]);
  }
  if (shown < unknown.size()) list += fmt::format(" and {} more", unknown.size() - shown);
  foreign_ = fmt::format(
      "{}: was written by another version of tacho, of which this one does not know {}; the rest is read", name_, list);
}

// Takes the sections from the footer at `offset`; false when it is not a whole and sane one.
bool FileTrace::read_footer(uint64_t offset) {
  const uint64_t size = bytes_.size();
  if (offset > size || size - offset < sizeof(SectionHeader)) return false;
  const auto header = load<SectionHeader>(bytes_.data() + offset);
  const uint64_t room = size - offset - sizeof header;
  if (header.magic != kSectionMagic || header.kind != SectionKind::kFooter || header.id != id_ ||
      header.checksum != checksum_of(header) || header.head_bytes > room || header.head_bytes < sizeof(uint64_t)) {
    return false;
  }
  const std::span<const uint8_t> body = bytes_.subspan(offset + sizeof header, header.head_bytes);
  if (checksum(body) != header.head_checksum) return false;
  const auto count = load<uint64_t>(body.data());
  if (count > (body.size() - sizeof count) / sizeof(DirectoryEntry)) return false;
  size_t head_at = sizeof count + count * sizeof(DirectoryEntry);
  std::vector<Section> found;
  found.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto entry = load<DirectoryEntry>(body.data() + sizeof count + i * sizeof(DirectoryEntry));
    if (entry.offset < first_section_ || entry.offset > offset || entry.bytes > offset - entry.offset ||
        entry.bytes < sizeof(SectionHeader) || entry.head_bytes > entry.bytes - sizeof(SectionHeader) ||
        entry.head_bytes > body.size() - head_at) {
      return false;
    }
    Section section{};
    section.header.kind = entry.kind;
    section.header.bytes = entry.bytes;
    section.header.sequence = entry.sequence;
    section.header.head_bytes = entry.head_bytes;
    section.offset = entry.offset;
    section.head = body.subspan(head_at, entry.head_bytes);
    head_at += entry.head_bytes;
    found.push_back(section);
  }
  sections_ = std::move(found);
  return true;
}

// Are the contents of all chunks of a section as they were written?
bool FileTrace::verified(const Section& section) const {
  bool good = true;
  size_t at = 8;
  while (good && at + sizeof(ChunkHead) <= section.head.size()) {
    const auto head = load<ChunkHead>(section.head.data() + at);
    at += sizeof head;
    for (size_t i = 0; good && i < size_t{head.columns} + head.extras; ++i, at += sizeof(Blob)) {
      if (at + sizeof(Blob) > section.head.size()) return false;
      const auto blob = load<Blob>(section.head.data() + at);
      const uint64_t room = section.end() - section.payload();
      if (blob.bytes == 0) continue;  // not stored
      good = blob.offset <= room && blob.bytes <= room - blob.offset &&
             checksum(bytes_.subspan(section.payload() + blob.offset, blob.bytes)) == blob.checksum;
    }
  }
  return good;
}

// Without a footer: walks from section to section to the last whole one.
Status FileTrace::scan_sections() {
  uint64_t offset = first_section_;
  const uint64_t size = bytes_.size();
  bool footer = false;
  while (size - offset >= sizeof(SectionHeader)) {
    const auto header = load<SectionHeader>(bytes_.data() + offset);
    if (header.magic != kSectionMagic || header.checksum != checksum_of(header) || header.id != id_ ||
        header.bytes < sizeof header || header.bytes > size - offset ||
        header.head_bytes > header.bytes - sizeof header) {
      break;
    }
    if (header.kind == SectionKind::kFooter) {
      footer = true;
      break;
    }
    if (header.kind != SectionKind::kFree && header.kind != SectionKind::kDescription) {
      Section section{header, offset, bytes_.subspan(offset + sizeof header, header.head_bytes)};
      if (checksum(section.head) != header.head_checksum) break;
      if (size - offset <= kVerifiedTail + header.bytes && !verified(section)) break;
      sections_.push_back(section);
    }
    offset += header.bytes;
  }
  if (footer) {
    note_ = fmt::format("{}: its directory at offset {} is damaged; the trace was read without it", name_, offset);
  } else {
    note_ =
        fmt::format("{}: was not finished by its writer; it is read up to offset {} of {} bytes", name_, offset, size);
  }
  // A slab that was written again while its earlier state was not given up yet counts once.
  std::stable_sort(sections_.begin(), sections_.end(), [](const Section& a, const Section& b) {
    return a.header.sequence != b.header.sequence ? a.header.sequence < b.header.sequence
                                                  : a.header.revision < b.header.revision;
  });
  size_t kept = 0;
  for (size_t i = 0; i < sections_.size(); ++i) {
    const bool superseded =
        i + 1 < sections_.size() && sections_[i + 1].header.sequence == sections_[i].header.sequence;
    if (!superseded) sections_[kept++] = sections_[i];
  }
  sections_.resize(kept);
  return {};
}

Status FileTrace::find_sections() {
  if (bytes_.size() >= sizeof(FileHeader) + sizeof(Trailer)) {
    const auto trailer = load<Trailer>(bytes_.data() + bytes_.size() - sizeof(Trailer));
    if (std::memcmp(trailer.magic, kTrailerMagic, sizeof kTrailerMagic) == 0 &&
        trailer.checksum == trailer_checksum(trailer.footer, id_) && read_footer(trailer.footer)) {
      complete_ = true;
      std::stable_sort(sections_.begin(), sections_.end(),
                       [](const Section& a, const Section& b) { return a.header.sequence < b.header.sequence; });
      return {};
    }
  }
  return scan_sections();
}

Status FileTrace::load_all() {
  TACHO_TRY(check_header());
  TACHO_TRY(find_sections());
  for (size_t i = 0; i < event::kDimensionTables; ++i) {
    const size_t columns = event::table_info(static_cast<Table>(event::kFirstDimension + i)).columns.size();
    dimensions_.emplace_back(i == 0 ? 2 : columns);  // strings: address, length
  }
  // Updates come after all rows: then every row that they change is there, packed.
  for (const Part part : {Part::kDictionary, Part::kUpdates, Part::kFacts}) {
    for (const Section& section : sections_) {
      if ((section.header.kind == SectionKind::kDictionary) == (part == Part::kFacts)) continue;
      TACHO_TRY(load_section(section, part));
      slabs_ += section.header.kind == SectionKind::kSlab;
    }
    for (PackedTable& dimension : dimensions_) {
      if (part == Part::kDictionary) dimension.seal();
    }
    if (part == Part::kUpdates) TACHO_TRY(check_dimensions());
  }
  if (missing_rows_ > 0)
    note_ += "; " + how_many(missing_rows_, "row of its dictionaries lies behind and reads as unknown",
                             "rows of its dictionaries lie behind and read as unknown");
  sections_.clear();
  sections_.shrink_to_fit();
  note_foreign();
  return {};
}

Status FileTrace::load_section(const Section& section, Part part) {
  const auto damaged = [&](std::string_view what) {
    return fail("{}: is damaged: the section at offset {} {}", name_, section.offset, what);
  };
  const std::span<const uint8_t> head = section.head;
  if (section.header.kind == SectionKind::kFree) return {};
  if (section.header.kind < SectionKind::kDictionary || section.header.kind > SectionKind::kAggregate)
    return damaged("is of an unknown kind");
  if (head.size() < 8) return damaged("has no head");
  const auto count = load<uint32_t>(head.data());
  size_t at = 8;
  for (uint32_t i = 0; i < count; ++i) {
    if (head.size() - at < sizeof(ChunkHead)) return damaged("has a head that is cut off");
    ChunkPlace place{load<ChunkHead>(head.data() + at), head.data() + at + sizeof(ChunkHead), section.payload()};
    at += sizeof(ChunkHead);
    const size_t blobs = size_t{place.head.columns} + place.head.extras;
    if ((head.size() - at) / sizeof(Blob) < blobs) return damaged("has a head that is cut off");
    at += blobs * sizeof(Blob);
    const uint64_t room = section.end() - section.payload();
    for (size_t b = 0; b < blobs; ++b) {
      const Blob blob = place.blob(b);
      if (blob.offset > room || blob.bytes > room - blob.offset) return damaged("points outside of itself");
    }
    ChunkHead& chunk = place.head;
    if (chunk.rows == 0 || chunk.rows > kMaxChunkRows) return damaged("has a chunk without rows, or with too many");
    const SectionKind kind = section.header.kind;
    const bool dictionary = kind == SectionKind::kDictionary;
    if (chunk.role == ChunkRole::kUpdates) {
      if (!dictionary || chunk.columns != kUpdateColumns || chunk.extras != 0)
        return damaged("has updates that fit no dictionary");
      if (part == Part::kUpdates) TACHO_TRY(load_updates(place));
      continue;
    }
    const Mapping::Table* const described = mapping_->in_file(chunk.table);
    if (described == nullptr) return damaged("has a chunk of a table that the file does not describe");
    const bool fact = described->kind != TableKind::kDimension;
    const size_t columns = described->ours == Table::kString ? 2 : described->columns;
    switch (chunk.role) {
      case ChunkRole::kFacts:
        if (!fact || (kind != SectionKind::kSlab && kind != SectionKind::kKept) || chunk.columns != columns ||
            chunk.extras != kExtras)
          return damaged("has a chunk of facts that fits no table");
        break;
      case ChunkRole::kRows:
        if (fact || !dictionary || chunk.extras != 0 || chunk.columns != columns)
          return damaged("has a chunk that fits no dictionary");
        break;
      case ChunkRole::kAggregate:
        if (described->kind != TableKind::kTimed || kind != SectionKind::kAggregate || chunk.columns != 0 ||
            chunk.extras != kExtras)
          return damaged("has sums that fit no table");
        break;
      default:
        return damaged("has a chunk of an unknown kind");
    }
    seen_[chunk.table] = true;
    if (!described->known()) continue;
    chunk.table = static_cast<uint8_t>(described->ours);
    if (chunk.role != ChunkRole::kRows) {
      if (part == Part::kFacts) TACHO_TRY(load_chunk(place));
    } else if (part == Part::kDictionary) {
      TACHO_TRY(load_dictionary(place, *described));
    }
  }
  return {};
}

Status FileTrace::load_dictionary(const ChunkPlace& place, const Mapping::Table& described) {
  const size_t index = place.head.table - event::kFirstDimension;
  PackedTable& table = dimensions_[index];
  if (!fill_gap(described.ours, place.head.first)) {
    return fail("{}: is damaged: rows of table {} at offset {} begin with number {} where {} is due", name_,
                described.name, place.payload, place.head.first, table.rows() + 1);
  }
  std::vector<std::vector<int64_t>> columns(table.columns());
  for (auto& column : columns) column.resize(place.head.rows);
  if (index == 0) {
    TACHO_TRY(decode_blob(place, 0, columns[1].data(), [&] { return column_name(place, 0); }));
    TACHO_TRY(load_strings(place, columns));
  } else {
    for (size_t c = 0; c < columns.size(); ++c) {
      const Mapping::Column& from = mapping_->column(described.ours, c);
      if (from.at < 0) {
        std::fill(columns[c].begin(), columns[c].end(), from.absent);
        continue;
      }
      TACHO_TRY(
          decode_blob(place, static_cast<size_t>(from.at), columns[c].data(), [&] { return column_name(place, c); }));
      if (from.codes != nullptr) to_our_codes(*from.codes, columns[c]);
    }
  }
  table.append(columns, place.head.rows);
  return check_memory();
}

Status FileTrace::check_memory() const {
  size_t memory = text_bytes_;
  for (const PackedTable& dimension : dimensions_) memory += dimension.memory();
  if (memory <= kMaxDictionaryMemory) return {};
  return fail("{}: its dictionary needs more than {} MiB of memory, which no trace of tacho does", name_,
              kMaxDictionaryMemory >> 20);
}

// Sections lie where there was room, so in a file that was cut off a dictionary may lie behind the cut while a later
// one is there: rows that tell nothing stand for those lost, and the later ones keep their numbers. False if the next
// row of `table` cannot be number `first`.
bool FileTrace::fill_gap(Table table, int64_t first) {
  PackedTable& rows = dimensions_[static_cast<size_t>(table) - event::kFirstDimension];
  const int64_t due = static_cast<int64_t>(rows.rows()) + 1;
  if (first == due) return true;
  if (complete_ || first < due || static_cast<uint64_t>(first - due) > kMostMissingRows - missing_rows_) return false;
  uint64_t missing = static_cast<uint64_t>(first - due);
  missing_rows_ += missing;
  std::vector<std::vector<int64_t>> columns(rows.columns());
  for (size_t c = 0; c < columns.size(); ++c) {
    const int64_t nothing = table == Table::kString ? 0 : mapping_->column(table, c).absent;
    columns[c].assign(std::min<uint64_t>(missing, kMaxChunkRows), nothing);
  }
  for (; missing > 0; missing -= std::min<uint64_t>(missing, kMaxChunkRows))
    rows.append(columns, std::min<uint64_t>(missing, kMaxChunkRows));
  return true;
}

// A dimension's codes as ours; remembers foreign ones for the note.
void FileTrace::to_our_codes(const CodeMap& codes, std::span<int64_t> values) {
  for (size_t i = 0; i < codes.foreign.size(); ++i) {
    if (std::find(values.begin(), values.end(), codes.foreign[i].code) != values.end())
      seen_codes_.emplace_back(&codes, i);
  }
  for (int64_t& value : values) value = codes(value);
}

// Finds the text of strings whose lengths are in columns[1] and sets their addresses in columns[0].
Status FileTrace::load_strings(const ChunkPlace& place, std::vector<std::vector<int64_t>>& columns) {
  const uint64_t offset = place.payload + place.blob(1).offset;
  const auto damaged = [&] {
    return fail("{}: is damaged: the text of strings at offset {} cannot be decoded", name_, offset);
  };
  TACHO_ASSIGN(std::span<const uint8_t> bytes, blob_bytes(place, 1, [] { return "the text of strings"; }));
  uint64_t total = 0;
  for (const int64_t length : columns[1]) {
    if (length <= 0 || static_cast<uint64_t>(length) > bytes_.size() + kMaxZstdText) return damaged();
    total += static_cast<uint64_t>(length);
  }
  if (bytes.empty()) return damaged();
  const uint8_t form = bytes[0];
  bytes = bytes.subspan(1);
  if (form == kZstdText) {
    if (bytes.size() < sizeof(uint32_t)) return damaged();
    const auto plain = load<uint32_t>(bytes.data());
    bytes = bytes.subspan(sizeof plain);
    if (plain != total || plain > kMaxZstdText || text_bytes_ + plain > kMaxZstdTextPerFile + kMaxZstdText)
      return damaged();
    auto text = std::make_unique<uint8_t[]>(plain);
    const size_t got = ZSTD_decompress(text.get(), plain, bytes.data(), bytes.size());
    if (ZSTD_isError(got) || got != plain) return damaged();
    text_bytes_ += plain;
    bytes = {text.get(), plain};
    texts_.push_back(std::move(text));
  } else if (form != kPlainText || bytes.size() != total) {
    return damaged();
  }
  const uint8_t* next = bytes.data();
  for (size_t i = 0; i < columns[0].size(); ++i) {
    columns[0][i] = reinterpret_cast<int64_t>(next);
    next += columns[1][i];
  }
  return {};
}

Status FileTrace::load_updates(const ChunkPlace& place) {
  std::array<std::vector<int64_t>, kUpdateColumns> columns;
  for (size_t c = 0; c < kUpdateColumns; ++c) {
    columns[c].resize(place.head.rows);
    TACHO_TRY(decode_blob(place, c, columns[c].data(), [&] { return column_name(place, c); }));
  }
  for (size_t i = 0; i < place.head.rows; ++i) {
    const Mapping::Table* const described = mapping_->in_file(columns[0][i]);
    const int64_t row = columns[1][i];
    const int64_t column = columns[2][i];
    const auto damaged = [&] {
      return fail("{}: is damaged: the dictionary's updates at offset {} change what does not exist", name_,
                  place.payload);
    };
    if (described == nullptr || described->kind != TableKind::kDimension || row <= 0 || column < 0 ||
        column >= static_cast<int64_t>(described->columns))
      return damaged();
    const int own = described->to_ours[static_cast<size_t>(column)];
    if (own < 0) continue;
    PackedTable& table = dimensions_[static_cast<size_t>(described->ours) - event::kFirstDimension];
    if (static_cast<uint64_t>(row) > table.rows()) {
      if (complete_) return damaged();
      continue;  // the row lies behind the place where the file is cut off
    }
    int64_t value = columns[3][i];
    if (const CodeMap* codes = mapping_->column(described->ours, static_cast<size_t>(own)).codes)
      to_our_codes(*codes, std::span(&value, 1));
    table.set(static_cast<size_t>(row - 1), static_cast<size_t>(own), value);
  }
  return {};
}

Status FileTrace::load_chunk(const ChunkPlace& place) {
  const ChunkHead& head = place.head;
  const auto table = static_cast<size_t>(head.table);
  for (const int64_t time : {head.first, head.max_start, head.max_end}) {
    // A start within bounds may have the longest duration there is.
    if (event::is_timed(static_cast<Table>(head.table)) &&
        (time < -event::kFarthestTime || time > 2 * event::kFarthestTime)) {
      return fail("{}: is damaged: the section at offset {} holds times that are none", name_, place.payload);
    }
  }
  if (head.role == ChunkRole::kFacts) {
    chunks_[table].push_back(
        {head.rows, slabs_, head.first, head.max_start, head.max_end, head.min_track, head.max_track});
    places_[table].push_back(place);
    fact_rows_[table] += head.rows;
  } else if ((file_flags_ & kFileAggregate) != 0) {
    aggregates_[table].push_back(place);
  } else {
    totals_[table].push_back(place);
    return {};
  }
  if (!event::is_timed(static_cast<Table>(head.table))) return {};
  first_time_ = any_time_ ? std::min(first_time_, head.first) : head.first;
  last_time_ = any_time_ ? std::max(last_time_, head.max_end) : head.max_end;
  any_time_ = true;
  return {};
}

// Cells that refer to something (checked.h)

// offset: of the section, 0 = in the dictionary.
Status FileTrace::damaged_cell(Table table, size_t column, int64_t cell, uint64_t offset) const {
  const event::Column& about = event::table_info(table).columns[column];
  const std::string where =
      fmt::format("{}: is damaged: column {} of table {}{}", name_, about.name, event::table_info(table).name,
                  offset == 0 ? std::string() : fmt::format(" at offset {}", offset));
  if (about.type == event::Type::kTime)
    return event::is_time(cell) ? fail("{} holds {}, a time that its section does not span", where, cell)
                                : fail("{} holds {}, which is no time", where, cell);
  const Table target = about.type == event::Type::kString ? Table::kString : about.target;
  const int64_t last = rows(target) - 1;
  if (cell > 0 && cell <= last) return fail("{} refers to row {}, which comes later", where, cell);
  return fail("{} refers to row {} of table {}, which has {}", where, cell, event::table_info(target).name, last);
}

// Once all dimensions are there: what do their cells and those of the facts refer to?
Status FileTrace::check_dimensions() {
  for (const event::TableInfo& info : event::all_tables()) {
    for (size_t c = 0; c < info.columns.size(); ++c) {
      const event::Column& column = info.columns[c];
      const int64_t rows_there = column.type == event::Type::kString ? rows(Table::kString)
                                 : column.type == event::Type::kRow  ? rows(column.target)
                                                                     : 0;
      bounds_[static_cast<size_t>(info.table)].push_back(bounds_of(info.table, c, rows_there));
      if (!event::is_fact(info.table)) TACHO_TRY(check_dimension(info.table, c));
    }
  }
  return {};
}

Status FileTrace::check_dimension(Table table, size_t column) {
  const CellBounds& bounds = bounds_[static_cast<size_t>(table)][column];
  PackedTable& cells = dimensions_[static_cast<size_t>(table) - event::kFirstDimension];
  const event::Column& about = event::table_info(table).columns[column];
  // A tree: a row's parent comes before it, so that every way ends.
  const bool tree = about.type == event::Type::kRow && about.target == table;
  const auto [low, high] = cells.range(column);
  if (!tree &&
      (cells.rows() == 0 || bounds.anything() || (bounds.holds(low) && bounds.holds(high) && low != event::kUnknown)))
    return {};
  for (size_t row = 0; row < cells.rows(); ++row) {
    const int64_t cell = cells.cell(row, column);
    if (bounds.holds(cell) && (!tree || cell <= static_cast<int64_t>(row))) continue;
    // Of a file that was cut off, what a row refers to may be missing.
    if (bounds.damage && complete_) return damaged_cell(table, column, cell, 0);
    cells.set(row, column, bounds.instead);
  }
  return {};
}

Status FileTrace::check_facts(const ChunkPlace& place, size_t column, std::span<int64_t> cells,
                              const ColumnRange& range) const {
  CellBounds bounds = bounds_[place.head.table][column];
  if (column == event::column::Fact::start && event::is_timed(static_cast<Table>(place.head.table))) {
    // What finds chunks by their times, or counts in bins between them, relies on this.
    bounds.low = std::max(bounds.low, place.head.first);
    bounds.high = std::min(bounds.high, place.head.max_start);
  }
  // Mostly the encoding tells enough: what fits in so many bits from a base on.
  if (range.known && range.low >= bounds.low && range.high <= bounds.high && (!range.unknowns || bounds.unknown))
    return {};
  const size_t bad = first_outside(cells, bounds);
  if (bad == cells.size()) return {};
  const bool time = bounds.instead == event::kUnknown;
  if (bounds.damage && (complete_ || time))
    return damaged_cell(static_cast<Table>(place.head.table), column, cells[bad], place.payload);
  replace_outside(cells, bounds);
  return {};
}

// The same for the entries of statistics: a summary has a track and a dimension row, a histogram's and a busy time's
// one of the two.
template <typename Entry>
Status FileTrace::check_entries(Table table, std::span<Entry> entries, uint64_t offset) const {
  const FactColumns at = fact_columns(table);
  const auto check = [&](int column, int64_t& cell) -> Status {
    if (column < 0) return {};
    const CellBounds& bounds = bounds_[static_cast<size_t>(table)][static_cast<size_t>(column)];
    if (bounds.holds(cell)) return {};
    if (complete_) return damaged_cell(table, static_cast<size_t>(column), cell, offset);
    cell = bounds.instead;
    return {};
  };
  for (Entry& entry : entries) {
    if constexpr (requires { entry.track; }) TACHO_TRY(check(at.track, entry.track));
    if constexpr (requires { entry.dim; }) TACHO_TRY(check(at.dim, entry.dim));
    if constexpr (requires { entry.last; }) {
      if (entry.first < -event::kFarthestTime || entry.last > 2 * event::kFarthestTime)
        return fail("{}: is damaged: the section at offset {} holds times that are none", name_, offset);
    }
  }
  return {};
}

// Reading

std::optional<std::string_view> FileTrace::property(Table table, int64_t row, std::string_view key) const {
  using P = event::column::Property;
  std::call_once(properties_once_, [&] {
    const int64_t count = rows(Table::kProperty);
    for (int64_t i = 1; i < count; ++i) {
      properties_[{cell(Table::kProperty, i, P::table), cell(Table::kProperty, i, P::row),
                   text(Table::kProperty, i, P::key)}] = cell(Table::kProperty, i, P::value);
    }
  });
  const auto found = properties_.find({static_cast<int64_t>(table), row, key});
  if (found == properties_.end()) return std::nullopt;
  return string(found->second);
}

Status FileTrace::decode(Table table, size_t chunk, int column, std::vector<int64_t>& out) const {
  TACHO_TRY(check_fact(table, false, chunk));
  const ChunkPlace& place = places_[static_cast<size_t>(table)][chunk];
  if (column < 0 || static_cast<size_t>(column) >= event::table_info(table).columns.size()) {
    return fail("{}: table {} has no column {}", name_, table_name(place.head.table), column);
  }
  const auto number = static_cast<size_t>(column);
  const Mapping::Column& from = mapping_->column(table, number);
  if (from.at < 0) {
    out.assign(place.head.rows, from.absent);
    return check_facts(place, number, out);
  }
  out.resize(place.head.rows);
  ColumnRange range;
  columns_decoded_.fetch_add(1, std::memory_order_relaxed);
  TACHO_TRY(decode_blob(
      place, static_cast<size_t>(from.at), out.data(), [&] { return column_name(place, number); }, &range));
  if (from.codes != nullptr) {
    for (int64_t& value : out) value = (*from.codes)(value);
    return {};
  }
  return check_facts(place, number, out, range);
}

template <typename Entry, typename Decode>
Result<std::vector<Entry>> FileTrace::extra(const ChunkPlace& place, size_t number, Decode decode,
                                            std::string_view name) const {
  std::vector<Entry> entries;
  const auto what = [&] { return fmt::format("{} of table {}", name, table_name(place.head.table)); };
  TACHO_ASSIGN(const std::span<const uint8_t> bytes, blob_bytes(place, place.head.columns + number, what));
  const auto table = static_cast<Table>(place.head.table);
  if (decode(bytes, entries)) {
    TACHO_TRY(check_entries<Entry>(table, entries, place.payload));
    return entries;
  }
  return fail("{}: is damaged: {} at offset {} cannot be decoded", name_, what(),
              place.payload + place.blob(place.head.columns + number).offset);
}

// Sums that hold durations below zero were written by a tacho without event::known_duration().
template <typename Entry>
bool of_negative_durations(const std::vector<Entry>& entries) {
  if constexpr (requires(const Entry& entry) { entry.min; }) {
    return std::any_of(entries.begin(), entries.end(),
                       [](const Entry& entry) { return entry.count > 0 && entry.min < 0; });
  }
  return false;
}

// The stored extra of a chunk; where none was stored, what the writer would have computed.
template <typename Entry, typename Decode>
Result<std::vector<Entry>> FileTrace::statistics(Table table, size_t chunk, size_t number, Decode decode_entries,
                                                 std::string_view name, std::vector<Entry> ChunkStatistics::*member,
                                                 Summarizer::What what, Computer& computer) const {
  TACHO_TRY(check_fact(table, true, chunk));
  const ChunkPlace& place = places_[static_cast<size_t>(table)][chunk];
  if (place.blob(place.head.columns + number).bytes > 0) {
    TACHO_ASSIGN(std::vector<Entry> stored, extra<Entry>(place, number, decode_entries, name));
    if (!of_negative_durations(stored)) return stored;
  }

  const FactColumns at = fact_columns(table);
  TACHO_TRY(decode(table, chunk, at.track, computer.track));
  TACHO_TRY(decode(table, chunk, at.start, computer.start));
  TACHO_TRY(decode(table, chunk, at.duration, computer.duration));
  TACHO_TRY(decode(table, chunk, at.dim, computer.dim));
  computer.bytes.clear();
  if (at.bytes >= 0) TACHO_TRY(decode(table, chunk, at.bytes, computer.bytes));
  if (!computer.summarizer) computer.summarizer.emplace();
  const TimedRows rows{computer.track, computer.start, computer.duration, computer.dim, computer.bytes};
  return computer.summarizer->compute(rows, what).*member;
}

Result<std::vector<Summary>> FileTrace::summaries(Table table, size_t chunk, Computer& computer) const {
  return statistics<Summary>(table, chunk, 0, decode_summaries, "the summaries", &ChunkStatistics::summaries,
                             Summarizer::What::kSummaries, computer);
}
Result<std::vector<HistogramEntry>> FileTrace::histogram(Table table, size_t chunk, Computer& computer) const {
  return statistics<HistogramEntry>(table, chunk, 1, decode_histogram, "the histogram", &ChunkStatistics::histogram,
                                    Summarizer::What::kHistogram, computer);
}
Result<std::vector<Busy>> FileTrace::busy(Table table, size_t chunk, Computer& computer) const {
  return statistics<Busy>(table, chunk, 2, decode_busy, "the busy times", &ChunkStatistics::busy,
                          Summarizer::What::kBusy, computer);
}

template <typename Entry, typename Decode, typename OfChunk>
Status FileTrace::merge_into(SummaryMerger& merger, Table table, size_t number, Decode decode_entries,
                             std::string_view name, OfChunk of_chunk) const {
  if (!event::is_timed(table)) return {};
  for (const ChunkPlace& place : aggregates_[static_cast<size_t>(table)]) {
    if (place.blob(number).bytes == 0) continue;
    TACHO_ASSIGN(const std::vector<Entry> entries, extra<Entry>(place, number, decode_entries, name));
    merger.add(entries);
  }
  for (size_t chunk = 0; chunk < places_[static_cast<size_t>(table)].size(); ++chunk) {
    TACHO_ASSIGN(const std::vector<Entry> entries, of_chunk(chunk));
    merger.add(entries);
  }
  return {};
}

// Gives the stored sums of the whole table; false when there are none. They hold for exactly the rows that the writer
// had put on disk by then: where some of these were given up later (a full disk), the sums are passed over.
Result<bool> FileTrace::visit_totals(Table table, const std::function<void(std::span<const Summary>)>& visit) const {
  const std::vector<ChunkPlace>& places = totals_[static_cast<size_t>(table)];
  if (places.empty()) return false;
  int64_t rows = 0;
  std::vector<Summary> all;
  for (const ChunkPlace& place : places) {
    if (place.blob(0).bytes == 0) continue;
    TACHO_ASSIGN(const std::vector<Summary> entries,
                 extra<Summary>(place, 0, decode_summaries, "the sums of the whole"));
    for (const Summary& entry : entries) rows = saturating_add(rows, saturating_add(entry.count, entry.unknown));
    all.insert(all.end(), entries.begin(), entries.end());
  }
  if (rows != fact_rows_[static_cast<size_t>(table)] || of_negative_durations(all)) return false;
  visit(all);
  return true;
}

Status FileTrace::visit_summaries(Table table, const std::function<void(std::span<const Summary>)>& visit) const {
  if (!event::is_fact(table) || !event::is_timed(table)) return {};
  TACHO_ASSIGN(const bool done, visit_totals(table, visit));
  if (done) return {};
  for (const ChunkPlace& place : aggregates_[static_cast<size_t>(table)]) {
    if (place.blob(0).bytes == 0) continue;
    TACHO_ASSIGN(const std::vector<Summary> entries, extra<Summary>(place, 0, decode_summaries, "the summaries"));
    visit(entries);
  }
  Computer computer;
  for (size_t chunk = 0; chunk < places_[static_cast<size_t>(table)].size(); ++chunk) {
    TACHO_ASSIGN(const std::vector<Summary> entries, summaries(table, chunk, computer));
    visit(entries);
  }
  return {};
}

Result<std::vector<Summary>> FileTrace::merged_summaries(Table table) const {
  SummaryMerger merger;
  TACHO_TRY(visit_summaries(table, [&](std::span<const Summary> entries) { merger.add(entries); }));
  return merger.summaries();
}

Result<std::vector<HistogramEntry>> FileTrace::merged_histogram(Table table) const {
  SummaryMerger merger;
  Computer computer;
  TACHO_TRY(merge_into<HistogramEntry>(merger, table, 1, decode_histogram, "the histogram",
                                       [&](size_t c) { return histogram(table, c, computer); }));
  return merger.histogram();
}

struct Interval {
  int64_t start, end;
  int64_t length() const {
    int64_t difference = 0;
    return __builtin_sub_overflow(end, start, &difference) ? std::numeric_limits<int64_t>::max() : difference;
  }
};

// Busy time of one track whose chunks overlap. Intervals that no later chunk can touch are added up and forgotten.
struct BusyTrack {
  Busy sum;
  std::vector<Interval> open;

  void close_before(int64_t time) {
    std::sort(open.begin(), open.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
    std::vector<Interval> merged;
    for (const Interval& interval : open) {
      if (!merged.empty() && interval.start <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, interval.end);
      } else {
        merged.push_back(interval);
      }
    }
    open.clear();
    for (const Interval& interval : merged) {
      if (interval.end >= time) {
        open.push_back(interval);
        continue;
      }
      sum.busy = saturating_add(sum.busy, interval.length());
    }
  }
};

Result<std::vector<Busy>> FileTrace::merged_busy(Table table) const {
  SummaryMerger merger;
  struct Entry {
    size_t chunk;
    Busy busy;
    bool overlaps;
  };
  std::vector<Entry> entries;
  Computer computer;
  TACHO_TRY(
      merge_into<Busy>(merger, table, 2, decode_busy, "the busy times", [&](size_t chunk) -> Result<std::vector<Busy>> {
        TACHO_ASSIGN(const std::vector<Busy> of_chunk, busy(table, chunk, computer));
        for (const Busy& one : of_chunk) entries.push_back({chunk, one, false});
        return std::vector<Busy>();
      }));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.busy.track != b.busy.track ? a.busy.track < b.busy.track : a.busy.first < b.busy.first;
  });
  std::map<size_t, std::vector<int64_t>> to_read;  // chunk -> tracks whose rows must be read
  size_t latest = 0;                               // entry of this track that ends last so far
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[latest].busy.track == entries[i].busy.track) {
      if (entries[i].busy.first < entries[latest].busy.last) entries[i].overlaps = entries[latest].overlaps = true;
      if (entries[i].busy.last < entries[latest].busy.last) continue;
    }
    latest = i;
  }
  for (const Entry& entry : entries) {
    if (entry.overlaps) {
      // Only a damaged file names a track twice; its rows are read once.
      std::vector<int64_t>& tracks = to_read[entry.chunk];
      if (tracks.empty() || tracks.back() != entry.busy.track) tracks.push_back(entry.busy.track);
    } else {
      merger.add(std::span(&entry.busy, 1));
    }
  }

  std::vector<size_t> order;
  for (const auto& [chunk, tracks] : to_read) order.push_back(chunk);
  const std::span<const Chunk> all = chunks(table);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a].min_start < all[b].min_start; });
  std::map<int64_t, BusyTrack> open;
  const FactColumns at = fact_columns(table);
  std::vector<int64_t> track, start, duration;
  for (const size_t chunk : order) {
    TACHO_TRY(decode(table, chunk, at.track, track));
    TACHO_TRY(decode(table, chunk, at.start, start));
    TACHO_TRY(decode(table, chunk, at.duration, duration));
    for (const int64_t wanted : to_read[chunk]) {
      BusyTrack& of_track =
          open.try_emplace(
                  wanted,
                  BusyTrack{{wanted, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 0}, {}})
              .first->second;
      of_track.close_before(all[chunk].min_start);
      const auto begin = static_cast<size_t>(std::lower_bound(track.begin(), track.end(), wanted) - track.begin());
      for (size_t i = begin; i < track.size() && track[i] == wanted; ++i) {
        const int64_t end =
            duration[i] == event::kUnknown ? start[i] : std::max(start[i], saturating_add(start[i], duration[i]));
        of_track.sum.first = std::min(of_track.sum.first, start[i]);
        of_track.sum.last = std::max(of_track.sum.last, end);
        if (!of_track.open.empty() && start[i] >= of_track.open.back().start && start[i] <= of_track.open.back().end) {
          of_track.open.back().end = std::max(of_track.open.back().end, end);
        } else {
          of_track.open.push_back({start[i], end});
        }
      }
    }
  }
  for (auto& [number, of_track] : open) {
    of_track.close_before(std::numeric_limits<int64_t>::max());
    for (const Interval& interval : of_track.open)
      of_track.sum.busy = saturating_add(of_track.sum.busy, interval.length());
    merger.add(std::span(&of_track.sum, 1));
  }
  return merger.busy();
}

Result<std::shared_ptr<const Trace>> open_loaded(std::shared_ptr<FileTrace> trace) {
  TACHO_TRY(trace->load_all());
  return std::shared_ptr<const Trace>(std::move(trace));
}

}  // namespace

Result<std::shared_ptr<const Trace>> Trace::open(const std::string& path) {
  TACHO_ASSIGN(MappedFile file, MappedFile::open(path));
  return open_mapped(std::move(file), path);
}

Result<std::shared_ptr<const Trace>> open_mapped(MappedFile file, const std::string& name) {
  return open_loaded(std::make_shared<FileTrace>(std::move(file), name));
}

Result<std::shared_ptr<const Trace>> open_bytes(std::span<const uint8_t> bytes, const std::string& name) {
  return open_loaded(std::make_shared<FileTrace>(bytes, name));
}

}  // namespace tacho::trace
