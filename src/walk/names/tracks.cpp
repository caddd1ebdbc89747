// Numbers and names of tracks (tracks.h).
#include "walk/names/tracks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace tacho::walk {

namespace column = event::column;
using event::kUnknown;
using event::Table;
using event::TrackKind;

namespace {

// The number in a property; nullopt if the track has none.
std::optional<int64_t> number_property(const trace::Trace& trace, int64_t track, std::string_view name) {
  int64_t number = 0;
  const auto text = trace.property(Table::kTrack, track, name);
  if (text && std::from_chars(text->data(), text->data() + text->size(), number).ec == std::errc()) return number;
  return std::nullopt;
}

}  // namespace

std::array<int64_t, 6> queue_identity(const trace::Trace& trace, int64_t track, bool by_queue) {
  const auto cell = [&](int at) { return trace.cell(Table::kTrack, track, at); };
  std::array<int64_t, 6> identity = {cell(column::Track::process), cell(column::Track::device),
                                     cell(column::Track::native),  cell(column::Track::context),
                                     cell(column::Track::name),    cell(column::Track::category)};
  const auto queue = number_property(trace, track, "queue");
  if (!queue || trace.string(cell(column::Track::category)) != "stream") return identity;
  if (by_queue) identity[2] = *queue;
  if (by_queue || identity[3] == *queue) identity[3] = 0;
  return identity;
}

Tracks::Tracks(const trace::Trace& trace, const Agents& agents, const Naming& naming)
    : trace_(trace), agents_(agents), naming_(naming), threads_(trace) {
  const int64_t processes = std::max<int64_t>(trace.rows(Table::kProcess), 1);
  pids_.resize(static_cast<size_t>(processes));
  std::set<int64_t> taken, hosts, runs;
  constexpr int64_t kMostPid = 1 << 22;  // the highest that Linux assigns; our own numbers are above
  for (int64_t process = 1; process < processes; ++process) {
    const int64_t pid = trace.cell(Table::kProcess, process, column::Process::pid);
    if (pid > 0 && pid <= 0x7fffffff && taken.insert(pid).second) pids_[static_cast<size_t>(process)] = pid;
    hosts.insert(trace.cell(Table::kProcess, process, column::Process::host));
    runs.insert(trace.cell(Table::kProcess, process, column::Process::run));
  }
  several_hosts_ = hosts.size() > 1;
  several_runs_ = runs.size() > 1;
  int64_t next = kMostPid + 1;
  for (int64_t& pid : pids_)
    if (pid == 0) {
      while (!taken.insert(next).second) ++next;
      pid = next;
    }

  const int64_t tracks = std::max<int64_t>(trace.rows(Table::kTrack), 1);
  queue_index_.resize(static_cast<size_t>(tracks));
  stream_.assign(static_cast<size_t>(tracks), kUnknown);
  shared_stream_.resize(static_cast<size_t>(tracks));
  std::map<std::tuple<int64_t, int64_t>, std::map<std::pair<int64_t, int64_t>, int64_t>> of_agent;
  std::map<std::tuple<int64_t, int64_t>, std::set<int64_t>> devices_of_stream;
  for (int64_t track = 1; track < tracks; ++track) {
    const auto cell = [&](int at) { return trace.cell(Table::kTrack, track, at); };
    if (cell(column::Track::kind) != static_cast<int64_t>(TrackKind::kQueue)) continue;
    const auto at = static_cast<size_t>(track);
    auto& queues = of_agent[{cell(column::Track::process), cell(column::Track::device)}];
    const auto identity = queue_identity(trace, track, true);
    queue_index_[at] =
        queues.try_emplace({identity[3], identity[2]}, static_cast<int64_t>(queues.size())).first->second;
    if (trace.string(cell(column::Track::category)) == "stream")
      stream_[at] = cell(column::Track::native);
    else
      stream_[at] = number_property(trace, track, "stream").value_or(kUnknown);
    if (stream_[at] != kUnknown)
      devices_of_stream[{cell(column::Track::process), stream_[at]}].insert(cell(column::Track::device));
  }
  for (int64_t track = 1; track < tracks; ++track) {
    const auto at = static_cast<size_t>(track);
    if (stream_[at] != kUnknown) shared_stream_[at] = devices_of_stream[{process(track), stream_[at]}].size() > 1;
  }
}

std::string Tracks::process_name(int64_t process) const {
  std::string name(trace_.text(Table::kProcess, process, column::Process::name));
  if (name.empty()) name = process == 0 ? "machine" : "process";
  const int64_t rank = trace_.cell(Table::kProcess, process, column::Process::rank);
  if (process != 0 && rank != kUnknown) name += fmt::format(" rank {}", rank);
  if (several_hosts_ && process != 0)
    name += fmt::format(" on {}", trace_.text(Table::kProcess, process, column::Process::host));
  if (several_runs_ && process != 0)
    name += fmt::format(" run {}", trace_.cell(Table::kProcess, process, column::Process::run));
  return name;
}

int64_t Tracks::tid(int64_t track) const {
  const int64_t thread = trace_.cell(Table::kTrack, track, column::Track::thread);
  return thread == 0 ? 0 : trace_.cell(Table::kThread, thread, column::Thread::tid);
}

int64_t Tracks::own_tid(int64_t track) const {
  const auto kind = static_cast<TrackKind>(trace_.cell(Table::kTrack, track, column::Track::kind));
  return kind == TrackKind::kThread ? tid(track) : 0;
}

int64_t Tracks::queue(int64_t track) const {
  if (const auto own = number_property(trace_, track, "queue")) return *own;
  return trace_.cell(Table::kTrack, track, column::Track::kind) == static_cast<int64_t>(TrackKind::kQueue)
             ? trace_.cell(Table::kTrack, track, column::Track::native)
             : kUnknown;
}
int64_t Tracks::stream(int64_t track) const {
  return track > 0 && track < static_cast<int64_t>(stream_.size()) ? stream_[static_cast<size_t>(track)] : kUnknown;
}

std::string Tracks::name(int64_t track) const {
  const auto cell = [&](int at) { return trace_.cell(Table::kTrack, track, at); };
  const std::string_view own = trace_.string(cell(column::Track::name));
  const auto at = static_cast<size_t>(track);
  switch (static_cast<TrackKind>(cell(column::Track::kind))) {
    case TrackKind::kThread: {
      const int64_t thread = cell(column::Track::thread);
      const int64_t index = threads_.index(thread);
      const std::string_view called = trace_.text(Table::kThread, thread, column::Thread::name);
      if (index == 0)
        return std::string(called.empty() ? trace_.text(Table::kProcess, process(track), column::Process::name)
                                          : called);
      std::string name = fmt::format("THREAD {} ({})", index, tid(track));
      // A thread that never named itself has its process's name.
      if (!called.empty() && called != trace_.text(Table::kProcess, process(track), column::Process::name))
        name += fmt::format(" {}", called);
      return name;
    }
    case TrackKind::kQueue: {
      const int64_t device = cell(column::Track::device);
      const auto [word, number] = agents_.label_parts(device, naming_.agent_index);
      if (stream_[at] != kUnknown && !naming_.group_by_queue) {
        std::string name = fmt::format("STREAM [\" {} \"] ", stream_[at]);
        // rocprofv3 has one such line for all devices, but two devices in one line would be wrong.
        if (shared_stream_[at]) name += fmt::format("{} [{}]", word, number);
        if (!own.empty() && own != fmt::format("Stream {}", stream_[at])) name += fmt::format(" {}", own);
        return name;
      }
      std::string name = fmt::format("COMPUTE {} [{}] QUEUE [{}] {}", word, number, queue_index_[at],
                                     type_word(agents_.of(device).kind));
      if (!own.empty()) name += fmt::format(" {}", own);
      return name;
    }
    default:
      break;
  }
  if (!own.empty()) return std::string(own);
  const std::string_view category = trace_.string(cell(column::Track::category));
  return category.empty() ? fmt::format("track {}", track) : std::string(category);
}

}  // namespace tacho::walk
