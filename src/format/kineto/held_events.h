// Events whose meaning others decide, as their text in a temporary file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "format/kineto/event.h"
#include "format/kineto/owners.h"

namespace tacho::format::kineto {

class HeldEvents {
 public:
  /// `unescaped`: the file's writer does not escape backslashes (JsonTokens).
  explicit HeldEvents(bool& unescaped) : unescaped_(unescaped) {}

  struct Whose {  // as the file's order says when the event comes
    Owners::ScopeId block = 0;
    Owners::Owner owner = {0, 0};
  };
  /// Returns the event's place. Errors come with finish().
  int64_t add(const Event& event, Whose whose);
  /// Call no add() afterwards.
  Status finish();
  /// Parses the event at `place`, with the members that only the event at `end` (-1 = none) has. `event` is valid until
  /// the next call.
  Result<Whose> get(int64_t place, int64_t end, Event& event);
  /// Parses the text of an event that is kept elsewhere. `event` is valid as long as `text` stays; room for
  /// json::InputWindow::kPadding bytes is added to it.
  Status parse(std::string& text, Event& event);

 private:
  struct Head {
    size_t size;
    Whose whose;
  };
  std::string_view text(int64_t place, Head& head) const;

  bool& unescaped_;
  SpillFile file_;
  std::string buffer_;  // not yet in the file; after finish() what get() parses
  const char* mapped_ = nullptr;
  Status status_;
};

}  // namespace tacho::format::kineto
