// Watches elsewhere, asked each second at their /moment, and their sum.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "watch/live/wire.h"
#include "watch/metrics/push.h"

namespace tacho::watch {

/// "HOST:PORT", "PORT" (of this machine) or the address that tacho watch --prometheus prints; several behind commas.
/// The error says what is wrong.
Result<std::vector<PushAddress>> parse_host_addresses(std::string_view text);

/// What is known of one watch.
struct HostAnswer {
  std::string address;
  std::optional<RemoteMoment> last;  ///< its last answer
  double ago_s = 0;                  ///< since then
  std::string problem;               ///< why it does not answer, as a clause; empty: it does
};
/// Their sum: rows of the same kernel in the same shape are one, with the number of hosts that have it. A graph is the
/// same as another one if it has the same kernels; "graph 1" of two hosts need not be. Estimates are added up host by
/// host: chance adds in squares, and what all times of a host have in common as it is. `seconds`: of the whole.
WatchMoment add_up(const std::vector<HostAnswer>& answers, double seconds);

/// Asks while it lives, in a thread for each host.
class HostPoller {
 public:
  explicit HostPoller(std::vector<PushAddress> addresses);
  ~HostPoller();
  HostPoller(const HostPoller&) = delete;
  HostPoller& operator=(const HostPoller&) = delete;

  /// Until each has answered or failed once. The error names the first problem if none has answered.
  Status wait_for_first();
  WatchMoment now() const;

 private:
  struct Host {
    PushAddress address;
    std::string text;  // HOST:PORT
    std::optional<RemoteMoment> last;
    int64_t answered = 0;  // of raw_now()
    bool asked = false;
    std::string problem;
  };
  void follow(Host& host);

  int64_t began_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool end_ = false;
  uint64_t generation_ = 0;  // watches that came, or began anew
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::thread> threads_;
};

}  // namespace tacho::watch
