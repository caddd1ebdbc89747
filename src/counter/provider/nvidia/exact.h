// Exact counts: which counters of a kernel do not depend on time or caches, how to place them so that CUPTI counts them
// whole, and which of them it must have extrapolated.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::counter::nvidia {

/// True for sums of a kernel's own work, which do not depend on time and caches: instructions, warps, blocks, requests
/// and sectors by operation, passes through shared memory. False for counters of patched code (smsp__sass_*), which are
/// always whole.
bool is_deterministic(std::string_view metric);

/// Groups of deterministic counters that CUPTI counts whole: each has at most one counter of a hardware unit (the name
/// before "__") and fits one pass. A counter that alone needs several passes has a group of its own. `passes` says in
/// how many passes some counters are read together, 0 = not at all.
std::vector<std::vector<std::string>> whole_groups(
    std::span<const std::string> counters, const std::function<size_t(const std::vector<std::string>&)>& passes);

/// The deterministic counters whose values are not whole numbers, or differ between launches of the same kernel and
/// shape: CUPTI counted them on a part of the units and extrapolated. values[row * counters.size() + column];
/// `launches` names the kernel and shape of each row.
std::vector<std::string> extrapolated(std::span<const std::string> counters, std::span<const double> values,
                                      std::span<const std::string> launches);

}  // namespace tacho::counter::nvidia
