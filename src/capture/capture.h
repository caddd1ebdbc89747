// The start of recording, which all sources of libtacho.so share.
#pragma once

namespace tacho::capture {

/// Attaches to the pool (tape::attach). Every entry point through which a source is loaded calls it: an API layer, a
/// driver that injects libtacho.so, preloading. Idempotent and thread-safe; false if this process is not traced.
bool start();

}  // namespace tacho::capture
