// Whose the work of a device is: its host and rank, for tables with a row for each device of a trace of many processes.
#pragma once

#include <cstdint>
#include <string>

#include "event/schema.h"
#include "trace/trace.h"

namespace tacho::walk {

class WorkOwner {
 public:
  /// `process`: of work that the device did, a row.
  void see(const trace::Trace& trace, int64_t process);
  /// Empty = not told, or several.
  const std::string& host() const { return host_; }
  /// kUnknown = none, or several.
  int64_t rank() const { return rank_; }

 private:
  bool any_ = false;
  std::string host_;
  int64_t rank_ = event::kUnknown;
};

/// Whether a table needs these columns: the processes of the trace have different hosts or ranks.
bool has_several_owners(const trace::Trace& trace);

}  // namespace tacho::walk
