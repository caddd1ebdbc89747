// Names of code made at run time: what a jitdump and a map say, also when they are damaged.
#include "decode/records/jit_code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/files/temporary.h"
#include "base/format.h"

namespace tacho::decode {
namespace {

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string header(uint32_t magic = 0x4a695444, uint32_t size = 40) {
  std::string bytes;
  for (const uint32_t value : {magic, 1u, size, 62u, 0u, 1u}) put(bytes, value);
  put<uint64_t>(bytes, 0);
  put<uint64_t>(bytes, 0);
  return bytes;
}

std::string load(uint64_t address, uint64_t size, int64_t time, const std::string& name) {
  std::string bytes;
  put<uint32_t>(bytes, 0);
  put<uint32_t>(bytes, static_cast<uint32_t>(56 + name.size() + 1));
  put(bytes, time);
  put<uint64_t>(bytes, 0);
  for (const uint64_t value : {address, address, size, uint64_t{1}}) put(bytes, value);
  return bytes + name + '\0';
}

std::string move(uint64_t from, uint64_t to, uint64_t size, int64_t time) {
  std::string bytes;
  put<uint32_t>(bytes, 1);
  put<uint32_t>(bytes, 64);
  put(bytes, time);
  put<uint64_t>(bytes, 0);
  for (const uint64_t value : {from, from, to, size, uint64_t{1}}) put(bytes, value);
  return bytes;
}

class JitCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::create(temporary_folder() + "/tacho-jit-");
    ASSERT_TRUE(made);
    folder_ = std::move(*made);
    path_ = folder_.path() + "/jit-1.dump";
  }
  void write(const std::string& bytes, const char* mode = "w") const {
    std::FILE* const file = std::fopen(path_.c_str(), mode);
    ASSERT_NE(file, nullptr);
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
  std::string name(uint64_t address, int64_t time) const {
    const JitCode::Code* const code = jit_.find(address, time);
    return code == nullptr ? "" : code->name;
  }
  void look() {
    now_ += 20'000'000;
    jit_.update(now_);
  }

  TemporaryFolder folder_;
  std::string path_;
  JitCode jit_;
  int64_t now_ = raw_now();
  const int64_t began_ = read_clock(CLOCK_MONOTONIC);  // of the dump's clock
  const int64_t apart_ = raw_now() - read_clock(CLOCK_MONOTONIC);
  int64_t at(int64_t ms) const { return began_ + ms * 1'000'000; }
  int64_t trace(int64_t ms) const { return at(ms) + apart_; }
};

TEST_F(JitCodeTest, AnAddressMeansSomethingOnlyAtATime) {
  write(header() + load(0x1000, 0x100, at(10), "first") + load(0x1080, 0x10, at(30), "second"));
  jit_.follow_dump(static_cast<uint32_t>(getpid()), path_);
  look();
  EXPECT_EQ(name(0x1004, trace(5)), "");
  EXPECT_EQ(name(0x1004, trace(20)), "first");
  EXPECT_EQ(name(0x1084, trace(20)), "first");
  EXPECT_EQ(name(0x1084, trace(40)), "second");
  EXPECT_EQ(name(0x1004, trace(40)), "");  // written over in part
  write(load(0x1000, 0x80, at(60), "third") + move(0x1080, 0x9000, 0x10, at(70)), "a");
  look();
  EXPECT_EQ(name(0x1004, trace(65)), "third");
  EXPECT_EQ(name(0x1004, trace(20)), "first");
  EXPECT_EQ(name(0x9008, trace(80)), "second");
  EXPECT_EQ(name(0x9008, trace(65)), "");
}

TEST_F(JitCodeTest, WaitsForTheRestOfARecord) {
  const std::string record = load(0x1000, 0x100, at(10), "whole");
  write(header() + record.substr(0, record.size() - 3));
  jit_.follow_dump(static_cast<uint32_t>(getpid()), path_);
  look();
  EXPECT_EQ(name(0x1004, trace(20)), "");
  write(record.substr(record.size() - 3), "a");
  look();
  EXPECT_EQ(name(0x1004, trace(20)), "whole");
}

TEST_F(JitCodeTest, LeavesDamagedFilesAlone) {
  std::string endless;
  put<uint32_t>(endless, 0);
  put<uint32_t>(endless, 0);  // a record of no size
  put<uint64_t>(endless, 0);
  for (const std::string& bytes :
       {std::string(), std::string("JiTD"), header(0x12345678) + load(0x1000, 1, at(1), "x"), header(0x4a695444, 8),
        header(0x4a695444, 1u << 30), header() + endless + load(0x1000, 0x100, at(1), "x"),
        header() + load(UINT64_MAX - 4, 100, at(1), "x"), header() + load(0x1000, 0, at(1), "x"),
        header() + move(0x5000, 0x1000, 0x100, at(1))}) {
    write(bytes);
    JitCode jit;
    jit.follow_dump(static_cast<uint32_t>(getpid()), path_);
    jit.update(now_);
    jit.update(now_ + 20'000'000);
    EXPECT_EQ(jit.find(0x1004, trace(20)), nullptr);
  }
}

TEST_F(JitCodeTest, FollowsAMapAndInheritsIt) {
  const std::string map = fmt::format("/tmp/perf-{}.map", getpid());
  path_ = map;
  write("1000 100 first\nnonsense\n2000\nzz 10 x\n3000 10 half");
  const auto parent = std::make_shared<JitCode>();
  parent->follow(static_cast<uint32_t>(getpid()));
  parent->update(now_);
  const JitCode child(parent);
  ASSERT_NE(parent->find(0x1010, now_), nullptr);
  EXPECT_EQ(parent->find(0x3004, now_), nullptr);
  write(" a line\n1000 100 second function(int)\n", "a");
  parent->update(now_ + 20'000'000);
  EXPECT_EQ(parent->find(0x3004, now_ + 20'000'000)->name, "half a line");
  EXPECT_EQ(parent->find(0x1010, now_ - 1)->name, "first");
  EXPECT_EQ(parent->find(0x1010, now_ + 20'000'000)->name, "second function(int)");
  EXPECT_EQ(child.find(0x1010, now_ - 1)->name, "first");
  unlink(map.c_str());
}

}  // namespace
}  // namespace tacho::decode
