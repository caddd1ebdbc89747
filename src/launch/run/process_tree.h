// The processes below a target, as the kernel shows them while they run: also those in which libtacho.so is not.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tacho::launch {

/// A process of the target's, by what /proc said at the last look at it. What this user may not read is unknown.
struct TreeMember {
  enum class Fact : uint8_t { kUnknown, kNo, kYes };
  pid_t pid = 0;
  pid_t own_pid = 0;   ///< in its own pid namespace: the number that libtacho.so records
  pid_t parent = 0;    ///< when first seen
  uint64_t start = 0;  ///< clock ticks after boot; with `pid` it names the process
  std::string name;
  std::string file;         ///< of its executable, without folders; "" = unknown
  int64_t exec_after = 0;   ///< CLOCK_MONOTONIC_RAW ns: when the image before this one was last seen; 0 = it had none
  int64_t exec_before = 0;  ///< when this image was first seen
  double cpu_s = 0;         ///< its own CPU time, without its children's
  bool running = true;      ///< false once it has ended
  bool main = false;        ///< the program that was started
  bool forked = false;      ///< runs its parent's image, without an exec of its own
  bool other_user = false;
  bool other_mounts = false;      ///< another mount namespace or root
  bool other_time = false;        ///< another time namespace: its clocks differ
  bool other_tacho = false;       ///< recorded by a tacho that the target started
  Fact pool = Fact::kUnknown;     ///< the environment that it was started with names this run's pool
  Fact preload = Fact::kUnknown;  ///< its LD_PRELOAD names libtacho.so
  Fact loaded = Fact::kUnknown;   ///< libtacho.so is in its memory map
  Fact dynamic = Fact::kUnknown;  ///< a loader starts it: it is not linked statically
  Fact secure = Fact::kUnknown;   ///< setuid, setgid or with capabilities of its file: the loader ignores LD_PRELOAD
  bool device = false;            ///< a GPU runtime or a GPU's device file is in its memory map
  uint64_t descriptors_left = UINT64_MAX;  ///< of its limit, at the look that found the fewest
  uint32_t looks = 0;                      ///< at this image
};

/// Follows the processes below a target from start() to stop(), in a thread of its own that uses at most 1 % of a core.
/// It attaches to nothing, and the target's processes keep their parents. A process that lives for less than the pause
/// between two looks (10 ms and more) may stay unseen.
class ProcessTree {
 public:
  struct Settings {
    std::string pool;                       ///< path: the value of TACHO_POOL
    std::string preload;                    ///< path of libtacho.so in LD_PRELOAD
    std::vector<std::string> device_marks;  ///< parts of file names that only processes that use a GPU map
    std::string proc = "/proc";             ///< another root in tests
  };
  explicit ProcessTree(Settings settings);
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  void start(pid_t target);
  /// Ends the thread. Further looks are the caller's.
  void stop();
  /// Looks once, in the calling thread.
  void look(pid_t target);

  /// Everybody seen so far, by (pid, start): a copy.
  std::vector<TreeMember> members() const;
  /// Those still running at the last look, without the target itself.
  std::vector<TreeMember> running() const;
  /// How long the thread rests, in ns, after a look that cost `cpu_ns` of CPU time. By CPU time, not by the clock:
  /// looks must not become rare where others take the cores, for that is when processes are missed.
  static int64_t pause_after(int64_t cpu_ns);
  /// CPU time of everybody seen, each at the last look at it.
  double cpu_s() const;
  /// Ended processes of little CPU time and without a GPU are forgotten beyond this many.
  static constexpr size_t kMostKept = 1024;

 private:
  struct Seen {
    TreeMember facts;
    uint64_t image = 0;  // where its stack begins: another one after each exec
    uint64_t rounds = 0;
    int64_t last_seen = 0;  // raw ns
    bool listed = false;    // by the last look, running or not
  };
  struct Entry;
  void loop(pid_t target);
  void admit(const std::vector<Entry>& entries, pid_t target);
  void update(const Entry& entry);
  void inspect(Seen& seen) const;
  bool holds_pool(pid_t pid) const;
  void forget_idle();

  Settings settings_;
  std::string own_mounts_, own_time_;
  std::thread thread_;
  std::mutex stop_mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  std::unordered_set<pid_t> foreign_;  // processes of others, looked at once

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::pair<pid_t, uint64_t>, Seen> seen_;
  double forgotten_s_ = 0;              // CPU time of those that are forgotten
  std::optional<uint64_t> main_start_;  // TreeMember::start of the target
};

}  // namespace tacho::launch
