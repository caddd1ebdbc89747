// Joins books of rules (add_rules.h).
#include "metric/catalog/add_rules.h"

#include <algorithm>

#include "metric/catalog/fields.h"
#include "metric/catalog/string_store.h"

namespace tacho::metric {

namespace {
/// Puts copies of all text into a store.
class TextKeeper {
 public:
  explicit TextKeeper(StringStore& strings) : strings_(strings) {}
  void operator()(auto&... fields) { (visit_fields(*this, fields), ...); }
  void value(std::string_view& text) { text = strings_.intern(text); }
  template <typename T>
  requires(!std::is_class_v<T>) void value(T&) {}
  void list(auto&) {}

 private:
  StringStore& strings_;
};
}  // namespace

void add_rules(RuleBook& book, const RuleBook& more) {
  TextKeeper keep(*book.strings);
  const auto replaces = [](const auto& one, const auto& other) {
    return other.vendor == one.vendor || one.vendor.empty();
  };
  for (Rule rule : more.rules) {
    keep(rule);
    const auto same = std::find_if(book.rules.begin(), book.rules.end(),
                                   [&](const Rule& other) { return other.slug == rule.slug && replaces(rule, other); });
    if (same != book.rules.end()) {
      *same = std::move(rule);
    } else {
      book.rules.push_back(std::move(rule));
    }
  }
  for (RuleCheck check : more.checks) {
    keep(check);
    std::erase_if(book.checks,
                  [&](const RuleCheck& other) { return other.slug == check.slug && replaces(check, other); });
    book.checks.push_back(std::move(check));
  }
  for (RuleScreen screen : more.screens) {
    keep(screen);
    std::erase_if(book.screens, [&](const RuleScreen& other) { return replaces(screen, other); });
    book.screens.push_back(std::move(screen));
  }
}

}  // namespace tacho::metric
