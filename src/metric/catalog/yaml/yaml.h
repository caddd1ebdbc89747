// Reads catalog files (docs/metrics.md) into a Catalog of one architecture.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/files.h"

namespace tacho::metric {

/// Adds all files to the catalog, as if they were one: architectures and definitions of every file are known in all of
/// them. The catalog's `architecture` and `facts` say for which one. On failure the catalog is in an unspecified state.
Status apply_catalog_files(Catalog& catalog, std::span<const CatalogFile> files, const FormulaCheck& check);

}  // namespace tacho::metric
