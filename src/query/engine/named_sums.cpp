// Sums by name (named_sums.h): first by code; then it merges equal names by their hashes; then it sorts all.
#include "query/engine/named_sums.h"

#include <vector>

#include "base/saturating.h"

namespace tacho::query {

NamedSums::NamedSums(TextOf text, std::function<bool(int64_t)> exists)
    : text_(std::move(text)),
      exists_(std::move(exists)),
      table_(1, {0, 0, 0, 0}),
      by_code_(8u << 20),
      ordered_(16u << 20, Before{this}) {}

void NamedSums::add(int64_t code, int64_t calls, int64_t timed, int64_t total) {
  constexpr size_t kMostBytes = 24u << 20;
  if (table_.bytes() > kMostBytes) spill();
  int64_t* const record = table_.record(table_.place(&code));
  record[1] += calls;
  record[2] += timed;
  add_saturating(record[3], total);
}

void NamedSums::spill() {
  spilled_ = true;
  for (uint32_t i = 0; i < table_.groups(); ++i) {
    const int64_t* const record = table_.record(i);
    by_code_.add({record[0], record[1], record[2], record[3]});
  }
  table_.clear();
}

bool NamedSums::Before::operator()(const Ordered& a, const Ordered& b) const {
  if (a.key != b.key) return a.key < b.key;
  const bool backwards = sums->order_ != Order::kTotal;
  if (a.prefix != b.prefix) return backwards ? b.prefix < a.prefix : a.prefix < b.prefix;
  // Names this short, or pairs that both start with a zero byte, are rare, so compare whole texts.
  const int order = sums->text_(a.sum.code, sums->left_).compare(sums->text_(b.sum.code, sums->right_));
  return backwards ? order > 0 : order < 0;
}

Status NamedSums::finish(Order order) {
  order_ = order;
  SortedFile<Hashed> by_hash(16u << 20);
  const auto take = [&](const Sum& sum) {
    if (sum.calls == 0 || (exists_ && !exists_(sum.code))) return;
    const std::string_view name = text_(sum.code, left_);
    by_hash.add({static_cast<int64_t>(std::hash<std::string_view>()(name)), sum, text_prefix(name)});
  };
  if (spilled_) {
    spill();
    TACHO_TRY(by_code_.finish());
    Sum current, next;
    bool more = by_code_.next(current);
    while (more) {
      more = by_code_.next(next);
      if (more && next.code == current.code) {
        current.calls += next.calls;
        current.timed += next.timed;
        add_saturating(current.total, next.total);
        continue;
      }
      take(current);
      current = next;
    }
    by_code_ = SortedFile<Sum>(1024);
  } else {
    for (uint32_t i = 0; i < table_.groups(); ++i) {
      const int64_t* const record = table_.record(i);
      take({record[0], record[1], record[2], record[3]});
    }
  }
  table_.clear();
  TACHO_TRY(by_hash.finish());
  // Names with the same hash are nearly always the same name.
  std::vector<Hashed> together;
  const auto flush = [&] {
    for (const Hashed& one : together) {
      const int64_t key = order == Order::kRpd ? -(one.sum.total / 1000) : -one.sum.total;
      ordered_.add({key, one.sum, one.prefix});
    }
    together.clear();
  };
  Hashed next;
  while (by_hash.next(next)) {
    if (!together.empty() && together[0].hash != next.hash) flush();
    bool merged = false;
    for (Hashed& one : together) {
      if (one.prefix != next.prefix || text_(one.sum.code, left_) != text_(next.sum.code, right_)) continue;
      one.sum.calls += next.sum.calls;
      one.sum.timed += next.sum.timed;
      add_saturating(one.sum.total, next.sum.total);
      merged = true;
      break;
    }
    if (!merged) together.push_back(next);
  }
  flush();
  return ordered_.finish_indexed();
}

NamedSums::Row NamedSums::row(size_t index) const {
  const Sum& sum = ordered_.all()[index].sum;
  return {sum.code, sum.calls, sum.timed, sum.total};
}

}  // namespace tacho::query
