// The list of vendors (vendor.h).
#include "vendor/vendor.h"

#include "vendor/definitions.h"

namespace tacho::vendor {

#define TACHO_VENDOR(function) const Vendor& function();
#include "vendor/vendors.def"
#undef TACHO_VENDOR

std::span<const Vendor* const> vendors() {
  static const Vendor* const kAll[] = {
#define TACHO_VENDOR(function) &function(),
#include "vendor/vendors.def"
#undef TACHO_VENDOR
  };
  return kAll;
}

const Vendor* vendor_named(std::string_view name) {
  for (const Vendor* const vendor : vendors())
    if (vendor->name() == name) return vendor;
  return nullptr;
}

uint32_t viewer_api(std::string_view maker, std::string_view api) {
  static constexpr struct {
    std::string_view family;
    uint32_t number;
  } kNumbers[] = {
#define TACHO_VIEWER_API(family, number) {family, number},
#include "vendor/vendors.def"
  };
  event::Domain domain = api.empty() ? event::Domain::kUnknown : domain_by_word(api);
  for (const Vendor* const vendor : vendors())
    if (api.empty() && vendor->made(maker)) domain = vendor->api();
  const std::string_view family = api_family(domain);
  for (const auto& known : kNumbers)
    if (known.family == family) return known.number;
  return 0;
}

}  // namespace tacho::vendor
