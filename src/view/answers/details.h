// The details of a slice beyond its times, as texts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/operators/places.h"
#include "trace/trace.h"

namespace tacho::view {

/// Titles and texts.
using Texts = std::vector<std::pair<std::string, std::string>>;

/// The fields of a fact's dimension row beyond its name: grid, workgroup, direction, domain ...
Texts shape_texts(const trace::Trace& trace, const analysis::DeviceNumbers& devices, event::Table fact, int64_t dim);

/// A cell as people read it; rows of devices by their names. "" if it is unknown or says nothing.
std::string readable_cell(const trace::Trace& trace, const analysis::DeviceNumbers& devices, const event::Column& of,
                          int64_t value);

}  // namespace tacho::view
