// What the parts of the NVTX source share: handles of domains and texts, extended payloads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/source/marker/nvtx_abi.h"
#include "capture/source/marker/nvtx_extension_abi.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::nvtx {

/// Handles of domains and registered strings are the numbers of interned strings, and above them the number of the
/// attach that gave them: the program may keep them until a later one, where the numbers mean nothing. 0 for those of
/// an earlier attach, and for those from before tacho came, which are null.
inline uint32_t to_number(const void* handle) {
  const auto word = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
  return word >> 32 == tape::late_session() ? static_cast<uint32_t>(word) : 0;
}
/// The domain's name as a string number; null and what is not known any more is the default domain, "NVTX".
uint32_t domain_number(const void* domain);

/// A function of tacho's, and which of NVTX's it stands in for.
struct Hook {
  NvtxModule module;
  unsigned number;   // in the module's table
  const char* name;  // under which libraries export it
  Function function;
};
constexpr size_t kHooks = 26;
/// All of them.
void list_hooks(Hook (&to)[kHooks]);
/// What belongs to one attach is forgotten: names of categories, the default domain.
void forget_names();
/// How many markers have had a text of an earlier time, since the last call.
uint64_t take_unknown_texts();

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
