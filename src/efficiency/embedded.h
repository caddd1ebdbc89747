// The built-in files of catalog/operators.
#pragma once

#include <string_view>

namespace tacho::efficiency {

extern const std::string_view kOperatorModels;  ///< models.yaml
extern const std::string_view kProducts;        ///< products.yaml

}  // namespace tacho::efficiency
