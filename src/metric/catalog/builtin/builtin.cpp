// Loads the built-in catalog and rules, and adds those of the user's folders.
#include "metric/catalog/builtin/builtin.h"

#include <algorithm>

#include "metric/catalog/blob.h"
#include "metric/catalog/builtin/bytes.h"
#include "metric/catalog/yaml.h"

namespace tacho::metric {
namespace {

std::string_view blob() {
  return {reinterpret_cast<const char*>(kEmbeddedCatalog), kEmbeddedCatalogSize};
}

const std::vector<BlobArchitecture>& built_in() {
  static const std::vector<BlobArchitecture> known =
      decode_architectures(blob()).value_or(std::vector<BlobArchitecture>());
  return known;
}

}  // namespace

std::span<const std::string_view> architectures(std::string_view vendor) {
  static const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> by_vendor = [] {
    std::vector<std::pair<std::string_view, std::vector<std::string_view>>> out;
    for (const BlobArchitecture& one : built_in()) {
      if (out.empty() || out.back().first != one.vendor)
        out.emplace_back(one.vendor, std::vector<std::string_view>());
      out.back().second.push_back(one.name);
    }
    return out;
  }();
  for (const auto& [name, list] : by_vendor)
    if (name == vendor) return list;
  return {};
}

std::optional<std::string_view> architecture_named(std::string_view text) {
  std::string wanted(text);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto find = [](std::string_view name) -> std::optional<std::string_view> {
    for (const BlobArchitecture& one : built_in())
      if (one.name == name ||
          std::find(one.user_names.begin(), one.user_names.end(), name) != one.user_names.end())
        return one.name;
    return std::nullopt;
  };
  if (const auto found = find(wanted); found.has_value()) return found;
  // Workload folders are called MI300X_A1; HIP reports gfx942:sramecc+:xnack-.
  const size_t end = wanted.find_first_of("_:");
  return end == std::string::npos ? std::nullopt : find(std::string_view(wanted).substr(0, end));
}

Result<Catalog> load_catalog(std::string_view architecture) {
  return decode_catalog(blob(), architecture);
}

Result<Catalog> load_catalog(std::string_view architecture, std::span<const std::string> config_dirs,
                             const FormulaCheck& check) {
  TACHO_ASSIGN(Catalog catalog, load_catalog(architecture));
  for (const std::string& folder : config_dirs) {
    TACHO_ASSIGN(const std::vector<CatalogFile> files, read_catalog_folder(folder));
    TACHO_TRY(apply_catalog_files(catalog, files, check));
  }
  return catalog;
}

Result<RuleBook> load_rules(const Catalog& catalog, std::span<const std::string> config_dirs) {
  TACHO_ASSIGN(RuleBook book, decode_rules(blob()));
  std::erase_if(book.rules,
                [&](const Rule& rule) { return !rule.vendor.empty() && rule.vendor != catalog.vendor; });
  for (const std::string& folder : config_dirs) {
    TACHO_ASSIGN(const std::vector<CatalogFile> files, read_catalog_folder(folder));
    for (const CatalogFile& file : files) {
      TACHO_ASSIGN(RuleBook more, parse_rules(file.text, file.name, &catalog));
      TACHO_TRY(add_rules(book, more));
    }
  }
  std::erase_if(book.rules, [&](const Rule& rule) { return !can_evaluate(rule, catalog); });
  return book;
}

}  // namespace tacho::metric
