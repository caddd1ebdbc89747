// Hosts of one name (load.h).
#include "ranks/read/load.h"

#include <gtest/gtest.h>

namespace tacho::ranks {
namespace {

TEST(Load, HostsOfOneNameThatWereStartedApartAreTwo) {
  constexpr int64_t kFirst = 1'790'000'000'000'000'000, kMinute = 60'000'000'000;
  std::vector<RankRun> runs(6);
  const std::pair<const char*, int64_t> machines[] = {
      {"node", kFirst},          {"node", kFirst + kMinute}, {"node", kFirst + 400'000'000},
      {"node", event::kUnknown}, {"other", kFirst},          {"", kFirst + kMinute}};
  std::vector<RankRun*> all;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].host = machines[i].first;
    runs[i].booted = machines[i].second;
    all.push_back(&runs[i]);
  }
  keep_machines_apart(all);
  std::vector<std::string> hosts;
  for (const RankRun& run : runs) hosts.push_back(run.host);
  EXPECT_EQ(hosts, (std::vector<std::string>{"node", "node (2)", "node", "node", "other", ""}));
}

}  // namespace
}  // namespace tacho::ranks
