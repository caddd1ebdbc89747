// Counters of whole devices on the command line (device_counters.h).
#include "cli/options/device_counters.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "cli/command.h"
#include "cli/files/writer_names.h"
#include "counter/device_samples.h"

namespace tacho::cli {

// As many as a process keeps names of (capture/source/rocm/device_counters.cpp).
Status choose_device_counters(const std::string& list, event::Configuration& target, DeviceCounters& counters) {
  constexpr size_t kMostCounters = 64, kLongestName = 63;
  std::vector<std::string> names = words_of(list);
  const size_t given = names.size();
  std::vector<std::string>& sampled = counters.sampled;
  for (const std::string& name : names)
    if (counter::is_sampled(name) && std::find(sampled.begin(), sampled.end(), name) == sampled.end())
      sampled.push_back(name);
  std::erase_if(names, counter::is_sampled);
  for (const std::string& name : names)
    if (name.empty() || name.size() > kLongestName || !std::all_of(name.begin(), name.end(), [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
        }))
      return fail("--device-counters {}: \"{}\" is not the name of a counter (letters, digits and _)", list, name);
  if (given == 0 || names.size() > kMostCounters)
    return fail("--device-counters {}: 1 to {} names of counters, separated by commas", list, kMostCounters);
  if (names.empty()) return {};
  std::string& wanted = target.device_counters;
  wanted.clear();
  for (const std::string& name : names) wanted += (wanted.empty() ? "" : ",") + name;
  return {};
}

Status choose_counter_rate(const std::string& text, event::Configuration& target, DeviceCounters& counters) {
  double hz = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hz);
  if (error != std::errc() || end != text.data() + text.size() || !(hz >= 0.02 && hz <= 1000))
    return fail("--device-counters-hz {}: a number from 0.02 to 1000", text);
  counters.hz = hz;
  target.device_counter_ms = static_cast<uint32_t>(std::lround(1000 / hz));
  return {};
}

Result<std::unique_ptr<launch::DeviceSamples>> set_up_samples(const DeviceCounters& counters) {
  if (counters.sampled.empty()) return nullptr;
  auto ready = counter::sample_devices(
      {.counters = counters.sampled, .interval_ns = std::llround(1e9 / counters.hz), .processes = {}});
  if (!ready) return fail("--device-counters: {}", ready.error().message);
  return ready;
}

void tell_no_samples(const launch::DeviceSamples* samples) {
  if (samples == nullptr || samples->count() > 0) return;
  const bool told = !samples->problems().empty();
  complain(0, fmt::format("--device-counters: not one sample lies within the recording{}{}", told ? ": " : "",
                          told ? samples->problems().front() : std::string()));
}

}  // namespace tacho::cli
