// The document that `tacho view` serves: one or several runs, and the answers to a page's requests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "report/server/http_server.h"
#include "view/jobs.h"
#include "view/run.h"

namespace tacho::view {

class Document {
 public:
  /// Adds a run; its index is built in the background from now on. It offers the tables of its code and of its memory,
  /// where it has them and is not being recorded.
  Run& add(const std::string& path, std::shared_ptr<const trace::Trace> trace, const Limits& limits = {},
           FindingsOf findings = nullptr, const Growing& growing = {});
  const std::vector<std::unique_ptr<Run>>& runs() const { return runs_; }
  /// Two runs, by number, that were asked for to be compared: the page opens on what changed.
  void compare_first(size_t a, size_t b) { compared_.emplace(a, b); }
  const std::optional<std::pair<size_t, size_t>>& compared() const { return compared_; }

  /// Whether something is being computed in the background, which the document waits for before it ends.
  bool computing();

  /// Answers any request of the page; errors have a status from 400 on and one sentence. Thread-safe.
  report::HttpResponse answer(const report::HttpRequest& request);

 private:
  Result<std::string> tiles(Run& run, const report::HttpRequest& request);
  std::string document();
  Result<std::string> background(const std::string& key, const Jobs::Work& work);
  struct Route {
    std::string_view name;
    Result<std::string> (*answer)(Document& document, Run& run, const report::HttpRequest& request);
  };
  static const Route* route_of(std::string_view name);
  Result<const Run*> base_of(const report::HttpRequest& request) const;
  Result<std::string> flame_graph(Run& run, const report::HttpRequest& request);
  Result<std::string> difference(Run& run, const report::HttpRequest& request);
  Result<std::string> aligned(Run& run, const report::HttpRequest& request);

  std::vector<std::unique_ptr<Run>> runs_;
  std::optional<std::pair<size_t, size_t>> compared_;
  Jobs jobs_;  // ends before the runs that it reads
};

/// "compare" of the document: which runs the page compares at first; null = none.
void put_compared(JsonWriter& json, const std::optional<std::pair<size_t, size_t>>& compared);

/// The page as it is served.
std::string served_page();

}  // namespace tacho::view
