// Makes traces of ranks for bench/ranks.sh: ranks_data FOLDER RANKS EVENTS writes FOLDER/rank<N>.tacho with EVENTS
// events each. Of 100 events 50 are launching calls, 49 kernels and one an all-reduce that ends on all ranks at once;
// ten all-reduces make a step, which also has a marker. No two ranks are alike: a rank's own random numbers choose its
// kernels and how long each of them runs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "trace/write/writer.h"

using namespace tacho;
namespace row = event::row;

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: ranks_data FOLDER RANKS EVENTS\n"), 2;
  const int64_t ranks = std::atoll(argv[2]), rounds = std::atoll(argv[3]) / 100;
  constexpr int64_t kKernels = 49, kCommunicate = 30'000, kRoundsOfStep = 10;
  // The compute time of rank r in round k: the same for the rank itself and for the others, which have to wait for it.
  const auto seed = [](int64_t rank, int64_t round) {
    return static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(round) * 0xd6e8feb86659fd93ULL;
  };
  const auto length_of = [](std::minstd_rand& random) { return 1500 + static_cast<int64_t>(random() % 4000); };
  std::vector<int64_t> longest(static_cast<size_t>(rounds), 0);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t round = 0; round < rounds; ++round) {
      std::minstd_rand random(static_cast<uint32_t>(seed(rank, round) >> 32) | 1);
      int64_t sum = 0;
      for (int64_t k = 0; k < kKernels; ++k) sum += length_of(random) + 300;
      longest[static_cast<size_t>(round)] = std::max(longest[static_cast<size_t>(round)], sum);
    }
  std::string members = "[";
  for (int64_t rank = 0; rank < ranks; ++rank) members += (rank > 0 ? ", " : "") + std::to_string(rank);
  members += "]";
  for (int64_t rank = 0; rank < ranks; ++rank) {
    auto made = trace::TraceWriter::create(std::string(argv[1]) + "/rank" + std::to_string(rank) + ".tacho",
                                           {.overwrite = true, .durable = false});
    if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
    trace::TraceWriter& out = **made;
    const int64_t process = out.dimension(row::Process{.pid = 4000 + rank, .name = out.string("train"), .rank = rank});
    const int64_t device =
        out.dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = 0, .name = out.string("GPU")});
    const int64_t thread = out.dimension(row::Thread{.process = process, .tid = 4000 + rank});
    const int64_t host = out.dimension(
        row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 4000 + rank});
    const auto queue = [&](int64_t native) {
      return out.dimension(
          row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device, .native = native});
    };
    const int64_t compute = queue(7), communicate = queue(9);
    int64_t kernels[64];
    for (int64_t k = 0; k < 64; ++k)
      kernels[k] = out.dimension(row::Kernel{.name = out.string("gemm_" + std::to_string(k)), .grid_x = 1024 + k});
    const int64_t reduce = out.dimension(row::Kernel{.name = out.string("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)")});
    const int64_t told =
        out.string("Collective name=allreduce, In msg nelems=1048576, Out msg nelems=1048576, Group size=" +
                   std::to_string(ranks) + ", dtype=Float, Process Group Name=0, Process Group Ranks=" + members);
    const int64_t function =
        out.dimension(row::Function{.name = out.string("cudaLaunchKernel"), .domain = event::Domain::kCudaRuntime});
    int64_t round_begin = 1'000'000'000, correlation = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      std::minstd_rand random(static_cast<uint32_t>(seed(rank, round) >> 32) | 1);
      int64_t at = round_begin;
      if (round % kRoundsOfStep == 0)
        out.add(row::Marker{
            .track = host,
            .start = at - 9000,
            .duration = 500,
            .dim = out.dimension(row::Label{.name = out.string(fmt::format("ProfilerStep#{}", round / kRoundsOfStep)),
                                            .kind = event::MarkerKind::kPushPop})});
      const auto launch = [&](int64_t start) {
        out.add(row::Api{
            .track = host, .start = start - 8000, .duration = 2500, .dim = function, .correlation = ++correlation});
      };
      for (int64_t k = 0; k < kKernels; ++k) {
        const int64_t length = length_of(random);
        launch(at);
        out.add(row::Dispatch{.track = compute,
                              .start = at,
                              .duration = length,
                              .dim = kernels[static_cast<size_t>(length % 64)],
                              .correlation = correlation});
        at += length + 300;
      }
      launch(at);
      const int64_t end = round_begin + longest[static_cast<size_t>(round)] + kCommunicate;
      out.add(row::Dispatch{.track = communicate,
                            .start = at,
                            .duration = end - at,
                            .dim = reduce,
                            .correlation = correlation,
                            .arguments = told});
      round_begin = end + 1000;
    }
    if (const Status done = out.finish(); !done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  }
  return 0;
}
