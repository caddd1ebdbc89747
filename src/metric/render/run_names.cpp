// Finds the components of paths that tell runs apart.
#include "metric/render/run_names.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "report/text.h"

namespace tacho::metric {

namespace {

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (const std::string_view part = path.substr(0, slash); !part.empty() && part != ".") parts.emplace_back(part);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

bool distinct(const std::vector<std::string>& names) {
  return std::set<std::string_view>(names.begin(), names.end()).size() == names.size();
}

}  // namespace

std::string cut_middle(std::string_view name, size_t width) {
  if (report::display_width(name) <= width || width < 3) return std::string(name);
  // Whole UTF-8 characters from both ends.
  const auto starts = [&](size_t at) { return (static_cast<unsigned char>(name[at]) & 0xc0) != 0x80; };
  const size_t room = width - 1;
  std::string front, back;
  size_t from = 0, to = name.size();
  while (report::display_width(front) < (room + 1) / 2) {
    size_t next = from + 1;
    while (next < name.size() && !starts(next)) ++next;
    front += name.substr(from, next - from);
    from = next;
  }
  while (report::display_width(back) < room / 2) {
    size_t next = to - 1;
    while (next > from && !starts(next)) --next;
    back.insert(0, name.substr(next, to - next));
    to = next;
  }
  return front + "…" + back;
}

std::vector<std::string> run_names(std::span<const std::string> paths, size_t width) {
  std::vector<std::vector<std::string>> parts;
  size_t shortest = ~size_t{0};
  for (const std::string& path : paths) {
    parts.push_back(components(path));
    shortest = std::min(shortest, parts.back().size());
  }
  // Components that all have in common at the end say nothing.
  size_t common = 0;
  while (common < shortest && std::all_of(parts.begin(), parts.end(), [&](const auto& each) {
           return each[each.size() - 1 - common] == parts.front()[parts.front().size() - 1 - common];
         }))
    ++common;
  std::vector<std::string> names;
  for (size_t taken = 1; taken <= 4; ++taken) {
    names.clear();
    for (const std::vector<std::string>& each : parts) {
      const size_t end = each.size() > common ? each.size() - common : each.size();
      const size_t begin = end > taken ? end - taken : 0;
      std::string name;
      for (size_t i = begin; i < end; ++i) name += (name.empty() ? "" : "/") + each[i];
      names.push_back(cut_middle(report::clean(name), width));
    }
    if (distinct(names)) return names;
  }
  for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("run {}", i);
  return names;
}

}  // namespace tacho::metric
