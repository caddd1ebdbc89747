// Reading of roofline.csv (ceilings.h).
#include "workload/ceilings.h"

#include <limits>

#include "workload/csv.h"
#include "workload/layout.h"

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
    for (std::size_t i = 1; i < fields.size(); ++i) {
      if (is_ceiling_text(names[i])) {
        row.texts.emplace_back(names[i], fields[i]);
        continue;
      }
      const CellNumber number = parse_number(fields[i]);
      if (!number.ok) log.add("ceiling is not a number", "treated as missing", opened->row(), names[i]);
      // A ceiling of 0 is one that was not measured.
      const std::string_view name = names[i];
      const bool ceiling = name.ends_with("Bw") || name.ends_with("Flops") || name.ends_with("Ops");
      if (ceiling && number.value < 0)
        log.add("ceiling is below zero", "treated as missing", opened->row(), names[i]);
      const bool usable = !ceiling || number.value > 0;
      row.values.emplace_back(name, usable ? number.value : std::numeric_limits<double>::quiet_NaN());
    }
    ceilings.push_back(std::move(row));
  }
  log.report(warnings);
  return ceilings;
}

}  // namespace tacho::workload
