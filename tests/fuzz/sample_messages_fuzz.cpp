// libFuzzer target of what the process that samples devices sends: a setup that was read is written as the same bytes,
// and a sample has what the rows take it for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "launch/run/sample_messages.h"

using namespace tacho::launch;

// The first byte says what the others are read as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto setup = parse_setup(text)) {
    if (setup->devices.empty() || setup->metrics.empty()) std::abort();
    const auto again = parse_setup(setup_text(setup->devices, setup->metrics));
    if (!again || again->devices.size() != setup->devices.size() || again->metrics.size() != setup->metrics.size())
      std::abort();
  }
  const size_t devices = data[0] % 4, metrics = data[0] / 4 % 4;
  if (const auto sample = parse_sample(text, devices, metrics)) {
    if (sample->device >= devices || sample->values.size() != metrics || sample->end < sample->begin) std::abort();
    if (sample_text(sample->device, sample->begin, sample->end, sample->values).size() != text.size()) std::abort();
  }
  if (const auto pair = parse_pair(text))
    if (pair_text(pair->first, pair->second) != text) std::abort();
  if (const auto number = parse_sample_number(text); number && *number < 0) std::abort();
  return 0;
}

// Half of the inputs begin as messages that are right.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) {
    const SampledDevice device{static_cast<int>(seed % 9), "GPU", "V", "sm_90", "GPU-1"};
    const SampledMetric metric{"bytes", "B", "how many"};
    const double value = seed;
    const std::string made = seed % 8 == 0   ? setup_text({&device, 1}, {&metric, 1})
                             : seed % 8 == 2 ? sample_text(0, seed, seed + 10, {&value, 1})
                             : seed % 8 == 4 ? pair_text("0", std::to_string(seed))
                                             : std::to_string(seed);
    if (made.size() < max_size) {
      data[0] = 1 + 4;
      std::memcpy(data + 1, made.data(), made.size());
      size = made.size() + 1;
    }
    if (seed % 16 < 8) return size;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
