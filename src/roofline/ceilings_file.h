// roofline.csv as tacho writes it, the cache of what was measured on a device, and which of them tacho may use
// again.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "roofline/measurement.h"
#include "roofline/suite.h"

namespace tacho::roofline {

/// Header and rows, one a device. First the columns of ROCm Compute Profiler's benchmark, its spelling
/// included (mean, and as Low and High the 95 % interval of the mean: mean -+ 1.96 stdev /
/// sqrt(experiments)); then the same triples of what only tacho measures; then for each ceiling Stdev, Min,
/// Max (of single experiments), Clock (MHz), Peak and Path (instructions); then DeviceName, DeviceId, Driver,
/// Backend, Measured (UTC). Measurements that were skipped or are not to be trusted have empty cells. HBMBw
/// is the best of read, write, copy and triad.
std::string to_csv(const std::vector<DeviceCeilings>& devices, std::string_view measured);

/// "2026-11-20T21:00:00Z"
std::string now_text();

/// Where the device's ceilings are kept between runs; "" when there is no home directory.
std::string cache_path(const DeviceInfo& device);
/// Writes the cache; its folder is made.
Status store_in_cache(const DeviceCeilings& ceilings);

enum class Match { kMissing, kSame, kOther, kUnreadable };
struct Existing {
  Match match = Match::kMissing;
  std::string what;  ///< whose it is, or when it was measured
};
/// Compares a roofline.csv with the device: name, id and driver have to be equal. A file of ROCm Compute Profiler names none of
/// them and counts as another device's.
Existing compare_file(const std::string& path, const DeviceInfo& device);

/// What a profile run needs: a roofline.csv of this device in `folder`. Kept when it is there and of the
/// device and its driver; else copied from the device's cache; else measured (and cached). A file of another
/// device is kept under the first free name roofline.csv.N. `line` gets the seed's "[roofline] ..." lines and
/// those of the measurement.
Status ensure_roofline(const std::string& folder, const NumberedDevice& device, size_t device_count,
                       const SuiteOptions& options);

/// The device whose ceilings belong to a profile of counters of `vendor` ("nvidia", "amd", "virtual", "cpu")
/// on its device `id` ("0", "1", "virtual", "cpu"): NVIDIA's GPU of that number; for the virtual GPU and the
/// CPU, whose times are those of OpenCL on the CPU, that CPU device. The error says what is missing.
Result<NumberedDevice> device_of_profile(const std::vector<NumberedDevice>& devices, std::string_view vendor,
                                         std::string_view id);

/// All of a profile run's roofline: finds the device and calls ensure_roofline(). A machine that cannot be
/// measured is told to `line` and is no error: the profile stands without roofs.
Status add_roofline(const std::string& folder, std::string_view vendor, std::string_view id,
                    const SuiteOptions& options);

}  // namespace tacho::roofline
