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
Meaning meaning_of_word(std::string_view word) {
  switch (word.size()) {
    case 6:
      if (is(word, "kernel") || is(word, "Kernel")) return Meaning::kKernel;
      if (is(word, "cpu_op")) return Meaning::kOperator;
      if (is(word, "Memcpy")) return Meaning::kCopy;
      if (is(word, "Memset")) return Meaning::kFill;
      if (is(word, "hpu_op")) return Meaning::kCall;
      break;
    case 7:
      if (is(word, "Runtime")) return Meaning::kCall;
      break;
    case 8:
      if (is(word, "Operator")) return Meaning::kOperator;
      if (is(word, "overhead") || is(word, "Overhead")) return Meaning::kOverhead;
      if (is(word, "xpu_sync")) return Meaning::kSync;
      break;
    case 9:
      if (is(word, "cuda_sync")) return Meaning::kSync;
      break;
    case 10:
      if (is(word, "gpu_memcpy")) return Meaning::kCopy;
      if (is(word, "gpu_memset")) return Meaning::kFill;
      break;
    case 15:
      if (is(word, "python_function")) return Meaning::kPython;
      if (is(word, "mtia_ccp_events")) return Meaning::kKernel;
      break;
    case 19:
      if (is(word, "gpu_user_annotation")) return Meaning::kDeviceRange;
      if (is(word, "cuda_profiler_range")) return Meaning::kCounters;
      break;
    default:
      break;
  }
  return Meaning::kRange;
}

}  // namespace

Meaning meaning_of(std::string_view category) {
  Meaning meaning = meaning_of_word(category);
  if (meaning != Meaning::kRange || category.empty()) return meaning;
  while (meaning == Meaning::kRange && !category.empty()) {
    std::string_view word = category.substr(0, category.find(','));
    category.remove_prefix(std::min(category.size(), word.size() + 1));
    while (word.starts_with(' ')) word.remove_prefix(1);
    meaning = word.ends_with("_runtime") || word.ends_with("_driver") ? Meaning::kCall : meaning_of_word(word);
  }
  return meaning;
}

Domain domain_of_call(std::string_view category, std::string_view function) {
  if (function.starts_with("hip")) return Domain::kHipRuntime;
  if (category.starts_with("cuda_driver")) return Domain::kCudaDriver;
  if (category.starts_with("cuda_runtime") || category == "Runtime") return Domain::kCudaRuntime;
  const Domain named = imported::domain_of_word(category);
  return named != Domain::kUnknown ? named : imported::domain_of_function(function);
}

Table table_of(Meaning meaning) {
  switch (meaning) {
    case Meaning::kKernel:
      return Table::kDispatch;
    case Meaning::kCopy:
      return Table::kCopy;
    case Meaning::kFill:
      return Table::kFill;
    case Meaning::kCall:
    case Meaning::kOperator:
    case Meaning::kPython:
      return Table::kApi;
    case Meaning::kOverhead:
      return Table::kOverhead;
    case Meaning::kSync:
      return Table::kSync;
    default:
      return Table::kMarker;
  }
}

}  // namespace tacho::format::kineto
