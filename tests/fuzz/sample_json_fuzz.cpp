// libFuzzer target of the reader of PC samples in rocprofv3's JSON: any bytes end in counts that add up, or in
// sentences.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/text_mutator.h"
#include "workload/pc_samples/sample_json.h"

namespace {

using namespace tacho;

std::string g_path;
int g_file = -1;

constexpr char kDocument[] = R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 83},
"strings": {"pc_sample_instructions": ["s_waitcnt", "v_add"], "pc_sample_comments": ["a.cpp:7", "b.cpp:1"]},
"kernel_symbols": [{"kernel_id": 16, "kernel_name": "_Zx", "formatted_kernel_name": "axpy"}, {"kernel_id": 17}],
"buffer_records": {"kernel_dispatch": [{"thread_id": 7, "start_timestamp": 100, "end_timestamp": 1100,
  "dispatch_info": {"agent_id": {"handle": 4}, "kernel_id": 16, "dispatch_id": 1}}], "pc_sample_host_trap": [],
 "pc_sample_stochastic": [{"record": {"pc": {"code_object_id": 2, "code_object_offset": 16}, "exec_mask": 18446744073709551615,
   "dispatch_id": 1, "wave_issued": 1, "snapshot": {"stall_reason": "REASON_WAITCNT"}}, "inst_index": 1},
  {"record": {"dispatch_id": 9, "wave_issued": 0, "snapshot": {"stall_reason": 3}}, "inst_index": -1}]}}]})";

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  g_file = memfd_create("fuzz", 0);
  if (g_file < 0) return 1;
  g_path = "/proc/self/fd/" + std::to_string(g_file);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::put(
      fuzz::mutated_text(std::string(reinterpret_cast<const char*>(data), size), kDocument,
                         {"record", "inst_index", "dispatch_id", "kernel_id", "snapshot", "stall_reason", "strings",
                          "kernel_symbols", "buffer_records", "pc_sample_host_trap", "kernel_dispatch"},
                         max_size, seed),
      data);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (ftruncate(g_file, 0) != 0 || pwrite(g_file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  workload::SampleCounts counts;
  std::vector<std::string> warnings;
  bool stochastic = false;
  const uint64_t found = workload::read_sample_json(g_path, counts, stochastic, warnings);
  for (const std::string& warning : warnings)
    if (warning.empty() || warning.find('\n') != std::string::npos) std::abort();
  if (found == 0 && warnings.empty()) std::abort();
  const workload::PcSamples samples = std::move(counts).take();
  uint64_t sum = 0;
  for (const workload::SampledInstruction& each : samples.instructions) {
    uint64_t stalled = 0;
    for (const auto& [reason, count] : each.stalls) stalled += count;
    if (each.issued + stalled > each.samples) std::abort();
    sum += each.samples;
  }
  if (sum != found || samples.samples != found) std::abort();
  if (const auto trace = workload::kernel_trace_of_json(g_path); trace && !trace->starts_with("Kind,")) std::abort();
  return 0;
}
