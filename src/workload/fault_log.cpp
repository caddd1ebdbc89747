// Counting of faults (fault_log.h).
#include "workload/fault_log.h"

#include <utility>

#include "base/format.h"

namespace tacho::workload {

void FaultLog::add(std::string_view kind, std::string_view consequence, uint64_t row, std::string detail) {
  for (Fault& fault : faults_)
    if (fault.kind == kind) {
      ++fault.count;
      return;
    }
  faults_.push_back({std::string(kind), std::string(consequence), std::move(detail), row, 1});
}

void FaultLog::report(std::vector<std::string>& warnings) const {
  for (const Fault& fault : faults_) {
    const std::string detail = fault.detail.empty() ? "" : fmt::format(" ({})", fault.detail);
    if (fault.count == 1) {
      warnings.push_back(
          fmt::format("{}: row {}: {}{}; {}", file_, fault.first_row, fault.kind, detail, fault.consequence));
    } else {
      warnings.push_back(fmt::format("{}: {} times, first in row {}: {}{}; {}", file_, fault.count, fault.first_row,
                                     fault.kind, detail, fault.consequence));
    }
  }
}

}  // namespace tacho::workload
