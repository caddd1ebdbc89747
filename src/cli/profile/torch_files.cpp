// Joining the kernels of a profile with the operators that launched them (torch_files.h).
#include "cli/profile/torch_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/operators/operators.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text/csv.h"
#include "base/text/demangle.h"
#include "base/text/how_many.h"
#include "trace/trace.h"
#include "workload/torch_trace.h"

namespace tacho::cli {

namespace {

namespace column = event::column;
using event::Table;

// The name of a CUDA graph among the kernels of a profile.
constexpr std::string_view kGraph = "CUDA graph";

// A kernel of the trace, or a launch of a CUDA graph.
struct Launched {
  std::string kernel;
  uint64_t grid = 0, group = 0;  // work-items in all; group 0 = the runtime's choice
  int64_t start = 0, end = 0;    // CLOCK_BOOTTIME
  int64_t call = -1;             // index into calls; -1 = outside of every operator
  int64_t pid = 0, tid = 0;
};

// A CUDA graph, and what its nodes did in all launches, by the node of the operator that made them.
struct Graph {
  std::string title;
  int64_t launches = 0;
  std::map<uint32_t, analysis::DeviceWork> work;
};

struct Recorded {
  std::vector<Launched> kernels;                        // in order of start; a launch of a graph is one
  std::map<std::pair<int64_t, int64_t>, Graph> graphs;  // by process and id
  std::vector<analysis::OperatorCall> calls;
  analysis::OperatorTree tree;
};

// "1@train.py:31": the n-th call of the operator from that line.
std::string context_of(const analysis::OperatorTree& tree, const analysis::OperatorCall& call) {
  std::string place = tree.texts[tree.nodes[call.outer].place];
  // Backward operators, and ATen operators of torch's emitter, have no line of their own: that of what called them.
  for (uint32_t at = call.outer; place.empty() && at != 0; at = tree.nodes[at].parent)
    place = tree.texts[tree.nodes[at].place];
  place.erase(0, place.rfind('/') + 1);
  return fmt::format("{}@{}", call.number, place.empty() ? "?" : place);
}

Result<Recorded> read_operators(const std::string& file) {
  TACHO_ASSIGN(const auto trace, trace::Trace::open(file));
  Recorded out;
  const ClockTuple now = sample_clocks();
  const int64_t boot = now.boottime - now.raw;
  std::map<std::tuple<int64_t, int64_t, uint32_t>, int64_t> call_of;  // (thread, start, node)
  analysis::OperatorVisitor visitor;
  const auto launched_by = [&](Launched& one, const analysis::OperatorCall* call) {
    if (call == nullptr) return;
    one.tid = trace->cell(Table::kThread, call->thread, column::Thread::tid);
    const auto [at, fresh] =
        call_of.try_emplace({call->thread, call->start, call->outer}, static_cast<int64_t>(out.calls.size()));
    if (fresh) {
      out.calls.push_back(*call);
      out.calls.back().start += boot;
    }
    one.call = at->second;
  };
  const auto pid_of = [&](int64_t process) { return trace->cell(Table::kProcess, process, column::Process::pid); };
  std::map<std::pair<int64_t, int64_t>, size_t> launch_of;  // graphs: (process, correlation) -> place in kernels
  size_t launch = 0;                                        // the one of the node at hand
  visitor.graph_node = [&](const analysis::GraphNodeWork& node) {
    if (node.graph == 0) return;  // a copy or a fill
    const auto [at, fresh] = launch_of.try_emplace({node.process, node.correlation}, out.kernels.size());
    launch = at->second;
    Graph& graph = out.graphs[{node.process, node.graph}];
    if (fresh) {
      Launched& one = out.kernels.emplace_back();
      one.kernel = kGraph;
      one.pid = one.tid = pid_of(node.process);
      launched_by(one, node.launcher);
      ++graph.launches;
    }
    graph.work[node.node].add(node.work);
  };
  visitor.kernel = [&](const analysis::OperatorKernel& kernel, const analysis::OperatorCall* call) {
    if (kernel.graph_node != 0) {
      Launched& one = out.kernels[launch];
      const int64_t begin = kernel.start + boot, end = begin + std::max<int64_t>(0, kernel.duration);
      if (one.start == 0) one.start = begin;
      one.end = std::max(one.end, end);
      return;
    }
    Launched& one = out.kernels.emplace_back();
    const auto cell = [&](int which) { return trace->cell(Table::kKernel, kernel.dim, which); };
    const auto size = [&](int which) {
      const int64_t value = cell(which);
      return value > 0 ? static_cast<uint64_t>(value) : uint64_t{1};
    };
    using K = column::Kernel;
    one.kernel = demangle(trace->text(Table::kKernel, kernel.dim, K::name));
    one.grid = size(K::grid_x) * size(K::grid_y) * size(K::grid_z);
    one.group = cell(K::group_x) > 0 ? size(K::group_x) * size(K::group_y) * size(K::group_z) : 0;
    one.start = kernel.start + boot;
    one.end = one.start + std::max<int64_t>(0, kernel.duration);
    const int64_t process = trace->cell(Table::kTrack, kernel.track, column::Track::process);
    one.pid = one.tid = pid_of(process);
    launched_by(one, call);
  };
  TACHO_ASSIGN(out.tree, analysis::operator_tree(*trace, visitor));
  for (auto& [key, graph] : out.graphs) {
    const auto title = trace->property(Table::kProcess, key.first, fmt::format("cuda.graph.{}", key.second));
    graph.title = title ? *title : kGraph;
  }
  return out;
}

// Which kernel of the trace a row of a pass is.
class Matcher {
 public:
  explicit Matcher(const std::vector<Launched>& kernels) : kernels_(kernels) {
    for (const Launched& each : kernels) {
      by_shape_[key(each.kernel, each.grid, each.group)].push_back(&each);
      if (each.group == 0) by_grid_[key(each.kernel, each.grid, 0)].push_back(&each);
    }
  }
  const Launched* find(size_t number, const std::string& kernel, uint64_t grid, uint64_t group) {
    if (kernel == kGraph) grid = group = 0;  // a graph has no sizes
    if (number < kernels_.size() && kernels_[number].kernel == kernel && kernels_[number].grid == grid)
      return &kernels_[number];
    for (auto* const table : {&by_shape_, &by_grid_}) {
      const auto found = table->find(key(kernel, grid, table == &by_shape_ ? group : 0));
      if (found == table->end()) continue;
      size_t& next = used_[found->first];
      if (next < found->second.size()) return found->second[next++];
    }
    return nullptr;
  }

 private:
  static std::string key(const std::string& kernel, uint64_t grid, uint64_t group) {
    return fmt::format("{}\n{} {}", kernel, grid, group);
  }
  const std::vector<Launched>& kernels_;
  std::map<std::string, std::vector<const Launched*>> by_shape_, by_grid_;
  std::map<std::string, size_t> used_;
};

constexpr std::string_view kMarkerHeader =
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
constexpr std::string_view kCollectionHeader =
    "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\",\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\",\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    "";

// The part of a pass file that goes into counter_collection, by the names of its columns; wide and long form.
struct Columns {
  std::map<std::string, size_t, std::less<>> at;
  size_t first_counter = 0, end_counters = 0;  // wide
  size_t name = 0, value = 0;                  // long
  bool wide = false;

  static Result<Columns> of(const std::vector<std::string_view>& fields, const std::string& file) {
    Columns out;
    for (size_t i = 0; i < fields.size(); ++i) out.at.emplace(fields[i], i);
    for (const char* needed :
         {"Dispatch_ID", "Kernel_Name", "Grid_Size", "Workgroup_Size", "Kernel_ID", "Start_Timestamp"})
      if (!out.at.contains(needed)) return fail("{}: it has no column {}", file, needed);
    out.wide = !out.at.contains("Counter_Name");
    if (out.wide) {
      out.first_counter = out.at["Kernel_ID"] + 1;
      out.end_counters = out.at["Start_Timestamp"];
    } else {
      out.name = out.at["Counter_Name"];
      out.value = out.at["Counter_Value"];
    }
    return out;
  }
  std::string_view field(const std::vector<std::string_view>& fields, std::string_view column) const {
    const auto found = at.find(column);
    return found == at.end() || found->second >= fields.size() ? std::string_view() : fields[found->second];
  }
};

uint64_t number_of(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

namespace {

// The content of graphs that were measured as a whole.
std::string graph_rows(const Recorded& recorded) {
  std::string out(workload::kGraphHeader);
  int64_t number = 0;
  for (const auto& [key, graph] : recorded.graphs) {
    ++number;
    std::map<std::string, analysis::DeviceWork> by_operator;
    for (const auto& [node, work] : graph.work)
      by_operator[node == 0 ? std::string() : recorded.tree.path(node)].add(work);
    std::vector<std::pair<std::string, analysis::DeviceWork>> sorted(by_operator.begin(), by_operator.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    for (const auto& [name, work] : sorted)
      out += fmt::format("{},{},{},{},{},{}\n", csv_quoted(graph.title), number, graph.launches, csv_quoted(name),
                         work.kernels, work.ns);
  }
  return out;
}

}  // namespace

Status write_torch_files(const workload::FolderWriter& folder, const std::string& trace_file,
                         const std::vector<std::string>& pass_files, std::vector<std::string>& notes) {
  TACHO_ASSIGN(const Recorded recorded, read_operators(trace_file));
  size_t unmatched = 0, outside = 0, rows = 0;
  for (const std::string& pass : pass_files) {
    const std::string path = folder.folder() + "/" + pass;
    TACHO_ASSIGN(CsvReader reader, CsvReader::open(path));
    std::vector<std::string_view> fields;
    TACHO_ASSIGN(const bool any, reader.next(fields));
    if (!any) continue;
    std::vector<std::string> header(fields.begin(), fields.end());
    TACHO_ASSIGN(const Columns columns, Columns::of(fields, path));
    Matcher matcher(recorded.kernels);
    std::string collection(kCollectionHeader);
    std::vector<bool> used(recorded.calls.size());
    std::optional<uint64_t> last;  // the long form has several rows a dispatch
    const Launched* launched = nullptr;
    for (;;) {
      TACHO_ASSIGN(const bool more, reader.next(fields));
      if (!more) break;
      const uint64_t id = number_of(columns.field(fields, "Dispatch_ID"));
      const std::string kernel(columns.field(fields, "Kernel_Name"));
      if (!last || *last != id) {
        launched = matcher.find(id, kernel, number_of(columns.field(fields, "Grid_Size")),
                                number_of(columns.field(fields, "Workgroup_Size")));
        last = id;
        if (&pass == &pass_files.front()) {
          ++rows;
          if (launched == nullptr)
            ++unmatched;
          else if (launched->call < 0)
            ++outside;
        }
      }
      if (launched == nullptr) continue;
      if (launched->call >= 0) used[static_cast<size_t>(launched->call)] = true;
      const std::string head = fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},", launched->call + 1, id, columns.field(fields, "GPU_ID"),
          columns.field(fields, "Queue_ID"), launched->pid, launched->tid, columns.field(fields, "Grid_Size"),
          columns.field(fields, "Kernel_ID"), csv_quoted(kernel), columns.field(fields, "Workgroup_Size"),
          columns.field(fields, "LDS_Per_Workgroup"), columns.field(fields, "Scratch_Per_Workitem"),
          columns.field(fields, "Arch_VGPR"), columns.field(fields, "Accum_VGPR"), columns.field(fields, "SGPR"));
      const auto put = [&](std::string_view name, std::string_view value) {
        if (!value.empty())
          collection += fmt::format("{}{},{},{},{}\n", head, csv_quoted(name), value, launched->start, launched->end);
      };
      if (!columns.wide)
        put(fields[columns.name], fields[columns.value]);
      else
        for (size_t i = columns.first_counter; i < std::min(columns.end_counters, fields.size()); ++i)
          put(header[i], fields[i]);
    }
    std::string markers(kMarkerHeader);
    std::vector<const Launched*> first(recorded.calls.size());
    for (const Launched& each : recorded.kernels)
      if (each.call >= 0 && first[static_cast<size_t>(each.call)] == nullptr)
        first[static_cast<size_t>(each.call)] = &each;
    for (size_t i = 0; i < recorded.calls.size(); ++i) {
      const analysis::OperatorCall& call = recorded.calls[i];
      if (!used[i]) continue;
      const Launched* const one = first[i];
      const int64_t end = call.duration == event::kUnknown ? one->end : call.start + call.duration;
      markers += fmt::format("\"MARKER_CORE_RANGE_API\",{},{},{},{},{},{}\n",
                             csv_quoted(recorded.tree.path(call.outer) + ":#" + context_of(recorded.tree, call)),
                             one->pid, one->tid, i + 1, call.start, end);
    }
    const std::string stem = fmt::format("{}_{}_", workload::kTorchPrefix, pass.substr(0, pass.rfind(".csv")));
    TACHO_TRY(folder.write(stem + std::string(workload::kMarkerSuffix), markers, true));
    TACHO_TRY(folder.write(stem + std::string(workload::kCollectionSuffix), collection, true));
    if (&pass == &pass_files.front() && !recorded.graphs.empty())
      TACHO_TRY(folder.write(stem + std::string(workload::kGraphSuffix), graph_rows(recorded), true));
  }
  if (rows > 0 && !recorded.tree.any())
    notes.push_back("--torch-trace: no process of the program imported PyTorch with tacho's ranges, so kernels have no "
                    "operators");
  else if (unmatched > 0)
    notes.push_back(how_many_of(unmatched, how_many(rows, "dispatch", "dispatches"), "has", "have") +
                    " no counterpart in the run that recorded PyTorch's operators, and so no operator");
  if (recorded.tree.any() && outside > 0)
    notes.push_back(how_many_of(outside, how_many(rows, "dispatch", "dispatches"), "was", "were") +
                    " launched outside of PyTorch's operators");
  return {};
}

}  // namespace tacho::cli
