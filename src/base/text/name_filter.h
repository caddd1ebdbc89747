// Names that the user chose by regular expressions: those that one matches, without those that another one matches.
#pragma once

#include <regex.h>

namespace tacho {

/// Sources of every kind ask this, so that --kernel-include and --kernel-exclude mean the same everywhere. Plain data,
/// so that it can be a global of libtacho.so: call clear(), or use an OwnNameFilter.
class NameFilter {
 public:
  enum class Side { kInclude, kExclude };

  /// `text`: an extended expression as POSIX has it, which matches anywhere in a name; "" = none. False when it is no
  /// expression, with the reason in `why` (`room` bytes).
  bool set(Side side, const char* text, char* why = nullptr, size_t room = 0) {
    Pattern& to = side == Side::kInclude ? include_ : exclude_;
    to.clear();
    if (*text == '\0') return true;
    const int error = regcomp(&to.compiled, text, REG_EXTENDED | REG_NOSUB);
    to.given = error == 0;
    if (error != 0 && why != nullptr) regerror(error, &to.compiled, why, room);
    return error == 0;
  }
  void clear() {
    include_.clear();
    exclude_.clear();
  }
  bool includes() const { return include_.given; }
  bool excludes() const { return exclude_.given; }
  bool given() const { return include_.given || exclude_.given; }
  /// Whether a name is chosen. It may have two forms, as it is in a file and as people write it (nullptr = only one):
  /// an expression matches the name if it matches one of them.
  bool wants(const char* name, const char* readable = nullptr) const {
    return (!include_.given || include_.matches(name, readable)) &&
           (!exclude_.given || !exclude_.matches(name, readable));
  }

 private:
  struct Pattern {
    regex_t compiled;
    bool given;

    void clear() {
      if (given) regfree(&compiled);
      given = false;
    }
    bool matches(const char* name, const char* readable) const {
      return regexec(&compiled, name, 0, nullptr, 0) == 0 ||
             (readable != nullptr && regexec(&compiled, readable, 0, nullptr, 0) == 0);
    }
  };
  Pattern include_ = {}, exclude_ = {};
};

/// One that clears itself.
class OwnNameFilter : public NameFilter {
 public:
  OwnNameFilter() = default;
  OwnNameFilter(const OwnNameFilter&) = delete;
  OwnNameFilter& operator=(const OwnNameFilter&) = delete;
  ~OwnNameFilter() { clear(); }
};

}  // namespace tacho
