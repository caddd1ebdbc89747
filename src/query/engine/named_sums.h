// Sums calls and time by name, for any number of names, for `top` and similar views. With many names the sums go to
// temporary files; the texts stay where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "event/schema.h"
#include "query/engine/group_table.h"
#include "query/engine/relation.h"
#include "query/engine/text_prefix.h"

namespace tacho::query {

class NamedSums {
 public:
  enum class Order {
    kTotal,  ///< longest first, then by name
    kRpd,    ///< like rpd's views: whole microseconds, longest first, then names backwards
    kRocpd,  ///< like rocpd's views: longest first, then names backwards
  };
  struct Row {
    int64_t code;
    int64_t calls;
    int64_t timed;  // of them, with a known duration
    int64_t total;  // ns
  };
  /// `text` gives the name of a code; codes with equal names become one row. If `exists` is given, finish() skips codes
  /// for which it returns false.
  explicit NamedSums(TextOf text, std::function<bool(int64_t)> exists = {});

  /// Adds calls, how many of them have a known duration, and the sum of those durations (ns). Negative values take
  /// earlier ones back.
  void add(int64_t code, int64_t calls, int64_t timed, int64_t total);
  /// One call; its duration may be kUnknown.
  void add_call(int64_t code, int64_t duration) {
    const bool known = duration != event::kUnknown;
    add(code, 1, known ? 1 : 0, known ? duration : 0);
  }
  /// Merges equal names, drops rows without calls and sorts. Call no add() afterwards.
  Status finish(Order order);

  size_t size() const { return ordered_.all().size(); }
  Row row(size_t index) const;
  /// Valid as long as `scratch` stays untouched and the caller asks for no other name.
  std::string_view name(int64_t code, std::string& scratch) const { return text_(code, scratch); }

 private:
  struct Sum {
    int64_t code, calls, timed, total;
    int64_t sort_key() const { return code; }
    bool operator<(const Sum& other) const { return code < other.code; }
  };
  struct Hashed {
    int64_t hash;
    Sum sum;
    TextPrefix prefix;
    int64_t sort_key() const { return hash; }
    bool operator<(const Hashed& other) const { return hash < other.hash; }
  };
  struct Ordered {
    int64_t key;
    Sum sum;
    TextPrefix prefix;
  };
  struct Before {
    const NamedSums* sums;
    bool operator()(const Ordered& a, const Ordered& b) const;
  };
  void spill();

  TextOf text_;
  std::function<bool(int64_t)> exists_;
  GroupTable table_;
  SortedFile<Sum> by_code_;
  bool spilled_ = false;
  Order order_ = Order::kTotal;
  SortedFile<Ordered, Before> ordered_;
  mutable std::string left_, right_;
};

}  // namespace tacho::query
