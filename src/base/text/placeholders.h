// Placeholders in names of files and folders: %pid%, {pid}, %h, %env{X}% ... One table gives their values; a dialect
// says which of them a tool knows and how it writes them. Anything else in a text stays as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_rank.h"

namespace tacho {

/// The values of the placeholders for one process of a run.
struct PlaceholderFacts {
  int64_t pid = 0, parent = 0;
  std::vector<std::string> command;  ///< words of the command line, program first
  std::string host;                  ///< empty = this machine's name
  std::string gpu_model;
  JobRank job;
  std::string date_format = "%F", time_format = "%F_%H.%M";  ///< for strftime: %launch_date%, %launch_time%
  /// Returns the value of a setting, for dialects with %cfg{X}%; empty function = no settings.
  std::function<std::string(std::string_view)> setting;
};

/// The facts before a program starts: `pid` is 0, `parent` this process, job and host this process's.
PlaceholderFacts placeholder_facts(std::vector<std::string> command = {});

enum class PlaceholderDialect : uint8_t {
  kFolders,     ///< %hostname% %gpumodel% %rank% %env{X}%: folders of profiles
  kRocprofv3,   ///< rocprofv3's -o and -d
  kRocprofSys,  ///< ROCPROFSYS_OUTPUT_PATH and similar settings
};

/// Returns `text` with the placeholders of `dialect` replaced.
std::string expand_placeholders(std::string_view text, PlaceholderDialect dialect, const PlaceholderFacts& facts);
/// True if `text` has the placeholder %rank%, in whatever form the dialect writes it.
bool uses_rank(std::string_view text, PlaceholderDialect dialect);
/// True if `text` has a placeholder whose value differs between the processes of one run.
bool differs_by_process(std::string_view text, PlaceholderDialect dialect);

}  // namespace tacho
