// Readers of wide, long and per-pass counter files, and the join of passes.
#include "workload/layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "report/progress.h"

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

// Positions in a header; npos where the file has no such column.
struct Header {
  static constexpr size_t npos = static_cast<size_t>(-1);
  std::vector<std::string> names;
  size_t find(std::string_view name) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return i;
    return npos;
  }
};

Result<Header> read_header(CsvReader& reader, std::vector<std::string_view>& fields) {
  TACHO_ASSIGN(const bool any, reader.next(fields));
  if (!any) return fail("{}: the file is empty", reader.name());
  Header header;
  header.names.reserve(fields.size());
  for (std::string_view field : fields) header.names.emplace_back(canonical_column(field));
  return header;
}

// Rows counted by reading them all, for compressed files.
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

constexpr std::string_view kLeftOut = "left out";
constexpr std::string_view kMissing = "treated as missing";

void log_ragged(FaultLog& log, const CsvReader& reader, size_t fields, size_t expected) {
  log.add(reader.unterminated() ? "row is cut off at the end of the file"
                                : "row has another number of fields than the header",
          kLeftOut, reader.row(), fmt::format("{} of {} fields", fields, expected));
}

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
  TACHO_ASSIGN(const Header header, read_header(reader, fields));
  return header.find("Counter_Name") != Header::npos && header.find("Counter_Value") != Header::npos;
}

Result<RawTable> read_wide(const CsvSource& source_file, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings) {
  const std::string& path = source_file.name;
  TACHO_ASSIGN(const uint64_t row_bound, count_rows(source_file));
  TACHO_ASSIGN(CsvReader reader, source_file.open());
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(const Header header, read_header(reader, fields));
  const size_t name_at = header.find("Kernel_Name");
  const size_t id_at = header.find("Dispatch_ID");
  const size_t gpu_at = header.find("GPU_ID");
  if (name_at == Header::npos)
    return fail("{}: the header has no column Kernel_Name; this is no counter file of rocprof-compute", path);

  FaultLog log(path);
  struct Source {
    size_t field;
    double* to;  // the column's first row
    bool is_start, is_end;
  };
  std::vector<Source> sources;
  std::vector<std::string> names;
  StringMap<char> seen;
  for (size_t i = 0; i < header.names.size(); ++i) {
    const std::string& name = header.names[i];
    if (i == name_at || i == id_at || i == gpu_at) continue;
    if (!is_id_column(name) && !options.wanted.contains(name)) continue;
    if (!seen.emplace(name, 0).second) continue;  // a column that several passes recorded: the first counts
    sources.push_back({i, nullptr, name == kStart, name == kEnd});
    names.push_back(name);
  }
  RawTable table;
  table.file = path;
  TACHO_ASSIGN(table.counters, CounterTable::create(std::move(names), row_bound));
  for (size_t c = 0; c < sources.size(); ++c) sources[c].to = table.counters.data(c);
  table.dispatches.reserve(row_bound);

  bool have_base = false;
  int64_t base = 0;
  size_t r = 0;
  std::string last_name;  // long runs of one kernel are common
  uint32_t last_kernel = 0;
  report::Progress progress("reading " + path);
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) break;
    if (reader.row() % 512 == 0) progress.at(reader.row(), row_bound);
    if (fields.size() != header.names.size()) {
      log_ragged(log, reader, fields.size(), header.names.size());
      continue;
    }
    if (reader.unterminated())
      log.add("last row does not end in a newline, so the file may have been cut off in its last value",
              "kept; check that value", reader.row(), "");
    Dispatch dispatch;
    bool ok = true;
    dispatch.id = id_at == Header::npos ? static_cast<int64_t>(r) : integer_cell(fields[id_at], ok);
    if (!ok) {
      log.add("Dispatch_ID is not a number", kLeftOut, reader.row(), shown(fields[id_at]));
      continue;
    }
    if (gpu_at != Header::npos) {
      dispatch.gpu = integer_cell(fields[gpu_at], ok);
      if (!ok) log.add("GPU_ID is not a number", "taken as 0", reader.row(), shown(fields[gpu_at]));
    }
    if (r == 0 || fields[name_at] != last_name) {
      last_name = fields[name_at];
      last_kernel = kernels.add(last_name);
    }
    dispatch.kernel = last_kernel;
    for (const Source& source : sources) {
      const std::string_view cell = fields[source.field];
      if (source.is_start || source.is_end) {
        int64_t whole = 0;
        double fraction = 0;
        if (parse_timestamp(cell, whole, fraction)) {
          if (!have_base) base = whole;
          have_base = true;
          if (options.compat && cell.find_first_of(".eE") != std::string_view::npos) {
            // Upstream holds such columns as doubles: a quarter of a nanosecond is lost where uptime is weeks.
            source.to[r] = parse_number(cell).value - static_cast<double>(base);
            continue;
          }
          // Wraps like the hardware would: hostile times must not be undefined behaviour.
          source.to[r] =
              static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(whole) - static_cast<uint64_t>(base))) +
              fraction;
        } else if (!parse_number(cell).ok) {
          log.add("timestamp is not a number", kMissing, reader.row(), shown(cell));
        }
        continue;
      }
      const CellNumber number = parse_number(cell);
      if (!number.ok)
        log.add("value is not a number", kMissing, reader.row(),
                fmt::format("{}: '{}'", header.names[source.field], shown(cell)));
      source.to[r] = number.value;
    }
    table.dispatches.push_back(dispatch);
    ++r;
  }
  table.counters.shrink_rows(r);
  log.report(warnings);
  if (r == 0)
    return fail("{}: {}", path,
                reader.row() > 1
                    ? fmt::format("none of its {} rows fits the header; the file is damaged", reader.row() - 1)
                    : std::string("there is a header but not one dispatch; the file is empty or cut off"));
  return table;
}

Result<RawTable> read_long(const std::vector<CsvSource>& sources, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings) {
  const std::string& first_name = sources.front().name;
  uint64_t row_bound = 0;
  for (const CsvSource& source : sources) {
    TACHO_ASSIGN(const uint64_t rows, count_rows(source));
    row_bound += rows;
  }
  // What is kept of a row until the sizes are known: which dispatch and counter (packed into the bits of a double),
  // value.
  TACHO_ASSIGN(CounterTable cells, CounterTable::create({"where", "value"}, row_bound));
  size_t cell_count = 0;

  constexpr size_t kGroupColumns = 3;  // Grid_Size, Workgroup_Size, LDS_Per_Workgroup
  using Key = std::tuple<int64_t, uint32_t, std::array<double, kGroupColumns>>;
  struct Group {
    std::array<double, kIdColumns.size() - 2> ids{};
    int64_t gpu = 0;
    std::vector<std::pair<double, uint64_t>> durations;  // of consecutive equal rows: duration, rows
  };
  std::map<Key, uint32_t> group_numbers;
  std::vector<Group> groups;
  std::vector<const Key*> group_keys;
  NameTable counters;
  std::vector<char> counter_wanted;

  std::vector<std::string_view> fields;
  for (const CsvSource& source : sources) {
    const std::string& path = source.name;
    TACHO_ASSIGN(CsvReader reader, source.open());
    TACHO_ASSIGN(const Header header, read_header(reader, fields));
    FaultLog log(path);
    // The accumulator of a level pass has the level's name in its file's name.
    std::string accumulator;
    {
      const std::string file = path.substr(path.rfind('/') + 1);
      const size_t from = file.find("SQ");
      const size_t level = file.find("LEVEL");
      if (from != std::string::npos && level != std::string::npos && from < level)
        accumulator =
            fmt::format("{}_ACCUM", level_name(std::string_view(file).substr(from, file.find(".csv") - from)));
    }
    const size_t name_at = header.find("Kernel_Name");
    const size_t id_at = header.find("Dispatch_ID");
    const size_t gpu_at = header.find("GPU_ID");
    const size_t counter_at = header.find("Counter_Name");
    const size_t value_at = header.find("Counter_Value");
    const size_t start_at = header.find(kStart);
    const size_t end_at = header.find(kEnd);
    for (const auto& [at, what] : {std::pair{name_at, "Kernel_Name"},
                                   {id_at, "Dispatch_ID"},
                                   {counter_at, "Counter_Name"},
                                   {value_at, "Counter_Value"},
                                   {start_at, "Start_Timestamp"},
                                   {end_at, "End_Timestamp"}})
      if (at == Header::npos)
        return fail("{}: the header has no column {}; this is no counter file of rocprof-compute", path, what);
    std::array<size_t, kIdColumns.size() - 2> ids_at{};
    for (size_t i = 0; i < ids_at.size(); ++i) ids_at[i] = header.find(kIdColumns[i]);

    std::string last_name, last_counter;
    uint32_t last_kernel = 0, last_counter_number = 0, group_number = 0;
    bool have_name = false, have_counter = false, have_group = false;
    Key last_key{};
    report::Progress progress("reading " + path);
    for (;;) {
      TACHO_ASSIGN(const bool more, reader.next(fields));
      if (!more) break;
      if (reader.row() % 8192 == 0) progress.at(reader.row(), row_bound);
      if (fields.size() != header.names.size()) {
        log_ragged(log, reader, fields.size(), header.names.size());
        continue;
      }
      if (reader.unterminated())
        log.add("last row does not end in a newline, so the file may have been cut off in its last value",
                "kept; check that value", reader.row(), "");
      bool ok = true;
      const int64_t id = integer_cell(fields[id_at], ok);
      if (!ok) {
        log.add("Dispatch_ID is not a number", kLeftOut, reader.row(), shown(fields[id_at]));
        continue;
      }
      if (!have_name || fields[name_at] != last_name) {
        last_name = fields[name_at];
        last_kernel = kernels.add(last_name);
        have_name = true;
      }
      std::array<double, kIdColumns.size() - 2> ids{};
      for (size_t i = 0; i < ids.size(); ++i)
        ids[i] = ids_at[i] == Header::npos ? std::numeric_limits<double>::quiet_NaN()
                                           : parse_number(fields[ids_at[i]]).value;
      std::array<double, kGroupColumns> shape{ids[0], ids[1], ids[2]};
      for (double& value : shape)
        if (std::isnan(value)) value = -1;  // NaN has no order
      const Key key{id, last_kernel, shape};
      if (!have_group || key != last_key) {
        const auto [place, added] = group_numbers.try_emplace(key, static_cast<uint32_t>(groups.size()));
        if (added) {
          groups.emplace_back();
          groups.back().ids = ids;
          group_keys.push_back(&place->first);
          if (gpu_at != Header::npos) groups.back().gpu = integer_cell(fields[gpu_at], ok);
          if (!ok) log.add("GPU_ID is not a number", "taken as 0", reader.row(), shown(fields[gpu_at]));
        }
        group_number = place->second;
        last_key = key;
        have_group = true;
      }
      Group& group = groups[group_number];
      int64_t start = 0, end = 0;
      double start_fraction = 0, end_fraction = 0;
      if (parse_timestamp(fields[start_at], start, start_fraction) &&
          parse_timestamp(fields[end_at], end, end_fraction)) {
        const double duration =
            static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(end) - static_cast<uint64_t>(start))) +
            (end_fraction - start_fraction);
        if (!group.durations.empty() && group.durations.back().first == duration) {
          ++group.durations.back().second;
        } else {
          group.durations.emplace_back(duration, 1);
        }
      } else {
        log.add("timestamp is not a number", kMissing, reader.row(), shown(fields[start_at]));
      }
      std::string_view counter = fields[counter_at];
      if (!accumulator.empty() && counter == "SQ_ACCUM_PREV_HIRES") counter = accumulator;
      if (!have_counter || counter != last_counter) {
        last_counter = counter;
        last_counter_number = counters.add(counter);
        if (last_counter_number == counter_wanted.size())
          counter_wanted.push_back(options.wanted.contains(counter) ? 1 : 0);
        have_counter = true;
      }
      if (counter_wanted[last_counter_number] == 0) continue;
      const CellNumber number = parse_number(fields[value_at]);
      if (!number.ok)
        log.add("value is not a number", kMissing, reader.row(),
                fmt::format("{}: '{}'", counter, shown(fields[value_at])));
      cells.data(0)[cell_count] = std::bit_cast<double>((uint64_t{group_number} << 32) | last_counter_number);
      cells.data(1)[cell_count] = number.value;
      ++cell_count;
    }
    log.report(warnings);
  }
  if (groups.empty())
    return fail("{}: there is a header but not one dispatch; the file is empty or cut off", first_name);

  // Dispatches in the order of their ids (then kernel names), numbered from 0; GPUs likewise.
  std::vector<uint32_t> order(groups.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const auto& [id_a, kernel_a, shape_a] = *group_keys[a];
    const auto& [id_b, kernel_b, shape_b] = *group_keys[b];
    return std::tie(id_a, kernels.names()[kernel_a], shape_a) < std::tie(id_b, kernels.names()[kernel_b], shape_b);
  });
  std::vector<int64_t> gpus;
  for (const Group& group : groups) gpus.push_back(group.gpu);
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());

  RawTable table;
  table.file = first_name;
  std::vector<std::string> names(kIdColumns.begin(), kIdColumns.end());
  std::vector<size_t> column_of(counters.names().size());
  for (size_t c = 0; c < column_of.size(); ++c) {
    if (counter_wanted[c] == 0) continue;
    column_of[c] = names.size();
    names.push_back(counters.names()[c]);
  }
  TACHO_ASSIGN(table.counters, CounterTable::create(std::move(names), groups.size()));
  std::vector<uint32_t> row_of(groups.size());
  uint64_t ids_shared = 0;
  for (size_t r = 0; r < order.size(); ++r) {
    Group& group = groups[order[r]];
    row_of[order[r]] = static_cast<uint32_t>(r);
    const auto gpu = std::lower_bound(gpus.begin(), gpus.end(), group.gpu) - gpus.begin();
    table.dispatches.push_back({static_cast<int64_t>(r), gpu, std::get<1>(*group_keys[order[r]])});
    if (r > 0 && std::get<0>(*group_keys[order[r]]) == std::get<0>(*group_keys[order[r - 1]])) ++ids_shared;
    for (size_t i = 0; i < group.ids.size(); ++i) table.counters.data(i)[r] = group.ids[i];
    table.counters.data(kIdColumns.size() - 2)[r] = 0;
    // The median over the rows, of which equal neighbours were counted together.
    std::sort(group.durations.begin(), group.durations.end());
    uint64_t total = 0;
    for (const auto& [duration, count] : group.durations) total += count;
    double middle[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    uint64_t before = 0;
    for (const auto& [duration, count] : group.durations) {
      for (const uint64_t wanted : {(total - 1) / 2, total / 2})
        if (wanted >= before && wanted < before + count) middle[wanted == total / 2 ? 1 : 0] = duration;
      before += count;
    }
    if (total % 2 == 1) middle[0] = middle[1];
    table.counters.data(kIdColumns.size() - 1)[r] = total == 0 ? middle[1] : (middle[0] + middle[1]) / 2;
  }
  uint64_t contradictions = 0;
  std::string contradiction;
  for (size_t i = 0; i < cell_count; ++i) {
    const auto where = std::bit_cast<uint64_t>(cells.data(0)[i]);
    const auto counter = static_cast<uint32_t>(where);
    double& value = table.counters.data(column_of[counter])[row_of[where >> 32]];
    if (!std::isnan(value) && value != cells.data(1)[i] && contradictions++ == 0)
      contradiction = fmt::format("{} of dispatch {}: {} and {}", counters.names()[counter], row_of[where >> 32], value,
                                  cells.data(1)[i]);
    value = cells.data(1)[i];
  }
  if (contradictions > 0)
    warnings.push_back(fmt::format("{}: {} counter values are given twice and differ (first: {}); the last one counts",
                                   first_name, contradictions, contradiction));
  if (ids_shared > 0)
    warnings.push_back(
        fmt::format("{}: {} dispatch ids stand for different kernels or shapes in different passes; they are kept "
                    "apart, so some of their counters are missing",
                    first_name, ids_shared));
  return table;
}

namespace {

// The running number of every dispatch among those of the same kernel and grid size, as a key.
std::vector<std::tuple<std::string_view, double, uint32_t>> join_keys(const RawTable& table, const NameTable& kernels) {
  const std::span<const double> grid = table.counters.column("Grid_Size");
  std::map<std::pair<std::string_view, double>, uint32_t> next;
  std::vector<std::tuple<std::string_view, double, uint32_t>> keys;
  keys.reserve(table.dispatches.size());
  for (size_t r = 0; r < table.dispatches.size(); ++r) {
    const std::string_view name = plain_kernel_name(kernels.names()[table.dispatches[r].kernel]);
    const double size = grid.empty() || std::isnan(grid[r]) ? -1 : grid[r];
    keys.emplace_back(name, size, next[{name, size}]++);
  }
  return keys;
}

}  // namespace

std::vector<uint32_t> match_rows(const RawTable& main, const RawTable& other, const NameTable& kernels) {
  const auto wanted = join_keys(main, kernels);
  const auto given = join_keys(other, kernels);
  std::map<std::tuple<std::string_view, double, uint32_t>, uint32_t> rows;
  for (size_t r = 0; r < given.size(); ++r) rows.emplace(given[r], static_cast<uint32_t>(r));
  std::vector<uint32_t> order(wanted.size(), CounterTable::kNoRow);
  for (size_t r = 0; r < wanted.size(); ++r)
    if (const auto found = rows.find(wanted[r]); found != rows.end()) order[r] = found->second;
  return order;
}

Result<RawTable> join_passes(std::vector<RawTable> passes, const NameTable& kernels,
                             std::vector<std::string>& warnings) {
  // rows[p][r]: the row of pass p that is dispatch r of the first pass.
  std::vector<std::vector<uint32_t>> rows;
  for (const RawTable& pass : passes) rows.push_back(match_rows(passes.front(), pass, kernels));
  std::vector<uint32_t> kept;
  for (uint32_t r = 0; r < passes.front().dispatches.size(); ++r) {
    bool everywhere = true;
    for (const auto& order : rows) everywhere = everywhere && order[r] != CounterTable::kNoRow;
    if (everywhere) kept.push_back(r);
  }
  for (const RawTable& pass : passes)
    if (pass.dispatches.size() != kept.size())
      warnings.push_back(fmt::format("{}: {} of its {} dispatches are not in every pass of the run; they were left out",
                                     pass.file, pass.dispatches.size() - kept.size(), pass.dispatches.size()));
  if (kept.empty())
    return fail("{}: the passes have no dispatch in common (matched by kernel name and "
                "grid size); they are not passes of the same program",
                passes.front().file);

  std::vector<std::string> names;
  std::vector<std::pair<size_t, size_t>> sources;  // pass, column
  StringMap<char> seen;
  for (size_t p = 0; p < passes.size(); ++p)
    for (size_t c = 0; c < passes[p].counters.column_count(); ++c) {
      const std::string& name = passes[p].counters.names()[c];
      if (!seen.emplace(name, 0).second) continue;
      names.push_back(name);
      sources.emplace_back(p, c);
    }
  RawTable joined;
  joined.file = passes.front().file;
  TACHO_ASSIGN(joined.counters, CounterTable::create(names, kept.size()));
  for (const uint32_t r : kept) joined.dispatches.push_back(passes.front().dispatches[r]);
  for (size_t c = 0; c < names.size(); ++c) {
    double* to = joined.counters.data(c);
    if (names[c] == kStart || names[c] == kEnd) {
      for (size_t i = 0; i < kept.size(); ++i) {
        double sum = 0;
        size_t count = 0;
        for (size_t p = 0; p < passes.size(); ++p)
          if (const auto column = passes[p].counters.column(names[c]);
              !column.empty() && !std::isnan(column[rows[p][kept[i]]])) {
            sum += column[rows[p][kept[i]]];
            ++count;
          }
        to[i] = count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
      }
      continue;
    }
    const auto& [p, column] = sources[c];
    const double* from = passes[p].counters.data(column);
    for (size_t i = 0; i < kept.size(); ++i) to[i] = from[rows[p][kept[i]]];
    if (is_id_column(names[c]))
      for (const RawTable& pass : passes)
        if (const auto other = pass.counters.column(names[c]); !other.empty())
          for (size_t i = 0; i < kept.size(); ++i) {
            const double value = other[rows[static_cast<size_t>(&pass - passes.data())][kept[i]]];
            if (value == to[i] || (std::isnan(value) && std::isnan(to[i]))) continue;
            warnings.push_back(fmt::format(
                "{}: {} of dispatch {} is {}, but {} in {}; the passes contradict each other, the first one counts",
                pass.file, names[c], joined.dispatches[i].id, value, to[i], passes[p].file));
            break;
          }
  }
  return joined;
}

}  // namespace tacho::workload
