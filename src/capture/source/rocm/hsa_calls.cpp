// HSA's calls (rocm.h): every entry of the tables becomes a function that records the call and calls the old entry.
// Like HIP's (hip.cpp), HSA's functions have no floating-point arguments, and six registers with eight words of stack
// hold every list of arguments.
#include "base/clock.h"
#include "capture/source/rocm/rocm.h"
#include "event/functions/functions.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

using Word = uint64_t;
using Function = Word(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

constinit void* g_next[1024] = {};

// During a HSA call within a HIP call, the HIP call stays the innermost open one and gets the launched work.
struct HsaCall {
  uint64_t start = 0, correlation = 0;
  bool recorded = false, outermost = false;
};

__attribute__((noinline)) void begin(HsaCall& call) {
  tape::ThreadState& state = tape::t_state;
  if (state.hidden != 0 || !tape::enabled(tape::source_bit::kApi) || !active()) return;
  call.recorded = true;
  call.correlation = tape::next_correlation();
  call.outermost = state.open_correlation == 0;
  if (call.outermost) state.open_correlation = call.correlation;
  call.start = host_ticks();
}

__attribute__((noinline)) void end(const HsaCall& call, uint16_t number, Word result) {
  if (!call.recorded) return;
  const uint64_t now = host_ticks();
  if (call.outermost) tape::t_state.open_correlation = 0;
  if (auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi,
                                                         event::api_value(number, static_cast<int16_t>(result)),
                                                         static_cast<uint8_t>(event::Domain::kHsa))) {
    record->start = call.start;
    record->end = now;
    record->correlation = call.correlation;
    tape::commit();
  }
}

template <uint16_t Number>
Word traced(Word r0, Word r1, Word r2, Word r3, Word r4, Word r5, Word s0, Word s1, Word s2, Word s3, Word s4, Word s5,
            Word s6, Word s7) {
  HsaCall call;
  begin(call);
  const Word result =
      reinterpret_cast<Function*>(g_next[Number])(r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7);
  end(call, Number, result);
  return result;
}

// Numbers of the functions: event::function_name's.
enum CoreNumber : uint16_t {
  kBeforeCore,
#define TACHO_HSA_CORE(name) kCore_##name,
#include "event/functions/functions_hsa.def"
};
enum AmdNumber : uint16_t {
  kBeforeAmd = event::kFirstHsaAmd - 1,
#define TACHO_HSA_AMD(name) kAmd_##name,
#include "event/functions/functions_hsa.def"
  kAmdEnd
};
static_assert(kAmdEnd < sizeof g_next / sizeof *g_next);

template <uint16_t Number>
void wrap(void*& entry) {
  if (entry == nullptr) return;
  g_next[Number] = entry;
  entry = reinterpret_cast<void*>(&traced<Number>);
}

}  // namespace

void trace_calls(hsa::CoreTable& core, hsa::AmdTable& amd) {
#define TACHO_HSA_CORE(name) \
  if (TACHO_HSA_HAS(core, name)) wrap<kCore_##name>(core.name);
#define TACHO_HSA_AMD(name) \
  if (TACHO_HSA_HAS(amd, name)) wrap<kAmd_##name>(amd.name);
#include "event/functions/functions_hsa.def"
}

}  // namespace tacho::capture::rocm
