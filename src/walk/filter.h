// The options of walks and writers: which events of a trace are wanted, and how names are written.
#pragma once

#include <cstdint>

#include "event/schema.h"

namespace tacho::walk {

struct EventFilter {
  int64_t process = 0;       // only this row of table process; 0 = all
  uint64_t tables = ~0ull;   // bit (1 << event::Table) of each fact table
  uint64_t domains = ~0ull;  // bit (1 << event::Domain) of the API calls

  bool wants(event::Table table) const { return (tables >> static_cast<unsigned>(table) & 1) != 0; }
  bool wants(event::Domain domain) const { return (domains >> static_cast<unsigned>(domain) & 1) != 0; }
};

/// How an agent is referred to: by its absolute number, its number among the visible ones, or its type and number
/// within that type.
enum class AgentIndex : uint8_t { kAbsolute, kRelative, kTypeRelative };

struct Naming {
  bool mangled = false;         // kernel names as the runtime gives them
  bool truncate = false;        // names without arguments and templates
  bool group_by_queue = false;  // tracks are named after queues even if streams are known
  AgentIndex agent_index = AgentIndex::kRelative;
};

}  // namespace tacho::walk
