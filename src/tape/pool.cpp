// Creation, growth and draining of the pool (pool.h).
#include "tape/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "tape/filter_count.h"
#include "tape/gate.h"
#include "tape/sleep.h"

namespace tacho::tape {
namespace {

size_t data_offset(uint32_t max_blocks) {
  const size_t end = kHeaderBytes + max_blocks * sizeof(uint32_t);
  return (end + kBlockSize - 1) / kBlockSize * kBlockSize;
}

std::vector<std::string> candidate_folders() {
  std::vector<std::string> folders;
  if (const char* folder = getenv("TACHO_POOL_DIR"); folder != nullptr && *folder != '\0') folders.emplace_back(folder);
  folders.emplace_back("/dev/shm");
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"})
    if (const char* folder = getenv(variable); folder != nullptr && *folder != '\0') folders.emplace_back(folder);
  folders.emplace_back("/tmp");
  return folders;
}

// Names tacho's process, so that a child with other mounts finds the pool by way of /proc (writer.cpp).
Result<std::string> random_name() {
  uint64_t words[2];
  if (getrandom(words, sizeof words, 0) != sizeof words)
    return fail("no random numbers for the pool's name: {}", strerror(errno));
  return fmt::format("tacho-{}-{:016x}{:016x}.pool", getpid(), words[0], words[1]);
}

// 0, or the errno of what went wrong.
int allocate(int file, size_t from, size_t bytes) {
  int error;
  do error = posix_fallocate(file, static_cast<off_t>(from), static_cast<off_t>(bytes));
  while (error == EINTR);
  return error;
}

// Writes zeros over backed bytes that are not in use yet. Allocated pages are cleared by the kernel at their first use,
// and only then does one fault map several of them: both should not be the target's to pay. Failing costs only time.
void clear(int file, size_t from, size_t bytes) {
  static const char kZeros[kBlockSize] = {};
  for (size_t done = 0; done < bytes;) {
    const ssize_t one = pwrite(file, kZeros, std::min(bytes - done, sizeof kZeros), static_cast<off_t>(from + done));
    if (one <= 0) return;
    done += static_cast<size_t>(one);
  }
}
// Enough for a quiet program, because freed blocks are used again before others.
constexpr size_t kClearedAtFirst = 4 << 20;

std::string reason(int error) {
  rlimit limit{};
  if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return fmt::format("files may have {} bytes at most (ulimit -f{})", limit.rlim_cur,
                       limit.rlim_cur == limit.rlim_max ? ", the hard limit" : "");
  if (error == ENOSPC) return "no room";
  return strerror(error);
}

}  // namespace

Result<Pool> Pool::create(const PoolOptions& options) {
  Pool pool;
  pool.max_blocks_ = static_cast<uint32_t>(std::max<uint64_t>(options.max_bytes / kBlockSize, 4));
  pool.data_offset_ = data_offset(pool.max_blocks_);
  pool.size_ = pool.data_offset_ + static_cast<size_t>(pool.max_blocks_) * kBlockSize;
  if (options.config.size() >= kConfigBytes)
    return fail("the configuration for the target has {} bytes, the pool holds {}", options.config.size(),
                kConfigBytes - 1);
  TACHO_ASSIGN(const std::string name, random_name());
  const auto wanted =
      static_cast<uint32_t>(std::clamp<uint64_t>(options.initial_bytes / kBlockSize, 4, pool.max_blocks_));

  std::string tried;
  uint32_t populated = 0;
  // The whole initial size somewhere, else a quarter of it, else the least that works.
  for (const uint32_t blocks : {wanted, std::max(wanted / 4, 4u), 4u}) {
    tried.clear();
    std::vector<std::string> folders = options.folders;
    for (std::string& folder : candidate_folders()) folders.push_back(std::move(folder));
    for (const std::string& folder : folders) {
      const std::string path = folder + "/" + name;
      const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (file < 0) {
        tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", folder, strerror(errno));
        continue;
      }
      const size_t backed = pool.data_offset_ + static_cast<size_t>(blocks) * kBlockSize;
      const int error = ftruncate(file, static_cast<off_t>(pool.size_)) != 0 ? errno : allocate(file, 0, backed);
      if (error != 0) {
        tried += fmt::format("{}{}: {} for {} KiB", tried.empty() ? "" : "; ", folder, reason(error), backed / 1024);
        ::unlink(path.c_str());
        close(file);
        continue;
      }
      pool.file_ = file;
      pool.path_ = path;
      populated = blocks;
      break;
    }
    if (pool.file_ >= 0) break;
  }
  if (pool.file_ < 0)
    return fail("no folder can hold the pool ({}); set TACHO_POOL_DIR to a folder with some megabytes free", tried);
  pool.owner_ = true;
  // Held as long as this tacho lives: by it a program to which tacho has attached knows when to let go.
  flock(pool.file_, LOCK_EX | LOCK_NB);
  const std::string refused = pool.path_ + kRefusedEnding;
  if (mkfifo(refused.c_str(), 0622) == 0) {
    chmod(refused.c_str(), 0622);
    pool.refused_ = ::open(refused.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  }

  clear(pool.file_, pool.data_offset_, std::min<size_t>(kClearedAtFirst, static_cast<size_t>(populated) * kBlockSize));
  void* const at = map_pool(pool.file_, pool.size_);
  if (at == MAP_FAILED) {
    const int error = errno;
    pool.unlink();
    return fail("cannot map the pool {}: {}", pool.path_, strerror(error));
  }
  pool.base_ = static_cast<std::byte*>(at);
  PoolHeader& header = pool.header();
  memcpy(header.magic, kPoolMagic, sizeof kPoolMagic);
  header.schema_hash = event::schema_hash();
  header.version = kPoolVersion;
  header.block_size = kBlockSize;
  header.max_blocks = pool.max_blocks_;
  header.data_offset = static_cast<uint32_t>(pool.data_offset_);
  header.launcher_pid = static_cast<uint32_t>(getpid());
  header.flush_period_ms = options.flush_period_ms;
  header.filters = filters_of_process();
  header.sources = options.sources;
  header.start_launch = options.start_launch;
  header.stop_launch = options.stop_launch;
  memcpy(header.config, options.config.data(), options.config.size());
  strncpy(header.output, options.output.c_str(), sizeof header.output - 1);
  header.ignores_program = options.ignores_program ? 1 : 0;
  header.closed.store(options.closed, std::memory_order_relaxed);
  const uint64_t open = open_sources(options.closed, options.sources);
  header.enabled.store(open, std::memory_order_relaxed);
  header.ever_open.store(open != 0 ? 1 : 0, std::memory_order_relaxed);
  header.free_blocks.store(static_cast<int32_t>(populated), std::memory_order_relaxed);
  header.populated_blocks.store(populated, std::memory_order_release);
  return pool;
}

Result<Pool> Pool::open(const std::string& path) {
  Pool pool;
  pool.path_ = path;
  pool.file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (pool.file_ < 0) return fail("{}: {}", path, strerror(errno));
  struct stat status {};
  if (fstat(pool.file_, &status) != 0) return fail("{}: {}", path, strerror(errno));
  if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) < kHeaderBytes)
    return fail("{}: not a tacho pool (too small)", path);
  pool.size_ = static_cast<size_t>(status.st_size);
  // A private mapping: recovery never changes the file, and a truncated file cannot kill us half way through a write.
  void* const at = mmap(nullptr, pool.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, pool.file_, 0);
  if (at == MAP_FAILED) return fail("{}: cannot be mapped: {}", path, strerror(errno));
  pool.base_ = static_cast<std::byte*>(at);
  const PoolHeader& header = pool.header();
  if (memcmp(header.magic, kPoolMagic, sizeof kPoolMagic) != 0) return fail("{}: not a tacho pool", path);
  if (header.version != kPoolVersion || header.schema_hash != event::schema_hash())
    return fail(
        "{}: was written by another version of tacho (schema {:016x}, this is {:016x}); recover it with that one", path,
        header.schema_hash, event::schema_hash());
  if (header.block_size != kBlockSize || header.max_blocks == 0 || header.max_blocks > pool.size_ / kBlockSize ||
      header.data_offset != data_offset(header.max_blocks) ||
      header.data_offset + static_cast<size_t>(header.max_blocks) * kBlockSize > pool.size_ ||
      header.populated_blocks.load() > header.max_blocks)
    return fail("{}: the pool's header contradicts its size: damaged", path);
  pool.max_blocks_ = header.max_blocks;
  pool.data_offset_ = header.data_offset;
  return pool;
}

Pool::Pool(Pool&& other) noexcept {
  *this = std::move(other);
}

Pool& Pool::operator=(Pool&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(data_offset_, other.data_offset_);
  std::swap(max_blocks_, other.max_blocks_);
  std::swap(file_, other.file_);
  std::swap(refused_, other.refused_);
  std::swap(owner_, other.owner_);
  std::swap(out_of_space_, other.out_of_space_);
  return *this;
}

Pool::~Pool() {
  if (base_ != nullptr) munmap(base_, size_);
  if (owner_) unlink();
  if (file_ >= 0) close(file_);
  if (refused_ >= 0) close(refused_);
}

uint32_t Pool::refused() {
  uint32_t pid, count = 0;
  while (refused_ >= 0 && read(refused_, &pid, sizeof pid) == sizeof pid) ++count;
  return count;
}

bool Pool::give_to(uint32_t user, uint32_t group) {
  return fchown(file_, user, group) == 0;
}

void Pool::unlink() {
  if (owner_) {
    ::unlink((path_ + kRefusedEnding).c_str());
    ::unlink(path_.c_str());
  }
  owner_ = false;
}

bool Pool::grow(uint32_t blocks) {
  PoolHeader& head = header();
  const uint32_t populated = head.populated_blocks.load(std::memory_order_relaxed);
  blocks = std::min(blocks, max_blocks_ - populated);
  const size_t from = data_offset_ + static_cast<size_t>(populated) * kBlockSize;
  // The last bit of room is worth having, too.
  while (blocks != 0 && !out_of_space_ && allocate(file_, from, static_cast<size_t>(blocks) * kBlockSize) != 0) {
    blocks /= 2;
    out_of_space_ = blocks == 0;
  }
  if (blocks == 0 || out_of_space_) return false;
  clear(file_, from, static_cast<size_t>(blocks) * kBlockSize);
  head.free_blocks.fetch_add(static_cast<int32_t>(blocks), std::memory_order_relaxed);
  head.populated_blocks.store(populated + blocks, std::memory_order_release);
  wake_all(head.populated_blocks);
  return true;
}

bool Pool::spacious(uint32_t blocks) const {
  struct statvfs status {};
  if (fstatvfs(file_, &status) != 0) return false;
  const uint64_t whole = uint64_t{status.f_blocks} * status.f_frsize,
                 left = uint64_t{status.f_bavail} * status.f_frsize;
  return left >= uint64_t{blocks} * kBlockSize + std::min<uint64_t>(whole / 2, 1ull << 30);
}

namespace {
constexpr int32_t kAhead = 128;       // free blocks that are kept ahead of a quiet program
constexpr int32_t kMostAhead = 1024;  // and of one that takes them as fast as they come
constexpr int32_t kUrgent = 64;       // with this few, room for others does not count
constexpr uint32_t kStep = 32;        // at a time: some 0.8 ms
}  // namespace

Grower::Grower(Pool& pool) : pool_(pool), ahead_(kAhead) {
  PoolHeader& head = pool_.header();
  head.grow_below.store(ahead_);
  head.growable.store(head.populated_blocks.load() < pool_.max_blocks());
  thread_ = std::thread([this] { loop(); });
}

Grower::~Grower() {
  pool_.header().growable.store(0);
  stopping_.store(true);
  wake_sleeper(pool_.header().grower_sleeps);
  thread_.join();
}

uint32_t Grower::wanted() {
  PoolHeader& head = pool_.header();
  if (head.growable.load() == 0) {
    head.grow_below.store(std::numeric_limits<int32_t>::min());
    return 0;
  }
  const int32_t free = std::max(head.free_blocks.load(), 0);
  const auto populated = static_cast<int32_t>(head.populated_blocks.load());
  asked_ = head.wanted_blocks.load();
  const auto asked = static_cast<int32_t>(std::min(asked_, pool_.max_blocks()));
  const int32_t missing = std::max(ahead_ - free, asked - populated);
  head.grow_below.store(ahead_);
  if (missing <= 0) return 0;
  const uint32_t blocks = std::min(static_cast<uint32_t>(missing), kStep);
  if (free < kUrgent || pool_.spacious(blocks)) return blocks;
  head.grow_below.store(kUrgent);
  return 0;
}

void Grower::loop() {
  pthread_setname_np(pthread_self(), "tacho-grow");
  PoolHeader& head = pool_.header();
  while (!stopping_.load()) {
    // Not for ever: a program's filter of system calls may keep it from waking this thread.
    sleep_on(head.grower_sleeps, 100'000'000, [&] {
      return stopping_.load() || head.free_blocks.load() < head.grow_below.load() ||
             head.wanted_blocks.load() != asked_;
    });
    const int64_t now = raw_now();
    uint32_t blocks = wanted();
    if (blocks != 0 && last_growth_ != 0 && now - last_growth_ < 100'000'000) ahead_ = std::min(ahead_ * 2, kMostAhead);
    for (; blocks != 0 && !stopping_.load(); blocks = wanted()) {
      if (!pool_.grow(blocks) || head.populated_blocks.load() == pool_.max_blocks()) head.growable.store(0);
      last_growth_ = raw_now();
    }
  }
}

Drainer::Drainer(Pool& pool) : pool_(pool) {
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) == 0) pid_namespace_ = static_cast<uint64_t>(status.st_ino);
}

void Drainer::release(uint32_t index) {
  BlockHeader& block = pool_.block(index);
  const uint32_t blocks = std::clamp(block.blocks, 1u, pool_.max_blocks() - index);
  block.committed.store(0, std::memory_order_relaxed);
  block.drained = 0;
  std::atomic_ref<uint32_t>(block.pid).store(0, std::memory_order_relaxed);
  block.blocks = 1;
  for (uint32_t i = blocks; i-- > 0;) {
    if (i != 0) {
      // This header's place held payload. A reader that opens the block alone must find nothing committed and nothing
      // drained.
      BlockHeader& tail = pool_.block(index + i);
      tail.committed.store(0, std::memory_order_relaxed);
      tail.drained = 0;
      std::atomic_ref<uint32_t>(tail.pid).store(0, std::memory_order_relaxed);
      tail.blocks = 1;
    }
    pool_.state(index + i).store(static_cast<uint32_t>(BlockState::kFree), std::memory_order_release);
  }
  PoolHeader& head = pool_.header();
  head.free_blocks.fetch_add(static_cast<int32_t>(blocks), std::memory_order_relaxed);
  uint32_t hint = head.hint.load(std::memory_order_relaxed);
  while (index < hint && !head.hint.compare_exchange_weak(hint, index, std::memory_order_relaxed)) {
  }
}

void Drainer::sleep() {
  PoolHeader& head = pool_.header();
  const int32_t free = std::max(head.free_blocks.load(), 0);
  // Wakes in time to use the blocks that are left, and while the written ones still lie in a cache.
  constexpr int32_t kMany = 32;
  const int32_t below = free > 2 * kMany ? free - kMany : free / 2;
  head.drain_below.store(below);
  const int64_t ns = free <= 8 ? 500'000 : 20'000'000;
  sleep_on(head.drainer_sleeps, ns, [&] { return woken_.load() || head.free_blocks.load() < below; });
  woken_.store(false);
}

void Drainer::wake() {
  woken_.store(true);
  wake_sleeper(pool_.header().drainer_sleeps);
}

namespace {
// Records lie at multiples of 8 bytes; a damaged file may say otherwise.
uint32_t aligned(uint32_t drained) {
  return (std::min(drained, ~7u) + 7) & ~7u;
}
}  // namespace

void Drainer::take(uint32_t index, uint32_t committed, const Sink& sink, bool whole) {
  BlockHeader& block = pool_.block(index);
  const uint32_t blocks = std::clamp(block.blocks, 1u, pool_.max_blocks() - index);
  const uint64_t capacity = static_cast<uint64_t>(blocks) * kBlockSize - sizeof(BlockHeader);
  const auto end = static_cast<uint32_t>(std::min<uint64_t>(committed, capacity));
  const uint32_t from = std::min(aligned(block.drained), end);
  if (end == from && !whole) return;
  const std::byte* const bytes = reinterpret_cast<const std::byte*>(&block) + sizeof(BlockHeader);
  sink({&block, {bytes + from, end - from}, whole});
  block.drained = end;
}

void Drainer::take_shared(uint32_t index, const Sink& sink) {
  // Records become valid one by one: hand on the valid prefix.
  BlockHeader& block = pool_.block(index);
  std::byte* const bytes = reinterpret_cast<std::byte*>(&block) + sizeof(BlockHeader);
  const uint32_t from = std::min(aligned(block.drained), kBlockPayload);
  uint32_t end = from;
  while (end + sizeof(event::RecordHeader) <= kBlockPayload) {
    const uint64_t word =
        std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(bytes + end)).load(std::memory_order_acquire);
    event::RecordHeader header;
    memcpy(&header, &word, sizeof header);
    if (header.size < sizeof header || header.size % 8 != 0 || end + header.size > kBlockPayload) break;
    end += header.size;
  }
  if (end == from) return;
  sink({&block, {bytes + from, end - from}, false});
  block.drained = end;
}

// Nobody will write into this open block any more. A record thread's block dies with its thread, others with the
// process.
bool Drainer::writer_gone(BlockHeader& block) {
  const uint32_t pid = std::atomic_ref<uint32_t>(block.pid).load(std::memory_order_acquire);
  if (pid == 0) return false;  // just being opened
  const auto kind = std::atomic_ref<BlockKind>(block.kind).load(std::memory_order_relaxed);
  const uint32_t tid =
      kind == BlockKind::kRecords ? std::atomic_ref<uint32_t>(block.tid).load(std::memory_order_relaxed) : pid;
  // Also threads are found under /proc/<tid>, whatever process they belong to.
  char path[64];
  snprintf(path, sizeof path, "/proc/%u", tid);
  if (access(path, F_OK) == 0) {
    seen_.insert(pid);
    return false;
  }
  const bool ours = kind == BlockKind::kRecords || kind == BlockKind::kDefinitions || kind == BlockKind::kShared ||
                    kind == BlockKind::kProgress;
  const uint64_t space = ours ? std::atomic_ref<uint64_t>(block.aux64).load(std::memory_order_relaxed) : 0;
  if (space != 0) return space == pid_namespace_;
  // A pid of another namespace means nothing here, so report only pids seen before as missing.
  return seen_.count(pid) != 0;
}

void Drainer::rewind_definitions() {
  for (uint32_t i = 0; i < pool_.max_blocks(); ++i) {
    const auto state = static_cast<BlockState>(pool_.state(i).load(std::memory_order_relaxed));
    if (state == BlockState::kFree || state == BlockState::kTail || pool_.block(i).kind != BlockKind::kDefinitions)
      continue;
    pool_.block(i).drained = 0;
    if (state == BlockState::kKept)
      pool_.state(i).store(static_cast<uint32_t>(BlockState::kFull), std::memory_order_relaxed);
  }
}

namespace {
struct Seen {
  uint32_t index;
  uint32_t committed;
  bool full;
  uint64_t sequence;
};
void sort_by_sequence(std::vector<Seen>& blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const Seen& a, const Seen& b) { return a.sequence < b.sequence; });
}
}  // namespace

// Hands on all definitions published by now. Full blocks are kept a while for `tacho recover`: if both tacho and the
// target are killed, the blocks still in the pool refer to them.
void Drainer::take_definitions(uint32_t count, const Sink& sink, bool final, bool look_for_ends) {
  std::vector<Seen> definitions;
  for (uint32_t i = 0; i < count; ++i) {
    const auto state = static_cast<BlockState>(pool_.state(i).load(std::memory_order_acquire));
    BlockHeader& block = pool_.block(i);
    if (state == BlockState::kKept && look_for_ends && (final || writer_gone(block))) {
      if (kept_ > 0) --kept_;
      release(i);
      continue;
    }
    if (state != BlockState::kOpen && state != BlockState::kFull) continue;
    const uint32_t committed = block.committed.load(std::memory_order_acquire);
    if (committed == 0 || block.kind != BlockKind::kDefinitions) continue;
    definitions.push_back({i, committed, state == BlockState::kFull, block.sequence});
  }
  sort_by_sequence(definitions);
  for (const Seen& seen : definitions) {
    BlockHeader& block = pool_.block(seen.index);
    const bool gone = final || (look_for_ends && writer_gone(block));
    // Reads `committed` again after finding the writer gone: nothing can follow it now.
    take(seen.index, gone ? block.committed.load(std::memory_order_acquire) : seen.committed, sink, false);
    if (gone) {
      release(seen.index);
    } else if (seen.full) {
      if (kept_ < count / 4) {
        pool_.state(seen.index).store(static_cast<uint32_t>(BlockState::kKept), std::memory_order_release);
        ++kept_;
      } else {
        release(seen.index);
      }
    }
  }
}

uint64_t Drainer::pass(const Sink& sink, bool final) {
  PoolHeader& head = pool_.header();
  const uint32_t count = std::min(head.populated_blocks.load(std::memory_order_acquire), pool_.max_blocks());
  ++passes_;

  // Blocks that are opened from now on wait for the next pass. Of two blocks of one thread this pass could otherwise
  // take the second and not the first, which was free when the loop below came by it and was filled before the loop
  // reached the second.
  const uint64_t opened = final ? std::numeric_limits<uint64_t>::max() : head.sequence.load(std::memory_order_acquire);
  std::vector<Seen> data;
  uint32_t used = 0;
  // First the blocks published now. Definitions are read afterwards, so they include all that these blocks refer to.
  for (uint32_t i = 0; i < count; ++i) {
    const auto state = static_cast<BlockState>(pool_.state(i).load(std::memory_order_acquire));
    if (state == BlockState::kFree) continue;
    ++used;
    if (state != BlockState::kOpen && state != BlockState::kFull) continue;
    BlockHeader& block = pool_.block(i);
    const uint32_t committed = block.committed.load(std::memory_order_acquire);
    if (committed != 0 && block.kind == BlockKind::kDefinitions) continue;
    if (committed != 0 && block.sequence >= opened) continue;
    // While nothing is committed the header may still be being written: its order does not matter then.
    data.push_back({i, committed, state == BlockState::kFull, committed == 0 ? 0 : block.sequence});
  }
  // Records up to now, after the vendors' buffers above were found complete.
  for (Seen& seen : data)
    if (const BlockHeader& block = pool_.block(seen.index); seen.committed != 0 && block.kind == BlockKind::kRecords)
      seen.committed = block.committed.load(std::memory_order_acquire);
  pressure_ = count == 0 ? 0 : static_cast<double>(used) / count;
  const bool look_for_ends = final || passes_ % (pressure_ > 0.5 ? 4 : 16) == 0;

  uint64_t bytes = 0;
  const Sink counting = [&](const Piece& piece) {
    bytes += piece.bytes.size();
    sink(piece);
  };
  take_definitions(count, counting, final, look_for_ends);

  sort_by_sequence(data);
  // Vendors' buffers last: a call's own thread writes about it before the vendor's library completes its record.
  std::stable_partition(data.begin(), data.end(),
                        [&](const Seen& seen) { return !is_vendors(pool_.block(seen.index).kind); });
  // At the end, a thread that still runs may have filled a block after we looked at it, and gone on in another that we
  // looked at later: records written to the older block in between must not come after those in the newer one.
  std::unordered_map<uint64_t, Seen*> newest;
  for (Seen& seen : data) {
    if (seen.committed == 0) continue;
    const BlockHeader& block = pool_.block(seen.index);
    if (block.kind != BlockKind::kRecords) continue;
    Seen*& older = newest[static_cast<uint64_t>(block.process_slot) << 32 | block.thread_index];
    if (older != nullptr) older->committed = pool_.block(older->index).committed.load(std::memory_order_acquire);
    older = &seen;
  }
  for (const Seen& seen : data) {
    BlockHeader& block = pool_.block(seen.index);
    bool over = seen.full || final;
    uint32_t committed = seen.committed;
    if (!over && look_for_ends && writer_gone(block)) {
      over = true;  // no writer is left: `committed` is final
      committed = block.committed.load(std::memory_order_acquire);
    }
    if (committed == 0 && !over) continue;
    // Its writer was killed between taking it and describing it: the kind that stands there is another's.
    if (committed == 0 && std::atomic_ref<uint32_t>(block.pid).load(std::memory_order_acquire) == 0) {
      release(seen.index);
      continue;
    }
    const auto kind = std::atomic_ref<BlockKind>(block.kind).load(std::memory_order_relaxed);
    if (kind == BlockKind::kDefinitions) {
      if (committed == 0) release(seen.index);
      continue;  // else: first definitions came after the first look; the next pass takes them
    }
    if (kind == BlockKind::kShared) {
      if (committed != 0) take_shared(seen.index, counting);
      // A writer may be stopped half way through a record for any time: the block goes when it is complete or nobody is
      // left.
      if (over && (final || !seen.full || block.drained == kBlockPayload || writer_gone(block))) release(seen.index);
      continue;
    }
    const bool whole = is_vendors(kind) || kind == BlockKind::kProgress;
    if (whole && !over) continue;
    if (is_vendors(kind) && !seen.full && committed == 0) committed = ~0u;  // all of it: take() cuts
    take(seen.index, committed, counting, over);
    if (over) release(seen.index);
  }
  return bytes;
}

}  // namespace tacho::tape
