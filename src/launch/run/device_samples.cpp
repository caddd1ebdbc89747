// The socket between tacho and the process that samples devices, and the rows (device_samples.h).
#include "launch/run/device_samples.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"

namespace tacho::launch {

using event::Table;
namespace row = event::row;

namespace {

constexpr char kStart = 's';

bool write_all(int socket, const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool read_all(int socket, void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool is_readable(int socket, int milliseconds) {
  pollfd wait{socket, POLLIN, 0};
  const int64_t until = raw_now() + int64_t{milliseconds} * 1'000'000;
  for (;;) {
    const int64_t left = std::max<int64_t>(0, (until - raw_now() + 999'999) / 1'000'000);
    const int count = poll(&wait, 1, milliseconds < 0 ? -1 : static_cast<int>(left));
    if (count >= 0 || errno != EINTR) return count > 0;
  }
}

}  // namespace

// The sampling process

void SampleSender::send(SampleMessage kind, std::string_view text) {
  const SampleMessageHead head{kind, static_cast<uint32_t>(text.size())};
  if (!write_all(socket_, &head, sizeof head) || !write_all(socket_, text.data(), text.size())) _exit(1);
}
void SampleSender::none(const std::string& why) {
  send(SampleMessage::kNone, why);
}
void SampleSender::refuse(const std::string& why) {
  send(SampleMessage::kRefused, why);
}
void SampleSender::note(const std::string& sentence) {
  send(SampleMessage::kNote, sentence);
}
void SampleSender::ready(std::span<const SampledDevice> devices, std::span<const SampledMetric> metrics) {
  send(SampleMessage::kReady, setup_text(devices, metrics));
}
bool SampleSender::wait_for_start() {
  char word = 0;
  return read_all(socket_, &word, 1) && word == kStart;
}
bool SampleSender::end_is_asked(int milliseconds) {
  // Nothing comes any more but the end of what tacho sends.
  return is_readable(socket_, milliseconds);
}
void SampleSender::sample(uint32_t device, int64_t begin, int64_t end, std::span<const double> values) {
  send(SampleMessage::kSample, sample_text(device, begin, end, values));
}
void SampleSender::clock_error(uint32_t device, int64_t ns) {
  send(SampleMessage::kClock, pair_text(std::to_string(device), std::to_string(ns)));
}
void SampleSender::lost(uint64_t samples) {
  send(SampleMessage::kLost, std::to_string(samples));
}
void SampleSender::property(const std::string& key, const std::string& value) {
  send(SampleMessage::kProperty, pair_text(key, value));
}

// tacho

Result<std::unique_ptr<DeviceSamples>> DeviceSamples::begin(const std::function<void(SampleSender&)>& body,
                                                            std::string& none) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail("no socket for sampling devices: {}", strerror(errno));
  const pid_t process = fork();
  if (process < 0) {
    close(ends[0]);
    close(ends[1]);
    return fail("no process for sampling devices: {}", strerror(errno));
  }
  if (process == 0) {
    // Ctrl-C at a terminal is for tacho, which then asks for the end.
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    close(ends[0]);
    SampleSender sender(ends[1]);
    body(sender);
    const SampleMessageHead head{SampleMessage::kEnd, 0};
    write_all(ends[1], &head, sizeof head);
    _exit(0);
  }
  close(ends[1]);
  std::unique_ptr<DeviceSamples> samples(new DeviceSamples(process, ends[0]));
  TACHO_TRY(samples->wait_until_ready(none));
  if (!none.empty()) samples.reset();
  return samples;
}

DeviceSamples::~DeviceSamples() {
  stop();
}

bool DeviceSamples::receive(SampleMessage& kind, std::string& text, int patience_ms) const {
  SampleMessageHead head{};
  if (!is_readable(socket_, patience_ms) || !read_all(socket_, &head, sizeof head) || head.bytes > kMostSampleMessage)
    return false;
  kind = head.kind;
  text.assign(head.bytes, '\0');
  return read_all(socket_, text.data(), text.size());
}

Status DeviceSamples::wait_until_ready(std::string& none) {
  constexpr int kPatience = 60'000;  // ms: a driver that has slept takes seconds
  SampleMessage kind{};
  std::string text;
  const bool answered = receive(kind, text, kPatience);
  if (answered && kind == SampleMessage::kRefused) return fail("{}", text);
  if (answered && kind == SampleMessage::kNone) {
    none = text;
    return {};
  }
  std::optional<SampleSetup> setup;
  if (answered && kind == SampleMessage::kReady) setup = parse_setup(text);
  if (!setup)
    return fail("the process that samples the GPUs' counters ended, or did not answer within {} s, while the vendor's "
                "library started",
                kPatience / 1000);
  devices_ = std::move(setup->devices);
  metrics_ = std::move(setup->metrics);
  return {};
}

void DeviceSamples::start() {
  started_ = write_all(socket_, &kStart, 1);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "tacho-samples");
    SampleMessage kind{};
    for (std::string text; receive(kind, text, -1);) take(kind, text);
  });
}

void DeviceSamples::take(SampleMessage kind, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (kind == SampleMessage::kSample) {
    if (std::optional<DeviceSample> sample = parse_sample(text, devices_.size(), metrics_.size()))
      samples_.push_back(std::move(*sample));
    else
      ++unreadable_;
  } else if (kind == SampleMessage::kNote) {
    notes_.push_back(text);
  } else if (kind == SampleMessage::kLost) {
    if (const std::optional<int64_t> count = parse_sample_number(text))
      lost_ += static_cast<uint64_t>(*count);
    else
      ++unreadable_;
  } else if (kind == SampleMessage::kProperty) {
    if (auto pair = parse_pair(text))
      properties_["device_samples." + pair->first] = std::move(pair->second);
    else
      ++unreadable_;
  } else if (kind == SampleMessage::kClock) {
    const auto pair = parse_pair(text);
    const std::optional<int64_t> device = pair ? parse_sample_number(pair->first) : std::nullopt;
    const std::optional<int64_t> error = pair ? parse_sample_number(pair->second) : std::nullopt;
    if (device && error && static_cast<uint64_t>(*device) < devices_.size())
      clock_errors_[static_cast<size_t>(*device)] = *error;
    else
      ++unreadable_;
  } else if (kind == SampleMessage::kEnd) {
    ended_in_order_ = true;
  } else {
    ++unreadable_;
  }
}

void DeviceSamples::stop() {
  if (socket_ < 0) return;
  shutdown(socket_, SHUT_WR);
  if (thread_.joinable()) {
    // What is left comes within moments; a library that hangs is not waited for.
    constexpr int kPatience = 10'000;
    const int64_t begin = raw_now();
    while (raw_now() - begin < int64_t{kPatience} * 1'000'000) {
      siginfo_t ended{};
      if (waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOWAIT | WNOHANG) != 0 || ended.si_pid != 0)
        break;
      usleep(2000);
    }
    reap();
    thread_.join();
  } else {
    reap();
  }
  close(socket_);
  socket_ = -1;
}

// At its end the process has nothing more to say.
void DeviceSamples::reap() {
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid == 0)
    kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void DeviceSamples::make_rows(trace::TraceWriter& writer) {
  std::vector<int64_t> counters;
  for (const SampledMetric& metric : metrics_)
    counters.push_back(writer.dimension(row::Counter{.name = writer.string(metric.name),
                                                     .unit = writer.string(metric.unit),
                                                     .text = writer.string(metric.text),
                                                     .block = writer.string(kSampledCounters)}));
  for (const SampledDevice& device : devices_) {
    rows_.push_back(writer.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                                 .index = device.index,
                                                 .name = writer.string(device.name),
                                                 .vendor = writer.string(device.vendor),
                                                 .architecture = writer.string(device.architecture),
                                                 .uuid = writer.string(device.uuid)}));
    for (size_t i = 0; i < metrics_.size(); ++i)
      tracks_.push_back(writer.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                    .device = rows_.back(),
                                                    .native = device.index + 1,
                                                    .name = writer.string(metrics_.at(i).name),
                                                    .category = writer.string("telemetry.gpu"),
                                                    .counter = counters.at(i)}));
  }
}

void DeviceSamples::deliver(trace::TraceWriter& writer, const std::function<bool(int64_t, int64_t)>& wanted) {
  std::vector<DeviceSample> samples;
  {
    const std::lock_guard lock(mutex_);
    samples.swap(samples_);
  }
  if (rows_.empty()) make_rows(writer);
  for (const DeviceSample& sample : samples) {
    if (!wanted(sample.begin, sample.end)) continue;
    ++count_;
    for (size_t i = 0; i < sample.values.size(); ++i) {
      const double value = sample.values.at(i);
      if (std::isfinite(value))
        writer.add(row::Reading{.track = tracks_.at(sample.device * metrics_.size() + i),
                                .start = sample.begin,
                                .value = std::bit_cast<int64_t>(value)});
      else
        ++unusable_;
    }
  }
}

void DeviceSamples::finish(trace::TraceWriter& writer) {
  const auto about = [&](const std::string& key, const std::string& value) {
    writer.property(Table::kEnd, 0, key, value);
  };
  for (const auto& [key, value] : properties_) about(key, value);
  for (const auto& [device, error] : clock_errors_)
    if (!rows_.empty()) writer.update(Table::kDevice, rows_.at(device), event::column::Device::clock_error, error);
  about("device_samples.count", fmt::format("{}", count_));
  if (lost_ > 0)
    writer.lose(0, Table::kReading, event::LossReason::kVendor,
                static_cast<int64_t>(std::min<uint64_t>(lost_, INT64_MAX)));
  if (unusable_ > 0)
    notes_.push_back(
        fmt::format("{} values of the GPUs' sampled counters could not be computed and are left out", unusable_));
  if (unreadable_ > 0)
    notes_.push_back(fmt::format("{} messages of the process that sampled the GPUs' counters could not be read: what "
                                 "they had to say is missing",
                                 unreadable_));
  if (started_ && !ended_in_order_)
    notes_.emplace_back("the process that sampled the GPUs' counters ended before it was asked to, or did not end when "
                        "it was: samples are missing at the end");
  for (const std::string& note : notes_) writer.note(0, event::NoteSeverity::kWarning, note);
}

}  // namespace tacho::launch
