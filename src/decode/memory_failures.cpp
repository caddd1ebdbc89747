// Writes down that memory ran out (memory_failures.h).
#include "decode/memory_failures.h"

#include <fmt/format.h>

#include "vendor/definitions.h"

namespace tacho::decode {

namespace row = event::row;

bool MemoryFailures::ran_out(event::Domain domain, int64_t result) {
  return vendor::out_of_memory(domain, result);
}

void MemoryFailures::failed(const row::Api& call, std::string_view name) {
  const int64_t at = call.duration == event::kUnknown ? call.start : call.start + call.duration;
  writer_.add(row::Allocation{
      .track = call.track,
      .start = at,
      .duration = 0,
      .dim = writer_.dimension(row::AllocationShape{.operation = event::AllocationOperation::kOutOfMemory,
                                                    .memory = event::MemoryKind::kDevice,
                                                    .name = writer_.string(name)}),
      .bytes = event::kUnknown,
      .address = 0});
  constexpr int64_t kTold = 8;  // a program may try again and again
  if (++count_ > kTold) return;
  writer_.add(row::Note{.process = process_.row(),
                        .start = at,
                        .severity = event::NoteSeverity::kWarning,
                        .text = writer_.string(fmt::format(
                            "{} found no memory (result {}); tacho memory shows who held it{}", name, call.result,
                            count_ == kTold ? "; further ones of this process are not noted" : ""))});
  // The program may be about to die. Errors are the writer's to tell at the end.
  static_cast<void>(writer_.flush());
}

}  // namespace tacho::decode
