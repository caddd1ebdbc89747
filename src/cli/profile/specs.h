// Writes sysinfo.csv: the properties of the machine and its device.
#pragma once

#include <string>

#include "counter/provider.h"

namespace tacho::cli {

/// The text of sysinfo.csv; `name` is the workload's name.
std::string sysinfo_csv(const counter::Device& device, const std::string& name, const std::string& command,
                        bool roofline_only);
/// The same facts for people: one property per line.
std::string specs_text(const counter::Device& device);
/// Fails if the folder has a sysinfo.csv of another architecture.
Status check_same_device(const std::string& folder, const counter::Device& device);
/// Local time, "2026-11-20 21:03:11".
std::string now_text();

}  // namespace tacho::cli
