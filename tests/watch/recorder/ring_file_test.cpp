// Reading a ring while others write it.
#include "watch/recorder/ring_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace tacho::watch {
namespace {

// A program's mapping of the ring.
class Writer {
 public:
  explicit Writer(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    size_ = std::filesystem::file_size(path);
    ring_ = static_cast<event::WatchRing*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
  }
  ~Writer() { munmap(ring_, size_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  event::WatchRecord& begin() {
    const uint64_t ticket = ring_->header.head.fetch_add(1) + 1;
    event::WatchRecord& record = ring_->records[(ticket - 1) & (ring_->header.records - 1)];
    record.ticket.store(0);
    record.amount = ticket;
    record.kind = event::WatchRecordKind::kWork;
    last_ = ticket;
    return record;
  }
  void write() { begin().ticket.store(last_); }
  event::WatchRing& ring() { return *ring_; }

 private:
  event::WatchRing* ring_ = nullptr;
  size_t size_ = 0;
  uint64_t last_ = 0;
};

class RingFileTest : public testing::Test {
 protected:
  RingFileTest() {
    char name[] = "/tmp/tacho-ring-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RingFileTest() override { std::filesystem::remove_all(folder_); }
  std::string table() const { return folder_ + "/tacho-watch-1"; }
  static std::vector<uint64_t> poll(RingStream& stream, bool final = false) {
    std::vector<uint64_t> tickets;
    stream.poll(
        [&](const KeptRecord& record) {
          EXPECT_EQ(record.ticket, record.amount);
          tickets.push_back(record.ticket);
        },
        final);
    return tickets;
  }
  std::string folder_;
};

TEST_F(RingFileTest, HandsOnEachRecordOnce) {
  const auto file = RingFile::create(table(), 1024 * 64);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->capacity(), 1024u);
  Writer writer(table() + event::kWatchRingEnding);
  RingStream stream(*file);
  EXPECT_TRUE(poll(stream).empty());
  for (int i = 0; i < 3; ++i) writer.write();
  EXPECT_EQ(poll(stream), (std::vector<uint64_t>{1, 2, 3}));
  writer.write();
  EXPECT_EQ(poll(stream), (std::vector<uint64_t>{4}));
  EXPECT_EQ(stream.overwritten() + stream.unfinished(), 0u);
}

TEST_F(RingFileTest, CountsWhatWasOverwritten) {
  const auto file = RingFile::create(table(), 1024 * 64);
  ASSERT_TRUE(file);
  Writer writer(table() + event::kWatchRingEnding);
  RingStream stream(*file);
  for (int i = 0; i < 1500; ++i) writer.write();
  const std::vector<uint64_t> tickets = poll(stream);
  ASSERT_EQ(tickets.size(), 1024u);
  EXPECT_EQ(tickets.front(), 477u);
  EXPECT_EQ(stream.overwritten(), 476u);
}

TEST_F(RingFileTest, WaitsForARecordThatIsBeingWritten) {
  const auto file = RingFile::create(table(), 1024 * 64);
  ASSERT_TRUE(file);
  Writer writer(table() + event::kWatchRingEnding);
  RingStream stream(*file);
  writer.write();
  event::WatchRecord& open = writer.begin();
  writer.write();
  EXPECT_EQ(poll(stream), (std::vector<uint64_t>{1}));
  open.ticket.store(2);
  EXPECT_EQ(poll(stream), (std::vector<uint64_t>{2, 3}));
}

TEST_F(RingFileTest, CountsARecordThatItsProgramNeverFinished) {
  const auto file = RingFile::create(table(), 1024 * 64);
  ASSERT_TRUE(file);
  Writer writer(table() + event::kWatchRingEnding);
  RingStream stream(*file);
  writer.begin();
  writer.write();
  EXPECT_TRUE(poll(stream).empty());
  EXPECT_EQ(poll(stream, true), (std::vector<uint64_t>{2}));
  EXPECT_EQ(stream.unfinished(), 1u);
}

TEST_F(RingFileTest, RemovesItsFileAndThoseOfOthersThatAreGone) {
  const std::string left = folder_ + "/tacho-watch-2" + event::kWatchRingEnding;
  {
    const int file = open(left.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(ftruncate(file, static_cast<off_t>(event::watch_ring_bytes(1024))), 0);
    close(file);
    const auto made = RingFile::create(table(), 1024 * 64);
    ASSERT_TRUE(made);
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(table() + event::kWatchRingEnding));
  }
  EXPECT_FALSE(std::filesystem::exists(table() + event::kWatchRingEnding));
}

TEST_F(RingFileTest, RefusesTooLittle) {
  EXPECT_FALSE(RingFile::create(table(), 1000));
}

}  // namespace
}  // namespace tacho::watch
