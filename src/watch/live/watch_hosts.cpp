// The loop over moments of several hosts (watch_hosts.h).
#include "watch/live/watch_hosts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files/temporary.h"
#include "launch/signals.h"
#include "watch/live/server.h"

namespace tacho::watch {
namespace {

bool asked_to_end(launch::SignalInbox& signals) {
  bool asked = false;
  while (const auto signal = signals.next())
    asked = asked || signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGHUP ||
            signal->number == SIGQUIT;
  return asked;
}

}  // namespace

Result<WatchMoment> watch_hosts(const HostsOptions& options) {
  launch::SignalInbox signals;
  if (signals.descriptor() < 0) return fail("signalfd: {}", strerror(errno));
  HostPoller poller(options.addresses);
  TACHO_TRY(poller.wait_for_first());
  std::unique_ptr<MomentServer> page;  // ends before the poller
  if (options.view) {
    TACHO_ASSIGN(page, MomentServer::listen_for_page());
    page->serve({options.title, "", random_name()}, [&poller] { return poller.now(); });
  }
  if (options.started) options.started(page ? page->address() : "");
  const int64_t began = raw_now();
  const auto seconds = [began] { return static_cast<double>(raw_now() - began) * 1e-9; };
  for (double next = 0;;) {
    if (options.tick && seconds() >= next) {
      options.tick(poller.now());
      next = std::max(next + options.interval_s, seconds());
    }
    if (options.step) options.step();
    constexpr int kStepMs = 20;
    pollfd wait{signals.descriptor(), POLLIN, 0};
    poll(&wait, 1, kStepMs);
    if (asked_to_end(signals) || (options.duration_s > 0 && seconds() >= options.duration_s)) return poller.now();
  }
}

}  // namespace tacho::watch
