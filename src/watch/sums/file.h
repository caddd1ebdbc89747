// Sums of periods as a .tacho (analysis/sums/names.h says how), and their keeper while a program is watched.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "watch/answer.h"
#include "watch/sums/periods.h"

namespace tacho::watch {

/// What the file says beside the sums.
struct SumFacts {
  std::string command, host;
  std::vector<ClockTuple> clocks;  ///< at the beginning, each hour, at the end
  std::vector<std::string> notes;  ///< sentences
};

/// Writes or replaces `path`; `durable`: waits until it is on disk.
Status write_sums(const std::string& path, const SumPeriods& periods, const SumFacts& facts, bool durable);

/// Takes a moment each second and writes the file every minute, or so seldom that writing takes a hundredth of one
/// processor, in a thread of its own.
class SumKeeper {
 public:
  SumKeeper(std::string path, std::string command, std::function<WatchMoment()> now);
  ~SumKeeper();
  SumKeeper(const SumKeeper&) = delete;
  SumKeeper& operator=(const SumKeeper&) = delete;

  /// The last sums and the last file; the error says why there is none, or an old one. `notes` go into the file.
  Status finish(std::vector<std::string> notes);

 private:
  void loop();
  void take();

  std::string path_;
  std::function<WatchMoment()> now_;
  SumFacts facts_;
  SumPeriods periods_;
  std::mutex lock_;
  std::condition_variable changed_;
  bool end_ = false;
  Status written_;
  std::thread thread_;
};

}  // namespace tacho::watch
