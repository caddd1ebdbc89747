// `tacho stats FILE`: statistics per kernel, API call, copy direction, marker or domain; by place, by call stack, by
// operator.
#include "analysis/stats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/operators/operators.h"
#include "analysis/operators/places.h"
#include "analysis/stacks/own_code.h"
#include "analysis/stacks/stacks.h"
#include "analysis/sums/sums.h"
#include "base/saturating.h"
#include "base/text/how_many.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/output/sampled_counters.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"
#include "cli/watch/sums.h"
#include "efficiency/answer.h"
#include "efficiency/operator_work.h"
#include "efficiency/steps.h"
#include "report/answer.h"
#include "walk/calls/call_index.h"

namespace tacho::cli {
namespace {

using report::Answer;
using report::Cell;
using report::Unit;
using Trace = std::shared_ptr<const trace::Trace>;

Cell percent(int64_t part, int64_t whole) {
  return part > 0 && whole > 0 ? Cell(100.0 * static_cast<double>(part) / static_cast<double>(whole)) : Cell();
}

std::string duration(int64_t ns) {
  return report::format_duration(static_cast<double>(ns));
}

int show(Answer& answer, const trace::Trace& trace, const report::ShowOptions& options) {
  for (std::string& sentence : analysis::loss_sentences(trace)) answer.remarks.push_back(std::move(sentence));
  report::show(answer, options);
  return kOk;
}

// By name

std::vector<Cell> name_cells(const analysis::StatRow& row, bool grouped, bool bytes) {
  const bool timed = row.count > row.unknown;
  const auto whole = [&](int64_t value) { return timed ? Cell(value) : Cell(); };
  const auto real = [&](double value) { return timed ? Cell(value) : Cell(); };
  std::vector<Cell> cells = {row.name,
                             row.count,
                             whole(row.total),
                             real(row.mean),
                             std::isnan(row.percent) ? Cell() : real(row.percent),
                             whole(row.min),
                             whole(row.max),
                             real(row.stddev)};
  if (grouped) cells.emplace_back(row.group);
  if (bytes) {
    cells.push_back(row.sized > 0 ? Cell(row.bytes) : Cell());
    cells.push_back(row.rate() ? Cell(*row.rate()) : Cell());
  }
  return cells;
}

std::string_view rows_of(analysis::By by) {
  static constexpr std::string_view kWords[] = {"kernels", "calls", "copies",   "fills",      "markers",
                                                "all",     "waits", "overhead", "allocations"};
  return kWords[static_cast<size_t>(by)];
}

// What a table by name is without, and what its times are.
std::vector<std::string> name_notes(const analysis::StatTable& table, analysis::By by) {
  std::vector<std::string> notes;
  const int64_t out = table.left_out();
  if (by == analysis::By::kApi && out > 0)
    notes.push_back(fmt::format("{} call{} of operators and functions that call each other left out: --by operator, "
                                "--by line and tacho report topex show them, --nested adds them to this table.",
                                out, out == 1 ? "" : "s"));
  if (by == analysis::By::kMarker && out > 0)
    notes.push_back(fmt::format("{} entr{} left out: the profiler's own, and ranges of GPUs that repeat the host's.",
                                out, out == 1 ? "y" : "ies"));
  if (by != analysis::By::kDomain) return notes;
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string name = table.row(i).name;
    if (name == "MARKER_API" || name == "PYTHON_API" || name == "OPERATOR_API" || name == "HOST_API") {
      notes.emplace_back(
          "Times of markers, operators and functions are their own: without the calls and ranges in them.");
      break;
    }
  }
  return notes;
}

// `whole`: the rows whose time the percentages are of; empty = times overlap, so percentages would mislead.
// `shapes`: the group is a kernel's launch shape.
Answer name_answer(const analysis::StatTable& table, bool bytes, bool shapes, std::string_view whole) {
  Answer answer;
  answer.columns = {{"Name", "Name"},
                    {"Calls", "Calls", Unit::kCount},
                    {"TotalDurationNs", "Time", Unit::kNs},
                    {"AverageNs", "Mean", Unit::kNs},
                    {"Percentage", fmt::format("% of {}", whole), Unit::kPercent},
                    {"MinNs", "Min", Unit::kNs, 1},
                    {"MaxNs", "Max", Unit::kNs, 2},
                    {"StdDev", "StdDev", Unit::kNs, 3}};
  const bool grouped = table.grouped();
  answer.shown = {2, 1, 3, 5, 6, 7};
  if (!whole.empty()) answer.shown.insert(answer.shown.begin() + 1, 4);
  const auto add = [&](Answer::Column column) { answer.columns.push_back(std::move(column)); };
  if (grouped)
    add({.name = "Group", .title = shapes ? "Launch shape" : "Group", .leave_out = shapes ? 0 : 4, .whole = true});
  if (bytes) {
    answer.shown.push_back(answer.columns.size());
    add({"Bytes", "Bytes", Unit::kBytes});
    answer.shown.push_back(answer.columns.size());
    add({"", "GB/s", Unit::kNumber});
  }
  if (grouped) answer.shown.push_back(8);
  answer.shown.push_back(0);
  answer.next = [&table, grouped, bytes, row = size_t{0}](std::vector<Cell>& cells) mutable {
    if (row >= table.size()) return false;
    cells = name_cells(table.row(row++), grouped, bytes);
    return true;
  };
  return answer;
}

// By call stack

Answer stack_answer(const std::vector<analysis::StackRow>& rows, const analysis::StackTree& tree,
                    analysis::StackBy by) {
  const bool host = tree.host_ns > 0, gpu = tree.gpu_ns > 0, stack = by == analysis::StackBy::kStack;
  Answer answer;
  answer.columns = {
      {.name = "Name", .title = stack ? "Stack" : "Function", .cut = stack ? report::Cut::kStack : report::Cut::kName},
      {"Samples", "", Unit::kCount},
      {.name = "SelfNs", .title = "Self", .unit = Unit::kNs, .dash_zero = true},
      {.name = "TotalNs", .title = "Total", .unit = Unit::kNs, .leave_out = 2, .dash_zero = true},
      {.name = "GpuSelfNs", .title = stack ? "GPU" : "GPU self", .unit = Unit::kNs, .dash_zero = true},
      {.name = "GpuTotalNs", .title = "GPU total", .unit = Unit::kNs, .leave_out = 1, .dash_zero = true},
      {"Kind", ""},
      {"File", ""},
      {"Line", "", Unit::kCount},
      {"Module", ""},
      {"", "% of host", Unit::kPercent},
      {"", "% of host", Unit::kPercent, 3},
      {"", "% of GPU", Unit::kPercent},
      {.name = "", .title = "Where", .cut = report::Cut::kPath}};
  const auto show = [&](bool shown, std::initializer_list<size_t> columns) {
    if (shown) answer.shown.insert(answer.shown.end(), columns);
  };
  show(host, {2, 10});
  show(host && !stack, {3, 11});
  show(gpu, {4, 12});
  show(gpu && !stack, {5});
  show(true, {0});
  show(!stack, {13});
  for (const analysis::StackRow& row : rows)
    answer.rows.push_back({stack ? row.stack : row.frame.name, row.samples, row.self_ns, row.total_ns, row.gpu_self_ns,
                           row.gpu_ns, std::string(analysis::to_string(row.frame.part)), row.frame.file,
                           row.frame.line > 0 ? Cell(row.frame.line) : Cell(), row.frame.module,
                           percent(row.self_ns, tree.host_ns), percent(row.total_ns, tree.host_ns),
                           percent(row.gpu_self_ns, tree.gpu_ns), analysis::place_text(row.frame)});
  return answer;
}

}  // namespace

std::string attribution_sentence(const analysis::StackTree& tree) {
  if (tree.gpu_ns <= 0) return {};
  const auto share = [&](int64_t ns) { return 100.0 * static_cast<double>(ns) / static_cast<double>(tree.gpu_ns); };
  return fmt::format("device time {}: {:.1f} % by the stack read at its launch, {:.1f} % by the nearest sample of the "
                     "thread, {:.1f} % without a stack{}",
                     duration(tree.gpu_ns), share(tree.gpu_exact_ns), share(tree.gpu_near_ns),
                     share(tree.gpu_unknown_ns),
                     tree.forgotten > 0 ? "; " + walk::forgotten_sentence(tree.forgotten) : std::string());
}

namespace {

// Which frames a table of call stacks shows.
enum class Code : uint8_t {
  kByFormat,  // own code as text, all in csv and json
  kOwn,
  kAll
};

int stack_stats(const std::string& file, const std::string& by_text, const report::ShowOptions& show_options,
                std::optional<size_t> top, Code code, analysis::StackOptions options) {
  constexpr size_t kRows = 20;
  const auto by = by_text == "stack"      ? analysis::StackBy::kStack
                  : by_text == "function" ? analysis::StackBy::kFunction
                                          : analysis::StackBy::kLine;
  options.lines = by != analysis::StackBy::kFunction;
  const auto trace = open_events(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  auto tree = analysis::stack_tree(**trace, options);
  if (!tree) return complain(kBadInput, tree.error().message);
  const bool text = show_options.face == report::AnswerFormat::kText;
  const bool wants_own = code == Code::kOwn || (code == Code::kByFormat && text);
  const analysis::OwnShare own = analysis::own_share(*tree);
  const bool filtered = wants_own && (own.host_ns > 0 || own.gpu_ns > 0);
  if (filtered) *tree = analysis::own_code(std::move(*tree));
  std::vector<analysis::StackRow> rows = analysis::stack_rows(*tree, by);
  // A line without time of its own only calls others; in text it would be a row of dashes.
  if (text && by == analysis::StackBy::kLine)
    std::erase_if(rows, [](const analysis::StackRow& row) { return row.self_ns == 0 && row.gpu_self_ns == 0; });
  const size_t all = rows.size(), most = top.value_or(text ? kRows : 0);
  if (most != 0 && all > most) rows.resize(most);
  Answer answer = stack_answer(rows, *tree, by);
  answer.when_empty =
      fmt::format("{}: no call stacks; record them with tacho sys sample, or tacho trace --sampler timer", file);
  if (rows.size() < all)
    answer.notes.push_back(
        fmt::format("The first {} of {} {}s; --top 0 shows all, --top N the first N.", rows.size(), all, by_text));
  if (filtered)
    answer.notes.push_back(fmt::format("Your own code only: time in libraries and the interpreter counts for the {} "
                                       "that called them. --all-code shows every frame.",
                                       by == analysis::StackBy::kLine ? "line" : "function"));
  else if (wants_own)
    answer.notes.emplace_back("No sample is in code of your own, so all code is shown.");
  if (tree->samples > 0)
    answer.notes.push_back(fmt::format("{} of {}: {}", how_many(tree->samples, "sample", "samples"),
                                       tree->wall ? tree->cpu ? "CPU and wall time" : "wall time" : "CPU time",
                                       duration(tree->host_ns)));
  if (tree->recorded)
    answer.notes.push_back(fmt::format("Host time: {} of the functions that the profiler recorded, waits for the GPU "
                                       "included. Functions that only wait for another thread or a time are left out.",
                                       duration(tree->host_ns)));
  if (std::string sentence = attribution_sentence(*tree); !sentence.empty()) answer.notes.push_back(sentence);
  return show(answer, **trace, show_options);
}

// By place

Answer place_answer(const std::vector<analysis::PlaceRow>& rows) {
  const auto any = [&](int64_t analysis::PlaceRow::*member) {
    return std::any_of(rows.begin(), rows.end(), [&](const analysis::PlaceRow& row) { return row.*member > 0; });
  };
  // People get no column that is empty in every row. The kernel time of a row without kernels is a dash.
  Answer answer;
  answer.columns = {{"Name", "Name"},
                    {"Kernels", "Kernels", Unit::kCount, 4},
                    {"KernelNs", "", Unit::kNs},
                    {"Copies", "Copies", Unit::kCount, 5},
                    {"CopyNs", "", Unit::kNs},
                    {"CopyBytes", "", Unit::kBytes},
                    {"ApiCalls", "Calls", Unit::kCount, 3},
                    {"ApiNs", "", Unit::kNs},
                    {"Samples", "", Unit::kCount},
                    {"SampleNs", "", Unit::kNs},
                    {"", "Kernel time", Unit::kNs},
                    {"", "Copy time", Unit::kNs},
                    {"", "Bytes", Unit::kBytes, 2},
                    {"", "API time", Unit::kNs},
                    {"", "Sampled", Unit::kNs, 1}};
  const auto show = [&](bool shown, std::initializer_list<size_t> columns) {
    if (shown) answer.shown.insert(answer.shown.end(), columns);
  };
  show(any(&analysis::PlaceRow::kernels), {10, 1});
  show(any(&analysis::PlaceRow::copies), {11, 3, 12});
  show(any(&analysis::PlaceRow::calls), {13, 6});
  show(any(&analysis::PlaceRow::samples), {14});
  show(true, {0});
  const auto of = [](int64_t count, int64_t value) { return count > 0 ? Cell(value) : Cell(); };
  for (const analysis::PlaceRow& row : rows)
    answer.rows.push_back({row.name, row.kernels, row.kernel_ns, row.copies, row.copy_ns, row.bytes, row.calls,
                           row.call_ns, row.samples, row.sample_ns, of(row.kernels, row.kernel_ns),
                           of(row.copies, row.copy_ns), of(row.copies, row.bytes), of(row.calls, row.call_ns),
                           of(row.samples, row.sample_ns)});
  return answer;
}

int place_stats(const std::string& file, analysis::Place place, const std::string& by_text,
                const report::ShowOptions& options) {
  const auto trace = open_events(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  auto rows = analysis::by_place(**trace, place);
  if (!rows) return complain(kBadInput, rows.error().message);
  if (options.most != 0 && rows->size() > options.most) rows->resize(options.most);
  Answer answer = place_answer(*rows);
  answer.when_empty = fmt::format("{}: nothing was recorded by {}", file, by_text);
  return show(answer, **trace, options);
}

// By operator

Answer operator_answer(const std::vector<analysis::OperatorRow>& rows, int64_t whole, analysis::OperatorBy by,
                       bool shapes) {
  const bool classes = by == analysis::OperatorBy::kClass, modules = by == analysis::OperatorBy::kModule;
  const auto any = [&](const auto& value) {
    return std::any_of(rows.begin(), rows.end(), [&](const analysis::OperatorRow& row) { return value(row) > 0; });
  };
  const bool device = any([](const auto&row) { return row.total.ns; }),
             copies = any([](const auto&row) { return row.total.bytes; });
  Answer answer;
  answer.columns = {
      {"Name", modules   ? "Module"
               : classes ? "Class"
                         : "Operator"},
      {.name = modules ? "Class" : "MadeOf", .title = "Class", .leave_out = 4},
      {"Phase", ""},
      {.name = "Calls", .title = "Calls", .unit = Unit::kCount, .leave_out = 1, .dash_zero = true},
      {.name = "SelfHostNs", .title = "Host self", .unit = Unit::kNs, .leave_out = device ? 5 : 0, .dash_zero = true},
      {.name = "TotalHostNs", .title = "Host total", .unit = Unit::kNs, .leave_out = device ? 2 : 0, .dash_zero = true},
      {.name = "SelfDeviceNs", .title = "GPU self", .unit = Unit::kNs, .dash_zero = true},
      {.name = "TotalDeviceNs",
       .title = "GPU total",
       .unit = Unit::kNs,
       .leave_out = shapes ? 1 : 0,
       .dash_zero = true},
      {"SelfKernels", "", Unit::kCount},
      {.name = "Kernels", .title = "Kernels", .unit = Unit::kCount, .leave_out = 3, .dash_zero = true},
      {.name = "Launches", .title = "Launches", .unit = Unit::kCount, .leave_out = 7, .dash_zero = true},
      {.name = "BytesCopied", .title = "Copied", .unit = Unit::kBytes, .leave_out = 8, .dash_zero = true},
      {"", "% of GPU", Unit::kPercent, 6},
      {.name = "", .title = "Phase", .whole = true},
      {shapes ? "InputShapes" : "", shapes ? "Input shapes" : ""}};
  if (classes) answer.columns[1] = {.name = "Modules", .title = "Modules", .unit = Unit::kCount, .dash_zero = true};
  if (device) answer.shown = {6, 12, 7, 9, 10};
  if (copies) answer.shown.push_back(11);
  answer.shown.insert(answer.shown.end(), {4, 5, 3, 13});
  if (classes) answer.shown.push_back(1);
  answer.shown.push_back(0);
  if (modules) answer.shown.push_back(1);
  if (shapes) answer.shown.push_back(14);
  for (const analysis::OperatorRow& row : rows) {
    const std::string phase(analysis::to_string(row.phase));
    answer.rows.push_back({row.name, classes ? Cell(row.modules) : Cell(row.kind), phase, row.calls, row.host_self,
                           row.host_total, row.self.ns, row.total.ns, row.self.kernels, row.total.kernels,
                           row.total.launches, row.total.bytes, percent(row.self.ns, whole),
                           // Outside of operators the phase is unknown.
                           row.name.starts_with("(no ") ? Cell() : Cell(phase),
                           row.shapes.empty() ? Cell() : Cell(row.shapes)});
  }
  return answer;
}

// What compiled kernels were made of, below the table: names and lists of operators are too long for a column. The
// first `most` of them, 0 for all, also those whose rows the table leaves out.
std::vector<std::string> fused_notes(const std::vector<analysis::OperatorRow>& rows, size_t most) {
  std::map<std::string_view, int64_t> time;  // by name: forward and backward calls are rows of their own
  for (const analysis::OperatorRow& row : rows)
    if (!row.kind.empty()) add_saturating(time[row.name], row.self.ns);
  std::vector<std::string> notes = {"Kernels that torch.compile made, the operators fused in them, the model's lines"};
  std::set<std::string_view> told;
  for (const analysis::OperatorRow& row : rows) {
    if (row.kind.empty() || !told.insert(row.name).second || (most != 0 && told.size() > most)) continue;
    // "aten.add,aten.relu train.py:31,train.py:32", each "-" where it is not known.
    const size_t space = std::min(row.kind.find(' '), row.kind.size());
    const auto list = [&](std::string_view words) {
      std::string text;
      for (const char c : words) text += c == ',' ? std::string(", ") : std::string(1, c);
      return report::clean(text);
    };
    const std::string operators = list(row.kind.substr(0, space));
    const std::string lines = list(std::string_view(row.kind).substr(std::min(space + 1, row.kind.size())));
    const std::string name = report::clean(row.name);
    const int64_t ns = time[row.name];
    notes.push_back("  " + (ns > 0 ? fmt::format("{}: {}", name, duration(ns)) : name));
    notes.push_back("    " + (operators == "-" ? "operators not known" : operators));
    notes.push_back("    " + (lines == "-" || lines.empty() ? "line of the model not known" : lines));
  }
  if (told.empty()) return {};
  if (most != 0 && told.size() > most) notes.push_back(fmt::format("  … and {} more: --top 0", told.size() - most));
  notes.emplace_back();
  return notes;
}

// What GPU time rests on, and what has no operator.
std::vector<std::string> operator_notes(const analysis::OperatorTree& tree, const std::string& graph_nodes) {
  std::vector<std::string> notes;
  const auto launches = [](int64_t count) { return fmt::format("{} launch{}", count, count == 1 ? "" : "es"); };
  if (tree.whole.ns > 0)
    notes.push_back(fmt::format("GPU time {}.{}", duration(tree.whole.ns),
                                tree.nodes[0].work.kernels == 0 && tree.nodes[0].work.ns == 0
                                    ? " All of it was launched within operators."
                                    : " " + analysis::without_operator_sentence(tree)));
  if (tree.spans_divided > 0)
    notes.push_back(fmt::format("Of it {} is estimated: {} of CUDA graphs, divided by what their nodes took in {} ({} "
                                "at least).",
                                duration(tree.estimated.ns), launches(tree.spans_divided), graph_nodes,
                                launches(tree.estimated_from)));
  if (tree.spans_undivided > 0)
    notes.push_back(fmt::format("{} of CUDA graphs {} not in {}; {} time is charged to the launch.",
                                launches(tree.spans_undivided), tree.spans_undivided == 1 ? "is" : "are", graph_nodes,
                                tree.spans_undivided == 1 ? "its" : "their"));
  if (tree.graph_unnamed > 0)
    notes.push_back(fmt::format(
        "{} executed {} of CUDA graphs {} no known operator; {} time is charged to the launch of the graph.",
        tree.graph_unnamed, tree.graph_unnamed == 1 ? "node" : "nodes", tree.graph_unnamed == 1 ? "has" : "have",
        tree.graph_unnamed == 1 ? "its" : "their"));
  if (tree.backward_alone > 0)
    notes.push_back(how_many(
        tree.backward_alone, "call of a backward operator has no known forward operator; it is listed by itself.",
        "calls of backward operators have no known forward operator; they are listed by themselves."));
  if (tree.shapes_together > 0)
    notes.push_back(fmt::format("{} with shapes beyond the first {}, and {} not told apart by them.",
                                how_many(tree.shapes_together, "call came", "calls came"), analysis::kMostShapedNodes,
                                tree.shapes_together == 1 ? "is" : "are"));
  if (tree.sampled) notes.push_back(analysis::sampled_shapes_sentence(tree));
  if (tree.forgotten > 0) notes.push_back(walk::forgotten_sentence(tree.forgotten) + ".");
  return notes;
}

// Against what operators are held.
struct Against {
  efficiency::EfficiencyOptions options;
  std::string roofs;  // a roofline.csv
};

// The roofs that were measured, and the steps that the trace holds.
Status complete(const trace::Trace& trace, Against& against) {
  if (!against.roofs.empty()) {
    const std::string device = against.options.device.empty() ? efficiency::device_name(trace) : std::string();
    TACHO_ASSIGN(against.options.measured, efficiency::read_measured_roofs(against.roofs, device));
  }
  return efficiency::find_steps(trace, against.options);
}

int operator_stats(const std::string& file, analysis::OperatorBy by, bool shapes, const report::ShowOptions& options,
                   std::optional<size_t> top, const std::string& graph_nodes, Against against) {
  constexpr size_t kRows = 30;
  const auto trace = open_events(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  std::optional<analysis::GraphShares> shares;
  if (!graph_nodes.empty()) {
    const auto nodes = open_trace(graph_nodes);
    if (!nodes) return complain(kBadInput, nodes.error().message);
    auto read = analysis::graph_shares(**nodes);
    if (!read) return complain(kBadInput, read.error().message);
    shares = std::move(*read);
  }
  efficiency::KernelsOfNodes kernels;
  const auto tree = analysis::operator_tree(**trace, shapes ? kernels.visitor() : analysis::OperatorVisitor(),
                                            shares ? &*shares : nullptr, shapes);
  if (!tree) return complain(kBadInput, tree.error().message);
  efficiency::Efficiency reached;
  if (shapes) {
    if (const Status status = complete(**trace, against); !status) return complain(kBadInput, status.error().message);
    auto made = efficiency::efficiency_of(**trace, *tree, kernels.of(*tree), against.options);
    if (!made) return complain(kBadInput, made.error().message);
    reached = std::move(*made);
  }
  const bool modules = by != analysis::OperatorBy::kOperator;
  std::vector<analysis::OperatorRow> rows;
  if (tree->any()) rows = analysis::operator_rows(*tree, by, reached.of_nodes);
  const size_t all = rows.size(), most = top.value_or(options.face == report::AnswerFormat::kText ? kRows : 0);
  std::vector<std::string> fused;
  if (by == analysis::OperatorBy::kOperator) fused = fused_notes(rows, most);
  if (most != 0 && all > most) rows.resize(most);
  Answer answer = operator_answer(rows, tree->whole.ns, by, shapes && !modules);
  answer.when_empty = fmt::format("{}: no operators of PyTorch; record them with tacho trace --torch-trace", file);
  if (rows.size() < all)
    answer.notes.push_back(
        fmt::format("The first {} of {} rows; --top 0 shows all, --top N the first N.", rows.size(), all));
  answer.notes.insert(answer.notes.end(), fused.begin(), fused.end());
  for (std::string& note : operator_notes(*tree, graph_nodes)) answer.notes.push_back(std::move(note));
  if (shapes) (modules ? efficiency::add_module_columns : efficiency::add_columns)(answer, rows, reached, 0);
  if (shapes && !rows.empty() && !tree->sampled && (*trace)->rows(event::Table::kOperatorInput) <= 1)
    answer.remarks.push_back(
        fmt::format("{}: no shapes of inputs; torch.profiler records them with record_shapes=True", file));
  if (const auto sentence = analysis::torch_sentence(**trace); sentence && !sentence->empty())
    answer.remarks.push_back(*sentence);
  return show(answer, **trace, options);
}

// By the names of events, one row each.
int name_stats(const std::string& file, const std::string& by_text, const analysis::StatOptions& options,
               const report::ShowOptions& show_options) {
  const auto by = analysis::parse_by(by_text);
  if (!by) {
    static const std::vector<std::string> kWords = {
        "kernel", "api",    "copy",   "fill",   "marker", "domain",   "sync", "overhead", "allocation", "process",
        "rank",   "thread", "device", "stream", "stack",  "function", "line", "operator", "module"};
    const std::string best = nearest(by_text, kWords);
    return complain(kBadInput,
                    best.empty() ? by.error().message : fmt::format("--by {}: did you mean --by {}?", by_text, best));
  }
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  if (analysis::holds_sums(**trace)) return stats_of_sums(**trace, file, by_text, show_options);
  const auto table = analysis::StatTable::make(**trace, *by, options);
  if (!table) return complain(kBadInput, table.error().message);
  const bool bytes = *by == analysis::By::kCopy || *by == analysis::By::kFill;
  const bool overlap = *by == analysis::By::kMarker || (*by == analysis::By::kApi && options.nested);
  Answer answer = name_answer(*table, bytes, options.per_shape && *by == analysis::By::kKernel,
                              overlap ? std::string_view() : rows_of(*by));
  answer.notes = name_notes(*table, *by);
  if (*by == analysis::By::kCopy) {
    auto links = efficiency::link_sentences(**trace);
    if (!links) return complain(kBadInput, links.error().message);
    for (std::string& sentence : *links) answer.notes.push_back(std::move(sentence));
  }
  if (bytes) {
    std::vector<analysis::StatRow> rows;
    for (size_t i = 0; i < table->size(); ++i) rows.push_back(table->row(i));
    if (const std::string unsized = analysis::unsized_sentence(rows); !unsized.empty())
      answer.remarks.push_back(fmt::format("{}: {}", *by == analysis::By::kCopy ? "copies" : "fills", unsized));
  }
  answer.when_empty = fmt::format("{}: no {} records{}", file, by_text,
                                  has_sampled_counters(**trace) ? "; tacho info shows its sampled counters" : "");
  if (table->size() == 0 && table->left_out() > 0) {
    answer.when_empty += fmt::format(" but {} {}", table->left_out(),
                                     *by == analysis::By::kApi ? "of operators and functions that call each other: see "
                                                                 "--by operator, --by line, or --nested"
                                                               : "of the profiler itself");
    answer.notes.clear();
  }
  return show(answer, **trace, show_options);
}

}  // namespace

int run_stats(int argc, char** argv) {
  CommandOptions app("Statistics of a trace: calls, total, mean, min, max per name.", "tacho stats");
  std::string file, by_text = "kernel", format = "text";
  analysis::StatOptions options;
  options.nested = false;
  options.of_program = true;
  std::optional<size_t> top;
  bool instances = false;
  bool own_code = false, all_code = false, input_shapes = false;
  std::string graph_nodes;
  Against against;
  app.add_option("file", file, "trace").required();
  app.add_option(
         "--by", by_text,
         "kernel, api, copy, fill, marker, domain, sync, overhead, allocation; process, rank, thread, device, stream; "
         "call stacks: line, function, stack; PyTorch: operator, module")
      .capture_default_str();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  app.add_option("--top", top, "only the first N rows; 0 = all (default: all; 20 of call stacks as text)");
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  app.add_flag("--shapes", options.per_shape,
               "kernels: one row per launch shape (blocks and threads of CUDA, work-items of others)");
  app.add_flag(
      "--input-shapes", input_shapes,
      "operators: one row per shapes of inputs, and how much of the roof each reaches; modules: how much of it "
      "their operators reach");
  app.add_option("--device", against.options.device,
                 "with --input-shapes: the GPU whose roofs count (default: the trace's own)");
  app.add_option(
      "--roofs", against.roofs,
      "with --input-shapes: a roofline.csv of tacho roofline, whose measured roofs come before published ones");
  app.add_option("--config-dir", against.options.config_dirs,
                 "with --input-shapes: a folder whose operators.yaml has further models of operators");
  app.add_flag("--nested", options.nested,
               "api: also operators and functions of Python, with the time of what they call");
  app.add_flag("--instances", instances, "modules: one row per module instead of one per class");
  analysis::StackOptions stack_options;
  app.add_flag("--startup", stack_options.startup, "call stacks: keep what lies outside of the outermost Python frame");
  app.add_flag("--threads", stack_options.threads, "call stacks: tell threads apart");
  const CommandOption all =
      app.add_flag("--all-code", all_code,
                   "call stacks: every frame (default as text: your own code, without libraries and the interpreter)");
  app.add_flag("--own-code", own_code, "call stacks: your own code in csv and json, too").excludes(all);
  app.add_option("--graph-nodes", graph_nodes,
                 "operators, modules: a trace of the same program with --graph-trace node, by whose nodes launches of "
                 "CUDA graphs that are one span here are divided");
  app.footer("Examples:\n"
             "  tacho stats app.tacho                     kernels by their time\n"
             "  tacho stats app.tacho --by line           lines of your code, by host and GPU time\n"
             "  tacho stats app.tacho --by rank --output-format csv");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  const report::ShowOptions show_options = {.face = report::face_of(format), .most = top.value_or(0)};
  if (input_shapes && by_text != "operator" && by_text != "module")
    return complain(kBadInput,
                    fmt::format("--input-shapes goes with --by operator or module, not with --by {}", by_text));
  for (const auto& [option, given] :
       {std::pair("--device", !against.options.device.empty()), std::pair("--roofs", !against.roofs.empty()),
        std::pair("--config-dir", !against.options.config_dirs.empty())})
    if (given && !input_shapes)
      return complain(kBadInput, fmt::format("{} goes with --by operator or module and --input-shapes", option));
  if (by_text == "stack" || by_text == "function" || by_text == "line")
    return stack_stats(file, by_text, show_options, top,
                       all_code   ? Code::kAll
                       : own_code ? Code::kOwn
                                  : Code::kByFormat,
                       stack_options);
  if (by_text == "operator" || by_text == "module")
    return operator_stats(file,
                          by_text == "operator" ? analysis::OperatorBy::kOperator
                          : instances           ? analysis::OperatorBy::kModule
                                                : analysis::OperatorBy::kClass,
                          input_shapes, show_options, top, graph_nodes, against);
  if (!graph_nodes.empty())
    return complain(kBadInput,
                    fmt::format("--graph-nodes goes with --by operator or module, not with --by {}", by_text));
  if (const auto place = analysis::parse_place(by_text)) return place_stats(file, *place, by_text, show_options);
  return name_stats(file, by_text, options, show_options);
}

}  // namespace tacho::cli
