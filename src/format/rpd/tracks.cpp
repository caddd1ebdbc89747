// Numbers of tracks in .rpd files (tracks.h).
#include "format/rpd/tracks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "format/rpd/op_type.h"
#include "trace/read/rows.h"

namespace tacho::format::rpd {

using event::kUnknown;
using event::Table;
namespace column = event::column;

std::vector<RpdTrack> rpd_tracks(const trace::Trace& trace) {
  using P = column::Process;
  const auto place = [&](int64_t process) {
    return std::pair(trace::cell<P::run>(trace, process), trace::cell<P::host>(trace, process));
  };
  std::map<std::pair<int64_t, int64_t>, int64_t> nodes;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    nodes.try_emplace(place(process), static_cast<int64_t>(nodes.size()));
  const bool from_rpd = trace.property(Table::kEnd, 0, "source").value_or("") == "rpd";
  // A process without a pid, and another one of the same pid on one node, get a number that Linux does not assign: an
  // .rpd file knows processes by nothing else.
  constexpr int64_t kMostPid = 1 << 22;
  std::set<std::pair<int64_t, int64_t>> taken;  // node, pid
  std::vector<int64_t> pids(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)), 0);
  const auto node_of = [&](int64_t process) {
    const auto found = nodes.find(place(process));
    return process > 0 && found != nodes.end() ? found->second : 0;
  };
  for (size_t process = 1; process < pids.size(); ++process) {
    const int64_t pid = trace::cell<P::pid>(trace, static_cast<int64_t>(process));
    if (pid > 0 && pid < kPidStride && taken.insert({node_of(static_cast<int64_t>(process)), pid}).second)
      pids[process] = pid;
  }
  std::map<int64_t, int64_t> next;  // by node
  for (size_t process = 1; process < pids.size(); ++process) {
    if (pids[process] != 0) continue;
    const int64_t node = node_of(static_cast<int64_t>(process));
    int64_t& number = next.try_emplace(node, kMostPid).first->second;
    do ++number;
    while (!taken.insert({node, number}).second);
    pids[process] = number;
  }
  std::vector<RpdTrack> tracks(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  for (int64_t row = 1; row < static_cast<int64_t>(tracks.size()); ++row) {
    RpdTrack& track = tracks[static_cast<size_t>(row)];
    const auto stored = trace::row<event::row::Track>(trace, row);
    const int64_t node = node_of(stored.process);
    track.process = stored.process;
    track.pid = pids[static_cast<size_t>(stored.process)] + node * kPidStride;
    const int64_t tid = stored.thread > 0 ? trace::cell<column::Thread::tid>(trace, stored.thread) : kUnknown;
    track.tid = tid != kUnknown ? tid + node * kPidStride : track.pid;
    const int64_t index = stored.device > 0 ? trace::cell<column::Device::index>(trace, stored.device) : 0;
    track.gpu = (index == kUnknown ? 0 : index) + node * kGpuStride;
    track.native = stored.native;
    const bool cuda = stored.device > 0 && trace::text<column::Device::vendor>(trace, stored.device).find("NVIDIA") !=
                                               std::string_view::npos;
    // Like upstream's CUDA backend: the context is the queue, the stream the sequence. Ignores the others.
    track.queue = cuda ? stored.context : stored.native;
    track.sequence = cuda ? stored.native : from_rpd ? stored.context : 0;
  }
  return tracks;
}

std::vector<bool> functions_that_count_items(const trace::Trace& trace) {
  std::vector<bool> count(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), false);
  for (size_t row = 1; row < count.size(); ++row)
    count[row] = launches_items(trace::text<column::Function::name>(trace, static_cast<int64_t>(row)));
  return count;
}

}  // namespace tacho::format::rpd
