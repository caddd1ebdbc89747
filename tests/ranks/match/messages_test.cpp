// Messages of MPI between ranks, and the clocks that follow from them (ranks/match/messages.h, ranks/match/matching.h).
#include "ranks/match/messages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ranks/match/matching.h"

namespace tacho::ranks {
namespace {

// Ranks with their own clocks and messages between them; the time on a rank's clock at true time t.
struct Job {
  std::vector<RankRun> runs;
  std::vector<std::vector<MessageEvent>> events;
  Spools spools = *Spools::create();
  std::function<int64_t(uint32_t run, int64_t time)> clock = [](uint32_t, int64_t time) { return time; };

  explicit Job(size_t ranks) : runs(ranks), events(ranks) {
    for (size_t i = 0; i < ranks; ++i) {
      runs[i].rank = static_cast<int64_t>(i);
      runs[i].host = "host" + std::to_string(i);
    }
  }
  // Sent at `sent`; the receiver's call, begun at `begun`, lasts from `called` until it has come.
  void send(uint32_t from, uint32_t to, int64_t sent, int64_t begun, int64_t called, int64_t returned, int32_t tag = 1,
            int64_t bytes = 8) {
    MessageEvent out{};
    out.begun = out.start = clock(from, sent);
    out.end = out.start + 100;
    out.bytes = bytes;
    out.peer = to;
    out.tag = tag;
    out.is_send = true;
    events[from].push_back(out);
    MessageEvent in = out;
    in.begun = clock(to, begun);
    in.start = clock(to, called);
    in.end = clock(to, returned);
    in.peer = from;
    in.is_send = false;
    events[to].push_back(in);
  }
  void store() {
    for (size_t i = 0; i < runs.size(); ++i) {
      std::stable_sort(events[i].begin(), events[i].end(),
                       [](const MessageEvent& a, const MessageEvent& b) { return a.begun < b.begun; });
      runs[i].messages = events[i].size();
      runs[i].messages_at = *spools.messages.append(events[i]);
    }
  }
};

std::vector<RunClock> equal_clocks(size_t runs) {
  std::vector<RunClock> clocks(runs);
  for (uint32_t i = 0; i < runs; ++i) clocks[i].against = i;
  return clocks;
}

TEST(Messages, AreMatchedInTheOrderOfTheirReceivesBeginnings) {
  Job job(2);
  // The second receive is completed before the first.
  job.send(0, 1, 1000, 100, 9000, 9100, 1, 8);
  job.send(0, 1, 2000, 200, 5000, 5100, 1, 16);
  job.send(0, 1, 1500, 150, 6000, 6100, 2, 32);
  job.store();
  std::vector<std::pair<int64_t, int64_t>> seen;
  const auto unmatched = match_messages(job.runs, job.spools.messages, [&](const MatchedMessage& message) {
    EXPECT_EQ(message.send.bytes, message.receive.bytes);
    seen.emplace_back(message.send.start, message.receive.end);
  });
  ASSERT_TRUE(unmatched.has_value());
  EXPECT_EQ(*unmatched, 0u);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Messages, WithoutTheirOtherHalfAreCounted) {
  Job job(2);
  job.send(0, 1, 1000, 100, 900, 1100);
  job.events[1].clear();
  MessageEvent stranger{};
  stranger.peer = 7;
  job.events[1].push_back(stranger);
  job.store();
  const auto unmatched = match_messages(job.runs, job.spools.messages, [](const MatchedMessage&) { ADD_FAILURE(); });
  ASSERT_TRUE(unmatched.has_value());
  EXPECT_EQ(*unmatched, 2u);
}

TEST(Messages, WhoWaitsForOneWhoWaitsBlamesTheFirst) {
  Job job(3);
  // Rank 1 waits 1000 ... 50000 for rank 0; rank 2 waits 2000 ... 60000 for rank 1.
  job.send(0, 1, 50'000, 1'000, 1'000, 50'500);
  job.send(1, 2, 60'000, 2'000, 2'000, 60'500);
  job.store();
  const auto report = look_at_messages(job.runs, job.spools.messages, equal_clocks(3));
  ASSERT_TRUE(report.has_value());
  const Waited one = waited_between(report->waits[1], 0, 100'000);
  EXPECT_EQ(one.time, 49'000);
  EXPECT_EQ(one.blamed, 0u);
  const Waited two = waited_between(report->waits[2], 0, 100'000);
  EXPECT_EQ(two.time, 58'000);
  EXPECT_EQ(two.blamed, 0u);
  EXPECT_EQ(two.most, 48'000);  // the rest is rank 1's own
  EXPECT_EQ(waited_between(report->waits[2], 0, 12'000).time, 10'000);
  ASSERT_EQ(report->late.size(), 2u);
  EXPECT_EQ(report->late[0].waited, 58'000);
  EXPECT_EQ(report->late[0].from, 1u);
  EXPECT_EQ(report->pairs.at({0, 1}), std::make_pair(int64_t{1}, int64_t{8}));
}

TEST(Messages, NobodyWaitsForWhatHasComeAlready) {
  Job job(2);
  job.send(0, 1, 1'000, 500, 50'000, 50'100);
  job.store();
  const auto report = look_at_messages(job.runs, job.spools.messages, equal_clocks(2));
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->waits[1].empty());
  EXPECT_TRUE(report->late.empty());
}

// A ping-pong of a minute: a message each way every 10 ms, which takes 5 to 45 us.
void ping_pong(Job& job) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> extra(1 / 8e3);
  for (int64_t i = 0; i < 6'000; ++i)
    for (const uint32_t from : {0u, 1u}) {
      const int64_t sent = i * 10'000'000 + from * 4'000'000;
      const auto took = static_cast<int64_t>(5'000 + std::min(extra(random), 40e3));
      job.send(from, 1 - from, sent, sent - 1'000'000, sent - 1'000'000, sent + took);
    }
  job.store();
}

// The largest error of the clocks that tacho finds, and the residual that it states.
std::pair<double, double> error_and_residual(Job& job, int64_t except_from = 0, int64_t except_to = 0) {
  const auto clocks = relate_clocks(job.runs, job.spools);
  EXPECT_TRUE(clocks.has_value());
  EXPECT_TRUE((*clocks)[1].related);
  EXPECT_TRUE((*clocks)[1].by_messages);
  double worst = 0;
  for (int64_t time = 0; time < 60'000'000'000; time += 50'000'000) {
    if (time > except_from && time < except_to) continue;
    const int64_t found = common_time(*clocks, 1, job.clock(1, time));
    worst = std::max(worst, std::abs(static_cast<double>(found - job.clock(0, time))));
  }
  return {worst, (*clocks)[1].residual};
}

TEST(MessageClocks, AnOffsetIsRecoveredWithinTheResidual) {
  Job job(2);
  job.clock = [](uint32_t run, int64_t time) { return time + (run == 1 ? 123'456'789 : 0); };
  ping_pong(job);
  const auto [error, residual] = error_and_residual(job);
  EXPECT_LE(error, residual);
  EXPECT_LT(residual, 20'000);
}

TEST(MessageClocks, ADriftIsRecoveredWithinTheResidual) {
  Job job(2);
  job.clock = [](uint32_t run, int64_t time) {
    return run == 1 ? time + 1'000'000 + static_cast<int64_t>(50e-6 * static_cast<double>(time)) : time;
  };
  ping_pong(job);
  const auto [error, residual] = error_and_residual(job);
  EXPECT_LE(error, residual);
  EXPECT_LT(residual, 20'000);
}

TEST(MessageClocks, AStepIsRecoveredWithinTheResidual) {
  constexpr int64_t kStep = 30'000'000'000;
  Job job(2);
  job.clock = [](uint32_t run, int64_t time) {
    return run == 1 ? time + (time < kStep ? 2'000'000 : 7'000'000) : time;
  };
  ping_pong(job);
  // Where between two groups of messages the clock jumped cannot be known.
  const auto [error, residual] = error_and_residual(job, kStep - 200'000'000, kStep + 200'000'000);
  EXPECT_LE(error, residual);
  EXPECT_LT(residual, 20'000);
}

}  // namespace
}  // namespace tacho::ranks
