// What a watch serves while it goes on: /metrics for Prometheus and /moment for other programs, or the page of --view.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "report/server/http_server.h"
#include "watch/live/wire.h"
#include "watch/prometheus.h"

namespace tacho::watch {

/// Asked by several threads at once.
using MomentSource = std::function<WatchMoment()>;

/// Answers from serve() to its end, in threads of its own.
class MomentServer {
 public:
  /// `port` on 127.0.0.1; 0: any free one.
  static Result<std::unique_ptr<MomentServer>> listen_for_metrics(uint16_t port);
  /// The page, whose address has a token; 8050, or any port if that is taken.
  static Result<std::unique_ptr<MomentServer>> listen_for_page();
  ~MomentServer();
  MomentServer(const MomentServer&) = delete;
  MomentServer& operator=(const MomentServer&) = delete;

  /// Of the metrics or of the page.
  std::string address() const { return page_ ? server_.url() : server_.url() + "metrics"; }
  void serve(WatchFacts facts, MomentSource now);

 private:
  MomentServer(report::HttpServer server, bool page);
  report::HttpResponse answer(const report::HttpRequest& request);

  report::HttpServer server_;
  bool page_;
  int stop_;
  WatchFacts facts_;
  MomentSource now_;
  std::thread thread_;
  std::mutex lock_;
  PrometheusPage metrics_;
};

}  // namespace tacho::watch
