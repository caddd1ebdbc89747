// The address, the browser, the server (serve_view.h).
#include "cli/output/serve_view.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>

#include "base/thread.h"
#include "cli/command.h"
#include "cli/output/browser.h"
#include "cli/output/findings.h"
#include "report/output.h"

namespace tacho::cli {

int serve_view(view::Document& document, std::optional<uint16_t> port, bool open, int failure) {
  auto server = report::HttpServer::listen(port, "--port");
  if (!server) return complain(failure, server.error().message);
  report::print("{}\n", server->url());
  report::flush_output();
  complain(kOk, "serving until Ctrl-C");
  if (open) open_browser(server->url());
  const Status served = server->serve([&](const report::HttpRequest& request) { return document.answer(request); });
  return served ? static_cast<int>(kOk) : complain(failure, served.error().message);
}

LiveView::LiveView(report::HttpServer server, const std::string& recording, const std::string& name)
    : server_(std::move(server)), document_(recording, name), stop_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = thread_without_signals([this] {
    static_cast<void>(
        server_.serve([this](const report::HttpRequest& request) { return document_.answer(request); }, stop_, false));
  });
}

std::unique_ptr<LiveView> LiveView::begin(const std::string& recording, const std::string& name) {
  auto server = report::HttpServer::listen(std::nullopt, "--port");
  if (!server) {
    complain(kOk, fmt::format("{}; the run is recorded, and not shown", server.error().message));
    return nullptr;
  }
  const std::string url = server->url();
  std::unique_ptr<LiveView> live(new LiveView(std::move(*server), recording, name));
  complain(kOk, fmt::format("{} shows the run while it is recorded", url));
  open_browser(url);
  return live;
}

LiveView::~LiveView() {
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof one);
  thread_.join();
  close(stop_);
}

void LiveView::finish(std::shared_ptr<const trace::Trace> trace) {
  // Blocked before it takes its time: a Ctrl-C during that counts.
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  document_.finished(std::move(trace), findings_of);
  complain(kOk, fmt::format("{} shows the recording until Ctrl-C", server_.url()));
  int arrived = 0;
  sigwait(&signals, &arrived);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tacho::cli
