// PyTorch's operators (--torch-trace): a folder in the target's PYTHONPATH in which Python finds what makes ranges of
// them (python/tacho). The script stays untouched, and processes that Python starts have them, too.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacho::launch {

/// PYTHONPATH for the target, the user's own behind ours: ("PYTHONPATH", "/usr/share/tacho/python/tacho/inject:...").
/// Fails for a command whose words show that it cannot run Python, and if the installation lacks the files.
Result<std::pair<std::string, std::string>> torch_hooks(std::span<const std::string> command);

}  // namespace tacho::launch
