// Reads the snapshots of PyTorch's allocators: what torch.cuda.memory._dump_snapshot() and _snapshot() give, pickled.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::torch_memory {

/// True for files that begin as a pickle of protocol 2 to 5 does, packed or not.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// Reads the history of each device, and the blocks and segments that were there at the end, as rows of table
/// allocation with call stacks. Memory that the history does not show being allocated is allocated at its begin.
/// Nothing that a pickle asks for is run (pickle.h). Sizes are what tensors asked for. Errors: the file is cut off,
/// damaged or no snapshot.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::torch_memory
