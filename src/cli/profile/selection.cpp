// Choice of metrics (selection.h).
#include "cli/profile/selection.h"

#include <algorithm>
#include <optional>

#include "cli/shared/devices.h"
#include "counter/provider.h"
#include "counter/wanted.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::cli::profiling {
namespace {

// The meaning of a text on another architecture, if it has none on this one.
std::optional<std::string> known_elsewhere(const std::string& text, metric::IdScheme scheme) {
  for (const auto& provider : counter::providers()) {
    const auto list = metric::architectures(provider->vendor());
    for (auto each = list.rbegin(); each != list.rend(); ++each) {
      const auto catalog = metric::load_catalog(*each);
      if (!catalog) continue;
      const auto selection = metric::resolve(*catalog, text, scheme);
      if (!selection) continue;
      return selection->metric != nullptr  ? std::string(selection->metric->name)
             : selection->table != nullptr ? std::string(selection->table->title)
                                           : std::string(selection->block->title);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<metric::Catalog> catalog_for_lists(const ProfileArguments& a, const std::string& asked) {
  std::string name = !asked.empty() ? asked : a.arch;
  if (name.empty()) {
    const auto chosen = counter::choose_device(a.device);
    if (!chosen && !a.device.empty()) return fail("{}", chosen.error().message);
    name = chosen ? chosen->device.architecture : std::string(counter::kEverywhere);
  }
  TACHO_ASSIGN(const auto known, metric::architecture_named(name, a.config_dirs));
  return known ? metric::load_catalog(*known, a.config_dirs) : metric::load_catalog(name, a.config_dirs);
}

Result<Selected> select_metrics(const ProfileArguments& a, const metric::Catalog& catalog) {
  const metric::IdScheme scheme = a.ids == "seed" ? metric::IdScheme::kSeedProfile : metric::IdScheme::kV33;
  Selected selected;
  if (!a.set.empty()) {
    const auto set =
        std::find_if(catalog.sets.begin(), catalog.sets.end(), [&](const auto& each) { return each.name == a.set; });
    if (set == catalog.sets.end()) {
      std::string known;
      for (const metric::MetricSet& each : catalog.sets)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
      return fail("--set {}: {} has no such set; it has {}", a.set, catalog.architecture,
                  known.empty() ? "none" : known);
    }
    for (const std::string_view slug : set->metrics) {
      TACHO_ASSIGN(const metric::Selection selection, metric::resolve(catalog, slug));
      selected.selections.push_back(selection);
      selected.recorded.push_back(metric::to_string(selection.metric->id));
    }
    return selected;
  }
  std::vector<std::string> texts = a.blocks;
  if (a.roof_only) {
    texts = {catalog.block(4) != nullptr ? "4" : "2"};
    if (catalog.block(4) == nullptr)
      selected.notes.push_back(
          fmt::format("{} has no roofline: --roof-only collects its {} alone", catalog.architecture,
                      catalog.block(2) != nullptr ? catalog.block(2)->title : std::string_view("block 2")));
  }
  std::string left_out;
  std::vector<std::string> meanings;
  for (const std::string& text : texts) {
    auto selection = metric::resolve(catalog, text, scheme);
    if (!selection && scheme == metric::IdScheme::kSeedProfile) {
      // The documents' analyze may use this number for something else.
      auto other = metric::resolve(catalog, text, metric::IdScheme::kSeedAnalyze);
      if (other && other->metric != nullptr) {
        selected.notes.push_back(fmt::format("{}; {}, which analyze prints under this number, is collected",
                                             selection.error().message, other->metric->name));
        selection = std::move(other);
      }
    }
    if (!selection) {
      const auto elsewhere = known_elsewhere(text, scheme);
      if (!elsewhere) return fail("-b {}: {}", text, selection.error().message);
      selected.notes.push_back(
          fmt::format("{} ({}) cannot be computed on {}: left out", text, *elsewhere, catalog.architecture));
      left_out += fmt::format("{}{} ({})", left_out.empty() ? "" : ", ", text, *elsewhere);
      continue;
    }
    const std::string meaning = documents_meaning(catalog, text, *selection);
    const metric::Metric* also = nullptr;
    if (!meaning.empty() && scheme == metric::IdScheme::kV33) {
      meanings.push_back(meaning);
    } else if (!meaning.empty()) {
      // The user also wants what the documents' analyze shows under this number.
      also = catalog.metric(selection->elsewhere->slug);
      selected.notes.push_back(fmt::format("in the users' documents {}; both are collected", meaning));
    }
    selected.selections.push_back(*selection);
    if (!a.roof_only) {
      // Numbers of the documents change meaning when the folder is read: record what the user meant.
      const bool number = metric::parse_metric_id(text).has_value();
      selected.recorded.push_back(number && selection->metric != nullptr ? metric::to_string(selection->metric->id)
                                                                         : text);
    }
    if (also != nullptr) {
      TACHO_ASSIGN(const metric::Selection other, metric::resolve(catalog, also->slug));
      selected.selections.push_back(other);
      selected.recorded.push_back(metric::to_string(also->id));
    }
  }
  // "Nothing left to count" must not become "nothing asked for", which means everything.
  if (!left_out.empty() && selected.selections.empty())
    return fail("-b: {} cannot be computed on {}; --list-blocks shows what can", left_out, catalog.architecture);
  if (std::string note = metric::ids_note(catalog, meanings); !note.empty()) selected.notes.push_back(std::move(note));
  return selected;
}

bool wants_roofline(const ProfileArguments& a, const metric::Catalog& catalog,
                    const std::vector<metric::Selection>& selections) {
  if (a.no_roof || catalog.block(4) == nullptr) return false;
  if (a.roof_only || selections.empty()) return true;
  return std::any_of(selections.begin(), selections.end(),
                     [](const metric::Selection& each) { return each.block != nullptr && each.block->number == 4; });
}

}  // namespace tacho::cli::profiling
