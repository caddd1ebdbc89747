// What an export is asked for: which events, under which names, and into which file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/progress.h"
#include "trace/trace.h"
#include "walk/filter.h"

namespace tacho::format {

struct ExportOptions : walk::EventFilter, walk::Naming {
  bool overwrite = false;
  bool kernel_rename = false;  // kernels take the name of the innermost marker around them
  bool extra_columns = false;  // csv: columns that rocprofv3 does not have
  bool statistics = false;     // csv: also *_stats.csv files
  bool owners = true;          // csv: also process_info.csv, of traces with several processes or a rank
  uint64_t minimum_bytes = 0;  // csv: write no file if all together would be smaller
  int rpd_schema = 2;
  bool gpu_model = true;                        // pftrace: device work in Perfetto's model of GPUs, not as slices
  bool rocprof_sys = false;                     // pftrace: tracks, categories and samples like rocprof-sys
  bool annotations = true;                      // pftrace: write the events' arguments
  report::Progress* progress = nullptr;         // gets updates now and then; may be null
  std::vector<std::string>* remarks = nullptr;  // gets sentences about what was left out; may be null

  /// Tells the user once what was left out.
  void remark(std::string sentence) const;
  /// Says how many operations lack their call because walk::CallIndex forgot it, if any do.
  void remark_forgotten(int64_t forgotten) const;
};

/// Where an export goes: a file (single-file formats), or a folder and a file prefix (csv).
struct ExportTarget {
  std::string file;
  std::string folder;
  std::string prefix;  // "<pid>" -> "<pid>_kernel_trace.csv"
};

}  // namespace tacho::format
