// The part of rocprofiler-sdk's ABI that PC sampling takes (sdk.h has the rest), from SDK 0.5 (ROCm 6.3) on, and how
// samples go through the spool (event/spool/spool.h). scripts/check-rocm-abi.sh compares the declarations with AMD's
// headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vendor/amd/sdk.h"
#include "vendor/amd/sdk_counting.h"

namespace tacho::vendor::sdk {

/// Sampling needs at least this version: before it samples had no code object in them.
inline constexpr uint32_t kOldestSampling = 500;
/// The library refuses to sample unless this variable is set where it is loaded.
inline constexpr const char* kSamplingGate = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED";

enum class SamplingMethod : int32_t { kStochastic = 1, kHostTrap = 2 };
enum class SamplingUnit : int32_t { kInstructions = 1, kCycles = 2, kTime = 3 };  // time: microseconds
inline constexpr uint64_t kPowerOfTwo = 1;                                        // SamplingChoice::flags

/// rocprofiler_pc_sampling_configuration_t.
struct SamplingChoice {
  uint64_t size;
  int32_t method, unit;
  uint64_t least, most;  // interval
  uint64_t flags;
};
static_assert(sizeof(SamplingChoice) == 40);

namespace signature {
using SamplingChoices = Status(Handle agent, Status (*)(const SamplingChoice*, size_t, void*), void*);
/// The last word is not among 0.4's parameters.
using SamplePc = Status(Context, Handle agent, int32_t method, int32_t unit, uint64_t interval, Buffer, int32_t flags);
}  // namespace signature

/// Numbers of category::kPcSampling's kinds: 0.x had no records of invalid samples.
struct SampleKinds {
  uint32_t invalid, host_trap, stochastic;
};
constexpr SampleKinds sample_kinds(uint32_t version) {
  return version >= kFirstWide ? SampleKinds{1, 2, 3} : SampleKinds{0, 1, 2};
}

/// Samples: 88 bytes by host trap, 104 by the hardware. Both of all versions have 16 bytes of correlation.
struct Sample {
  Member<uint64_t> hardware, code_object, offset, exec_mask, timestamp, dispatch, correlation;
  Member<uint32_t> group_x, group_y, group_z;
  size_t least;
};
inline constexpr Sample kHostTrapSample{{8}, {16}, {24}, {32}, {40}, {48}, {56}, {72}, {76}, {80}, 88};
inline constexpr Sample kStochasticSample{{16}, {24}, {32}, {40}, {64}, {72}, {80}, {48}, {52}, {56}, 104};
namespace stochastic {
inline constexpr Member<uint8_t> issued{10};                // bit 0: issued; bits 1 to 5: type of the instruction
inline constexpr Member<uint32_t> waves{60}, snapshot{96};  // bits 0 to 3: why it was not issued
}  // namespace stochastic

/// rocprofiler_callback_tracing_code_object_load_data_t: operation 1 of the callbacks about code objects.
struct CodeObject {
  static constexpr int32_t kOperation = 1, kInFile = 1, kInMemory = 2;
  uint64_t size, id;
  Handle agent;
  uint64_t hsa_agent;
  const char* uri;  // "file:///...#offset=...&size=...", "memory://..."
  uint64_t base, bytes;
  int64_t delta;  // address in memory less the address in the file
  int32_t storage;
  uint64_t memory, memory_bytes;  // with kInMemory
};
static_assert(sizeof(CodeObject) == 88 && offsetof(CodeObject, storage) == 64 && offsetof(CodeObject, memory) == 72);

// How samples go through the spool
// `<process>.sampled` holds pieces as a block of the pool does (PieceHeader): the library's own records of samples and
// of dispatches, and between them facts about them, in their own category. `<process>.<id>.code` is a code object as it
// was loaded from memory.

inline constexpr uint32_t kSpoolCategory = 0x74616368;
enum class Spooled : uint32_t {
  kRun = 1,     // SpooledRun: first
  kAgent,       // SpooledAgent, then the architecture's name
  kCodeObject,  // SpooledCode, then its URI
  kKernel,      // SpooledKernel, then its mangled name
  kDropped,     // a word: how many records the library has dropped since the piece before
};
struct SpooledRun {
  uint32_t version;  // of the library
  int32_t method;    // SamplingMethod
  uint32_t pid, text_bytes;
};
struct SpooledAgent {
  uint64_t id;
  uint32_t gpu, text_bytes;
};
struct SpooledCode {
  uint64_t id, base;
  int64_t delta;
  uint64_t agent;
  uint32_t in_memory, text_bytes;
};
struct SpooledKernel {
  uint64_t id, code_object, object;
  int64_t entry;  // bytes from `object` to the first instruction
  uint32_t vector, accumulation, scalar, text_bytes;
};
static_assert(sizeof(SpooledRun) == 16 && sizeof(SpooledAgent) == 16 && sizeof(SpooledCode) == 40 &&
              sizeof(SpooledKernel) == 48);

}  // namespace tacho::vendor::sdk
