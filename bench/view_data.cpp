// Makes a trace as large as a long job of many processes: view_data FILE EVENTS [PROCESSES]. Each process has three
// threads that launch into six streams of its own GPU, in steps: nested calls, kernels, copies in both directions,
// ranges around layers and steps, a gap after each step, power readings. Same arguments, same bytes.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "trace/write/writer.h"

using namespace tacho;
namespace row = event::row;

namespace {

// As good as needed, and fast.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  int64_t below(int64_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int64_t>((state_ >> 11) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_;
};

struct Process {
  std::vector<int64_t> threads, streams;
  std::vector<int64_t> free;  // when each stream is free
  int64_t power = 0, correlation = 0, host = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: view_data FILE EVENTS [PROCESSES]\n"), 2;
  const int64_t events = std::atoll(argv[2]);
  const int count = argc > 3 ? std::atoi(argv[3]) : 16;
  auto made = trace::TraceWriter::create(argv[1], {.overwrite = true});
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  trace::TraceWriter& out = **made;
  const auto text = [&](const std::string& value) { return out.string(value); };
  out.property(event::Table::kEnd, 0, "command", "train --nodes 2");
  std::vector<Process> processes(static_cast<size_t>(count));
  constexpr int64_t kBegin = 1'000'000'000'000;
  const int64_t power_counter = out.dimension(row::Counter{.name = text("power"), .unit = text("W")});
  for (int p = 0; p < count; ++p) {
    Process& process = processes[static_cast<size_t>(p)];
    process.host = kBegin + p * 1000;
    const int64_t id = out.dimension(row::Process{.pid = 4000 + p,
                                                  .parent_pid = 1,
                                                  .start = kBegin,
                                                  .name = text("train"),
                                                  .command = text("train --nodes 2"),
                                                  .host = text(p < count / 2 ? "node1" : "node2"),
                                                  .rank = p});
    const int64_t device = out.dimension(row::Device{.process = id,
                                                     .kind = event::DeviceKind::kGpu,
                                                     .index = p,
                                                     .name = text("GPU"),
                                                     .vendor = text("Vendor"),
                                                     .architecture = text("gfx942"),
                                                     .driver = text("1"),
                                                     .uuid = text("uuid-" + std::to_string(p))});
    for (int i = 0; i < 3; ++i) {
      const int64_t thread = out.dimension(
          row::Thread{.process = id, .tid = 4000 + p + 1000 * i, .name = text(i == 0 ? "train" : "worker")});
      process.threads.push_back(out.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                         .process = id,
                                                         .thread = thread,
                                                         .native = 4000 + p + 1000 * i,
                                                         .category = text("thread")}));
    }
    for (int i = 0; i < 6; ++i)
      process.streams.push_back(out.dimension(row::Track{
          .kind = event::TrackKind::kQueue, .process = id, .device = device, .native = i, .category = text("stream")}));
    process.free.assign(6, 0);
    process.power = out.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                             .process = id,
                                             .device = device,
                                             .name = text("power GPU " + std::to_string(p)),
                                             .counter = power_counter});
  }
  std::vector<int64_t> kernels, functions, drivers, labels;
  for (int i = 0; i < 400; ++i)
    kernels.push_back(out.dimension(row::Kernel{
        .name = text(i == 399 ? std::string("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
                              : "void layer" + std::to_string(i) + "::forward<float>(float const*, float*, int)"),
        .kind = event::DispatchKind::kKernel,
        .grid_x = 65536 + 256 * i,
        .grid_y = 1,
        .grid_z = 1,
        .group_x = 256,
        .group_y = 1,
        .group_z = 1,
        .registers = 32 + i % 64}));
  for (int i = 0; i < 20; ++i) {
    functions.push_back(out.dimension(
        row::Function{.name = text("runtimeCall" + std::to_string(i)), .domain = event::Domain::kCudaRuntime}));
    drivers.push_back(out.dimension(
        row::Function{.name = text("driverCall" + std::to_string(i)), .domain = event::Domain::kCudaDriver}));
  }
  for (int i = 0; i < 100; ++i)
    labels.push_back(
        out.dimension(row::Label{.name = text("layer " + std::to_string(i)), .kind = event::MarkerKind::kPushPop}));
  const int64_t step_label = out.dimension(row::Label{.name = text("step"), .kind = event::MarkerKind::kPushPop});
  const int64_t rare_label = out.dimension(row::Label{.name = text("checkpoint"), .kind = event::MarkerKind::kPushPop});
  int64_t copies[2];
  for (int i = 0; i < 2; ++i)
    copies[i] = out.dimension(
        row::CopyShape{.direction = i == 0 ? event::CopyDirection::kHostToDevice : event::CopyDirection::kDeviceToHost,
                       .asynchronous = 1});
  Random random(7);
  int64_t written = 0;
  for (int64_t round = 0; written < events; ++round) {
    // Steps of 2000 rounds, with a gap of idle after each.
    const bool step_ends = round % 2000 == 1999;
    for (Process& process : processes) {
      const auto thread = static_cast<size_t>(round % 3);
      const int64_t open = process.host;
      const int64_t length = 1500 + random.below(900);
      ++process.correlation;
      out.add(row::Api{.track = process.threads[thread],
                       .start = open + 100,
                       .duration = length,
                       .dim = functions[static_cast<size_t>(random.below(20))],
                       .correlation = process.correlation,
                       .result = 0});
      out.add(row::Api{.track = process.threads[thread],
                       .start = open + 300,
                       .duration = length - 400,
                       .dim = drivers[static_cast<size_t>(random.below(20))],
                       .correlation = process.correlation,
                       .result = 0});
      const auto stream = static_cast<size_t>(random.below(6));
      const int64_t start = std::max(process.free[stream] + 120, open + 4000);
      const int64_t runs = 3000 + random.below(9000);
      out.add(row::Dispatch{.track = process.streams[stream],
                            .start = start,
                            .duration = runs,
                            .dim = kernels[static_cast<size_t>(random.below(64) == 0 ? 399 : random.below(399))],
                            .correlation = process.correlation,
                            .queued_ahead = 4000,
                            .submit_ahead = 3000,
                            .ordinal = process.correlation});
      process.free[stream] = start + runs;
      written += 3;
      if (process.correlation % 4 == 0) {
        out.add(row::Marker{.track = process.threads[thread],
                            .start = open,
                            .duration = length + 200,
                            .dim = labels[static_cast<size_t>(random.below(100))]});
        ++written;
      }
      if (process.correlation % 8 == 0) {
        const auto other = static_cast<size_t>(random.below(6));
        const int64_t begin = std::max(process.free[other] + 100, open + 5000);
        out.add(row::Copy{.track = process.streams[other],
                          .start = begin,
                          .duration = 2500,
                          .dim = copies[random.below(2)],
                          .correlation = process.correlation,
                          .bytes = 1 << 16,
                          .queued_ahead = 4000,
                          .submit_ahead = 3000});
        process.free[other] = begin + 2500;
        ++written;
      }
      process.host = open + 2700;
      if (step_ends) {
        out.add(row::Marker{.track = process.threads[0],
                            .start = process.host - 2000 * 2700,
                            .duration = 2000 * 2700 - 10,
                            .dim = random.below(64) == 0 ? rare_label : step_label});
        process.host += 200'000 + random.below(100'000);
        ++written;
      }
      if (round % 4000 == 0) {
        out.add(row::Reading{.track = process.power,
                             .start = open,
                             .value = std::bit_cast<int64_t>(300.0 + static_cast<double>(random.below(200)))});
        ++written;
      }
    }
  }
  if (const auto done = out.finish(); !done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  std::printf("%lld\n", static_cast<long long>(written));
}
