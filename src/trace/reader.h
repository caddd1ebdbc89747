// Opening a trace from something other than a path.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "trace/file.h"
#include "trace/trace.h"

namespace tacho::trace {

/// As Trace::open; `name` is what sentences call the file.
Result<std::shared_ptr<const Trace>> open_mapped(MappedFile file, const std::string& name);
/// Over bytes that the caller keeps alive and unchanged as long as the trace.
Result<std::shared_ptr<const Trace>> open_bytes(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace tacho::trace
