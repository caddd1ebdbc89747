// A small web server on 127.0.0.1 for pages that tacho serves to the person who started it: several requests at once on
// a few threads, connections that stay open, slow readers that hold up nobody. It refuses requests without the token,
// under another host name, or from another site. A library takes its place when it exceeds 700 lines, or when a page
// needs TLS or HTTP/2.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::report {

struct HttpRequest {
  std::string method, path;
  std::map<std::string, std::string, std::less<>> query;  // decoded; the last of equal names counts
  std::string host, origin, site, token;                  // headers Host, Origin, Sec-Fetch-Site, X-Tacho-Token
  std::string accept;                                     // header Accept
  std::string body;
  size_t content_length = 0;
  bool chunked = false;
  bool keep_alive = false;

  /// A parameter of the query; "" when it is absent.
  std::string_view parameter(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string_view() : std::string_view(found->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string policy;  // Content-Security-Policy; "" = none
};

/// {"error": "sentence"} with a status.
HttpResponse http_error(int status, std::string_view sentence);

/// The request whose head (up to the empty line, without it) this is, without its body; nullopt when it is no HTTP/1.
std::optional<HttpRequest> parse_request(std::string_view head);
/// Why a request is not answered: another Host than this machine, another site, no or a wrong token (header or
/// ?token=). Without a token Host may have any port.
std::optional<HttpResponse> refuse_request(const HttpRequest& request, std::string_view token, uint16_t port);
/// The bytes of an answer; `with_body` false for HEAD.
std::string http_bytes(const HttpResponse& response, bool with_body, bool keep_alive);

class HttpServer {
 public:
  /// Called by several threads at once.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens on 127.0.0.1. A given port must be free; without one it tries 8050, then takes any. `option`: how a user
  /// chooses a port, for the sentence that says that it is taken.
  static Result<HttpServer> listen(std::optional<uint16_t> port, std::string_view option);

  /// The same at exactly this port and without a token, for programs of this machine that collect numbers: every user
  /// of it may ask. A browser's page still may not.
  static Result<HttpServer> listen_without_token(uint16_t port, std::string_view option);

  HttpServer(HttpServer&& other) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  /// "http://127.0.0.1:8050/?token=..."; the token has 128 random bits. Without a token only the address.
  std::string url() const;
  uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }

  /// Answers until one of SIGINT and SIGTERM arrives or `stop` becomes readable; blocks these signals meanwhile.
  /// Without `signals` only `stop` ends it. Requests that are refused do not reach the handler.
  Status serve(const Handler& handler, int stop = -1, bool signals = true);

 private:
  HttpServer() = default;
  std::string token_;
  int socket_ = -1;
  uint16_t port_ = 0;
};

}  // namespace tacho::report
