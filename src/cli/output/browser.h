// Opening an address for the person at the screen.
#pragma once

#include <string>

namespace tacho::cli {

/// Opens it in a browser where there is a screen; what the browser prints is not for this terminal.
void open_browser(const std::string& address);

}  // namespace tacho::cli
