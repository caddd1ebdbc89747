// Reads the YAML files of a folder as text.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::metric {

/// One file: its name for messages and its text.
struct CatalogFile {
  std::string name;
  std::string text;
};

/// The *.yaml and *.yml files of a folder in the order of their names; fails when it cannot be read or has none.
Result<std::vector<CatalogFile>> read_catalog_folder(const std::string& folder);

}  // namespace tacho::metric
