// A window that moves over a file and unpacks gzip on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct z_stream_s;

namespace tacho::format::json {

class InputWindow {
 public:
  static constexpr size_t kPadding = 64;         // readable bytes after end(), all zero
  static constexpr size_t kLongest = 64u << 20;  // the most bytes that the window can hold

  static Result<std::unique_ptr<InputWindow>> open(const std::string& path);
  ~InputWindow();

  const char* begin() const { return buffer_.data() + from_; }
  const char* end() const { return buffer_.data() + to_; }
  /// Drops everything before `at`.
  void consume(const char* at) { from_ = static_cast<size_t>(at - buffer_.data()); }
  /// Reads more text after end() and moves the unread part to the front, which invalidates pointers into the window.
  /// False at the end of the file, on errors (see status()), and if the window already holds kLongest unread bytes.
  bool more();
  bool at_end() const { return at_end_; }
  const Status& status() const { return status_; }
  /// Bytes of (unpacked) text before begin(), for messages.
  uint64_t offset() const { return passed_ + from_; }
  const std::string& path() const { return path_; }

 private:
  InputWindow() = default;
  size_t fill(char* to, size_t size);  // 0 at the end and on errors

  std::string path_;
  int descriptor_ = -1;
  std::vector<char> buffer_;
  size_t from_ = 0, to_ = 0;
  uint64_t passed_ = 0;
  bool at_end_ = false;
  Status status_;
  std::unique_ptr<z_stream_s> zip_;
  std::vector<unsigned char> packed_;
  bool member_open_ = false;
};

/// The first bytes of a file's text, unpacked if they are gzip, for guessing the format.
std::string unpacked_head(std::string_view head);

}  // namespace tacho::format::json
