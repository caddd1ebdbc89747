// Answers of a watch (server.h).
#include "watch/live/server.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/thread.h"

namespace tacho::watch {

extern const std::string_view kWatchPage;

namespace {

std::string served_page() {
  std::string page(kWatchPage);
  constexpr std::string_view kNone = "connect-src 'none'";
  if (const size_t at = page.find(kNone); at != std::string::npos) page.replace(at, kNone.size(), "connect-src 'self'");
  return page;
}

}  // namespace

MomentServer::MomentServer(report::HttpServer server, bool page)
    : server_(std::move(server)), page_(page), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

MomentServer::~MomentServer() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(stop_, &one, sizeof one);
    thread_.join();
  }
  if (stop_ >= 0) close(stop_);
}

Result<std::unique_ptr<MomentServer>> MomentServer::listen_for_metrics(uint16_t port) {
  TACHO_ASSIGN(report::HttpServer server, report::HttpServer::listen_without_token(port, "--prometheus"));
  return std::unique_ptr<MomentServer>(new MomentServer(std::move(server), false));
}

Result<std::unique_ptr<MomentServer>> MomentServer::listen_for_page() {
  TACHO_ASSIGN(report::HttpServer server, report::HttpServer::listen(std::nullopt, "--view"));
  return std::unique_ptr<MomentServer>(new MomentServer(std::move(server), true));
}

void MomentServer::serve(WatchFacts facts, MomentSource now) {
  facts_ = std::move(facts);
  now_ = std::move(now);
  thread_ = thread_without_signals([this] {
    static_cast<void>(
        server_.serve([this](const report::HttpRequest& request) { return answer(request); }, stop_, false));
  });
}

report::HttpResponse MomentServer::answer(const report::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return report::http_error(405, "only GET");
  report::HttpResponse response;
  if (page_ && request.path == "/") {
    response.type = "text/html";
    response.body = served_page();
    return response;
  }
  if (request.path == "/moment") {
    response.body = moment_text(facts_, now_());
    return response;
  }
  if (page_) return report::http_error(404, "there is one page and its data");
  if (request.path != "/metrics") return report::http_error(404, "there are /metrics and /moment");
  const WatchMoment moment = now_();
  const MetricsForm form = wanted_form(request.accept);
  response.type = content_type(form);
  const std::lock_guard held(lock_);
  response.body = metrics_.text(moment.snapshot, moment.cost, form, moment.gpus);
  return response;
}

}  // namespace tacho::watch
