// Names several runs in headings by the part in which their paths differ.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::metric {

/// A name for each path, distinct for distinct paths: the last component in which they differ ("before" and "after" of
/// before/MI200 and after/MI200), with more of the path where one component does not tell them apart. At most `width`
/// columns, cut in the middle.
std::vector<std::string> run_names(std::span<const std::string> paths, size_t width = 24);

/// A name cut in its middle, so that beginning and end stay: "rank_0…step_17".
std::string cut_middle(std::string_view name, size_t width);

}  // namespace tacho::metric
