// The options of `tacho analyze`: where their values go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/analyze/face.h"
#include "cli/shared/command_options.h"
#include "metric/analysis/analysis.h"
#include "metric/render/text/text_options.h"

namespace tacho::cli::analyzing {

struct AnalyzeArguments {
  std::vector<std::string> paths;
  std::string baseline;
  metric::AnalysisOptions analysis;
  metric::TextOptions text;
  std::vector<std::string> include_columns;
  std::vector<std::string> memory_levels;
  std::string sort = "kernels", sampling_sort = "count", axes = "fit";
  std::string ratio, compat, ids = "3.3", format = "text", output_name, save_folder, specs;
  std::string time_unit;  // empty: ns, and on the first screen what suits
  std::vector<std::string> explain;
  std::optional<std::string> list_metrics, list_blocks;
  std::optional<double> fail_above;
  std::string fail_above_text;
  std::optional<std::string> gui;
  bool random_port = false;
  bool overwrite = false, no_advice = false, ignored = false, experimental = false;
  bool list_operators = false, names_output = false;
  bool speed_of_light = false, memory_chart = false, roofline = false;  // shortcuts for -b
  std::optional<std::vector<std::string>> operators;                    // patterns; none given = all
  int ignored_level = 5;
};

/// Declares the options on `app`; parsing fills in `a`.
void add_options(CommandOptions& app, AnalyzeArguments& a, AnalyzeFace face);

}  // namespace tacho::cli::analyzing
