// Sockets and the little of HTTP that one page needs.
#include "report/page_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/format.h"

namespace tacho::report {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr uint16_t kUsualPort = 8050;
constexpr size_t kMostConnections = 128;
constexpr size_t kLongestHead = 8192;
constexpr std::chrono::seconds kRequestTime{10};  // for a whole request
constexpr std::chrono::seconds kPatience{30};     // with a reader that takes nothing
constexpr std::chrono::minutes kAnswerTime{10};   // for a whole answer

struct Connection {
  int socket = -1;
  std::string in, out;
  size_t sent = 0;
  SteadyTime accepted, since;  // since: the reader last took something
  bool welcome = false;        // knows the token
};

// Equal, in a time that does not tell where they differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

Result<std::string> random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    return fail("no random numbers for the page's token: {}", std::strerror(errno));
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// A socket on 127.0.0.1, or -1 with errno.
int listen_on(uint16_t port, uint16_t& got) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -1;
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(descriptor, 256) != 0 ||
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return -1;
  }
  got = ntohs(address.sin_port);
  return descriptor;
}

std::string response(std::string_view status, std::string_view type, std::string_view body, bool with_body) {
  std::string out = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: "
      "no-referrer\r\nConnection: "
      "close\r\n\r\n",
      status, type, body.size());
  if (with_body) out += body;
  return out;
}

std::string_view header(std::string_view head, std::string_view name) {
  for (size_t from = head.find("\r\n"); from != std::string_view::npos; from = head.find("\r\n", from)) {
    from += 2;
    std::string_view line = head.substr(from, head.find("\r\n", from) - from);
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        strncasecmp(line.data(), name.data(), name.size()) != 0)
      continue;
    line.remove_prefix(name.size() + 1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    return line;
  }
  return {};
}

}  // namespace

std::string answer(std::string_view head, std::string_view page, std::string_view token, uint16_t port) {
  constexpr std::string_view kText = "text/plain";
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first || !line.substr(last + 1).starts_with("HTTP/1."))
    return response("400 Bad Request", kText, "not HTTP\n", true);
  const std::string_view method = line.substr(0, first);
  const bool with_body = method != "HEAD";
  if (method != "GET" && method != "HEAD")
    return response("405 Method Not Allowed", kText, "only GET\n", true);
  // Another site's name that points to this machine must not read the page.
  const std::string_view host = header(head, "Host");
  if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port))
    return response("403 Forbidden", kText, "this server is 127.0.0.1\n", with_body);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const size_t question = target.find('?');
  if (target.substr(0, question) != "/")
    return response("404 Not Found", kText, "there is one page\n", with_body);
  constexpr std::string_view kParameter = "token=";
  const std::string_view query = question == std::string_view::npos ? "" : target.substr(question + 1);
  if (!query.starts_with(kParameter) || !same_secret(query.substr(kParameter.size()), token))
    return response("403 Forbidden", kText,
                    "the address has no or another token; use the one that tacho printed\n", with_body);
  return response("200 OK", "text/html", page, with_body);
}

Result<PageServer> PageServer::listen(std::string page, std::optional<uint16_t> port) {
  PageServer server;
  server.page_ = std::move(page);
  TACHO_ASSIGN(server.token_, random_token());
  server.socket_ = listen_on(port.value_or(kUsualPort), server.port_);
  if (server.socket_ < 0 && !port) server.socket_ = listen_on(0, server.port_);
  if (server.socket_ < 0)
    return fail("127.0.0.1:{}: {}; another port behind --gui, or none, takes a free one",
                port.value_or(kUsualPort), std::strerror(errno));
  return server;
}

Result<PageServer> PageServer::listen_anywhere(std::string page) {
  return listen(std::move(page), uint16_t{0});
}

PageServer::PageServer(PageServer&& other) noexcept
    : page_(std::move(other.page_)),
      token_(std::move(other.token_)),
      socket_(std::exchange(other.socket_, -1)),
      port_(other.port_) {}

PageServer::~PageServer() {
  if (socket_ >= 0) close(socket_);
}

std::string PageServer::url() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", port_, token_);
}

Status PageServer::serve(int stop) {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const int arrived = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  std::vector<Connection> connections;
  std::vector<pollfd> waiting;
  while (true) {
    waiting.assign({{arrived, POLLIN, 0}, {stop, POLLIN, 0}, {socket_, POLLIN, 0}});
    for (const Connection& each : connections)
      waiting.push_back({each.socket, static_cast<short>(each.out.empty() ? POLLIN : POLLOUT), 0});
    if (poll(waiting.data(), waiting.size(), connections.empty() ? -1 : 1000) < 0 && errno != EINTR) break;
    if (waiting[0].revents != 0 || waiting[1].revents != 0) break;
    const SteadyTime now = std::chrono::steady_clock::now();
    for (size_t i = 0; i < connections.size(); ++i) {
      Connection& each = connections[i];
      bool done = each.out.empty() ? now - each.accepted > kRequestTime
                                   : now - each.since > kPatience || now - each.accepted > kAnswerTime;
      const short events = waiting[i + 3].revents;
      if (events != 0 && each.out.empty()) {
        char buffer[4096];
        const ssize_t got = recv(each.socket, buffer, sizeof buffer, 0);
        if (got > 0) {
          each.in.append(buffer, static_cast<size_t>(got));
          const size_t end = each.in.find("\r\n\r\n");
          if (end != std::string::npos) {
            each.since = now;
            each.out = answer(std::string_view(each.in).substr(0, end + 2), page_, token_, port_);
            each.welcome = each.out.starts_with("HTTP/1.1 200");
          } else if (each.in.size() > kLongestHead)
            each.out = response("431 Request Header Fields Too Large", "text/plain", "too long\n", true);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
          done = true;
        }
      } else if (events != 0) {
        const ssize_t put =
            send(each.socket, each.out.data() + each.sent, each.out.size() - each.sent, MSG_NOSIGNAL);
        if (put > 0) {
          each.since = now;
          each.sent += static_cast<size_t>(put);
          done = each.sent == each.out.size();
        } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
          done = true;
        }
      }
      if (done) {
        shutdown(each.socket, SHUT_WR);
        close(each.socket);
        each.socket = -1;
      }
    }
    std::erase_if(connections, [](const Connection& each) { return each.socket < 0; });
    // Who has the token goes on; of the others the oldest makes room. A whole request that waits is answered before.
    while (waiting[2].revents != 0) {
      const int accepted = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (accepted < 0) break;
      if (connections.size() >= kMostConnections) {
        const auto oldest = std::find_if(connections.begin(), connections.end(),
                                         [](const Connection& each) { return !each.welcome; });
        if (oldest == connections.end()) {
          close(accepted);
          break;
        }
        close(oldest->socket);
        connections.erase(oldest);
      }
      Connection fresh;
      fresh.socket = accepted;
      fresh.accepted = fresh.since = now;
      connections.push_back(std::move(fresh));
    }
  }
  for (const Connection& each : connections) close(each.socket);
  if (arrived >= 0) {
    // The signal that ended this is used up, so that it does not end the process when it is let through
    // again.
    signalfd_siginfo used;
    while (read(arrived, &used, sizeof used) > 0) {
    }
    close(arrived);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return {};
}

}  // namespace tacho::report
