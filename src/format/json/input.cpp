// Moves the window (input.h).
#include "format/json/input.h"

#include <algorithm>
#include <cstring>

namespace tacho::format::json {

Result<std::unique_ptr<InputWindow>> InputWindow::open(const std::string& path) {
  TACHO_ASSIGN(source::SourceStream source, source::SourceStream::open(path));
  // A small file needs its own size plus a byte to find its end; more() enlarges the window if that is wrong.
  constexpr size_t kWindow = 1 << 20, kLeast = 4096;
  const uint64_t whole = source.plain_size() > 0 ? source.plain_size() + 1 : kWindow;
  std::unique_ptr<InputWindow> input(new InputWindow(std::move(source)));
  input->path_ = path;
  input->buffer_.resize(static_cast<size_t>(std::clamp<uint64_t>(whole, kLeast, kWindow)) + kPadding);
  return input;
}

bool InputWindow::more() {
  if (at_end_ || !status()) return false;
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
  // Fills the room: the reader parses a value that is cut off again from its start, and one read may give a byte.
  size_t got = 0;
  while (got < room) {
    const size_t piece = source_.read(buffer_.data() + to_ + got, room - got);
    if (piece == 0) break;
    got += piece;
  }
  to_ += got;
  std::memset(buffer_.data() + to_, 0, kPadding);
  if (got == 0) at_end_ = true;
  return got > 0;
}

}  // namespace tacho::format::json
