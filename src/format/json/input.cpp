// Reads and unpacks the window (input.h).
#include "format/json/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacho::format::json {

Result<std::unique_ptr<InputWindow>> InputWindow::open(const std::string& path) {
  std::unique_ptr<InputWindow> input(new InputWindow);
  input->path_ = path;
  input->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (input->descriptor_ < 0) return fail("{}: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(input->descriptor_, &status) != 0) return fail("{}: {}", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return fail("{}: is a folder", path);
  unsigned char magic[2] = {};
  const ssize_t got = ::pread(input->descriptor_, magic, 2, 0);
  if (got <= 0) return fail("{}: the file is empty", path);
  if (got == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    input->zip_ = std::make_unique<z_stream>();
    std::memset(input->zip_.get(), 0, sizeof(z_stream));
    if (inflateInit2(input->zip_.get(), 15 + 16) != Z_OK) return fail("{}: zlib could not be set up", path);
    input->packed_.resize(1 << 18);
    input->member_open_ = true;
  }
  ::posix_fadvise(input->descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  // A small file needs its own size plus a byte to find its end; more() enlarges the window if that is wrong.
  constexpr size_t kWindow = 1 << 20, kLeast = 4096;
  const size_t whole = S_ISREG(status.st_mode) && !input->zip_ ? static_cast<size_t>(status.st_size) + 1 : kWindow;
  input->buffer_.resize(std::clamp(whole, kLeast, kWindow) + kPadding);
  return input;
}

InputWindow::~InputWindow() {
  if (zip_) inflateEnd(zip_.get());
  if (descriptor_ >= 0) ::close(descriptor_);
}

size_t InputWindow::fill(char* to, size_t size) {
  const auto read_some = [&](void* into, size_t most) -> size_t {
    while (true) {
      const ssize_t got = ::read(descriptor_, into, most);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) status_ = fail("{}: {}", path_, std::strerror(errno));
      return got > 0 ? static_cast<size_t>(got) : 0;
    }
  };
  if (!zip_) return read_some(to, size);
  z_stream& zip = *zip_;
  zip.next_out = reinterpret_cast<Bytef*>(to);
  zip.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
  const uInt room = zip.avail_out;
  while (zip.avail_out == room) {
    if (zip.avail_in == 0) {
      const size_t got = read_some(packed_.data(), packed_.size());
      if (got == 0) {
        if (member_open_ && status_) status_ = fail("{}: the gzip data is cut off", path_);
        return 0;
      }
      zip.next_in = packed_.data();
      zip.avail_in = static_cast<uInt>(got);
    }
    if (!member_open_) {
      // After a member comes another one, or padding that gzip ignores.
      while (zip.avail_in > 0 && *zip.next_in == 0) {
        ++zip.next_in;
        --zip.avail_in;
      }
      if (zip.avail_in == 0) continue;
      inflateReset(&zip);
      member_open_ = true;
    }
    const int code = inflate(&zip, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      member_open_ = false;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      status_ = fail("{}: damaged gzip data: {}", path_, zip.msg != nullptr ? zip.msg : "unknown");
      return room - zip.avail_out;
    }
  }
  return room - zip.avail_out;
}

bool InputWindow::more() {
  if (at_end_ || !status_) return false;
  if (from_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + from_, to_ - from_);
    passed_ += from_;
    to_ -= from_;
    from_ = 0;
  }
  size_t room = buffer_.size() - kPadding - to_;
  if (room < buffer_.size() / 4) {
    if (to_ >= kLongest) return false;
    buffer_.resize(std::min(kLongest + kPadding, buffer_.size() * 2));
    room = buffer_.size() - kPadding - to_;
  }
  const size_t got = fill(buffer_.data() + to_, room);
  to_ += got;
  std::memset(buffer_.data() + to_, 0, kPadding);
  if (got == 0) at_end_ = true;
  return got > 0;
}

std::string unpacked_head(std::string_view head) {
  if (head.size() < 2 || static_cast<unsigned char>(head[0]) != 0x1f || static_cast<unsigned char>(head[1]) != 0x8b)
    return std::string(head);
  z_stream zip{};
  if (inflateInit2(&zip, 15 + 16) != Z_OK) return {};
  std::string text(8192, '\0');
  std::string packed(head);
  zip.next_in = reinterpret_cast<Bytef*>(packed.data());
  zip.avail_in = static_cast<uInt>(packed.size());
  zip.next_out = reinterpret_cast<Bytef*>(text.data());
  zip.avail_out = static_cast<uInt>(text.size());
  inflate(&zip, Z_SYNC_FLUSH);
  text.resize(text.size() - zip.avail_out);
  inflateEnd(&zip);
  return text;
}

}  // namespace tacho::format::json
