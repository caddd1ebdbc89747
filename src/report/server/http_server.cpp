// Sockets, and the little of HTTP that pages on one's own machine need (http_server.h).
#include "report/server/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/text/json_writer.h"

namespace tacho::report {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr uint16_t kUsualPort = 8050;
constexpr size_t kMostConnections = 128;
constexpr size_t kLongestHead = 16384;
constexpr size_t kLongestBody = size_t{1} << 20;
constexpr unsigned kThreads = 4;
constexpr std::chrono::seconds kRequestTime{10};  // for a whole request
constexpr std::chrono::seconds kPatience{30};     // with a reader that takes nothing
constexpr std::chrono::minutes kAnswerTime{10};   // for a whole answer
constexpr std::chrono::minutes kIdleTime{5};      // between two requests

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
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(descriptor, 256) != 0 ||
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return -1;
  }
  got = ntohs(address.sin_port);
  return descriptor;
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "200 OK";
    case 400:
      return "400 Bad Request";
    case 403:
      return "403 Forbidden";
    case 404:
      return "404 Not Found";
    case 405:
      return "405 Method Not Allowed";
    case 409:
      return "409 Conflict";
    case 411:
      return "411 Length Required";
    case 413:
      return "413 Content Too Large";
    case 431:
      return "431 Request Header Fields Too Large";
    default:
      return "500 Internal Server Error";
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string url_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

struct Connection {
  enum class State : uint8_t { kReading, kWorking, kWriting };
  uint64_t number = 0;
  int socket = -1;
  State state = State::kReading;
  std::string in, out;
  size_t sent = 0;
  SteadyTime began, since;  // began: this request; since: the reader last took something
  bool welcome = false;     // knows the token
  bool keep = false;        // goes on after this answer
};

// Requests for the threads, and their answers.
class Work {
 public:
  explicit Work(int wake) : wake_(wake) {}
  void ask(uint64_t connection, HttpRequest request) {
    const std::lock_guard held(lock_);
    asked_.emplace_back(connection, std::move(request));
    more_.notify_one();
  }
  void end() {
    const std::lock_guard held(lock_);
    ended_ = true;
    more_.notify_all();
  }
  void run(const HttpServer::Handler& handler) {
    while (true) {
      std::pair<uint64_t, HttpRequest> job;
      {
        std::unique_lock held(lock_);
        more_.wait(held, [this] { return ended_ || !asked_.empty(); });
        if (ended_) return;
        job = std::move(asked_.front());
        asked_.pop_front();
      }
      std::string bytes = http_bytes(handler(job.second), job.second.method != "HEAD", job.second.keep_alive);
      {
        const std::lock_guard held(lock_);
        answered_.emplace_back(job.first, std::move(bytes));
      }
      const uint64_t one = 1;
      (void)!write(wake_, &one, sizeof one);
    }
  }
  std::vector<std::pair<uint64_t, std::string>> answers() {
    const std::lock_guard held(lock_);
    return std::exchange(answered_, {});
  }

 private:
  int wake_;
  std::mutex lock_;
  std::condition_variable more_;
  std::deque<std::pair<uint64_t, HttpRequest>> asked_;
  std::vector<std::pair<uint64_t, std::string>> answered_;
  bool ended_ = false;
};

void answer_now(Connection& connection, const HttpResponse& response, bool with_body) {
  connection.out = http_bytes(response, with_body, false);
  connection.sent = 0;
  connection.keep = false;
  connection.state = Connection::State::kWriting;
}

// Takes a whole request from what has arrived, if it is one.
void take_request(Connection& connection, Work& work, std::string_view token, uint16_t port) {
  const size_t end = connection.in.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (connection.in.size() > kLongestHead)
      answer_now(connection, http_error(431, "the request's head is too long"), true);
    return;
  }
  auto request = parse_request(std::string_view(connection.in).substr(0, end));
  if (!request) return answer_now(connection, http_error(400, "this is no HTTP/1.1 request"), true);
  const bool with_body = request->method != "HEAD";
  if (const auto refused = refuse_request(*request, token, port)) return answer_now(connection, *refused, with_body);
  connection.welcome = true;
  if (request->chunked) return answer_now(connection, http_error(411, "send a Content-Length"), with_body);
  if (request->content_length > kLongestBody)
    return answer_now(connection, http_error(413, "a request's body may have 1 MiB"), with_body);
  if (connection.in.size() < end + 4 + request->content_length) return;
  request->body = connection.in.substr(end + 4, request->content_length);
  connection.in.erase(0, end + 4 + request->content_length);
  connection.keep = request->keep_alive;
  connection.state = Connection::State::kWorking;
  work.ask(connection.number, std::move(*request));
}

}  // namespace

HttpResponse http_error(int status, std::string_view sentence) {
  HttpResponse response;
  response.status = status;
  response.body = "{\"error\": " + json_quoted(sentence) + "}\n";
  return response;
}

std::optional<HttpRequest> parse_request(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == 0 || last <= first + 1 ||
      !line.substr(last + 1).starts_with("HTTP/1."))
    return std::nullopt;
  HttpRequest request;
  request.method = line.substr(0, first);
  request.keep_alive = line.substr(last + 1) != "HTTP/1.0";
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.front() != '/') return std::nullopt;
  const size_t question = target.find('?');
  request.path = url_decoded(target.substr(0, question));
  std::string_view query = question == std::string_view::npos ? "" : target.substr(question + 1);
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    request.query[url_decoded(pair.substr(0, equals))] = url_decoded(pair.substr(std::min(equals + 1, pair.size())));
  }
  for (size_t from = head.find("\r\n"); from != std::string_view::npos; from = head.find("\r\n", from)) {
    from += 2;
    const std::string_view field = head.substr(from, head.find("\r\n", from) - from);
    const size_t colon = field.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = field.substr(0, colon), value = trimmed(field.substr(colon + 1));
    if (same_word(name, "Host"))
      request.host = value;
    else if (same_word(name, "Origin"))
      request.origin = value;
    else if (same_word(name, "Sec-Fetch-Site"))
      request.site = value;
    else if (same_word(name, "X-Tacho-Token"))
      request.token = value;
    else if (same_word(name, "Accept"))
      request.accept = value;
    else if (same_word(name, "Transfer-Encoding"))
      request.chunked = true;
    else if (same_word(name, "Connection") && same_word(value, "close"))
      request.keep_alive = false;
    else if (same_word(name, "Content-Length") &&
             std::from_chars(value.data(), value.data() + value.size(), request.content_length).ec != std::errc())
      return std::nullopt;
  }
  return request;
}

std::optional<HttpResponse> refuse_request(const HttpRequest& request, std::string_view token, uint16_t port) {
  // Another site's name that points to this machine must not read the page. Without a token programs ask, through a
  // tunnel (ssh -L), too, which has another port.
  std::string at = fmt::format("{}", port);
  if (const size_t colon = request.host.rfind(':'); token.empty() && colon != std::string::npos)
    at = request.host.substr(colon + 1);
  const std::string number = "127.0.0.1:" + at, name = "localhost:" + at;
  if (request.host != number && request.host != name) return http_error(403, "this server is 127.0.0.1");
  if (!request.origin.empty() && request.origin != "http://" + number && request.origin != "http://" + name)
    return http_error(403, "other sites may not ask this server");
  if (request.site == "cross-site" || request.site == "same-site")
    // A link in another page may open this one, but only with the token, and then the browser says "none" or
    // "cross-site" for the page itself; what a page asks for by itself comes from the same origin.
    if (request.path != "/") return http_error(403, "other sites may not ask this server");
  const std::string_view given = request.token.empty() ? request.parameter("token") : std::string_view(request.token);
  if (!same_secret(given, token))
    return http_error(403, "the address has no or another token; use the one that tacho printed");
  return std::nullopt;
}

std::string http_bytes(const HttpResponse& response, bool with_body, bool keep_alive) {
  std::string out =
      fmt::format("HTTP/1.1 {}\r\nContent-Type: {}{}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
                  "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
                  "Cross-Origin-Resource-Policy: same-origin\r\n{}Connection: {}\r\n\r\n",
                  status_text(response.status), response.type,
                  response.type == "application/octet-stream" ? "" : "; charset=utf-8", response.body.size(),
                  response.policy.empty() ? "" : fmt::format("Content-Security-Policy: {}\r\n", response.policy),
                  keep_alive ? "keep-alive" : "close");
  if (with_body) out += response.body;
  return out;
}

Result<HttpServer> HttpServer::listen(std::optional<uint16_t> port, std::string_view option) {
  HttpServer server;
  TACHO_ASSIGN(server.token_, random_token());
  server.socket_ = listen_on(port.value_or(kUsualPort), server.port_);
  if (server.socket_ < 0 && !port) server.socket_ = listen_on(0, server.port_);
  if (server.socket_ < 0)
    return fail("127.0.0.1:{}: {}; another port behind {}, or none, takes a free one", port.value_or(kUsualPort),
                std::strerror(errno), option);
  return server;
}

Result<HttpServer> HttpServer::listen_without_token(uint16_t port, std::string_view option) {
  HttpServer server;
  server.socket_ = listen_on(port, server.port_);
  if (server.socket_ < 0)
    return fail("127.0.0.1:{}: {}; choose another port for {}", port, std::strerror(errno), option);
  return server;
}

HttpServer::HttpServer(HttpServer&& other) noexcept
    : token_(std::move(other.token_)), socket_(std::exchange(other.socket_, -1)), port_(other.port_) {}

HttpServer::~HttpServer() {
  if (socket_ >= 0) close(socket_);
}

std::string HttpServer::url() const {
  if (token_.empty()) return fmt::format("http://127.0.0.1:{}/", port_);
  return fmt::format("http://127.0.0.1:{}/?token={}", port_, token_);
}

namespace {

using State = Connection::State;

// Takes what has come. True: the connection is at its end.
bool read_some(Connection& from, SteadyTime now, Work& work, const std::string& token, uint16_t port) {
  char buffer[16384];
  const ssize_t got = recv(from.socket, buffer, sizeof buffer, 0);
  if (got <= 0) return got == 0 || (errno != EAGAIN && errno != EINTR);
  if (from.in.empty()) from.began = now;
  from.in.append(buffer, static_cast<size_t>(got));
  take_request(from, work, token, port);
  from.since = now;
  return false;
}

// Sends what the socket takes of an answer. True: the connection is at its end.
bool write_some(Connection& to, SteadyTime now, Work& work, const std::string& token, uint16_t port) {
  bool done = false;
  const ssize_t put = send(to.socket, to.out.data() + to.sent, to.out.size() - to.sent, MSG_NOSIGNAL);
  if (put > 0) {
    to.since = now;
    to.sent += static_cast<size_t>(put);
  } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
    done = true;
  }
  if (to.sent == to.out.size()) {
    if (to.keep) {
      to.state = State::kReading;
      to.out = std::string();
      to.began = now;
      if (!to.in.empty()) take_request(to, work, token, port);
    } else {
      done = true;
    }
  }
  return done || now - to.since > kPatience || now - to.began > kAnswerTime;
}

// Does what can be done without waiting. True: the connection is at its end.
bool go_on(Connection& with, short events, SteadyTime now, Work& work, const std::string& token, uint16_t port) {
  bool done = false;
  if (with.state == State::kReading) {
    done = now - with.began > (with.in.empty() && with.welcome ? kIdleTime : kRequestTime);
    if (events != 0) done = read_some(with, now, work, token, port) || done;
  } else if (with.state == State::kWorking) {
    done = (events & (POLLERR | POLLHUP)) != 0;
  }
  if (with.state == State::kWriting) done = write_some(with, now, work, token, port) || done;
  return done;
}

void take_answers(Work& work, std::deque<Connection>& connections, SteadyTime now) {
  for (auto& [id, bytes] : work.answers()) {
    const auto asked = std::find_if(connections.begin(), connections.end(),
                                    [wanted = id](const Connection& each) { return each.number == wanted; });
    if (asked == connections.end()) continue;  // it went away meanwhile
    asked->out = std::move(bytes);
    asked->sent = 0;
    asked->since = now;
    asked->state = State::kWriting;
  }
}

// Closes a connection for a new one: the oldest without the token, else the one that has been idle for longest. False:
// all are in use.
bool make_room(std::deque<Connection>& connections) {
  auto oldest =
      std::find_if(connections.begin(), connections.end(), [](const Connection& each) { return !each.welcome; });
  if (oldest == connections.end())
    oldest = std::find_if(connections.begin(), connections.end(),
                          [](const Connection& each) { return each.state == State::kReading && each.in.empty(); });
  if (oldest == connections.end()) return false;
  close(oldest->socket);
  connections.erase(oldest);
  return true;
}

void accept_all(int socket, std::deque<Connection>& connections, uint64_t& number, SteadyTime now) {
  while (true) {
    const int accepted = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0) return;
    const int yes = 1;
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connections.size() >= kMostConnections && !make_room(connections)) {
      close(accepted);
      return;
    }
    Connection fresh;
    fresh.number = ++number;
    fresh.socket = accepted;
    fresh.began = fresh.since = now;
    connections.push_back(std::move(fresh));
  }
}

// SIGINT and SIGTERM arrive at a descriptor while this lives.
class StopSignals {
 public:
  explicit StopSignals(bool wanted) {
    sigset_t signals;
    sigemptyset(&signals);
    if (wanted) {
      sigaddset(&signals, SIGINT);
      sigaddset(&signals, SIGTERM);
    }
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    arrived_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~StopSignals() {
    if (arrived_ >= 0) {
      // The signal that came is used up, so that it does not end the process when it is let through again.
      signalfd_siginfo used;
      while (read(arrived_, &used, sizeof used) > 0) {
      }
      close(arrived_);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  int descriptor() const { return arrived_; }

 private:
  sigset_t before_;
  int arrived_;
};

}  // namespace

Status HttpServer::serve(const Handler& handler, int stop, bool until_signal) {
  const StopSignals signals(until_signal);
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Work work(wake);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back([&] { work.run(handler); });
  std::deque<Connection> connections;
  std::vector<pollfd> waiting;
  uint64_t number = 0;
  while (true) {
    waiting.assign({{signals.descriptor(), POLLIN, 0}, {stop, POLLIN, 0}, {wake, POLLIN, 0}, {socket_, POLLIN, 0}});
    const size_t first = waiting.size();
    for (const Connection& each : connections) {
      // While a request is worked on, only the end of the connection matters.
      const short events = each.state == State::kReading ? POLLIN : each.state == State::kWriting ? POLLOUT : 0;
      waiting.push_back({each.socket, events, 0});
    }
    if (poll(waiting.data(), waiting.size(), connections.empty() ? -1 : 1000) < 0 && errno != EINTR) break;
    if (waiting[0].revents != 0 || waiting[1].revents != 0) break;
    const SteadyTime now = std::chrono::steady_clock::now();
    if (waiting[2].revents != 0) {
      uint64_t count = 0;
      (void)!read(wake, &count, sizeof count);
    }
    take_answers(work, connections, now);
    for (size_t i = 0; i < connections.size(); ++i) {
      Connection& each = connections[i];
      if (!go_on(each, waiting[first + i].revents, now, work, token_, port_)) continue;
      shutdown(each.socket, SHUT_WR);
      close(each.socket);
      each.socket = -1;
    }
    std::erase_if(connections, [](const Connection& each) { return each.socket < 0; });
    if (waiting[3].revents != 0) accept_all(socket_, connections, number, now);
  }
  work.end();
  for (std::thread& thread : threads) thread.join();
  for (const Connection& each : connections) close(each.socket);
  close(wake);
  return {};
}

}  // namespace tacho::report
