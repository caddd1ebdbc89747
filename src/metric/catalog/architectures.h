// Reads the architectures that catalog files declare (docs/metrics.md, "Architectures").
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/architecture.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/files.h"

namespace tacho::metric {

/// A built-in architecture by name, or nothing. Its text lies in the binary.
using ArchitectureLookup = std::function<std::optional<Architecture>(std::string_view name)>;

/// The architectures of a vendor's files, in their order. Errors name file, line and column.
Result<std::vector<Architecture>> read_architectures(std::span<const CatalogFile> files, std::string_view vendor,
                                                     const FormulaCheck& check = {});

/// The architectures of a user's files: new ones, each of them like one that `built_in` or an earlier entry has, and
/// built-in ones with some facts changed.
Result<std::vector<Architecture>> read_more_architectures(std::span<const CatalogFile> files,
                                                          const ArchitectureLookup& built_in,
                                                          const FormulaCheck& check = {});

}  // namespace tacho::metric
