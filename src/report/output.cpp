// Writes to the standard streams (output.h).
#include "report/output.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/text/utf8.h"
#include "report/text.h"

namespace tacho::report {
namespace {

std::atomic<int> g_error = 0;  // errno of the first write to standard output that failed

void keep_error() {
  int none = 0;
  g_error.compare_exchange_strong(none, errno);
}

// Names of files, keys and SQL may contain control characters and invalid text: shows both as \xNN.
std::string printable(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const CodePoint point = next_code_point(message);
    // Keeps only the newline, which ends our own lines; U+0080 to U+009F are control characters too.
    const bool control = (point.value < 0x20 && point.value != '\n') || (point.value >= 0x7f && point.value < 0xa0);
    if (point.valid && !control)
      text += message.substr(0, point.length);
    else
      for (const char c : message.substr(0, point.length))
        text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    message.remove_prefix(point.length);
  }
  return text;
}

// While one exists, a write to a pipe that nobody reads fails and does not end the process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    waits_already_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    const timespec now{};
    if (!waits_already_)
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{}, before_{};
  bool waits_already_ = false;
};

// Messages must never cost a run its results: whoever closed standard error gets none, and whoever stopped reading a
// pipe is waited for once, not for ever.
void put_message(std::string_view text) {
  constexpr int kPatienceMs = 10'000;
  static std::atomic<bool> g_given_up{false};
  std::fflush(stderr);
  const NoPipeSignal quiet;
  const bool terminal = isatty(STDERR_FILENO) == 1;  // Ctrl-S stops it until Ctrl-Q
  while (!text.empty()) {
    pollfd wait{STDERR_FILENO, POLLOUT, 0};
    const int ready = poll(&wait, 1, terminal ? -1 : g_given_up.load() ? 0 : kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      g_given_up.store(true);
      return;
    }
    g_given_up.store(false);
    // A pipe that is ready has room for this much.
    const ssize_t written = write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written > 0)
      text.remove_prefix(static_cast<size_t>(written));
    else if (written == 0 || (errno != EINTR && errno != EAGAIN))
      return;
  }
}

}  // namespace

bool put(std::string_view text, Stream stream) {
  if (stream == Stream::kError) {
    put_message(text);
    return true;
  }
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) keep_error();
  return std::ferror(stdout) == 0;
}

void warn(std::string_view message) {
  std::string text = "tacho: " + printable(message);
  if (const Screen screen = screen_of(STDERR_FILENO); screen.terminal) text = paragraph(text, screen.width, 0, 2);
  put(text + "\n", Stream::kError);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0) keep_error();
}

Status output_status() {
  flush_output();
  const int error = g_error;
  if (std::ferror(stdout) == 0 && error == 0) return {};
  return fail("standard output cannot be written{}{}", error != 0 ? ": " : "", error != 0 ? std::strerror(error) : "");
}

}  // namespace tacho::report
