// The layers a file's bytes come through: each reads the one below it and unpacks or transcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::format::source {

class ByteLayer {
 public:
  virtual ~ByteLayer() = default;
  /// At most `size` bytes; 0 at the end.
  virtual Result<size_t> read(char* to, size_t size) = 0;
  /// Passes over `bytes` bytes. Fails if there are fewer.
  virtual Status skip(uint64_t bytes);
  /// Once read to the end: the place in the packed bytes from which on they are no part of what was packed. 0 = none.
  virtual uint64_t foreign_from() const { return 0; }
};
using LayerBelow = std::unique_ptr<ByteLayer>;

/// A file's own bytes. Takes the descriptor over; errors name `path`.
LayerBelow file_bytes(int descriptor, const std::string& path);
/// `first` and then what `below` still has; nullptr = nothing.
LayerBelow bytes_with(std::string first, LayerBelow below);
/// `size` bytes from byte `from` on. Fails when the layer below ends before.
LayerBelow slice_of(LayerBelow below, uint64_t from, uint64_t size, const std::string& path);
/// All members of a gzip file, one after the other. Bytes behind them that are none are not read (foreign_from()).
Result<LayerBelow> gzip_bytes(LayerBelow below, const std::string& path);
/// A zip archive's deflated member.
Result<LayerBelow> deflated_bytes(LayerBelow below, const std::string& path);
/// A zip archive's member, unpacked: fails when it ends if it does not have `size` bytes or another CRC-32.
LayerBelow checked_bytes(LayerBelow below, uint64_t size, uint32_t checksum, const std::string& path);
/// All frames of a Zstandard file. Fails for windows above 2^`window_bits` bytes, which memory must hold.
Result<LayerBelow> zstd_bytes(LayerBelow below, int window_bits, const std::string& path);

enum class TextForm : uint8_t { kAsIs, kUtf8Mark, kUtf16Little, kUtf16Big, kUtf32 };
/// The form of a text that begins with `head`: by its byte order mark, or UTF-16 by its zeros.
TextForm text_form(std::string_view head);
/// A text in UTF-16 as UTF-8 without a byte order mark. Halves of pairs become U+FFFD.
LayerBelow utf16_text(LayerBelow below, bool big_endian);

/// Reads until `size` bytes are there or the layer ends. On errors `bytes` has what came before.
struct FirstBytes {
  std::string bytes;
  Status status;
};
FirstBytes first_bytes(ByteLayer& layer, size_t size);

}  // namespace tacho::format::source
