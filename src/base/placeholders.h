// Placeholders in names of files and folders: %pid%, {pid}, %h, %env{X}% ... One table of what they stand
// for; a dialect says which of them a tool knows and how they are written. What is no placeholder of the
// dialect stays as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_rank.h"

namespace tacho {

/// The values of placeholders: those of one process of a run.
struct PlaceholderFacts {
  int64_t pid = 0, parent = 0;
  std::vector<std::string> command;  ///< words of the command line
  std::string host;                  ///< empty = that of this machine
  std::string gpu_model;
  JobRank job;
  std::string date_format = "%F", time_format = "%F_%H.%M";  ///< of %launch_date%, %launch_time%; as strftime
  /// Value of a setting by name, for the dialects with %cfg{X}%; empty = none is known.
  std::function<std::string(std::string_view)> setting;
};

/// The facts of this process's job and machine.
PlaceholderFacts placeholder_facts(std::vector<std::string> command = {});

enum class PlaceholderDialect : uint8_t {
  kFolders,     ///< %hostname% %gpumodel% %rank% %env{X}%: folders of profiles
  kRocprofv3,   ///< rocprofv3's -o and -d
  kRocprofSys,  ///< ROCPROFSYS_OUTPUT_PATH and its like
};

/// `text` with the placeholders of `dialect` replaced.
std::string expand_placeholders(std::string_view text, PlaceholderDialect dialect,
                                const PlaceholderFacts& facts);
/// True if `text` has the placeholder %rank%, in whatever form the dialect writes it.
bool uses_rank(std::string_view text, PlaceholderDialect dialect);
/// True if `text` names something that differs from process to process of one run.
bool differs_by_process(std::string_view text, PlaceholderDialect dialect);

}  // namespace tacho
