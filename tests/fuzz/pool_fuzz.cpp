// Fuzzing of recovery: a pool file full of lies goes through Pool::open, Drainer and Decoder, as `tacho recover` does
// it. The input describes a small pool: optional changes of the header, then per block its state, its header and bytes.
// The mutator knows records, so that most inputs get past the size checks.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "decode/decoder.h"
#include "event/sample.h"
#include "tape/pool.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace {

using namespace tacho;

constexpr uint32_t kBlocks = 4;

// Takes rows and keeps none; checks what every writer may rely on.
class NoWriter : public trace::TraceWriter {
 public:
  int64_t string(std::string_view text) override {
    if (text.empty()) return 0;
    return static_cast<int64_t>(strings_.emplace(text, strings_.size() + 1).first->second);
  }
  int64_t dimension_cells(event::Table table, std::span<const int64_t> row) override {
    if (event::is_fact(table) || row.size() != event::table_info(table).columns.size()) abort();
    return ++dimensions_;
  }
  void update(event::Table table, int64_t row, int column, int64_t) override {
    if (row < 0 || row > dimensions_ || static_cast<size_t>(column) >= event::table_info(table).columns.size()) abort();
  }
  void add_cells(event::Table table, std::span<const int64_t> row) override {
    if (!event::is_fact(table) || row.size() != event::table_info(table).columns.size()) abort();
    ++rows_;
  }
  void lose(int64_t, event::Table, event::LossReason reason, int64_t) override {
    if (reason >= event::LossReason::kEnd) abort();
  }
  void note(int64_t, event::NoteSeverity severity, std::string_view) override {
    if (severity >= event::NoteSeverity::kEnd) abort();
  }
  Status flush() override { return {}; }
  int64_t rows(event::Table) const override { return rows_; }
  uint64_t bytes() const override { return 0; }
  Status write_status() const override { return {}; }
  const std::string& temporary_path() const override {
    static const std::string kNone;
    return kNone;
  }
  Status finish() override { return {}; }
  Result<std::shared_ptr<const trace::Trace>> finish_and_open(const std::string&) override { return fail("not here"); }

 private:
  std::unordered_map<std::string, uint64_t> strings_;
  int64_t dimensions_ = 0, rows_ = 0;
};

struct Input {
  const uint8_t* data;
  size_t size;
  size_t take(void* out, size_t wanted) {
    const size_t bytes = std::min(wanted, size);
    memcpy(out, data, bytes);
    data += bytes;
    size -= bytes;
    return bytes;
  }
  uint8_t byte() {
    uint8_t value = 0;
    take(&value, 1);
    return value;
  }
};

// One pool file for all runs; only the last run's writes are put back.
struct PoolFile {
  int file = -1;
  std::string path;
  std::string clean;
  PoolFile() {
    auto pool =
        tape::Pool::create({.initial_bytes = kBlocks * tape::kBlockSize, .max_bytes = kBlocks * tape::kBlockSize});
    if (!pool) abort();
    clean.assign(reinterpret_cast<const char*>(&pool->header()),
                 pool->header().data_offset + static_cast<size_t>(kBlocks) * tape::kBlockSize);
    file = memfd_create("pool", 0);
    if (file < 0 || write(file, clean.data(), clean.size()) != static_cast<ssize_t>(clean.size())) abort();
    path = "/proc/self/fd/" + std::to_string(file);
  }
  void put(const void* bytes, size_t size, size_t at) {
    if (size != 0 && pwrite(file, bytes, size, static_cast<off_t>(at)) != static_cast<ssize_t>(size)) abort();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static PoolFile pool_file;
  static size_t dirty[kBlocks] = {};
  Input input{data, size};
  const auto* const clean = reinterpret_cast<const tape::PoolHeader*>(pool_file.clean.data());
  const uint32_t data_offset = clean->data_offset;

  tape::PoolHeader* const header = static_cast<tape::PoolHeader*>(malloc(sizeof(tape::PoolHeader)));
  memcpy(static_cast<void*>(header), pool_file.clean.data(), sizeof(tape::PoolHeader));
  const uint8_t flags = input.byte();
  if ((flags & 1) != 0) input.take(reinterpret_cast<char*>(header) + 16, 64);  // version, sizes, sources, configuration
  if ((flags & 2) != 0) input.take(reinterpret_cast<char*>(header) + offsetof(tape::PoolHeader, enabled), 256);
  pool_file.put(header, sizeof *header, 0);
  free(header);
  uint32_t states[kBlocks];
  for (uint32_t i = 0; i < kBlocks; ++i) {
    states[i] = input.byte() % 6;
    char bytes[sizeof(tape::BlockHeader)] = {};
    input.take(bytes, sizeof bytes);
    const size_t at = data_offset + static_cast<size_t>(i) * tape::kBlockSize;
    pool_file.put(bytes, sizeof bytes, at);
    uint16_t length = 0;
    input.take(&length, sizeof length);
    std::string payload(std::min<size_t>({length, input.size, tape::kBlockPayload}), '\0');
    input.take(payload.data(), payload.size());
    if (payload.size() < dirty[i]) {
      const size_t written = payload.size();
      payload.resize(dirty[i]);
      dirty[i] = written;
    } else {
      dirty[i] = payload.size();
    }
    pool_file.put(payload.data(), payload.size(), at + sizeof bytes);
  }
  pool_file.put(states, sizeof states, tape::kHeaderBytes);

  auto pool = tape::Pool::open(pool_file.path);
  if (!pool) return 0;
  NoWriter writer;
  decode::ClockMap clocks;
  clocks.add(pool->header().first_clocks);
  clocks.add(pool->header().last_clocks);
  decode::Decoder decoder(writer, clocks);
  tape::Drainer drainer(*pool);
  drainer.rewind_definitions();
  drainer.pass([&](const tape::Piece& piece) { decoder.piece(piece); }, (flags & 4) == 0);
  if ((flags & 4) != 0) drainer.pass([&](const tape::Piece& piece) { decoder.piece(piece); }, true);
  decoder.finish();
  decoder.processes();
  const uint64_t dropped[] = {flags, 0, ~uint64_t{0}};
  decoder.count_in_flight(dropped);
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Half of the time the usual mutations, else one whole pool of mostly well-formed records.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  uint32_t state = seed | 1;
  const auto random = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  if (size > 16 && random(2) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string out;
  out += static_cast<char>(random(8) & (random(4) == 0 ? 7 : 4));
  for (uint32_t i = 0; i < kBlocks; ++i) {
    out += static_cast<char>(1 + random(2));
    std::string records;
    const uint32_t count = random(12);
    for (uint32_t n = 0; n < count; ++n) {
      const uint32_t kind = 1 + random(static_cast<uint32_t>(event::RecordKind::kEnd) - 1);
      const uint32_t record_size = event::kRecordInfos[kind].size + 8 * random(6);
      std::string record(record_size, '\0');
      for (char& c : record)
        if (random(3) == 0) c = static_cast<char>(random(4) == 0 ? random(256) : random(4));
      event::RecordHeader header{
          static_cast<event::RecordKind>(kind), static_cast<uint8_t>(random(2) == 0 ? random(64) : random(8)),
          static_cast<uint16_t>(record_size), random(3) == 0 ? random(1u << 24) * 256 : random(8)};
      memcpy(record.data(), &header, sizeof header);
      if (static_cast<event::RecordKind>(kind) == event::RecordKind::kString) {
        const uint64_t length = random(record_size - 15);
        memcpy(record.data() + 8, &length, sizeof length);
        if (length >= 9 && random(2) == 0) memcpy(record.data() + 16, "/bin/true", 9);  // a file that can be unwound
      }
      if (static_cast<event::RecordKind>(kind) == event::RecordKind::kModule && random(2) == 0) {
        const uint64_t words[] = {4096, 65536, 4096 * random(4)};
        memcpy(record.data() + 8, words, sizeof words);
      }
      if (static_cast<event::RecordKind>(kind) == event::RecordKind::kSample) {
        event::SampleHeader sample{};
        sample.clock = static_cast<event::SampleClock>(random(2));
        sample.python = static_cast<event::PythonState>(random(4));
        sample.stack_whole = static_cast<uint8_t>(random(2));
        sample.chain = static_cast<uint16_t>(random(6));
        sample.frames = static_cast<uint16_t>(random(6));
        sample.stack_begin = 1 << 20;
        sample.stack_bytes = 8 * random(16);
        std::string words(event::kSampleRegisters * 8 + (sample.chain + sample.frames) * 8u + sample.stack_bytes, '\0');
        for (size_t at = 0; at + 8 <= words.size(); at += 8) {
          // Addresses of code, of the stack, Python words, rubbish.
          const uint64_t choices[] = {4096 + random(40000), (1u << 20) + 8 * random(20),
                                      static_cast<uint64_t>(random(4)) << 32 | (random(4) << 30) | random(40),
                                      static_cast<uint64_t>(random(1u << 24)) << random(40)};
          memcpy(words.data() + at, &choices[random(4)], 8);
        }
        record.resize(sizeof(event::SampleRecord));
        record.append(reinterpret_cast<const char*>(&sample), sizeof sample);
        record += words;
        header.size = static_cast<uint16_t>(record.size());
        memcpy(record.data(), &header, sizeof header);
      }
      records += record;
    }
    tape::BlockHeader block{};
    block.committed = random(8) == 0 ? random(70000) : static_cast<uint32_t>(records.size());
    block.kind = static_cast<tape::BlockKind>(1 + random(random(3) == 0 ? 8 : 3));
    block.process_slot = random(16) == 0 ? random(1u << 24) * 256 : random(3);
    block.thread_index = random(4);
    block.pid = random(100000);
    block.tid = block.pid;
    block.blocks = random(8) == 0 ? random(1u << 24) * 256 : 1;
    block.sequence = random(10);
    if (block.kind == tape::BlockKind::kShared) block.committed = tape::kBlockPayload;
    if (random(8) == 0) block.drained = random(70000);
    out.append(reinterpret_cast<const char*>(&block), sizeof block);
    const auto length = static_cast<uint16_t>(records.size());
    out.append(reinterpret_cast<const char*>(&length), sizeof length);
    out += records;
  }
  out.resize(std::min(out.size(), max_size));
  memcpy(data, out.data(), out.size());
  return out.size();
}
