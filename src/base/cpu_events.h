// CPU events for perf_event_open: the events that the CPU and the kernel can count for a thread, under the names of the
// kernel, perf and PAPI.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tacho {

struct CpuEvent {
  std::string_view name;    ///< libpfm's name without "perf::": PERF_COUNT_SW_PAGE_FAULTS
  std::string_view perf;    ///< the name in perf list: page-faults
  std::string_view preset;  ///< the PAPI preset that counts exactly this: PAPI_TOT_CYC; empty = none
  uint32_t type;            ///< perf_event_attr::type
  uint64_t config;          ///< perf_event_attr::config
  std::string_view unit;    ///< "ns"; empty = a plain count
  std::string_view text;
};

/// All events known by name, software ones first.
std::span<const CpuEvent> cpu_events();
/// Finds an event by any of its names; ignores case, "perf::" and '-' against '_'. nullptr = unknown.
const CpuEvent* find_cpu_event(std::string_view name);
/// 0 if this user may count the event for a thread on this machine, else the errno of the refusal.
int cpu_event_error(const CpuEvent& event);

}  // namespace tacho
