// Traces of ranks as tacho records them with NCCL's profiler plugin, for tests: nccl_ranks FOLDER RANKS HOSTS [PROGRAM]
// writes FOLDER/rank<N>.tacho. Two threads launch; NCCL's marks follow the launches on their own thread only. There are
// kernels of one collective, of two alike, of two that differ, of unreported ones, and of sends and receives; two
// communicators, one of them of the first two ranks; copies and fills beside them. Rank 1 comes late to round 7, and
// the last rank ends two rounds early.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/format.h"
#include "trace/write/writer.h"

using namespace tacho;
namespace row = event::row;

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: nccl_ranks FOLDER RANKS HOSTS [PROGRAM]\n"), 2;
  const int64_t ranks = std::atoll(argv[2]), hosts = std::atoll(argv[3]);
  constexpr int64_t kRounds = 36;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    auto made = trace::TraceWriter::create(fmt::format("{}/rank{}.tacho", argv[1], rank),
                                           {.overwrite = true, .durable = false});
    if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
    trace::TraceWriter& out = **made;
    const int64_t process = out.dimension(row::Process{.pid = 4000 + rank,
                                                       .name = out.string(argc > 4 ? argv[4] : "train"),
                                                       .host = out.string(fmt::format("node{}", rank * hosts / ranks)),
                                                       .rank = rank});
    const int64_t device = out.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                                     .index = rank,
                                                     .name = out.string("NVIDIA H200"),
                                                     .vendor = out.string("NVIDIA")});
    int64_t host[2], queue[2];
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t thread = out.dimension(row::Thread{.process = process, .tid = 4000 + 10 * rank + i});
      host[i] = out.dimension(row::Track{
          .kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 4000 + 10 * rank + i});
      queue[i] = out.dimension(
          row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device, .native = 7 + 2 * i});
    }
    int64_t correlation = 0;
    const auto launch = [&](int64_t thread, int64_t at, int64_t on, std::string_view kernel, int64_t start,
                            int64_t duration) {
      out.add(row::Api{.track = host[thread],
                       .start = at,
                       .duration = 900,
                       .dim = out.dimension(
                           row::Function{.name = out.string("cuLaunchKernelEx"), .domain = event::Domain::kCudaDriver}),
                       .correlation = ++correlation});
      out.add(row::Dispatch{.track = queue[on],
                            .start = start,
                            .duration = duration,
                            .dim = out.dimension(row::Kernel{.name = out.string(kernel)}),
                            .correlation = correlation});
    };
    const auto mark = [&](int64_t thread, int64_t at, std::string_view what, int64_t elements, std::string_view group,
                          int64_t size) {
      const int64_t all = what == "AllGather" ? elements * size : elements;
      const std::string text = fmt::format(
          "Collective name={}, In msg nelems={}, Out msg nelems={}, dtype=Bfloat16, Group size={}, Process Group "
          "Name={}, Algorithm=RING, Protocol=SIMPLE",
          what, elements, all, size, group);
      out.add(
          row::Marker{.track = host[thread],
                      .start = at,
                      .duration = 0,
                      .dim = out.dimension(row::Label{
                          .name = out.string(text), .kind = event::MarkerKind::kMark, .domain = out.string("NCCL")})});
    };
    for (int64_t round = 0; round < kRounds - (rank + 1 == ranks ? 2 : 0); ++round) {
      const int64_t begin = 1'000'000'000 + round * 1'000'000;
      const int64_t late = (round == 7 && rank == 1 ? 150'000 : 0) + rank * 700 + round % 5 * rank * 311;
      const int64_t start = begin + 100'000 + late, duration = begin + 600'000 - start + rank * 40;
      launch(0, begin, 0, "gemm", begin + 5'000, 80'000 + late);
      // The other thread launches between a launch of this one and its mark.
      launch(0, begin + 2'000, 1,
             round % 6 == 4   ? "ncclDevKernel_Broadcast_RING_LL(x)"
             : round % 6 == 5 ? "ncclDevKernel_SendRecv(x)"
             : round % 6 == 3 ? "ncclDevKernel_AllGather_RING_LL(x)"
             : round % 6 == 2 ? "ncclDevKernel_Generic(x)"
                              : "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)",
             start, duration);
      launch(1, begin + 3'000, 0, "other", begin + 650'000 + rank, 20'000);
      switch (round % 6) {
        case 0:
          mark(0, begin + 4'000, "AllReduce", 1 << 20, "5a", ranks);
          break;
        case 1:
          mark(0, begin + 4'000, "AllReduce", 1 << 10, "5a", ranks);
          mark(0, begin + 4'100, "AllReduce", 1 << 12, "5a", ranks);
          break;
        case 2:
          mark(0, begin + 4'000, "AllReduce", 1 << 10, "5a", ranks);
          mark(0, begin + 4'100, "ReduceScatter", 1 << 12, "5a", ranks);
          break;
        case 3:
          mark(0, begin + 4'000, "AllGather", 3'000, "5a", ranks);
          break;
        default:
          break;  // no mark
      }
      if (rank < 2) {
        launch(1, begin + 5'000, 1, "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", begin + 700'000 + rank * 900,
               60'000 - rank * 900);
        mark(1, begin + 6'000, "ReduceScatter", 5'000, "77", 2);
      }
      out.add(row::Copy{.track = queue[0], .start = begin + 800'000, .duration = 30'000, .bytes = 4096});
      out.add(row::Fill{.track = queue[1], .start = begin + 820'000 + rank, .duration = 20'000, .bytes = 64});
    }
    if (const Status done = out.finish(); !done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  }
  return 0;
}
