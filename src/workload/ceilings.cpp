// Reading of roofline.csv (ceilings.h).
#include "workload/ceilings.h"

#include <limits>

#include "base/text/csv.h"
#include "workload/fault_log.h"

namespace tacho::workload {

double RooflineCeilings::get(std::string_view name) const {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

std::string_view RooflineCeilings::text(std::string_view name) const {
  for (const auto& [key, value] : texts)
    if (key == name) return value;
  return {};
}

bool is_ceiling_text(std::string_view column) {
  return column == "DeviceName" || column == "DeviceId" || column == "Driver" || column == "Backend" ||
         column == "Measured" || column.ends_with("Path");
}

std::vector<RooflineCeilings> read_ceilings(const std::string& path, std::vector<std::string>& warnings) {
  std::vector<RooflineCeilings> ceilings;
  auto opened = CsvReader::open(path);
  if (!opened) return ceilings;
  std::vector<std::string_view> fields;
  std::vector<std::string> names;
  FaultLog log(path);
  for (;;) {
    const auto more = opened->next(fields);
    if (!more) {
      warnings.push_back(more.error().message);
      break;
    }
    if (!*more) break;
    if (names.empty()) {
      names.assign(fields.begin(), fields.end());
      continue;
    }
    if (fields.size() != names.size()) {
      log.add("row has another number of fields than the header", "left out", opened->row(),
              fmt::format("{} of {} fields", fields.size(), names.size()));
      continue;
    }
    RooflineCeilings row;
    row.device = fields[0];
    for (size_t i = 1; i < fields.size(); ++i) {
      if (is_ceiling_text(names[i])) {
        row.texts.emplace_back(names[i], fields[i]);
        continue;
      }
      const CellNumber number = parse_number(fields[i]);
      if (!number.ok) log.add("ceiling is not a number", "treated as missing", opened->row(), names[i]);
      // A ceiling of 0 is one that was not measured.
      const std::string_view name = names[i];
      const bool ceiling = name.ends_with("Bw") || name.ends_with("Flops") || name.ends_with("Ops");
      if (ceiling && number.value < 0) log.add("ceiling is below zero", "treated as missing", opened->row(), names[i]);
      const bool usable = !ceiling || number.value > 0;
      row.values.emplace_back(name, usable ? number.value : std::numeric_limits<double>::quiet_NaN());
    }
    ceilings.push_back(std::move(row));
  }
  log.report(warnings);
  return ceilings;
}

std::string foreign_ceilings(const std::vector<RooflineCeilings>& ceilings, std::string_view architecture,
                             std::string_view model) {
  if (ceilings.empty()) return {};
  const std::string_view device = ceilings.front().text("DeviceName"), backend = ceilings.front().text("Backend");
  if (device.empty() || architecture.empty()) return {};
  bool same = true;
  if (architecture.starts_with("gfx")) {
    const size_t at = device.find("gfx");
    same = backend == "opencl" && (at == std::string_view::npos || device.substr(at).starts_with(architecture));
  } else if (architecture.starts_with("sm_")) {
    // Folders have the name without the vendor, and "_" for what file names should not have.
    const auto plain = [](std::string_view text) {
      std::string out;
      for (const char c : text)
        if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
      return out;
    };
    same = plain(device).ends_with(plain(model));
  } else {
    same = backend == "opencl";  // the virtual GPU and the CPU run on PoCL
  }
  if (same) return {};
  return fmt::format("these roofs are of another device ({}) than the run ({})", device,
                     model.empty() ? architecture : model);
}

}  // namespace tacho::workload
