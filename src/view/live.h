// A run that the page shows while it is recorded: whenever the recording grew, a new state of it takes the place of the
// last one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "report/server/http_server.h"
#include "view/document.h"

namespace tacho::view {

class LiveDocument {
 public:
  /// `recording`: the file as it is being written; its states are copied to $TMPDIR. `name`: its final name. A state is
  /// made at most every second, and the machine spends at most a quarter of one processor on it, at low priority.
  LiveDocument(std::string recording, std::string name);
  ~LiveDocument();

  /// The recording is complete: shows it as `trace`, with its findings, once its index exists. Pages that still look at
  /// the state before may go on doing so for some seconds. Call it once.
  void finished(std::shared_ptr<const trace::Trace> trace, FindingsOf findings);

  /// Answers requests of the page. Parameter `generation` names the state that a request is about; a request for a
  /// state that no longer exists gets status 409. Thread-safe.
  report::HttpResponse answer(const report::HttpRequest& request);

  /// Whether something is being computed in the background that the destructor waits for.
  bool computing();

 private:
  struct State {
    uint32_t generation = 0;
    int64_t rows = 0;
    int64_t asked = 0;  // when somebody last asked for it, ns of CLOCK_MONOTONIC
    std::shared_ptr<Document> document;
  };
  void follow();
  Result<std::shared_ptr<const trace::Trace>> copy() const;
  void show(std::shared_ptr<const trace::Trace> trace, bool live, FindingsOf findings);
  void forget_old();  // under lock_
  std::shared_ptr<Document> state(uint32_t generation);

  std::string recording_, name_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<State> states_;  // the newest last
  bool end_ = false;
  uint32_t generation_ = 0;
  uint32_t naming_ = 0;  // how often numbers of names got another meaning
  std::thread thread_;
};

}  // namespace tacho::view
