// Distributions per name of two traces, compared (diff.h).
#include "analysis/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/demangle.h"
#include "base/sorted_file.h"

namespace tacho::analysis {

using event::Domain;
using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

struct Value {
  int64_t name, duration;
  bool operator<(const Value& other) const { return name != other.name ? name < other.name : duration < other.duration; }
};
// Durations in order of name and length, and how many there are of each name.
class Values {
 public:
  void add(const Value& value) {
    const auto at = static_cast<size_t>(value.name);
    if (at >= counts_.size()) counts_.resize(at + 1);
    ++counts_[at];
    file_.add(value);
  }
  Status finish() { return file_.finish(); }
  bool next(Value& value) { return file_.next(value); }
  int64_t count(int64_t name) const { return static_cast<size_t>(name) < counts_.size() ? counts_[static_cast<size_t>(name)] : 0; }

 private:
  SortedFile<Value> file_;
  std::vector<int64_t> counts_;
};

// Names of both traces as one set of numbers.
class Names {
 public:
  int64_t number(const std::string& name) {
    const auto [found, fresh] = numbers_.try_emplace(name, static_cast<int64_t>(names_.size()));
    if (fresh) names_.push_back(&found->first);
    return found->second;
  }
  const std::string& name(int64_t number) const { return *names_[static_cast<size_t>(number)]; }
  size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
  std::vector<const std::string*> names_;
};

// What emit_nvtx and its kin write into markers: "aten::add, seq = 12, op_id = 3": the operator alone.
std::string operator_of_marker(std::string_view text) {
  const size_t comma = text.find(", ");
  return std::string(text.substr(0, comma));
}

Status plain_values(const trace::Trace& trace, DiffBy by, Names& names, Values& values) {
  const Table table = by == DiffBy::kKernel ? Table::kDispatch : by == DiffBy::kApi ? Table::kApi : by == DiffBy::kMarker ? Table::kMarker : Table::kCopy;
  std::vector<int64_t> of_dim;
  const auto number_of = [&](int64_t dim) {
    const auto at = static_cast<size_t>(dim);
    if (at >= of_dim.size()) of_dim.resize(at + 1, -1);
    if (of_dim[at] >= 0) return of_dim[at];
    std::string name;
    switch (by) {
      case DiffBy::kKernel: name = demangle(trace.text(Table::kKernel, dim, column::Kernel::name)); break;
      case DiffBy::kApi: name = trace.text(Table::kFunction, dim, column::Function::name); break;
      case DiffBy::kMarker: name = trace.text(Table::kLabel, dim, column::Label::name); break;
      default: name = event::to_string(static_cast<event::CopyDirection>(trace.cell(Table::kCopyShape, dim, column::CopyShape::direction)));
    }
    return of_dim[at] = names.number(name);
  };
  static constexpr int kColumns[] = {column::Fact::dim, column::Fact::duration};
  const int64_t dims = trace.rows(event::table_info(table).columns[column::Fact::dim].target);
  return trace::visit_chunks(trace, table, kColumns, [&](size_t, std::span<const std::span<const int64_t>> columns) {
    for (size_t i = 0; i < columns[0].size(); ++i)
      if (columns[1][i] != kUnknown && columns[0][i] >= 0 && columns[0][i] < std::max<int64_t>(dims, 1)) values.add({number_of(columns[0][i]), columns[1][i]});
    return true;
  });
}

struct Pair {
  int64_t a, b;
  bool operator<(const Pair& other) const { return a != other.a ? a < other.a : b < other.b; }
};

Status operator_values(const trace::Trace& trace, Names& names, Values& values, std::string& source) {
  // Device work by the call that caused it.
  struct Work {
    int64_t process, correlation, duration;
    bool operator<(const Work& other) const { return process != other.process ? process < other.process : correlation < other.correlation; }
  };
  SortedFile<Work> work(8u << 20);
  static constexpr int kWorkColumns[] = {column::Fact::track, column::Fact::duration, column::Fact::correlation};
  const auto process_of = [&](int64_t track) { return trace.cell(Table::kTrack, track, column::Track::process); };
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill})
    TACHO_TRY(trace::visit_chunks(trace, table, kWorkColumns, [&](size_t, std::span<const std::span<const int64_t>> columns) {
      for (size_t i = 0; i < columns[0].size(); ++i)
        if (columns[1][i] != kUnknown) work.add({process_of(columns[0][i]), columns[2][i], columns[1][i]});
      return true;
    }));
  TACHO_TRY(work.finish());

  // Which operators there are: framework operators, else markers.
  std::vector<bool> is_operator(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), false);
  bool operators = false;
  for (size_t row = 1; row < is_operator.size(); ++row) {
    const auto domain = static_cast<Domain>(trace.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
    is_operator[row] = domain == Domain::kOperator;
    operators = operators || is_operator[row];
  }
  std::vector<bool> skip(is_operator.size(), false);
  for (size_t row = 1; row < skip.size(); ++row)
    skip[row] = static_cast<Domain>(trace.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain)) == Domain::kPython;
  source = operators ? "operators" : "markers";
  if (!operators && trace.rows(Table::kMarker) == 0)
    return fail("{}: it holds neither framework operators (aten::...) nor markers to compare by", trace.path());

  // One sweep over calls (and markers) in time: the innermost operator open on a thread owns what the thread launches.
  struct Open {
    int64_t end, name, instance;
  };
  struct Owner {
    int64_t process, correlation, instance, name;
    bool operator<(const Owner& other) const { return process != other.process ? process < other.process : correlation < other.correlation; }
  };
  SortedFile<Owner> owners(8u << 20);
  std::vector<std::vector<Open>> stacks(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  static constexpr int kCallColumns[] = {column::Fact::track, column::Fact::start, column::Fact::duration, column::Fact::dim, column::Fact::correlation};
  trace::TimeCursor calls(trace, Table::kApi, kCallColumns), markers(trace, Table::kMarker, kCallColumns);
  bool more_calls = calls.next(), more_markers = !operators && markers.next();
  int64_t instances = 0;
  std::unordered_map<int64_t, int64_t> function_names, label_names;
  const auto push = [&](std::vector<Open>& stack, int64_t start, int64_t duration, int64_t name) {
    const int64_t end = duration == kUnknown ? INT64_MAX : start + duration;
    while (!stack.empty() && stack.back().end <= start) stack.pop_back();
    stack.push_back({end, name, ++instances});
  };
  while (more_calls || more_markers) {
    const bool take_call = more_calls && (!more_markers || calls.start() < markers.start());  // a marker goes before a call of the same moment
    const std::span<const int64_t> row = take_call ? calls.row() : markers.row();
    const auto track = static_cast<size_t>(row[0]);
    if (track < stacks.size()) {
      std::vector<Open>& stack = stacks[track];
      if (!take_call) {
        if (row[2] != 0) {
          const auto [found, fresh] = label_names.try_emplace(row[3], 0);
          if (fresh) found->second = names.number(operator_of_marker(trace.text(Table::kLabel, row[3], column::Label::name)));
          push(stack, row[1], row[2], found->second);
        }
      } else if (const auto function = static_cast<size_t>(row[3]); function < is_operator.size() && is_operator[function]) {
        const auto [found, fresh] = function_names.try_emplace(row[3], 0);
        if (fresh) found->second = names.number(std::string(trace.text(Table::kFunction, row[3], column::Function::name)));
        push(stack, row[1], row[2], found->second);
      } else if (row[4] != 0 && !(function < skip.size() && skip[function])) {
        while (!stack.empty() && stack.back().end <= row[1]) stack.pop_back();
        if (!stack.empty()) owners.add({process_of(row[0]), row[4], stack.back().instance, stack.back().name});
      }
    }
    if (take_call)
      more_calls = calls.next();
    else
      more_markers = markers.next();
  }
  TACHO_TRY(calls.status());
  TACHO_TRY(markers.status());
  TACHO_TRY(owners.finish());

  // Work and owners meet in order of (process, correlation); a value is what one call of an operator cost the GPU.
  struct Part {
    int64_t instance, name, duration;
    bool operator<(const Part& other) const { return instance < other.instance; }
  };
  SortedFile<Part> parts(8u << 20);
  Owner owner{};
  bool more_owner = owners.next(owner);
  Work one;
  while (work.next(one)) {
    while (more_owner && (owner.process < one.process || (owner.process == one.process && owner.correlation < one.correlation))) more_owner = owners.next(owner);
    if (one.correlation != 0 && more_owner && owner.process == one.process && owner.correlation == one.correlation)
      parts.add({owner.instance, owner.name, one.duration});
    else
      parts.add({++instances, names.number("(no operator)"), one.duration});
  }
  TACHO_TRY(parts.finish());
  Part part, sum{-1, 0, 0};
  while (parts.next(part)) {
    if (part.instance == sum.instance) {
      sum.duration += part.duration;
      continue;
    }
    if (sum.instance >= 0) values.add({sum.name, sum.duration});
    sum = part;
  }
  if (sum.instance >= 0) values.add({sum.name, sum.duration});
  return {};
}

// What is worked out about one name from its durations as they come in ascending order; how many there will be is known.
class Describer {
 public:
  explicit Describer(int64_t count) {
    result_.calls = count;
    p95_ = static_cast<int64_t>(std::ceil(0.95 * static_cast<double>(count)));
  }
  void add(int64_t duration, int64_t times) {
    const int64_t before = seen_;
    seen_ += times;
    result_.total += duration * times;
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
  static constexpr std::pair<std::string_view, DiffBy> kNames[] = {
      {"kernel", DiffBy::kKernel}, {"api", DiffBy::kApi}, {"marker", DiffBy::kMarker}, {"copy", DiffBy::kCopy}, {"operator", DiffBy::kOperator}};
  for (const auto& [name, by] : kNames)
    if (name == text) return by;
  return fail("--by {}: choose kernel, api, marker, copy or operator", text);
}

Result<Diff> diff(const trace::Trace& a, const trace::Trace& b, DiffBy by) {
  Names names;
  Values values[2];
  std::string sources[2];
  const trace::Trace* const traces[2] = {&a, &b};
  for (int side = 0; side < 2; ++side) {
    if (traces[side]->aggregated()) return fail("{}: recorded with --aggregate: it holds no single durations to compare", traces[side]->path());
    if (by == DiffBy::kOperator)
      TACHO_TRY(operator_values(*traces[side], names, values[side], sources[side]));
    else
      TACHO_TRY(plain_values(*traces[side], by, names, values[side]));
    TACHO_TRY(values[side].finish());
  }
  Diff result;
  if (by == DiffBy::kOperator && sources[0] != sources[1])
    result.remarks.push_back(fmt::format("{} is compared by {}, {} by {}: names will hardly match", a.path(), sources[0], b.path(), sources[1]));
  Value next[2];
  bool more[2] = {values[0].next(next[0]), values[1].next(next[1])};
  while (more[0] || more[1]) {
    const int64_t name = !more[1] || (more[0] && next[0].name <= next[1].name) ? next[0].name : next[1].name;
    const int64_t in_a = values[0].count(name), in_b = values[1].count(name);
    Describer describe[2] = {Describer(in_a), Describer(in_b)};
    RankTest test(in_a, in_b);
    const auto of_name = [&](int side) { return more[side] && next[side].name == name; };
    while (of_name(0) || of_name(1)) {
      const int64_t duration = !of_name(1) || (of_name(0) && next[0].duration <= next[1].duration) ? next[0].duration : next[1].duration;
      int64_t times[2] = {0, 0};
      for (int side = 0; side < 2; ++side) {
        while (of_name(side) && next[side].duration == duration) {
          ++times[side];
          more[side] = values[side].next(next[side]);
        }
        if (times[side] > 0) describe[side].add(duration, times[side]);
      }
      test.add(times[0], times[1]);
    }
    DiffRow row;
    row.name = names.name(name);
    row.in_a = in_a > 0;
    row.in_b = in_b > 0;
    row.a = describe[0].finish();
    row.b = describe[1].finish();
    row.difference = row.b.total - row.a.total;
    row.p = test.p();
    result.total_a += row.a.total;
    result.total_b += row.b.total;
    result.rows.push_back(std::move(row));
  }
  std::sort(result.rows.begin(), result.rows.end(), [](const DiffRow& x, const DiffRow& y) {
    const int64_t left = std::llabs(x.difference), right = std::llabs(y.difference);
    return left != right ? left > right : x.name < y.name;
  });
  return result;
}

Answer diff_answer(const Diff& diff) {
  Answer answer;
  answer.columns = {{"difference_ns", "Difference", Unit::kNs}, {"change_percent", "Change %", Unit::kPercent}, {"share_percent", "of A %", Unit::kPercent},
                    {"calls_a", "Calls A", Unit::kCount}, {"calls_b", "Calls B", Unit::kCount}, {"total_a_ns", "Total A", Unit::kNs}, {"total_b_ns", "Total B", Unit::kNs},
                    {"mean_a_ns", "Mean A", Unit::kNs}, {"mean_b_ns", "Mean B", Unit::kNs}, {"median_a_ns", "Median A", Unit::kNs}, {"median_b_ns", "Median B", Unit::kNs},
                    {"p95_a_ns", "P95 A", Unit::kNs}, {"p95_b_ns", "P95 B", Unit::kNs}, {"p", "p", Unit::kProbability}, {"name", "Name", Unit::kText}};
  for (const DiffRow& row : diff.rows) {
    const auto side = [](bool there, auto value) { return there ? report::Cell(value) : report::Cell(); };
    answer.rows.push_back({row.difference,
                           row.in_a && row.in_b && row.a.total > 0 ? report::Cell(static_cast<double>(row.difference) / static_cast<double>(row.a.total) * 100.0) : report::Cell(),
                           diff.total_a > 0 ? report::Cell(static_cast<double>(row.difference) / static_cast<double>(diff.total_a) * 100.0) : report::Cell(),
                           row.a.calls, row.b.calls, side(row.in_a, row.a.total), side(row.in_b, row.b.total), side(row.in_a, row.a.mean), side(row.in_b, row.b.mean),
                           side(row.in_a, row.a.median), side(row.in_b, row.b.median), side(row.in_a, row.a.p95), side(row.in_b, row.b.p95),
                           std::isnan(row.p) ? report::Cell() : report::Cell(row.p), row.name});
  }
  answer.remarks = diff.remarks;
  return answer;
}

}  // namespace tacho::analysis
