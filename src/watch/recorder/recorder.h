// `tacho watch --keep`: follows the ring while the program runs, sees triggers, and writes files without stopping it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/output_claim.h"
#include "base/result.h"
#include "watch/recorder/keep_conditions.h"
#include "watch/recorder/keep_trigger.h"
#include "watch/recorder/kept_file.h"
#include "watch/recorder/ring_file.h"
#include "watch/segment.h"

namespace tacho::watch {

struct KeepOptions {
  double seconds = 30;           ///< before a trigger
  double after_s = 5;            ///< after it
  uint64_t bytes = 64ull << 20;  ///< of the ring
  std::string folder = {};       ///< of the files; empty = the current one
  uint64_t most_files = 10;      ///< then further triggers are counted
  std::vector<KeepTrigger> triggers = usual_keep_triggers();
};

class Recorder {
 public:
  /// Call it before the program starts. The segment must stay where it is.
  static Result<std::unique_ptr<Recorder>> create(const WatchSegment& segment, const KeepOptions& options,
                                                  const std::vector<std::string>& command);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Makes another user the owner of the ring. False if the kernel does not let tacho.
  bool give_to(uint32_t user, uint32_t group) const { return ring_.give_to(user, group); }
  /// Whether a signal that was sent to tacho is a trigger, and not the program's.
  bool takes(int signal);
  /// A key of the page.
  void ask();
  /// About 50 times a second.
  void step();
  /// A program ended with this status of wait(): whether that was a crash.
  void ended(int status, const std::string& what);
  /// A program crashed, and why that is thought.
  void crashed(const std::string& why);
  /// No program writes any more.
  void end();
  /// Sentences since the last call: files that were written, or why not.
  std::vector<std::string> messages();

 private:
  struct Writing;
  struct Pending {
    KeptExcerpt excerpt;
    int64_t deadline = 0;
  };

  Recorder(const WatchSegment& segment, RingFile ring, const KeepOptions& options, std::vector<std::string> command);
  void fire(KeepCause cause, const std::string& words, const std::string& why, std::vector<std::string> further = {});
  void observe(const KeptRecord& record);
  void observe_failure(const KeptRecord& record);
  void follow_memory(const KeptRecord& record);
  void follow(bool final);
  void begin_file(KeptExcerpt excerpt);
  void write_pending();
  void collect();
  const KeepTrigger* trigger_of(KeepCause cause) const;
  std::vector<std::string> owners() const;

  const WatchSegment& segment_;
  RingFile ring_;
  KeepOptions options_;
  std::vector<std::string> command_;
  RingStream stream_;
  KeepConditions conditions_;
  int64_t began_ = 0;
  std::optional<Pending> pending_;
  std::unique_ptr<Writing> writing_;
  uint64_t files_ = 0, refused_ = 0;
  std::map<std::string, int64_t> quiet_until_;  // by trigger: not again before
  std::map<std::pair<uint16_t, uint64_t>, LiveMemory> live_;
  uint64_t unfollowed_ = 0;  // allocations beyond what is followed
  uint64_t told_overwritten_ = 0, told_unfinished_ = 0;
  std::vector<std::string> messages_;
};

}  // namespace tacho::watch
