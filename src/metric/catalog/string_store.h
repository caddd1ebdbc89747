// Owns the text of a catalog's string_views that is not part of the binary.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>

namespace tacho::metric {

class StringStore {
 public:
  /// The stored copy of `text`; equal texts share one. Valid as long as the store.
  std::string_view intern(std::string_view text) {
    if (text.empty()) return {};
    if (const auto found = known_.find(text); found != known_.end()) return *found;
    return *known_.insert(owned_.emplace_back(text)).first;
  }

 private:
  std::deque<std::string> owned_;
  std::unordered_set<std::string_view> known_;
};

}  // namespace tacho::metric
