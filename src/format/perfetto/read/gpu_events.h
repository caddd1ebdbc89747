// Render stages and compute launches of GPUs become kernels, copies, fills and markers; their counters become readings.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string_view>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "format/perfetto/read/track_events.h"

namespace tacho::format::perfetto {

/// Which call caused an event of the GPU, by the event's id.
struct SubmittingCall {
  uint64_t line_uuid = 0;
  int64_t correlation = 0;
};

/// Whether an interned descriptor has counters of kernels: of the group for them, and with values that hold from their
/// time on, which is then the kernel's start.
bool counts_kernels(std::string_view interned_descriptor);

class GpuEvents {
 public:
  GpuEvents(trace::TraceWriter& writer, imported::ImportTracker& tracker, TraceLines& lines, SliceRows& rows,
            TrackEvents& events, KeyIndex<SubmittingCall>& submissions)
      : writer_(writer), tracker_(tracker), lines_(lines), rows_(rows), events_(events), submissions_(submissions) {}
  void render_stage(const EventPacket& packet, std::string_view message);
  void counters(const EventPacket& packet, std::string_view message);
  void finish();

 private:
  struct Stage {
    bool has_event_id, has_duration, has_name, has_queue, launched;
    uint64_t event_id, duration, context, queue, gpu;
    int64_t waits, extra_process, extra_context;
    StageWords stage;
    EventName name;
    ComputeKernel kernel;
    event::MemoryKind memory;
    int64_t architecture;
  };
  void parse(const EventPacket& packet, std::string_view message, Stage& stage);
  void extra(std::string_view message, Stage& stage);
  void launch(const EventPacket& packet, std::string_view message, Stage& stage);
  int64_t end_of_copy(const AgentLabel& label, uint32_t machine);
  void specifications(std::string_view message);
  int64_t process_of(const EventPacket& packet, const Stage& stage, const SubmittingCall* call);
  int64_t queue_of(int64_t process, int64_t device, const Stage& stage, const EventPacket& packet);
  int64_t inline_scope(uint32_t sequence, bool describes);
  void descriptor(int64_t scope, std::string_view message);

  trace::TraceWriter& writer_;
  imported::ImportTracker& tracker_;
  TraceLines& lines_;
  SliceRows& rows_;
  TrackEvents& events_;
  KeyIndex<SubmittingCall>& submissions_;
  EventFacts facts_;
  std::vector<StageWords> old_queues_, old_stages_;  // of the older specifications, by place
  tsl::robin_map<uint64_t, int64_t> old_contexts_;   // pids
  NumberMap<3> counters_;                            // track or counter by scope, number and GPU
  tsl::robin_map<uint32_t, int64_t> inline_scopes_;  // by sequence
  tsl::robin_map<int64_t, bool> described_;          // scopes whose counters are known
  struct ToldCounter {
    std::string name, unit, text, group;
    bool of_kernels = false;
  };
  tsl::robin_map<uint64_t, ToldCounter> told_;      // by scope and number
  tsl::robin_map<int64_t, int64_t> ends_;           // by queue: when its last kernel ended
  tsl::robin_map<int64_t, int64_t> architectures_;  // by GPU
  uint64_t cut_ = 0, kernels_ = 0;
};

}  // namespace tacho::format::perfetto
