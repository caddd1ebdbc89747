// The one parser of command lines: which words are options, the values that belong to them, and where the command
// begins. A tool's own rules are a Syntax: those of tacho's commands are in shared/command_options, those of others
// beside their tables.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::cli::options {

/// An option as it was written: "-o", or "--output" with what stood behind its "=".
struct Spelling {
  std::string name;
  std::optional<std::string> attached;  ///< the value in the same word: "--output=x", "-ox", "-o=x"
  std::string word;                     ///< all of it
  bool joined = false;                  ///< a short option and its value, or further short options: "-ox"
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
  /// How many words are left, "--" and those behind it too.
  size_t count() const { return words_.size() - at_; }
  /// Reads `word` next, in place of the one that was taken last.
  void put_back(std::string word) { words_[--at_] = std::move(word); }
  /// Whether a "--" says where the command begins.
  bool separated() const { return separator_ < words_.size(); }

  /// Takes the next word, an option.
  Spelling take_option();
  /// The remaining words without a "--" before them: the command.
  std::vector<std::string> rest();

 private:
  std::vector<std::string> words_;
  size_t at_ = 0, separator_ = 0;
};

/// How many values an option takes.
struct Takes {
  static constexpr size_t kAny = std::numeric_limits<size_t>::max();
  size_t least = 0;  ///< whatever they look like
  size_t most = 0;   ///< beyond the least only words that `accepts` wants; 0: a flag
  std::function<bool(const std::string& word)> accepts = {};  ///< empty: words that are no options
};

/// The rules of one command line and what becomes of its options.
class Syntax {
 public:
  virtual ~Syntax() = default;
  virtual bool is_option(const std::string& word) const = 0;
  /// What the option takes; a fault where there is no such option.
  virtual Result<Takes> look_up(const Spelling& given) = 0;
  /// An option with its values: at most as many as it takes, fewer than the least where the words ended.
  virtual Status take(const Spelling& given, std::vector<std::string> values) = 0;
  /// A word that is no option is next. Takes it, or returns false: the command begins there.
  virtual Result<bool> operand(WordReader& words) = 0;
};

/// Reads options and operands up to the "--", or to where an operand begins the command.
Status read_options(WordReader& words, Syntax& syntax);

}  // namespace tacho::cli::options
