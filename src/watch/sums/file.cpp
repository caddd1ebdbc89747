// Writing and keeping sums (file.h).
#include "watch/sums/file.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "analysis/sums/names.h"
#include "base/format.h"
#include "base/thread.h"
#include "trace/write/writer.h"

namespace tacho::watch {
namespace {

namespace row = event::row;
using event::Table, event::WatchKind;

constexpr double kNs = 1e9;

std::string category_of(WatchKind kind) {
  switch (kind) {
    case WatchKind::kKernel:
      return "watch.kernel";
    case WatchKind::kGraph:
      return "watch.graph";
    case WatchKind::kCopy:
      return "watch.copy";
    case WatchKind::kFill:
      return "watch.fill";
    case WatchKind::kWait:
      return "watch.wait";
    case WatchKind::kAllocation:
      return "watch.allocation";
    case WatchKind::kNone:
      break;
  }
  return std::string(analysis::kGpuCategory);
}

struct Quantity {
  std::string_view block, word, unit;
};
constexpr Quantity kQuantities[] = {
    {analysis::kCountBlock, "count", "1/s"},          {analysis::kBytesBlock, "bytes", "B/s"},
    {analysis::kTimedBlock, "timed", "1/s"},          {analysis::kUntoldBlock, "untold", "1/s"},
    {analysis::kTimeBlock, "time", "ns/s"},           {analysis::kErrorBlock, "standard error", "ns/s"},
    {analysis::kCommonBlock, "common error", "ns/s"},
};
constexpr size_t kQuantityCount = std::size(kQuantities);

class SumsWriter {
 public:
  SumsWriter(trace::TraceWriter& writer, const SumPeriods& periods) : writer_(writer), periods_(periods) {
    tracks_.resize(periods.series().size() * kQuantityCount);
    shown_.resize(tracks_.size());
    period_ = track(std::string(analysis::kPeriodCategory), "length of periods", "s", analysis::kPeriodCategory, "");
  }
  void put(const SumPeriod& period) {
    const double seconds = static_cast<double>(period.length()) / kNs;
    reading(period_, period.begin, seconds);
    std::vector<bool> now(tracks_.size());
    for (const PeriodSum& sum : period.sums) {
      const bool timed = sum.timed > 0;
      const double values[kQuantityCount] = {static_cast<double>(sum.count),
                                             static_cast<double>(sum.bytes),
                                             static_cast<double>(sum.timed),
                                             static_cast<double>(sum.untold),
                                             sum.time_ns,
                                             sum.error_ns,
                                             sum.common_ns};
      for (size_t i = 0; i < kQuantityCount; ++i) {
        const bool of_time =
            kQuantities[i].block == analysis::kTimeBlock || kQuantities[i].block == analysis::kErrorBlock;
        if (of_time ? !timed : values[i] == 0) continue;
        const size_t at = sum.series * kQuantityCount + i;
        now[at] = true;
        reading(track_of(sum.series, i), period.begin, values[i] / seconds);
      }
    }
    // Lines of viewers go on at their last value: what has ended gets a zero.
    for (size_t at = 0; at < now.size(); ++at)
      if (shown_[at] && !now[at]) reading(tracks_[at], period.begin, 0);
    shown_ = std::move(now);
    for (const auto& [series, value] : period.gauges) reading(gauge_track(series), period.begin, value);
  }

 private:
  int64_t track(const std::string& category, const std::string& name, std::string_view unit, std::string_view block,
                std::string_view text) {
    const int64_t counter = writer_.dimension(row::Counter{.name = writer_.string(name),
                                                           .unit = writer_.string(unit),
                                                           .text = writer_.string(text),
                                                           .block = writer_.string(block)});
    return writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                        .name = writer_.string(name),
                                        .category = writer_.string(category),
                                        .counter = counter});
  }
  int64_t track_of(uint32_t series, size_t quantity) {
    int64_t& found = tracks_[series * kQuantityCount + quantity];
    const SumSeries& of = periods_.series()[series];
    const Quantity& what = kQuantities[quantity];
    if (found == 0)
      found = track(category_of(of.kind), fmt::format("{}: {}", of.name, what.word), what.unit, what.block, of.name);
    return found;
  }
  int64_t gauge_track(uint32_t series) {
    int64_t& found = tracks_[series * kQuantityCount];
    const SumSeries& of = periods_.series()[series];
    if (found == 0) found = track(category_of(of.kind), of.name, of.unit, analysis::kGaugeBlock, of.name);
    return found;
  }
  void reading(int64_t track, int64_t time, double value) {
    writer_.add(row::Reading{.track = track, .start = time, .value = std::bit_cast<int64_t>(value)});
  }

  trace::TraceWriter& writer_;
  const SumPeriods& periods_;
  std::vector<int64_t> tracks_;  // by series and quantity; 0: not yet written
  std::vector<bool> shown_;      // the same: the last period had a value
  int64_t period_ = 0;
};

}  // namespace

Status write_sums(const std::string& path, const SumPeriods& periods, const SumFacts& facts, bool durable) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer,
               trace::TraceWriter::create(path, {.overwrite = true, .durable = durable}));
  const std::string_view program = std::string_view(facts.command).substr(0, facts.command.find(' '));
  const std::vector<const SumPeriod*> all = periods.periods();
  writer->dimension(row::Process{.pid = event::kUnknown,
                                 .parent_pid = event::kUnknown,
                                 .start = all.empty() ? 0 : all.front()->begin,
                                 .name = writer->string(program.substr(program.rfind('/') + 1)),
                                 .command = writer->string(facts.command),
                                 .host = writer->string(facts.host),
                                 .rank = event::kUnknown});
  for (const ClockTuple& clock : facts.clocks)
    writer->add(row::Clock{.raw = clock.raw,
                           .monotonic = clock.monotonic,
                           .boottime = clock.boottime,
                           .realtime = clock.realtime,
                           .vendor = event::kUnknown});
  writer->property(Table::kEnd, 0, "watch", "sums of periods");
  for (const std::string& note : facts.notes) writer->note(0, event::NoteSeverity::kInfo, note);
  SumsWriter sums(*writer, periods);
  for (const SumPeriod* period : all) sums.put(*period);
  return writer->finish();
}

SumKeeper::SumKeeper(std::string path, std::string command, std::function<WatchMoment()> now)
    : path_(std::move(path)), now_(std::move(now)), periods_(raw_now(), read_clock(CLOCK_REALTIME) - raw_now()) {
  facts_.command = std::move(command);
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) facts_.host = host;
  facts_.clocks.push_back(sample_clocks());
  thread_ = thread_without_signals([this] { loop(); });
}

SumKeeper::~SumKeeper() {
  static_cast<void>(finish({}));
}

void SumKeeper::take() {
  constexpr int64_t kHourNs = 3'600'000'000'000;
  const WatchMoment moment = now_();
  const int64_t now = raw_now();
  periods_.add(now, moment.snapshot, moment.gpus);
  if (now - facts_.clocks.back().raw >= kHourNs) facts_.clocks.push_back(sample_clocks());
}

void SumKeeper::loop() {
  constexpr int64_t kSecond = 1'000'000'000, kRest = 100;      // times as long as writing took
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);  // of this thread
  int64_t next = raw_now() + kSecond, next_file = raw_now() + 60 * kSecond;
  std::unique_lock held(lock_);
  for (;;) {
    const int64_t rest = std::max<int64_t>(next - raw_now(), 0);
    if (changed_.wait_for(held, std::chrono::nanoseconds(rest), [this] { return end_; })) return;
    take();
    const int64_t now = raw_now();
    next = std::max(next + kSecond, now);
    if (now < next_file) continue;
    SumFacts facts = facts_;
    facts.clocks.push_back(sample_clocks());
    facts.notes.emplace_back("The program is still being watched: later sums follow.");
    written_ = write_sums(path_, periods_, facts, false);
    malloc_trim(0);  // what the writer took would stay with this thread for days
    next_file = raw_now() + std::max(60 * kSecond, kRest * (raw_now() - now));
  }
}

Status SumKeeper::finish(std::vector<std::string> notes) {
  if (!thread_.joinable()) return written_;
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
  take();
  facts_.clocks.push_back(sample_clocks());
  facts_.notes = std::move(notes);
  written_ = write_sums(path_, periods_, facts_, true);
  return written_;
}

}  // namespace tacho::watch
