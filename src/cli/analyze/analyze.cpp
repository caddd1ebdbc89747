// `tacho analyze`: metrics, roofline and findings of profile folders.
#include "cli/analyze/analyze.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/files/output_file.h"
#include "base/files/temporary.h"
#include "base/text/csv.h"
#include "cli/analyze/options.h"
#include "cli/command.h"
#include "cli/profile/profile.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "counter/provider.h"
#include "metric/analysis/analysis.h"
#include "metric/analysis/compare.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/render/database/analysis_database.h"
#include "metric/render/page/html.h"
#include "metric/render/page/json.h"
#include "metric/render/page/roofline_svg.h"
#include "metric/render/text/columns.h"
#include "metric/render/text/text.h"
#include "report/html.h"
#include "report/output.h"
#include "report/server/page_server.h"
#include "report/value.h"
#include "workload/runs.h"
#include "workload/torch_trace.h"
#include "workload/writer.h"

namespace tacho::cli {

namespace {

using analyzing::AnalyzeArguments;
using report::AnswerFormat;
using report::Unit;

/// Prints a list of all metrics of an architecture in the layout of the users' documents.
Status list_catalog(const std::string& architecture, const AnalyzeArguments& arguments, bool metrics) {
  const std::vector<std::string>& folders = arguments.analysis.config_dirs;
  TACHO_ASSIGN(const auto known, metric::architecture_named(architecture, folders, metric::check_syntax));
  const std::string name = known ? std::string(known->name) : architecture;
  TACHO_ASSIGN(const metric::Catalog catalog, metric::load_catalog(name, folders, metric::check_syntax));
  // People read a list next to a profile run, so its seed ids are those of the profile document.
  const std::string out = metrics ? list_of_metrics(catalog, arguments.ids == "seed") : list_of_blocks(catalog);
  report::put(out);
  if (metrics && arguments.ids == "seed") complain_of_seed_ids(catalog);
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> parse_corrections(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> corrections;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    const std::string item = text.substr(from, to - from);
    from = to + 1;
    const size_t colon = item.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == item.size())
      return fail("--specs-correction '{}': expected name:value,name:value, as in max_sclk:2100", item);
    const std::string name = item.substr(0, colon), value = item.substr(colon + 1);
    if (metric::is_specification(name)) {
      const CellNumber number = parse_number(value);
      if (!number.ok || !(number.value >= 0) || !std::isfinite(number.value))
        return fail("--specs-correction {}: '{}' is not a number", name, value);
    } else if (name != "gpu_arch" && name != "gpu_model" && name != "gpu_series") {
      std::string known;
      for (const std::string_view each : metric::specifications())
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
      return fail("--specs-correction: there is no value '{}'; known are {}, gpu_arch, gpu_model, gpu_series", name,
                  known);
    }
    corrections.emplace_back(name, value);
  }
  return corrections;
}

// The file name with the format's extension added, unless it has one.
std::string with_ending(const std::string& name, std::string_view format) {
  if (is_standard_output(name)) return name;
  const size_t slash = name.rfind('/');
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos && (slash == std::string::npos || dot > slash)) return name;
  return fmt::format("{}.{}", name, format == "text" ? "txt" : format);
}

Status save_tables(const metric::Analysis& run, const std::string& folder, const AnalyzeArguments& arguments) {
  TACHO_TRY(create_folders(folder));
  std::vector<OutputFile> files;
  for (const metric::SavedTable& saved : metric::saved_tables(run, arguments.text)) {
    TACHO_ASSIGN(OutputFile file, OutputFile::create(folder + "/" + saved.file, arguments.overwrite));
    file.write(report::to_csv(saved.table));
    files.push_back(std::move(file));
  }
  return OutputFile::commit_all(files);
}

// The port given with --gui; nullopt if there is none.
Result<std::optional<uint16_t>> parse_port(const std::string& text) {
  if (text.empty()) return std::optional<uint16_t>();
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0)
    return fail("--gui {}: a port is a number from 1 to 65535", text);
  return std::optional<uint16_t>(port);
}

// Writes the page with only the roofline, for all runs that have one, to the current directory like rocprof-compute,
// never into the workload. It replaces an older page of tacho's.
Status write_roofline_page(const AnalyzeArguments& a, std::span<const metric::Analysis> all) {
  metric::AnalysisOptions options = a.analysis;
  options.blocks = {"4"};
  options.advice = false;
  options.every_normalisation = true;
  std::vector<metric::Analysis> runs;
  for (const metric::Analysis& run : all) {
    if (run.workload().ceilings.empty()) continue;
    TACHO_ASSIGN(metric::Analysis only, metric::Analysis::run(run.workload().path, options));
    if (!only.kernel_points().empty()) runs.push_back(std::move(only));
  }
  if (runs.empty()) return {};
  std::string device(runs.front().workload().sysinfo.get("gpu_model"));
  if (device.empty()) device = runs.front().catalog().architecture;
  for (char& c : device)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  TACHO_ASSIGN(const std::string page, metric::to_html(runs));
  const std::string wanted = fmt::format("roofline_{}.html", device);
  const std::string name = report::is_own_page(wanted) ? wanted : free_name(wanted);
  TACHO_ASSIGN(OutputFile file, OutputFile::create(name, name == wanted));
  file.write(page);
  TACHO_TRY(file.commit());
  std::error_code ignored;
  report::print_error("Roofline plot: {}\n", (std::filesystem::current_path(ignored) / name).string());
  return {};
}

// Operators of PyTorch

// The operators of the folder's run that --run chooses.
Result<workload::TorchTrace> torch_operators(const AnalyzeArguments& a, const std::string& path) {
  TACHO_ASSIGN(const std::string folder, workload::find_workload(path));
  TACHO_ASSIGN(const std::vector<workload::RunEntry> runs, workload::read_runs(folder));
  std::vector<std::string> files;
  if (!runs.empty()) {
    TACHO_ASSIGN(const std::vector<size_t> chosen, workload::choose_runs(runs, a.analysis.run, folder));
    for (const size_t each : chosen) files.insert(files.end(), runs[each].files.begin(), runs[each].files.end());
  }
  TACHO_ASSIGN(workload::TorchTrace trace, workload::read_torch_trace(folder, files));
  for (const std::string& note : trace.notes) complain(kOk, note);
  return trace;
}

// "Graph 1: graph of 110 nodes: ..., 50 launches" and the operators that made its nodes.
std::string graph_text(const workload::TorchTrace& trace, const report::TextStyle& style,
                       const report::Screen& screen) {
  std::string out =
      "\nInside CUDA graphs, which counters measure as a whole; times from the run that recorded the operators\n";
  for (size_t first = 0; first < trace.graph_parts.size();) {
    const workload::TorchGraphPart& graph = trace.graph_parts[first];
    size_t end = first;
    int64_t whole = 0;
    for (; end < trace.graph_parts.size() && trace.graph_parts[end].number == graph.number &&
           trace.graph_parts[end].graph == graph.graph;
         ++end)
      whole += trace.graph_parts[end].ns;
    const std::string title = fmt::format("Graph {}: {}, {} launch{}", graph.number, graph.graph, graph.launches,
                                          graph.launches == 1 ? "" : "es");
    out += "\n" + (screen.terminal ? report::wrapped(title, screen.width, 2) : title) + "\n";
    report::Answer answer;
    answer.columns = {{"", "A launch", Unit::kNs},
                      {"", "% of graph", Unit::kPercent},
                      {"", "Kernels", Unit::kCount},
                      {.title = "Operator", .cut = report::Cut::kPath}};
    const int64_t launches = std::max<int64_t>(1, graph.launches);
    for (; first < end; ++first) {
      const workload::TorchGraphPart& part = trace.graph_parts[first];
      answer.rows.push_back(
          {static_cast<double>(part.ns) / static_cast<double>(launches),
           whole > 0 ? report::Cell(100.0 * static_cast<double>(part.ns) / static_cast<double>(whole)) : report::Cell(),
           part.kernels / launches, part.name.empty() ? "(no operator)" : part.name});
    }
    out += report::to_text(report::readable_table(answer), style);
  }
  return out;
}

Status list_operators(const AnalyzeArguments& a, AnalyzeFace face) {
  for (const std::string& path : a.paths) {
    TACHO_ASSIGN(const workload::TorchTrace trace, torch_operators(a, path));
    std::vector<const workload::TorchOperator*> sorted;
    double whole = 0;
    for (const workload::TorchOperator& each : trace.operators) {
      sorted.push_back(&each);
      whole += each.kernel_ns;
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto* one, const auto* other) { return one->kernel_ns > other->kernel_ns; });
    report::Answer answer;
    answer.columns = {{"Operator_Name", "Operator"},           {"Calls", "Calls", Unit::kCount},
                      {"Dispatches", "Kernels", Unit::kCount}, {"Kernels", "", Unit::kCount},
                      {"Kernel_Ns", "Kernel time", Unit::kNs}, {.name = "Context"},
                      {"", "% of kernels", Unit::kPercent}};
    answer.columns[0].cut = report::Cut::kPath;
    answer.shown = {4, 6, 1, 2, 0};
    for (const workload::TorchOperator* const each : sorted)
      answer.rows.push_back({each->name, static_cast<int64_t>(each->calls),
                             static_cast<int64_t>(each->dispatches.size()), static_cast<int64_t>(each->kernels.size()),
                             each->kernel_ns, fmt::format("{}", fmt::join(each->contexts, " ")),
                             whole > 0 ? report::Cell(100 * each->kernel_ns / whole) : report::Cell()});
    std::string out;
    const AnswerFormat form = report::face_of(a.format);
    if (form == AnswerFormat::kCsv) {
      out = report::to_csv(report::exact_table(std::move(answer)));
    } else if (form == AnswerFormat::kJson) {
      out = report::JsonValue::table(std::move(answer)).text() + "\n";
    } else {
      const report::Screen screen = report::screen_of(STDOUT_FILENO);
      report::TextStyle style;
      style.border = face == AnalyzeFace::kRocprofCompute ? report::Border::kBox : report::Border::kPlain;
      style.width = screen.fit();
      style.colour = screen.colour;
      if (a.paths.size() > 1) out += path + "\n";
      out += report::to_text(report::readable_table(answer), style);
      if (!trace.graph_parts.empty()) out += graph_text(trace, style, screen);
    }
    report::put(out);
  }
  return {};
}

// The tables once for each operator that matches, over its dispatches alone.
Status analyze_operators(AnalyzeArguments& a, AnalyzeFace face) {
  if (a.paths.size() > 1) return fail("--torch-operator shows one run; give one folder");
  if (a.format != "text" || !a.output_name.empty() || !a.save_folder.empty() || a.gui || a.random_port)
    return fail(
        "--torch-operator prints text; --list-torch-operators --output-format csv gives the operators to programs, and "
        "torch_trace/consolidated.csv their counters");
  TACHO_ASSIGN(const workload::TorchTrace trace, torch_operators(a, a.paths.front()));
  std::vector<const workload::TorchOperator*> chosen;
  for (const workload::TorchOperator& each : trace.operators)
    if (a.operators->empty() || std::any_of(a.operators->begin(), a.operators->end(), [&](const std::string& pattern) {
          return workload::torch_operator_matches(pattern, each.name);
        }))
      chosen.push_back(&each);
  if (chosen.empty() &&
      std::any_of(trace.graph_parts.begin(), trace.graph_parts.end(), [&](const workload::TorchGraphPart& part) {
        return workload::torch_operator_matches(a.operators->front(), part.name);
      }))
    return fail("--torch-operator {}: its kernels ran inside CUDA graphs, which counters measure as a whole; "
                "--list-torch-operators shows what is in them, -k 'CUDA graph' their counters",
                a.operators->front());
  if (chosen.empty())
    return fail("--torch-operator{}: no operator matches; --list-torch-operators shows all {}",
                a.operators->empty() ? "" : " " + a.operators->front(), trace.operators.size());
  a.text.boxed = face == AnalyzeFace::kRocprofCompute;
  a.text.screen = report::screen_of(STDOUT_FILENO);
  size_t shown = 0;
  for (const workload::TorchOperator* const each : chosen) {
    a.analysis.within = each->dispatches;
    auto run = metric::Analysis::run(a.paths.front(), a.analysis);
    if (!run && chosen.size() > 1) continue;  // -k or -d leave nothing of this one
    if (!run) return fail("{}: {}", each->name, run.error().message);
    if (shown == 0)
      for (const std::string& warning : run->warnings()) complain(kOk, warning);
    std::string head = fmt::format("{}Operator {}: {} call{}, {} dispatch{}, {}\n", shown++ > 0 ? "\n" : "", each->name,
                                   each->calls, each->calls == 1 ? "" : "s", each->dispatches.size(),
                                   each->dispatches.size() == 1 ? "" : "es", report::format_duration(each->kernel_ns));
    std::vector<metric::Analysis> one;
    one.push_back(std::move(*run));
    TACHO_TRY(metric::check_columns(one.front().catalog(), a.text.columns));
    report::put(head + "\n" + metric::to_text(one, a.text));
  }
  if (shown == 0) return fail("--torch-operator: -k, -d and --gpu-id leave nothing of the operators that match");
  return {};
}

Status serve(std::string page, std::optional<uint16_t> port, bool anywhere) {
  TACHO_ASSIGN(report::PageServer server, anywhere ? report::PageServer::listen_anywhere(std::move(page))
                                                   : report::PageServer::listen(std::move(page), port));
  report::print("{}\n", server.url());
  report::flush_output();
  report::put("tacho: serving this report to browsers on this machine until Ctrl-C\n", report::Stream::kError);
  return server.serve();
}

Status print_catalog(const AnalyzeArguments& a) {
  std::string name = a.list_metrics.value_or(a.list_blocks.value_or(""));
  if (name.empty() && !a.paths.empty()) {
    TACHO_ASSIGN(const std::string folder, workload::find_workload(a.paths.front()));
    TACHO_ASSIGN(const workload::SysInfo info, workload::read_sysinfo(folder));
    name = info.get("gpu_arch");
  }
  if (name.empty()) {
    std::string known;
    for (const std::string_view each : metric::architectures())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
    return fail("{} needs an architecture ({}) or a profile folder with -p",
                a.list_metrics ? "--list-metrics" : "--list-blocks", known);
  }
  return list_catalog(name, a, a.list_metrics.has_value());
}

// Checks what the options say together, and brings their words into the form that the analysis takes.
Status complete(AnalyzeArguments& a, AnalyzeFace face) {
  if (!a.baseline.empty()) a.paths.insert(a.paths.begin(), a.baseline);
  if (a.paths.empty()) return fail("which profile folder? give it with -p DIR");
  if (!a.fail_above_text.empty()) {
    std::string text = a.fail_above_text;
    if (text.back() == '%') text.pop_back();
    while (!text.empty() && text.back() == ' ') text.pop_back();
    const CellNumber number = parse_number(text);
    if (text.empty() || !number.ok || !(number.value >= 0) || !std::isfinite(number.value))
      return fail("--fail-above {}: expected a number of percent, as in 1 or 0.5%", a.fail_above_text);
    a.fail_above = number.value;
  }
  for (const auto& [wanted, block] :
       {std::pair(a.speed_of_light, "2"), std::pair(a.memory_chart, "3"), std::pair(a.roofline, "4")})
    if (wanted) a.analysis.blocks.emplace_back(block);
  // Upstream's 3.3 took means of ratios.
  a.analysis.sum_ratios = a.ratio.empty() ? a.compat.empty() : a.ratio == "sum";
  if (a.fail_above && a.paths.size() < 2) return fail("--fail-above compares runs; give at least two with -p");
  for (size_t i = 0; i < a.paths.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (a.paths[i] == a.paths[j])
        return fail("{}: given twice; a run compared with itself shows nothing", a.paths[i]);
  // Upstream's formats are files: without a name they get one that is new each time.
  if (face == AnalyzeFace::kRocprofCompute && a.output_name.empty() && !a.gui && !a.random_port && !a.list_operators &&
      !a.operators &&
      (a.format == "txt" || a.format == "db" ||
       (report::face_of(a.format) == AnswerFormat::kCsv && a.paths.size() == 1))) {
    a.output_name = fmt::format("rocprof_compute_{}", random_name());
    a.names_output = true;
  }
  if (a.format == "stdout" || a.format == "txt") a.format = "text";
  a.text.chosen_unit = !a.time_unit.empty();
  if (a.text.chosen_unit) a.analysis.time_unit = a.time_unit;
  a.analysis.sort_samples_by_source = a.sampling_sort == "offset";
  a.analysis.compat = !a.compat.empty();
  a.analysis.ids = a.ids == "seed" ? metric::IdScheme::kSeedAnalyze : metric::IdScheme::kV33;
  // Upstream's text has no findings; a page is ours under any name.
  const bool page = a.format == "html" || a.gui || a.random_port;
  a.analysis.advice = !a.no_advice && (face == AnalyzeFace::kTacho || page);
  if (a.text.per_kernel && a.paths.size() > 1) return fail("--per-kernel shows one run; give one folder");
  for (const std::string& column : a.include_columns) {
    if (column != "Description" && column != "description")
      return fail("--include-cols {}: there is no such hidden column; there is Description", column);
    a.text.description = true;
  }
  a.text.roofline_dispatches = a.sort == "dispatches";
  // Options of the roofline imply its table.
  a.text.full = a.text.full || a.text.roofline_dispatches || !a.memory_levels.empty() || !a.text.data_types.empty();
  for (const std::string& level : a.memory_levels) {
    std::string name = level;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "all")
      a.text.memory_levels = {"hbm", "l2", "l1", "lds"};
    else
      a.text.memory_levels.push_back(name == "vl1d" ? "l1" : name);
  }
  TACHO_ASSIGN(a.analysis.specs_correction, parse_corrections(a.specs));
  return {};
}

// Where the report goes.
struct Destination {
  bool csv_folder = false;
  std::string file;                  // empty: standard output
  std::optional<OutputFile> output;  // opened before any work, so that a taken name fails at once
  bool database = false;             // in `file`
  std::optional<uint16_t> port;      // of --gui
};

Result<Destination> open_destination(AnalyzeArguments& a) {
  Destination to;
  to.csv_folder = report::face_of(a.format) == AnswerFormat::kCsv && !a.output_name.empty() &&
                  !a.output_name.ends_with(".csv") && !is_standard_output(a.output_name);
  to.file = a.output_name.empty() || to.csv_folder ? a.output_name : with_ending(a.output_name, a.format);
  to.database = a.format == "db";
  if (to.database && (to.file.empty() || is_standard_output(to.file)))
    return fail("--output-format db writes a file; name it with --output-name NAME");
  if (!to.file.empty() && !to.csv_folder && !to.database) {
    TACHO_ASSIGN(to.output, OutputFile::create(to.file, a.overwrite));
  }
  if (a.gui || a.random_port) {
    TACHO_ASSIGN(to.port, parse_port(a.gui.value_or("")));
    if (a.random_port && to.port) return fail("--gui {} and --random-port contradict each other", *to.port);
    if (!to.file.empty() || to.csv_folder || a.format != "text")
      return fail("--gui serves the report; --output-format and --output-name write one: give one of them");
    a.format = "html";
  }
  return to;
}

// --errors where no mean has one: says why.
void explain_no_errors(const metric::Analysis& run, bool per_kernel) {
  const std::vector<uint32_t>& repeats = run.repeats();  // empty: of no launch
  const auto has_error = [](const metric::ResultTable& table) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [](const metric::ResultRow& row) { return row.error.has_value(); });
  };
  const std::vector<metric::ResultTable>& tables = run.all().tables;
  if (!per_kernel && std::any_of(tables.begin(), tables.end(), has_error)) return;
  std::map<std::pair<uint32_t, uint32_t>, size_t> launches;  // kernel and launch: its dispatches
  for (const uint32_t row : run.rows())
    ++launches[{run.workload().dispatches[row].kernel, repeats.empty() ? row : repeats[row]}];
  std::set<uint32_t> kernels, lacking;
  size_t alone = 0;
  for (const auto& [launch, dispatches] : launches) {
    kernels.insert(launch.first);
    if (dispatches > 1) continue;
    lacking.insert(launch.first);
    ++alone;
  }
  if (alone == 0 && !per_kernel) complain(kOk, "no errors: the chosen tables hold no mean for which repeats give one");
  if (alone == 0 || (per_kernel && lacking.size() < kernels.size())) return;
  complain(kOk, fmt::format("no errors: {} {} no repeat (same kernel, grid, workgroup and LDS size)", alone,
                            alone == 1 ? "launch has" : "launches have"));
}

Result<std::vector<metric::Analysis>> analyze_all(AnalyzeArguments& a, AnalyzeFace face) {
  if (a.format == "svg" && a.analysis.blocks.empty()) a.analysis.blocks = {"4"};
  if (face == AnalyzeFace::kRocprofCompute && a.text.data_types.empty()) a.text.data_types = {"FP32"};
  a.analysis.every_normalisation = a.format == "html";
  a.analysis.errors = a.text.errors || a.format == "html" || a.format == "json";
  std::vector<metric::Analysis> runs;
  for (const std::string& path : a.paths) {
    if (const std::string other = face == AnalyzeFace::kTacho ? not_a_profile(path) : std::string(); !other.empty())
      return fail("{}", other);
    TACHO_ASSIGN(metric::Analysis analysis, metric::Analysis::run(path, a.analysis));
    for (const std::string& warning : analysis.warnings()) complain(kOk, warning);
    if (runs.empty())
      for (const std::string& note : analysis.id_notes()) complain(kOk, note);
    if (a.text.errors) explain_no_errors(analysis, a.text.per_kernel);
    runs.push_back(std::move(analysis));
  }
  return runs;
}

Result<std::string> render(const std::vector<metric::Analysis>& runs, const AnalyzeArguments& a) {
  if (a.format == "json") {
    return metric::to_json(runs, {a.text.per_kernel, false});
  } else if (a.format == "html") {
    return metric::to_html(runs);
  } else if (a.format == "svg") {
    metric::SvgOptions svg;
    svg.data_types = a.text.data_types;
    svg.memory_levels = a.text.memory_levels;
    svg.dispatches = a.text.roofline_dispatches;
    svg.axes = a.axes == "whole"    ? metric::RooflineAxes::kWhole
               : a.axes == "points" ? metric::RooflineAxes::kPoints
                                    : metric::RooflineAxes::kFit;
    return metric::roofline_svg(runs, svg);
  } else if (report::face_of(a.format) == AnswerFormat::kCsv) {
    return report::to_csv(metric::tidy_table(runs));
  } else {
    return metric::to_text(runs, a.text);
  }
}

Status write_report(const std::vector<metric::Analysis>& runs, const AnalyzeArguments& a, Destination& to,
                    AnalyzeFace face) {
  if (to.csv_folder) {
    if (runs.size() > 1)
      return fail("--output-format csv with a folder saves one run; give one -p, or NAME.csv for one table of all");
    TACHO_TRY(save_tables(runs.front(), a.output_name, a));
    return face == AnalyzeFace::kRocprofCompute ? metric::write_analysis_views(runs, a.output_name, a.overwrite)
                                                : Status();
  }
  if (to.database)
    return metric::write_analysis_database(runs, to.file, fmt::format("tacho {}", TACHO_PROGRAM_VERSION), a.overwrite);
  TACHO_ASSIGN(std::string out, render(runs, a));
  if (a.gui || a.random_port) return serve(std::move(out), to.port, a.random_port);
  if (!to.output) {
    report::put(out);
    return {};
  }
  to.output->write(out);
  return to.output->commit();
}

// The exit code of --fail-above, which judges the largest change against the first run.
Result<int> judge_changes(const std::vector<metric::Analysis>& runs, const AnalyzeArguments& a) {
  bool counts_only = false;
  for (const metric::Analysis& each : runs) {
    if (each.workload().estimated)
      return fail("{}: its counts are estimates (profile --max-time), which --fail-above does not judge; profile "
                  "it without --max-time",
                  each.workload().path);
    // A virtual GPU counts the same on every machine, but its times are those of the machine that ran it.
    if (const counter::Provider* const provider = counter::provider_of(each.catalog().vendor); provider != nullptr)
      counts_only = counts_only || provider->simulates();
  }
  const metric::LargestChange largest = metric::largest_change(runs, counts_only);
  if (largest.percent > *a.fail_above)
    return complain(
        kFailAbove,
        fmt::format("{} {}{} changed {} in run {} ({}), more than the {} % allowed", largest.id, largest.name,
                    largest.kernel.empty() ? "" : fmt::format(" of kernel {}", largest.kernel),
                    std::isinf(largest.percent) ? "from 0" : fmt::format("by {:.2f} %", largest.percent), largest.run,
                    runs[largest.run].workload().path, *a.fail_above));
  if (largest.judged == 0) return fail("--fail-above: the runs have no value in common, so there is nothing to judge");
  if (largest.missing > 0)
    complain(kOk, fmt::format("--fail-above judged {} values; {} of the first run are missing in another one",
                              largest.judged, largest.missing));
  return kOk;
}

Result<int> run(AnalyzeArguments& a, AnalyzeFace face) {
  if (a.list_metrics || a.list_blocks) {
    TACHO_TRY(print_catalog(a));
    return kOk;
  }
  TACHO_TRY(complete(a, face));
  if (a.list_operators) {
    TACHO_TRY(list_operators(a, face));
    return kOk;
  }
  if (a.operators) {
    if (face == AnalyzeFace::kRocprofCompute && a.text.data_types.empty()) a.text.data_types = {"FP32"};
    TACHO_TRY(analyze_operators(a, face));
    return kOk;
  }
  TACHO_ASSIGN(Destination to, open_destination(a));
  TACHO_ASSIGN(const std::vector<metric::Analysis> runs, analyze_all(a, face));
  TACHO_TRY(metric::check_columns(runs.front().catalog(), a.text.columns));
  a.text.boxed = face == AnalyzeFace::kRocprofCompute;
  a.text.screen = report::screen_of(STDOUT_FILENO);
  if (!to.file.empty()) a.text.screen = report::Screen{};

  if (!a.explain.empty()) {
    std::string out;
    for (const std::string& each : a.explain) {
      TACHO_ASSIGN(const std::string text, runs.front().explain(each, a.text.screen.fit()));
      out += (out.empty() ? "" : "\n") + text;
    }
    report::put(out);
    return kOk;
  }
  if (!a.save_folder.empty()) {
    if (runs.size() > 1) return fail("--save-dfs saves one run; give one folder");
    TACHO_TRY(save_tables(runs.front(), a.save_folder, a));
  }
  TACHO_TRY(write_report(runs, a, to, face));
  if (a.names_output) report::print_error("Created: {}\n", to.file);
  const std::vector<std::string>& blocks = a.analysis.blocks;
  const bool roofline_wanted =
      blocks.empty() || std::any_of(blocks.begin(), blocks.end(), [](const std::string& block) {
        return block == "4" || block.starts_with("4.") || block == "roofline";
      });
  // Upstream leaves the page beside its report. The user asked for the report, so carry on without the page.
  if (face == AnalyzeFace::kRocprofCompute && a.format == "text" && roofline_wanted && !a.text.statistics_only)
    if (const Status done = write_roofline_page(a, runs); !done)
      complain(kOk, "no roofline page: " + done.error().message);
  if (a.fail_above) return judge_changes(runs, a);
  return kOk;
}

}  // namespace

int analyze(int argc, char** argv, AnalyzeFace face) {
  CommandOptions app("Metrics, roofline and findings of the profile folders of rocprof-compute, Omniperf and tacho.",
                     argv[0]);
  if (face == AnalyzeFace::kTacho)
    app.footer("Examples:\n"
               "  tacho analyze workloads/app/MI300X_A1     findings, main metrics\n"
               "  tacho analyze workloads/app/MI300X_A1 -b lds -k gemm\n"
               "  tacho analyze before after --fail-above 5     what changed\n"
               "  tacho analyze workloads/app/MI300X_A1 --explain valu-utilization");
  AnalyzeArguments arguments;
  analyzing::add_options(app, arguments, face);
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if ((arguments.list_operators || arguments.operators) && face == AnalyzeFace::kRocprofCompute &&
      !arguments.experimental)
    return complain(kBadInput, fmt::format("{} is experimental: add --experimental in front of analyze",
                                           arguments.list_operators ? "--list-torch-operators" : "--torch-operator"));
  const Result<int> code = run(arguments, face);
  return code ? *code : complain(kBadInput, code.error().message);
}

int run_analyze(int argc, char** argv) {
  std::string name = "tacho analyze";
  argv[0] = name.data();
  return analyze(argc, argv, AnalyzeFace::kTacho);
}

}  // namespace tacho::cli
