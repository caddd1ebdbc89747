// rocprofv3 --pid (-p, --attach): recording programs that already run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/personalities/rocprofv3/options.h"
#include "launch/launcher.h"

namespace tacho::cli::rocprofv3 {

struct AttachPlan {
  int pid = 0;
  double duration_s = 0;  ///< 0 = until Enter, Ctrl-C or the end of the program
  bool children = true;   ///< its descendants, too, as under rocprofv3
};

/// The job has one of the options of attaching.
bool is_about_attaching(const InputJob& job);
/// What the options ask for; nullopt without --pid. An error where they contradict each other or ask for what needs a
/// program's start.
Result<std::optional<AttachPlan>> plan_attach(const InputJob& job, bool has_command);

/// Records as launch::run() does, without a program of its own. `say` gets sentences for the user.
tl::expected<launch::RunResult, launch::LaunchError> record_running(const AttachPlan& plan,
                                                                    const launch::Recording& recording,
                                                                    const std::function<void(std::string_view)>& say);

}  // namespace tacho::cli::rocprofv3
