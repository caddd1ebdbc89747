// Messages of MPI (messages.h).
#include "ranks/match/messages.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <unordered_map>

#include "base/saturating.h"

namespace tacho::ranks {
namespace {

// Messages that overtake each other never: of one communicator, sender, receiver and tag.
struct Channel {
  uint32_t communicator, from, to;
  int32_t tag;
  bool operator==(const Channel&) const = default;
};
struct ChannelHash {
  size_t operator()(const Channel& channel) const {
    uint64_t hash = static_cast<uint64_t>(channel.communicator) << 32 | static_cast<uint32_t>(channel.tag);
    hash = hash * 0x9e3779b97f4a7c15ULL ^ (static_cast<uint64_t>(channel.from) << 32 | channel.to);
    return static_cast<size_t>((hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ULL);
  }
};

class MessageReader {
 public:
  MessageReader(const RankRun& run, const Spool<MessageEvent>& spool) : run_(run), spool_(spool) {}
  Result<bool> next() {
    if (++at_ == buffer_.size()) {
      const size_t count = std::min<size_t>(256, run_.messages - read_);
      buffer_.resize(count);
      TACHO_TRY(spool_.read(run_.messages_at + read_, count, buffer_.data()));
      read_ += count;
      at_ = 0;
    }
    return !buffer_.empty();
  }
  const MessageEvent& event() const { return buffer_[at_]; }
  int64_t time() const { return event().begun + run_.clock_shift; }

 private:
  const RankRun& run_;
  const Spool<MessageEvent>& spool_;
  std::vector<MessageEvent> buffer_;
  size_t at_ = static_cast<size_t>(-1), read_ = 0;
};

}  // namespace

Result<size_t> match_messages(std::span<const RankRun> runs, const Spool<MessageEvent>& spool,
                              const std::function<void(const MatchedMessage&)>& visit) {
  std::unordered_map<int64_t, uint32_t> run_of;
  std::vector<MessageReader> readers;
  readers.reserve(runs.size());
  using Head = std::pair<int64_t, uint32_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  for (uint32_t run = 0; run < runs.size(); ++run) {
    run_of.try_emplace(runs[run].rank, run);
    readers.emplace_back(runs[run], spool);
    TACHO_ASSIGN(const bool more, readers[run].next());
    if (more) heads.emplace(readers[run].time(), run);
  }
  struct Pending {
    std::deque<MessageEvent> sends, receives;
    uint64_t done = 0;
  };
  std::unordered_map<Channel, Pending, ChannelHash> channels;
  size_t unmatched = 0;
  while (!heads.empty()) {
    const uint32_t run = heads.top().second;
    heads.pop();
    const MessageEvent event = readers[run].event();
    TACHO_ASSIGN(const bool more, readers[run].next());
    if (more) heads.emplace(readers[run].time(), run);
    const auto other = run_of.find(event.peer);
    if (other == run_of.end()) {
      ++unmatched;
      continue;
    }
    const Channel channel{event.communicator, event.is_send ? run : other->second, event.is_send ? other->second : run,
                          event.tag};
    Pending& pending = channels[channel];
    std::deque<MessageEvent>& waiting = event.is_send ? pending.receives : pending.sends;
    if (waiting.empty()) {
      (event.is_send ? pending.sends : pending.receives).push_back(event);
      continue;
    }
    MatchedMessage message{channel.from, channel.to, event, waiting.front(), pending.done++};
    if (!event.is_send) std::swap(message.send, message.receive);
    waiting.pop_front();
    visit(message);
  }
  for (const auto& [channel, pending] : channels) unmatched += pending.sends.size() + pending.receives.size();
  return unmatched;
}

Result<std::map<std::pair<uint32_t, uint32_t>, MessageSamples>> message_samples(std::span<const RankRun> runs,
                                                                                const Spool<MessageEvent>& spool) {
  // The fastest message each way of the newest group, and where it stood on the later run's clock.
  constexpr size_t kGroup = 4, kMostSamples = 4096;
  struct Way {
    size_t count = 0;
    int64_t least = 0, time = 0;
  };
  struct Pair {
    Way there, back;
    size_t stride = 1, seen = 0;
    std::vector<int64_t> half_trips;
  };
  std::map<std::pair<uint32_t, uint32_t>, Pair> pairs;
  std::map<std::pair<uint32_t, uint32_t>, MessageSamples> samples;
  TACHO_ASSIGN([[maybe_unused]] const size_t unmatched, match_messages(runs, spool, [&](const MatchedMessage& message) {
                 if (message.from == message.to) return;
                 const uint32_t early = std::min(message.from, message.to), late = std::max(message.from, message.to);
                 const int64_t sent = message.send.start + runs[message.from].clock_shift;
                 const int64_t received = message.receive.end + runs[message.to].clock_shift;
                 Pair& pair = pairs[{late, early}];
                 Way& way = message.to == late ? pair.there : pair.back;
                 const int64_t took = received - sent;
                 if (way.count++ == 0 || took < way.least) {
                   way.least = took;
                   way.time = message.to == late ? received : sent;
                 }
                 if (pair.there.count < kGroup || pair.back.count < kGroup) return;
                 const int64_t offset = (pair.there.least - pair.back.least) / 2;
                 const int64_t time = pair.there.time + (pair.back.time - pair.there.time) / 2;
                 const int64_t half_trip = std::max<int64_t>(0, (pair.there.least + pair.back.least) / 2);
                 pair.there = pair.back = {};
                 if (pair.seen++ % pair.stride != 0) return;
                 std::vector<ClockSample>& list = samples[{late, early}].samples;
                 if (list.size() == kMostSamples) {
                   for (size_t i = 0; i < kMostSamples / 2; ++i) {
                     list[i] = list[2 * i];
                     pair.half_trips[i] = pair.half_trips[2 * i];
                   }
                   list.resize(kMostSamples / 2);
                   pair.half_trips.resize(kMostSamples / 2);
                   pair.stride *= 2;
                 }
                 list.push_back({time, time - offset});
                 pair.half_trips.push_back(half_trip);
               }));
  for (auto& [runs_of_pair, found] : samples) {
    std::vector<int64_t>& trips = pairs[runs_of_pair].half_trips;
    const auto middle = trips.begin() + static_cast<int64_t>(trips.size() / 2);
    std::nth_element(trips.begin(), middle, trips.end());
    found.half_trip = *middle;
  }
  return samples;
}

Result<MessageReport> look_at_messages(std::span<const RankRun> runs, const Spool<MessageEvent>& spool,
                                       std::span<const RunClock> clocks) {
  constexpr int64_t kShortest = 1'000;  // ns: a shorter wait is the call itself
  constexpr size_t kMostLate = 1000;
  MessageReport report;
  report.waits.resize(runs.size());
  struct Wait {
    int64_t start, end;
    uint32_t waiting, sender;
  };
  std::vector<Wait> waits;
  const auto longer = [](const LateMessage& a, const LateMessage& b) {
    return a.waited != b.waited ? a.waited > b.waited : a.sent_at < b.sent_at;
  };
  TACHO_ASSIGN(report.unmatched, match_messages(runs, spool, [&](const MatchedMessage& message) {
                 ++report.matched;
                 auto& [count, bytes] = report.pairs[{message.from, message.to}];
                 ++count;
                 add_saturating(bytes, std::max<int64_t>(message.send.bytes, 0));
                 if (message.from == message.to) return;
                 const auto at = [&](uint32_t run, int64_t time) {
                   return common_time(clocks, run, time + runs[run].clock_shift);
                 };
                 const int64_t sent = at(message.from, message.send.start);
                 const int64_t called = at(message.to, message.receive.start);
                 const int64_t returned = at(message.to, message.receive.end);
                 const int64_t until = std::min(sent, returned);
                 if (until - called < kShortest) return;
                 waits.push_back({called, until, message.to, message.from});
                 report.late.push_back({message.from, message.to, message.send.tag, message.send.communicator,
                                        message.number, message.send.bytes, sent, until - called, until,
                                        message.send.start - (sent - until), message.send.thread, Meanwhile{}});
                 if (report.late.size() == 2 * kMostLate) {
                   std::nth_element(report.late.begin(), report.late.begin() + kMostLate, report.late.end(), longer);
                   report.late.resize(kMostLate);
                 }
               }));
  // Only the calling rank records a one-sided operation.
  std::map<int64_t, uint32_t> run_of;
  for (uint32_t run = 0; run < runs.size(); ++run) run_of.try_emplace(runs[run].rank, run);
  for (const RankRun& run : runs)
    for (const auto& [pair, sums] : run.one_sided) {
      const auto from = run_of.find(pair.first), to = run_of.find(pair.second);
      if (from == run_of.end() || to == run_of.end()) continue;
      auto& [count, bytes] = report.pairs[{from->second, to->second}];
      count += sums.first;
      bytes += sums.second;
    }
  std::sort(report.late.begin(), report.late.end(), longer);
  if (report.late.size() > kMostLate) report.late.resize(kMostLate);

  // In order of their ends, so that the sender's own waits are known first.
  std::sort(waits.begin(), waits.end(),
            [](const Wait& a, const Wait& b) { return a.end != b.end ? a.end < b.end : a.waiting < b.waiting; });
  for (const Wait& wait : waits) {
    std::vector<MessageWait>& own = report.waits[wait.waiting];
    // One call may wait for several messages: the later one counts from where the earlier came.
    const int64_t start = own.empty() ? wait.start : std::max(wait.start, own.back().end);
    if (start >= wait.end) continue;
    const std::vector<MessageWait>& theirs = report.waits[wait.sender];
    int64_t at = start;
    auto their =
        std::partition_point(theirs.begin(), theirs.end(), [&](const MessageWait& one) { return one.end <= start; });
    const auto add = [&](int64_t until, uint32_t blamed) {
      if (until > at) own.push_back({at, until, blamed});
      at = std::max(at, until);
    };
    for (; their != theirs.end() && their->start < wait.end; ++their) {
      add(std::min(their->start, wait.end), wait.sender);
      // If the two ranks wait for each other, blame the sender.
      add(std::min(their->end, wait.end), their->blamed == wait.waiting ? wait.sender : their->blamed);
    }
    add(wait.end, wait.sender);
  }
  return report;
}

Waited waited_between(std::span<const MessageWait> waits, int64_t from, int64_t to) {
  Waited all;
  std::map<uint32_t, int64_t> by_run;
  auto at = std::partition_point(waits.begin(), waits.end(), [&](const MessageWait& one) { return one.end <= from; });
  for (; at != waits.end() && at->start < to; ++at) {
    const int64_t time = std::min(at->end, to) - std::max(at->start, from);
    add_saturating(all.time, time);
    add_saturating(by_run[at->blamed], time);
  }
  for (const auto& [run, time] : by_run)
    if (time > all.most) {
      all.most = time;
      all.blamed = run;
    }
  return all;
}

}  // namespace tacho::ranks
