// Helpers of the tests of the trace file: a folder for files, random rows, and rows read back.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "event/times.h"
#include "support/folder.h"
#include "trace/cells.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::trace {

using event::kUnknown;
using event::Table;
using Row = std::vector<int64_t>;

using test::Folder;

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

template <typename T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    abort();
  }
  return std::move(*result);
}
inline void must(const Status& status) {
  ASSERT_TRUE(status) << status.error().message;
}

inline std::vector<Table> fact_tables() {
  std::vector<Table> tables;
  for (const event::TableInfo& info : event::all_tables()) {
    if (event::is_fact(info.table)) tables.push_back(info.table);
  }
  return tables;
}

constexpr int64_t kTargets = 40;

// `count` rows of a dimension (and of every one before it) or of all, for facts to refer to; and as many strings.
inline void make_targets(TraceWriter& writer, int64_t count = kTargets, Table only = Table::kEnd) {
  for (int64_t i = 1; i <= count; ++i) writer.string(fmt::format("text {}", i));
  for (const event::TableInfo& info : event::all_tables()) {
    if (event::is_fact(info.table) || info.table == Table::kString || (only != Table::kEnd && only != info.table))
      continue;
    for (int64_t i = 1; i <= count; ++i) {
      Row row;
      for (const event::Column& column : info.columns) {
        int64_t cell = i;
        if (column.type == event::Type::kEnum) cell = column.enumeration->values[0].code;
        if (column.type == event::Type::kRow)
          cell = column.target == info.table ? i - 1 : std::min(i, writer.rows(column.target) - 1);
        row.push_back(cell);
      }
      Cells::dimension(writer, info.table, row);
    }
  }
}

// A plausible row of a trace with make_targets(): times rise from call to call, everything else is small, now and then
// extreme.
class RandomRows {
 public:
  explicit RandomRows(uint64_t seed) : random_(seed) {}

  Row row(Table table, bool extremes) {
    const auto& columns = event::table_info(table).columns;
    Row row;
    now_ += static_cast<int64_t>(random_() % 2000);
    for (const event::Column& column : columns) {
      int64_t value = static_cast<int64_t>(random_() % 1000);
      if (column.name == "track") value = 1 + static_cast<int64_t>(random_() % 6);
      if (column.type == event::Type::kTime) value = now_ - static_cast<int64_t>(random_() % 5000);
      if (column.type == event::Type::kDuration) value = static_cast<int64_t>(random_() % 100'000);
      const bool refers = column.type == event::Type::kRow || column.type == event::Type::kString;
      if (refers && column.name != "track") value = static_cast<int64_t>(random_() % (kTargets + 1));
      if (column.name == "correlation") value = ++correlation_;
      if (column.type == event::Type::kEnum) {
        const auto& values = column.enumeration->values;
        row.push_back(values[random_() % values.size()].code);
        continue;
      }
      if (column.type == event::Type::kDouble) value = static_cast<int64_t>(random_());
      if (extremes && random_() % 20 == 0) {
        const int64_t special[] = {kUnknown, std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min() + 1, 0, -1};
        value = special[random_() % 5];
        constexpr int64_t kTimes[] = {kUnknown, event::kFarthestTime, 0};
        if (column.type == event::Type::kDuration || column.type == event::Type::kBytes) value = kTimes[random_() % 3];
        if (column.type == event::Type::kTime) value = kTimes[1 + random_() % 2];
        if (refers) value = kTargets * static_cast<int64_t>(random_() % 2);
      }
      row.push_back(value);
    }
    return row;
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
  int64_t now_ = 1'000'000'000'000;
  int64_t correlation_ = 0;
};

// All rows of a table in file order.
inline std::vector<Row> all_rows(const Trace& trace, Table table) {
  std::vector<Row> rows;
  const size_t columns = event::table_info(table).columns.size();
  std::vector<std::vector<int64_t>> decoded(columns);
  for (size_t chunk = 0; chunk < trace.chunks(table).size(); ++chunk) {
    for (size_t c = 0; c < columns; ++c) {
      const Status status = trace.decode(table, chunk, static_cast<int>(c), decoded[c]);
      EXPECT_TRUE(status) << status.error().message;
      if (!status) return rows;
    }
    for (size_t i = 0; i < decoded[0].size(); ++i) {
      Row row;
      for (size_t c = 0; c < columns; ++c) row.push_back(decoded[c][i]);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

inline std::vector<Row> sorted(std::vector<Row> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Losses of a trace: (table, reason) -> count, over all processes.
inline std::map<std::pair<int64_t, event::LossReason>, int64_t> losses(const Trace& trace) {
  std::map<std::pair<int64_t, event::LossReason>, int64_t> sums;
  for (const Row& row : all_rows(trace, Table::kLoss)) sums[{row[1], static_cast<event::LossReason>(row[2])}] += row[3];
  return sums;
}
inline int64_t lost(const Trace& trace, Table table, event::LossReason reason) {
  const auto all = losses(trace);
  const auto found = all.find({static_cast<int64_t>(table), reason});
  return found == all.end() ? 0 : found->second;
}

}  // namespace tacho::trace
