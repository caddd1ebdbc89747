// Processes below a target (process_tree.h).
#include "launch/run/process_tree.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/format.h"
#include "launch/library_names.h"

namespace tacho::launch {
namespace {

using Fact = TreeMember::Fact;

// The beginning of a file, at most `most` bytes; nullopt when it cannot be opened or read.
std::optional<std::string> read_head(const std::string& path, size_t most) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char piece[16384];
  ssize_t size = 0;
  while (text.size() < most) {
    size = read(file, piece, std::min(sizeof piece, most - text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(piece, static_cast<size_t>(size));
  }
  close(file);
  if (size < 0 && text.empty()) return std::nullopt;
  return text;
}

std::string link_of(const std::string& path) {
  char text[512];
  const ssize_t size = readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

template <typename Visit>
void each_name(const std::string& folder, Visit visit) {
  DIR* const names = opendir(folder.c_str());
  if (names == nullptr) return;
  while (const dirent* const entry = readdir(names)) visit(std::string_view(entry->d_name));
  closedir(names);
}

pid_t number_of(std::string_view name) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

// The value of a variable in "NAME=VALUE\0NAME=VALUE\0"; nullopt if it is not there.
std::optional<std::string_view> variable_in(std::string_view environment, std::string_view name) {
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string_view entry = environment.substr(at, end - at);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
    at = end + 1;
  }
  return std::nullopt;
}

Fact fact(bool yes) {
  return yes ? Fact::kYes : Fact::kNo;
}

// Whether an executable names a loader (PT_INTERP).
Fact has_loader(const std::string& path) {
  const auto head = read_head(path, 4096);
  if (!head || head->size() < sizeof(Elf64_Ehdr)) return Fact::kUnknown;
  Elf64_Ehdr header;
  memcpy(&header, head->data(), sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return Fact::kUnknown;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (at > head->size() - sizeof(Elf64_Phdr)) return Fact::kUnknown;
    Elf64_Phdr part;
    memcpy(&part, head->data() + at, sizeof part);
    if (part.p_type == PT_INTERP) return Fact::kYes;
  }
  return Fact::kNo;
}

// "Key:<tab>a<space>b": the words behind the key.
std::vector<uint64_t> numbers_behind(std::string_view status, std::string_view key) {
  std::vector<uint64_t> numbers;
  const size_t line = status.find(key);
  if (line == std::string_view::npos) return numbers;
  const size_t end = std::min(status.find('\n', line + key.size()), status.size());
  for (size_t at = line + key.size(); at < end;) {
    if (status[at] < '0' || status[at] > '9') {
      ++at;
      continue;
    }
    uint64_t value = 0;
    at = static_cast<size_t>(std::from_chars(status.data() + at, status.data() + end, value).ptr - status.data());
    numbers.push_back(value);
  }
  return numbers;
}

int64_t own_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// The soft limit of open files in /proc/PID/limits; UINT64_MAX without one.
uint64_t most_descriptors(const std::string& limits) {
  const std::vector<uint64_t> numbers = numbers_behind(limits, "Max open files");
  return numbers.empty() ? UINT64_MAX : numbers.front();
}

}  // namespace

// A line of /proc/PID/stat.
struct ProcessTree::Entry {
  pid_t pid = 0, parent = 0;
  std::string name;
  char state = '?';
  uint64_t start = 0, ticks = 0, stack = 0, environment_end = 0;
  bool has_memory = false;

  bool ended() const { return state == 'Z' || state == 'X' || state == 'x'; }
  static std::optional<Entry> read(const std::string& proc, pid_t pid) {
    const auto text = read_head(fmt::format("{}/{}/stat", proc, pid), 4096);
    if (!text) return std::nullopt;
    const size_t open_at = text->find('('), close_at = text->rfind(')');
    if (open_at == std::string::npos || close_at == std::string::npos || close_at < open_at ||
        close_at + 2 >= text->size())
      return std::nullopt;
    Entry entry;
    entry.pid = pid;
    entry.name = text->substr(open_at + 1, close_at - open_at - 1);
    entry.state = (*text)[close_at + 2];
    uint64_t fields[53] = {};  // numbered from 1, as in proc(5); the state is the third
    size_t at = close_at + 3;
    for (size_t number = 4; number < std::size(fields) && at < text->size(); ++number) {
      while (at < text->size() && ((*text)[at] == ' ' || (*text)[at] == '-')) ++at;
      at = static_cast<size_t>(std::from_chars(text->data() + at, text->data() + text->size(), fields[number]).ptr -
                               text->data());
    }
    entry.parent = static_cast<pid_t>(fields[4]);
    entry.ticks = fields[14] + fields[15];
    entry.start = fields[22];
    entry.has_memory = fields[23] != 0;
    entry.stack = fields[28];
    entry.environment_end = fields[51];
    return entry;
  }
};

ProcessTree::ProcessTree(Settings settings)
    : settings_(std::move(settings)),
      own_mounts_(link_of(settings_.proc + "/self/ns/mnt")),
      own_time_(link_of(settings_.proc + "/self/ns/time")) {}

ProcessTree::~ProcessTree() {
  stop();
}

void ProcessTree::start(pid_t target) {
  look(target);
  thread_ = std::thread([this, target] { loop(target); });
}

void ProcessTree::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_signal_.notify_all();
  thread_.join();
}

void ProcessTree::loop(pid_t target) {
  pthread_setname_np(pthread_self(), "tacho-tree");
  int64_t pause = pause_after(0);
  std::unique_lock lock(stop_mutex_);
  while (!stop_signal_.wait_for(lock, std::chrono::nanoseconds(pause), [this] { return stopping_; })) {
    lock.unlock();
    const int64_t began = own_cpu_ns();
    look(target);
    pause = pause_after(own_cpu_ns() - began);
    lock.lock();
  }
}

int64_t ProcessTree::pause_after(int64_t cpu_ns) {
  constexpr int64_t kShortest = 10'000'000, kLongest = 250'000'000, kPauseForWork = 100;
  return std::clamp(cpu_ns * kPauseForWork, kShortest, kLongest);
}

void ProcessTree::look(pid_t target) {
  const std::lock_guard lock(mutex_);
  std::unordered_set<pid_t> ours;
  for (const auto& [key, seen] : seen_)
    if (seen.facts.running) ours.insert(key.first);
  std::vector<Entry> entries;
  std::unordered_set<pid_t> foreign;
  each_name(settings_.proc, [&](std::string_view name) {
    const pid_t pid = number_of(name);
    if (pid <= 0) return;
    if (pid != target && !ours.contains(pid) && foreign_.contains(pid)) {
      foreign.insert(pid);
      return;
    }
    if (auto entry = Entry::read(settings_.proc, pid)) entries.push_back(std::move(*entry));
  });
  foreign_ = std::move(foreign);
  for (auto& [key, seen] : seen_) seen.facts.running = seen.listed = false;
  admit(entries, target);
  forget_idle();
}

// Takes up the members among the processes: the target, whoever is known, whose parent is one, or who has the pool.
void ProcessTree::admit(const std::vector<Entry>& entries, pid_t target) {
  std::unordered_set<pid_t> members;
  std::vector<const Entry*> open;
  for (const Entry& entry : entries) {
    // Its number may be another process's later.
    const bool main = entry.pid == target && (!main_start_ || *main_start_ == entry.start);
    if (main) main_start_ = entry.start;
    if (!main && !seen_.contains({entry.pid, entry.start})) {
      open.push_back(&entry);
      continue;
    }
    members.insert(entry.pid);
    update(entry);
  }
  // Children of children, whatever the order of their numbers.
  for (bool more = true; more;) {
    more = false;
    std::erase_if(open, [&](const Entry* entry) {
      if (!members.contains(entry->parent)) return false;
      members.insert(entry->pid);
      update(*entry);
      more = true;
      return true;
    });
    if (more) continue;
    // Nobody's child any more, for its parent ended before it was seen.
    std::erase_if(open, [&](const Entry* entry) {
      if (entry->ended() || !holds_pool(entry->pid)) return false;
      members.insert(entry->pid);
      update(*entry);
      more = true;
      return true;
    });
    if (!more)
      for (const Entry* const entry : open) foreign_.insert(entry->pid);
  }
  if (main_start_) seen_[{target, *main_start_}].facts.main = true;
}

void ProcessTree::update(const Entry& entry) {
  static const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  const int64_t now = raw_now();
  Seen& seen = seen_[{entry.pid, entry.start}];
  TreeMember& facts = seen.facts;
  if (facts.pid == 0) {
    facts.pid = facts.own_pid = entry.pid;
    facts.parent = entry.parent;
    facts.start = entry.start;
  }
  facts.running = !entry.ended();
  seen.listed = true;
  facts.cpu_s = std::max(facts.cpu_s, static_cast<double>(entry.ticks) * tick);
  if (entry.ended() || !entry.has_memory) return;  // its memory, and what it says, is gone
  if (facts.looks == 0 || seen.image != entry.stack || facts.name != entry.name) {
    // Also a thread's prctl(PR_SET_NAME) comes here: one more look does no harm.
    const bool executed = facts.looks == 0 || seen.image != entry.stack;
    facts.name = entry.name;
    seen.image = entry.stack;
    seen.rounds = 0;
    if (executed) {
      TreeMember fresh;
      fresh.pid = facts.pid;
      fresh.own_pid = facts.own_pid;
      fresh.parent = facts.parent;
      fresh.start = facts.start;
      fresh.name = facts.name;
      fresh.cpu_s = facts.cpu_s;
      fresh.main = facts.main;
      fresh.exec_after = seen.last_seen;
      fresh.exec_before = now;
      facts = fresh;
    }
    for (auto at = seen_.lower_bound({entry.parent, 0}); at != seen_.end() && at->first.first == entry.parent; ++at)
      if (at->second.facts.running && at->second.image == entry.stack && entry.stack != 0) facts.forked = true;
  }
  seen.last_seen = now;
  ++seen.rounds;
  // Libraries come later than the process: three times at once, then ever more rarely, for a look takes its time.
  const bool due = seen.rounds <= 3 || (seen.rounds & (seen.rounds - 1)) == 0;
  if (due && (entry.environment_end != 0 || entry.stack == 0)) inspect(seen);
}

void ProcessTree::inspect(Seen& seen) const {
  TreeMember& facts = seen.facts;
  const std::string folder = fmt::format("{}/{}", settings_.proc, facts.pid);
  const auto environment = read_head(folder + "/environ", 1 << 20);
  const auto maps = read_head(folder + "/maps", 16 << 20);
  const auto status = read_head(folder + "/status", 16384);
  if (!status || (maps && maps->empty())) return;  // it has just ended
  ++facts.looks;
  const std::vector<uint64_t> users = numbers_behind(*status, "\nUid:"), pids = numbers_behind(*status, "\nNSpid:");
  if (users.size() >= 2) facts.other_user = users[1] != geteuid();
  if (!pids.empty()) facts.own_pid = static_cast<pid_t>(pids.back());
  if (environment) {
    const auto pool = variable_in(*environment, "TACHO_POOL");
    const auto preload = variable_in(*environment, "LD_PRELOAD");
    facts.other_tacho = pool && *pool != settings_.pool;
    // A program may write over the place where its environment was: what was there once counts.
    if (facts.pool != Fact::kYes) facts.pool = fact(pool && *pool == settings_.pool);
    if (facts.preload != Fact::kYes)
      facts.preload = fact(preload && preload->find(settings_.preload) != std::string_view::npos);
  }
  if (maps) {
    if (facts.loaded != Fact::kYes)
      facts.loaded =
          fact(maps->find("/libtacho.so") != std::string::npos || maps->find(kPreloadName) != std::string::npos);
    for (const std::string& mark : settings_.device_marks)
      facts.device = facts.device || maps->find(mark) != std::string::npos;
  }
  const std::string executable = folder + "/exe";
  if (facts.dynamic == Fact::kUnknown) facts.dynamic = has_loader(executable);
  struct stat about {};
  if (facts.secure == Fact::kUnknown && stat(executable.c_str(), &about) == 0)
    facts.secure = fact(((about.st_mode & S_ISUID) != 0 && users.size() >= 2 && about.st_uid != users[0]) ||
                        getxattr(executable.c_str(), "security.capability", nullptr, 0) > 0);
  const std::string mounts = link_of(folder + "/ns/mnt"), root = link_of(folder + "/root");
  const std::string time = link_of(folder + "/ns/time"), file = link_of(executable);
  facts.other_time = !time.empty() && time != own_time_;
  if (!file.empty()) facts.file = file.substr(file.rfind('/') + 1);
  facts.other_mounts = (!mounts.empty() && mounts != own_mounts_) || (!root.empty() && root != "/");
  if (const auto limits = read_head(folder + "/limits", 8192)) {
    uint64_t open_files = 0;
    each_name(folder + "/fd", [&](std::string_view name) { open_files += name[0] != '.'; });
    const uint64_t most = most_descriptors(*limits);
    if (open_files != 0) facts.descriptors_left = std::min(facts.descriptors_left, most - std::min(most, open_files));
  }
}

bool ProcessTree::holds_pool(pid_t pid) const {
  const auto environment = read_head(fmt::format("{}/{}/environ", settings_.proc, pid), 1 << 20);
  if (!environment) return false;
  const auto pool = variable_in(*environment, "TACHO_POOL");
  return pool && *pool == settings_.pool;
}

void ProcessTree::forget_idle() {
  if (seen_.size() <= kMostKept) return;
  std::erase_if(seen_, [this](const auto& one) {
    const TreeMember& facts = one.second.facts;
    if (one.second.listed || facts.device || facts.main || facts.cpu_s >= 0.02) return false;
    forgotten_s_ += facts.cpu_s;
    return true;
  });
}

std::vector<TreeMember> ProcessTree::members() const {
  const std::lock_guard lock(mutex_);
  std::vector<TreeMember> all;
  for (const auto& [key, seen] : seen_) all.push_back(seen.facts);
  return all;
}

double ProcessTree::cpu_s() const {
  const std::lock_guard lock(mutex_);
  double sum = forgotten_s_;
  for (const auto& [key, seen] : seen_) sum += seen.facts.cpu_s;
  return sum;
}

std::vector<TreeMember> ProcessTree::running() const {
  std::vector<TreeMember> all = members();
  std::erase_if(all, [](const TreeMember& one) { return !one.running || one.main; });
  return all;
}

}  // namespace tacho::launch
