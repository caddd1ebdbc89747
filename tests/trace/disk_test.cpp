// Disks that fill up and limits that are hit: written rows stay readable, the others are counted, and the error is
// reported.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"

namespace tacho::trace {
namespace {

using event::LossReason;
namespace column = event::column;
namespace row = event::row;

constexpr int kRows = 500'000;

// Writes kRows API rows with names, flushing now and then; the file that comes of it is opened and looked at.
void write_until_full(const std::string& path, bool flush) {
  WriterOptions options;
  options.slab_rows = 8192;
  auto writer = must(TraceWriter::create(path, options));
  make_targets(*writer);
  RandomRows random(50);
  int64_t accepted_errors = 0;
  for (int i = 0; i < kRows; ++i) {
    Row row = random.row(Table::kApi, false);
    row[column::Api::dim] = writer->dimension(
        row::Function{.name = writer->string(fmt::format("function {}", i / 100)), .domain = event::Domain::kOpenCL});
    Cells::add(*writer, Table::kApi, row);
    if (flush && i % 3000 == 0) accepted_errors += !writer->flush();
  }
  if (flush) {
    EXPECT_GT(accepted_errors, 0);
  }
  EXPECT_FALSE(writer->write_status());
  const Status finished = writer->finish();
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find(path), std::string::npos) << finished.error().message;
  EXPECT_NE(finished.error().message.find("cannot be written"), std::string::npos) << finished.error().message;

  const auto trace = must(Trace::open(path));
  EXPECT_TRUE(trace->complete()) << trace->note();
  const auto rows = all_rows(*trace, Table::kApi);
  EXPECT_GT(rows.size(), 10'000u);
  EXPECT_EQ(static_cast<int64_t>(rows.size()) + lost(*trace, Table::kApi, LossReason::kWriteError), kRows);
  for (const Row& row : rows) {
    ASSERT_EQ(trace->text(Table::kFunction, row[column::Api::dim], 0).substr(0, 9), "function ");
  }
}

TEST(Disk, AFullFileSystemLeavesAWholeTrace) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  for (const bool flush : {false, true}) {
    Folder folder;
    if (mount("tacho-test", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "this machine lets no tmpfs be mounted: " << strerror(errno);
    }
    write_until_full(folder / "t.tacho", flush);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
        << "one file, nothing temporary";
    umount2(folder.path().c_str(), MNT_DETACH);
  }
}

TEST(Disk, AFileSystemFullFromTheStart) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  Folder folder;
  if (mount("tacho-test", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "this machine lets no tmpfs be mounted: " << strerror(errno);
  }
  const std::vector<uint8_t> filler(60 << 10);
  write_file(folder / "filler", filler);
  auto writer = TraceWriter::create(folder / "t.tacho");
  if (writer) {
    RandomRows random(51);
    for (int i = 0; i < 100'000; ++i) Cells::add(**writer, Table::kApi, random.row(Table::kApi, false));
    EXPECT_FALSE((*writer)->finish());
    const auto trace = must(Trace::open(folder / "t.tacho"));  // perhaps without an end, but a trace
    EXPECT_EQ(
        trace->rows(Table::kApi) + (trace->complete() ? lost(*trace, Table::kApi, LossReason::kWriteError) : 100'000),
        100'000);
  }
  umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(Disk, TheLimitOnFileSizesGivesAnErrorAndNoSignal) {
  Folder folder;
  const std::string path = folder / "t.tacho";
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    write_until_full(path, true);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tacho::trace
