// Writes traces in other formats: shared by `tacho export`, `tacho trace -f` and the personalities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "format/format.h"

namespace tacho::cli {

/// "a,b" -> {"a", "b"}.
std::vector<std::string> words_of(std::string_view list);

/// The writer of a format. The error for an unknown one names the nearest and lists all.
Result<const format::Writer*> writer_of(std::string_view name);

struct ExportPlace {
  std::string source;  // the trace's file: default names come from it
  std::string file;    // -o; empty = a default name
  std::string folder;  // -d; empty = the current one
};

/// Writes one format. Default names get a number if they are taken. Folder formats write one set of files per process
/// that has records (options.process 0), named after its pid.
Status export_trace(const trace::Trace& trace, const format::Writer& writer, const ExportPlace& place,
                    format::ExportOptions options, std::vector<std::string>& written);

/// Rows of table process that have timed facts of the tables and domains that `options` want.
std::vector<int64_t> processes_with_records(const trace::Trace& trace, const format::ExportOptions& options);

/// `prefix`, with a number if files <prefix>_* exist in `folder`.
std::string free_prefix(const std::string& folder, const std::string& prefix);

/// Makes exceeding the file size limit, and a pipe that nobody reads, write errors instead of signals. Programs inherit that:
/// call it after they were started.
void ignore_output_signals();

}  // namespace tacho::cli
