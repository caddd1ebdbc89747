// A kernel dispatch of a profile folder, its identity, and which of its values are read.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "workload/counter_table.h"

namespace tacho::workload {

/// One kernel dispatch; its counters are in row i of every pass.
struct Dispatch {
  int64_t id = 0;       ///< Dispatch_ID of the file
  int64_t gpu = 0;      ///< GPU_ID
  uint32_t kernel = 0;  ///< index into Workload::kernels
};

struct ReadOptions {
  WantedColumns wanted;
  /// Follow rocprof-compute 3.3 even where tacho does better: match level passes by row number instead of by kernel,
  /// and keep rows with contradictory times.
  bool compat = false;
  /// In a folder of tacho profile: the run to read, together with all runs of the same command and filters. 0 = the
  /// newest.
  int run = 0;
};

inline constexpr std::string_view kStart = "Start_Timestamp";
inline constexpr std::string_view kEnd = "End_Timestamp";

/// Columns that describe a dispatch besides its counters. The timestamps are the last two.
inline constexpr std::array<std::string_view, 9> kIdColumns = {
    "Grid_Size",
    "Workgroup_Size",
    "LDS_Per_Workgroup",
    "Scratch_Per_Workitem",
    "Arch_VGPR",
    "Accum_VGPR",
    "SGPR",
    kStart,
    kEnd,
};

/// True for the id columns that formulas may use besides counters: Grid_Size, Start_Timestamp, ... Timestamps are
/// stored relative to the first one of their table, so that their differences are exact.
bool is_id_column(std::string_view name);

/// The kernel name by which rows of per-pass files are matched: without rocprof's suffixes " [clone .kd]" and ".kd".
std::string_view plain_kernel_name(std::string_view name);

}  // namespace tacho::workload
