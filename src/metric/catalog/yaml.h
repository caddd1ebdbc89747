// Reads catalog files (docs/metrics.md) into a Catalog of one architecture.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"

namespace tacho::metric {

/// One file: its name for messages and its text.
struct CatalogFile {
  std::string name;
  std::string text;
};

/// Adds all files to the catalog, as if they were one: architectures and definitions of every file are known
/// in all of them. The catalog's `architecture` says for which one. On failure the catalog is in an
/// unspecified state.
Status apply_catalog_files(Catalog& catalog, std::span<const CatalogFile> files, const FormulaCheck& check);

/// Architectures declared by the files, in their order, with the names that users give them.
struct DeclaredArchitecture {
  std::string name;                     ///< "gfx942"
  std::string family;                   ///< "MI300"
  std::vector<std::string> user_names;  ///< "mi300x", lower case
};
Result<std::vector<DeclaredArchitecture>> declared_architectures(std::span<const CatalogFile> files);

/// The *.yaml and *.yml files of a folder in the order of their names; fails when it cannot be read or has
/// none.
Result<std::vector<CatalogFile>> read_catalog_folder(const std::string& folder);

}  // namespace tacho::metric
