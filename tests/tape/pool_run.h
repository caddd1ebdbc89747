// For tests: runs small programs against a pool of our own, drains it as tacho does, and keeps every record as a row.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "event/records.h"
#include "tape/pool.h"

namespace tacho::test {

struct Row {
  event::RecordKind kind;
  uint8_t flags;
  uint32_t value;
  uint32_t slot, thread, pid, tid;
  uint64_t time = 0;
  uint64_t id = 0;   // of ranges; correlation of API records
  std::string text;  // of markers, strings, notes
  std::string domain, category;
  uint32_t color = 0;
  uint64_t payload = 0;
};

/// Everything that came out of a pool. Every record is checked for size and bounds: a wrong one is a test failure.
class Rows {
 public:
  void take(const tape::Piece& piece) {
    const auto kind = piece.block->kind;
    if (kind != tape::BlockKind::kRecords && kind != tape::BlockKind::kDefinitions && kind != tape::BlockKind::kShared)
      return;
    const std::byte* at = piece.bytes.data();
    const std::byte* const end = at + piece.bytes.size();
    while (at != end) {
      event::RecordHeader header;
      ASSERT_GE(static_cast<size_t>(end - at), sizeof header);
      memcpy(&header, at, sizeof header);
      ASSERT_LT(static_cast<size_t>(header.kind), static_cast<size_t>(event::RecordKind::kEnd));
      ASSERT_EQ(header.size % 8, 0) << "record " << static_cast<int>(header.kind);
      ASSERT_GE(header.size, event::kRecordInfos[static_cast<size_t>(header.kind)].size);
      ASSERT_LE(header.size, static_cast<size_t>(end - at));
      one(*piece.block, header, at);
      at += header.size;
    }
  }

  std::vector<Row> rows;
  std::map<std::pair<uint32_t, uint32_t>, std::string> strings;  // by process slot, number
  std::map<uint32_t, event::ProcessRecord> processes;            // by slot

  size_t count(event::RecordKind kind) const {
    size_t number = 0;
    for (const Row& row : rows) number += row.kind == kind;
    return number;
  }
  std::vector<const Row*> of(event::RecordKind kind) const {
    std::vector<const Row*> found;
    for (const Row& row : rows)
      if (row.kind == kind) found.push_back(&row);
    return found;
  }
  size_t count(event::RecordKind kind, const std::string& text) const {
    size_t number = 0;
    for (const Row& row : rows) number += row.kind == kind && row.text == text;
    return number;
  }
  /// A string by its number, as a process sees it: its own, else its parent's.
  std::string string(uint32_t slot, uint32_t number) const {
    for (uint32_t steps = 0; steps < 64; ++steps) {
      if (const auto found = strings.find({slot, number}); found != strings.end()) return found->second;
      const auto process = processes.find(slot);
      if (process == processes.end() || process->second.parent_slot == event::kUnknown32) break;
      slot = process->second.parent_slot;
    }
    return "?";
  }

 private:
  void one(const tape::BlockHeader& block, const event::RecordHeader& header, const std::byte* at) {
    using event::RecordKind;
    Row row{};
    row.kind = header.kind;
    row.flags = header.flags;
    row.value = header.value;
    row.slot = block.process_slot;
    row.thread = block.thread_index;
    row.pid = block.pid;
    row.tid = block.tid;
    const auto word = [&](size_t offset) {
      uint64_t value;
      memcpy(&value, at + offset, sizeof value);
      return value;
    };
    switch (header.kind) {
      case RecordKind::kString: {
        const uint64_t length = word(8);
        ASSERT_LE(sizeof(event::StringRecord) + length, header.size);
        row.text.assign(reinterpret_cast<const char*>(at) + sizeof(event::StringRecord), length);
        ASSERT_TRUE(strings.emplace(std::pair(row.slot, row.value), row.text).second) << "defined twice: " << row.text;
        break;
      }
      case RecordKind::kProcess: {
        event::ProcessRecord process;
        memcpy(&process, at, sizeof process);
        ASSERT_TRUE(processes.emplace(row.slot, process).second);
        ASSERT_EQ(process.slot, row.slot);
        break;
      }
      case RecordKind::kNote:
        row.text = string(row.slot, static_cast<uint32_t>(word(16)));
        break;
      case RecordKind::kThread:
        row.text = string(row.slot, static_cast<uint32_t>(word(8) >> 32));
        row.id = word(8) & 0xffffffff;
        break;
      case RecordKind::kApi:
        row.time = word(8);
        row.id = word(24);
        break;
      case RecordKind::kPop:
        row.time = word(8);
        row.domain = string_or_none(row.slot, row.value);
        break;
      case RecordKind::kRangeStop:
        row.time = word(8);
        row.id = word(16);
        break;
      case RecordKind::kPush:
      case RecordKind::kMark:
      case RecordKind::kRangeStart: {
        row.time = word(8);
        size_t offset = 16;
        if (header.kind == RecordKind::kRangeStart) row.id = word(offset), offset += 8;
        if ((header.flags & event::kMarkerInterned) != 0) {
          row.text = string(row.slot, header.value);
        } else {
          ASSERT_LE(offset + header.value, header.size);
          row.text.assign(reinterpret_cast<const char*>(at) + offset, header.value);
          offset += (header.value + 7) & ~7u;
        }
        const auto next = [&] {
          offset += 8;
          return offset <= header.size ? word(offset - 8) : 0;
        };
        if ((header.flags & event::kMarkerDomain) != 0) row.domain = string(row.slot, static_cast<uint32_t>(next()));
        if ((header.flags & event::kMarkerCategory) != 0)
          row.category = string(row.slot, static_cast<uint32_t>(next()));
        if ((header.flags & event::kMarkerColor) != 0) row.color = static_cast<uint32_t>(next());
        if ((header.flags & (event::kMarkerInteger | event::kMarkerDouble)) != 0) row.payload = next();
        ASSERT_EQ(offset, header.size) << row.text.substr(0, 40);
        break;
      }
      default:
        break;
    }
    rows.push_back(std::move(row));
  }
  std::string string_or_none(uint32_t slot, uint32_t number) const { return number == 0 ? "" : string(slot, number); }
};

inline std::string build_folder() {
  const char* const folder = getenv("TACHO_BUILD");
  return folder != nullptr ? folder : ".";
}
inline std::string library_path() {
  return build_folder() + "/lib/libtacho.so";
}

/// A pool and the programs that write into it.
class PoolRun {
 public:
  explicit PoolRun(const tape::PoolOptions& options = {.initial_bytes = 4 << 20, .max_bytes = 64 << 20}) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // grandchildren become ours to wait for
    auto created = tape::Pool::create(options);
    if (!created) {
      ADD_FAILURE() << created.error().message;
      abort();
    }
    pool_.emplace(std::move(*created));
    drainer_.emplace(*pool_);
  }

  /// Takes the pieces instead of rows() when set.
  std::function<void(const tape::Piece&)> sink;

  tape::Pool& pool() { return *pool_; }
  Rows& rows() { return rows_; }

  /// Starts a program with libtacho.so preloaded. `prepare` runs in the child before exec.
  pid_t spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
              bool preload = true, void (*prepare)() = nullptr) {
    const pid_t child = fork();
    if (child != 0) {
      if (!grower_) grower_.emplace(*pool_);
      return child;
    }
    setenv("TACHO_POOL", pool_->path().c_str(), 1);
    setenv("TACHO_LIBRARY", library_path().c_str(), 1);
    setenv("TSAN_OPTIONS", "exitcode=66", 1);
    std::string preloaded = preload ? library_path() : "";
#ifdef TACHO_SANITIZER_RUNTIME  // the library is sanitised and the program may not be: the runtime has to come first
    preloaded = preloaded.empty() ? TACHO_SANITIZER_RUNTIME : TACHO_SANITIZER_RUNTIME ":" + preloaded;
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // of programs that end in the middle of their work
#endif
    if (!preloaded.empty()) setenv("LD_PRELOAD", preloaded.c_str(), 1);
    for (const std::string& entry : environment) putenv(strdup(entry.c_str()));
    std::vector<char*> words;
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    if (prepare != nullptr) prepare();
    execv(words[0], words.data());
    _exit(127);
  }

  /// Drains until every child of this process has ended; the status of `child`. Kills all after `seconds`. A program
  /// that stops itself waits so for being drained: it goes on when all that it has finished is taken.
  int wait(pid_t child, int seconds = 60, int pause_us = 2000) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    int status = -1;
    for (;;) {
      int one = 0;
      const pid_t ended = waitpid(-1, &one, WNOHANG | WUNTRACED);
      if (ended > 0 && WIFSTOPPED(one)) {
        drain(false);
        kill(ended, SIGCONT);
        continue;
      }
      if (ended == child) status = one;
      if (ended < 0) break;
      if (ended == 0) {
        drain(false);
        usleep(static_cast<useconds_t>(pause_us));
        if (std::chrono::steady_clock::now() > deadline) {
          ADD_FAILURE() << "did not end within " << seconds << " s";
          kill(child, SIGKILL);
        }
      }
    }
    drain(true);
    return status;
  }
  int run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
          bool preload = true, void (*prepare)() = nullptr) {
    return wait(spawn(arguments, environment, preload, prepare));
  }
  void drain(bool final) {
    drainer_->pass(
        [this](const tape::Piece& piece) {
          if (sink)
            sink(piece);
          else
            rows_.take(piece);
        },
        final);
  }
  uint64_t dropped() {
    uint64_t sum = 0;
    for (auto& counter : pool_->header().dropped) sum += counter.load();
    return sum;
  }

 private:
  std::optional<tape::Pool> pool_;
  std::optional<tape::Drainer> drainer_;
  std::optional<tape::Grower> grower_;
  Rows rows_;
};

}  // namespace tacho::test
