// The numbers by which .rpd files name processes, threads, GPUs and queues.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace tacho::format::rpd {

/// What tells several hosts or runs in one file apart, as upstream's multi-node views expect: the node's number, from
/// 0, times these.
inline constexpr int64_t kPidStride = 10'000'000, kGpuStride = 1000;

struct RpdTrack {
  int64_t process = 0;  // row
  int64_t pid = 0;
  int64_t tid = 0;  // of a track without a thread: pid
  int64_t gpu = 0;
  int64_t queue = 0, sequence = 0;
  int64_t native = 0;
};

/// By row of table track; row 0 is empty.
/// Tags of rocpd_metadata under which tacho tells about a pid and a gpuId: followed by the number, with an origin
/// (format/import/origin.h) as value.
inline constexpr std::string_view kProcessTag = "tacho::process ", kGpuTag = "tacho::gpu ";

std::vector<RpdTrack> rpd_tracks(const trace::Trace& trace);

/// By row of table function: whether upstream records the grids of its launches in work-items.
std::vector<bool> functions_that_count_items(const trace::Trace& trace);

}  // namespace tacho::format::rpd
