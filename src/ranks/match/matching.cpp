// Matching of collectives (matching.h).
#include "ranks/match/matching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "ranks/match/messages.h"

namespace tacho::ranks {
namespace {

constexpr size_t kBuffered = 64;  // arrivals of a run in memory

using Numbered = std::map<uint32_t, int64_t>;

class ArrivalReader {
 public:
  ArrivalReader(const RankRun& run, const Spool<Arrival>& spool, const Numbered& numbered)
      : run_(run), spool_(spool), numbered_(numbered) {}
  Result<const Arrival*> next() {
    if (at_ == run_.arrivals) return nullptr;
    if (at_ == read_) {
      const size_t count = std::min(kBuffered, run_.arrivals - at_);
      buffer_.resize(count);
      TACHO_TRY(spool_.read(run_.spool_at + at_, count, buffer_.data()));
      first_ = at_;
      read_ = at_ + count;
      if (!numbered_.empty())
        for (Arrival& arrival : buffer_) {
          renumber(arrival.communicator, arrival.number, arrival.sequence);
          renumber(arrival.previous_communicator, arrival.previous_number, arrival.previous_sequence);
        }
    }
    return &buffer_[at_++ - first_];
  }

 private:
  void renumber(uint32_t communicator, int64_t number, uint32_t& sequence) const {
    const auto known = numbered_.find(communicator);
    if (known == numbered_.end() || number < known->second) return;
    // Beyond 32 bits two numbers could meet; so many collectives of one recording do not.
    sequence = static_cast<uint32_t>(number - known->second);
  }

  const RankRun& run_;
  const Spool<Arrival>& spool_;
  const Numbered& numbered_;
  std::vector<Arrival> buffer_;
  size_t at_ = 0, read_ = 0, first_ = 0;
};

bool ends_together(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kAllGather ||
         operation == Operation::kReduceScatter || operation == Operation::kAllToAll ||
         operation == Operation::kBarrier;
}

}  // namespace

std::map<uint32_t, int64_t> numbered_on_all(std::span<const RankRun> runs) {
  Numbered out;
  std::set<uint32_t> without;
  for (const RankRun& run : runs)
    for (const uint32_t communicator : run.communicators) {
      const auto first = run.numbered.find(communicator);
      if (first == run.numbered.end()) {
        without.insert(communicator);
        continue;
      }
      const auto [known, fresh] = out.try_emplace(communicator, first->second);
      if (!fresh) known->second = std::min(known->second, first->second);
    }
  for (const uint32_t communicator : without) out.erase(communicator);
  return out;
}

Status match_collectives(std::span<const RankRun> runs, const Spool<Arrival>& spool,
                         const std::function<void(std::span<Participant>, bool)>& visit) {
  std::vector<uint32_t> expected;
  const Numbered numbered = numbered_on_all(runs);
  std::vector<ArrivalReader> readers;
  readers.reserve(runs.size());
  for (const RankRun& run : runs) {
    readers.emplace_back(run, spool, numbered);
    for (const uint32_t communicator : run.communicators) {
      if (expected.size() <= communicator) expected.resize(communicator + 1, 0);
      ++expected[communicator];
    }
  }
  std::unordered_map<uint64_t, std::vector<Participant>> pending;
  std::vector<std::vector<Participant>> spare;
  const auto by_run = [](const Participant& a, const Participant& b) { return a.run < b.run; };
  size_t left = runs.size();
  std::vector<bool> done(runs.size(), false);
  while (left > 0)
    for (size_t run = 0; run < runs.size(); ++run) {
      if (done[run]) continue;
      TACHO_ASSIGN(const Arrival* arrival, readers[run].next());
      if (arrival == nullptr) {
        done[run] = true;
        --left;
        continue;
      }
      const uint64_t key = static_cast<uint64_t>(arrival->communicator) << 32 | arrival->sequence;
      const auto [found, fresh] = pending.try_emplace(key);
      if (fresh && !spare.empty()) {
        found->second = std::move(spare.back());
        spare.pop_back();
      }
      found->second.push_back({static_cast<uint32_t>(run), *arrival});
      if (found->second.size() < expected[arrival->communicator]) continue;
      std::vector<Participant> whole = std::move(found->second);
      pending.erase(found);
      // Mostly they come in this order.
      if (!std::is_sorted(whole.begin(), whole.end(), by_run)) std::sort(whole.begin(), whole.end(), by_run);
      visit(whole, true);
      whole.clear();
      if (spare.size() < 64) spare.push_back(std::move(whole));
    }
  std::map<uint64_t, std::vector<Participant>> rest(std::make_move_iterator(pending.begin()),
                                                    std::make_move_iterator(pending.end()));
  for (auto& [key, participants] : rest) {
    std::sort(participants.begin(), participants.end(), by_run);
    visit(participants, false);
  }
  return {};
}

Result<std::vector<RunClock>> relate_clocks(std::span<const RankRun> runs, const Spools& spools) {
  // Samples of a run against the first run of each of its collectives; every second one goes when there are too many.
  struct Samples {
    std::vector<ClockSample> kept;
    size_t stride = 1, seen = 0;
    bool messages = false, numbered = false;
    int64_t half_trip = 0;
  };
  constexpr size_t kMostSamples = 2048;
  std::vector<std::map<uint32_t, Samples>> samples(runs.size());
  TACHO_TRY(match_collectives(runs, spools.arrivals, [&](std::span<Participant> participants, bool complete) {
    if (!complete || participants.size() < 2 || !ends_together(participants[0].arrival.operation)) return;
    const Participant& first = participants[0];
    for (const Participant& other : participants.subspan(1)) {
      if (other.arrival.operation != first.arrival.operation || other.arrival.bytes != first.arrival.bytes) continue;
      Samples& list = samples[other.run][first.run];
      list.numbered = first.arrival.by_host;
      if (list.seen++ % list.stride != 0) continue;
      if (list.kept.size() == kMostSamples) {
        for (size_t i = 0; i < kMostSamples / 2; ++i) list.kept[i] = list.kept[2 * i];
        list.kept.resize(kMostSamples / 2);
        list.stride *= 2;
      }
      list.kept.push_back(
          {other.arrival.end + runs[other.run].clock_shift, first.arrival.end + runs[first.run].clock_shift});
    }
  }));
  // Use messages where there are too few collectives.
  constexpr size_t kEnough = 8;
  if (std::any_of(runs.begin(), runs.end(), [](const RankRun& run) { return run.messages > 0; })) {
    TACHO_ASSIGN(auto by_messages, message_samples(runs, spools.messages));
    for (auto& [pair, list] : by_messages) {
      Samples& all = samples[pair.first][pair.second];
      if (all.kept.size() < std::min(kEnough, list.samples.size())) {
        all.kept = std::move(list.samples);
        all.messages = all.numbered = true;
        all.half_trip = list.half_trip;
      }
    }
  }
  std::vector<RunClock> clocks(runs.size());
  for (uint32_t run = 0; run < runs.size(); ++run) {
    RunClock& clock = clocks[run];
    clock.against = run;
    clock.related = run == 0;
    // The earliest run with enough in common; else the one with most.
    size_t most = 0;
    for (const auto& [against, list] : samples[run]) {
      if (list.kept.size() <= most) continue;
      clock.against = against;
      most = list.kept.size();
      if (most >= kEnough) break;
    }
    if (most == 0) continue;
    std::vector<int64_t> offsets;
    for (const ClockSample& sample : samples[run][clock.against].kept)
      offsets.push_back(sample.time - sample.reference);
    std::nth_element(offsets.begin(), offsets.begin() + static_cast<int64_t>(offsets.size() / 2), offsets.end());
    clock.by_messages = samples[run][clock.against].messages;
    clock.numbered = samples[run][clock.against].numbered;
    clock.fit = fit_clock(std::move(samples[run][clock.against].kept));
    const RunClock& base = clocks[clock.against];
    const Samples& used = samples[run][clock.against];
    clock.residual = clock.fit.residual + static_cast<double>(used.half_trip) + base.residual;
    clock.typical = offsets[offsets.size() / 2] + base.typical;
    clock.related = base.related;
  }
  return clocks;
}

std::vector<uint32_t> drop_equal_clocks(std::span<const RankRun> runs, std::span<RunClock> clocks) {
  std::vector<uint32_t> odd;
  for (uint32_t run = 0; run < runs.size(); ++run) {
    RunClock& clock = clocks[run];
    if (clock.against == run || clock.fit.pieces.empty()) continue;
    const bool same_host = !runs[run].host.empty() && runs[run].host == runs[clock.against].host;
    double largest = 0;
    for (const ClockFit::Piece& piece : clock.fit.pieces)
      largest = std::max({largest, std::abs(static_cast<double>(piece.offset)),
                          std::abs(static_cast<double>(clock.fit.offset(piece.last)))});
    constexpr double kAgree = 20'000;  // ns
    if (same_host && largest > 1e6 && !clock.numbered) odd.push_back(run);
    if (same_host || largest <= std::max(kAgree, 3 * clock.residual)) clock.fit.pieces.clear();
  }
  return odd;
}

}  // namespace tacho::ranks
