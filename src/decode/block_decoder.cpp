// The list of block decoders (block_decoder.h).
#include "decode/block_decoder.h"

namespace tacho::decode {

#define TACHO_BLOCK_DECODER(kind, make) std::unique_ptr<BlockDecoder> make(ProcessContext&, trace::TraceWriter&);
#include "decode/block_decoders.def"
#undef TACHO_BLOCK_DECODER

std::unique_ptr<BlockDecoder> make_block_decoder(tape::BlockKind kind, ProcessContext& process,
                                                 trace::TraceWriter& writer) {
  switch (kind) {
#define TACHO_BLOCK_DECODER(enumerator, make) \
  case tape::BlockKind::enumerator:           \
    return make(process, writer);
#include "decode/block_decoders.def"
#undef TACHO_BLOCK_DECODER
    default:
      return nullptr;
  }
}

}  // namespace tacho::decode
