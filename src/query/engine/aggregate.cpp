// Computes sums over groups (aggregate.h): adds rows to a table of groups by their codes, and spills groups to sorted
// files if they outgrow memory. At the end it merges groups with equal texts and puts the groups in order.
#include "query/engine/aggregate.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/files/sorted_file.h"
#include "query/engine/aggregate_plan.h"
#include "query/engine/group_table.h"
#include "query/engine/group_values.h"
#include "query/engine/text_prefix.h"

namespace tacho::query {

using event::kUnknown;

namespace {

using Sum = AggregatePlan::Aggregate;
constexpr int64_t kNoCodes[] = {0};  // for the only group of a statement without GROUP BY

class Runner {
 public:
  explicit Runner(const AggregatePlan& plan);
  Result<bool> run(const RowSink& sink);

 private:
  template <size_t kCells>
  struct Record {
    std::array<int64_t, kCells> at;
  };
  template <size_t kCells>
  class Groups;
  template <size_t kCells>
  Result<bool> run_with(const RowSink& sink);
  // Adds the scan's rows to the table; false: a sum overflowed or a column is irregular.
  template <typename Spill>
  Result<bool> collect(const Spill& spill);
  size_t slot(int source, int column);
  bool look_up(Scan& scan);
  bool evaluate(int node, std::vector<int64_t>& values);
  bool add_batch(Scan& scan);
  const AggregatePlan& plan_;
  const GroupValues groups_;
  const size_t terms_;
  std::unique_ptr<GroupTable> table_;

  // Columns of the current batch, with a value for each row still selected.
  struct Slot {
    int source, column;
    std::vector<int64_t> values;
  };
  std::vector<Slot> slots_;
  std::vector<std::vector<size_t>> slots_of_;  // by source
  struct Other {
    std::unique_ptr<RowReader> reader;
    std::vector<Judge> judges;
    std::vector<size_t> judged;  // indexes of their columns in the reader
    size_t key = 0;              // slot
  };
  std::vector<Other> others_;
  size_t rows_ = 0;
  std::vector<bool> alive_;
  std::vector<std::vector<int64_t>> term_codes_;
  std::vector<int64_t> values_;
  std::vector<std::vector<int64_t>> spare_;
  std::vector<uint32_t> group_;
};

Runner::Runner(const AggregatePlan& plan)
    : plan_(plan),
      groups_(plan),
      terms_(plan.terms.size()),
      table_(std::make_unique<GroupTable>(terms_, groups_.fresh())),
      slots_of_(plan.sources.size()) {
  term_codes_.resize(terms_);

  // Only the columns still needed: nodes of SELECT and HAVING that became terms no longer name one.
  const auto want = [&](auto&& self, int number) -> void {
    if (number < 0) return;
    const Node& node = plan_.nodes[static_cast<size_t>(number)];
    if (node.op == Op::kColumn) slot(node.source, node.column);
    if (node.op == Op::kAggregate || node.op == Op::kTerm) return;
    self(self, node.left);
    self(self, node.right);
  };
  for (const int term : plan_.terms) want(want, term);
  for (const Sum& sum : plan_.aggregates) want(want, sum.argument);
  for (size_t i = 1; i < plan_.sources.size(); ++i) slot(plan_.sources[i].from, plan_.sources[i].from_column);
  for (size_t i = 1; i < plan_.sources.size(); ++i) {
    const AggregatePlan::Source& source = plan_.sources[i];
    Other other;
    std::vector<int> columns;
    for (const size_t one : slots_of_[i]) columns.push_back(slots_[one].column);
    for (const Constraint& constraint : source.constraints) {
      other.judges.emplace_back(constraint, source.relation->columns[static_cast<size_t>(constraint.column)]);
      other.judged.push_back(columns.size());
      columns.push_back(constraint.column);
    }
    other.reader = std::make_unique<RowReader>(*source.relation, *source.store, std::move(columns));
    other.key = slot(source.from, source.from_column);
    others_.push_back(std::move(other));
  }
}

size_t Runner::slot(int source, int column) {
  for (const size_t one : slots_of_[static_cast<size_t>(source)])
    if (slots_[one].column == column) return one;
  slots_.push_back({source, column, {}});
  slots_of_[static_cast<size_t>(source)].push_back(slots_.size() - 1);
  return slots_.size() - 1;
}

// Fills the slots with the batch's rows and drops rows without a partner in another table. False: error.
bool Runner::look_up(Scan& scan) {
  rows_ = scan.selection().size();
  for (const size_t one : slots_of_[0]) scan.gather(slots_[one].column, slots_[one].values);
  if (others_.empty()) return true;
  alive_.assign(rows_, true);
  size_t alive = rows_;
  for (size_t i = 0; i < others_.size(); ++i) {
    Other& other = others_[i];
    const std::vector<size_t>& own = slots_of_[i + 1];
    const std::vector<int64_t>& keys = slots_[other.key].values;
    for (const size_t one : own) slots_[one].values.resize(rows_);
    for (size_t row = 0; row < rows_; ++row) {
      if (!alive_[row]) continue;
      bool kept = keys[row] != kUnknown && other.reader->seek(keys[row]);
      for (size_t j = 0; kept && j < other.judges.size(); ++j)
        kept = other.judges[j](other.reader->value(other.judged[j]));
      if (!kept) {
        alive_[row] = false;
        --alive;
        continue;
      }
      for (size_t j = 0; j < own.size(); ++j) slots_[own[j]].values[row] = other.reader->value(j);
    }
    if (!other.reader->status()) return false;
  }
  if (alive == rows_) return true;
  for (Slot& one : slots_) {
    size_t to = 0;
    for (size_t row = 0; row < rows_; ++row)
      if (alive_[row]) one.values[to++] = one.values[row];
    one.values.resize(to);
  }
  rows_ = alive;
  return true;
}

// Computes a whole-number expression for all rows of the batch; kUnknown = NULL. False: overflow.
bool Runner::evaluate(int number, std::vector<int64_t>& values) {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  switch (node.op) {
    case Op::kColumn:
      values = slots_[slot(node.source, node.column)].values;
      return true;
    case Op::kInteger:
      values.assign(rows_, node.integer);
      return true;
    case Op::kNegate:
      if (!evaluate(node.left, values)) return false;
      for (int64_t& value : values)
        if (value != kUnknown) value = -value;
      return true;
    default:
      break;
  }
  std::vector<int64_t> right;
  if (!spare_.empty()) {
    right = std::move(spare_.back());
    spare_.pop_back();
  }
  const Node& second = plan_.nodes[static_cast<size_t>(node.right)];
  const bool constant = second.op == Op::kInteger;
  const std::vector<int64_t>* operand = &right;
  if (!evaluate(node.left, values)) return false;
  if (second.op == Op::kColumn)
    operand = &slots_[slot(second.source, second.column)].values;
  else if (!constant && !evaluate(node.right, right))
    return false;
  bool over = false;
  const auto combine = [&](auto operation) {
    for (size_t i = 0; i < rows_; ++i) {
      const int64_t a = values[i], b = constant ? second.integer : (*operand)[i];
      if (a == kUnknown || b == kUnknown) {
        values[i] = kUnknown;
        continue;
      }
      over |= operation(a, b, &values[i]);
    }
  };
  const auto checked = [&](auto operation) {
    combine([&](int64_t a, int64_t b, int64_t* to) { return operation(a, b, to) || *to == kUnknown; });
  };
  switch (node.op) {
    case Op::kAdd:
      checked([](int64_t a, int64_t b, int64_t* to) { return __builtin_add_overflow(a, b, to); });
      break;
    case Op::kSubtract:
      checked([](int64_t a, int64_t b, int64_t* to) { return __builtin_sub_overflow(a, b, to); });
      break;
    case Op::kMultiply:
      checked([](int64_t a, int64_t b, int64_t* to) { return __builtin_mul_overflow(a, b, to); });
      break;
    case Op::kDivide:  // division by zero gives NULL. The least number is kUnknown and never gets here.
      combine([](int64_t a, int64_t b, int64_t* to) {
        *to = b == 0 ? kUnknown : a / b;
        return false;
      });
      break;
    default:
      combine([](int64_t a, int64_t b, int64_t* to) {
        *to = b == 0 ? kUnknown : b == -1 ? 0 : a % b;
        return false;
      });
  }
  spare_.push_back(std::move(right));
  return !over;
}

bool Runner::add_batch(Scan& scan) {
  if (!look_up(scan)) return true;  // collect() sees the reader's error
  for (size_t i = 0; i < terms_; ++i)
    if (!evaluate(plan_.terms[i], term_codes_[i])) return false;
  group_.resize(rows_);
  if (terms_ == 0) {
    std::fill(group_.begin(), group_.end(), table_->place(kNoCodes));
  } else if (terms_ == 1) {
    const std::vector<int64_t>& codes = term_codes_[0];
    for (size_t row = 0; row < rows_; ++row)
      group_[row] = row > 0 && codes[row] == codes[row - 1] ? group_[row - 1] : table_->place(&codes[row]);
  } else {
    std::vector<int64_t> codes(terms_);
    for (size_t row = 0; row < rows_; ++row) {
      bool same = row > 0;
      for (size_t i = 0; i < terms_; ++i) {
        same = same && codes[i] == term_codes_[i][row];
        codes[i] = term_codes_[i][row];
      }
      group_[row] = same ? group_[row - 1] : table_->place(codes.data());
    }
  }
  int64_t* const records = table_->record(0);
  for (size_t i = 0; i < plan_.aggregates.size(); ++i) {
    const Sum& sum = plan_.aggregates[i];
    int64_t* const states = records + groups_.cell(i);
    if (sum.function == SumFunction::kCountRows) {
      for (size_t row = 0; row < rows_; ++row) ++states[group_[row] * groups_.width()];
      continue;
    }
    const Node& argument = plan_.nodes[static_cast<size_t>(sum.argument)];
    const bool plain = argument.op == Op::kColumn;
    if (!plain && !evaluate(sum.argument, values_)) return false;
    const std::vector<int64_t>& values = plain ? slots_[slot(argument.source, argument.column)].values : values_;
    bool over = false;
    for (size_t row = 0; row < rows_; ++row) {
      const int64_t value = values[row];
      if (value == kUnknown) continue;
      int64_t* const state = states + group_[row] * groups_.width();
      ++state[0];
      switch (sum.function) {
        case SumFunction::kCount:
          break;
        case SumFunction::kMin:
          state[1] = std::min(state[1], value);
          break;
        case SumFunction::kMax:
          state[1] = std::max(state[1], value);
          break;
        default:
          over |= __builtin_add_overflow(state[1], value, &state[1]);
      }
    }
    if (over) return false;
  }
  return true;
}

template <typename Spill>
Result<bool> Runner::collect(const Spill& spill) {
  constexpr size_t kMostBytes = 24u << 20;  // of groups in memory, checked after each batch
  ScanPlan plan;
  plan.constraints = plan_.sources[0].constraints;
  for (const size_t one : slots_of_[0]) plan.used.push_back(slots_[one].column);
  Scan scan(*plan_.sources[0].relation, *plan_.sources[0].store, std::move(plan));
  while (scan.next_batch()) {
    if (!add_batch(scan)) return false;
    if (table_->bytes() > kMostBytes) {
      spill();
      table_->clear();
    }
    for (const Other& other : others_) TACHO_TRY(Status(other.reader->status()));
  }
  TACHO_TRY(Status(scan.status()));
  for (const AggregatePlan::Source& source : plan_.sources)
    if (source.store->irregular()) return false;
  return true;
}

// The groups: collected, sorted by values, then in the order of ORDER BY.
template <size_t kCells>
class Runner::Groups {
 public:
  explicit Groups(Runner& runner)
      : runner_(runner),
        plan_(runner.plan_),
        terms_(runner.terms_),
        order_of_values_{&runner.groups_, runner.groups_.descending(0)} {
    if (terms_ == 0) return;
    const Node& first = plan_.nodes[static_cast<size_t>(plan_.terms[0])];
    if (first.op == Op::kColumn && plan_.column(first).type == ValueType::kText) first_text_ = &plan_.column(first);
  }
  // Each gives false where a sum overflows. No row may be delivered before all sums are known to fit.
  Result<bool> collect();
  Result<bool> sort();
  void deliver(const RowSink& sink);

 private:
  using One = Record<kCells>;
  static constexpr size_t kOrderKey = kCells - 1;
  // Sorts by codes; needed only if the table overflowed.
  struct ByCodes {
    size_t terms;
    bool operator()(const One& a, const One& b) const {
      return std::lexicographical_compare(a.at.begin(), a.at.begin() + terms, b.at.begin(), b.at.begin() + terms);
    }
  };
  // Sorts by values, so that equal texts with different codes meet. Looking up texts costs more than everything else
  // here.
  struct Valued {
    One one;
    TextPrefix prefix;  // of the first value, if that is a text
  };
  struct ByValues {
    const GroupValues* values;
    bool backwards;  // for the first value
    int compare(const Valued& a, const Valued& b) const {
      if (a.prefix != b.prefix) return (a.prefix < b.prefix) != backwards ? -1 : 1;
      return values->compare_terms(a.one.at.data(), b.one.at.data());
    }
    bool operator()(const Valued& a, const Valued& b) const { return compare(a, b) < 0; }
  };
  struct ByOrder {
    const GroupValues* values;
    const AggregatePlan* plan;
    bool by_key;  // the key decides
    bool operator()(const One& a, const One& b) const {
      if (a.at[kOrderKey] != b.at[kOrderKey]) return a.at[kOrderKey] < b.at[kOrderKey];
      // The smallest and the largest key stand for several values: NULL, and anything beyond whole numbers.
      if (by_key && a.at[kOrderKey] != INT64_MIN && a.at[kOrderKey] != INT64_MAX) return false;
      for (const AggregatePlan::Order& term : plan->order) {
        const int node = plan->items[term.item].node;
        const int order = compare_cells(values->finish(a.at.data(), node), values->finish(b.at.data(), node));
        if (order != 0) return term.descending ? order > 0 : order < 0;
      }
      return false;
    }
  };
  struct AsTheyCome {
    bool operator()(const One&, const One&) const { return false; }
  };

  One record(uint32_t group) const {
    One one{};
    std::copy_n(runner_.table_->record(group), runner_.groups_.width(), one.at.begin());
    return one;
  }
  void add(const One& one) {
    const bool has_text = first_text_ != nullptr && one.at[0] != kUnknown;
    by_values_.add({one, has_text ? text_prefix(first_text_->text(one.at[0], scratch_)) : TextPrefix{}});
  }

  Runner& runner_;
  const AggregatePlan& plan_;
  const size_t terms_;
  const ColumnInfo* first_text_ = nullptr;
  std::string scratch_;
  const ByValues order_of_values_;
  SortedFile<Valued, ByValues> by_values_{16u << 20, order_of_values_};
  SortedFile<One, ByOrder> by_order_{
      16u << 20,
      {&runner_.groups_, &plan_,
       plan_.order.size() == 1 && !runner_.groups_.is_text(plan_.items[plan_.order[0].item].node)}};
  SortedFile<One, AsTheyCome> as_they_come_{16u << 20};
};

template <size_t kCells>
Result<bool> Runner::Groups<kCells>::collect() {
  std::unique_ptr<GroupTable>& table = runner_.table_;
  SortedFile<One, ByCodes> by_codes(8u << 20, {terms_});
  bool spilled = false;
  const auto spill = [&] {
    spilled = true;
    for (uint32_t i = 0; i < table->groups(); ++i) by_codes.add(record(i));
  };
  TACHO_ASSIGN(const bool fits, runner_.collect(spill));
  if (!fits) return false;
  if (terms_ == 0) table->place(kNoCodes);  // exists even without rows
  if (!spilled) {
    for (uint32_t i = 0; i < table->groups(); ++i) add(record(i));
    table = nullptr;
    return true;
  }
  spill();
  table = nullptr;
  TACHO_TRY(by_codes.finish());
  One current, next;
  bool more = by_codes.next(current);
  while (more) {
    more = by_codes.next(next);
    if (more && std::equal(next.at.begin(), next.at.begin() + terms_, current.at.begin())) {
      if (!runner_.groups_.merge(current.at.data(), next.at.data())) return false;
      continue;
    }
    add(current);
    current = next;
  }
  return true;
}

template <size_t kCells>
Result<bool> Runner::Groups<kCells>::sort() {
  TACHO_TRY(by_values_.finish());
  const bool ordered = !plan_.order.empty();
  Valued current, next;
  bool more = by_values_.next(current);
  while (more) {
    more = by_values_.next(next);
    if (more && order_of_values_.compare(next, current) == 0) {
      if (!runner_.groups_.merge(current.one.at.data(), next.one.at.data())) return false;
      continue;
    }
    One& group = current.one;
    if (runner_.groups_.passes(group.at.data())) {
      if (ordered) {
        group.at[kOrderKey] = runner_.groups_.order_key(group.at.data());
        by_order_.add(group);
      } else {
        as_they_come_.add(group);
      }
    }
    current = next;
  }
  TACHO_TRY(ordered ? by_order_.finish() : as_they_come_.finish());
  return true;
}

template <size_t kCells>
void Runner::Groups<kCells>::deliver(const RowSink& sink) {
  std::vector<std::string> titles;
  for (const auto& item : plan_.items) titles.push_back(item.title);
  sink.columns(titles);
  std::vector<report::Cell> cells(plan_.items.size());
  One group;
  for (int64_t given = 0; (plan_.limit < 0 || given < plan_.limit) &&
                          (plan_.order.empty() ? as_they_come_.next(group) : by_order_.next(group));
       ++given) {
    for (size_t i = 0; i < cells.size(); ++i) cells[i] = runner_.groups_.finish(group.at.data(), plan_.items[i].node);
    if (!sink.row(cells)) break;
  }
}

template <size_t kCells>
Result<bool> Runner::run_with(const RowSink& sink) {
  Groups<kCells> groups(*this);
  TACHO_ASSIGN(const bool collected, groups.collect());
  if (!collected) return false;
  TACHO_ASSIGN(const bool sorted, groups.sort());
  if (sorted) groups.deliver(sink);
  return sorted;
}

Result<bool> Runner::run(const RowSink& sink) {
  // One more cell for the key of ORDER BY.
  if (groups_.width() < 4) return run_with<4>(sink);
  if (groups_.width() < 8) return run_with<8>(sink);
  if (groups_.width() < 32) return run_with<32>(sink);
  return false;
}

}  // namespace

Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink) {
  return Runner(plan).run(sink);
}

}  // namespace tacho::query
