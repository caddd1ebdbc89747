// Distributions per name of two traces, compared (diff.h).
#include "analysis/diff.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/host/host_kind.h"
#include "analysis/names.h"
#include "analysis/operators/common_parents.h"
#include "analysis/operators/operator_values.h"
#include "analysis/operators/operators.h"
#include "analysis/sums/sums.h"
#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/how_many.h"
#include "trace/read/rows.h"
#include "walk/merge.h"
#include "walk/names/names.h"
#include "walk/names/program_ranges.h"

namespace tacho::analysis {

using report::Answer;
using report::Unit;

using event::Domain;
using event::kUnknown;
using event::Table;
namespace column = event::column;
using F = column::Fact;
using M = column::Marker;
using A = column::Api;

namespace {

struct Value {
  int64_t name, duration;
  bool operator<(const Value& other) const {
    return name != other.name ? name < other.name : duration < other.duration;
  }
};
using Values = SortedFile<Value>;

// What emit_nvtx and its kin write into markers: "aten::add, seq = 12, op_id = 3": the operator alone.
std::string operator_of_marker(std::string_view text) {
  const size_t comma = text.find(", ");
  return std::string(text.substr(0, comma));
}

// The rows of a table whose durations are compared, and their names.
struct Side {
  const trace::Trace* trace = nullptr;
  DiffBy by{};
  bool operators = false;  // kOperator: there are framework operators; else markers stand for them
  int64_t rows = 0;        // kOperator: the last one is "(no operator)"
  // Operators and markers with the shapes of their inputs (a row of operator_input), rows of their own behind those of
  // the table; empty where shapes are not asked for.
  std::map<std::pair<int64_t, int64_t>, int64_t> shaped = {};
  std::vector<std::pair<int64_t, int64_t>> of_shaped = {};
  int64_t table = 0;  // rows of the table

  int64_t row_of(int64_t dim, int64_t inputs) const {
    const auto found = inputs == 0 ? shaped.end() : shaped.find({dim, inputs});
    return found == shaped.end() ? dim : found->second;
  }

  std::string name(int64_t row) const {
    switch (by) {
      case DiffBy::kKernel:
        return demangle(trace->text(Table::kKernel, row, column::Kernel::name));
      case DiffBy::kApi:
        return std::string(trace->text(Table::kFunction, row, column::Function::name));
      case DiffBy::kMarker:
        return std::string(trace->text(Table::kLabel, row, column::Label::name));
      case DiffBy::kCopy:
        return std::string(event::to_string(
            static_cast<event::CopyDirection>(trace->cell(Table::kCopyShape, row, column::CopyShape::direction))));
      case DiffBy::kOperator:
        break;
    }
    if (row == rows - 1) return "(no operator)";
    const auto& [dim, inputs] =
        row < table ? std::pair<int64_t, int64_t>(row, 0) : of_shaped[static_cast<size_t>(row - table)];
    std::string name = operators ? std::string(trace->text(Table::kFunction, dim, column::Function::name))
                                 : operator_of_marker(trace->text(Table::kLabel, dim, column::Label::name));
    if (inputs != 0)
      name += fmt::format(" {}", trace->text(Table::kOperatorInput, inputs, column::OperatorInput::dims));
    return name;
  }
};

bool is_domain(const trace::Trace& trace, int64_t function, Domain domain) {
  return function > 0 && function < trace.rows(Table::kFunction) &&
         trace::cell<column::Function::domain>(trace, function) == domain;
}

Table facts_of(DiffBy by) {
  return by == DiffBy::kKernel   ? Table::kDispatch
         : by == DiffBy::kApi    ? Table::kApi
         : by == DiffBy::kMarker ? Table::kMarker
                                 : Table::kCopy;
}

// Finds the operators with other shapes of inputs.
Status find_shapes(Side& side) {
  constexpr size_t kMost = 100'000;
  const auto take = [&](int64_t dim, int64_t inputs) {
    if (inputs == 0 || dim <= 0 || dim >= side.table || side.shaped.size() >= kMost) return;
    // Some profilers know types or values alone.
    if (trace::cell<column::OperatorInput::dims>(*side.trace, inputs) == 0) return;
    const auto [at, fresh] =
        side.shaped.try_emplace({dim, inputs}, side.table + static_cast<int64_t>(side.shaped.size()));
    if (fresh) side.of_shaped.push_back(at->first);
  };
  Status status;
  if (side.operators)
    for (const auto& calls : trace::chunks<A::dim, A::inputs>(*side.trace, status))
      for (size_t i = 0; i < calls.size(); ++i) take(calls.dim[i], calls.inputs[i]);
  else
    for (const auto& markers : trace::chunks<M::dim, M::inputs>(*side.trace, status))
      for (size_t i = 0; i < markers.size(); ++i) take(markers.dim[i], markers.inputs[i]);
  side.rows = side.table + static_cast<int64_t>(side.of_shaped.size()) + 1;
  return status;
}

Result<Side> make_side(const trace::Trace& trace, DiffBy by, bool input_shapes) {
  if (trace.aggregated())
    return fail("{}: recorded with --aggregate: it holds no single durations to compare", trace.path());
  if (holds_sums(trace)) return fail("{}", sums_sentence(trace.path()));
  Side side{.trace = &trace, .by = by};
  if (by != DiffBy::kOperator) {
    side.rows = std::max<int64_t>(trace.rows(walk::dimension_of(facts_of(by))), 1);
    return side;
  }
  for (int64_t row = 1; row < trace.rows(Table::kFunction) && !side.operators; ++row)
    side.operators = is_domain(trace, row, Domain::kOperator);
  if (!side.operators && trace.rows(Table::kMarker) == 0)
    return fail("{}: it holds neither framework operators (aten::...) nor markers to compare by", trace.path());
  side.table = std::max<int64_t>(trace.rows(side.operators ? Table::kFunction : Table::kLabel), 1);
  side.rows = side.table + 1;
  if (!input_shapes) return side;
  if (shapes_were_sampled(trace))
    return fail("{}: it has shapes of inputs in parts of the run only, which cannot be compared with another run's; "
                "record both with --torch-shapes=all, or compare without --input-shapes",
                trace.path());
  TACHO_TRY(find_shapes(side));
  if (side.shaped.empty())
    return fail(
        "{}: no shapes of inputs; torch.profiler records them with record_shapes=True, tacho with --torch-shapes",
        trace.path());
  return side;
}

// A row of a side's table -> the number of its name in both.
using Number = std::function<int64_t(int64_t)>;

// The time that ranges of the host took on each track, what lies inside of another not twice. They come in ascending
// order of start.
class Covered {
 public:
  void add(int64_t track, int64_t start, int64_t duration) {
    int64_t& until = until_.try_emplace(track, start).first->second;
    const int64_t end = saturating_add(start, duration);
    if (end <= until) return;
    add_saturating(total_, end - std::max(start, until));
    until = end;
  }
  int64_t total() const { return total_; }

 private:
  std::unordered_map<int64_t, int64_t> until_;  // by track
  int64_t total_ = 0;
};

// What a side's durations add up to, and the rows that were not compared.
struct Whole {
  int64_t total = 0, left_out = 0;
};

Result<Whole> device_values(const Side& side, const Number& number, Values& values) {
  Whole whole;
  Status status;
  for (const auto& facts : trace::chunks<F::dim, F::duration>(*side.trace, facts_of(side.by), status))
    for (size_t i = 0; i < facts.size(); ++i)
      if (facts.duration[i] != kUnknown && facts.dim[i] >= 0 && facts.dim[i] < side.rows) {
        values.add({number(facts.dim[i]), facts.duration[i]});
        add_saturating(whole.total, facts.duration[i]);
      }
  TACHO_TRY(status);
  return whole;
}

// Calls without those of functions that call each other, or the program's own markers: what `tacho stats` shows of
// both.
template <typename Rows>
Result<Whole> host_values(const Side& side, const Number& number, Values& values) {
  const trace::Trace& trace = *side.trace;
  std::optional<walk::ProgramRanges> ranges;
  if (side.by == DiffBy::kMarker) {
    TACHO_ASSIGN(ranges, walk::ProgramRanges::make(trace));
  }
  const auto wanted = [&](int64_t track, int64_t dim) {
    return ranges ? ranges->has(track, dim)
                  : !functions_nest(event::from_cell(trace::cell<column::Function::domain>(trace, dim)));
  };
  Whole whole;
  Covered covered;
  walk::Merge<Rows> host(trace);
  const auto read = [&](const auto& row) {
    if (row.duration == kUnknown || row.dim < 0 || row.dim >= side.rows) return;
    if (!wanted(row.track, row.dim)) {
      ++whole.left_out;
      return;
    }
    values.add({number(row.dim), row.duration});
    covered.add(row.track, row.start, row.duration);
  };
  while (host.more()) host.take(read);
  TACHO_TRY(host.status());
  whole.total = covered.total();
  return whole;
}

Result<Whole> values_of(const Side& side, const Number& number, Values& values) {
  switch (side.by) {
    case DiffBy::kApi:
      return host_values<trace::RowCursor<A::track, A::start, A::duration, A::dim>>(side, number, values);
    case DiffBy::kMarker:
      return host_values<trace::RowCursor<M::track, M::start, M::duration, M::dim>>(side, number, values);
    case DiffBy::kOperator:  // operator_values()
    case DiffBy::kKernel:
    case DiffBy::kCopy:
      break;
  }
  return device_values(side, number, values);
}

// "aten::mm and aten::add_".
std::string listed(const std::vector<int64_t>& names, const std::function<std::string(int64_t)>& name_of) {
  if (names.empty()) return "nothing";
  constexpr size_t kMost = 4;
  std::vector<std::string> texts;
  for (const int64_t name : names) texts.push_back(name_of(name));
  std::sort(texts.begin(), texts.end());
  std::string out;
  const size_t shown = texts.size() > kMost ? kMost - 1 : texts.size();
  for (size_t i = 0; i < shown; ++i)
    out += (i == 0 ? "" : i + 1 < texts.size() ? ", " : " and ") + report::clean(texts[i]);
  if (shown < texts.size()) out += fmt::format(" and {} more", texts.size() - shown);
  return out;
}

// What rows stand for more than one operator, in sentences.
void say_together(const CommonParents& parents, const std::function<std::string(int64_t)>& name_of,
                  std::vector<std::string>& remarks) {
  constexpr size_t kMost = 10;
  const size_t all = parents.stands().size() + parents.kinds().size();
  size_t said = 0;
  for (const auto* const list : {&parents.stands(), &parents.kinds()})
    for (const CommonParents::Together& each : *list)
      if (said < kMost) {
        ++said;
        remarks.push_back(fmt::format("{} stands for {} in A, for {} in B", report::clean(name_of(each.name)),
                                      listed(each.of[0], name_of), listed(each.of[1], name_of)));
      }
  if (said < all)
    remarks.push_back(
        how_many(all - said, "more row stands for several operators", "more rows stand for several operators each"));
  if (parents.too_many())
    remarks.push_back("operators call each other in too many ways: those of one trace only have no row in common with "
                      "the other's");
}

// Device time by operator, of both sides. `parents` decides what is one row.
Status operator_values(const Side (&sides)[2], const SameNames& names, Values (&values)[2], Whole (&wholes)[2],
                       CommonParents& parents) {
  const auto source = [&](int which) {
    const Side& side = sides[which];
    const int64_t before = which == 0 ? 0 : sides[0].rows;
    return OperatorSource{
        .trace = side.trace,
        .operators = side.operators,
        .rows = side.table,
        .name = [&names, &side, before](int64_t dim,
                                        int64_t inputs) { return names.first(before + side.row_of(dim, inputs)); },
        .none = names.first(before + side.rows - 1)};
  };
  const auto side_of = [&](int64_t name) { return name < sides[0].rows ? 0 : 1; };
  const auto local = [&](int64_t name) { return name < sides[0].rows ? name : name - sides[0].rows; };
  const bool shaped = !sides[0].of_shaped.empty();
  // The operator itself and the row of its inputs; 0 = without shapes.
  const auto parts_of = [&](int64_t name) {
    const Side& side = sides[side_of(name)];
    const int64_t row = local(name);
    return row < side.table ? std::pair<int64_t, int64_t>(row, 0)
                            : side.of_shaped[static_cast<size_t>(row - side.table)];
  };
  const auto plain_name = [&](int64_t name) { return sides[side_of(name)].name(parts_of(name).first); };
  OperatorValues found[2] = {OperatorValues(source(0), 0), OperatorValues(source(1), 1)};
  for (OperatorValues& each : found) TACHO_TRY(each.read(parents));
  parents.resolve(
      [&](int64_t name) { return (!shaped || parts_of(name).second != 0) && is_operator_name(plain_name(name)); });
  parents.join_kinds(
      [&](int64_t name) {
        const int64_t inputs = parts_of(name).second;
        if (!shaped) return product_kind(plain_name(name));
        if (inputs == 0) return std::string();
        return product_kind(plain_name(name), sides[side_of(name)].trace->text(Table::kOperatorInput, inputs,
                                                                               column::OperatorInput::dims));
      },
      sides[0].rows + sides[1].rows);
  for (int which = 0; which < 2; ++which) {
    TACHO_TRY(found[which].take(parents, [&, which](int64_t name, int64_t duration) {
      values[which].add({name, duration});
    }));
    wholes[which].total = found[which].total();
  }
  return {};
}

Status read_values(const Side (&sides)[2], const SameNames& names, Values (&values)[2], Whole (&wholes)[2],
                   CommonParents& parents) {
  if (sides[0].by == DiffBy::kOperator) TACHO_TRY(operator_values(sides, names, values, wholes, parents));
  for (int which = 0; which < 2; ++which) {
    const int64_t before = which == 0 ? 0 : sides[0].rows;
    const Number number = [&names, before](int64_t row) { return names.first(before + row); };
    if (sides[0].by != DiffBy::kOperator) {
      TACHO_ASSIGN(wholes[which], values_of(sides[which], number, values[which]));
    }
    TACHO_TRY(values[which].finish_indexed());
  }
  return {};
}

// What is not compared of both sides; "" if nothing.
std::string left_out_sentence(DiffBy by, int64_t a, int64_t b) {
  if (a == 0 && b == 0) return {};
  if (by == DiffBy::kMarker)
    return fmt::format("left out of the comparison: {} of A and {} of B, the profiler's own and ranges of GPUs "
                       "that repeat the host's",
                       how_many(a, "entry", "entries"), b);
  return fmt::format("left out of the comparison: {} in A and {} in B of operators and functions that call each "
                     "other; --by operator compares operators",
                     how_many(a, "call", "calls"), b);
}

// What is worked out about one name from its durations as they come in ascending order; how many there will be is
// known.
class Describer {
 public:
  explicit Describer(int64_t count) {
    result_.calls = count;
    p95_ = static_cast<int64_t>(std::ceil(0.95 * static_cast<double>(count)));
  }
  void add(int64_t duration, int64_t times) {
    const int64_t before = seen_;
    seen_ += times;
    add_saturating(result_.total, saturating_multiply(duration, times));
    const int64_t middle = (result_.calls + 1) / 2;
    if (before < middle && middle <= seen_) result_.median = duration;
    if (before < p95_ && p95_ <= seen_) result_.p95 = duration;
  }
  Distribution finish() {
    if (result_.calls > 0) result_.mean = static_cast<double>(result_.total) / static_cast<double>(result_.calls);
    return result_;
  }

 private:
  Distribution result_;
  int64_t p95_ = 0, seen_ = 0;
};

// Mann and Whitney 1947, with the variance corrected for ties and for continuity; fed with the number of calls on each
// side that share a duration, durations ascending.
class RankTest {
 public:
  RankTest(int64_t in_a, int64_t in_b) : n1_(static_cast<double>(in_a)), n2_(static_cast<double>(in_b)) {}
  void add(int64_t in_a, int64_t in_b) {
    const auto together = static_cast<double>(in_a + in_b);
    rank_sum_ += static_cast<double>(in_a) * (before_ + (together + 1) / 2);
    ties_ += together * together * together - together;
    before_ += together;
  }
  double p() const {
    constexpr double kFew = 8;
    if (n1_ < kFew || n2_ < kFew) return std::nan("");
    const double n = n1_ + n2_, u = rank_sum_ - n1_ * (n1_ + 1) / 2;
    const double variance = n1_ * n2_ / 12 * ((n + 1) - ties_ / (n * (n - 1)));
    if (variance <= 0) return 1;
    const double z = std::max(0.0, std::fabs(u - n1_ * n2_ / 2) - 0.5) / std::sqrt(variance);
    return std::erfc(z / std::sqrt(2.0));
  }

 private:
  double n1_, n2_, rank_sum_ = 0, ties_ = 0, before_ = 0;
};

}  // namespace

Result<DiffBy> parse_diff_by(std::string_view text) {
  static constexpr std::pair<std::string_view, DiffBy> kNames[] = {{"kernel", DiffBy::kKernel},
                                                                   {"api", DiffBy::kApi},
                                                                   {"marker", DiffBy::kMarker},
                                                                   {"copy", DiffBy::kCopy},
                                                                   {"operator", DiffBy::kOperator}};
  for (const auto& [name, by] : kNames)
    if (name == text) return by;
  return fail("--by {}: choose kernel, api, marker, copy or operator", text);
}

Result<Diff> diff(const trace::Trace& a, const trace::Trace& b, DiffBy by, bool input_shapes) {
  Side sides[2];
  TACHO_ASSIGN(sides[0], make_side(a, by, input_shapes));
  TACHO_ASSIGN(sides[1], make_side(b, by, input_shapes));
  // Rows of both tables, one after the other.
  const auto parents = std::make_shared<CommonParents>();
  const auto name_of = [sides, parents](int64_t row) {
    const int64_t in_b = row - sides[0].rows, kind = in_b - sides[1].rows;
    return in_b < 0   ? sides[0].name(row)
           : kind < 0 ? sides[1].name(in_b)
                      : parents->kind_texts()[static_cast<size_t>(kind)];
  };
  TACHO_ASSIGN(const SameNames names, SameNames::make(sides[0].rows + sides[1].rows, name_of));
  Values values[2] = {Values(8u << 20), Values(8u << 20)};
  Whole wholes[2];
  Diff result;
  TACHO_TRY(read_values(sides, names, values, wholes, *parents));
  if (by == DiffBy::kOperator) say_together(*parents, name_of, result.remarks);
  result.total_a = wholes[0].total;
  result.total_b = wholes[1].total;
  if (std::string sentence = left_out_sentence(by, wholes[0].left_out, wholes[1].left_out); !sentence.empty())
    result.remarks.push_back(std::move(sentence));
  if (by == DiffBy::kOperator && sides[0].operators != sides[1].operators) {
    const auto source = [&](int which) { return sides[which].operators ? "operators" : "markers"; };
    result.remarks.push_back(fmt::format("{} is compared by {}, {} by {}: names will hardly match", a.path(), source(0),
                                         b.path(), source(1)));
  }

  struct Row {
    int64_t name, difference;
    Distribution side[2];
    double p;
  };
  struct Before {
    std::function<std::string(int64_t)> name_of;
    bool by_name;
    bool operator()(const Row& x, const Row& y) const {
      const int64_t left = std::llabs(x.difference), right = std::llabs(y.difference);
      if (left != right) return left > right;
      return by_name ? name_of(x.name) < name_of(y.name) : x.name < y.name;
    }
  };
  using Rows = SortedFile<Row, Before>;
  const auto rows = std::make_shared<Rows>(8u << 20, Before{name_of, names.names() <= kSortedByName});
  std::span<const Value> rest[2] = {values[0].all(), values[1].all()};
  while (!rest[0].empty() || !rest[1].empty()) {
    const int64_t name =
        rest[1].empty() || (!rest[0].empty() && rest[0][0].name <= rest[1][0].name) ? rest[0][0].name : rest[1][0].name;
    std::span<const Value> own[2];
    for (int which = 0; which < 2; ++which) {
      size_t count = 0;
      while (count < rest[which].size() && rest[which][count].name == name) ++count;
      own[which] = rest[which].first(count);
      rest[which] = rest[which].subspan(count);
    }
    const auto calls = [&](int which) { return static_cast<int64_t>(own[which].size()); };
    Describer describe[2] = {Describer(calls(0)), Describer(calls(1))};
    RankTest test(calls(0), calls(1));
    while (!own[0].empty() || !own[1].empty()) {
      const int64_t duration = own[1].empty() || (!own[0].empty() && own[0][0].duration <= own[1][0].duration)
                                   ? own[0][0].duration
                                   : own[1][0].duration;
      int64_t times[2] = {0, 0};
      for (int which = 0; which < 2; ++which) {
        while (!own[which].empty() && own[which][0].duration == duration) {
          ++times[which];
          own[which] = own[which].subspan(1);
        }
        if (times[which] > 0) describe[which].add(duration, times[which]);
      }
      test.add(times[0], times[1]);
    }
    Row row{name, 0, {describe[0].finish(), describe[1].finish()}, test.p()};
    row.difference = row.side[1].total - row.side[0].total;
    rows->add(row);
    ++result.rows;
  }
  TACHO_TRY(rows->finish());
  result.next = [rows, name_of](DiffRow& to) {
    Row row;
    if (!rows->next(row)) return false;
    to = {name_of(row.name),
          row.side[0].calls > 0,
          row.side[1].calls > 0,
          row.side[0],
          row.side[1],
          row.difference,
          row.p};
    return true;
  };
  return result;
}

namespace {

std::string as_time(int64_t ns) {
  return report::format_duration(std::fabs(static_cast<double>(ns)));
}

// "; the durations differ by more than noise (p < 0.001)".
std::string noise_words(const DiffRow& row, size_t compared) {
  if (std::isnan(row.p)) return "; too few calls to tell it from noise (fewer than 8)";
  constexpr double kLevel = 0.05, kSmall = 0.001;
  const std::string p = row.p < kSmall ? fmt::format("p < {}", kSmall) : fmt::format("p = {:.3f}", row.p);
  return fmt::format("; the durations {} by more than noise ({})",
                     row.p * static_cast<double>(compared) < kLevel ? "differ" : "do not differ", p);
}

}  // namespace

std::string diff_sentence(const Diff& diff, const DiffRow& largest) {
  if (diff.rows == 0) return {};
  const int64_t change = diff.total_b - diff.total_a;
  std::string out = "A and B take the same time.";
  if (change != 0) {
    out = fmt::format("B takes {} {} than A", as_time(change), change > 0 ? "more" : "less");
    if (diff.total_a > 0)
      out +=
          fmt::format(" ({:.1f} %)", 100 * std::fabs(static_cast<double>(change)) / static_cast<double>(diff.total_a));
    out += '.';
  }
  if (largest.difference == 0) return out;
  const bool same_way = (largest.difference > 0) == (change > 0) && change != 0;
  const double part = static_cast<double>(largest.difference) / static_cast<double>(change == 0 ? 1 : change);
  constexpr size_t kName = 60;
  out += fmt::format(" {} {} ({}{}): ",
                     same_way && largest.difference == change ? "All of it is"
                     : same_way && part > 0.5 && part <= 1    ? "Most of it is"
                                                              : "The largest change is",
                     report::shortened(report::clean(largest.name), kName), largest.difference > 0 ? "+" : "-",
                     as_time(largest.difference));
  const auto calls = [](int64_t count) { return fmt::format("{} call{}", count, count == 1 ? "" : "s"); };
  if (!largest.in_a) return out + fmt::format("{}, only in B.", calls(largest.b.calls));
  if (!largest.in_b) return out + fmt::format("{}, only in A.", calls(largest.a.calls));
  out += largest.a.calls == largest.b.calls ? calls(largest.b.calls)
                                            : fmt::format("{} instead of {}", calls(largest.b.calls), largest.a.calls);
  const double longer = largest.a.mean > 0 ? (largest.b.mean / largest.a.mean - 1) * 100 : 0;
  constexpr double kSame = 0.05;  // percent
  if (largest.a.mean > 0)
    out += std::fabs(longer) < kSame
               ? std::string(", each as long on average")
               : fmt::format(", each {:.1f} % {} on average", std::fabs(longer), longer > 0 ? "longer" : "shorter");
  return out + noise_words(largest, diff.rows) + ".";
}

Answer diff_answer(const Diff& diff) {
  Answer answer;
  answer.columns = {{"difference_ns", "Difference", Unit::kNs},
                    {"change_percent", "% of A", Unit::kPercent},
                    {"share_percent", "% of all of A", Unit::kPercent},
                    {"calls_a", "Calls A", Unit::kCount, 2},
                    {"calls_b", "Calls B", Unit::kCount, 2},
                    {"total_a_ns", "Total A", Unit::kNs},
                    {"total_b_ns", "Total B", Unit::kNs},
                    {"mean_a_ns", "Mean A", Unit::kNs},
                    {"mean_b_ns", "Mean B", Unit::kNs},
                    {"median_a_ns", "Median A", Unit::kNs, 3},
                    {"median_b_ns", "Median B", Unit::kNs, 3},
                    {"p95_a_ns", "P95 A", Unit::kNs, 4},
                    {"p95_b_ns", "P95 B", Unit::kNs, 4},
                    {"p", "p", Unit::kProbability, 1},
                    {"name", "Name", Unit::kText}};
  // People get changes, totals and the middle; the mean and the share are in csv and JSON.
  answer.shown = {0, 1, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14};
  answer.next = [next = diff.next, total_a = diff.total_a](std::vector<report::Cell>& cells) {
    DiffRow row;
    if (!next(row)) return false;
    const auto side = [](bool there, auto value) { return there ? report::Cell(value) : report::Cell(); };
    cells = {row.difference,
             row.in_a && row.in_b && row.a.total > 0
                 ? report::Cell(static_cast<double>(row.difference) / static_cast<double>(row.a.total) * 100.0)
                 : report::Cell(),
             total_a > 0 ? report::Cell(static_cast<double>(row.difference) / static_cast<double>(total_a) * 100.0)
                         : report::Cell(),
             row.a.calls,
             row.b.calls,
             side(row.in_a, row.a.total),
             side(row.in_b, row.b.total),
             side(row.in_a, row.a.mean),
             side(row.in_b, row.b.mean),
             side(row.in_a, row.a.median),
             side(row.in_b, row.b.median),
             side(row.in_a, row.a.p95),
             side(row.in_b, row.b.p95),
             std::isnan(row.p) ? report::Cell() : report::Cell(row.p),
             row.name};
    return true;
  };
  answer.remarks = diff.remarks;
  return answer;
}

}  // namespace tacho::analysis
