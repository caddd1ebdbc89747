// The environment of a program to start: keeps the given entries in order and sets some of them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho {

/// Entries "NAME=value". Order, repeated names and entries without '=' stay as they are: a program may look at all of them.
class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const char* const* entries) {
    for (; *entries != nullptr; ++entries) entries_.emplace_back(*entries);
  }
  /// The value that getenv gives; empty if there is none.
  std::string get(std::string_view name) const {
    for (const std::string& entry : entries_)
      if (is(entry, name)) return entry.substr(name.size() + 1);
    return {};
  }
  /// Replaces every entry of the name (of repeated ones getenv takes the first, the loader the last), or adds one.
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
