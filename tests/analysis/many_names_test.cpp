// Comparisons and reports over more names than memory should hold.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "analysis/diff.h"
#include "analysis/questions.h"
#include "base/format.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

namespace row = event::row;

using trace::Folder;
using trace::must;
using trace::TraceWriter;

constexpr int64_t kNames = 400'000;

// A launch and a kernel of each name, in two shapes; kernel i runs for 100 + i ns, `more` longer in its second shape.
std::shared_ptr<const trace::Trace> many_kernels(const std::string& path, int64_t more) {
  auto writer = must(TraceWriter::create(path, {}));
  const int64_t process = writer->dimension(row::Process{.pid = 7, .parent_pid = 1, .start = 0});
  const int64_t thread = writer->dimension(row::Thread{.process = process, .tid = 8});
  const int64_t host = writer->dimension(
      row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 8});
  const int64_t device =
      writer->dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = 0, .name = writer->string("GPU 0")});
  const int64_t queue = writer->dimension(
      row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device, .native = 1});
  const int64_t launch =
      writer->dimension(row::Function{.name = writer->string("launch"), .domain = event::Domain::kOpenCL});
  for (int64_t i = 0; i < 2 * kNames; ++i) {
    const int64_t kernel = writer->dimension(row::Kernel{
        .name = writer->string(fmt::format("a kernel of step {} of the run", i % kNames)), .grid_x = 1 + i / kNames});
    const int64_t start = 1'000'000 * i;
    writer->add(
        row::Api{.track = host, .start = start, .duration = 50, .dim = launch, .correlation = i + 1, .result = 0});
    writer->add(row::Dispatch{.track = queue,
                              .start = start + 60 + i % kNames,
                              .duration = 100 + i % kNames + (i < kNames ? 0 : more),
                              .dim = kernel,
                              .correlation = i + 1,
                              .ordinal = i});
  }
  return must(writer->finish_and_open());
}

// Runs `work` in a child that may use this much more memory than it starts with; returns its result, 0 = all is well.
int with_room(size_t mib, const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    long pages[6] = {};
    FILE* const statm = fopen("/proc/self/statm", "r");
    for (long& page : pages)
      if (fscanf(statm, "%ld", &page) != 1) _exit(101);
    fclose(statm);
    const auto limit = static_cast<rlim_t>(pages[5]) * 4096 + (mib << 20);
    const rlimit data{limit, limit};
    _exit(setrlimit(RLIMIT_DATA, &data) != 0 ? 102 : work());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status) << ": no memory left";
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ManyNames, NeedLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve memory that the limit would count";
#endif
  const Folder folder;
  const auto a = many_kernels(folder / "a.tacho", 0), b = many_kernels(folder / "b.tacho", 30);
  EXPECT_EQ(
      with_room(96,
                [&] {
                  const auto compared = diff(*a, *b, DiffBy::kKernel);
                  if (!compared || compared->rows != kNames || compared->total_b - compared->total_a != 30 * kNames)
                    return 1;
                  DiffRow row;
                  for (int64_t i = 0; i < kNames; ++i)
                    if (!compared->next(row) || row.difference != 30 || row.a.calls != 2 ||
                        row.a.median != row.a.total / 2 ||
                        row.name != fmt::format("a kernel of step {} of the run", row.a.median - 100))
                      return 2;
                  return compared->next(row) ? 3 : 0;
                }),
      0);
  EXPECT_EQ(with_room(96,
                      [&] {
                        const auto delays = launch_delay(*a);
                        if (!delays) return 1;
                        std::vector<report::Cell> row;
                        for (int64_t i = kNames - 1; i >= 0; --i)  // the longest first: 10 + i ns each
                          if (!delays->next(row) || std::get<int64_t>(row[2]) != 2 ||
                              std::get<int64_t>(row[3]) != 10 + i ||
                              std::get<std::string>(row[6]) != fmt::format("a kernel of step {} of the run", i))
                            return 2;
                        return delays->next(row) ? 3 : 0;
                      }),
            0);
  EXPECT_EQ(with_room(96,
                      [&] {
                        const auto times = exclusive(*a);
                        std::vector<report::Cell> row;
                        if (!times || !times->next(row) || std::get<int64_t>(row[1]) != 50 * 2 * kNames ||
                            std::get<int64_t>(row[4]) != 2 * kNames)
                          return 1;
                        for (int64_t i = kNames - 1; i >= 0; --i)
                          if (!times->next(row) || std::get<int64_t>(row[1]) != 2 * (100 + i) ||
                              std::get<std::string>(row[5]) != fmt::format("a kernel of step {} of the run", i))
                            return 2;
                        return times->next(row) ? 3 : 0;
                      }),
            0);
}

}  // namespace
}  // namespace tacho::analysis
