// The makers (rows.h).
#include "format/import/rows.h"

namespace tacho::format::imported {

using event::CopyDirection;
using event::kUnknown;
namespace row = event::row;

row::Kernel launch_of(int64_t name, const int64_t (&grid)[3], const int64_t (&group)[3], bool in_items) {
  int64_t items[3];
  for (int i = 0; i < 3; ++i) {
    items[i] = grid[i];
    if (in_items) continue;
    if (grid[i] == kUnknown || group[i] == kUnknown || __builtin_mul_overflow(grid[i], group[i], &items[i]))
      items[i] = kUnknown;
  }
  return {.name = name,
          .kind = event::DispatchKind::kKernel,
          .grid_x = items[0],
          .grid_y = items[1],
          .grid_z = items[2],
          .group_x = group[0],
          .group_y = group[1],
          .group_z = group[2]};
}

row::CopyShape copy_shape(CopyDirection direction, int64_t device, event::MemoryKind from, event::MemoryKind to) {
  const bool source = direction == CopyDirection::kDeviceToHost || direction == CopyDirection::kDeviceToDevice;
  const bool target = direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToDevice;
  return {.direction = direction,
          .source_memory = from,
          .target_memory = to,
          .source_device = source ? device : 0,
          .target_device = target ? device : 0};
}

int64_t thread_line(trace::TraceWriter& writer, int64_t process, int64_t tid, int64_t native, int64_t name,
                    int64_t* thread) {
  const int64_t row = writer.dimension(row::Thread{.process = process, .tid = tid, .name = name});
  if (thread != nullptr) *thread = row;
  return writer.dimension(row::Track{.kind = event::TrackKind::kThread,
                                     .process = process,
                                     .thread = row,
                                     .native = native,
                                     .category = writer.string("thread")});
}

int64_t queue_line(trace::TraceWriter& writer, int64_t process, int64_t device, int64_t queue, int64_t stream) {
  const bool streamed = stream != kUnknown;
  if (queue == kUnknown) queue = 0;
  return writer.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                     .process = process,
                                     .device = device,
                                     .native = streamed ? stream : queue,
                                     .context = streamed ? queue : 0,
                                     .category = writer.string(streamed ? "stream" : "queue")});
}

}  // namespace tacho::format::imported
