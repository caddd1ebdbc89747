// The live page of `tacho watch` on the terminal, by ncurses.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "watch/page_text.h"

namespace tacho::watch {

/// Holds the terminal (/dev/tty) while it lives: other output would disturb it.
class WatchPage {
 public:
  /// The error says why there can be no page: no terminal, or one that ncurses does not know.
  static Result<std::unique_ptr<WatchPage>> open(std::string command);
  ~WatchPage();
  WatchPage(const WatchPage&) = delete;
  WatchPage& operator=(const WatchPage&) = delete;

  /// Reads the keys that were pressed. True: the page changes, draw() it.
  bool keys();
  /// The user closed the page.
  bool closed() const { return closed_; }
  /// The user asked for a file since the last call.
  bool asked_for_file() { return std::exchange(asked_, false); }
  /// Shows a sentence above the keys until the next one.
  void say(std::string sentence);
  /// A frozen page stays as it was but for its last lines.
  void draw(const WatchMoment& moment);
  /// The same page in the order and state that the keys chose.
  void draw_again();

 private:
  WatchPage() = default;
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
  PageView view_;
  bool closed_ = false, asked_ = false;
  WatchSnapshot before_;
  WatchMoment shown_;
  WatchSnapshot mark_;
};

}  // namespace tacho::watch
