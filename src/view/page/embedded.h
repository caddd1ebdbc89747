// One page that holds a run and needs no server.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "view/run.h"

namespace tacho::view {

/// A run with more slices comes into a self-contained page as a summary.
inline constexpr int64_t kMostEmbedded = 2'000'000;

/// The run with all of its slices; of one with more than `most` only bins of covered time, and a sentence that says so.
/// Waits for the index. Passes the page's text to `put`, piece by piece.
Status embedded_page(Run& run, const std::function<void(std::string_view)>& put, int64_t most = kMostEmbedded);

}  // namespace tacho::view
