// The OpenCL source of libtacho.so, as the rest of the library sees it.
#pragma once

namespace tacho::capture::opencl {

/// Writes the completed commands of every queue now, for tacho_flush(). Never waits for a device.
void flush();

}  // namespace tacho::capture::opencl
