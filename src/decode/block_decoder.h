// The decoder of a kind of block: what turns a vendor's buffers, as they lie in the pool, into rows of a trace. Each vendor
// has one in a folder of its own; block_decoders.def lists them. Blocks of tacho's own records are decoded in records/.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "decode/process_context.h"
#include "event/records.h"
#include "tape/layout.h"
#include "trace/writer.h"

namespace tacho::decode {

/// One for each process and kind of block; runs in tacho's process. All that it is given was written by the target and is
/// untrusted.
class BlockDecoder {
 public:
  virtual ~BlockDecoder() = default;
  /// A record that the source addressed to its blocks: NameRecord, ClockPairRecord, BlockClockRecord, BlockSizesRecord or
  /// BlockFactRecord. `at` holds header.size bytes, at least the fixed part of its kind.
  virtual void define(const std::byte* at, const event::RecordHeader& header) = 0;
  /// A buffer. `completed` false: `bytes` are the whole payload of a buffer that the vendor's library still held when the
  /// process ended.
  virtual void block(const tape::BlockHeader& header, std::span<const std::byte> bytes, bool completed) = 0;
  /// After the last block.
  virtual void finish() = 0;
};

/// The decoder of blocks of `kind` in a process, nullptr when this build has none.
std::unique_ptr<BlockDecoder> make_block_decoder(tape::BlockKind kind, ProcessContext& process,
                                                 trace::TraceWriter& writer);

}  // namespace tacho::decode
