// Walks table b-trees in a mapped SQLite file (file.h).
#include "format/sqlite/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "format/sqlite/unpack.h"

namespace tacho::sqlite {
namespace {

constexpr size_t kDeepest = 20;                // a b-tree of 2^31 pages with the smallest fan-out is less deep
constexpr uint32_t kBytesHeld = 32 << 20;      // of pages, by one walk
constexpr uint64_t kLongestRecord = 1u << 30;  // about SQLite's own limit for a row

bool not_empty(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

const uint8_t* long_varint(const uint8_t* at, const uint8_t* end, uint64_t& value) {
  uint64_t result = 0;
  for (int i = 0; i < 8; ++i) {
    if (at >= end) return nullptr;
    const uint8_t byte = *at++;
    result = result << 7 | (byte & 0x7f);
    if (byte < 0x80) {
      value = result;
      return at;
    }
  }
  if (at >= end) return nullptr;
  value = result << 8 | *at++;
  return at;
}

// Reads a varint; nullptr if it does not end before `end`. Handles up to four bytes, the usual length of ids and
// lengths, at once.
inline const uint8_t* varint(const uint8_t* at, const uint8_t* end, uint64_t& value) {
  if (end - at >= 4) [[likely]] {
    if (at[0] < 0x80) {
      value = at[0];
      return at + 1;
    }
    const uint64_t first = at[0] & 0x7fu;
    if (at[1] < 0x80) {
      value = first << 7 | at[1];
      return at + 2;
    }
    const uint64_t second = first << 7 | (at[1] & 0x7fu);
    if (at[2] < 0x80) {
      value = second << 7 | at[2];
      return at + 3;
    }
    const uint64_t third = second << 7 | (at[2] & 0x7fu);
    if (at[3] < 0x80) {
      value = third << 7 | at[3];
      return at + 4;
    }
  }
  return long_varint(at, end, value);
}

// The last database that was unpacked: several commands open a file first to see what it is and then to read it.
struct Remembered {
  std::mutex lock;
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = -1;
  timespec changed = {};
  TemporaryFile file;
};

Result<int> unpacked_descriptor(int packed, const std::string& path) {
  static Remembered last;
  const std::lock_guard<std::mutex> guard(last.lock);
  struct stat status {};
  if (::fstat(packed, &status) != 0) return fail("{}: {}", path, std::strerror(errno));
  const bool known = last.file && last.device == status.st_dev && last.inode == status.st_ino &&
                     last.size == status.st_size && last.changed.tv_sec == status.st_mtim.tv_sec &&
                     last.changed.tv_nsec == status.st_mtim.tv_nsec;
  if (!known) {
    last.file = {};
    TACHO_ASSIGN(last.file, unpack(path));
    last.device = status.st_dev;
    last.inode = status.st_ino;
    last.size = status.st_size;
    last.changed = status.st_mtim;
  }
  const int copy = ::fcntl(last.file.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail("{}: {}", path, std::strerror(errno));
  return copy;
}

}  // namespace

Result<File> File::open(const std::string& path) {
  File file;
  file.path_ = path;
  TACHO_TRY(file.open_descriptor());
  if (file.size_ < 512) return fail("{}: too short for a SQLite database ({} bytes)", path, file.size_);
  void* const data = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, file.descriptor_, 0);
  if (data == MAP_FAILED) return fail("{}: {}", path, std::strerror(errno));
  file.data_ = static_cast<const uint8_t*>(data);
  file.guard_ = MappingGuard(data, file.size_, path);
  TACHO_TRY(file.read_header());
  ::madvise(data, file.size_, MADV_SEQUENTIAL);
  return file;
}

// Opens the file, or what a compressed one holds.
Status File::open_descriptor() {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return fail("{}: {}", path_, std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return fail("{}: {}", path_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail("{}: not a regular file", path_);
  if (status.st_size == 0)
    return fail("{}: the file is empty; the program that should have filled it recorded nothing", path_);
  if (is_packed(path_)) {
    TACHO_ASSIGN(const int unpacked, unpacked_descriptor(descriptor_, path_));
    ::close(descriptor_);
    descriptor_ = unpacked;
    unpacked_ = true;
    if (::fstat(descriptor_, &status) != 0) return fail("{}: {}", path_, std::strerror(errno));
  } else {
    TACHO_TRY(refuse_unfinished());
  }
  size_ = static_cast<uint64_t>(status.st_size);
  return {};
}

Status File::refuse_unfinished() const {
  if (not_empty(path_ + "-wal"))
    return fail(
        "{0}: a program is still writing it, or died doing so ({0}-wal exists); close that program, or run: sqlite3 "
        "{0} 'PRAGMA wal_checkpoint(TRUNCATE)'",
        path_);
  if (not_empty(path_ + "-journal"))
    return fail(
        "{0}: a change to it was not finished ({0}-journal exists); close the program that writes it, or open it once "
        "with sqlite3 to roll the change back",
        path_);
  return {};
}

Status File::read_header() {
  const uint8_t* const head = data_;
  if (std::memcmp(head, kDatabaseHead.data(), kDatabaseHead.size()) != 0)
    return fail("{}: not a SQLite database", path_);
  const auto stated = static_cast<uint32_t>(head[16] << 8 | head[17]);
  page_size_ = stated == 1 ? 65536 : stated;
  if (page_size_ < 512 || page_size_ > 65536 || (page_size_ & (page_size_ - 1)) != 0)
    return fail("{}: damaged SQLite database (page size {})", path_, page_size_);
  if (head[20] > page_size_ - 480) return fail("{}: damaged SQLite database (reserved bytes {})", path_, head[20]);
  usable_size_ = page_size_ - head[20];
  const auto encoding = static_cast<uint32_t>(head[56]) << 24 | static_cast<uint32_t>(head[57]) << 16 |
                        static_cast<uint32_t>(head[58]) << 8 | head[59];
  if (encoding > 1)
    return fail("{}: its text is UTF-16; tacho reads UTF-8 databases (sqlite3 OLD .dump | sqlite3 NEW converts it)",
                path_);
  const uint64_t pages = size_ / page_size_;
  const auto counted = static_cast<uint32_t>(head[28]) << 24 | static_cast<uint32_t>(head[29]) << 16 |
                       static_cast<uint32_t>(head[30]) << 8 | head[31];
  if (counted != 0 && counted > pages)
    return fail("{}: cut off: its header speaks of {} pages, the file holds {}", path_, counted, pages);
  page_count_ = static_cast<uint32_t>(std::min<uint64_t>(pages, 0xfffffffe));
  return {};
}

File::File(File&& other) noexcept {
  *this = std::move(other);
}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(guard_, other.guard_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(unpacked_, other.unpacked_);
  std::swap(page_size_, other.page_size_);
  std::swap(usable_size_, other.usable_size_);
  std::swap(page_count_, other.page_count_);
  return *this;
}

File::~File() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::let_go() const {
  ::madvise(const_cast<uint8_t*>(data_), size_, MADV_DONTNEED);
}

std::string File::unpacked_sentence() const {
  return fmt::format("{} is compressed: {:.1f} MB of database were unpacked into a temporary file", path_,
                     static_cast<double>(size_) / 1e6);
}

TableScan::TableScan(const File& file, uint32_t root_page, int columns)
    : file_(&file), root_(root_page), wanted_(std::min(columns, kMaxColumns)) {
  stack_.reserve(kDeepest);
}

bool TableScan::bad(const char* what) {
  if (error_ == nullptr) {
    error_ = what;
    error_page_ = leaf_number_;
  }
  cell_ = cells_ = 0;
  stack_.clear();
  started_ = true;
  return false;
}

Status TableScan::status() const {
  if (error_ == nullptr) return {};
  return fail("{}: damaged SQLite database: {} (page {})", file_->path(), error_, error_page_);
}

bool TableScan::set_leaf(uint32_t number, const uint8_t* page) {
  const uint8_t* const header = page + (number == 1 ? 100 : 0);
  leaf_ = page;
  leaf_number_ = number;
  cells_ = static_cast<uint32_t>(header[3] << 8 | header[4]);
  pointers_ = header + 8;
  cell_ = 0;
  const auto before = static_cast<uint32_t>(pointers_ - page);
  if (before + 2 * cells_ > file_->usable_size()) return bad("more cells than fit a page");
  return true;
}

bool TableScan::open_page(uint32_t number) {
  while (true) {
    const uint8_t* const page = file_->page(number);
    leaf_number_ = number;
    if (page == nullptr) return bad("a page that does not exist is referred to");
    if (++pages_visited_ > file_->page_count() + 1) return bad("pages refer to each other in a circle");
    const uint8_t* const header = page + (number == 1 ? 100 : 0);
    if (header[0] == 0x0d) return set_leaf(number, page);
    if (header[0] != 0x05) return bad("not a page of a table");
    if (stack_.size() >= kDeepest) return bad("its tree is deeper than any can be");
    const auto cells = static_cast<uint32_t>(header[3] << 8 | header[4]);
    if (static_cast<uint32_t>(header - page) + 12 + 2 * cells > file_->usable_size())
      return bad("more cells than fit a page");
    stack_.push_back({number, 1, cells});
    if (cells == 0) {
      number = big32(header + 8);
      continue;
    }
    const auto at = static_cast<uint32_t>(header[12] << 8 | header[13]);
    if (at + 4 > file_->usable_size()) return bad("a cell lies outside its page");
    number = big32(page + at);
  }
}

std::vector<uint32_t> TableScan::leaves() {
  std::vector<uint32_t> pages;
  while (next_leaf()) pages.push_back(leaf_number_);
  cell_ = cells_ = 0;
  return pages;
}

void TableScan::scan_leaves(std::span<const uint32_t> pages) {
  listed_ = pages;
  next_listed_ = 0;
  by_list_ = true;
  cell_ = cells_ = 0;
}

uint32_t TableScan::rows_of_leaf(const File& file, uint32_t number) {
  const uint8_t* const page = file.page(number);
  if (page == nullptr) return 0;
  const uint8_t* const header = page + (number == 1 ? 100 : 0);
  return header[0] == 0x0d ? static_cast<uint32_t>(header[3] << 8 | header[4]) : 0;
}

bool TableScan::next_leaf() {
  // A long walk holds as little memory as a short one.
  if (++leaves_held_ > kBytesHeld / file_->page_size()) {
    file_->let_go();
    leaves_held_ = 0;
  }
  if (by_list_) {
    if (error_ != nullptr || next_listed_ >= listed_.size()) return false;
    const uint32_t number = listed_[next_listed_++];
    const uint8_t* const page = file_->page(number);
    leaf_number_ = number;
    if (page == nullptr || page[number == 1 ? 100 : 0] != 0x0d) return bad("not a leaf page of a table");
    return set_leaf(number, page);
  }
  if (!started_) {
    started_ = true;
    return open_page(root_);
  }
  while (!stack_.empty()) {
    Level& level = stack_.back();
    if (level.cell > level.cells) {
      stack_.pop_back();
      continue;
    }
    const uint8_t* const page = file_->page(level.page);
    const uint8_t* const header = page + (level.page == 1 ? 100 : 0);
    uint32_t child;
    if (level.cell == level.cells) {
      child = big32(header + 8);
    } else {
      const uint8_t* const pointer = header + 12 + 2 * level.cell;
      const auto at = static_cast<uint32_t>(pointer[0] << 8 | pointer[1]);
      if (at + 4 > file_->usable_size()) return bad("a cell lies outside its page");
      child = big32(page + at);
    }
    ++level.cell;
    return open_page(child);
  }
  return false;
}

bool TableScan::parse_cell() {
  const uint8_t* const pointer = pointers_ + 2 * cell_;
  const auto at = static_cast<uint32_t>(pointer[0] << 8 | pointer[1]);
  const uint32_t usable = file_->usable_size();
  if (at >= usable) return bad("a cell lies outside its page");
  const uint8_t* const end = leaf_ + usable;
  uint64_t payload = 0, rowid = 0;
  const uint8_t* p = varint(leaf_ + at, end, payload);
  if (p == nullptr) return bad("a cell lies outside its page");
  p = varint(p, end, rowid);
  if (p == nullptr) return bad("a cell lies outside its page");
  rowid_ = static_cast<int64_t>(rowid);
  ++cell_;
  ++rows_;
  if (payload <= usable - 35) {
    if (payload > static_cast<uint64_t>(end - p)) return bad("a row lies outside its page");
    row_ = p;
    row_size_ = payload;
    return parse_record();
  }
  if (payload > kLongestRecord || payload > file_->size()) return bad("a row claims to be longer than the file");
  const uint64_t least = (static_cast<uint64_t>(usable) - 12) * 32 / 255 - 23;
  uint64_t local = least + (payload - least) % (usable - 4);
  if (local > usable - 35) local = least;
  if (local + 4 > static_cast<uint64_t>(end - p)) return bad("a row lies outside its page");
  if (!gather(payload, p, local, p + local)) return false;
  return parse_record();
}

bool TableScan::gather(uint64_t payload, const uint8_t* local, uint64_t local_size, const uint8_t* overflow) {
  scratch_.clear();
  scratch_.insert(scratch_.end(), local, local + local_size);
  uint32_t next = big32(overflow);
  const uint32_t each = file_->usable_size() - 4;
  while (scratch_.size() < payload) {
    const uint8_t* const page = file_->page(next);
    if (page == nullptr) return bad("a row goes on in a page that does not exist");
    if (++overflow_pages_ > file_->page_count()) return bad("several rows go on in the same page");
    const uint64_t take = std::min<uint64_t>(each, payload - scratch_.size());
    scratch_.insert(scratch_.end(), page + 4, page + 4 + take);
    next = big32(page);
  }
  row_ = scratch_.data();
  row_size_ = payload;
  return true;
}

bool TableScan::parse_record() {
  const uint8_t* const end = row_ + row_size_;
  uint64_t header_size = 0;
  const uint8_t* p = varint(row_, end, header_size);
  if (p == nullptr || header_size > row_size_) return bad("a row's header is longer than the row");
  const uint8_t* const header_end = row_ + header_size;
  uint64_t offset = header_size;
  int column = 0;
  static constexpr uint8_t kSizes[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  for (; column < wanted_ && p < header_end; ++column) {
    uint64_t type;
    if (*p < 0x80) {
      type = *p++;
    } else {
      p = varint(p, header_end, type);
      if (p == nullptr) return bad("a row's header is cut off");
    }
    types_[column] = static_cast<uint32_t>(type);
    offsets_[column] = static_cast<uint32_t>(offset);
    const uint64_t size = type < 12 ? kSizes[type] : (type - 12) / 2;
    if (size > row_size_ - offset) return bad("a value lies outside its row");
    offset += size;
  }
  for (; column < wanted_; ++column) {
    types_[column] = 0;
    offsets_[column] = 0;
  }
  return true;
}

int64_t TableScan::other_integer(int column, int64_t missing) const {
  const uint32_t type = types_[column];
  if (type == 7) {
    const double value = real(column);
    return value >= -9.2e18 && value <= 9.2e18 ? static_cast<int64_t>(value) : missing;
  }
  return missing;
}

double TableScan::real(int column, double missing) const {
  const uint32_t type = types_[column];
  if (type == 7) return __builtin_bit_cast(double, big64(row_ + offsets_[column]));
  if ((type >= 1 && type <= 6) || type == 8 || type == 9) return static_cast<double>(integer(column));
  if (type >= 13 && type % 2 == 1) {
    const std::string_view digits = text(column);
    double value = missing;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && stop == digits.data() + digits.size() ? value : missing;
  }
  return missing;
}

bool TableScan::seek(int64_t rowid) {
  if (error_ != nullptr) return false;
  overflow_pages_ = 0;
  // Binary search in each page's cells, from the root down; keeps the path so that next() can continue from there.
  uint32_t number = root_;
  const uint32_t usable = file_->usable_size();
  const auto key_of = [&](const uint8_t* page, const uint8_t* pointer, bool leaf, int64_t& key) {
    const auto at = static_cast<uint32_t>(pointer[0] << 8 | pointer[1]);
    const uint8_t* const end = page + usable;
    if (at + 4 >= usable) return false;
    uint64_t value = 0;
    const uint8_t* p = page + at + (leaf ? 0 : 4);
    if (leaf && (p = varint(p, end, value)) == nullptr) return false;
    if (varint(p, end, value) == nullptr) return false;
    key = static_cast<int64_t>(value);
    return true;
  };
  // Callers often ask for neighbours in turn, so the row is often on the same page as the last one.
  int64_t first = 0, last = 0;
  if (cells_ > 0 && key_of(leaf_, pointers_, true, first) && key_of(leaf_, pointers_ + 2 * (cells_ - 1), true, last) &&
      first <= rowid && rowid <= last) {
    number = leaf_number_;
  } else {
    stack_.clear();
    started_ = true;
    pages_visited_ = 0;
  }
  while (true) {
    const uint8_t* const page = file_->page(number);
    leaf_number_ = number;
    if (page == nullptr) return bad("a page that does not exist is referred to");
    const uint8_t* const header = page + (number == 1 ? 100 : 0);
    const bool leaf = header[0] == 0x0d;
    if (!leaf && header[0] != 0x05) return bad("not a page of a table");
    const auto cells = static_cast<uint32_t>(header[3] << 8 | header[4]);
    const uint8_t* const pointers = header + (leaf ? 8 : 12);
    if (static_cast<uint32_t>(pointers - page) + 2 * cells > usable) return bad("more cells than fit a page");
    uint32_t low = 0, high = cells;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      int64_t key = 0;
      if (!key_of(page, pointers + 2 * middle, leaf, key)) return bad("a cell lies outside its page");
      if (key < rowid)
        low = middle + 1;
      else
        high = middle;
    }
    if (leaf) {
      if (!set_leaf(number, page)) return false;
      cell_ = low;
      int64_t key = 0;
      if (low >= cells_ || !key_of(page, pointers + 2 * low, true, key) || key != rowid) return false;
      return parse_cell();
    }
    if (stack_.size() >= kDeepest) return bad("its tree is deeper than any can be");
    stack_.push_back({number, low + 1, cells});
    if (low == cells) {
      number = big32(header + 8);
    } else {
      const auto at = static_cast<uint32_t>(pointers[2 * low] << 8 | pointers[2 * low + 1]);
      if (at + 4 > usable) return bad("a cell lies outside its page");
      number = big32(page + at);
    }
  }
}

}  // namespace tacho::sqlite
