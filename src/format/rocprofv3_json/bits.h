// C bit fields in HSA's agent properties. rocprofv3's JSON gives them member by member, its CSV as one number. The
// first member has the lowest bits.
#pragma once

#include <span>
#include <string_view>

namespace tacho::format::rocprofv3 {

struct BitField {
  std::string_view name;
  int width;
};
inline constexpr BitField kSdmaVersion[] = {{"uCodeSDMA", 10}, {"uCodeRes", 10}};
inline constexpr BitField kEngineVersion[] = {{"uCode", 10}, {"Major", 6}, {"Minor", 8}, {"Stepping", 8}};
inline constexpr BitField kCapability[] = {{"HotPluggable", 1},
                                           {"HSAMMUPresent", 1},
                                           {"SharedWithGraphics", 1},
                                           {"QueueSizePowerOfTwo", 1},
                                           {"QueueSize32bit", 1},
                                           {"QueueIdleEvent", 1},
                                           {"VALimit", 1},
                                           {"WatchPointsSupported", 1},
                                           {"WatchPointsTotalBits", 4},
                                           {"DoorbellType", 2},
                                           {"AQLQueueDoubleMap", 1},
                                           {"DebugTrapSupported", 1},
                                           {"WaveLaunchTrapOverrideSupported", 1},
                                           {"WaveLaunchModeSupported", 1},
                                           {"PreciseMemoryOperationsSupported", 1},
                                           {"DEPRECATED_SRAM_EDCSupport", 1},
                                           {"Mem_EDCSupport", 1},
                                           {"RASEventNotify", 1},
                                           {"ASICRevision", 4},
                                           {"SRAM_EDCSupport", 1},
                                           {"SVMAPISupported", 1},
                                           {"CoherentHostAccess", 1},
                                           {"DebugSupportedFirmware", 1}};

/// The fields of an agent's member; empty if the member is a plain number.
inline std::span<const BitField> bit_fields(std::string_view member) {
  if (member == "sdma_fw_version") return kSdmaVersion;
  if (member == "fw_version") return kEngineVersion;
  if (member == "capability") return kCapability;
  return {};
}

}  // namespace tacho::format::rocprofv3
