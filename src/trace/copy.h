// Copying one trace into another: dimension rows are matched by value, so that what two traces share stays one row.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::trace {

struct CopyOptions {
  int64_t run = 0;  // written to process.run of processes copied; see merge
  /// Keeps a row of a timed fact or reading; nullptr keeps all. Gets all columns.
  std::function<bool(event::Table table, const int64_t* row)> keep;
};

/// Appends every fact, dimension, property, note and loss of `from` to `writer`.
Status copy_into(const Trace& from, TraceWriter& writer, const CopyOptions& options = {});

/// The file that a TraceWriter::create(path) that was killed left behind (PATH.partial-XXXXXXXX; the newest of several),
/// empty when there is none.
std::string temporary_name(const std::string& path);

}  // namespace tacho::trace
