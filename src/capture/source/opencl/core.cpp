// The table of next functions and the values that calls were given (core.h).
#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

constinit cl_icd_dispatch g_next = {};
constinit std::atomic<bool> g_detours{false};
namespace {
constinit Wiped g_before_start = {};
}
constinit Wiped* g_wiped = &g_before_start;

constinit bool g_arguments = false;

void write_arguments(event::ArgumentsOf of, uint32_t value, uint64_t correlation, const uint64_t* words,
                     uint32_t count) {
  const uint32_t bytes = count * static_cast<uint32_t>(sizeof *words);
  auto* const record = tape::begin<event::ArgumentsRecord>(event::RecordKind::kArguments, event::Table::kApi, value,
                                                           static_cast<uint8_t>(of), bytes);
  if (record == nullptr) return;
  record->correlation = correlation;
  memcpy(record + 1, words, bytes);
  tape::commit();
}

}  // namespace tacho::capture::opencl
