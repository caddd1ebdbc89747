// The table of analyze's options (options.h).
#include "cli/analyze/options.h"

#include <span>

#include "cli/options/bound_options.h"

namespace tacho::cli::analyzing {
namespace {

using metric::AnalysisOptions;
using metric::TextOptions;
using options::at;
using options::optional_value;
using options::OptionRow;
using options::shows_default;

template <auto Member>
constexpr auto* analysis_at = at<&AnalyzeArguments::analysis, Member>;
template <auto Member>
constexpr auto* text_at = at<&AnalyzeArguments::text, Member>;

constexpr OptionRow<AnalyzeArguments> kSelection[] = {
    {"-p,--path,paths", at<&AnalyzeArguments::paths>, "profile folder; several are compared with the first", "DIR"},
    {"-b,--block", analysis_at<&AnalysisOptions::blocks>,
     "only these blocks, tables or metrics: 2, 11.2, 11.2.3, lds, valu-utilization", "ID"},
    {"--speed-of-light", at<&AnalyzeArguments::speed_of_light>, "as -b 2, beside what -b chooses"},
    {"--memory-chart", at<&AnalyzeArguments::memory_chart>, "as -b 3"},
    {"--roofline", at<&AnalyzeArguments::roofline>, "as -b 4"},
    {"-k,--kernel", analysis_at<&AnalysisOptions::kernels>,
     "only these kernels: ids of table 0.1, names, regular expressions", "KERNEL"},
    {"-d,--dispatch", analysis_at<&AnalysisOptions::dispatches>, "only these dispatches: 3, 2:5, '> 10'", "ID"},
    {"--full", text_at<&TextOptions::full>, "every table; without it, and without -b, one screen with the findings"},
    {"--per-kernel", text_at<&TextOptions::per_kernel>, "every table once for each kernel"},
    {"--errors", text_at<&TextOptions::errors>,
     "beside each mean how far it may be off (95 %), where launches were repeated"},
    {"--explain", at<&AnalyzeArguments::explain>, "how these metrics come about on this run, step by step", "METRIC"},
    {"--baseline", at<&AnalyzeArguments::baseline>, "the folder that the others are compared with", "DIR"},
    {"--report-diff", text_at<&TextOptions::report_diff>, "several runs: mark changes above this many percent", "PCT"},
    {"--fail-above", at<&AnalyzeArguments::fail_above_text>,
     "several runs: exit 3 when a metric changed by more than this many percent (1 or 1%)", "PCT"},
    {"-n,--normal-unit", analysis_at<&AnalysisOptions::normalisation>, "what counts are divided by", "UNIT",
     "per_wave per_cycle per_second per_kernel", shows_default()},
    {"-t,--time-unit", at<&AnalyzeArguments::time_unit>,
     "s, ms, us or ns (default: ns, and on the first screen what suits each time)", "UNIT", "s ms us ns"},
    {"--no-advice", at<&AnalyzeArguments::no_advice>, "no findings"},
    {"--gpu-id", analysis_at<&AnalysisOptions::gpus>, "only dispatches on these GPUs", "ID"},
    {"--list-stats", text_at<&TextOptions::statistics_only>, "only the kernels and dispatches of the run"},
    {"--list-metrics,--list-available-metrics", at<&AnalyzeArguments::list_metrics>, "all metrics of an architecture",
     "ARCH", "", optional_value()},
    {"--list-blocks", at<&AnalyzeArguments::list_blocks>, "all blocks and their short names", "ARCH", "",
     optional_value()},
    {"--max-stat-num", text_at<&TextOptions::max_stat_num>, "rows of the Top Stats tables", "N", "", shows_default()},
    {"--decimal", text_at<&TextOptions::decimals>, "decimals of printed numbers", "N", "",
     shows_default().within(0, 15)},
    {"--cols", text_at<&TextOptions::columns>, "only these columns: numbers from 0, or titles", "COLUMN"},
    {"--include-cols", at<&AnalyzeArguments::include_columns>, "columns that are hidden: Description", "COLUMN"},
    {"--config-dir", analysis_at<&AnalysisOptions::config_dirs>, "folder with metric or rule YAML of your own", "DIR"},
};
constexpr OptionRow<AnalyzeArguments> kCompatibility[] = {
    options::heading<AnalyzeArguments>("Values as other versions and documents have them"),
    {"--ratio", at<&AnalyzeArguments::ratio>,
     "ratios over several dispatches: sum = ratio of totals (default; 3.7 on), avg = mean of ratios (--compat 3.3)",
     "KIND", "avg sum"},
    {"--ids", at<&AnalyzeArguments::ids>, "what numbers mean: 3.3, or seed as in the users' documents", "SCHEME",
     "3.3 seed", shows_default()},
    {"--compat", at<&AnalyzeArguments::compat>,
     "3.3: values as rocprof-compute 3.3 gives them, its faults and its means of ratios included", "VERSION", "3.3"},
    {"--specs-correction", at<&AnalyzeArguments::specs>, "overrides values of sysinfo.csv: max_sclk:2100,max_mclk:1300",
     "NAME:VALUE,..."},
};
constexpr OptionRow<AnalyzeArguments> kOutputs[] = {
    {"--output-format", at<&AnalyzeArguments::format>,
     "text, json, csv, html, svg: the roofline alone, or db: the SQLite database that ROCm Optiq opens", "FORMAT",
     "text json csv html svg db stdout txt", shows_default()},
    {"-o,--output-name,--output", at<&AnalyzeArguments::output_name>, "write there instead of to standard output",
     "NAME"},
    {"--save-dfs", at<&AnalyzeArguments::save_folder>, "also write every table as a csv file into this folder", "DIR"},
};
constexpr OptionRow<AnalyzeArguments> kRoofline[] = {
    {"--roofline-axes", at<&AnalyzeArguments::axes>,
     "of the svg: fit, points (their decades alone) or whole (0.01 to 1000 FLOP/byte)", "RANGE", "fit points whole",
     shows_default()},
    {"--pc-sampling-sorting-type", at<&AnalyzeArguments::sampling_sort>,
     "table 21.1 by count, or by source line (offset)", "KIND", "count offset", shows_default()},
    {"--pc-sampling-rows", text_at<&TextOptions::sample_rows>,
     "rows of table 21.1, 0 for all (default: --max-stat-num)", "N", "", options::within(0, 1 << 30)},
    {"--sort,--roofline-sort", at<&AnalyzeArguments::sort>, "roofline points of kernels or dispatches", "KIND",
     "kernels dispatches", shows_default()},
};
constexpr OptionRow<AnalyzeArguments> kPages[] = {
    {"--gui", at<&AnalyzeArguments::gui>,
     "serve the HTML report on 127.0.0.1 until Ctrl-C; its address goes to standard output", "PORT", "",
     optional_value()},
    {"--random-port", at<&AnalyzeArguments::random_port>, "--gui takes any free port"},
    {"--overwrite", at<&AnalyzeArguments::overwrite>, "outputs may replace files"},
    {"--list-torch-operators", at<&AnalyzeArguments::list_operators>,
     "operators of PyTorch in the folder (profile --torch-trace): calls, kernels, device time"},
};

}  // namespace

void add_options(CommandOptions& app, AnalyzeArguments& a, AnalyzeFace face) {
  std::optional<Error> none;  // no option goes to a function
  const auto declare = [&](std::span<const OptionRow<AnalyzeArguments>> rows) { options::declare(app, rows, a, none); };
  declare(kSelection);
  app.add_option("--run", a.analysis.run, "of a folder with several runs of tacho profile: the number of one")
      .positive()
      .type_name("N");
  declare(kOutputs);
  app.add_option("-R,--roofline-data-type,--roofline-data-types", a.text.data_types,
                 face == AnalyzeFace::kTacho
                     ? "data types of the roofs: FP32, FP64, I8, ... (default: those that the kernels use)"
                     : "data types of the roofs: FP32, FP64, I8, ... (default: FP32)")
      .one_of({"FP4", "FP6", "FP8", "FP16", "BF16", "TF32", "FP32", "FP64", "I8", "I32", "I64"})
      .expected(1, -1)
      .type_name("TYPE");
  declare(kRoofline);
  app.add_option("-m,--mem-level,--roofline-mem-level", a.memory_levels, "memory roofs: HBM, L2, vL1D, LDS")
      .one_of_ignoring_case({"HBM", "L2", "vL1D", "LDS", "ALL"})
      .expected(1, -1)
      .type_name("LEVEL");
  declare(kPages);
  app.add_list_function(
         "--torch-operator",
         [&a](const std::vector<std::string>& patterns) {
           a.operators.emplace();
           for (const std::string& each : patterns)
             if (!each.empty()) a.operators->push_back(each);
         },
         "tables for each operator that matches: '*conv2d', '*/*conv2d', torch.nn.functional.relu; all without one")
      .expected(0, -1)
      .type_name("GLOB");
  declare(kCompatibility);
  if (face == AnalyzeFace::kRocprofCompute) {
    app.add_flag("-q,--quiet", a.ignored, "accepted, changes nothing");
    app.add_flag("-V,--verbose", a.ignored, "accepted, changes nothing");
    app.add_flag("--experimental", a.experimental, "allows --list-torch-operators and --torch-operator");
    app.add_option("--kernel-verbose", a.ignored_level, "accepted, changes nothing: names are shown as recorded")
        .between(1, 5);
  }
}

}  // namespace tacho::cli::analyzing
