// Ids, look-ups and resolution of the names that a user gives; nothing in here knows the catalog's origin.
#include "metric/catalog/catalog.h"

#include <algorithm>
#include <charconv>

namespace tacho::metric {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

/// Levenshtein distance with an upper bound on the work: names are short.
size_t distance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 48;
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  size_t row[kLongest + 1];
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, replaced});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// In lower case, without what parts words.
std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '-' && c != '_' && c != ' ') out += lower(c);
  return out;
}

/// Up to three slugs that look like `text`, as "a, b or c"; "" if none is near.
std::string near_slugs(const Catalog& catalog, std::string_view text) {
  struct Near {
    size_t score;
    std::string_view slug;
  };
  std::vector<Near> near;
  const std::string letters = letters_of(text);
  const auto consider = [&](std::string_view slug) {
    const bool contains = letters.size() >= 3 && letters_of(slug).find(letters) != std::string::npos;
    const size_t score = contains ? 1 : distance(slug, text);
    if (contains || score <= std::max<size_t>(2, text.size() / 3)) near.push_back({score, slug});
  };
  for (const Block& block : catalog.blocks) {
    consider(block.slug);
    for (const MetricTable& table : block.tables) {
      consider(table.slug);
      for (const Metric& metric : table.metrics) consider(metric.slug);
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const Near& a, const Near& b) { return a.score < b.score; });
  std::string out;
  const size_t count = std::min<size_t>(3, near.size());
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) out += i + 1 == count ? " or " : ", ";
    out += near[i].slug;
  }
  return out;
}

Result<Selection> select(const Catalog& catalog, const MetricId& id, std::string_view text) {
  Selection selection;
  selection.block = catalog.block(id.block);
  if (selection.block == nullptr)
    return fail("there is no block {}; `tacho metrics --arch {}` lists all", id.block, catalog.architecture);
  if (id.table < 0) return selection;
  selection.table = catalog.table(id.block, id.table);
  if (selection.table == nullptr) return fail("block {} has no table {}", id.block, text);
  if (id.row < 0) return selection;
  const MetricTable& table = *selection.table;
  if (!table.repeat.empty()) {
    // Every row of a repeated table is the same metric for another instance.
    selection.metric = table.metrics.empty() ? nullptr : table.metrics.data();
  } else if (static_cast<size_t>(id.row) < table.metrics.size()) {
    selection.metric = &table.metrics[static_cast<size_t>(id.row)];
  }
  if (selection.metric == nullptr) {
    if (table.metrics.empty())
      return fail("table {}.{} has no metrics on {}", id.block, id.table, catalog.architecture);
    return fail("there is no metric {} on {}: table {}.{} ends at {}.{}.{}", text, catalog.architecture, id.block,
                id.table, id.block, id.table, table.metrics.size() - 1);
  }
  return selection;
}

Selection whole(const Catalog& catalog, const Metric& metric) {
  return {catalog.block(metric.id.block), catalog.table(metric.id.block, metric.id.table), &metric, nullptr};
}

}  // namespace

std::string formula_text(const Cell& cell) {
  switch (cell.reduction) {
    case Reduction::kNone:
      return std::string(cell.formula);
    case Reduction::kAvg:
      return fmt::format("AVG({})", cell.formula);
    case Reduction::kMin:
      return fmt::format("MIN({})", cell.formula);
    case Reduction::kMax:
      return fmt::format("MAX({})", cell.formula);
    case Reduction::kMedian:
      return fmt::format("MEDIAN({})", cell.formula);
    case Reduction::kStd:
      return fmt::format("STD({})", cell.formula);
    case Reduction::kQ1:
      return fmt::format("QUANTILE({}, 0.25)", cell.formula);
    case Reduction::kQ3:
      return fmt::format("QUANTILE({}, 0.75)", cell.formula);
    case Reduction::kSum:
      return fmt::format("SUM({})", cell.formula);
  }
  return {};
}

std::string to_string(const MetricId& id) {
  if (id.table < 0) return fmt::format("{}", id.block);
  if (id.row < 0) return fmt::format("{}.{}", id.block, id.table);
  return fmt::format("{}.{}.{}", id.block, id.table, id.row);
}

std::optional<MetricId> parse_metric_id(std::string_view text) {
  MetricId id;
  int* const parts[] = {&id.block, &id.table, &id.row};
  const char* position = text.data();
  const char* const end = position + text.size();
  for (int* part : parts) {
    if (position == end || *position < '0' || *position > '9') return std::nullopt;
    const auto [next, error] = std::from_chars(position, end, *part);
    if (error != std::errc() || *part > 100'000) return std::nullopt;
    if (next == end) return id;
    if (*next != '.') return std::nullopt;
    position = next + 1;
  }
  return std::nullopt;
}

std::optional<size_t> MetricTable::column(std::string_view key_or_title) const {
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].key == key_or_title || same_ignoring_case(columns[i].title, key_or_title)) return i;
  return std::nullopt;
}

const Block* Catalog::block(int number) const {
  for (const Block& block : blocks)
    if (block.number == number) return &block;
  return nullptr;
}

const MetricTable* Catalog::table(int block_number, int number) const {
  if (const Block* owner = block(block_number); owner != nullptr)
    for (const MetricTable& table : owner->tables)
      if (table.number == number) return &table;
  return nullptr;
}

const Metric* Catalog::metric(const MetricId& id) const {
  const MetricTable* owner = table(id.block, id.table);
  if (owner == nullptr || id.row < 0 || static_cast<size_t>(id.row) >= owner->metrics.size()) return nullptr;
  return &owner->metrics[static_cast<size_t>(id.row)];
}

const Metric* Catalog::metric(std::string_view slug) const {
  for (const Block& block : blocks)
    for (const MetricTable& table : block.tables)
      for (const Metric& metric : table.metrics)
        if (metric.slug == slug) return &metric;
  return nullptr;
}

const MetricTable& Catalog::table_of(const Metric& metric) const {
  return *table(metric.id.block, metric.id.table);
}

size_t Catalog::metric_count() const {
  size_t count = 0;
  for (const Block& block : blocks)
    for (const MetricTable& table : block.tables) count += table.metrics.size();
  return count;
}

Result<Selection> resolve(const Catalog& catalog, std::string_view text, IdScheme scheme) {
  if (text.empty()) return fail("an empty name was given where a block, table or metric is wanted");

  if (const std::optional<MetricId> id = parse_metric_id(text); id.has_value()) {
    const SeedId *seed = nullptr, *elsewhere = nullptr;
    for (const SeedId& candidate : catalog.seed_ids)
      if (candidate.id == *id)
        ((scheme == IdScheme::kSeedProfile ? candidate.profile : candidate.analyze) ? seed : elsewhere) = &candidate;
    if (seed != nullptr && scheme != IdScheme::kV33) {
      const Metric* metric = catalog.metric(seed->slug);
      if (metric == nullptr)
        return fail("{} is {} in the users' documents, which {} does not have", text, seed->slug, catalog.architecture);
      Selection selection = whole(catalog, *metric);
      if (elsewhere != nullptr && catalog.metric(elsewhere->slug) != nullptr) selection.elsewhere = elsewhere;
      return selection;
    }
    auto selection = select(catalog, *id, text);
    if (selection.has_value() && seed != nullptr && selection->metric != nullptr &&
        selection->metric->slug != seed->slug) {
      selection->differs = seed;
      if (elsewhere != nullptr && catalog.metric(elsewhere->slug) != nullptr) selection->elsewhere = elsewhere;
    }
    return selection;
  }

  for (const Block& block : catalog.blocks)
    for (const MetricTable& table : block.tables)
      for (const Metric& metric : table.metrics)
        if (metric.slug == text) return Selection{&block, &table, &metric, nullptr};
  for (const Block& block : catalog.blocks) {
    if (same_ignoring_case(block.slug, text) || same_ignoring_case(block.title, text))
      return Selection{&block, nullptr, nullptr, nullptr};
    for (const std::string_view alias : block.aliases)
      if (same_ignoring_case(alias, text)) return Selection{&block, nullptr, nullptr, nullptr};
  }
  for (const Block& block : catalog.blocks)
    for (const MetricTable& table : block.tables)
      if (same_ignoring_case(table.slug, text)) return Selection{&block, &table, nullptr, nullptr};

  // Names of rocprof-compute 3.7 and later; CU Utilization took the place of Active CUs in the speed of light.
  constexpr std::pair<std::string_view, std::string_view> kLaterNames[] = {
      {"CU Utilization", "sol-active-cus"}, {"Active CUs (deprecated)", "sol-active-cus"}};
  for (const auto& [name, slug] : kLaterNames)
    if (const Metric* const metric = catalog.metric(slug); metric != nullptr && same_ignoring_case(name, text))
      return whole(catalog, *metric);

  std::vector<const Metric*> named;
  for (const Block& block : catalog.blocks)
    for (const MetricTable& table : block.tables)
      for (const Metric& metric : table.metrics)
        if (same_ignoring_case(metric.name, text) || same_ignoring_case(metric.slug, text)) named.push_back(&metric);
  if (named.size() == 1) return whole(catalog, *named.front());
  if (named.size() > 1) {
    std::string which;
    for (const Metric* metric : named)
      which += fmt::format("{}{} ({})", which.empty() ? "" : ", ", metric->slug, to_string(metric->id));
    return fail("\"{}\" is the name of {} metrics; say which by slug or number: {}", text, named.size(), which);
  }

  const std::string near = near_slugs(catalog, text);
  if (near.empty())
    return fail("there is no block, table or metric \"{}\" on {}; `tacho metrics --arch {}` lists all", text,
                catalog.architecture, catalog.architecture);
  return fail("there is no block, table or metric \"{}\" on {}; near it: {}", text, catalog.architecture, near);
}

std::string documents_meaning(const Catalog& catalog, std::string_view text, const Selection& selection) {
  const auto name = [&](std::string_view slug) {
    const Metric* const metric = catalog.metric(slug);
    return metric != nullptr ? metric->name : slug;
  };
  const SeedId* const other = selection.elsewhere;
  if (other == nullptr)
    return selection.differs == nullptr ? "" : fmt::format("{} is {}", text, name(selection.differs->slug));
  const std::string_view own = name(selection.differs != nullptr ? selection.differs->slug : selection.metric->slug);
  return fmt::format("{} is {} where profile lists it and {} where analyze prints it", text,
                     other->profile ? name(other->slug) : own, other->profile ? own : name(other->slug));
}

std::string ids_note(const Catalog& catalog, std::span<const std::string> meanings) {
  if (meanings.empty()) return {};
  std::string all;
  for (const std::string& meaning : meanings) all += (all.empty() ? "" : ", ") + meaning;
  return fmt::format("in the users' documents {}; ids here are those of 3.3 on {}, --ids seed takes the documents'",
                     all, catalog.architecture);
}

std::string normalised_unit(std::string_view unit, std::string_view normalisation) {
  const size_t at = unit.find("$norm");
  if (at == std::string_view::npos) return std::string(unit);
  std::string words(normalisation);
  std::replace(words.begin(), words.end(), '_', ' ');
  return fmt::format("{}{}{}", unit.substr(0, at), words, unit.substr(at + 5));
}

std::string_view denominator_of(const Catalog& catalog, std::string_view normalisation) {
  for (const Definition& definition : catalog.definitions)
    if (definition.name.starts_with("denom_") && definition.name.substr(6) == normalisation) return definition.formula;
  return {};
}

}  // namespace tacho::metric
