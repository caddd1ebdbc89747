// The packets of a Perfetto trace, one after the other: plain, gzip or zstd, and those that lie compressed in others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/source/source.h"

struct z_stream_s;
struct ZSTD_DCtx_s;

namespace tacho::format::perfetto {

/// The bytes of a file, unpacked as far as format/source can.
class UnpackedFile {
 public:
  static Result<std::unique_ptr<UnpackedFile>> open(const std::string& path);
  /// Reads up to `size` bytes; 0 at the end and once something is wrong: see trouble().
  size_t read(char* to, size_t size);
  /// What ended the bytes before their time ("the gzip data is cut off"), or "".
  const std::string& trouble() const { return trouble_; }
  /// At the end: source::SourceStream::foreign_bytes().
  std::string foreign_bytes() const { return stream_.foreign_bytes(); }

 private:
  UnpackedFile(source::SourceStream stream, std::string path) : stream_(std::move(stream)), path_(std::move(path)) {}

  source::SourceStream stream_;
  std::string path_, trouble_;
};

/// Reads packets through a window of bounded size.
class PacketSource {
 public:
  /// The longest packet, and the most that one compressed packet may unpack to.
  static constexpr size_t kLongest = 32u << 20;

  static Result<std::unique_ptr<PacketSource>> open(const std::string& path);
  ~PacketSource();

  /// The next packet; valid until the next call. False at the end: see ending().
  bool next(std::string_view& packet);
  /// The next packets are those in `data`, the compressed field of the last one. Refuses what does not unpack to at
  /// most kLongest bytes, compressed packets within compressed ones, and those beyond what all of a file may unpack to:
  /// 64 MiB and 256 times its bytes.
  void enter(std::string_view data, bool zstd);
  /// One sentence without a period if the file did not end behind a whole packet, else "".
  const std::string& ending() const { return ending_; }
  /// Packets that were longer than kLongest or whose compressed data made no sense, and the first one's reason.
  uint64_t refused() const { return refused_; }
  const std::string& refusal() const { return refusal_; }
  uint64_t packets() const { return packets_; }
  std::string foreign_bytes() const { return file_->foreign_bytes(); }

 private:
  PacketSource() = default;
  bool next_of_file(std::string_view& packet);
  bool next_nested(std::string_view& packet);
  bool skip(uint64_t size);
  bool more();
  void refuse(std::string why);
  bool unpack_some(bool zstd, void* zstd_input, bool& bad);

  std::unique_ptr<UnpackedFile> file_;
  std::vector<char> window_;
  size_t from_ = 0, to_ = 0;
  uint64_t passed_ = 0;  // bytes before the window
  bool at_end_ = false;
  std::vector<char> nested_;
  size_t nested_at_ = 0, nested_end_ = 0;
  uint64_t unpacked_ = 0, most_unpacked_ = 0;  // bytes of all compressed packets
  bool from_nested_ = false;                   // the last packet
  std::unique_ptr<z_stream_s> inflater_;
  ZSTD_DCtx_s* zstd_ = nullptr;
  uint64_t packets_ = 0, refused_ = 0;
  std::string ending_, refusal_;
};

/// True if `head`, plain bytes, begins as a Perfetto trace does.
bool begins_with_packets(std::string_view head);

}  // namespace tacho::format::perfetto
