// Plans which counters fit into one pass of an Instinct GPU. It only plans: tacho has no source that reads
// AMD counters, so this provider never has a device.
//
// A hardware block has a few counter slots. A level counter (SQ_LEVEL_WAVES, ...) and its accumulator get
// their own pass, together with the counters of the metrics that use the level. All other counters go into
// the first pass with room, in order of name. All channels of a TCC counter take one slot and stay together.
#include "counter/provider.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "counter/wanted.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::counter {

namespace {

// "SQC_ICACHE_HITS" -> SQ: the block whose slots a counter takes, nullptr if the architecture has no such
// block.
const metric::CounterBlock* block_of(const metric::Architecture& architecture, std::string_view counter) {
  const std::string_view prefix = counter.substr(0, counter.find('_'));
  for (const metric::CounterBlock& block : architecture.counters)
    if (block.prefix == prefix) return &block;
  return nullptr;
}

bool is_level(std::string_view counter) {
  return counter.find("LEVEL") != std::string_view::npos && !counter.ends_with("_sum") &&
         !counter.starts_with("TCC_") && counter.find('[') == std::string_view::npos;
}

struct OpenPass {
  const metric::Architecture& architecture;
  std::string name = {};  // "" unless a level pass
  std::set<std::string> counters = {};
  std::map<std::string_view, int> used = {};

  bool holds(const std::string& counter) const { return counters.contains(counter); }
  bool take(const std::string& counter, int cost) {
    const metric::CounterBlock* const block = block_of(architecture, counter);
    if (block == nullptr) return false;
    int& slots = used[block->block];
    if (slots + cost > block->slots) return false;
    slots += cost;
    counters.insert(counter);
    return true;
  }
};

// L2 banks of one die; 0 = unknown.
int banks_of(const metric::Architecture& architecture) {
  const double banks = architecture.number("l2.banks");
  return std::isnan(banks) ? 0 : static_cast<int>(banks);
}
int channels_of(const metric::Architecture& architecture) {
  const double dies = architecture.number("l2.dies");
  return std::isnan(dies) ? 0 : banks_of(architecture) * static_cast<int>(dies);
}

class AmdProvider : public Provider {
 public:
  std::string_view name() const override { return "rocm"; }
  std::string_view vendor() const override { return "amd"; }
  std::string_view tool() const override { return "rocprofiler-sdk"; }
  std::vector<Device> devices(std::string& why) const override {
    if (access("/sys/class/kfd/kfd/topology/nodes", F_OK) == 0)
      why = "AMD GPUs: this tacho plans their counters (--dry-run --arch) and has no source that reads them";
    return {};
  }
  std::optional<Device> device_for(const metric::Architecture& architecture) const override {
    if (architecture.vendor != "amd" || !architecture.metrics) return std::nullopt;
    Device device;
    device.id = "0";
    device.vendor = architecture.vendor;
    device.architecture = architecture.name;
    device.facts = architecture;
    device.model = architecture.family;
    device.name = "AMD Instinct " + device.model;
    return device;
  }

  std::vector<CounterInfo> counters(const Device& device) const override {
    std::vector<CounterInfo> list;
    for (const std::string& counter : known_counters(device.facts)) list.push_back({counter, ""});
    return list;
  }

  Result<Plan> plan(const Device& device, std::span<const std::string> counters) const override {
    const std::set<std::string> known = known_counters(device.facts);
    std::set<std::string> plain, levels;
    std::map<std::string, std::set<std::string>> with_level;
    for (const std::string& given : counters) {
      const size_t colon = given.find(':');
      const std::string level = colon == std::string::npos ? "" : given.substr(0, colon);
      const std::string counter = colon == std::string::npos ? given : given.substr(colon + 1);
      // The level's pass holds the accumulator.
      if (counter == "SQ_ACCUM_PREV_HIRES") continue;
      for (const std::string& each : {counter, level})
        if (!each.empty() && !known.contains(each))
          return fail("{} has no counter '{}'", device.architecture, each.substr(0, each.find('[')));
      if (!level.empty()) {
        levels.insert(level);
        with_level[level].insert(counter);
      } else if (is_level(counter)) {
        levels.insert(counter);
      } else {
        plain.insert(counter);
      }
    }
    std::vector<OpenPass> open;
    for (const std::string& level : levels) {
      OpenPass& pass = open.emplace_back(OpenPass{device.facts});
      pass.name = level;
      pass.take(level, 2);  // also SQ_ACCUM_PREV_HIRES
      for (const std::string& counter : with_level[level])
        if (counter != level && !pass.take(counter, 1))
          return fail("{}: the counters of the metrics that use {} do not fit into one pass of {}", counter,
                      level, device.architecture);
    }
    for (const std::string& counter : plain) {
      if (block_of(device.facts, counter) == nullptr)
        return fail("{}: no block of {} is known to have this counter", counter, device.architecture);
      // Level passes are joined like all others: counters that they hold need no further pass, and their free
      // slots are filled first.
      bool placed =
          std::any_of(open.begin(), open.end(), [&](const OpenPass& pass) { return pass.holds(counter); });
      for (OpenPass& pass : open) placed = placed || pass.take(counter, 1);
      if (!placed) {
        OpenPass& pass = open.emplace_back(OpenPass{device.facts});
        if (!pass.take(counter, 1)) return fail("{} does not fit into any pass", counter);
      }
    }
    Plan plan;
    int number = 0;
    for (const OpenPass& pass : open) {
      Pass& made = plan.passes.emplace_back();
      made.name = pass.name.empty() ? fmt::format("pmc_perf_{}", number++) : pass.name;
      for (const std::string& counter : pass.counters) {
        if (!counter.ends_with('[')) {
          made.counters.push_back(counter);
          continue;
        }
        for (int i = 0; i < channels_of(device.facts); ++i)
          made.counters.push_back(fmt::format("{}{}]", counter, i));
      }
      if (!pass.name.empty()) made.counters.push_back("SQ_ACCUM_PREV_HIRES");
      made.definitions = definitions(pass, device.facts);
    }
    return plan;
  }

  tl::expected<Outcome, launch::LaunchError> collect(const Device& device, const Plan&, const CollectRequest&,
                                                     Observer&) const override {
    return tl::unexpected<launch::LaunchError>(launch::LaunchError{
        125,
        fmt::format("{}: this tacho plans AMD's counters and has no source that reads them", device.name)});
  }

 private:
  static std::set<std::string> known_counters(const metric::Architecture& architecture) {
    std::set<std::string> known;
    const auto catalog = metric::load_catalog(architecture);
    if (!catalog) return known;
    std::vector<metric::Selection> everything;
    for (const metric::Block& block : catalog->blocks)
      everything.push_back({&block, nullptr, nullptr, nullptr});
    const auto wanted = wanted_counters(*catalog, everything);
    if (!wanted) return known;
    for (const std::string& counter : wanted->counters) {
      const size_t colon = counter.find(':');
      known.insert(colon == std::string::npos ? counter : counter.substr(colon + 1));
    }
    known.insert(wanted->levels.begin(), wanted->levels.end());
    return known;
  }

  // perfmon/<pass>.yaml: defines for rocprofiler-sdk the counters that it does not know.
  static std::string definitions(const OpenPass& pass, const metric::Architecture& architecture) {
    std::string out;
    const auto add = [&](const std::string& name, const std::string& expression) {
      out += fmt::format(
          "    - name: {}\n      description: ''\n      properties: []\n      definitions:\n        - "
          "architectures: [{}]\n          expression: {}\n",
          name, architecture.name, expression);
    };
    if (!pass.name.empty()) add(pass.name + "_ACCUM", fmt::format("accumulate({}, HIGH_RES)", pass.name));
    const int banks = banks_of(architecture);
    for (const std::string& counter : pass.counters) {
      if (!counter.ends_with('[')) continue;
      const std::string base = counter.substr(0, counter.size() - 1);
      for (int i = 0; i < channels_of(architecture); ++i)
        add(fmt::format("{}[{}]", base, i),
            fmt::format("select({},[DIMENSION_XCC=[{}],DIMENSION_INSTANCE=[{}]])", base, i / banks,
                        i % banks));
    }
    return out.empty() ? out : "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n" + out;
  }
};

}  // namespace

std::unique_ptr<Provider> make_amd_provider() {
  return std::make_unique<AmdProvider>();
}

}  // namespace tacho::counter
