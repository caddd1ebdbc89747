// Look-ups in the catalog (peaks.h).
#include "roofline/peaks.h"

#include <fmt/format.h>

#include <cmath>

#include "metric/catalog/builtin/builtin.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

double per_cycle(std::string_view architecture, std::string_view what) {
  const auto facts = metric::built_in_architecture(architecture);
  return facts ? facts->number(fmt::format("per_cycle.{}", what)) : kUnknown;
}

CacheSizes caches_of(std::string_view architecture) {
  const auto facts = metric::built_in_architecture(architecture);
  const auto bytes = [&](std::string_view level) {
    const double value = facts ? facts->number(level) : kUnknown;
    return std::isnan(value) ? uint64_t{0} : static_cast<uint64_t>(value);
  };
  return {bytes("caches.l1"), bytes("caches.l2"), bytes("caches.last")};
}

bool has_feature(std::string_view architecture, std::string_view feature) {
  const auto facts = metric::built_in_architecture(architecture);
  return facts && facts->has(feature);
}

}  // namespace tacho::roofline
