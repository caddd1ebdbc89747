// Helpers of all readers of catalog files: convert YAML nodes to words, numbers and mappings, with errors that name
// file, line and column.
#pragma once

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "metric/catalog/document.h"

namespace tacho::metric {

/// The text on one line with single blanks: how YAML's folded texts are stored.
std::string one_line(std::string_view text);

bool is_identifier_start(char c);
bool is_identifier_char(char c);
/// Lower-case letters, digits and single "-" between them, with a letter among them.
bool is_slug(std::string_view text);

class YamlReader {
 public:
  /// The entries of a mapping in the order of the file.
  using Fields = std::vector<std::pair<std::string, YAML::Node>>;
  using Words = std::set<std::string, std::less<>>;

 protected:
  explicit YamlReader(std::string_view file = {}) : file_(file) {}

  /// An error that begins "file:line:column: ".
  template <typename... Args>
  [[nodiscard]] tl::unexpected<Error> fail_at(const YAML::Node& node, fmt::format_string<Args...> format,
                                              Args&&... args) const {
    return fail("{}: {}", place_of(node), fmt::format(format, std::forward<Args>(args)...));
  }

  /// "file:line:column", or "file" if the node does not know.
  std::string place_of(const YAML::Node& node) const;

  /// The entries of a mapping. Refuses other nodes, keys given twice and keys that are not in `known` (empty: all are).
  Result<Fields> fields(const YAML::Node& node, std::string_view what, const Words& known = {}) const;
  static const YAML::Node* find(const Fields& fields, std::string_view key);

  Result<std::string> text(const YAML::Node& node, std::string_view what) const;
  Result<int> number(const YAML::Node& node, std::string_view what) const;  ///< 0 to 9999
  Result<bool> truth(const YAML::Node& node, std::string_view what) const;
  /// A single word is a list of one.
  Result<std::vector<std::string>> words(const YAML::Node& node, std::string_view what) const;
  /// The nodes of a list; a single value or mapping is a list of one.
  static std::vector<YAML::Node> items(const YAML::Node& node);

  template <typename Enum>
  Status choose(const YAML::Node& node, std::string_view what, Enum& out,
                std::initializer_list<std::pair<std::string_view, Enum>> choices) const {
    TACHO_ASSIGN(const std::string word, text(node, what));
    std::string list;
    for (const auto& [name, value] : choices) {
      if (name == word) {
        out = value;
        return {};
      }
      list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    }
    return fail_at(node, "{} must be one of {}, not \"{}\"", what, list, word);
  }

  /// The same for a key of a mapping; nothing if it is missing.
  template <typename Enum>
  Status choose_of(const Fields& keys, std::string_view key, Enum& out,
                   std::initializer_list<std::pair<std::string_view, Enum>> choices) const {
    const YAML::Node* node = find(keys, key);
    return node != nullptr ? choose(*node, key, out, choices) : Status();
  }

  std::string_view file_;  ///< named in errors
};

/// Runs `work`, which reads `file`, with yaml-cpp's exceptions turned into errors.
template <typename Work>
auto guarded(std::string_view file, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) return fail("{}: {}", file, error.msg);
    return fail("{}:{}:{}: {}", file, error.mark.line + 1, error.mark.column + 1, error.msg);
  } catch (const std::exception& error) {
    return fail("{}: {}", file, error.what());
  }
}

}  // namespace tacho::metric
