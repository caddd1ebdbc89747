// The two passes over the allocations of a trace (memory.h): the first finds sums and peaks, the second whose the
// memory was. Memory is bounded by what is live together, not by the number of allocations.
#include "analysis/memory/memory.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/memory/curve.h"
#include "analysis/memory/lines.h"
#include "analysis/stats.h"
#include "base/saturating.h"
#include "trace/read/rows.h"

namespace tacho::analysis {

namespace {

using event::kUnknown;
using event::Table;
namespace column = event::column;

// Steps, or parts of the recording where no markers tell of steps.
constexpr size_t kParts = 8;

// Begins of the steps of training, as torch.profiler's step() or the optimizer's calls tell them.
Result<std::vector<int64_t>> step_begins(const trace::Trace& trace) {
  std::vector<int64_t> profiler, optimizer;
  const auto kind_of = [](std::string_view name) {
    return name.starts_with("ProfilerStep#") ? 1 : name.starts_with("Optimizer.step#") ? 2 : 0;
  };
  std::vector<int> labels(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kLabel), 1))),
      functions(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)));
  bool any = false;
  for (size_t i = 1; i < labels.size(); ++i)
    any |= (labels[i] = kind_of(trace::text<column::Label::name>(trace, static_cast<int64_t>(i)))) != 0;
  for (size_t i = 1; i < functions.size(); ++i)
    any |= (functions[i] = kind_of(trace::text<column::Function::name>(trace, static_cast<int64_t>(i)))) != 0;
  if (!any) return std::vector<int64_t>();
  Status status;
  const auto take = [&](int kind, int64_t start) {
    if (kind == 1) profiler.push_back(start);
    if (kind == 2) optimizer.push_back(start);
  };
  using M = column::Marker;
  for (const auto& rows : trace::chunks<M::start, M::dim>(trace, status))
    for (size_t i = 0; i < rows.size(); ++i)
      if (static_cast<size_t>(rows.dim[i]) < labels.size())
        take(labels[static_cast<size_t>(rows.dim[i])], rows.start[i]);
  TACHO_TRY(status);
  using A = column::Api;
  for (const auto& rows : trace::chunks<A::start, A::dim>(trace, status))
    for (size_t i = 0; i < rows.size(); ++i)
      if (static_cast<size_t>(rows.dim[i]) < functions.size())
        take(functions[static_cast<size_t>(rows.dim[i])], rows.start[i]);
  TACHO_TRY(status);
  std::vector<int64_t>& steps = profiler.empty() ? optimizer : profiler;
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return std::move(steps);
}

// Stacks that calls which allocate left at their beginning, for allocations whose own rows have none: samples that
// stand for no time.
class CallStacks {
 public:
  explicit CallStacks(const trace::Trace& trace) : trace_(trace), samples_(trace), more_(samples_.next()) {}

  /// Rows come in ascending order of their starts. 0 = there is none.
  int64_t of(const OperatorAllocation& row) {
    for (; more_ && samples_->start <= row.start; more_ = samples_.next()) {
      if (samples_->duration != 0 || samples_->correlation == 0) continue;
      const Key key = key_of(samples_->track, samples_->correlation);
      if (stacks_.insert_or_assign(key, samples_->dim).second) order_.push_back(key);
      if (order_.size() <= kMost) continue;
      stacks_.erase(order_.front());
      order_.pop_front();
    }
    if (row.correlation == 0) return 0;
    const auto found = stacks_.find(key_of(row.track, row.correlation));
    return found == stacks_.end() ? 0 : found->second;
  }
  Status status() const { return samples_.status(); }

 private:
  using S = column::Sample;
  using Key = std::pair<int64_t, int64_t>;
  static constexpr size_t kMost = 65'536;  // calls between a stack and the end of what it belongs to
  Key key_of(int64_t track, int64_t correlation) const {
    return {trace::cell<column::Track::process>(trace_, track), correlation};
  }

  const trace::Trace& trace_;
  trace::RowCursor<S::track, S::start, S::duration, S::dim, S::correlation> samples_;
  bool more_;
  std::map<Key, int64_t> stacks_;
  std::deque<Key> order_;
};

class OwnerPass {
 public:
  OwnerPass(const trace::Trace& trace, const MemoryOptions& options, MemoryCurves& curves, MemoryReport& report,
            std::vector<int64_t> steps)
      : trace_(trace),
        options_(options),
        curves_(curves),
        report_(report),
        steps_(std::move(steps)),
        lines_(trace),
        call_stacks_(trace),
        next_moment_(curves.places(), 0),
        next_bucket_(curves.places(), 0),
        seen_(curves.places(), 0) {
    owners_.resize(curves.places());
  }

  Status run() {
    OperatorVisitor visitor;
    visitor.allocation = [this](const OperatorAllocation& row, const OperatorCall* call, const OperatorTree& tree) {
      take(row, call, tree);
    };
    visitor.described = [this](int64_t process, int64_t address, std::string_view what) {
      const auto found = live_.find(MemoryKey{process, MemoryCurves::kBlocks, address});
      if (found != live_.end()) found.value().told = use_of(what);
    };
    TACHO_ASSIGN(const OperatorTree tree, operator_tree(trace_, visitor));
    TACHO_TRY(call_stacks_.status());
    for (size_t place = 0; place < owners_.size(); ++place) mark_moments(place, std::numeric_limits<int64_t>::max());
    for (auto each = live_.begin(); each != live_.end(); ++each) end_of(each.value(), tree);
    fill(tree);
    return {};
  }

 private:
  struct Live {
    int64_t bytes, start, call_end;
    uint32_t place, line, node;
    int64_t name;  // string: the program's range around it, else what was allocated
    OperatorPhase phase;
    bool known;  // the phase
    std::optional<MemoryUse> told;
    uint32_t moments = 0;  // bits
    uint32_t bucket = 0;   // the first whose value counts it
  };
  // Of an owner, while sums are made.
  using OwnerKey = std::tuple<uint32_t, uint32_t, int64_t, MemoryUse>;  // line, node, name, use
  struct Sums {
    std::vector<MemoryOwner::Amount> live;
    MemoryOwner::Amount all;
    std::set<size_t> parts;
    std::vector<int64_t> changes;  // by bucket: to the sum of the one before; one more than buckets
  };

  static MemoryUse use_of(std::string_view what) {
    if (what == "parameter") return MemoryUse::kParameter;
    if (what == "gradient") return MemoryUse::kGradient;
    if (what == "optimizer state") return MemoryUse::kOptimizer;
    return MemoryUse::kOther;
  }

  size_t moments() const { return 2 + options_.moments.size(); }

  void take(const OperatorAllocation& row, const OperatorCall* call, const OperatorTree& tree) {
    MemoryCurves::Step step = curves_.step(row.dim, row.track, row.address);
    if (step.place == MemoryCurves::kNone) return;
    const auto found = live_.find(step.key);
    // As the curves count: an address that is used again was freed, and a free belongs to what it frees.
    if (found != live_.end()) {
      const size_t place = found->second.place;
      mark_moments(place, row.start);
      const bool same = place == step.place;
      freed(found.value(), row, call);
      live_.erase(found);
      if (step.frees) step.place = place;
      if (!same && step.allocates) behind(place);
      if (step.allocates && row.bytes == kUnknown) return same ? behind(place) : void();
    } else if (row.bytes == kUnknown) {
      return;
    }
    mark_moments(step.place, row.start);
    if (step.allocates) allocated(step, row, call, tree);
    behind(step.place);
  }

  // Another row of the place is behind us: the peak may be here.
  void behind(size_t place) {
    if (++seen_[place] == curves_.peak_row(place)) mark(place, 0);
  }

  // The first bucket of the curve whose value is of the place's next row, or of a later one.
  uint32_t next_bucket(size_t place) {
    if (!options_.owner_curves) return 0;
    const std::span<const int64_t> rows = curves_.bucket_rows(place);
    uint32_t& next = next_bucket_[place];
    while (next < rows.size() && rows[next] <= seen_[place]) ++next;
    return next;
  }
  void add_to_curve(Sums& sums, const Live& what, bool never) {
    const auto buckets = static_cast<uint32_t>(curves_.bucket_rows(what.place).size());
    const uint32_t end = never ? buckets : next_bucket(what.place);
    if (what.bucket >= end) return;
    if (sums.changes.empty()) sums.changes.resize(buckets + 1);
    add_saturating(sums.changes[what.bucket], what.bytes);
    add_saturating(sums.changes[end], -what.bytes);
  }

  void allocated(const MemoryCurves::Step& step, const OperatorAllocation& row, const OperatorCall* call,
                 const OperatorTree& tree) {
    Live made{.bytes = row.bytes,
              .start = row.start,
              .call_end = kUnknown,
              .place = static_cast<uint32_t>(step.place),
              .line = 0,
              .node = call != nullptr ? call->outer : 0,
              .name = row.range != 0 ? trace::cell<column::Label::name>(trace_, row.range)
                                     : trace::cell<column::AllocationShape::name>(trace_, row.dim),
              .phase = row.phase,
              .known = call != nullptr,
              .told = {}};
    if (call != nullptr && call->duration != kUnknown) made.call_end = call->start + call->duration;
    made.line = lines_.of_stack(row.stack != 0 ? row.stack : call_stacks_.of(row));
    if (made.line == 0) made.line = lines_.of_functions(row.functions);
    if (made.line == 0 && call != nullptr)
      for (uint32_t at = call->node; at != 0 && made.line == 0; at = tree.nodes[at].parent)
        made.line = lines_.of_place(tree.texts[tree.nodes[at].place]);
    // Where other blocks have stacks, that this one has none tells something: no function of Python was on its thread.
    if (made.line == 0 && row.stack == 0 && trace_.rows(Table::kStack) > 1) made.line = lines_.without_stack();
    if (!made.known)
      if (const auto phase = lines_.phase_of_stack(row.stack)) {
        made.phase = *phase;
        made.known = true;
      }
    made.bucket = next_bucket(step.place);
    live_.insert_or_assign(step.key, made);
  }

  void freed(const Live& what, const OperatorAllocation& row, const OperatorCall* call) {
    std::optional<OperatorPhase> phase;
    if (call != nullptr)
      phase = row.phase;
    else
      phase = lines_.phase_of_stack(row.stack);
    count(what, use(what, row.start, phase), row.start - what.start, false);
  }
  void end_of(const Live& what, const OperatorTree&) { count(what, use(what, kUnknown, {}), kUnknown, true); }

  // `end`: when it was freed, kUnknown = never.
  static MemoryUse use(const Live& what, int64_t end, std::optional<OperatorPhase> freed_in) {
    if (what.told) return *what.told;
    if (!what.known) return MemoryUse::kOther;
    if (end != kUnknown && what.call_end != kUnknown && end <= what.call_end) return MemoryUse::kTemporary;
    switch (what.phase) {
      case OperatorPhase::kForward:
        return end != kUnknown && freed_in ? MemoryUse::kActivation : MemoryUse::kOther;
      case OperatorPhase::kBackward:
        return end != kUnknown && freed_in == OperatorPhase::kBackward ? MemoryUse::kTemporary : MemoryUse::kGradient;
      case OperatorPhase::kOptimizer:
        return end != kUnknown && freed_in == OperatorPhase::kOptimizer ? MemoryUse::kTemporary : MemoryUse::kOptimizer;
      case OperatorPhase::kData:
        return MemoryUse::kOther;
    }
    return MemoryUse::kOther;
  }

  void count(const Live& what, MemoryUse use, int64_t lifetime, bool never) {
    if (report_.places[what.place].beneath) use = MemoryUse::kNone;
    Sums& sums = owners_[what.place][OwnerKey{what.line, what.node, what.name, use}];
    if (sums.live.empty()) sums.live.resize(moments());
    const auto put = [&](MemoryOwner::Amount& amount) {
      add_saturating(amount.bytes, what.bytes);
      ++amount.count;
    };
    put(sums.all);
    for (size_t i = 0; i < moments(); ++i)
      if ((what.moments >> i & 1) != 0) put(sums.live[i]);
    if (never) {
      put(sums.live[1]);
      sums.parts.insert(part_of(what.start));
    }
    if (options_.owner_curves) add_to_curve(sums, what, never);
    auto& lifetimes = report_.places[what.place].lifetimes;
    size_t bin = kLifetimes.size() + 1;
    if (!never) {
      bin = 0;
      while (bin < kLifetimes.size() && lifetime >= kLifetimes[bin]) ++bin;
    }
    put(lifetimes[bin]);
  }

  size_t part_of(int64_t time) const {
    if (steps_.size() > 1)
      return static_cast<size_t>(std::upper_bound(steps_.begin(), steps_.end(), time) - steps_.begin());
    if (report_.to <= report_.from) return 0;
    const double at = static_cast<double>(time - report_.from) / static_cast<double>(report_.to - report_.from);
    return std::min(static_cast<size_t>(std::max(at, 0.0) * kParts), kParts - 1);
  }

  // Marks what is live before `time` at the moments up to then.
  void mark_moments(size_t place, int64_t time) {
    size_t& next = next_moment_[place];
    while (next < options_.moments.size() && options_.moments[next] < time) mark(place, 2 + next++);
  }
  void mark(size_t place, size_t moment) {
    for (auto each = live_.begin(); each != live_.end(); ++each)
      if (each->second.place == place) each.value().moments |= 1u << moment;
  }

  void fill(const OperatorTree& tree) {
    for (size_t place = 0; place < owners_.size(); ++place) {
      auto& to = report_.places[place].owners;
      for (auto& [key, sums] : owners_[place]) {
        const auto& [line, node, name, use] = key;
        MemoryOwner& owner = to.emplace_back();
        owner.line = lines_.text(line);
        owner.module = tree.texts[tree.nodes[node].module];
        owner.operation = node != 0 ? tree.texts[tree.nodes[node].name] : std::string(trace_.string(name));
        owner.use = use;
        owner.live = std::move(sums.live);
        owner.all = sums.all;
        owner.steps = static_cast<int64_t>(sums.parts.size());
        if (sums.changes.empty()) continue;
        sums.changes.pop_back();
        owner.curve = std::move(sums.changes);
        for (size_t i = 1; i < owner.curve.size(); ++i) add_saturating(owner.curve[i], owner.curve[i - 1]);
      }
    }
  }

  const trace::Trace& trace_;
  const MemoryOptions& options_;
  MemoryCurves& curves_;
  MemoryReport& report_;
  std::vector<int64_t> steps_;
  MemoryLines lines_;
  CallStacks call_stacks_;
  std::vector<size_t> next_moment_;
  std::vector<uint32_t> next_bucket_;
  std::vector<int64_t> seen_;
  tsl::robin_map<MemoryKey, Live, MemoryKeyHash> live_;
  std::vector<std::map<OwnerKey, Sums>> owners_;
};

}  // namespace

std::string_view to_string(MemoryUse use) {
  switch (use) {
    case MemoryUse::kParameter:
      return "parameter";
    case MemoryUse::kGradient:
      return "gradient";
    case MemoryUse::kOptimizer:
      return "optimizer state";
    case MemoryUse::kActivation:
      return "activation";
    case MemoryUse::kTemporary:
      return "temporary";
    case MemoryUse::kOther:
      return "other";
    case MemoryUse::kNone:
      return "";
  }
  return "other";
}

Result<MemoryReport> memory_report(const trace::Trace& trace, const MemoryOptions& options) {
  MemoryReport report;
  if (options.moments.size() > 16) return fail("more than 16 moments");
  MemoryCurves curves(trace);
  TACHO_TRY(curves.read(options.buckets, report));
  report.lost = lost_rows(trace, Table::kAllocation);
  if (report.places.empty()) return report;
  TACHO_ASSIGN(std::vector<int64_t> steps, step_begins(trace));
  report.steps = static_cast<int64_t>(steps.size());
  OwnerPass pass(trace, options, curves, report, std::move(steps));
  TACHO_TRY(pass.run());
  std::stable_sort(report.places.begin(), report.places.end(), [](const MemoryPlace& a, const MemoryPlace& b) {
    return a.beneath != b.beneath ? b.beneath : a.peak > b.peak;
  });
  for (MemoryPlace& place : report.places) place.owners = memory_owners(place, MemoryBy::kOwner);
  return report;
}

std::optional<MemoryBy> parse_memory_by(std::string_view word) {
  static constexpr std::pair<std::string_view, MemoryBy> kWords[] = {{"owner", MemoryBy::kOwner},
                                                                     {"line", MemoryBy::kLine},
                                                                     {"module", MemoryBy::kModule},
                                                                     {"operator", MemoryBy::kOperator},
                                                                     {"category", MemoryBy::kUse}};
  for (const auto& [name, by] : kWords)
    if (name == word) return by;
  return std::nullopt;
}

std::vector<MemoryOwner> memory_owners(const MemoryPlace& place, MemoryBy by) {
  std::map<std::tuple<std::string, std::string, std::string, MemoryUse>, MemoryOwner> together;
  for (const MemoryOwner& each : place.owners) {
    const auto kept = [&](MemoryBy which, const std::string& text) {
      return tells_apart(by, which) ? text : std::string();
    };
    MemoryOwner key;
    key.line = kept(MemoryBy::kLine, each.line);
    key.module = kept(MemoryBy::kModule, each.module);
    key.operation = kept(MemoryBy::kOperator, each.operation);
    key.use = tells_apart(by, MemoryBy::kUse) ? each.use : MemoryUse::kOther;
    MemoryOwner& sum = together.try_emplace({key.line, key.module, key.operation, key.use}, key).first->second;
    sum.live.resize(std::max(sum.live.size(), each.live.size()));
    const auto put = [](MemoryOwner::Amount& to, const MemoryOwner::Amount& from) {
      add_saturating(to.bytes, from.bytes);
      to.count += from.count;
    };
    for (size_t i = 0; i < each.live.size(); ++i) put(sum.live[i], each.live[i]);
    put(sum.all, each.all);
    sum.steps = std::max(sum.steps, each.steps);
    sum.curve.resize(std::max(sum.curve.size(), each.curve.size()));
    for (size_t i = 0; i < each.curve.size(); ++i) add_saturating(sum.curve[i], each.curve[i]);
  }
  std::vector<MemoryOwner> rows;
  rows.reserve(together.size());
  for (auto& [key, owner] : together) rows.push_back(std::move(owner));
  const auto at_peak = [](const MemoryOwner& owner) { return owner.live.empty() ? 0 : owner.live[0].bytes; };
  std::stable_sort(rows.begin(), rows.end(), [&](const MemoryOwner& a, const MemoryOwner& b) {
    return std::pair(at_peak(a), a.all.bytes) > std::pair(at_peak(b), b.all.bytes);
  });
  return rows;
}

}  // namespace tacho::analysis
