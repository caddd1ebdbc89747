// What every source of libtacho.so shares.
#pragma once

namespace tacho::capture {

/// Attaches to the pool (tape::attach) and lets the sources that need a start do it: called by every entry point through
/// which a source is loaded (OpenCL layer, CUDA injection, NVTX injection, preloading). Idempotent, thread-safe; false
/// when this process is not traced.
bool start();

}  // namespace tacho::capture
