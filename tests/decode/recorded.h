// Pieces of a pool in a file, as a drainer handed them on while a real program ran, for tests of the decoder on
// machines without a GPU. Little-endian: "TPIECES1", two ClockTuples, then for each piece its BlockHeader, the number
// of its bytes (8 bytes; the top bit: the last piece of its block) and those bytes. Written by
// tests/device/pool_pieces.cpp.
#pragma once

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tape/layout.h"

namespace tacho::decode {

struct Recorded {
  struct Piece {
    alignas(tape::BlockHeader) std::byte block[sizeof(tape::BlockHeader)];
    std::vector<std::byte> bytes;
    bool last = false;
    const tape::BlockHeader* header() const { return reinterpret_cast<const tape::BlockHeader*>(block); }
  };
  static constexpr char kMagic[9] = "TPIECES1";
  static constexpr uint64_t kLast = uint64_t{1} << 63;
  std::pair<ClockTuple, ClockTuple> clocks;
  std::vector<Piece> pieces;

  bool write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    const auto put = [&file](const void* data, size_t size) {
      file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    };
    put(kMagic, 8);
    put(&clocks.first, sizeof(ClockTuple));
    put(&clocks.second, sizeof(ClockTuple));
    for (const Piece& piece : pieces) {
      const uint64_t size = piece.bytes.size() | (piece.last ? kLast : 0);
      put(piece.block, sizeof piece.block);
      put(&size, sizeof size);
      put(piece.bytes.data(), piece.bytes.size());
    }
    return file.flush().good();
  }

  /// False: the text is no such file.
  bool read(const std::string& text) {
    size_t at = 0;
    const auto take = [&](void* to, size_t size) {
      if (size > text.size() - at) return false;
      std::memcpy(to, text.data() + at, size);
      at += size;
      return true;
    };
    char magic[8];
    if (!take(magic, 8) || std::memcmp(magic, kMagic, 8) != 0 || !take(&clocks.first, sizeof(ClockTuple)) ||
        !take(&clocks.second, sizeof(ClockTuple)))
      return false;
    while (at < text.size()) {
      Piece& piece = pieces.emplace_back();
      uint64_t size = 0;
      if (!take(piece.block, sizeof piece.block) || !take(&size, sizeof size)) return false;
      piece.last = (size & kLast) != 0;
      size &= ~kLast;
      if (size > text.size() - at) return false;
      piece.bytes.resize(size);
      if (!take(piece.bytes.data(), size)) return false;
    }
    return true;
  }
};

}  // namespace tacho::decode
