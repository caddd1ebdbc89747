// Agents: a trace's devices, and the host, with their numbers in rocprofv3's files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"
#include "walk/filter.h"

namespace tacho::walk {

struct Agent {
  int64_t device = 0;   // row; 0 = the host, if the trace has no device for it
  int64_t node = 0;     // absolute number
  int64_t logical = 0;  // number among all agents
  int64_t of_type = 0;  // number among agents of its type
  event::DeviceKind kind = event::DeviceKind::kUnknown;
};

class Agents {
 public:
  /// The agents of `process` (row; 0 = the whole trace). Uses the devices' properties node_id, logical_node_id and
  /// logical_node_type_id if an importer knew them. Otherwise the host is 0 and devices follow in the order of their
  /// rows; within its type a device keeps its own index (a trace may hold only GPU 2), unless two share one because
  /// they belong to several processes: then it counts them.
  Agents(const trace::Trace& trace, int64_t process);
  const std::vector<Agent>& all() const { return agents_; }
  /// The agent of a device row; the host for row 0 and for rows that do not exist.
  const Agent& of(int64_t device) const;
  /// "Agent 4", "GPU 0".
  std::string label(int64_t device, AgentIndex index) const;
  /// label() in two parts, as track names need it: {"Agent", 4}.
  std::pair<std::string_view, int64_t> label_parts(int64_t device, AgentIndex index) const;

 private:
  std::vector<Agent> agents_;
  std::unordered_map<int64_t, size_t> of_device_;
  size_t host_ = 0;
};

/// "CPU", "GPU", or "UNK" for anything else, as in rocprofv3.
std::string_view type_word(event::DeviceKind kind);

}  // namespace tacho::walk
