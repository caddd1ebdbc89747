// One page that holds one or several runs and needs no server.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "view/document.h"

namespace tacho::view {

/// A run with more slices comes into a self-contained page as a summary.
inline constexpr int64_t kMostEmbedded = 2'000'000;

/// The document's runs with all of their slices; of one with more than `most` only bins of covered time, and a sentence
/// that says so. With several, what changed from the first to each other one and back, too. Waits for the indexes.
/// Passes the page's text to `put`, piece by piece.
Status embedded_page(const Document& document, const std::function<void(std::string_view)>& put,
                     int64_t most = kMostEmbedded);

}  // namespace tacho::view
