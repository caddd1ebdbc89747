// The catalogs and rules that are linked into tacho, and what the user's folders add to them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"

namespace tacho::metric {

/// Architectures of the built-in catalog of a vendor ("amd", ...), oldest first.
std::span<const std::string_view> architectures(std::string_view vendor = "amd");

/// "gfx942", also "mi300x", "MI300X_A1", "MI350": the architecture's own name, or nullopt.
std::optional<std::string_view> architecture_named(std::string_view text);

/// The built-in catalog of an architecture; fails on an unknown one, naming the known ones.
Result<Catalog> load_catalog(std::string_view architecture);

/// The same with every *.yaml of the folders (in the order of their names) added: new blocks, tables and
/// metrics are appended, metrics with a known slug are changed in the fields given. Errors name file, line
/// and column.
Result<Catalog> load_catalog(std::string_view architecture, std::span<const std::string> config_dirs,
                             const FormulaCheck& check = {});

/// The built-in rules that can be evaluated on the catalog's architecture, with those of *.yaml in the
/// folders (a rule with a known slug replaces it). Errors name file, line and column.
Result<RuleBook> load_rules(const Catalog& catalog, std::span<const std::string> config_dirs = {});

}  // namespace tacho::metric
