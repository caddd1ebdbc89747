// The CPU as an OpenCL device: perf_event counters around each kernel that PoCL runs.
#include "counter/providers.h"

namespace tacho::counter {

namespace {

class CpuProvider : public Provider {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view tool() const override { return "perf_event"; }
  std::vector<Device> devices(std::string&) const override { return {}; }
  std::optional<Device> device_for(std::string_view) const override { return std::nullopt; }
  std::vector<CounterInfo> counters(const Device&) const override { return {}; }
  Result<Plan> plan(const Device&, std::span<const std::string>) const override { return Plan{}; }
  tl::expected<Outcome, launch::LaunchError> collect(const Device&, const Plan&, const CollectRequest&,
                                                     Observer&) const override {
    return Outcome{};
  }
};

}  // namespace

std::unique_ptr<Provider> make_cpu_provider() {
  return std::make_unique<CpuProvider>();
}

}  // namespace tacho::counter
