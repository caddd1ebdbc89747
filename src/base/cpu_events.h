// CPU events for perf_event_open: counts of the CPU and the kernel for a thread, under the names of the
// kernel, perf and PAPI.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tacho {

struct CpuEvent {
  std::string_view name;    ///< as libpfm has it without "perf::": PERF_COUNT_SW_PAGE_FAULTS
  std::string_view perf;    ///< as perf list has it: page-faults
  std::string_view preset;  ///< PAPI's preset that counts exactly this: PAPI_TOT_CYC; empty = none
  uint32_t type;            ///< perf_event_attr::type
  uint64_t config;          ///< perf_event_attr::config
  std::string_view unit;    ///< empty = a count
  std::string_view text;
};

/// All events known by name, software ones first.
std::span<const CpuEvent> cpu_events();
/// By any of its names, in any case, '-' and '_' alike, with or without "perf::"; nullptr when there is none.
const CpuEvent* find_cpu_event(std::string_view name);
/// 0, or the errno with which this machine refuses to count the event for a thread of this user.
int cpu_event_error(const CpuEvent& event);

}  // namespace tacho
