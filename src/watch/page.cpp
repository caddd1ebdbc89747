// The terminal's side of the live page (page.h).
#include "watch/page.h"

#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <utility>

namespace tacho::watch {

struct WatchPage::Terminal {
  FILE* file = nullptr;
  SCREEN* screen = nullptr;
  ~Terminal() {
    if (screen != nullptr) {
      endwin();
      delscreen(screen);
    }
    if (file != nullptr) fclose(file);
  }
};

Result<std::unique_ptr<WatchPage>> WatchPage::open(std::string command) {
  std::unique_ptr<WatchPage> page(new WatchPage());
  page->terminal_ = std::make_unique<Terminal>();
  Terminal& terminal = *page->terminal_;
  terminal.file = fopen("/dev/tty", "r+e");
  if (terminal.file == nullptr) return fail("--page needs a terminal: /dev/tty: {}", strerror(errno));
  setlocale(LC_CTYPE, "");
  const char* const type = getenv("TERM");
  terminal.screen = newterm(nullptr, terminal.file, terminal.file);
  if (terminal.screen == nullptr)
    return fail("--page: the terminal '{}' is not known here; set TERM, as in TERM=xterm", type != nullptr ? type : "");
  cbreak();
  noecho();
  nonl();
  nodelay(stdscr, TRUE);
  keypad(stdscr, TRUE);
  curs_set(0);
  page->view_.command = std::move(command);
  return page;
}

WatchPage::~WatchPage() = default;

bool WatchPage::keys() {
  bool changes = false;
  for (int key = getch(); key != ERR; key = getch()) {
    changes = true;
    if (key == 'q') closed_ = true;
    if (key == 'r') asked_ = true;
    if (key == 'p') view_.frozen = !view_.frozen;
    if (key == 'm') {
      view_.marked = !view_.marked;
      if (view_.marked) mark_ = shown_.snapshot;
    }
    if (key == 's') view_.order = static_cast<PageOrder>((static_cast<int>(view_.order) + 1) % 4);
  }
  return changes;
}

void WatchPage::say(std::string sentence) {
  view_.note = std::move(sentence);
  draw_again();
}

void WatchPage::draw(const WatchMoment& moment) {
  if (!view_.frozen) before_ = std::exchange(shown_, moment).snapshot;
  if (mark_.generation != shown_.snapshot.generation) view_.marked = false;
  draw_again();
}

void WatchPage::draw_again() {
  // SIGWINCH is blocked while a program is watched.
  winsize size{};
  if (ioctl(fileno(terminal_->file), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
    resizeterm(size.ws_row, size.ws_col);
  int height = 0, width = 0;
  getmaxyx(stdscr, height, width);
  view_.height = static_cast<size_t>(height);
  view_.width = static_cast<size_t>(width);
  erase();
  int row = 0;
  for (const std::string& line : page_lines(view_.marked ? mark_ : before_, shown_, view_))
    mvaddstr(row++, 0, line.c_str());
  refresh();
}

}  // namespace tacho::watch
