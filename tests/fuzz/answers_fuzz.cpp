// Fuzzes what tacho makes of a .tacho file: every table and view of every SQL dialect, and every exporter, one of them
// for each input. The inputs are those of trace_mutator.h: their checksums fit, their codes, rows and names need not.
#include <string>

#include "format/format.h"
#include "fuzz/checking_writer.h"
#include "fuzz/trace_mutator.h"
#include "query/sql/session.h"

namespace {

uint64_t hash_of(const uint8_t* data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 0x100000001b3ULL;
  return hash ^ hash >> 31;
}

void expect(bool right) {
  if (!right) abort();
}

constexpr int64_t kMostRows = 2000;

void ask(const tacho::trace::Trace& trace, const std::string& path, uint64_t choice) {
  constexpr const char* kDialects[] = {"rpd", "rocpd", "tacho"};
  const auto session = tacho::query::Session::open(path, kDialects[choice % 3]);
  if (!session) return expect(!session.error().message.empty());
  const auto schema = (*session)->schema();
  if (!schema || schema->rows.empty()) return;
  const auto& row = schema->rows[choice / 3 % schema->rows.size()];
  const std::string name = std::get<std::string>(row[0]);
  int64_t rows = 0;
  const tacho::Status done = (*session)->run(
      "SELECT * FROM \"" + name + "\"",
      {[](std::span<const std::string>) {}, [&](std::span<const tacho::report::Cell>) { return ++rows < kMostRows; }});
  expect(done || !done.error().message.empty());
  // Nothing is lost in silence: a table of facts has all of its rows, or there was a sentence.
  if (!done || choice % 3 != 2 || rows >= kMostRows) return;
  for (const tacho::event::TableInfo& info : tacho::event::all_tables())
    if (tacho::event::is_fact(info.table) && info.name == name) expect(rows == trace.rows(info.table));
}

void write_as(const tacho::trace::Trace& trace, uint64_t choice) {
  static const std::string folder = [] {
    const char* const place = getenv("TMPDIR");
    std::string made = std::string(place != nullptr ? place : "/tmp") + "/tacho-answers-XXXXXX";
    expect(mkdtemp(made.data()) != nullptr);
    return made;
  }();
  const auto writers = tacho::format::writers();
  const tacho::format::Writer& writer = writers[choice % writers.size()];
  tacho::format::ExportOptions options;
  options.overwrite = true;
  options.statistics = choice / 64 % 2 == 0;
  tacho::format::ExportTarget target;
  if (writer.folder) {
    target.folder = folder;
    target.prefix = "out";
  } else {
    target.file = folder + "/out" + std::string(writer.extension);
  }
  std::vector<std::string> written;
  const tacho::Status done = writer.write(trace, target, options, written);
  expect(done || !done.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  const auto trace = tacho::trace::open_bytes({data, size}, "input");
  if (!trace) return 0;
  int64_t rows = 0;  // a few bytes can stand for 64 Ki rows, which only costs time
  for (const tacho::event::TableInfo& info : tacho::event::all_tables()) rows += (*trace)->rows(info.table);
  if (rows > 20'000) return 0;
  const uint64_t choice = hash_of(data, size);
  if (choice % 2 == 0)
    ask(**trace, file.write(data, size), choice / 2);
  else
    write_as(**trace, choice / 2);
  return 0;
}
