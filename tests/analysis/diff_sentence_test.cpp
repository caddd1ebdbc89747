// What `tacho diff` says below its table (analysis/diff.h).
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "analysis/diff.h"

namespace tacho::analysis {
namespace {

Diff of(int64_t total_a, int64_t total_b, size_t rows) {
  Diff diff;
  diff.rows = rows;
  diff.total_a = total_a;
  diff.total_b = total_b;
  return diff;
}

Distribution calls_of(int64_t calls, int64_t total) {
  Distribution one;
  one.calls = calls;
  one.total = total;
  one.mean = calls > 0 ? static_cast<double>(total) / static_cast<double>(calls) : 0;
  return one;
}

DiffRow between(Distribution a, Distribution b, double p) {
  DiffRow row;
  row.name = "scale";
  row.in_a = a.calls > 0;
  row.in_b = b.calls > 0;
  row.a = a;
  row.b = b;
  row.difference = b.total - a.total;
  row.p = p;
  return row;
}

TEST(DiffSentence, TellsCallsFromDurations) {
  EXPECT_EQ(
      diff_sentence(of(20'000'000, 10'000'000, 1),
                    between(calls_of(20, 20'000'000), calls_of(40, 10'000'000), 0.00001)),
      "B takes 10.00 ms less than A (50.0 %). All of it is scale (-10.00 ms): 40 calls instead of 20, each 75.0 % "
      "shorter on average; the durations differ by more than noise (p < 0.001).");
  EXPECT_EQ(
      diff_sentence(of(20'000'000, 30'000'000, 1), between(calls_of(20, 20'000'000), calls_of(30, 30'000'000), 0.8)),
      "B takes 10.00 ms more than A (50.0 %). All of it is scale (+10.00 ms): 30 calls instead of 20, each as long on "
      "average; the durations do not differ by more than noise (p = 0.800).");
}

TEST(DiffSentence, TheLargestOfManyIsHeldAgainstTheirNumber) {
  const DiffRow row = between(calls_of(20, 20'000'000), calls_of(20, 21'000'000), 0.01);
  EXPECT_NE(diff_sentence(of(20'000'000, 21'000'000, 1), row).find("durations differ by more"), std::string::npos);
  EXPECT_NE(diff_sentence(of(20'000'000, 21'000'000, 10), row).find("do not differ by more"), std::string::npos);
}

TEST(DiffSentence, FewCallsTellNothing) {
  EXPECT_EQ(
      diff_sentence(of(1'000, 1'500, 1), between(calls_of(1, 1'000), calls_of(1, 1'500), std::nan(""))),
      "B takes 500 ns more than A (50.0 %). All of it is scale (+500 ns): 1 call, each 50.0 % longer on average; too "
      "few calls to tell it from noise (fewer than 8).");
}

TEST(DiffSentence, OneSideAlone) {
  const double none = std::nan("");
  EXPECT_EQ(diff_sentence(of(0, 1'000, 1), between({}, calls_of(2, 1'000), none)),
            "B takes 1.00 us more than A. All of it is scale (+1.00 us): 2 calls, only in B.");
  EXPECT_EQ(diff_sentence(of(3'000, 2'400, 2), between(calls_of(1, 1'000), {}, none)),
            "B takes 600 ns less than A (20.0 %). The largest change is scale (-1.00 us): 1 call, only in A.");
}

TEST(DiffSentence, ShareOfTheChange) {
  const auto words = [](int64_t total_b, int64_t row_b) {
    return diff_sentence(of(10'000, total_b, 2), between(calls_of(9, 5'000), calls_of(9, row_b), 0.5));
  };
  EXPECT_NE(words(11'000, 5'600).find("Most of it is scale (+600 ns)"), std::string::npos);
  EXPECT_NE(words(11'000, 5'400).find("The largest change is scale"), std::string::npos);
  EXPECT_NE(words(11'000, 7'000).find("The largest change is scale"), std::string::npos);  // others make up for it
  EXPECT_NE(words(9'900, 5'100).find("The largest change is scale"), std::string::npos);   // against the whole
  EXPECT_EQ(words(10'000, 5'000), "A and B take the same time.");
  EXPECT_NE(words(10'000, 6'000).find("the same time. The largest change is scale"), std::string::npos);
  EXPECT_EQ(diff_sentence(of(0, 0, 0), {}), "");
}

}  // namespace
}  // namespace tacho::analysis
