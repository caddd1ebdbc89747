// Headers and cells of counter files (counter_file.h).
#include "workload/layout/counter_file.h"

namespace tacho::workload {
namespace {

struct ColumnRename {
  std::string_view old_name;
  std::string_view name;
};

// rocprof v1/v2 and rocprofv3 headers beside those of pmc_perf.csv.
constexpr std::array kColumnRenames = {
    ColumnRename{"KernelName", "Kernel_Name"},
    ColumnRename{"Index", "Dispatch_ID"},
    ColumnRename{"Dispatch_Id", "Dispatch_ID"},
    ColumnRename{"gpu-id", "GPU_ID"},
    ColumnRename{"grd", "Grid_Size"},
    ColumnRename{"GRD", "Grid_Size"},
    ColumnRename{"wgr", "Workgroup_Size"},
    ColumnRename{"WGR", "Workgroup_Size"},
    ColumnRename{"lds", "LDS_Per_Workgroup"},
    ColumnRename{"LDS", "LDS_Per_Workgroup"},
    ColumnRename{"LDS_Block_Size", "LDS_Per_Workgroup"},
    ColumnRename{"scr", "Scratch_Per_Workitem"},
    ColumnRename{"SCR", "Scratch_Per_Workitem"},
    ColumnRename{"Scratch_Size", "Scratch_Per_Workitem"},
    ColumnRename{"sgpr", "SGPR"},
    ColumnRename{"SGPR_Count", "SGPR"},
    ColumnRename{"vgpr", "Arch_VGPR"},
    ColumnRename{"arch_vgpr", "Arch_VGPR"},
    ColumnRename{"ARCH_VGPR", "Arch_VGPR"},
    ColumnRename{"VGPR_Count", "Arch_VGPR"},
    ColumnRename{"accum_vgpr", "Accum_VGPR"},
    ColumnRename{"ACCUM_VGPR", "Accum_VGPR"},
    ColumnRename{"Accum_VGPR_Count", "Accum_VGPR"},
    ColumnRename{"BeginNs", "Start_Timestamp"},
    ColumnRename{"EndNs", "End_Timestamp"},
};

}  // namespace

uint32_t NameTable::add(std::string_view name) {
  if (const auto found = index_.find(name); found != index_.end()) return found->second;
  const auto number = static_cast<uint32_t>(names_.size());
  names_.emplace_back(name);
  index_.emplace(names_.back(), number);
  return number;
}

std::string_view canonical_column(std::string_view name) {
  for (const ColumnRename& rename : kColumnRenames)
    if (rename.old_name == name) return rename.name;
  return name;
}

std::string_view level_name(std::string_view stem) {
  const size_t last = stem.find_last_not_of("0123456789");
  return last != std::string_view::npos && last + 1 < stem.size() && stem[last] == '_' ? stem.substr(0, last) : stem;
}

Result<bool> is_long_form(const std::string& path) {
  TACHO_ASSIGN(CsvReader reader, CsvReader::open(path));
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(const CounterHeader header, read_header(reader, fields));
  return header.find("Counter_Name") != CounterHeader::npos && header.find("Counter_Value") != CounterHeader::npos;
}

Result<CounterHeader> read_header(CsvReader& reader, std::vector<std::string_view>& fields) {
  TACHO_ASSIGN(const bool any, reader.next(fields));
  if (!any) return fail("{}: the file is empty", reader.name());
  if (!fields.empty() && (fields[0].starts_with("\xff\xfe") || fields[0].starts_with("\xfe\xff")))
    return fail("{}: is UTF-16 text, as spreadsheets save it: save it as UTF-8", reader.name());
  CounterHeader header;
  header.names.reserve(fields.size());
  for (std::string_view field : fields) header.names.emplace_back(canonical_column(field));
  return header;
}

Result<uint64_t> count_rows(const CsvSource& source) {
  TACHO_ASSIGN(CsvReader reader, source.open());
  if (const uint64_t bound = reader.row_bound(); bound != 0) return bound;
  std::vector<std::string_view> fields;
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) return reader.row() + 1;
  }
}

int64_t integer_cell(std::string_view cell, bool& ok) {
  int64_t whole = 0;
  double fraction = 0;
  if (!parse_timestamp(cell, whole, fraction)) {
    ok = false;
    return 0;
  }
  return whole;
}

std::string shown(std::string_view cell) {
  std::string text;
  for (const char c : cell.substr(0, 40)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (cell.size() > 40) text += "...";
  return text;
}

bool fits_header(const CsvReader& reader, size_t fields, size_t expected, FaultLog& log) {
  if (fields != expected) {
    log.add(reader.unterminated() ? "row is cut off at the end of the file"
                                  : "row has another number of fields than the header",
            kLeftOut, reader.row(), fmt::format("{} of {} fields", fields, expected));
    return false;
  }
  if (reader.unterminated())
    log.add("last row does not end in a newline, so the file may have been cut off in its last value",
            "kept; check that value", reader.row(), "");
  return true;
}

}  // namespace tacho::workload
