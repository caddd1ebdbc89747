// Lists zip and tar archives, to find the one trace in them. Nothing is written anywhere, so names are only shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/source/layers.h"

namespace tacho::format::source {

/// Where the trace of an archive lies.
struct ArchivedFile {
  uint64_t from = 0, packed = 0;  // bytes of the archive
  uint64_t size = 0;              // bytes of the file
  uint32_t checksum = 0;          // zip only, as `method`
  uint16_t method = 0;            // how zip packed it: 0 not at all, 8 deflate, 93 zstd
};

/// Whether a file that begins so is a tar archive: its first header has the right sum.
bool is_tar(std::string_view head);

/// The only file of an archive, or its only one with a trace's ending. Fails with what the archive holds otherwise ("a
/// zip archive with 3 files: unpack it"). Reads `archive` to its end.
Result<ArchivedFile> find_in_tar(ByteLayer& archive, const std::string& path);
/// `descriptor`: of the file `path`, which stays open.
Result<ArchivedFile> find_in_zip(int descriptor, const std::string& path);

}  // namespace tacho::format::source
