// The reader of wide counter files, and the join of passes (layout.h).
#include "workload/layout/layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "base/text/how_many.h"
#include "base/text/last_digit.h"
#include "report/progress.h"

namespace tacho::workload {

namespace {

// Where a column of a wide file goes.
struct WideSource {
  size_t field;
  double* to;  // the column's first row
  bool is_time;
};

// Times that a spreadsheet cut to "1.41E+15" tell no duration.
void drop_cut_times(const std::vector<WideSource>& sources, const std::vector<std::string_view>& fields, size_t r,
                    uint64_t row, FaultLog& log) {
  const WideSource* start = nullptr;
  for (const WideSource& source : sources) {
    if (!source.is_time) continue;
    if (start == nullptr) {
      start = &source;
    } else if (rounded_away(fields[start->field], fields[source.field])) {
      start->to[r] = source.to[r] = std::numeric_limits<double>::quiet_NaN();
      log.add("timestamps were cut to a few digits", kTreatedAsMissing, row, shown(fields[source.field]));
    }
  }
}

std::vector<WideSource> wide_sources(const CounterHeader& header, const ReadOptions& options,
                                     std::initializer_list<size_t> others, std::vector<std::string>& names) {
  std::vector<WideSource> sources;
  StringMap<char> seen;
  for (size_t i = 0; i < header.names.size(); ++i) {
    const std::string& name = header.names[i];
    if (std::find(others.begin(), others.end(), i) != others.end()) continue;
    if (!is_id_column(name) && !options.wanted.contains(name)) continue;
    if (!seen.emplace(name, 0).second) continue;  // a column that several passes recorded: the first counts
    sources.push_back({i, nullptr, name == kStart || name == kEnd});
    names.push_back(name);
  }
  return sources;
}

// Times relative to the first one of a file.
class FirstTime {
 public:
  // False for a cell that holds no number; `out` stays where it holds no time.
  bool read(std::string_view cell, bool compat, double& out) {
    int64_t whole = 0;
    double fraction = 0;
    if (!parse_timestamp(cell, whole, fraction)) return parse_number(cell).ok;
    if (!known_) first_ = whole;
    known_ = true;
    // Upstream holds such columns as doubles: a quarter of a nanosecond is lost where uptime is weeks.
    if (compat && cell.find_first_of(".eE") != std::string_view::npos)
      out = parse_number(cell).value - static_cast<double>(first_);
    else
      out = static_cast<double>(time_between(first_, whole)) + fraction;
    return true;
  }

 private:
  bool known_ = false;
  int64_t first_ = 0;
};

}  // namespace

Result<RawTable> read_wide(const CsvSource& source_file, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings) {
  const std::string& path = source_file.name;
  TACHO_ASSIGN(const uint64_t row_bound, count_rows(source_file));
  TACHO_ASSIGN(CsvReader reader, source_file.open());
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(const CounterHeader header, read_header(reader, fields));
  const size_t name_at = header.find("Kernel_Name");
  const size_t id_at = header.find("Dispatch_ID");
  const size_t gpu_at = header.find("GPU_ID");
  if (name_at == CounterHeader::npos)
    return fail("{}: the header has no column Kernel_Name; this is not a counter file of rocprof-compute", path);

  FaultLog log(path);
  std::vector<std::string> names;
  std::vector<WideSource> sources = wide_sources(header, options, {name_at, id_at, gpu_at}, names);
  RawTable table;
  table.file = path;
  TACHO_ASSIGN(table.counters, CounterTable::create(std::move(names), row_bound));
  for (size_t c = 0; c < sources.size(); ++c) sources[c].to = table.counters.data(c);
  table.dispatches.reserve(row_bound);

  FirstTime base;
  size_t r = 0;
  std::string last_name;  // long runs of one kernel are common
  uint32_t last_kernel = 0;
  report::Progress progress("reading " + path);
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) break;
    if (reader.row() % 512 == 0) progress.at(reader.row(), row_bound);
    if (!fits_header(reader, fields.size(), header.names.size(), log)) continue;
    Dispatch dispatch;
    bool ok = true;
    dispatch.id = id_at == CounterHeader::npos ? static_cast<int64_t>(r) : integer_cell(fields[id_at], ok);
    if (!ok) {
      log.add("Dispatch_ID is not a number", kLeftOut, reader.row(), shown(fields[id_at]));
      continue;
    }
    if (gpu_at != CounterHeader::npos) {
      dispatch.gpu = integer_cell(fields[gpu_at], ok);
      if (!ok) log.add("GPU_ID is not a number", "taken as 0", reader.row(), shown(fields[gpu_at]));
    }
    if (r == 0 || fields[name_at] != last_name) {
      last_name = fields[name_at];
      last_kernel = kernels.add(last_name);
    }
    dispatch.kernel = last_kernel;
    for (const WideSource& source : sources) {
      const std::string_view cell = fields[source.field];
      if (source.is_time) {
        if (!base.read(cell, options.compat, source.to[r]))
          log.add("timestamp is not a number", kTreatedAsMissing, reader.row(), shown(cell));
        continue;
      }
      const CellNumber number = parse_number(cell);
      if (!number.ok)
        log.add("value is not a number", kTreatedAsMissing, reader.row(),
                fmt::format("{}: '{}'", header.names[source.field], shown(cell)));
      source.to[r] = number.value;
    }
    if (!options.compat) drop_cut_times(sources, fields, r, reader.row(), log);
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
      warnings.push_back(
          fmt::format("{}: {} not in every pass of the run, and left out", pass.file,
                      how_many_of(pass.dispatches.size() - kept.size(),
                                  how_many(pass.dispatches.size(), "dispatch", "dispatches"), "is", "are")));
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
