// Serves the page of `tacho view` until Ctrl-C.
#pragma once

#include <cstdint>
#include <optional>

#include "view/document.h"

namespace tacho::cli {

/// Prints the address on standard output, opens it in a browser if `open` and there is a screen, and answers until SIGINT or
/// SIGTERM. Returns 0, or `failure` after a sentence when it cannot listen.
int serve_view(view::Document& document, std::optional<uint16_t> port, bool open, int failure);

}  // namespace tacho::cli
