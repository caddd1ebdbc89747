// Copies the contents of a pool file that its tacho has left behind into a file, piece by piece as the drainer hands
// them on: recorded CUPTI buffers with the definitions that they need, for tests of the decoder (recorded.h).
// usage: pool_pieces POOL OUT
#include <algorithm>
#include <cstdio>

#include "../decode/recorded.h"
#include "tape/pool.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: pool_pieces POOL OUT\n"), 2;
  auto pool = tacho::tape::Pool::open(argv[1]);
  if (!pool) return std::fprintf(stderr, "pool_pieces: %s\n", pool.error().message.c_str()), 1;
  tacho::tape::Drainer drainer(*pool);
  drainer.rewind_definitions();
  tacho::decode::Recorded recorded;
  recorded.clocks = {pool->header().first_clocks, pool->header().last_clocks};
  drainer.pass(
      [&](const tacho::tape::Piece& piece) {
        tacho::decode::Recorded::Piece& kept = recorded.pieces.emplace_back();
        std::memcpy(kept.block, piece.block, sizeof kept.block);
        kept.bytes.assign(piece.bytes.begin(), piece.bytes.end());
        kept.last = piece.last;
        // Buffers are filled from their start: zeros up to the end say nothing.
        size_t end = kept.bytes.size();
        while (end != 0 && kept.bytes[end - 1] == std::byte{0}) --end;
        if (!kept.bytes.empty()) kept.bytes.resize(std::min(kept.bytes.size(), (end + 64) / 8 * 8));
      },
      true);
  if (!recorded.write(argv[2])) return std::perror(argv[2]), 1;
  std::printf("%zu pieces\n", recorded.pieces.size());
}
