// Which provider samples (device_samples.h).
#include "counter/device_samples.h"

#include "counter/provider.h"

namespace tacho::counter {

Result<std::unique_ptr<launch::DeviceSamples>> sample_devices(const SampleRequest& request) {
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
