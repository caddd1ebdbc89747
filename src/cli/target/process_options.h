// Options that choose processes which run already: the same words for every command that goes into one.
#pragma once

#include "attach/choice.h"
#include "cli/shared/command_line.h"

namespace tacho::cli {

/// Declares --name, --cgroup, --container and --children, which fill `choice`.
void declare_process_options(CommandOptions& app, attach::ProcessChoice& choice);

}  // namespace tacho::cli
