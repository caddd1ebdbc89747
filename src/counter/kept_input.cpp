// Passes standard input on to the runs of a program (kept_input.h).
#include "counter/kept_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace tacho::counter {

namespace {

// What the runs took so far. Standard input is one for the process.
struct Taken {
  std::string bytes;
  bool ended = false;     // the writer has closed it
  bool too_much = false;  // more than kMostKept; bytes is empty
  off_t file_begin = -1;  // where a file on standard input was when the first run began
  bool known = false;     // file_begin is
};
Taken g_taken;

constexpr size_t kPiece = 4096;

// Gives one run what was taken before, then the rest. The program's pipe holds one piece at most, and a piece leaves
// standard input only when the program has taken it.
class Passing {
 public:
  Passing(int to, int ending) : to_(to), ending_(ending) {}

  void run() {
    while (offered_ > 0 ? wait_until_taken() : offer()) {
    }
    settle();
  }

 private:
  // False if the program has ended or has closed its end.
  bool wait_until_taken() {
    pollfd wait[2] = {{to_, POLLOUT, 0}, {ending_, POLLIN, 0}};
    const int ready = poll(wait, 2, -1);
    if (ready < 0) return errno == EINTR;
    settle();
    if (wait[1].revents != 0 || (wait[0].revents & POLLERR) != 0) return false;
    if (offered_ > 0) poll(&wait[1], 1, 2);  // a kernel whose pipes hold more than one piece
    return true;
  }

  // Takes from standard input what the program has taken from its pipe.
  void settle() {
    int left = 0;
    if (offered_ == 0 || ioctl(to_, FIONREAD, &left) != 0) return;
    size_t took = offered_ - std::min(offered_, static_cast<size_t>(left));
    offered_ -= took;
    if (again_) {
      at_ += took;
      return;
    }
    while (took > 0 && !read_) {
      const ssize_t size = ::read(STDIN_FILENO, piece_, std::min(took, sizeof piece_));
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return;
      keep(static_cast<size_t>(size));
      took -= static_cast<size_t>(size);
    }
  }

  void keep(size_t size) {
    if (g_taken.too_much) return;
    g_taken.bytes.append(piece_, size);
    at_ = g_taken.bytes.size();
    if (at_ <= InputOfRun::kMostKept) return;
    g_taken.too_much = true;
    g_taken.bytes = {};
    at_ = 0;
  }

  // Puts a piece into the empty pipe. False if there is none any more, or nobody to take it.
  bool offer() {
    again_ = at_ < g_taken.bytes.size();
    if (again_) return put(g_taken.bytes.data() + at_, std::min(kPiece, g_taken.bytes.size() - at_));
    if (g_taken.ended) return false;
    pollfd wait[3] = {{STDIN_FILENO, POLLIN, 0}, {ending_, POLLIN, 0}, {to_, 0, 0}};
    if (poll(wait, 3, -1) < 0) return errno == EINTR;
    if (wait[1].revents != 0 || (wait[2].revents & POLLERR) != 0) return false;
    if (wait[0].revents == 0) return true;
    read_ = false;
    ssize_t size = tee(STDIN_FILENO, to_, kPiece, SPLICE_F_NONBLOCK);
    if (size > 0) {
      offered_ = static_cast<size_t>(size);
      return true;
    }
    if (size < 0 && errno == EINVAL) {  // no pipe
      size = recv(STDIN_FILENO, piece_, sizeof piece_, MSG_PEEK | MSG_DONTWAIT);
      if (size > 0) return put(piece_, static_cast<size_t>(size));
      if (size < 0 && (errno == ENOTSOCK || errno == EOPNOTSUPP)) {  // a kernel without tee()
        size = ::read(STDIN_FILENO, piece_, sizeof piece_);
        read_ = size > 0;
        if (read_) {
          keep(static_cast<size_t>(size));
          return put(piece_, static_cast<size_t>(size));
        }
      }
    }
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (size == 0) g_taken.ended = true;
    return false;
  }

  bool put(const char* bytes, size_t size) {
    const ssize_t written = write(to_, bytes, size);
    if (written > 0) offered_ = static_cast<size_t>(written);
    return written > 0 || (written < 0 && errno == EINTR);
  }

  const int to_, ending_;
  size_t at_ = 0;       // of what was taken before: given to this run
  size_t offered_ = 0;  // bytes in the pipe
  bool again_ = false;  // these were taken before
  bool read_ = false;   // these have left standard input already
  char piece_[kPiece];
};

}  // namespace

InputOfRun::~InputOfRun() {
  end();
}

Status InputOfRun::begin() {
  struct stat status {};
  if (!g_taken.known) g_taken.file_begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
  g_taken.known = true;
  if (g_taken.file_begin >= 0) lseek(STDIN_FILENO, g_taken.file_begin, SEEK_SET);
  if (fstat(STDIN_FILENO, &status) != 0 || !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) return {};
  if (g_taken.too_much)
    return fail(
        "standard input is a pipe that gave more than {} MiB, which only the first run of the program could read: give "
        "it as a file (< file)",
        kMostKept >> 20);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail("cannot pass standard input on: {}", strerror(errno));
  to_ = ends[1];
  // With room for one piece only, it is writable when the program has taken everything.
  fcntl(to_, F_SETPIPE_SZ, static_cast<int>(kPiece));
  fcntl(to_, F_SETFL, O_NONBLOCK);
  ending_ = eventfd(0, EFD_CLOEXEC);
  source_ = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const bool done = ending_ >= 0 && source_ >= 0 && dup2(ends[0], STDIN_FILENO) >= 0;
  const int error = errno;
  close(ends[0]);
  if (!done) return fail("cannot pass standard input on: {}", strerror(error));
  return {};
}

void InputOfRun::put_back() {
  if (source_ < 0) return;
  dup2(source_, STDIN_FILENO);
  close(source_);
  source_ = -1;
}

void InputOfRun::started() {
  if (source_ < 0) return;
  put_back();
  thread_ = std::thread([this] { pass_on(); });
}

void InputOfRun::pass_on() {
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
  Passing(to_, ending_).run();
  close(to_);  // the program reads the end
  to_ = -1;
}

void InputOfRun::end() {
  put_back();
  if (thread_.joinable()) {
    eventfd_write(ending_, 1);
    thread_.join();
  }
  for (int* const file : {&to_, &ending_}) {
    if (*file >= 0) close(*file);
    *file = -1;
  }
}

}  // namespace tacho::counter
