// Unpacks and transcodes (layers.h).
#include "format/source/layers.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tacho::format::source {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

class FileBytes final : public ByteLayer {
 public:
  FileBytes(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes() override { ::close(descriptor_); }
  Result<size_t> read(char* to, size_t size) override {
    for (;;) {
      const ssize_t got = ::read(descriptor_, to, size);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return fail("{}: {}", path_, std::strerror(errno));
    }
  }
  Status skip(uint64_t bytes) override {
    if (::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_CUR) >= 0) return {};
    return ByteLayer::skip(bytes);
  }

 private:
  int descriptor_;
  std::string path_;
};

class BytesWith final : public ByteLayer {
 public:
  BytesWith(std::string first, LayerBelow below) : first_(std::move(first)), below_(std::move(below)) {}
  Result<size_t> read(char* to, size_t size) override {
    if (at_ == first_.size()) {
      if (below_) return below_->read(to, size);
      return 0;
    }
    const size_t taken = std::min(size, first_.size() - at_);
    std::memcpy(to, first_.data() + at_, taken);
    at_ += taken;
    return taken;
  }

 private:
  std::string first_;
  size_t at_ = 0;
  LayerBelow below_;
};

class Slice final : public ByteLayer {
 public:
  Slice(LayerBelow below, uint64_t from, uint64_t size, std::string path)
      : below_(std::move(below)), from_(from), left_(size), path_(std::move(path)) {}
  Result<size_t> read(char* to, size_t size) override {
    if (from_ > 0) TACHO_TRY(below_->skip(std::exchange(from_, 0)));
    const auto most = static_cast<size_t>(std::min<uint64_t>(size, left_));
    if (most == 0) return 0;
    TACHO_ASSIGN(const size_t got, below_->read(to, most));
    if (got == 0) return fail("{}: the archive is cut off", path_);
    left_ -= got;
    return got;
  }

 private:
  LayerBelow below_;
  uint64_t from_, left_;
  std::string path_;
};

// Packed bytes, read in pieces.
struct PackedInput {
  LayerBelow below;
  std::vector<char> bytes = std::vector<char>(kPiece);

  Result<size_t> next() { return below->read(bytes.data(), bytes.size()); }
};

class Inflated final : public ByteLayer {
 public:
  // zlib's window bits say whether gzip's headers are there.
  Inflated(LayerBelow below, std::string path) : input_{std::move(below)}, path_(std::move(path)) {}
  Inflated(const Inflated&) = delete;
  Inflated& operator=(const Inflated&) = delete;
  ~Inflated() override { inflateEnd(&zip_); }
  Status start(bool gzip) {
    gzip_ = gzip;
    if (inflateInit2(&zip_, gzip ? 15 + 16 : -15) != Z_OK) return fail("{}: zlib could not be set up", path_);
    return {};
  }
  Result<size_t> read(char* to, size_t size) override {
    if (size == 0 || done_) return 0;
    zip_.next_out = reinterpret_cast<Bytef*>(to);
    zip_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
    const uInt room = zip_.avail_out;
    while (zip_.avail_out == room && !done_) {
      TACHO_TRY(refill());
      if (done_) break;
      if (!member_open_ && !next_member()) continue;
      const int code = inflate(&zip_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        member_open_ = false;
        done_ = !gzip_;
      } else if (code != Z_OK && code != Z_BUF_ERROR && zip_.avail_out == room) {
        return fail("{}: damaged {} data after {} bytes of its text: {}", path_, gzip_ ? "gzip" : "zip", passed_,
                    zip_.msg != nullptr ? zip_.msg : "unknown");
      }
    }
    const size_t got = room - zip_.avail_out;
    passed_ += got;
    return got;
  }
  uint64_t foreign_from() const override { return foreign_from_; }

 private:
  Status refill() {
    if (zip_.avail_in > 0) return {};
    TACHO_ASSIGN(const size_t got, input_.next());
    zip_.next_in = reinterpret_cast<Bytef*>(input_.bytes.data());
    zip_.avail_in = static_cast<uInt>(got);
    packed_ += got;
    if (got == 0 && member_open_)
      return fail("{}: the {} data is cut off after {} bytes of its text", path_, gzip_ ? "gzip" : "zip", passed_);
    done_ = got == 0;
    return {};
  }
  // Between members: padding, another member, or something else, which gzip ignores.
  bool next_member() {
    while (zip_.avail_in > 0 && *zip_.next_in == 0) {
      ++zip_.next_in;
      --zip_.avail_in;
    }
    if (zip_.avail_in == 0) return false;
    done_ = *zip_.next_in != 0x1f;
    if (done_) foreign_from_ = packed_ - zip_.avail_in;
    if (done_) return false;
    inflateReset(&zip_);
    member_open_ = true;
    return true;
  }

  PackedInput input_;
  std::string path_;
  z_stream zip_{};
  bool gzip_ = true, member_open_ = true, done_ = false;
  uint64_t passed_ = 0, packed_ = 0, foreign_from_ = 0;
};

class Checked final : public ByteLayer {
 public:
  Checked(LayerBelow below, uint64_t size, uint32_t checksum, std::string path)
      : below_(std::move(below)), size_(size), checksum_(checksum), path_(std::move(path)) {}
  Result<size_t> read(char* to, size_t size) override {
    if (size == 0) return 0;
    const size_t most = std::min<size_t>(size, 1u << 30);
    TACHO_ASSIGN(const size_t got, below_->read(to, most));
    sum_ = crc32(sum_, reinterpret_cast<const Bytef*>(to), static_cast<uInt>(got));
    passed_ += got;
    if (passed_ > size_ || (got == 0 && passed_ < size_) || (passed_ == size_ && sum_ != checksum_))
      return fail("{}: damaged zip archive: its member has other contents than its list says", path_);
    return got;
  }

 private:
  LayerBelow below_;
  uint64_t size_, passed_ = 0;
  uLong checksum_, sum_ = 0;
  std::string path_;
};

class Zstd final : public ByteLayer {
 public:
  Zstd(LayerBelow below, int window_bits, std::string path)
      : input_{std::move(below)}, window_bits_(window_bits), path_(std::move(path)) {}
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDCtx(context_); }
  Status start() {
    context_ = ZSTD_createDCtx();
    if (context_ == nullptr || ZSTD_isError(ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, window_bits_)) != 0)
      return fail("{}: zstd could not be set up", path_);
    return {};
  }
  Result<size_t> read(char* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (size > 0 && out.pos == 0) {
      if (in_.pos == in_.size) {
        TACHO_ASSIGN(const size_t got, input_.next());
        if (got == 0 && frame_open_)
          return fail("{}: the zstd data is cut off after {} bytes of its text", path_, passed_);
        if (got == 0) return 0;
        in_ = {input_.bytes.data(), got, 0};
      }
      const size_t code = ZSTD_decompressStream(context_, &out, &in_);
      if (ZSTD_isError(code) != 0 && out.pos > 0) break;  // the next call meets the error again
      if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
        return fail("{}: zstd data with a window above {} MiB: unpack it with zstd -d --long=31", path_,
                    (1 << window_bits_) >> 20);
      if (ZSTD_isError(code) != 0)
        return fail("{}: damaged zstd data after {} bytes of its text: {}", path_, passed_, ZSTD_getErrorName(code));
      frame_open_ = code != 0;
    }
    passed_ += out.pos;
    return out.pos;
  }

 private:
  PackedInput input_;
  int window_bits_;
  std::string path_;
  ZSTD_DCtx* context_ = nullptr;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool frame_open_ = true;
  uint64_t passed_ = 0;
};

void append_utf8(std::string& out, char32_t point) {
  if (point < 0x80) {
    out += static_cast<char>(point);
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kFirst[more] | point >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (point >> (6 * i) & 0x3F));
}

class Utf16 final : public ByteLayer {
 public:
  Utf16(LayerBelow below, bool big_endian) : input_{std::move(below)}, big_(big_endian) {}
  Result<size_t> read(char* to, size_t size) override {
    while (size > 0 && at_ == text_.size() && !ended_) TACHO_TRY(transcode());
    const size_t taken = std::min(size, text_.size() - at_);
    std::memcpy(to, text_.data() + at_, taken);
    at_ += taken;
    return taken;
  }

 private:
  Status transcode() {
    text_.clear();
    at_ = 0;
    TACHO_ASSIGN(const size_t got, input_.next());
    ended_ = got == 0;
    for (size_t i = 0; i < got; ++i) {
      const auto byte = static_cast<unsigned char>(input_.bytes[i]);
      if (half_ < 0)
        half_ = byte;
      else
        unit(big_ ? static_cast<unsigned>(std::exchange(half_, -1)) << 8 | byte
                  : static_cast<unsigned>(byte) << 8 | static_cast<unsigned>(std::exchange(half_, -1)));
    }
    if (ended_ && (half_ >= 0 || high_ != 0)) append_utf8(text_, kUnreadable);
    return {};
  }
  void unit(char32_t value) {
    const bool low = value >= 0xDC00 && value <= 0xDFFF;
    if (high_ != 0) {
      append_utf8(text_, low ? 0x10000 + ((high_ - 0xD800) << 10) + (value - 0xDC00) : kUnreadable);
      high_ = 0;
      if (low) return;
    }
    if (value >= 0xD800 && value <= 0xDBFF)
      high_ = value;
    else if (low)
      append_utf8(text_, kUnreadable);
    else if (value != kMark || !first_)
      append_utf8(text_, value);
    first_ = false;
  }

  static constexpr char32_t kUnreadable = 0xFFFD, kMark = 0xFEFF;
  PackedInput input_;
  bool big_, first_ = true, ended_ = false;
  int half_ = -1;      // the first byte of a unit whose second is in the next piece
  char32_t high_ = 0;  // the first half of a pair
  std::string text_;
  size_t at_ = 0;
};

}  // namespace

Status ByteLayer::skip(uint64_t bytes) {
  std::vector<char> piece(kPiece);
  while (bytes > 0) {
    TACHO_ASSIGN(const size_t got, read(piece.data(), static_cast<size_t>(std::min<uint64_t>(bytes, piece.size()))));
    if (got == 0) return fail("the file ends before its contents do");
    bytes -= got;
  }
  return {};
}

LayerBelow file_bytes(int descriptor, const std::string& path) {
  return std::make_unique<FileBytes>(descriptor, path);
}

LayerBelow bytes_with(std::string first, LayerBelow below) {
  return std::make_unique<BytesWith>(std::move(first), std::move(below));
}

LayerBelow slice_of(LayerBelow below, uint64_t from, uint64_t size, const std::string& path) {
  return std::make_unique<Slice>(std::move(below), from, size, path);
}

Result<LayerBelow> gzip_bytes(LayerBelow below, const std::string& path) {
  auto layer = std::make_unique<Inflated>(std::move(below), path);
  TACHO_TRY(layer->start(true));
  return layer;
}

Result<LayerBelow> deflated_bytes(LayerBelow below, const std::string& path) {
  auto layer = std::make_unique<Inflated>(std::move(below), path);
  TACHO_TRY(layer->start(false));
  return layer;
}

LayerBelow checked_bytes(LayerBelow below, uint64_t size, uint32_t checksum, const std::string& path) {
  return std::make_unique<Checked>(std::move(below), size, checksum, path);
}

Result<LayerBelow> zstd_bytes(LayerBelow below, int window_bits, const std::string& path) {
  auto layer = std::make_unique<Zstd>(std::move(below), window_bits, path);
  TACHO_TRY(layer->start());
  return layer;
}

TextForm text_form(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\xEF\xBB\xBF"sv)) return TextForm::kUtf8Mark;
  if (head.starts_with("\xFF\xFE\0\0"sv) || head.starts_with("\0\0\xFE\xFF"sv)) return TextForm::kUtf32;
  if (head.starts_with("\xFF\xFE"sv)) return TextForm::kUtf16Little;
  if (head.starts_with("\xFE\xFF"sv)) return TextForm::kUtf16Big;
  // Traces begin with plain ASCII, of which UTF-16 makes every second byte 0.
  const size_t pairs = std::min<size_t>(head.size(), 64) / 2;
  const auto ascii = [&](size_t zero) {
    bool shows = false;  // a character, not only lines and tabs
    for (size_t i = 0; i < pairs; ++i) {
      const char c = head[2 * i + (1 - zero)];
      const bool shown = c >= ' ' && c <= '~';
      if (head[2 * i + zero] != '\0' || (!shown && c != '\n' && c != '\r' && c != '\t')) return false;
      shows |= shown;
    }
    return pairs >= 2 && shows;
  };
  return ascii(1) ? TextForm::kUtf16Little : ascii(0) ? TextForm::kUtf16Big : TextForm::kAsIs;
}

LayerBelow utf16_text(LayerBelow below, bool big_endian) {
  return std::make_unique<Utf16>(std::move(below), big_endian);
}

FirstBytes first_bytes(ByteLayer& layer, size_t size) {
  FirstBytes first;
  first.bytes.resize(size);
  size_t got = 0;
  while (got < size) {
    const auto more = layer.read(first.bytes.data() + got, size - got);
    if (!more) first.status = tl::unexpected<Error>(more.error());
    if (!more || *more == 0) break;
    got += *more;
  }
  first.bytes.resize(got);
  return first;
}

}  // namespace tacho::format::source
