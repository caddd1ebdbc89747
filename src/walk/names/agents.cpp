// Numbers the agents (agents.h).
#include "walk/names/agents.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace tacho::walk {

namespace column = event::column;
using event::Table;

std::string_view type_word(event::DeviceKind kind) {
  switch (kind) {
    case event::DeviceKind::kCpu:
      return "CPU";
    case event::DeviceKind::kGpu:
      return "GPU";
    default:
      return "UNK";
  }
}

namespace {

// By row: whether a track of the process lies on the device. Devices of a merged trace may belong to another process of
// their machine.
std::vector<bool> devices_of(const trace::Trace& trace, int64_t process) {
  std::vector<bool> used(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kDevice), 1)));
  for (int64_t track = 1; process != 0 && track < trace.rows(Table::kTrack); ++track) {
    const int64_t device = trace.cell(Table::kTrack, track, column::Track::device);
    if (device > 0 && device < static_cast<int64_t>(used.size()) &&
        trace.cell(Table::kTrack, track, column::Track::process) == process)
      used[static_cast<size_t>(device)] = true;
  }
  return used;
}

}  // namespace

Agents::Agents(const trace::Trace& trace, int64_t process) {
  const auto number = [&](int64_t device, const char* key) -> std::optional<int64_t> {
    const auto text = trace.property(Table::kDevice, device, key);
    int64_t value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return {};
    return value;
  };
  bool numbered = false;
  const std::vector<bool> used = devices_of(trace, process);
  for (int64_t device = 1; device < trace.rows(Table::kDevice); ++device) {
    const int64_t owner = trace.cell(Table::kDevice, device, column::Device::process);
    if (process != 0 && owner != 0 && owner != process && !used[static_cast<size_t>(device)]) continue;
    Agent agent;
    agent.device = device;
    const int64_t kind = trace.cell(Table::kDevice, device, column::Device::kind);
    if (kind >= 0 && kind < static_cast<int64_t>(event::DeviceKind::kEnd))
      agent.kind = static_cast<event::DeviceKind>(kind);
    if (const auto node = number(device, "node_id")) {
      agent.node = *node;
      agent.logical = number(device, "logical_node_id").value_or(*node);
      agent.of_type = number(device, "logical_node_type_id").value_or(0);
      numbered = true;
    }
    agents_.push_back(agent);
  }
  if (numbered) {
    std::stable_sort(agents_.begin(), agents_.end(),
                     [](const Agent& a, const Agent& b) { return a.logical < b.logical; });
    const auto host =
        std::find_if(agents_.begin(), agents_.end(), [](const Agent& a) { return a.kind == event::DeviceKind::kCpu; });
    host_ = static_cast<size_t>(host - agents_.begin());
    if (host == agents_.end()) {  // a trace of tacho's that another format held: it lists only devices
      Agent own;
      own.kind = event::DeviceKind::kCpu;
      const auto taken = [&](const Agent& each) { return each.node == own.node || each.logical == own.node; };
      while (std::ranges::any_of(agents_, taken)) own.logical = ++own.node;
      agents_.push_back(own);
    }
  } else {
    Agent host;
    host.kind = event::DeviceKind::kCpu;
    agents_.insert(agents_.begin(), host);
    std::map<event::DeviceKind, std::vector<int64_t>> of_kind;  // the devices' own numbers
    for (size_t i = 0; i < agents_.size(); ++i) {
      agents_[i].node = agents_[i].logical = static_cast<int64_t>(i);
      std::vector<int64_t>& numbers = of_kind[agents_[i].kind];
      agents_[i].of_type = static_cast<int64_t>(numbers.size());
      numbers.push_back(agents_[i].device == 0 ? 0
                                               : trace.cell(Table::kDevice, agents_[i].device, column::Device::index));
    }
    for (auto& [kind, numbers] : of_kind) {
      std::vector<int64_t> sorted = numbers;
      std::sort(sorted.begin(), sorted.end());
      if (sorted.front() < 0 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) continue;
      for (Agent& agent : agents_)
        if (agent.kind == kind) agent.of_type = numbers[static_cast<size_t>(agent.of_type)];
    }
  }
  for (size_t i = 0; i < agents_.size(); ++i) of_device_.emplace(agents_[i].device, i);
}

const Agent& Agents::of(int64_t device) const {
  const auto found = of_device_.find(device);
  return agents_[found != of_device_.end() ? found->second : host_];
}

std::pair<std::string_view, int64_t> Agents::label_parts(int64_t device, AgentIndex index) const {
  const Agent& agent = of(device);
  switch (index) {
    case AgentIndex::kAbsolute:
      return {"Agent", agent.node};
    case AgentIndex::kRelative:
      return {"Agent", agent.logical};
    case AgentIndex::kTypeRelative:
      return {type_word(agent.kind), agent.of_type};
  }
  return {"Agent", agent.logical};
}

std::string Agents::label(int64_t device, AgentIndex index) const {
  const auto [word, number] = label_parts(device, index);
  return fmt::format("{} {}", word, number);
}

}  // namespace tacho::walk
