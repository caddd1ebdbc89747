// How fast CUPTI buffers become a .tacho file: synthetic buffers of a launch storm (runtime call, driver
// call, kernel) through the decoder and the writer, on one core. cupti_decode [-n launches] [-d]   -d:
// without driver calls
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <memory>
#include <vector>

#include "decode/cupti/decoder.h"
#include "tape/layout.h"
#include "trace/write/writer.h"

using namespace tacho;

namespace {

class Process : public decode::ProcessContext {
 public:
  explicit Process(trace::TraceWriter& writer) : writer_(writer) {}
  std::string_view text(uint32_t) const override { return {}; }
  int64_t row() override { return 1; }
  int64_t host_time(uint64_t ticks) const override {
    return static_cast<int64_t>(static_cast<double>(ticks) * 0.4761904762);
  }
  int64_t thread_track(uint32_t tid) override {
    return writer_.dimension(event::row::Track{.kind = event::TrackKind::kThread, .process = 1, .native = tid});
  }

 private:
  trace::TraceWriter& writer_;
};

template <typename T>
void put(std::byte* at, T value) {
  memcpy(at, &value, sizeof value);
}

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t launches = 2'000'000;
  bool driver = true;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
      launches = strtoull(argv[++i], nullptr, 10);
    else if (strcmp(argv[i], "-d") == 0)
      driver = false;
    else
      return fprintf(stderr, "usage: cupti_decode [-n launches] [-d]\n"), 2;
  }
  auto writer = trace::TraceWriter::create_temporary();
  if (!writer) return fprintf(stderr, "cupti_decode: %s\n", writer.error().message.c_str()), 1;
  Process process(**writer);
  decode::CuptiDecoder decoder(process, **writer);
  event::BlockClockRecord clock{};
  clock.header.value = static_cast<uint32_t>(event::BlockClock::kScaled);
  clock.base_ticks = 1'000'000;
  clock.base_ns = 1'000'000'000;
  clock.multiplier = 2'045'230'090;
  clock.shift = 32;
  decoder.clock(clock);
  decoder.fact(event::BlockFact::kThreadIds, 1, {});
  decoder.name(event::NameSpace::kRuntimeFunction, 211, "cudaLaunchKernel_v7000");
  decoder.name(event::NameSpace::kDriverFunction, 307, "cuLaunchKernel");
  for (uint64_t kernel = 0; kernel < 40; ++kernel)
    decoder.name(event::NameSpace::kKernel, 0x7000 + kernel * 64, "_Z6kernel" + std::to_string(kernel));

  tape::BlockHeader header{};
  header.kind = tape::BlockKind::kCupti;
  header.vendor_version = 130001;
  header.tid = 42;
  header.blocks = 1;
  std::vector<std::byte> bytes(tape::kBlockPayload);
  double spent = 0;
  uint64_t records = 0, random = 88172645463325252ull, now = 2'000'000'000, gpu = 2'000'010'000;
  const size_t per_launch = 216 + 40 + (driver ? 40 : 0);
  for (uint64_t done = 0; done < launches;) {
    size_t at = 0;
    memset(bytes.data(), 0, bytes.size());
    for (; at + per_launch <= bytes.size() && done < launches; ++done) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      const uint64_t length = 2800 + random % 900;
      std::byte* record = bytes.data() + at;
      if (driver) {
        put<uint32_t>(record, 4), put<uint32_t>(record + 4, 307), put(record + 8, now + 300),
            put(record + 16, now + 900);
        put<uint32_t>(record + 28, 42), put(record + 32, static_cast<uint32_t>(2 * done + 1));
        record += 40;
        ++records;
      }
      put<uint32_t>(record, 10), put<uint16_t>(record + 6, 16), put(record + 16, gpu),
          put(record + 24, gpu + 1000 + random % 500);
      put<uint32_t>(record + 44, 1), put<uint32_t>(record + 48, 7);
      for (size_t word = 52; word < 76; word += 4) put<uint32_t>(record + word, 1 + (word == 64 ? 127 : 0));
      put(record + 92, static_cast<uint32_t>(2 * done + 2)), put(record + 104, 0x7000 + (random >> 32) % 40 * 64);
      record += 216;
      put<uint32_t>(record, 5), put<uint32_t>(record + 4, 211), put(record + 8, now), put(record + 16, now + length);
      put<uint32_t>(record + 28, 42), put(record + 32, static_cast<uint32_t>(2 * done + 2));
      records += 2;
      now += length + 200;
      gpu += length + 200;
      at += per_launch;
    }
    const double begin = cpu_s();
    decoder.block(header, {bytes.data(), at});
    spent += cpu_s() - begin;
  }
  const double begin = cpu_s();
  decoder.finish();
  const Status written = (*writer)->flush();
  spent += cpu_s() - begin;
  if (!written) return fprintf(stderr, "cupti_decode: %s\n", written.error().message.c_str()), 1;
  int64_t rows = 0;
  for (size_t table = 0; table < event::kFactTables; ++table) rows += (*writer)->rows(static_cast<event::Table>(table));
  printf("cupti_decode: %llu records, %lld rows in %.3f s CPU: %.1f M records/s, %.2f bytes per row\n",
         static_cast<unsigned long long>(records), static_cast<long long>(rows), spent,
         static_cast<double>(records) / spent * 1e-6,
         static_cast<double>((*writer)->bytes()) / static_cast<double>(rows));
  return 0;
}
