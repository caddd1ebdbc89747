// What a trace tells of a device beside its row.
#pragma once

#include <cstdint>
#include <optional>

#include "metric/catalog/architecture.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// The architecture of a device (row) in the catalog, by its name there or by a word of the device's name ("NVIDIA H100
/// 80GB HBM3").
std::optional<metric::Architecture> architecture_of(const trace::Trace& trace, int64_t device);

/// Multiprocessors or compute units: as the device told, else as its architecture usually has; 0 = unknown.
int64_t compute_units(const trace::Trace& trace, int64_t device);

/// Bytes of the device's memory; 0 = unknown.
double memory_bytes(const trace::Trace& trace, int64_t device);

}  // namespace tacho::analysis
