// Making and reading the ring (ring_file.h).
#include "watch/recorder/ring_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <string_view>
#include <utility>

namespace tacho::watch {
namespace {

// Removes rings of this user that no tacho holds.
void sweep_rings(const std::string& folder) {
  DIR* const all = opendir(folder.c_str());
  if (all == nullptr) return;
  while (const dirent* const entry = readdir(all)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("tacho-watch-") || !name.ends_with(event::kWatchRingEnding)) continue;
    const int file = openat(dirfd(all), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    struct stat about {};
    // One that is being made has no size yet and may not be locked yet.
    const bool whole = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                       about.st_size >= static_cast<off_t>(sizeof(event::WatchRing));
    if (whole && flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(all), entry->d_name, 0);
    close(file);
  }
  closedir(all);
}

}  // namespace

Result<RingFile> RingFile::create(const std::string& table, uint64_t bytes) {
  const std::string folder = table.substr(0, table.rfind('/'));
  sweep_rings(folder);
  RingFile made;
  made.capacity_ = std::bit_floor(bytes / sizeof(event::WatchRecord));
  if (made.capacity_ < 1024)
    return fail("--keep-memory {}: too little; {} bytes hold 1024 operations", bytes,
                1024 * sizeof(event::WatchRecord));
  made.bytes_ = event::watch_ring_bytes(made.capacity_);
  const std::string path = table + event::kWatchRingEnding;
  made.file_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made.file_ < 0) return fail("{}: {}", path, strerror(errno));
  made.path_ = path;
  flock(made.file_, LOCK_EX | LOCK_NB);
  // A program must never find out by SIGBUS that there is no memory.
  int error = posix_fallocate(made.file_, 0, static_cast<off_t>(made.bytes_));
  void* at = MAP_FAILED;
  if (error == 0) {
    at = mmap(nullptr, made.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, made.file_, 0);
    if (at == MAP_FAILED) error = errno;
  }
  if (error != 0)
    return fail(
        "{}: {} bytes for --keep: {}; give less to --keep-memory, or set TACHO_POOL_DIR to a folder with more room",
        folder, made.bytes_, strerror(error));
  choose_host_clock();
  made.ring_ = static_cast<event::WatchRing*>(at);
  event::WatchRingHeader& header = made.ring_->header;
  header.size = made.bytes_;
  header.records = made.capacity_;
  header.tsc = host_clock_is_tsc() ? 1 : 0;
  header.magic = event::kWatchRingMagic;
  made.first_ = sample_clocks();
  made.last_ = made.first_;
  return made;
}

RingFile::RingFile(RingFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      file_(std::exchange(other.file_, -1)),
      ring_(std::exchange(other.ring_, nullptr)),
      bytes_(other.bytes_),
      capacity_(other.capacity_),
      first_(other.first_),
      last_(other.last_) {}

RingFile::~RingFile() {
  if (ring_ != nullptr) munmap(ring_, bytes_);
  if (!path_.empty()) unlink(path_.c_str());
  if (file_ >= 0) close(file_);
}

bool RingFile::give_to(uint32_t user, uint32_t group) const {
  return fchown(file_, user, group) == 0;
}

RingFile::Found RingFile::read(uint64_t ticket, KeptRecord& out) const {
  const event::WatchRecord& record = ring_->records[(ticket - 1) & (capacity_ - 1)];
  const uint64_t there = record.ticket.load(std::memory_order_acquire);
  if (there != ticket) return there > ticket || ticket + capacity_ <= head() ? Found::kOverwritten : Found::kNotYet;
  out = {.ticket = ticket,
         .start = record.start,
         .end = record.end,
         .object = record.object,
         .amount = record.amount,
         .context = record.context,
         .row = record.row,
         .tid = record.tid,
         .process = record.process,
         .call = record.call,
         .kind = record.kind,
         .flags = record.flags,
         .result = record.result};
  std::atomic_thread_fence(std::memory_order_acquire);
  return record.ticket.load(std::memory_order_relaxed) == ticket ? Found::kWhole : Found::kOverwritten;
}

std::string RingFile::call_name(uint16_t number) const {
  if (number == 0 || number > event::kWatchCalls) return {};
  const event::WatchCall& call = ring_->calls[number - 1];
  return {call.name, strnlen(call.name, sizeof call.name)};
}

void RingFile::follow() {
  last_ = sample_clocks();
}

int64_t RingFile::time(uint64_t ticks) const {
  if (ring_->header.tsc == 0) return static_cast<int64_t>(ticks);
  // Both clocks count at a constant rate.
  const uint64_t counted = last_.tsc - first_.tsc;
  if (counted == 0) return last_.raw;
  const double each = static_cast<double>(last_.raw - first_.raw) / static_cast<double>(counted);
  return last_.raw + static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(ticks - last_.tsc)) * each);
}

void RingStream::poll(const std::function<void(const KeptRecord&)>& take, bool final) {
  const uint64_t head = file_.head();
  if (head - cursor_ > file_.capacity()) {
    overwritten_ += head - file_.capacity() - cursor_;
    cursor_ = head - file_.capacity();
  }
  KeptRecord record;
  while (cursor_ < head) {
    const RingFile::Found found = file_.read(cursor_ + 1, record);
    if (found == RingFile::Found::kNotYet && !final) {
      // A thread that was interrupted while it wrote, or killed.
      constexpr int64_t kPatience = 100'000'000;
      const int64_t now = raw_now();
      if (stuck_since_ == 0) stuck_since_ = now;
      if (now < stuck_since_ + kPatience) return;
    }
    stuck_since_ = 0;
    ++cursor_;
    if (found == RingFile::Found::kWhole)
      take(record);
    else if (found == RingFile::Found::kNotYet)
      ++unfinished_;
    else
      ++overwritten_;
  }
}

}  // namespace tacho::watch
