// sysinfo.csv: the machine that a profile folder was recorded on.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

/// The machine of the run: sysinfo.csv, with current column names whatever the file calls them.
class SysInfo {
 public:
  /// In the order of the file.
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }
  /// The value, "" when the file has no such column.
  std::string_view get(std::string_view name) const;
  /// The value as a number; NaN when it is missing or not a number.
  double number(std::string_view name) const;
  void set(std::string_view name, std::string value);

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Reads only sysinfo.csv, for the architecture, from a folder that find_workload() returned.
Result<SysInfo> read_sysinfo(const std::string& folder);

}  // namespace tacho::workload
