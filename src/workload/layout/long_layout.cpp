// The reader of long counter files: one row per dispatch and counter (layout.h).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "base/text/last_digit.h"
#include "report/progress.h"
#include "workload/layout/layout.h"

namespace tacho::workload {
namespace {

constexpr size_t kShapeColumns = 3;                  // Grid_Size, Workgroup_Size, LDS_Per_Workgroup
constexpr size_t kIdValues = kIdColumns.size() - 2;  // without the timestamps

// Where a file has what.
struct LongColumns {
  size_t name, id, gpu, counter, value, start, end;
  std::array<size_t, kIdValues> ids;

  static Result<LongColumns> find(const CounterHeader& header, const std::string& path) {
    LongColumns at{};
    for (const auto& [place, what] : {std::pair{&at.name, "Kernel_Name"},
                                      {&at.id, "Dispatch_ID"},
                                      {&at.counter, "Counter_Name"},
                                      {&at.value, "Counter_Value"},
                                      {&at.start, "Start_Timestamp"},
                                      {&at.end, "End_Timestamp"}}) {
      *place = header.find(what);
      if (*place == CounterHeader::npos)
        return fail("{}: the header has no column {}; this is not a counter file of rocprof-compute", path, what);
    }
    at.gpu = header.find("GPU_ID");
    for (size_t i = 0; i < at.ids.size(); ++i) at.ids[i] = header.find(kIdColumns[i]);
    return at;
  }
};

// The accumulator of a level pass has the level's name in its file's name.
std::string accumulator_of(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  const size_t from = file.find("SQ");
  const size_t level = file.find("LEVEL");
  if (from == std::string::npos || level == std::string::npos || from >= level) return {};
  return fmt::format("{}_ACCUM", level_name(std::string_view(file).substr(from, file.find(".csv") - from)));
}

// Pivots rows into dispatches.
class LongReader {
 public:
  LongReader(const ReadOptions& options, NameTable& kernels, uint64_t row_bound, CounterTable cells)
      : options_(options), kernels_(kernels), row_bound_(row_bound), cells_(std::move(cells)) {}

  Status read(const CsvSource& source, std::vector<std::string>& warnings) {
    std::vector<std::string_view> fields;
    TACHO_ASSIGN(CsvReader reader, source.open());
    TACHO_ASSIGN(const CounterHeader header, read_header(reader, fields));
    TACHO_ASSIGN(const LongColumns at, LongColumns::find(header, source.name));
    FaultLog log(source.name);
    const std::string accumulator = accumulator_of(source.name);
    last_ = {};
    report::Progress progress("reading " + source.name);
    for (;;) {
      TACHO_ASSIGN(const bool more, reader.next(fields));
      if (!more) break;
      if (reader.row() % 8192 == 0) progress.at(reader.row(), row_bound_);
      if (!fits_header(reader, fields.size(), header.names.size(), log)) continue;
      bool ok = true;
      const int64_t id = integer_cell(fields[at.id], ok);
      if (!ok) {
        log.add("Dispatch_ID is not a number", kLeftOut, reader.row(), shown(fields[at.id]));
        continue;
      }
      const uint32_t group = group_of(id, fields, at, reader.row(), log);
      add_duration(groups_[group], fields, at, reader.row(), log);
      std::string_view counter = fields[at.counter];
      if (!accumulator.empty() && counter == "SQ_ACCUM_PREV_HIRES") counter = accumulator;
      add_value(group, counter, fields[at.value], reader.row(), log);
    }
    log.report(warnings);
    return {};
  }

  Result<RawTable> table(const std::string& file, std::vector<std::string>& warnings) {
    if (groups_.empty()) return fail("{}: there is a header but not one dispatch; the file is empty or cut off", file);
    const std::vector<uint32_t> order = sorted_groups();
    RawTable table;
    table.file = file;
    std::vector<std::string> names(kIdColumns.begin(), kIdColumns.end());
    std::vector<size_t> column_of(counters_.names().size());
    for (size_t c = 0; c < column_of.size(); ++c) {
      if (counter_wanted_[c] == 0) continue;
      column_of[c] = names.size();
      names.push_back(counters_.names()[c]);
    }
    TACHO_ASSIGN(table.counters, CounterTable::create(std::move(names), groups_.size()));
    const uint64_t ids_shared = fill_dispatches(order, table);
    fill_counters(order, column_of, table, warnings);
    if (ids_shared > 0)
      warnings.push_back(
          fmt::format("{}: {} dispatch ids belong to different kernels or shapes in different passes; they are kept "
                      "apart, so some of their counters are missing",
                      file, ids_shared));
    return table;
  }

 private:
  using Key = std::tuple<int64_t, uint32_t, std::array<double, kShapeColumns>>;
  struct Group {
    std::array<double, kIdValues> ids{};
    int64_t gpu = 0;
    std::vector<std::pair<double, uint64_t>> durations;  // of consecutive equal rows: duration, rows
  };
  // Of the row before: neighbours mostly share name, dispatch and counter.
  struct Last {
    bool have_name = false, have_counter = false, have_group = false;
    std::string name, counter_name;
    uint32_t kernel = 0, counter = 0, group = 0;
    Key key{};
  };

  uint32_t group_of(int64_t id, const std::vector<std::string_view>& fields, const LongColumns& at, uint64_t row,
                    FaultLog& log) {
    if (!last_.have_name || fields[at.name] != last_.name) {
      last_.name = fields[at.name];
      last_.kernel = kernels_.add(last_.name);
      last_.have_name = true;
    }
    std::array<double, kIdValues> ids{};
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = at.ids[i] == CounterHeader::npos ? std::numeric_limits<double>::quiet_NaN()
                                                : parse_number(fields[at.ids[i]]).value;
    std::array<double, kShapeColumns> shape{ids[0], ids[1], ids[2]};
    for (double& value : shape)
      if (std::isnan(value)) value = -1;  // NaN has no order
    const Key key{id, last_.kernel, shape};
    if (last_.have_group && key == last_.key) return last_.group;
    const auto [place, added] = group_numbers_.try_emplace(key, static_cast<uint32_t>(groups_.size()));
    if (added) {
      groups_.emplace_back();
      groups_.back().ids = ids;
      group_keys_.push_back(&place->first);
      bool ok = true;
      if (at.gpu != CounterHeader::npos) groups_.back().gpu = integer_cell(fields[at.gpu], ok);
      if (!ok) log.add("GPU_ID is not a number", "taken as 0", row, shown(fields[at.gpu]));
    }
    last_.group = place->second;
    last_.key = key;
    last_.have_group = true;
    return last_.group;
  }

  static void add_duration(Group& group, const std::vector<std::string_view>& fields, const LongColumns& at,
                           uint64_t row, FaultLog& log) {
    int64_t start = 0, end = 0;
    double start_fraction = 0, end_fraction = 0;
    if (!parse_timestamp(fields[at.start], start, start_fraction) ||
        !parse_timestamp(fields[at.end], end, end_fraction)) {
      log.add("timestamp is not a number", kTreatedAsMissing, row, shown(fields[at.start]));
      return;
    }
    if (rounded_away(fields[at.start], fields[at.end])) {
      log.add("timestamps were cut to a few digits", kTreatedAsMissing, row, shown(fields[at.start]));
      return;
    }
    const double duration = static_cast<double>(time_between(start, end)) + (end_fraction - start_fraction);
    if (!group.durations.empty() && group.durations.back().first == duration) {
      ++group.durations.back().second;
    } else {
      group.durations.emplace_back(duration, 1);
    }
  }

  void add_value(uint32_t group, std::string_view counter, std::string_view cell, uint64_t row, FaultLog& log) {
    if (!last_.have_counter || counter != last_.counter_name) {
      last_.counter_name = counter;
      last_.counter = counters_.add(counter);
      if (last_.counter == counter_wanted_.size()) counter_wanted_.push_back(options_.wanted.contains(counter) ? 1 : 0);
      last_.have_counter = true;
    }
    if (counter_wanted_[last_.counter] == 0) return;
    const CellNumber number = parse_number(cell);
    if (!number.ok)
      log.add("value is not a number", kTreatedAsMissing, row, fmt::format("{}: '{}'", counter, shown(cell)));
    cells_.data(0)[cell_count_] = std::bit_cast<double>((uint64_t{group} << 32) | last_.counter);
    cells_.data(1)[cell_count_] = number.value;
    ++cell_count_;
  }

  // Dispatches in the order of their ids (then kernel names).
  std::vector<uint32_t> sorted_groups() const {
    std::vector<uint32_t> order(groups_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const auto& [id_a, kernel_a, shape_a] = *group_keys_[a];
      const auto& [id_b, kernel_b, shape_b] = *group_keys_[b];
      return std::tie(id_a, kernels_.names()[kernel_a], shape_a) < std::tie(id_b, kernels_.names()[kernel_b], shape_b);
    });
    return order;
  }

  // The median over the rows, of which equal neighbours were counted together.
  static double median(std::vector<std::pair<double, uint64_t>>& durations) {
    std::sort(durations.begin(), durations.end());
    uint64_t total = 0;
    for (const auto& [duration, count] : durations) total += count;
    double middle[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    uint64_t before = 0;
    for (const auto& [duration, count] : durations) {
      for (const uint64_t wanted : {(total - 1) / 2, total / 2})
        if (wanted >= before && wanted < before + count) middle[wanted == total / 2 ? 1 : 0] = duration;
      before += count;
    }
    if (total % 2 == 1) middle[0] = middle[1];
    return total == 0 ? middle[1] : (middle[0] + middle[1]) / 2;
  }

  // Numbers dispatches and GPUs from 0. Returns how many ids belong to more than one dispatch.
  uint64_t fill_dispatches(const std::vector<uint32_t>& order, RawTable& table) {
    std::vector<int64_t> gpus;
    for (const Group& group : groups_) gpus.push_back(group.gpu);
    std::sort(gpus.begin(), gpus.end());
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
    uint64_t ids_shared = 0;
    for (size_t r = 0; r < order.size(); ++r) {
      Group& group = groups_[order[r]];
      const auto gpu = std::lower_bound(gpus.begin(), gpus.end(), group.gpu) - gpus.begin();
      table.dispatches.push_back({static_cast<int64_t>(r), gpu, std::get<1>(*group_keys_[order[r]])});
      if (r > 0 && std::get<0>(*group_keys_[order[r]]) == std::get<0>(*group_keys_[order[r - 1]])) ++ids_shared;
      for (size_t i = 0; i < group.ids.size(); ++i) table.counters.data(i)[r] = group.ids[i];
      table.counters.data(kIdColumns.size() - 2)[r] = 0;
      table.counters.data(kIdColumns.size() - 1)[r] = median(group.durations);
    }
    return ids_shared;
  }

  void fill_counters(const std::vector<uint32_t>& order, const std::vector<size_t>& column_of, RawTable& table,
                     std::vector<std::string>& warnings) {
    std::vector<uint32_t> row_of(groups_.size());
    for (size_t r = 0; r < order.size(); ++r) row_of[order[r]] = static_cast<uint32_t>(r);
    uint64_t contradictions = 0;
    std::string contradiction;
    for (size_t i = 0; i < cell_count_; ++i) {
      const auto where = std::bit_cast<uint64_t>(cells_.data(0)[i]);
      const auto counter = static_cast<uint32_t>(where);
      const double given = cells_.data(1)[i];
      double& value = table.counters.data(column_of[counter])[row_of[where >> 32]];
      if (!std::isnan(value) && value != given && contradictions++ == 0)
        contradiction =
            fmt::format("{} of dispatch {}: {} and {}", counters_.names()[counter], row_of[where >> 32], value, given);
      value = given;
    }
    if (contradictions > 0)
      warnings.push_back(
          fmt::format("{}: {} counter values are given twice and differ (first: {}); the last one counts", table.file,
                      contradictions, contradiction));
  }

  const ReadOptions& options_;
  NameTable& kernels_;
  uint64_t row_bound_;
  // The part of a row that is kept until the sizes are known: its dispatch and counter (packed into the bits of a
  // double), and its value.
  CounterTable cells_;
  size_t cell_count_ = 0;
  std::map<Key, uint32_t> group_numbers_;
  std::vector<Group> groups_;
  std::vector<const Key*> group_keys_;
  NameTable counters_;
  std::vector<char> counter_wanted_;
  Last last_;
};

}  // namespace

Result<RawTable> read_long(const std::vector<CsvSource>& sources, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings) {
  uint64_t row_bound = 0;
  for (const CsvSource& source : sources) {
    TACHO_ASSIGN(const uint64_t rows, count_rows(source));
    row_bound += rows;
  }
  TACHO_ASSIGN(CounterTable cells, CounterTable::create({"where", "value"}, row_bound));
  LongReader reader(options, kernels, row_bound, std::move(cells));
  for (const CsvSource& source : sources) TACHO_TRY(reader.read(source, warnings));
  return reader.table(sources.front().name, warnings);
}

}  // namespace tacho::workload
