// Operators, modules, lines and threads as JSON (code.h).
#include "view/tables/code.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/operators/operators.h"
#include "analysis/stacks/own_code.h"
#include "analysis/stacks/stacks.h"
#include "base/saturating.h"
#include "base/text/json_writer.h"
#include "trace/read/rows.h"
#include "view/answers/flame.h"
#include "view/tables/operator_roofline.h"

namespace tacho::view {

using event::Domain;
using event::Table;
namespace column = event::column;

namespace {

// What a page holds; the tables say how many there are in all.
constexpr size_t kMostOperators = 1000, kMostClasses = 300, kMostModules = 300, kMostLines = 500, kMostKernels = 100;
constexpr size_t kMostBins = 240, kMostThreads = 64;

struct KernelTime {
  int64_t ns = 0, count = 0;
};
using KernelTimes = std::map<uint32_t, KernelTime>;  // by number of the name

void put_kernels(JsonWriter& json, const KernelTimes& kernels) {
  std::vector<std::pair<uint32_t, KernelTime>> sorted(kernels.begin(), kernels.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  if (sorted.size() > kMostKernels) sorted.resize(kMostKernels);
  json.name("kernels").begin_array();
  for (const auto& [name, time] : sorted) json.begin_array().value(name).value(time.ns).value(time.count).end_array();
  json.end_array();
}

void put_operator(JsonWriter& json, const analysis::OperatorRow& row) {
  json.member("name", row.name)
      .member("phase", std::string(to_string(row.phase)))
      .member("kind", row.kind)
      .member("calls", row.calls)
      .member("host_self", row.host_self)
      .member("host", row.host_total)
      .member("gpu_self", row.self.ns)
      .member("gpu", row.total.ns)
      .member("launches", row.total.kernels);
}

Status put_operators(JsonWriter& json, const Run& run) {
  std::map<std::pair<uint32_t, analysis::OperatorPhase>, KernelTimes> launched;
  std::map<uint32_t, KernelTimes> by_node;
  analysis::OperatorVisitor visitor;
  visitor.kernel = [&](const analysis::OperatorKernel& kernel, const analysis::OperatorCall* call) {
    if (call == nullptr || kernel.duration <= 0) return;
    KernelTime& time = by_node[call->node][run.names().of(Table::kDispatch, kernel.dim)];
    add_saturating(time.ns, kernel.duration);
    ++time.count;
  };
  TACHO_ASSIGN(const analysis::OperatorTree tree, analysis::operator_tree(run.trace(), visitor));
  for (const auto& [number, kernels] : by_node) {
    const analysis::OperatorNode& node = tree.nodes[number];
    for (const auto& [name, time] : kernels) {
      KernelTime& sum = launched[{node.name, node.phase}][name];
      add_saturating(sum.ns, time.ns);
      sum.count += time.count;
    }
  }
  std::map<std::pair<std::string_view, analysis::OperatorPhase>, const KernelTimes*> kernels_of_name;
  for (const auto& [key, kernels] : launched) kernels_of_name[{tree.texts[key.first], key.second}] = &kernels;
  std::vector<analysis::OperatorRow> rows;
  if (tree.any()) rows = analysis::operator_rows(tree, analysis::OperatorBy::kOperator);
  json.member("gpu", tree.whole.ns).member("operators_count", rows.size());
  json.name("operators").begin_array();
  for (size_t i = 0; i < std::min(rows.size(), kMostOperators); ++i) {
    json.newline().begin_object();
    put_operator(json, rows[i]);
    const auto found = kernels_of_name.find({rows[i].name, rows[i].phase});
    put_kernels(json, found == kernels_of_name.end() ? KernelTimes() : *found->second);
    json.end_object();
  }
  json.end_array().name("modules").begin_array();
  std::vector<analysis::OperatorRow> modules;
  const bool some = std::any_of(tree.nodes.begin(), tree.nodes.end(), [](const analysis::OperatorNode& node) {
    return node.level == analysis::OperatorLevel::kModule;
  });
  if (some) modules = analysis::operator_rows(tree, analysis::OperatorBy::kModule);
  std::map<std::pair<std::string, analysis::OperatorPhase>, std::vector<const analysis::OperatorRow*>> of_class;
  for (const analysis::OperatorRow& row : modules)
    of_class[{row.kind.empty() ? row.name : row.kind, row.phase}].push_back(&row);
  std::vector<analysis::OperatorRow> classes;
  if (some) classes = analysis::operator_rows(tree, analysis::OperatorBy::kClass);
  for (size_t i = 0; i < std::min(classes.size(), kMostClasses); ++i) {
    const std::vector<const analysis::OperatorRow*>& rows = of_class[{classes[i].name, classes[i].phase}];
    json.newline().begin_object();
    put_operator(json, classes[i]);
    json.member("count", rows.size()).name("rows").begin_array();
    for (size_t n = 0; rows.size() > 1 && n < std::min(rows.size(), kMostModules); ++n) {
      json.begin_object();
      put_operator(json, *rows[n]);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().member("modules_count", classes.size());
  return {};
}

bool host_code(const analysis::StackFrame& frame) {
  return frame.part == analysis::StackPart::kNative || frame.part == analysis::StackPart::kPython;
}

std::string frame_key(const analysis::StackFrame& frame, bool lines) {
  return fmt::format("{}\x1f{}\x1f{}\x1f{}", frame.name, frame.file, frame.module, lines ? frame.line : 0);
}

// Kernels by the row of stack_rows() that their time belongs to: the innermost line of Python, else the innermost one.
std::map<std::string, KernelTimes> kernels_below(const Run& run, const analysis::StackTree& tree, bool lines) {
  const std::vector<uint32_t> names = kernels_of(run, tree);
  std::map<std::string, KernelTimes> out;
  for (const analysis::StackNode& node : tree.nodes) {
    if (node.gpu_ns <= 0 || names[node.frame] == 0) continue;
    const analysis::StackFrame* owner = nullptr;
    for (uint32_t up = node.parent; up != 0; up = tree.nodes[up].parent) {
      const analysis::StackFrame& frame = tree.frames[tree.nodes[up].frame];
      if (!host_code(frame) || (lines && frame.line == 0)) continue;
      const bool python = lines && frame.part == analysis::StackPart::kPython && !frame.file.starts_with("<");
      if (owner == nullptr || (python && owner->part != analysis::StackPart::kPython)) owner = &frame;
      if (!lines || python) break;
    }
    if (owner == nullptr) continue;
    KernelTime& time = out[frame_key(*owner, lines)][names[node.frame]];
    add_saturating(time.ns, node.gpu_ns);
    time.count += node.launches;
  }
  return out;
}

Status put_stacks(JsonWriter& json, const Run& run, bool lines) {
  analysis::StackOptions options;
  options.lines = lines;
  TACHO_ASSIGN(analysis::StackTree tree, analysis::stack_tree(run.trace(), options));
  const analysis::OwnShare own = analysis::own_share(tree);
  const bool filtered = own.host_ns > 0 || own.gpu_ns > 0;
  if (filtered) tree = analysis::own_code(std::move(tree));
  auto rows = analysis::stack_rows(tree, lines ? analysis::StackBy::kLine : analysis::StackBy::kFunction);
  std::erase_if(rows, [&](const analysis::StackRow& row) {
    const bool idle = row.self_ns == 0 && row.gpu_self_ns == 0;
    return idle || !(host_code(row.frame) || row.frame.part == analysis::StackPart::kUnknown);
  });
  const auto kernels = kernels_below(run, tree, lines);
  if (lines) json.member("host", tree.host_ns).member("samples", tree.samples).member("own", filtered);
  json.key(lines ? "lines_count" : "functions_count").value(rows.size());
  json.key(lines ? "lines" : "functions").begin_array();
  for (size_t i = 0; i < std::min(rows.size(), kMostLines); ++i) {
    const analysis::StackRow& row = rows[i];
    json.newline()
        .begin_object()
        .member("name", row.frame.name)
        .member("place", host_code(row.frame) ? analysis::place_text(row.frame) : std::string())
        .member("samples", row.samples)
        .member("host_self", row.self_ns)
        .member("host", row.total_ns)
        .member("gpu_self", row.gpu_self_ns)
        .member("gpu", row.gpu_ns);
    const auto found = kernels.find(frame_key(row.frame, lines));
    put_kernels(json, found == kernels.end() ? KernelTimes() : found->second);
    json.end_object();
  }
  json.end_array();
  return {};
}

// How busy the sampled threads were in equal bins of the run: shares of one processor.
Status put_threads(JsonWriter& json, Run& run) {
  struct Thread {
    int64_t ns = 0, samples = 0;
    std::vector<int64_t> bins;
  };
  std::map<int64_t, Thread> threads;  // by line
  const int64_t begin = run.t0() + run.index().run_begin(), length = run.index().run_length();
  Status status;
  int64_t rows = 0, total = 0;
  for (const auto& sample :
       trace::rows<column::Sample::track, column::Sample::start, column::Sample::duration>(run.trace(), status)) {
    const int64_t line = run.tree().line_of(Table::kSample, sample.track);
    if (line < 0 || sample.duration <= 0 || sample.start < begin) continue;
    Thread& thread = threads[line];
    if (thread.bins.empty()) thread.bins.resize(kMostBins);
    const double at = static_cast<double>(sample.start - begin) / static_cast<double>(length);
    const auto bin = static_cast<size_t>(at * static_cast<double>(kMostBins));
    add_saturating(thread.bins[std::min(bin, kMostBins - 1)], sample.duration);
    add_saturating(thread.ns, sample.duration);
    ++thread.samples;
    ++rows;
    add_saturating(total, sample.duration);
  }
  TACHO_TRY(status);
  // A bin holds several samples of a thread that runs, else it would be either empty or full.
  const int64_t period = rows > 0 ? std::max<int64_t>(total / rows, 1) : 1;
  size_t merged = 1;
  while (merged < kMostBins && length / static_cast<int64_t>(kMostBins) * static_cast<int64_t>(merged) < 6 * period)
    merged *= 2;
  std::vector<std::pair<int64_t, Thread*>> sorted;
  for (auto& [line, thread] : threads) sorted.emplace_back(line, &thread);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second->ns > b.second->ns; });
  json.member("threads_count", sorted.size()).name("threads").begin_array();
  const auto& lines = run.tree().lines();
  for (size_t i = 0; i < std::min(sorted.size(), kMostThreads); ++i) {
    const auto& [line, thread] = sorted[i];
    const Line& own = lines[static_cast<size_t>(line)];
    const Line* parent = own.parent < 0 ? nullptr : &lines[static_cast<size_t>(own.parent)];
    const bool of_thread = parent != nullptr && parent->kind == LineKind::kThread;
    std::string_view name = of_thread ? parent->name : own.name;
    if (constexpr std::string_view kSamples = " samples"; name.ends_with(kSamples)) name.remove_suffix(kSamples.size());
    json.newline()
        .begin_object()
        .member("track", line)
        .member("name", name)
        .member("host", thread->ns)
        .member("samples", thread->samples);
    json.name("busy").begin_array();
    for (size_t at = 0; at < kMostBins; at += merged) {
      int64_t sum = 0;
      const size_t end = std::min(at + merged, kMostBins);
      for (size_t bin = at; bin < end; ++bin) add_saturating(sum, thread->bins[bin]);
      const double wide = static_cast<double>(length) * static_cast<double>(end - at) / static_cast<double>(kMostBins);
      json.value(std::round(std::min(1.0, static_cast<double>(sum) / wide) * 1e4) / 1e4);
    }
    json.end_array().end_object();
  }
  json.end_array();
  return {};
}

}  // namespace

std::string_view code_view(const trace::Trace& trace) {
  if (trace.property(Table::kEnd, 0, "torch_trace") == "1") return "operators";
  bool python = trace.rows(Table::kSample) > 0;
  for (int64_t row = 1; row < trace.rows(Table::kFunction); ++row) {
    const auto domain = event::from_cell<Domain>(trace.cell(Table::kFunction, row, column::Function::domain));
    if (domain == Domain::kOperator) return "operators";
    python = python || domain == Domain::kPython;
  }
  return python ? "code" : "";
}

Result<std::string> code_tables(Run& run) {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object();
  TACHO_TRY(put_operators(json, run));
  TACHO_TRY(put_stacks(json, run, true));
  TACHO_TRY(put_stacks(json, run, false));
  TACHO_TRY(put_threads(json, run));
  json.name("roofline");
  TACHO_TRY(put_operator_roofline(json, run));
  json.end_object();
  return out;
}

}  // namespace tacho::view
