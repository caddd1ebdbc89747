// PC samples, which no bed can take: of each dispatch the same few, at real instructions of its kernel. Code objects
// are those that the real HSA runtime has loaded.
//
// Words of TACHO_SDK: samples=unsupported (the GPU has none), samples=busy (another process samples), samples=invalid
// (a record of an invalid sample, and one of a kind that nobody knows, with each dispatch), samples=unnamed (one in
// code without a name).
#include <cstddef>
#include <cstring>

#include "sdk.h"
#include "vendor/amd/hsa.h"

namespace hsa = tacho::vendor::hsa;

namespace imitation {
namespace {

// The beginning of hsa_ven_amd_loader_1_01_pfn_t.
struct Loader {
  void *host_address, *segments, *executable;
  hsa::Status (*iterate)(hsa::Executable, hsa::Status (*)(hsa::Executable, uint64_t loaded, void*), void*);
  hsa::Status (*info)(uint64_t loaded, uint32_t what, void*);
};
enum : uint32_t { kAgent = 3, kStorage, kMemory, kMemoryBytes, kFile, kDelta, kBase, kBytes, kUriLength, kUri };
constexpr uint16_t kLoaderExtension = 0x201;

struct Known {
  uint64_t id, base, bytes;
};
std::mutex g_code_mutex;
std::vector<Known> g_code;
Loader g_loader{};

struct Sampling {
  Id context{};
  uint64_t buffer = 0;
  int32_t method = 0;
} g_sampling;

template <typename Correlation>
void tell(const Callback& callback, CodeObject& code) {
  CallbackRecord<Correlation> record{};
  record.context = callback.context;
  record.thread = thread_id();
  record.kind = 10;
  record.operation = 1;
  record.phase = 1;
  record.payload = &code;
  uint64_t user = 0;
  reinterpret_cast<void (*)(CallbackRecord<Correlation>, uint64_t*, void*)>(callback.function)(record, &user,
                                                                                               callback.data);
}

hsa::Status see_code(hsa::Executable, uint64_t loaded, void*) {
  CodeObject code{};
  code.size = sizeof code;
  uint32_t storage = 0, length = 0;
  hsa::Agent agent = 0;
  const auto ask = [&](uint32_t what, void* into) { g_loader.info(loaded, what, into); };
  ask(kAgent, &agent);
  ask(kStorage, &storage);
  ask(kBase, &code.base);
  ask(kBytes, &code.bytes);
  ask(kDelta, &code.delta);
  ask(kUriLength, &length);
  std::string uri(length, '\0');
  ask(kUri, uri.data());
  code.uri = uri.c_str();
  code.agent = id_of_agent(agent);
  code.hsa_agent = agent;
  code.storage = static_cast<int32_t>(storage);
  if (storage == 2) {
    ask(kMemory, &code.memory);
    ask(kMemoryBytes, &code.memory_bytes);
  }
  {
    const std::lock_guard lock(g_code_mutex);
    code.id = g_code.size() + 1;
    g_code.push_back({code.id, code.base, code.bytes});
  }
  for (const Callback& callback : state().code_object_callbacks)
    if (state().contexts[callback.context.handle].active)
      narrow() ? tell<Correlation0>(callback, code) : tell<Correlation1>(callback, code);
  return hsa::kSuccess;
}

template <typename Sample>
void put_one(Sample sample, uint32_t kind) {
  sample.size = sizeof sample;
  append(g_sampling.buffer, 2, kind, &sample, sizeof sample);
}

}  // namespace

void tell_code_objects(uint64_t executable, void* extension_table) {
  if (g_loader.iterate == nullptr) {
    using Table = hsa::Status(uint16_t, uint16_t, size_t, void*);
    reinterpret_cast<Table*>(extension_table)(kLoaderExtension, 1, sizeof g_loader, &g_loader);
  }
  g_loader.iterate(executable, see_code, nullptr);
}

uint64_t code_object_at(uint64_t address) {
  const std::lock_guard lock(g_code_mutex);
  for (const Known& code : g_code)
    if (address >= code.base && address - code.base < code.bytes) return code.id;
  return 0;
}

void put_samples(const DispatchInfo& info, Correlation0 correlation, uint64_t start, uint64_t entry) {
  if (g_sampling.method == 0 || !state().contexts[g_sampling.context.handle].active) return;
  const uint64_t code = code_object_at(entry);
  uint64_t base = 0;
  {
    const std::lock_guard lock(g_code_mutex);
    if (code != 0) base = g_code[code - 1].base;
  }
  const std::string scene = scenario("samples");
  const uint32_t host_trap = narrow() ? 1 : 2;
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t offset = entry - base + (i == 0 ? 0 : 8);  // a kernel begins with an s_load, of 8 bytes
    const uint64_t hardware = i % 8 | (info.dispatch & 15) << 19;
    if (g_sampling.method == 2) {
      put_one(HostTrapSample{0,
                             hardware,
                             code,
                             offset,
                             0xffff,
                             start + i,
                             info.dispatch,
                             correlation,
                             {static_cast<uint32_t>(i), 0, 0},
                             1},
              host_trap);
    } else {
      const uint32_t issued = i == 0 ? 1 : 0, type = i == 0 ? 3 : 15, reason = i == 0 ? 0 : i == 3 ? 2 : 3;
      put_one(StochasticSample{0,
                               0,
                               0,
                               static_cast<uint8_t>(issued | type << 1),
                               hardware,
                               code,
                               offset,
                               0xffff,
                               {static_cast<uint32_t>(i), 0, 0},
                               7,
                               start + i,
                               info.dispatch,
                               correlation,
                               reason | 1u << 27,
                               0},
              3);
    }
  }
  uint64_t odd[2] = {sizeof odd, 0};
  if (scene == "invalid") {
    append(g_sampling.buffer, 2, 1, odd, sizeof odd);
    append(g_sampling.buffer, 2, 77, odd, sizeof odd);
  }
  if (scene == "unnamed")
    put_one(HostTrapSample{0, 0, 0, 0x1234, 1, start, info.dispatch, correlation, {}, 0}, host_trap);
}

}  // namespace imitation

// The library's functions

using namespace imitation;
#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

TACHO_EXPORT Status rocprofiler_query_pc_sampling_agent_configurations(
    Id, Status (*callback)(const SamplingChoice*, size_t, void*), void* data) {
  const char* const gate = getenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED");
  if (gate == nullptr || strcmp(gate, "1") != 0) return kNotImplemented;
  if (scenario("samples") == "unsupported") return kNotAvailable;
  const SamplingChoice choices[] = {{sizeof choices[0], 2, 3, 1, 1 << 20, 0},
                                    {sizeof choices[0], 1, 2, 256, 1ull << 31, 1}};
  return callback(choices, narrow() ? 1 : 2, data);
}
TACHO_EXPORT Status rocprofiler_configure_pc_sampling_service(Id context, Id, int32_t method, int32_t unit, uint64_t,
                                                              Id buffer, int) {
  if (scenario("samples") == "busy") return kNotAvailable;
  if (unit != (method == 2 ? 3 : 2)) return kInvalid;
  g_sampling = {context, buffer.handle, method};
  return kOk;
}
