// Names that match, and their slices (run.h).
#include <algorithm>
#include <charconv>

#include "base/text/json_writer.h"
#include "view/answers/expression.h"
#include "view/run.h"

namespace tacho::view {

using event::Table;

namespace {

constexpr int kSearchMilliseconds = 150;

}  // namespace

Result<std::string> Run::search(const std::string& expression, bool match_case, size_t limit, std::string_view after) {
  TACHO_ASSIGN(const auto pattern, Expression::compile(expression, match_case));
  int64_t start = std::numeric_limits<int64_t>::min();
  uint64_t row = std::numeric_limits<uint64_t>::max();
  if (!after.empty()) {
    const char* const end = after.data() + after.size();
    const auto first = std::from_chars(after.data(), end, start);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':' ||
        std::from_chars(first.ptr + 1, end, row).ptr != end)
      return fail("after={}: is not a place that an earlier answer gave as \"more\"", after);
  }
  std::vector<bool> wanted(names_.size());
  std::vector<uint32_t> found;
  for (uint32_t name = 1; name < names_.size(); ++name)
    if (pattern->matches(names_.text(name))) {
      wanted[name] = true;
      found.push_back(name);
    }
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object();
  if (after.empty()) {
    // Sums of names over all tables that use them, the longest first.
    std::vector<NameSum> sums(names_.size());
    for (const Table table : slice_tables()) {
      const auto of_table = index_.name_sums(table);
      for (size_t i = 0; i < of_table.size(); ++i) sums[i].add(of_table[i]);
    }
    std::sort(found.begin(), found.end(), [&](uint32_t a, uint32_t b) {
      const auto &x = sums[a], &y = sums[b];
      return x.total != y.total ? x.total > y.total : x.count != y.count ? x.count > y.count : a < b;
    });
    json.member("matching_names", found.size());
    json.name("names").begin_array();
    for (size_t i = 0; i < found.size() && i < limit; ++i)
      json.newline()
          .begin_object()
          .member("name", found[i])
          .member("text", names_.text(found[i]))
          .member("kind", std::string(event::table_info(names_.table(found[i])).name))
          .member("count", sums[found[i]].count + sums[found[i]].unknown)
          .member("total", sums[found[i]].total)
          .end_object();
    json.end_array();
  }
  TileIndex::Hits hits;
  if (!found.empty()) {
    TACHO_ASSIGN(hits, index_.find(wanted, start, row, limit, kSearchMilliseconds));
  }
  json.name("hits").begin_array();
  for (const TileIndex::Hit& hit : hits.hits)
    json.newline()
        .begin_object()
        .member("row", fmt::format("{}", hit.slice.row))
        .member("track", hit.line)
        .member("lane", hit.slice.lane)
        .member("start", hit.slice.start)
        .member("duration", hit.slice.end == kOpenEnd ? -1 : hit.slice.end - hit.slice.start)
        .member("name", hit.slice.name)
        .end_object();
  json.end_array().name("more");
  if (hits.more)
    json.value(fmt::format("{}:{}", hits.start, hits.row));
  else
    json.null();
  json.end_object();
  return out;
}

}  // namespace tacho::view
