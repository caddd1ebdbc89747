// Plans a run of system profiling from its settings: what to record and what to write.
#pragma once

#include <string>
#include <vector>

#include "base/files/output_claim.h"
#include "cli/files/export_trace.h"
#include "cli/sys/request.h"
#include "format/format.h"
#include "format/timemory/timemory.h"
#include "launch/launcher.h"

namespace tacho::cli::sys {

struct Plan {
  launch::LaunchOptions launch;  ///< including the Recording
  bool trace = true, profile = false, rocpd = false;
  format::ExportOptions exports;
  format::timemory::Options tables;
  std::vector<std::string> components;
  bool sampling = false;
  OutputClaim claim;  ///< on the .tacho file
  ExportPlace also;   ///< tacho: the file of another format that -o names, written beside the recording
  const format::Writer* also_by = nullptr;  ///< null = -o names none
  std::string folder, prefix;               // rocprof-sys: where its files go
};

/// Turns settings into a plan. May preset settings that others imply; adds remarks for the user to `request`.
Result<Plan> make_plan(Request& request);

}  // namespace tacho::cli::sys
