// The table of events (cpu_events.h).
#include "base/cpu_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tacho {
namespace {

constexpr uint64_t cache(uint64_t which, uint64_t operation, uint64_t result) {
  return which | operation << 8 | result << 16;
}
constexpr uint64_t kRead = PERF_COUNT_HW_CACHE_OP_READ, kAccess = PERF_COUNT_HW_CACHE_RESULT_ACCESS,
                   kMiss = PERF_COUNT_HW_CACHE_RESULT_MISS;

constexpr CpuEvent kEvents[] = {
    {"PERF_COUNT_SW_CPU_CLOCK", "cpu-clock", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "ns", "time on a CPU"},
    {"PERF_COUNT_SW_TASK_CLOCK", "task-clock", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "ns",
     "CPU time of the thread"},
    {"PERF_COUNT_SW_PAGE_FAULTS", "page-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "", "page faults"},
    {"PERF_COUNT_SW_PAGE_FAULTS_MIN", "minor-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, "",
     "page faults served from memory"},
    {"PERF_COUNT_SW_PAGE_FAULTS_MAJ", "major-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "",
     "page faults that read from disk"},
    {"PERF_COUNT_SW_CONTEXT_SWITCHES", "context-switches", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "",
     "context switches"},
    {"PERF_COUNT_SW_CPU_MIGRATIONS", "cpu-migrations", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, "",
     "moves between CPUs"},
    {"PERF_COUNT_SW_ALIGNMENT_FAULTS", "alignment-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, "",
     "unaligned accesses that the kernel had to serve"},
    {"PERF_COUNT_SW_EMULATION_FAULTS", "emulation-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, "",
     "instructions that the kernel had to emulate"},
    {"PERF_COUNT_HW_CPU_CYCLES", "cycles", "PAPI_TOT_CYC", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "", "cycles"},
    {"PERF_COUNT_HW_INSTRUCTIONS", "instructions", "PAPI_TOT_INS", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "",
     "instructions"},
    {"PERF_COUNT_HW_REF_CPU_CYCLES", "ref-cycles", "PAPI_REF_CYC", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, "",
     "cycles at the nominal clock"},
    {"PERF_COUNT_HW_CACHE_REFERENCES", "cache-references", "PAPI_L3_TCA", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_CACHE_REFERENCES, "", "cache references"},
    {"PERF_COUNT_HW_CACHE_MISSES", "cache-misses", "PAPI_L3_TCM", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "",
     "cache misses"},
    {"PERF_COUNT_HW_BRANCH_INSTRUCTIONS", "branches", "PAPI_BR_INS", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "", "branches"},
    {"PERF_COUNT_HW_BRANCH_MISSES", "branch-misses", "PAPI_BR_MSP", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "",
     "branches that were predicted wrongly"},
    {"PERF_COUNT_HW_STALLED_CYCLES_FRONTEND", "stalled-cycles-frontend", "", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "", "cycles without an instruction from the front end"},
    {"PERF_COUNT_HW_STALLED_CYCLES_BACKEND", "stalled-cycles-backend", "", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "", "cycles in which the back end took no instruction"},
    {"PERF_COUNT_HW_CACHE_L1D:READ:ACCESS", "L1-dcache-loads", "", PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_L1D, kRead, kAccess), "", "loads from the first-level data cache"},
    {"PERF_COUNT_HW_CACHE_L1D:READ:MISS", "L1-dcache-load-misses", "PAPI_L1_LDM", PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_L1D, kRead, kMiss), "", "loads that the first-level data cache did not have"},
    {"PERF_COUNT_HW_CACHE_L1I:READ:MISS", "L1-icache-load-misses", "PAPI_L1_ICM", PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_L1I, kRead, kMiss), "", "fetches that the instruction cache did not have"},
    {"PERF_COUNT_HW_CACHE_LL:READ:MISS", "LLC-load-misses", "PAPI_L3_LDM", PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_LL, kRead, kMiss), "", "loads that the last-level cache did not have"},
    {"PERF_COUNT_HW_CACHE_DTLB:READ:MISS", "dTLB-load-misses", "", PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_DTLB, kRead, kMiss), "", "loads that the data TLB did not have"},
    {"PERF_COUNT_HW_CACHE_ITLB:READ:MISS", "iTLB-load-misses", "PAPI_TLB_IM", PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_ITLB, kRead, kMiss), "", "fetches that the instruction TLB did not have"},
};

// Lower case, '_' for '-'.
char plain(char c) {
  return c == '-' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}
bool same(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  for (size_t i = 0; i < one.size(); ++i)
    if (plain(one[i]) != plain(other[i])) return false;
  return true;
}

}  // namespace

std::span<const CpuEvent> cpu_events() {
  return kEvents;
}

const CpuEvent* find_cpu_event(std::string_view name) {
  constexpr std::string_view kLibrary = "perf::", kCount = "PERF_COUNT_SW_", kHardware = "PERF_COUNT_HW_";
  if (name.size() > kLibrary.size() && same(name.substr(0, kLibrary.size()), kLibrary))
    name.remove_prefix(kLibrary.size());
  for (const CpuEvent& event : kEvents) {
    if (same(name, event.name) || same(name, event.perf)) return &event;
    if (!event.preset.empty() && same(name, event.preset)) return &event;
    // libpfm also knows them without the kernel's prefix: perf::PAGE-FAULTS, perf::CYCLES.
    for (const std::string_view prefix : {kCount, kHardware})
      if (event.name.starts_with(prefix) && same(name, event.name.substr(prefix.size()))) return &event;
  }
  return nullptr;
}

int cpu_event_error(const CpuEvent& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = attributes.exclude_kernel = attributes.exclude_hv = 1;
  const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0) return errno;
  close(static_cast<int>(file));
  return 0;
}

}  // namespace tacho
