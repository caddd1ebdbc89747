// Operators around those that differ, and kinds of operators (common_parents.h).
#include "analysis/operators/common_parents.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/saturating.h"

namespace tacho::analysis {

int32_t CommonParents::call(size_t side, int32_t parent, int64_t name) {
  if (parent == kUnknownPath) return kUnknownPath;
  const auto known = children_.find({parent, name});
  int32_t path = known == children_.end() ? kUnknownPath : known->second;
  if (path == kUnknownPath) {
    if (paths_.size() >= most_) {
      too_many_ = true;
      return kUnknownPath;
    }
    path = static_cast<int32_t>(paths_.size());
    paths_.push_back({.parent = parent, .name = name, .owner = {path, path}});
    children_.emplace(std::pair(parent, name), path);
  }
  ++at(path).calls[side];
  return path;
}

int32_t CommonParents::path(int32_t parent, int64_t name) const {
  const auto known = children_.find({parent, name});
  return known == children_.end() ? kUnknownPath : known->second;
}

void CommonParents::works(size_t side, int32_t path) {
  if (path != kUnknownPath) at(path).works[side] = true;
}

std::vector<CommonParents::Work> CommonParents::all_works() const {
  std::vector<Work> out;
  for (size_t path = 1; path < paths_.size(); ++path)
    for (const size_t side : {size_t{0}, size_t{1}})
      if (paths_[path].works[side]) out.push_back({static_cast<int32_t>(path), side});
  return out;
}

std::map<int64_t, CommonParents::Candidate> CommonParents::candidates(const std::vector<Work>& works) const {
  std::map<int64_t, Candidate> out;
  for (const Work& work : works) {
    std::map<int64_t, int32_t> tops;
    int height = 0;
    for (int32_t path = work.path; path != kRoot; path = at(path).parent, ++height) {
      tops[at(path).name] = path;
      Candidate& candidate = out[at(path).name];
      candidate.height = std::max(candidate.height, height);
    }
    for (const auto& [name, top] : tops) out[name].below.push_back({work, top});
  }
  return out;
}

void CommonParents::resolve(const std::function<bool(int64_t)>& may_stand) {
  if (too_many_) return;
  const std::vector<Work> works = all_works();
  std::map<int64_t, unsigned> sides;  // of each name: 1, 2, or 3 for both
  for (const Work& work : works) sides[at(work.path).name] |= 1u << work.side;
  if (std::all_of(sides.begin(), sides.end(), [](const auto& each) { return each.second == 3; })) return;
  const auto found = candidates(works);
  std::vector<std::pair<int, int64_t>> order;  // the innermost first
  for (const auto& [name, candidate] : found)
    if (candidate.height > 0 && may_stand(name)) order.emplace_back(candidate.height, name);
  std::sort(order.begin(), order.end());
  for (const auto& [height, name] : order) stand(name, found.at(name), sides);

  std::map<int64_t, std::array<std::set<int64_t>, 2>> together;
  for (const Work& work : works)
    if (at(work.path).owner[work.side] != work.path)
      together[at(at(work.path).owner[work.side]).name][work.side].insert(at(work.path).name);
  // What such an operator launches itself belongs to its row as well.
  for (const Work& work : works)
    if (const auto own = together.find(at(work.path).name);
        own != together.end() && at(work.path).owner[work.side] == work.path)
      own->second[work.side].insert(at(work.path).name);
  for (const auto& [name, of] : together)
    stands_.push_back({name, {std::vector(of[0].begin(), of[0].end()), std::vector(of[1].begin(), of[1].end())}});
}

// Lets an operator stand for what differs below it. `sides`: in which traces names have work; it stands in both then.
void CommonParents::stand(int64_t name, const Candidate& candidate, std::map<int64_t, unsigned>& sides) {
  constexpr double kSame = 0.05;  // recordings begin and end within calls
  std::array<std::set<int32_t>, 2> tops;
  std::map<int64_t, std::array<double, 2>> calls;  // by the names that own work now
  std::set<std::pair<size_t, int32_t>> counted;
  const auto owner_below = [&](const Below& below) {
    const int32_t owner = at(below.work.path).owner[below.work.side];
    return owner >= below.top ? std::optional(owner) : std::nullopt;  // else an operator around this one has it
  };
  for (const Below& below : candidate.below) {
    const auto owner = owner_below(below);
    if (!owner) continue;
    tops[below.work.side].insert(below.top);
    if (counted.emplace(below.work.side, *owner).second)
      calls[at(*owner).name][below.work.side] += static_cast<double>(at(*owner).calls[below.work.side]);
  }
  std::array<double, 2> own{};
  for (const size_t side : {size_t{0}, size_t{1}})
    for (const int32_t top : tops[side]) own[side] += static_cast<double>(at(top).calls[side]);
  if (own[0] <= 0 || own[1] <= 0) return;
  std::set<int64_t> differing;
  std::array<bool, 2> has{};
  bool alone = false;
  for (const auto& [each, times] : calls) {
    const double a = times[0] / own[0], b = times[1] / own[1];
    if (std::fabs(a - b) <= kSame * std::max(a, b)) continue;
    differing.insert(each);
    for (const size_t side : {size_t{0}, size_t{1}}) has[side] = has[side] || times[side] > 0;
    alone = alone || (each != name && sides[each] != 3);
  }
  if (!has[0] || !has[1] || !alone) return;
  for (const Below& below : candidate.below)
    if (const auto owner = owner_below(below); owner && differing.count(at(*owner).name) != 0)
      at(below.work.path).owner[below.work.side] = below.top;
  sides[name] = 3;
}

void CommonParents::join_kinds(const std::function<std::string(int64_t)>& kind_of, int64_t first) {
  if (too_many_) return;
  std::map<std::string, std::array<std::set<int64_t>, 2>> kinds;
  std::map<int64_t, std::string> known;
  for (const Together& each : stands_) known[each.name];  // common already
  for (const Work& work : all_works()) {
    const int64_t name = at(owner(work.side, work.path)).name;
    const auto [kind, fresh] = known.try_emplace(name);
    if (fresh) kind->second = kind_of(name);
    if (!kind->second.empty()) kinds[kind->second][work.side].insert(name);
  }
  for (const auto& [text, of] : kinds) {
    if (of[0].empty() || of[1].empty() || of[0] == of[1]) continue;
    std::array<std::vector<int64_t>, 2> alone;
    for (const size_t side : {size_t{0}, size_t{1}})
      std::set_difference(of[side].begin(), of[side].end(), of[1 - side].begin(), of[1 - side].end(),
                          std::back_inserter(alone[side]));
    // Where one trace has all that the other one has, its own ones are part of the other's common ones.
    Together joined{first + static_cast<int64_t>(kind_texts_.size()), alone};
    if (alone[0].empty() || alone[1].empty())
      for (const size_t side : {size_t{0}, size_t{1}}) joined.of[side].assign(of[side].begin(), of[side].end());
    for (const auto& names : joined.of)
      for (const int64_t name : names) renamed_[name] = joined.name;
    kinds_.push_back(std::move(joined));
    kind_texts_.push_back(text);
  }
}

int32_t CommonParents::owner(size_t side, int32_t path) const {
  return path == kUnknownPath ? path : at(path).owner[side];
}

int64_t CommonParents::name(int32_t owner) const {
  const int64_t name = at(owner).name;
  const auto renamed = renamed_.find(name);
  return renamed == renamed_.end() ? name : renamed->second;
}

namespace {

using TensorDims = std::vector<int64_t>;

// "[[8, 3], [3, 5], []]" as numbers; nullopt for lists of tensors and for what is no such text.
std::optional<std::vector<TensorDims>> tensors_of(std::string_view text) {
  std::vector<TensorDims> out;
  int depth = 0;
  int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (depth != 2) return std::nullopt;
      number = saturating_add(saturating_multiply(std::max<int64_t>(number, 0), 10), c - '0');
      continue;
    }
    if (number >= 0) out.back().push_back(number);
    number = -1;
    if (c == '[') {
      if (++depth > 2) return std::nullopt;
      if (depth == 2) out.emplace_back();
    } else if (c == ']') {
      if (--depth < 0) return std::nullopt;
    } else if (c != ',' && c != ' ') {
      return std::nullopt;
    }
  }
  return depth == 0 ? std::optional(out) : std::nullopt;
}

struct ProductOperator {
  std::string_view name;
  size_t left, right;  // the inputs that are multiplied
  bool rows_of_right;  // the right one lies as N x K
};
constexpr ProductOperator kProducts[] = {
    {"aten::mm", 0, 1, false},           {"aten::matmul", 0, 1, false}, {"aten::addmm", 1, 2, false},
    {"aten::addmm_", 1, 2, false},       {"aten::linear", 0, 1, true},  {"aten::_addmm_activation", 1, 2, false},
    {"aten::mkldnn_linear", 0, 1, true},
};

}  // namespace

bool is_operator_name(std::string_view name) {
  if (name.find("::") != name.npos) return true;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward");
}

std::string product_kind(std::string_view name, std::string_view dims) {
  const auto* const of =
      std::find_if(std::begin(kProducts), std::end(kProducts), [&](const auto& each) { return each.name == name; });
  if (of == std::end(kProducts)) return {};
  if (dims.empty()) return "matrix product";
  const auto tensors = tensors_of(dims);
  if (!tensors || tensors->size() <= of->right) return {};
  const TensorDims &left = (*tensors)[of->left], &right = (*tensors)[of->right];
  if (left.empty() || right.size() != 2) return {};
  const int64_t n = right[of->rows_of_right ? 0 : 1], k = right[of->rows_of_right ? 1 : 0];
  if (left.back() != k) return {};
  int64_t m = 1;
  for (size_t i = 0; i + 1 < left.size(); ++i) m = saturating_multiply(m, left[i]);
  return fmt::format("matrix product {} x {} x {}", m, n, k);
}

}  // namespace tacho::analysis
