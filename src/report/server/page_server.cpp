// One page for whoever knows the token (page_server.h).
#include "report/server/page_server.h"

#include <utility>

namespace tacho::report {

namespace {

HttpResponse page_or_error(const HttpRequest& request, std::string_view page) {
  if (request.method != "GET" && request.method != "HEAD") return http_error(405, "only GET");
  if (request.path != "/") return http_error(404, "there is one page");
  HttpResponse response;
  response.type = "text/html";
  response.body = page;
  return response;
}

}  // namespace

std::string answer(std::string_view head, std::string_view page, std::string_view token, uint16_t port) {
  const auto request = parse_request(head);
  if (!request) return http_bytes(http_error(400, "this is no HTTP/1.1 request"), true, false);
  const auto refused = refuse_request(*request, token, port);
  return http_bytes(refused ? *refused : page_or_error(*request, page), request->method != "HEAD", false);
}

Result<PageServer> PageServer::listen(std::string page, std::optional<uint16_t> port) {
  TACHO_ASSIGN(HttpServer server, HttpServer::listen(port, "--gui"));
  return PageServer(std::move(server), std::move(page));
}

Result<PageServer> PageServer::listen_anywhere(std::string page) {
  return listen(std::move(page), uint16_t{0});
}

Status PageServer::serve(int stop) {
  return server_.serve([this](const HttpRequest& request) { return page_or_error(request, page_); }, stop);
}

}  // namespace tacho::report
