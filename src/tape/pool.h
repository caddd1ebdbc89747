// tacho's side of the pool: creates it before the target starts, grows and drains it while the target runs, and
// recovers the pool of a tacho that died.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "event/records.h"
#include "tape/layout.h"

namespace tacho::tape {

struct PoolOptions {
  uint64_t initial_bytes = 16ull << 20;  // backed by memory before the target starts
  uint64_t max_bytes = 256ull << 20;     // the limit of growth (Grower)
  uint64_t sources = source_bit::kAll;
  uint32_t closed = 0;           // gates that are closed at first (layout.h)
  bool ignores_program = false;  // see PoolHeader
  uint32_t flush_period_ms = 1000;
  uint64_t start_launch = 0, stop_launch = 0;  // triggers, see PoolHeader
  std::string config = {};                     // event::to_text of the run's Configuration
  std::string output = {};                     // path of the trace being written, for recovery
  std::vector<std::string> folders = {};       // to try first
};

/// A shared mapping of a pool file. The file lies in /dev/shm or, if that is absent, read-only or too small, in
/// $XDG_RUNTIME_DIR, $TMPDIR or /tmp. It has mode 0600 and an unguessable name.
class Pool {
 public:
  static Result<Pool> create(const PoolOptions& options);
  /// Opens an existing pool file, for recovery. Everything in it is untrusted.
  static Result<Pool> open(const std::string& path);
  Pool(Pool&& other) noexcept;
  Pool& operator=(Pool&& other) noexcept;
  ~Pool();

  const std::string& path() const { return path_; }
  PoolHeader& header() { return *reinterpret_cast<PoolHeader*>(base_); }
  uint32_t max_blocks() const { return max_blocks_; }
  std::atomic<uint32_t>& state(uint32_t block) {
    return reinterpret_cast<std::atomic<uint32_t>*>(base_ + kHeaderBytes)[block];
  }
  BlockHeader& block(uint32_t index) {
    return *reinterpret_cast<BlockHeader*>(base_ + data_offset_ + static_cast<size_t>(index) * kBlockSize);
  }
  /// Backs up to `blocks` more blocks with memory, within the maximum. False when it could add none.
  bool grow(uint32_t blocks);
  /// True if the pool may take `blocks` more blocks ahead of need: much of its filesystem then stays free for others.
  bool spacious(uint32_t blocks) const;
  /// True once grow() failed for lack of memory or space: the machine sets the limit, not PoolOptions.
  bool out_of_space() const { return out_of_space_; }
  /// Makes the file another user's, whose process is to open it. False without the right to.
  bool give_to(uint32_t user, uint32_t group);
  /// Unlinks the file; mappings stay.
  void unlink();
  /// Processes that wanted to attach and may not open the pool, because they run as another user; since the last call.
  uint32_t refused();

 private:
  Pool() = default;
  std::string path_;
  std::byte* base_ = nullptr;
  size_t size_ = 0;
  size_t data_offset_ = 0;
  uint32_t max_blocks_ = 0;
  int file_ = -1;
  int refused_ = -1;  // a named pipe (kRefusedEnding), into which everybody may write
  bool owner_ = false;
  bool out_of_space_ = false;
};

/// Grows the pool in its own thread, ahead of the writers. They wake the thread when fewer than `ahead` blocks are
/// free; the more often they do, the more it adds. The Pool object must not move meanwhile.
class Grower {
 public:
  explicit Grower(Pool& pool);
  ~Grower();

 private:
  void loop();
  /// Returns the number of blocks to add now, and sets the mark below which writers wake this thread.
  uint32_t wanted();

  Pool& pool_;
  int32_t ahead_;            // blocks that should be free
  uint32_t asked_ = 0;       // the last PoolHeader::wanted_blocks seen
  int64_t last_growth_ = 0;  // raw clock
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// The unit that the drainer hands on: bytes [from, to) of a block's payload, published and not handed on before. A
/// vendor's buffer always comes whole. If its process never completed the buffer (it was killed, or still holds it at
/// the last pass), the whole payload comes with `committed` 0; it contains whatever the vendor's library had written.
struct Piece {
  const BlockHeader* block;
  std::span<const std::byte> bytes;
  bool last;  // no further piece of the block follows
};

/// Takes published records from the pool, definitions before the records that use them. For one thread.
class Drainer {
 public:
  using Sink = std::function<void(const Piece&)>;
  explicit Drainer(Pool& pool);

  /// Makes one pass over the pool and returns the number of bytes handed on. Any pass frees the blocks of ended
  /// threads. With `final` every target has ended, so the pass takes and frees open blocks too.
  uint64_t pass(const Sink& sink, bool final);
  /// Treats kept and partly drained definitions as new. For recovery: call before pass(sink, true).
  void rewind_definitions();
  /// Share of the populated blocks that were in use at the last pass, 0..1.
  double pressure() const { return pressure_; }
  /// Sleeps until the next pass is due: about 20 ms, less when writers take many blocks or wake() is called.
  void sleep();
  /// Ends another thread's sleep() at once, or its next one.
  void wake();

 private:
  void take(uint32_t index, uint32_t committed, const Sink& sink, bool whole);
  void take_shared(uint32_t index, const Sink& sink);
  void take_definitions(uint32_t count, const Sink& sink, bool final, bool look_for_ends);
  void release(uint32_t index);
  bool writer_gone(BlockHeader& block);

  Pool& pool_;
  double pressure_ = 0;
  std::atomic<bool> woken_{false};
  uint32_t kept_ = 0;
  uint64_t passes_ = 0;
  uint64_t pid_namespace_ = 0;         // inode of tacho's own
  std::unordered_set<uint32_t> seen_;  // pids once seen alive whose namespace is unknown
};

}  // namespace tacho::tape
