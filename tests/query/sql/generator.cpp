// Random statements (generator.h).
#include "generator.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <cstring>

namespace tacho::query {

Generator::Generator(const Reference& reference, const std::vector<std::string>& tables, std::vector<JoinPair> joins,
                     uint64_t seed)
    : joins_(std::move(joins)), random_(seed) {
  for (const std::string& name : tables) {
    Table table{name, {}};
    const Answer columns = reference.ask("SELECT name, type FROM pragma_table_info('" + name + "')");
    for (const std::string& row : columns.rows) {
      const size_t bar = row.find(" | ");
      const std::string type = row.substr(bar + 3);
      Column column{row.substr(1, bar - 2), 't', false, {}};
      const std::string q = in_quotes(column.name);
      const std::string kinds = "SELECT group_concat(DISTINCT typeof(" + q + ")) FROM " + in_quotes(name);
      const Answer kind = reference.ask(kinds);
      const std::string has = kind.rows.empty() ? "" : kind.rows[0];
      if (has.find("real") != std::string::npos || type == "'REAL'")
        column.type = 'r';
      else if (has.find("integer") != std::string::npos || type.find("INT") != std::string::npos)
        column.type = 'i';
      column.samples = reference
                           .ask("SELECT DISTINCT " + q + " FROM " + in_quotes(name) + " WHERE " + q +
                                " IS NOT NULL AND abs(" + q + ") < 9e300 ORDER BY 1 LIMIT 40")
                           .rows;
      const Answer large =
          reference.ask("SELECT count(*) FROM " + in_quotes(name) + " WHERE " + q + " NOT BETWEEN -1e13 AND 1e13");
      column.exact = column.type != 't' && !large.rows.empty() && large.rows[0] == "0";
      table.columns.push_back(std::move(column));
    }
    tables_.push_back(std::move(table));
  }
}

Generator::From Generator::single(bool alias) {
  const Table& table = pick(tables_);
  From from{in_quotes(table.name), {}};
  const bool named = alias && chance(30);
  if (named) from.text += one_of({" AS t", " t"});
  for (const Column& column : table.columns) {
    std::string text = in_quotes(column.name);
    if (named && chance(50)) text = "t." + text;
    from.places.push_back({&column, std::move(text)});
  }
  return from;
}

// One table, or several that are joined by ids; not simple: by anything, and outer joins.
Generator::From Generator::from(bool simple) {
  if (joins_.empty() || chance(65)) return single(true);
  const JoinPair first = pick(joins_);
  std::vector<std::pair<std::string, std::string>> used = {{first.left, "A"}, {first.right, "B"}};
  const auto on = [](const std::string& a, const std::string& x, const std::string& b, const std::string& y) {
    return a + "." + in_quotes(x) + " = " + b + "." + in_quotes(y);
  };
  From result;
  std::string later;
  const std::string condition = chance(50) ? on("A", first.left_column, "B", first.right_column)
                                           : on("B", first.right_column, "A", first.left_column);
  const std::string a = in_quotes(first.left) + " A", b = in_quotes(first.right) + one_of({" B", " AS B"});
  if (!simple && chance(30)) {
    result.text = a + " LEFT JOIN " + b + " ON " + condition;
  } else if (chance(70)) {
    result.text = (chance(50) ? a + one_of({" JOIN ", " INNER JOIN "}) + b : b + " JOIN " + a) + " ON " +
                  (chance(20) ? "(" + condition + ")" : condition);
  } else {
    result.text = a + ", " + b;
    later = condition;
  }
  if (chance(30))
    for (const JoinPair& second : joins_)
      if (second.left == first.left && second.left_column != first.left_column && second.right != first.right) {
        result.text +=
            " JOIN " + in_quotes(second.right) + " C ON " + on("C", second.right_column, "A", second.left_column);
        used.emplace_back(second.right, "C");
        break;
      }
  if (!later.empty()) result.text += " WHERE " + later;  // where() goes on with AND
  for (const auto& [name, alias] : used)
    for (const Table& table : tables_)
      if (table.name == name)
        for (const Column& column : table.columns)
          result.places.push_back({&column, alias + "." + in_quotes(column.name)});
  return result;
}

const Generator::Place* Generator::place(const From& from, const char* types) {
  for (int i = 0; i < 12; ++i) {
    const Place& one = pick(from.places);
    if (std::strchr(types, one.column->type) != nullptr) return &one;
  }
  return nullptr;
}

std::string Generator::literal(const Column& column, bool odd) {
  if (!column.samples.empty() && chance(70)) return pick(column.samples);
  if (odd && chance(25))
    return one_of({"NULL", "'5'", "5", "'abc'", "2.5", "''", "x'61'", "-9223372036854775808", "1e40", "'1e3'"});
  if (column.type == 't') return one_of({"''", "'a'", "'zzz'", "'no such text'", "'it''s'"});
  if (column.type == 'r' || chance(10)) return one_of({"0.0", "0.5", "-1.5", "1e3", "2.25"});
  return one_of({"0", "1", "-1", "5", "1000", "9007199254740993", "-9223372036854775807", "9223372036854775807"});
}

std::string Generator::simple_condition(const From& from) {
  const Place& one = pick(from.places);
  const Column& column = *one.column;
  if (column.type == 't' && chance(30)) {
    std::string text = column.samples.empty() ? "'a'" : pick(column.samples);
    if (text.size() > 3 && chance(70))
      text = chance(50) ? "'%" + text.substr(text.size() / 2) : text.substr(0, text.size() / 2) + "_%'";
    if (text.find("''") != std::string::npos || text.find('\'', 1) + 1 != text.size()) text = "'%a%'";
    return one.text + one_of({" LIKE ", " GLOB "}) + text;
  }
  if (chance(20)) return one.text + " BETWEEN " + literal(column, false) + " AND " + literal(column, false);
  return one.text + one_of({" = ", " < ", " <= ", " > ", " >= ", " <> ", " != ", " == "}) + literal(column, false);
}

std::string Generator::condition(const From& from, int depth) {
  const Place& one = pick(from.places);
  switch (below(depth > 0 ? 12 : 8)) {
    case 0:
      return one.text + one_of({" IS NULL", " IS NOT NULL", " NOTNULL"});
    case 1:
      return one.text + one_of({" IN (", " NOT IN ("}) + literal(*one.column, true) + ", " +
             literal(*one.column, true) + ")";
    case 2:
      return one.text + one_of({" = ", " < ", " >= ", " IS ", " IS NOT ", " <> "}) + literal(*one.column, true);
    case 3:
      return one.text + one_of({" = ", " < ", " >= "}) + pick(from.places).text;
    case 4:
      return scalar(from, 1) + one_of({" = ", " > ", " <= "}) + scalar(from, 1);
    case 5: {
      const From other = single(false);
      return one.text + " IN (SELECT " + pick(other.places).text + " FROM " + other.text + ")";
    }
    case 6:
      return one.text + " LIKE " + one_of({"'%a%'", "'_%'", "''", "'A'", "NULL", "'%1%' ESCAPE '\\'"});
    case 7:
      return simple_condition(from);
    case 8:
      return "NOT (" + condition(from, depth - 1) + ")";
    case 9:
    case 10:
      return "(" + condition(from, depth - 1) + " OR " + condition(from, depth - 1) + ")";
    default:
      return condition(from, depth - 1) + " AND " + condition(from, depth - 1);
  }
}

std::string Generator::where(const From& from, bool simple) {
  std::string text;
  for (uint64_t i = chance(45) ? 0 : 1 + below(2); i > 0; --i)
    text += (text.empty() ? "" : " AND ") + (simple ? simple_condition(from) : "(" + condition(from, 2) + ")");
  if (text.empty()) return {};
  return (from.text.find(" WHERE ") != std::string::npos ? " AND " : " WHERE ") + text;
}

// Of whole numbers alone.
std::string Generator::whole(const From& from, int depth) {
  const Place* const one = place(from, "i");
  if (depth == 0 || chance(35)) return one != nullptr && chance(85) ? one->text : one_of({"1", "2", "7", "1000"});
  switch (below(7)) {
    case 0:
      return "(" + whole(from, depth - 1) + ")";
    case 1:
      return "-" + whole(from, 0);
    case 2:
      return whole(from, depth - 1) + " + " + whole(from, depth - 1);
    case 3:
      return whole(from, depth - 1) + " - " + whole(from, depth - 1);
    case 4:
      return whole(from, 0) + " * " + whole(from, 0);
    case 5:
      return whole(from, 0) + " / " + whole(from, 0);
    default:
      return whole(from, 0) + " % " + whole(from, 0);
  }
}

std::string Generator::scalar(const From& from, int depth) {
  const Place& one = pick(from.places);
  switch (below(depth > 0 ? 9 : 3)) {
    case 0:
    case 1:
      return one.text;
    case 2:
      return literal(*one.column, true);
    case 3:
      return "coalesce(" + one.text + ", " + literal(*one.column, true) + ")";
    case 4:
      return "CASE WHEN " + simple_condition(from) + " THEN " + scalar(from, depth - 1) + " ELSE " +
             scalar(from, depth - 1) + " END";
    case 5:
      return "length(" + one.text + ")";
    case 6:
      return one.text + " || " + literal(*one.column, true);
    case 7:
      return "typeof(" + one.text + ")";
    default:
      return whole(from, 1);
  }
}

std::string Generator::aggregate(const From& from, bool simple) {
  if (chance(30)) return one_of({"count(*)", "COUNT(*)", "count( * )"});
  if (!simple && chance(40)) {
    const Place& one = pick(from.places);
    switch (below(5)) {
      case 0:
        return "count(DISTINCT " + one.text + ")";
      case 1:
        return std::string(one_of({"min(", "max("})) + one.text + ")";
      case 2:
        return "count(*) FILTER (WHERE " + simple_condition(from) + ")";
      case 3:
        return "max(" + scalar(from, 1) + ")";
      default:
        return "sum(CASE WHEN " + simple_condition(from) + " THEN 1 END)";
    }
  }
  switch (below(5)) {
    case 0:
      return "count(" + pick(from.places).text + ")";
    case 1:
      for (int i = 0; i < 8; ++i)
        if (const Place* const one = place(from, simple ? "i" : "ir"); one != nullptr && one->column->exact)
          return std::string(one_of({"avg(", "total(", "sum("})) + one->text + ")";
      return "count(*)";
    case 2:
      return "sum(" + whole(from, 2) + ")";
    default:
      return std::string(one_of({"min(", "max(", "MAX("})) + whole(from, 2) + ")";
  }
}

std::string Generator::order(size_t items, bool& ordered, bool& limited) {
  std::string text;
  if (chance(60)) {
    // All items, beginning anywhere.
    const size_t first = below(items);
    const bool all = chance(75);
    for (size_t i = 0; i < (all ? items : 1); ++i)
      text += (i == 0 ? " ORDER BY " : ", ") + std::to_string((first + i) % items + 1) + one_of({"", " DESC", " ASC"});
    ordered = all || items == 1;
  }
  limited = ordered && chance(50);
  if (limited) text += " LIMIT " + std::to_string(below(8));
  return text;
}

Generated Generator::sums(bool simple) {
  const From source = from(simple);
  std::vector<std::string> items, terms;
  std::string group;
  for (uint64_t i = below(3); i > 0; --i) {
    std::string term = chance(65) ? pick(source.places).text : whole(source, 1);
    if (term.find_first_not_of("0123456789 ") == std::string::npos) term = source.places[0].text;
    std::string named = term;
    if (chance(20)) {
      // By its number or its name. A name that a column has, too, means the column in GROUP BY and the item in ORDER
      // BY.
      const bool shadow = chance(40);
      const std::string name = shadow ? in_quotes(pick(source.places).column->name) : "k" + std::to_string(i);
      items.push_back(term + " AS " + name);
      named = shadow ? std::to_string(items.size()) : chance(50) ? name : std::to_string(items.size());
    } else if (chance(80)) {
      items.push_back(term);
    }
    group += (group.empty() ? " GROUP BY " : ", ") + named;
    terms.push_back(term);
  }
  for (uint64_t i = 1 + below(3); i > 0; --i) {
    std::string item = aggregate(source, simple);
    if (chance(20)) item = chance(50) ? "-" + item : item + one_of({" * 2", " / 3", " + 1", " * 0.5", " - 1.5"});
    if (chance(10)) item += " / " + aggregate(source, simple);
    if (chance(20)) item += std::string(one_of({" AS ", " "})) + "n" + std::to_string(i);
    items.push_back(std::move(item));
  }
  Generated result;
  for (const std::string& item : items) result.sql += (result.sql.empty() ? "SELECT " : ", ") + item;
  if (!simple && chance(15)) result.sql.insert(6, " DISTINCT");
  result.sql += " FROM " + source.text + where(source, simple) + group;
  if (!group.empty() && chance(30))
    result.sql += " HAVING " + aggregate(source, simple) + one_of({" > ", " <= ", " = ", " <> "}) +
                  one_of({"0", "1", "2", "-1.5", "1000", "3.0"});
  bool limited = false;
  result.sql += order(items.size(), result.ordered, limited);
  if (limited && !simple && chance(30)) result.sql += " OFFSET " + std::to_string(below(4));
  if (chance(10)) result.sql += ";";
  return result;
}

Generated Generator::rows() {
  const From source = from(false);
  size_t items = 1 + below(3);
  Generated result{chance(30) ? "SELECT DISTINCT " : "SELECT ", false};
  for (size_t i = 0; i < items; ++i)
    result.sql += (i > 0 ? ", " : "") + (chance(70) ? pick(source.places).text : scalar(source, 2));
  result.sql += " FROM " + source.text + where(source, chance(50));
  bool limited = false;
  result.sql += order(items, result.ordered, limited);
  if (limited && chance(40)) result.sql += " OFFSET " + std::to_string(below(5));
  return result;
}

Generated Generator::nested() {
  Generated result;
  const From source = single(false);
  const std::string x = pick(source.places).text, y = pick(source.places).text;
  const std::string inner = "SELECT " + x + " AS x, " + y + " AS y FROM " + source.text + where(source, chance(50));
  const From other = single(false);
  const std::string second =
      "SELECT " + pick(other.places).text + ", " + pick(other.places).text + " FROM " + other.text;
  switch (below(7)) {
    case 0:
      result.sql = "SELECT x, count(*), count(DISTINCT y) FROM (" + inner + ") GROUP BY x";
      break;
    case 1:
      result.sql = "WITH t(a, b) AS (" + inner + ") SELECT a, max(b) FROM t GROUP BY 1 ORDER BY 1, 2";
      result.ordered = true;
      break;
    case 2:
      result.sql = inner + one_of({" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "}) + second;
      break;
    case 3:
      result.sql = "SELECT x, (SELECT count(*) FROM " + other.text + " WHERE " + pick(other.places).text +
                   " = x) FROM (" + inner + ")";
      break;
    case 4:
      result.sql = "SELECT count(*) FROM (" + inner + " ORDER BY 1, 2 LIMIT 5)";
      break;
    case 5:
      result.sql = "SELECT a.x, b.y FROM (" + inner + ") a JOIN (" + inner + ") b ON a.x = b.x";
      break;
    default:
      result.sql = "SELECT x, y, row_number() OVER (ORDER BY x, y), sum(1) OVER (PARTITION BY x) FROM (" + inner +
                   ") ORDER BY 1, 2, 3, 4";
      result.ordered = true;
  }
  return result;
}

Generated Generator::next() {
  switch (count_++ % 6) {
    case 0:
    case 1:
    case 2:
      return sums(true);
    case 3:
      return sums(false);
    case 4:
      return rows();
    default:
      return nested();
  }
}

}  // namespace tacho::query
