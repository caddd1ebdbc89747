// Field numbers of Perfetto's messages that only the reader uses (perfetto/protos, August 2026); packets.h has those
// that tacho also writes.
#pragma once

#include <cstdint>

#include "format/perfetto/packets.h"

namespace tacho::format::perfetto {

/// Named message_field as in packets.h.
enum ReadField : uint32_t {
  trace_packet = 1,
  packet_ftrace_events = 1,
  packet_process_tree = 2,
  packet_trace_config = 33,
  packet_trace_stats = 35,
  packet_synchronization_marker = 36,
  packet_state_cleared = 41,
  packet_previous_dropped = 42,
  packet_process_descriptor = 43,
  packet_thread_descriptor = 44,
  packet_compressed = 50,
  packet_trusted_pid = 79,
  packet_first_on_sequence = 87,
  packet_trace_uuid = 89,
  packet_zstd_compressed = 133,
  defaults_track_event = 11,
  defaults_perf_sample = 12,
  event_defaults_track = 11,
  event_defaults_counters = 31,
  event_defaults_double_counters = 45,
  sample_defaults_timebase = 1,
  timebase_frequency = 2,
  clock_multiplier = 4,
  track_static_name = 10,
  track_atrace_name = 13,
  track_gpu = 3000,
  gpu_track_gpu = 1,
  gpu_track_queue_iid = 2,
  gpu_track_queue = 3,
  counter_multiplier = 4,
  counter_incremental = 5,
  counter_type = 1,
  event_delta_us = 1,
  event_thread_time_delta = 2,
  event_legacy = 6,
  event_extra_values = 12,
  event_absolute_us = 16,
  event_categories = 22,
  event_extra_tracks = 31,
  event_old_flows = 36,
  event_old_ends = 42,
  event_extra_double_tracks = 45,
  event_extra_doubles = 46,
  event_flow_ends = 48,
  event_correlation = 52,
  legacy_name_iid = 1,
  legacy_phase = 2,
  legacy_duration_us = 3,
  legacy_unscoped_id = 6,
  legacy_scope = 7,
  legacy_local_id = 10,
  legacy_global_id = 11,
  legacy_pid = 18,
  legacy_tid = 19,
  annotation_pointer = 7,
  annotation_nested = 8,
  annotation_json = 9,
  annotation_name = 10,
  annotation_dict = 11,
  annotation_array = 12,
  interned_source_paths = 18,
  frame_source_path = 5,
  frame_line = 6,
  kernel_arguments = 5,
  gpu_event_descriptor = 1,
  gpu_event_gpu = 3,
  gpu_counter_int = 2,
  stage_queue_id = 3,
  stage_stage_id = 4,
  stage_extra = 6,
  stage_specifications = 7,
  stage_submission = 10,
  stage_waits = 18,
  stage_logical_queue = 22,
  extra_name = 1,
  extra_value = 2,
  argument_name = 2,
  specifications_context = 1,
  specifications_queue = 2,
  specifications_stage = 3,
  tree_processes = 1,
  tree_threads = 2,
  tree_process_pid = 1,
  tree_process_command = 3,
  tree_thread_tid = 1,
  tree_thread_name = 2,
  tree_thread_process = 3,
  thread_reference_us = 6,
};

/// TrackEvent.type.
enum class EventType : uint32_t { kLegacy = 0, kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

/// The clocks of every trace (BuiltinClock); 64 to 127 belong to one sequence, others are the trace's own.
namespace builtin_clock {
inline constexpr uint32_t kRealtime = 1, kMonotonic = 3, kMonotonicRaw = 5, kBoottime = 6;
/// Linux's name; "" for clocks that are not Linux's or of one process or thread only.
constexpr std::string_view name(uint32_t clock) {
  switch (clock) {
    case kRealtime:
      return "CLOCK_REALTIME";
    case 2:
      return "CLOCK_REALTIME_COARSE";
    case kMonotonic:
      return "CLOCK_MONOTONIC";
    case 4:
      return "CLOCK_MONOTONIC_COARSE";
    case kMonotonicRaw:
      return "CLOCK_MONOTONIC_RAW";
    case kBoottime:
      return "CLOCK_BOOTTIME";
    default:
      return {};
  }
}
}  // namespace builtin_clock

/// TracePacket.sequence_flags.
inline constexpr uint64_t kStateCleared = 1, kNeedsState = 2;

}  // namespace tacho::format::perfetto
