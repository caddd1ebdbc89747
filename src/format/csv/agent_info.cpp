// agent_info.csv: what rocprofv3 tells about each agent, from whatever the trace knows of its devices.
#include <charconv>
#include <optional>
#include <string>

#include "format/csv/parts.h"

namespace tacho::format::csv {

namespace column = event::column;
using event::Table;

namespace {

struct Entry {
  const char* name;
  const char* property;  // of the device, where sources of ours record that fact under a name of their own
  int64_t divisor;
};
constexpr Entry kEntries[] = {
    {"Cpu_Cores_Count", nullptr, 1},
    {"Simd_Count", nullptr, 1},
    {"Cpu_Core_Id_Base", nullptr, 1},
    {"Simd_Id_Base", nullptr, 1},
    {"Max_Waves_Per_Simd", nullptr, 1},
    {"Lds_Size_In_Kb", "local memory bytes", 1024},
    {"Gds_Size_In_Kb", nullptr, 1},
    {"Num_Gws", nullptr, 1},
    {"Wave_Front_Size", "warp size", 1},
    {"Num_Xcc", nullptr, 1},
    {"Cu_Count", "compute units", 1},
    {"Array_Count", nullptr, 1},
    {"Num_Shader_Banks", nullptr, 1},
    {"Simd_Arrays_Per_Engine", nullptr, 1},
    {"Cu_Per_Simd_Array", nullptr, 1},
    {"Simd_Per_Cu", nullptr, 1},
    {"Max_Slots_Scratch_Cu", nullptr, 1},
    {"Gfx_Target_Version", nullptr, 1},
    {"Vendor_Id", "vendor id", 1},
    {"Device_Id", nullptr, 1},
    {"Location_Id", nullptr, 1},
    {"Domain", nullptr, 1},
    {"Drm_Render_Minor", nullptr, 1},
    {"Num_Sdma_Engines", nullptr, 1},
    {"Num_Sdma_Xgmi_Engines", nullptr, 1},
    {"Num_Sdma_Queues_Per_Engine", nullptr, 1},
    {"Num_Cp_Queues", nullptr, 1},
    {"Max_Engine_Clk_Ccompute", nullptr, 1},
    {"Max_Engine_Clk_Fcompute", "clock MHz", 1},
    {"Sdma_Fw_Version", nullptr, 1},
    {"Fw_Version", nullptr, 1},
    {"Capability", nullptr, 1},
    {"Cu_Per_Engine", nullptr, 1},
    {"Max_Waves_Per_Cu", nullptr, 1},
    {"Family_Id", nullptr, 1},
    {"Workgroup_Max_Size", "max workgroup size", 1},
    {"Grid_Max_Size", nullptr, 1},
    {"Local_Mem_Size", "global memory bytes", 1},
    {"Hive_Id", nullptr, 1},
    {"Gpu_Id", nullptr, 1},
    {"Workgroup_Max_Dim_X", nullptr, 1},
    {"Workgroup_Max_Dim_Y", nullptr, 1},
    {"Workgroup_Max_Dim_Z", nullptr, 1},
    {"Grid_Max_Dim_X", nullptr, 1},
    {"Grid_Max_Dim_Y", nullptr, 1},
    {"Grid_Max_Dim_Z", nullptr, 1},
};

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

std::vector<std::pair<std::string_view, uint64_t>> agent_facts(const trace::Trace& trace,
                                                               const Agent& agent) {
  std::vector<std::pair<std::string_view, uint64_t>> facts;
  for (const Entry& entry : kEntries) {
    std::optional<std::string_view> value;
    int64_t divisor = 1;
    if (agent.device == 0) {
      // The host itself: its cores are all that a run records of it.
      if (entry.name == std::string_view("Cpu_Cores_Count")) value = trace.property(Table::kEnd, 0, "cpus");
    } else {
      value = trace.property(Table::kDevice, agent.device, lower(entry.name));
      if (!value && entry.property != nullptr) {
        value = trace.property(Table::kDevice, agent.device, entry.property);
        divisor = entry.divisor;
      }
    }
    if (!value || !whole_number(*value)) continue;
    uint64_t number = 0;
    std::from_chars(value->data(), value->data() + value->size(), number);
    facts.emplace_back(entry.name, number / static_cast<uint64_t>(divisor));
  }
  return facts;
}

std::string agent_info(const trace::Trace& trace, const Agents& agents) {
  std::string out = "\"Node_Id\",\"Logical_Node_Id\",\"Agent_Type\"";
  for (const Entry& entry : kEntries) out += fmt::format(",\"{}\"", entry.name);
  out += ",\"Name\",\"Vendor_Name\",\"Product_Name\",\"Model_Name\"\n";
  for (const Agent& agent : agents.all()) {
    const auto text = [&](int at) { return trace.text(Table::kDevice, agent.device, at); };
    out += fmt::format("{},{},{}", agent.node, agent.logical, quoted(type_word(agent.kind)));
    const auto facts = agent_facts(trace, agent);
    auto fact = facts.begin();
    for (const Entry& entry : kEntries) {
      out += ',';  // what is unknown stays empty: it is not 0
      if (fact != facts.end() && fact->first == entry.name) out += fmt::format("{}", (fact++)->second);
    }
    if (agent.device == 0) {
      out += fmt::format(",{},\"\",\"\",\"\"\n",
                         quoted(trace.property(Table::kEnd, 0, "machine").value_or("host")));
      continue;
    }
    const std::string_view name = text(column::Device::name),
                           architecture = text(column::Device::architecture);
    out += fmt::format(",{},{},{},{}\n", quoted(architecture.empty() ? name : architecture),
                       quoted(text(column::Device::vendor)), quoted(name),
                       quoted(trace.property(Table::kDevice, agent.device, "model_name").value_or("")));
  }
  return out;
}

}  // namespace tacho::format::csv
