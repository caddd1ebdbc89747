// The plain text of a file somebody brought: gzip, Zstandard and archives with one trace inside are unpacked while
// reading, byte order marks dropped, UTF-16 becomes UTF-8. The only place that knows these encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tacho::format::source {

/// The outermost form of a file.
enum class Packing : uint8_t { kNone, kGzip, kZstd, kZip, kTar };

class ByteLayer;

/// Reads a file once, from front to back, in bounded memory. What lies within may be binary: bytes that are neither
/// packed nor UTF-16 come as they are.
class SourceStream {
 public:
  /// Fails if the file cannot be read, is a folder or empty, or packs its contents in a way that tacho does not unpack
  /// ("a zip archive with 3 files: unpack it").
  static Result<SourceStream> open(const std::string& path);
  SourceStream(SourceStream&&) noexcept;
  SourceStream& operator=(SourceStream&&) noexcept;
  ~SourceStream();

  /// Reads at most `size` bytes; 0 only at the end and on errors, which are in status(). A file that is cut off gives
  /// all its bytes before the error.
  size_t read(char* to, size_t size);
  const Status& status() const { return status_; }
  Packing packing() const { return packing_; }
  /// The file's size in bytes where it is read as it is; 0 = unknown.
  uint64_t plain_size() const { return plain_size_; }
  /// Once read to the end: a sentence without a period where bytes behind the gzip data are not read, else "".
  std::string foreign_bytes() const;

 private:
  SourceStream();
  std::unique_ptr<ByteLayer> bytes_;
  const ByteLayer* outermost_ = nullptr;  // the first of bytes_ above the file that unpacks; nullptr = none
  Status status_;
  Packing packing_ = Packing::kNone;
  uint64_t plain_size_ = 0;
};

/// What decides which reader takes a file.
struct SourceHead {
  bool readable = false;  // the file can be opened and is no folder
  Packing packing = Packing::kNone;
  std::string text;     // the first bytes, at most 4 KiB, unpacked
  std::string refusal;  // why nothing can be read from it: a sentence that names the file; "" = it can
};
SourceHead peek(const std::string& path);

}  // namespace tacho::format::source
