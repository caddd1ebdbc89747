// Walks through the lists of archives (archive.h).
#include "format/source/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "base/text/utf8.h"
#include "format/source/names.h"

namespace tacho::format::source {
namespace {

constexpr uint64_t kMostMembers = 1'000'000;
constexpr size_t kMostOfList = size_t{64} << 20;

// What an archive holds, and the member to read.
class Members {
 public:
  Members(std::string_view kind, const std::string& path) : kind_(kind), path_(path) {}

  Status add(std::string_view name, const ArchivedFile& file) {
    // What macOS adds to files that it packs.
    const size_t slash = name.rfind('/');
    const std::string_view own = slash == std::string_view::npos ? name : name.substr(slash + 1);
    if (own.empty() || own.starts_with("._") || own == ".DS_Store") return {};
    if (++files_ > kMostMembers) return fail("{}: {} with more than a million files: unpack it", path_, kind_);
    if (names_.size() < 3) names_.push_back(shown(own));
    if (files_ == 1) only_ = file;
    if (is_trace(own) && ++traces_ == 1) trace_ = file;
    return {};
  }
  Result<ArchivedFile> chosen() const {
    if (files_ == 1) return only_;
    if (traces_ == 1) return trace_;
    if (files_ == 0) return fail("{}: {} without a file in it", path_, kind_);
    std::string names;
    for (const std::string& name : names_) names += (names.empty() ? "" : ", ") + name;
    return fail("{}: {} with {} files ({}{}): unpack it", path_, kind_, files_, names, files_ > 3 ? ", ..." : "");
  }

 private:
  static std::string shown(std::string_view name) {
    std::string text = valid_utf8(name.substr(0, 80));
    for (char& c : text)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return text;
  }
  static bool is_trace(std::string_view name) {
    return named_like_a_trace(name) || without_packing(name).ends_with(".csv");
  }

  std::string_view kind_;
  const std::string& path_;
  uint64_t files_ = 0, traces_ = 0;
  std::vector<std::string> names_;
  ArchivedFile only_, trace_;
};

constexpr size_t kBlock = 512;

// A number of a tar header: octal digits, or the low bytes of one above 8 GiB.
bool tar_number(std::string_view field, uint64_t& value) {
  value = 0;
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    for (size_t i = 1; i < field.size(); ++i) {
      if (value >> 55 != 0) return false;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return true;
  }
  size_t at = field.find_first_not_of(' ');
  if (at == std::string_view::npos) return true;
  for (; at < field.size() && field[at] >= '0' && field[at] <= '7'; ++at)
    value = value << 3 | static_cast<uint64_t>(field[at] - '0');
  return at == field.size() || field[at] == ' ' || field[at] == '\0';
}

// What headers of their own say about the member behind them.
struct MemberHints {
  std::optional<uint64_t> size;
  std::string name;  // "" = what its header says
};

bool decimal(std::string_view text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A pax header's records, each with its own length in front ("19 size=8589934592\n").
void read_pax(std::string_view records, MemberHints& hints) {
  while (!records.empty()) {
    const size_t space = records.find(' ');
    uint64_t length = 0;
    if (space == std::string_view::npos || !decimal(records.substr(0, space), length) || length < space + 2 ||
        length > records.size())
      return;
    const std::string_view record = records.substr(space + 1, static_cast<size_t>(length) - space - 2);
    uint64_t size = 0;
    if (record.starts_with("size=") && decimal(record.substr(5), size)) hints.size = size;
    if (record.starts_with("path=")) hints.name = record.substr(5);
    records.remove_prefix(static_cast<size_t>(length));
  }
}

uint64_t little(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Result<std::string> bytes_at(int descriptor, uint64_t from, size_t size, const std::string& path) {
  std::string bytes(size, '\0');
  size_t got = 0;
  while (got < size) {
    const ssize_t more = ::pread(descriptor, bytes.data() + got, size - got, static_cast<off_t>(from + got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return fail("{}: {}", path, std::strerror(errno));
    if (more == 0) return fail("{}: the zip archive is cut off", path);
    got += static_cast<size_t>(more);
  }
  return bytes;
}

// Where a zip archive's list lies.
struct ListPlace {
  uint64_t from, size, count;
};

Result<ListPlace> list_of_zip(int descriptor, uint64_t file_size, const std::string& path) {
  constexpr size_t kEnd = 22, kLongestRemark = 65535, kLocator = 20;
  const auto tail_size = static_cast<size_t>(std::min<uint64_t>(file_size, kEnd + kLongestRemark + kLocator));
  TACHO_ASSIGN(const std::string tail, bytes_at(descriptor, file_size - tail_size, tail_size, path));
  const size_t end = tail.rfind(std::string_view("PK\5\6", 4));
  if (end == std::string::npos || end + kEnd > tail.size())
    return fail("{}: the zip archive is cut off: it has no list of its files", path);
  ListPlace place{little(tail, end + 16, 4), little(tail, end + 12, 4), little(tail, end + 10, 2)};
  const bool big = place.from == UINT32_MAX || place.size == UINT32_MAX || place.count == UINT16_MAX;
  if (big && end >= kLocator && std::string_view(tail).substr(end - kLocator).starts_with("PK\6\7")) {
    TACHO_ASSIGN(const std::string last, bytes_at(descriptor, little(tail, end - kLocator + 8, 8), 56, path));
    if (!std::string_view(last).starts_with("PK\6\6")) return fail("{}: damaged zip archive", path);
    place = {little(last, 48, 8), little(last, 40, 8), little(last, 32, 8)};
  }
  if (place.from > file_size || place.size > file_size - place.from || place.size > kMostOfList)
    return fail("{}: damaged zip archive: its list lies outside of it", path);
  return place;
}

// Sizes and place of a member above 4 GiB are in an extra field, in this order and only where the list says -1.
void zip64_sizes(std::string_view extra, ArchivedFile& file) {
  while (extra.size() >= 4) {
    const auto size = static_cast<size_t>(little(extra, 2, 2));
    if (size > extra.size() - 4) return;
    if (little(extra, 0, 2) == 1) {
      size_t at = 4;
      for (uint64_t* const value : {&file.size, &file.packed, &file.from}) {
        if (*value != UINT32_MAX || at + 8 > 4 + size) continue;
        *value = little(extra, at, 8);
        at += 8;
      }
    }
    extra.remove_prefix(4 + size);
  }
}

}  // namespace

bool is_tar(std::string_view head) {
  if (head.size() < kBlock || head[0] == '\0') return false;
  uint64_t sum = 0, told = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? 0x20u : static_cast<unsigned char>(head[i]);
  return head[148] != '\0' && tar_number(head.substr(148, 8), told) && sum == told;
}

Result<ArchivedFile> find_in_tar(ByteLayer& archive, const std::string& path) {
  Members members("a tar archive", path);
  constexpr uint64_t kMostBytes = UINT64_MAX / 4, kLongestHints = 1u << 20;
  uint64_t at = 0;
  MemberHints hints;
  for (;;) {
    const auto [header, status] = first_bytes(archive, kBlock);
    TACHO_TRY(Status(status));
    at += kBlock;
    if (header.size() < kBlock || header[0] == '\0') break;
    uint64_t size = 0;
    if (!is_tar(header) || !tar_number(std::string_view(header).substr(124, 12), size) || size > kMostBytes)
      return fail("{}: damaged tar archive at byte {}", path, at - kBlock);
    const char type = header[156];
    const bool pax = type == 'x', long_name = type == 'L', plain = type == '0' || type == '\0' || type == '7';
    if (plain && hints.size) size = *hints.size;
    if (size > kMostBytes) return fail("{}: damaged tar archive at byte {}", path, at - kBlock);
    const uint64_t whole = (size + kBlock - 1) / kBlock * kBlock;
    if ((pax || long_name) && size <= kLongestHints) {
      std::string text = first_bytes(archive, static_cast<size_t>(whole)).bytes;
      text.resize(std::min(text.size(), static_cast<size_t>(size)));
      if (pax)
        read_pax(text, hints);
      else
        hints.name = text.c_str();  // to its first 0
    } else {
      if (plain) {
        const std::string_view own(header.data(), strnlen(header.data(), 100));
        TACHO_TRY(members.add(hints.name.empty() ? own : hints.name, {at, size, size, 0, 0}));
      }
      if (type != 'K' && type != 'g') hints = {};  // of this member, of whatever type; of links' targets, of all
      if (const Status passed = archive.skip(whole); !passed) return fail("{}: the tar archive is cut off", path);
    }
    at += whole;
  }
  return members.chosen();
}

Result<ArchivedFile> find_in_zip(int descriptor, const std::string& path) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return fail("{}: {}", path, std::strerror(errno));
  const auto file_size = static_cast<uint64_t>(info.st_size);
  TACHO_ASSIGN(const ListPlace place, list_of_zip(descriptor, file_size, path));
  TACHO_ASSIGN(const std::string list, bytes_at(descriptor, place.from, static_cast<size_t>(place.size), path));
  Members members("a zip archive", path);
  constexpr size_t kEntry = 46, kLocal = 30;
  std::string_view rest = list;
  for (uint64_t i = 0; i < place.count; ++i) {
    if (rest.size() < kEntry || !rest.starts_with("PK\1\2")) return fail("{}: damaged zip archive", path);
    const auto name = static_cast<size_t>(little(rest, 28, 2)), extra = static_cast<size_t>(little(rest, 30, 2)),
               remark = static_cast<size_t>(little(rest, 32, 2));
    if (rest.size() - kEntry < name + extra + remark) return fail("{}: damaged zip archive", path);
    ArchivedFile file{little(rest, 42, 4), little(rest, 20, 4), little(rest, 24, 4),
                      static_cast<uint32_t>(little(rest, 16, 4)), static_cast<uint16_t>(little(rest, 10, 2))};
    zip64_sizes(rest.substr(kEntry + name, extra), file);
    if ((little(rest, 8, 2) & 1) != 0) file.method = UINT16_MAX;  // encrypted
    TACHO_TRY(members.add(rest.substr(kEntry, name), file));
    rest.remove_prefix(kEntry + name + extra + remark);
  }
  TACHO_ASSIGN(ArchivedFile file, members.chosen());
  if (file.method == UINT16_MAX) return fail("{}: a zip archive with a password: unpack it", path);
  if (file.method != 0 && file.method != 8 && file.method != 93)
    return fail("{}: a zip archive packed by method {}: unpack it", path, file.method);
  if (file.from > file_size) return fail("{}: damaged zip archive", path);
  TACHO_ASSIGN(const std::string local, bytes_at(descriptor, file.from, kLocal, path));
  if (!std::string_view(local).starts_with("PK\3\4")) return fail("{}: damaged zip archive", path);
  file.from += kLocal + little(local, 26, 2) + little(local, 28, 2);
  if (file.from > file_size || file.packed > file_size - file.from) return fail("{}: the zip archive is cut off", path);
  return file;
}

}  // namespace tacho::format::source
