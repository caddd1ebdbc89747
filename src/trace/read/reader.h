// Opens a trace from a mapped file or from memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "trace/store/file.h"
#include "trace/trace.h"

namespace tacho::trace {

/// As Trace::open; messages call the file `name`.
Result<std::shared_ptr<const Trace>> open_mapped(MappedFile file, const std::string& name);
/// As open_mapped(). The caller must keep `bytes` alive and unchanged as long as the trace.
Result<std::shared_ptr<const Trace>> open_bytes(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace tacho::trace
