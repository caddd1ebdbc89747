// Reads what a program says of the code that it makes (jit_code.h).
#include "decode/records/jit_code.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/format.h"

namespace tacho::decode {
namespace {

constexpr size_t kMostCodes = 1'000'000;
constexpr size_t kMostFiles = 16;
constexpr size_t kLongestName = 2048;      // bytes
constexpr int64_t kLongestLag = 60;        // s from a process's start until tacho reads its first record
constexpr int64_t kPause = 10'000'000;     // ns between two looks
constexpr int kMostSteps = 64;             // neighbours that are looked at for an address
constexpr uint32_t kMagic = 0x4a695444;    // "JiTD"
constexpr uint64_t kOwnClock = 1;          // a flag: the times are not CLOCK_MONOTONIC's
constexpr uint64_t kLoad = 0, kMove = 1;   // kinds of records
constexpr uint64_t kMostBytes = 16 << 20;  // of a map at one look

// When the process began, in seconds since 1970; 0 = nobody knows.
int64_t start_of(uint32_t pid) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(fmt::format("/proc/{}/stat", pid).c_str(), "re"),
                                                       &std::fclose);
  char line[4096];
  if (file == nullptr || std::fgets(line, sizeof line, file.get()) == nullptr) return 0;
  const char* const behind_name = std::strrchr(line, ')');
  unsigned long long ticks = 0;
  if (behind_name == nullptr ||
      std::sscanf(behind_name + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                  &ticks) != 1)
    return 0;
  const int64_t age = read_clock(CLOCK_BOOTTIME) / 1'000'000'000 - static_cast<int64_t>(ticks) / sysconf(_SC_CLK_TCK);
  return read_clock(CLOCK_REALTIME) / 1'000'000'000 - age;
}

template <typename T>
T number_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

JitCode::JitCode(std::shared_ptr<const JitCode> parent) : parent_(std::move(parent)), forked_(raw_now()) {}

bool JitCode::open(const std::string& path, bool dump) {
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  struct stat about {};
  if (file == nullptr || fstat(fileno(file.get()), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  // Numbers of processes are used again, and nobody removes these files.
  if (about.st_mtim.tv_sec + 1 < began_) return false;
  files_.emplace_back();
  files_.back().file = std::move(file);
  files_.back().dump = dump;
  return true;
}

void JitCode::is_of(uint32_t pid) {
  if (pid_ == pid) return;
  pid_ = pid;
  began_ = start_of(pid);
  // It has ended already, a moment after it began.
  if (began_ == 0) began_ = read_clock(CLOCK_REALTIME) / 1'000'000'000 - kLongestLag;
}

void JitCode::follow(uint32_t pid) {
  is_of(pid);
  for (const File& file : files_)
    if (!file.dump) return;
  // The program's own root first: it may be a container's.
  const std::string name = fmt::format("/tmp/perf-{}.map", pid);
  if (!open(fmt::format("/proc/{}/root{}", pid, name), false)) open(name, false);
}

void JitCode::follow_dump(uint32_t pid, const std::string& path) {
  is_of(pid);
  if (known_.size() >= kMostFiles || std::find(known_.begin(), known_.end(), path) != known_.end()) return;
  known_.push_back(path);
  if (!open(fmt::format("/proc/{}/root{}", pid, path), true)) open(path, true);
}

void JitCode::update(int64_t time) {
  if (pid_ == 0 || (looked_ != 0 && time - looked_ < kPause)) return;
  const int64_t from = from_;
  from_ = looked_ = std::max(time, looked_ + 1);
  follow(pid_);
  for (File& file : files_) {
    struct stat about {};
    if (file.broken || fstat(fileno(file.file.get()), &about) != 0) continue;
    if (static_cast<uint64_t>(about.st_size) < file.offset) {  // written anew
      file.offset = 0;
      file.rest.clear();
      file.header = false;
    }
    if (static_cast<uint64_t>(about.st_size) == file.offset) continue;
    file.dump ? read_dump(file, from) : read_map(file, from);
  }
}

void JitCode::read_map(File& file, int64_t from) {
  char bytes[65536];
  for (uint64_t all = 0; all < kMostBytes; all += sizeof bytes) {
    const ssize_t size = pread(fileno(file.file.get()), bytes, sizeof bytes, static_cast<off_t>(file.offset));
    if (size <= 0) return;
    file.offset += static_cast<uint64_t>(size);
    std::string_view text(bytes, static_cast<size_t>(size));
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      file.rest.append(text.substr(0, end));
      unsigned long long start = 0, length = 0;
      int name = 0;
      if (std::sscanf(file.rest.c_str(), "%llx %llx %n", &start, &length, &name) == 2 && name > 0)
        add(start, length, from, std::string_view(file.rest).substr(static_cast<size_t>(name)));
      file.rest.clear();
    }
    if (file.rest.size() < kLongestName) file.rest.append(text);
  }
}

// The file: magic, version, size of the header, machine, padding, pid (each 32 bits), time, flags (64 bits); records:
// kind, size (32 bits), time (64 bits). A function that is loaded: pid, thread (32 bits), virtual address, address,
// size, number (64 bits), its name ended by 0, its code. One that moves: pid, thread, virtual address, old address, new
// address, size, number.
void JitCode::read_dump(File& file, int64_t from) {
  const int fd = fileno(file.file.get());
  char bytes[16 + 40 + kLongestName];
  if (!file.header) {
    if (pread(fd, bytes, 40, 0) != 40) return;
    const auto size = number_at<uint32_t>(bytes + 8);
    file.broken = number_at<uint32_t>(bytes) != kMagic || size < 40 || size > 65536;
    if (file.broken) return;
    file.timed = (number_at<uint64_t>(bytes + 32) & kOwnClock) == 0;
    file.offset = size;
    file.header = true;
  }
  const int64_t apart = raw_now() - read_clock(CLOCK_MONOTONIC);
  struct stat about {};
  if (fstat(fd, &about) != 0) return;
  for (;;) {
    const ssize_t got = pread(fd, bytes, sizeof bytes, static_cast<off_t>(file.offset));
    if (got < 16) return;
    const auto kind = number_at<uint32_t>(bytes);
    const uint64_t size = number_at<uint32_t>(bytes + 4);
    file.broken = size < 16;
    // The last record may be half written.
    if (file.broken || file.offset + size > static_cast<uint64_t>(about.st_size)) return;
    file.offset += size;
    const int64_t when = file.timed ? static_cast<int64_t>(number_at<uint64_t>(bytes + 8)) + apart : from;
    const size_t whole = std::min<uint64_t>(size, static_cast<uint64_t>(got));
    if (kind == kLoad && whole > 56) {
      const std::string_view text(bytes + 56, whole - 56);
      add(number_at<uint64_t>(bytes + 32), number_at<uint64_t>(bytes + 40), when, text.substr(0, text.find('\0')));
    } else if (kind == kMove && whole >= 64) {
      const Code* const old = find(number_at<uint64_t>(bytes + 32), when);
      if (old != nullptr)
        add(number_at<uint64_t>(bytes + 40), number_at<uint64_t>(bytes + 48), when, std::string(old->name));
    }
  }
}

void JitCode::add(uint64_t start, uint64_t size, int64_t from, std::string_view name) {
  if (size == 0 || start + size < start) return;
  if (codes_.size() >= kMostCodes) {
    ++left_out_;
    return;
  }
  const uint64_t end = start + size;
  // What lay there ends.
  auto at = at_.upper_bound(start);
  for (int steps = 0; at != at_.begin() && steps < kMostSteps; ++steps) --at;
  for (; at != at_.end() && at->first < end; ++at)
    for (const uint32_t place : at->second)
      if (Code& code = codes_[place]; code.end > start && code.until == INT64_MAX)
        code.until = std::max(code.from, from);
  at_[start].push_back(static_cast<uint32_t>(codes_.size()));
  codes_.push_back({start, end, from, INT64_MAX, std::string(name)});
}

const JitCode::Code* JitCode::find(uint64_t address, int64_t time) const {
  auto at = at_.upper_bound(address);
  for (int steps = 0; at != at_.begin() && steps < kMostSteps; ++steps) {
    --at;
    for (size_t i = at->second.size(); i-- > 0;)
      if (const Code& code = codes_[at->second[i]]; address < code.end && time >= code.from && time < code.until)
        return &code;
  }
  return parent_ != nullptr ? parent_->find(address, std::min(time, forked_)) : nullptr;
}

}  // namespace tacho::decode
