// Folders and names of rocprofv3's output files, with the placeholders of -o and -d.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/placeholders.h"
#include "trace/trace.h"

namespace tacho::cli::rocprofv3 {

/// `text` with %pid%, {pid}, %h, %env{X}% and so on replaced; other text stays.
std::string expanded(const std::string& text, const PlaceholderFacts& process);
/// True if `text` names something that differs from process to process.
bool differs_by_process(const std::string& text);
/// The rank of `process`, if the job has several and `text` would give all of them the same name; -1 = no rank is
/// needed.
int64_t missing_rank(const std::string& text, const PlaceholderFacts& process);
/// How often the batch system has restarted this job (SLURM_RESTART_COUNT); 0 = never.
int restarts();

/// Facts about the process in a trace's row; for row 0, those known before the start (pid 0).
PlaceholderFacts facts_of(const trace::Trace& trace, int64_t process, const std::vector<std::string>& command);
PlaceholderFacts facts_before_start(const std::vector<std::string>& command);

struct OutputPlace {
  std::string folder;  // empty = the current one
  std::string prefix;
};
/// Folder and prefix of a process's files. `directory` and `file` are -d and -o, empty if not given; `pass` is a job's
/// folder, empty for none.
OutputPlace place_of(const std::string& directory, const std::string& file, const std::string& pass,
                     const PlaceholderFacts& process);

}  // namespace tacho::cli::rocprofv3
