// Writes traces in other formats, for `tacho export`, `tacho trace -f` and the personalities.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/output_file.h"
#include "format/format.h"

namespace tacho::cli {

struct ExportPlace {
  std::string source;  // the trace's file, which gives default names
  std::string file;    // -o; empty = a default name
  std::string folder;  // -d; empty = the current one
  std::string prefix;  // of the files of folder formats; empty = the pid of each process
};

/// Writes one format and remarks on what it has no place for. Default names get a number if they are taken. Folder
/// formats refuse place.file; for options.process 0 they write one set of files per process with records, named after
/// its pid, or PREFIX_* and, of further processes, PREFIX_<pid>_*.
Status export_trace(const trace::Trace& trace, const format::Writer& writer, const ExportPlace& place,
                    format::ExportOptions options, std::vector<std::string>& written);

/// The name of a trace's file without its endings; "trace" where nothing is left.
std::string stem_of(const std::string& source);

/// Rows of table process that have timed facts or counter values among what `options` want.
std::vector<int64_t> processes_with_records(const trace::Trace& trace, const format::ExportOptions& options);

/// `prefix`, with a number if `folder` contains files named <prefix>_*.
std::string free_prefix(const std::string& folder, const std::string& prefix);

/// Turns exceeding the file size limit, or writing to a pipe without a reader, into write errors instead of signals.
/// Started programs inherit this, so call it after starting them.
void ignore_output_signals();

}  // namespace tacho::cli
