// Which metrics a profile run collects: -b, --set and --roof-only, on the architecture that it runs on.
#pragma once

#include <string>
#include <vector>

#include "cli/profile/options.h"
#include "metric/catalog/catalog.h"

namespace tacho::cli::profiling {

struct Selected {
  std::vector<metric::Selection> selections;
  std::vector<std::string> recorded;  // what profiling_config.yaml and the header show
  std::vector<std::string> notes;
};

/// The metrics that the arguments name. The error is one sentence: a set or a block that the catalog lacks, or nothing
/// that the device can count.
Result<Selected> select_metrics(const ProfileArguments& a, const metric::Catalog& catalog);

/// Every run that has the counters for the roofline's points gets ceilings, unless --no-roof.
bool wants_roofline(const ProfileArguments& a, const metric::Catalog& catalog,
                    const std::vector<metric::Selection>& selections);

/// The catalog for the lists: of the architecture asked for, else of this machine's device, else of virtual.
Result<metric::Catalog> catalog_for_lists(const ProfileArguments& a, const std::string& asked);

}  // namespace tacho::cli::profiling
