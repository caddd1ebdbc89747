// Splits a refilled buffer into records and turns cells into numbers (csv.h).
#include "base/text/csv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text/utf8.h"

namespace tacho {

namespace {

constexpr size_t kChunk = size_t{256} << 10;

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] - 'A' + 'a') : a[i];
    if (c != b[i]) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

constexpr std::string_view kSeparatorLine = "sep=";

}  // namespace

char csv_separator(std::string_view header) {
  header = header.substr(0, header.find_first_of("\r\n"));
  if (header.starts_with(kSeparatorLine) && header.size() == kSeparatorLine.size() + 1) return header.back();
  char found = ',';
  bool quoted = false;
  for (const char c : header) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') return ',';
    if (found == ',' && (c == ';' || c == '\t' || c == '|')) found = c;
  }
  return found;
}

struct CsvReader::Source {
  int fd = -1;
  gzFile gz = nullptr;
  ByteInput bytes;

  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (gz != nullptr) {
      gzclose(gz);
    } else if (fd >= 0) {
      ::close(fd);
    }
  }
};

CsvReader::CsvReader() = default;
CsvReader::CsvReader(CsvReader&&) noexcept = default;
CsvReader& CsvReader::operator=(CsvReader&&) noexcept = default;
CsvReader::~CsvReader() = default;

Result<CsvReader> CsvReader::open(const std::string& path) {
  CsvReader reader;
  reader.name_ = path;
  reader.source_ = std::make_unique<Source>();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // open() waits for a pipe's writer
  if (fd < 0) return fail("{}: cannot be read: {}", path, std::strerror(errno));
  reader.source_->fd = fd;
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) return fail("{}: is a folder, not a csv file", path);
  if (S_ISFIFO(info.st_mode)) return fail("{}: is a pipe, not a csv file", path);

  std::array<unsigned char, 2> magic{};
  if (::pread(fd, magic.data(), magic.size(), 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    reader.source_->gz = gzdopen(fd, "rb");
    if (reader.source_->gz == nullptr) return fail("{}: cannot be read as gzip", path);
  }
  return reader;
}

CsvReader CsvReader::from_bytes(ByteInput bytes, std::string name) {
  CsvReader reader;
  reader.name_ = std::move(name);
  reader.source_ = std::make_unique<Source>();
  reader.source_->bytes = std::move(bytes);
  return reader;
}

CsvReader CsvReader::from_text(std::string text, std::string name) {
  CsvReader reader;
  reader.name_ = std::move(name);
  reader.buffer_.assign(text.begin(), text.end());
  reader.end_ = reader.buffer_.size();
  reader.finished_ = true;
  return reader;
}

uint64_t CsvReader::row_bound() {
  uint64_t rows = 1;
  if (source_ == nullptr) {
    for (size_t i = begin_; i < end_; ++i) rows += buffer_[i] == '\n' ? 1U : 0U;
    return rows;
  }
  if (source_->gz != nullptr || source_->bytes) return 0;
  std::vector<char> chunk(kChunk);
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(source_->fd, chunk.data(), chunk.size(), at);
    if (got <= 0) return rows;
    at += got;
    const char* p = chunk.data();
    const char* const stop = p + got;
    while ((p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(stop - p)))) != nullptr) {
      ++rows;
      ++p;
    }
  }
}

// Moves the unread bytes to the front and appends at least one byte, or sets finished_.
Status CsvReader::refill() {
  const size_t unread = end_ - begin_;
  if (unread > kMaxRecord)
    return fail("{}: row {} is longer than {} MiB; this is not a csv file of a profiler", name_, row_ + 1,
                kMaxRecord >> 20);
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, unread);
    begin_ = 0;
    end_ = unread;
  }
  // Starts small, since most files of a folder are small.
  const size_t chunk = buffer_.empty() ? std::min<size_t>(kChunk, 16384) : kChunk;
  if (buffer_.size() < end_ + chunk) buffer_.resize(std::max(buffer_.size() * 2, end_ + chunk));
  const size_t room = std::min(buffer_.size() - end_, size_t{1} << 20);
  if (source_->bytes) {
    TACHO_ASSIGN(const size_t got, source_->bytes(buffer_.data() + end_, room));
    end_ += got;
    finished_ = got == 0;
    return {};
  }
  if (source_->gz != nullptr) {
    const int got = gzread(source_->gz, buffer_.data() + end_, static_cast<unsigned>(room));
    int code = Z_OK;
    const char* text = gzerror(source_->gz, &code);
    if (got < 0 || code == Z_BUF_ERROR)
      return fail("{}: damaged gzip file after row {} ({})", name_, row_, text != nullptr ? text : "no reason given");
    end_ += static_cast<size_t>(got);
    finished_ = got == 0;
    return {};
  }
  ssize_t got = 0;
  do got = ::read(source_->fd, buffer_.data() + end_, room);
  while (got < 0 && errno == EINTR);
  if (got < 0) return fail("{}: cannot be read after row {}: {}", name_, row_, std::strerror(errno));
  end_ += static_cast<size_t>(got);
  finished_ = got == 0;
  return {};
}

// Passes the byte order mark and finds out what separates cells.
Status CsvReader::first_line() {
  while (!finished_ && end_ - begin_ < 3) TACHO_TRY(refill());
  if (end_ - begin_ >= 3 && std::memcmp(buffer_.data() + begin_, "\xEF\xBB\xBF", 3) == 0) begin_ += 3;
  const auto text = [&] { return std::string_view(buffer_.data() + begin_, end_ - begin_); };
  const auto has_line = [&] {
    const size_t start = text().find_first_not_of("\r\n");
    return start != std::string_view::npos && text().find('\n', start) != std::string_view::npos;
  };
  while (!finished_ && !has_line()) TACHO_TRY(refill());
  const size_t start = text().find_first_not_of("\r\n");
  if (start == std::string_view::npos) return {};
  const std::string_view line = text().substr(start, text().find('\n', start) - start);
  separator_ = csv_separator(line);
  if (!line.starts_with(kSeparatorLine) || line.find(separator_) != kSeparatorLine.size()) return {};
  begin_ += start + line.size();  // the end of that line counts as an empty one
  return {};
}

Result<bool> CsvReader::next(std::vector<std::string_view>& fields) {
  if (row_ == 0) TACHO_TRY(first_line());
  const char separator = separator_;
  for (;;) {  // until a record is whole within the buffer
    fields.clear();
    char* const base = buffer_.data();
    char* const stop = base + end_;
    char* p = base + begin_;
    bool whole = false;
    for (;;) {  // one field per turn
      if (p == stop) {
        if (finished_ && (!fields.empty() || p != base + begin_)) {
          fields.emplace_back();  // the file ends after a separator
          whole = true;
        }
        break;
      }
      char* const start = p;
      if (*p == '"') {
        // Unquotes the field in place: "to" trails "p" by the number of doubled quotes so far. If the buffer ends
        // within the record, it is scanned again, so nothing may move before the closing quote is known.
        char* quote = p + 1;
        bool doubled = false;
        for (;;) {
          quote = static_cast<char*>(std::memchr(quote, '"', static_cast<size_t>(stop - quote)));
          if (quote == nullptr || quote + 1 >= stop) break;
          if (quote[1] != '"') break;
          doubled = true;
          quote += 2;
          if (quote == stop) {
            quote = nullptr;
            break;
          }
        }
        if (quote == nullptr || (quote + 1 == stop && !finished_)) {
          if (quote == nullptr && finished_)
            return fail("{}: the quote opened in row {} is never closed; the file is cut off or damaged", name_,
                        row_ + 1);
          break;
        }
        char* after = quote + 1;
        while (after < stop && *after != separator && *after != '\n') ++after;
        if (after == stop && !finished_) break;
        fields.emplace_back(start + 1, static_cast<size_t>(quote - start - 1));
        if (doubled)
          fields.back() = std::string_view(start, fields.back().size() + 1);  // marked: begins with the quote
        p = after;
      } else {
        while (p < stop && *p != separator && *p != '\n') ++p;
        if (p == stop && !finished_) break;
        fields.emplace_back(start, static_cast<size_t>(p - start));
      }
      if (p == stop) {
        whole = true;
        break;
      }
      if (*p == '\n') {
        ++p;
        whole = true;
        break;
      }
      ++p;
      if (p == stop && !finished_) break;
    }
    if (!whole) {
      if (finished_) return false;
      TACHO_TRY(refill());
      continue;
    }
    unterminated_ = p == stop && finished_ && p[-1] != '\n';
    begin_ = static_cast<size_t>(p - base);
    ++row_;
    if (!fields.empty() && !fields.back().empty() && fields.back().back() == '\r') fields.back().remove_suffix(1);
    if (fields.size() == 1 && fields[0].empty()) continue;
    for (std::string_view& field : fields) {
      if (field.empty() || field[0] != '"') continue;  // only fields with doubled quotes still start with a quote
      char* const first = base + (field.data() - base) + 1;
      char* to = first;
      for (const char* from = first; from < field.data() + field.size(); ++from) {
        *to++ = *from;
        if (*from == '"' && from + 1 < field.data() + field.size() && from[1] == '"') ++from;
      }
      field = std::string_view(first, static_cast<size_t>(to - first));
    }
    return true;
  }
}

CellNumber parse_number(std::string_view cell) {
  // The common case without any call: an integer of up to 15 digits, perhaps followed by ".0".
  {
    const char* p = cell.data();
    const char* const stop = p + cell.size();
    uint64_t value = 0;
    const char* const digits = p;
    while (p < stop && static_cast<unsigned char>(*p - '0') < 10)
      value = value * 10 + static_cast<unsigned char>(*p++ - '0');
    if (p != digits && p - digits <= 15 && (p == stop || (stop - p == 2 && p[0] == '.' && p[1] == '0')))
      return {static_cast<double>(value), true};
  }
  cell = trimmed(cell);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (cell.empty()) return {nan, true};
  if (cell.front() == '+') cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc{} && end == cell.data() + cell.size()) return {value, true};
  for (const std::string_view word : {"nan", "na", "n/a", "none", "null"})
    if (equals_ignoring_case(cell, word)) return {nan, true};
  return {nan, false};
}

bool parse_timestamp(std::string_view cell, int64_t& whole, double& fraction) {
  cell = trimmed(cell);
  fraction = 0;
  const char* const stop = cell.data() + cell.size();
  auto [end, error] = std::from_chars(cell.data(), stop, whole);
  if (error != std::errc{}) return false;
  if (end == stop) return true;
  if (*end == '.') {
    // Only digits after the point. Numbers with an exponent take the path below.
    double part = 0;
    const auto [tail, tail_error] = std::from_chars(end, stop, part, std::chars_format::fixed);
    if (tail == stop && tail_error == std::errc{}) {
      fraction = !cell.empty() && cell.front() == '-' ? -part : part;
      return true;
    }
    if (end + 1 == stop) return true;  // "123."
  }
  const CellNumber number = parse_number(cell);
  if (!number.ok || !(std::fabs(number.value) < 9.2e18)) return false;
  const double floor = std::floor(number.value);
  whole = static_cast<int64_t>(floor);
  fraction = number.value - floor;
  return true;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return valid_utf8(text);
  return csv_quoted(text);
}

std::string csv_quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  for (const char c : valid_utf8(text)) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace tacho
