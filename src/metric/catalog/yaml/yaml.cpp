// The YAML reader of the catalog. Every complaint names file, line and column; yaml-cpp's exceptions end in this file.
#include "metric/catalog/yaml/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>

#include "metric/catalog/string_store.h"
#include "metric/catalog/yaml/formula_reader.h"

namespace tacho::metric {
namespace {

/// An override as the file says it, with the place it stands at.
struct Layer {
  std::map<std::string, YAML::Node, std::less<>> entries;
};

class CatalogReader : FormulaReader {
 public:
  CatalogReader(Catalog& catalog, const FormulaCheck& check) : FormulaReader(catalog, check) {}

  Status read(std::span<const CatalogFile> files) {
    TACHO_TRY(parse(files));
    for (const Document& document : documents_) TACHO_TRY(read_architectures(document));
    for (const Document& document : documents_) TACHO_TRY(read_families(document));
    TACHO_TRY(read_groups());
    for (const Document& document : documents_) TACHO_TRY(read_run_values(document));
    for (const Document& document : documents_) TACHO_TRY(collect_definitions(document));
    TACHO_TRY(expand_definitions());
    for (const Document& document : documents_) TACHO_TRY(read_block(document));
    for (const Document& document : documents_) TACHO_TRY(read_seed_ids(document));
    for (const Document& document : documents_) TACHO_TRY(read_sets(document));
    return finish();
  }

 private:
  Result<std::string_view> slug(const YAML::Node& node, std::string_view what) {
    TACHO_ASSIGN(const std::string word, text(node, what));
    if (!is_slug(word))
      return fail_at(node, "{} \"{}\" must be lower-case letters, digits and single \"-\" between them", what, word);
    const std::string_view stored = store(word);
    places_.insert_or_assign(stored, place_of(node));
    return stored;
  }

  // Files

  Status parse(std::span<const CatalogFile> files) {
    for (const CatalogFile& file : files) {
      file_ = file.name;
      TACHO_ASSIGN(const YAML::Node root, load_document(file.text, file.name));
      if (root.IsNull()) continue;
      // "rules" and what belongs to them are read by rules.cpp.
      TACHO_ASSIGN(Fields top, fields(root, "a catalog file",
                                      {"block", "slug", "title", "aliases", "description", "tables", "architectures",
                                       "defaults", "families", "definitions", "run_values", "seed_ids", "sets", "rules",
                                       "quantities", "checks", "bars", "weight", "input-error"}));
      documents_.push_back({file.name, std::move(top)});
    }
    return {};
  }

  /// The items of a list of the top level; none if the document lacks it.
  Result<YAML::Node> list(const Document& document, std::string_view key) {
    file_ = document.file;
    const YAML::Node* node = find(document.fields, key);
    if (node == nullptr) return YAML::Node(YAML::NodeType::Sequence);
    if (!node->IsSequence()) return fail_at(*node, "{} must be a list", key);
    return *node;
  }

  using YamlReader::find;
  static const YAML::Node* find(const Layer& layer, std::string_view key) {
    const auto entry = layer.entries.find(key);
    return entry != layer.entries.end() ? &entry->second : nullptr;
  }

  /// Stores the text of each key that the mapping has.
  Status texts(const auto& keys, std::initializer_list<std::pair<std::string_view, std::string_view*>> wanted) {
    for (const auto& [key, out] : wanted)
      if (const YAML::Node* node = find(keys, key); node != nullptr) {
        TACHO_ASSIGN(const std::string value, text(*node, key));
        *out = store(value);
      }
    return {};
  }
  Status slug_of(const Fields& keys, std::string_view& out) {
    if (const YAML::Node* node = find(keys, "slug"); node != nullptr) {
      TACHO_ASSIGN(out, slug(*node, "slug"));
    }
    return {};
  }

  /// Whether "only" and "except" let the entry hold for this catalog.
  Result<bool> holds_here(const Fields& keys) const {
    bool holds = true;
    if (const YAML::Node* only = find(keys, "only"); only != nullptr) {
      TACHO_ASSIGN(holds, includes_us(*only, "only"));
    }
    if (const YAML::Node* except = find(keys, "except"); except != nullptr) {
      TACHO_ASSIGN(const bool excluded, includes_us(*except, "except"));
      holds = holds && !excluded;
    }
    return holds;
  }

  /// The block or table of that number in its sorted list, and whether it is new.
  template <typename Numbered>
  static std::pair<Numbered&, bool> numbered(std::vector<Numbered>& list, int number) {
    const auto place =
        std::find_if(list.begin(), list.end(), [&](const Numbered& each) { return each.number >= number; });
    if (place != list.end() && place->number == number) return {*place, false};
    Numbered& fresh = *list.insert(place, Numbered{});
    fresh.number = number;
    return {fresh, true};
  }

  /// The facts are read by architectures.cpp; here the names count, for "only", "except" and "arch".
  Status read_architectures(const Document& document) {
    TACHO_ASSIGN(const Fields entries, section(document, "architectures"));
    for (const auto& [name, details] : entries) add_group(name, rank_of(name));
    return {};
  }

  Status read_families(const Document& document) {
    TACHO_ASSIGN(const Fields entries, section(document, "families"));
    for (const auto& [name, list] : entries) {
      TACHO_ASSIGN(const std::vector<std::string> members, words(list, "a family"));
      bool contains = false;
      for (const std::string& member : members) {
        if (group(member) == nullptr) return fail_at(list, "there is no architecture \"{}\"", member);
        contains = contains || rank_of(member) != 0;
      }
      if (group(name) != nullptr) return fail_at(list, "\"{}\" is the name of two architectures or families", name);
      add_group(name, contains ? ArchitectureGroup::kFamily : 0);
    }
    return {};
  }

  /// A standalone document (a user's first file, the fuzzer's input) may know no architecture but the one asked for.
  Status read_groups() {
    if (group(catalog_.architecture) == nullptr) add_group(catalog_.architecture, rank_of(catalog_.architecture));
    return {};
  }

  void add_group(std::string_view name, int rank) {
    if (group(name) == nullptr) catalog_.groups.push_back({store(name), rank});
  }

  /// ArchitectureGroup::rank of an architecture.
  int rank_of(std::string_view name) const {
    if (name == catalog_.architecture) return ArchitectureGroup::kSelf;
    const std::vector<std::string_view>& like = catalog_.facts.like;
    const auto at = std::find(like.begin(), like.end(), name);
    return at == like.end() ? 0 : ArchitectureGroup::kSelf - 1 - static_cast<int>(at - like.begin());
  }

  /// Whether one of the named architectures or families is this catalog's.
  Result<bool> includes_us(const YAML::Node& node, std::string_view what) const {
    TACHO_ASSIGN(const std::vector<std::string> names, words(node, what));
    bool ours = false;
    for (const std::string& name : names) {
      const ArchitectureGroup* found = group(name);
      if (found == nullptr) return fail_at(node, "there is no architecture or family \"{}\"", name);
      ours = ours || found->rank != 0;
    }
    return ours;
  }

  // Blocks and tables

  Status read_block(const Document& document) {
    file_ = document.file;
    const YAML::Node* number_node = find(document.fields, "block");
    const YAML::Node* tables = find(document.fields, "tables");
    if (number_node == nullptr) {
      for (const std::string_view key : {"tables", "slug", "title", "aliases", "description"})
        if (const YAML::Node* stray = find(document.fields, key); stray != nullptr)
          return fail_at(*stray, "\"{}\" needs a \"block\" with the number of its block", key);
      return {};
    }
    TACHO_ASSIGN(const int block_number, number(*number_node, "block"));
    const auto [block, fresh] = numbered(catalog_.blocks, block_number);
    TACHO_TRY(slug_of(document.fields, block.slug));
    TACHO_TRY(texts(document.fields, {{"title", &block.title}, {"description", &block.description}}));
    if (const YAML::Node* node = find(document.fields, "aliases"); node != nullptr) {
      TACHO_ASSIGN(const std::vector<std::string> aliases, words(*node, "aliases"));
      for (const std::string& alias : aliases) {
        if (!is_slug(alias)) return fail_at(*node, "alias \"{}\" must be lower-case letters, digits and \"-\"", alias);
        block.aliases.push_back(store(alias));
        places_.insert_or_assign(block.aliases.back(), place_of(*node));
      }
    }
    if (fresh && (block.slug.empty() || block.title.empty()))
      return fail_at(*number_node, "the new block {} needs a slug and a title", block_number);
    if (tables == nullptr) return {};
    if (!tables->IsSequence()) return fail_at(*tables, "tables must be a list");
    for (const auto& node : *tables) TACHO_TRY(read_table(block, node));
    return {};
  }

  Status read_table(Block& block, const YAML::Node& node) {
    TACHO_ASSIGN(const Fields keys, fields(node, "a table",
                                           {"table", "slug", "title", "type", "style", "comparable", "repeat",
                                            "columns", "kind", "unit", "compat_unit", "coll_level", "metrics"}));
    const YAML::Node* number_node = find(keys, "table");
    if (number_node == nullptr) return fail_at(node, "a table needs its number: \"table: 1\"");
    TACHO_ASSIGN(const int table_number, number(*number_node, "table"));
    const auto [table, fresh] = numbered(block.tables, table_number);
    table.block = block.number;
    TACHO_TRY(slug_of(keys, table.slug));
    TACHO_TRY(texts(keys, {{"title", &table.title}, {"repeat", &table.repeat}}));
    TACHO_TRY(choose_of(keys, "type", table.type,
                        {{"metrics", TableType::kMetrics},
                         {"top-kernels", TableType::kTopKernels},
                         {"dispatches", TableType::kDispatches},
                         {"system-info", TableType::kSystemInfo},
                         {"roofline", TableType::kRoofline},
                         {"pc-sampling", TableType::kPcSampling}}));
    TACHO_TRY(choose_of(keys, "style", table.style,
                        {{"table", TableStyle::kTable},
                         {"bar", TableStyle::kBar},
                         {"box", TableStyle::kBox},
                         {"multi-bar", TableStyle::kMultiBar},
                         {"memory-chart", TableStyle::kMemoryChart}}));
    if (const YAML::Node* entry = find(keys, "comparable"); entry != nullptr) {
      TACHO_ASSIGN(table.comparable, truth(*entry, "comparable"));
    }
    if (const YAML::Node* entry = find(keys, "repeat");
        entry != nullptr && (table.repeat.size() < 2 || table.repeat.front() != '$'))
      return fail_at(*entry, "repeat must be a specification value such as $total_l2_chan, not \"{}\"", table.repeat);
    if (const YAML::Node* entry = find(keys, "columns"); entry != nullptr) {
      if (!fresh) return fail_at(*entry, "the columns of table {}.{} are fixed", block.number, table_number);
      TACHO_TRY(read_columns(table, *entry));
    }
    if (fresh && (table.slug.empty() || table.title.empty()))
      return fail_at(*number_node, "the new table {}.{} needs a slug and a title", block.number, table_number);

    Metric defaults;
    TACHO_TRY(read_kind(keys, defaults.kind));
    TACHO_TRY(texts(
        keys,
        {{"unit", &defaults.unit}, {"compat_unit", &defaults.compat_unit}, {"coll_level", &defaults.coll_level}}));
    const YAML::Node* metrics = find(keys, "metrics");
    if (metrics == nullptr) return {};
    if (table.type != TableType::kMetrics) return fail_at(*metrics, "a table of this type has no metrics of its own");
    if (table.columns.empty()) return fail_at(*metrics, "table {}.{} needs columns", block.number, table_number);
    if (!metrics->IsSequence()) return fail_at(*metrics, "metrics must be a list");
    for (const auto& metric : *metrics) TACHO_TRY(read_metric(table, metric, defaults, find(keys, "kind") != nullptr));
    return {};
  }

  Status read_kind(const Fields& keys, Kind& out) const {
    return choose_of(keys, "kind", out, {{"sum", Kind::kSum}, {"rate", Kind::kRate}, {"ratio", Kind::kRatio}});
  }

  Status read_columns(MetricTable& table, const YAML::Node& node) {
    struct Known {
      std::string_view key, title;
      ColumnRole role;
      Reduction reduction;
    };
    static constexpr Known kKnown[] = {
        {"name", "Metric", ColumnRole::kName, Reduction::kNone},
        {"channel", "Channel", ColumnRole::kName, Reduction::kNone},
        {"unit", "Unit", ColumnRole::kUnit, Reduction::kNone},
        {"units", "Units", ColumnRole::kUnit, Reduction::kNone},
        {"avg", "Avg", ColumnRole::kValue, Reduction::kAvg},
        {"min", "Min", ColumnRole::kValue, Reduction::kMin},
        {"max", "Max", ColumnRole::kValue, Reduction::kMax},
        {"median", "Median", ColumnRole::kValue, Reduction::kMedian},
        {"std", "Std Dev", ColumnRole::kValue, Reduction::kStd},
        {"q1", "Q1", ColumnRole::kValue, Reduction::kQ1},
        {"q3", "Q3", ColumnRole::kValue, Reduction::kQ3},
        {"peak", "Peak", ColumnRole::kValue, Reduction::kNone},
        {"pct", "Pct of Peak", ColumnRole::kValue, Reduction::kNone},
        {"rounded", "Value", ColumnRole::kValue, Reduction::kNone},
    };
    static const Words kReserved = {"slug",   "name", "unit",   "kind", "value",  "coll_level", "description",
                                    "advice", "only", "except", "arch", "compat", "unavailable"};
    if (!node.IsSequence()) return fail_at(node, "columns must be a list");
    for (const auto& item : node) {
      MetricColumn column;
      if (item.IsScalar()) {
        const auto* const known =
            std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.key == item.Scalar(); });
        if (known == std::end(kKnown)) return fail_at(item, "there is no column \"{}\"", item.Scalar());
        column = {known->title, known->key, known->role, known->reduction};
      } else {
        TACHO_ASSIGN(const Fields keys, fields(item, "a column", {"key", "title", "function", "text"}));
        const YAML::Node* key = find(keys, "key");
        if (key == nullptr || find(keys, "title") == nullptr) return fail_at(item, "a column needs a key and a title");
        TACHO_ASSIGN(column.key, slug(*key, "key"));
        if (kReserved.contains(column.key)) return fail_at(*key, "\"{}\" cannot be a column's key", column.key);
        TACHO_TRY(texts(keys, {{"title", &column.title}}));
        TACHO_TRY(choose_of(keys, "function", column.reduction,
                            {{"avg", Reduction::kAvg},
                             {"min", Reduction::kMin},
                             {"max", Reduction::kMax},
                             {"median", Reduction::kMedian},
                             {"std", Reduction::kStd},
                             {"q1", Reduction::kQ1},
                             {"q3", Reduction::kQ3},
                             {"sum", Reduction::kSum}}));
        if (const YAML::Node* is_text = find(keys, "text"); is_text != nullptr) {
          TACHO_ASSIGN(const bool yes, truth(*is_text, "text"));
          if (yes) column.role = ColumnRole::kText;
        }
      }
      if (table.column(column.key).has_value()) return fail_at(item, "the column \"{}\" stands here twice", column.key);
      table.columns.push_back(column);
    }
    if (table.columns.empty() || table.columns.front().role != ColumnRole::kName)
      return fail_at(node, "the first column must be \"name\" or \"channel\"");
    return {};
  }

  // Metrics

  /// Whether the statistics of `column` are taken of the metric's own value (and not of a key of the column).
  static bool shows_value(const MetricColumn& column) {
    return column.role == ColumnRole::kValue && column.key != "peak" && column.key != "pct" &&
           (column.key == "rounded" || is_statistic(column.key));
  }
  static bool is_statistic(std::string_view key) {
    return key == "avg" || key == "min" || key == "max" || key == "median" || key == "std" || key == "q1" ||
           key == "q3";
  }

  /// `defaults` are the table's; their kind counts only if the table `has_kind`.
  Status read_metric(MetricTable& table, const YAML::Node& node, const Metric& defaults, bool has_kind) {
    Words layer_keys = {"value", "unit", "coll_level"};
    for (const MetricColumn& column : table.columns)
      if (column.role == ColumnRole::kValue || column.role == ColumnRole::kText) layer_keys.emplace(column.key);
    Words known = layer_keys;
    for (const char* key :
         {"slug", "name", "kind", "description", "advice", "only", "except", "unavailable", "arch", "compat"})
      known.insert(key);
    TACHO_ASSIGN(const Fields keys, fields(node, "a metric", known));
    const YAML::Node* slug_node = find(keys, "slug");
    if (slug_node == nullptr) return fail_at(node, "a metric needs a slug");
    TACHO_ASSIGN(const std::string_view metric_slug, slug(*slug_node, "slug"));
    TACHO_ASSIGN(const bool present, holds_here(keys));
    bool unavailable = false;
    if (const YAML::Node* entry = find(keys, "unavailable"); entry != nullptr) {
      TACHO_ASSIGN(unavailable, includes_us(*entry, "unavailable"));
    }

    // The entries that hold here: the metric's own, over them those of a family, over them those of the architecture.
    Layer own, compat;
    for (const auto& [key, value] : keys)
      if (layer_keys.contains(key)) own.entries.insert_or_assign(key, value);
    Words compat_keys = layer_keys;
    compat_keys.erase("coll_level");
    compat_keys.insert("name");
    if (const YAML::Node* entry = find(keys, "compat"); entry != nullptr)
      TACHO_TRY(read_layer(*entry, "compat", compat_keys, compat));
    if (const YAML::Node* entry = find(keys, "arch"); entry != nullptr)
      TACHO_TRY(read_overrides(*entry, layer_keys, compat_keys, own, compat));

    TACHO_ASSIGN(Metric* const existing, known_metric(table, metric_slug, *slug_node));
    if (!present) {
      if (existing != nullptr) {
        table.metrics.erase(table.metrics.begin() + existing->id.row);
        renumber(table);
      }
      return {};
    }
    Metric fresh = defaults;
    Metric& metric = existing != nullptr ? *existing : fresh;
    if (existing == nullptr) {
      fresh.slug = metric_slug;
      fresh.cells.resize(table.columns.size());
      if (find(keys, "name") == nullptr) return fail_at(node, "metric \"{}\" needs a name", metric_slug);
      if (!has_kind && find(keys, "kind") == nullptr)
        return fail_at(node, "metric \"{}\" needs a kind (sum, rate or ratio)", metric_slug);
      for (const char* key : {"description", "advice"})
        if (find(keys, key) == nullptr) return fail_at(node, "metric \"{}\" needs \"{}\"", metric_slug, key);
    }
    TACHO_TRY(texts(keys, {{"name", &metric.name}, {"description", &metric.description}, {"advice", &metric.advice}}));
    if (metric.name.empty()) return fail_at(*find(keys, "name"), "the name is empty");
    TACHO_TRY(read_kind(keys, metric.kind));
    TACHO_TRY(texts(own, {{"unit", &metric.unit}, {"coll_level", &metric.coll_level}}));
    if (unavailable) {
      // The peak is the hardware's and stays.
      metric.value = {};
      own.entries.erase("value");
      for (const MetricColumn& column : table.columns)
        if (column.role == ColumnRole::kValue && column.key != "peak") own.entries.erase(std::string(column.key));
    }
    TACHO_TRY(fill_cells(table, own, metric.value, metric.cells));
    if (existing == nullptr && !unavailable) TACHO_TRY(check_filled(table, own, metric, node));
    if (!compat.entries.empty()) TACHO_TRY(read_compat(table, compat, metric, node));
    if (existing == nullptr) {
      table.metrics.push_back(std::move(fresh));
      renumber(table);
      defined_here_.insert(metric_slug);
    }
    return {};
  }

  /// The metric of that slug that the catalog has already, nullptr if it is new. A slug stands once in these files.
  Result<Metric*> known_metric(const MetricTable& table, std::string_view slug, const YAML::Node& node) {
    Metric* existing = nullptr;
    for (Block& block : catalog_.blocks)
      for (MetricTable& other : block.tables)
        for (Metric& metric : other.metrics)
          if (metric.slug == slug) existing = &metric;
    if (existing != nullptr && !defined_here_.contains(slug) &&
        (existing->id.block != table.block || existing->id.table != table.number))
      return fail_at(node, "the slug \"{}\" belongs to metric {}; a metric cannot move to another table", slug,
                     to_string(existing->id));
    if (!slugs_.insert(slug).second) return fail_at(node, "the slug \"{}\" stands here for the second time", slug);
    return existing;
  }

  /// The upstream formulas and units (Metric::compat_cells), which must differ from the metric's own.
  Status read_compat(const MetricTable& table, const Layer& compat, Metric& metric, const YAML::Node& node) {
    metric.compat_cells = metric.cells;
    std::string_view value = metric.value;
    TACHO_TRY(fill_cells(table, compat, value, metric.compat_cells));
    if (metric.compat_cells == metric.cells) {
      metric.compat_cells.clear();
      if (!compat.entries.contains("unit") && !compat.entries.contains("name"))
        return fail_at(node, "the compat entries of \"{}\" change nothing", metric.slug);
    }
    TACHO_TRY(texts(compat, {{"unit", &metric.compat_unit}, {"name", &metric.compat_name}}));
    for (const auto& [key, ours, theirs] :
         {std::tuple{"unit", metric.unit, metric.compat_unit}, {"name", metric.name, metric.compat_name}})
      if (const auto entry = compat.entries.find(key); entry != compat.entries.end() && ours == theirs)
        return fail_at(entry->second, "the compat {} of \"{}\" equals its {}", key, metric.slug, key);
    return {};
  }

  static void renumber(MetricTable& table) {
    for (size_t row = 0; row < table.metrics.size(); ++row)
      table.metrics[row].id = {table.block, table.number, static_cast<int>(row)};
  }

  Status read_layer(const YAML::Node& node, std::string_view what, const Words& known, Layer& out) {
    TACHO_ASSIGN(const Fields keys, fields(node, what, known));
    for (const auto& [key, value] : keys) {
      if (!value.IsScalar()) return fail_at(value, "{} of {} must be a single value", key, what);
      out.entries.insert_or_assign(key, value);
    }
    return {};
  }

  Status read_overrides(const YAML::Node& node, const Words& layer_keys, const Words& compat_keys, Layer& own,
                        Layer& compat) {
    TACHO_ASSIGN(const Fields entries, fields(node, "arch", {}));
    Words known = layer_keys;
    known.insert("compat");
    std::map<int, std::pair<Layer, Layer>> layers;  // by rank: the entries that hold and those for --compat
    for (const auto& [name, value] : entries) {
      const ArchitectureGroup* found = group(name);
      if (found == nullptr) return fail_at(value, "there is no architecture or family \"{}\"", name);
      TACHO_ASSIGN(const Fields keys, fields(value, "an override", known));
      Layer layer, layer_compat;
      for (const auto& [key, entry] : keys) {
        if (key == "compat") {
          TACHO_TRY(read_layer(entry, "compat", compat_keys, layer_compat));
          continue;
        }
        if (!entry.IsScalar()) return fail_at(entry, "{} of an override must be a single value", key);
        if (const auto general = own.entries.find(key); general != own.entries.end() && general->second.IsScalar() &&
                                                        one_line(general->second.Scalar()) == one_line(entry.Scalar()))
          return fail_at(entry, "the {} for {} equals the default", key, name);
        layer.entries.insert_or_assign(key, entry);
      }
      if (found->rank == 0) continue;
      if (!layers.try_emplace(found->rank, std::move(layer), std::move(layer_compat)).second)
        return fail_at(value, "two families that override this contain {}", catalog_.architecture);
    }
    for (const auto& [rank, layer] : layers) {
      for (const auto& [key, value] : layer.first.entries) own.entries.insert_or_assign(key, value);
      for (const auto& [key, value] : layer.second.entries) compat.entries.insert_or_assign(key, value);
    }
    return {};
  }

  /// Puts the layer's entries into the cells. `value` is the metric's shared formula, changed if the layer has one.
  Status fill_cells(const MetricTable& table, const Layer& layer, std::string_view& value, std::vector<Cell>& cells) {
    const auto value_entry = layer.entries.find("value");
    const bool new_value = value_entry != layer.entries.end();
    if (new_value) {
      TACHO_ASSIGN(const std::string expanded, formula(value_entry->second));
      value = store(expanded);
    }
    bool new_peak = false;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const MetricColumn& column = table.columns[i];
      if (column.role != ColumnRole::kValue && column.role != ColumnRole::kText) continue;
      Cell& cell = cells[i];
      if (const auto entry = layer.entries.find(column.key); entry != layer.entries.end()) {
        if (column.role == ColumnRole::kText) {
          TACHO_ASSIGN(const std::string word, text(entry->second, column.key));
          cell.formula = store(word);
          continue;
        }
        TACHO_ASSIGN(const std::string expanded, formula(entry->second));
        const bool complete = is_statistic(column.key) || column.reduction == Reduction::kNone;
        cell = {complete || expanded.empty() ? Reduction::kNone : column.reduction, store(expanded)};
        new_peak = new_peak || column.key == "peak";
      } else if (new_value && shows_value(column)) {
        if (value.empty()) {
          cell = {};
        } else if (column.key == "rounded") {
          cell = {Reduction::kNone, store(fmt::format("ROUND(AVG({}), 0)", value))};
        } else {
          cell = {column.reduction, value};
        }
      }
    }
    // Percent of peak follows from value and peak.
    const std::optional<size_t> peak = table.column("peak");
    const std::optional<size_t> pct = table.column("pct");
    if (peak.has_value() && pct.has_value() && (new_value || new_peak) && !layer.entries.contains("pct")) {
      const std::string_view limit = cells[*peak].formula;
      if (limit.empty() || value.empty()) {
        cells[*pct] = {};
      } else if (limit == "100") {
        cells[*pct] = {Reduction::kAvg, value};
      } else {
        cells[*pct] = {Reduction::kNone, store(fmt::format("100 * AVG({}) / ({})", value, limit))};
      }
    }
    return {};
  }

  Status check_filled(const MetricTable& table, const Layer& own, const Metric& metric, const YAML::Node& node) const {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const MetricColumn& column = table.columns[i];
      const bool needed = column.role == ColumnRole::kText ||
                          (column.role == ColumnRole::kValue && column.key != "peak" && column.key != "pct");
      if (!needed || !metric.cells[i].formula.empty()) continue;
      const bool said_none = own.entries.contains(column.key) || own.entries.contains("value");
      if (!said_none)
        return fail_at(node, "metric \"{}\" has no formula for the column \"{}\"", metric.slug, column.key);
    }
    return {};
  }

  // Ids and sets

  Status read_seed_ids(const Document& document) {
    TACHO_ASSIGN(const YAML::Node seeds, list(document, "seed_ids"));
    for (const auto& item : seeds) {
      TACHO_ASSIGN(const Fields keys, fields(item, "a seed id", {"id", "slug", "in"}));
      const YAML::Node* id_node = find(keys, "id");
      const YAML::Node* slug_node = find(keys, "slug");
      if (id_node == nullptr || slug_node == nullptr) return fail_at(item, "a seed id needs an id and a slug");
      SeedId seed;
      TACHO_ASSIGN(const std::string id_text, text(*id_node, "id"));
      const std::optional<MetricId> id = parse_metric_id(id_text);
      if (!id.has_value() || id->row < 0) return fail_at(*id_node, "\"{}\" is not the number of a metric", id_text);
      seed.id = *id;
      TACHO_ASSIGN(seed.slug, slug(*slug_node, "slug"));
      if (const YAML::Node* where = find(keys, "in"); where != nullptr) {
        TACHO_ASSIGN(const std::string word, text(*where, "in"));
        if (word != "analyze" && word != "profile") return fail_at(*where, "\"in\" must be analyze or profile");
        seed.analyze = word == "analyze";
        seed.profile = word == "profile";
      }
      seed_slugs_.emplace_back(seed.slug, place_of(*slug_node));
      catalog_.seed_ids.push_back(seed);
    }
    return {};
  }

  Status read_sets(const Document& document) {
    TACHO_ASSIGN(const YAML::Node sets, list(document, "sets"));
    for (const auto& item : sets) {
      TACHO_ASSIGN(const Fields keys, fields(item, "a set", {"set", "title", "description", "metrics"}));
      MetricSet set;
      for (const char* key : {"set", "title", "description", "metrics"})
        if (find(keys, key) == nullptr) return fail_at(item, "a set needs a \"{}\"", key);
      TACHO_TRY(texts(keys, {{"set", &set.name}, {"title", &set.title}, {"description", &set.description}}));
      const YAML::Node& list = *find(keys, "metrics");
      if (!list.IsSequence()) return fail_at(list, "metrics of a set must be a list");
      for (const auto& entry : list) {
        YAML::Node which = entry;
        if (entry.IsMap()) {
          TACHO_ASSIGN(const Fields parts, fields(entry, "a metric of a set", {"slug", "only", "except"}));
          const YAML::Node* slug_node = find(parts, "slug");
          if (slug_node == nullptr) return fail_at(entry, "a metric of a set needs its slug");
          which.reset(*slug_node);
          TACHO_ASSIGN(const bool present, holds_here(parts));
          if (!present) continue;
        }
        TACHO_ASSIGN(const std::string_view member, slug(which, "slug"));
        if (catalog_.metric(member) == nullptr)
          return fail_at(which, "there is no metric \"{}\" on {}", member, catalog_.architecture);
        set.metrics.push_back(member);
      }
      std::erase_if(catalog_.sets, [&](const MetricSet& known) { return known.name == set.name; });
      catalog_.sets.push_back(std::move(set));
    }
    return {};
  }

  // The whole

  Status finish() const {
    // A word on the command line must mean one thing.
    std::map<std::string_view, std::string> taken;
    const auto claim = [&](std::string_view word, std::string owner) -> Status {
      const auto [entry, fresh] = taken.try_emplace(word, owner);
      if (fresh) return {};
      const auto place = places_.find(word);
      return fail("{}: \"{}\" names {} and {}", place == places_.end() ? std::string(file_) : place->second, word,
                  entry->second, owner);
    };
    for (const Block& block : catalog_.blocks) {
      TACHO_TRY(claim(block.slug, fmt::format("block {}", block.number)));
      for (const std::string_view alias : block.aliases) TACHO_TRY(claim(alias, fmt::format("block {}", block.number)));
      for (const MetricTable& table : block.tables) {
        TACHO_TRY(claim(table.slug, fmt::format("table {}.{}", block.number, table.number)));
        if (!table.repeat.empty() && table.metrics.size() > 1)
          return fail("{}: table {}.{} repeats one metric, but has {}", places_.at(table.metrics.back().slug),
                      block.number, table.number, table.metrics.size());
        for (const Metric& metric : table.metrics)
          TACHO_TRY(claim(metric.slug, fmt::format("metric {}", to_string(metric.id))));
      }
    }
    for (const auto& [seed, where] : seed_slugs_)
      if (!slugs_.contains(seed) && catalog_.metric(seed) == nullptr)
        return fail("{}: there is no metric \"{}\"", where, seed);
    return {};
  }

  std::vector<Document> documents_;
  std::set<std::string_view> slugs_;                // all seen in these files, also those of other architectures
  std::set<std::string_view> defined_here_;         // those added to the catalog
  std::map<std::string_view, std::string> places_;  // where each slug or alias stands, last mention
  std::vector<std::pair<std::string_view, std::string>> seed_slugs_;
};

}  // namespace

Status apply_catalog_files(Catalog& catalog, std::span<const CatalogFile> files, const FormulaCheck& check) {
  if (catalog.strings == nullptr) catalog.strings = std::make_shared<StringStore>();
  return guarded(files.empty() ? std::string_view("catalog") : std::string_view(files.front().name),
                 [&] { return CatalogReader(catalog, check).read(files); });
}

Status add_yaml(Catalog& catalog, std::string_view yaml, std::string_view file, const FormulaCheck& check) {
  Catalog changed = catalog;
  const CatalogFile one{std::string(file), std::string(yaml)};
  TACHO_TRY(apply_catalog_files(changed, std::span(&one, 1), check));
  catalog = std::move(changed);
  return {};
}

Result<Catalog> parse_catalog(std::string_view yaml, std::string_view file, std::string_view architecture) {
  Catalog catalog;
  catalog.strings = std::make_shared<StringStore>();
  catalog.architecture = catalog.strings->intern(architecture);
  TACHO_TRY(add_yaml(catalog, yaml, file));
  return catalog;
}

}  // namespace tacho::metric
