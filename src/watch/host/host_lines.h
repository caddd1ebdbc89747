// The lines of code in which threads of watched processes spend processor time: sampled by the kernel (perf_event_open)
// from outside, so that programs neither load nor run anything for it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "decode/records/module.h"

namespace tacho::watch {

/// A line of source, or a function where a file has no lines, or a file where it has no names.
struct HostLine {
  std::string function;  ///< demangled; "" where the file does not name it
  std::string file;      ///< of the source; "" where the executable has no lines
  int line = 0;
  std::string module;  ///< the executable or library, with its path; "[code without a file]" of code that was made
  double share = 0;    ///< of all samples
};

/// What was seen in the last seconds.
struct HostLines {
  std::vector<HostLine> lines;  ///< those with the largest shares, at most HostSampler::kMostLines
  uint64_t samples = 0;         ///< in all
  double processors = 0;        ///< that samples stand for: processor time, outside of the kernel, in a second
  std::string problem;          ///< a sentence, where the kernel does not let tacho sample, or not all threads
};

/// Samples all threads of the processes in a thread of its own. It looks for new ones each second, so threads that live
/// for less are not all seen.
class HostSampler {
 public:
  static constexpr uint64_t kRate = 49;  ///< samples in a second of a thread's processor time
  static constexpr int kSeconds = 30;    ///< of which the lines are
  static constexpr size_t kMostLines = 10, kMostThreads = 512;

  /// `processes`: called in the sampler's thread; those that are to be sampled.
  explicit HostSampler(std::function<std::vector<uint32_t>()> processes);
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  HostLines latest() const;

 private:
  struct Thread {
    uint32_t pid = 0;
    int file = -1;
    void* ring = nullptr;
    bool seen = false;
  };
  struct Map {
    uint64_t begin = 0, end = 0, offset = 0;
    std::string path;
    decode::CodeModule* module = nullptr;  ///< once it was asked for
  };
  using Line = std::tuple<std::string, std::string, int, std::string>;  // as HostLine's first four

  void loop();
  void look();
  void follow(uint32_t pid);
  void open_thread(uint32_t pid, pid_t tid);
  void close_thread(Thread& thread);
  void read(const Thread& thread);
  void count(uint32_t pid, uint64_t address);
  Map* map_of(uint32_t pid, uint64_t address);
  const Line& line_of(decode::CodeModule& module, uint64_t address);
  void publish();

  std::function<std::vector<uint32_t>()> processes_;
  std::map<pid_t, Thread> threads_;
  std::map<uint32_t, std::vector<Map>> maps_;  // of processes that are sampled
  std::map<uint32_t, bool> mapped_now_;        // whether a process's maps were read in this second
  decode::ModuleCache modules_;
  std::map<std::pair<const decode::CodeModule*, uint64_t>, Line> known_;
  std::deque<std::map<Line, uint64_t>> seconds_;  // the newest last
  std::string problem_;

  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool end_ = false;
  HostLines latest_;
  std::thread thread_;
};

}  // namespace tacho::watch
