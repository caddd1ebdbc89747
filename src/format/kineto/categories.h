// What an event's category says that the event is.
#pragma once

#include <cstdint>
#include <string_view>

#include "event/schema.h"

namespace tacho::format::kineto {

enum class Meaning : uint8_t {
  kRange,  // anything else: a range with a name
  kKernel,
  kCopy,
  kFill,
  kDeviceRange,
  kCounters,  // of one replayed kernel
  kCall,
  kOperator,
  kPython,
  kOverhead,
  kSync,
};

/// By Kineto's words of any age, of all its vendors, and by the last part of a word: every "*_runtime" and "*_driver"
/// is a call. Of a list ("Kernel,gpu") the first word that says something counts.
Meaning meaning_of(std::string_view category);
/// The API of a call, by the function's name or else the category's word.
event::Domain domain_of_call(std::string_view category, std::string_view function);
/// The table that an event of this category goes to.
event::Table table_of(Meaning meaning);

}  // namespace tacho::format::kineto
