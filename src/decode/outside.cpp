// OutsideStacks: a sample becomes the record that libtacho.so would have written (outside.h).
#include "decode/outside.h"

#include <sys/stat.h>

#include <cstring>

#include "base/format.h"
#include "decode/decoder.h"

namespace tacho::decode {

using event::Table;
namespace row = event::row;

class OutsideStacks::Process : public ProcessContext {
 public:
  Process(OutsideStacks& all, uint32_t pid, uint32_t parent, const Process* inherits)
      : all_(all),
        pid_(pid),
        parent_(parent),
        samples_(*this, all.writer_, all.modules_, inherits != nullptr ? &inherits->samples_ : nullptr) {
    if (inherits != nullptr) name_ = inherits->name_;
  }
  int64_t row() override {
    // libtacho.so may be in the process as well: one row for both.
    if (row_ == 0) row_ = all_.decoder_.process_row(pid_);
    if (row_ == 0) {
      const int64_t name = all_.writer_.string(name_);
      row_ = all_.writer_.dimension(
          row::Process{.pid = pid_, .parent_pid = parent_, .start = 0, .name = name, .command = name});
      all_.decoder_.adopt(pid_, row_);
    }
    return row_;
  }
  std::string_view text(uint32_t) const override { return {}; }  // perf_event's records have no strings
  int64_t host_time(uint64_t ticks) const override { return static_cast<int64_t>(ticks); }
  int64_t thread_track(uint32_t) override { return 0; }  // samples have tracks of their own

  OutsideStacks& all_;
  uint32_t pid_, parent_;
  std::string name_;
  int64_t row_ = 0;
  ProcessSamples samples_;
};

OutsideStacks::OutsideStacks(trace::TraceWriter& writer, Decoder& decoder) : writer_(writer), decoder_(decoder) {}
OutsideStacks::~OutsideStacks() = default;

OutsideStacks::Process& OutsideStacks::process(uint32_t pid) {
  std::unique_ptr<Process>& known = processes_[pid];
  if (!known) {
    known = std::make_unique<Process>(*this, pid, 0, nullptr);
    known->name_ = fmt::format("process {}", pid);
  }
  return *known;
}

void OutsideStacks::fork(uint32_t pid, uint32_t parent) {
  if (pid == parent) return;  // a thread
  const auto from = processes_.find(parent);
  std::unique_ptr<Process>& child = processes_[pid];
  if (child) before_.push_back(std::move(child));
  child = std::make_unique<Process>(*this, pid, parent, from != processes_.end() ? from->second.get() : nullptr);
}

void OutsideStacks::name(uint32_t pid, std::string_view name, bool exec) {
  Process& known = process(pid);
  if (!exec) return;  // a thread's name
  const uint32_t parent = known.parent_;
  before_.push_back(std::move(processes_[pid]));
  std::unique_ptr<Process>& fresh = processes_[pid];
  fresh = std::make_unique<Process>(*this, pid, parent, nullptr);
  fresh->name_ = name;
}

void OutsideStacks::map(uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, std::string_view path,
                        int64_t time) {
  event::ModuleRecord record{};
  record.start = start;
  record.end = end;
  record.offset = offset;
  record.state = event::ModuleState::kOpened;
  record.time = static_cast<uint64_t>(time);
  // Which file it is: the kernel says where, and not whether it has been written anew since the last time.
  struct stat file {};
  if (path.starts_with('/') && (stat(fmt::format("/proc/{}/root{}", pid, path).c_str(), &file) == 0 ||
                                stat(std::string(path).c_str(), &file) == 0)) {
    record.device = file.st_dev;
    record.inode = file.st_ino;
    record.modified = static_cast<int64_t>(file.st_mtim.tv_sec) * 1'000'000'000 + file.st_mtim.tv_nsec;
  }
  process(pid).samples_.module(record, path);
}

// The record whose bytes are in bytes_.
void OutsideStacks::hand_over(uint32_t pid, const event::SampleRecord& record) {
  static const uint64_t own_namespace = [] {
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint64_t>(status.st_ino) : 0;
  }();
  tape::BlockHeader block{};
  block.pid = pid;
  block.tid = record.tid;
  block.aux64 = own_namespace;
  process(pid).samples_.sample(block, record, bytes_);
}

void OutsideStacks::rest(uint32_t pid, uint32_t tid, int64_t time, uint64_t ns) {
  event::SampleRecord record{};
  event::SampleHeader header{};
  header.clock = event::SampleClock::kCpu;
  header.of = event::SampleOf::kRest;
  record.header = {event::RecordKind::kSample, 0, 0, 0};
  record.time = static_cast<uint64_t>(time);
  record.period = ns;
  record.tid = tid;
  bytes_.resize(sizeof record + sizeof header);
  std::memcpy(bytes_.data(), &record, sizeof record);
  std::memcpy(bytes_.data() + sizeof record, &header, sizeof header);
  hand_over(pid, record);
}

void OutsideStacks::sample(const OutsideSample& sample) {
  event::SampleRecord record{};
  event::SampleHeader header{};
  header.clock = event::SampleClock::kCpu;
  header.stack_whole = sample.stack_whole;
  header.stack_begin = sample.stack_begin;
  header.stack_bytes = static_cast<uint32_t>(sample.stack.size() & ~size_t{7});
  bytes_.resize(sizeof record + sizeof header + sizeof sample.registers + header.stack_bytes);
  record.header = {event::RecordKind::kSample, 0, 0, 0};
  record.time = static_cast<uint64_t>(sample.time);
  record.period = sample.period;
  record.tid = sample.tid;
  std::byte* at = bytes_.data();
  const auto put = [&](const void* from, size_t size) {
    std::memcpy(at, from, size);
    at += size;
  };
  put(&record, sizeof record);
  put(&header, sizeof header);
  put(sample.registers, sizeof sample.registers);
  put(sample.stack.data(), header.stack_bytes);
  hand_over(sample.pid, record);
}

void OutsideStacks::finish() {
  for (auto& process : before_) process->samples_.finish();
  for (auto& [pid, process] : processes_)
    if (process) process->samples_.finish();
}

}  // namespace tacho::decode
