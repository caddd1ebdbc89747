// Filters that matched nothing (not_matched.h).
#include "cli/profile/not_matched.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "cli/shared/suggest.h"

namespace tacho::cli::profiling {
namespace {

// "; did you mean vecCopy?" for a part of a name that matches no kernel.
std::string nearest_kernel(const std::string& wanted, const std::vector<std::string>& kernels) {
  // People write the name without its arguments and do not remember its capitals.
  const auto small = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  std::vector<std::string> names, small_names;
  for (const std::string& kernel : kernels) {
    std::string name = kernel.substr(0, kernel.find_first_of("(<"));
    name = name.substr(std::max(name.rfind(' ') + 1, name.rfind(':') + 1));
    for (std::string& each : std::array{std::move(name), kernel})
      if (!each.empty()) names.push_back(std::move(each));
  }
  for (const std::string& name : names) small_names.push_back(small(name));
  const std::string best = nearest(small(wanted), small_names);
  const auto found = std::find(small_names.begin(), small_names.end(), best);
  if (best.empty() || found == small_names.end()) return {};
  return fmt::format("; did you mean {}?", names[static_cast<size_t>(found - small_names.begin())]);
}

}  // namespace

std::vector<std::string> not_matched(const ProfileArguments& a, const std::vector<counter::Filter::Range>& ranges,
                                     const counter::Outcome& outcome) {
  if (outcome.explained) return {};
  if (outcome.seen == 0)
    return {outcome.exit_code == 0
                ? "the program launched no kernel, so there is nothing to profile"
                : "the program ended before a kernel of it had finished, so there is nothing to profile"};
  std::vector<std::string> sentences;
  for (const std::string& wanted : a.kernels)
    if (outcome.seen_kernels.size() < counter::Outcome::kMostNames &&
        std::none_of(outcome.seen_kernels.begin(), outcome.seen_kernels.end(),
                     [&](const std::string& kernel) { return kernel.find(wanted) != std::string::npos; }))
      sentences.push_back(fmt::format("-k {}: no kernel of that name was launched{}", wanted,
                                      nearest_kernel(wanted, outcome.seen_kernels)));
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].first >= outcome.seen)
      sentences.push_back(fmt::format("-d {}: no such dispatch; the program launched {}, numbered from 0",
                                      a.dispatches[i], outcome.seen));
  if (outcome.measured > 0) return sentences;
  if (a.kernels.empty() && a.dispatches.empty())
    // Counting may have ended on the way: how many were launched is then not known.
    return {"none of the program's launches has values"};
  sentences.push_back(fmt::format("no dispatch passed{}{}; the program launched {}",
                                  a.kernels.empty() ? "" : " -k " + fmt::format("{}", fmt::join(a.kernels, " ")),
                                  a.dispatches.empty() ? ""
                                                       : (a.kernels.empty() ? " -d " : " and -d ") +
                                                             fmt::format("{}", fmt::join(a.dispatches, " ")),
                                  counter::launched_kernels(outcome)));
  return sentences;
}

}  // namespace tacho::cli::profiling
