// agent_info.csv: rocprofv3's facts about each agent, from whatever the trace knows about its devices.
#include <charconv>
#include <optional>
#include <string>

#include "base/text/csv.h"
#include "format/csv/parts.h"
#include "format/import/origin.h"

namespace tacho::format::csv {

namespace column = event::column;
using event::Table;
using walk::Agent;
using walk::Agents;
using walk::type_word;

namespace {

// Facts that tacho's own sources record under other names and in other units.
struct Alias {
  std::string_view name, property;
  uint64_t divisor;
};
constexpr Alias kAliases[] = {
    {"Lds_Size_In_Kb", "local memory bytes", 1024},
    {"Lds_Size_In_Kb", "shared_memory_per_multiprocessor_bytes", 1024},
    {"Cu_Count", "compute units", 1},
    {"Cu_Count", "multiprocessors", 1},
    {"Max_Waves_Per_Cu", "max_warps_per_multiprocessor", 1},
    {"Vendor_Id", "vendor id", 1},
    {"Max_Engine_Clk_Fcompute", "clock MHz", 1},
    {"Max_Engine_Clk_Fcompute", "core_clock_hz", 1'000'000},
    {"Workgroup_Max_Size", "max workgroup size", 1},
    {"Local_Mem_Size", "global memory bytes", 1},
    {"Local_Mem_Size", "memory_bytes", 1},
};
constexpr std::string_view kEntries[] = {"Cpu_Cores_Count",
                                         "Simd_Count",
                                         "Cpu_Core_Id_Base",
                                         "Simd_Id_Base",
                                         "Max_Waves_Per_Simd",
                                         "Lds_Size_In_Kb",
                                         "Gds_Size_In_Kb",
                                         "Num_Gws",
                                         "Wave_Front_Size",
                                         "Num_Xcc",
                                         "Cu_Count",
                                         "Array_Count",
                                         "Num_Shader_Banks",
                                         "Simd_Arrays_Per_Engine",
                                         "Cu_Per_Simd_Array",
                                         "Simd_Per_Cu",
                                         "Max_Slots_Scratch_Cu",
                                         "Gfx_Target_Version",
                                         "Vendor_Id",
                                         "Device_Id",
                                         "Location_Id",
                                         "Domain",
                                         "Drm_Render_Minor",
                                         "Num_Sdma_Engines",
                                         "Num_Sdma_Xgmi_Engines",
                                         "Num_Sdma_Queues_Per_Engine",
                                         "Num_Cp_Queues",
                                         "Max_Engine_Clk_Ccompute",
                                         "Max_Engine_Clk_Fcompute",
                                         "Sdma_Fw_Version",
                                         "Fw_Version",
                                         "Capability",
                                         "Cu_Per_Engine",
                                         "Max_Waves_Per_Cu",
                                         "Family_Id",
                                         "Workgroup_Max_Size",
                                         "Grid_Max_Size",
                                         "Local_Mem_Size",
                                         "Hive_Id",
                                         "Gpu_Id",
                                         "Workgroup_Max_Dim_X",
                                         "Workgroup_Max_Dim_Y",
                                         "Workgroup_Max_Dim_Z",
                                         "Grid_Max_Dim_X",
                                         "Grid_Max_Dim_Y",
                                         "Grid_Max_Dim_Z"};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool whole_number(std::string_view text) {
  if (text.empty() || text.size() > 20) return false;
  for (const char c : text)
    if (c < '0' || c > '9') return false;
  return true;
}

}  // namespace

std::vector<std::pair<std::string_view, uint64_t>> agent_facts(const trace::Trace& trace, const Agent& agent) {
  std::vector<std::pair<std::string_view, uint64_t>> facts;
  for (const std::string_view entry : kEntries) {
    std::optional<std::string_view> value;
    uint64_t divisor = 1;
    if (agent.device == 0) {
      // The host itself: a run records only its number of cores.
      if (entry == "Cpu_Cores_Count") value = trace.property(Table::kEnd, 0, "cpus");
    } else {
      value = trace.property(Table::kDevice, agent.device, lower(entry));
      for (const Alias& alias : kAliases)
        if (!value && alias.name == entry) {
          value = trace.property(Table::kDevice, agent.device, alias.property);
          divisor = alias.divisor;
        }
    }
    if (!value || !whole_number(*value)) continue;
    uint64_t number = 0;
    std::from_chars(value->data(), value->data() + value->size(), number);
    facts.emplace_back(entry, number / divisor);
  }
  return facts;
}

std::string agent_info(const trace::Trace& trace, const Agents& agents) {
  std::string out = "\"Node_Id\",\"Logical_Node_Id\",\"Agent_Type\"";
  for (const std::string_view entry : kEntries) out += fmt::format(",\"{}\"", entry);
  out += ",\"Name\",\"Vendor_Name\",\"Product_Name\",\"Model_Name\"\n";
  for (const Agent& agent : agents.all()) {
    const auto text = [&](int at) { return trace.text(Table::kDevice, agent.device, at); };
    out += fmt::format("{},{},{}", agent.node, agent.logical, csv_quoted(type_word(agent.kind)));
    const auto facts = agent_facts(trace, agent);
    auto fact = facts.begin();
    for (const std::string_view entry : kEntries) {
      out += ',';  // unknown values stay empty: they are not 0
      if (fact != facts.end() && fact->first == entry) out += fmt::format("{}", (fact++)->second);
    }
    if (agent.device == 0) {
      out +=
          fmt::format(",{},\"\",\"\",\"\"\n", csv_quoted(trace.property(Table::kEnd, 0, "machine").value_or("host")));
      continue;
    }
    const std::string_view name = text(column::Device::name), architecture = text(column::Device::architecture);
    out += fmt::format(",{},{},{},{}\n", csv_quoted(architecture.empty() ? name : architecture),
                       csv_quoted(text(column::Device::vendor)), csv_quoted(name),
                       csv_quoted(trace.property(Table::kDevice, agent.device, "model_name").value_or("")));
  }
  return out;
}

std::string process_info(const trace::Trace& trace, const Agents& agents, int64_t process) {
  const int64_t pid = trace.cell(Table::kProcess, process, column::Process::pid);
  std::string out = "\"Kind\",\"Id\",\"Facts\"\n";
  out += fmt::format("\"Process\",{},{}\n", pid == event::kUnknown ? 0 : pid,
                     csv_quoted(imported::process_origin(trace, process)));
  for (const Agent& agent : agents.all())
    if (agent.device > 0)
      out += fmt::format("\"Agent\",{},{}\n", agent.logical, csv_quoted(imported::device_origin(trace, agent.device)));
  return out;
}

}  // namespace tacho::format::csv
