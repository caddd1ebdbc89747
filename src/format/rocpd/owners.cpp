// Numbers processes, threads and queues as rocprofv3 does, by pid and tid where these are unique (owners.h).
#include "format/rocpd/owners.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/format.h"
#include "format/import/origin.h"
#include "format/rocpd/words.h"
#include "trace/read/rows.h"

namespace tacho::format::rocpd {

using event::kUnknown;
using event::Table;
namespace column = event::column;
using report::Cell;

namespace {

using P = column::Process;
using T = column::Track;

Cell known(int64_t value) {
  return value == kUnknown ? Cell() : Cell(value);
}
Cell text(std::string_view value) {
  return std::string(value);
}

}  // namespace

RocpdOwners::RocpdOwners(const trace::Trace& trace, const walk::Agents& agents, const walk::OutputClock& clock,
                         std::string guid, int64_t process)
    : trace_(trace), agents_(agents), clock_(clock), guid_(std::move(guid)) {
  processes_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)));
  tracks_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  for (size_t row = 0; row < processes_.size(); ++row)
    processes_[row].wanted = process == 0 || process == static_cast<int64_t>(row);
  number_processes();
  number_threads();
  for (size_t row = 0; row < tracks_.size(); ++row)
    tracks_[row].wanted = process == 0 || process == tracks_[row].process;
  number_queues();
}

const RocpdOwners::OfProcess& RocpdOwners::process(int64_t row) const {
  const auto count = static_cast<int64_t>(processes_.size());
  const int64_t at = row > 0 && row < count ? row : 0;
  return processes_[static_cast<size_t>(at == 0 && processes_[0].id == 0 && count > 1 ? 1 : at)];
}

void RocpdOwners::number_processes() {
  std::map<std::string_view, int64_t> node_of;
  std::set<int64_t> used;
  int64_t next_extra = 1;
  nameless_ = processes_.size() == 1;
  for (int64_t row = 1; row < trace_.rows(Table::kTrack) && !nameless_; ++row)
    nameless_ = trace::cell<T::process>(trace_, row) <= 0;
  // Row 0 stands for tracks that name no process; it becomes a process only if there are any.
  for (size_t row = nameless_ ? 0 : 1; row < processes_.size(); ++row) {
    const auto at = static_cast<int64_t>(row);
    const std::string_view host = trace::text<P::host>(trace_, at);
    const auto [node, fresh] = node_of.try_emplace(host, 0);
    if (fresh) {
      uint64_t hash = 1469598103934665603ULL;
      for (const char c : host) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
      node->second = static_cast<int64_t>(hash % 0xfffffffe) + 1;
      nodes_.try_emplace(node->second, host);
    }
    OfProcess& one = processes_[row];
    one.node = node->second;
    one.pid = row > 0 ? trace::cell<P::pid>(trace_, at) : 0;
    one.id = one.pid > 0 && !used.contains(one.pid) ? one.pid : (int64_t{1} << 32) + next_extra++;
    used.insert(one.id);
  }
}

// A thread's id is its tid, unless another thread has taken that.
void RocpdOwners::number_threads() {
  std::set<int64_t> used;
  int64_t extra = int64_t{1} << 33;
  const auto number = [&](int64_t wanted) {
    const int64_t id = wanted > 0 && !used.contains(wanted) ? wanted : ++extra;
    used.insert(id);
    return id;
  };
  const auto count = static_cast<int64_t>(processes_.size());
  std::vector<int64_t> id_of(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kThread), 1)), 0);
  for (int64_t row = 1; row < trace_.rows(Table::kThread); ++row) {
    const auto thread = trace::row<event::row::Thread>(trace_, row);
    const int64_t id = id_of[static_cast<size_t>(row)] = number(thread.tid);
    threads_.push_back({id, thread.process, row});
    if (thread.process > 0 && thread.process < count &&
        thread.tid == processes_[static_cast<size_t>(thread.process)].pid)
      processes_[static_cast<size_t>(thread.process)].main_thread = id;
  }
  for (int64_t row = nameless_ ? 0 : 1; row < count; ++row) {
    OfProcess& of = processes_[static_cast<size_t>(row)];
    if (of.main_thread != 0) continue;
    of.main_thread = number(of.pid);
    threads_.push_back({of.main_thread, row, 0});
  }
  std::sort(threads_.begin(), threads_.end());
  for (size_t row = 0; row < tracks_.size(); ++row) {
    OfTrack& one = tracks_[row];
    const auto track = trace::row<event::row::Track>(trace_, static_cast<int64_t>(row));
    one.process = track.process;
    const OfProcess& of = process(track.process);
    one.process_id = of.id;
    one.node = of.node;
    const bool named = track.thread > 0 && static_cast<size_t>(track.thread) < id_of.size();
    one.thread = named ? id_of[static_cast<size_t>(track.thread)] : of.main_thread;
    one.tid = named ? trace::cell<column::Thread::tid>(trace_, track.thread) : of.pid;
  }
}

// Each line of device work gets a queue and a stream, numbered in order; 0 are the default ones.
void RocpdOwners::number_queues() {
  std::map<std::array<int64_t, 4>, int64_t> ids;
  for (size_t row = 1; row < tracks_.size(); ++row) {
    const auto track = trace::row<event::row::Track>(trace_, static_cast<int64_t>(row));
    tracks_[row].agent = agents_.of(track.device).node;
    if (track.kind != event::TrackKind::kQueue) continue;
    const auto [found, fresh] = ids.try_emplace({track.process, track.device, track.native, track.context},
                                                static_cast<int64_t>(ids.size()) + 1);
    tracks_[row].queue = found->second;
    if (fresh) owner_of_queue_.push_back(track.process);
  }
}

Status RocpdOwners::find_marks() {
  std::map<int64_t, std::pair<int64_t, int64_t>> firsts;  // thread -> the first mark and its track
  TACHO_TRY(trace_.visit_summaries(Table::kMarker, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      if (trace::cell<column::Label::kind>(trace_, summary.dim) != event::MarkerKind::kMark) continue;
      const OfTrack& on = track(summary.track);
      if (!on.wanted) continue;
      const std::pair mark = {summary.first, summary.track};
      const auto [known, fresh] = firsts.try_emplace(on.thread, mark);
      if (!fresh) known->second = std::min(known->second, mark);
    }
  }));
  std::vector<std::pair<int64_t, int64_t>> order;
  for (const auto& [thread, first] : firsts) order.push_back(first);
  std::sort(order.begin(), order.end());
  for (const auto& [time, on] : order) {
    mark_tracks_.push_back(on);
    marks_[track(on).thread] = static_cast<int64_t>(mark_tracks_.size());
  }
  return {};
}

int64_t RocpdOwners::mark_track(int64_t track_row) const {
  const auto found = marks_.find(track(track_row).thread);
  return found != marks_.end() ? found->second : 0;
}

RocpdOwners::Rows RocpdOwners::nodes() const {
  Rows rows;
  for (const auto& [id, host] : nodes_)
    rows.push_back(
        {id, guid_, id, host.empty() ? fmt::format("unknown-{}", id) : host, text("Linux"), host, {}, {}, {}, {}});
  return rows;
}

RocpdOwners::Rows RocpdOwners::processes() const {
  Rows rows;
  const auto [first, last] = trace_.time_range();
  for (int64_t row = nameless_ ? 0 : 1; row < static_cast<int64_t>(processes_.size()); ++row) {
    const auto cell = [&](int at) { return row > 0 ? trace_.cell(Table::kProcess, row, at) : kUnknown; };
    const int64_t start = cell(P::start);
    const int64_t from = clock_(start == kUnknown || start == 0 ? first : start), to = clock_(last);
    const OfProcess& of = process(row);
    rows.push_back({of.id, guid_, of.node, known(cell(P::parent_pid)), of.pid, from, to, from, to,
                    text(trace::text<P::command>(trace_, row)), text("{}"),
                    row > 0 ? text(imported::process_origin(trace_, row)) : text("{}")});
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  return rows;
}

RocpdOwners::Rows RocpdOwners::threads() const {
  Rows rows;
  for (const auto& [id, of, row] : threads_) {
    const OfProcess& owner = process(of);
    rows.push_back({id,
                    guid_,
                    owner.node,
                    known(of > 0 ? trace::cell<P::parent_pid>(trace_, of) : kUnknown),
                    owner.id,
                    row > 0 ? trace::cell<column::Thread::tid>(trace_, row) : owner.pid,
                    text(trace::text<column::Thread::name>(trace_, row)),
                    {},
                    {},
                    text("{}")});
  }
  return rows;
}

RocpdOwners::Rows RocpdOwners::agents() const {
  using D = column::Device;
  std::vector<const walk::Agent*> order;
  for (const walk::Agent& agent : agents_.all()) order.push_back(&agent);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->node < b->node; });
  Rows rows;
  int64_t last = -1;
  for (const walk::Agent* const agent : order) {
    if (agent->node == last) continue;  // the same device, seen by another process
    last = agent->node;
    const int64_t owner = trace::cell<D::process>(trace_, agent->device);
    const OfProcess& of = owner > 0 ? process(owner) : first();
    const auto product = text(agent->device > 0 ? trace::text<D::name>(trace_, agent->device) : "host");
    const std::string_view architecture = trace::text<D::architecture>(trace_, agent->device);
    const bool cpu = agent->kind == event::DeviceKind::kCpu || agent->device == 0;
    rows.push_back(
        {agent->node, guid_, of.node, of.id, text(cpu ? "CPU" : "GPU"), agent->node, agent->logical, agent->of_type,
         int64_t{0}, architecture.empty() ? product : text(architecture), product,
         text(trace::text<D::vendor>(trace_, agent->device)), product, product,
         text(agent->device > 0 ? imported::device_origin(trace_, agent->device) : std::string(kHostAgent))});
  }
  return rows;
}

std::string RocpdOwners::line_name(std::string_view word, int64_t id) {
  return id == 0 ? fmt::format("Default {}", word) : fmt::format("{} {}", word, id);
}

RocpdOwners::Rows RocpdOwners::lines(std::string_view word) const {
  Rows rows;
  for (size_t id = 0; id <= owner_of_queue_.size(); ++id) {
    const OfProcess& owner = id == 0 ? first() : process(owner_of_queue_[id - 1]);
    const auto number = static_cast<int64_t>(id);
    rows.push_back({number, guid_, owner.node, owner.id, line_name(word, number), text("{}")});
  }
  return rows;
}

RocpdOwners::Rows RocpdOwners::mark_tracks(int64_t name_id) const {
  Rows rows;
  for (const int64_t row : mark_tracks_) {
    const OfTrack& on = track(row);
    rows.push_back(
        {static_cast<int64_t>(rows.size()) + 1, guid_, on.node, on.process_id, on.thread, name_id, text("{}")});
  }
  return rows;
}

}  // namespace tacho::format::rocpd
