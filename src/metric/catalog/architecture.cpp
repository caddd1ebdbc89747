// Look-ups in an architecture's facts.
#include "metric/catalog/architecture.h"

#include <algorithm>
#include <limits>

namespace tacho::metric {

double Architecture::number(std::string_view fact) const {
  for (const ArchitectureFact& each : facts)
    if (each.name == fact) return each.number;
  return std::numeric_limits<double>::quiet_NaN();
}

std::string_view Architecture::text(std::string_view fact) const {
  for (const ArchitectureFact& each : facts)
    if (each.name == fact) return each.text;
  return {};
}

bool Architecture::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

}  // namespace tacho::metric
