// Findings as text (findings.h).
#include "cli/output/findings.h"

#include <algorithm>

#include "analysis/operators/places.h"
#include "base/format.h"
#include "efficiency/findings/operator_findings.h"
#include "ranks/match/lateness.h"
#include "report/shorten.h"
#include "trace/read/rows.h"

namespace tacho::cli {
namespace {

std::string track_text(const trace::Trace& trace, const analysis::DeviceNumbers& numbers, int64_t number) {
  const auto track = trace::row<event::row::Track>(trace, number);
  if (track.kind == event::TrackKind::kQueue)
    return track.device > 0 ? numbers.text(track.device) : std::string("queue");
  if (track.thread > 0) return fmt::format("thread {}", trace::cell<event::column::Thread::tid>(trace, track.thread));
  const std::string_view name = trace.string(track.name);
  return name.empty() ? fmt::format("track {}", number) : report::clean(name);
}

std::string time_of(int64_t ns) {
  return report::format_duration(static_cast<double>(ns));
}

std::string percent_of(int64_t part, int64_t whole) {
  const double percent = whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) * 100 : 0;
  return report::format_fixed(percent, percent < 10 ? 1 : 0);
}

std::string saved(const analysis::TraceFinding& finding, int64_t length) {
  if (finding.frees) return analysis::gains_text(finding) + " of memory";
  if (!finding.saves) return "its cost is not known";
  const auto [low, high] = *finding.saves;
  return fmt::format("could save {} ({}{} % of the run)", analysis::savings_text(finding),
                     low > 0 ? percent_of(low, length) + " to " : "", percent_of(high, length));
}

}  // namespace

Result<analysis::Findings> findings_of(const trace::Trace& trace) {
  analysis::FindOptions options;
  if (!trace.aggregated()) {
    TACHO_ASSIGN(options.ranks, ranks::lateness(trace));
    TACHO_ASSIGN(options.operators, efficiency::operator_roofs(trace));
  }
  return analysis::find(trace, options);
}

std::string findings_text(const analysis::Findings& findings, const trace::Trace& trace, size_t most, bool missing,
                          const report::Screen& screen) {
  const analysis::DeviceNumbers numbers(trace);
  report::Sections out({.width = screen.width, .colour = screen.colour});
  const auto say = [&](std::string_view text, size_t further = 0, size_t indent = 3) {
    const size_t room = screen.width - std::min(screen.width - 1, indent + further);
    out.sentence(report::with_short_words(report::clean(text), room), indent, further);
  };
  const size_t shown = most == 0 ? findings.findings.size() : std::min(most, findings.findings.size());
  for (size_t i = 0; i < shown; ++i) {
    const analysis::TraceFinding& finding = findings.findings[i];
    out.painted_sentence(fmt::format("{}. {}{}{}", i + 1, finding.possible ? "possible: " : "", finding.title,
                                     finding.where.empty() ? "" : " (" + report::clean(finding.where) + ")"),
                         report::Paint::kBold, 3);
    say(finding.sentence);
    say(saved(finding, findings.length) + ": " + finding.model);
    if (finding.possible) say("only possible: " + finding.doubt);
    for (const std::string& line : finding.evidence) say("- " + line, 2);
    say("refuted if " + finding.refuted_by);
    for (const std::string& line : finding.advice) say("try: " + line, 5);
    if (!finding.spans.empty()) say("look at (time from the start of the trace):");
    for (const analysis::FindingSpan& span : finding.spans) {
      std::string where;
      for (const int64_t track : span.tracks) {
        const std::string text = track_text(trace, numbers, track);
        if (where.find(text) == std::string::npos) where += (where.empty() ? "" : ", ") + text;
      }
      say(fmt::format("{} + {}  {}", time_of(span.from - findings.from), time_of(span.to - span.from), where), 0, 5);
    }
    out.line("");
  }
  if (shown < findings.findings.size()) out.line(fmt::format("… and {} more\n", findings.findings.size() - shown));
  const bool judged = findings.remarks.empty();
  if (judged && !findings.device_work)
    say(fmt::format("This trace has no kernels, copies or fills, so only rules about the host can find anything{}.",
                    trace.rows(event::Table::kSample) > 0
                        ? ""
                        : "; call stacks tell where the host's time goes (tacho sys sample)"),
        0, 0);
  if (findings.findings.empty() && judged)
    out.line(fmt::format("None of the {} rules that could be judged found anything.",
                         findings.rules - std::min(findings.rules, findings.not_judged.size())));
  if (findings.not_judged.empty()) return out.take();
  const std::string count = fmt::format("{} of {} rules", findings.not_judged.size(), findings.rules);
  if (!missing) {
    say(count + " could not be judged: --missing lists what they need.", 0, 0);
    return out.take();
  }
  out.painted_sentence("Not judged: " + count, report::Paint::kBold);
  std::vector<std::pair<std::string, std::string>> by_need;  // needs, rules
  for (const analysis::UnjudgedRule& rule : findings.not_judged) {
    const auto known =
        std::find_if(by_need.begin(), by_need.end(), [&](const auto& one) { return one.first == rule.needs; });
    if (known == by_need.end())
      by_need.emplace_back(rule.needs, rule.rule);
    else
      known->second += ", " + rule.rule;
  }
  for (const auto& [needs, rules] : by_need)
    say(fmt::format("{}: need{} {}", rules, rules.find(',') == std::string::npos ? "s" : "", needs), 2);
  return out.take();
}

void add_findings_lines(report::Sections& out, const analysis::Findings& findings, const std::string& file) {
  if (findings.findings.empty()) return;
  out.heading("Findings (percentages are of the run)");
  constexpr size_t kLines = 3;
  for (size_t i = 0; i < std::min(kLines, findings.findings.size()); ++i) {
    const analysis::TraceFinding& finding = findings.findings[i];
    const std::string title = (finding.possible ? "possible: " : "") + report::clean(finding.title);
    std::string gains = analysis::gains_text(finding);
    if (!gains.empty()) gains = ": " + gains;
    if (finding.saves) gains += fmt::format(" ({} %)", percent_of(finding.saves->second, findings.length));
    out.sentence(title + gains);
  }
  if (!file.empty()) out.line("  why and where: tacho report findings " + file);
}

std::string findings_json(const analysis::Findings& findings) {
  report::JsonValue document =
      report::JsonValue::object({{"from", findings.from}, {"length", findings.length}, {"rules", findings.rules}});
  analysis::add_findings(document, findings, findings.from);
  return document.text() + "\n";
}

}  // namespace tacho::cli
