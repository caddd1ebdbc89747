// The interface of decoders that turn a vendor's buffers in the pool into rows of a trace. Each vendor's decoder has
// its own folder; block_decoders.def lists them. records/ decodes blocks of tacho's own records.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "decode/process_context.h"
#include "event/records.h"
#include "tape/layout.h"
#include "trace/write/writer.h"

namespace tacho::decode {

/// Decodes one kind of block of one process, in tacho's process. The target wrote all of its input: trust nothing.
class BlockDecoder {
 public:
  virtual ~BlockDecoder() = default;
  /// Takes a definition that the source addressed to its blocks: NameRecord, ClockPairRecord, BlockClockRecord,
  /// BlockSizesRecord, BlockFactRecord or BlockObjectRecord. `at` holds header.size bytes, at least the fixed part of
  /// its kind.
  virtual void define(const std::byte* at, const event::RecordHeader& header) = 0;
  /// Arguments of a call (ArgumentsOf::kVendorCall), as `bytes` that the source wrote.
  virtual void arguments(uint64_t correlation, std::span<const std::byte> bytes) {
    static_cast<void>(correlation);
    static_cast<void>(bytes);
  }
  /// Decodes a buffer. `completed` false: `bytes` is the whole payload of a buffer that the vendor's library still held
  /// when the process ended.
  virtual void block(const tape::BlockHeader& header, std::span<const std::byte> bytes, bool completed) = 0;
  /// The row of table device of the GPU with this index, as the vendor's runtime numbers them in this process; 0 =
  /// none.
  virtual int64_t gpu(int64_t index) {
    static_cast<void>(index);
    return 0;
  }
  /// Call about twice a second: writes rows that wait for others.
  virtual void settle() {}
  /// Call after the last block.
  virtual void finish() = 0;
};

/// The decoder of blocks of `kind` in a process, nullptr when this build has none.
std::unique_ptr<BlockDecoder> make_block_decoder(tape::BlockKind kind, ProcessContext& process,
                                                 trace::TraceWriter& writer);

}  // namespace tacho::decode
