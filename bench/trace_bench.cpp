// Cost of the trace file: nanoseconds to encode and decode an event, bytes a row, time to open and to sum up, memory.
//
//   trace_bench [rows]           tables of figures over this many rows (default 10 million)
//   trace_bench --memory rows    writes this many rows and prints the peak of anonymous memory alone
//   trace_bench --names rows     the same for this many markers, each with its own text
//
// CPU time of this thread is measured, so a busy machine disturbs little. Rows are either modelled on what an OpenCL
// program makes its tracer write, or taken from mytrace.rpd when TACHO_DATA names the test data.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "trace/cells.h"
#include "trace/read/rows.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::trace {
namespace {

using event::kUnknown;
namespace row = event::row;
using event::Table;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "trace_bench: {}\n", result.error().message);
  exit(1);
}
void must(const Status& status) {
  if (status) return;
  fmt::print(stderr, "trace_bench: {}\n", status.error().message);
  exit(1);
}

struct Row {
  Table table;
  uint8_t given;
  std::array<int64_t, 10> cell;  // cells not given are 0: a new column's "none"
};

// The threads, queues and the device that rows refer to.
void define_places(TraceWriter& writer) {
  for (int64_t number = 1; number <= 64; ++number) writer.dimension(row::Track{.native = number});
  writer.dimension(row::Device{.index = 0});
}

// Numbers with the long tail that times of calls and kernels have.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed) {
    for (size_t i = 0; i < kQuantiles; ++i) {
      // Quantiles of a normal distribution by the logistic approximation: its exact shape does not matter here.
      const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(kQuantiles);
      quantile_[i] = std::log(p / (1 - p)) / 1.702;
    }
  }
  uint64_t word() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dULL;
  }
  // Median times exp(spread * normal).
  int64_t around(double median, double spread) {
    return static_cast<int64_t>(median * std::exp(spread * quantile_[word() >> 52]) +
                                static_cast<double>(word() >> 54) / 1024);
  }

 private:
  static constexpr size_t kQuantiles = 4096;
  uint64_t state_;
  std::array<double, kQuantiles> quantile_{};
};

// An OpenCL program: two threads, each with a queue; per step it sets three arguments and enqueues a kernel, now and
// then copies, and waits. Kernels run back to back on the device while the host runs ahead.
class OpenClProgram {
 public:
  explicit OpenClProgram(uint64_t seed) : noise_(seed) {}

  static void define(TraceWriter& writer) {
    define_places(writer);
    for (const char* name : {"clSetKernelArg", "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer", "clEnqueueReadBuffer",
                             "clFinish", "clReleaseEvent"}) {
      writer.dimension(row::Function{.name = writer.string(name), .domain = event::Domain::kOpenCL});
    }
    for (int64_t k = 0; k < kKernels; ++k) {
      writer.dimension(row::Kernel{.name = writer.string(fmt::format("kernel_number_{}_of_the_model", k)),
                                   .grid_x = 1024 << (k % 8)});
    }
    for (const auto direction : {event::CopyDirection::kHostToDevice, event::CopyDirection::kDeviceToHost}) {
      writer.dimension(row::CopyShape{.direction = direction,
                                      .source_memory = event::MemoryKind::kPageable,
                                      .target_memory = event::MemoryKind::kDevice,
                                      .target_device = 1,
                                      .asynchronous = 1});
    }
  }

  void step(const std::function<void(const Row&)>& emit) {
    const int64_t thread = static_cast<int64_t>(noise_.word() >> 63);
    int64_t& now = host_[thread];
    now = std::max(now, host_[1 - thread] - 3'000'000);
    for (int argument = 0; argument < 3; ++argument) api(emit, thread, 1, 180, 0.3, 0);
    const int64_t queued = now + 400;
    const int64_t call = api(emit, thread, 2, 3500, 0.5, ++correlation_);
    const int64_t kernel = static_cast<int64_t>(step_++ * 7 % kKernels);
    const int64_t submitted = queued + noise_.around(2500, 0.6);
    int64_t& device = device_[thread];
    const int64_t start = std::max(device, submitted) + noise_.around(1800, 0.4);
    const int64_t duration = noise_.around(4000.0 * static_cast<double>(1 + kernel * kernel), 0.04);
    emit({Table::kDispatch,
          9,
          {3 + thread, start, duration, 1 + kernel, correlation_, start - queued, start - submitted, ordinal_++, 0}});
    device = start + duration;
    (void)call;
    if (step_ % 8 == 0) {
      const bool read = step_ % 16 == 0;
      const int64_t copy_queued = now + 400;
      api(emit, thread, read ? 4 : 3, 5000, 0.4, ++correlation_);
      const int64_t bytes = int64_t{4096} << (step_ / 8 % 6);
      const int64_t copy_start = std::max(device, copy_queued + 3000) + noise_.around(2000, 0.4);
      const int64_t copy_time = noise_.around(static_cast<double>(bytes) / 10, 0.1);
      emit({Table::kCopy,
            9,
            {3 + thread, copy_start, copy_time, 1 + read, correlation_, bytes, copy_start - copy_queued,
             copy_start - copy_queued - 3000, 0}});
      device = copy_start + copy_time;
      if (read) {
        const int64_t wait = std::max<int64_t>(device - now, 0) + noise_.around(3000, 0.5);
        emit({Table::kApi, 6, {1 + thread, now, wait, 5, 0, 0}});
        now += wait + noise_.around(2000, 0.5);
      }
    }
    api(emit, thread, 6, 90, 0.3, 0);
  }

 private:
  static constexpr int64_t kKernels = 16;
  int64_t api(const std::function<void(const Row&)>& emit, int64_t thread, int64_t function, double median,
              double spread, int64_t correlation) {
    int64_t& now = host_[thread];
    const int64_t start = now + noise_.around(120, 0.4);
    const int64_t duration = noise_.around(median, spread);
    emit({Table::kApi, 6, {1 + thread, start, duration, function, correlation, 0}});
    now = start + duration;
    return start;
  }
  Noise noise_;
  int64_t host_[2] = {5'000'000'000, 5'000'000'000};
  int64_t device_[2] = {0, 0};
  int64_t correlation_ = 0;
  int64_t ordinal_ = 0;
  int64_t step_ = 0;
};

// mytrace.rpd: its kernels and copies with the API calls that made them; other calls and markers beside them.
struct RpdRows {
  std::vector<Row> gpu_and_calls;  // dispatches, copies, and the API calls that started them
  std::vector<Row> all;
};
bool read_rpd(const std::string& path, TraceWriter& names, RpdRows& rows) {
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) return false;
  const auto query = [&](const char* sql, const std::function<void(sqlite3_stmt*)>& row) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK) {
      fmt::print(stderr, "trace_bench: {}: {}\n", path, sqlite3_errmsg(database));
      exit(1);
    }
    while (sqlite3_step(statement) == SQLITE_ROW) row(statement);
    sqlite3_finalize(statement);
  };
  const auto text = [](sqlite3_stmt* s, int c) {
    return std::string(reinterpret_cast<const char*>(sqlite3_column_text(s, c)));
  };
  const auto number = [](sqlite3_stmt* s, int c) { return static_cast<int64_t>(sqlite3_column_int64(s, c)); };
  const auto track = [&](int64_t native) { return names.dimension(row::Track{.native = native}); };
  query("select o.start, o.end, d.string, t.string, coalesce(l.api_id, 0), o.gpuId, o.queueId from rocpd_op o join "
        "rocpd_string d on d.id = o.description_id join rocpd_string t on t.id = o.opType_id left join rocpd_api_ops l "
        "on l.op_id = o.id order by o.id",
        [&](sqlite3_stmt* s) {
          const std::string kind = text(s, 3);
          const int64_t call = number(s, 4) == 0 ? 0 : number(s, 4) - 4294967296;
          const int64_t duration = number(s, 1) - number(s, 0);
          if (kind.rfind("Copy", 0) == 0) {
            const int64_t shape = names.dimension(
                row::CopyShape{.direction = kind == "CopyHostToDevice"   ? event::CopyDirection::kHostToDevice
                                            : kind == "CopyDeviceToHost" ? event::CopyDirection::kDeviceToHost
                                                                         : event::CopyDirection::kDeviceToDevice,
                               .asynchronous = 1});
            rows.gpu_and_calls.push_back(
                {Table::kCopy,
                 9,
                 {track(100 + number(s, 5)), number(s, 0), duration, shape, call, kUnknown, kUnknown, kUnknown, 0}});
          } else {
            const int64_t dim =
                names.dimension(row::Kernel{.name = names.string(text(s, 2).empty() ? kind : text(s, 2))});
            rows.gpu_and_calls.push_back(
                {Table::kDispatch,
                 9,
                 {track(100 + number(s, 5)), number(s, 0), duration, dim, call, kUnknown, kUnknown, kUnknown, 0}});
          }
        });
  rows.all = rows.gpu_and_calls;
  query("select a.start, a.end, a.tid, n.string, g.string, a.id, exists(select 1 from rocpd_api_ops l where l.api_id = "
        "a.id) from rocpd_api a join rocpd_string n on n.id = a.apiName_id join "
        "rocpd_string g on g.id = a.args_id order by a.id",
        [&](sqlite3_stmt* s) {
          const int64_t call = number(s, 5) - 4294967296;
          const int64_t duration = number(s, 1) - number(s, 0);
          if (text(s, 3) == "UserMarker") {
            const int64_t label = names.dimension(row::Label{.name = names.string(text(s, 4))});
            rows.all.push_back({Table::kMarker, 6, {track(number(s, 2)), number(s, 0), duration, label, call, 0}});
            return;
          }
          const Row row{
              Table::kApi,
              6,
              {track(number(s, 2)), number(s, 0), duration,
               names.dimension(row::Function{.name = names.string(text(s, 3)), .domain = event::Domain::kHipRuntime}),
               call, kUnknown}};
          rows.all.push_back(row);
          if (number(s, 6) != 0) rows.gpu_and_calls.push_back(row);
        });
  sqlite3_close(database);
  return !rows.all.empty();
}

// Writes rows, `times` over with their times and correlations moved on, and prints the cost.
void measure(const std::string& title, const std::vector<Row>& rows, int64_t total,
             const std::function<void(TraceWriter&)>& define) {
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  int64_t correlations = 0;
  for (const Row& row : rows) {
    first = std::min(first, row.cell[1]);
    last = std::max(last, row.cell[1]);
    correlations = std::max(correlations, row.cell[4]);
  }
  auto writer = must(TraceWriter::create_temporary());
  define(*writer);
  const double begin = cpu_seconds();
  int64_t written = 0;
  for (int64_t round = 0; written < total; ++round) {
    for (const Row& row : rows) {
      Row moved = row;
      moved.cell[1] += round * (last - first + 1000);
      if (moved.cell[4] != 0) moved.cell[4] += round * correlations;
      Cells::add(*writer, row.table,
                 std::span<const int64_t>(moved.cell.data(), event::table_info(row.table).columns.size()));
      if (++written == total) break;
    }
  }
  must(writer->flush());
  const double encode = cpu_seconds() - begin;
  const auto trace = must(writer->finish_and_open());

  double decode = 1e9;
  int64_t cells = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double start = cpu_seconds();
    int64_t sum = 0;
    cells = 0;
    for (const event::TableInfo& info : event::all_tables()) {
      if (!event::is_fact(info.table)) continue;
      std::vector<int> columns;
      for (size_t c = 0; c < info.columns.size(); ++c) columns.push_back(static_cast<int>(c));
      must(visit_chunks(*trace, info.table, columns, [&](size_t, std::span<const std::span<const int64_t>> values) {
        for (const auto& column : values) sum += column[0], cells += static_cast<int64_t>(column.size());
        return true;
      }));
    }
    decode = std::min(decode, cpu_seconds() - start + (sum == 42 ? 1e-12 : 0));
  }
  const auto events = static_cast<double>(written);
  fmt::print("{:<34} {:>9} rows  {:>5.2f} B/row  encode {:>5.1f} ns  decode {:>5.1f} ns  "
             "both {:>5.1f} M events/s  decode {:>4.0f} M values/s\n",
             title, written, static_cast<double>(trace->file_size()) / events, encode / events * 1e9,
             decode / events * 1e9, events / (encode + decode) / 1e6, static_cast<double>(cells) / decode / 1e6);
  if (written < 1'000'000) return;

  double open = 1e9, sums = 1e9;
  const std::string copy =
      (std::filesystem::temp_directory_path() / fmt::format("trace_bench-{}.tacho", getpid())).string();
  WriterOptions options;
  options.overwrite = true;
  auto named = must(TraceWriter::create(copy, options));
  define(*named);
  must(visit_chunks(*trace, Table::kApi, std::array{0, 1, 2, 3, 4, 5},
                    [&](size_t, std::span<const std::span<const int64_t>> v) {
                      for (size_t i = 0; i < v[0].size(); ++i)
                        named->add(row::Api{.track = v[0][i],
                                            .start = v[1][i],
                                            .duration = v[2][i],
                                            .dim = v[3][i],
                                            .correlation = v[4][i],
                                            .result = v[5][i]});
                      return true;
                    }));
  must(named->finish());
  for (int repeat = 0; repeat < 5; ++repeat) {
    double start = cpu_seconds();
    const auto again = must(Trace::open(copy));
    open = std::min(open, cpu_seconds() - start);
    start = cpu_seconds();
    for (const Table table : {Table::kApi, Table::kDispatch, Table::kCopy, Table::kMarker})
      (void)must(trace->merged_summaries(table));
    sums = std::min(sums, cpu_seconds() - start);
  }
  unlink(copy.c_str());
  const double start = cpu_seconds();
  int64_t visited = 0;
  must(visit_by_time(*trace, Table::kApi, std::array{0, 1, 2, 3}, INT64_MIN, INT64_MAX,
                     [&](auto) { return ++visited > 0; }));
  const double by_time = cpu_seconds() - start;
  using event::column::Api;
  int64_t typed = 0, sum = 0;
  const double typed_start = cpu_seconds();
  Status status;
  for (const auto& call : trace::rows<Api::track, Api::start, Api::duration, Api::dim>(*trace, status)) {
    sum += call.duration;
    ++typed;
  }
  must(status);
  const double typed_by_time = cpu_seconds() - typed_start + (sum == 42 ? 1e-12 : 0);
  const double busy_start = cpu_seconds();
  for (const Table table : {Table::kApi, Table::kDispatch, Table::kCopy}) (void)must(trace->merged_busy(table));
  fmt::print(
      "{:<34} open {:.2f} ms  summaries of all tables {:.2f} ms  busy times {:.1f} ms  rows by time {:.1f} M/s, typed {:.1f} M/s\n",
      "", open * 1e3, sums * 1e3, (cpu_seconds() - busy_start) * 1e3, static_cast<double>(visited) / by_time / 1e6,
      static_cast<double>(typed) / typed_by_time / 1e6);
}

int64_t status_kib(const char* key) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  int64_t value = -1;
  while (file != nullptr && fgets(line, sizeof line, file) != nullptr) {
    if (strncmp(line, key, strlen(key)) == 0) value = atoll(line + strlen(key) + 1);
  }
  if (file != nullptr) fclose(file);
  return value;
}

void measure_names(int64_t total) {
  auto writer = must(TraceWriter::create_temporary());
  int64_t peak = 0;
  const double before = cpu_seconds();
  for (int64_t i = 0; i < total; ++i) {
    const int64_t name = writer->string(fmt::format("a marker of step {} of the run", i));
    if (i == 0) define_places(*writer);
    const int64_t label = writer->dimension(row::Label{.name = name});
    writer->add(row::Marker{.track = 1, .start = 1'000'000 + i * 500, .duration = 100, .dim = label});
    if (i % 100'000 == 0) peak = std::max(peak, status_kib("RssAnon:"));
  }
  const auto trace = must(writer->finish_and_open());
  peak = std::max(peak, status_kib("RssAnon:"));
  fmt::print("{} markers with texts of their own, {} bytes, {:.0f} ns each: anonymous memory at most {} MiB\n", total,
             trace->file_size(), (cpu_seconds() - before) * 1e9 / static_cast<double>(total), peak / 1024);
}

void measure_memory(int64_t total) {
  OpenClProgram program(1);
  auto writer = must(TraceWriter::create_temporary());
  OpenClProgram::define(*writer);
  int64_t written = 0;
  int64_t peak = 0;
  const auto look = [&] { peak = std::max(peak, status_kib("RssAnon:")); };
  int64_t next_look = 0;
  while (written < total) {
    program.step([&](const Row& row) {
      Cells::add(*writer, row.table,
                 std::span<const int64_t>(row.cell.data(), event::table_info(row.table).columns.size()));
      ++written;
    });
    if (written >= next_look) look(), next_look += 100'000;
  }
  const auto trace = must(writer->finish_and_open());
  look();
  const int64_t writing = peak;
  int64_t visited = 0;
  must(visit_by_time(*trace, Table::kApi, std::array{0, 1, 2, 3}, INT64_MIN, INT64_MAX, [&](auto) {
    if (++visited % 1'000'000 == 0) look();
    return true;
  }));
  (void)must(trace->merged_summaries(Table::kApi));
  (void)must(trace->merged_busy(Table::kApi));
  look();
  fmt::print("{} rows, {} bytes: anonymous memory at most {} MiB writing, {} MiB with reading\n", written,
             trace->file_size(), writing / 1024, peak / 1024);
}

int run(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "--memory") == 0) {
    measure_memory(atoll(argv[2]));
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "--names") == 0) {
    measure_names(atoll(argv[2]));
    return 0;
  }
  const int64_t total = argc > 1 ? atoll(argv[1]) : 10'000'000;
  std::vector<Row> model, only_api, only_dispatch;
  OpenClProgram program(1);
  while (model.size() < 1'000'000) program.step([&](const Row& row) { model.push_back(row); });
  for (const Row& row : model) {
    if (row.table == Table::kApi) only_api.push_back(row);
    if (row.table == Table::kDispatch) only_dispatch.push_back(row);
  }
  measure("OpenCL model", model, total, OpenClProgram::define);
  measure("OpenCL model, api rows only", only_api, std::min<int64_t>(total, static_cast<int64_t>(only_api.size())),
          OpenClProgram::define);
  measure("OpenCL model, dispatch rows only", only_dispatch,
          std::min<int64_t>(total, static_cast<int64_t>(only_dispatch.size())), OpenClProgram::define);
  const std::vector<Row> few(model.begin(), model.begin() + 20'000);
  measure("OpenCL model, a short run", few, 20'000, OpenClProgram::define);

  const char* data = getenv("TACHO_DATA");
  const std::string rpd = (data != nullptr ? std::string(data) : std::string("../shared/data")) + "/rpd/mytrace.rpd";
  if (!std::filesystem::exists(rpd)) {
    fmt::print("mytrace.rpd left out: TACHO_DATA does not name the test data\n");
    return 0;
  }
  const auto define = [&](TraceWriter& writer) {
    RpdRows again;
    read_rpd(rpd, writer, again);
  };
  RpdRows rows;
  auto scratch = must(TraceWriter::create_temporary());
  if (!read_rpd(rpd, *scratch, rows)) {
    fmt::print(stderr, "trace_bench: {}: cannot be read\n", rpd);
    return 1;
  }
  measure("mytrace: kernels, copies, their calls", rows.gpu_and_calls, static_cast<int64_t>(rows.gpu_and_calls.size()),
          define);
  measure("mytrace: all ops, calls and markers", rows.all, static_cast<int64_t>(rows.all.size()), define);
  return 0;
}

}  // namespace
}  // namespace tacho::trace

int main(int argc, char** argv) {
  return tacho::trace::run(argc, argv);
}
