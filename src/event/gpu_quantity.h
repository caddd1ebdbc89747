// Names of the tracks of GPUs' telemetry.
#pragma once

#include <string_view>

namespace tacho::event {

/// Of "GPU Core Clock [0]" the words between, "Core Clock"; "" for other names.
inline std::string_view gpu_quantity(std::string_view name) {
  constexpr std::string_view kBegin = "GPU ";
  const size_t bracket = name.rfind(" [");
  if (!name.starts_with(kBegin) || bracket == std::string_view::npos || bracket < kBegin.size()) return {};
  return name.substr(kBegin.size(), bracket - kBegin.size());
}

}  // namespace tacho::event
