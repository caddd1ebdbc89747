// Device time by operator (operator_values.h).
#include "analysis/operators/operator_values.h"

#include <string>
#include <utility>

#include "base/saturating.h"
#include "trace/read/rows.h"
#include "walk/calls/open_ranges.h"
#include "walk/merge.h"

namespace tacho::analysis {

namespace column = event::column;
using event::Domain;
using event::kUnknown;
using event::Table;

namespace {

constexpr size_t kValuesBuffer = 8u << 20;

int64_t process_of_track(const trace::Trace& trace, int64_t track) {
  return trace::cell<column::Track::process>(trace, track);
}

// Whether a function, if there is such a row, is of this domain.
bool of_domain(const trace::Trace& trace, int64_t function, Domain domain) {
  return function > 0 && function < trace.rows(Table::kFunction) &&
         trace::cell<column::Function::domain>(trace, function) == domain;
}

}  // namespace

OperatorValues::OperatorValues(OperatorSource source, size_t side)
    : source_(std::move(source)), side_(side), work_(kValuesBuffer), parts_(kValuesBuffer) {
  is_operator_.assign(static_cast<size_t>(source_.rows), -1);
  is_module_.assign(static_cast<size_t>(source_.trace->rows(Table::kFunction)), -1);
}

Status OperatorValues::read_work() {
  using F = column::Fact;
  const trace::Trace& trace = *source_.trace;
  Status status;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill}) {
    for (const auto& done : trace::chunks<F::track, F::duration, F::correlation>(trace, table, status))
      for (size_t i = 0; i < done.size(); ++i)
        if (done.duration[i] != kUnknown) {
          work_.add({process_of_track(trace, done.track[i]), done.correlation[i], done.duration[i]});
          add_saturating(total_, done.duration[i]);
        }
    TACHO_TRY(status);
  }
  return work_.finish_indexed();
}

// Whether the name of a row is an operator's: others are never passed on the way to a common parent.
bool OperatorValues::is_operator(int64_t dim) {
  signed char& known = is_operator_[static_cast<size_t>(dim)];
  if (known < 0)
    known = is_operator_name(source_.operators ? source_.trace->text(Table::kFunction, dim, column::Function::name)
                                               : source_.trace->text(Table::kLabel, dim, column::Label::name))
                ? 1
                : 0;
  return known != 0;
}

bool OperatorValues::is_module(int64_t function) {
  if (function <= 0 || static_cast<size_t>(function) >= is_module_.size()) return false;
  signed char& known = is_module_[static_cast<size_t>(function)];
  if (known < 0)
    known = of_domain(*source_.trace, function, Domain::kPython) &&
                    source_.trace->text(Table::kFunction, function, column::Function::name).starts_with("nn.Module")
                ? 1
                : 0;
  return known != 0;
}

// One walk over calls (and markers) in time: the innermost operator open on a thread owns what the thread launches, or
// the one around it that was decided.
Status OperatorValues::sweep(CommonParents* calls, const CommonParents* decided, SortedFile<Owner>& owners) {
  using M = column::Marker;
  using A = column::Api;
  const trace::Trace& trace = *source_.trace;
  struct Open {
    int64_t name = -1, instance = 0;  // -1: owns nothing
    int32_t path = CommonParents::kRoot;
    bool passed = false;  // what it calls is below it
  };
  walk::OpenRanges<Open> open;
  const auto push = [&](const auto& row, Open range) { open.push(row.track, row.start, row.duration, range); };
  const auto push_operator = [&](const auto& row) {
    const auto& around = open.at(row.track, row.start);
    const int32_t parent =
        around.empty() || !around.back().value.passed ? CommonParents::kRoot : around.back().value.path;
    Open range{.name = source_.name(row.dim, row.inputs), .instance = ++instances_, .passed = is_operator(row.dim)};
    range.path = calls != nullptr ? calls->call(side_, parent, range.name) : decided->path(parent, range.name);
    push(row, range);
  };
  // Of ranges that own nothing the next one outside owns.
  const auto owner = [&](const auto& around) -> const Open* {
    auto at = around.rbegin();
    while (at != around.rend() && at->value.name < 0) ++at;
    if (at == around.rend()) return nullptr;
    if (decided == nullptr) return &at->value;
    const int32_t path = decided->owner(side_, at->value.path);
    const Open* const innermost = &at->value;
    for (; at != around.rend(); ++at)
      if (at->value.name >= 0 && at->value.path == path) return &at->value;
    return innermost;
  };
  // A marker goes before a call of the same moment.
  walk::Merge<trace::RowCursor<M::track, M::start, M::duration, M::dim, M::inputs>,
              trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation, A::inputs>>
      host(trace);
  const auto read = [&]<typename Row>(const Row& row) {
    if constexpr (Row::kTable == Table::kMarker) {
      if (source_.operators)
        push(row, {});
      else if (row.duration != 0 && row.dim >= 0 && row.dim < source_.rows)
        push_operator(row);
    } else if (of_domain(trace, row.dim, Domain::kOperator)) {
      push_operator(row);
    } else if (of_domain(trace, row.dim, Domain::kPython)) {
      if (is_module(row.dim)) push(row, {});
    } else if (row.correlation != 0) {
      if (const Open* const at = owner(open.at(row.track, row.start)))
        owners.add({process_of_track(trace, row.track), row.correlation, at->instance, at->name, at->path});
    }
  };
  while (host.more()) host.take(read);
  TACHO_TRY(host.status());
  return owners.finish();
}

// Work and owners meet in order of (process, correlation); a value is what one call of an operator cost the device.
Status OperatorValues::pass(CommonParents* calls, const CommonParents* decided) {
  SortedFile<Owner> owners(kValuesBuffer);
  TACHO_TRY(sweep(calls, decided, owners));
  parts_ = Parts(kValuesBuffer);
  Owner owner{};
  bool more_owner = owners.next(owner);
  for (const Work& one : work_.all()) {
    while (more_owner &&
           (owner.process < one.process || (owner.process == one.process && owner.correlation < one.correlation)))
      more_owner = owners.next(owner);
    if (one.correlation != 0 && more_owner && owner.process == one.process && owner.correlation == one.correlation) {
      if (calls != nullptr) calls->works(side_, owner.path);
      const bool named = decided != nullptr && owner.path != CommonParents::kUnknownPath;
      parts_.add({owner.instance, named ? decided->name(owner.path) : owner.name, one.duration});
    } else {
      parts_.add({++instances_, source_.none, one.duration});
    }
  }
  return parts_.finish();
}

Status OperatorValues::read(CommonParents& parents) {
  TACHO_TRY(read_work());
  return pass(&parents, nullptr);
}

Status OperatorValues::take(const CommonParents& parents, const std::function<void(int64_t, int64_t)>& to) {
  if (parents.changes()) TACHO_TRY(pass(nullptr, &parents));
  Part part, sum{-1, 0, 0};
  while (parts_.next(part)) {
    if (part.instance == sum.instance) {
      add_saturating(sum.duration, part.duration);
      continue;
    }
    if (sum.instance >= 0) to(sum.name, sum.duration);
    sum = part;
  }
  if (sum.instance >= 0) to(sum.name, sum.duration);
  return {};
}

}  // namespace tacho::analysis
