// Words of vendors' tools and frameworks, and what they mean: one table for all readers.
#pragma once

#include <cstdint>
#include <string_view>

#include "event/schema.h"

namespace tacho::format::imported {

/// The API that a function belongs to, by its name: "hipMalloc", "cuMemAlloc", "hsa_init", "aten::mm". kUnknown = none
/// that tacho knows.
event::Domain domain_of_function(std::string_view function);
/// The API that a word names, in capitals or not: "HIP_RUNTIME_API", "cuda_driver", "RCCL_API". kUnknown = none.
event::Domain domain_of_word(std::string_view word);

/// From where to where, by any tool's words: "Memcpy HtoD (Pageable -> Device)", "MemcpyD2H", "CopyDeviceToDevice",
/// "MEMORY_COPY_HOST_TO_DEVICE", Level Zero's "Memcpy M2D". kUnknown if none is in `text`.
event::CopyDirection copy_direction(std::string_view text);
/// "Pageable", "pinned", "DEVICE". kUnknown = another word.
event::MemoryKind memory_kind(std::string_view word);
/// The kinds of memory that "NAME (Pageable -> Device)" or "NAME (Device)" tells.
struct MemoryEnds {
  event::MemoryKind from = event::MemoryKind::kUnknown, to = event::MemoryKind::kUnknown;
};
MemoryEnds memory_ends(std::string_view text);
/// "Stream Synchronize", "Event Sync", "Device Sync".
event::SyncKind sync_kind(std::string_view text);

/// The number of the GPU whose work a process or line of this name holds: 3 of "/device:GPU:3", "GPU 3" and "GPU3";
/// 0 of "CUDA functions". kUnknown = the name is no GPU's.
int64_t gpu_of_name(std::string_view name);

/// "THREAD 3 (1234) name", as tacho and rocprofv3 write it: its tid; `text` becomes the name, which may be empty.
/// False, and nothing changes, for every other text.
bool thread_of_name(std::string_view& text, int64_t& tid);

/// Without the suffixes of AMD's code objects ("k [clone .kd]" is k).
std::string_view kernel_of_symbol(std::string_view name);

}  // namespace tacho::format::imported
