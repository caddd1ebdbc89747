// Writes roofline.csv, keeps a cache of each device's ceilings, and decides which of them tacho may reuse.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "roofline/measurement.h"
#include "roofline/suite.h"

namespace tacho::roofline {

/// Header and rows, one per device. Order of the columns: those of ROCm Compute Profiler's benchmark, including its
/// spelling (mean, and as Low and High the 95 % interval of the mean: mean -+ 1.96 stdev / sqrt(experiments)); the same
/// triples for ceilings that only tacho measures; for each ceiling Stdev, Min, Max (of single experiments), Clock
/// (MHz), Peak and Path (instructions); DeviceName, DeviceId, Driver, Backend, Measured (UTC). Cells of skipped or
/// untrustworthy measurements are empty. HBMBw is the best of read, write, copy and triad.
std::string to_csv(const std::vector<DeviceCeilings>& devices, std::string_view measured);

/// The current time as "2026-11-20T21:00:00Z".
std::string now_text();

/// The cache file for a device's ceilings; "" when there is no home directory.
std::string cache_path(const DeviceInfo& device);
/// Writes the cache file and creates its folder.
Status store_in_cache(const DeviceCeilings& ceilings);

enum class Match { kMissing, kSame, kOther, kUnreadable };
struct Existing {
  Match match = Match::kMissing;
  std::string what;  ///< the device's name, or when it was measured
};
/// Compares a roofline.csv with the device: name, id and driver must be equal. A file of ROCm Compute Profiler names
/// none of them and counts as another device's.
Existing compare_file(const std::string& path, const DeviceInfo& device);

/// Makes sure that `folder` has a roofline.csv of this device, for a profile run. Keeps a file of this device and
/// driver. Otherwise copies the device's cache or, without one, measures and fills the cache. Renames a file of another
/// device to the first free roofline.csv.N. `line` gets rocprof-compute's "[roofline] ..." lines and those of the
/// measurement.
Status ensure_roofline(const std::string& folder, const NumberedDevice& device, size_t device_count,
                       const SuiteOptions& options);

/// The device whose ceilings belong to a counter profile of `vendor` ("nvidia", "amd", "virtual", "cpu") on its device
/// `id` ("0", "1", "virtual", "cpu"). For NVIDIA the GPU of that number. The virtual GPU and the CPU get their times
/// from OpenCL on the CPU, so theirs is that CPU device. The error names the missing device.
Result<NumberedDevice> device_of_profile(const std::vector<NumberedDevice>& devices, std::string_view vendor,
                                         std::string_view id);

/// The roofline step of a profile run: finds the device and calls ensure_roofline(). If tacho cannot measure the
/// machine, `line` gets the reason and there is no error; the profile then has no roofs.
Status add_roofline(const std::string& folder, std::string_view vendor, std::string_view id,
                    const SuiteOptions& options);

}  // namespace tacho::roofline
