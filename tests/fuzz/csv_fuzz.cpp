// Counter files: any bytes as pmc_perf.csv, wide or long, and as sysinfo.csv give a run or a sentence.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text/csv.h"
#include "workload/layout/layout.h"

namespace {

using namespace tacho;
using namespace tacho::workload;

// Cells of every record, however the text is cut into records.
void read_records(std::string_view text) {
  CsvReader reader = CsvReader::from_text(std::string(text), "fuzz.csv");
  std::vector<std::string_view> fields;
  size_t bytes = 0;
  for (;;) {
    const auto more = reader.next(fields);
    if (!more) {
      if (more.error().message.empty()) std::abort();
      return;
    }
    if (!*more) break;
    for (const std::string_view field : fields) {
      bytes += field.size();
      (void)parse_number(field);
      int64_t whole = 0;
      double fraction = 0;
      (void)parse_timestamp(field, whole, fraction);
    }
  }
  if (bytes > text.size()) std::abort();  // cells are parts of the text
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t mode = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  read_records(text);
  for (int shape = 0; shape < 2; ++shape) {
    NameTable kernels;
    std::vector<std::string> warnings;
    ReadOptions options;
    options.compat = (mode & 2) != 0;
    if ((mode & 4) != 0) options.wanted = WantedColumns({"A", "TCC_HIT["});
    const std::string copy(text);
    const CsvSource source{"fuzz.csv", &copy};
    auto table =
        shape == 0 ? read_wide(source, options, kernels, warnings) : read_long({source}, options, kernels, warnings);
    if (!table) {
      if (table.error().message.empty()) std::abort();
      continue;
    }
    if (table->dispatches.size() != table->counters.rows()) std::abort();
    for (const Dispatch& dispatch : table->dispatches)
      if (dispatch.kernel >= kernels.names().size()) std::abort();
    if ((mode & 1) != 0) {
      std::vector<RawTable> passes;
      passes.push_back(*table);
      passes.push_back(std::move(*table));
      (void)join_passes(std::move(passes), kernels, warnings);
    }
  }
  return 0;
}
