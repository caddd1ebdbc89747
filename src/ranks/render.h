// The answers of `tacho ranks` as text and as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ranks/answers.h"

namespace tacho::ranks {

struct TextOptions {
  size_t width = 80;  // 0 = any
  bool colour = false;
  size_t top = 16;          // rows of a table; 0 = all
  int64_t step = kUnknown;  // whose critical path; kUnknown = of the longest step
};

/// Sentences first, then the tables. An error where there is no such step.
Result<std::string> to_text(const Job& job, const Report& report, const TextOptions& options);
/// tacho-ranks/1: everything, exact (docs/ranks.md), handed to `put` piece by piece. An error where temporary data cannot be read
/// back.
Status to_json(const Job& job, const Report& report, const std::function<void(std::string_view)>& put);

}  // namespace tacho::ranks
