// The sweep behind findings (activity.h).
#include "analysis/time/activity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "analysis/kernels/device_facts.h"
#include "analysis/operators/places.h"
#include "analysis/steady.h"
#include "analysis/time/host_ranges.h"
#include "base/saturating.h"
#include "event/gpu_quantity.h"
#include "trace/read/rows.h"
#include "vendor/collective_kernels.h"
#include "walk/calls/call_index.h"
#include "walk/sweep.h"
#include "walk/time/span.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

void Worst::add(const Stretch& stretch) {
  if (open_.cost > 0 && stretch.from - open_.to <= kJoined && stretch.from >= open_.from) {
    open_.to = std::max(open_.to, stretch.to);
    open_.cost += stretch.cost;
    return;
  }
  if (open_.cost > 0) keep(open_);
  open_ = stretch;
}

void Worst::keep(const Stretch& stretch) {
  if (kept_.size() == kKept && kept_.back().cost >= stretch.cost) return;
  const auto place = std::upper_bound(kept_.begin(), kept_.end(), stretch,
                                      [](const Stretch& a, const Stretch& b) { return a.cost > b.cost; });
  kept_.insert(place, stretch);
  if (kept_.size() > kKept) kept_.pop_back();
}

std::vector<Stretch> Worst::kept() const {
  Worst all = *this;
  if (all.open_.cost > 0) all.keep(all.open_);
  return all.kept_;
}

namespace {

struct LaunchingCall {
  int64_t start = 0, end = 0;
  int32_t track = 0;
  CallKind kind = CallKind::kOther;
  bool graph = false;  // launches a graph: its kernels have no launches of their own
};

/// How long a thread has been in calls of each kind, as seen from the moment at which a device began to idle.
struct CallTimes {
  std::array<int64_t, kCallKinds> in{};  ///< ns of outermost calls before that moment
  CallKind open = CallKind::kNone;       ///< the call open at that moment
  int64_t open_since = 0;
};

struct DeviceState;

struct HostState {
  struct OnDevice {
    DeviceState* device;
    int64_t seen_for = INT64_MIN;  // the device's `until` that `seen` is of
    CallTimes seen;
  };
  int64_t start = INT64_MIN, end = INT64_MIN;  // of the newest outermost call
  CallKind kind = CallKind::kNone;
  std::array<int64_t, kCallKinds> sums{};
  std::vector<OnDevice> on;
  Worst load_worst;
  int64_t load_calls = 0;
  HostRanges ranges;

  CallTimes times(int64_t at) const {
    CallTimes out;
    out.in = sums;
    if (kind != CallKind::kNone && end > at) {
      out.in[static_cast<size_t>(kind)] -= end - std::max(at, start);
      if (start < at) {
        out.open = kind;
        out.open_since = start;
      }
    }
    return out;
  }
};

struct WorkState {  // of a process: one kind of the host's work
  int64_t end = INT64_MIN, start = INT64_MIN, sum = 0, track = 0;
  std::vector<HostState::OnDevice> on;
  int64_t before(int64_t at) const { return sum - (end > at ? end - std::max(at, start) : 0); }
};

struct ProcessState {
  ProcessActivity out;
  int64_t pending = 0, pending_frees = 0, pending_time = 0;  // allocations since the last launch
  Worst pending_worst;
  std::vector<Stretch> pending_stretches;
  int64_t last_correlation = 0;
  std::array<bool, 8> parts{};  // of the trace's time, in which it got memory between launches
  std::array<WorkState, kHostWorks> works;
};

struct QueueState {
  int64_t kernel_time = 0, last_start = 0, last_end = INT64_MIN;
  bool paired = false;  // the last kernel is counted as one that could have run beside another
  struct ElementwiseRow {
    int64_t kernels = 0, time = 0, first = 0, longest = 0, start = 0, end = 0;
  };
  ElementwiseRow row;
};

struct KernelSum {  // on one device
  int64_t time = 0;
  uint32_t tiny = 0;
};

struct DeviceState {
  std::vector<KernelSum> sums;  // by kernel
  std::map<RangeName, int64_t> host_in;
  PlaceSums waits, copy_calls;
  DeviceActivity out;
  int64_t now = INT64_MIN;
  // Ends of what began last, by kind: what is covered from now on.
  int64_t kernels = INT64_MIN, collectives = INT64_MIN, copies = INT64_MIN, blocking = INT64_MIN, pageable = INT64_MIN;
  int64_t until = INT64_MIN;  // of all
  int64_t copy_track = 0, blocking_track = 0, pageable_track = 0, collective_track = 0;
  int64_t all_kernels = INT64_MIN, all_kernel_union = 0, all_kernel_sum = 0;
  std::map<int64_t, QueueState> queues;
  const std::vector<std::pair<int64_t, double>>* clock = nullptr;  // readings by time
  size_t next_reading = 0;
  double clock_sum = 0;

  // Readings before `to`, of a moment at which the device was busy.
  void read_clock(int64_t to) {
    if (clock == nullptr) return;
    for (; next_reading < clock->size() && (*clock)[next_reading].first < to; ++next_reading) {
      const auto [time, value] = (*clock)[next_reading];
      if (time >= until || time < out.first) continue;
      ++out.clock_readings;
      clock_sum += value;
      if (value < kSlowClock * out.clock_highest) {
        ++out.slow_readings;
        const int64_t next = next_reading + 1 < clock->size() ? (*clock)[next_reading + 1].first : time;
        if (next > time) out.slow_worst.add({time, next, next - time, 0, 0});
      }
    }
  }
  static constexpr double kSlowClock = 0.85;

  struct Row {  // of small copies
    int64_t count = 0, bytes = 0, sum = 0, longest = 0, from = 0, to = 0, track = 0;
  };
  std::array<Row, 8> rows{};
  std::array<double, 8> best_rate{};  // bytes/ns
  std::array<int64_t, 8> row_bytes{}, row_time{}, row_count{}, row_rows{}, least{};

  void advance(int64_t to) {
    if (to <= now) return;
    const int64_t busy_kernels = std::max(now, std::min(to, kernels));
    out.kernel_time += busy_kernels - now;
    const int64_t collective_from = std::max(now, kernels), collective_to = std::min(to, collectives);
    if (collective_to > collective_from) {
      out.exposed_collective += collective_to - collective_from;
      out.collective_worst.add({collective_from, collective_to, collective_to - collective_from, collective_track, 0});
    }
    if (collectives > now) out.collective_time += std::min(to, collectives) - now;
    const int64_t compute = std::max(kernels, collectives);
    const auto exposed = [&](int64_t end, int64_t& sum, Worst& worst, int64_t track) {
      const int64_t a = std::max(now, compute), b = std::min(to, end);
      if (b <= a) return;
      sum += b - a;
      worst.add({a, b, b - a, track, 0});
    };
    exposed(copies, out.exposed_copy, out.exposed_worst, copy_track);
    exposed(blocking, out.exposed_blocking, out.blocking_worst, blocking_track);
    exposed(pageable, out.exposed_pageable, out.pageable_worst, pageable_track);
    if (until > now) out.busy += std::min(to, until) - now;
    now = to;
  }

  void end_row(size_t direction) {
    Row& row = rows[direction];
    constexpr int64_t kFewest = 4;
    if (row.count >= kFewest) {
      out.small += row.count;
      ++out.small_rows;
      add_saturating(out.small_bytes, row.bytes);
      add_saturating(out.small_time, row.sum);
      add_saturating(row_bytes[direction], row.bytes);
      add_saturating(row_time[direction], row.to - row.from - row.longest);
      row_count[direction] += row.count;
      ++row_rows[direction];
      out.small_worst.add({row.from, row.to, row.sum, row.track, 0});
    }
    row = {};
  }
};

// Copies have findings of their own: they neither belong to a row nor end it.
enum class Elementwise : uint8_t { kNotLooked, kNo, kYes, kCopy };

struct KernelFacts {
  int32_t groups = kNotLooked;  // workgroups; -1 = unknown
  uint8_t collective = 2;       // 2 = not looked up
  Elementwise elementwise = Elementwise::kNotLooked;
  bool launched = false;
  static constexpr int32_t kNotLooked = -2;
};

int32_t groups_of(const trace::Trace& trace, int64_t kernel) {
  double groups = 1;
  static constexpr std::pair<int, int> kAxes[] = {{column::Kernel::grid_x, column::Kernel::group_x},
                                                  {column::Kernel::grid_y, column::Kernel::group_y},
                                                  {column::Kernel::grid_z, column::Kernel::group_z}};
  for (const auto& [grid, group] : kAxes) {
    const int64_t items = trace.cell(Table::kKernel, kernel, grid);
    const int64_t size = trace.cell(Table::kKernel, kernel, group);
    if (items == kUnknown || size == kUnknown || items <= 0 || size <= 0) return -1;
    groups *= std::ceil(static_cast<double>(items) / static_cast<double>(size));
  }
  return groups < 1e9 ? static_cast<int32_t>(groups) : 1'000'000'000;
}

/// Workgroups of a multiprocessor at the same time: what the kernel's size, registers and shared memory leave room for.
/// Source: CUDA C++ Programming Guide, "Multiprocessor Level", and the units in which compute capability 7.0 and later
/// allocate: registers by warp in pieces of 256, shared memory in pieces of 128 bytes plus what the driver keeps.
struct Occupancy {
  double percent = 0;  // of the multiprocessor's threads; 0 = not known
  std::string limit;
};
Occupancy occupancy_of(const trace::Trace& trace, int64_t kernel, const metric::Architecture& facts) {
  const auto cell = [&](int at) { return trace.cell(Table::kKernel, kernel, at); };
  int64_t threads = 1;
  for (const int at : {column::Kernel::group_x, column::Kernel::group_y, column::Kernel::group_z}) {
    const int64_t size = cell(at);
    if (size == kUnknown || size <= 0 || size > 4096) return {};
    threads *= size;
  }
  const int64_t registers = cell(column::Kernel::registers);
  if (registers == kUnknown || registers <= 0 || threads <= 0 || threads > 4096) return {};
  const double threads_per_sm = facts.number("typical.threads_per_sm"),
               blocks_per_sm = facts.number("typical.blocks_per_sm"),
               registers_per_sm = facts.number("typical.registers_per_sm"),
               shared_per_sm = facts.number("typical.shared_per_sm"),
               reserved = facts.number("typical.shared_reserved"), warp = facts.number("typical.warp_size");
  if (!(threads_per_sm > 0) || !(blocks_per_sm > 0) || !(registers_per_sm > 0) || !(shared_per_sm > 0) || !(warp > 0))
    return {};
  const double warps = std::ceil(static_cast<double>(threads) / warp);
  const double of_threads = std::floor(threads_per_sm / (warps * warp));
  const double registers_of_warp = std::ceil(static_cast<double>(registers) * warp / 256) * 256;
  const double of_registers = std::floor(std::floor(registers_per_sm / registers_of_warp) / warps);
  const auto bytes = [](int64_t value) { return value == kUnknown ? 0.0 : static_cast<double>(value); };
  const double shared = bytes(cell(column::Kernel::shared_static)) + bytes(cell(column::Kernel::shared_dynamic));
  const double of_shared =
      shared > 0 ? std::floor(shared_per_sm / (std::ceil(shared / 128) * 128 + std::max(reserved, 0.0))) : 1e9;
  const double blocks = std::min({of_threads, of_registers, of_shared, blocks_per_sm});
  if (!(blocks >= 1)) return {};  // it ran, so a fact is not of this device
  Occupancy out;
  out.percent = 100 * blocks * warps * warp / threads_per_sm;
  out.limit = blocks == of_registers ? "registers"
              : blocks == of_shared  ? "shared memory"
                                     : "the size of its workgroups";
  return out;
}

class Watch {
 public:
  Watch(const trace::Trace& trace, const std::vector<bool>& near_peak)
      : span_(walk::timeline_span(trace)),
        trace_(trace),
        near_peak_(near_peak),
        numbers_(trace),
        recent_(trace.rows(Table::kApi)) {}

  Result<Activity> run() {
    TACHO_TRY(prepare());
    std::vector<Table> tables = {Table::kApi, Table::kDispatch, Table::kCopy, Table::kFill};
    if (trace_.rows(Table::kMarker) > 0) tables.push_back(Table::kMarker);
    walk::Sweep sweep(trace_, tables, walk::kSweepDim | walk::kSweepCorrelation | walk::kSweepBytes);
    walk::RowSlice slice;
    while (sweep.next(slice)) {
      if (slice.table == Table::kApi)
        calls(slice);
      else if (slice.table == Table::kMarker)
        ranges(slice);
      else
        operations(slice);
    }
    TACHO_TRY(Status(sweep.status()));
    return finish();
  }

 private:
  Status prepare() {
    const auto functions = static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1));
    kinds_.assign(functions, static_cast<uint8_t>(CallKind::kOther));
    frees_.assign(functions, false);
    for (size_t row = 1; row < functions; ++row) {
      const auto at = static_cast<int64_t>(row);
      const std::string_view name = trace_.text(Table::kFunction, at, column::Function::name);
      const auto kind =
          call_kind(event::from_cell<event::Domain>(trace_.cell(Table::kFunction, at, column::Function::domain)), name);
      kinds_[row] = static_cast<uint8_t>(kind);
      frees_[row] = kind == CallKind::kAllocate && name.find("Free") != std::string_view::npos;
      if (kind == CallKind::kNone)
        if (const HostWork work = host_work(name); work != HostWork::kNone) {
          kinds_[row] = static_cast<uint8_t>(kWork + static_cast<uint8_t>(work));
          out_.works[static_cast<size_t>(work)] = true;
        }
      if (kind == CallKind::kLaunch && name.find("GraphLaunch") != std::string_view::npos) kinds_[row] = kGraph;
      if (name.find("StreamWaitEvent") != std::string_view::npos || name.find("WithWaitList") != std::string_view::npos)
        out_.queue_waits = true;
    }
    const auto labels = static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kLabel), 1));
    label_work_.assign(labels, HostWork::kNone);
    for (size_t row = 1; row < labels; ++row) {
      label_work_[row] = host_work(trace_.text(Table::kLabel, static_cast<int64_t>(row), column::Label::name));
      if (label_work_[row] != HostWork::kNone) out_.works[static_cast<size_t>(label_work_[row])] = true;
    }
    const int64_t most = kMostSums / std::max<int64_t>(trace_.rows(Table::kDevice), 1);
    kernels_.resize(static_cast<size_t>(std::clamp<int64_t>(trace_.rows(Table::kKernel), 1, most)));
    const auto tracks = static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kTrack), 1));
    hosts_.resize(tracks);
    device_of_track_.assign(tracks, nullptr);
    process_of_track_.assign(tracks, nullptr);
    TACHO_TRY(read_telemetry());
    TACHO_ASSIGN(steady_, steady_starts(trace_, numbers_));
    const int64_t shapes = std::max<int64_t>(trace_.rows(Table::kCopyShape), 1);
    shapes_.resize(static_cast<size_t>(shapes));
    for (int64_t row = 1; row < shapes; ++row) {
      Shape& shape = shapes_[static_cast<size_t>(row)];
      const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, row, at); };
      const auto direction = event::from_cell<event::CopyDirection>(cell(column::CopyShape::direction));
      shape.direction = static_cast<uint8_t>(direction);
      shape.host = direction == event::CopyDirection::kHostToDevice || direction == event::CopyDirection::kDeviceToHost;
      const auto memory = event::from_cell<event::MemoryKind>(cell(direction == event::CopyDirection::kHostToDevice
                                                                       ? column::CopyShape::source_memory
                                                                       : column::CopyShape::target_memory));
      shape.pageable = shape.host && memory == event::MemoryKind::kPageable;
      shape.memory_known = memory == event::MemoryKind::kPageable || memory == event::MemoryKind::kPinned;
      const auto kind = event::from_cell<event::CopyKind>(cell(column::CopyShape::kind));
      shape.mapping = kind == event::CopyKind::kMap || kind == event::CopyKind::kUnmap;
      shape.asynchronous = cell(column::CopyShape::asynchronous);
    }
    return {};
  }

  // Readings without a process are of the machine of the first one.
  std::string_view host_of(int64_t process) const {
    return trace_.text(Table::kProcess, std::max<int64_t>(process, 1), column::Process::host);
  }

  // What `tacho trace --telemetry gpu` and its kin read of GPUs.
  Status read_telemetry() {
    struct Series {
      Readings* of = nullptr;
      bool clock = false;
    };
    std::vector<Series> series(device_of_track_.size());
    bool any = false;
    for (size_t track = 1; track < series.size(); ++track) {
      const auto row = static_cast<int64_t>(track);
      if (trace_.cell(Table::kTrack, row, column::Track::kind) != static_cast<int64_t>(event::TrackKind::kCounter) ||
          trace_.text(Table::kTrack, row, column::Track::category) != "telemetry.gpu")
        continue;
      const std::string_view name = event::gpu_quantity(trace_.text(Table::kTrack, row, column::Track::name));
      if (name != "Core Clock" && name != "Memory Usage") continue;
      const std::string_view host = host_of(trace_.cell(Table::kTrack, row, column::Track::process));
      series[track] = {&readings_[{host, trace_.cell(Table::kTrack, row, column::Track::native) - 1}],
                       name == "Core Clock"};
      any = true;
    }
    if (!any) return {};
    constexpr size_t kMost = 1 << 20;  // of a GPU: 29 hours at ten a second
    using R = column::Reading;
    Status status;
    for (const auto& read : trace::chunks<R::track, R::start, R::value>(trace_, status))
      for (size_t i = 0; i < read.size(); ++i) {
        const auto track = static_cast<size_t>(read.track[i]);
        if (track >= series.size() || series[track].of == nullptr) continue;
        Readings& of = *series[track].of;
        const double value = read.value[i].value();
        if (!series[track].clock) {
          of.memory = std::max(of.memory, value);
        } else if (value > 0 && of.clock.size() < kMost) {
          of.clock.emplace_back(read.start[i], value);
          of.highest = std::max(of.highest, value);
        }
      }
    TACHO_TRY(status);
    for (auto& [index, of] : readings_) std::sort(of.clock.begin(), of.clock.end());
    return {};
  }

  ProcessState& process_at(int64_t track) {
    ProcessState*& known = process_of_track_[static_cast<size_t>(track)];
    if (known == nullptr) {
      const int64_t row = trace_.cell(Table::kTrack, track, column::Track::process);
      auto& state = processes_[row];
      if (!state) {
        state = std::make_unique<ProcessState>();
        state->out.process = row;
      }
      known = state.get();
    }
    return *known;
  }

  DeviceState& device_at(int64_t track) {
    DeviceState*& known = device_of_track_[static_cast<size_t>(track)];
    if (known == nullptr) {
      const int64_t row = trace_.cell(Table::kTrack, track, column::Track::device);
      auto& state = devices_[numbers_.device(row)];
      if (!state) {
        state = std::make_unique<DeviceState>();
        state->sums.resize(kernels_.size());
        const auto steady = steady_.find(numbers_.device(row));
        state->out.steady = steady == steady_.end() ? INT64_MIN : steady->second;
        order_.push_back(state.get());
        state->out.row = row;
        state->out.text = row > 0 ? numbers_.text(row) : std::string("device");
        state->out.cpu = event::from_cell<event::DeviceKind>(trace_.cell(Table::kDevice, row, column::Device::kind)) ==
                         event::DeviceKind::kCpu;
        state->out.units = compute_units(trace_, row);
        state->out.memory = memory_bytes(trace_, row);
        const std::string_view host = host_of(trace_.cell(Table::kTrack, track, column::Track::process));
        if (const auto read = readings_.find({host, trace_.cell(Table::kDevice, row, column::Device::index)});
            read != readings_.end() && !state->out.cpu) {
          state->out.memory_used = read->second.memory;
          state->out.clock_highest = read->second.highest;
          state->clock = &read->second.clock;
        }
      }
      known = state.get();
    }
    return *known;
  }

  // The host

  HostState& host_at(int64_t track) {
    std::unique_ptr<HostState>& host = hosts_[static_cast<size_t>(track)];
    if (!host) host = std::make_unique<HostState>();
    return *host;
  }

  void calls(const walk::RowSlice& slice) {
    HostState& host = host_at(slice.track);
    ProcessState& process = process_at(slice.track);
    for (size_t i = 0; i < slice.rows; ++i) {
      const auto dim = static_cast<size_t>(slice.dim[i]);
      const uint8_t code = dim < kinds_.size() ? kinds_[dim] : static_cast<uint8_t>(CallKind::kOther);
      int64_t start = slice.start[i];
      const int64_t end = start + (slice.duration[i] == kUnknown ? 0 : slice.duration[i]);
      if (code >= static_cast<uint8_t>(CallKind::kNone) && code != kGraph) {
        if (code >= kWork) work(process, static_cast<HostWork>(code - kWork), slice.track, start, end);
        host.ranges.add(start, end, slice.dim[i]);
        continue;
      }
      const auto kind = code == kGraph ? CallKind::kLaunch : static_cast<CallKind>(code);
      ++out_.calls;
      ++process.out.calls;
      recent_.add(process.out.process, slice.correlation[i],
                  {start, end, static_cast<int32_t>(slice.track), kind, code == kGraph});
      if (start < host.end && end <= host.end) {
        // Inside another call: it says more about an outer one without a kind (a wrapper of a runtime).
        if (host.kind == CallKind::kOther && kind != CallKind::kOther) {
          host.sums[static_cast<size_t>(CallKind::kOther)] -= host.end - host.start;
          add_saturating(host.sums[static_cast<size_t>(kind)], host.end - host.start);
          host.kind = kind;
        }
        continue;
      }
      start = std::max(start, host.end);  // where clocks make calls overlap, the second begins when the first has ended
      for (HostState::OnDevice& on : host.on) see(host, on, start);
      host.start = start;
      host.end = end;
      host.kind = kind;
      add_saturating(host.sums[static_cast<size_t>(kind)], end - start);
      if (kind == CallKind::kLoad) {
        ++host.load_calls;
        if (end > start) host.load_worst.add({start, end, end - start, slice.track, slice.track});
      } else if (kind == CallKind::kAllocate) {
        ++process.pending;
        if (dim < frees_.size() && frees_[dim]) ++process.pending_frees;
        add_saturating(process.pending_time, end - start);
        if (process.pending_stretches.size() < 16 && end > start)
          process.pending_stretches.push_back({start, end, end - start, slice.track, slice.track});
      }
    }
  }

  // Before a call at `start`: what the thread had done when the device ran out of work.
  static void see(const HostState& host, HostState::OnDevice& on, int64_t start) {
    const int64_t until = on.device->until;
    if (until > start || on.seen_for == until) return;
    on.seen_for = until;
    on.seen = host.times(until);
  }

  void ranges(const walk::RowSlice& slice) {
    ProcessState& process = process_at(slice.track);
    for (size_t i = 0; i < slice.rows; ++i) {
      const auto dim = static_cast<size_t>(slice.dim[i]);
      if (dim == 0 || dim >= label_work_.size() || slice.duration[i] == kUnknown) continue;
      const int64_t end = slice.start[i] + slice.duration[i];
      host_at(slice.track).ranges.add(slice.start[i], end, -slice.dim[i]);
      if (label_work_[dim] != HostWork::kNone) work(process, label_work_[dim], slice.track, slice.start[i], end);
    }
  }

  static void work(ProcessState& process, HostWork kind, int64_t track, int64_t start, int64_t end) {
    WorkState& state = process.works[static_cast<size_t>(kind)];
    if (end <= state.end) return;
    start = std::max(start, state.end);
    for (HostState::OnDevice& on : state.on)
      if (on.device->until <= start && on.seen_for != on.device->until) {
        on.seen_for = on.device->until;
        on.seen.in[0] = state.before(on.device->until);
      }
    state.start = start;
    state.end = end;
    add_saturating(state.sum, end - start);
    state.track = track;
  }

  // The devices

  void operations(const walk::RowSlice& slice) {
    DeviceState& device = device_at(slice.track);
    ProcessState& process = process_at(slice.track);
    const bool dispatch = slice.table == Table::kDispatch;
    for (size_t i = 0; i < slice.rows; ++i) {
      if (slice.duration[i] == kUnknown) continue;
      const int64_t start = slice.start[i], duration = slice.duration[i], end = start + duration;
      const int64_t correlation = slice.correlation[i];
      ++out_.operations;
      const LaunchingCall* call = recent_.find(process.out.process, correlation);
      if (call != nullptr && call->start > start) call = nullptr;
      if (call == nullptr) ++out_.untied;
      const bool own_launch = call != nullptr && correlation != process.last_correlation;
      process.last_correlation = correlation;
      const int64_t gap = device.until != INT64_MIN ? start - device.until : 0;
      Gap cause = Gap::kEnd;
      if (gap > 0) cause = idle(device, process, slice.track, start, call);
      if (device.now == INT64_MIN) device.now = device.out.first = start;
      device.read_clock(start);
      device.advance(start);
      if (dispatch)
        kernel(device, process, slice, i, call, own_launch, cause == Gap::kLaunch ? gap : 0);
      else if (slice.table == Table::kCopy)
        copy(device, slice, i, call);
      else
        device.kernels = std::max(device.kernels, end);
      device.until = std::max(device.until, end);
      device.out.last = std::max(device.out.last, end);
      if (call != nullptr) tie(host_at(call->track), device);
      for (WorkState& each : process.works) tie(each, device);
    }
  }

  template <typename State>
  static void tie(State& host, DeviceState& device) {
    constexpr size_t kMost = 16;  // devices of one thread; more are left out
    for (const HostState::OnDevice& on : host.on)
      if (on.device == &device) return;
    if (host.on.size() < kMost) host.on.push_back({&device, INT64_MIN, {}});
  }

  Gap idle(DeviceState& device, ProcessState& process, int64_t track, int64_t to, const LaunchingCall* call) {
    const int64_t from = device.until;
    const int64_t host_track = call != nullptr ? call->track : 0;
    int64_t hideable = 0;
    const Gap cause = why(device, from, to, call, hideable);
    const bool start_up = to <= device.out.steady;
    if (start_up) {
      add_saturating(device.out.start_gaps[static_cast<size_t>(cause)], to - from);
      device.out.start_worst.add({from, to, to - from, track, host_track});
    } else {
      GapSum& sum = device.out.gaps[static_cast<size_t>(cause)];
      ++sum.count;
      add_saturating(sum.time, to - from);
      add_saturating(sum.hideable, std::min(hideable, to - from));
      sum.worst.add({from, to, to - from, track, host_track});
    }
    int64_t named = 0;
    for (size_t kind = 0; kind < kHostWorks; ++kind) {
      if (start_up && kind == static_cast<size_t>(HostWork::kCompiling)) continue;
      named =
          std::max(named, worked(device, process.works[kind], device.out.idle_in[kind], {from, to, to - from, track}));
    }
    if (start_up) return cause;
    if (cause == Gap::kHost)
      place_host_gap(device, *hosts_[static_cast<size_t>(call->track)], from, call->start, hideable, named);
    else if (cause == Gap::kWait && waited_since_ != kUnknown)
      device.waits.add(trace_, hosts_[static_cast<size_t>(call->track)]->ranges.around(waited_since_), to - from);
    return cause;
  }

  // How much of a gap the host spent in a kind of work.
  static int64_t worked(DeviceState& device, const WorkState& work, DeviceActivity::IdleIn& sum, const Stretch& gap) {
    for (const HostState::OnDevice& on : work.on) {
      if (on.device != &device) continue;
      const int64_t before = on.seen_for == gap.from ? on.seen.in[0] : work.before(gap.from);
      const int64_t in = std::min(work.before(gap.to) - before, gap.to - gap.from);
      if (in <= 0) return 0;
      add_saturating(sum.time, in);
      ++sum.gaps;
      sum.worst.add({gap.from, gap.to, in, gap.track, work.track});
      return in;
    }
    return 0;
  }

  // Where the host was in a gap of its own code, and what it had waited for.
  void place_host_gap(DeviceState& device, const HostState& host, int64_t from, int64_t launch, int64_t hideable,
                      int64_t named) {
    add_saturating(device.out.host_gap_named, named);
    constexpr size_t kMostNames = 4096;
    if (device.host_in.size() < kMostNames) host.ranges.self_times(from, launch, device.host_in);
    if (waited_since_ == kUnknown) return;
    ++device.out.host_gaps_waited;
    add_saturating(device.out.host_gap_waited, hideable);
    device.waits.add(trace_, host.ranges.around(waited_since_), hideable);
  }

  Gap why(const DeviceState& device, int64_t from, int64_t to, const LaunchingCall* call, int64_t& hideable) {
    waited_since_ = kUnknown;
    if (call == nullptr) return Gap::kUnknown;
    // Begun as soon as could be after the call: nothing was queued before the device ran out of work.
    const bool at_once = to - call->end < kLaunchDelay;
    if (call->start <= from && call->kind == CallKind::kCopy && call->end >= to) {
      hideable = to - from;  // inside the copy's own call, which puts the data into place itself
      return Gap::kCopy;
    }
    if (call->start <= from) return at_once && call->kind == CallKind::kLaunch ? Gap::kLaunch : Gap::kQueued;
    const HostState& host = *hosts_[static_cast<size_t>(call->track)];  // it made the call
    const auto on = std::find_if(host.on.begin(), host.on.end(),
                                 [&](const HostState::OnDevice& each) { return each.device == &device; });
    CallTimes before;
    if (on == host.on.end()) {
      // The thread's first work on this device: what it did before is known from its last call on.
      before = host.times(from);
      if (host.start > from) return Gap::kUnknown;
    } else {
      before = on->seen_for == from ? on->seen : host.times(from);
    }
    const CallTimes after = host.times(call->start);
    std::array<int64_t, kCallKinds> in{};
    int64_t all = 0;
    for (size_t k = 0; k < kCallKinds; ++k) {
      in[k] = std::max<int64_t>(after.in[k] - before.in[k], 0);
      add_saturating(all, in[k]);
    }
    const int64_t own = std::max<int64_t>(call->start - from - all, 0);
    const int64_t launching = in[static_cast<size_t>(CallKind::kLaunch)] + (to - call->start);
    const bool waited = before.open == CallKind::kWait || in[static_cast<size_t>(CallKind::kWait)] > 0;
    const bool copied = before.open == CallKind::kCopy;
    if (before.open == CallKind::kWait) waited_since_ = before.open_since;
    if (!at_once && to - call->end > (to - from) / 2)
      return waited || copied ? hide(before, from, waited, hideable) : Gap::kQueued;
    int64_t most = std::max(launching, own);
    Gap cause = own >= launching && own >= kShortCode ? Gap::kHost : Gap::kLaunch;
    for (const auto& [kind, gap] :
         {std::pair{CallKind::kAllocate, Gap::kAllocate}, std::pair{CallKind::kLoad, Gap::kLoad},
          std::pair{CallKind::kOther, Gap::kCall}, std::pair{CallKind::kCopy, Gap::kCopy}})
      if (in[static_cast<size_t>(kind)] > most) {
        most = in[static_cast<size_t>(kind)];
        cause = gap;
      }
    if ((cause == Gap::kLaunch || cause == Gap::kCopy) && (waited || copied))
      return hide(before, from, waited, hideable);
    if (cause == Gap::kHost && waited_since_ != kUnknown) hideable = std::min(from - waited_since_, to - from);
    return cause;
  }

  // The host waited until the device had nothing left: so much of what it then did could have been done meanwhile.
  static Gap hide(const CallTimes& before, int64_t from, bool waited, int64_t& hideable) {
    if (before.open == CallKind::kWait || before.open == CallKind::kCopy) hideable = from - before.open_since;
    return waited ? Gap::kWait : Gap::kCopy;
  }

  bool collective(size_t kernel) {
    uint8_t& known = kernels_[kernel].collective;
    if (known == 2)
      known =
          vendor::is_collective_kernel(trace_.text(Table::kKernel, static_cast<int64_t>(kernel), column::Kernel::name))
              ? 1
              : 0;
    return known == 1;
  }

  // The eighth of the trace's time.
  size_t part_of(int64_t time) const {
    const double length = std::max(1.0, static_cast<double>(span_.length()));
    const double part = 8 * (static_cast<double>(time) - static_cast<double>(span_.first)) / length;
    return static_cast<size_t>(std::clamp(part, 0.0, 7.0));
  }

  Elementwise elementwise(size_t kernel) {
    Elementwise& known = kernels_[kernel].elementwise;
    if (known != Elementwise::kNotLooked) return known;
    const std::string_view name = trace_.text(Table::kKernel, static_cast<int64_t>(kernel), column::Kernel::name);
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (!has("at::native::") || !has("elementwise_kernel") || has("FillFunctor"))
      known = Elementwise::kNo;
    else
      known = has("direct_copy") ? Elementwise::kCopy : Elementwise::kYes;
    return known;
  }

  // A row grows while elementwise kernels that take a quarter to four times as long as its first follow each other.
  static void add_to_row(DeviceActivity& out, QueueState& queue, int64_t track, bool elementwise, int64_t start,
                         int64_t duration) {
    constexpr int64_t kLeast = 4, kMost = 8;
    QueueState::ElementwiseRow& row = queue.row;
    if (row.kernels > 0 &&
        (!elementwise || row.kernels == kMost || duration / 4 > row.first || duration < row.first / 4)) {
      if (row.kernels >= kLeast) {
        ++out.elementwise_rows;
        out.elementwise_kernels += row.kernels;
        add_saturating(out.elementwise_time, row.time);
        const int64_t saved = std::max<int64_t>(row.time - row.longest - row.longest / 2, 0);
        add_saturating(out.elementwise_saved, saved);
        out.elementwise_worst.add({row.start, row.end, saved, track, 0});
      }
      row = {};
    }
    if (!elementwise) return;
    if (row.kernels++ == 0) {
      row.first = duration;
      row.start = start;
    }
    row.end = start + duration;
    add_saturating(row.time, duration);
    row.longest = std::max(row.longest, duration);
  }

  // A kernel with a launching call of its own.
  void launched(DeviceState& device, ProcessState& process, size_t at, const walk::RowSlice& slice, size_t i,
                const LaunchingCall& call, int64_t launch_gap) {
    const int64_t start = slice.start[i], duration = slice.duration[i], end = start + duration;
    const int64_t launch = call.end - call.start;
    DeviceActivity& out = device.out;
    const bool steady = start >= out.steady;
    if (steady) {
      ++out.launched;
      add_saturating(out.launch_calls, launch);
    }
    if (KernelFacts& facts = kernels_[at]; !facts.launched) {
      facts.launched = true;
      ++process.out.first_launches;
      add_saturating(first_sum_, launch);
      ++first_count_;
      add_saturating(process.out.first_excess, launch);
    }
    const bool waited = call.end >= end && duration >= kLongKernel;
    if (steady && duration >= kLongKernel) {
      ++out.long_launched;
      if (waited) {
        ++out.waited_launches;
        out.waited_worst.add({call.start, std::max(end, call.end), launch, slice.track, call.track});
      }
    }
    if (steady && duration < launch && !waited) {
      KernelSum& sum = device.sums[at];
      ++out.tiny;
      ++sum.tiny;
      add_saturating(out.tiny_calls, launch);
      add_saturating(out.tiny_time, duration);
      add_saturating(out.tiny_gaps, launch_gap);
      out.tiny_worst.add({std::min(start, call.start), std::max(end, call.end), launch, slice.track, call.track});
      if (sum.tiny > out.tiny_of_kernel) {
        out.tiny_of_kernel = sum.tiny;
        out.tiny_kernel = slice.dim[i];
      }
    }
  }

  void kernel(DeviceState& device, ProcessState& process, const walk::RowSlice& slice, size_t i,
              const LaunchingCall* call, bool own_launch, int64_t launch_gap) {
    const int64_t start = slice.start[i], duration = slice.duration[i], end = start + duration;
    const int64_t dim = slice.dim[i];
    const size_t at = dim > 0 && static_cast<size_t>(dim) < kernels_.size() ? static_cast<size_t>(dim) : 0;
    KernelFacts& facts = kernels_[at];
    KernelSum& sum = device.sums[at];
    add_saturating(sum.time, duration);
    if (facts.groups == KernelFacts::kNotLooked) facts.groups = at == 0 ? -1 : groups_of(trace_, dim);
    DeviceActivity& out = device.out;
    for (size_t direction = 0; direction < device.rows.size(); ++direction)
      if (device.rows[direction].count > 0) device.end_row(direction);

    QueueState& queue = device.queues[slice.track];
    add_saturating(queue.kernel_time, duration);
    if (const Elementwise kind = elementwise(at); kind != Elementwise::kCopy)
      add_to_row(out, queue, slice.track, kind == Elementwise::kYes, start, duration);
    add_saturating(device.all_kernel_sum, duration);
    // Ready while a kernel of another queue ran, and begun when that had ended; two at once, so that none counts twice.
    bool paired = false;
    constexpr size_t kFewQueues = 32;
    constexpr int64_t kSoon = 50'000;
    if (call != nullptr && facts.groups > 0 && 2 * int64_t{facts.groups} <= out.units && device.queues.size() > 1 &&
        device.queues.size() <= kFewQueues) {
      int64_t both = 0, other_track = 0, other_start = 0;
      for (const auto& [track, other] : device.queues) {
        if (track == slice.track || other.paired || other.last_end > start || start - other.last_end >= kSoon) continue;
        const int64_t ready = std::max({call->end, queue.last_end, other.last_start});
        const int64_t could = std::min(duration, other.last_end - ready);
        // A short one between two long ones (of the default stream, say) is none to pair a long one with.
        if (could <= both || 2 * could < duration) continue;
        both = could;
        other_track = track;
        other_start = other.last_start;
      }
      if (both > 0) {
        paired = true;
        ++out.serial_kernels;
        add_saturating(out.serial, both);
        out.serial_worst.add({other_start, end, both, slice.track, other_track});
      }
    }
    queue.last_start = start;
    queue.last_end = std::max(queue.last_end, end);
    queue.paired = paired;
    if (end > device.all_kernels) {
      device.all_kernel_union += end - std::max(start, device.all_kernels);
      device.all_kernels = end;
    }
    if (collective(at)) {
      ++out.collectives;
      if (end > device.collectives) device.collective_track = slice.track;
      device.collectives = std::max(device.collectives, end);
    } else {
      device.kernels = std::max(device.kernels, end);
      ++out.kernels;
      add_saturating(out.kernel_sum, duration);
    }

    if (own_launch && call->kind == CallKind::kLaunch && !call->graph)
      launched(device, process, at, slice, i, *call, launch_gap);
    if (++process.out.launches > kSteady && process.pending > 0) {
      process.out.allocations += process.pending;
      process.out.frees += process.pending_frees;
      if (process.pending > process.pending_frees) process.parts[part_of(start)] = true;
      add_saturating(process.out.allocation_time, process.pending_time);
      for (const Stretch& stretch : process.pending_stretches) process.out.allocation_worst.add(stretch);
    }
    process.pending = process.pending_frees = process.pending_time = 0;
    process.pending_stretches.clear();
  }

  void copy(DeviceState& device, const walk::RowSlice& slice, size_t i, const LaunchingCall* call) {
    const int64_t start = slice.start[i], duration = slice.duration[i], end = start + duration;
    const auto dim = static_cast<size_t>(slice.dim[i]);
    const Shape& shape = shapes_[dim < shapes_.size() ? dim : 0];
    if (!shape.host) {
      device.kernels = std::max(device.kernels, end);
      return;
    }
    DeviceActivity& out = device.out;
    const int64_t bytes = slice.bytes[i] == kUnknown ? 0 : slice.bytes[i];
    ++out.copies;
    add_saturating(out.copy_sum, duration);
    add_saturating(out.copy_bytes, bytes);
    if (end > device.copies) device.copy_track = slice.track;
    device.copies = std::max(device.copies, end);
    const bool blocking =
        shape.asynchronous == 0 || (shape.asynchronous == kUnknown && call != nullptr && call->end >= end);
    if (blocking) {
      ++out.blocking;
      if (end > device.blocking) device.blocking_track = slice.track;
      device.blocking = std::max(device.blocking, end);
    }
    if (call != nullptr && (blocking || shape.pageable || bytes <= kSmallCopy))
      device.copy_calls.add(trace_, host_at(call->track).ranges.around(call->start), duration);
    if (shape.memory_known) ++out.memory_known;
    if (shape.pageable) {
      ++out.pageable;
      add_saturating(out.pageable_bytes, bytes);
      if (end > device.pageable) device.pageable_track = slice.track;
      device.pageable = std::max(device.pageable, end);
    }
    const size_t direction = shape.direction & 7;
    if (bytes >= 4096 && duration > 0)
      device.best_rate[direction] =
          std::max(device.best_rate[direction], static_cast<double>(bytes) / static_cast<double>(duration));
    DeviceState::Row& row = device.rows[direction];
    if (bytes > kSmallCopy || shape.mapping) {
      device.end_row(direction);
      return;
    }
    constexpr int64_t kBelong = 100'000;
    if (row.count > 0 && start - row.to > kBelong) device.end_row(direction);
    if (row.count == 0) row.from = start;
    ++row.count;
    add_saturating(row.bytes, bytes);
    add_saturating(row.sum, duration);
    row.longest = std::max(row.longest, duration);
    row.to = std::max(row.to, end);
    row.track = slice.track;
    int64_t& least = device.least[direction];
    least = least == 0 ? duration : std::min(least, duration);
  }

  // Facts about launch shapes, with the time of their kernels.
  void weigh_kernels(const std::vector<KernelSum>& sums, DeviceActivity& device) const {
    const auto facts = device.row > 0 ? architecture_of(trace_, device.row) : std::nullopt;
    int64_t longest_small = 0, longest_low = 0;
    for (size_t k = 1; k < sums.size(); ++k) {
      const int64_t time = sums[k].time;
      if (time == 0 || kernels_[k].collective == 1) continue;
      const int64_t groups = kernels_[k].groups;
      const bool near_peak = k < near_peak_.size() && near_peak_[k];
      if (device.units > 0 && groups > 0) {
        if (device.small_grid < 0) device.small_grid = 0;
        if (2 * groups <= device.units && !near_peak) {
          add_saturating(device.small_grid, time);
          device.small_grid_idle += static_cast<int64_t>(
              static_cast<double>(time) * (1 - static_cast<double>(groups) / static_cast<double>(device.units)));
          if (time > longest_small) {
            longest_small = time;
            device.small_grid_kernel = static_cast<int64_t>(k);
            device.small_grid_groups = groups;
          }
        }
      }
      if (!facts) continue;
      const Occupancy occupancy = occupancy_of(trace_, static_cast<int64_t>(k), *facts);
      if (occupancy.percent == 0) continue;
      if (device.low_occupancy < 0) device.low_occupancy = 0;
      constexpr double kLow = 25, kEnough = 50;
      if (occupancy.percent >= kLow || near_peak) continue;
      add_saturating(device.low_occupancy, time);
      device.low_occupancy_lost += static_cast<double>(time) * (1 - occupancy.percent / kEnough);
      if (time > longest_low) {
        longest_low = time;
        device.low_occupancy_kernel = static_cast<int64_t>(k);
        device.low_occupancy_percent = occupancy.percent;
        device.low_occupancy_limit = occupancy.limit;
      }
    }
  }

  Result<Activity> finish() {
    for (DeviceState* const state : order_) {
      state->read_clock(state->until);
      state->advance(state->until);
      DeviceActivity& out = state->out;
      if (out.clock_readings > 0) out.clock_mean = state->clock_sum / static_cast<double>(out.clock_readings);
      for (size_t direction = 0; direction < state->rows.size(); ++direction) {
        state->end_row(direction);
        const double at_best = state->best_rate[direction] > 0
                                   ? static_cast<double>(state->row_bytes[direction]) / state->best_rate[direction]
                                   : 0;
        out.small_saved += std::max<int64_t>(state->row_time[direction] - static_cast<int64_t>(at_best), 0);
        out.small_least += (state->row_count[direction] - state->row_rows[direction]) * state->least[direction];
      }
      out.small_least = std::min(out.small_least, out.small_saved);
      out.host_was_in = most_of(trace_, state->host_in);
      out.waited_in = state->waits.most(trace_);
      out.copied_in = state->copy_calls.most(trace_);
      out.overlap = state->all_kernel_sum - state->all_kernel_union;
      for (auto& [track, queue] : state->queues) add_to_row(out, queue, track, false, 0, 0);
      for (const auto& [track, queue] : state->queues)
        if (queue.kernel_time >= state->all_kernel_sum / 10 && queue.kernel_time > 0) ++out.streams;
      out_.devices.push_back(std::move(out));
    }
    for (size_t d = 0; d < order_.size(); ++d) weigh_kernels(order_[d]->sums, out_.devices[d]);
    // First launches cost what they took beyond the mean of the others.
    int64_t launch_calls = 0, launched = 0;
    for (const DeviceActivity& device : out_.devices) {
      add_saturating(launch_calls, device.launch_calls);
      launched += device.launched;
    }
    const int64_t others = launched - first_count_;
    const double usual = others > 0 ? static_cast<double>(launch_calls - first_sum_) / static_cast<double>(others) : 0;
    for (auto& [row, process] : processes_) {
      ProcessActivity& out = process->out;
      out.first_excess =
          others > 0 ? std::max<int64_t>(
                           out.first_excess - static_cast<int64_t>(usual * static_cast<double>(out.first_launches)), 0)
                     : 0;
    }
    for (size_t track = 0; track < hosts_.size(); ++track) {
      if (!hosts_[track]) continue;
      const HostState& host = *hosts_[track];
      const int64_t load = host.sums[static_cast<size_t>(CallKind::kLoad)];
      if (load == 0) continue;
      ProcessActivity& out = process_at(static_cast<int64_t>(track)).out;
      if (load <= out.load) continue;
      out.load = load;
      out.load_calls = host.load_calls;
      out.load_worst = host.load_worst;
    }
    for (auto& [row, process] : processes_) {
      process->out.allocation_parts = std::count(process->parts.begin(), process->parts.end(), true);
      out_.processes.push_back(std::move(process->out));
    }
    std::sort(out_.devices.begin(), out_.devices.end(),
              [](const DeviceActivity& a, const DeviceActivity& b) { return a.row < b.row; });
    return std::move(out_);
  }

  struct Readings {                                 // of a GPU
    std::vector<std::pair<int64_t, double>> clock;  // MHz by time
    double highest = 0, memory = 0;
  };
  struct Shape {
    uint8_t direction = 0;
    bool host = false, pageable = false, memory_known = false, mapping = false;
    int64_t asynchronous = kUnknown;
  };
  static constexpr uint8_t kGraph = static_cast<uint8_t>(CallKind::kEnd), kWork = kGraph + 1;  // in kinds_, then works
  static constexpr int64_t kMostSums = 2 << 20;  // of kernels and devices; further kernels share one

  std::unordered_map<size_t, int64_t> steady_;  // by number of device
  const walk::Span span_;                       // of the trace
  const trace::Trace& trace_;
  const std::vector<bool>& near_peak_;
  DeviceNumbers numbers_;
  Activity out_;
  walk::CallIndex<LaunchingCall> recent_;
  std::vector<uint8_t> kinds_;  // by row of table function
  std::vector<bool> frees_;     // likewise: it gives memory back
  std::vector<HostWork> label_work_;
  int64_t waited_since_ = kUnknown;  // the call of waiting in which the thread of why() was when the device fell idle
  std::vector<KernelFacts> kernels_;
  std::vector<Shape> shapes_;
  std::map<std::pair<std::string_view, int64_t>, Readings> readings_;  // by host and the vendor's number
  std::vector<std::unique_ptr<HostState>> hosts_;                      // by track
  std::vector<DeviceState*> device_of_track_;
  std::vector<ProcessState*> process_of_track_;
  std::map<size_t, std::unique_ptr<DeviceState>> devices_;  // by physical device
  std::vector<DeviceState*> order_;
  std::map<int64_t, std::unique_ptr<ProcessState>> processes_;
  int64_t first_sum_ = 0, first_count_ = 0;
};

}  // namespace

Result<Activity> activity(const trace::Trace& trace, const std::vector<bool>& near_peak) {
  return Watch(trace, near_peak).run();
}

}  // namespace tacho::analysis
