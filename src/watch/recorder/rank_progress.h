// Which rank of a communicator has not called the collective that the others have: ranks of programs that share a ring.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "watch/recorder/ring_file.h"

namespace tacho::watch {

class RankProgress {
 public:
  /// A rank joined a communicator (`operation` = "") or called a collective, at `at`, CLOCK_MONOTONIC_RAW ns. Its
  /// number grows with each of that operation in the communicator.
  void observe(const KeptRecord& record, const std::string& operation, int64_t at);
  /// A collective that some rank called more than `ns` before `now`, and a known one has not: a sentence, once for each
  /// such collective. `who`: a process in words, "process 4711, which has ended".
  template <typename Who>
  std::optional<std::string> late(int64_t now, int64_t ns, const Who& who) {
    for (auto& [key, calls] : calls_) {
      const auto behind = pending(key, calls);
      if (!behind || now - behind->at < ns || calls.told == behind->number + 1) continue;
      calls.told = behind->number + 1;
      return sentence(key, *behind, now, who);
    }
    return std::nullopt;
  }
  /// All of them, whenever they were called first.
  template <typename Who>
  std::vector<std::string> all(int64_t now, const Who& who) const {
    std::vector<std::string> sentences;
    for (const auto& [key, calls] : calls_)
      if (const auto behind = pending(key, calls)) sentences.push_back(sentence(key, *behind, now, who));
    return sentences;
  }
  bool any() const { return !calls_.empty(); }

 private:
  using Key = std::pair<uint64_t, std::string>;  // communicator, operation
  struct Communicator {
    int ranks = 0;                  // 0: not told
    std::map<int, uint16_t> known;  // rank: index of its process
  };
  struct Calls {
    std::map<int, uint64_t> newest;        // by rank: the number after that of its last one
    std::map<uint64_t, int64_t> first_at;  // of those that not all known ranks have called, by number
    uint64_t told = 0;                     // the last one told, plus 1
  };
  // The first collective that not all have called.
  struct Behind {
    uint64_t number;
    int64_t at;  // its first call
    std::vector<int> called, missing;
  };
  std::optional<Behind> pending(const Key& key, const Calls& calls) const;
  std::string head(const Key& key, const Behind& behind, int64_t now) const;
  std::string tail(const Key& key) const;
  template <typename Who>
  std::string sentence(const Key& key, const Behind& behind, int64_t now, const Who& who) const {
    std::string text = head(key, behind, now);
    constexpr size_t kMost = 8;
    const Communicator& communicator = communicators_.at(key.first);
    for (size_t i = 0; i < behind.missing.size() && i < kMost; ++i)
      text += (i == 0 ? " " : ", ") + std::to_string(behind.missing[i]) + " (" +
              who(communicator.known.at(behind.missing[i])) + ")";
    if (behind.missing.size() > kMost) text += " and " + std::to_string(behind.missing.size() - kMost) + " others";
    return text + tail(key);
  }

  std::map<uint64_t, Communicator> communicators_;
  std::map<Key, Calls> calls_;
};

}  // namespace tacho::watch
