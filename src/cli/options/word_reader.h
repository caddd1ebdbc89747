// The words of a command line, for the command lines of other tools, which CLI11 cannot parse: options, the values that
// belong to them, and where the command begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::cli::options {

/// An option as it was written: "-o", or "--output" with what stood behind its "=".
struct Spelling {
  std::string name;
  std::optional<std::string> attached;
};

/// Walks over the words behind the program's name.
class WordReader {
 public:
  WordReader(int argc, char** argv);

  /// Whether a word is left in front of "--".
  bool more() const { return at_ < words_.size() && words_[at_] != "--"; }
  /// Whether any word is left, "--" too.
  bool left() const { return at_ < words_.size(); }
  const std::string& peek() const { return words_[at_]; }
  std::string take() { return std::move(words_[at_++]); }
  /// Whether a "--" says where the command begins.
  bool separated() const { return separator_ < words_.size(); }
  /// Whether a word is left in front of the "--" that there is.
  bool before_separator() const { return separated() && at_ < separator_; }

  /// Takes the next word, an option.
  Spelling take_option();
  /// The attached value, else the next word; an error where there is none.
  Result<std::string> value(const Spelling& option);
  /// Takes words as long as `accepts` wants them.
  template <typename Accepts>
  std::vector<std::string> take_while(Accepts&& accepts) {
    std::vector<std::string> out;
    while (more() && accepts(peek())) out.push_back(take());
    return out;
  }
  /// The remaining words: the command.
  std::vector<std::string> rest();

 private:
  std::vector<std::string> words_;
  size_t at_ = 0, separator_ = 0;
};

}  // namespace tacho::cli::options
