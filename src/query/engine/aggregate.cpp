// Computes sums over groups (aggregate.h): adds rows to a table of groups by their codes and sorts in files what
// outgrows memory. At the end it merges groups with equal texts and puts the groups in order.
#include "query/engine/aggregate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/files/sorted_file.h"
#include "query/engine/aggregate_plan.h"
#include "query/engine/group_table.h"
#include "query/engine/text_prefix.h"

namespace tacho::query {

using event::kUnknown;

namespace {

using Sum = AggregatePlan::Aggregate;
constexpr int64_t kNoCodes[] = {0};  // for the only group of a statement without GROUP BY

bool has_value(Function function) {
  return function != Function::kCountRows && function != Function::kCount;
}

int compare_cells(const report::Cell& a, const report::Cell& b) {
  const auto rank = [](const report::Cell& cell) { return cell.index() == 0 ? 0 : cell.index() == 3 ? 2 : 1; };
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? -1 : 1;
  if (a.index() == 0) return 0;
  if (a.index() == 3) {
    const int order = std::get<std::string>(a).compare(std::get<std::string>(b));
    return order < 0 ? -1 : order > 0;
  }
  if (a.index() == 1 && b.index() == 1)
    return std::get<int64_t>(a) < std::get<int64_t>(b) ? -1 : std::get<int64_t>(a) > std::get<int64_t>(b);
  const auto real = [](const report::Cell& cell) {
    return cell.index() == 2 ? static_cast<long double>(std::get<double>(cell))
                             : static_cast<long double>(std::get<int64_t>(cell));
  };
  return real(a) < real(b) ? -1 : real(a) > real(b);
}

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
  Result<bool> run_with(const RowSink& sink);
  // Adds the scan's rows to the table; false: a sum overflowed or a column is irregular.
  template <typename Spill>
  Result<bool> collect(const Spill& spill);
  size_t slot(int source, int column);
  bool look_up(Scan& scan);
  bool evaluate(int node, std::vector<int64_t>& values);
  bool add_batch(Scan& scan);
  bool merge(int64_t* into, const int64_t* other) const;
  // SQLite uses the directions of ORDER BY for its groups if there are as many terms.
  bool descending(size_t term) const {
    return plan_.order.size() == terms_ && term < terms_ && plan_.order[term].descending;
  }
  int compare_terms(const int64_t* a, const int64_t* b) const;
  report::Cell finish(const int64_t* group, int node) const;
  bool passes(const int64_t* group) const;
  bool is_text(int node) const;
  bool is_real(int node) const;
  int64_t order_key(const int64_t* group) const;

  const AggregatePlan& plan_;
  const size_t terms_;
  std::vector<size_t> cells_;  // index of each aggregate's first cell in a record
  size_t width_ = 0;
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
  mutable std::string left_, right_;
};

Runner::Runner(const AggregatePlan& plan) : plan_(plan), terms_(plan.terms.size()), slots_of_(plan.sources.size()) {
  std::vector<int64_t> fresh(terms_, 0);
  for (const Sum& sum : plan_.aggregates) {
    cells_.push_back(fresh.size());
    fresh.push_back(0);
    if (has_value(sum.function))
      fresh.push_back(sum.function == Function::kMin ? INT64_MAX : sum.function == Function::kMax ? INT64_MIN : 0);
  }
  width_ = fresh.size();
  table_ = std::make_unique<GroupTable>(terms_, std::move(fresh));
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
    int64_t* const states = records + cells_[i];
    if (sum.function == Function::kCountRows) {
      for (size_t row = 0; row < rows_; ++row) ++states[group_[row] * width_];
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
      int64_t* const state = states + group_[row] * width_;
      ++state[0];
      switch (sum.function) {
        case Function::kCount:
          break;
        case Function::kMin:
          state[1] = std::min(state[1], value);
          break;
        case Function::kMax:
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

// Adds the sums of another record of the same group. False: overflow.
bool Runner::merge(int64_t* into, const int64_t* other) const {
  bool over = false;
  for (size_t i = 0; i < plan_.aggregates.size(); ++i) {
    int64_t* const a = into + cells_[i];
    const int64_t* const b = other + cells_[i];
    a[0] += b[0];
    switch (plan_.aggregates[i].function) {
      case Function::kCountRows:
      case Function::kCount:
        break;
      case Function::kMin:
        a[1] = std::min(a[1], b[1]);
        break;
      case Function::kMax:
        a[1] = std::max(a[1], b[1]);
        break;
      default:
        over |= __builtin_add_overflow(a[1], b[1], &a[1]);
    }
  }
  return !over;
}

// Compares two groups by their values, NULLs first.
int Runner::compare_terms(const int64_t* a, const int64_t* b) const {
  for (size_t i = 0; i < terms_; ++i) {
    const int64_t x = a[i], y = b[i];
    if (x == y) continue;
    const Node& node = plan_.nodes[static_cast<size_t>(plan_.terms[i])];
    int order;
    if (x == kUnknown || y == kUnknown) {
      order = x == kUnknown ? -1 : 1;
    } else if (node.op == Op::kColumn && plan_.column(node).type == ValueType::kText) {
      const ColumnInfo& column = plan_.column(node);
      order = column.text(x, left_).compare(column.text(y, right_));
    } else if (node.op == Op::kColumn && plan_.column(node).type == ValueType::kReal) {
      const double p = std::bit_cast<double>(x), q = std::bit_cast<double>(y);
      order = p < q ? -1 : p > q;
    } else {
      order = x < y ? -1 : 1;
    }
    if (order == 0) continue;
    return descending(i) ? -order : order;
  }
  return 0;
}

report::Cell Runner::finish(const int64_t* group, int number) const {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  switch (node.op) {
    case Op::kInteger:
      return node.integer;
    case Op::kReal:
      return node.real;
    case Op::kTerm: {
      const int64_t code = group[node.left];
      if (code == kUnknown) return {};
      const Node& term = plan_.nodes[static_cast<size_t>(plan_.terms[static_cast<size_t>(node.left)])];
      if (term.op == Op::kColumn && plan_.column(term).type == ValueType::kText)
        return std::string(plan_.column(term).text(code, left_));
      if (term.op == Op::kColumn && plan_.column(term).type == ValueType::kReal) return std::bit_cast<double>(code);
      return code;
    }
    case Op::kAggregate: {
      const auto which = static_cast<size_t>(node.right);
      const int64_t* const state = group + cells_[which];
      const Function function = plan_.aggregates[which].function;
      if (!has_value(function)) return state[0];
      if (function == Function::kTotal) return static_cast<double>(state[1]);
      if (state[0] == 0) return {};
      if (function == Function::kAverage) return static_cast<double>(state[1]) / static_cast<double>(state[0]);
      return state[1];
    }
    default:
      break;
  }
  const report::Cell left = finish(group, node.left);
  if (std::holds_alternative<std::monostate>(left)) return {};
  const auto real = [](const report::Cell& cell) {
    return std::holds_alternative<double>(cell) ? std::get<double>(cell) : static_cast<double>(std::get<int64_t>(cell));
  };
  if (node.op == Op::kNegate) {
    // Like SQLite: a literal takes the sign; anything else is subtracted from 0, so the result is never -0.0.
    if (plan_.nodes[static_cast<size_t>(node.left)].op == Op::kReal) return -std::get<double>(left);
    if (const auto* const value = std::get_if<double>(&left)) return 0.0 - *value;
    const int64_t value = std::get<int64_t>(left);
    return value == INT64_MIN ? report::Cell(0.0 - static_cast<double>(value)) : report::Cell(-value);
  }
  const report::Cell right = finish(group, node.right);
  if (std::holds_alternative<std::monostate>(right)) return {};
  if (std::holds_alternative<int64_t>(left) && std::holds_alternative<int64_t>(right)) {
    const int64_t a = std::get<int64_t>(left), b = std::get<int64_t>(right);
    int64_t value = 0;
    bool over = false;
    switch (node.op) {
      case Op::kAdd:
        over = __builtin_add_overflow(a, b, &value);
        break;
      case Op::kSubtract:
        over = __builtin_sub_overflow(a, b, &value);
        break;
      case Op::kMultiply:
        over = __builtin_mul_overflow(a, b, &value);
        break;
      default:
        if (b == 0) return {};
        over = a == INT64_MIN && b == -1;
        if (!over) value = a / b;
    }
    if (!over) return value;
  }
  const double a = real(left), b = real(right);
  switch (node.op) {
    case Op::kAdd:
      return report::number_cell(a + b);
    case Op::kSubtract:
      return report::number_cell(a - b);
    case Op::kMultiply:
      return report::number_cell(a * b);
    default:
      return b == 0 ? report::Cell() : report::number_cell(a / b);
  }
}

bool Runner::passes(const int64_t* group) const {
  for (const AggregatePlan::Condition& condition : plan_.having) {
    const report::Cell cell = finish(group, condition.node);
    const long double limit = condition.value.type == ValueType::kReal
                                  ? static_cast<long double>(condition.value.real)
                                  : static_cast<long double>(condition.value.integer);
    const auto* const whole = std::get_if<int64_t>(&cell);
    const auto* const real = std::get_if<double>(&cell);
    if (whole == nullptr && real == nullptr) return false;
    const long double value = whole != nullptr ? static_cast<long double>(*whole) : static_cast<long double>(*real);
    const int order = value < limit ? -1 : value > limit;
    bool holds = false;
    switch (condition.comparison) {
      case Comparison::kEqual:
        holds = order == 0;
        break;
      case Comparison::kNotEqual:
        holds = order != 0;
        break;
      case Comparison::kLess:
        holds = order < 0;
        break;
      case Comparison::kLessEqual:
        holds = order <= 0;
        break;
      case Comparison::kGreater:
        holds = order > 0;
        break;
      default:
        holds = order >= 0;
    }
    if (!holds) return false;
  }
  return true;
}

bool Runner::is_text(int number) const {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  if (node.op != Op::kTerm) return false;
  const Node& term = plan_.nodes[static_cast<size_t>(plan_.terms[static_cast<size_t>(node.left)])];
  return term.op == Op::kColumn && plan_.column(term).type == ValueType::kText;
}

bool Runner::is_real(int number) const {
  if (number < 0) return false;
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  switch (node.op) {
    case Op::kReal:
      return true;
    case Op::kInteger:
      return false;
    case Op::kTerm: {
      const Node& term = plan_.nodes[static_cast<size_t>(plan_.terms[static_cast<size_t>(node.left)])];
      return term.op == Op::kColumn && plan_.column(term).type == ValueType::kReal;
    }
    case Op::kAggregate: {
      const Function function = plan_.aggregates[static_cast<size_t>(node.right)].function;
      return function == Function::kTotal || function == Function::kAverage;
    }
    default:
      return is_real(node.left) || is_real(node.right);
  }
}

// A number that sorts like the first term of ORDER BY, if that is a number: it decides most comparisons.
int64_t Runner::order_key(const int64_t* group) const {
  const auto& first = plan_.order[0];
  const int node = plan_.items[first.item].node;
  const report::Cell cell = finish(group, node);
  int64_t key = INT64_MIN;
  if (std::holds_alternative<std::string>(cell)) {
    key = 0;
  } else if (is_real(node)) {
    if (!std::holds_alternative<std::monostate>(cell)) {
      const double value =
          std::holds_alternative<double>(cell) ? std::get<double>(cell) : static_cast<double>(std::get<int64_t>(cell));
      const auto bits = std::bit_cast<int64_t>(value + 0.0);
      key = bits < 0 ? bits ^ INT64_MAX : bits;
    }
  } else if (const auto* whole = std::get_if<int64_t>(&cell)) {
    key = *whole;
  } else if (const auto* over = std::get_if<double>(&cell)) {  // outside the range of whole numbers
    key = *over < 0 ? INT64_MIN : INT64_MAX;
  }
  return first.descending ? ~key : key;
}

template <size_t kCells>
Result<bool> Runner::run_with(const RowSink& sink) {
  using One = Record<kCells>;
  const auto record_of = [&](const int64_t* cells) {
    One one{};
    std::copy_n(cells, width_, one.at.begin());
    return one;
  };
  // Sorts by codes; needed only if the table overflowed.
  struct ByCodes {
    size_t terms;
    bool operator()(const One& a, const One& b) const {
      return std::lexicographical_compare(a.at.begin(), a.at.begin() + terms, b.at.begin(), b.at.begin() + terms);
    }
  };
  SortedFile<One, ByCodes> by_codes(8u << 20, {terms_});
  bool spilled = false;
  const auto spill = [&] {
    spilled = true;
    for (uint32_t i = 0; i < table_->groups(); ++i) by_codes.add(record_of(table_->record(i)));
  };
  TACHO_ASSIGN(const bool fits, collect(spill));
  if (!fits) return false;
  if (terms_ == 0) table_->place(kNoCodes);  // exists even without rows

  // Sorts by values, so that equal texts with different codes meet. Looking up texts costs more than everything else
  // here.
  struct Valued {
    One one;
    TextPrefix prefix;  // of the first value, if that is a text
  };
  struct ByValues {
    const Runner* runner;
    bool backwards;  // for the first value
    int compare(const Valued& a, const Valued& b) const {
      if (a.prefix != b.prefix) return (a.prefix < b.prefix) != backwards ? -1 : 1;
      return runner->compare_terms(a.one.at.data(), b.one.at.data());
    }
    bool operator()(const Valued& a, const Valued& b) const { return compare(a, b) < 0; }
  };
  const ByValues order_of_values{this, descending(0)};
  SortedFile<Valued, ByValues> by_values(16u << 20, order_of_values);
  const ColumnInfo* text = nullptr;
  if (terms_ > 0)
    if (const Node& first = plan_.nodes[static_cast<size_t>(plan_.terms[0])];
        first.op == Op::kColumn && plan_.column(first).type == ValueType::kText)
      text = &plan_.column(first);
  const auto add_values = [&](const One& one) {
    by_values.add(
        {one, text != nullptr && one.at[0] != kUnknown ? text_prefix(text->text(one.at[0], left_)) : TextPrefix{}});
  };
  if (spilled) {
    spill();
    table_ = nullptr;
    TACHO_TRY(by_codes.finish());
    One current, next;
    bool more = by_codes.next(current);
    while (more) {
      more = by_codes.next(next);
      if (more && std::equal(next.at.begin(), next.at.begin() + terms_, current.at.begin())) {
        if (!merge(current.at.data(), next.at.data())) return false;
        continue;
      }
      add_values(current);
      current = next;
    }
  } else {
    for (uint32_t i = 0; i < table_->groups(); ++i) add_values(record_of(table_->record(i)));
    table_ = nullptr;
  }
  TACHO_TRY(by_values.finish());

  // Groups in their own order, then in that of ORDER BY. Delivers no row before all sums are known to fit.
  struct ByOrder {
    const Runner* runner;
    bool by_key;  // the key decides
    bool operator()(const One& a, const One& b) const {
      if (a.at[kCells - 1] != b.at[kCells - 1]) return a.at[kCells - 1] < b.at[kCells - 1];
      // The smallest and the largest key stand for several values: NULL, and anything beyond whole numbers.
      if (by_key && a.at[kCells - 1] != INT64_MIN && a.at[kCells - 1] != INT64_MAX) return false;
      for (const AggregatePlan::Order& term : runner->plan_.order) {
        const int node = runner->plan_.items[term.item].node;
        const int order = compare_cells(runner->finish(a.at.data(), node), runner->finish(b.at.data(), node));
        if (order != 0) return term.descending ? order > 0 : order < 0;
      }
      return false;
    }
  };
  const bool ordered = !plan_.order.empty();
  SortedFile<One, ByOrder> by_order(16u << 20,
                                    {this, plan_.order.size() == 1 && !is_text(plan_.items[plan_.order[0].item].node)});
  struct AsTheyCome {
    bool operator()(const One&, const One&) const { return false; }
  };
  SortedFile<One, AsTheyCome> as_they_come(16u << 20);
  {
    Valued current, next;
    bool more = by_values.next(current);
    while (more) {
      more = by_values.next(next);
      if (more && order_of_values.compare(next, current) == 0) {
        if (!merge(current.one.at.data(), next.one.at.data())) return false;
        continue;
      }
      One& group = current.one;
      if (passes(group.at.data())) {
        if (ordered) {
          group.at[kCells - 1] = order_key(group.at.data());
          by_order.add(group);
        } else {
          as_they_come.add(group);
        }
      }
      current = next;
    }
  }
  if (ordered)
    TACHO_TRY(by_order.finish());
  else
    TACHO_TRY(as_they_come.finish());

  std::vector<std::string> titles;
  for (const auto& item : plan_.items) titles.push_back(item.title);
  sink.columns(titles);
  std::vector<report::Cell> row(plan_.items.size());
  One group;
  for (int64_t given = 0;
       (plan_.limit < 0 || given < plan_.limit) && (ordered ? by_order.next(group) : as_they_come.next(group));
       ++given) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = finish(group.at.data(), plan_.items[i].node);
    if (!sink.row(row)) break;
  }
  return true;
}

Result<bool> Runner::run(const RowSink& sink) {
  // One more cell for the key of ORDER BY.
  if (width_ < 4) return run_with<4>(sink);
  if (width_ < 8) return run_with<8>(sink);
  if (width_ < 32) return run_with<32>(sink);
  return false;
}

}  // namespace

Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink) {
  return Runner(plan).run(sink);
}

}  // namespace tacho::query
