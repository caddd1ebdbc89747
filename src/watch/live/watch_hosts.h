// Follows watches elsewhere (`tacho watch --from`).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "watch/live/hosts.h"

namespace tacho::watch {

struct HostsOptions {
  std::vector<PushAddress> addresses;
  std::string title;
  double duration_s = 0;       ///< 0: until a signal
  double interval_s = 1;       ///< between calls of `tick`
  bool view = false;           ///< a page for a browser
  std::function<void()> step;  ///< called every 20 ms
  /// Called once, when a host has answered, with the address of the page for a browser, or "".
  std::function<void(const std::string& page)> started;
  std::function<void(const WatchMoment& moment)> tick;
};

/// Until the end of the time or a signal that asks for it; the last moment. An error: no host answers, or the page
/// cannot be served. The calling process must be single-threaded.
Result<WatchMoment> watch_hosts(const HostsOptions& options);

}  // namespace tacho::watch
