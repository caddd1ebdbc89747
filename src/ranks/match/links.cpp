// Links by the names of GPUs (links.h).
#include "ranks/match/links.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tacho::ranks {
namespace {

struct Module {
  std::string_view model;  // a word of the name
  bool only_sxm;           // there is a PCIe card whose name does not say so
  std::string_view link;
  double per_link;  // GB/s in one direction
  int64_t links;
  bool each_to_one;  // a link leads to one other GPU, else to a switch
};

constexpr Module kModules[] = {
    {"V100", true, "NVLink 2", 25, 6, false},           {"A100", true, "NVLink 3", 25, 12, false},
    {"A800", true, "NVLink 3", 25, 8, false},           {"H100", false, "NVLink 4", 25, 18, false},
    {"H200", false, "NVLink 4", 25, 18, false},         {"H20", false, "NVLink 4", 25, 18, false},
    {"H800", false, "NVLink 4", 25, 8, false},          {"B200", false, "NVLink 5", 50, 18, false},
    {"B300", false, "NVLink 5", 50, 18, false},         {"GB200", false, "NVLink 5", 50, 18, false},
    {"GB300", false, "NVLink 5", 50, 18, false},        {"MI300X", false, "Infinity Fabric", 64, 7, true},
    {"MI325X", false, "Infinity Fabric", 64, 7, true},  {"MI350X", false, "Infinity Fabric", 76.8, 7, true},
    {"MI355X", false, "Infinity Fabric", 76.8, 7, true}};

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of(" -_"), name.size());
    if (end > 0) words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return words;
}

}  // namespace

LinkPeak link_peak(std::string_view device, int64_t ranks) {
  const std::vector<std::string_view> words = words_of(device);
  const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
  const bool sxm = std::ranges::any_of(words, [](std::string_view word) { return word.starts_with("SXM"); });
  // A card, one of two or four that a bridge may connect, or a part of a GPU.
  if (has("PCIe") || has("PCIE") || has("NVL") || has("MIG")) return {};
  for (const Module& module : kModules) {
    if (!has(module.model) || (module.only_sxm && !sxm)) continue;
    const int64_t links = module.each_to_one ? std::clamp<int64_t>(ranks - 1, 0, module.links) : module.links;
    return {module.per_link * static_cast<double>(links), module.link};
  }
  return {};
}

}  // namespace tacho::ranks
