// Reads properties of devices (device_facts.h).
#include "analysis/kernels/device_facts.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>

#include "metric/catalog/architectures.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::analysis {

namespace column = event::column;
using event::Table;

namespace {

double number_property_of(const trace::Trace& trace, int64_t device, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto text = trace.property(Table::kDevice, device, key);
    double value = 0;
    if (text && std::from_chars(text->data(), text->data() + text->size(), value).ec == std::errc() && value > 0)
      return value;
  }
  return 0;
}

}  // namespace

std::optional<metric::Architecture> architecture_of(const trace::Trace& trace, int64_t device) {
  const std::string_view told = trace.text(Table::kDevice, device, column::Device::architecture);
  const std::string_view first = told.substr(0, told.find(':'));
  if (auto found = metric::built_in_architecture(first)) return found;
  std::string name(trace.text(Table::kDevice, device, column::Device::name));
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find_first_of(" -_", at), name.size());
    const std::string word = name.substr(at, end - at);
    if (word.size() >= 4)
      if (auto found = metric::architecture_named(word); found && *found) return *found;
    at = end + 1;
  }
  return std::nullopt;
}

int64_t compute_units(const trace::Trace& trace, int64_t device) {
  const double told =
      number_property_of(trace, device, {"multiprocessors", "compute_units", "compute units", "Cu_Count"});
  if (told > 0 || device <= 0) return static_cast<int64_t>(told);
  const auto facts = architecture_of(trace, device);
  const double usual = facts ? facts->number("typical.multiprocessors") : 0;
  return usual > 0 ? static_cast<int64_t>(usual) : 0;
}

double memory_bytes(const trace::Trace& trace, int64_t device) {
  return number_property_of(trace, device, {"memory_bytes", "global memory bytes"});
}

}  // namespace tacho::analysis
