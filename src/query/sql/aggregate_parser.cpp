// Parses statements that sum over groups (aggregate_parser.h).
#include "query/sql/aggregate_parser.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <span>
#include <utility>

#include "base/format.h"

namespace tacho::query {

namespace {

constexpr size_t kMostSources = 8;

class Parser {
 public:
  Parser(const Statement& statement, const Module& module)
      : sql_(statement.text()), tokens_(statement.tokens()), module_(module) {}
  AggregateParse parse();
  AggregateParse parse_plain();

 private:
  struct Place {  // of a column
    int source = 0, column = 0;
  };
  bool at(std::string_view word) const {
    return place_ < tokens_.size() && tokens_[place_].kind != TokenKind::kString &&
           same_word(tokens_[place_].text, word);
  }
  bool at_any(std::initializer_list<std::string_view> words) const {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return at(word); });
  }
  bool take(std::string_view word) {
    if (!at(word)) return false;
    next();
    return true;
  }
  void next() { furthest_ = std::max(furthest_, ++place_); }
  // Keeps the first reason that says more than "the grammar has no such word".
  bool refuse(std::string reason) {
    if (refusal_.empty()) refusal_ = std::move(reason);
    return false;
  }
  bool understand();
  bool understand_plain();
  bool plain_items();
  bool to_tables(size_t& list);
  bool name(std::string& result);
  int add(Node node) {
    plan_->nodes.push_back(node);
    return static_cast<int>(plan_->nodes.size()) - 1;
  }
  const Node& node(int number) const { return plan_->nodes[static_cast<size_t>(number)]; }
  bool column(Place& result);
  bool ordinal(size_t& item);
  bool whole_numbers(int number) const;
  // -1: outside the grammar. `inside`: within an aggregate's brackets or GROUP BY, where arithmetic takes only whole
  // numbers.
  int sum(bool inside);
  int product(bool inside);
  int factor(bool inside);
  bool sources();
  bool source();
  bool conditions();
  bool condition();
  bool literal(Constraint& constraint);
  bool comparison(Comparison& result);
  bool items();
  bool groups();
  bool having();
  bool order();
  bool limit();
  bool settle(int number, bool whole_item);
  bool join();
  // The tokens as written, with the text between them.
  std::string source_text(size_t from, size_t to) const {
    if (from >= to) return {};
    return sql_.substr(tokens_[from].at, tokens_[to - 1].at + tokens_[to - 1].text.size() - tokens_[from].at);
  }
  const ColumnInfo& info(const Place& place) const {
    return plan_->sources[static_cast<size_t>(place.source)].relation->columns[static_cast<size_t>(place.column)];
  }
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
  std::span<const Token> tokens_;
  const Module& module_;
  size_t place_ = 0, furthest_ = 0;
  std::string refusal_;
  std::unique_ptr<AggregatePlan> plan_ = std::make_unique<AggregatePlan>();
  std::vector<std::pair<size_t, size_t>> on_;        // tokens of the joins' conditions
  std::vector<std::pair<Place, Place>> equalities_;  // column = column
  std::vector<std::string> term_texts_;
};

bool Parser::name(std::string& result) {
  if (place_ >= tokens_.size() ||
      (tokens_[place_].kind != TokenKind::kWord && tokens_[place_].kind != TokenKind::kQuoted))
    return false;
  static constexpr std::string_view kReserved[] = {
      "select",   "from",  "where", "group",   "order",  "by",        "limit", "having", "join", "union",
      "distinct", "and",   "or",    "not",     "case",   "cast",      "over",  "filter", "as",   "on",
      "left",     "inner", "cross", "natural", "offset", "between",   "in",    "is",     "null", "using",
      "full",     "right", "outer", "indexed", "window", "intersect", "except"};
  if (tokens_[place_].kind == TokenKind::kWord)
    for (const std::string_view word : kReserved)
      if (same_word(tokens_[place_].text, word)) return false;
  result = name_of(tokens_[place_]);
  next();
  return true;
}

// A column name, perhaps qualified with its table's name or alias. Leaves names that several tables have for SQLite to
// refuse.
bool Parser::column(Place& result) {
  const size_t start = place_;
  const auto back = [&] {
    place_ = start;
    return false;
  };
  std::string first, qualifier;
  if (!name(first)) return false;
  if (take(".")) {
    qualifier = first;
    if (!name(first)) return back();
  }
  if (at("(") || at(".")) return back();
  int found = 0;
  for (size_t i = 0; i < plan_->sources.size(); ++i) {
    const AggregatePlan::Source& source = plan_->sources[i];
    if (!qualifier.empty() && !same_word(qualifier, source.alias.empty() ? source.table : source.alias)) continue;
    const int which = source.relation->column(first);
    if (which < 0) continue;
    result = {static_cast<int>(i), which};
    ++found;
  }
  if (found != 1) return back();
  if (const ColumnInfo& about = info(result); about.looked_up)
    return refuse(fmt::format("\"{}\" is looked up row by row", about.name));
  return true;
}

// True if the expression computes with whole numbers only.
bool Parser::whole_numbers(int number) const {
  if (number < 0) return true;
  const Node& here = node(number);
  switch (here.op) {
    case Op::kColumn:
      return plan_->column(here).type == ValueType::kInteger;
    case Op::kInteger:
      return true;
    case Op::kReal:
    case Op::kAggregate:
    case Op::kTerm:
      return false;
    default:
      return whole_numbers(here.left) && whole_numbers(here.right);
  }
}

int Parser::factor(bool inside) {
  if (place_ >= tokens_.size()) return -1;
  if (take("(")) {
    const int inner = sum(inside);
    return inner >= 0 && take(")") ? inner : -1;
  }
  if (take("-")) {
    const int inner = factor(inside);
    return inner < 0 ? -1 : add({.op = Op::kNegate, .left = inner});
  }
  const Token& token = tokens_[place_];
  if (token.kind == TokenKind::kNumber) {
    Node number{.op = Op::kInteger};
    const char* const end = token.text.data() + token.text.size();
    if (const auto [stop, error] = std::from_chars(token.text.data(), end, number.integer);
        error != std::errc() || stop != end) {
      if (inside || error == std::errc::result_out_of_range) return -1;
      number.op = Op::kReal;
      if (const auto [far, wrong] = std::from_chars(token.text.data(), end, number.real);
          wrong != std::errc() || far != end)
        return -1;
    }
    next();
    return add(number);
  }
  static constexpr std::pair<std::string_view, SumFunction> kFunctions[] = {
      {"count", SumFunction::kCount}, {"sum", SumFunction::kSum}, {"total", SumFunction::kTotal},
      {"avg", SumFunction::kAverage}, {"min", SumFunction::kMin}, {"max", SumFunction::kMax}};
  if (!inside && token.kind == TokenKind::kWord && place_ + 1 < tokens_.size() && tokens_[place_ + 1].text == "(")
    for (const auto& [word, function] : kFunctions) {
      if (!same_word(token.text, word)) continue;
      next();
      next();
      AggregatePlan::Aggregate aggregate{function, -1};
      if (function == SumFunction::kCount && take("*")) {
        aggregate.function = SumFunction::kCountRows;
      } else {
        aggregate.argument = sum(true);
        if (aggregate.argument < 0) return -1;
        const Node& argument = node(aggregate.argument);
        if (argument.op == Op::kColumn && plan_->column(argument).type != ValueType::kInteger &&
            function != SumFunction::kCount) {
          refuse(fmt::format("{}() of \"{}\", which holds no whole numbers", word, plan_->column(argument).name));
          return -1;
        }
      }
      if (!take(")") || at("over") || at("filter")) return -1;
      plan_->aggregates.push_back(aggregate);
      return add(
          {.op = Op::kAggregate, .left = aggregate.argument, .right = static_cast<int>(plan_->aggregates.size()) - 1});
    }
  Place which;
  if (!column(which)) return -1;
  return add({.op = Op::kColumn, .source = which.source, .column = which.column});
}

int Parser::product(bool inside) {
  int left = factor(inside);
  while (left >= 0) {
    Op op;
    if (take("*"))
      op = Op::kMultiply;
    else if (take("/"))
      op = Op::kDivide;
    else if (inside && take("%"))
      op = Op::kRemainder;
    else
      break;
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
    if (take("+"))
      op = Op::kAdd;
    else if (take("-"))
      op = Op::kSubtract;
    else
      break;
    const int right = product(inside);
    if (right < 0) return -1;
    left = add({.op = op, .left = left, .right = right});
  }
  if (inside && left >= 0 && node(left).op != Op::kColumn && !whole_numbers(left)) {
    refuse("an expression inside an aggregate or GROUP BY that is not of whole numbers alone");
    return -1;
  }
  return left;
}

bool Parser::literal(Constraint& constraint) {
  const bool negative = take("-");
  if (place_ >= tokens_.size()) return false;
  const Token& token = tokens_[place_];
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kNumber) {
    constraint.type = ValueType::kInteger;
    if (const auto [stop, error] = std::from_chars(token.text.data(), end, constraint.integer);
        error != std::errc() || stop != end) {
      constraint.type = ValueType::kReal;
      if (const auto [far, wrong] = std::from_chars(token.text.data(), end, constraint.real);
          wrong != std::errc() || far != end)
        return false;
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
  next();
  return true;
}

bool Parser::comparison(Comparison& result) {
  if (take("=")) {
    take("=");
    result = Comparison::kEqual;
  } else if (take("<")) {
    result = take("=") ? Comparison::kLessEqual : take(">") ? Comparison::kNotEqual : Comparison::kLess;
  } else if (take(">")) {
    result = take("=") ? Comparison::kGreaterEqual : Comparison::kGreater;
  } else if (take("!")) {
    if (!take("=")) return false;
    result = Comparison::kNotEqual;
  } else {
    return false;
  }
  return true;
}

bool Parser::condition() {
  Place which;
  if (!column(which)) return false;
  AggregatePlan::Source& source = plan_->sources[static_cast<size_t>(which.source)];
  const ColumnInfo& about = source.relation->columns[static_cast<size_t>(which.column)];
  Constraint constraint;
  constraint.column = which.column;
  const auto fits = [&](const Constraint& value) {
    return about.type == ValueType::kText ? value.type == ValueType::kText : value.type != ValueType::kText;
  };
  if (take("between")) {
    constraint.comparison = Comparison::kGreaterEqual;
    Constraint upper = constraint;
    upper.comparison = Comparison::kLessEqual;
    if (!literal(constraint) || !take("and") || !literal(upper) || !fits(constraint) || !fits(upper)) return false;
    source.constraints.push_back(constraint);
    source.constraints.push_back(upper);
    return true;
  }
  if (take("like")) {
    constraint.comparison = Comparison::kLike;
    if (about.type != ValueType::kText) return false;
  } else if (take("glob")) {
    constraint.comparison = Comparison::kGlob;
    if (about.type != ValueType::kText) return false;
  } else if (!comparison(constraint.comparison)) {
    return false;
  }
  if (constraint.comparison == Comparison::kEqual) {
    Place other;
    if (column(other)) {
      if (at("collate") || at_any({"+", "-", "*", "/", "%", "|", "&", "<", ">", "="})) return false;
      equalities_.emplace_back(which, other);
      return true;
    }
  }
  if (!literal(constraint) || !fits(constraint) || at("escape") || at("collate")) return false;
  if (at_any({"+", "-", "*", "/", "%", "|", "&", "<", ">", "="})) return false;
  source.constraints.push_back(constraint);
  return true;
}

bool Parser::conditions() {
  do {
    if (!condition()) return false;
  } while (take("and"));
  return true;
}

bool Parser::source() {
  AggregatePlan::Source source;
  std::string schema;
  if (!name(source.table)) return false;
  if (take(".")) {
    schema = source.table;
    if (!name(source.table)) return false;
  }
  if (take("as")) {
    if (!name(source.alias)) return false;
  } else {
    name(source.alias);
  }
  const Module::Found found = module_.find(schema, source.table);
  if (found.relation == nullptr) return refuse(fmt::format("\"{}\" is no table of columns", source.table));
  source.relation = found.relation;
  source.store = found.store;
  plan_->sources.push_back(std::move(source));
  return plan_->sources.size() <= kMostSources || refuse(fmt::format("more than {} tables", kMostSources));
}

// FROM: the tables, and where the joins' conditions are; those are parsed once all tables are known.
bool Parser::sources() {
  if (!source()) return false;
  while (true) {
    if (!take(",")) {
      const bool inner = take("inner"), cross = !inner && take("cross");
      if (!take("join")) return !inner && !cross;
    }
    if (!source()) return false;
    if (!take("on")) continue;
    const size_t from = place_;
    int depth = 0;
    while (place_ < tokens_.size() &&
           !(depth == 0 && at_any({",", "inner", "cross", "join", "where", "group", "having", "order", "limit"}))) {
      if (tokens_[place_].text == "(") ++depth;
      if (tokens_[place_].text == ")") --depth;
      next();
    }
    size_t end = place_;
    size_t begin = from;
    if (end > begin + 1 && tokens_[begin].text == "(" && tokens_[end - 1].text == ")") {
      ++begin;
      --end;
    }
    on_.emplace_back(begin, end);
  }
}

bool Parser::items() {
  while (true) {
    AggregatePlan::Item item;
    const size_t from = place_;
    item.node = sum(false);
    if (item.node < 0) return false;
    const size_t to = place_;
    item.text = words(from, to);
    // SQLite names a column by the text up to the next word, comments included.
    item.title = to < tokens_.size() ? sql_.substr(tokens_[from].at, tokens_[to].at - tokens_[from].at) : "";
    while (!item.title.empty() && std::isspace(static_cast<unsigned char>(item.title.back())) != 0)
      item.title.pop_back();
    if (node(item.node).op == Op::kColumn) item.title = plan_->column(node(item.node)).name;
    item.named = take("as") || (!at(",") && !at("from"));
    if (item.named && !name(item.title)) return false;
    plan_->items.push_back(std::move(item));
    if (take(",")) continue;
    return at("from");
  }
}

// A number that stands for an item of the SELECT list.
bool Parser::ordinal(size_t& item) {
  if (place_ >= tokens_.size() || tokens_[place_].kind != TokenKind::kNumber) return false;
  const size_t after = place_ + 1;
  if (after < tokens_.size() && tokens_[after].kind == TokenKind::kSymbol && tokens_[after].text != ",") return false;
  const std::string_view text = tokens_[place_].text;
  size_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 1 || number > plan_->items.size())
    return false;
  item = number - 1;
  next();
  return true;
}

bool Parser::groups() {
  do {
    size_t item = plan_->items.size();
    int term = -1;
    std::string text;
    if (place_ < tokens_.size() && tokens_[place_].kind == TokenKind::kNumber) {
      if (!ordinal(item)) return false;
    } else {
      const size_t from = place_;
      term = sum(true);
      if (term >= 0) {
        // SQLite takes a number in brackets for an item's number too.
        if (node(term).op == Op::kInteger) return refuse("GROUP BY a number in brackets");
        text = words(from, place_);
      } else {
        place_ = from;
        std::string alias;
        if (!name(alias)) return false;
        for (size_t i = plan_->items.size(); i-- > 0;)
          if (plan_->items[i].named && same_word(plan_->items[i].title, alias)) item = i;
        if (item == plan_->items.size()) return false;
        refusal_.clear();
      }
    }
    if (term < 0) {
      term = plan_->items[item].node;
      text = plan_->items[item].text;
    }
    if (node(term).op != Op::kColumn && !whole_numbers(term)) return false;
    plan_->terms.push_back(term);
    term_texts_.push_back(std::move(text));
  } while (take(","));
  return true;
}

bool Parser::having() {
  do {
    AggregatePlan::Condition condition;
    condition.node = sum(false);
    if (condition.node < 0 || !comparison(condition.comparison) || !literal(condition.value) ||
        condition.value.type == ValueType::kText)
      return false;
    if (at_any({"+", "-", "*", "/", "%", "|", "&", "<", ">", "="})) return false;
    plan_->having.push_back(std::move(condition));
  } while (take("and"));
  return true;
}

bool Parser::order() {
  do {
    AggregatePlan::Order term{plan_->items.size(), false};
    const size_t from = place_;
    if (!ordinal(term.item)) {
      int brackets = 0;
      while (place_ < tokens_.size() && !(brackets == 0 && at_any({",", "asc", "desc", "limit", "nulls", "collate"}))) {
        if (tokens_[place_].text == "(") ++brackets;
        if (tokens_[place_].text == ")") --brackets;
        next();
      }
      // A name that AS gives takes precedence over a column of that name.
      const std::string text = words(from, place_);
      for (size_t i = plan_->items.size(); i-- > 0;)
        if (plan_->items[i].text == text) term.item = i;
      for (size_t i = plan_->items.size(); i-- > 0;)
        if (place_ == from + 1 && plan_->items[i].named && same_word(name_of(tokens_[from]), plan_->items[i].title))
          term.item = i;
      if (term.item == plan_->items.size())
        return refuse(fmt::format("ORDER BY {}, which is not in the list of SELECT", source_text(from, place_)));
    }
    if (take("desc"))
      term.descending = true;
    else
      take("asc");
    plan_->order.push_back(term);
  } while (take(","));
  return true;
}

bool Parser::limit() {
  if (place_ >= tokens_.size()) return false;
  const Token& token = tokens_[place_];
  next();
  const auto [stop, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), plan_->limit);
  return error == std::errc() && stop == token.text.data() + token.text.size();
}

// Columns outside aggregates must be grouped by; turns them into values of the group.
bool Parser::settle(int number, bool whole_item) {
  if (number < 0) return true;
  Node& here = plan_->nodes[static_cast<size_t>(number)];
  if (here.op == Op::kAggregate || here.op == Op::kTerm) return true;
  if (here.op != Op::kColumn) return settle(here.left, false) && settle(node(number).right, false);
  for (size_t i = 0; i < plan_->terms.size(); ++i) {
    const Node& term = node(plan_->terms[i]);
    if (term.op != Op::kColumn || term.source != here.source || term.column != here.column) continue;
    // Leaves arithmetic with texts to SQLite.
    if (!whole_item && plan_->column(here).type != ValueType::kInteger)
      return refuse(fmt::format("arithmetic with \"{}\", which holds no whole numbers", plan_->column(here).name));
    here = {.op = Op::kTerm, .left = static_cast<int>(i)};
    return true;
  }
  return refuse(fmt::format("\"{}\" stands outside aggregates and is not grouped by", plan_->column(here).name));
}

// Decides how to join: scans one table and finds each other table's rows by their id in a column of an earlier table.
// This must use up all equalities of columns.
bool Parser::join() {
  const size_t count = plan_->sources.size();
  if (equalities_.size() != count - 1) return refuse("the tables are not joined by one equality of columns each");
  for (size_t base = 0; base < count; ++base) {
    std::vector<size_t> order = {base};
    std::vector<std::pair<Place, Place>> left = equalities_;
    std::vector<Place> keys(count);
    while (order.size() < count) {
      bool found = false;
      for (size_t i = 0; i < left.size() && !found; ++i)
        for (const auto& [from, to] : {left[i], std::pair(left[i].second, left[i].first)}) {
          const bool known = std::find(order.begin(), order.end(), static_cast<size_t>(from.source)) != order.end();
          const bool fresh = std::find(order.begin(), order.end(), static_cast<size_t>(to.source)) == order.end();
          if (!known || !fresh || !(info(to).id || info(to).key) || info(from).type != ValueType::kInteger) continue;
          keys[static_cast<size_t>(to.source)] = from;
          order.push_back(static_cast<size_t>(to.source));
          left.erase(left.begin() + static_cast<ptrdiff_t>(i));
          found = true;
          break;
        }
      if (!found) break;
    }
    if (order.size() < count) continue;
    std::vector<int> place_of(count);
    for (size_t i = 0; i < count; ++i) place_of[order[i]] = static_cast<int>(i);
    std::vector<AggregatePlan::Source> sorted(count);
    for (size_t i = 0; i < count; ++i) {
      AggregatePlan::Source& source = sorted[static_cast<size_t>(place_of[i])];
      source = std::move(plan_->sources[i]);
      if (i == base) continue;
      source.from = place_of[static_cast<size_t>(keys[i].source)];
      source.from_column = keys[i].column;
    }
    plan_->sources = std::move(sorted);
    for (Node& one : plan_->nodes)
      if (one.op == Op::kColumn) one.source = place_of[static_cast<size_t>(one.source)];
    return true;
  }
  return refuse("the tables are not joined by the ids of all but one");
}

// SELECT, and the tables, which give the names in the list their meaning; notes where the list is.
bool Parser::to_tables(size_t& list) {
  while (!tokens_.empty() && tokens_.back().text == ";") tokens_ = tokens_.first(tokens_.size() - 1);
  if (!take("select")) return false;
  list = place_;
  int depth = 0;
  while (place_ < tokens_.size() && !(depth == 0 && at("from"))) {
    if (tokens_[place_].text == "(") ++depth;
    if (tokens_[place_].text == ")") --depth;
    if (at("select")) return refuse("a SELECT within another");
    ++place_;
  }
  return take("from") && sources();
}

bool Parser::understand() {
  size_t list = 0;
  if (!to_tables(list)) return false;
  const size_t behind = place_;
  for (const auto& [from, to] : on_) {
    place_ = furthest_ = from;
    if (!conditions() || place_ != to) return false;
  }
  place_ = furthest_ = list;
  if (!items()) return false;
  place_ = furthest_ = behind;
  if (take("where") && !conditions()) return false;
  if (take("group") && (!take("by") || !groups())) return false;
  if (take("having") && (plan_->terms.empty() || !having())) return false;
  if (take("order") && (!take("by") || !order())) return false;
  if (take("limit") && !limit()) return false;
  if (place_ != tokens_.size()) return false;
  if (plan_->aggregates.empty()) return refuse("no aggregate in the list of SELECT");

  for (AggregatePlan::Item& item : plan_->items) {
    int term = -1;
    for (size_t i = 0; i < plan_->terms.size(); ++i)
      if (plan_->terms[i] == item.node || term_texts_[i] == item.text) term = static_cast<int>(i);
    if (term >= 0)
      item.node = add({.op = Op::kTerm, .left = term});
    else if (!settle(item.node, true))
      return false;
  }
  for (const AggregatePlan::Condition& condition : plan_->having)
    if (!settle(condition.node, false)) return false;
  return join();
}

// Columns of the only table, one by one or all.
bool Parser::plain_items() {
  if (take("*")) {
    const Relation& table = *plan_->sources[0].relation;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].looked_up) return false;
      const int node = add({.op = Op::kColumn, .column = static_cast<int>(i)});
      plan_->items.push_back({.node = node, .title = table.columns[i].name, .text = {}});
    }
    return at("from");
  }
  if (!items()) return false;
  return std::ranges::all_of(plan_->items,
                             [&](const AggregatePlan::Item& item) { return node(item.node).op == Op::kColumn; });
}

bool Parser::understand_plain() {
  size_t list = 0;
  if (!to_tables(list) || plan_->sources.size() != 1) return false;
  const size_t behind = place_;
  place_ = list;
  if (!plain_items()) return false;
  place_ = behind;
  if (take("where") && !conditions()) return false;
  if (take("limit") && !limit()) return false;
  return place_ == tokens_.size() && equalities_.empty();
}

AggregateParse Parser::parse_plain() {
  if (understand_plain()) return {std::move(plan_), {}};
  return {nullptr, "not columns of one table alone"};
}

AggregateParse Parser::parse() {
  if (understand()) return {std::move(plan_), {}};
  if (!refusal_.empty()) return {nullptr, std::move(refusal_)};
  return {nullptr, furthest_ < tokens_.size() ? fmt::format("\"{}\" is beyond its grammar", tokens_[furthest_].text)
                                              : std::string("the statement ends too early")};
}

}  // namespace

AggregateParse parse_columns(const Statement& statement, const Module& module) {
  return Parser(statement, module).parse_plain();
}

AggregateParse parse_aggregate(const Statement& statement, const Module& module) {
  return Parser(statement, module).parse();
}

}  // namespace tacho::query
