// Judges the rules of catalog/trace on the quantities of a trace (findings.h).
#include "analysis/findings/findings.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "analysis/findings/quantities.h"
#include "analysis/operators/places.h"
#include "analysis/time/activity.h"
#include "base/format.h"
#include "base/text/demangle.h"
#include "metric/catalog/builtin/builtin.h"
#include "report/text.h"
#include "walk/time/span.h"

namespace tacho::analysis {

using report::Answer;
using report::JsonValue;
using report::Unit;
namespace {

using metric::FormulaOp;
using metric::FormulaStep;
using metric::Rule;
using metric::RuleCondition;
using metric::RuleExpression;
using metric::RuleInterval;
using metric::RuleValue;
using metric::Truth;
using metric::Verdict;
using ValueState = RuleValue::State;

std::string number_text(double value, std::string_view unit) {
  if (unit == "ns") return report::format_duration(value);
  if (unit == "bytes") return report::format_bytes(value);
  if (unit == "%")
    return report::format_fixed(value, std::fabs(value) < 10 && value != std::round(value) ? 1 : 0) + " %";
  std::string text =
      value == std::round(value) ? fmt::format("{}", static_cast<int64_t>(value)) : report::format_fixed(value, 2);
  if (!unit.empty() && unit != "count") text += " " + std::string(unit);
  return text;
}

class Judge {
 public:
  Judge(const metric::RuleBook& book, const std::vector<Subject>& subjects, double run)
      : book_(book), subjects_(subjects), run_(run) {}

  void judge(Findings& out) const {
    for (const Rule& rule : book_.rules) {
      std::vector<TraceFinding> found;
      std::set<std::string> needs;
      for (const Subject& subject : subjects_) {
        if (subject.kind != kind_of(rule)) continue;
        const auto lookup = [&](const RuleExpression& quantity) { return interval(subject, quantity, rule.error); };
        const metric::Judgement judgement = metric::judge(rule, lookup);
        if (judgement.verdict == Verdict::kNotJudged)
          add_needs(rule, subject, needs);
        else if (judgement.verdict == Verdict::kFound || judgement.verdict == Verdict::kPossible)
          found.push_back(finding(rule, judgement, subject));
      }
      if (!found.empty()) {
        out.findings.push_back(merged(std::move(found)));
      } else if (!needs.empty()) {
        std::string text;
        for (const std::string& need : needs) text += (text.empty() ? "" : "; ") + need;
        out.not_judged.push_back({std::string(rule.slug), std::string(rule.title), std::move(text)});
      }
    }
    std::stable_sort(out.findings.begin(), out.findings.end(),
                     [](const TraceFinding& a, const TraceFinding& b) { return weight(a) > weight(b); });
  }

 private:
  // The middle of what could be saved; what is only possible counts half.
  static double weight(const TraceFinding& finding) {
    if (!finding.saves) return 0;
    const double middle = static_cast<double>(finding.saves->first + finding.saves->second) / 2;
    return finding.possible ? middle / 2 : middle;
  }

  static SubjectKind kind_of(const Rule& rule) {
    SubjectKind kind = SubjectKind::kRun;
    metric::for_each_deciding(rule, [&](const RuleExpression& quantity) {
      for (const FormulaStep& step : quantity.steps)
        if (step.op == FormulaOp::kMetric)
          if (const Quantity* known = quantity_named(step.text); known != nullptr && known->of != SubjectKind::kRun)
            kind = known->of;
    });
    return kind;
  }

  // Values

  const Measured* measured(const Subject& subject, std::string_view slug) const {
    if (const auto found = subject.values.find(slug); found != subject.values.end()) return &found->second;
    for (const Subject& each : subjects_)
      if (each.kind == SubjectKind::kRun)
        if (const auto found = each.values.find(slug); found != each.values.end()) return &found->second;
    return nullptr;
  }

  RuleInterval interval(const Subject& subject, const RuleExpression& quantity, double error) const {
    std::vector<const FormulaStep*> used;
    const auto value_with = [&](const FormulaStep* moved, double by, std::vector<const FormulaStep*>* seen) {
      return metric::evaluate(
          quantity,
          [&](const FormulaStep& leaf) -> RuleValue {
            const Measured* const value = measured(subject, leaf.text);
            if (value == nullptr) return {};
            if (!value->needs.empty()) return {ValueState::kMissing, 0};
            return {ValueState::kNumber, value->value + (moved != nullptr && moved->text == leaf.text ? by : 0)};
          },
          seen);
    };
    const RuleValue middle = value_with(nullptr, 0, &used);
    RuleInterval out{middle.state, middle.number, middle.number, middle.number};
    if (!middle.known()) return out;
    double squares = 0;
    std::set<std::string_view> done;
    for (const FormulaStep* const step : used) {
      if (!done.insert(step->text).second) continue;
      const Measured& leaf = *measured(subject, step->text);
      const double off = leaf.exact ? leaf.off : std::max(leaf.off, std::fabs(leaf.value) * error / 100);
      if (off == 0) continue;
      const RuleValue up = value_with(step, off, nullptr), down = value_with(step, -off, nullptr);
      const double most = std::max(up.known() ? std::fabs(up.number - middle.number) : 0.0,
                                   down.known() ? std::fabs(down.number - middle.number) : 0.0);
      squares += most * most;
    }
    out.low -= std::sqrt(squares);
    out.high += std::sqrt(squares);
    if (quantity.unit == "%" && out.value >= 0) {
      out.low = std::max(out.low, 0.0);
      if (out.value <= 100) out.high = std::min(out.high, 100.0);
    }
    return out;
  }

  void add_needs(const Rule& rule, const Subject& subject, std::set<std::string>& needs) const {
    metric::for_each_deciding(rule, [&](const RuleExpression& quantity) {
      for (const FormulaStep& step : quantity.steps)
        if (step.op == FormulaOp::kMetric)
          if (const Measured* value = measured(subject, step.text); value != nullptr && !value->needs.empty())
            needs.insert(value->needs);
    });
  }

  // Words

  static std::string unit_of(const RuleExpression& quantity) {
    if (!quantity.unit.empty()) return std::string(quantity.unit);
    const FormulaStep* const leaf = quantity.metric();
    const Quantity* const known = leaf != nullptr ? quantity_named(leaf->text) : nullptr;
    return known != nullptr ? std::string(known->unit) : std::string();
  }
  static std::string name_of(const RuleExpression& quantity) {
    if (!quantity.name.empty()) return std::string(quantity.name);
    const FormulaStep* const leaf = quantity.metric();
    const Quantity* const known = leaf != nullptr ? quantity_named(leaf->text) : nullptr;
    return known != nullptr ? std::string(known->name) : std::string(quantity.text);
  }

  std::string word_for(const Subject& subject, const RuleExpression& quantity) const {
    if (const FormulaStep* const leaf = quantity.metric(); leaf != nullptr)
      if (const auto word = subject.words.find(leaf->text); word != subject.words.end()) return word->second;
    const RuleInterval value = interval(subject, quantity, 0);
    return value.state == ValueState::kNumber ? number_text(value.value, unit_of(quantity)) : std::string("?");
  }

  // "{} [gaps|gap]": the first form, or the second one where the number before is 1.
  std::string sentence_of(const Rule& rule, const Subject& subject) const {
    std::string out;
    size_t next = 0;
    bool one = false, choosing = false, shown = true;
    for (size_t at = 0; at < rule.sentence.size(); ++at) {
      const char c = rule.sentence[at];
      if (c == '{') {
        const RuleExpression& quantity = rule.in_sentence[next++];
        const std::string word = word_for(subject, quantity);
        if (!choosing) one = word == "1" && unit_of(quantity) == "count";
        if (shown) out += word;
        ++at;  // past the closing brace
      } else if (c == '[') {
        choosing = true;
        shown = !one;
      } else if (choosing && c == '|') {
        shown = one;
      } else if (c == ']') {
        choosing = false;
        shown = true;
      } else if (shown) {
        out += c;
      }
    }
    if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
    return out;
  }

  std::string evidence_line(const Subject& subject, const Rule& rule, const RuleExpression& quantity,
                            const RuleCondition* condition) const {
    const RuleInterval value = interval(subject, quantity, rule.error);
    const std::string unit = unit_of(quantity);
    if (value.state != ValueState::kNumber || unit == "reason") return {};
    std::string line = fmt::format("{}: {}", name_of(quantity), number_text(value.value, unit));
    std::vector<std::string> notes;
    if (condition != nullptr) {
      if (value.high > value.low)
        notes.push_back(fmt::format("{} to {}", number_text(value.low, unit), number_text(value.high, unit)));
      const bool above =
          condition->relation == metric::RuleRelation::kAbove || condition->relation == metric::RuleRelation::kAtLeast;
      // Counts are whole numbers.
      const bool counted = (unit.empty() || unit == "count") && value.value == std::round(value.value) &&
                           condition->threshold != std::round(condition->threshold);
      if (counted)
        notes.push_back(fmt::format("at {} {:.0f}", above ? "least" : "most",
                                    above ? std::ceil(condition->threshold) : std::floor(condition->threshold)));
      else
        notes.push_back(fmt::format("threshold {}{}", above ? "" : "below ", number_text(condition->threshold, unit)));
    }
    for (size_t i = 0; i < notes.size(); ++i) line += (i == 0 ? " (" : "; ") + notes[i];
    if (!notes.empty()) line += ")";
    return line;
  }

  // Everything that makes the finding only possible.
  std::string doubt_of(const Rule& rule, const Subject& subject) const {
    if (!rule.only_possible.empty()) return std::string(rule.only_possible);
    const auto truth = [&](const RuleCondition& condition) {
      return metric::holds(condition, interval(subject, condition.quantity, rule.error));
    };
    std::vector<std::string> doubts;
    for (const RuleCondition& condition : rule.when)
      if (truth(condition) == Truth::kMaybe)
        doubts.push_back(fmt::format("a run differs from the next by some {} %, and {} is too near",
                                     report::format_fixed(rule.error, 0),
                                     number_text(condition.threshold, unit_of(condition.quantity))));
    for (const RuleCondition& condition : rule.unless) {
      const Truth refuted = truth(condition);
      if (refuted != Truth::kMaybe && refuted != Truth::kUnknown) continue;
      doubts.push_back(unit_of(condition.quantity) == "reason"
                           ? name_of(condition.quantity)
                           : fmt::format("{} may refute it", name_of(condition.quantity)));
    }
    return fmt::format("{}", fmt::join(doubts, "; "));
  }

  TraceFinding finding(const Rule& rule, const metric::Judgement& judgement, const Subject& subject) const {
    TraceFinding out;
    out.rule = rule.slug;
    out.title = rule.title;
    out.where = subject.kind == SubjectKind::kRun ? std::string() : subject.text;
    out.possible = judgement.verdict == Verdict::kPossible;
    if (out.possible) out.doubt = doubt_of(rule, subject);
    out.sentence = sentence_of(rule, subject);
    const auto add = [&](const RuleExpression& quantity, const RuleCondition* condition) {
      std::string line = evidence_line(subject, rule, quantity, condition);
      if (!line.empty()) out.evidence.push_back(std::move(line));
    };
    for (const RuleCondition& condition : rule.when) add(condition.quantity, &condition);
    for (const RuleExpression& quantity : rule.evidence) add(quantity, nullptr);
    if (!rule.saves_high.steps.empty())
      out.saves = {std::llround(judgement.low / 100 * run_), std::llround(judgement.high / 100 * run_)};
    if (!rule.frees_high.steps.empty()) {
      const RuleInterval low = interval(subject, rule.frees_low, 0), high = interval(subject, rule.frees_high, 0);
      if (low.state == ValueState::kNumber && high.state == ValueState::kNumber)
        out.frees = {out.possible ? 0 : std::llround(low.value), std::llround(high.value)};
    }
    out.model = rule.model;
    out.refuted_by = rule.refuted_by;
    out.advice.assign(rule.advice.begin(), rule.advice.end());
    if (const auto lines = subject.lines.find(rule.spans); lines != subject.lines.end())
      out.evidence.insert(out.evidence.end(), lines->second.begin(), lines->second.end());
    if (const auto spans = subject.spans.find(rule.spans); spans != subject.spans.end())
      for (const Stretch& stretch : spans->second) {
        FindingSpan& span = out.spans.emplace_back(FindingSpan{stretch.from, stretch.to, {}});
        for (const int64_t track : {stretch.track, stretch.host_track})
          if (track > 0 && std::find(span.tracks.begin(), span.tracks.end(), track) == span.tracks.end())
            span.tracks.push_back(track);
      }
    return out;
  }

  // One finding for all devices or processes: that which could save the most, and where else.
  static TraceFinding merged(std::vector<TraceFinding> found) {
    std::stable_sort(found.begin(), found.end(),
                     [](const TraceFinding& a, const TraceFinding& b) { return weight(a) > weight(b); });
    TraceFinding out = std::move(found.front());
    constexpr size_t kNamed = 8;
    std::string others;
    for (size_t i = 1; i < std::min(found.size(), kNamed + 1); ++i)
      others += (i == 1 ? "" : ", ") + found[i].where + (found[i].saves ? " (" + savings_text(found[i]) + ")" : "");
    if (found.size() > kNamed + 1) others += fmt::format(" and {} more", found.size() - kNamed - 1);
    if (!others.empty()) out.evidence.push_back("The same on " + others);
    return out;
  }

  const metric::RuleBook& book_;
  const std::vector<Subject>& subjects_;
  double run_;
};

}  // namespace

std::string savings_text(const TraceFinding& finding) {
  if (!finding.saves) return {};
  const auto [low, high] = *finding.saves;
  // A model's result: two or three digits, both ends in the unit of the higher one.
  const auto size = static_cast<double>(high);
  const std::pair<double, const char*> unit = size < 1e3   ? std::pair(1.0, "ns")
                                              : size < 1e6 ? std::pair(1e3, "us")
                                              : size < 1e9 ? std::pair(1e6, "ms")
                                                           : std::pair(1e9, "s");
  const auto text = [&](int64_t ns) {
    const double value = static_cast<double>(ns) / unit.first;
    return report::format_fixed(value, value < 10 && unit.first > 1 ? 1 : 0);
  };
  if (low <= 0) return fmt::format("up to {} {}", text(high), unit.second);
  const std::string least = text(low);
  if (least == text(high)) return fmt::format("{} {}", least, unit.second);
  return fmt::format("{} to {} {}", least, text(high), unit.second);
}

std::string gains_text(const TraceFinding& finding) {
  if (finding.saves) return "could save " + savings_text(finding);
  if (!finding.frees) return {};
  const auto [low, high] = *finding.frees;
  const std::string most = report::format_bytes(static_cast<double>(high));
  if (low <= 0) return "could free up to " + most;
  return fmt::format("could free {} to {}", report::format_bytes(static_cast<double>(low)), most);
}

namespace {

// Rules whose evidence are operators, one a line.
void add_operators(const OperatorRoofs& roofs, std::vector<TraceFinding>& findings) {
  const std::pair<std::string_view, const std::vector<std::string>&> kRules[] = {
      {"operators-below-roof", roofs.lines},      {"converting-operators", roofs.converting.lines},
      {"products-in-f32", roofs.single.lines},    {"small-batch", roofs.few_rows.lines},
      {"unfused-attention", roofs.unfused.lines}, {"double-precision", roofs.doubles.lines},
      {"copies-on-device", roofs.copying.lines},  {"single-tensor-optimizer", roofs.optimizer.lines}};
  for (TraceFinding& finding : findings)
    for (const auto& [rule, lines] : kRules)
      if (finding.rule == rule) {
        finding.evidence.insert(finding.evidence.end(), lines.begin(), lines.end());
        if (!roofs.sampled.empty()) finding.evidence.push_back(roofs.sampled);
      }
}

}  // namespace

Result<Findings> find(const trace::Trace& trace, const FindOptions& options) {
  TACHO_ASSIGN(const metric::RuleBook book, metric::load_trace_rules());
  Findings out;
  out.rules = book.rules.size();
  TACHO_ASSIGN(const walk::Span run, walk::run_span(trace));
  out.from = walk::timeline_span(trace).first;
  out.length = run.length();
  for (const event::Table table : {event::Table::kDispatch, event::Table::kCopy, event::Table::kFill})
    out.device_work = out.device_work || trace.rows(table) > 0;
  if (trace.aggregated()) {
    out.remarks.emplace_back("a trace of --aggregate holds sums only, and findings need the events: record without it");
    return out;
  }
  TACHO_ASSIGN(const std::vector<Subject> subjects, measure(trace, options, out.remarks));
  Judge(book, subjects, static_cast<double>(out.length)).judge(out);
  if (options.operators) add_operators(*options.operators, out.findings);
  return out;
}

void add_findings(JsonValue& document, const Findings& findings, int64_t zero) {
  JsonValue found = JsonValue::list(), not_judged = JsonValue::list();
  for (const TraceFinding& finding : findings.findings) {
    JsonValue spans = JsonValue::list();
    for (const FindingSpan& span : finding.spans)
      spans.add(JsonValue::object(
          {{"from", span.from - zero}, {"to", span.to - zero}, {"tracks", JsonValue::list_of(span.tracks)}}));
    found.add(JsonValue::object(
        {{"rule", finding.rule},
         {"title", finding.title},
         {"where", finding.where},
         {"state", finding.possible ? "possible" : "found"},
         {"doubt", finding.doubt},
         {"sentence", finding.sentence},
         {"evidence", JsonValue::list_of(finding.evidence)},
         {"saves", finding.saves ? JsonValue::list({finding.saves->first, finding.saves->second}) : JsonValue()},
         {"frees", finding.frees ? JsonValue::list({finding.frees->first, finding.frees->second}) : JsonValue()},
         {"model", finding.model},
         {"refuted_by", finding.refuted_by},
         {"try", JsonValue::list_of(finding.advice)},
         {"spans", std::move(spans)}}));
  }
  for (const UnjudgedRule& rule : findings.not_judged)
    not_judged.add(JsonValue::object({{"rule", rule.rule}, {"title", rule.title}, {"needs", rule.needs}}));
  document.set("findings", std::move(found));
  document.set("not_judged", std::move(not_judged));
  document.set("remarks", JsonValue::list_of(findings.remarks));
}

Answer findings_answer(const Findings& findings) {
  Answer answer;
  answer.columns = {{"rule", "Rule", Unit::kText},
                    {"state", "State", Unit::kText},
                    {"where", "Where", Unit::kText},
                    {"saves_low_ns", "Saves", Unit::kNs},
                    {"saves_high_ns", "to", Unit::kNs},
                    {"from_ns", "From", Unit::kNs},
                    {"to_ns", "To", Unit::kNs},
                    {"sentence", "Finding", Unit::kText},
                    {"doubt", "Doubt", Unit::kText},
                    {"model", "Model", Unit::kText},
                    {"refuted_by", "Refuted by", Unit::kText},
                    {"frees_low_bytes", "Frees", Unit::kBytes},
                    {"frees_high_bytes", "to", Unit::kBytes}};
  for (const TraceFinding& each : findings.findings)
    answer.rows.push_back({each.rule, std::string(each.possible ? "possible" : "found"), each.where,
                           each.saves ? report::Cell(each.saves->first) : report::Cell(),
                           each.saves ? report::Cell(each.saves->second) : report::Cell(),
                           each.spans.empty() ? report::Cell() : report::Cell(each.spans[0].from - findings.from),
                           each.spans.empty() ? report::Cell() : report::Cell(each.spans[0].to - findings.from),
                           each.sentence, each.doubt, each.model, each.refuted_by,
                           each.frees ? report::Cell(each.frees->first) : report::Cell(),
                           each.frees ? report::Cell(each.frees->second) : report::Cell()});
  for (const UnjudgedRule& rule : findings.not_judged)
    answer.rows.push_back(
        {rule.rule, std::string("not judged"), {}, {}, {}, {}, {}, "needs " + rule.needs, {}, {}, {}, {}, {}});
  answer.when_empty = "no rule found anything";
  answer.remarks = findings.remarks;
  return answer;
}

}  // namespace tacho::analysis
