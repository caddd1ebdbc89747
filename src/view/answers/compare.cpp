// The answers of analysis/diff and analysis/common_marker as JSON (compare.h).
#include "view/answers/compare.h"

#include <unordered_map>
#include <vector>

#include "analysis/diff.h"
#include "analysis/stacks/common_marker.h"
#include "base/text/json_writer.h"

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

}  // namespace

Result<std::string> compare(const Run& a, const Run& b, std::string_view by_text) {
  TACHO_ASSIGN(const auto by, analysis::parse_diff_by(by_text));
  TACHO_ASSIGN(const analysis::Diff diff, analysis::diff(a.trace(), b.trace(), by));
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
