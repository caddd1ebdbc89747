// Entries of tables of names (name_sums.h).
#include "view/answers/name_sums.h"

namespace tacho::view {

void put_sums(JsonWriter& json, const SliceNames& names, uint32_t name, const analysis::Sums& sums, int64_t whole,
              bool bytes) {
  json.begin_object()
      .member("name", name)
      .member("text", names.text(name))
      .member("count", sums.count + sums.unknown)
      .member("total", sums.total);
  if (sums.count > 0)
    json.member("mean", static_cast<double>(sums.total) / static_cast<double>(sums.count))
        .member("min", sums.min)
        .member("max", sums.max);
  if (sums.unknown > 0) json.member("unknown", sums.unknown);
  json.member("share", whole > 0 ? static_cast<double>(sums.total) / static_cast<double>(whole) : 0.0);
  if (bytes) {
    if (sums.sized > 0) json.member("bytes", sums.bytes);
    if (sums.sized_ns > 0) json.member("rate", static_cast<double>(sums.bytes) / static_cast<double>(sums.sized_ns));
    if (sums.sized < sums.count + sums.unknown) json.member("unsized", sums.count + sums.unknown - sums.sized);
  }
  json.end_object();
}

void Run::add_name(const NameSum& sum, Sums& to) {
  if (sum.count + sum.unknown == 0) return;
  trace::Summary entry;
  entry.count = sum.count;
  entry.unknown = sum.unknown;
  entry.sum = sum.total;
  entry.min = sum.min;
  entry.max = sum.max;
  to.of[sum.name].add(entry);
}

}  // namespace tacho::view
