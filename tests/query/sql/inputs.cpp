// Traces and databases for the statement tests (inputs.h).
#include "inputs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <bit>
#include <initializer_list>
#include <limits>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "event/schema.h"
#include "format/rocpd/rocpd.h"
#include "format/rpd/rpd.h"
#include "format/sqlite/database.h"
#include "trace/cells.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
using event::Type;

namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kBegin = 1'000'000'000'000;

// Rows by the names of their columns; unnamed columns are 0.
class Rows {
 public:
  explicit Rows(trace::TraceWriter& writer) : writer_(writer) {}
  using Cells = std::initializer_list<std::pair<std::string_view, int64_t>>;
  int64_t put(Table table, Cells cells) {
    const event::TableInfo& info = event::table_info(table);
    std::vector<int64_t> row(info.columns.size(), 0);
    for (const auto& [name, value] : cells) {
      size_t at = 0;
      while (at < row.size() && info.columns[at].name != name) ++at;
      if (at == row.size())
        ADD_FAILURE() << "no column " << name << " in " << info.name;
      else
        row[at] = value;
    }
    return put(table, row);
  }
  int64_t put(Table table, const std::vector<int64_t>& row) {
    if (!event::is_fact(table)) return trace::Cells::dimension(writer_, table, row);
    trace::Cells::add(writer_, table, row);
    return 0;
  }
  int64_t text(std::string_view value) { return writer_.string(value); }

 private:
  trace::TraceWriter& writer_;
};

template <typename Fill>
void make(const std::string& path, Fill fill) {
  trace::WriterOptions options;
  options.overwrite = true;
  options.durable = false;
  options.slab_rows = 8;
  auto writer = trace::TraceWriter::create(path, options);
  ASSERT_TRUE(writer) << writer.error().message;
  fill(**writer);
  const Status done = (*writer)->finish();
  ASSERT_TRUE(done) << done.error().message;
}

void change(sqlite3* connection, const std::string& sql) {
  const Status done = sqlite::execute(connection, sql);
  ASSERT_TRUE(done) << sql << ": " << done.error().message;
}

}  // namespace

void make_plain_trace(const std::string& path) {
  make(path, [](trace::TraceWriter& writer) {
    Rows rows(writer);
    for (int64_t i = 0; i < 3; ++i)
      rows.put(Table::kClock, {{"raw", kBegin + i * 1'000'000},
                               {"monotonic", kBegin + 5000 + i * 1'000'100},
                               {"boottime", kBegin + 9000 + i * 1'000'200},
                               {"realtime", 1'700'000'000'000'000'000 + i * 1'000'100},
                               {"vendor", kUnknown}});
    int64_t processes[2], threads[2], devices[2], queues[3];
    for (int64_t i = 0; i < 2; ++i) {
      processes[i] = rows.put(Table::kProcess, {{"pid", 100 + i},
                                                {"parent_pid", 1},
                                                {"start", kBegin - 10},
                                                {"name", rows.text(i == 0 ? "train" : "eval")},
                                                {"command", rows.text("train --it's")},
                                                {"host", rows.text("node")},
                                                {"rank", i == 0 ? kUnknown : i}});
      const int64_t thread =
          rows.put(Table::kThread, {{"process", processes[i]}, {"tid", 200 + i}, {"name", rows.text("main")}});
      threads[i] = rows.put(Table::kTrack, {{"kind", static_cast<int64_t>(event::TrackKind::kThread)},
                                            {"process", processes[i]},
                                            {"thread", thread},
                                            {"native", 200 + i}});
      devices[i] = rows.put(Table::kDevice, {{"kind", static_cast<int64_t>(event::DeviceKind::kGpu)},
                                             {"index", i},
                                             {"name", rows.text("GPU")},
                                             {"vendor", rows.text("V")},
                                             {"architecture", rows.text("gfx942")},
                                             {"clock_error", kUnknown}});
    }
    for (int64_t i = 0; i < 3; ++i)
      queues[i] = rows.put(Table::kTrack, {{"kind", static_cast<int64_t>(event::TrackKind::kQueue)},
                                           {"process", processes[i % 2]},
                                           {"device", devices[i % 2]},
                                           {"native", 10 + i}});
    int64_t functions[3];
    for (int64_t i = 0; i < 3; ++i)
      functions[i] = rows.put(Table::kFunction, {{"name", rows.text(i == 0   ? "hipLaunchKernel"
                                                                    : i == 1 ? "hipMemcpyAsync"
                                                                             : "hipMalloc")},
                                                 {"domain", static_cast<int64_t>(event::Domain::kHipRuntime)}});
    // "_Z3foov" and "foo()" read alike.
    int64_t kernels[4];
    const char* const names[] = {"_Z3foov", "foo()", "gemm_64x64 %_'", ""};
    for (int64_t i = 0; i < 4; ++i)
      kernels[i] = rows.put(Table::kKernel, {{"name", rows.text(names[i])},
                                             {"grid_x", 1024 << i},
                                             {"grid_y", 1},
                                             {"grid_z", 1},
                                             {"group_x", i == 3 ? kUnknown : 64},
                                             {"group_y", 1},
                                             {"group_z", 1},
                                             {"registers", 16 * i},
                                             {"shared_static", 0},
                                             {"shared_dynamic", kUnknown}});
    const int64_t shape =
        rows.put(Table::kCopyShape, {{"direction", static_cast<int64_t>(event::CopyDirection::kHostToDevice)},
                                     {"target_device", devices[0]},
                                     {"asynchronous", 1}});
    const int64_t fill = rows.put(
        Table::kFillShape,
        {{"memory", static_cast<int64_t>(event::MemoryKind::kDevice)}, {"device", devices[1]}, {"value", kUnknown}});
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t call = kBegin + 1000 * i;
      rows.put(Table::kApi, {{"track", threads[i % 2]},
                             {"start", call},
                             {"duration", i == 23 ? kUnknown : 100 + i},
                             {"dim", functions[0]},
                             {"correlation", i + 1},
                             {"result", i % 5 == 0 ? -i : 0}});
      rows.put(Table::kDispatch, {{"track", queues[i % 3]},
                                  {"start", call + 300 - i % 4 * 100},
                                  {"duration", i % 7 == 6 ? kUnknown : 10 * (i % 5)},
                                  {"dim", kernels[i % 4]},
                                  {"correlation", i == 20   ? kHuge
                                                  : i == 21 ? -1
                                                            : i + 1},
                                  {"queued_ahead", i % 3 == 0 ? kUnknown : i * i * i * 1'000'000'007},
                                  {"submit_ahead", -i},
                                  {"ordinal", i == 22 ? kHuge : i},
                                  {"graph_node", i % 6 == 5}});
    }
    for (int64_t i = 0; i < 9; ++i) {
      rows.put(Table::kApi, {{"track", threads[0]},
                             {"start", kBegin + 500 + 2000 * i},
                             {"duration", 50},
                             {"dim", functions[1 + i % 2]},
                             {"correlation", 100 + i},
                             {"result", kUnknown}});
      rows.put(Table::kCopy, {{"track", queues[i % 2]},
                              {"start", kBegin + 700 + 2000 * i},
                              {"duration", 40 * i},
                              {"dim", shape},
                              {"correlation", 100 + i},
                              {"bytes", i == 8 ? kHuge / 2 : i << 20},
                              {"queued_ahead", kUnknown},
                              {"submit_ahead", kUnknown}});
      if (i < 3)
        rows.put(Table::kFill, {{"track", queues[2]},
                                {"start", kBegin + 900 + 2000 * i},
                                {"duration", 5},
                                {"dim", fill},
                                {"correlation", 200 + i},
                                {"bytes", 4096}});
      const int64_t label =
          rows.put(Table::kLabel, {{"name", rows.text(i % 2 == 0 ? "step" : "naïve Ünïcode")}, {"color", kUnknown}});
      rows.put(Table::kMarker, {{"track", threads[i % 2]},
                                {"start", kBegin + 2000 * i},
                                {"duration", i == 4 ? kUnknown : 1500},
                                {"dim", label},
                                {"payload", -i}});
    }
    const int64_t counter = rows.put(Table::kCounter, {{"name", rows.text("power")}, {"unit", rows.text("W")}});
    const int64_t track = rows.put(
        Table::kTrack,
        {{"kind", static_cast<int64_t>(event::TrackKind::kCounter)}, {"device", devices[0]}, {"counter", counter}});
    const double values[] = {
        1.5, -2.25, 0.0, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
        3.0, 1.5};
    for (int64_t i = 0; i < 8; ++i)
      rows.put(Table::kReading,
               {{"track", track}, {"start", kBegin + 100 * i}, {"value", std::bit_cast<int64_t>(values[i])}});
    for (int64_t i = 0; i < 10; ++i)
      rows.put(Table::kCounterValue, {{"track", queues[0]},
                                      {"start", kBegin + 300 + 3000 * i},
                                      {"ordinal", i},
                                      {"dim", counter},
                                      {"instance", i % 2},
                                      {"value", std::bit_cast<int64_t>(0.25 * static_cast<double>(i * i))}});
  });
}

void make_wild_trace(const std::string& path, uint64_t seed) {
  make(path, [&](trace::TraceWriter& writer) {
    Rows rows(writer);
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t end) { return static_cast<int64_t>(random() % end); };
    constexpr int64_t kDimensionRows = 6;
    static constexpr std::string_view kTexts[] = {"",      "a",   "A",  "ab%c", "b'c", "_Z3foov",
                                                  "foo()", "zzz", "10", "5",    "ünï", "NULL"};
    // Of row `number` of a table; a stack's caller comes before it.
    const auto value = [&](const event::TableInfo& info, const event::Column& column, int64_t number) -> int64_t {
      switch (column.type) {
        case Type::kTime:
          return kBegin + below(40) * 10;
        case Type::kDuration:
          return below(4) == 0 ? kUnknown : below(30) - 2;
        case Type::kDouble:
          return below(8) == 0 ? kUnknown : std::bit_cast<int64_t>(0.25 * static_cast<double>(below(40) - 20));
        case Type::kEnum:
          return below(5);
        case Type::kString:
          return rows.text(kTexts[static_cast<size_t>(below(std::size(kTexts)))]);
        case Type::kRow:
          return below(static_cast<uint64_t>(column.target == info.table ? number : kDimensionRows + 1));
        default:
          switch (below(12)) {
            case 0:
              return kUnknown;
            case 1:
              return kHuge - below(3);
            case 2:
              return -kHuge + below(3);
            default:
              return below(12) - 3;
          }
      }
    };
    const auto put = [&](const event::TableInfo& info, int64_t number) {
      std::vector<int64_t> row;
      for (const event::Column& column : info.columns) row.push_back(value(info, column, number));
      rows.put(info.table, row);
    };
    // Rows of a dimension that are alike are one, and others refer to all of them.
    for (const event::TableInfo& info : event::all_tables())
      while (!event::is_fact(info.table) && info.table != Table::kString && writer.rows(info.table) <= kDimensionRows)
        put(info, writer.rows(info.table));
    for (const event::TableInfo& info : event::all_tables()) {
      if (!event::is_fact(info.table) || info.table == Table::kClock) continue;
      const int64_t count = info.table == Table::kSync ? 0 : 20 + below(30);
      for (int64_t i = 0; i < count; ++i) put(info, i + 1);
    }
  });
}

void make_empty_trace(const std::string& path) {
  make(path, [](trace::TraceWriter&) {});
}

void make_rpd(const std::string& trace, const std::string& path, int schema) {
  const auto opened = trace::Trace::open(trace);
  ASSERT_TRUE(opened) << opened.error().message;
  format::ExportOptions options;
  options.overwrite = true;
  options.rpd_schema = schema;
  std::vector<std::string> written;
  const Status done = format::rpd::write(**opened, {path, "", ""}, options, written);
  ASSERT_TRUE(done) << done.error().message;
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  change(connection,
         "INSERT INTO rocpd_op(id, gpuId, queueId, sequenceId, start, \"end\", description_id, opType_id" +
             std::string(schema == 2 ? ", completionSignal" : "") +
             ") SELECT id * 1000, -gpuId, 9223372036854775807, -1, start + 7, start, description_id, opType_id" +
             (schema == 2 ? ", 'sig'" : "") + " FROM rocpd_op WHERE id % 5 = 0");
  change(connection, "UPDATE rocpd_op SET description_id = 987654 WHERE id % 11 = 3");
  change(connection, "UPDATE rocpd_api SET tid = -tid WHERE id % 4 = 1");
  change(connection, "INSERT INTO rocpd_api_ops(api_id, op_id) VALUES (1, 5000), (77777, 1), (2, 88888), (3, 3)");
  sqlite3_close(connection);
}

void make_rocpd(const std::string& trace, const std::string& path) {
  const auto opened = trace::Trace::open(trace);
  ASSERT_TRUE(opened) << opened.error().message;
  format::ExportOptions options;
  options.overwrite = true;
  std::vector<std::string> written;
  const Status done = format::rocpd::write(**opened, {path, "", ""}, options, written);
  ASSERT_TRUE(done) << done.error().message;
}

}  // namespace tacho::query
