// libFuzzer target of the table that watched programs fill: whatever is in it, it is read, governed by and shown.
//
// Each 16 bytes of the input change one word:
//   0        1        2            4              8                16
//   │ area   │ more   │ which one  │ which word   │ value          │     more: a row becomes ready, or tacho looks
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "watch/answer.h"
#include "watch/metrics/labels.h"
#include "watch/metrics/otlp.h"
#include "watch/page_text.h"
#include "watch/prometheus.h"

using namespace tacho::watch;
using tacho::event::WatchRow, tacho::event::WatchTable;

namespace {

constexpr size_t kRows = 16;  // that the input can change

// tacho's side, and the program's.
struct Table {
  WatchSegment segment;
  WatchTable* program;
};
Table make_table() {
  auto segment = WatchSegment::create();
  if (!segment) abort();
  const int file = open(segment->path().c_str(), O_RDWR | O_CLOEXEC);
  void* const at = mmap(nullptr, sizeof(WatchTable), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) abort();
  return {std::move(*segment), static_cast<WatchTable*>(at)};
}

template <typename Of>
void put(Of* of, size_t count, uint16_t which, uint32_t word, uint64_t value) {
  constexpr size_t kWord = sizeof(uint32_t);
  auto* const bytes = reinterpret_cast<unsigned char*>(&of[which % count]);
  memcpy(bytes + word % (sizeof(Of) / kWord) * kWord, &value, kWord);
}

void show(const WatchMoment& moment, const WatchMoment& before) {
  PrometheusPage page;
  Labels labels;
  if (watch_json(moment, true).empty() || page_lines(before.snapshot, moment, {}).empty()) abort();
  for (const MetricsForm form : {MetricsForm::kPrometheus, MetricsForm::kOpenMetrics})
    if (page.text(moment.snapshot, moment.cost, form).empty()) abort();
  if (otlp_message({}, 1, moment.snapshot, labels.gather(moment.snapshot), moment.cost, {}).empty()) abort();
  watch_sentences(moment, true);
  kernel_answer(moment.snapshot);
  other_answer(moment.snapshot);
  process_answer(moment.snapshot);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Table table = make_table();
  auto& [segment, program] = table;
  memset(static_cast<void*>(program->rows), 0, kRows * sizeof(WatchRow));
  memset(static_cast<void*>(program->parts), 0, kRows * sizeof(tacho::event::WatchPart));
  memset(static_cast<void*>(program->processes), 0, sizeof program->processes);
  memset(static_cast<void*>(&program->header), 0, sizeof program->header);
  Governor governor(0.01);
  double now = 0;
  WatchMoment before;
  for (; size >= 16; data += 16, size -= 16) {
    uint16_t which = 0;
    uint32_t word = 0;
    uint64_t value = 0;
    memcpy(&which, data + 2, sizeof which);
    memcpy(&word, data + 4, sizeof word);
    memcpy(&value, data + 8, sizeof value);
    switch (data[0] % 4) {
      case 0:
        put(&program->header, 1, which, word, value);
        break;
      case 1:
        put(program->processes, tacho::event::kWatchProcesses, which, word, value);
        break;
      case 2:
        put(program->rows, kRows, which, word, value);
        break;
      case 3:
        put(program->parts, kRows, which, word, value);
        break;
    }
    if (data[1] & 1) {
      WatchRow& row = program->rows[which % kRows];
      row.state = WatchRow::kReady;
      ++row.count;
    }
    if (data[1] & 2) {
      now += 0.02 * (1 + data[1] / 4);
      segment.set(governor.step(segment.load(now)));
    }
  }
  WatchMoment moment;
  moment.snapshot = segment.snapshot(now);
  moment.cost = governor.cost();
  if (moment.snapshot.rows.size() > tacho::event::kWatchRows) abort();
  show(moment, before);
  return 0;
}
