// Tables of operators and lines (code_tables.h).
#include "cli/output/code_tables.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/operators/operators.h"
#include "analysis/stacks/own_code.h"
#include "base/format.h"
#include "base/text/how_many.h"
#include "report/shorten.h"
#include "trace/read/rows.h"

namespace tacho::cli {
namespace {

using event::Table;
using report::Answer;
using report::Cell;
using report::Sections;
using report::Unit;

// Finding the launching operator or line reads every call: a summary does that for no more calls than these.
constexpr int64_t kMostCalls = 2'000'000;

std::string time_text(int64_t ns) {
  return report::format_duration(static_cast<double>(ns));
}

Cell share_of(int64_t ns, int64_t of) {
  return of > 0 && ns > 0 ? Cell(static_cast<double>(ns) / static_cast<double>(of) * 100) : Cell();
}

bool has_functions(const trace::Trace& trace, event::Domain domain) {
  for (int64_t row = 1; row < trace.rows(Table::kFunction); ++row)
    if (trace::cell<event::column::Function::domain>(trace, row) == domain) return true;
  return false;
}

void add_top(Sections& out, const Answer& answer, size_t top) {
  if (const size_t more = out.table(answer, top); more > 0) out.line(fmt::format("  … and {} more", more));
}

}  // namespace

void add_operators(Sections& out, const trace::Trace& trace, size_t top) {
  if (trace.aggregated() || (trace.rows(Table::kApi) == 0 && trace.rows(Table::kMarker) == 0)) return;
  const bool sure = has_functions(trace, event::Domain::kOperator) || trace.property(Table::kEnd, 0, "torch_trace");
  if (trace.rows(Table::kApi) + trace.rows(Table::kMarker) > kMostCalls) {
    if (!sure) return;
    out.heading("Operators of PyTorch");
    out.line("  tacho stats " + report::clean(trace.path()) + " --by operator");
    return;
  }
  const auto tree = analysis::operator_tree(trace);
  if (!tree) {
    out.heading("Operators of PyTorch");
    out.sentence(report::clean(tree.error().message));
    return;
  }
  if (!tree->any()) return;
  std::vector<analysis::OperatorRow> rows = analysis::operator_rows(*tree, analysis::OperatorBy::kOperator);
  const bool gpu = tree->whole.ns > 0;
  std::erase_if(rows, [](const analysis::OperatorRow& row) {
    return row.name.starts_with("(no ") || (row.self.ns == 0 && row.host_self == 0);
  });
  if (rows.empty()) return;
  int64_t host = 0;
  for (const analysis::OperatorRow& row : rows) host += row.host_self;
  out.heading(gpu ? fmt::format("Operators of PyTorch ({} of GPU time)", time_text(tree->whole.ns))
                  : fmt::format("Operators of PyTorch ({} of host time)", time_text(host)));
  Answer answer;
  answer.columns = {{.title = "GPU self", .unit = Unit::kNs, .dash_zero = true},
                    {.title = "% of GPU", .unit = Unit::kPercent},
                    {.title = "Host self", .unit = Unit::kNs, .dash_zero = true},
                    {.title = "% of host", .unit = Unit::kPercent},
                    {.title = "Calls", .unit = Unit::kCount, .leave_out = 1, .dash_zero = true},
                    {.title = "Phase", .whole = true},
                    {.title = "Operator"}};
  const bool phases = std::any_of(rows.begin(), rows.end(),
                                  [&](const analysis::OperatorRow& row) { return row.phase != rows.front().phase; });
  answer.shown = gpu ? std::vector<size_t>{0, 1, 2, 4} : std::vector<size_t>{2, 3, 4};
  if (phases) answer.shown.push_back(5);
  answer.shown.push_back(6);
  for (const analysis::OperatorRow& row : rows)
    answer.rows.push_back({row.self.ns, share_of(row.self.ns, tree->whole.ns), row.host_self,
                           share_of(row.host_self, host), row.calls, std::string(analysis::to_string(row.phase)),
                           row.name});
  add_top(out, answer, top);
  if (const std::string sentence = analysis::without_operator_sentence(*tree); !sentence.empty())
    out.sentence(sentence);
}

void add_lines(Sections& out, const trace::Trace& trace, size_t top) {
  const bool sampled = trace.rows(Table::kSample) > 0;
  // Without samples, functions of Python that a profiler recorded tell where the host's time went, and which line
  // launched work on a GPU.
  if (!sampled && (trace.aggregated() || !has_functions(trace, event::Domain::kPython))) return;
  analysis::StackOptions options;
  options.gpu = trace.rows(Table::kApi) <= kMostCalls;
  if (!sampled && !options.gpu) return;
  auto all = analysis::stack_tree(trace, options);
  if (!all || (all->host_ns == 0 && all->gpu_ns == 0)) return;
  const analysis::OwnShare own = analysis::own_share(*all);
  const bool filtered = own.host_ns > 0 || own.gpu_ns > 0;
  const analysis::StackTree tree = analysis::own_code(std::move(*all));
  std::vector<analysis::StackRow> rows = analysis::stack_rows(tree, analysis::StackBy::kLine);
  const bool lines =
      std::any_of(rows.begin(), rows.end(), [](const analysis::StackRow& row) { return row.frame.line > 0; });
  if (!lines) rows = analysis::stack_rows(tree, analysis::StackBy::kFunction);
  int64_t unknown = 0;
  std::erase_if(rows, [&](const analysis::StackRow& row) {
    // GPU work without a stack is no line: a sentence says how much there is.
    if (row.frame.part == analysis::StackPart::kUnknown && row.self_ns == 0 && row.gpu_self_ns == tree.gpu_unknown_ns) {
      unknown = row.gpu_self_ns;
      return true;
    }
    return row.self_ns == 0 && row.gpu_self_ns == 0;
  });
  if (rows.empty()) return;
  out.heading(
      sampled
          ? fmt::format("Host time ({}, {} of {})", how_many(tree.samples, "sample", "samples"),
                        time_text(tree.host_ns), tree.wall ? tree.cpu ? "CPU and wall time" : "wall time" : "CPU time")
          : fmt::format("Lines of code ({}{}{})", tree.host_ns > 0 ? time_text(tree.host_ns) + " of host time" : "",
                        tree.host_ns > 0 && tree.gpu_ns > 0 ? ", " : "",
                        tree.gpu_ns > 0 ? time_text(tree.gpu_ns) + " of GPU time" : ""));
  Answer answer;
  answer.columns = {{.title = "Host", .unit = Unit::kNs, .dash_zero = true},
                    {.title = "% of host", .unit = Unit::kPercent, .leave_out = 1},
                    {.title = "GPU", .unit = Unit::kNs, .dash_zero = true},
                    {.title = "% of GPU", .unit = Unit::kPercent, .leave_out = 2},
                    {.title = "Where", .cut = report::Cut::kPath},
                    {.title = "Function"}};
  if (tree.gpu_ns <= 0)
    answer.shown = {0, 1, 4, 5};
  else if (tree.host_ns <= 0)
    answer.shown = {2, 3, 4, 5};
  for (const analysis::StackRow& row : rows)
    answer.rows.push_back({row.self_ns, share_of(row.self_ns, tree.host_ns), row.gpu_self_ns,
                           share_of(row.gpu_self_ns, tree.gpu_ns), analysis::place_text(row.frame), row.frame.name});
  add_top(out, answer, top);
  if (filtered)
    out.sentence(fmt::format("Your own {}: time in libraries counts for the {} that called them.",
                             lines ? "lines" : "functions", lines ? "line" : "function"));
  if (tree.recorded && tree.host_ns > 0)
    out.sentence(fmt::format("Host time is of the functions that the profiler recorded, waits for the GPU included.{}",
                             tree.gpu_ns > 0 ? " GPU time counts for the line that launched it." : ""));
  if (unknown > 0)
    out.sentence(fmt::format("{} ({:.1f} %) of GPU time has no line: this recording holds no call stack of its launch.",
                             time_text(unknown),
                             100.0 * static_cast<double>(unknown) / static_cast<double>(tree.gpu_ns)));
}

}  // namespace tacho::cli
