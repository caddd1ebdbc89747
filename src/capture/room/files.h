// Reading and writing whole files inside other people's processes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/room/list.h"

namespace tacho::capture {

using MappedBytes = List<uint8_t>;

/// Replaces `into` by the file's contents, with room for a byte behind them. False if it cannot be read.
bool read_file(const char* path, MappedBytes& into);
/// False if not all could be written.
bool write_all(int file, const uint8_t* data, size_t size);

}  // namespace tacho::capture
