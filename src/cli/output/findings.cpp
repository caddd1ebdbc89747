// Findings as text (findings.h).
#include "cli/output/findings.h"

#include <algorithm>

#include "analysis/operators/places.h"
#include "base/format.h"
#include "base/text/json_writer.h"
#include "ranks/match/lateness.h"

namespace tacho::cli {
namespace {

using event::Table;
namespace column = event::column;

std::string track_text(const trace::Trace& trace, const analysis::DeviceNumbers& numbers, int64_t track) {
  const auto cell = [&](int at) { return trace.cell(Table::kTrack, track, at); };
  const std::string_view name = trace.text(Table::kTrack, track, column::Track::name);
  const int64_t device = cell(column::Track::device);
  if (cell(column::Track::kind) == static_cast<int64_t>(event::TrackKind::kQueue))
    return device > 0 ? numbers.text(device) : std::string("queue");
  const int64_t thread = cell(column::Track::thread);
  if (thread > 0) return fmt::format("thread {}", trace.cell(Table::kThread, thread, column::Thread::tid));
  return name.empty() ? fmt::format("track {}", track) : report::clean(name);
}

std::string paragraph(std::string_view text, size_t indent, const report::Screen& screen, size_t further = 0) {
  const size_t width = std::max<size_t>(screen.width, 40) - indent - further;
  return std::string(indent, ' ') + report::wrapped(report::clean(text), width, indent + further) + "\n";
}

std::string time_of(int64_t ns) {
  return report::format_duration(static_cast<double>(ns));
}

std::string percent_of(int64_t part, int64_t whole) {
  const double percent = whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) * 100 : 0;
  return report::format_fixed(percent, percent < 10 ? 1 : 0);
}

std::string saved(const analysis::TraceFinding& finding, int64_t length) {
  if (!finding.saves) return "what it costs cannot be told";
  const auto [low, high] = *finding.saves;
  return fmt::format("could save {} ({}{} % of the run)", analysis::savings_text(finding),
                     low > 0 ? percent_of(low, length) + " to " : "", percent_of(high, length));
}

}  // namespace

Result<analysis::Findings> findings_of(const trace::Trace& trace) {
  analysis::FindOptions options;
  if (!trace.aggregated()) {
    TACHO_ASSIGN(options.ranks, ranks::lateness(trace));
  }
  return analysis::find(trace, options);
}

std::string findings_text(const analysis::Findings& findings, const trace::Trace& trace, size_t most,
                          const report::Screen& screen) {
  const analysis::DeviceNumbers numbers(trace);
  std::string out;
  const size_t shown = most == 0 ? findings.findings.size() : std::min(most, findings.findings.size());
  for (size_t i = 0; i < shown; ++i) {
    const analysis::TraceFinding& finding = findings.findings[i];
    const std::string title = fmt::format("{}. {}{}{}", i + 1, finding.possible ? "possible: " : "", finding.title,
                                          finding.where.empty() ? "" : " (" + report::clean(finding.where) + ")");
    out += report::painted(report::wrapped(title, screen.width, 3), report::Paint::kBold, screen.colour) + "\n";
    out += paragraph(finding.sentence, 3, screen);
    out += paragraph(saved(finding, findings.length) + ": " + finding.model, 3, screen);
    if (finding.possible) out += paragraph("only possible: " + finding.doubt, 3, screen);
    for (const std::string& line : finding.evidence) out += paragraph("- " + line, 3, screen, 2);
    out += paragraph("refuted if " + finding.refuted_by, 3, screen);
    for (const std::string& line : finding.advice) out += paragraph("try: " + line, 3, screen, 5);
    if (!finding.spans.empty()) {
      out += paragraph("look at (time from the start of the trace):", 3, screen);
      for (const analysis::FindingSpan& span : finding.spans) {
        std::string where;
        for (const int64_t track : span.tracks) {
          const std::string text = track_text(trace, numbers, track);
          if (where.find(text) == std::string::npos) where += (where.empty() ? "" : ", ") + text;
        }
        out += paragraph(
            fmt::format("{} + {}  {}", time_of(span.from - findings.from), time_of(span.to - span.from), where), 5,
            screen);
      }
    }
    out += "\n";
  }
  if (shown < findings.findings.size()) out += fmt::format("… and {} more\n\n", findings.findings.size() - shown);
  if (findings.findings.empty() && findings.remarks.empty())
    out += fmt::format("none of the {} rules found anything\n",
                       findings.rules - std::min(findings.rules, findings.not_judged.size()));
  if (!findings.not_judged.empty()) {
    out += report::painted(fmt::format("Not judged: {} of {} rules", findings.not_judged.size(), findings.rules),
                           report::Paint::kBold, screen.colour) +
           "\n";
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
      out += paragraph(fmt::format("{}: need{} {}", rules, rules.find(',') == std::string::npos ? "s" : "", needs), 3,
                       screen, 2);
  }
  return out;
}

void add_findings_lines(report::Sections& out, const analysis::Findings& findings, const std::string& file) {
  if (findings.findings.empty()) return;
  out.heading("Findings");
  constexpr size_t kLines = 3;
  for (size_t i = 0; i < std::min(kLines, findings.findings.size()); ++i) {
    const analysis::TraceFinding& finding = findings.findings[i];
    const std::string line = fmt::format("{}{}{}", finding.possible ? "possible: " : "", finding.title,
                                         finding.saves ? fmt::format(": {} ({} %)", analysis::savings_text(finding),
                                                                     percent_of(finding.saves->second, findings.length))
                                                       : std::string());
    out.line("  " + report::shortened(report::clean(line), out.layout().width - 2));
  }
  if (!file.empty()) out.line("  why and where: tacho report findings " + file);
}

std::string findings_json(const analysis::Findings& findings) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("from", findings.from).member("length", findings.length).member("rules", findings.rules);
  analysis::put_findings(json, findings, findings.from);
  json.name("remarks").begin_array();
  for (const std::string& remark : findings.remarks) json.value(remark);
  json.end_array().end_object().end_line();
  return out;
}

}  // namespace tacho::cli
