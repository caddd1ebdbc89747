// The list of vendors (vendor.h).
#include "vendor/vendor.h"

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

}  // namespace tacho::vendor
