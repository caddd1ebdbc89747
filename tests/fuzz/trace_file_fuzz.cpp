// Fuzzes the reader of .tacho files, with the mutator of trace_mutator.h.
#include "fuzz/trace_mutator.h"

namespace tacho::trace {
namespace {

// Everything a reader can ask, with a bound on the work.
void read_all(const Trace& trace) {
  constexpr size_t kChunks = 4;
  constexpr int64_t kRows = 64;
  int64_t budget = 20'000;  // facts: a few bytes can stand for 64 Ki rows, which only costs time
  std::vector<int64_t> out;
  (void)trace.note().size();
  (void)trace.time_range();
  (void)trace.property(Table::kEnd, 0, "key");
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table)) {
      const int64_t rows = trace.rows(info.table);
      for (int64_t row = 0; row < std::min(rows, kRows); ++row) {
        const std::string_view text = trace.string(row);
        if (!text.empty() && text.back() == '\0' && text.front() == '\1') out.clear();
        for (size_t c = 0; c < info.columns.size(); ++c) (void)trace.cell(info.table, row, static_cast<int>(c));
      }
      (void)trace.cell(info.table, rows - 1, 0);
      (void)trace.text(info.table, rows, 0);
      continue;
    }
    const size_t chunks = trace.chunks(info.table).size();
    for (size_t chunk = 0; chunk < std::min(chunks, kChunks); ++chunk) {
      if ((budget -= trace.chunks(info.table)[chunk].rows) < 0) continue;
      for (size_t c = 0; c < info.columns.size(); ++c) (void)trace.decode(info.table, chunk, static_cast<int>(c), out);
    }
    if (chunks > kChunks || (budget -= trace.rows(info.table)) < 0) continue;
    (void)trace.merged_summaries(info.table);
    (void)trace.merged_histogram(info.table);
    (void)trace.merged_busy(info.table);
    const int columns[] = {0, 1};
    int visits = 0;
    (void)visit_by_time(trace, info.table, columns, std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max(), [&](auto) { return ++visits < 500; });
  }
}

}  // namespace
}  // namespace tacho::trace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = tacho::trace::open_bytes({data, size}, "input");
  if (trace) {
    tacho::trace::read_all(**trace);
  } else if (trace.error().message.empty() || trace.error().message.find('\n') != std::string::npos) {
    abort();  // an error is one sentence
  }
  return 0;
}
