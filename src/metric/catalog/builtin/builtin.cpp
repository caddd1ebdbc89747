// Loads the built-in catalog and rules, and adds those of the user's folders.
#include "metric/catalog/builtin/builtin.h"

#include <algorithm>
#include <iterator>

#include "metric/catalog/add_rules.h"
#include "metric/catalog/architectures.h"
#include "metric/catalog/blob.h"
#include "metric/catalog/builtin/bytes.h"
#include "metric/catalog/files.h"
#include "metric/catalog/yaml/yaml.h"

namespace tacho::metric {
namespace {

std::string_view blob() {
  return {reinterpret_cast<const char*>(kEmbeddedCatalog), kEmbeddedCatalogSize};
}

const std::vector<Architecture>& built_in() {
  static const std::vector<Architecture> known = decode_architectures(blob()).value_or(std::vector<Architecture>());
  return known;
}

Result<std::vector<Architecture>> users_architectures(std::span<const std::string> config_dirs,
                                                      const FormulaCheck& check) {
  std::vector<CatalogFile> files;
  for (const std::string& folder : config_dirs) {
    TACHO_ASSIGN(std::vector<CatalogFile> more, read_catalog_folder(folder));
    std::move(more.begin(), more.end(), std::back_inserter(files));
  }
  return read_more_architectures(files, built_in_architecture, check);
}

/// The architecture that a user means by `text`.
const Architecture* named(std::span<const Architecture> known, std::string_view text) {
  for (const Architecture& one : known)
    if (one.metrics && (one.name == text || std::find(one.names.begin(), one.names.end(), text) != one.names.end()))
      return &one;
  return nullptr;
}

}  // namespace

std::span<const std::string_view> vendors() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Architecture& one : built_in())
      if (out.empty() || out.back() != one.vendor) out.push_back(one.vendor);
    return out;
  }();
  return names;
}

std::span<const std::string_view> architectures(std::string_view vendor) {
  static const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> by_vendor = [] {
    std::vector<std::pair<std::string_view, std::vector<std::string_view>>> out;
    for (const std::string_view each : vendors()) {
      auto& list = out.emplace_back(each, std::vector<std::string_view>()).second;
      for (const Architecture& one : built_in())
        if (one.vendor == each && one.metrics) list.push_back(one.name);
    }
    return out;
  }();
  for (const auto& [name, list] : by_vendor)
    if (name == vendor) return list;
  return {};
}

std::optional<Architecture> built_in_architecture(std::string_view name) {
  for (const Architecture& one : built_in())
    if (one.name == name) return one;
  return std::nullopt;
}

Result<std::optional<Architecture>> architecture_named(std::string_view text, std::span<const std::string> config_dirs,
                                                       const FormulaCheck& check) {
  TACHO_ASSIGN(const std::vector<Architecture> more, users_architectures(config_dirs, check));
  std::string wanted(text);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  // Workload folders are called MI300X_A1; HIP reports gfx942:sramecc+:xnack-.
  const std::string_view start = std::string_view(wanted).substr(0, wanted.find_first_of("_:"));
  for (const std::string_view each : {std::string_view(wanted), start})
    for (const std::span<const Architecture> known : {std::span(more), std::span(built_in())})
      if (const Architecture* found = named(known, each); found != nullptr) return *found;
  return std::nullopt;
}

Result<Catalog> load_catalog(const Architecture& architecture, std::span<const std::string> config_dirs,
                             const FormulaCheck& check) {
  // A user's architecture is like one of ours, directly or through others.
  std::string_view base = architecture.name;
  int distance = 0;
  for (const std::string_view each : architecture.like)
    if (!built_in_architecture(base).has_value()) {
      base = each;
      ++distance;
    }
  TACHO_ASSIGN(Catalog catalog, decode_catalog(blob(), built_in(), base));
  for (ArchitectureGroup& group : catalog.groups)
    if (group.rank > ArchitectureGroup::kFamily) group.rank -= distance;
  catalog.architecture = architecture.name;
  catalog.facts = architecture;
  for (const std::string& folder : config_dirs) {
    TACHO_ASSIGN(const std::vector<CatalogFile> files, read_catalog_folder(folder));
    TACHO_TRY(apply_catalog_files(catalog, files, check));
  }
  return catalog;
}

Result<Catalog> load_catalog(std::string_view architecture, std::span<const std::string> config_dirs,
                             const FormulaCheck& check) {
  TACHO_ASSIGN(const std::vector<Architecture> more, users_architectures(config_dirs, check));
  for (const Architecture& one : more)
    if (one.name == architecture) return load_catalog(one, config_dirs, check);
  Architecture known;
  known.name = architecture;
  return load_catalog(built_in_architecture(architecture).value_or(known), config_dirs, check);
}

Result<RuleBook> load_rules(const Catalog& catalog, std::span<const std::string> config_dirs) {
  TACHO_ASSIGN(RuleBook book, decode_rules(blob()));
  const auto foreign = [&](const auto& each) { return !each.vendor.empty() && each.vendor != catalog.vendor; };
  std::erase_if(book.rules, foreign);
  std::erase_if(book.checks, foreign);
  std::erase_if(book.screens, foreign);
  for (const std::string& folder : config_dirs) {
    TACHO_ASSIGN(const std::vector<CatalogFile> files, read_catalog_folder(folder));
    for (const CatalogFile& file : files) {
      TACHO_ASSIGN(RuleBook more, parse_rules(file.text, file.name, &catalog));
      add_rules(book, more);
    }
  }
  std::erase_if(book.rules, [&](const Rule& rule) { return !can_evaluate(rule, catalog); });
  return book;
}

Result<RuleBook> load_trace_rules() {
  TACHO_ASSIGN(RuleBook book, decode_rules(blob()));
  std::erase_if(book.rules, [](const Rule& rule) { return rule.vendor != kTraceRules; });
  book.checks.clear();
  book.screens.clear();
  return book;
}

}  // namespace tacho::metric
