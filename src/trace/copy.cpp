// Copying one trace into another (copy.h), driven by the schema alone.
#include "trace/copy.h"

#include <array>
#include <vector>

namespace tacho::trace {

using event::Table;
using event::Type;

namespace {

// Rows of every dimension (and string) of the source as rows of the target.
class RowMaps {
 public:
  RowMaps(const Trace& from, TraceWriter& writer, const CopyOptions& options)
      : from_(from), writer_(writer), options_(options) {}

  // In the order of the schema a dimension refers only to tables before it (and a stack to earlier stacks).
  void build() {
    std::vector<int64_t> row;
    for (const event::TableInfo& info : event::all_tables()) {
      if (event::is_fact(info.table) || info.table == Table::kProperty) continue;
      auto& map = maps_[static_cast<size_t>(info.table)];
      const int64_t rows = from_.rows(info.table);
      map.assign(static_cast<size_t>(rows > 0 ? rows : 1), 0);
      for (int64_t i = 1; i < rows; ++i) {
        if (info.table == Table::kString) {
          map[static_cast<size_t>(i)] = writer_.string(from_.string(i));
          continue;
        }
        row.resize(info.columns.size());
        for (size_t c = 0; c < row.size(); ++c)
          row[c] = value(info.columns[c], from_.cell(info.table, i, static_cast<int>(c)));
        if (info.table == Table::kProcess && options_.run != 0) row[event::column::Process::run] = options_.run;
        map[static_cast<size_t>(i)] = writer_.dimension(info.table, row);
      }
    }
    for (int64_t i = 1; i < from_.rows(Table::kProperty); ++i) {
      const auto cell = [&](int c) { return from_.cell(Table::kProperty, i, c); };
      const int64_t table = cell(event::column::Property::table);
      const int64_t target = cell(event::column::Property::row);
      const bool dimension = table >= static_cast<int64_t>(event::kFirstDimension) && table < static_cast<int64_t>(Table::kEnd);
      writer_.dimension(Table::kProperty,
                        {table, dimension ? mapped(static_cast<Table>(table), target) : target,
                         mapped(Table::kString, cell(event::column::Property::key)),
                         mapped(Table::kString, cell(event::column::Property::value))});
    }
  }

  int64_t mapped(Table table, int64_t row) const {
    const auto& map = maps_[static_cast<size_t>(table)];
    return row > 0 && row < static_cast<int64_t>(map.size()) ? map[static_cast<size_t>(row)] : 0;
  }
  int64_t value(const event::Column& column, int64_t raw) const {
    if (column.type == Type::kString) return mapped(Table::kString, raw);
    if (column.type == Type::kRow) return mapped(column.target, raw);
    return raw;
  }

 private:
  const Trace& from_;
  TraceWriter& writer_;
  const CopyOptions& options_;
  std::array<std::vector<int64_t>, static_cast<size_t>(Table::kEnd)> maps_;
};

}  // namespace

Status copy_into(const Trace& from, TraceWriter& writer, const CopyOptions& options) {
  RowMaps maps(from, writer, options);
  maps.build();
  std::vector<std::vector<int64_t>> columns;
  std::vector<int64_t> row, original;
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table)) continue;
    columns.resize(info.columns.size());
    row.resize(info.columns.size());
    original.resize(info.columns.size());
    for (size_t chunk = 0; chunk < from.chunks(info.table).size(); ++chunk) {
      for (size_t c = 0; c < columns.size(); ++c)
        TACHO_TRY(from.decode(info.table, chunk, static_cast<int>(c), columns[c]));
      for (size_t i = 0; i < columns[0].size(); ++i) {
        for (size_t c = 0; c < columns.size(); ++c) original[c] = columns[c][i];
        if (options.keep && (event::is_timed(info.table) || info.table == Table::kReading) &&
            !options.keep(info.table, original.data()))
          continue;
        for (size_t c = 0; c < columns.size(); ++c) row[c] = maps.value(info.columns[c], original[c]);
        writer.add(info.table, row);
      }
    }
  }
  return {};
}

}  // namespace tacho::trace
