// The catalogs and rules that are linked into tacho, with the additions from the user's folders.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"

namespace tacho::metric {

/// The vendors that the built-in catalog has, as catalog/ calls their folders: "amd", "cpu", "nvidia", "virtual".
std::span<const std::string_view> vendors();

/// Architectures of a vendor that have metrics, oldest first.
std::span<const std::string_view> architectures(std::string_view vendor = "amd");

/// The facts of a built-in architecture, also of one without metrics; nothing for an unknown name.
std::optional<Architecture> built_in_architecture(std::string_view name);

/// The architecture with metrics that a user means by "gfx942", "mi300x", "MI300X_A1" or "MI350", built in or of *.yaml
/// in the folders; nothing for an unknown one. Fails on files that cannot be read.
Result<std::optional<Architecture>> architecture_named(std::string_view text,
                                                       std::span<const std::string> config_dirs = {},
                                                       const FormulaCheck& check = {});

/// The catalog of an architecture with every *.yaml of the folders (in the order of their names) added: new blocks,
/// tables and metrics are appended, metrics with a known slug are changed in the fields given, new architectures have
/// the metrics of the one that they are like. Fails on an unknown architecture, naming the known ones; errors in files
/// name file, line and column.
Result<Catalog> load_catalog(std::string_view architecture, std::span<const std::string> config_dirs = {},
                             const FormulaCheck& check = {});
/// The same for an architecture of built_in_architecture() or architecture_named().
Result<Catalog> load_catalog(const Architecture& architecture, std::span<const std::string> config_dirs = {},
                             const FormulaCheck& check = {});

/// The built-in rules that can be evaluated on the catalog's architecture, with those of *.yaml in the folders (a rule
/// with a known slug replaces it). Errors name file, line and column.
Result<RuleBook> load_rules(const Catalog& catalog, std::span<const std::string> config_dirs = {});

/// The built-in rules of traces (catalog/trace/rules.yaml).
Result<RuleBook> load_trace_rules();

}  // namespace tacho::metric
