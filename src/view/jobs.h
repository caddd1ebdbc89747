// Answers that take seconds, computed one after the other in the background while the page shows something else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace tacho::view {

class Jobs {
 public:
  using Answer = std::shared_ptr<const Result<std::string>>;
  /// Reports how much is done, 0 to 1. True once nobody waits for the answer any more: work may then end with an error.
  using GivenUp = std::function<bool(double done)>;
  using Work = std::function<Result<std::string>(const GivenUp&)>;

  /// Ends once the work under way is done; see busy().
  ~Jobs();

  /// The answer for `key`: a known one, or that of `work`, which runs on this object's thread. nullptr if it takes
  /// longer than `patience_ms`: ask again, at least every two seconds, or the work is given up. The newest question is
  /// computed first, and the newest answers stay known.
  Answer ask(const std::string& key, const Work& work, int patience_ms = 200);

  /// Progress of the work for `key`, 0 to 1 as it reported; 0 while it waits.
  double done(const std::string& key);

  /// Whether work is under way, which may take a while to end.
  bool busy();

 private:
  struct Known {
    std::string key;
    Answer answer;
  };
  struct Waiting {
    std::string key;
    Work work;
  };
  Answer find(const std::string& key);  // under lock_
  void run();

  std::mutex lock_;
  std::condition_variable changed_;
  std::list<Known> known_;                       // newest first
  std::deque<Waiting> waiting_;                  // newest first
  std::string now_;                              // the key of the work under way; "" = none
  std::chrono::steady_clock::time_point asked_;  // when somebody asked for that last
  double done_ = 0;                              // of it
  bool end_ = false;
  std::thread thread_;
};

}  // namespace tacho::view
