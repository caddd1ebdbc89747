// libFuzzer target of the catalog's YAML readers: any bytes end in a catalog, in rules or in one sentence.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"

using namespace tacho::metric;

namespace {

/// A parsed catalog must be usable: every name resolves, every formula prints.
void use(const Catalog& catalog) {
  for (const Block& block : catalog.blocks)
    for (const MetricTable& table : block.tables)
      for (const Metric& metric : table.metrics) {
        if (metric.cells.size() != table.columns.size()) std::abort();
        if (!metric.compat_cells.empty() && metric.compat_cells.size() != metric.cells.size()) std::abort();
        if (catalog.metric(metric.id) != &metric) std::abort();
        if (!resolve(catalog, metric.slug).has_value()) std::abort();
        for (const Cell& cell : metric.cells) (void)formula_text(cell);
      }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    const auto rules = parse_rules(text, "fuzz.yaml", nullptr);
    if (rules.has_value())
      for (const Rule& rule : rules->rules)
        (void)judge(rule, [](const RuleExpression& quantity) {
          const RuleValue value = evaluate(quantity, [](const FormulaStep&) {
            return RuleValue{RuleValue::State::kNumber, 50};
          });
          return RuleInterval{value.state, value.number, value.number * 0.9, value.number * 1.1};
        });
    return 0;
  }
  auto catalog = parse_catalog(text, "fuzz.yaml", "gfx942");
  if (!catalog.has_value()) {
    if (catalog.error().message.empty()) std::abort();
    return 0;
  }
  use(*catalog);
  // The same file again: known slugs are changed, nothing may be lost.
  const size_t before = catalog->metric_count();
  if (add_yaml(*catalog, text, "again.yaml").has_value() && catalog->metric_count() > before) std::abort();
  use(*catalog);
  return 0;
}
