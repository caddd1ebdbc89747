// Builds b-tree pages from sorted rows (bulk.h).
#include "format/sqlite/bulk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/files/output_file.h"

namespace tacho::sqlite {
namespace {

constexpr uint32_t kReservedForPointer = 2;
constexpr size_t kInteriorRoom = 4096 - 12;  // bytes in an interior page for cells and their pointers

unsigned varint_size(uint64_t value) {
  unsigned size = 1;
  while (size < 9 && value >> (7 * size) != 0) ++size;
  return size == 9 || value >> 56 != 0 ? 9 : size;
}

uint8_t* put_varint(uint8_t* out, uint64_t value) {
  if (value < 0x80) {
    *out = static_cast<uint8_t>(value);
    return out + 1;
  }
  if (value >> 56 != 0) {
    out[8] = static_cast<uint8_t>(value);
    value >>= 8;
    for (int i = 7; i >= 0; --i) {
      out[i] = static_cast<uint8_t>(0x80 | (value & 0x7f));
      value >>= 7;
    }
    return out + 9;
  }
  const unsigned size = varint_size(value);
  for (unsigned i = 0; i < size; ++i) {
    const unsigned shift = 7 * (size - 1 - i);
    out[i] = static_cast<uint8_t>((value >> shift & 0x7f) | (i + 1 < size ? 0x80 : 0));
  }
  return out + size;
}

void put16(uint8_t* out, uint32_t value) {
  out[0] = static_cast<uint8_t>(value >> 8);
  out[1] = static_cast<uint8_t>(value);
}
void put32(uint8_t* out, uint32_t value) {
  const uint32_t swapped = __builtin_bswap32(value);
  std::memcpy(out, &swapped, 4);
}

}  // namespace

BulkTable::BulkTable(BulkFile& file, std::string name, uint32_t root)
    : file_(file), name_(std::move(name)), root_(root) {
  leaf_.resize(BulkFile::kPage);
  start_leaf();
}

void BulkTable::start_leaf() {
  std::memset(leaf_.data(), 0, leaf_.size());
  content_ = BulkFile::kPage;
  cells_ = 0;
}

BulkTable& BulkTable::real(double value) {
  if (std::isnan(value)) return null();
  if (value == std::trunc(value) && std::fabs(value) < 1e15 && !(value == 0 && std::signbit(value)))
    return integer(static_cast<int64_t>(value));  // SQLite stores whole numbers in REAL columns this way
  return sized(7, 8, __builtin_bit_cast(uint64_t, value));
}

BulkTable& BulkTable::text(std::string_view value) {
  uint64_t type = 13 + 2 * static_cast<uint64_t>(value.size());
  uint8_t bytes[9];
  uint8_t* const stop = put_varint(bytes, type);
  types_.insert(types_.end(), bytes, stop);
  body_.insert(body_.end(), value.begin(), value.end());
  return *this;
}

void BulkTable::end() {
  // The header's size includes its own varint.
  size_t size = types_.size() + 1;
  if (size > 127) size = types_.size() + 2;
  uint8_t count[9];
  uint8_t* const stop = put_varint(count, size);
  head_.assign(count, stop);
  head_.insert(head_.end(), types_.begin(), types_.end());
  append(rowid_, head_.data(), head_.size(), body_.data(), body_.size());
}

void BulkTable::append_record(int64_t rowid, std::span<const uint8_t> record) {
  append(rowid, record.data(), record.size(), nullptr, 0);
}

void BulkTable::append(int64_t rowid, const uint8_t* head, size_t head_size, const uint8_t* body, size_t body_size) {
  if (!file_.error_.empty()) return;
  if (rows_ > 0 && rowid <= last_rowid_) {
    file_.fault(fmt::format("rows of {} out of order (id {} after {})", name_, rowid, last_rowid_));
    return;
  }
  constexpr uint32_t kUsable = BulkFile::kPage;
  const uint64_t payload = head_size + body_size;
  uint64_t local = payload;
  if (payload > kUsable - 35) {
    constexpr uint64_t kLeast = (kUsable - 12) * 32 / 255 - 23;
    local = kLeast + (payload - kLeast) % (kUsable - 4);
    if (local > kUsable - 35) local = kLeast;
  }
  uint8_t prefix[18];
  uint8_t* const after = put_varint(put_varint(prefix, payload), static_cast<uint64_t>(rowid));
  const auto prefix_size = static_cast<size_t>(after - prefix);
  const auto cell = static_cast<uint32_t>(std::max<uint64_t>(prefix_size + local + (local < payload ? 4 : 0), 4));
  if (8 + (cells_ + 1) * kReservedForPointer + cell > content_) emit_leaf();
  content_ -= cell;
  uint8_t* const at = leaf_.data() + content_;
  std::memcpy(at, prefix, prefix_size);
  if (local == payload) {
    std::memcpy(at + prefix_size, head, head_size);
    if (body_size > 0) std::memcpy(at + prefix_size + head_size, body, body_size);
  } else {
    const auto copy = [&](uint8_t* out, uint64_t from, uint64_t size) {
      const uint64_t of_head = from < head_size ? std::min<uint64_t>(size, head_size - from) : 0;
      if (of_head > 0) std::memcpy(out, head + from, of_head);
      if (size > of_head) std::memcpy(out + of_head, body + (from + of_head - head_size), size - of_head);
    };
    copy(at + prefix_size, 0, local);
    std::vector<uint8_t> page(kUsable);
    uint64_t done = local;
    put32(at + prefix_size + local, file_.upcoming(file_.next_page_));
    while (done < payload) {
      const uint64_t take = std::min<uint64_t>(kUsable - 4, payload - done);
      std::fill(page.begin(), page.end(), uint8_t{0});
      copy(page.data() + 4, done, take);
      done += take;
      const uint32_t number = file_.upcoming(file_.next_page_);
      put32(page.data(), done < payload ? file_.upcoming(number + 1) : 0);
      file_.write_page(page.data());
    }
  }
  put16(leaf_.data() + 8 + cells_ * 2, content_);
  ++cells_;
  ++rows_;
  last_rowid_ = rowid;
}

void BulkTable::emit_leaf() {
  leaf_[0] = 0x0d;
  put16(leaf_.data() + 3, cells_);
  put16(leaf_.data() + 5, content_);
  push(0, {file_.write_page(leaf_.data()), last_rowid_});
  start_leaf();
}

// Entries wait until they fill a page and two more are there, so that no interior page gets only a single child.
void BulkTable::push(size_t level, Entry entry) {
  if (levels_.size() <= level) levels_.resize(level + 1);
  Level& here = levels_[level];
  if (!here.entries.empty())
    here.bytes += 4 + varint_size(static_cast<uint64_t>(here.entries.back().key)) + kReservedForPointer;
  here.entries.push_back(entry);
  if (here.bytes > kInteriorRoom + 64) emit_interior(level, fitting(level));
}

size_t BulkTable::fitting(size_t level) const {
  const std::vector<Entry>& entries = levels_[level].entries;
  size_t used = 0, count = 0;
  while (count + 2 < entries.size()) {
    const size_t more = 4 + varint_size(static_cast<uint64_t>(entries[count].key)) + kReservedForPointer;
    if (used + more > kInteriorRoom) break;
    used += more;
    ++count;
  }
  return count;
}

void BulkTable::emit_interior(size_t level, size_t count) {
  std::vector<uint8_t> page(BulkFile::kPage);
  const std::vector<Entry> taken(levels_[level].entries.begin(),
                                 levels_[level].entries.begin() + static_cast<ptrdiff_t>(count));
  write_interior(page.data(), taken);
  Level& here = levels_[level];
  here.entries.erase(here.entries.begin(), here.entries.begin() + static_cast<ptrdiff_t>(count));
  here.bytes = 0;
  for (size_t i = 0; i + 1 < here.entries.size(); ++i)
    here.bytes += 4 + varint_size(static_cast<uint64_t>(here.entries[i].key)) + kReservedForPointer;
  push(level + 1, {file_.write_page(page.data()), taken.back().key});
}

// The last entry becomes the right-most child; its key is not stored.
void BulkTable::write_interior(uint8_t* page, std::span<const Entry> entries) {
  std::memset(page, 0, BulkFile::kPage);
  uint32_t content = BulkFile::kPage;
  const size_t cells = entries.size() - 1;
  for (size_t i = 0; i < cells; ++i) {
    uint8_t cell[13];
    put32(cell, entries[i].page);
    const auto size = static_cast<uint32_t>(put_varint(cell + 4, static_cast<uint64_t>(entries[i].key)) - cell);
    content -= size;
    std::memcpy(page + content, cell, size);
    put16(page + 12 + 2 * i, content);
  }
  page[0] = 0x05;
  put16(page + 3, static_cast<uint32_t>(cells));
  put16(page + 5, content);
  put32(page + 8, entries.back().page);
}

void BulkTable::finish() {
  if (rows_ == 0) return;
  if (levels_.empty()) {  // one leaf holds all rows: it is the root
    leaf_[0] = 0x0d;
    put16(leaf_.data() + 3, cells_);
    put16(leaf_.data() + 5, content_);
    file_.write_at(root_, leaf_.data());
    return;
  }
  if (cells_ > 0) emit_leaf();
  for (size_t level = 0; level < levels_.size(); ++level) {
    while (levels_[level].bytes > kInteriorRoom) emit_interior(level, fitting(level));
    if (level + 1 == levels_.size()) break;
    emit_interior(level, levels_[level].entries.size());
  }
  std::vector<Entry>& top = levels_.back().entries;
  std::vector<uint8_t> page(BulkFile::kPage);
  if (top.size() == 1) {
    // Cannot happen: a level gets its first entry only if two more follow.
    file_.fault(fmt::format("internal: table {} has a root with one child", name_));
    return;
  }
  write_interior(page.data(), top);
  file_.write_at(root_, page.data());
}

namespace {

tl::unexpected<Error> not_written(const std::string& path, int error) {
  return fail("{}: not written: {}{}", path, std::strerror(error), write_hint(error));
}

// execute() on the file that is being written; where a system call failed the sentence says why.
Status execute_on(sqlite3* connection, const std::string& path, const std::string& sql) {
  errno = 0;
  if (sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  const int code = sqlite3_errcode(connection), error = errno;
  if (code == SQLITE_FULL) return not_written(path, error == EFBIG || error == EDQUOT ? error : ENOSPC);
  if (code == SQLITE_IOERR && error != 0) return not_written(path, error);
  return fail("{}: not written: {}", path, sqlite3_errmsg(connection));
}

}  // namespace

Result<std::unique_ptr<BulkFile>> BulkFile::create(const std::string& path, const std::string& schema,
                                                   const std::string& shown_as) {
  std::unique_ptr<BulkFile> file(new BulkFile);
  file->path_ = path;
  file->shown_as_ = shown_as.empty() ? path : shown_as;
  {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE, nullptr);
    const Connection connection(raw);
    if (code != SQLITE_OK)
      return fail("{}: cannot be created: {}", file->shown_as_, raw != nullptr ? sqlite3_errmsg(raw) : "no memory");
    TACHO_TRY(execute_on(raw, file->shown_as_,
                         fmt::format("PRAGMA page_size={}; PRAGMA journal_mode=OFF; PRAGMA "
                                     "synchronous=OFF; PRAGMA encoding='UTF-8'; BEGIN;",
                                     kPage)));
    TACHO_TRY(execute_on(raw, file->shown_as_, schema));
    TACHO_TRY(execute_on(raw, file->shown_as_, "COMMIT"));
    TACHO_ASSIGN(const Statement list,
                 prepare(raw, "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"));
    while (sqlite3_step(list.get()) == SQLITE_ROW)
      file->tables_.emplace_back(new BulkTable(*file, reinterpret_cast<const char*>(sqlite3_column_text(list.get(), 0)),
                                               static_cast<uint32_t>(sqlite3_column_int64(list.get(), 1))));
  }
  file->descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file->descriptor_ < 0) return not_written(file->shown_as_, errno);
  const off_t size = ::lseek(file->descriptor_, 0, SEEK_END);
  file->next_page_ = static_cast<uint32_t>(size / kPage) + 1;
  file->buffer_.reserve(1 << 20);
  return file;
}

BulkFile::~BulkFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

BulkTable& BulkFile::table(std::string_view name) {
  for (const auto& table : tables_)
    if (table->name_ == name) return *table;
  std::abort();  // contract: callers name only tables of their schema
}

void BulkFile::fault(std::string message) {
  if (error_.empty()) error_ = std::move(message);
}

void BulkFile::fault_of(int error) {
  fault(fmt::format("{}{}", std::strerror(error), write_hint(error)));
}

Status BulkFile::status() const {
  if (error_.empty()) return {};
  return fail("{}: not written: {}", shown_as_, error_);
}

uint32_t BulkFile::write_page(const uint8_t* page) {
  if (next_page_ == kLockPage) {
    if (buffer_.empty()) buffer_first_ = next_page_;
    buffer_.resize(buffer_.size() + kPage);
    ++next_page_;
  }
  if (next_page_ >= 0xfffffffe) {
    fault("more data than a SQLite file can hold");
    return 0;
  }
  if (buffer_.empty()) buffer_first_ = next_page_;
  buffer_.insert(buffer_.end(), page, page + kPage);
  const uint32_t number = next_page_++;
  if (buffer_.size() >= (1 << 20) - kPage) flush();
  return number;
}

void BulkFile::write_at(uint32_t number, const uint8_t* page) {
  flush();
  size_t done = 0;
  while (done < kPage) {
    const ssize_t wrote = ::pwrite(descriptor_, page + done, kPage - done,
                                   static_cast<off_t>(number - 1) * kPage + static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fault_of(errno);
    done += static_cast<size_t>(wrote);
  }
}

void BulkFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::pwrite(descriptor_, buffer_.data() + done, buffer_.size() - done,
                                   static_cast<off_t>(buffer_first_ - 1) * kPage + static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      fault_of(errno);
      break;
    }
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

Status BulkFile::finish(const std::string& script) {
  for (const auto& table : tables_) table->finish();
  flush();
  TACHO_TRY(status());
  // Readers trust the header's page count only if "version valid for" equals the change counter. SQLite set them equal
  // when it wrote the schema; both stay unchanged.
  uint8_t count[4];
  put32(count, next_page_ - 1);
  if (::pwrite(descriptor_, count, 4, 28) != 4) return not_written(shown_as_, errno);
  ::close(descriptor_);
  descriptor_ = -1;
  {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path_.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
    const Connection connection(raw);
    if (code != SQLITE_OK) return fail("{}: not written: {}", shown_as_, sqlite3_errmsg(raw));
    std::string sql =
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536; PRAGMA temp_store=FILE; BEGIN;";
    bool sequence = false;
    for (const auto& table : tables_) sequence = sequence || table->name_ == "sqlite_sequence";
    if (sequence)
      for (const auto& table : tables_)
        if (table->rows_ > 0)
          sql += fmt::format(
              "INSERT INTO sqlite_sequence(name, seq) SELECT '{0}', {1} WHERE EXISTS (SELECT 1 FROM sqlite_schema "
              "WHERE name = '{0}' AND sql LIKE '%AUTOINCREMENT%');",
              table->name_, table->last_rowid_);
    // The indexes behind PRIMARY KEY and UNIQUE are still empty.
    {
      TACHO_ASSIGN(const Statement automatic,
                   prepare(raw, "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NULL"));
      while (sqlite3_step(automatic.get()) == SQLITE_ROW)
        sql += fmt::format("REINDEX \"{}\";", reinterpret_cast<const char*>(sqlite3_column_text(automatic.get(), 0)));
    }
    sql += script;
    sql += "COMMIT;";
    TACHO_TRY(execute_on(raw, shown_as_, sql));
  }
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || ::fsync(descriptor) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    return not_written(shown_as_, error);
  }
  ::close(descriptor);
  return {};
}

}  // namespace tacho::sqlite
