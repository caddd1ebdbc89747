// The options of rocprofv3 that tacho accepts although they change nothing here: what is wrong in them, and the
// sentence that says so before the program starts.
#pragma once

#include <string>
#include <vector>

#include "cli/personalities/rocprofv3/options.h"

namespace tacho::cli::rocprofv3 {

/// One sentence for each group of such options that the job gives. Fails on values that rocprofv3 refuses.
Result<std::vector<std::string>> options_without_effect(const InputJob& job);

}  // namespace tacho::cli::rocprofv3
