// Which provider samples (device_samples.h).
#include "counter/device_samples.h"

#include <algorithm>

#include "counter/provider.h"

namespace tacho::counter {

bool is_sampled(std::string_view counter) {
  return std::any_of(providers().begin(), providers().end(),
                     [&](const std::unique_ptr<Provider>& provider) { return provider->samples(counter); });
}

Result<std::unique_ptr<launch::DeviceSamples>> sample_devices(const SampleRequest& request) {
  if (request.interval_ns < kLeastInterval || request.interval_ns > kMostInterval)
    return fail("{} ms lie between two samples: they can be 0.1 ms to 1 s apart",
                static_cast<double>(request.interval_ns) * 1e-6);
  std::string reasons;
  for (const std::unique_ptr<Provider>& provider : providers()) {
    std::string none;
    TACHO_ASSIGN(std::unique_ptr<launch::DeviceSamples> samples, provider->sample(request, none));
    if (samples != nullptr) return samples;
    if (!none.empty()) reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", none);
  }
  return fail("no GPU here can be sampled: {}", reasons);
}

}  // namespace tacho::counter
