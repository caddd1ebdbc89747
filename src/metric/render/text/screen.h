// The first screen of an analysis: what the kernels are, what the rules found, how busy the GPU was, and what was not
// measured. Of several runs: what changed most, and which findings came and went.
#pragma once

#include <span>
#include <string>

#include "metric/analysis/analysis.h"
#include "metric/render/text/text_options.h"

namespace tacho::metric {

/// The heading of a run in both reports: its device and program. `name` is how it is called among several, "" alone.
std::string run_heading(const Analysis& run, std::string_view name, const report::Screen& screen);

/// One screen for one run, or the comparison of several with the first.
std::string to_screen(std::span<const Analysis> runs, const TextOptions& options);

/// The ten biggest changes of each of the kernels with the most time, and findings that came and went.
std::string changes_text(std::span<const Analysis> runs, const TextOptions& options);

}  // namespace tacho::metric
