// Cutting names and paths (shorten.h).
#include "report/shorten.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>

#include "base/format.h"
#include "base/text/utf8.h"
#include "report/text.h"

namespace tacho::report {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kAnonymous = "(anonymous namespace)::";

// A text by its code points: where each begins, and how many columns lie before it.
class Glyphs {
 public:
  explicit Glyphs(std::string_view text) : text_(text) {
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = next_code_point(text.substr(at));
      begin_.push_back(at);
      column_.push_back(columns_);
      columns_ += display_width(text.substr(at, point.length));
      at += point.length;
    }
    begin_.push_back(text.size());
    column_.push_back(columns_);
  }
  size_t size() const { return begin_.size() - 1; }
  size_t columns() const { return columns_; }
  std::string_view glyph(size_t i) const { return text_.substr(begin_[i], begin_[i + 1] - begin_[i]); }
  std::string_view part(size_t from, size_t to) const { return text_.substr(begin_[from], begin_[to] - begin_[from]); }
  // One past the last glyph that fits into `columns` from glyph `from` on.
  size_t end_of(size_t from, size_t columns) const {
    const auto after =
        std::upper_bound(column_.begin() + static_cast<ptrdiff_t>(from), column_.end(), column_[from] + columns);
    return static_cast<size_t>(after - column_.begin()) - 1;
  }
  // The first glyph from which on the rest fits into `columns`.
  size_t tail_of(size_t columns) const {
    if (columns >= columns_) return 0;
    const auto first = std::lower_bound(column_.begin(), column_.end(), columns_ - columns);
    return static_cast<size_t>(first - column_.begin());
  }

 private:
  std::string_view text_;
  std::vector<size_t> begin_, column_;
  size_t columns_ = 0;
};

bool word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// Where the parameter list begins that ends the signature, or npos. "f(int) const" has one, "operator()" alone has
// none.
size_t parameters_of(std::string_view name) {
  std::string_view rest = name;
  for (const std::string_view end : {" const", " volatile", "&", " noexcept"})
    if (rest.ends_with(end)) rest.remove_suffix(end.size());
  if (!rest.ends_with(')') || rest.ends_with("(anonymous namespace)")) return std::string_view::npos;
  int depth = 0;
  for (size_t i = rest.size(); i-- > 0;) {
    if (rest[i] == ')' || rest[i] == '}' || rest[i] == ']') ++depth;
    if (rest[i] == '(' || rest[i] == '{' || rest[i] == '[') --depth;
    if (depth < 0) return std::string_view::npos;
    if (depth == 0) return i == 0 || rest[i] != '(' ? std::string_view::npos : i;
  }
  return std::string_view::npos;
}

// Without what stands before a "::": namespaces, classes, and the anonymous namespace.
std::string unqualified(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size();
      continue;
    }
    if (name.substr(i).starts_with("::")) {
      // The word before it goes; a closing bracket ("A<B>::f", "{lambda()#1}::operator()") is told by what is inside.
      while (!out.empty() && word_character(out.back())) out.pop_back();
      if (!out.empty() && (out.back() == '>' || out.back() == '}')) out += "::";
      i += 2;
      continue;
    }
    out += name[i++];
  }
  return out;
}

size_t common_prefix(std::string_view a, std::string_view b) {
  const auto [end, ignored] =
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  return static_cast<size_t>(end - a.begin());
}

// The beginning, then the part around byte `at`, in `width` columns.
std::string around(std::string_view text, size_t at, size_t width) {
  const Glyphs glyphs(text);
  if (glyphs.columns() <= width) return std::string(text);
  size_t point = 0;
  while (point < glyphs.size() && glyphs.part(0, point + 1).size() <= at) ++point;
  const size_t head = glyphs.end_of(0, width - 1);
  if (point + 1 < head) return std::string(glyphs.part(0, head)) + std::string(kEllipsis);
  const size_t front = glyphs.end_of(0, std::max<size_t>(width / 3, 2));
  const size_t room = width - display_width(glyphs.part(0, front)) - 1;
  // From the beginning of the word that differs, as far as that leaves room for the difference.
  size_t from = std::min(point, glyphs.size());
  while (from > front && point - from < room / 2 && glyphs.glyph(from - 1).size() == 1 &&
         word_character(glyphs.glyph(from - 1)[0]))
    --from;
  // Nothing stays unused at the end.
  from = std::min(from, std::max(glyphs.tail_of(room), front));
  size_t to = glyphs.end_of(from, room);
  if (to == glyphs.size())
    return std::string(glyphs.part(0, front)) + std::string(kEllipsis) + std::string(glyphs.part(from, to));
  to = glyphs.end_of(from, room - 1);
  return std::string(glyphs.part(0, front)) + std::string(kEllipsis) + std::string(glyphs.part(from, to)) +
         std::string(kEllipsis);
}

struct Name {
  size_t row;
  std::string_view text;
};

// Names that one text stands for are shown where they begin to differ, again for those that still agree.
void tell_apart(std::vector<Name>& names, size_t width, int depth, std::vector<std::string>& out) {
  constexpr int kDepth = 24;
  if (names.size() < 2 || depth > kDepth) return;
  size_t common = names[0].text.size();
  for (const Name& name : names) common = std::min(common, common_prefix(names[0].text, name.text));
  std::map<std::string, std::vector<Name>> groups;
  for (const Name& name : names) {
    out[name.row] = around(name.text, common, width);
    groups[out[name.row]].push_back(name);
  }
  for (auto& [label, group] : groups)
    if (group.size() < names.size() && group.front().text != group.back().text)
      tell_apart(group, width, depth + 1, out);
}

}  // namespace

std::string shortened_middle(std::string_view text, size_t width) {
  const Glyphs glyphs(text);
  if (glyphs.columns() <= width) return std::string(text);
  if (width == 0) return {};
  const size_t tail = (width - 1) / 3, front = glyphs.end_of(0, width - 1 - tail);
  return std::string(glyphs.part(0, front)) + std::string(kEllipsis) +
         std::string(glyphs.part(std::max(glyphs.tail_of(tail), front), glyphs.size()));
}

std::string with_short_words(std::string_view text, size_t width) {
  std::string out;
  while (true) {
    const size_t space = text.find(' ');
    out += shortened_middle(text.substr(0, space), width);
    if (space == std::string_view::npos) return out;
    out += ' ';
    text.remove_prefix(space + 1);
  }
}

std::string shortened_path(std::string_view path, size_t width, char separator) {
  if (display_width(path) <= width) return std::string(path);
  std::string_view best;
  for (size_t slash = path.rfind(separator); slash != std::string_view::npos && slash > 0;
       slash = path.rfind(separator, slash - 1)) {
    const std::string_view end = path.substr(slash + 1);
    if (display_width(end) + (best.empty() ? 0 : 2) > width) break;
    best = end;
  }
  if (!best.empty())
    return display_width(best) + 2 <= width ? std::string(kEllipsis) + separator + std::string(best)
                                            : std::string(best);
  if (width == 0) return {};
  const Glyphs glyphs(path);
  return std::string(kEllipsis) + std::string(glyphs.part(glyphs.tail_of(width - 1), glyphs.size()));
}

std::string compact_name(std::string_view name, int level) {
  if (level <= 0) return std::string(name);
  std::string out(name);
  if (out.starts_with("void ")) out.erase(0, 5);
  const bool signature =
      out.find('<') != std::string::npos || out.find("::") != std::string::npos || out.size() != name.size();
  if (const size_t open = parameters_of(out);
      open != std::string::npos && (signature || (open > 0 && word_character(out[open - 1]))) &&
      out.find_first_not_of(' ', open + 1) != std::string::npos && out[open + 1] != ')') {
    out.resize(open);
    out += "(…)";
  }
  if (level > 1 && signature) out = unqualified(out);
  if (level > 2 && out.ends_with("(…)") && out.size() > std::string_view("(…)").size())
    out.resize(out.size() - std::string_view("(…)").size());
  return out;
}

std::vector<std::string> shortened_apart(std::span<const std::string> names, size_t width) {
  std::vector<std::string> out(names.size()), compact(names.size());
  std::unordered_map<std::string, std::vector<size_t>> rows_of;  // by the text shown
  for (size_t i = 0; i < names.size(); ++i) {
    for (int level = 0; level <= 3; ++level) {
      compact[i] = compact_name(names[i], level);
      if (display_width(compact[i]) <= width) break;
    }
    out[i] = shortened_middle(compact[i], width);
    rows_of[out[i]].push_back(i);
  }
  for (const auto& [label, rows] : rows_of) {
    bool differ = false, compact_differ = true;
    for (const size_t row : rows) differ |= names[row] != names[rows[0]];
    if (!differ) continue;
    // One entry a name. Compact forms tell more in the same room, where they tell the names apart.
    std::map<std::string_view, std::vector<size_t>> by_name, by_compact;
    for (const size_t row : rows) by_name[names[row]].push_back(row);
    for (const size_t row : rows) by_compact[compact[row]].push_back(row);
    compact_differ = by_compact.size() == by_name.size();
    std::vector<Name> group;
    for (const auto& [name, same] : by_name)
      group.push_back({same[0], compact_differ ? std::string_view(compact[same[0]]) : name});
    tell_apart(group, width, 0, out);
    for (const auto& [name, same] : by_name)
      for (const size_t row : same) out[row] = out[same[0]];
  }
  // Texts of different groups can still meet.
  std::unordered_map<std::string, std::string_view> taken;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string plain = out[i];
    for (int number = 2;; ++number) {
      const auto [at, fresh] = taken.try_emplace(out[i], names[i]);
      if (fresh || at->second == names[i]) break;
      const std::string mark = fmt::format("#{}", number);
      out[i] = shortened(plain, width > mark.size() ? width - mark.size() : 1) + mark;
    }
  }
  return out;
}

}  // namespace tacho::report
