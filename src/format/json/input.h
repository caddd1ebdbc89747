// A window that moves over a file's plain text (format/source).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/source/source.h"

namespace tacho::format::json {

class InputWindow {
 public:
  static constexpr size_t kPadding = 64;         // readable bytes after end(), all zero
  static constexpr size_t kLongest = 64u << 20;  // the most bytes that the window can hold

  static Result<std::unique_ptr<InputWindow>> open(const std::string& path);

  const char* begin() const { return buffer_.data() + from_; }
  const char* end() const { return buffer_.data() + to_; }
  /// Drops everything before `at`.
  void consume(const char* at) { from_ = static_cast<size_t>(at - buffer_.data()); }
  /// Reads more text after end() and moves the unread part to the front, which invalidates pointers into the window.
  /// False at the end of the file, on errors (see status()), and if the window already holds kLongest unread bytes.
  bool more();
  bool at_end() const { return at_end_; }
  const Status& status() const { return source_.status(); }
  /// Bytes of (unpacked) text before begin(), for messages.
  uint64_t offset() const { return passed_ + from_; }
  const std::string& path() const { return path_; }
  /// At the end: source::SourceStream::foreign_bytes().
  std::string foreign_bytes() const { return source_.foreign_bytes(); }

 private:
  explicit InputWindow(source::SourceStream source) : source_(std::move(source)) {}

  std::string path_;
  source::SourceStream source_;
  std::vector<char> buffer_;
  size_t from_ = 0, to_ = 0;
  uint64_t passed_ = 0;
  bool at_end_ = false;
};

}  // namespace tacho::format::json
