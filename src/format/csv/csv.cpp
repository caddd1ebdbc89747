// Writes a trace as CSV files (csv.h): one pass over each table; rows are assembled from parts that are formatted once.
#include "format/csv/csv.h"

#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "analysis/stats.h"
#include "base/files/output_file.h"
#include "base/saturating.h"
#include "base/text/csv.h"
#include "base/text/decimal.h"
#include "format/csv/parts.h"
#include "format/csv/statistics.h"
#include "format/shared/rocprof_words.h"
#include "trace/read/rows.h"
#include "walk/calls/launches.h"
#include "walk/counters.h"
#include "walk/names/tracks.h"
#include "walk/time/clock.h"

namespace tacho::format {

namespace column = event::column;
using event::kUnknown;
using event::Table;
using namespace csv;
using walk::Agents;
using walk::cell_text;
using walk::dimension_of;
using walk::KernelNames;
using walk::Launch;
using walk::Launches;
using walk::name_of_event;
using walk::OutputClock;
using walk::time_after;
using walk::Tracks;

namespace {

constexpr int64_t kMostRemembered = 1 << 17;  // rows of a dimension whose text is kept ready
constexpr size_t kMostReady = 24 * 1024;      // longer texts go through OutputFile::write()

// A row in progress, in the file's own buffer.
class Row {
 public:
  explicit Row(OutputFile& file) : file_(file) { begin(); }
  void text(std::string_view text) {
    if (text.size() > kMostReady || text.size() + kSpare > static_cast<size_t>(limit_ - at_)) {
      flush();
      if (text.size() > kMostReady) {
        file_.write(text);
        begin();
        return;
      }
      begin();
    }
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void comma() { *at_++ = ','; }
  void number(int64_t value) {
    room();
    at_ = write_signed(at_, value);
  }
  void unsigned_number(int64_t value) {
    room();
    at_ = write_unsigned(at_, static_cast<uint64_t>(value));
  }
  /// Writes nothing for kUnknown.
  void known(int64_t value) {
    if (value != kUnknown) number(value);
  }
  void end() {
    *at_++ = '\n';
    flush();
    begin();
  }
  ~Row() { flush(); }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

 private:
  static constexpr size_t kReserve = 48 * 1024, kSpare = 64;
  void begin() {
    begin_ = at_ = file_.reserve(kReserve);
    limit_ = begin_ + kReserve;
  }
  void flush() {
    file_.advance(static_cast<size_t>(at_ - begin_));
    begin_ = at_;
  }
  void room() {
    if (static_cast<size_t>(limit_ - at_) < kSpare) {
      flush();
      begin();
    }
  }
  OutputFile& file_;
  char *begin_ = nullptr, *at_ = nullptr, *limit_ = nullptr;
};

// The rows of any timed table in order of time, with all of its columns.
class WholeRows {
  using F = column::Fact;
  using Fact = event::RowOf<F::track, F::start, F::duration, F::dim, F::correlation>;

 public:
  WholeRows(const trace::Trace& trace, const event::TableInfo& info)
      : columns_(numbers(info)), cursor_(trace, info.table, columns_) {}
  bool next() {
    if (!cursor_.next()) return false;
    fact_.assign(cursor_.row().data());
    return true;
  }
  const WholeRows& operator*() const { return *this; }
  const Fact* operator->() const { return &fact_; }
  /// The cells of the table's own columns, those after the five of every timed fact.
  std::span<const int64_t> own() const { return cursor_.row().subspan(F::correlation + 1); }
  Status status() const { return cursor_.status(); }

 private:
  static std::vector<int> numbers(const event::TableInfo& info) {
    std::vector<int> all(info.columns.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> columns_;
  trace::TimeCursor cursor_;
  Fact fact_{};
};

class Exporter {
 public:
  Exporter(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options, OutputClock clock)
      : trace_(trace),
        target_(target),
        options_(options),
        clock_(std::move(clock)),
        agents_(trace, options.process),
        tracks_(trace, agents_, options),
        kernels_(trace, options) {
    for (const event::TableInfo& info : event::all_tables())
      if (info.timed && !without_file(info.table) && options.wants(info.table))
        total_ += static_cast<uint64_t>(trace.rows(info.table));
  }

  Status run() {
    TACHO_ASSIGN(OutputFile* const info, open("agent_info"));
    info->write(agent_info(trace_, agents_));
    // Of a trace with one process the files tell all but its rank.
    const int64_t process = std::max<int64_t>(options_.process, 1);
    const int64_t processes = trace_.rows(Table::kProcess);  // and row 0
    if (options_.owners && processes > process &&
        ((options_.process != 0 && processes > 2) ||
         trace_.cell(Table::kProcess, process, column::Process::rank) != kUnknown)) {
      TACHO_ASSIGN(OutputFile* const whose, open("process_info"));
      whose->write(process_info(trace_, agents_, process));
    }
    files_of_owners_ = files_.size();
    TACHO_TRY(kernels());
    TACHO_TRY(copies());
    TACHO_TRY(fills());
    TACHO_TRY(allocations());
    TACHO_TRY(calls());
    TACHO_TRY(markers());
    TACHO_TRY(counters());
    TACHO_TRY(further_tables());
    if (options_.statistics) TACHO_TRY(statistics_files());
    return {};
  }

  Status commit(std::vector<std::string>& written) {
    // A process without rows (it may have call stacks) gets no file for its agents alone.
    if (options_.process != 0 && files_.size() == files_of_owners_) return {};
    uint64_t bytes = 0;
    for (const OutputFile& file : files_) bytes += file.size();
    if (bytes < options_.minimum_bytes) return {};
    std::vector<OutputFile> files;
    for (OutputFile& file : files_) files.push_back(std::move(file));
    TACHO_TRY(OutputFile::commit_all(files));
    for (const OutputFile& file : files) written.push_back(file.path());
    return {};
  }

 private:
  Result<OutputFile*> open(std::string_view name) {
    std::string path = target_.folder;
    if (!path.empty() && path.back() != '/') path += '/';
    path += fmt::format("{}_{}.csv", target_.prefix, name);
    TACHO_ASSIGN(OutputFile file, OutputFile::create(path, options_.overwrite));
    files_.push_back(std::move(file));
    return &files_.back();
  }

  bool of_process(int64_t track) const { return options_.process == 0 || tracks_.process(track) == options_.process; }

  // Visits the rows of the process in time order and passes them to `write` with the file, which it creates for the
  // first row.
  template <typename Cursor, typename Write>
  Status put_rows(Table table, Cursor& cursor, std::string_view name, std::string_view header, Write write) {
    if (!options_.wants(table)) return {};
    OutputFile* file = nullptr;
    std::optional<Row> out;
    while (cursor.next()) {
      step();
      if (!of_process(cursor->track)) continue;
      if (file == nullptr) {
        TACHO_ASSIGN(file, open(name));
        file->write(header);
        out.emplace(*file);
      }
      write(*out, *cursor);
      if (file->failed()) break;  // commit() will report it
    }
    return cursor.status();
  }
  template <auto... columns, typename Write>
  Status rows(std::string_view name, std::string_view header, Write write) {
    trace::RowCursor<columns...> cursor(trace_);
    return put_rows(decltype(cursor)::Row::kTable, cursor, name, header, write);
  }

  void step() {
    if (++done_ % 16384 == 0 && options_.progress != nullptr) options_.progress->at(done_, total_);
  }

  // Start in the file's clock, end one duration later. Converting the end too would be off by some ns in each row, and
  // sums over rows would differ from *_stats.csv and tacho stats.
  void times(Row& out, int64_t start, int64_t duration) {
    const int64_t from = clock_(start);
    out.number(from);
    out.comma();
    if (duration != kUnknown) out.number(std::max(time_after(from, duration), from));
  }

  Launches& launches() {
    if (!launches_)
      launches_.emplace(trace_, options_.kernel_rename ? Launches::Around::kRanges : Launches::Around::kNothing);
    return *launches_;
  }

  // Kernel_trace

  struct KernelText {
    std::string before;  // Kernel_Id,"Kernel_Name",
    std::string after;   // ,LDS_Block_Size ... Grid_Size_Z
  };

  bool amd(int64_t device) const {
    return trace_.text(Table::kDevice, device, column::Device::architecture).starts_with("gfx");
  }

  KernelText kernel_text(int64_t kernel, bool round_lds) {
    const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
    KernelText text;
    text.before = fmt::format("{},", kernels_.id(kernel));
    if (!options_.kernel_rename) text.before += csv_quoted(kernels_.name(kernel)) + ",";
    const auto add = [&](int64_t value) {
      text.after += value == kUnknown ? std::string(",") : fmt::format(",{}", value);
    };
    const int64_t fixed = cell(column::Kernel::shared_static), dynamic = cell(column::Kernel::shared_dynamic);
    int64_t shared = kUnknown;
    if (fixed != kUnknown || dynamic != kUnknown)
      shared = (fixed == kUnknown ? 0 : fixed) + (dynamic == kUnknown ? 0 : dynamic);
    constexpr int64_t kLdsUnit = 512;  // AMD allocates LDS in this unit, and rocprofv3 prints the allocated size
    if (round_lds && shared >= 0) shared = (shared + kLdsUnit - 1) / kLdsUnit * kLdsUnit;
    add(shared);
    add(cell(column::Kernel::private_bytes));
    add(cell(column::Kernel::registers));
    add(cell(column::Kernel::accum_registers));
    add(cell(column::Kernel::scalar_registers));
    for (const int at : {column::Kernel::group_x, column::Kernel::group_y, column::Kernel::group_z,
                         column::Kernel::grid_x, column::Kernel::grid_y, column::Kernel::grid_z})
      add(cell(at));
    return text;
  }
  const KernelText& kernel(int64_t row, bool round_lds) {
    if (row < 0 || row >= kMostRemembered) return scratch_ = kernel_text(row, round_lds);
    // In practice a kernel row belongs to the device of one vendor. Where it does not, the flag keeps the two roundings
    // apart.
    auto& ready = kernel_texts_[round_lds];
    if (ready.size() <= static_cast<size_t>(row)) ready.resize(static_cast<size_t>(row) + 1);
    KernelText& text = ready[static_cast<size_t>(row)];
    if (text.before.empty()) text = kernel_text(row, round_lds);
    return text;
  }

  struct QueueText {
    std::string text;  // "KERNEL_DISPATCH","Agent 4",queue,stream,
    bool amd = false;
  };
  const QueueText& queue(int64_t track) {
    QueueText& text = queue_texts_[track];
    if (text.text.empty()) {
      const int64_t device = trace_.cell(Table::kTrack, track, column::Track::device);
      const int64_t queue = tracks_.queue(track), stream = tracks_.stream(track);
      text.amd = amd(device);
      // Without streams (OpenCL), rocprofv3 writes 0 in this column.
      text.text = fmt::format("\"KERNEL_DISPATCH\",{},{},{},", csv_quoted(agents_.label(device, options_.agent_index)),
                              queue == kUnknown ? std::string() : fmt::format("{}", static_cast<uint64_t>(queue)),
                              stream == kUnknown ? 0 : stream);
    }
    return text;
  }

  // The launching thread: that of the API call with this correlation, else the importer's.
  int64_t launching_thread(const Launch* launch, int64_t track) const {
    if (launch != nullptr) return tracks_.tid(launch->track);
    const int64_t tid = tracks_.tid(track);
    return tid > 0 ? tid : kUnknown;
  }

  // Adds a column if the run recorded arguments.
  std::string line_end() const { return has_arguments_ ? ",\"Arguments\"\n" : "\n"; }
  void arguments(Row& out, int64_t string) {
    if (!has_arguments_) return;
    out.comma();
    if (string != 0) out.text(csv_quoted(trace_.string(string)));
  }

  std::string_view renamed(const Launch* launch, int64_t kernel) {
    if (launch != nullptr && launch->label != 0) return trace_.text(Table::kLabel, launch->label, column::Label::name);
    return kernels_.name(kernel);
  }

  Status kernels() {
    using D = column::Dispatch;
    const Status done = rows<D::track, D::start, D::duration, D::dim, D::correlation, D::ordinal, D::arguments>(
        "kernel_trace",
        "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\""
        "" + line_end(),
        [&](Row& out, const auto& row) {
          const QueueText& on = queue(row.track);
          const KernelText& text = kernel(row.dim, on.amd);
          const Launch* const launch = launches().find(tracks_.process(row.track), row.correlation, row.start);
          out.text(on.text);
          out.known(launching_thread(launch, row.track));
          out.comma();
          if (row.ordinal != kUnknown) out.number(saturating_add(row.ordinal, 1));
          out.comma();
          out.text(text.before);
          if (options_.kernel_rename) {
            out.text(csv_quoted(renamed(launch, row.dim)));
            out.comma();
            if (row.duration != kUnknown) renamed_[std::string(renamed(launch, row.dim))].add(row.duration);
          }
          out.unsigned_number(row.correlation);
          out.comma();
          times(out, row.start, row.duration);
          out.text(text.after);
          arguments(out, row.arguments);
          out.end();
        });
    if (launches_) {
      TACHO_TRY(launches_->status());
      options_.remark_forgotten(launches_->forgotten());
    }
    launches_.reset();  // its sweep only moves forward; later tables need a new one
    return done;
  }

  // Memory

  Status copies() {
    using C = column::Copy;
    std::unordered_map<int64_t, std::string> shapes;  // ,"Agent 0","Agent 1", by dimension
    return rows<C::track, C::start, C::duration, C::dim, C::correlation, C::bytes, C::arguments>(
        "memory_copy_trace",
        options_.extra_columns
            ? "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Size_Bytes\""
              "" + line_end()
            : "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\""
              "" + line_end(),
        [&](Row& out, const auto& row) {
          const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, row.dim, at); };
          std::string& agents = shapes[row.dim];
          if (agents.empty())
            agents = fmt::format(
                ",{},{},", csv_quoted(agents_.label(cell(column::CopyShape::source_device), options_.agent_index)),
                csv_quoted(agents_.label(cell(column::CopyShape::target_device), options_.agent_index)));
          out.text("\"MEMORY_COPY\",\"");
          out.text(copy_direction_name(cell(column::CopyShape::direction)));
          out.text("\",");
          const int64_t stream = tracks_.stream(row.track);
          out.unsigned_number(stream == kUnknown ? 0 : stream);
          out.text(agents);
          out.unsigned_number(row.correlation);
          out.comma();
          times(out, row.start, row.duration);
          if (options_.extra_columns) {
            out.comma();
            out.known(row.bytes);
          }
          arguments(out, row.arguments);
          out.end();
        });
  }

  Status fills() {
    using F = column::Fill;
    return rows<F::track, F::start, F::duration, F::dim, F::correlation, F::bytes>(
        "memory_fill_trace",
        "\"Kind\",\"Agent_Id\",\"Stream_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Size_Bytes\"\n",
        [&](Row& out, const auto& row) {
          out.text("\"MEMORY_FILL\",");
          out.text(csv_quoted(
              agents_.label(trace_.cell(Table::kFillShape, row.dim, column::FillShape::device), options_.agent_index)));
          out.comma();
          const int64_t stream = tracks_.stream(row.track);
          out.unsigned_number(stream == kUnknown ? 0 : stream);
          out.comma();
          out.unsigned_number(row.correlation);
          out.comma();
          times(out, row.start, row.duration);
          out.comma();
          out.known(row.bytes);
          out.end();
        });
  }

  Status allocations() {
    using A = column::Allocation;
    return rows<A::track, A::start, A::duration, A::dim, A::correlation, A::bytes, A::address>(
        "memory_allocation_trace",
        "\"Kind\",\"Operation\",\"Agent_Id\",\"Allocation_Size\",\"Address\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
        "",
        [&](Row& out, const auto& row) {
          const auto cell = [&](int at) { return trace_.cell(Table::kAllocationShape, row.dim, at); };
          const int64_t operation = cell(column::AllocationShape::operation);
          out.text("\"MEMORY_ALLOCATION\",\"");
          out.text(allocation_name(operation));
          out.text("\",");
          out.text(is_free(operation)
                       ? std::string("\"\"")
                       : csv_quoted(agents_.label(cell(column::AllocationShape::device), options_.agent_index)));
          out.comma();
          out.known(row.bytes);
          out.text(fmt::format(",\"0x{:016x}\",", static_cast<uint64_t>(row.address)));
          out.unsigned_number(row.correlation);
          out.comma();
          times(out, row.start, row.duration);
          out.end();
        });
  }

  // API calls and markers

  static inline const std::string kCallHeader =
      "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"";

  const std::string& thread_text(int64_t track) {  // Process_Id,Thread_Id,
    std::string& text = thread_texts_[track];
    if (text.empty()) {
      const int64_t pid = trace_.cell(Table::kProcess, tracks_.process(track), column::Process::pid),
                    tid = tracks_.tid(track);
      text = fmt::format("{},{},", pid == kUnknown ? 0 : pid, tid > 0 ? fmt::format("{}", tid) : std::string());
    }
    return text;
  }

  Status calls() {
    if (!options_.wants(Table::kApi) || trace_.rows(Table::kApi) == 0) return {};
    using A = column::Api;
    struct Sink {
      OutputFile* file = nullptr;
      std::unique_ptr<Row> out;
    };
    std::map<std::string_view, Sink> sinks;
    struct Function {
      std::string text;  // "DOMAIN","name",
      Sink* sink = nullptr;
      bool wanted = true;
    };
    std::vector<Function> functions(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1)));
    trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation, A::arguments> cursor(trace_);
    while (cursor.next()) {
      const auto& row = *cursor;
      step();
      if (!of_process(row.track)) continue;
      const auto at =
          row.dim >= 0 && row.dim < static_cast<int64_t>(functions.size()) ? static_cast<size_t>(row.dim) : 0;
      Function& function = functions[at];
      if (!function.wanted) continue;
      if (function.sink == nullptr) {
        const auto domain =
            event::from_cell<event::Domain>(trace_.cell(Table::kFunction, row.dim, column::Function::domain));
        function.wanted = options_.wants(domain);
        if (!function.wanted) continue;
        const std::string_view api = api_of(domain).empty() ? "unknown" : api_of(domain);
        Sink& sink = sinks[api];
        if (sink.file == nullptr) {
          TACHO_ASSIGN(sink.file, open(fmt::format("{}_api_trace", api)));
          sink.file->write(kCallHeader + line_end());
          sink.out = std::make_unique<Row>(*sink.file);
        }
        function.sink = &sink;
        function.text = fmt::format("\"{}\",{},", api_domain_name(domain),
                                    csv_quoted(trace_.text(Table::kFunction, row.dim, column::Function::name)));
      }
      Row& out = *function.sink->out;
      out.text(function.text);
      out.text(thread_text(row.track));
      out.unsigned_number(row.correlation);
      out.comma();
      times(out, row.start, row.duration);
      arguments(out, row.arguments);
      out.end();
      if (function.sink->file->failed()) break;
    }
    return cursor.status();
  }

  Status markers() {
    using M = column::Marker;
    return rows<M::track, M::start, M::duration, M::dim, M::correlation>(
        "marker_api_trace", kCallHeader + "\n", [&](Row& out, const auto& row) {
          const bool mark = trace_.cell(Table::kLabel, row.dim, column::Label::kind) ==
                            static_cast<int64_t>(event::MarkerKind::kMark);
          out.text(mark ? "\"MARKER_CORE_API\"," : "\"MARKER_CORE_RANGE_API\",");
          out.text(csv_quoted(trace_.text(Table::kLabel, row.dim, column::Label::name)));
          out.comma();
          out.text(thread_text(row.track));
          out.unsigned_number(row.correlation);
          out.comma();
          times(out, row.start, row.duration);
          out.end();
        });
  }

  // Counter_collection: one row per dispatch and counter, instances summed

  struct Collected {
    int64_t track, start, ordinal;
    walk::CounterSums sums;
  };
  struct Launched {
    int64_t track, start, duration, dim, correlation;
  };

  Status counters() {
    if (!options_.wants(Table::kCounterValue) || trace_.rows(Table::kCounterValue) == 0) return {};
    using C = column::CounterValue;
    using D = column::Dispatch;
    TACHO_ASSIGN(const walk::FirstPasses passes, walk::FirstPasses::make(trace_));
    trace::RowCursor<C::track, C::start, C::ordinal, C::dim, C::pass, C::value> values(trace_);
    trace::RowCursor<D::track, D::start, D::duration, D::dim, D::correlation, D::ordinal> dispatches(trace_);
    bool more = dispatches.next();
    // Dispatches whose values may still come; a value carries its dispatch's start.
    std::unordered_map<uint64_t, Launched> waiting;
    std::deque<uint64_t> order;
    constexpr size_t kMostWaiting = 1 << 18;
    const auto key = [](int64_t process, int64_t ordinal) {
      return static_cast<uint64_t>(process) << 48 ^ static_cast<uint64_t>(ordinal);
    };
    OutputFile* file = nullptr;
    std::optional<Row> out;
    std::optional<Collected> now;
    Status status;
    const auto flush = [&]() -> Status {
      if (!now) return {};
      if (file == nullptr) {
        TACHO_ASSIGN(file, open("counter_collection"));
        file->write(
            "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\",\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\",\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n"
            "");
        out.emplace(*file);
      }
      const auto found = waiting.find(key(tracks_.process(now->track), now->ordinal));
      write_counters(*out, *now, found == waiting.end() ? nullptr : &found->second);
      now.reset();
      return {};
    };
    while (values.next()) {
      const auto& value = *values;
      if (!of_process(value.track)) continue;
      while (more && (dispatches.start() <= value.start ||
                      !waiting.contains(key(tracks_.process(value.track), value.ordinal)))) {
        const auto& dispatch = *dispatches;
        const uint64_t at = key(tracks_.process(dispatch.track), dispatch.ordinal);
        if (waiting
                .insert_or_assign(
                    at, Launched{dispatch.track, dispatch.start, dispatch.duration, dispatch.dim, dispatch.correlation})
                .second)
          order.push_back(at);
        if (order.size() > kMostWaiting) {
          waiting.erase(order.front());
          order.pop_front();
        }
        more = dispatches.next();
      }
      if (now && (now->track != value.track || now->start != value.start || now->ordinal != value.ordinal))
        TACHO_TRY(flush());
      if (!now) now = Collected{value.track, value.start, value.ordinal, {}};
      if (passes.count(value.track, value.start, value.ordinal, value.dim, value.pass))
        now->sums.add(value.dim, value.value.value());
    }
    TACHO_TRY(flush());
    TACHO_TRY(values.status());
    return dispatches.status();
  }

  void write_counters(Row& out, const Collected& collected, const Launched* dispatch) {
    const int64_t kernel = dispatch != nullptr ? dispatch->dim : 0;
    const auto cell = [&](int at) { return kernel == 0 ? kUnknown : trace_.cell(Table::kKernel, kernel, at); };
    const auto product = [&](int x, int y, int z) {
      int64_t value = 0;
      if (cell(x) == kUnknown || cell(y) == kUnknown || cell(z) == kUnknown ||
          __builtin_mul_overflow(cell(x), cell(y), &value) || __builtin_mul_overflow(value, cell(z), &value))
        return kUnknown;
      return value;
    };
    const int64_t device = trace_.cell(Table::kTrack, collected.track, column::Track::device);
    const int64_t process = tracks_.process(collected.track);
    const int64_t correlation = dispatch != nullptr ? dispatch->correlation : 0;
    const Launch* const launch = dispatch != nullptr ? launches().find(process, correlation, dispatch->start) : nullptr;
    const auto text = [&](int64_t value) { return value == kUnknown ? std::string() : fmt::format("{}", value); };
    const std::string head = fmt::format(
        "{},{},{},{},{},{},{},{},{},{},", static_cast<uint64_t>(correlation), text(dispatch_id(collected.ordinal)),
        csv_quoted(agents_.label(device, options_.agent_index)), text(tracks_.queue(collected.track)),
        text(trace_.cell(Table::kProcess, process, column::Process::pid)),
        text(launching_thread(launch, collected.track)),
        text(product(column::Kernel::grid_x, column::Kernel::grid_y, column::Kernel::grid_z)),
        kernel == 0 ? std::string() : fmt::format("{}", kernels_.id(kernel)),
        csv_quoted(kernel == 0 ? std::string_view() : renamed(launch, kernel)),
        text(product(column::Kernel::group_x, column::Kernel::group_y, column::Kernel::group_z)));
    // LDS_Block_Size ... SGPR_Count are the first five columns of kernel_trace's tail.
    std::string sizes = ",,,,";
    if (kernel != 0) {
      const std::string& after = this->kernel(kernel, amd(device)).after;
      size_t end = 0;
      for (int i = 0; i < 6; ++i) end = after.find(',', i == 0 ? 0 : end + 1);
      sizes = after.substr(1, end - 1);
    }
    for (const auto& [counter, value] : collected.sums.values()) {
      out.text(head);
      out.text(sizes);
      out.text(fmt::format(",{},{},", csv_quoted(trace_.text(Table::kCounter, counter, column::Counter::name)),
                           csv::counter_value(value)));
      times(out, dispatch != nullptr ? dispatch->start : collected.start,
            dispatch != nullptr ? dispatch->duration : kUnknown);
      out.end();
    }
  }

  // Tables that rocprofv3 does not know

  // These tables have no file: rocprofv3 writes none, and other commands show them.
  static bool without_file(Table table) {
    return table == Table::kSync || table == Table::kOverhead || table == Table::kSample;
  }
  static bool has_own_file(Table table) {
    return table == Table::kDispatch || table == Table::kCopy || table == Table::kFill || table == Table::kAllocation ||
           table == Table::kApi || table == Table::kMarker;
  }

  // Writes every other timed table to `<table>_trace`: name, place, times, its own and the dimension's cells.
  Status further_tables() {
    for (const event::TableInfo& info : event::all_tables()) {
      if (!info.timed || without_file(info.table) || has_own_file(info.table)) continue;
      const event::TableInfo& dimension = event::table_info(dimension_of(info.table));
      std::string header =
          "\"Name\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"";
      const auto own = info.columns.subspan(column::Fact::correlation + 1);
      for (const auto columns : {own, dimension.columns})
        for (const event::Column& column : columns) header += "," + csv_quoted(column.name);
      WholeRows cursor(trace_, info);
      TACHO_TRY(put_rows(
          info.table, cursor, fmt::format("{}_trace", info.name), header + "\n", [&](Row& out, const WholeRows& row) {
            out.text(csv_quoted(name_of_event(trace_, info.table, row->dim)));
            out.comma();
            out.text(thread_text(row->track));
            out.unsigned_number(row->correlation);
            out.comma();
            times(out, row->start, row->duration);
            const auto cell = [&](const event::Column& column, int64_t value) {
              const std::string text = cell_text(trace_, column, value);
              const bool words = column.type == event::Type::kString || column.type == event::Type::kEnum;
              out.comma();
              out.text(words ? csv_quoted(text) : text);
            };
            auto value = row.own().begin();
            for (const event::Column& column : own) cell(column, *value++);
            int number = 0;
            for (const event::Column& column : dimension.columns)
              cell(column, trace_.cell(dimension.table, row->dim, number++));
            out.end();
          }));
    }
    return {};
  }

  // Statistics

  Status statistics_files() {
    // Kernels and markers of very many names go line by line from a table that keeps them in files.
    std::vector<StatisticsRow> all;
    std::vector<Table> many;
    if (!options_.kernel_rename && options_.wants(Table::kDispatch) && trace_.rows(Table::kKernel) > kMostRemembered) {
      many.push_back(Table::kDispatch);
      TACHO_TRY(statistics_of_many(analysis::By::kKernel, "kernel", "KERNEL_DISPATCH", all));
    }
    if (options_.wants(Table::kMarker) && trace_.rows(Table::kLabel) > kMostRemembered) {
      many.push_back(Table::kMarker);
      TACHO_TRY(statistics_of_many(analysis::By::kMarker, "marker_api", "MARKER_API", all));
    }
    TACHO_ASSIGN(auto domains, domain_sums(trace_, options_, kernels_, many));
    for (DomainSums& domain : domains) {
      if (options_.kernel_rename && domain.domain == "KERNEL_DISPATCH") {
        domain.rows.clear();
        for (const auto& [name, sums] : renamed_) domain.rows.push_back({name, sums});
      }
      TACHO_ASSIGN(OutputFile* const file, open(fmt::format("{}_stats", domain.file)));
      all.push_back({domain.domain, total_of(domain)});
      file->write(statistics(std::move(domain.rows)));
    }
    if (all.empty()) return {};
    TACHO_ASSIGN(OutputFile* const file, open("domain_stats"));
    file->write(statistics(std::move(all)));
    return {};
  }

  Status statistics_of_many(analysis::By by, std::string_view name, std::string_view domain,
                            std::vector<StatisticsRow>& domains) {
    analysis::StatOptions options;
    options.sizes = false;
    options.groups = false;
    options.mangled = options_.mangled;
    options.truncate = options_.truncate;
    if (options_.process != 0) options.process = options_.process;
    TACHO_ASSIGN(const analysis::StatTable table, analysis::StatTable::make(trace_, by, options));
    if (table.size() == 0) return {};
    TACHO_ASSIGN(OutputFile* const file, open(fmt::format("{}_stats", name)));
    file->write(kStatisticsHeader);
    analysis::Sums whole;
    std::string line;
    for (size_t i = 0; i < table.size(); ++i) {
      const analysis::StatRow row = table.row(i);
      analysis::Sums sums;
      sums.count = row.count - row.unknown;
      sums.unknown = row.unknown;
      sums.total = row.total;
      sums.min = row.min;
      sums.max = row.max;
      sums.mean = row.mean;
      sums.m2 = sums.count > 1 ? row.stddev * row.stddev * static_cast<double>(sums.count - 1) : 0;
      whole.add(sums);
      line.clear();
      add_statistics(line, row.name, sums, row.stddev, static_cast<double>(table.total()));
      file->write(line);
    }
    domains.push_back({std::string(domain), whole});
    return {};
  }

  const trace::Trace& trace_;
  const bool has_arguments_ = trace_.property(Table::kEnd, 0, "api_args").value_or("") == "1";
  const ExportTarget& target_;
  ExportOptions options_;
  OutputClock clock_;
  Agents agents_;
  Tracks tracks_;
  KernelNames kernels_;
  std::optional<Launches> launches_;
  std::deque<OutputFile> files_;
  size_t files_of_owners_ = 0;
  std::vector<KernelText> kernel_texts_[2];
  KernelText scratch_;
  std::unordered_map<int64_t, QueueText> queue_texts_;
  std::unordered_map<int64_t, std::string> thread_texts_;
  std::unordered_map<std::string, analysis::Sums> renamed_;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace

Status write_csv(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                 std::vector<std::string>& written) {
  TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kBoottime));
  Exporter exporter(trace, target, options, std::move(clock));
  TACHO_TRY(exporter.run());
  return exporter.commit(written);
}

}  // namespace tacho::format
