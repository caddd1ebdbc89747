// The words of categories (categories.h).
#include "format/kineto/categories.h"

#include <algorithm>

#include "format/import/words.h"
#include "format/json/tokens.h"

namespace tacho::format::kineto {

using event::Domain;
using event::Table;
using json::is;

namespace {

// kRange unless the whole text is a word of its own.
Activity activity_of_word(std::string_view word) {
  switch (word.size()) {
    case 6:
      if (is(word, "kernel") || is(word, "Kernel")) return Activity::kKernel;
      if (is(word, "cpu_op")) return Activity::kOperator;
      if (is(word, "Memcpy")) return Activity::kCopy;
      if (is(word, "Memset")) return Activity::kFill;
      if (is(word, "hpu_op")) return Activity::kCall;
      break;
    case 7:
      if (is(word, "Runtime")) return Activity::kCall;
      break;
    case 8:
      if (is(word, "Operator")) return Activity::kOperator;
      if (is(word, "overhead") || is(word, "Overhead")) return Activity::kOverhead;
      if (is(word, "xpu_sync")) return Activity::kSync;
      break;
    case 9:
      if (is(word, "cuda_sync")) return Activity::kSync;
      break;
    case 10:
      if (is(word, "gpu_memcpy")) return Activity::kCopy;
      if (is(word, "gpu_memset")) return Activity::kFill;
      break;
    case 15:
      if (is(word, "python_function")) return Activity::kPython;
      break;
    case 19:
      if (is(word, "gpu_user_annotation")) return Activity::kDeviceRange;
      if (is(word, "cuda_profiler_range")) return Activity::kCounters;
      break;
    default:
      break;
  }
  return Activity::kRange;
}

}  // namespace

Activity activity_of(std::string_view category) {
  Activity activity = activity_of_word(category);
  if (activity != Activity::kRange || category.empty()) return activity;
  while (activity == Activity::kRange && !category.empty()) {
    std::string_view word = category.substr(0, category.find(','));
    category.remove_prefix(std::min(category.size(), word.size() + 1));
    while (word.starts_with(' ')) word.remove_prefix(1);
    activity = word.ends_with("_runtime") || word.ends_with("_driver") ? Activity::kCall : activity_of_word(word);
  }
  return activity;
}

Domain domain_of_call(std::string_view category, std::string_view function) {
  if (function.starts_with("hip")) return Domain::kHipRuntime;
  if (category.starts_with("cuda_driver")) return Domain::kCudaDriver;
  if (category.starts_with("cuda_runtime") || category == "Runtime") return Domain::kCudaRuntime;
  const Domain named = imported::domain_of_word(category);
  return named != Domain::kUnknown ? named : imported::domain_of_function(function);
}

Table table_of(Activity activity) {
  switch (activity) {
    case Activity::kKernel:
      return Table::kDispatch;
    case Activity::kCopy:
      return Table::kCopy;
    case Activity::kFill:
      return Table::kFill;
    case Activity::kCall:
    case Activity::kOperator:
    case Activity::kPython:
      return Table::kApi;
    case Activity::kOverhead:
      return Table::kOverhead;
    case Activity::kSync:
      return Table::kSync;
    default:
      return Table::kMarker;
  }
}

}  // namespace tacho::format::kineto
