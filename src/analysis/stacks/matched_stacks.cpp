// Frames of two builds that are one function to a reader (stacks.h: match_functions).
#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "analysis/stacks/stacks.h"
#include "base/format.h"
#include "base/saturating.h"

namespace tacho::analysis {
namespace {

constexpr std::string_view kAnonymousScope = "(anonymous namespace)";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

std::string_view last_of_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// "0x7f2a…" becomes "0x…".
std::string without_addresses(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] != '0' || i + 2 >= text.size() || text[i + 1] != 'x' || (i > 0 && is_word(text[i - 1]))) continue;
    size_t end = i + 2;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end - i < 4 || (end < text.size() && is_word(text[end]))) continue;
    out += "x…";
    i = end - 1;
  }
  return out;
}

// "libfoo.so.1.2" becomes "libfoo.so"; names of modules stand in brackets: "[libfoo.so.1.2]".
std::string without_version(std::string_view name) {
  const size_t at = name.find(".so.");
  if (at == std::string_view::npos || !name.ends_with(']')) return std::string(name);
  return fmt::format("{}.so]", name.substr(0, at));
}

// Suffixes that compilers give to functions that they split or copied, and Rust's hash.
std::string_view without_suffixes(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    if (const size_t at = name.rfind(" [clone "); at != std::string_view::npos && name.ends_with(']')) {
      name = name.substr(0, at);
      again = true;
    }
    for (const std::string_view suffix : {".constprop", ".isra", ".part", ".cold", ".llvm", ".lto_priv"}) {
      const size_t at = name.rfind(suffix);
      if (at == std::string_view::npos || at == 0) continue;
      const std::string_view rest = name.substr(at + suffix.size());
      if (!std::all_of(rest.begin(), rest.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); })) continue;
      name = name.substr(0, at);
      again = true;
    }
  }
  if (const size_t at = name.rfind("::h"); at != std::string_view::npos && name.size() - at == 19 &&
                                           std::all_of(name.begin() + static_cast<ptrdiff_t>(at) + 3, name.end(),
                                                       [](unsigned char c) { return std::isxdigit(c) != 0; }))
    name = name.substr(0, at);
  return name;
}

// Whether the text before `at` ends with the keyword "operator", so that what follows is its name.
bool after_operator(std::string_view name, size_t at) {
  constexpr std::string_view kOperator = "operator";
  const std::string_view before = name.substr(0, at);
  return before.ends_with(kOperator) &&
         (before.size() == kOperator.size() || !is_word(before[before.size() - kOperator.size() - 1]));
}

// The text without what stands in (…), and with "<…>" for template arguments. Empty: the brackets do not match, or the
// text is no signature.
std::string without_brackets(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (after_operator(name, i) && !is_word(c) && c != ' ') {
      const std::string_view rest = name.substr(i);
      std::string_view symbol = rest.substr(0, 1);
      for (const std::string_view each : {"()", "[]", "<<=", ">>=", "<=>", "<<", ">>", "<=", ">=", "->*", "->"})
        if (rest.starts_with(each)) {
          symbol = each;
          break;
        }
      out += symbol;
      i += symbol.size() - 1;
      continue;
    }
    if (name.substr(i).starts_with(kAnonymousScope)) {
      out += kAnonymousScope;
      i += kAnonymousScope.size() - 1;
      continue;
    }
    if (c == '-' && name.substr(i).starts_with("->")) return {};  // "Memcpy (Host -> Device)"
    if (c != '(' && c != '<') {
      out += c;
      continue;
    }
    if (c == '(' && i > 0 && name[i - 1] == ' ') return {};
    // To the bracket that closes this one; "->" and operators within template arguments are rare enough to give up.
    int depth = 0;
    size_t end = i;
    for (; end < name.size(); ++end) {
      if (name[end] == '(' || name[end] == '<') ++depth;
      if (name[end] == ')' || name[end] == '>') --depth;
      if (depth == 0) break;
    }
    if (end == name.size()) return {};
    if (c == '<' && out.ends_with(' ')) out.pop_back();  // "operator< <int>"
    if (c == '<') out += "<…>";
    i = end;
  }
  return out;
}

// The name of a function in a signature: without result, parameters and template arguments.
std::string function_of(std::string_view signature) {
  std::string name = without_brackets(signature);
  if (name.empty() || name == signature) return std::string(signature);
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view qualifier : {" const", " volatile", " noexcept", "&", "[abi:cxx11]"})
      if (name.size() > qualifier.size() && name.ends_with(qualifier) &&
          !after_operator(name, name.size() - qualifier.size())) {
        name.resize(name.size() - qualifier.size());
        again = true;
      }
  }
  // The result ends at the last space that is not within the name: "operator bool", "(anonymous namespace)".
  size_t from = name.size();
  if (const size_t at = name.rfind("operator "); at != std::string::npos && (at == 0 || !is_word(name[at - 1])))
    from = at;
  for (size_t i = from; i-- > 0;) {
    if (i + 1 >= kAnonymousScope.size() && std::string_view(name).substr(0, i + 1).ends_with(kAnonymousScope)) {
      i -= kAnonymousScope.size() - 1;
      if (i == 0) break;
      continue;
    }
    if (name[i] == ' ') {
      if (i + 1 < name.size()) name.erase(0, i + 1);
      break;
    }
  }
  return name;
}

// "name 1234" and "name (1234)" without the number.
std::string without_number(std::string_view name) {
  std::string_view rest = name;
  if (rest.ends_with(')')) rest.remove_suffix(1);
  size_t digits = 0;
  while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[rest.size() - 1 - digits])) != 0)
    ++digits;
  if (digits == 0) return std::string(name);
  rest.remove_suffix(digits);
  if (rest.size() != name.size() - digits && rest.ends_with('(')) rest.remove_suffix(1);
  if (!rest.ends_with(' ') || rest.size() == 1) return std::string(name);
  rest.remove_suffix(1);
  return std::string(rest);
}

std::string_view place_of(const StackFrame& frame) {
  return frame.file.empty() ? std::string_view(frame.module) : frame.file;
}

std::string joined_key(const StackFrame& frame, std::string_view name, std::string_view place) {
  std::string key(1, static_cast<char>('0' + static_cast<int>(frame.part)));
  return key.append(name).append(1, '\0').append(place);
}

// Equal for frames that are one as they stand: a cache has one kernel under many paths.
std::string whole_key(const StackFrame& frame) {
  const std::string_view place = place_of(frame);
  return joined_key(frame, frame.name, frame.part == StackPart::kPython ? place : last_of_path(place));
}

// Equal for frames that are one function.
std::string function_key(const StackFrame& frame) {
  return joined_key(frame, matched_name(frame),
                    frame.part == StackPart::kPython ? last_of_path(place_of(frame)) : std::string_view());
}

bool is_level(const StackFrame& frame) {
  return frame.part == StackPart::kProcess || frame.part == StackPart::kThread;
}

// The keys of all frames of a tree. Of processes and threads, which are told apart by their numbers, the first of a
// name goes with the first of the other tree, and so on.
std::vector<std::string> function_keys(const StackTree& tree, const std::vector<bool>& alone) {
  std::vector<std::string> keys(tree.frames.size());
  std::unordered_map<std::string, int> of_name;
  for (size_t i = 1; i < tree.frames.size(); ++i) {
    if (!alone[i]) continue;
    keys[i] = function_key(tree.frames[i]);
    if (is_level(tree.frames[i])) keys[i] += fmt::format("\x01{}", ++of_name[keys[i]]);  // numbered()
  }
  return keys;
}

// The name of the second, third ... process or thread of a name, by its key.
std::string numbered(const std::string& name, std::string_view key) {
  const std::string_view number = key.substr(key.rfind('\x01') + 1);
  return number == "1" ? name : fmt::format("{} #{}", name, number);
}

// The frame that represents its group in every tree.
StackFrame common_frame(const std::vector<const StackFrame*>& group, std::string_view key) {
  StackFrame frame = *group.front();
  const auto all = [&](auto same) {
    return std::all_of(group.begin(), group.end(), [&](const StackFrame* each) { return same(*each); });
  };
  if (!all([&](const StackFrame& each) { return each.name == frame.name; })) frame.name = matched_name(frame);
  if (is_level(frame)) frame.name = numbered(frame.name, key);
  const StackFrame& first = *group.front();
  if (!all([&](const StackFrame& each) { return last_of_path(place_of(each)) == last_of_path(place_of(first)); })) {
    frame.file.clear();
    frame.module.clear();
  }
  return frame;
}

// The tree with each frame i as `now[i]`; frames that became equal are one.
StackTree with_frames(const StackTree& tree, const std::deque<StackFrame>& now) {
  StackTree out = tree;
  out.frames = {now.front()};
  out.nodes = {tree.nodes.front()};
  std::unordered_map<std::string, uint32_t> frame_of_key;
  std::vector<uint32_t> frame_of(now.size(), 0), place(tree.nodes.size(), 0);
  for (size_t i = 1; i < now.size(); ++i) {
    const auto [at, fresh] = frame_of_key.try_emplace(whole_key(now[i]), static_cast<uint32_t>(out.frames.size()));
    if (fresh) out.frames.push_back(now[i]);
    frame_of[i] = at->second;
  }
  std::unordered_map<uint64_t, uint32_t> child_of;
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const StackNode& node = tree.nodes[i];
    const uint32_t parent = place[node.parent], frame = frame_of[node.frame];
    const auto [at, fresh] =
        child_of.try_emplace(uint64_t{parent} << 32 | frame, static_cast<uint32_t>(out.nodes.size()));
    place[i] = at->second;
    if (fresh) {
      out.nodes.push_back(node);
      out.nodes.back().parent = parent;
      out.nodes.back().frame = frame;
      continue;
    }
    StackNode& to = out.nodes[at->second];
    add_saturating(to.host_ns, node.host_ns);
    add_saturating(to.gpu_ns, node.gpu_ns);
    to.samples += node.samples;
    to.launches += node.launches;
  }
  return out;
}

}  // namespace

Result<FramesBy> parse_frames_by(std::string_view text) {
  if (text == "function") return FramesBy::kFunction;
  if (text == "line") return FramesBy::kLine;
  return fail("--by {}: choose function or line", text);
}

std::string matched_name(const StackFrame& frame) {
  switch (frame.part) {
    case StackPart::kNative:
      if (frame.name.starts_with('[')) return without_version(frame.name);
      [[fallthrough]];
    case StackPart::kDevice:
      return without_addresses(function_of(without_suffixes(frame.name)));
    case StackPart::kProcess:
    case StackPart::kThread:
      return without_number(frame.name);
    default:
      return without_addresses(frame.name);
  }
}

void match_functions(std::span<StackTree> trees) {
  // Frames that every tree has are matched as they stand.
  std::unordered_map<std::string, size_t> trees_with;
  for (const StackTree& tree : trees) {
    std::unordered_set<std::string> keys;
    for (size_t i = 1; i < tree.frames.size(); ++i) keys.insert(whole_key(tree.frames[i]));
    for (const std::string& key : keys) ++trees_with[key];
  }
  struct Group {
    std::vector<const StackFrame*> frames;
    size_t trees = 0, last = SIZE_MAX;
  };
  std::unordered_map<std::string, Group> groups;
  std::vector<std::vector<std::string>> keys;
  for (size_t t = 0; t < trees.size(); ++t) {
    std::vector<bool> alone(trees[t].frames.size());
    for (size_t i = 1; i < alone.size(); ++i) alone[i] = trees_with.at(whole_key(trees[t].frames[i])) < trees.size();
    keys.push_back(function_keys(trees[t], alone));
    for (size_t i = 1; i < alone.size(); ++i) {
      if (!alone[i]) continue;
      Group& group = groups[keys[t][i]];
      group.frames.push_back(&trees[t].frames[i]);
      if (group.last != t) ++group.trees;
      group.last = t;
    }
  }
  std::unordered_map<std::string, StackFrame> common;
  for (const auto& [key, group] : groups)
    if (group.trees == trees.size()) common.emplace(key, common_frame(group.frames, key));
  for (size_t t = 0; t < trees.size(); ++t) {
    std::deque<StackFrame> now = trees[t].frames;
    for (size_t i = 1; i < now.size(); ++i)
      if (const auto found = common.find(keys[t][i]); found != common.end() && !keys[t][i].empty())
        now[i] = found->second;
    trees[t] = with_frames(trees[t], now);
  }
}

}  // namespace tacho::analysis
