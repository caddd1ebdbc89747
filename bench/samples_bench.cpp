// Speed of unwinding and symbolisation: samples of a real program (the arguments; default: Python that imports a lot)
// are taken once, then decoded again and again until a million have been.
//
//   samples_bench [command ...]
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "tape/pool.h"
#include "trace/write/writer.h"

namespace {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tacho;
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return 1;
  self[size] = '\0';
  const char* const build = getenv("TACHO_BUILD");
  std::string library = build != nullptr ? build : std::string(self).substr(0, std::string(self).rfind('/')) + "/..";
  library += "/lib/libtacho.so";
  tape::PoolOptions options{.initial_bytes = 64 << 20, .max_bytes = 256 << 20};
  options.config = "sampler=timer\nsample_hz=2000\nsample_clock=wall\n";
  auto pool = tape::Pool::create(options);
  if (!pool) {
    std::fprintf(stderr, "samples_bench: %s\n", pool.error().message.c_str());
    return 1;
  }
  std::vector<char*> words(argv + 1, argv + argc);
  std::string defaults[] = {"/usr/bin/python3", "-c",
                            "import json, decimal, asyncio, email.parser, unittest, xml.dom.minidom\n"
                            "total = 0\n"
                            "for i in range(300): total += len(json.dumps({str(k): [k, decimal.Decimal(k).sqrt()] for "
                            "k in range(50)}, default=str))"};
  if (words.empty())
    for (std::string& word : defaults) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TACHO_POOL", pool->path().c_str(), 1);
    setenv("LD_PRELOAD", library.c_str(), 1);
    execvp(words[0], words.data());
    _exit(127);
  }
  auto writer = trace::TraceWriter::create_temporary({});
  if (!writer) return 1;
  decode::ClockMap clocks;
  clocks.add(sample_clocks());
  decode::Decoder decoder(**writer, clocks);
  struct Piece {
    tape::BlockHeader* header;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> pieces;
  size_t samples = 0;
  double live = 0;
  const auto keep = [&](const tape::Piece& piece) {
    const double begin = cpu_seconds();
    decoder.piece(piece);
    live += cpu_seconds() - begin;
    if (piece.block->kind != tape::BlockKind::kRecords || piece.bytes.empty()) return;
    auto* const header = static_cast<tape::BlockHeader*>(malloc(sizeof(tape::BlockHeader)));
    memcpy(static_cast<void*>(header), piece.block, sizeof *header);
    pieces.push_back({header, {piece.bytes.begin(), piece.bytes.end()}});
    for (size_t at = 0; at + 8 <= piece.bytes.size();) {
      event::RecordHeader record;
      memcpy(&record, piece.bytes.data() + at, sizeof record);
      samples += record.kind == event::RecordKind::kSample;
      at += record.size;
    }
  };
  tape::Drainer drainer(*pool);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    drainer.pass(keep, false);
    clocks.add(sample_clocks());
    usleep(5000);
  }
  drainer.pass(keep, true);
  if (samples == 0) {
    std::fprintf(stderr, "samples_bench: no samples\n");
    return 1;
  }
  std::printf("first time: %zu samples, %.1f us each (reading tables and symbols included)\n", samples,
              live * 1e6 / static_cast<double>(samples));
  size_t done = 0;
  const double begin = cpu_seconds();
  while (done < 1'000'000) {
    for (const Piece& piece : pieces) decoder.piece({piece.header, piece.bytes, false});
    done += samples;
  }
  const double seconds = cpu_seconds() - begin;
  std::printf("again: %zu samples in %.2f s, %.2f us each, %.2f s a million (goal 5)\n", done, seconds,
              seconds * 1e6 / static_cast<double>(done), seconds * 1e6 / static_cast<double>(done));
  return 0;
}
