// Holds operators against their roofs (operator_work.h).
#include "efficiency/operator_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analysis/kernels/device_facts.h"
#include "base/format.h"
#include "efficiency/kernel_names.h"
#include "report/text.h"
#include "trace/read/rows.h"
#include "walk/time/span.h"

namespace tacho::efficiency {

namespace {

namespace column = event::column;
using analysis::OperatorNode;
using analysis::OperatorTree;
using event::Table;

// The device whose work the trace holds. Several are one question only if they are of one kind.
struct Device {
  const Product* product = nullptr;
  std::string name;
  int64_t units = 0;
  bool several = false;
};

// Rows of the devices, none of them a CPU, that tracks of the trace belong to.
std::vector<int64_t> used_devices(const trace::Trace& trace) {
  std::vector<bool> used(static_cast<size_t>(trace.rows(Table::kDevice)));
  for (int64_t row = 1; row < trace.rows(Table::kTrack); ++row) {
    const int64_t device = trace.cell(Table::kTrack, row, column::Track::device);
    if (device > 0 && device < trace.rows(Table::kDevice)) used[static_cast<size_t>(device)] = true;
  }
  std::vector<int64_t> out;
  for (int64_t row = 1; row < trace.rows(Table::kDevice); ++row)
    if (used[static_cast<size_t>(row)] && trace::cell<column::Device::kind>(trace, row) != event::DeviceKind::kCpu)
      out.push_back(row);
  return out;
}

Device device_of(const trace::Trace& trace, const Products& products) {
  Device out;
  bool first = true;
  for (const int64_t row : used_devices(trace)) {
    const std::string_view name = trace.text(Table::kDevice, row, column::Device::name);
    const int64_t units = analysis::compute_units(trace, row);
    const Product* const product = products.find(name, units, analysis::memory_bytes(trace, row) / 1e9);
    if (first) {
      out = {product, std::string(name), units, false};
      first = false;
    } else if (product != out.product) {
      out.several = true;
    }
  }
  if (out.several) out.product = nullptr;
  return out;
}

// Inputs are read once for each row of table operator_input, and for each type where the row has shapes alone.
class Inputs {
 public:
  explicit Inputs(const trace::Trace& trace) : trace_(trace) {}
  // Whether the row has shapes without types: PyTorch's emitter tells no more.
  bool untyped(int64_t row) const { return trace_.cell(Table::kOperatorInput, row, column::OperatorInput::types) == 0; }
  const std::vector<OperatorArgument>* of(int64_t row, Precision elements = Precision::kUnknown,
                                          const ListElements& lists = {}) {
    auto [at, fresh] = known_.try_emplace({row, elements, lists});
    if (fresh) {
      using I = column::OperatorInput;
      const auto text = [&](int number) { return trace_.text(Table::kOperatorInput, row, number); };
      if (auto read = read_inputs(text(I::dims), text(I::types), text(I::strides), text(I::concrete)))
        at->second = std::move(*read);
      else
        contradict_ += lists.known() ? 0 : 1;
      if (at->second) set_types(*at->second, lists);
      if (at->second && elements != Precision::kUnknown) set_types(*at->second, elements);
    }
    return at->second ? &*at->second : nullptr;
  }
  size_t contradict() const { return contradict_; }

 private:
  static void set_types(std::vector<OperatorArgument>& inputs, Precision elements) {
    const ElementType type = {elements, elements == Precision::kF64 ? 8 : elements == Precision::kF32 ? 4 : 2};
    for (OperatorArgument& input : inputs)
      for (Tensor& tensor : input.tensors) tensor.type = type;
  }

  // The first list is written, where the types of lists differ.
  static void set_types(std::vector<OperatorArgument>& inputs, const ListElements& lists) {
    if (!lists.known()) return;
    for (size_t i = 0; i < inputs.size(); ++i)
      for (Tensor& tensor : inputs[i].tensors)
        if (inputs[i].list && tensor.type.bytes == 0) tensor.type = i == 0 ? lists.first : lists.second;
  }

  const trace::Trace& trace_;
  std::map<std::tuple<int64_t, Precision, ListElements>, std::optional<std::vector<OperatorArgument>>> known_;
  size_t contradict_ = 0;
};

// What a node and those below it that have no model of their own did.
struct Below {
  int64_t ns = 0, kernels = 0;
  int64_t copied_ns = 0;  // of `ns`: between host and device
  std::vector<OperatorsKernel> of_kernels;
  void add(const Below& other) {
    add_saturating(ns, other.ns);
    add_saturating(copied_ns, other.copied_ns);
    kernels += other.kernels;
    of_kernels.insert(of_kernels.end(), other.of_kernels.begin(), other.of_kernels.end());
  }
};

// Equal kernels become one, the costliest come first.
std::vector<OperatorsKernel> costliest(std::vector<OperatorsKernel> kernels) {
  std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.kernel < b.kernel; });
  std::vector<OperatorsKernel> out;
  for (const OperatorsKernel& each : kernels) {
    if (out.empty() || out.back().kernel != each.kernel) out.push_back({each.kernel, 0, 0});
    out.back().launches += each.launches;
    add_saturating(out.back().ns, each.ns);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  if (out.size() > kMostKernels) out.resize(kMostKernels);
  return out;
}

// A product of 32-bit numbers may run in TF32 (XF32 of AMD): the kernel's name tells.
Precision of_kernels(const trace::Trace& trace, Precision precision, std::span<const OperatorsKernel> kernels) {
  if (precision != Precision::kF32) return precision;
  for (const OperatorsKernel& each : kernels)
    if (computes_tf32(trace.text(Table::kKernel, each.kernel, column::Kernel::name))) return Precision::kTF32;
  return precision;
}

// The time that a row's roofs ask for this work.
double roof_ns(double flops, double bytes, const OperatorWork& row) {
  return std::max(row.peak > 0 ? flops / row.peak * 1e9 : 0, row.bandwidth > 0 ? bytes / row.bandwidth * 1e9 : 0);
}

class Judge {
 public:
  Judge(const trace::Trace& trace, const OperatorTree& tree, std::span<const std::vector<OperatorsKernel>> kernels,
        const Models& models)
      : trace_(trace), tree_(tree), kernels_(kernels), models_(models), inputs_(trace) {}

  std::vector<OperatorWork> rows() {
    std::vector<Below> below(tree_.nodes.size());
    Found found;
    // Children come after their parents: from the last to the first, all of a node's are added before it is looked at.
    for (size_t at = tree_.nodes.size(); at-- > 1;) {
      const OperatorNode& node = tree_.nodes[at];
      Below& own = below[at];
      add_saturating(own.ns, node.work.ns);
      own.kernels += node.work.kernels;
      add_saturating(own.copied_ns, node.work.host_copy_ns);
      if (at < kernels_.size()) own.of_kernels.insert(own.of_kernels.end(), kernels_[at].begin(), kernels_[at].end());
      if (const auto work = work_of(node, own)) {
        if (own.ns > 0) add(found, at, *work, own);
        own = {};
        continue;
      }
      // A backward operator lies below its forward one, and its work is not that one's.
      if (tree_.nodes[node.parent].phase == node.phase) below[node.parent].add(own);
      own = {};
    }
    std::vector<Row*> order;
    for (auto& [key, row] : found) order.push_back(&row);
    std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) { return a->work.ns > b->work.ns; });
    std::vector<OperatorWork> rows;
    for (Row* const row : order) {
      for (const NodeWork& node : row->nodes) nodes_.push_back(node), nodes_.back().row = rows.size();
      row->work.of_kernels = costliest(std::move(row->work.of_kernels));
      rows.push_back(std::move(row->work));
    }
    return rows;
  }
  /// What each node has of the judged rows; `rows`: those of rows(), judged.
  std::vector<analysis::RoofedWork> of_nodes(std::span<const OperatorWork> rows) const {
    std::vector<analysis::RoofedWork> out(tree_.nodes.size());
    for (const NodeWork& node : nodes_) {
      const OperatorWork& row = rows[node.row];
      if (row.why != RoofDoubt::kJudged) continue;
      out[node.at].add(
          {.ns = node.ns, .roof = roof_ns(node.flops, node.bytes, row), .flops = node.flops, .bytes = node.bytes});
    }
    return out;
  }
  size_t contradict() const { return inputs_.contradict(); }
  const std::vector<UntoldLists>& untold() const { return untold_; }
  bool types_from_names() const { return types_from_names_; }

 private:
  struct NodeWork {
    size_t at = 0, row = 0;  // the tree's node; index into rows()
    int64_t ns = 0;
    double flops = 0, bytes = 0;
  };
  struct Row {
    OperatorWork work;
    std::vector<NodeWork> nodes;
  };
  using Found = std::map<std::tuple<std::string_view, std::string_view, analysis::OperatorPhase, Precision>, Row>;

  std::optional<CallWork> work_of(const OperatorNode& node, const Below& own) {
    const std::string_view name = tree_.texts[node.name];
    if (node.inputs == 0 || !models_.has(name)) return std::nullopt;
    Precision elements = Precision::kUnknown;
    if (inputs_.untyped(node.inputs)) {
      if (!models_.same_type(name)) return std::nullopt;
      elements = named_elements(own);
      if (elements == Precision::kUnknown) return std::nullopt;
      types_from_names_ = true;
    }
    const bool lists = models_.of_lists(name);
    const auto* const inputs = inputs_.of(node.inputs, elements, lists ? list_elements(own) : ListElements());
    if (inputs == nullptr) return std::nullopt;
    auto work = models_.work(name, *inputs);
    if (lists && !work && own.ns > 0)
      add_untold(node, own, models_.lacks_sizes(name, *inputs) ? RoofDoubt::kNoSizes : RoofDoubt::kNoTypes);
    return work;
  }

  // The types of lists by the names of their kernels; not known where they tell none or several.
  ListElements list_elements(const Below& own) const {
    ListElements found;
    for (const OperatorsKernel& each : own.of_kernels) {
      const ListElements one = list_elements_of(trace_.text(Table::kKernel, each.kernel, column::Kernel::name));
      if (!one.known() || one == found) continue;
      if (found.known()) return {};
      found = one;
    }
    return found;
  }

  void add_untold(const OperatorNode& node, const Below& own, RoofDoubt why) {
    UntoldLists row = {tree_.texts[node.name], tree_.texts[node.shapes], node.phase, why};
    const auto same = [&](const UntoldLists& each) {
      return each.name == row.name && each.shapes == row.shapes && each.phase == row.phase && each.why == why;
    };
    auto at = std::find_if(untold_.begin(), untold_.end(), same);
    if (at == untold_.end()) at = untold_.insert(at, std::move(row));
    at->calls += node.calls;
    add_saturating(at->ns, own.ns);
  }

  // The type of a product's elements by the names of its kernels; kUnknown where they tell none or several.
  Precision named_elements(const Below& own) const {
    Precision found = Precision::kUnknown;
    for (const OperatorsKernel& each : own.of_kernels) {
      const Precision one = elements_of(trace_.text(Table::kKernel, each.kernel, column::Kernel::name));
      if (one == Precision::kUnknown || one == found) continue;
      if (found != Precision::kUnknown) return Precision::kUnknown;
      found = one;
    }
    return found;
  }

  void add(Found& found, size_t at, const CallWork& work, Below& own) {
    const OperatorNode& node = tree_.nodes[at];
    own.of_kernels = costliest(std::move(own.of_kernels));
    const Precision precision = work.matrix ? of_kernels(trace_, work.precision, own.of_kernels) : work.precision;
    Row& entry = found[{tree_.texts[node.name], tree_.texts[node.shapes], node.phase, precision}];
    OperatorWork& row = entry.work;
    row.name = tree_.texts[node.name];
    row.shapes = tree_.texts[node.shapes];
    row.phase = node.phase;
    row.calls += node.calls;
    row.kernels += own.kernels;
    add_saturating(row.ns, own.ns);
    add_saturating(row.copied_ns, own.copied_ns);
    const auto calls = static_cast<double>(node.calls);
    row.flops += calls * work.flops;
    row.bytes += calls * work.bytes;
    row.bytes_most += calls * work.bytes_most;
    row.matrix = work.matrix;
    row.precision = precision;
    row.call = work;
    entry.nodes.push_back({at, 0, own.ns, calls * work.flops, calls * work.bytes});
    row.of_kernels.insert(row.of_kernels.end(), own.of_kernels.begin(), own.of_kernels.end());
  }

  const trace::Trace& trace_;
  const OperatorTree& tree_;
  std::span<const std::vector<OperatorsKernel>> kernels_;
  const Models& models_;
  Inputs inputs_;
  std::vector<NodeWork> nodes_;
  std::vector<UntoldLists> untold_;
  bool types_from_names_ = false;
};

// The best rates that this trace itself shows, for a device that nobody knows.
struct BestRates {
  std::map<std::pair<bool, Precision>, double> flops;
  double bytes = 0;
  explicit BestRates(std::span<const OperatorWork> rows) {
    for (const OperatorWork& row : rows) {
      if (row.kernels == 0 || static_cast<double>(row.ns) / static_cast<double>(row.kernels) < kShortestMean) continue;
      const double seconds = static_cast<double>(row.ns) / 1e9;
      double& best = flops[{row.matrix, row.precision}];
      best = std::max(best, row.flops / seconds);
      bytes = std::max(bytes, row.bytes / seconds);
    }
  }
};

void judge(OperatorWork& row) {
  if (row.peak <= 0 && row.bandwidth <= 0) {
    row.why = RoofDoubt::kNoRoof;
    return;
  }
  // A side without a roof cannot be said to bound: with FLOPs and no peak for them nothing is judged.
  if ((row.flops > 0 && row.peak <= 0) || row.bandwidth <= 0) {
    row.why = RoofDoubt::kNoRoof;
    return;
  }
  row.compute_bound = roof_ns(row.flops, 0, row) > roof_ns(0, row.bytes, row);
  const double roof = roof_ns(row.flops, row.bytes, row), moving_most = roof_ns(0, row.bytes_most, row),
               time = static_cast<double>(row.ns);
  row.percent = 100 * roof / time;
  row.lost_ns = std::max(0.0, time - roof);
  if (row.kernels == 0)
    row.why = RoofDoubt::kCopies;
  else if (100 * static_cast<double>(row.copied_ns) > kMostCopied * time)
    row.why = RoofDoubt::kPartCopies;
  else if (time / static_cast<double>(row.kernels) < kShortestMean)
    row.why = RoofDoubt::kTooShort;
  else if (*row.percent > kHighest)
    row.why = RoofDoubt::kTooFast;
  else if (moving_most > roof && moving_most >= time)
    row.why = RoofDoubt::kOpen;
}

// Which of a product's roofs rows were held against.
struct RoofsUsed {
  bool measured = false, achievable = false, published = false;
};

// Sets a row's roofs: measured ones first, then the product's.
void set_roofs(OperatorWork& row, const Product* product, const MeasuredRoofs& measured, RoofsUsed& used) {
  if (const auto rate = measured.compute(row.matrix, row.precision)) {
    row.peak = *rate;
    used.measured = true;
  } else if (product != nullptr) {
    if (const auto peak = compute_peak(*product, row.matrix, row.precision)) {
      row.peak = peak->rate;
      used.achievable = used.achievable || peak->achievable;
      used.published = true;
    }
  }
  if (measured.bandwidth > 0) {
    row.bandwidth = measured.bandwidth;
    used.measured = true;
  } else if (product != nullptr) {
    row.bandwidth = product->bandwidth * 1e12;
    used.published = true;
  }
}

std::string product_sentence(const Product& product, const Device& device, bool asked, bool achievable) {
  return fmt::format("Roofs of {}{}: {}.", product.name,
                     asked || device.name.empty() ? std::string() : fmt::format(" (\"{}\")", device.name),
                     achievable ? fmt::format("matrix work against what its maker published as achievable, all else "
                                              "against the data sheet ({})",
                                              product.source)
                                : fmt::format("the data sheet's dense rates ({})", product.source));
}

// Where the roofs of a device come from.
std::string roofs_sentence(const Device& device, const MeasuredRoofs& measured, bool asked, const RoofsUsed& used) {
  if (!used.measured) return product_sentence(*device.product, device, asked, used.achievable);
  return fmt::format(
      "Roofs of {}: measured{}{}.{}", measured.device, measured.when.empty() ? "" : " on ", measured.when,
      used.published
          ? " Where nothing was measured: " + product_sentence(*device.product, device, asked, used.achievable)
          : std::string());
}

// What operators on lists that nobody told of have of the GPU's time; "" without any.
std::string untold_sentence(std::span<const UntoldLists> untold, RoofDoubt why, std::string_view reason) {
  int64_t calls = 0, ns = 0;
  for (const UntoldLists& each : untold) {
    if (each.why != why) continue;
    calls += each.calls;
    add_saturating(ns, each.ns);
  }
  if (calls == 0) return {};
  return fmt::format("{} of operators on lists of tensors ({} of GPU time) {} not judged: {}.",
                     calls == 1 ? "1 call" : std::to_string(calls) + " calls",
                     report::format_duration(static_cast<double>(ns)), calls == 1 ? "is" : "are", reason);
}

// Matrix work of the run against the peak of the precision that most of it has.
void measure_run(const trace::Trace& trace, const Product* product, Efficiency& out) {
  std::map<Precision, double> flops;
  for (const OperatorWork& row : out.rows)
    if (row.matrix) flops[row.precision] += row.flops;
  for (const auto& [precision, sum] : flops) {
    out.matrix_flops += sum;
    if (sum > 0 && (out.main == Precision::kUnknown || sum > flops[out.main])) out.main = precision;
  }
  double time = static_cast<double>(out.steps) * out.step_ns;
  if (out.steps < 2) {
    const auto run = walk::run_span(trace);
    time = run ? static_cast<double>(run->length()) : 0;
  }
  if (out.sampled || time <= 0 || product == nullptr || out.main == Precision::kUnknown) return;
  const auto found = product->matrix.find(out.main);  // by convention the data sheet's
  if (found == product->matrix.end()) return;
  out.utilisation = 100 * out.matrix_flops / (time / 1e9 * found->second * 1e12);
}

}  // namespace

std::string device_name(const trace::Trace& trace) {
  std::string name;
  for (const int64_t row : used_devices(trace)) {
    const std::string_view each = trace.text(Table::kDevice, row, column::Device::name);
    if (!name.empty() && each != name) return {};
    name = each;
  }
  return name;
}

std::string_view to_string(RoofDoubt why) {
  switch (why) {
    case RoofDoubt::kJudged:
      return "";
    case RoofDoubt::kNoModel:
      return "no model";
    case RoofDoubt::kNoRoof:
      return "no roof";
    case RoofDoubt::kCopies:
      return "copies only";
    case RoofDoubt::kPartCopies:
      return "copies and kernels";
    case RoofDoubt::kTooShort:
      return "too short";
    case RoofDoubt::kTooFast:
      return "above the roof";
    case RoofDoubt::kOpen:
      return "traffic open";
    case RoofDoubt::kNoSizes:
      return "lists without sizes";
    case RoofDoubt::kNoTypes:
      return "lists without types";
  }
  return "";
}

Result<std::vector<std::string>> link_sentences(const trace::Trace& trace) {
  TACHO_ASSIGN(const Products products, Products::load());
  const Device device = device_of(trace, products);
  std::vector<std::string> out;
  if (device.product == nullptr || device.product->host_link.empty() || trace.aggregated()) return out;
  constexpr int64_t kLarge = 1 << 20;  // smaller ones measure how long a copy takes to begin
  struct Sum {
    int64_t bytes = 0, ns = 0;
  };
  std::map<event::CopyDirection, Sum> sums;
  using C = column::Copy;
  Status status;
  for (const auto& rows : trace::chunks<C::duration, C::dim, C::bytes>(trace, status))
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows.bytes[i] < kLarge || rows.duration[i] <= 0) continue;
      const auto direction = event::from_cell<event::CopyDirection>(
          trace.cell(Table::kCopyShape, rows.dim[i], column::CopyShape::direction));
      if (direction != event::CopyDirection::kHostToDevice && direction != event::CopyDirection::kDeviceToHost)
        continue;
      add_saturating(sums[direction].bytes, rows.bytes[i]);
      add_saturating(sums[direction].ns, rows.duration[i]);
    }
  TACHO_TRY(status);
  for (const auto& [direction, sum] : sums) {
    const double rate = static_cast<double>(sum.bytes) / static_cast<double>(sum.ns),
                 percent = 100 * rate / device.product->host_rate;
    if (percent > kHighest) continue;  // another link
    out.push_back(fmt::format("Copies of 1 MiB and more from {} ran at {} GB/s, {} % of {} ({} GB/s in one direction), "
                              "the link of {}.",
                              direction == event::CopyDirection::kHostToDevice ? "host to device" : "device to host",
                              report::format_fixed(rate, 2), report::format_fixed(percent, 1),
                              device.product->host_link, report::format_fixed(device.product->host_rate, 2),
                              device.product->name));
  }
  return out;
}

const OperatorWork* Efficiency::find(std::string_view name, std::string_view shapes,
                                     analysis::OperatorPhase phase) const {
  for (const OperatorWork& row : rows)
    if (row.name == name && row.shapes == shapes && row.phase == phase) return &row;
  return nullptr;
}

const UntoldLists* Efficiency::find_untold(std::string_view name, std::string_view shapes,
                                           analysis::OperatorPhase phase) const {
  for (const UntoldLists& each : untold)
    if (each.name == name && each.shapes == shapes && each.phase == phase) return &each;
  return nullptr;
}

analysis::OperatorVisitor KernelsOfNodes::visitor() {
  analysis::OperatorVisitor visitor;
  visitor.kernel = [this](const analysis::OperatorKernel& kernel, const analysis::OperatorCall* call) {
    if (call == nullptr || kernel.duration < 0) return;
    if (call->node >= nodes_.size()) nodes_.resize(call->node + 1);
    auto& list = nodes_[call->node];
    for (OperatorsKernel& each : list)
      if (each.kernel == kernel.dim) {
        ++each.launches;
        add_saturating(each.ns, kernel.duration);
        return;
      }
    if (list.size() < 4 * kMostKernels) list.push_back({kernel.dim, 1, kernel.duration});
  };
  return visitor;
}

std::span<const std::vector<OperatorsKernel>> KernelsOfNodes::of(const OperatorTree& tree) {
  nodes_.resize(std::max(nodes_.size(), tree.nodes.size()));
  return nodes_;
}

Result<Efficiency> efficiency_of(const trace::Trace& trace, const OperatorTree& tree,
                                 std::span<const std::vector<OperatorsKernel>> kernels,
                                 const EfficiencyOptions& options) {
  TACHO_ASSIGN(const Models models, Models::load(options.config_dirs));
  TACHO_ASSIGN(const Products products, Products::load());
  Efficiency out;
  Device device = device_of(trace, products);
  if (!options.device.empty()) {
    device.product = products.named(options.device);
    if (device.product == nullptr)
      return fail("no GPU \"{}\" in the list of products; it has {}", options.device, products.list());
  }
  Judge judging(trace, tree, kernels, models);
  out.rows = judging.rows();
  out.sampled = tree.sampled;
  out.whole_ns = tree.sampled ? tree.with_shapes_ns() : tree.whole.ns;
  out.units = device.units;
  out.steps = options.steps;
  out.step_ns = options.step_ns;
  for (const OperatorWork& row : out.rows) add_saturating(out.modelled_ns, row.ns);
  const BestRates best(out.rows);
  RoofsUsed used;
  const bool known = device.product != nullptr || options.measured.any();
  for (OperatorWork& row : out.rows) {
    if (known) {
      set_roofs(row, device.product, options.measured, used);
    } else if (!device.several) {
      const auto found = best.flops.find({row.matrix, row.precision});
      row.peak = found == best.flops.end() ? 0 : found->second;
      row.bandwidth = best.bytes;
    }
    judge(row);
  }
  out.of_nodes = judging.of_nodes(out.rows);
  if (device.product != nullptr) out.product = device.product->name;
  if (known) {
    if (!out.rows.empty()) out.roofs = roofs_sentence(device, options.measured, !options.device.empty(), used);
  } else if (device.several) {
    out.remarks.emplace_back(
        "the trace has GPUs of several kinds: no operator is held against a roof; --device holds all against one product");
  } else if (!out.rows.empty()) {
    out.roofs = fmt::format(
        "The peaks of {} are not known: roofs are the best rates that operators reached in this trace. --device names a "
        "product.",
        device.name.empty() ? std::string("the device") : fmt::format("\"{}\"", device.name));
  }
  measure_run(trace, device.product, out);
  if (judging.types_from_names())
    out.notes.emplace_back("This recording has shapes without types: only matrix products are judged, by the type that "
                           "their kernels' names tell.");
  out.untold = judging.untold();
  for (const auto& [why, reason] :
       {std::pair(RoofDoubt::kNoSizes, "PyTorch writes sizes of lists of up to 30 tensors"),
        std::pair(RoofDoubt::kNoTypes, "their kernels' names tell no type of elements, or several")})
    if (std::string sentence = untold_sentence(out.untold, why, reason); !sentence.empty())
      out.notes.push_back(std::move(sentence));
  if (judging.contradict() > 0)
    out.remarks.push_back(
        fmt::format("{} sets of operators' inputs contradict themselves and are not used", judging.contradict()));
  return out;
}

Result<Efficiency> efficiency_of(const trace::Trace& trace, const EfficiencyOptions& options) {
  KernelsOfNodes kernels;
  TACHO_ASSIGN(const OperatorTree tree, analysis::operator_tree(trace, kernels.visitor(), nullptr, true));
  return efficiency_of(trace, tree, kernels.of(tree), options);
}

}  // namespace tacho::efficiency
