// Pushing metrics to an OpenTelemetry collector: OTLP/JSON by HTTP. There is no TLS: a collector on this machine or a
// proxy takes it on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace tacho::watch {

struct PushAddress {
  std::string host;  ///< a name or an address, IPv6 without its brackets
  std::string port;
  std::string path;  ///< "/v1/metrics"
  /// As given, with the path.
  std::string text() const;
};

/// "http://HOST[:PORT][/PATH]": the port is 4318 by default, and /v1/metrics is appended unless PATH ends in it, as
/// OTEL_EXPORTER_OTLP_ENDPOINT has it. The error says what is wrong.
Result<PushAddress> parse_push_address(std::string_view text);

struct PushCounts {
  uint64_t taken = 0;            ///< messages that the collector took
  uint64_t refused = 0;          ///< messages that it answered with another status than success
  uint64_t unanswered = 0;       ///< messages that did not reach it, or that it did not answer in time
  uint64_t rejected_points = 0;  ///< of messages that it took in part, as it says
  std::string problem;           ///< the last one, as a clause: "it answered 400 Bad Request"
};

struct PushAnswer {
  int status = 0;
  std::string reason;        ///< the words behind the status
  double retry_after_s = 0;  ///< Retry-After in seconds; 0: none
  std::string body;
};
/// One POST with Content-Type application/json. The error is a clause as PushCounts::problem.
Result<PushAnswer> post(const PushAddress& to, std::string_view body, double timeout_s);
/// One GET. An answer may have up to 64 MB.
Result<PushAnswer> get(const PushAddress& from, double timeout_s);

/// Pushes at an interval, in a thread of its own. A push that fails is not repeated: sums are cumulative, so the next
/// one contains it. After failures the distance doubles, up to a minute or the interval, whichever is longer, or what
/// the collector asks for by Retry-After.
class OtlpPusher {
 public:
  OtlpPusher(PushAddress to, double interval_s, std::function<std::string()> message);
  /// Pushes once more, with a timeout of two seconds.
  ~OtlpPusher();
  OtlpPusher(const OtlpPusher&) = delete;
  OtlpPusher& operator=(const OtlpPusher&) = delete;

  /// The last push; counts() then holds all. Idempotent.
  void finish();
  PushCounts counts() const;
  const PushAddress& address() const { return to_; }

 private:
  void loop();
  double push(double timeout_s);  // the wait that the collector asks for, s

  PushAddress to_;
  double interval_s_;
  std::function<std::string()> message_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool end_ = false;
  uint64_t failures_ = 0;  // in a row
  PushCounts counts_;
  std::thread thread_;
};

}  // namespace tacho::watch
