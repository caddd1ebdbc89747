// Options of an analysis's text: reports and screens.
#pragma once

#include <string>
#include <vector>

#include "report/text.h"

namespace tacho::metric {

struct TextOptions {
  bool boxed = false;  ///< rocprof-compute's look: Metric_ID column, box grid, every table with its own heading
  int decimals = 2;
  size_t max_stat_num = 10;          ///< rows of the Top Stats tables
  int sample_rows = -1;              ///< of table 21.1; 0 = all, -1 = max_stat_num
  std::vector<std::string> columns;  ///< --cols: numbers from 0 or titles; empty = all
  bool description = false;          ///< --include-cols Description
  bool chosen_unit = false;          ///< the user chose a unit of time: the first screen prints no other
  bool errors = false;               ///< --errors: how far each mean may be off, as repeats of a launch tell
  bool statistics_only = false;      ///< --list-stats
  bool per_kernel = false;
  bool full = false;       ///< every table; else the first screen alone, unless -b or a table's option asks for tables
  double report_diff = 0;  ///< several runs: mark what changed by more than this many percent
  bool roofline_dispatches = false;        ///< a point for every dispatch instead of every kernel
  std::vector<std::string> memory_levels;  ///< roofs of these only: "hbm", "l2", "l1", "lds"; empty: all
  /// of the roofs; empty: those that the kernels use, each under its own
  std::vector<std::string> data_types;
  report::Screen screen;
};

}  // namespace tacho::metric
