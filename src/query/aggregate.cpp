// Grouped sums over relations (aggregate.h).
#include "query/aggregate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "query/sql_text.h"

namespace tacho::query {

using event::kUnknown;

namespace {

enum class Op : uint8_t { kColumn, kInteger, kReal, kAdd, kSubtract, kMultiply, kDivide, kNegate, kAggregate };
enum class Function : uint8_t { kCountRows, kCount, kSum, kTotal, kAverage, kMin, kMax };

struct Node {
  Op op;
  int column = 0;        // kColumn: of the relation
  int64_t integer = 0;
  double real = 0;
  int left = -1, right = -1;  // places of operands; kAggregate: left = its argument, right = place among the aggregates
};

struct Aggregate {
  Function function;
  int argument = -1;  // node
};

}  // namespace

struct AggregatePlan {
  const Relation* relation = nullptr;
  Store* store = nullptr;
  std::vector<Node> nodes;
  std::vector<Aggregate> aggregates;
  struct Item {
    int node;
    std::string title;
    std::string text;  // its words, for recognising it in ORDER BY
  };
  std::vector<Item> items;
  std::vector<Constraint> constraints;
  std::vector<int> groups;  // columns
  struct Order {
    size_t item;
    bool descending;
  };
  std::vector<Order> order;
  int64_t limit = -1;
};

void AggregatePlanDeleter::operator()(AggregatePlan* plan) const { delete plan; }

namespace {

class Parser {
 public:
  Parser(const std::string& sql, const Module& module) : sql_(sql), tokens_(tokens_of(sql)), module_(module) {}
  AggregatePlanPointer parse();

 private:
  bool at(std::string_view word) const { return place_ < tokens_.size() && tokens_[place_].kind != TokenKind::kString && same_word(tokens_[place_].text, word); }
  bool take(std::string_view word) {
    if (!at(word)) return false;
    ++place_;
    return true;
  }
  bool name(std::string& result) {
    if (place_ >= tokens_.size() || (tokens_[place_].kind != TokenKind::kWord && tokens_[place_].kind != TokenKind::kQuoted)) return false;
    static constexpr std::string_view kReserved[] = {"select", "from", "where", "group", "order", "by", "limit", "having", "join", "union", "distinct", "and", "or", "not",
                                                     "case", "cast", "over", "filter", "as", "on", "left", "inner", "cross", "natural", "offset", "between", "in", "is", "null"};
    if (tokens_[place_].kind == TokenKind::kWord)
      for (const std::string_view word : kReserved)
        if (same_word(tokens_[place_].text, word)) return false;
    result = name_of(tokens_[place_]);
    ++place_;
    return true;
  }
  int add(Node node) {
    plan_->nodes.push_back(node);
    return static_cast<int>(plan_->nodes.size()) - 1;
  }
  bool column(int& result);
  bool whole_numbers(int node) const {
    if (node < 0) return true;
    const Node& here = plan_->nodes[static_cast<size_t>(node)];
    if (here.op == Op::kColumn) return plan_->relation->columns[static_cast<size_t>(here.column)].type == ValueType::kInteger;
    return whole_numbers(here.left) && whole_numbers(here.right);
  }
  // -1: not of the form. `inside`: within an aggregate's brackets.
  int sum(bool inside);
  int product(bool inside);
  int factor(bool inside);
  bool condition();
  bool literal(Constraint& constraint);
  std::string words(size_t from, size_t to) const {
    std::string text;
    for (size_t i = from; i < to; ++i) {
      std::string word(tokens_[i].text);
      if (tokens_[i].kind == TokenKind::kWord)
        for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      text += word + " ";
    }
    return text;
  }

  const std::string& sql_;
  std::vector<Token> tokens_;
  const Module& module_;
  size_t place_ = 0;
  AggregatePlanPointer plan_{new AggregatePlan};
  std::string alias_, table_;
};

// A column name, perhaps qualified with the table's name or alias.
bool Parser::column(int& result) {
  const size_t start = place_;
  std::string first;
  if (!name(first)) return false;
  if (take(".")) {
    std::string second;
    if (!name(second) || (!same_word(first, alias_) && !same_word(first, table_))) {
      place_ = start;
      return false;
    }
    first = second;
  }
  result = plan_->relation->column(first);
  if (result < 0 || at("(")) {
    place_ = start;
    return false;
  }
  return true;
}

int Parser::factor(bool inside) {
  if (place_ >= tokens_.size()) return -1;
  if (take("(")) {
    const int node = sum(inside);
    return node >= 0 && take(")") ? node : -1;
  }
  if (take("-")) {
    const int node = factor(inside);
    return node < 0 ? -1 : add({.op = Op::kNegate, .left = node});
  }
  const Token& token = tokens_[place_];
  if (token.kind == TokenKind::kNumber) {
    Node node{.op = Op::kInteger};
    const char* const end = token.text.data() + token.text.size();
    if (const auto [stop, error] = std::from_chars(token.text.data(), end, node.integer); error != std::errc() || stop != end) {
      if (inside) return -1;
      node.op = Op::kReal;
      if (const auto [far, wrong] = std::from_chars(token.text.data(), end, node.real); wrong != std::errc() || far != end) return -1;
    }
    ++place_;
    return add(node);
  }
  static constexpr std::pair<std::string_view, Function> kFunctions[] = {{"count", Function::kCount}, {"sum", Function::kSum}, {"total", Function::kTotal},
                                                                         {"avg", Function::kAverage}, {"min", Function::kMin}, {"max", Function::kMax}};
  if (!inside && token.kind == TokenKind::kWord && place_ + 1 < tokens_.size() && tokens_[place_ + 1].text == "(")
    for (const auto& [word, function] : kFunctions) {
      if (!same_word(token.text, word)) continue;
      place_ += 2;
      Aggregate aggregate{function, -1};
      if (function == Function::kCount && take("*")) {
        aggregate.function = Function::kCountRows;
      } else {
        aggregate.argument = sum(true);
        if (aggregate.argument < 0) return -1;
        const Node& argument = plan_->nodes[static_cast<size_t>(aggregate.argument)];
        const bool plain = argument.op == Op::kColumn;
        if (plain && plan_->relation->columns[static_cast<size_t>(argument.column)].type != ValueType::kInteger && function != Function::kCount) return -1;
      }
      if (!take(")") || at("over") || at("filter")) return -1;
      plan_->aggregates.push_back(aggregate);
      return add({.op = Op::kAggregate, .left = aggregate.argument, .right = static_cast<int>(plan_->aggregates.size()) - 1});
    }
  int which = 0;
  if (!column(which)) return -1;
  return add({.op = Op::kColumn, .column = which});
}

int Parser::product(bool inside) {
  int left = factor(inside);
  while (left >= 0) {
    Op op;
    if (take("*")) op = Op::kMultiply;
    else if (!inside && take("/")) op = Op::kDivide;
    else break;
    const int right = factor(inside);
    if (right < 0) return -1;
    left = add({.op = op, .left = left, .right = right});
  }
  return left;
}

int Parser::sum(bool inside) {
  int left = product(inside);
  while (left >= 0) {
    Op op;
    if (take("+")) op = Op::kAdd;
    else if (take("-")) op = Op::kSubtract;
    else break;
    const int right = product(inside);
    if (right < 0) return -1;
    left = add({.op = op, .left = left, .right = right});
  }
  // Arithmetic inside an aggregate is over whole numbers only.
  if (inside && left >= 0 && plan_->nodes[static_cast<size_t>(left)].op != Op::kColumn && !whole_numbers(left)) return -1;
  return left;
}

bool Parser::literal(Constraint& constraint) {
  const bool negative = take("-");
  if (place_ >= tokens_.size()) return false;
  const Token& token = tokens_[place_];
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kNumber) {
    constraint.type = ValueType::kInteger;
    if (const auto [stop, error] = std::from_chars(token.text.data(), end, constraint.integer); error != std::errc() || stop != end) {
      constraint.type = ValueType::kReal;
      if (const auto [far, wrong] = std::from_chars(token.text.data(), end, constraint.real); wrong != std::errc() || far != end) return false;
    }
    if (negative) {
      constraint.integer = -constraint.integer;
      constraint.real = -constraint.real;
    }
  } else if (token.kind == TokenKind::kString && !negative && token.text.size() >= 2 && token.text.back() == '\'') {
    constraint.type = ValueType::kText;
    for (size_t i = 1; i + 1 < token.text.size(); ++i) {
      constraint.text += token.text[i];
      if (token.text[i] == '\'') ++i;
    }
  } else {
    return false;
  }
  ++place_;
  return true;
}

bool Parser::condition() {
  Constraint constraint;
  if (!column(constraint.column)) return false;
  const ColumnInfo& about = plan_->relation->columns[static_cast<size_t>(constraint.column)];
  const auto fits = [&](const Constraint& value) {
    return about.type == ValueType::kText ? value.type == ValueType::kText : value.type != ValueType::kText;
  };
  if (take("between")) {
    constraint.comparison = Comparison::kGreaterEqual;
    Constraint upper = constraint;
    upper.comparison = Comparison::kLessEqual;
    if (!literal(constraint) || !take("and") || !literal(upper) || !fits(constraint) || !fits(upper)) return false;
    plan_->constraints.push_back(constraint);
    plan_->constraints.push_back(upper);
    return true;
  }
  if (take("like")) {
    constraint.comparison = Comparison::kLike;
    if (about.type != ValueType::kText) return false;
  } else if (take("glob")) {
    constraint.comparison = Comparison::kGlob;
    if (about.type != ValueType::kText) return false;
  } else if (take("=")) {
    take("=");
    constraint.comparison = Comparison::kEqual;
  } else if (take("<")) {
    constraint.comparison = take("=") ? Comparison::kLessEqual : take(">") ? Comparison::kNotEqual : Comparison::kLess;
  } else if (take(">")) {
    constraint.comparison = take("=") ? Comparison::kGreaterEqual : Comparison::kGreater;
  } else if (take("!")) {
    if (!take("=")) return false;
    constraint.comparison = Comparison::kNotEqual;
  } else {
    return false;
  }
  if (!literal(constraint) || !fits(constraint) || at("escape") || at("collate")) return false;
  plan_->constraints.push_back(constraint);
  return true;
}

AggregatePlanPointer Parser::parse() {
  AggregatePlan& plan = *plan_;
  while (!tokens_.empty() && tokens_.back().text == ";") tokens_.pop_back();
  if (!take("select")) return nullptr;
  // The table first: it says what the names mean.
  const size_t items = place_;
  int depth = 0;
  while (place_ < tokens_.size() && !(depth == 0 && at("from"))) {
    if (tokens_[place_].text == "(") ++depth;
    if (tokens_[place_].text == ")") --depth;
    if (at("select")) return nullptr;
    ++place_;
  }
  if (!take("from")) return nullptr;
  std::string schema;
  if (!name(table_)) return nullptr;
  if (take(".")) {
    schema = table_;
    if (!name(table_)) return nullptr;
  }
  take("as");
  if (place_ < tokens_.size() && !at("where") && !at("group") && !at("order") && !at("limit") && !name(alias_)) return nullptr;
  const Module::Found found = module_.find(schema, table_);
  if (found.relation == nullptr) return nullptr;
  plan.relation = found.relation;
  plan.store = found.store;
  const size_t behind = place_;

  place_ = items;
  while (true) {
    AggregatePlan::Item item;
    const size_t from = place_;
    item.node = sum(false);
    if (item.node < 0) return nullptr;
    const size_t to = place_;
    item.text = words(from, to);
    const size_t end = tokens_[to - 1].at + tokens_[to - 1].text.size();
    item.title = sql_.substr(tokens_[from].at, end - tokens_[from].at);
    if (plan.nodes[static_cast<size_t>(item.node)].op == Op::kColumn && to == from + 1)
      item.title = plan.relation->columns[static_cast<size_t>(plan.nodes[static_cast<size_t>(item.node)].column)].name;
    if (take("as")) {
      if (!name(item.title)) return nullptr;
    } else if (!at(",") && !at("from")) {
      if (!name(item.title)) return nullptr;
    }
    plan.items.push_back(std::move(item));
    if (take(",")) continue;
    if (!at("from")) return nullptr;
    break;
  }
  place_ = behind;
  if (take("where")) {
    do {
      if (!condition()) return nullptr;
    } while (take("and"));
  }
  if (take("group")) {
    if (!take("by")) return nullptr;
    do {
      int which = -1;
      if (place_ < tokens_.size() && tokens_[place_].kind == TokenKind::kNumber) {
        size_t ordinal = 0;
        const Token& token = tokens_[place_++];
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), ordinal);
        if (ordinal < 1 || ordinal > plan.items.size()) return nullptr;
        const Node& node = plan.nodes[static_cast<size_t>(plan.items[ordinal - 1].node)];
        if (node.op != Op::kColumn) return nullptr;
        which = node.column;
      } else if (!column(which)) {
        std::string alias;
        if (!name(alias)) return nullptr;
        for (const auto& item : plan.items)
          if (same_word(item.title, alias) && plan.nodes[static_cast<size_t>(item.node)].op == Op::kColumn) which = plan.nodes[static_cast<size_t>(item.node)].column;
        if (which < 0) return nullptr;
      }
      if (!plan.relation->columns[static_cast<size_t>(which)].few) return nullptr;
      plan.groups.push_back(which);
    } while (take(","));
  }
  if (take("order")) {
    if (!take("by")) return nullptr;
    do {
      AggregatePlan::Order term{plan.items.size(), false};
      const size_t from = place_;
      if (place_ < tokens_.size() && tokens_[place_].kind == TokenKind::kNumber && (place_ + 1 == tokens_.size() || tokens_[place_ + 1].kind != TokenKind::kSymbol || tokens_[place_ + 1].text == ",")) {
        size_t ordinal = 0;
        const Token& token = tokens_[place_++];
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), ordinal);
        if (ordinal < 1 || ordinal > plan.items.size()) return nullptr;
        term.item = ordinal - 1;
      } else {
        int brackets = 0;
        while (place_ < tokens_.size() && !(brackets == 0 && (at(",") || at("asc") || at("desc") || at("limit") || at("nulls") || at("collate")))) {
          if (tokens_[place_].text == "(") ++brackets;
          if (tokens_[place_].text == ")") --brackets;
          ++place_;
        }
        const std::string text = words(from, place_);
        for (size_t i = plan.items.size(); i-- > 0;) {
          const bool alias = place_ == from + 1 && same_word(name_of(tokens_[from]), plan.items[i].title);
          if (alias || plan.items[i].text == text) term.item = i;
        }
        if (term.item == plan.items.size()) return nullptr;
      }
      if (take("desc")) term.descending = true;
      else take("asc");
      plan.order.push_back(term);
    } while (take(","));
  }
  if (take("limit")) {
    if (place_ >= tokens_.size()) return nullptr;
    const Token& token = tokens_[place_++];
    const auto [stop, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), plan.limit);
    if (error != std::errc() || stop != token.text.data() + token.text.size()) return nullptr;
  }
  if (place_ != tokens_.size()) return nullptr;
  if (plan.aggregates.empty()) return nullptr;
  // Columns outside aggregates must be what is grouped by.
  std::vector<bool> inside(plan.nodes.size());
  const auto mark = [&](auto&& self, int node) -> void {
    if (node < 0) return;
    inside[static_cast<size_t>(node)] = true;
    self(self, plan.nodes[static_cast<size_t>(node)].left);
    self(self, plan.nodes[static_cast<size_t>(node)].op == Op::kAggregate ? -1 : plan.nodes[static_cast<size_t>(node)].right);
  };
  for (const Aggregate& aggregate : plan.aggregates) mark(mark, aggregate.argument);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = plan.nodes[i];
    if (node.op != Op::kColumn || inside[i]) continue;
    if (std::find(plan.groups.begin(), plan.groups.end(), node.column) == plan.groups.end()) return nullptr;
    // Arithmetic with texts is SQLite's business.
    bool whole_item = false;
    for (const auto& item : plan.items) whole_item = whole_item || item.node == static_cast<int>(i);
    if (!whole_item && plan.relation->columns[static_cast<size_t>(node.column)].type != ValueType::kInteger) return nullptr;
  }
  return std::move(plan_);
}

struct State {
  int64_t count = 0;    // values that are not NULL; rows for count(*)
  int64_t sum = 0;
  int64_t least = INT64_MAX, most = INT64_MIN;
};

class Runner {
 public:
  explicit Runner(const AggregatePlan& plan) : plan_(plan) {}
  Result<bool> run(const RowSink& sink);

 private:
  bool evaluate(Scan& scan, int node, std::vector<int64_t>& values);
  std::vector<int64_t> spare_;
  report::Cell finish(size_t group, int node) const;

  const AggregatePlan& plan_;
  std::vector<std::vector<int64_t>> keys_;
  std::vector<State> states_;  // [group * aggregates + aggregate]
  mutable std::string scratch_;
};

// A whole-number expression for all rows of the batch; kUnknown = NULL. False: overflow.
bool Runner::evaluate(Scan& scan, int number, std::vector<int64_t>& values) {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  const size_t count = scan.selection().size();
  switch (node.op) {
    case Op::kColumn: scan.gather(node.column, values); return true;
    case Op::kInteger: values.assign(count, node.integer); return true;
    case Op::kNegate:
      if (!evaluate(scan, node.left, values)) return false;
      for (int64_t& value : values)
        if (value != kUnknown) value = -value;
      return true;
    default: break;
  }
  std::vector<int64_t> right = std::move(spare_);
  if (!evaluate(scan, node.left, values) || !evaluate(scan, node.right, right)) return false;
  bool over = false;
  const auto combine = [&](auto operation) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t a = values[i], b = right[i];
      if (a == kUnknown || b == kUnknown) {
        values[i] = kUnknown;
        continue;
      }
      over |= operation(a, b, &values[i]);
      over |= values[i] == kUnknown;
    }
  };
  if (node.op == Op::kAdd) combine([](int64_t a, int64_t b, int64_t* to) { return __builtin_add_overflow(a, b, to); });
  else if (node.op == Op::kSubtract) combine([](int64_t a, int64_t b, int64_t* to) { return __builtin_sub_overflow(a, b, to); });
  else combine([](int64_t a, int64_t b, int64_t* to) { return __builtin_mul_overflow(a, b, to); });
  spare_ = std::move(right);
  return !over;
}

report::Cell Runner::finish(size_t group, int number) const {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  switch (node.op) {
    case Op::kInteger: return node.integer;
    case Op::kReal: return node.real;
    case Op::kColumn: {
      const auto at = static_cast<size_t>(std::find(plan_.groups.begin(), plan_.groups.end(), node.column) - plan_.groups.begin());
      const int64_t code = keys_[group][at];
      if (code == kUnknown) return {};
      const ColumnInfo& column = plan_.relation->columns[static_cast<size_t>(node.column)];
      if (column.type == ValueType::kText) return std::string(column.text(code, scratch_));
      if (column.type == ValueType::kReal) return __builtin_bit_cast(double, code);
      return code;
    }
    case Op::kAggregate: {
      const auto at = static_cast<size_t>(node.right);
      const State& state = states_[group * plan_.aggregates.size() + at];
      const Function function = plan_.aggregates[at].function;
      if (function == Function::kCountRows || function == Function::kCount) return state.count;
      if (function == Function::kTotal) return static_cast<double>(state.sum);
      if (state.count == 0) return {};
      if (function == Function::kSum) return state.sum;
      if (function == Function::kAverage) return static_cast<double>(state.sum) / static_cast<double>(state.count);
      return function == Function::kMin ? state.least : state.most;
    }
    default: break;
  }
  const report::Cell left = finish(group, node.left);
  if (std::holds_alternative<std::monostate>(left)) return {};
  const auto real = [](const report::Cell& cell) { return std::holds_alternative<double>(cell) ? std::get<double>(cell) : static_cast<double>(std::get<int64_t>(cell)); };
  if (node.op == Op::kNegate) return std::holds_alternative<double>(left) ? report::Cell(-std::get<double>(left)) : report::Cell(-std::get<int64_t>(left));
  const report::Cell right = finish(group, node.right);
  if (std::holds_alternative<std::monostate>(right)) return {};
  if (std::holds_alternative<int64_t>(left) && std::holds_alternative<int64_t>(right)) {
    const int64_t a = std::get<int64_t>(left), b = std::get<int64_t>(right);
    int64_t value = 0;
    bool over = false;
    switch (node.op) {
      case Op::kAdd: over = __builtin_add_overflow(a, b, &value); break;
      case Op::kSubtract: over = __builtin_sub_overflow(a, b, &value); break;
      case Op::kMultiply: over = __builtin_mul_overflow(a, b, &value); break;
      default:
        if (b == 0) return {};
        over = a == INT64_MIN && b == -1;
        if (!over) value = a / b;
    }
    if (!over) return value;
  }
  const double a = real(left), b = real(right);
  switch (node.op) {
    case Op::kAdd: return a + b;
    case Op::kSubtract: return a - b;
    case Op::kMultiply: return a * b;
    default: return b == 0 ? report::Cell() : report::Cell(a / b);
  }
}

int compare_cells(const report::Cell& a, const report::Cell& b) {
  const auto rank = [](const report::Cell& cell) { return cell.index() == 0 ? 0 : cell.index() == 3 ? 2 : 1; };
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? -1 : 1;
  if (a.index() == 0) return 0;
  if (a.index() == 3) return std::get<std::string>(a).compare(std::get<std::string>(b)) < 0 ? -1 : std::get<std::string>(a) != std::get<std::string>(b);
  if (a.index() == 1 && b.index() == 1) return std::get<int64_t>(a) < std::get<int64_t>(b) ? -1 : std::get<int64_t>(a) > std::get<int64_t>(b);
  const auto real = [](const report::Cell& cell) { return cell.index() == 2 ? static_cast<long double>(std::get<double>(cell)) : static_cast<long double>(std::get<int64_t>(cell)); };
  return real(a) < real(b) ? -1 : real(a) > real(b);
}

Result<bool> Runner::run(const RowSink& sink) {
  ScanPlan plan;
  plan.constraints = plan_.constraints;
  plan.used = plan_.groups;
  for (const Node& node : plan_.nodes)
    if (node.op == Op::kColumn) plan.used.push_back(node.column);
  const size_t terms = plan_.groups.size(), width = plan_.aggregates.size();
  Scan scan(*plan_.relation, *plan_.store, std::move(plan));
  std::map<std::vector<int64_t>, uint32_t> groups;
  std::vector<tsl::robin_map<int64_t, int64_t>> canonical(terms);
  std::vector<std::map<std::string, int64_t, std::less<>>> texts(terms);
  std::vector<int64_t> codes(terms), last_codes(terms), key(terms);
  tsl::robin_map<int64_t, uint32_t> by_code;  // for a single term
  uint32_t last_group = 0;
  bool have_last = false;
  if (terms == 0) {
    keys_.emplace_back();
    states_.resize(width);
  }
  const auto resolve = [&]() -> uint32_t {
    for (size_t i = 0; i < terms; ++i) {
      const ColumnInfo& column = plan_.relation->columns[static_cast<size_t>(plan_.groups[i])];
      key[i] = codes[i];
      if (column.type != ValueType::kText || codes[i] == kUnknown) continue;
      const auto found = canonical[i].find(codes[i]);
      if (found != canonical[i].end()) {
        key[i] = found->second;
      } else {
        key[i] = texts[i].try_emplace(std::string(column.text(codes[i], scratch_)), codes[i]).first->second;
        canonical[i].emplace(codes[i], key[i]);
      }
    }
    const auto [found, fresh] = groups.try_emplace(key, static_cast<uint32_t>(keys_.size()));
    if (fresh) {
      keys_.push_back(key);
      states_.resize(keys_.size() * width);
    }
    return found->second;
  };
  std::vector<std::vector<int64_t>> term_values(terms);
  std::vector<int64_t> values;
  std::vector<uint32_t> group(1);
  while (scan.next_batch()) {
    const size_t count = scan.selection().size();
    for (size_t i = 0; i < terms; ++i) scan.gather(plan_.groups[i], term_values[i]);
    group.resize(count);
    if (terms == 0) {
      std::fill(group.begin(), group.end(), 0u);
    } else {
      for (size_t row = 0; row < count; ++row) {
        bool same = have_last;
        for (size_t i = 0; i < terms; ++i) {
          codes[i] = term_values[i][row];
          same = same && codes[i] == last_codes[i];
        }
        if (!same) {
          if (terms == 1) {
            const auto found = by_code.find(codes[0]);
            last_group = found != by_code.end() ? found->second : by_code.emplace(codes[0], resolve()).first->second;
          } else {
            last_group = resolve();
          }
          last_codes = codes;
          have_last = true;
        }
        group[row] = last_group;
      }
    }
    for (size_t i = 0; i < width; ++i) {
      const Aggregate& aggregate = plan_.aggregates[i];
      State* const states = states_.data() + i;
      if (aggregate.function == Function::kCountRows) {
        for (size_t row = 0; row < count; ++row) ++states[group[row] * width].count;
        continue;
      }
      if (!evaluate(scan, aggregate.argument, values)) return false;
      const bool extremes = aggregate.function == Function::kMin || aggregate.function == Function::kMax;
      bool over = false;
      for (size_t row = 0; row < count; ++row) {
        const int64_t value = values[row];
        if (value == kUnknown) continue;
        State& state = states[group[row] * width];
        ++state.count;
        if (extremes) {
          state.least = std::min(state.least, value);
          state.most = std::max(state.most, value);
        } else {
          over |= __builtin_add_overflow(state.sum, value, &state.sum);
        }
      }
      if (over && aggregate.function != Function::kCount) return false;
    }
  }
  TACHO_TRY(Status(scan.status()));

  std::vector<uint32_t> order(keys_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::vector<std::vector<report::Cell>> rows(keys_.size()), key_cells(keys_.size());
  for (size_t group = 0; group < keys_.size(); ++group) {
    for (const auto& item : plan_.items) rows[group].push_back(finish(group, item.node));
    for (size_t i = 0; i < terms; ++i) {
      const ColumnInfo& column = plan_.relation->columns[static_cast<size_t>(plan_.groups[i])];
      const int64_t code = keys_[group][i];
      if (code == kUnknown) key_cells[group].emplace_back();
      else if (column.type == ValueType::kText) key_cells[group].emplace_back(std::string(column.text(code, scratch_)));
      else if (column.type == ValueType::kReal) key_cells[group].emplace_back(__builtin_bit_cast(double, code));
      else key_cells[group].emplace_back(code);
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    for (const auto& term : plan_.order) {
      const int which = compare_cells(rows[a][term.item], rows[b][term.item]);
      if (which != 0) return term.descending ? which > 0 : which < 0;
    }
    for (size_t i = 0; i < terms; ++i) {
      // SQLite takes over the directions of ORDER BY for its groups when there are as many terms.
      const bool descending = plan_.order.size() == terms && plan_.order[i].descending;
      const int which = compare_cells(key_cells[a][i], key_cells[b][i]);
      if (which != 0) return descending ? which > 0 : which < 0;
    }
    return false;
  });
  std::vector<std::string> titles;
  for (const auto& item : plan_.items) titles.push_back(item.title);
  sink.columns(titles);
  int64_t given = 0;
  for (const uint32_t group : order) {
    if (plan_.limit >= 0 && given++ >= plan_.limit) break;
    if (!sink.row(rows[group])) break;
  }
  return true;
}

}  // namespace

AggregatePlanPointer plan_aggregate(const std::string& sql, const Module& module) { return Parser(sql, module).parse(); }

Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink) { return Runner(plan).run(sink); }

}  // namespace tacho::query
