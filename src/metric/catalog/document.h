// Parses one YAML document of a catalog file; its contents may be anything.
#pragma once

#include <yaml-cpp/node/node.h>

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace tacho::metric {

/// A catalog file is written by people; whatever is larger is something else.
inline constexpr size_t kLargestCatalogFile = size_t{4} << 20;

/// The root of the only document in `text` (Null for an empty one). Errors name `file`, line and column. Refuses what
/// is larger than a catalog file can be, and a second document. The node's own operations may still throw.
Result<YAML::Node> load_document(std::string_view text, std::string_view file);

}  // namespace tacho::metric
