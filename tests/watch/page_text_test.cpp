// The lines of the live page: order, rates, widths.
#include "watch/page_text.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "report/text.h"

namespace tacho::watch {
namespace {

RowSums timed_kernel(const std::string& name, uint64_t count, uint64_t each_ns) {
  RowSums row;
  row.kind = event::WatchKind::kKernel;
  row.name = name;
  row.count = count;
  row.levels[0] = {count, count, count * each_ns, static_cast<double>(count * each_ns * each_ns)};
  row.buckets[event::watch_bucket(each_ns)] = count;
  row.stood_ns = count * each_ns;
  return row;
}

class Page : public testing::Test {
 protected:
  Page() {
    before_.seconds = 10;
    before_.rows = {timed_kernel("was_busy", 1000, 1000), timed_kernel("is_busy", 10, 2000)};
    now_.snapshot.seconds = 12;
    now_.snapshot.rows = {timed_kernel("was_busy", 1000, 1000), timed_kernel("is_busy", 110, 2000)};
    now_.budget = 0.01;
  }
  size_t line_of(const std::vector<std::string>& lines, std::string_view word) {
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].starts_with(word)) return i;
    return lines.size();
  }
  WatchSnapshot before_;
  WatchMoment now_;
};

TEST_F(Page, OrdersByTheTimeSinceTheLastPageOrByAll) {
  PageView view;
  std::vector<std::string> lines = page_lines(before_, now_, view);
  EXPECT_LT(line_of(lines, "is_busy"), line_of(lines, "was_busy"));
  EXPECT_NE(lines[1].find("50.0 launches/s"), std::string::npos) << lines[1];
  EXPECT_NE(lines[line_of(lines, "is_busy")].find("    100     50.0"), std::string::npos);
  view.order = PageOrder::kTime;
  lines = page_lines(before_, now_, view);
  EXPECT_GT(line_of(lines, "is_busy"), line_of(lines, "was_busy"));
  EXPECT_NE(lines.back().find("s order: time "), std::string::npos);
}

TEST_F(Page, FitsTheScreen) {
  for (int i = 0; i < 100; ++i)
    now_.snapshot.rows.push_back(timed_kernel("a_kernel_with_a_rather_long_name_" + std::string(200, 'x'), 5, 7));
  for (const size_t width : {20, 80, 200})
    for (const size_t height : {1, 5, 24, 60}) {
      PageView view;
      view.width = width;
      view.height = height;
      const std::vector<std::string> lines = page_lines(before_, now_, view);
      EXPECT_EQ(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(report::display_width(line), width) << line;
    }
}

TEST_F(Page, SaysWhenItIsFrozenAndWhatTimingCosts) {
  PageView view;
  view.frozen = true;
  now_.cost = WatchCost{0.002, -0.001, 0.005, 20};
  const std::vector<std::string> lines = page_lines(before_, now_, view);
  EXPECT_NE(lines[0].find("(frozen)"), std::string::npos);
  EXPECT_NE(lines[2].find("of the pace -0.1 % to 0.5 %, budget 1.0 %"), std::string::npos) << lines[2];
}

TEST_F(Page, ANoteStandsAboveTheKeys) {
  PageView view;
  view.width = 40;
  EXPECT_EQ(page_lines(before_, now_, view).back().find("r write"), std::string::npos);
  now_.keeps = true;
  view.note = "watch-key.tacho: a key was pressed\x1b on the page; 48211 operations";
  for (const size_t height : {1, 2, 3, 4, 24}) {
    view.height = height;
    const std::vector<std::string> lines = page_lines(before_, now_, view);
    ASSERT_EQ(lines.size(), height);
    EXPECT_TRUE(lines.back().starts_with("q close")) << lines.back();
    if (height < 3) continue;
    EXPECT_EQ(lines[height - 3], "watch-key.tacho: a key was pressed? on");
    EXPECT_EQ(lines[height - 2], "the page; 48211 operations");
  }
  view.width = 80;
  EXPECT_TRUE(page_lines(before_, now_, view).back().ends_with("r write a file"));
}

TEST_F(Page, TheHostsCodeStandsBelowTheKernels) {
  PageView view;
  EXPECT_EQ(line_of(page_lines(before_, now_, view), "Host code"), view.height);
  HostLines code;
  now_.host_code = code;
  EXPECT_EQ(line_of(page_lines(before_, now_, view), "Host code"), view.height);
  code.samples = 100;
  code.processors = 1.5;
  code.lines = {{"main", "/src/app.c", 17, "/bin/app", 0.6},
                {"strlen", "", 0, "/lib/libc.so.6", 0.3},
                {"", "", 0, "/lib/libx.so", 0.1}};
  now_.host_code = code;
  for (int i = 0; i < 100; ++i) now_.snapshot.rows.push_back(timed_kernel(fmt::format("k{}", i), 5, 7));
  const std::vector<std::string> lines = page_lines(before_, now_, view);
  const size_t at = line_of(lines, "Host code, last 30 s, without the kernel's: 1.50 processors");
  ASSERT_LT(at + 3, lines.size());
  EXPECT_EQ(lines[at + 1], "  60 %  main  app.c:17");
  EXPECT_EQ(lines[at + 2], "  30 %  strlen  libc.so.6");
  EXPECT_EQ(lines[at + 3], "  10 %  libx.so");
  EXPECT_LT(line_of(lines, "is_busy"), at);
  EXPECT_TRUE(lines.back().starts_with("q close"));
  for (view.height = 1; view.height < 20; ++view.height) EXPECT_EQ(page_lines(before_, now_, view).size(), view.height);
}

TEST_F(Page, TheDevicesTimeAndTheHosts) {
  RowSums wait = timed_kernel("clFinish", 4, 100'000'000);
  wait.kind = event::WatchKind::kWait;
  RowSums copy = timed_kernel("host to device", 2, 50'000'000);
  copy.kind = event::WatchKind::kCopy;
  now_.snapshot.rows.push_back(wait);
  now_.snapshot.rows.push_back(copy);
  now_.snapshot.rows.push_back(timed_kernel("long", 12, 50'000'000));
  // In two seconds: 600 ms of kernels (and 200 us), 100 ms of copies, 400 ms of waiting.
  EXPECT_EQ(page_lines(before_, now_, {})[3],
            "device  kernels 30 %  copies 5 %  idle at least 65 %   host waits for it 20 %");
  now_.counts_only = true;
  EXPECT_EQ(page_lines(before_, now_, {})[3].find("idle"), std::string::npos);
}

TEST_F(Page, Gpus) {
  for (int gpu = 0; gpu < 8; ++gpu)
    for (const auto& [name, value] : {std::pair("Temperature", 54.0), std::pair("Core Clock", 1980.0),
                                      std::pair("GFX Busy", 97.0), std::pair("Memory Usage", 1024.0 * 1024)}) {
      vendor::GpuReading reading;
      reading.name = fmt::format("GPU {} [{}]", name, gpu);
      reading.gpu = gpu;
      reading.value = value;
      now_.gpus.push_back(reading);
    }
  PageView view;
  const std::vector<std::string> lines = page_lines(before_, now_, view);
  EXPECT_EQ(lines[4], "GPU 0  busy 97 %  1980 MHz  54 °C  1.00 MiB in use");
  EXPECT_EQ(lines[8], "and 4 more GPUs");
  EXPECT_EQ(lines[3].find("idle"), std::string::npos);  // of several GPUs nothing can be said
  EXPECT_LT(line_of(lines, "is_busy"), lines.size());
}

TEST_F(Page, SinceAMark) {
  PageView view;
  view.marked = true;
  const std::vector<std::string> lines = page_lines(before_, now_, view);
  EXPECT_NE(lines[0].find("(since 10.00 s)"), std::string::npos) << lines[0];
  EXPECT_NE(lines.back().find("m forget the mark"), std::string::npos);
}

}  // namespace
}  // namespace tacho::watch
