// Copying one trace into another (copy.h), driven by the schema alone.
#include "trace/write/copy.h"

#include <algorithm>
#include <array>
#include <vector>

#include "trace/cells.h"

namespace tacho::trace {

using event::Table;
using event::Type;

namespace {

// Rows of every dimension (and string) of the source as rows of the target, made when first asked for.
class RowMaps {
 public:
  RowMaps(const Trace& from, TraceWriter& writer, const CopyOptions& options)
      : from_(from), writer_(writer), options_(options) {
    for (const event::TableInfo& info : event::all_tables())
      if (!event::is_fact(info.table) && info.table != Table::kProperty)
        maps_[static_cast<size_t>(info.table)].assign(static_cast<size_t>(std::max<int64_t>(from_.rows(info.table), 1)),
                                                      kUnmapped);
  }

  /// Every row, in the order of the source.
  void build() {
    for (const event::TableInfo& info : event::all_tables())
      for (size_t i = 1; i < maps_[static_cast<size_t>(info.table)].size(); ++i)
        mapped(info.table, static_cast<int64_t>(i));
  }

  /// Properties of the rows that were mapped and of the whole trace. After everything else.
  void properties() {
    for (int64_t i = 1; i < from_.rows(Table::kProperty); ++i) {
      const auto cell = [&](int c) { return from_.cell(Table::kProperty, i, c); };
      const int64_t table = cell(event::column::Property::table);
      int64_t target = cell(event::column::Property::row);
      if (table >= static_cast<int64_t>(event::kFirstDimension) && table < static_cast<int64_t>(Table::kEnd)) {
        const auto& map = maps_[static_cast<size_t>(table)];
        if (target > 0 && target < static_cast<int64_t>(map.size())) {
          target = map[static_cast<size_t>(target)];
          if (target == kUnmapped) continue;
        }
      }
      writer_.dimension(event::row::Property{.table = event::Code<Table>::of(table),
                                             .row = target,
                                             .key = mapped(Table::kString, cell(event::column::Property::key)),
                                             .value = mapped(Table::kString, cell(event::column::Property::value))});
    }
  }

  int64_t mapped(Table table, int64_t row) {
    auto& map = maps_[static_cast<size_t>(table)];
    if (row <= 0 || row >= static_cast<int64_t>(map.size())) return 0;
    int64_t& to = map[static_cast<size_t>(row)];
    if (to != kUnmapped) return to;
    to = make(table, row);
    if (table == Table::kTrack && options_.track) options_.track(row, to);
    return to;
  }
  int64_t value(const event::Column& column, int64_t raw) {
    if (column.type == Type::kString) return mapped(Table::kString, raw);
    if (column.type == Type::kRow) return mapped(column.target, raw);
    if (column.type == Type::kTime && raw != event::kUnknown)
      return options_.time_map ? options_.time_map(raw) : raw + options_.time_shift;
    return raw;
  }

 private:
  static constexpr int64_t kUnmapped = -1;

  int64_t make(Table table, int64_t row) {
    if (table == Table::kString) return writer_.string(from_.string(row));
    if (table == Table::kStack) return make_stack(row);
    // A dimension refers to tables before it only: no deeper than the schema is long.
    const event::TableInfo& info = event::table_info(table);
    std::vector<int64_t> cells(info.columns.size());
    for (size_t c = 0; c < cells.size(); ++c)
      cells[c] = value(info.columns[c], from_.cell(table, row, static_cast<int>(c)));
    if (table == Table::kProcess) {
      int64_t& run = cells[event::column::Process::run];
      run = (run == event::kUnknown ? 0 : run) + options_.run;
    }
    if (table == Table::kDevice) own_device(cells);
    if (table == Table::kTrack) own_track(cells);
    return Cells::dimension(writer_, table, cells);
  }

  void own_device(std::vector<int64_t>& cells) {
    using D = event::column::Device;
    if (options_.device_owner && cells[D::process] == 0 && cells[D::uuid] == 0) cells[D::process] = owner();
  }
  // Telemetry of a machine: nothing else tells the lines of two apart.
  void own_track(std::vector<int64_t>& cells) {
    using T = event::column::Track;
    if (options_.device_owner && cells[T::process] == 0 && cells[T::device] == 0) cells[T::process] = owner();
  }
  int64_t owner() {
    if (device_owner_ == kUnmapped) device_owner_ = options_.device_owner(mapped(Table::kProcess, 1));
    return device_owner_;
  }

  // A stack refers to its caller's, which comes earlier: from the outermost one down, without recursion.
  int64_t make_stack(int64_t row) {
    auto& map = maps_[static_cast<size_t>(Table::kStack)];
    std::vector<int64_t> chain;
    for (int64_t at = row;
         at > 0 && at < static_cast<int64_t>(map.size()) && map[static_cast<size_t>(at)] == kUnmapped;) {
      chain.push_back(at);
      const int64_t parent = from_.cell(Table::kStack, at, event::column::Stack::parent);
      if (parent >= at) break;  // nonsense
      at = parent;
    }
    int64_t to = 0;
    for (size_t i = chain.size(); i-- > 0;) {
      const int64_t parent = from_.cell(Table::kStack, chain[i], event::column::Stack::parent);
      const bool known = parent > 0 && parent < chain[i] && map[static_cast<size_t>(parent)] != kUnmapped;
      to = writer_.dimension(event::row::Stack{
          .parent = known ? map[static_cast<size_t>(parent)] : 0,
          .frame = mapped(Table::kFrame, from_.cell(Table::kStack, chain[i], event::column::Stack::frame))});
      map[static_cast<size_t>(chain[i])] = to;
    }
    return to;
  }

  const Trace& from_;
  TraceWriter& writer_;
  const CopyOptions& options_;
  int64_t device_owner_ = kUnmapped;  // not asked for yet
  std::array<std::vector<int64_t>, static_cast<size_t>(Table::kEnd)> maps_;
};

}  // namespace

Status copy_into(const Trace& from, TraceWriter& writer, const CopyOptions& options) {
  RowMaps maps(from, writer, options);
  if (!options.only_used) maps.build();
  std::vector<std::vector<int64_t>> columns;
  std::vector<int64_t> row, original;
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table) || (info.table == Table::kClock && !options.clocks)) continue;
    columns.resize(info.columns.size());
    row.resize(info.columns.size());
    original.resize(info.columns.size());
    for (size_t chunk = 0; chunk < from.chunks(info.table).size(); ++chunk) {
      for (size_t c = 0; c < columns.size(); ++c)
        TACHO_TRY(from.decode(info.table, chunk, static_cast<int>(c), columns[c]));
      for (size_t i = 0; i < columns[0].size(); ++i) {
        for (size_t c = 0; c < columns.size(); ++c) original[c] = columns[c][i];
        if (options.keep &&
            (event::is_timed(info.table) || info.table == Table::kReading || info.table == Table::kCounterValue ||
             info.table == Table::kLink) &&
            !options.keep(info.table, original.data()))
          continue;
        for (size_t c = 0; c < columns.size(); ++c) row[c] = maps.value(info.columns[c], original[c]);
        Cells::add(writer, info.table, row);
      }
    }
  }
  maps.properties();
  return {};
}

}  // namespace tacho::trace
