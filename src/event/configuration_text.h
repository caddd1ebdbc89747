// The writing side of the configuration of targets, for tacho's own process (configuration.h has the keys).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "event/configuration.h"

namespace tacho::event {

using Configuration = BasicConfiguration<std::string>;

/// The lines of every key that differs from its default. A text with a line break is an error that names its key.
Result<std::string> to_text(const Configuration& configuration);

/// The list as data, for docs and tests.
struct ConfigurationKey {
  std::string key, type, otherwise, meaning;
};
std::vector<ConfigurationKey> configuration_keys();

}  // namespace tacho::event
