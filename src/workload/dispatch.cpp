// The identity of a dispatch (dispatch.h).
#include "workload/dispatch.h"

#include <algorithm>

namespace tacho::workload {

bool is_id_column(std::string_view name) {
  return std::find(kIdColumns.begin(), kIdColumns.end(), name) != kIdColumns.end();
}

std::string_view plain_kernel_name(std::string_view name) {
  for (const std::string_view suffix : {" [clone .kd]", " (.kd)", ".kd"})
    if (name.size() > suffix.size() && name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

}  // namespace tacho::workload
