// Which launches of a counting run get values: the kernels and launches that the user chose, and whether only those
// that the program lets be recorded. tacho writes it at the beginning of a spool's config; every library that counts,
// and tacho itself, asks here, so that a choice means the same on every device. Allocates nothing.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tacho::spool {

class LaunchFilter {
 public:
  LaunchFilter() = default;
  /// `config`: lines "kernel=TEXT", "dispatch=FIRST:LAST" and "regions=1", in front of all others. The text stays where
  /// it is.
  explicit LaunchFilter(std::string_view config) {
    size_t at = 0;
    while (at < config.size()) {
      const std::string_view line = line_at(config, at);
      if (line.starts_with(kKernel))
        by_kernel_ = true;
      else if (line.starts_with(kDispatch))
        by_index_ = true;
      else if (line.starts_with(kRegions))
        by_regions_ = after(line, kRegions.size()) == "1";
      else
        break;
      at += line.size() + 1;
    }
    lines_ = {config.data(), std::min(at, config.size())};
  }

  /// Whether a name is asked for at all.
  bool by_kernel() const { return by_kernel_; }
  /// Only launches count for which the program lets recording be on.
  bool by_regions() const { return by_regions_; }
  /// Whether a kernel passes: its name, or the same name as people write it, contains one of the texts.
  bool kernel(std::string_view name, std::string_view readable = {}) const {
    return !by_kernel_ || any(kKernel, [&](std::string_view text) {
      return name.find(text) != std::string_view::npos || readable.find(text) != std::string_view::npos;
    });
  }
  /// Whether a launch passes: its 0-based number over all launches of the run is in one of the ranges.
  bool launch(uint64_t index) const {
    return !by_index_ || any(kDispatch, [&](std::string_view range) {
      const size_t colon = range.find(':');
      const uint64_t first = number(range);
      return index >= first && index <= (colon == range.npos ? first : number(after(range, colon + 1)));
    });
  }

 private:
  static constexpr std::string_view kKernel = "kernel=", kDispatch = "dispatch=", kRegions = "regions=";

  static std::string_view line_at(std::string_view text, size_t at) {
    const size_t end = text.find('\n', at);
    return {text.data() + at, (end == text.npos ? text.size() : end) - at};
  }
  // What comes after `count` letters that are there. Unlike substr() it cannot throw: libtacho.so has no exceptions.
  static std::string_view after(std::string_view text, size_t count) {
    text.remove_prefix(count);
    return text;
  }
  static uint64_t number(std::string_view text) {
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  // Whether a value of that key passes.
  template <typename Test>
  bool any(std::string_view key, Test passes) const {
    for (size_t at = 0; at < lines_.size();) {
      const std::string_view line = line_at(lines_, at);
      if (line.starts_with(key) && passes(after(line, key.size()))) return true;
      at += line.size() + 1;
    }
    return false;
  }

  std::string_view lines_;
  bool by_kernel_ = false, by_index_ = false, by_regions_ = false;
};

}  // namespace tacho::spool
