// What the process that samples devices sends to tacho (device_samples.h), as bytes: messages of a head and a text. Of
// several words in a text each ends with a zero. The reading half trusts nothing: a vendor's library runs in that
// process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::launch {

struct SampledMetric {
  std::string name, unit, text;  ///< as a row of table counter has them
};
struct SampledDevice {
  int index = 0;  ///< as the vendor's tools number it
  std::string name, vendor, architecture, uuid;
};

enum class SampleMessage : uint32_t { kNone = 1, kRefused, kReady, kSample, kLost, kNote, kProperty, kClock, kEnd };
struct SampleMessageHead {
  SampleMessage kind;
  uint32_t bytes;
};
/// Of a text.
inline constexpr uint32_t kMostSampleMessage = 1 << 20;

/// kReady: what is sampled.
struct SampleSetup {
  std::vector<SampledDevice> devices;
  std::vector<SampledMetric> metrics;
};
std::string setup_text(std::span<const SampledDevice> devices, std::span<const SampledMetric> metrics);
/// At least one device and one metric; nullopt for any other text than setup_text() makes.
std::optional<SampleSetup> parse_setup(std::string_view text);

/// kSample: the values of all metrics over [begin, end), CLOCK_MONOTONIC_RAW ns.
struct DeviceSample {
  uint32_t device = 0;  ///< its place in SampleSetup::devices
  int64_t begin = 0, end = 0;
  std::vector<double> values;
};
std::string sample_text(uint32_t device, int64_t begin, int64_t end, std::span<const double> values);
/// nullopt unless it is one of so many devices, with a value for each metric, and does not end before it begins.
std::optional<DeviceSample> parse_sample(std::string_view text, size_t devices, size_t metrics);

/// kProperty (key and value) and kClock (a device's place and nanoseconds): two words.
std::string pair_text(std::string_view first, std::string_view second);
std::optional<std::pair<std::string, std::string>> parse_pair(std::string_view text);

/// A whole text that is a number from 0 on: kLost, and the words of kClock.
std::optional<int64_t> parse_sample_number(std::string_view text);

}  // namespace tacho::launch
