// Formulas in catalog files: definitions expanded, counters under the architecture's names, syntax checked. Base of the
// readers of catalog files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "metric/catalog/catalog.h"
#include "metric/catalog/string_store.h"
#include "metric/catalog/yaml/yaml_reader.h"

namespace tacho::metric {

class FormulaReader : protected YamlReader {
 protected:
  struct Document {
    std::string_view file;
    Fields fields;  // of the top level
  };

  FormulaReader(Catalog& catalog, const FormulaCheck& check) : catalog_(catalog), check_(check) {}

  std::string_view store(std::string_view text) { return catalog_.strings->intern(text); }

  /// The entries of a mapping of the top level; none if the document lacks it.
  Result<Fields> section(const Document& document, std::string_view key) {
    file_ = document.file;
    const YAML::Node* node = find(document.fields, key);
    return node != nullptr ? fields(*node, key) : Fields();
  }
  /// The architecture or family of that name; nullptr if there is none.
  const ArchitectureGroup* group(std::string_view name) const;

  Status read_run_values(const Document& document);
  Status collect_definitions(const Document& document);
  Status expand_definitions();
  /// The formula at `node` with definitions expanded and counters renamed; "" for None.
  Result<std::string> formula(const YAML::Node& node);

  Catalog& catalog_;
  const FormulaCheck& check_;

 private:
  struct Pending {
    std::string_view file;
    YAML::Node node;
    bool expanding = false;
    bool done = false;
    std::string formula;
  };

  Result<std::optional<YAML::Node>> definition_override(const YAML::Node& overrides, const YAML::Node& general);
  Status expand_definition(Pending& pending);
  /// The formula behind $name, or nothing if it is a value that the run provides.
  Result<std::optional<std::string>> definition(const std::string& name, const YAML::Node& where);
  std::string renamed(std::string_view word) const;

  std::map<std::string, Pending, std::less<>> pending_;
};

}  // namespace tacho::metric
