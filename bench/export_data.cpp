// Makes a trace of many events for bench/export.sh: export_data FILE EVENTS. A third each: API calls, dispatches they
// launch, and markers, copies and readings between them, over 4 threads and 8 queues.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "trace/write/writer.h"

using namespace tacho;
using event::kUnknown;
namespace row = event::row;
using event::Table;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: export_data FILE EVENTS\n"), 2;
  const int64_t events = std::atoll(argv[2]);
  auto made = trace::TraceWriter::create(argv[1], {.overwrite = true});
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  trace::TraceWriter& out = **made;
  const auto text = [&](const std::string& value) { return out.string(value); };
  const int64_t process = out.dimension(row::Process{.pid = 4242,
                                                     .parent_pid = 1,
                                                     .start = 0,
                                                     .name = text("train"),
                                                     .command = text("train --epochs 3"),
                                                     .host = text("node1")});
  const int64_t device = out.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                                   .index = 0,
                                                   .name = text("GPU"),
                                                   .vendor = text("Vendor"),
                                                   .architecture = text("gfx942"),
                                                   .driver = text("1")});
  int64_t threads[4], queues[8], kernels[500], functions[40], labels[100];
  for (int i = 0; i < 4; ++i) {
    const int64_t thread =
        out.dimension(row::Thread{.process = process, .tid = 4242 + i, .name = text(i == 0 ? "train" : "worker")});
    threads[i] = out.dimension(row::Track{.kind = event::TrackKind::kThread,
                                          .process = process,
                                          .thread = thread,
                                          .native = 4242 + i,
                                          .category = text("thread")});
  }
  for (int i = 0; i < 8; ++i)
    queues[i] = out.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                         .process = process,
                                         .device = device,
                                         .native = i,
                                         .category = text("stream")});
  for (int i = 0; i < 500; ++i) {
    kernels[i] =
        out.dimension(row::Kernel{.name = text("void at::native::vectorized_elementwise_kernel<" + std::to_string(i) +
                                               ", at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int)"),
                                  .grid_x = 65536 + 256 * i,
                                  .grid_y = 1,
                                  .grid_z = 1,
                                  .group_x = 256,
                                  .group_y = 1,
                                  .group_z = 1,
                                  .registers = 32 + i % 64,
                                  .accum_registers = 0,
                                  .scalar_registers = 0,
                                  .shared_static = 0,
                                  .shared_dynamic = 0,
                                  .private_bytes = 0,
                                  .cache_config = 0,
                                  .carveout = 0});
  }
  for (int i = 0; i < 40; ++i)
    functions[i] = out.dimension(
        row::Function{.name = text("hipFunctionNumber" + std::to_string(i)), .domain = event::Domain::kHipRuntime});
  for (int i = 0; i < 100; ++i)
    labels[i] = out.dimension(row::Label{.name = text("layer " + std::to_string(i) + " forward")});
  const int64_t copy = out.dimension(row::CopyShape{.direction = event::CopyDirection::kHostToDevice,
                                                    .source_memory = event::MemoryKind::kPinned,
                                                    .target_memory = event::MemoryKind::kDevice,
                                                    .target_device = device,
                                                    .asynchronous = 1});
  std::mt19937_64 random(1);
  int64_t time = 1'000'000'000'000, device_time = time, correlation = 0, written = 0, ordinal = 0;
  for (int64_t s = 0; s < 60; ++s)
    out.add(row::Clock{.raw = time + s * 1'000'000'000,
                       .monotonic = time + s * 1'000'010'000,
                       .boottime = time + 5000 + s * 1'000'010'000,
                       .realtime = 1'700'000'000'000'000'000 + s * 1'000'010'000});
  while (written < events) {
    const int lane = static_cast<int>(random() % 4);
    const int64_t open = time;
    ++correlation;
    out.add(row::Api{.track = threads[lane],
                     .start = time + 300,
                     .duration = 1200 + static_cast<int64_t>(random() % 800),
                     .dim = functions[random() % 40],
                     .correlation = correlation,
                     .result = 0});
    device_time = std::max(device_time + 200, time + 5000);
    const int64_t length = 1500 + static_cast<int64_t>(random() % 3000);
    out.add(row::Dispatch{.track = queues[random() % 8],
                          .start = device_time,
                          .duration = length,
                          .dim = kernels[random() % 500],
                          .correlation = correlation,
                          .queued_ahead = 4000,
                          .submit_ahead = 3000,
                          .ordinal = ordinal++});
    device_time += length;
    time += 4000;
    written += 2;
    if (correlation % 4 == 0) {
      out.add(row::Marker{
          .track = threads[lane], .start = open, .duration = time - open - 100, .dim = labels[random() % 100]});
      ++written;
    }
    if (correlation % 8 == 0) {
      ++correlation;
      out.add(row::Api{.track = threads[lane],
                       .start = time,
                       .duration = 900,
                       .dim = functions[0],
                       .correlation = correlation,
                       .result = 0});
      out.add(row::Copy{.track = queues[0],
                        .start = device_time,
                        .duration = 900,
                        .dim = copy,
                        .correlation = correlation,
                        .bytes = 1 << 20});
      device_time += 1000;
      time += 1000;
      written += 2;
    }
  }
  if (const Status done = out.finish(); !done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  std::printf("%lld events\n", static_cast<long long>(written));
}
