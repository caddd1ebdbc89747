// Counters of a rocpd database (recording_reader.h): values of dispatches and other events, and readings over time.
#include <algorithm>

#include "event/times.h"
#include "format/json/members.h"
#include "format/rocpd/recording_reader.h"

namespace tacho::format::rocpd {

using event::kUnknown;
using event::Table;
namespace row = event::row;

namespace {

constexpr size_t kMostCounters = 1 << 20;

}  // namespace

// A row of rocpd_pmc_event.
struct RecordingReader::PmcValue {
  int64_t event = 0, sample = 0, pmc = 0, row = 0;
  // Where in the hardware: XCC, shader engine, shader array, WGP, instance; kUnknown = not told.
  std::array<int64_t, 5> place = {kUnknown, kUnknown, kUnknown, kUnknown, kUnknown};
  int64_t pass = kUnknown;
  double value = 0;
  int64_t instance() const { return place.back(); }
};

// Numbers the values of a counter and event: those that follow each other are its instances. A counter that comes again
// behind others, or an instance that comes again, belongs to the next pass of a dispatch that was replayed.
class RecordingReader::PassFinder {
 public:
  struct Found {
    int64_t instance, pass;
  };
  /// `apart`: other rows lie between this value and the one before.
  Found next(const PmcValue& of, bool apart) {
    if (of.event != event_) {
      event_ = of.event;
      counters_.clear();
      instances_.clear();
      last_pmc_ = kUnknown;
    }
    const bool follows = of.pmc == last_pmc_ && !apart;
    last_pmc_ = of.pmc;
    if (of.instance() != kUnknown) {
      int64_t& times = instances_[{of.pmc, of.instance()}];
      return {of.instance(), of.pass != kUnknown ? of.pass : times++};
    }
    const auto [found, fresh] = counters_.try_emplace(of.pmc, Found{0, 0});
    Found& now = found.value();
    if (!fresh && follows) {
      ++now.instance;
    } else if (!fresh) {
      now = {0, now.pass + 1};
    }
    return {now.instance, of.pass != kUnknown ? of.pass : now.pass};
  }

 private:
  int64_t event_ = kUnknown, last_pmc_ = kUnknown;
  tsl::robin_map<int64_t, Found> counters_;
  NumberMap<2> instances_;
};

Status RecordingReader::counter_infos() {
  int64_t too_many = 0;
  TACHO_TRY(
      rows("rocpd_info_pmc", {"id", "name", "units", "description", "block", "agent_id", "pid"}, [&](NamedScan& scan) {
        if (pmcs_.size() >= kMostCounters) {
          ++too_many;
          return;
        }
        const int64_t counter = writer_.dimension(row::Counter{.name = writer_.string(scan.string(1)),
                                                               .unit = writer_.string(scan.string(2)),
                                                               .text = writer_.string(scan.string(3)),
                                                               .block = writer_.string(scan.string(4))});
        pmcs_.emplace(scan.id(0), PmcInfo{counter, device(scan.id(5)), scan.id(6)});
      }));
  if (too_many > 0) bad(Table::kCounter, too_many);
  return {};
}

RecordingReader::PmcValue RecordingReader::value_in(const NamedScan& scan) const {
  PmcValue value;
  value.row = scan.rowid();
  value.event = scan.id(0);
  value.sample = scan.id(1);
  value.pmc = scan.id(2);
  value.value = scan.decimal(3, __builtin_nan(""));
  for (int i = 0; i < 5; ++i) value.place[static_cast<size_t>(i)] = scan.number(4 + i);
  const std::string_view data = scan.string(9);
  if (data.size() <= 2) return value;
  static constexpr std::string_view kNames[] = {"xcc", "shader_engine", "shader_array", "wgp",  "instance", "XCC", "SE",
                                                "SA",  "WGP",           "INSTANCE",     "pass", "sample_id"};
  std::array<int64_t, std::size(kNames)> told{};
  json::number_members(data, kNames, told);
  for (size_t i = 0; i < 5; ++i)
    for (const int64_t place : {told[i], told[5 + i]})
      if (value.place[i] == kUnknown) value.place[i] = place;
  value.pass = told[10];
  if (value.sample == 0) value.sample = std::max<int64_t>(told[11], 0);
  return value;
}

// Calls each(value, apart) for the values of one event after the other, each event's in the order of the rows. `apart`
// is whether other events' rows lie between this value and the one before.
template <typename Each>
Status RecordingReader::values_by_event(Each each) {
  const Columns columns = {"event_id",      "sample_id",    "pmc_id", "value",    "xcc",
                           "shader_engine", "shader_array", "wgp",    "instance", "extdata"};
  const std::unique_ptr<NamedScan> ids = scan_of("rocpd_pmc_event", {"event_id"});
  const std::unique_ptr<NamedScan> scan = scan_of("rocpd_pmc_event", columns);
  if (scan == nullptr) return {};
  bool ascending = true;
  for (int64_t last = INT64_MIN; ascending && ids->next(); last = ids->id(0)) ascending = ids->id(0) >= last;
  TACHO_TRY(ids->status());
  if (ascending) {
    while (scan->next()) each(value_in(*scan), false);
    return scan->status();
  }
  struct Row {
    int64_t event, row;
    auto operator<=>(const Row&) const = default;
  };
  SortedFile<Row> order;
  while (scan->next()) order.add({scan->id(0), scan->rowid()});
  TACHO_TRY(scan->status());
  TACHO_TRY(order.finish());
  const std::unique_ptr<NamedScan> sought = scan_of("rocpd_pmc_event", columns);
  Row now, before{0, INT64_MIN};
  while (order.next(now)) {
    if (sought->find(now.row)) each(value_in(*sought), now.event != before.event || now.row != before.row + 1);
    before = now;
  }
  return sought->status();
}

// The line of a counter that was read over time; streaming counters have one for each place in the hardware.
int64_t RecordingReader::reading_track(const PmcInfo& info, const PmcValue& value, int64_t track_id) {
  const std::array<int64_t, 7> key = {track_id,       value.pmc,      value.place[0], value.place[1],
                                      value.place[2], value.place[3], value.place[4]};
  const auto [found, fresh] = reading_tracks_.try_emplace(key, 0);
  if (!fresh) return found->second;
  const Line line = line_of_track(track_id);
  static constexpr std::string_view kShort[] = {"XCC", "SE", "SA", "WGP", "instance"};
  std::string place;
  for (size_t i = 0; i < value.place.size(); ++i)
    if (value.place[i] != kUnknown)
      place += fmt::format("{}{} {}", place.empty() ? "" : ", ", kShort[i], value.place[i]);
  std::string name(text(line.name));
  if (!place.empty()) name += fmt::format("{}[{}]", name.empty() ? "" : " ", place);
  return found.value() =
             writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                          .process = process(line.process != 0 ? line.process : info.process),
                                          .device = info.device,
                                          .name = writer_.string(name),
                                          .category = writer_.string("counter"),
                                          .counter = info.counter});
}

// A value at the time of a sample. False if there is no such sample.
bool RecordingReader::add_reading(const PmcInfo& info, const PmcValue& value, int64_t sample) {
  if (samples_ == nullptr || !samples_->find(sample)) return false;
  const int64_t time = time_in(*samples_, 1, 2);
  if (!event::is_time(time) || reading_tracks_.size() >= kMostCounters) return false;
  writer_.add(row::Reading{.track = reading_track(info, value, samples_->id(3)),
                           .start = time,
                           .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
  counted_samples_.add(sample, 0);
  return true;
}

Status RecordingReader::counters() {
  TACHO_TRY(targets_.finish());
  if (!counters_) return counted_samples_.finish();
  TACHO_TRY(counter_infos());
  TACHO_TRY(rows("rocpd_sample", {"id", "event_id"}, [&](NamedScan& scan) {
    if (scan.id(1) != 0) sample_of_event_.add(scan.id(1), scan.id(0));
  }));
  TACHO_TRY(sample_of_event_.finish());
  samples_ = scan_of("rocpd_sample", {"id", "timestamp", "timestamp_id", "track_id"});
  PassFinder passes;
  int64_t later = 0, unmeasured = 0;
  TACHO_TRY(values_by_event([&](PmcValue value, bool apart) {
    const auto info = pmcs_.find(value.pmc);
    if (info == pmcs_.end() || value.value != value.value) return bad(Table::kCounterValue);
    if (value.sample != 0) {
      if (!add_reading(info->second, value, value.sample)) bad(Table::kReading);
      return;
    }
    const auto* const replay = replays_.find(value.event);
    const auto* const target = targets_.find(replay != nullptr ? replay->value.first_event : value.event);
    if (target == nullptr) {
      const auto* const sample = sample_of_event_.find(value.event);
      if (sample == nullptr || !add_reading(info->second, value, sample->value)) bad(Table::kCounterValue);
      return;
    }
    const PassFinder::Found found = passes.next(value, apart);
    const int64_t pass = found.pass + (replay != nullptr ? replay->value.pass : 0);
    later += pass > 0;
    if (target->value.start == kUnknown) {
      ++unmeasured;
      return;
    }
    work_times_.counter_value({.process = target->value.process, .device = target->value.device},
                              {.track = target->value.track,
                               .start = target->value.start,
                               .ordinal = target->value.ordinal,
                               .dim = info->second.counter,
                               .instance = found.instance,
                               .pass = pass,
                               .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
  }));
  if (unmeasured > 0) writer_.lose(0, Table::kCounterValue, event::LossReason::kVendor, unmeasured);
  if (later > 0)
    writer_.note(
        0, event::NoteSeverity::kInfo,
        fmt::format("{} values of counters come from further passes of replayed dispatches: of each counter the "
                    "first pass counts",
                    later));
  return counted_samples_.finish();
}

}  // namespace tacho::format::rocpd
