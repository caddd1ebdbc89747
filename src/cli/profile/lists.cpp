// The lists of `profile`: blocks, metrics and metric sets in the layout of the users' documents.
#include <algorithm>

#include "base/format.h"
#include "cli/command.h"
#include "cli/profile/profile.h"
#include "metric/catalog/catalog.h"

namespace tacho::cli {

namespace {

// What -b takes for this metric with the same --ids.
std::string printed_id(const metric::Catalog& catalog, const metric::Metric& metric, bool seed) {
  std::string id = metric::to_string(metric.id);
  if (!seed) return id;
  for (const metric::SeedId& each : catalog.seed_ids)
    if (each.profile && each.slug == metric.slug) return metric::to_string(each.id);
  // The documents do not print this metric, and may use its number for another one.
  const auto meant = metric::resolve(catalog, id, metric::IdScheme::kSeedProfile);
  return meant && meant->metric == &metric ? id : std::string(metric.slug);
}

}  // namespace

std::string list_of_metrics(const metric::Catalog& catalog, bool seed) {
  std::string out;
  for (const metric::Block& block : catalog.blocks) {
    out += fmt::format("{} -> {}\n", block.number, block.title);
    for (const metric::MetricTable& table : block.tables) {
      if (table.metrics.empty()) continue;
      out += fmt::format("      {}.{} -> {}\n", block.number, table.number, table.title);
      for (const metric::Metric& metric : table.metrics)
        out += fmt::format("               {} -> {}\n", printed_id(catalog, metric, seed), metric.name);
    }
  }
  return out;
}

void complain_of_seed_ids(const metric::Catalog& catalog) {
  for (const metric::SeedId& each : catalog.seed_ids) {
    const std::string id = metric::to_string(each.id);
    const auto meant = metric::resolve(catalog, id, metric::IdScheme::kSeedProfile);
    if (each.profile && meant && meant->elsewhere != nullptr)
      complain(kOk, fmt::format("in the users' documents {}; profile -b {} --ids seed collects both",
                                documents_meaning(catalog, id, *meant), id));
  }
}

std::string list_of_blocks(const metric::Catalog& catalog) {
  std::string out;
  for (const metric::Block& block : catalog.blocks) {
    std::string aliases;
    for (const std::string_view alias : block.aliases)
      aliases += fmt::format("{}{}", aliases.empty() ? "" : ", ", alias);
    out += fmt::format("{:<3} {:<54} {}\n", block.number, block.title,
                       aliases.empty() ? std::string(block.slug) : aliases);
  }
  return out;
}

std::string list_of_sets(const metric::Catalog& catalog, const std::string& program, bool seed) {
  const std::string double_line(115, '='), line(115, '-');
  std::string out = "Available Sets:\n" + double_line + "\n";
  const auto row = [&](std::string_view option, std::string_view title, std::string_view name, std::string_view id) {
    out += fmt::format("{:<35} {:<35} {:<30} {}\n", option, title, name, id);
  };
  row("Set Option", "Set Title", "Metric Name", "Metric ID");
  out += line + "\n";
  for (const metric::MetricSet& set : catalog.sets) {
    bool first = true;
    for (const std::string_view slug : set.metrics) {
      const metric::Metric* const metric = catalog.metric(slug);
      if (metric == nullptr) continue;
      row(first ? set.name : "", first ? set.title : "", metric->name, printed_id(catalog, *metric, seed));
      first = false;
    }
    out += '\n';
  }
  if (!catalog.sets.empty())
    out += fmt::format("Usage Examples:\n{0} --set {1}  # Profile this set\n{0} --list-sets        # Show this help\n",
                       program, catalog.sets.front().name);
  return out;
}

}  // namespace tacho::cli
