// Runs a command with libtacho.so's CUDA source and a pool, drains it without decoding, and prints the result: buffers,
// bytes and records by kind. Measures the target's side alone and shows what CUPTI really writes.
//
// cupti_pool [-p] [-c key=value]... [-l libtacho.so] [-s source-bits] [-d records-to-dump] [-m pool-MiB] [-f
// flush-period-ms] -- command...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "event/records.h"
#include "tape/pool.h"

using namespace tacho;

namespace {

struct Counter {
  std::map<uint32_t, uint32_t> sizes;  // by kind, as the target learned them
  std::map<uint32_t, uint64_t> counts;
  std::map<uint32_t, std::string> strings;
  std::map<uint64_t, std::string> names[16];
  uint64_t buffers = 0, bytes = 0, extents = 0, unwalked = 0, incomplete = 0, same_thread = 0, other_thread = 0;
  long dump = 0;

  void definitions(std::span<const std::byte> bytes_in) {
    for (size_t at = 0; at + sizeof(event::RecordHeader) <= bytes_in.size();) {
      const auto* header = reinterpret_cast<const event::RecordHeader*>(bytes_in.data() + at);
      if (header->size < 8) break;
      if (header->kind == event::RecordKind::kString) {
        const auto* record = reinterpret_cast<const event::StringRecord*>(header);
        strings[header->value] = {reinterpret_cast<const char*>(record + 1), record->length};
      } else if (header->kind == event::RecordKind::kProperty) {
        const auto* record = reinterpret_cast<const event::PropertyRecord*>(header);
        const std::string& key = strings[record->key];
        printf("  property %s = %s\n", key.c_str(), strings[record->text].c_str());
      } else if (header->kind == event::RecordKind::kBlockSizes) {
        const auto* record = reinterpret_cast<const event::BlockSizesRecord*>(header);
        const auto* size = reinterpret_cast<const event::BlockSize*>(record + 1);
        for (uint64_t i = 0; i < record->count; ++i) sizes[size[i].kind] = size[i].bytes;
      } else if (header->kind == event::RecordKind::kName) {
        const auto* record = reinterpret_cast<const event::NameRecord*>(header);
        names[header->value & 15][record->number] = strings[record->text];
      } else if (header->kind == event::RecordKind::kNote) {
        printf("  note %s\n", strings[reinterpret_cast<const event::NoteRecord*>(header)->text].c_str());
      } else if (header->kind == event::RecordKind::kLoss) {
        const auto* record = reinterpret_cast<const event::LossRecord*>(header);
        printf("  loss table %u reason %u: %llu\n", header->value & 255, header->value >> 8,
               static_cast<unsigned long long>(record->count));
      }
      at += header->size;
    }
  }

  // A buffer that CUPTI still held: prints its contents.
  void open_buffer(const tape::BlockHeader& block, std::span<const std::byte> content) {
    size_t used = content.size();
    while (used > 0 && content[used - 1] == std::byte{0}) --used;
    printf("  open buffer of thread %u: last byte that is not 0 at %zu of %zu\n", block.tid, used, content.size());
    for (size_t at = 0; at < std::min<size_t>(used, 1536) && dump > 0; at += 32) {
      printf("    %5zu:", at);
      for (size_t word = at; word < at + 32; word += 4)
        printf(" %08x", *reinterpret_cast<const uint32_t*>(content.data() + word));
      printf("\n");
    }
  }

  void buffer(const tape::BlockHeader& block, std::span<const std::byte> content) {
    if (block.committed.load() == 0) return open_buffer(block, content);
    ++buffers;
    bytes += content.size();
    extents += block.blocks;
    for (size_t at = 0; at + 8 <= content.size();) {
      uint32_t kind;
      memcpy(&kind, content.data() + at, 4);
      const auto size = sizes.find(kind);
      if (kind == 0 || size == sizes.end()) {
        unwalked += content.size() - at;
        break;
      }
      ++counts[kind];
      const auto* words = reinterpret_cast<const uint32_t*>(content.data() + at);
      if (kind == 4 || kind == 5) ++(words[7] == block.tid ? same_thread : other_thread);
      if (dump > 0 && !((kind == 4 || kind == 5) && names[kind == 5 ? 0 : 1][words[1]].rfind("cuDeviceGet", 0) == 0)) {
        --dump;
        printf("  tid %u kind %u:", block.tid, kind);
        if (kind == 4 || kind == 5) {
          printf(" %s corr %u dur %llu", names[kind == 5 ? 0 : 1][words[1]].c_str(), words[8],
                 *reinterpret_cast<const unsigned long long*>(words + 4) -
                     *reinterpret_cast<const unsigned long long*>(words + 2));
        } else if (kind == 10) {
          printf(" %s corr %u grid %u", names[2][*reinterpret_cast<const uint64_t*>(words + 26)].c_str(), words[23],
                 words[24]);
        } else {
          for (uint32_t i = 1; i < size->second / 4 && i < 24; ++i) printf(" %x", words[i]);
        }
        printf("\n");
      }
      if (kind == 10 || kind == 1 || kind == 2) {
        uint64_t end;
        memcpy(&end, content.data() + at + 24, 8);
        incomplete += end == 0;
      }
      at += size->second;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  tape::PoolOptions options;
  std::string library;
  Counter counter;
  int i = 1;
  for (; i < argc && strcmp(argv[i], "--") != 0; ++i) {
    if (i + 1 >= argc) return 2;
    if (strcmp(argv[i], "-p") == 0) {
      options.closed = tape::gate::kProgram;
      options.config += "profiler_api=1\n";
    } else if (strcmp(argv[i], "-c") == 0)
      options.config += std::string(argv[++i]) + "\n";
    else if (strcmp(argv[i], "-l") == 0)
      library = argv[++i];
    else if (strcmp(argv[i], "-d") == 0)
      counter.dump = atol(argv[++i]);
    else if (strcmp(argv[i], "-s") == 0)
      options.sources = static_cast<uint64_t>(atol(argv[++i]));
    else if (strcmp(argv[i], "-m") == 0)
      options.initial_bytes = static_cast<uint64_t>(atol(argv[++i])) << 20;
    else if (strcmp(argv[i], "-f") == 0)
      options.flush_period_ms = static_cast<uint32_t>(atol(argv[++i]));
    else
      return 2;
  }
  if (i + 1 >= argc) {
    fprintf(stderr,
            "usage: cupti_pool [-p] [-c key=value]... [-l libtacho.so] [-d records] [-m MiB] [-f ms] -- command...\n");
    return 2;
  }
  auto pool = tape::Pool::create(options);
  if (!pool) {
    fprintf(stderr, "cupti_pool: %s\n", pool.error().message.c_str());
    return 1;
  }
  const pid_t child = fork();
  if (child == 0) {
    setenv("TACHO_POOL", pool->path().c_str(), 1);
    setenv("CUDA_INJECTION64_PATH", library.c_str(), 1);
    execvp(argv[i + 1], argv + i + 1);
    _exit(127);
  }
  tape::Drainer drainer(*pool);
  const tape::Grower grower(*pool);
  const tape::Drainer::Sink sink = [&](const tape::Piece& piece) {
    if (piece.block->kind == tape::BlockKind::kDefinitions) counter.definitions(piece.bytes);
    if (piece.block->kind == tape::BlockKind::kCupti) counter.buffer(*piece.block, piece.bytes);
  };
  int status = 0;
  double pressure = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (drainer.pass(sink, false) == 0) {
      const timespec moment{0, 1'000'000};
      nanosleep(&moment, nullptr);
    }
    pressure = std::max(pressure, drainer.pressure());
  }
  drainer.pass(sink, true);
  printf("  status %x, %llu buffers, %llu blocks, %llu bytes, not walked %llu, "
         "incomplete %llu, peak pressure %.2f, populated %u blocks\n",
         status, static_cast<unsigned long long>(counter.buffers), static_cast<unsigned long long>(counter.extents),
         static_cast<unsigned long long>(counter.bytes), static_cast<unsigned long long>(counter.unwalked),
         static_cast<unsigned long long>(counter.incomplete), pressure, pool->header().populated_blocks.load());
  printf("  API records of the buffer's owner %llu, of others %llu\n",
         static_cast<unsigned long long>(counter.same_thread), static_cast<unsigned long long>(counter.other_thread));
  for (const auto& [kind, count] : counter.counts)
    printf("  kind %u: %llu x %u B\n", kind, static_cast<unsigned long long>(count), counter.sizes[kind]);
  for (size_t t = 0; t <= event::kFactTables; ++t)
    if (const uint64_t n = pool->header().dropped[t].load(); n != 0)
      printf("  dropped table %zu: %llu\n", t, static_cast<unsigned long long>(n));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
