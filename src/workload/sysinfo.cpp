// sysinfo.csv: one row that describes the machine. Column names changed over the years; they are read into today's.
#include "workload/sysinfo.h"

#include <array>
#include <cmath>

#include "base/text/csv.h"

namespace tacho::workload {

namespace {

struct FieldRename {
  std::string_view old_name;
  std::string_view name;
};

// Omniperf 1.x and the years around it; 3.8 renamed num_hbm_channels.
constexpr std::array kFieldRenames = {
    FieldRename{"host_name", "hostname"},
    FieldRename{"host_cpu", "cpu_model"},
    FieldRename{"host_distro", "linux_distro"},
    FieldRename{"host_kernel", "linux_kernel_version"},
    FieldRename{"host_rocmver", "rocm_version"},
    FieldRename{"date", "timestamp"},
    FieldRename{"gpu_soc", "gpu_arch"},
    FieldRename{"name", "gpu_model"},
    FieldRename{"GPU", "gpu_model"},
    FieldRename{"arch", "gpu_arch"},
    FieldRename{"numSE", "se_per_gpu"},
    FieldRename{"numCU", "cu_per_gpu"},
    FieldRename{"numSIMD", "simd_per_cu"},
    FieldRename{"waveSize", "wave_size"},
    FieldRename{"maxWavesPerCU", "max_waves_per_cu"},
    FieldRename{"maxWorkgroupSize", "workgroup_max_size"},
    FieldRename{"L1", "gpu_l1"},
    FieldRename{"L2", "gpu_l2"},
    FieldRename{"sclk", "max_sclk"},
    FieldRename{"mclk", "max_mclk"},
    FieldRename{"L2Banks", "total_l2_chan"},
    FieldRename{"totalL2Banks", "total_l2_chan"},
    FieldRename{"LDSBanks", "lds_banks_per_cu"},
    FieldRename{"numSQC", "sqc_per_gpu"},
    FieldRename{"numPipes", "pipes_per_gpu"},
    FieldRename{"hbmBW", "hbm_bw"},
    FieldRename{"numXCD", "num_xcd"},
    FieldRename{"num_memory_channels", "num_hbm_channels"},
};

std::string number_text(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

// Converts values that old files state differently. Values that they lack, because they were the same on every GPU of
// an architecture, are in the catalog (missing_sysinfo).
void complete(SysInfo& info) {
  if (std::isnan(info.number("num_hbm_channels"))) {
    // hbm_bw (GB/s) was computed as memory clock (MHz) * 32 bytes * channels.
    const double channels = std::round(info.number("hbm_bw") * 1000 / (info.number("max_mclk") * 32));
    if (std::isfinite(channels) && channels > 0) info.set("num_hbm_channels", number_text(channels));
  }
}

}  // namespace

std::string_view SysInfo::get(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (key == name) return value;
  return {};
}

double SysInfo::number(std::string_view name) const {
  const std::string_view text = get(name);
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  return parse_number(text).value;
}

void SysInfo::set(std::string_view name, std::string value) {
  for (auto& [key, old] : fields_)
    if (key == name) {
      old = std::move(value);
      return;
    }
  fields_.emplace_back(std::string(name), std::move(value));
}

Result<SysInfo> read_sysinfo(const std::string& folder) {
  const std::string path = folder + "/sysinfo.csv";
  auto opened = CsvReader::open(path);
  if (!opened)
    return fail("{}: sysinfo.csv, which says what GPU was profiled, is missing or "
                "cannot be read; this is not a complete profile folder",
                folder);
  CsvReader& reader = *opened;
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(const bool has_header, reader.next(fields));
  if (!has_header) return fail("{}: the file is empty", path);
  std::vector<std::string> names(fields.begin(), fields.end());
  TACHO_ASSIGN(const bool has_values, reader.next(fields));
  if (!has_values) return fail("{}: there is a header but no row with values; the file is cut off", path);
  if (fields.size() != names.size())
    return fail("{}: row {} has {} fields, the header has {}; the file is cut off or damaged", path, reader.row(),
                fields.size(), names.size());
  SysInfo info;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string_view name = names[i];
    for (const FieldRename& rename : kFieldRenames)
      if (rename.old_name == name) name = rename.name;
    if (info.get(name).empty()) info.set(name, std::string(fields[i]));
  }
  // gpu_soc of Omniperf 1.x was the architecture or the model ("mi200").
  if (info.get("gpu_arch").empty() && info.get("gpu_model").empty())
    return fail("{}: neither gpu_arch nor gpu_model is given, so the architecture of the profiled GPU is unknown",
                path);
  complete(info);
  return info;
}

}  // namespace tacho::workload
