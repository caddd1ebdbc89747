// Making and reading the table (segment.h).
#include "watch/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/files/temporary.h"
#include "base/text/demangle.h"

namespace tacho::watch {
namespace {

using event::WatchRow;

uint64_t value_of(const std::atomic<uint64_t>& word) {
  return word.load(std::memory_order_relaxed);
}
// What a program has written once, and may change all the same: it is looked at after it was read.
template <typename Word>
Word read_once(const Word& word) {
  Word read;
  __atomic_load(&word, &read, __ATOMIC_RELAXED);
  return read;
}
bool is_domain_of(uint64_t domains, uint32_t domain) {
  return domain < 64 && (domains >> domain & 1) != 0;
}

// What a device takes at most from an event to an operation and back, on top of what it takes between two events, ns:
// where nothing closer is known, all of it is in the interval.
constexpr double kBesideEvents = 2500;

uint32_t watched_domains(const event::WatchProcess& process) {
  return process.domains.load(std::memory_order_relaxed) & ~(uint32_t{1} << event::kWatchUnseen);
}

uint64_t launches_of(const event::WatchProcess& process) {
  return value_of(process.launches) + value_of(process.own_launches);
}
// A child that was forked after its parent had begun to use a runtime has not begun anew.
bool uses_a_device(const event::WatchProcess& process) {
  return watched_domains(process) != 0 || launches_of(process) + value_of(process.bytes) > 0;
}

constexpr std::string_view kPrefix = "tacho-watch-";

// Removes tables of this user that no tacho holds.
void sweep_tables(const std::string& folder) {
  DIR* const all = opendir(folder.c_str());
  if (all == nullptr) return;
  while (const dirent* const entry = readdir(all)) {
    if (!std::string_view(entry->d_name).starts_with(kPrefix)) continue;
    const int file = openat(dirfd(all), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    struct stat about {};
    // One that is being made has no size yet and may not be locked yet.
    const bool whole = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                       about.st_size == static_cast<off_t>(sizeof(event::WatchTable));
    if (whole && flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(all), entry->d_name, 0);
    close(file);
  }
  closedir(all);
}

// As it is shown.
std::string name_of(const WatchRow& row, event::WatchKind kind) {
  const std::string name = stored_name(row);
  const bool cut = read_once(row.name_size) > event::kWatchNameBytes;
  return cut ? name + "…" : kind == event::WatchKind::kKernel ? demangle(name) : name;
}

RowSums sums_of(const WatchRow& row) {
  RowSums sums;
  sums.kind = read_once(row.kind);
  sums.name = name_of(row, sums.kind);
  std::copy(std::begin(row.grid), std::end(row.grid), sums.grid);
  std::copy(std::begin(row.group), std::end(row.group), sums.group);
  sums.bytes = value_of(row.bytes);
  const uint32_t level = std::min(row.level.load(std::memory_order_relaxed), event::kWatchLevels - 1);
  const uint64_t from = value_of(row.level_from);
  sums.level = level;
  uint64_t earlier = 0;
  for (uint32_t i = 0; i < event::kWatchLevels; ++i) {
    const event::WatchLevel& at = row.levels[i];
    const double squares = at.squares.load(std::memory_order_relaxed);
    sums.levels[i] = {value_of(at.count),   value_of(at.timed),
                      value_of(at.time),    std::isfinite(squares) ? squares : 0,
                      value_of(at.bounded), value_of(at.bound_time)};
    earlier += sums.levels[i].count;
  }
  sums.count = value_of(row.count);
  // A program that runs may have chosen another level meanwhile.
  if (sums.count > std::max(from, earlier)) sums.levels[level].count += sums.count - std::max(from, earlier);
  for (uint32_t i = 0; i < event::kWatchBuckets; ++i) sums.buckets[i] = value_of(row.buckets[i]);
  sums.stood_ns = value_of(row.stood_time);
  const uint64_t shortest = value_of(row.shortest), longest = value_of(row.longest);
  sums.shortest_ns = shortest - (shortest > 0 ? 1 : 0);
  sums.longest_ns = longest - (longest > 0 ? 1 : 0);
  return sums;
}

// Host time that counting an operation takes, ns, without the clock that measures it. Nothing before one was measured.
std::optional<double> counting_time(const event::WatchHeader& header) {
  const auto mean = [](uint64_t sum, uint64_t count) { return static_cast<double>(sum) / static_cast<double>(count); };
  const uint64_t measured = value_of(header.counted_measured), clocks = value_of(header.clock_measured);
  if (measured == 0 || clocks == 0) return std::nullopt;
  return std::max(0.0, mean(value_of(header.counted_time), measured) - 2 * mean(value_of(header.clock_time), clocks));
}

// By how much each time of the row may be off in the same direction, as a standard deviation.
double common_error(const event::WatchHeader& header, const WatchRow& row, const RowSums& sums) {
  const uint32_t domain = read_once(row.domain);
  if (sums.kind == event::WatchKind::kWait || !is_domain_of(value_of(header.floor_domains), domain)) return 0;
  const bool known = is_domain_of(value_of(header.beside_domains), domain);
  uint64_t timed = 0, time = 0;
  for (const LevelSums& level : sums.levels) {
    timed += level.timed;
    time += level.time;
  }
  double range = 2 * kBesideEvents;
  if (known && sums.kind == event::WatchKind::kKernel) {
    range = static_cast<double>(value_of(header.beside_high)) - static_cast<double>(value_of(header.beside_low));
    if (timed > 0 && time / timed >= value_of(header.beside_long_from))
      range += 2 * static_cast<double>(value_of(header.beside_long_spread));
  }
  // The launch of a graph has more to it than that of a kernel: a graph of 40 kernels was within 1.5 % of CUPTI's span.
  constexpr double kGraph = 0.03;
  if (sums.kind == event::WatchKind::kGraph && timed > 0)
    range = std::max(range, 2 * kGraph * static_cast<double>(time) / static_cast<double>(timed));
  return range / 4 + static_cast<double>(value_of(header.floor_spread));
}

// Rows by their number, those of kernels that were only launched in graphs, too.
class GraphReader {
 public:
  explicit GraphReader(const event::WatchTable& table) : table_(table) {
    for (const event::WatchPart& part : table.parts) {
      const uint32_t graph = part.graph.load(std::memory_order_acquire);
      if (graph == 0 || graph >= event::kWatchRows) continue;
      parts_[graph].emplace_back(part.kernel.load(std::memory_order_relaxed),
                                 part.nodes.load(std::memory_order_relaxed));
    }
  }
  void add(uint32_t row, RowSums& sums) {
    const auto found = parts_.find(row);
    if (found == parts_.end()) return;
    for (const auto& [kernel, nodes] : found->second) {
      if (kernel >= event::kWatchRows) {
        sums.other_nodes += nodes;
        continue;
      }
      GraphKernel one = kernel_of(kernel);
      one.nodes = nodes;
      sums.kernels.push_back(std::move(one));
    }
  }

 private:
  const GraphKernel& kernel_of(uint32_t row) {
    const auto [at, is_new] = known_.try_emplace(row);
    if (!is_new) return at->second;
    RowSums sums = sums_of(table_.rows[row]);
    sums.each_ns = common_error(table_.header, table_.rows[row], sums);
    GraphKernel& kernel = at->second;
    kernel.title = sums.title();
    if (sums.count > 0)
      if (const auto time = estimate_time(sums.levels, sums.each_ns))
        kernel.own_ns = time->total_ns / static_cast<double>(sums.count);
    kernel.name = std::move(sums.name);
    return kernel;
  }

  const event::WatchTable& table_;
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> parts_;  // of a graph's row
  std::map<uint32_t, GraphKernel> known_;
};

}  // namespace

std::string_view kind_name(event::WatchKind kind) {
  switch (kind) {
    case event::WatchKind::kKernel:
      return "kernel";
    case event::WatchKind::kGraph:
      return "graph";
    case event::WatchKind::kCopy:
      return "copy";
    case event::WatchKind::kFill:
      return "fill";
    case event::WatchKind::kWait:
      return "wait";
    case event::WatchKind::kAllocation:
      return "allocation";
    case event::WatchKind::kNone:
      break;
  }
  return "";
}

std::string stored_name(const WatchRow& row) {
  return {row.name, std::min<uint32_t>(read_once(row.name_size), event::kWatchNameBytes)};
}

double RowSums::weighted_time() const {
  return stood_ns > 0 ? static_cast<double>(stood_ns) : estimate_bound(levels).value_or(0);
}

double RowSums::time_since(const RowSums* before) const {
  const uint64_t earlier = before != nullptr ? before->count : 0;
  if (count <= earlier) return 0;
  const auto operations = static_cast<double>(count - earlier);
  double stands_for = 0, all = 0;
  for (uint32_t i = 0; i < event::kWatchBuckets; ++i) {
    const auto now = static_cast<double>(buckets[i]);
    all += now;
    stands_for += now - (before != nullptr ? static_cast<double>(before->buckets[i]) : 0);
  }
  if (all <= 0) return operations * weighted_time() / static_cast<double>(count);
  const double since = static_cast<double>(stood_ns) - (before != nullptr ? static_cast<double>(before->stood_ns) : 0);
  if (stands_for <= 0 || since < 0) return operations * static_cast<double>(stood_ns) / all;
  return operations * since / stands_for;
}

std::string RowSums::shape() const {
  if (any_shape()) return "";
  const auto sizes = [](const uint32_t(&of)[3]) {
    std::string text = fmt::format("{}", of[0]);
    if (of[1] > 1 || of[2] > 1) text += fmt::format("x{}", of[1]);
    if (of[2] > 1) text += fmt::format("x{}", of[2]);
    return text;
  };
  return group[0] == 0 ? sizes(grid) : fmt::format("{}/{}", sizes(grid), sizes(group));
}

std::string RowSums::title() const {
  return any_shape() ? name : fmt::format("{} {}", name, shape());
}

Result<WatchSegment> WatchSegment::create_in(const std::vector<std::string>& folders) {
  if (folders.empty()) {
    const char* const chosen = getenv("TACHO_POOL_DIR");
    return create_at(chosen != nullptr && *chosen != '\0' ? chosen : "/dev/shm");
  }
  std::string first;
  for (const std::string& folder : folders) {
    auto segment = create_at(folder);
    if (segment) return segment;
    if (first.empty()) first = segment.error().message;
  }
  return fail("{}", first);
}

Result<WatchSegment> WatchSegment::create_at(const std::string& folder) {
  sweep_tables(folder);
  WatchSegment segment;
  const std::string path = fmt::format("{}/{}{}", folder, kPrefix, random_name());
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return fail("{}: {}; set TACHO_POOL_DIR to a folder in which tacho may write", path, strerror(errno));
  segment.path_ = path;
  segment.file_ = file;
  flock(file, LOCK_EX | LOCK_NB);
  constexpr size_t kBytes = sizeof(event::WatchTable);
  // A program must never find out by SIGBUS that there is no memory.
  int error = posix_fallocate(file, 0, static_cast<off_t>(kBytes));
  void* at = MAP_FAILED;
  if (error == 0) {
    at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) error = errno;
  }
  if (error != 0)
    return fail("{}: {} bytes for the sums of tacho watch: {}; set TACHO_POOL_DIR to a folder with more room", folder,
                kBytes, strerror(error));
  segment.table_ = static_cast<event::WatchTable*>(at);
  event::WatchHeader& header = segment.table_->header;
  header.magic = event::kWatchMagic;
  header.size = kBytes;
  header.timing.store(event::WatchTiming::kOn, std::memory_order_relaxed);
  WatchRow& other = segment.table_->rows[0];
  constexpr std::string_view kOther = kOtherKernels;
  other.kind = event::WatchKind::kKernel;
  other.name_size = kOther.size();
  memcpy(other.name, kOther.data(), kOther.size());
  other.state.store(WatchRow::kReady, std::memory_order_release);
  return segment;
}

WatchSegment::WatchSegment(WatchSegment&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      file_(std::exchange(other.file_, -1)),
      table_(std::exchange(other.table_, nullptr)),
      ready_(std::move(other.ready_)),
      made_(other.made_),
      looks_(other.looks_),
      seen_running_(other.seen_running_) {}

WatchSegment::~WatchSegment() {
  if (table_ != nullptr) {
    table_->header.timing.store(event::WatchTiming::kNever, std::memory_order_relaxed);
    table_->header.closed.store(1, std::memory_order_relaxed);
    munmap(table_, sizeof(event::WatchTable));
  }
  if (!path_.empty()) unlink(path_.c_str());
  if (file_ >= 0) close(file_);
}

bool WatchSegment::give_to(uint32_t user, uint32_t group) const {
  return fchown(file_, user, group) == 0;
}

void WatchSegment::set_pid(uint32_t own, uint32_t pid) {
  for (event::WatchProcess& process : table_->processes)
    if (process.pid.load(std::memory_order_acquire) == own && process.ended.load(std::memory_order_relaxed) == 0) {
      process.pid.store(pid, std::memory_order_relaxed);
      return;
    }
}

void WatchSegment::note_child_of(uint32_t pid) {
  for (event::WatchProcess& process : table_->processes)
    if (process.pid.load(std::memory_order_acquire) == pid && process.ended.load(std::memory_order_relaxed) == 0)
      process.watched_children.fetch_add(1, std::memory_order_relaxed);
}

std::vector<uint32_t> WatchSegment::users() const {
  std::vector<uint32_t> numbers;
  for (const event::WatchProcess& process : table_->processes) {
    const uint32_t pid = process.pid.load(std::memory_order_acquire);
    if (pid != 0 && process.ended.load(std::memory_order_relaxed) == 0 && uses_a_device(process))
      numbers.push_back(pid);
  }
  return numbers;
}

void WatchSegment::note_ends() {
  for (size_t i = 0; i < event::kWatchProcesses; ++i) {
    event::WatchProcess& process = table_->processes[i];
    const uint32_t pid = process.pid.load(std::memory_order_acquire);
    if (pid == 0) return;
    if (process.ended.load(std::memory_order_relaxed) != 0) {
      seen_running_[i] = false;  // another one may get its place
      continue;
    }
    const bool runs = kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
    uint32_t none = 0;
    if (!runs && seen_running_[i]) process.ended.compare_exchange_strong(none, event::kWatchGone);
    seen_running_[i] = runs;
  }
}

uint64_t WatchSegment::patches_of(uint32_t pid) const {
  for (const event::WatchProcess& process : table_->processes)
    if (process.pid.load(std::memory_order_acquire) == pid && process.ended.load(std::memory_order_relaxed) == 0)
      return value_of(process.patches);
  return 0;
}

uint64_t WatchSegment::operations() {
  // A program may be killed between a row and the count of rows.
  constexpr uint32_t kLooks = 50;
  const uint32_t made = table_->header.made.load(std::memory_order_acquire);
  if (made != made_ || looks_++ % kLooks == 0) {
    made_ = made;
    ready_.clear();
    for (uint32_t i = 0; i < event::kWatchRows; ++i)
      if (table_->rows[i].state.load(std::memory_order_acquire) == WatchRow::kReady) ready_.push_back(i);
  }
  uint64_t sum = 0;
  for (const uint32_t i : ready_) sum += value_of(table_->rows[i].count);
  return sum;
}

uint32_t WatchSegment::active() const {
  uint32_t active = 0;
  for (const event::WatchProcess& process : table_->processes) {
    if (process.pid.load(std::memory_order_relaxed) == 0) break;
    if (uses_a_device(process) && process.ended.load(std::memory_order_relaxed) == 0) ++active;
  }
  return std::max(active, 1u);
}

void WatchSegment::set(const WatchSetting& setting) {
  event::WatchHeader& header = table_->header;
  header.least_level.store(setting.least_level, std::memory_order_relaxed);
  const double spare = std::clamp(setting.spare * active() * 1e9, 0.0, 1e18);
  header.timing_limit.store(event::watch_timing_time(header) + static_cast<uint64_t>(spare), std::memory_order_relaxed);
  header.timing.store(setting.timing, std::memory_order_relaxed);
}

WatchLoad WatchSegment::load(double now) {
  const double share = 1e-9 / active();
  const event::WatchHeader& header = table_->header;
  WatchLoad load;
  load.now = now;
  load.operations = operations();
  load.timed = value_of(header.prepared);
  load.skipped = value_of(header.skipped);
  load.timing = static_cast<double>(event::watch_timing_time(header)) * share;
  if (const auto each = counting_time(header))
    load.counting =
        (*each * static_cast<double>(load.operations) + static_cast<double>(value_of(header.once_time))) * share;
  const uint64_t mark = value_of(header.waits);
  load.waits = mark & 0xffffff;
  load.last_wait = static_cast<double>(mark >> 24) * 1e-6;
  return load;
}

WatchSnapshot WatchSegment::snapshot(double seconds) const {
  WatchSnapshot snapshot;
  snapshot.seconds = seconds;
  GraphReader graphs(*table_);
  for (const WatchRow& row : table_->rows) {
    if (row.state.load(std::memory_order_acquire) != WatchRow::kReady || value_of(row.count) == 0) continue;
    RowSums sums = sums_of(row);
    if (sums.count == 0 || kind_name(sums.kind).empty()) continue;  // no library of tacho's has written that
    snapshot.rows.push_back(std::move(sums));
    if (snapshot.rows.back().kind == event::WatchKind::kGraph)
      graphs.add(static_cast<uint32_t>(&row - table_->rows), snapshot.rows.back());
    snapshot.rows.back().each_ns = common_error(table_->header, row, snapshot.rows.back());
    snapshot.operations += snapshot.rows.back().count;
  }
  for (const event::WatchProcess& process : table_->processes) {
    const uint32_t pid = process.pid.load(std::memory_order_acquire);
    if (pid == 0) continue;
    WatchedProcess one;
    one.pid = pid;
    one.name.assign(process.name, strnlen(process.name, sizeof process.name));
    one.uses_devices = uses_a_device(process);
    one.unseen_runtime = (process.domains.load(std::memory_order_relaxed) >> event::kWatchUnseen) != 0;
    one.ended = process.ended.load(std::memory_order_relaxed) != 0;
    one.launches = launches_of(process);
    one.copied_bytes = value_of(process.bytes);
    one.time_ns = value_of(process.time);
    one.forks = process.forks.load(std::memory_order_relaxed);
    one.watched_children = process.watched_children.load(std::memory_order_relaxed);
    one.foreign_markers = process.foreign_markers.load(std::memory_order_relaxed) != 0;
    one.untimed_queues = process.untimed.load(std::memory_order_relaxed);
    one.unseen_queues = process.unseen_queues.load(std::memory_order_relaxed);
    one.closed_words = process.closed_words.load(std::memory_order_relaxed);
    snapshot.processes.push_back(std::move(one));
  }
  const event::WatchHeader& header = table_->header;
  snapshot.device_ns = static_cast<double>(value_of(header.device_time));
  snapshot.failed = value_of(header.failed);
  snapshot.lost_rows = value_of(header.lost_rows);
  snapshot.lost_times = value_of(header.lost_times);
  snapshot.pending = value_of(header.pending);
  snapshot.refused_processes = value_of(header.refused_processes);
  const uint64_t prepared = value_of(header.prepared);
  snapshot.timing_ns = static_cast<double>(value_of(header.prepared_time));
  if (const auto each = counting_time(header)) {
    const uint64_t counted = snapshot.operations > prepared ? snapshot.operations - prepared : 0;
    snapshot.own_ns =
        *each * static_cast<double>(counted) + static_cast<double>(value_of(header.once_time)) + snapshot.timing_ns;
  }
  return snapshot;
}

}  // namespace tacho::watch
