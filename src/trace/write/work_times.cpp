// Compares the times of device work with those of its calls and waits (work_times.h).
#include "trace/write/work_times.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "base/format.h"
#include "base/text/how_many.h"

namespace tacho::trace {

using event::CallRole;
using event::kUnknown;

namespace {

constexpr int64_t kTolerance = 20'000;    // ns; clocks that were paired are no nearer
constexpr int64_t kDoubtful = 1'000'000;  // ns; less than this is not believed of waits for an unnamed queue
constexpr int64_t kFarthest = 1LL << 60;  // ns; times beyond it are nonsense
constexpr size_t kMostDistances = 65'536;
constexpr size_t kMostWaits = 4096;
constexpr size_t kMostTries = 64;   // waits that are looked at for a piece of work
constexpr int64_t kLeastWaits = 3;  // for unnamed queues
constexpr size_t kRowsOfPiece = 4;  // fewer on the average: no clock drifts like that

std::string time_text(int64_t ns) {
  const double value = std::abs(static_cast<double>(ns));
  if (value >= 1e9) return fmt::format("{:.3f} s", value * 1e-9);
  if (value >= 1e6) return fmt::format("{:.3f} ms", value * 1e-6);
  return fmt::format("{:.1f} us", value * 1e-3);
}

int64_t middle_of(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool sane(int64_t time) {
  return time > -kFarthest && time < kFarthest;
}

}  // namespace

WorkTimes::WorkTimes(TraceWriter& writer, size_t entries, size_t held)
    : writer_(writer), size_(entries), most_held_(held) {}

WorkTimes::WorkTimes(TraceWriter& writer, Calls calls) : WorkTimes(writer, size_t{1} << 15, 8192) {
  apart_ = keeps_ = calls == Calls::kApart;
}

WorkTimes::Entry& WorkTimes::of(int64_t process, int64_t correlation) {
  if (entries_.empty()) entries_.resize(size_);
  const auto key = static_cast<uint64_t>(correlation) ^ static_cast<uint64_t>(process) * 0x9e3779b97f4a7c15ULL ^
                   static_cast<uint64_t>(correlation) >> 33;
  Entry& entry = entries_[key & (size_ - 1)];
  if (entry.process != process || entry.correlation != correlation) {
    if (keeps_far_ && entry.work != kUnknown) far_.add({entry.process, entry.correlation, entry.work, entry.device});
    entry = {};
    entry.process = process;
    entry.correlation = correlation;
  }
  return entry;
}

KnownCalls::Times WorkTimes::call_of(int64_t process, int64_t correlation) {
  if (apart_) return known_.find(process, correlation);
  const Entry& entry = of(process, correlation);
  return {entry.call, entry.end, entry.copies};
}

void WorkTimes::call(const Call& call) {
  if (apart_) {
    if (call.end != kUnknown && (call.role == CallRole::kWaitsForQueue || call.role == CallRole::kWaitsForDevice))
      known_.add({call.process, 0, call.start, call.end, call.role == CallRole::kWaitsForDevice});
    if (call.correlation != 0)
      known_.add(call.process, call.correlation, {call.start, call.end, call.role == CallRole::kCopies});
    return;
  }
  if (call.end != kUnknown && (call.role == CallRole::kWaitsForQueue || call.role == CallRole::kWaitsForDevice)) {
    if (waits_.size() < kMostWaits) waits_.resize(waits_.size() + 1);
    waits_[next_wait_++ % kMostWaits] = {call.process, 0, call.start, call.end, call.role == CallRole::kWaitsForDevice};
  }
  if (call.correlation == 0) return;
  Entry& entry = of(call.process, call.correlation);
  // A runtime's call and the driver's call in it have one number: the outer one counts.
  entry.call = entry.call == kUnknown ? call.start : std::min(entry.call, call.start);
  if (call.end != kUnknown) entry.end = entry.end == kUnknown ? call.end : std::max(entry.end, call.end);
  entry.copies = entry.copies || call.role == CallRole::kCopies;
  if (entry.work != kUnknown) compare(entry.call, entry.device, entry.work);
  entry.work = kUnknown;
}

void WorkTimes::queue_wait(int64_t process, int64_t track, int64_t start, int64_t end) {
  if (apart_) return known_.add({process, track, start, end, false});
  if (waits_.size() < kMostWaits) waits_.resize(waits_.size() + 1);
  waits_[next_wait_++ % kMostWaits] = {process, track, start, end, false};
}

size_t WorkTimes::device_of(const Origin& origin, int64_t track) {
  const auto [found, fresh] = numbers_.try_emplace({origin.process, origin.device}, devices_.size());
  if (fresh) {
    devices_.emplace_back();
    devices_.back().process = origin.process;
    devices_.back().row = origin.device;
    devices_.back().first_track = track;
    ++devices_of_[origin.process];
  }
  Device& device = devices_[found->second];
  device.several_tracks = device.several_tracks || device.first_track != track;
  return found->second;
}

template <typename RowOf>
void WorkTimes::add(const Origin& origin, const RowOf& row, bool launched) {
  if (!origin.timed || (known_ends_ && known_.empty())) return writer_.add(row);
  if (keeps_) return kept_.add({origin, row, launched, row.start});
  put(origin, row, launched);
}

template <typename RowOf>
void WorkTimes::put(const Origin& origin, const RowOf& row, bool launched) {
  const size_t number = device_of(origin, row.track);
  Device& device = devices_[number];
  if (device.trusted) {
    if constexpr (requires { row.correlation; })
      if (launched) check(origin.process, row.correlation, number, row.start);
    return writer_.add(row);
  }
  Held held{row, row.start, kUnknown, row.track, 0, origin.to_host, origin.blocking, launched};
  if constexpr (requires { row.duration; })
    if (row.duration != kUnknown && sane(row.start) && sane(row.duration)) held.end = row.start + row.duration;
  if constexpr (requires { row.correlation; }) held.correlation = row.correlation;
  device.held.push_back(held);
  if (device.held.size() >= most_held_) write(number, (device.held.size() + 1) / 2);
}

template void WorkTimes::add(const Origin&, const event::row::Dispatch&, bool);
template void WorkTimes::add(const Origin&, const event::row::Copy&, bool);
template void WorkTimes::add(const Origin&, const event::row::Fill&, bool);
template void WorkTimes::add(const Origin&, const event::row::Sync&, bool);
template void WorkTimes::add(const Origin&, const event::row::CounterValue&, bool);

// Work that is written compares itself with its call, now or when that comes.
void WorkTimes::check(int64_t process, int64_t correlation, size_t device, int64_t start) {
  if (correlation == 0) return;
  if (apart_) {
    const int64_t call = known_.find(process, correlation).start;
    if (call != kUnknown) compare(call, device, start);
    return;
  }
  Entry& entry = of(process, correlation);
  if (entry.call != kUnknown) return compare(entry.call, device, start);
  entry.work = entry.work == kUnknown ? start : std::min(entry.work, start);
  entry.device = device;
}

void WorkTimes::compare(int64_t call, size_t device, int64_t start) {
  ++checked_;
  const int64_t distance = sane(start) && sane(call) ? call - start : start < call ? kFarthest : 0;
  if (distance <= kTolerance) return;
  devices_[device].trusted = false;
  ++early_;
  worst_ = std::max(worst_, distance);
  if (distances_.size() < kMostDistances) distances_.push_back(distance);
}

// In order of their starts.
std::vector<HostWait> WorkTimes::near_waits(int64_t process) const {
  std::vector<HostWait> waits;
  for (const HostWait& wait : waits_)
    if (wait.process == process) waits.push_back(wait);
  std::sort(waits.begin(), waits.end());
  return waits;
}

WorkTimes::Bounds WorkTimes::bounds_of(const Device& device, const Held& held, std::span<const HostWait> waits) {
  Bounds bounds;
  if (held.correlation == 0 || !held.launched || !sane(held.start)) return bounds;
  const KnownCalls::Times call = call_of(device.process, held.correlation);
  if (call.start == kUnknown || !sane(call.start)) return bounds;
  bounds.least = call.start - held.start;
  if (held.end == kUnknown || call.end == kUnknown) return bounds;
  if (held.to_host && (held.blocking || call.copies)) {
    bounds.most = call.end - held.end;
    bounds.certain = true;
    return bounds;
  }
  if (apart_)
    waits = known_.waits(device.process, call.end);
  else
    waits = waits.subspan(static_cast<size_t>(
        std::lower_bound(waits.begin(), waits.end(), HostWait{device.process, 0, call.end, 0, false}) - waits.begin()));
  const auto count = devices_of_.find(device.process);
  const bool only_one = count != devices_of_.end() && count->second == 1;
  for (const HostWait& wait : waits.first(std::min(waits.size(), kMostTries))) {
    const bool for_this =
        wait.track != 0 ? wait.track == held.track : only_one && (wait.device || !device.several_tracks);
    if (!for_this) continue;
    bounds.most = wait.end - held.end;
    bounds.certain = wait.track != 0 || wait.device;
    break;
  }
  // A wait that was for something else.
  if (bounds.most < bounds.least - kTolerance) bounds.most = -Bounds::kNone;
  return bounds;
}

// Stretches of rows for which one difference of the clocks fits all that is known.
std::vector<WorkTimes::Piece> WorkTimes::pieces_of(const Device& device, const std::vector<Bounds>& all) const {
  std::vector<Piece> pieces(1);
  pieces[0].bounds = device.bounds;
  bool wrong = device.bounds.known();
  for (size_t i = 0; i < all.size(); ++i) {
    const Bounds& bounds = all[i];
    if (!bounds.known()) continue;
    wrong = wrong || bounds.least > kTolerance || bounds.most < -kTolerance;
    Piece* piece = &pieces.back();
    if (std::max(piece->bounds.least, bounds.least) > std::min(piece->bounds.most, bounds.most) + kTolerance) {
      pieces.push_back({});
      piece = &pieces.back();
      piece->begin = i;
    }
    piece->bounds.least = std::max(piece->bounds.least, bounds.least);
    piece->bounds.most = std::min(piece->bounds.most, bounds.most);
    if (bounds.most == -Bounds::kNone) continue;
    ++piece->waits;
    piece->narrowest = std::min(piece->narrowest, std::abs(bounds.most - bounds.least));
    piece->certain_waits += bounds.certain ? 1 : 0;
  }
  if (!wrong) return {};
  const bool wild = pieces.size() > all.size() / kRowsOfPiece + 1;
  for (Piece& piece : pieces) {
    const Bounds& bounds = piece.bounds;
    if (bounds.least <= kTolerance && bounds.most >= -kTolerance) continue;
    const bool both = bounds.least != Bounds::kNone && bounds.most != -Bounds::kNone;
    const int64_t middle = both ? bounds.least + (bounds.most - bounds.least) / 2 : 0;
    const bool narrow = both && std::abs(bounds.most - bounds.least) <= std::abs(middle) / 4;
    const bool believed = bounds.least > kTolerance || piece.certain_waits > 0 || device.bounds.known() ||
                          (piece.waits >= kLeastWaits && std::abs(middle) >= kDoubtful);
    piece.unknown = wild || !narrow;
    if (!piece.unknown && believed) piece.moved = middle;
    if (!believed) piece.unknown = false;
  }
  return pieces;
}

// Writes the first `count` of the rows held, in their order of time.
void WorkTimes::write(size_t number, size_t count) {
  std::vector<Held> batch;
  {
    std::vector<Held>& held = devices_[number].held;
    count = std::min(count, held.size());
    batch.assign(held.begin(), held.begin() + static_cast<ptrdiff_t>(count));
    held.erase(held.begin(), held.begin() + static_cast<ptrdiff_t>(count));
  }
  if (batch.empty()) return;
  Device& device = devices_[number];
  device.old = 0;
  std::stable_sort(batch.begin(), batch.end(), [](const Held& a, const Held& b) { return a.start < b.start; });
  const std::vector<HostWait> waits = near_waits(device.process);
  std::vector<Bounds> bounds;
  bounds.reserve(batch.size());
  for (const Held& held : batch) bounds.push_back(bounds_of(device, held, waits));
  const std::vector<Piece> pieces = pieces_of(device, bounds);
  size_t piece = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    while (piece + 1 < pieces.size() && pieces[piece + 1].begin <= i) ++piece;
    Held& held = batch[i];
    int64_t by = pieces.empty() ? 0 : pieces[piece].moved;
    // A counter's value is found by the start of its dispatch.
    if (std::holds_alternative<event::row::CounterValue>(held.row) && held.start == device.last_start)
      by = device.last_moved;
    device.last_start = held.start;
    device.last_moved = by;
    std::visit(
        [&](auto& row) {
          row.start += by;
          writer_.add(row);
        },
        held.row);
    if (by != 0 && !std::holds_alternative<event::row::CounterValue>(held.row)) {
      if (device.moved == 0) device.least_moved = device.most_moved = by;
      device.least_moved = std::min(device.least_moved, by);
      device.most_moved = std::max(device.most_moved, by);
      ++device.moved;
    }
    if (!pieces.empty() && pieces[piece].unknown && bounds[i].certain && bounds[i].most < -kTolerance) ++late_;
    if (held.launched && by == 0) check(device.process, held.correlation, number, held.start);
    if (held.launched && by != 0) ++checked_;
  }
  for (const Piece& each : pieces) {
    if (each.moved == 0) continue;
    ++device.pieces;
    if (device.errors.size() >= kMostDistances) continue;
    device.errors.push_back(std::abs(each.bounds.most - each.bounds.least) / 2);
    if (each.narrowest != -Bounds::kNone) device.widths.push_back(each.narrowest);
  }
  const bool moves = !pieces.empty() && pieces.back().moved != 0;
  device.bounds = moves ? pieces.back().bounds : Bounds();
  device.trusted = pieces.empty();
  if (!device.trusted) return;
  // These fit as well, as far as is known.
  const std::vector<Held> rest = std::move(device.held);
  device.held.clear();
  for (const Held& held : rest) {
    std::visit([&](const auto& row) { writer_.add(row); }, held.row);
    if (held.launched) check(device.process, held.correlation, number, held.start);
  }
}

void WorkTimes::settle() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    write(i, devices_[i].old);
    devices_[i].old = devices_[i].held.size();
  }
}

void WorkTimes::say_moved(const Device& device, int64_t row) {
  std::vector<int64_t> errors = device.errors;
  int64_t error = errors.empty() ? 0 : middle_of(errors);
  const bool behind = device.most_moved > 0;
  const bool constant = device.most_moved - device.least_moved <= std::max(2 * error, kTolerance);
  // Within a piece of a clock that drifts, each row's own bounds hold.
  if (std::vector<int64_t> widths = device.widths; !constant && !widths.empty())
    error = std::max(error, middle_of(widths));
  const std::string by = constant
                             ? time_text(device.least_moved + (device.most_moved - device.least_moved) / 2)
                             : fmt::format("{} to {}", time_text(device.least_moved), time_text(device.most_moved));
  writer_.note(
      row, event::NoteSeverity::kWarning,
      fmt::format(
          "a device's clock was {} {} the host's{}, as launches and waits tell: the times of {} of its kernels, "
          "copies, fills and barriers were moved by that, ± {}",
          by, behind ? "behind" : "ahead of", constant ? "" : " and drifted", device.moved, time_text(error)));
  writer_.property(event::Table::kDevice, device.row, "clock_moved_ns",
                   fmt::format("{}", device.least_moved + (device.most_moved - device.least_moved) / 2));
}

Status WorkTimes::calls_end(bool keep) {
  keeps_ = keep;
  known_ends_ = true;
  return known_.finish();
}

Status WorkTimes::work_ends() {
  if (!known_ends_) TACHO_TRY(calls_end(keeps_));
  TACHO_TRY(kept_.finish());
  Kept each;
  while (kept_.next(each)) std::visit([&](const auto& values) { put(each.origin, values, each.launched); }, each.row);
  return {};
}

Status WorkTimes::compare_far(const std::function<int64_t(int64_t process, int64_t correlation)>& call) {
  for (size_t i = 0; i < devices_.size(); ++i) write(i, devices_[i].held.size());
  for (Entry& entry : entries_) {
    if (keeps_far_ && entry.work != kUnknown) far_.add({entry.process, entry.correlation, entry.work, entry.device});
    entry.work = kUnknown;
  }
  TACHO_TRY(far_.finish());
  FarWork each;
  while (far_.next(each))
    if (const int64_t start = call(each.process, each.correlation); start != kUnknown)
      compare(start, each.device, each.start);
  return {};
}

void WorkTimes::finish(int64_t row) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    write(i, devices_[i].held.size());
    if (devices_[i].moved > 0) say_moved(devices_[i], row);
    devices_[i].moved = 0;
  }
  if (early_ > 0) {
    writer_.lose(row, event::Table::kDispatch, event::LossReason::kClockOrder, early_);
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
    writer_.note(
        row, event::NoteSeverity::kWarning,
        fmt::format("{} of {} kernels, copies and fills {} before the call that launched {} began, by {:.1f} us "
                    "in the middle and {:.1f} us at most: the device's clock was not the host's there, and how "
                    "long {} took is unknown",
                    early_, checked_, early_ == 1 ? "begins" : "begin", early_ == 1 ? "it" : "them",
                    us(middle_of(distances_)), us(worst_), early_ == 1 ? "this launch" : "these launches"));
  }
  if (late_ > 0) {
    writer_.lose(row, event::Table::kDispatch, event::LossReason::kClockOrder, late_);
    writer_.note(
        row, event::NoteSeverity::kWarning,
        (late_ == 1 ? std::string("1 kernel, copy or fill ends after the wait for it returned")
                    : fmt::format("{} kernels, copies and fills end after the wait for them returned", late_)) +
            fmt::format(": the device's clock was not the host's there, and when {} ran is unknown",
                        late_ == 1 ? "it" : "these"));
  }
  early_ = late_ = 0;
}

}  // namespace tacho::trace
