// What formats have no place of their own for: whose a process is in its job, and which device a file's number stands
// for. Writers put it as a JSON object where each format lets them, readers give it to the row again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::imported {

/// {"pid": 948, "name": "python3", "host": "node7", "rank": 1, "run": 2}: what is known of a row of table process.
std::string process_origin(const trace::Trace& trace, int64_t process);
/// {"index": 1, "name": "NVIDIA H200", "vendor": ..., "architecture": ..., "uuid": ...}, of a row of table device.
std::string device_origin(const trace::Trace& trace, int64_t device);

/// Gives the row of a process or device what such an object tells. Other text, and members that it lacks, change
/// nothing.
void set_process_origin(trace::TraceWriter& writer, int64_t process, std::string_view origin);
void set_device_origin(trace::TraceWriter& writer, int64_t device, std::string_view origin);

}  // namespace tacho::format::imported
