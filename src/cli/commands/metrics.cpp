// `tacho metrics [--arch A] [NAME...]`: lists the metrics of an architecture, and explains blocks, tables and metrics.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"
#include "metric/expression/expression.h"
#include "report/output.h"
#include "report/table.h"
#include "report/value.h"

namespace tacho::cli {
namespace {

using metric::Block;
using metric::Catalog;
using metric::ColumnRole;
using metric::Metric;
using metric::MetricTable;
using metric::Reduction;
using metric::Selection;
using report::JsonValue;
using report::Paint;

struct Request {
  std::string architecture;  // "" = newest for lists, all of them for explanations
  std::vector<std::string> names;
  std::vector<std::string> config_dirs;
  metric::IdScheme ids = metric::IdScheme::kV33;
};

std::string_view kind_name(metric::Kind kind) {
  switch (kind) {
    case metric::Kind::kSum:
      return "sum";
    case metric::Kind::kRate:
      return "rate";
    case metric::Kind::kRatio:
      return "ratio";
  }
  return "";
}

std::string shown_unit(std::string_view unit) {
  return metric::normalised_unit(unit, "per_kernel");
}

/// The counters and $values that formulas read.
struct Inputs {
  std::set<std::string, std::less<>> counters;
  std::set<std::string, std::less<>> values;
};

Inputs inputs_of(const MetricTable& table, const Metric& metric) {
  Inputs out;
  for (size_t i = 0; i < metric.cells.size(); ++i) {
    if (table.columns[i].role != ColumnRole::kValue) continue;
    const auto formula = metric::parse_formula(metric.cells[i].formula);
    if (!formula) continue;
    for (const metric::FormulaStep& step : formula->steps) {
      if (step.op == metric::FormulaOp::kCounter || step.op == metric::FormulaOp::kChannel ||
          step.op == metric::FormulaOp::kSumOf)
        out.counters.emplace(step.text);
      if (step.op == metric::FormulaOp::kValue && step.text != "channel") out.values.emplace(step.text);
    }
  }
  return out;
}

std::string joined(const std::set<std::string, std::less<>>& words) {
  std::string out;
  for (const std::string& word : words) out += fmt::format("{}{}", out.empty() ? "" : ", ", word);
  return out;
}

/// One metric as several architectures define it.
struct Explained {
  std::vector<const Catalog*> catalogs;
  std::vector<const Metric*> metrics;
};

/// A metric's formulas, one line per column; the statistics of one value share a line.
std::string formulas(const MetricTable& table, const std::vector<metric::Cell>& cells) {
  std::string out;
  std::string statistics;
  const metric::Cell* shared = nullptr;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (table.columns[i].role != ColumnRole::kValue || cells[i].reduction == Reduction::kNone) continue;
    if (shared != nullptr && shared->formula != cells[i].formula) continue;
    shared = &cells[i];
    statistics += fmt::format("{}{}", statistics.empty() ? "" : ", ", table.columns[i].title);
  }
  if (shared != nullptr) out += fmt::format("{}\n{}\n", statistics, shared->formula);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (table.columns[i].role != ColumnRole::kValue) continue;
    const metric::Cell& cell = cells[i];
    if (shared != nullptr && cell.reduction != Reduction::kNone && cell.formula == shared->formula) continue;
    if (cell.formula.empty()) continue;
    out += fmt::format("{}\n{}\n", table.columns[i].title, metric::formula_text(cell));
  }
  if (out.empty()) out = "not computable on this architecture\n";
  return out;
}

class Printer {
 public:
  explicit Printer(const report::Screen& screen)
      : colour_(screen.colour),
        wide_(!screen.terminal || screen.width >= 108),
        width_(std::clamp<size_t>(screen.width, 60, 110)) {
    constexpr size_t kBeside = 14, kSlug = 44;  // the number and the longest slug
    if (!wide_) name_ = std::clamp<size_t>(screen.width - std::min(screen.width, kBeside + kSlug), 12, name_);
  }

  std::string out;

  void heading(std::string_view text) { out += report::painted(text, Paint::kBold, colour_) + "\n"; }
  void paragraph(std::string_view text, size_t indent) {
    out += std::string(indent, ' ') + report::wrapped(text, width_ - indent, indent) + "\n";
  }
  void labelled(std::string_view label, std::string_view text) {
    constexpr size_t kLabel = 12;
    out += "  " + report::painted(report::padded_right(label, kLabel - 2), Paint::kDim, colour_) +
           report::wrapped(text, width_ - kLabel, kLabel) + "\n";
  }

  void list(const Catalog& catalog, const Block& block, const MetricTable* only, bool explain) {
    heading(fmt::format("{}. {}", block.number, block.title));
    if (explain && only == nullptr) {
      paragraph(block.description, 2);
      std::string aliases(block.slug);
      for (const std::string_view alias : block.aliases) aliases += fmt::format(", {}", alias);
      labelled("names", aliases);
    }
    for (const MetricTable& table : block.tables) {
      if (only != nullptr && &table != only) continue;
      out += fmt::format("\n  {}\n", report::painted(fmt::format("{}.{} {}", block.number, table.number, table.title),
                                                     Paint::kBold, colour_));
      if (table.type != metric::TableType::kMetrics) {
        paragraph("Comes from the run's own files; it has no metrics.", 4);
        continue;
      }
      if (table.metrics.empty()) {
        paragraph(fmt::format("No metrics on {}.", catalog.architecture), 4);
        continue;
      }
      for (const Metric& metric : table.metrics) {
        const std::string id =
            table.repeat.empty() ? to_string(metric.id) : fmt::format("{}.{}.n", block.number, table.number);
        const std::string unit = wide_ ? report::padded_right(shown_unit(metric.unit), 22) + " " : std::string();
        out += fmt::format("    {} {} {}{}\n", report::padded_right(id, 8),
                           report::padded_right(report::shortened(metric.name, name_), name_), unit,
                           report::painted(metric.slug, Paint::kCyan, colour_));
        if (explain) paragraph(metric.description, 13);
      }
    }
    out += "\n";
  }

  void explain(const Explained& what, const metric::RuleBook& rules) {
    const Metric& metric = *what.metrics.back();
    const Catalog& catalog = *what.catalogs.back();
    const MetricTable& table = catalog.table_of(metric);
    const Block& block = *catalog.block(metric.id.block);
    heading(fmt::format("{}  ({})", metric.name, metric.slug));
    paragraph(metric.description, 2);
    labelled("try", metric.advice);
    labelled("block",
             fmt::format("{} {}, table {}.{} {}", block.number, block.title, block.number, table.number, table.title));
    labelled("unit",
             fmt::format("{}, a {}", metric.unit.empty() ? "none" : shown_unit(metric.unit), kind_name(metric.kind)));
    if (!metric.coll_level.empty())
      labelled("pass", fmt::format("{}: counters and times of this pass only", metric.coll_level));

    std::string numbers;
    for (size_t i = 0; i < what.metrics.size(); ++i) {
      const std::string id = table.repeat.empty() ? to_string(what.metrics[i]->id)
                                                  : fmt::format("{}.{}.<channel>", block.number, table.number);
      numbers += fmt::format("{}{} {}", numbers.empty() ? "" : ", ", what.catalogs[i]->architecture, id);
    }
    labelled("number", numbers);

    // Architectures with the same formulas share a paragraph.
    std::vector<std::string> distinct;
    std::vector<std::string> where;
    std::vector<Inputs> inputs;
    for (size_t i = 0; i < what.metrics.size(); ++i) {
      const std::string text = formulas(what.catalogs[i]->table_of(*what.metrics[i]), what.metrics[i]->cells);
      const auto known = std::find(distinct.begin(), distinct.end(), text);
      const std::string name(what.catalogs[i]->architecture);
      if (known != distinct.end()) {
        where[static_cast<size_t>(known - distinct.begin())] += ", " + name;
      } else {
        distinct.push_back(text);
        where.push_back(name);
        inputs.push_back(inputs_of(what.catalogs[i]->table_of(*what.metrics[i]), *what.metrics[i]));
      }
    }
    for (size_t i = 0; i < distinct.size(); ++i) {
      out += "\n  " +
             report::painted(distinct.size() == 1 && what.metrics.size() > 1 ? "Formula" : "Formula on " + where[i],
                             Paint::kBold, colour_) +
             "\n";
      indented_pairs(distinct[i]);
      if (!inputs[i].counters.empty()) labelled("counters", joined(inputs[i].counters));
    }
    values(catalog, inputs_of(table, metric));
    compat(what);
    findings(metric, rules);
    out += "\n";
  }

 private:
  /// Formats "Avg, Min\nformula\n..." as lines with label and formula.
  void indented_pairs(std::string_view text) {
    while (!text.empty()) {
      const size_t first = text.find('\n');
      const std::string_view label = text.substr(0, first);
      text.remove_prefix(std::min(text.size(), first + 1));
      if (text.empty()) {
        paragraph(label, 4);
        return;
      }
      const size_t second = text.find('\n');
      out += fmt::format("    {}\n", report::painted(label, Paint::kDim, colour_));
      paragraph(text.substr(0, second), 6);
      text.remove_prefix(std::min(text.size(), second + 1));
    }
  }

  void values(const Catalog& catalog, const Inputs& inputs) {
    if (inputs.values.empty()) return;
    out += "\n  " + report::painted("Values of the run and the machine", Paint::kBold, colour_) + "\n";
    for (const metric::RunValue& value : catalog.run_values)
      if (inputs.values.contains(value.name)) paragraph(fmt::format("${}: {}", value.name, value.meaning), 4);
  }

  void compat(const Explained& what) {
    std::vector<std::pair<std::string, std::string>> groups;  // formulas, architectures
    for (size_t i = 0; i < what.metrics.size(); ++i) {
      if (what.metrics[i]->compat_cells.empty()) continue;
      const std::string text = formulas(what.catalogs[i]->table_of(*what.metrics[i]), what.metrics[i]->compat_cells);
      const auto known =
          std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == text; });
      if (known != groups.end()) {
        known->second += fmt::format(", {}", what.catalogs[i]->architecture);
      } else {
        groups.emplace_back(text, what.catalogs[i]->architecture);
      }
    }
    for (const auto& [text, where] : groups) {
      out += "\n  " + report::painted("With --compat 3.3 on " + where, Paint::kBold, colour_) + "\n";
      indented_pairs(text);
    }
  }

  void findings(const Metric& metric, const metric::RuleBook& rules) {
    std::string used;
    for (const metric::Rule& rule : rules.rules) {
      bool any = false;
      metric::for_each_deciding(rule, [&](const metric::RuleExpression& quantity) {
        for (const metric::FormulaStep& step : quantity.steps)
          any = any || (step.op == metric::FormulaOp::kMetric && step.text == metric.slug);
      });
      if (any) used += fmt::format("{}{} ({})", used.empty() ? "" : "; ", rule.title, rule.slug);
    }
    if (!used.empty()) {
      out += "\n";
      labelled("findings", used);
    }
  }

  bool colour_;
  bool wide_;  // lists have room for the unit
  size_t width_;
  size_t name_ = 34;  // columns of a metric's name in a list
};

JsonValue value_of(const Catalog& catalog, const Metric& metric) {
  const MetricTable& table = catalog.table_of(metric);
  JsonValue columns = JsonValue::object({});
  for (size_t i = 0; i < metric.cells.size(); ++i)
    if (table.columns[i].role == ColumnRole::kValue || table.columns[i].role == ColumnRole::kText)
      columns.set(table.columns[i].title, metric::formula_text(metric.cells[i]));
  return JsonValue::object({{"id", to_string(metric.id)},
                            {"slug", metric.slug},
                            {"name", metric.name},
                            {"unit", metric.unit},
                            {"kind", kind_name(metric.kind)},
                            {"coll_level", metric.coll_level},
                            {"description", metric.description},
                            {"advice", metric.advice},
                            {"columns", std::move(columns)},
                            {"counters", JsonValue::list_of(inputs_of(table, metric).counters)}});
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// How many characters both begin with, whatever their case.
size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  while (at < most && lower(a[at]) == lower(b[at])) ++at;
  return at;
}

// What a catalog knows of the counter `name`, with or without what it adds up to (sm__inst_executed.sum, TCC_HIT_sum).
struct Readers {
  std::string slugs;              // of metrics that read it
  std::vector<std::string> near;  // counters that begin as it does, most alike first
};

Readers readers_of(const Catalog& catalog, std::string_view name) {
  Readers out;
  size_t count = 0;
  constexpr size_t kShown = 6, kNear = 3;
  std::set<std::pair<size_t, std::string>> near;  // by what is not common
  for (const Block& block : catalog.blocks)
    for (const MetricTable& table : block.tables)
      for (const Metric& metric : table.metrics) {
        bool reads = false;
        for (const std::string& counter : inputs_of(table, metric).counters) {
          const size_t common = common_prefix(counter, name);
          const std::string_view rest = std::string_view(counter).substr(common);
          if (common == name.size() && (rest.empty() || rest.starts_with('.') || rest == "_sum")) reads = true;
          if (common >= 4 && common * 3 >= name.size() * 2) near.emplace(name.size() - common, counter);
        }
        if (reads && ++count <= kShown) out.slugs += fmt::format("{}{}", out.slugs.empty() ? "" : ", ", metric.slug);
      }
  if (count > kShown) out.slugs += fmt::format(" and {} more", count - kShown);
  for (const auto& [differs, counter] : near)
    if (out.near.size() < kNear) out.near.push_back(counter);
  return out;
}

// Why `name` is found on none of the architectures that were asked for: `message`, unless others have it.
Error not_found(const std::string& name, const Request& request, const std::string& message) {
  std::string where, others, readers, near, counters;
  const std::span<const std::string_view> asked = metric::architectures();
  std::string_view example;  // of the others
  for (const std::string_view vendor : metric::vendors())
    for (const std::string_view architecture : metric::architectures(vendor)) {
      const auto catalog = metric::load_catalog(architecture, request.config_dirs, metric::check_syntax);
      if (!catalog) continue;
      const auto resolved = resolve(*catalog, name, request.ids);
      const bool of_asked = std::find(asked.begin(), asked.end(), architecture) != asked.end();
      if (resolved || resolved.error().message.starts_with('"')) {
        std::string& list = of_asked ? where : others;
        list += fmt::format("{}{}", list.empty() ? "" : ", ", architecture);
        if (!of_asked && resolved) example = architecture;
      } else if (near.empty() && resolved.error().message.find("; near it: ") != std::string::npos) {
        near = resolved.error().message;
      }
      const Readers found = readers_of(*catalog, name);
      if (readers.empty() && !found.slugs.empty())
        readers = fmt::format("\"{}\" is a counter; metrics of {} that read it: {}", name, architecture, found.slugs);
      if (counters.empty() && !found.near.empty())
        for (const std::string& counter : found.near)
          counters += fmt::format("{}{}", counters.empty() ? "" : ", ", counter);
    }
  if (!request.architecture.empty() && !(where + others).empty()) {
    const std::string all = where + (where.empty() || others.empty() ? "" : ", ") + others;
    return Error{fmt::format("there is no block, table or metric \"{}\" on {}, but on {}: tacho metrics {}{}", name,
                             request.architecture, all, where.empty() ? fmt::format("--arch {} ", example) : "",
                             shell_word(name))};
  }
  if (!where.empty()) return Error{message};
  if (!example.empty())
    return Error{fmt::format("\"{}\" is on {}: tacho metrics --arch {} {}", name, others, example, shell_word(name))};
  if (!readers.empty()) return Error{readers};
  if (!request.architecture.empty() && near.empty() && counters.empty()) return Error{message};
  if (!near.empty()) return Error{message.find("; near it: ") != std::string::npos ? message : near};
  if (!counters.empty())
    return Error{
        fmt::format("there is no block, table, metric or counter \"{}\"; counters near it: {}", name, counters)};
  return Error{fmt::format(
      "there is no block, table or metric \"{}\" on any architecture; `tacho metrics --arch ARCH` lists those of one",
      name)};
}

Result<std::string> as_json(const Catalog& catalog, const Request& request) {
  JsonValue metrics = JsonValue::lines();
  const auto add_table = [&](const MetricTable& table) {
    for (const Metric& metric : table.metrics) metrics.add(value_of(catalog, metric));
  };
  if (request.names.empty())
    for (const Block& block : catalog.blocks)
      for (const MetricTable& table : block.tables) add_table(table);
  for (const std::string& name : request.names) {
    const auto resolved = resolve(catalog, name, request.ids);
    if (!resolved) return tl::unexpected(not_found(name, request, resolved.error().message));
    const Selection selection = *resolved;
    if (selection.metric != nullptr)
      metrics.add(value_of(catalog, *selection.metric));
    else if (selection.table != nullptr)
      add_table(*selection.table);
    else
      for (const MetricTable& table : selection.block->tables) add_table(table);
  }
  return JsonValue::object(
             {{"schema", "tacho-metrics/1"}, {"arch", catalog.architecture}, {"metrics", std::move(metrics)}})
             .text() +
         "\n";
}

Result<std::string> as_text(const std::vector<Catalog>& catalogs, const Request& request,
                            const report::Screen& screen) {
  Printer printer(screen);
  const Catalog& newest = catalogs.back();
  if (request.names.empty()) {
    printer.paragraph(
        fmt::format("{} metrics of {} ({}); `tacho metrics NAME` explains one, --arch chooses another GPU",
                    newest.metric_count(), newest.architecture, newest.facts.family),
        0);
    printer.out += "\n";
    for (const Block& block : newest.blocks) printer.list(newest, block, nullptr, false);
    return std::move(printer.out);
  }
  TACHO_ASSIGN(const metric::RuleBook rules, metric::load_rules(newest, request.config_dirs));
  for (const std::string& name : request.names) {
    // A number may mean different metrics on different architectures: explains each of them.
    std::vector<Explained> found;
    const Selection* whole = nullptr;
    Selection selection;
    std::string problem, note;
    std::vector<std::pair<std::string, std::string>> ambiguous;  // what the name may mean, and where
    for (const Catalog& catalog : catalogs) {
      auto resolved = resolve(catalog, name, request.ids);
      if (!resolved.has_value()) {
        const std::string& message = resolved.error().message;
        const std::string architecture(catalog.architecture);
        if (problem.empty() || message.find("; near it: ") != std::string::npos) problem = message;
        if (!message.starts_with('"')) continue;
        problem = message;
        const auto same =
            std::find_if(ambiguous.begin(), ambiguous.end(), [&](const auto& one) { return one.first == message; });
        if (same != ambiguous.end())
          same->second += ", " + architecture;
        else
          ambiguous.emplace_back(message, architecture);
        continue;
      }
      const std::string meaning = documents_meaning(catalog, name, *resolved);
      if (!meaning.empty() && request.ids == metric::IdScheme::kV33)
        note = ids_note(catalog, {&meaning, 1});
      else if (!meaning.empty())
        note = fmt::format("in the users' documents {}; `tacho metrics {}` explains the other", meaning,
                           resolved->elsewhere->slug);
      if (resolved->metric == nullptr) {
        selection = *resolved;
        whole = &selection;
        continue;
      }
      const auto same = std::find_if(found.begin(), found.end(), [&](const Explained& one) {
        return one.metrics.front()->slug == resolved->metric->slug;
      });
      Explained& one = same != found.end() ? *same : found.emplace_back();
      one.catalogs.push_back(&catalog);
      one.metrics.push_back(resolved->metric);
    }
    if (whole != nullptr) {
      printer.list(newest, *whole->block, whole->table, true);
      continue;
    }
    if (found.empty() && ambiguous.empty()) return tl::unexpected(not_found(name, request, problem));
    if (found.empty()) return fail("on {}: {}", ambiguous.front().second, ambiguous.front().first);
    for (const Explained& one : found) printer.explain(one, rules);
    for (const auto& [message, where] : ambiguous) complain(kOk, fmt::format("on {}: {}", where, message));
    if (!note.empty()) complain(kOk, note);
  }
  return std::move(printer.out);
}

}  // namespace

int run_metrics(int argc, char** argv) {
  Request request;
  std::string ids = "3.3";
  std::string format = "text";
  CommandOptions app("Lists the metrics of an architecture and explains blocks, tables and metrics.", "tacho metrics");
  app.footer("Examples:\n"
             "  tacho metrics --arch mi300x           all metrics of an architecture\n"
             "  tacho metrics valu-utilization        one metric: meaning, formula, counters\n"
             "  tacho metrics lds --arch gfx942       those of a block");
  app.add_option("name", request.names, "number (11.2.3), slug (valu-utilization), block (lds) or name to explain");
  app.add_option("--arch", request.architecture, "architecture or GPU: gfx942, mi300x, ...");
  app.add_option("--ids", ids, "meaning of numbers: 3.3, or seed for those printed in the users' documents")
      .one_of({"3.3", "seed"})
      .capture_default_str();
  app.add_option("--config-dir", request.config_dirs, "folder with further catalog files (*.yaml)");
  app.add_option("--output-format", format, "text or json").one_of({"text", "json"}).capture_default_str();
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (ids == "seed") request.ids = metric::IdScheme::kSeedProfile;

  std::vector<std::string_view> wanted;
  const std::span<const std::string_view> known = metric::architectures();
  if (!request.architecture.empty()) {
    const auto named = metric::architecture_named(request.architecture, request.config_dirs, metric::check_syntax);
    if (!named) return complain(kBadInput, named.error().message);
    if (*named) request.architecture = std::string((*named)->name);
    wanted.push_back(request.architecture);
  } else if (request.names.empty() || format == "json") {
    wanted.push_back(known.back());
  } else {
    wanted.assign(known.begin(), known.end());
  }
  std::vector<Catalog> catalogs;
  for (const std::string_view architecture : wanted) {
    auto catalog = metric::load_catalog(architecture, request.config_dirs, metric::check_syntax);
    if (!catalog.has_value()) return complain(kBadInput, catalog.error().message);
    catalogs.push_back(std::move(*catalog));
  }
  const auto text = format == "json" ? as_json(catalogs.back(), request)
                                     : as_text(catalogs, request, report::screen_of(STDOUT_FILENO));
  if (!text.has_value()) return complain(kBadInput, text.error().message);
  report::put(*text);
  return kOk;
}

}  // namespace tacho::cli
