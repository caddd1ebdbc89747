// The lines of the live page: order, rates, widths.
#include "watch/page_text.h"

#include <gtest/gtest.h>

#include "report/text.h"

namespace tacho::watch {
namespace {

RowSums timed_kernel(const std::string& name, uint64_t count, uint64_t each_ns) {
  RowSums row;
  row.kind = event::WatchKind::kKernel;
  row.name = name;
  row.count = count;
  row.levels[0] = {count, count, count * each_ns, static_cast<double>(count * each_ns * each_ns)};
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

}  // namespace
}  // namespace tacho::watch
