// TraceWriter: buffers rows per table, keeps dictionaries apart, and hands whole sections to the store.
//
// What flush() writes may be provisional: rows stay in their buffers, and the next flush writes the slab again with
// more rows, under the same sequence number and a higher revision, and then frees the room of the old one. So flushing
// every second leaves no small slabs behind.
#include <sys/random.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <tuple>

#include "base/files/output_file.h"
#include "base/saturating.h"
#include "base/text/how_many.h"
#include "event/times.h"
#include "trace/read/reader.h"
#include "trace/store/section.h"
#include "trace/store/store.h"
#include "trace/trace.h"
#include "trace/write/copy.h"
#include "trace/write/interner.h"
#include "trace/write/writer.h"

namespace tacho::trace {
namespace {

using event::LossReason;
using event::Table;

constexpr size_t kDimensions = event::kDimensionTables;
// New strings are written without waiting for a slab when they take this many bytes.
constexpr size_t kTextPerSection = size_t{1} << 20;
// A dictionary section with less new text than this, and fewer new rows, is provisional.
constexpr size_t kLeastText = size_t{16} << 10;
constexpr int64_t kLeastDictionaryRows = 1024;
// Longer strings are cut.
constexpr size_t kMaxText = size_t{64} << 20;
// Bytes of new strings that are kept after an error of writing.
constexpr size_t kPendingAfterError = size_t{4} << 20;
// Strings, and rows of each dimension, of an --aggregate.
constexpr int64_t kMaxDistinct = 2'000'000;
// What is still taken after --max-size, because processes and notes need names: strings and dimension rows, and bytes
// of new strings.
constexpr int64_t kRowsAfterFull = 512;
constexpr size_t kTextAfterFull = 16 * 1024;
// (track, dimension) pairs in a table's stored sums; with more, the sums are no shorter than those of the chunks.
constexpr size_t kMaxTotalPairs = 1 << 15;
// (track, dimension) pairs of a table that --aggregate tells apart.
constexpr size_t kMaxPairs = 32'768;
constexpr uint32_t kLeastSlabRows = 256;
// --max-size and --ring should hold at least this many slabs, of which a row takes this many bytes over all tables.
constexpr uint64_t kSlabsPerLimit = 16;
constexpr uint64_t kBytesPerSlabRow = 16;
constexpr std::string_view kOtherText = "(more than tacho keeps)";
// Bytes of strings that a file holds as they came, and in all: readers keep them in memory. With --max-size half and
// three quarters of that limit, if it is less; with --ring a quarter and 64 MiB or half, of which the end keeps what
// the events left refer to; with --aggregate a quarter and half of 16 MiB.
constexpr uint64_t kTextInFull = uint64_t{32} << 20;
constexpr uint64_t kTextAtMost = uint64_t{48} << 20;
constexpr uint64_t kAggregateLimit = uint64_t{16} << 20;
constexpr uint64_t kRingText = uint64_t{64} << 20;
// Beyond the first of the two, strings are cut to so many bytes and get a hash of what they were.
constexpr size_t kShortText = 200;

// The few rows that say how to read the others: --ring, --max-size and --aggregate never drop them.
constexpr bool is_kept(Table table) {
  return table == Table::kClock || table == Table::kLoss || table == Table::kNote;
}

size_t dimension_index(Table table) {
  return static_cast<size_t>(table) - event::kFirstDimension;
}

template <typename Container>
std::span<const uint8_t> raw_bytes(const Container& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(*values.data())};
}

// Rows of one fact table that wait for their slab.
struct Buffer {
  std::unique_ptr<int64_t[]> values;
  uint32_t rows = 0;
  uint32_t on_disk = 0;  // of them, in a provisional slab
  int64_t accepted = 0;
};

// Sums of a fact table over everything on disk, so that a reader need not go through the chunks for them.
struct Totals {
  std::unique_ptr<SummaryMerger> merger;  // nullptr: given up, because there are too many (track, dim) pairs
  std::vector<Summary> of_slab;           // of the provisional slab
  uint32_t slabs = 0;
};

struct PendingDimension {
  std::vector<std::vector<int64_t>> columns;
  int64_t first = 1;
};

class FileWriter final : public TraceWriter {
 public:
  FileWriter(SectionStore store, const WriterOptions& options, uint64_t seed)
      : options_(options), store_(std::move(store)), seed_(seed) {
    slab_rows_ = std::clamp<uint32_t>(options.slab_rows, 1, kMaxChunkRows);
    for (const uint64_t limit :
         {options.max_size, options.ring_size, options.aggregate ? kAggregateLimit : uint64_t{0}}) {
      if (limit == 0) continue;
      // The newest rows of a ring need their names, which are short by then; a file that is full ends the recording.
      const bool full = limit == options.max_size, ring = limit == options.ring_size;
      text_in_full_ = std::min(text_in_full_, full ? limit / 2 : limit / 4);
      text_at_most_ = std::min(text_at_most_, full ? limit / 4 * 3 : ring ? std::max(limit / 2, kRingText) : limit / 2);
      if (options.aggregate && limit == kAggregateLimit) continue;
      const uint64_t rows = limit / kSlabsPerLimit / kBytesPerSlabRow;
      slab_rows_ =
          std::min(slab_rows_,
                   std::max<uint32_t>(kLeastSlabRows, static_cast<uint32_t>(std::min<uint64_t>(rows, kMaxChunkRows))));
    }
    // Columns lie a few cache lines further apart than their length, so that a row's cells fall into different sets.
    constexpr size_t kApart = 72;
    stride_ = slab_rows_ + kApart;
    for (size_t i = 0; i < kDimensions; ++i) {
      interners_.push_back(std::make_unique<Interner>(seed + i, store_.file().folder()));
      const Table table = static_cast<Table>(event::kFirstDimension + i);
      pending_[i].columns.resize(event::table_info(table).columns.size());
    }
    updates_.resize(kUpdateColumns);
    if (options.aggregate) {
      for (auto& merger : mergers_) merger = std::make_unique<SummaryMerger>(kMaxPairs);
    } else if (options.ring_size == 0 && options.memory_keep_ns == 0) {
      for (auto& totals : totals_) totals.merger = std::make_unique<SummaryMerger>();
    }
  }

  int64_t string(std::string_view text) override {
    if (text.empty()) return 0;
    if (text.size() > kMaxText) {
      text = text.substr(0, kMaxText);
      if (!cut_noted_) {
        cut_noted_ = true;
        note(0, event::NoteSeverity::kWarning, fmt::format("a text longer than {} MiB was cut", kMaxText >> 20));
      }
    }
    Interner& strings = *interners_[0];
    const std::span<const uint8_t> bytes = raw_bytes(text);
    if (closed(strings.size())) {
      const int64_t row = strings.find(bytes);
      return row != 0 ? row : string_of_the_rest();
    }
    if (all_text_ + text.size() > text_in_full_) return string_beyond(text);
    return add_string(text, bytes);
  }

  int64_t dimension_cells(Table table, std::span<const int64_t> row) override {
    const size_t index = dimension_index(table);
    PendingDimension& pending = pending_[index];
    assert(!event::is_fact(table) && table != Table::kString && row.size() == pending.columns.size());
    if (event::is_fact(table) || index == 0 || row.size() != pending.columns.size()) return 0;
    Interner& rows = *interners_[index];
    if (closed(rows.size())) return rows.find(raw_bytes(row));
    const auto [number, added] = rows.intern(raw_bytes(row));
    if (added) {
      for (size_t c = 0; c < row.size(); ++c) pending.columns[c].push_back(row[c]);
      ++pending_rows_;
      dictionary_changed_ = true;
      if (pending.columns[0].size() == kMaxChunkRows) write_dictionary();
    }
    return number;
  }

  void update(Table table, int64_t row, int column, int64_t value) override {
    const size_t index = dimension_index(table);
    assert(!event::is_fact(table) && table != Table::kString);
    if (event::is_fact(table) || index == 0 || row <= 0 || row > interners_[index]->size() || column < 0 ||
        static_cast<size_t>(column) >= pending_[index].columns.size()) {
      return;
    }
    PendingDimension& pending = pending_[index];
    if (row >= pending.first) {
      pending.columns[static_cast<size_t>(column)][static_cast<size_t>(row - pending.first)] = value;
      dictionary_changed_ = true;
      return;
    }
    if (updates_[0].size() == kMaxChunkRows) return;  // only when they could not be written
    const int64_t cells[kUpdateColumns] = {static_cast<int64_t>(table), row, column, value};
    for (size_t c = 0; c < kUpdateColumns; ++c) updates_[c].push_back(cells[c]);
    ++pending_rows_;
    dictionary_changed_ = true;
    if (updates_[0].size() == kMaxChunkRows) write_dictionary();
  }

  void add_cells(Table table, std::span<const int64_t> row) override {
    assert(event::is_fact(table));
    if (!event::is_fact(table)) return;
    if (table == Table::kLoss) {
      if (row.size() == event::column::Loss::kCount) {
        lose(row[0], static_cast<Table>(row[1]), static_cast<LossReason>(row[2]), row[3]);
      }
      return;
    }
    const size_t columns = event::table_info(table).columns.size();
    assert(row.size() == columns);
    const bool timed = event::is_timed(table);
    if (row.size() != columns || (timed && !event::is_time(row[event::column::Fact::start])))
      return lose(0, table, LossReason::kBadInput, 1);
    Buffer& buffer = buffers_[static_cast<size_t>(table)];
    if (stopped_ && !stays(table)) {
      return lose(0, table, failed_ != 0 ? LossReason::kWriteError : LossReason::kMaxSize, 1);
    }
    if (options_.aggregate && !stays(table) && !event::is_timed(table))
      return lose(0, table, LossReason::kAggregated, 1);
    if (buffer.values == nullptr) buffer.values.reset(new int64_t[columns * stride_]);
    int64_t* cell = buffer.values.get() + buffer.rows;
    for (const int64_t value : row) {
      *cell = value;
      cell += stride_;
    }
    if (timed) {
      int64_t& duration = buffer.values[event::column::Fact::duration * stride_ + buffer.rows];
      if (duration < 0 && duration != event::kUnknown) lose(0, table, LossReason::kClockOrder, 1);
      duration = event::known_duration(duration);
    }
    ++buffer.accepted;
    changed_ = true;
    if (++buffer.rows == slab_rows_) write_slabs(true);
  }

  void lose(int64_t process, Table table, LossReason reason, int64_t count) override {
    if (count == 0) return;
    int64_t& sum = losses_[{process, static_cast<int64_t>(table), static_cast<int64_t>(reason)}];
    sum = saturating_add(sum, count);
    losses_changed_ = true;
  }

  void note(int64_t process, event::NoteSeverity severity, std::string_view text) override {
    // Whatever room names have left: notes are few, and say so.
    const bool room = finishing_ || !closed(interners_[0]->size());
    const int64_t row = room ? add_string(text, raw_bytes(text)) : string(text);
    add(event::row::Note{.process = process, .severity = severity, .text = row});
  }

  Status flush() override {
    if (failed_ == 0) {
      bool grown = false;
      for (const Buffer& buffer : buffers_) grown |= buffer.rows >= slab_rows_ / 4;
      write_dictionary();
      if (changed_) write_slabs(grown);
      write_aggregate();
      write_losses();
    }
    return write_status();
  }

  int64_t rows(Table table) const override {
    if (!event::is_fact(table)) return interners_[dimension_index(table)]->size() + 1;
    if (table == Table::kLoss) return static_cast<int64_t>(losses_.size());
    return buffers_[static_cast<size_t>(table)].accepted;
  }
  uint64_t bytes() const override { return store_.end(); }
  const std::string& temporary_path() const override { return store_.file().temporary(); }

  Status write_status() const override {
    if (failed_ == 0) return {};
    return fail("{}: cannot be written: {}{}", store_.file().path(), strerror(failed_), write_hint(failed_));
  }

  Status finish() override {
    finishing_ = true;
    note_texts();
    if (options_.ring_size > 0 && all_text_ > options_.ring_size / 4 && finish_without_unused()) return {};
    write_slabs(true);
    if (failed_ == 0 && write_dictionary() && write_aggregate()) {
      write_totals();
      store_.compact();
    }
    // On a full disk, drops the newest slabs until the footer fits: a complete file that says what it lacks is worth
    // more.
    bool footer = write_end();
    while (!footer && drop_newest_slab()) footer = write_end();
    Status published = store_.file().publish(options_.durable);
    TACHO_TRY(std::move(published));
    return write_status();
  }

  Result<std::shared_ptr<const Trace>> finish_and_open(const std::string& shown_as) override {
    TACHO_TRY(finish());
    SectionStore& store = in_place_ != nullptr ? in_place_->store_ : store_;
    const std::string& path = shown_as.empty() ? store.file().path() : shown_as;
    TACHO_ASSIGN(MappedFile file, MappedFile::map(store.file().descriptor(), path));
    return open_mapped(std::move(file), path);
  }

 private:
  // Sections that are written again and again under the same sequence number.
  struct Living {
    uint64_t sequence = 0;  // 0 = none on disk
    uint32_t revision = 0;
  };

  int64_t add_string(std::string_view text, std::span<const uint8_t> bytes) {
    const auto [row, added] = interners_[0]->intern(bytes);
    if (added) {
      all_text_ += text.size();
      lengths_.push_back(static_cast<int64_t>(text.size()));
      text_.append(text);
      ++pending_rows_;
      dictionary_changed_ = true;
      if (text_.size() >= kTextPerSection || lengths_.size() == kMaxChunkRows) write_dictionary();
    }
    return row;
  }

  // No further distinct strings or dimension rows of a kind of which there are `size`?
  bool closed(int64_t size) const {
    if (options_.aggregate && size >= kMaxDistinct) return true;
    if (failed_ != 0) return text_.size() > kPendingAfterError || pending_rows_ >= static_cast<int64_t>(kMaxChunkRows);
    return stopped_ && (pending_rows_ + written_after_full_ > kRowsAfterFull || text_.size() > kTextAfterFull);
  }
  // Of a text for which there is no more room as it is.
  int64_t string_beyond(std::string_view text) {
    if (const int64_t row = interners_[0]->find(raw_bytes(text)); row != 0) return row;
    std::string shortened;
    if (text.size() > kShortText) {
      size_t end = kShortText;
      while (end > kShortText - 4 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
      shortened = fmt::format("{}... #{:016x}", text.substr(0, end), XXH3_64bits(text.data(), text.size()));
      text = shortened;
      if (const int64_t row = interners_[0]->find(raw_bytes(text)); row != 0) return row;
    }
    if (all_text_ + text.size() > text_at_most_) {
      if (options_.max_size != 0)
        stopped_ = true;  // the file is full, and recording ends
      else
        ++texts_left_out_;
      return string_of_the_rest();
    }
    if (!shortened.empty()) ++texts_cut_;
    return add_string(text, raw_bytes(text));
  }

  // Says what became of names that were too many or too long.
  void note_texts() {
    if (texts_cut_ > 0)
      note(0, event::NoteSeverity::kWarning,
           fmt::format("names took more than {} KiB: {} later ones that are longer than {} bytes were cut there, with "
                       "a number that tells them apart",
                       text_in_full_ >> 10, texts_cut_, kShortText));
    if (texts_left_out_ > 0)
      note(0, event::NoteSeverity::kWarning,
           fmt::format("names took {} KiB, the most that this file may hold: {} named {} instead", text_at_most_ >> 10,
                       how_many(texts_left_out_, "record is", "records are"), kOtherText));
    texts_cut_ = texts_left_out_ = 0;
  }

  int64_t string_of_the_rest() {
    if (rest_ == 0) rest_ = add_string(kOtherText, raw_bytes(kOtherText));
    return rest_;
  }

  void keep_error(int error) {
    if (error == 0 || failed_ != 0) return;
    failed_ = error;
    stopped_ = true;
  }

  // Writes builder_ as a section in place of the living one. Returns whether it is on disk.
  bool write_section(SectionKind kind, Living& living, const RowCounts& rows = {}) {
    if (failed_ != 0 && !finishing_) return false;
    const bool again = living.sequence != 0;
    const uint64_t sequence = again ? living.sequence : next_sequence_++;
    const uint32_t revision = again ? living.revision + 1 : 0;
    const SectionStore::Contents contents{kind, sequence, revision, builder_.head(), builder_.payload(), rows};
    if (const int error = store_.write(contents)) {
      keep_error(error);
      return false;
    }
    if (again) drop_sequence(sequence);  // the first of the two is the old one
    living = {sequence, revision};
    return true;
  }

  void drop_sequence(uint64_t sequence) {
    const auto sections = store_.sections();
    for (size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].sequence == sequence) return keep_error(store_.drop(i));
    }
  }

  // Writes what is new in the dictionary. Little of it stays pending, and the next write contains it again.
  bool write_dictionary() {
    if (!dictionary_changed_) return true;
    if (failed_ != 0 && !finishing_) return false;
    builder_.clear();
    if (!lengths_.empty()) {
      const bool compress = compressed_text_ + text_.size() <= kMaxZstdTextPerFile;
      builder_.add_strings(first_string_, lengths_, text_, compress);
    }
    for (size_t i = 1; i < kDimensions; ++i) {
      const PendingDimension& pending = pending_[i];
      const Table table = static_cast<Table>(event::kFirstDimension + i);
      if (!pending.columns[0].empty()) builder_.add_rows(table, pending.first, pending.columns);
    }
    if (!updates_[0].empty()) builder_.add_updates(updates_);
    if (!write_section(SectionKind::kDictionary, dictionary_)) return false;
    dictionary_changed_ = false;
    if (text_.size() < kLeastText && pending_rows_ < kLeastDictionaryRows) return true;

    dictionary_ = {};
    if (text_.size() <= kMaxZstdText) compressed_text_ += text_.size();
    first_string_ += static_cast<int64_t>(lengths_.size());
    lengths_.clear();
    text_.clear();
    for (PendingDimension& pending : pending_) {
      if (pending.columns.empty()) continue;
      pending.first += static_cast<int64_t>(pending.columns[0].size());
      for (auto& column : pending.columns) column.clear();
    }
    for (auto& column : updates_) column.clear();
    if (stopped_) written_after_full_ += pending_rows_;
    pending_rows_ = 0;
    return true;
  }

  // Writes what is buffered: facts, then the few kept rows. final: the buffers are empty afterwards.
  void write_slabs(bool final) {
    changed_ = false;
    if (options_.aggregate) {
      aggregate();
    } else {
      write_facts(final);
    }
    write_kept(final);
  }

  RowBuffer rows_of(const Buffer& buffer) const { return {buffer.values.get(), stride_, buffer.rows}; }

  void write_facts(bool final) {
    builder_.clear();
    RowCounts counts{};
    bool grown = false;
    for (size_t t = 0; t < event::kFactTables; ++t) {
      Buffer& buffer = buffers_[t];
      if (buffer.rows == 0 || stays(static_cast<Table>(t))) continue;
      counts[t] = buffer.rows;
      grown |= buffer.rows != buffer.on_disk;
    }
    if (grown && write_dictionary()) {
      builder_.clear();
      for (size_t t = 0; t < event::kFactTables; ++t) {
        if (counts[t] == 0) continue;
        const std::span<const Summary> sums = builder_.add_facts(static_cast<Table>(t), rows_of(buffers_[t]));
        Totals& totals = totals_[t];
        if (sums.size() > kMaxTotalPairs) totals.merger.reset();
        if (totals.merger != nullptr) totals.of_slab.assign(sums.begin(), sums.end());
      }
      if (!fits(builder_.head().size(), builder_.payload().size())) {
        stopped_ = true;
      } else if (write_section(SectionKind::kSlab, slab_, counts)) {
        if (options_.ring_size > 0) text_at_slab_.try_emplace(slab_.sequence, text_at_next_slab_);
        if (options_.memory_keep_ns > 0) written_at_[slab_.sequence] = std::chrono::steady_clock::now();
        for (size_t t = 0; t < event::kFactTables; ++t) {
          if (counts[t] > 0) buffers_[t].on_disk = counts[t];
        }
      }
    }
    if (final || stopped_) {
      const LossReason reason = failed_ != 0 ? LossReason::kWriteError : LossReason::kMaxSize;
      for (size_t t = 0; t < event::kFactTables; ++t) {
        if (counts[t] == 0) continue;
        Buffer& buffer = buffers_[t];
        lose(0, static_cast<Table>(t), reason, buffer.rows - buffer.on_disk);
        add_totals(totals_[t], buffer.on_disk == buffer.rows);
        buffer.rows = buffer.on_disk = 0;
      }
      slab_ = {};
      text_at_next_slab_ = all_text_;
    }
    if (options_.ring_size > 0 || options_.memory_keep_ns > 0) turn_ring();
  }

  // Would a slab of this size respect --max-size?
  bool fits(size_t head, size_t payload) const {
    constexpr uint64_t kReserve = 32 * 1024;  // for dictionary, notes and losses at the end
    if (options_.max_size == 0) return true;
    const uint64_t reserve = std::min(kReserve, options_.max_size / 8);
    return store_.size_with(head, payload) + reserve <= options_.max_size;
  }

  // Of a ring most events are gone at the end, and the names that only they had should go with them: writes a second
  // file with what is left and publishes it in place of this one. False: this one is to be finished as it is.
  bool finish_without_unused() {
    write_slabs(true);
    if (store_.file().path().empty() || failed_ != 0 || !write_end()) return false;
    Result<MappedFile> file = MappedFile::map(store_.file().descriptor(), store_.file().path());
    if (!file) return false;
    const auto trace = open_mapped(std::move(*file), store_.file().path());
    if (!trace) return false;
    Result<RandomAccessFile> target = RandomAccessFile::beside(store_.file().path(), options_.overwrite);
    if (!target) return false;
    Result<SectionStore> store = SectionStore::create(std::move(*target), kFileRing);
    if (!store) return false;
    WriterOptions options = options_;
    options.ring_size = 0;
    options.slab_rows = slab_rows_;
    auto writer = std::make_unique<FileWriter>(std::move(*store), options, seed_);
    CopyOptions used;
    used.only_used = true;
    if (!copy_into(**trace, *writer, used) || !writer->finish()) return false;
    in_place_ = std::move(writer);
    return true;
  }

  void turn_ring() {
    while (failed_ == 0) {
      uint64_t bytes = 0;
      size_t slabs = 0;
      size_t oldest = 0;
      const auto sections = store_.sections();
      for (size_t i = 0; i < sections.size(); ++i) {
        if (sections[i].kind != SectionKind::kSlab) continue;
        if (slabs == 0 || sections[i].sequence < sections[oldest].sequence) oldest = i;
        bytes += sections[i].bytes;
        ++slabs;
      }
      // Names count, too: those that came since the oldest slab began.
      if (slabs < 2) return;
      const uint64_t sequence = sections[oldest].sequence;
      if (options_.memory_keep_ns > 0) {
        const auto written = written_at_.find(sequence);
        if (written == written_at_.end() ||
            std::chrono::steady_clock::now() - written->second <= std::chrono::nanoseconds(options_.memory_keep_ns))
          return;
        written_at_.erase(written);
        lose_slab(oldest, LossReason::kRingOverwritten);
        continue;
      }
      const auto began = text_at_slab_.find(sequence);
      if (began != text_at_slab_.end()) bytes += all_text_ - began->second;
      if (bytes <= options_.ring_size) return;
      text_at_slab_.erase(text_at_slab_.begin(), text_at_slab_.upper_bound(sequence));
      lose_slab(oldest, LossReason::kRingOverwritten);
    }
  }

  // Whether rows of this table are never dropped.
  bool stays(Table table) const {
    return is_kept(table) || (options_.memory_keep_ns > 0 && table == Table::kAllocation);
  }

  void lose_slab(size_t index, LossReason reason) {
    const StoredSection section = store_.sections()[index];
    for (size_t t = 0; t < event::kFactTables; ++t) lose(0, static_cast<Table>(t), reason, section.rows[t]);
    keep_error(store_.drop(index));
  }

  bool drop_newest_slab() {
    const auto sections = store_.sections();
    size_t newest = sections.size();
    for (size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].kind != SectionKind::kSlab) continue;
      if (newest == sections.size() || sections[i].sequence > sections[newest].sequence) newest = i;
    }
    if (newest == sections.size()) return false;
    lose_slab(newest, LossReason::kWriteError);
    return true;
  }

  void write_kept(bool final) {
    builder_.clear();
    bool grown = false;
    for (size_t t = 0; t < event::kFactTables; ++t) {
      Buffer& buffer = buffers_[t];
      if (buffer.rows == 0 || !stays(static_cast<Table>(t))) continue;
      grown |= buffer.rows != buffer.on_disk;
      builder_.add_facts(static_cast<Table>(t), rows_of(buffer));
    }
    if (grown && write_section(SectionKind::kKept, kept_)) {
      for (size_t t = 0; t < event::kFactTables; ++t) {
        if (stays(static_cast<Table>(t))) buffers_[t].on_disk = buffers_[t].rows;
      }
    }
    bool full = false;
    for (size_t t = 0; t < event::kFactTables; ++t) {
      if (stays(static_cast<Table>(t))) full |= buffers_[t].rows >= slab_rows_ / 4;
    }
    if (!final || !full || finishing_) return;
    for (size_t t = 0; t < event::kFactTables; ++t) {
      if (!stays(static_cast<Table>(t))) continue;
      lose(0, static_cast<Table>(t), LossReason::kWriteError, buffers_[t].rows - buffers_[t].on_disk);
      buffers_[t].rows = buffers_[t].on_disk = 0;
    }
    kept_ = {};
  }

  bool write_losses() {
    if (!losses_changed_ || losses_.empty()) return true;
    std::vector<int64_t> cells;
    const size_t rows = std::min(losses_.size(), kMaxChunkRows);
    cells.resize(rows * event::column::Loss::kCount);
    size_t row = 0;
    for (const auto& [key, count] : losses_) {
      if (row == rows) break;
      cells[row] = std::get<0>(key);
      cells[rows + row] = std::get<1>(key);
      cells[2 * rows + row] = std::get<2>(key);
      cells[3 * rows + row] = count;
      ++row;
    }
    builder_.clear();
    builder_.add_facts(Table::kLoss, {cells.data(), rows, rows});
    if (!write_section(SectionKind::kKept, loss_)) return false;
    losses_changed_ = false;
    return true;
  }

  // Adds what is buffered to the sums; the next flush() or finish() writes them.
  void aggregate() {
    std::vector<std::vector<int64_t>> sorted(event::kMaxColumns);
    std::vector<uint32_t> order;
    for (size_t t = 0; t < event::kFactTables; ++t) {
      const Table table = static_cast<Table>(t);
      Buffer& buffer = buffers_[t];
      if (buffer.rows == 0 || !event::is_timed(table)) continue;
      const FactColumns at = fact_columns(table);
      const auto raw = [&](int column) {
        return std::span<const int64_t>(buffer.values.get() + static_cast<size_t>(column) * stride_, buffer.rows);
      };
      const bool reorder = sort_order(raw(at.track), raw(at.start), order);
      const auto column = [&](int number) -> std::span<const int64_t> {
        if (number < 0 || !reorder) return number < 0 ? std::span<const int64_t>() : raw(number);
        std::vector<int64_t>& to = sorted[static_cast<size_t>(number)];
        to.resize(buffer.rows);
        const auto from = raw(number);
        for (size_t i = 0; i < to.size(); ++i) to[i] = from[order[i]];
        return to;
      };
      const ChunkStatistics& statistics = summarizer_.compute(
          {column(at.track), column(at.start), column(at.duration), column(at.dim), column(at.bytes)});
      const int64_t folded = mergers_[t]->folded_rows();
      mergers_[t]->add(statistics.summaries);
      mergers_[t]->add(statistics.histogram);
      mergers_[t]->add(statistics.busy);
      lose(0, table, LossReason::kAggregated, mergers_[t]->folded_rows() - folded);
      buffer.rows = 0;
      aggregate_changed_ = true;
    }
  }

  bool write_aggregate() {
    if (!aggregate_changed_) return true;
    builder_.clear();
    for (size_t t = 0; t < event::kFactTables; ++t) {
      if (!event::is_timed(static_cast<Table>(t)) || mergers_[t]->pairs() == 0) continue;
      builder_.add_aggregate(static_cast<Table>(t), mergers_[t]->summaries(), mergers_[t]->histogram(),
                             mergers_[t]->busy());
    }
    if (!write_section(SectionKind::kAggregate, sums_)) return false;
    aggregate_changed_ = false;
    return true;
  }

  // The slab that was provisional is final now.
  static void add_totals(Totals& totals, bool whole) {
    if (!whole) totals.merger.reset();
    if (totals.merger == nullptr) {
      totals.of_slab = {};
      return;
    }
    totals.merger->add(totals.of_slab);
    ++totals.slabs;
    if (totals.merger->pairs() > kMaxTotalPairs) totals.merger.reset();
  }

  // Writes the sums of tables that have several chunks. They are a help and no data: without room for them they are
  // left out.
  void write_totals() {
    builder_.clear();
    for (size_t t = 0; t < event::kFactTables; ++t) {
      const Totals& totals = totals_[t];
      if (totals.merger == nullptr || totals.slabs < 2 || !event::is_timed(static_cast<Table>(t))) continue;
      builder_.add_aggregate(static_cast<Table>(t), totals.merger->summaries(), {}, {});
    }
    if (builder_.empty() || stopped_ || !fits(builder_.head().size(), builder_.payload().size())) return;
    (void)store_.write({SectionKind::kAggregate, next_sequence_++, 0, builder_.head(), builder_.payload(), {}});
  }

  // Everything that only the end needs. May be called again after a failure.
  bool write_end() {
    if (!write_dictionary() || !write_aggregate()) return false;
    write_kept(false);
    if (!write_losses()) return false;
    if (const int error = store_.write_footer()) {
      keep_error(error);
      return false;
    }
    return true;
  }

  WriterOptions options_;
  SectionStore store_;
  SectionBuilder builder_;
  Summarizer summarizer_;
  uint32_t slab_rows_ = 0;
  size_t stride_ = 0;
  uint64_t next_sequence_ = 1;
  std::array<Buffer, event::kFactTables> buffers_;
  std::vector<std::unique_ptr<Interner>> interners_;  // by dimension
  std::array<PendingDimension, kDimensions> pending_;
  std::vector<std::vector<int64_t>> updates_;
  std::vector<int64_t> lengths_;
  std::string text_;
  int64_t first_string_ = 1;
  int64_t pending_rows_ = 0;
  int64_t written_after_full_ = 0;
  size_t compressed_text_ = 0;
  int64_t rest_ = 0;
  uint64_t text_in_full_ = kTextInFull, text_at_most_ = kTextAtMost;
  uint64_t all_text_ = 0;                                                 // bytes of strings so far
  std::map<uint64_t, std::chrono::steady_clock::time_point> written_at_;  // with memory_keep_ns: slabs, by sequence
  std::map<uint64_t, uint64_t> text_at_slab_;  // of a ring: all_text_ when a slab began, by its sequence
  uint64_t text_at_next_slab_ = 0;
  uint64_t seed_;
  std::unique_ptr<FileWriter> in_place_;  // published in place of this one
  int64_t texts_cut_ = 0, texts_left_out_ = 0;
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> losses_;  // (process, table, reason) -> rows
  std::array<std::unique_ptr<SummaryMerger>, event::kFactTables> mergers_;
  std::array<Totals, event::kFactTables> totals_;
  Living dictionary_, slab_, kept_, loss_, sums_;
  bool dictionary_changed_ = false;
  bool changed_ = false;
  bool losses_changed_ = false;
  bool aggregate_changed_ = false;
  bool stopped_ = false;  // takes no more facts
  bool cut_noted_ = false;
  bool finishing_ = false;
  int failed_ = 0;  // errno of the first failed write
};

Result<std::unique_ptr<TraceWriter>> make_writer(Result<RandomAccessFile> file, const WriterOptions& options) {
  if (!file) return fail_with(std::move(file));
  const uint32_t flags = (options.ring_size > 0 || options.memory_keep_ns > 0 ? kFileRing : 0u) |
                         (options.aggregate ? kFileAggregate : 0u);
  TACHO_ASSIGN(SectionStore store, SectionStore::create(std::move(*file), flags));
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = 1;
  return std::make_unique<FileWriter>(std::move(store), options, seed);
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::string& path, const WriterOptions& options) {
  return make_writer(RandomAccessFile::beside(path, options.overwrite), options);
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::create_temporary(const WriterOptions& options) {
  return make_writer(RandomAccessFile::unnamed(), options);
}

}  // namespace tacho::trace
