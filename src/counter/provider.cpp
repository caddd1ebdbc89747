// The list of providers, the choice of a device, filters (provider.h).
#include "counter/provider.h"

#include <algorithm>

#include "vendor/vendor.h"

namespace tacho::counter {

std::string Filter::lines() const {
  std::string text;
  for (const std::string& kernel : kernels) text += fmt::format("kernel={}\n", kernel);
  for (const Range& range : dispatches) text += fmt::format("dispatch={}:{}\n", range.first, range.last);
  if (regions) text += "regions=1\n";
  return text;
}

#define TACHO_PROVIDER(make) std::unique_ptr<Provider> make();
#include "counter/provider/providers.def"
#undef TACHO_PROVIDER

std::span<const std::unique_ptr<Provider>> providers() {
  static const std::vector<std::unique_ptr<Provider>> all = [] {
    std::vector<std::unique_ptr<Provider>> list;
#define TACHO_PROVIDER(make) list.push_back(make());
#include "counter/provider/providers.def"
#undef TACHO_PROVIDER
    return list;
  }();
  return all;
}

const Provider* provider_of(std::string_view vendor) {
  for (const std::unique_ptr<Provider>& provider : providers())
    if (provider->vendor() == vendor) return provider.get();
  return nullptr;
}

namespace {

bool is_gpu_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<Chosen> choose_device(std::string_view wanted) {
  std::string reasons, present;
  for (const std::unique_ptr<Provider>& provider : providers()) {
    std::string why;
    for (Device& device : provider->devices(why)) {
      // If the user names no device, the order of the providers decides.
      if (wanted == device.id || (wanted.empty() && provider->by_default()))
        return Chosen{provider.get(), std::move(device)};
      present += fmt::format("{}{} ({})", present.empty() ? "" : ", ", device.id, device.name);
    }
    const bool about_it = wanted.empty() || wanted == provider->name() || is_gpu_number(wanted);
    if (!why.empty() && about_it) reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", why);
  }
  const std::string devices =
      present.empty() ? std::string("there is none here") : fmt::format("there are {}", present);
  if (wanted.empty()) return fail("no device with counters: {}", reasons.empty() ? devices : reasons);
  return fail("--device {}: there is no such device{}{}; {}", wanted, reasons.empty() ? "" : " (",
              reasons.empty() ? "" : reasons + ")", devices);
}

std::string folder_model(std::string_view marketing_name) {
  const auto strip = [&](std::string_view prefix) {
    if (marketing_name.starts_with(prefix)) marketing_name.remove_prefix(prefix.size());
  };
  for (const vendor::Vendor* const vendor : vendor::vendors())
    for (const std::string_view prefix : vendor->prefixes()) strip(prefix);
  for (const std::string_view prefix : {"Intel(R) ", "Intel "}) strip(prefix);
  std::string model;
  for (const char c : marketing_name) {
    const bool plain =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    model += plain ? c : '_';
  }
  return model.empty() ? "unknown" : model;
}

std::string launched_kernels(const Outcome& outcome) {
  constexpr size_t kMost = 8, kLongest = 80;  // template names can be pages long
  std::string names;
  for (size_t i = 0; i < outcome.seen_kernels.size() && i < kMost; ++i) {
    const std::string& name = outcome.seen_kernels[i];
    size_t end = std::min(name.size(), kLongest);
    while (end < name.size() && (name[end] & 0xc0) == 0x80) --end;
    names += (i > 0 ? ", " : "") + name.substr(0, end) + (end < name.size() ? "…" : "");
  }
  if (outcome.seen_kernels.size() > kMost) names += ", ...";
  return names;
}

}  // namespace tacho::counter
