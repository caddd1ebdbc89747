// Comparing ranks (rank_progress.h).
#include "watch/recorder/rank_progress.h"

#include <algorithm>

#include "base/format.h"

namespace tacho::watch {
namespace {

// Anyone may write into the ring.
constexpr size_t kMostCommunicators = 4096, kMostRanks = 65536, kMostOperations = 64, kMostOpen = 65536;

// "rank 3", "ranks 0, 1, 2", "8 ranks"
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kMost = 8;
  if (ranks.size() > kMost) return fmt::format("{} ranks", ranks.size());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  return text;
}

}  // namespace

void RankProgress::observe(const KeptRecord& record, const std::string& operation, int64_t at) {
  const auto rank = static_cast<int>(record.context & UINT32_MAX), ranks = static_cast<int>(record.context >> 32);
  if (rank < 0 || ranks < 0) return;
  if (communicators_.size() >= kMostCommunicators && communicators_.count(record.object) == 0) return;
  Communicator& communicator = communicators_[record.object];
  if (communicator.known.size() >= kMostRanks && communicator.known.count(rank) == 0) return;
  communicator.known[rank] = record.process;
  if (ranks > 0) communicator.ranks = ranks;
  if (operation.empty() || record.amount == UINT64_MAX) return;
  const Key key{record.object, operation};
  if (calls_.size() >= kMostOperations * kMostCommunicators && calls_.count(key) == 0) return;
  Calls& calls = calls_[key];
  uint64_t& newest = calls.newest[rank];
  newest = std::max(newest, record.amount + 1);
  calls.first_at.try_emplace(record.amount, at);
  // What all have called is over.
  uint64_t least = UINT64_MAX;
  for (const auto& [each, process] : communicator.known) {
    const auto found = calls.newest.find(each);
    least = std::min(least, found == calls.newest.end() ? 0 : found->second);
  }
  calls.first_at.erase(calls.first_at.begin(), calls.first_at.lower_bound(least));
  if (calls.first_at.size() > kMostOpen) calls.first_at.erase(std::prev(calls.first_at.end()));
}

std::optional<RankProgress::Behind> RankProgress::pending(const Key& key, const Calls& calls) const {
  const auto communicator = communicators_.find(key.first);
  if (communicator == communicators_.end() || calls.first_at.empty()) return std::nullopt;
  Behind behind{calls.first_at.begin()->first, calls.first_at.begin()->second, {}, {}};
  for (const auto& [rank, process] : communicator->second.known) {
    const auto found = calls.newest.find(rank);
    const bool has = found != calls.newest.end() && found->second > behind.number;
    (has ? behind.called : behind.missing).push_back(rank);
  }
  if (behind.missing.empty()) return std::nullopt;
  return behind;
}

std::string RankProgress::head(const Key& key, const Behind& behind, int64_t now) const {
  return fmt::format("{} {} of communicator {:x} was called by {} {:.3f} s ago, and not yet by rank{}", key.second,
                     behind.number, key.first, ranks_text(behind.called), static_cast<double>(now - behind.at) * 1e-9,
                     behind.missing.size() == 1 ? "" : "s");
}

std::string RankProgress::tail(const Key& key) const {
  const Communicator& communicator = communicators_.at(key.first);
  const auto known = static_cast<int>(communicator.known.size());
  if (communicator.ranks <= known) return {};
  return fmt::format("; {} of its {} ranks {} not watched here", communicator.ranks - known, communicator.ranks,
                     communicator.ranks - known == 1 ? "is" : "are");
}

}  // namespace tacho::watch
