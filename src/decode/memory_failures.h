// Calls of a GPU's API that failed for want of memory: each becomes an event among the allocations, and the first ones
// write the trace at once, for the program may end over it.
#pragma once

#include <cstdint>
#include <string_view>

#include "decode/process_context.h"
#include "trace/write/writer.h"

namespace tacho::decode {

class MemoryFailures {
 public:
  MemoryFailures(ProcessContext& process, trace::TraceWriter& writer) : process_(process), writer_(writer) {}

  /// Of every call. `name`: the function's; it is asked for only after a failure.
  template <typename Name>
  void returned(event::Domain domain, const event::row::Api& call, Name&& name) {
    if (call.result != 0 && call.result != event::kUnknown && ran_out(domain, call.result)) failed(call, name());
  }

 private:
  static bool ran_out(event::Domain domain, int64_t result);
  void failed(const event::row::Api& call, std::string_view name);

  ProcessContext& process_;
  trace::TraceWriter& writer_;
  int64_t count_ = 0;
};

}  // namespace tacho::decode
