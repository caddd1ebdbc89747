// The messages' bytes (sample_messages.h).
#include "launch/run/sample_messages.h"

#include <charconv>
#include <climits>
#include <cstring>

namespace tacho::launch {

namespace {

constexpr size_t kDeviceWords = 5, kMetricWords = 3;

struct SampleHead {
  uint32_t device, values;
  int64_t begin, end;
};

void add_word(std::string& to, std::string_view word) {
  to.append(word);
  to.push_back('\0');
}

// A text that does not end with a zero has no words.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  if (text.empty() || text.back() != '\0') return words;
  while (!text.empty()) {
    const size_t end = text.find('\0');
    words.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return words;
}

}  // namespace

std::optional<int64_t> parse_sample_number(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < 0) return {};
  return value;
}

std::string setup_text(std::span<const SampledDevice> devices, std::span<const SampledMetric> metrics) {
  std::string text;
  add_word(text, std::to_string(devices.size()));
  for (const SampledDevice& device : devices) {
    add_word(text, std::to_string(device.index));
    for (const std::string* const each : {&device.name, &device.vendor, &device.architecture, &device.uuid})
      add_word(text, *each);
  }
  for (const SampledMetric& metric : metrics)
    for (const std::string* const each : {&metric.name, &metric.unit, &metric.text}) add_word(text, *each);
  return text;
}

std::optional<SampleSetup> parse_setup(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) return {};
  const std::optional<int64_t> devices = parse_sample_number(words.front());
  const size_t left = words.size() - 1;
  if (!devices || *devices == 0 || static_cast<uint64_t>(*devices) > left / kDeviceWords) return {};
  const size_t device_words = static_cast<size_t>(*devices) * kDeviceWords;
  if (left == device_words || (left - device_words) % kMetricWords != 0) return {};
  SampleSetup setup;
  size_t at = 1;
  const auto next = [&] { return std::string(words.at(at++)); };
  while (at <= device_words) {
    const std::optional<int64_t> index = parse_sample_number(next());
    if (!index || *index > INT_MAX) return {};
    SampledDevice& device = setup.devices.emplace_back();
    device.index = static_cast<int>(*index);
    for (std::string* const each : {&device.name, &device.vendor, &device.architecture, &device.uuid}) *each = next();
  }
  while (at < words.size()) {
    SampledMetric& metric = setup.metrics.emplace_back();
    for (std::string* const each : {&metric.name, &metric.unit, &metric.text}) *each = next();
  }
  return setup;
}

std::string sample_text(uint32_t device, int64_t begin, int64_t end, std::span<const double> values) {
  const SampleHead head{device, static_cast<uint32_t>(values.size()), begin, end};
  std::string text(reinterpret_cast<const char*>(&head), sizeof head);
  text.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return text;
}

std::optional<DeviceSample> parse_sample(std::string_view text, size_t devices, size_t metrics) {
  SampleHead head{};
  if (text.size() < sizeof head) return {};
  std::memcpy(&head, text.data(), sizeof head);
  if (head.device >= devices || head.values != metrics || head.end < head.begin ||
      text.size() != sizeof head + head.values * sizeof(double))
    return {};
  DeviceSample sample{head.device, head.begin, head.end, std::vector<double>(head.values)};
  std::memcpy(sample.values.data(), text.data() + sizeof head, head.values * sizeof(double));
  return sample;
}

std::string pair_text(std::string_view first, std::string_view second) {
  std::string text;
  add_word(text, first);
  add_word(text, second);
  return text;
}

std::optional<std::pair<std::string, std::string>> parse_pair(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() != 2) return {};
  return std::pair{std::string(words.front()), std::string(words.back())};
}

}  // namespace tacho::launch
