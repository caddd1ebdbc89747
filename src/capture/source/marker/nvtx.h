// What the parts of the NVTX source share: handles of domains and texts, extended payloads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/source/marker/nvtx_extension_abi.h"
#include "event/records.h"

namespace tacho::capture::nvtx {

/// Handles of domains and registered strings are the numbers of interned strings.
inline uint32_t to_number(const void* handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle));
}
/// The domain's name as a string number; null is the default domain, "NVTX".
uint32_t domain_number(const void* domain);

/// Extended payloads as a record has them (event::FieldsHeader), and the text that they give to their marker.
struct Payloads {
  alignas(8) char bytes[event::kMostFieldBytes];
  uint32_t size = 0;
  uint32_t interned = 0;  // the text as a string's number, or in `message`
  uint32_t message_size = 0;
  char message[1024];
};
/// Appends what the program's payloads contain. What has no room or no known form is counted, and a note says so.
void read_payloads(uint32_t domain, const PayloadData* given, size_t count, Payloads& out);

}  // namespace tacho::capture::nvtx
