// The answers of analysis/diff and analysis/common_marker as JSON (compare.h).
#include "view/answers/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "analysis/diff.h"
#include "analysis/stacks/common_marker.h"
#include "analysis/stacks/own_code.h"
#include "analysis/stacks/stacks.h"
#include "base/text/json_writer.h"
#include "report/text.h"

namespace tacho::view {

using event::Table;

namespace {

constexpr size_t kMostDifferences = 2000;

// The numbers of these texts among a run's names.
std::vector<uint32_t> numbers_in(const Run& run, const std::vector<std::string>& texts) {
  std::unordered_map<std::string_view, uint32_t> number;
  for (const std::string& text : texts) number.emplace(text, 0);
  for (uint32_t name = 1; !texts.empty() && name < run.names().size(); ++name)
    if (const auto found = number.find(run.names().text(name)); found != number.end()) found->second = name;
  std::vector<uint32_t> numbers;
  for (const std::string& text : texts) numbers.push_back(number.at(text));
  return numbers;
}

// Sampled time by line or function. Lines of one file count as the same by number, whatever the program's other files
// are; `own`: the trees are of the user's own code.
struct CodeTime {
  int64_t ns = 0, samples = 0;
};
std::map<std::string, CodeTime> code_times(const analysis::StackTree& tree, bool lines) {
  std::map<std::string, CodeTime> times;
  for (const analysis::StackRow& row :
       analysis::stack_rows(tree, lines ? analysis::StackBy::kLine : analysis::StackBy::kFunction)) {
    if (row.self_ns <= 0) continue;
    std::string place = analysis::place_text(row.frame);
    if (const size_t slash = place.rfind('/'); slash != std::string::npos) place.erase(0, slash + 1);
    CodeTime& time = times[place.empty() ? row.frame.name : fmt::format("{}  {}", row.frame.name, place)];
    time.ns += row.self_ns;
    time.samples += row.samples;
  }
  return times;
}

// The p value of the hypothesis that two numbers of samples are of one rate.
double same_rate(int64_t a, int64_t b) {
  constexpr int64_t kLeast = 8;
  if (a + b < kLeast) return std::nan("");
  const double z = std::fabs(static_cast<double>(b - a)) / std::sqrt(static_cast<double>(a + b));
  return std::erfc(z / std::sqrt(2.0));
}

Result<analysis::Diff> diff_of_code(const Run& a, const Run& b, bool lines) {
  std::vector<analysis::StackTree> trees;
  bool own = true;
  for (const Run* run : {&a, &b}) {
    analysis::StackOptions options;
    options.lines = lines;
    options.gpu = false;
    options.recorded = false;
    TACHO_ASSIGN(trees.emplace_back(), analysis::stack_tree(run->trace(), options));
    own = own && analysis::own_share(trees.back()).host_ns > 0;
  }
  std::map<std::string, analysis::DiffRow> rows;
  analysis::Diff diff;
  for (size_t side = 0; side < 2; ++side)
    for (const auto& [name, time] : code_times(own ? analysis::own_code(trees[side]) : trees[side], lines)) {
      analysis::DiffRow& row = rows[name];
      row.name = name;
      (side == 0 ? row.in_a : row.in_b) = true;
      analysis::Distribution& of = side == 0 ? row.a : row.b;
      of.total = time.ns;
      of.calls = time.samples;
      of.mean = static_cast<double>(time.ns) / static_cast<double>(std::max<int64_t>(time.samples, 1));
      (side == 0 ? diff.total_a : diff.total_b) += time.ns;
    }
  auto sorted = std::make_shared<std::vector<analysis::DiffRow>>();
  for (auto& [name, row] : rows) {
    row.difference = row.b.total - row.a.total;
    row.p = same_rate(row.a.calls, row.b.calls);
    sorted->push_back(std::move(row));
  }
  std::stable_sort(sorted->begin(), sorted->end(), [](const analysis::DiffRow& x, const analysis::DiffRow& y) {
    return std::abs(x.difference) > std::abs(y.difference);
  });
  diff.rows = sorted->size();
  diff.next = [sorted, at = size_t{0}](analysis::DiffRow& row) mutable {
    if (at == sorted->size()) return false;
    row = (*sorted)[at++];
    return true;
  };
  return diff;
}

// The sentence of analysis::diff_sentence() for samples, which are no calls.
std::string code_sentence(const analysis::Diff& diff, const analysis::DiffRow& largest) {
  const auto time = [](int64_t ns) { return report::format_duration(static_cast<double>(ns)); };
  const int64_t change = diff.total_b - diff.total_a;
  std::string out = change == 0 ? std::string("A and B were sampled for the same time.")
                                : fmt::format("B was sampled for {} {} than A.", time(std::abs(change)),
                                              change > 0 ? "longer" : "shorter");
  if (largest.difference == 0) return out;
  const bool known = !std::isnan(largest.p);
  constexpr double kLevel = 0.05;
  return out + fmt::format(" The largest change is {} ({}{}): {} sample{} instead of {}{}", largest.name,
                           largest.difference > 0 ? "+" : "-", time(std::abs(largest.difference)), largest.b.calls,
                           largest.b.calls == 1 ? "" : "s", largest.a.calls,
                           !known                                                ? ", too few to tell it from noise."
                           : largest.p * static_cast<double>(diff.rows) < kLevel ? ", which is more than noise."
                                                                                 : ", which may be noise.");
}

}  // namespace

Result<std::string> compare(const Run& a, const Run& b, std::string_view by_text) {
  const bool lines = by_text == "line", code = lines || by_text == "function";
  analysis::Diff diff;
  if (code) {
    TACHO_ASSIGN(diff, diff_of_code(a, b, lines));
  } else {
    TACHO_ASSIGN(const auto by, analysis::parse_diff_by(by_text));
    TACHO_ASSIGN(diff, analysis::diff(a.trace(), b.trace(), by));
  }
  // The sentence is about the first row.
  std::optional<analysis::DiffRow> largest;
  diff.next = [&largest, next = diff.next](analysis::DiffRow& row) {
    if (!next(row)) return false;
    if (!largest) largest = row;
    return true;
  };
  const report::Answer answer = analysis::diff_answer(diff);
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().member("by", by_text).name("columns").begin_array();
  for (const auto& column : answer.columns)
    json.begin_object()
        .member("name", column.name)
        .member("title", column.title)
        .member("unit", report::to_string(column.unit))
        .end_object();
  json.end_array().name("rows").begin_array();
  std::vector<std::string> texts;
  std::vector<report::Cell> row;
  while (texts.size() < kMostDifferences && answer.next(row)) {
    json.newline().begin_array();
    for (const report::Cell& cell : row) report::put_cell(json, cell);
    json.end_array();
    const auto* const name = std::get_if<std::string>(&row.back());
    texts.push_back(name != nullptr ? *name : std::string());
  }
  json.end_array().name("names").begin_array();
  const auto in_a = numbers_in(a, texts), in_b = numbers_in(b, texts);
  for (size_t i = 0; i < texts.size(); ++i) json.begin_array().value(in_a[i]).value(in_b[i]).end_array();
  json.end_array()
      .member("count", diff.rows)
      .member("total_a", diff.total_a)
      .member("total_b", diff.total_b)
      .member("sentence", !largest ? std::string()
                          : code   ? code_sentence(diff, *largest)
                                   : analysis::diff_sentence(diff, *largest))
      .name("remarks")
      .begin_array();
  for (const std::string& remark : answer.remarks) json.value(remark);
  json.end_array().end_object();
  return out;
}

Result<std::string> alignment(const Run& a, const Run& b) {
  TACHO_ASSIGN(const auto common, analysis::first_common_marker(a.trace(), b.trace()));
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object();
  if (common)
    json.member("a", common->at_a - a.t0())
        .member("b", common->at_b - b.t0())
        .member("on", common->text_a)
        .member("on_b", common->text_b);
  else
    json.member("a", 0).member("b", 0).name("on").null();
  json.end_object();
  return out;
}

}  // namespace tacho::view
