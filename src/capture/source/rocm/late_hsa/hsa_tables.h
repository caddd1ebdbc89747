// HSA's dispatch tables in a program whose runtime (ROCr) started long ago. The runtime hands them to tools as it
// starts, and has no function that tells them later. But its exported functions go through them: each loads the table's
// address from a word of the runtime's and jumps to its own entry. Where all of these agree with each other and with
// the layout of the tables, the tables are what they are taken for.
#pragma once

#include <cstdint>

#include "vendor/amd/hsa.h"

namespace tacho::capture::rocm {

namespace hsa = vendor::hsa;

struct FoundTables {
  hsa::CoreTable* core;  // nullptr: the runtime has not made them yet
  hsa::AmdTable* amd;
  const char* why;  // not nullptr: the tables are not used, and why
};
/// Those of the HSA runtime that is loaded.
FoundTables find_tables();
/// Writes the entries that differ into the tables, one by one, and remembers them.
void put_into(const FoundTables& tables, const hsa::CoreTable& core, const hsa::AmdTable& amd);
/// Writes the remembered entries back where they still lead to tacho's. False when some do not: another tool has come.
bool put_back();

/// What a function like an exported one of the runtime's does: the word that it reads, and the entry's place in the
/// table.
struct ThroughTable {
  const void* word;  // nullptr: does something else
  uint32_t entry;
};
ThroughTable through_table(const uint8_t* code, uint64_t bytes);

}  // namespace tacho::capture::rocm
