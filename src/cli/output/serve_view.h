// Serves the page of `tacho view` until Ctrl-C.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "report/server/http_server.h"
#include "view/document.h"
#include "view/live.h"

namespace tacho::cli {

/// Prints the address on standard output, opens it in a browser if `open` and there is a screen, and answers until
/// SIGINT or SIGTERM. Returns 0, or `failure` after a sentence when it cannot listen.
int serve_view(view::Document& document, std::optional<uint16_t> port, bool open, int failure);

/// The page of a run from its start on: it is served on threads of its own while the run is recorded.
class LiveView {
 public:
  /// Begins to follow the recording and prints the address on standard error, for standard output is the program's.
  /// Opens it in a browser where there is a screen. nullptr after a sentence when it cannot listen: the run is recorded
  /// without a page.
  static std::unique_ptr<LiveView> begin(const std::string& recording, const std::string& name);
  ~LiveView();

  /// Shows the recording as it is at the end, until SIGINT or SIGTERM.
  void finish(std::shared_ptr<const trace::Trace> trace);
  bool computing() { return document_.computing(); }

 private:
  LiveView(report::HttpServer server, const std::string& recording, const std::string& name);
  report::HttpServer server_;
  view::LiveDocument document_;
  int stop_;
  std::thread thread_;
};

}  // namespace tacho::cli
