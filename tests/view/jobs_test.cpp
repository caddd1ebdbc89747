// Answers in the background: known ones at once, the newest question first, abandoned work ends.
#include "view/jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tacho::view {
namespace {

using std::chrono::milliseconds;

Jobs::Answer wait_for(Jobs& jobs, const std::string& key, const Jobs::Work& work) {
  Jobs::Answer answer;
  for (int i = 0; i < 2000 && answer == nullptr; ++i) answer = jobs.ask(key, work, 20);
  return answer;
}

TEST(Jobs, ComputeAnAnswerOnce) {
  Jobs jobs;
  std::atomic<int> times = 0;
  const Jobs::Work work = [&](const auto&) -> Result<std::string> { return std::to_string(++times); };
  for (int i = 0; i < 3; ++i) {
    const auto answer = wait_for(jobs, "one", work);
    ASSERT_TRUE(answer);
    EXPECT_EQ(**answer, "1");
  }
  const auto failed = wait_for(jobs, "two", [](const auto&) -> Result<std::string> { return fail("no"); });
  ASSERT_TRUE(failed);
  EXPECT_FALSE(*failed);
  EXPECT_FALSE(jobs.busy());
}

TEST(Jobs, ComputeFirstWhatWasAskedLast) {
  Jobs jobs;
  std::atomic<bool> go = false;
  std::string order;  // written by the one thread
  const auto work = [&](const std::string& name) -> Jobs::Work {
    return [&order, &go, name](const auto&) -> Result<std::string> {
      while (!go) std::this_thread::sleep_for(milliseconds(1));
      order += name;
      return name;
    };
  };
  EXPECT_EQ(jobs.ask("a", work("a"), 50), nullptr);
  EXPECT_TRUE(jobs.busy());
  for (const char* name : {"b", "c", "d", "e", "f", "g"}) EXPECT_EQ(jobs.ask(name, work(name), 0), nullptr);
  go = true;
  for (int i = 0; i < 2000 && jobs.busy(); ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(order, "agfed") << "what was under way, then the newest; of what nobody asks for again only a few wait";
}

TEST(Jobs, EndWhatNobodyWaitsFor) {
  std::atomic<bool> ended = false;
  {
    Jobs jobs;
    EXPECT_EQ(jobs.ask(
                  "long",
                  [&](const Jobs::GivenUp& given_up) -> Result<std::string> {
                    while (!given_up(0.25)) std::this_thread::sleep_for(milliseconds(5));
                    ended = true;
                    return fail("given up");
                  },
                  30),
              nullptr);
    EXPECT_FALSE(ended);
    EXPECT_EQ(jobs.done("long"), 0.25);
    EXPECT_EQ(jobs.done("another"), 0);
  }
  EXPECT_TRUE(ended) << "the end of the program waits for no answer";
}

}  // namespace
}  // namespace tacho::view
