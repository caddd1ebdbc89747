// Names of code that a program makes at run time (JIT), by address and time: an address that is used again means
// something else. Two forms are read, as they grow: perf's map, a line of text for each function, which counts from
// when it was seen, and jitdump, whose records have times. Both come from targets: sizes are checked, loops bounded.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::decode {

class JitCode {
 public:
  struct Code {
    uint64_t start, end;
    int64_t from, until;  // trace time
    std::string name;
  };
  /// `parent`: the process it was forked from, whose code it has; null = none. It is asked as of now.
  explicit JitCode(std::shared_ptr<const JitCode> parent = nullptr);
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;

  /// Looks for /tmp/perf-PID.map, unless it is older than the process.
  void follow(uint32_t pid);
  /// A jitdump that the process has mapped, as its recorders do to name it. `path`: as the process sees it.
  void follow_dump(uint32_t pid, const std::string& path);
  /// Reads what was added. Cheap if called again within 10 ms. `time`: trace time now.
  void update(int64_t time);
  /// What lay there then; nullptr = nobody said. Valid as long as this object.
  const Code* find(uint64_t address, int64_t time) const;
  /// Functions that were too many to keep.
  int64_t left_out() const { return left_out_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct File {
    std::unique_ptr<std::FILE, Close> file;
    uint64_t offset = 0;
    bool dump = false, header = false, timed = true, broken = false;
    std::string rest;  // of a line that is not whole
  };
  void is_of(uint32_t pid);
  bool open(const std::string& path, bool dump);
  void read_map(File& file, int64_t from);
  void read_dump(File& file, int64_t from);
  void add(uint64_t start, uint64_t size, int64_t from, std::string_view name);

  std::shared_ptr<const JitCode> parent_;
  int64_t forked_ = 0;  // trace time
  std::deque<Code> codes_;
  std::map<uint64_t, std::vector<uint32_t>> at_;  // places in codes_ by start, oldest first
  std::vector<File> files_;
  std::vector<std::string> known_;  // dumps that are followed
  uint32_t pid_ = 0;
  int64_t began_ = 0;         // the process, s since 1970
  int64_t looked_ = 0;        // trace time
  int64_t from_ = INT64_MIN;  // of what the next look finds
  int64_t left_out_ = 0;
};

}  // namespace tacho::decode
