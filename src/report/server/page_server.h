// A web server for one page, which --gui starts. It listens on 127.0.0.1 only and refuses requests without the token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/server/http_server.h"

namespace tacho::report {

class PageServer {
 public:
  /// Listens on 127.0.0.1. A given port must be free; without one it tries 8050, then takes any.
  static Result<PageServer> listen(std::string page, std::optional<uint16_t> port);
  /// Any free port.
  static Result<PageServer> listen_anywhere(std::string page);

  /// "http://127.0.0.1:8050/?token=..."; the token has 128 random bits.
  std::string url() const { return server_.url(); }
  uint16_t port() const { return server_.port(); }

  /// Answers until one of SIGINT and SIGTERM arrives or `stop` becomes readable; blocks these signals meanwhile.
  Status serve(int stop = -1);

 private:
  PageServer(HttpServer server, std::string page) : server_(std::move(server)), page_(std::move(page)) {}
  HttpServer server_;
  std::string page_;
};

/// The whole answer to a request's head (up to the empty line): the page for "GET /?token=..." with the right token and
/// a Host that is this machine, else a short error. Without its body for HEAD.
std::string answer(std::string_view head, std::string_view page, std::string_view token, uint16_t port);

}  // namespace tacho::report
