// Counters of whole devices, sampled beside the program. A process of tacho's own does it: a vendor's library leaves
// threads behind, may hang or crash, and lets go of the device when the process ends. This room has both ends of the
// socket between the two, and makes rows of what comes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launch/run/sample_messages.h"
#include "trace/write/writer.h"

namespace tacho::launch {

/// What `block` of their counters is.
inline constexpr std::string_view kSampledCounters = "device_samples";

/// The sampling process's end.
class SampleSender {
 public:
  explicit SampleSender(int socket) : socket_(socket) {}

  /// There is no device that could be sampled: not an error where another vendor has one. The last message.
  void none(const std::string& why);
  /// Sampling cannot begin. The last message.
  void refuse(const std::string& why);
  /// Everything is set up, and sampling begins at once when tacho asks for it.
  void ready(std::span<const SampledDevice> devices, std::span<const SampledMetric> metrics);
  /// Waits for that. False: it never will, and the process should end.
  bool wait_for_start();
  /// Waits at most so long. True once tacho asks for the end, or is gone.
  bool end_is_asked(int milliseconds);
  /// Values of all metrics over [begin, end) (CLOCK_MONOTONIC_RAW ns) on the device of this number in ready().
  void sample(uint32_t device, int64_t begin, int64_t end, std::span<const double> values);
  /// Once for a device: what its times may be wrong by.
  void clock_error(uint32_t device, int64_t ns);
  void lost(uint64_t samples);
  void note(const std::string& sentence);
  /// A property of the trace, "device_samples.<key>".
  void property(const std::string& key, const std::string& value);

 private:
  void send(SampleMessage kind, std::string_view text);
  int socket_;
};

class DeviceSamples {
 public:
  /// Forks a process that runs `body`, and waits until it is ready. nullptr, with the reason in `none`, when it has no
  /// device. The calling process must be single-threaded.
  static Result<std::unique_ptr<DeviceSamples>> begin(const std::function<void(SampleSender&)>& body,
                                                      std::string& none);
  ~DeviceSamples();
  DeviceSamples(const DeviceSamples&) = delete;
  DeviceSamples& operator=(const DeviceSamples&) = delete;

  std::span<const SampledDevice> devices() const { return devices_; }
  std::span<const SampledMetric> metrics() const { return metrics_; }
  /// Lets it sample, and takes the samples in a thread.
  void start();
  /// Asks for the end and takes what is left.
  void stop();
  /// Writes what has come since the last call, of samples that `wanted(begin, end)` wants, at their begin: a line of
  /// readings holds each until the next. The owner of the writer calls it.
  void deliver(trace::TraceWriter& writer, const std::function<bool(int64_t, int64_t)>& wanted);
  /// Notes, losses and properties, after stop() and the last deliver().
  void finish(trace::TraceWriter& writer);
  /// Samples that were written.
  uint64_t count() const { return count_; }
  /// What went wrong, after finish().
  std::span<const std::string> problems() const { return notes_; }

 private:
  DeviceSamples(pid_t process, int socket) : process_(process), socket_(socket) {}
  Status wait_until_ready(std::string& none);
  bool receive(SampleMessage& kind, std::string& text, int patience_ms) const;
  void take(SampleMessage kind, const std::string& text);
  void reap();
  void make_rows(trace::TraceWriter& writer);

  pid_t process_;
  int socket_;
  std::vector<SampledDevice> devices_;
  std::vector<SampledMetric> metrics_;
  std::thread thread_;
  std::mutex mutex_;  // guards what follows
  std::vector<DeviceSample> samples_;
  std::vector<std::string> notes_;
  std::map<std::string, std::string> properties_;
  std::map<size_t, int64_t> clock_errors_;  // by device
  uint64_t lost_ = 0, unreadable_ = 0;
  bool started_ = false, ended_in_order_ = false;
  // The writer's
  std::vector<int64_t> rows_;    // of the devices
  std::vector<int64_t> tracks_;  // by device and metric
  uint64_t count_ = 0, unusable_ = 0;
};

}  // namespace tacho::launch
