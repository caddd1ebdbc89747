// The environment of a program that tacho is about to start: keeps the given entries in order and sets some.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho {

/// Entries "NAME=value". Keeps order, repeated names and entries without '=': programs may look at them all.
class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const char* const* entries) {
    for (; *entries != nullptr; ++entries) entries_.emplace_back(*entries);
  }
  /// The value that getenv would give; empty if there is none.
  std::string get(std::string_view name) const {
    for (const std::string& entry : entries_)
      if (is(entry, name)) return entry.substr(name.size() + 1);
    return {};
  }
  /// Replaces every entry of that name (getenv takes the first of several, the loader the last), or adds one.
  void set(std::string_view name, std::string_view value) {
    std::string fresh = std::string(name) + '=' + std::string(value);
    bool found = false;
    for (std::string& entry : entries_)
      if (is(entry, name)) {
        entry = fresh;
        found = true;
      }
    if (!found) entries_.push_back(std::move(fresh));
  }
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  static bool is(const std::string& entry, std::string_view name) {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
  }
  std::vector<std::string> entries_;
};

}  // namespace tacho
