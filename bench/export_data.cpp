// Makes a trace of many events for bench/export.sh: export_data FILE EVENTS. A third each: API calls,
// dispatches they launch, and markers, copies and readings between them, over 4 threads and 8 queues.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "trace/writer.h"

using namespace tacho;
using event::kUnknown;
using event::Table;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: export_data FILE EVENTS\n"), 2;
  const int64_t events = std::atoll(argv[2]);
  auto made = trace::TraceWriter::create(argv[1], {.overwrite = true});
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  trace::TraceWriter& out = **made;
  const auto text = [&](const std::string& value) { return out.string(value); };
  const int64_t process = out.dimension(
      Table::kProcess, {4242, 1, 0, text("train"), text("train --epochs 3"), text("node1"), kUnknown, 0});
  const int64_t device = out.dimension(
      Table::kDevice, {0, 2, 0, text("GPU"), text("Vendor"), text("gfx942"), text("1"), 0, kUnknown});
  int64_t threads[4], queues[8], kernels[500], functions[40], labels[100];
  for (int i = 0; i < 4; ++i) {
    const int64_t thread =
        out.dimension(Table::kThread, {process, 4242 + i, text(i == 0 ? "train" : "worker")});
    threads[i] = out.dimension(Table::kTrack, {1, process, thread, 0, 4242 + i, 0, 0, text("thread"), 0});
  }
  for (int i = 0; i < 8; ++i)
    queues[i] = out.dimension(Table::kTrack, {2, process, 0, device, i, 0, 0, text("stream"), 0});
  for (int i = 0; i < 500; ++i) {
    std::vector<int64_t> row(event::column::Kernel::kCount, 0);
    row[0] = text("void at::native::vectorized_elementwise_kernel<" + std::to_string(i) +
                  ", at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int)");
    row[2] = 65536 + 256 * i;
    row[3] = row[4] = 1;
    row[5] = 256;
    row[6] = row[7] = 1;
    row[14] = 32 + i % 64;
    kernels[i] = out.dimension(Table::kKernel, row);
  }
  for (int i = 0; i < 40; ++i)
    functions[i] = out.dimension(Table::kFunction, {text("hipFunctionNumber" + std::to_string(i)), 4});
  for (int i = 0; i < 100; ++i)
    labels[i] =
        out.dimension(Table::kLabel, {text("layer " + std::to_string(i) + " forward"), 0, 0, 0, kUnknown, 0});
  const int64_t copy = out.dimension(Table::kCopyShape, {2, 2, 3, 0, device, 0, 1});
  std::mt19937_64 random(1);
  int64_t time = 1'000'000'000'000, device_time = time, correlation = 0, written = 0, ordinal = 0;
  for (int64_t s = 0; s < 60; ++s)
    out.add(Table::kClock,
            {0, time + s * 1'000'000'000, time + s * 1'000'010'000, time + 5000 + s * 1'000'010'000,
             1'700'000'000'000'000'000 + s * 1'000'010'000, kUnknown, 0});
  while (written < events) {
    const int lane = static_cast<int>(random() % 4);
    const int64_t open = time;
    ++correlation;
    out.add(Table::kApi, {threads[lane], time + 300, 1200 + static_cast<int64_t>(random() % 800),
                          functions[random() % 40], correlation, 0});
    device_time = std::max(device_time + 200, time + 5000);
    const int64_t length = 1500 + static_cast<int64_t>(random() % 3000);
    out.add(Table::kDispatch, {queues[random() % 8], device_time, length, kernels[random() % 500],
                               correlation, 4000, 3000, ordinal++, 0});
    device_time += length;
    time += 4000;
    written += 2;
    if (correlation % 4 == 0) {
      out.add(Table::kMarker, {threads[lane], open, time - open - 100, labels[random() % 100], 0, 0});
      ++written;
    }
    if (correlation % 8 == 0) {
      ++correlation;
      out.add(Table::kApi, {threads[lane], time, 900, functions[0], correlation, 0});
      out.add(Table::kCopy, {queues[0], device_time, 900, copy, correlation, 1 << 20, kUnknown, kUnknown, 0});
      device_time += 1000;
      time += 1000;
      written += 2;
    }
  }
  if (const Status done = out.finish(); !done)
    return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  std::printf("%lld events\n", static_cast<long long>(written));
}
