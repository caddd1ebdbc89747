// The first of two passes over a Perfetto trace: what must be known before its first event, wherever it stands.
#pragma once

#include <cstdint>
#include <vector>

#include "base/files/sorted_file.h"
#include "format/perfetto/read/clocks.h"
#include "format/perfetto/read/gpu_events.h"
#include "format/perfetto/read/lines.h"
#include "format/perfetto/read/sequences.h"

namespace tacho::format::perfetto {

/// Collects tracks, processes, GPUs, clock snapshots, which tracks are not in order of time, and which calls caused
/// which events of the GPU.
class Survey {
 public:
  Survey(TraceLines& lines, SnapshotClocks& clocks, KeyIndex<SubmittingCall>& submissions)
      : lines_(lines), clocks_(clocks), submissions_(submissions) {}
  /// Any packet but the compressed ones, in the order of the file.
  void see(const PacketHead& head);
  Status finish();

 private:
  struct LineOrder {
    uint32_t sequence = 0, clock = 0;
    int64_t time = event::kUnknown;
  };
  void take(const PacketHead& head, SequenceState& state);
  void keys(std::string_view interned, SequenceState& state);
  void old_thread(const PacketHead& head, SequenceState& state);
  void track_event(const PacketHead& head, SequenceState& state, int64_t time, uint32_t clock);
  void submission(std::string_view event, uint64_t uuid, const SequenceState& state);

  TraceLines& lines_;
  SnapshotClocks& clocks_;
  KeyIndex<SubmittingCall>& submissions_;
  Sequences sequences_;
  std::vector<LineOrder> orders_;  // by line
  uint64_t keys_ = 0;
};

/// Where an old sequence's own thread is.
uint64_t thread_uuid_of(const PacketHead& head);

}  // namespace tacho::format::perfetto
