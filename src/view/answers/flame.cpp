// Stacks merged, bounded, and as JSON (flame.h).
#include "view/answers/flame.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "analysis/stacks/stacks.h"
#include "base/text/json_writer.h"
#include "format/stacks/stacks.h"

namespace tacho::view {

using event::Table;

namespace {

constexpr size_t kDeepestFlame = 400;

// Samples, or functions of Python that torch.profiler recorded.
bool has_stacks(const trace::Trace& trace) {
  if (trace.rows(Table::kSample) > 0) return true;
  for (int64_t row = 1; row < trace.rows(Table::kFunction); ++row)
    if (event::from_cell<event::Domain>(trace.cell(Table::kFunction, row, event::column::Function::domain)) ==
        event::Domain::kPython)
      return true;
  return false;
}

// The note under a tree without stacks.
std::string stacks_note(const Run& run, const analysis::StackTree& tree) {
  const std::string name = std::filesystem::path(run.path()).filename().string();
  constexpr std::string_view kHow =
      "tacho trace --sampler timer (or tacho sys sample) records them while the program runs";
  if (tree.gpu_ns == 0) return fmt::format("{} has no call stacks: {}.", name, kHow);
  return fmt::format("{} has no call stacks: the time of devices stands below the operators, ranges and calls that "
                     "launched it, as far as the run has those. {}.",
                     name, kHow);
}

}  // namespace

std::vector<uint32_t> kernels_of(const Run& run, const analysis::StackTree& tree) {
  std::unordered_map<std::string_view, uint32_t> number;
  for (const analysis::StackFrame& frame : tree.frames)
    if (frame.part == analysis::StackPart::kDevice) number.emplace(frame.name, 0);
  for (uint32_t name = 1; !number.empty() && name < run.names().size(); ++name) {
    if (run.names().table(name) != Table::kDispatch) continue;
    if (const auto found = number.find(run.names().text(name)); found != number.end()) found->second = name;
  }
  std::vector<uint32_t> kernels;
  for (const analysis::StackFrame& frame : tree.frames)
    kernels.push_back(frame.part == analysis::StackPart::kDevice ? number.at(frame.name) : 0);
  return kernels;
}

Result<std::string> flame(const Run& run, const Run* base, const FlameChoice& choice, size_t most) {
  std::vector<const Run*> runs = {&run};
  if (base != nullptr) runs.push_back(base);
  std::vector<analysis::StackTree> trees;
  for (const Run* each : runs) {
    analysis::StackOptions options;
    options.threads = choice.threads;
    options.lines = choice.by == analysis::FramesBy::kLine;
    options.given_up = choice.given_up;
    const auto time_of = [&](int64_t at) {
      int64_t time = 0;
      return __builtin_add_overflow(at, each->t0(), &time) ? at : time;
    };
    if (choice.from != INT64_MIN) options.from = time_of(choice.from);
    if (choice.to != INT64_MAX) options.to = time_of(choice.to);
    TACHO_ASSIGN(trees.emplace_back(), analysis::stack_tree(each->trace(), options));
  }
  // Of the whole run: a span without samples is not a run without stacks.
  std::string note;
  bool stacks = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool some = has_stacks(runs[i]->trace());
    if (!some) note += (note.empty() ? "" : " ") + stacks_note(*runs[i], trees[i]);
    stacks = stacks && some;
  }
  if (base != nullptr && choice.by == analysis::FramesBy::kFunction) analysis::match_functions(trees);
  const analysis::FoldedFrames folded = analysis::bound_trees(trees, most, kDeepestFlame);
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().name("runs").begin_array();
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto command = runs[i]->trace().property(Table::kEnd, 0, "command");
    const std::vector<uint32_t> kernels = kernels_of(*runs[i], trees[i]);
    json.newline();
    format::put_flame_run(json, {std::filesystem::path(runs[i]->path()).filename().string(),
                                 std::string(command.value_or("")), &trees[i], &kernels});
  }
  json.end_array().member("stacks", stacks).member("note", note);
  json.name("folded")
      .begin_object()
      .member("nodes", folded.nodes)
      .member("host", folded.host_ns)
      .member("gpu", folded.gpu_ns)
      .member("deepest", kDeepestFlame < folded.depth ? kDeepestFlame : size_t{0})
      .end_object()
      .end_object();
  return out;
}

}  // namespace tacho::view
