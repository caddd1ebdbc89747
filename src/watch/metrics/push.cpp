// HTTP and the rhythm of pushes (push.h).
#include "watch/metrics/push.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/thread.h"
#include "report/text.h"

namespace tacho::watch {
namespace {

constexpr std::string_view kPath = "/v1/metrics";
constexpr size_t kMostAnswer = 1 << 20, kMostGet = 64 << 20;  // bytes
using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool ready(int socket, short what, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{socket, what, 0};
    const int found = poll(&wait, 1, static_cast<int>(left));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

Result<Socket> connect_to(const PushAddress& to, Clock::time_point end) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found); error != 0)
    return fail("{}: {}", to.host, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::string problem = "no address";
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Socket made(socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol));
    if (made.get() < 0) {
      problem = strerror(errno);
      continue;
    }
    if (connect(made.get(), each->ai_addr, each->ai_addrlen) == 0) return made;
    if (errno != EINPROGRESS) {
      problem = strerror(errno);
      continue;
    }
    if (!ready(made.get(), POLLOUT, end)) {
      problem = "no connection in time";
      continue;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) return made;
    problem = strerror(error);
  }
  return fail("{}", problem);
}

Status send_all(int to, std::string_view bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    const ssize_t sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail("{}", strerror(errno));
    if (!ready(to, POLLOUT, end)) return fail("it did not take the message in time");
  }
  return {};
}

Result<std::string> read_all(int from, size_t most, Clock::time_point end) {
  std::string bytes;
  char buffer[16384];
  while (bytes.size() < most) {
    const ssize_t size = recv(from, buffer, sizeof buffer, 0);
    if (size == 0) break;
    if (size > 0) {
      bytes.append(buffer, static_cast<size_t>(size));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == ECONNRESET && !bytes.empty()) break;
    if (errno != EAGAIN) return fail("{}", strerror(errno));
    if (!ready(from, POLLIN, end)) {
      // A server may keep the connection although it was asked not to.
      if (bytes.find("\r\n\r\n") != std::string::npos) break;
      return fail("it did not answer in time");
    }
  }
  return bytes;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

Result<PushAnswer> parse_answer(std::string_view bytes) {
  PushAnswer answer;
  const size_t head = bytes.find("\r\n\r\n");
  std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  if (head == std::string_view::npos || !line.starts_with("HTTP/1.") || line.size() < 12)
    return fail("its answer is no HTTP/1.1");
  if (std::from_chars(line.data() + 9, line.data() + 12, answer.status).ec != std::errc())
    return fail("its answer is no HTTP/1.1");
  if (line.size() > 13) answer.reason = report::clean(line.substr(13));
  const std::string fields = lower(bytes.substr(0, head + 2));
  constexpr std::string_view kRetry = "\r\nretry-after:";
  if (const size_t at = fields.find(kRetry); at != std::string::npos) {
    const size_t from = fields.find_first_not_of(' ', at + kRetry.size());
    uint32_t seconds = 0;  // a date means nothing to us
    if (from != std::string::npos &&
        std::from_chars(fields.data() + from, fields.data() + fields.size(), seconds).ec == std::errc())
      answer.retry_after_s = seconds;
  }
  answer.body = bytes.substr(head + 4);
  return answer;
}

// "rejectedDataPoints" of a body with "partialSuccess": a text or a number.
uint64_t rejected(std::string_view body) {
  constexpr std::string_view kKey = "\"rejectedDataPoints\"";
  size_t at = body.find(kKey);
  if (at == std::string_view::npos) return 0;
  at = body.find_first_of("0123456789", at + kKey.size());
  uint64_t count = 0;
  if (at != std::string_view::npos) std::from_chars(body.data() + at, body.data() + body.size(), count);
  return count;
}

std::string host_field(const PushAddress& of) {
  const bool six = of.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", six ? "[" : "", of.host, six ? "]" : "", of.port);
}

}  // namespace

std::string PushAddress::text() const {
  return fmt::format("http://{}{}", host_field(*this), path);
}

Result<PushAddress> parse_push_address(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://"))
    return fail("--otlp {}: tacho has no TLS; push to a collector on this machine, which may pass it on", text);
  if (!text.starts_with(kScheme)) return fail("--otlp {}: give http://HOST:PORT", text);
  std::string_view rest = text.substr(kScheme.size());
  PushAddress address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  address.path = rest.substr(slash);
  std::string_view place = rest.substr(0, slash);
  address.port = "4318";
  const size_t bracket = place.starts_with('[') ? place.find(']') : std::string_view::npos;
  const size_t colon = place.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    address.port = place.substr(colon + 1);
    place = place.substr(0, colon);
  }
  if (bracket != std::string_view::npos && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  address.host = place;
  uint16_t port = 0;
  const char* const end = address.port.data() + address.port.size();
  if (const auto [stop, error] = std::from_chars(address.port.data(), end, port);
      error != std::errc() || stop != end || port == 0)
    return fail("--otlp {}: '{}' is no port", text, address.port);
  if (address.host.empty() || address.host.find_first_of("@[]?# \r\n") != std::string::npos ||
      address.path.find_first_of("?# \r\n") != std::string::npos)
    return fail("--otlp {}: give http://HOST:PORT", text);
  while (address.path.ends_with('/')) address.path.pop_back();
  if (!address.path.ends_with(kPath)) address.path += kPath;
  return address;
}

Result<PushAnswer> post(const PushAddress& to, std::string_view body, double timeout_s) {
  const auto end = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(timeout_s * 1e6));
  TACHO_ASSIGN(const Socket socket, connect_to(to, end));
  const std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nUser-Agent: tacho\r\n"
      "Connection: close\r\n\r\n",
      to.path, host_field(to), body.size());
  TACHO_TRY(send_all(socket.get(), head, end));
  TACHO_TRY(send_all(socket.get(), body, end));
  TACHO_ASSIGN(const std::string bytes, read_all(socket.get(), kMostAnswer, end));
  return parse_answer(bytes);
}

Result<PushAnswer> get(const PushAddress& from, double timeout_s) {
  const auto end = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(timeout_s * 1e6));
  TACHO_ASSIGN(const Socket socket, connect_to(from, end));
  const std::string head = fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tacho\r\nConnection: close\r\n\r\n",
                                       from.path, host_field(from));
  TACHO_TRY(send_all(socket.get(), head, end));
  TACHO_ASSIGN(const std::string bytes, read_all(socket.get(), kMostGet, end));
  return parse_answer(bytes);
}

OtlpPusher::OtlpPusher(PushAddress to, double interval_s, std::function<std::string()> message)
    : to_(std::move(to)), interval_s_(interval_s), message_(std::move(message)) {
  thread_ = thread_without_signals([this] { loop(); });
}

OtlpPusher::~OtlpPusher() {
  finish();
}

void OtlpPusher::finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
  constexpr double kLastTimeout = 2;
  push(kLastTimeout);
}

PushCounts OtlpPusher::counts() const {
  const std::lock_guard held(lock_);
  return counts_;
}

void OtlpPusher::loop() {
  constexpr double kTimeout = 10, kLongest = 60;
  double wait = interval_s_;
  std::unique_lock held(lock_);
  while (!changed_.wait_for(held, std::chrono::duration<double>(wait), [this] { return end_; })) {
    held.unlock();
    const double asked = push(std::min(kTimeout, std::max(1.0, interval_s_)));
    held.lock();
    const double doubled = interval_s_ * std::exp2(static_cast<double>(std::min<uint64_t>(failures_, 20)));
    wait = std::max(std::min(doubled, std::max(kLongest, interval_s_)), asked);
  }
}

double OtlpPusher::push(double timeout_s) {
  constexpr double kMostRetryAfter = 3600;
  const auto answer = post(to_, message_(), timeout_s);
  const std::lock_guard held(lock_);
  ++failures_;
  if (!answer) {
    ++counts_.unanswered;
    counts_.problem = answer.error().message;
    return 0;
  }
  if (answer->status < 200 || answer->status > 299) {
    ++counts_.refused;
    counts_.problem =
        fmt::format("it answered {}{}{}", answer->status, answer->reason.empty() ? "" : " ", answer->reason);
    return std::min(answer->retry_after_s, kMostRetryAfter);
  }
  failures_ = 0;
  ++counts_.taken;
  counts_.rejected_points += rejected(answer->body);
  return 0;
}

}  // namespace tacho::watch
