// Findings as text.
#include "metric/render/text/findings_text.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "metric/render/run_names.h"

namespace tacho::metric {

namespace {

using report::Paint;

std::string number_text(double value) {
  if (std::fabs(value) >= 1e6) return report::format_si(value, 2);
  return report::format_fixed(value, value == std::floor(value) ? 0 : 2);
}

std::string percent_text(double value) {
  return report::format_fixed(value, value > 0 && value < 9.95 && value != std::floor(value) ? 1 : 0);
}

size_t text_width(const report::Screen& screen) {
  return std::clamp<size_t>(screen.width, 60, 110);
}

std::string listed(const std::vector<std::string>& names, size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

// The row of table 0.1.
size_t id_of(const Analysis& run, uint32_t kernel) {
  for (size_t i = 0; i < run.kernels().size(); ++i)
    if (run.kernels()[i].kernel == kernel) return i;
  return 0;
}

std::string plural(size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

}  // namespace

std::string savings_text(const Finding& finding) {
  const std::string low = percent_text(finding.low), high = percent_text(finding.high);
  const std::string what = finding.of.empty() ? std::string("time") : finding.of;
  if (finding.low <= 0) return fmt::format("up to {} % of its {}", high, what);
  if (low == high) return fmt::format("{} % of its {}", high, what);
  return fmt::format("{} to {} % of its {}", low, high, what);
}

std::string_view readable_unit(std::string_view unit) {
  return unit == "pct" ? "%" : unit == "Pct of Peak" ? "% of peak" : unit;
}

std::string evidence_text(const Evidence& evidence) {
  std::string line = fmt::format("{}{}{} = {}", evidence.id, evidence.id.empty() ? "" : " ", evidence.name,
                                 number_text(evidence.value));
  if (evidence.high > evidence.low)
    line += fmt::format(" [{}, {}]", number_text(evidence.low), number_text(evidence.high));
  if (!evidence.unit.empty()) line += " " + std::string(readable_unit(evidence.unit));
  std::string aside;
  if (!evidence.comparison.empty()) aside = fmt::format("{} {}", evidence.comparison, number_text(evidence.threshold));
  if (evidence.peak) aside += fmt::format("{}peak {}", aside.empty() ? "" : ", ", number_text(*evidence.peak));
  if (!aside.empty()) line += " (" + aside + ")";
  return line;
}

std::string implausible_text(const Diagnosis& diagnosis, std::string_view of, const report::Screen& screen,
                             size_t most) {
  if (diagnosis.implausible.empty()) return {};
  const size_t width = text_width(screen);
  std::vector<const Implausible*> order;
  for (const Implausible& problem : diagnosis.implausible) order.push_back(&problem);
  std::stable_sort(order.begin(), order.end(),
                   [](const Implausible* a, const Implausible* b) { return a->withheld.size() > b->withheld.size(); });
  std::string out =
      "\n" +
      report::painted(of.empty() ? "Implausible" : fmt::format("Implausible in {}", of), Paint::kBold, screen.colour) +
      "\n";
  for (size_t i = 0; i < std::min(most, order.size()); ++i) {
    std::string text = order[i]->text;
    text += order[i]->withheld.empty() ? " No finding depends on it."
                                       : fmt::format(" Withheld: {}.", listed(order[i]->withheld, 4));
    out += "  " + report::painted("!", Paint::kRed, screen.colour) + " " + report::wrapped(text, width - 4, 4) + "\n";
  }
  if (order.size() > most)
    out += report::painted(fmt::format("  {} more (--full)\n", order.size() - most), Paint::kDim, screen.colour);
  return out;
}

std::string findings_text(const Analysis& run, const report::Screen& screen, bool brief, size_t most) {
  const Diagnosis& diagnosis = run.diagnosis();
  const size_t width = text_width(screen);
  std::string out = "\n" + report::painted("Findings", Paint::kBold, screen.colour);
  const size_t judged = diagnosis.rules - std::min(diagnosis.rules, diagnosis.not_judged.size());
  out += "\n";
  if (!diagnosis.weight_words.empty())
    out += report::painted("  " +
                               report::wrapped(fmt::format("ranked by {}: times are those of the CPU "
                                                           "that ran the kernels, not of a GPU",
                                                           diagnosis.weight_words),
                                               width - 2, 2) +
                               "\n",
                           Paint::kDim, screen.colour);
  if (diagnosis.findings.empty()) {
    out += judged == 0 ? "  none: no rule could be judged\n"
                       : fmt::format("  none of the {} that could be judged found anything\n", plural(judged, "rule"));
    return out;
  }
  // Grouped by kernel, the one with the weightiest finding first.
  std::vector<uint32_t> order;
  for (const Finding& finding : diagnosis.findings)
    if (std::find(order.begin(), order.end(), finding.kernel) == order.end()) order.push_back(finding.kernel);
  // The `most` weightiest are shown, wherever they are.
  const size_t shown = std::min(most, diagnosis.findings.size());
  for (const uint32_t kernel : order) {
    bool first = true;
    int number = 0;
    for (size_t i = 0; i < shown; ++i) {
      const Finding& finding = diagnosis.findings[i];
      if (finding.kernel != kernel) continue;
      const std::string of = diagnosis.weight_words.empty() ? "time" : diagnosis.weight_words;
      if (first)
        out += fmt::format(
            "  kernel {}: {} ({} % of the {})\n", id_of(run, kernel),
            report::painted(
                cut_middle(report::clean(workload::plain_kernel_name(run.workload().kernels[kernel])), width - 44),
                Paint::kCyan, screen.colour),
            report::format_fixed(finding.share, 1), of);
      first = false;
      const Paint colour = finding.possible ? Paint::kDim : finding.severity >= 0.2 ? Paint::kRed : Paint::kYellow;
      out += "  " +
             report::wrapped(fmt::format("{}. {}{}: {}", ++number, finding.possible ? "possible: " : "",
                                         report::painted(finding.title, colour, screen.colour), savings_text(finding)),
                             width - 2, 5) +
             "\n";
      if (brief) {
        std::string line;
        for (const Evidence& evidence : finding.evidence)
          if (!evidence.comparison.empty()) line += (line.empty() ? "" : "; ") + evidence_text(evidence);
        out += "     " + report::painted(report::wrapped(line, width - 5, 5), Paint::kDim, screen.colour) + "\n";
        out += "     → " + report::wrapped(finding.advice.front(), width - 7, 7) + "\n";
        continue;
      }
      for (const Evidence& evidence : finding.evidence)
        out += "     " +
               report::painted(report::wrapped(evidence_text(evidence), width - 5, 7), Paint::kDim, screen.colour) +
               "\n";
      if (finding.possible)
        out += "     " + report::wrapped("Only possible: " + finding.doubt + ".", width - 5, 5) + "\n";
      out += "     " + report::wrapped(finding.meaning, width - 5, 5) + "\n";
      out += "     " + report::wrapped("Could be saved: " + finding.model + ".", width - 5, 5) + "\n";
      for (const std::string& advice : finding.advice) out += "     → " + report::wrapped(advice, width - 7, 7) + "\n";
    }
  }
  if (diagnosis.left_out > 0)
    out += report::painted(fmt::format("  {} not judged: each has less than 1 % of the time, or ten have more\n",
                                       plural(diagnosis.left_out, "kernel")),
                           Paint::kDim, screen.colour);
  if (shown < diagnosis.findings.size())
    out += report::painted(fmt::format("  {} more {} (--full)\n", diagnosis.findings.size() - shown,
                                       diagnosis.findings.size() - shown == 1 ? "finding" : "findings"),
                           Paint::kDim, screen.colour);
  return out;
}

std::string not_judged_text(const Diagnosis& diagnosis, const report::Screen& screen, bool brief) {
  if (diagnosis.not_judged.empty()) return {};
  const size_t width = text_width(screen);
  std::vector<std::string> titles, tables, corrections, counters;
  const auto add = [](std::vector<std::string>& list, const std::string& text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  };
  for (const NotJudged& entry : diagnosis.not_judged) {
    titles.push_back(entry.title);
    bool of_machine = true;
    for (const std::string& name : entry.missing) {
      add(name.starts_with('$') ? corrections : counters, name);
      of_machine = of_machine && name.starts_with('$');
    }
    if (!of_machine)
      for (const std::string& table : entry.collect) add(tables, table);
  }
  std::sort(tables.begin(), tables.end(), [](const std::string& a, const std::string& b) {
    return std::pair(std::stoi(a), std::stoi(a.substr(a.find('.') + 1))) <
           std::pair(std::stoi(b), std::stoi(b.substr(b.find('.') + 1)));
  });
  std::string text = fmt::format("{} of {} rules lack inputs: {}.", titles.size(), diagnosis.rules,
                                 listed(titles, brief ? 3 : titles.size()));
  if (!brief && !counters.empty()) text += fmt::format(" Missing {}.", listed(counters, 12));
  if (!tables.empty()) {
    std::string ids;
    for (const std::string& table : tables) ids += " " + table;
    text += fmt::format(" `tacho profile -b{}` collects what they need.", ids);
  }
  if (!corrections.empty()) {
    std::string names;
    for (const std::string& name : corrections)
      names += fmt::format("{}{}:N", names.empty() ? "" : ",", name.substr(1));
    text += fmt::format(" sysinfo.csv lacks {}: --specs-correction {}.", listed(corrections, 6), names);
  }
  return "  " + report::wrapped(text, width - 2, 2) + "\n";
}

}  // namespace tacho::metric
