// The words of rocpd databases (words.h).
#include "format/rocpd/words.h"

#include <algorithm>

#include "format/shared/rocprof_words.h"

namespace tacho::format::rocpd {

namespace {

// AMD's summary takes those regions for calls whose category is a word, "_" and more.
std::string_view category_of(event::Domain domain) {
  switch (domain) {
    case event::Domain::kPython:
      return "PYTHON_API";
    case event::Domain::kHost:
      return "HOST_API";
    case event::Domain::kOperator:
      return "OPERATOR_API";
    default:
      return api_domain_name(domain);
  }
}

}  // namespace

RocpdWords::RocpdWords()
    : texts_{"KERNEL_DISPATCH",
             "MEMORY_COPY",
             "MEMORY_ALLOCATION",
             "MARKER_CORE_API",
             "MEMORY_FILL",
             "roctxThreadRangeA",
             "roctxProcessRangeA",
             "roctxMarkA",
             "GPU",
             "CPU",
             "ABS",
             "REAL",
             "ALLOC",
             "FREE",
             "tacho",
             "HIP_GRAPH"} {
  for (size_t i = 0; i < domains_.size(); ++i) domains_[i] = code(category_of(static_cast<event::Domain>(i)));
  for (size_t i = 0; i < directions_.size(); ++i) directions_[i] = code(copy_direction_name(static_cast<int64_t>(i)));
}

int64_t RocpdWords::code(std::string_view text) {
  if (text.empty()) return 0;
  const auto found = std::find(texts_.begin(), texts_.end(), text);
  const int64_t place = found - texts_.begin();
  if (found == texts_.end()) texts_.push_back(text);
  return -place - 1;
}

const RocpdWords& words() {
  static const RocpdWords all;
  return all;
}

}  // namespace tacho::format::rocpd
