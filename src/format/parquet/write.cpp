// Supplies a trace's rows on DuckDB's request; DuckDB writes the files (parquet.h).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/files/output_file.h"
#include "base/text/demangle.h"
#include "base/text/utf8.h"
#include "format/parquet/duckdb.h"
#include "format/parquet/parquet.h"
#include "format/sqlite/bulk.h"
#include "walk/names/names.h"
#include "walk/time/clock.h"

namespace tacho::format::parquet {
namespace {

namespace fs = std::filesystem;
namespace column = event::column;
using event::kUnknown;
using event::Table;
using event::Type;
using walk::dimension_of;
using walk::OutputClock;
using walk::time_after;

// A column of the output: a number from a fact's row, and what it stands for.
struct Output {
  std::string name;
  int type = kDuckBigint;
  std::function<int64_t(const int64_t* row)> value;               // kUnknown = NULL
  std::function<std::string_view(int64_t value)> text = nullptr;  // for kDuckVarchar
};

Table dimension_of(const event::TableInfo& info) {
  for (const event::Column& one : info.columns)
    if (one.name == "dim" && one.type == Type::kRow) return one.target;
  return Table::kEnd;
}

bool ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
}

// Trace time in ns since 1970; kUnknown where the trace does not know it.
class UnixTime {
 public:
  static Result<UnixTime> make(const trace::Trace& trace) {
    TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kRealtime));
    UnixTime time(std::move(clock));
    // torch.profiler says where its times begin.
    if (const auto base = trace.property(Table::kEnd, 0, "kineto.baseTimeNanoseconds"))
      if (std::from_chars(base->data(), base->data() + base->size(), time.base_).ec != std::errc())
        time.base_ = kUnknown;
    return time;
  }
  int64_t operator()(int64_t time) const {
    if (base_ != kUnknown) return time_after(time, base_);
    return clock_.known() ? clock_(time) : kUnknown;
  }

 private:
  explicit UnixTime(OutputClock clock) : clock_(std::move(clock)) {}
  OutputClock clock_;
  int64_t base_ = kUnknown;
};

// The rows of one process in one table, chunk by chunk.
class Source {
 public:
  /// `nameless`: also rows of no process in particular (telemetry of a device).
  Source(const trace::Trace& trace, const ExportOptions& options, Table table, const UnixTime& unix_time, bool nameless)
      : trace_(trace),
        options_(options),
        table_(table),
        info_(event::table_info(table)),
        unix_(unix_time),
        nameless_(nameless) {
    for (size_t i = 0; i < info_.columns.size(); ++i) columns_.push_back(static_cast<int>(i));
    describe();
  }
  const std::vector<Output>& outputs() const { return outputs_; }
  int64_t rows() const { return rows_; }

  /// Fills in up to `most` rows with cell(column, row); returns their number, 0 at the end.
  Result<size_t> fill(const DuckLibrary& duck, DuckLibrary::Handle chunk, size_t most) {
    std::vector<size_t> chosen;
    while (chosen.empty()) {
      if (at_ >= length_) {
        TACHO_ASSIGN(const bool more, next_chunk());
        if (!more) return size_t{0};
      }
      for (; at_ < length_ && chosen.size() < most; ++at_)
        if (wanted(at_)) chosen.push_back(at_);
    }
    std::vector<std::array<int64_t, event::kMaxColumns>> picked(chosen.size());
    for (size_t i = 0; i < chosen.size(); ++i)
      for (size_t c = 0; c < columns_.size(); ++c) picked[i][c] = values_[c][chosen[i]];
    for (size_t c = 0; c < outputs_.size(); ++c) {
      const Output& output = outputs_[c];
      const DuckLibrary::Handle vector = duck.data_chunk_get_vector(chunk, c);
      uint64_t* valid = nullptr;
      const auto null = [&](size_t i) {
        if (valid == nullptr) {
          duck.vector_ensure_validity_writable(vector);
          valid = duck.vector_get_validity(vector);
        }
        valid[i / 64] &= ~(uint64_t{1} << (i % 64));
      };
      auto* const numbers = output.type == kDuckVarchar ? nullptr : static_cast<int64_t*>(duck.vector_get_data(vector));
      for (size_t i = 0; i < picked.size(); ++i) {
        const int64_t value = output.value(picked[i].data());
        if (value == kUnknown) {
          null(i);
        } else if (output.type == kDuckVarchar) {
          const std::string_view text = output.text(value);
          if (ascii(text)) {
            duck.vector_assign_string_element_len(vector, i, text.data(), text.size());
          } else {
            const std::string clean = valid_utf8(text);
            duck.vector_assign_string_element_len(vector, i, clean.data(), clean.size());
          }
        } else {
          numbers[i] = value;  // the column holds the double's bits
        }
      }
    }
    rows_ += static_cast<int64_t>(chosen.size());
    return chosen.size();
  }

 private:
  bool tracked() const { return !info_.columns.empty() && info_.columns[0].name == "track"; }
  bool ours(int64_t process) const { return process == options_.process || (nameless_ && process <= 0); }
  bool wanted(size_t at) const {
    if (tracked()) {
      if (!ours(trace_.cell(Table::kTrack, values_[0][at], column::Track::process))) return false;
      if (table_ == Table::kApi && !options_.wants(event::from_cell<event::Domain>(trace_.cell(
                                       Table::kFunction, values_[column::Api::dim][at], column::Function::domain))))
        return false;
    } else if (process_column_ >= 0 && !ours(values_[static_cast<size_t>(process_column_)][at])) {
      return false;
    }
    return true;
  }

  Result<bool> next_chunk() {
    const auto chunks = trace_.chunks(table_);
    for (; chunk_ < chunks.size(); ++chunk_) {
      first_row_ = next_row_;
      next_row_ += chunks[chunk_].rows;
      if (tracked() && !has_track(chunks[chunk_])) continue;
      values_.resize(columns_.size());
      for (size_t c = 0; c < columns_.size(); ++c) TACHO_TRY(trace_.decode(table_, chunk_, columns_[c], values_[c]));
      at_ = 0;
      length_ = values_.empty() ? 0 : values_[0].size();
      ++chunk_;
      return true;
    }
    return false;
  }
  // Merged traces keep tracks together, so most chunks of other processes need no decoding.
  bool has_track(const trace::Chunk& chunk) const {
    for (int64_t track = chunk.min_track; track <= chunk.max_track; ++track)
      if (ours(trace_.cell(Table::kTrack, track, column::Track::process))) return true;
    return false;
  }

  void add(std::string name, int type, std::function<int64_t(const int64_t*)> value,
           std::function<std::string_view(int64_t)> text = nullptr) {
    for (const Output& other : outputs_)
      if (other.name == name) name += "_of_" + std::string(info_.name);
    outputs_.push_back({std::move(name), type, std::move(value), std::move(text)});
  }
  void add_column(const event::Column& about, std::string name, std::function<int64_t(const int64_t*)> value) {
    switch (about.type) {
      case Type::kString:
        return add(std::move(name), kDuckVarchar, std::move(value),
                   [this](int64_t code) { return trace_.string(code); });
      case Type::kEnum:
        return add(std::move(name), kDuckVarchar, std::move(value),
                   [of = about.enumeration](int64_t code) { return of->text(code); });
      case Type::kDouble:
        return add(std::move(name), kDuckDouble, std::move(value));
      case Type::kRow:
        if (about.target == Table::kDevice) {
          // The device's number in its vendor's tools; NULL for the host.
          return add(std::move(name), kDuckBigint, [this, value = std::move(value)](const int64_t* row) {
            const int64_t device = value(row);
            return device > 0 ? trace_.cell(Table::kDevice, device, column::Device::index) : kUnknown;
          });
        }
        return add(std::move(name), kDuckBigint, std::move(value));
      default:
        return add(std::move(name), kDuckBigint, std::move(value));
    }
  }

  std::string_view shown_name(int64_t kernel) {
    const int64_t row = trace_.cell(Table::kKernel, kernel, column::Kernel::name);
    const std::string_view raw = trace_.string(row);
    if (options_.mangled || (!may_be_mangled(raw) && !options_.truncate)) return raw;
    auto& known = names_[row];
    if (!known) {
      known = std::make_unique<std::string>(demangle(raw));
      if (options_.truncate) *known = short_name(*known);
    }
    return *known;
  }

  void describe() {
    const Table dimension = dimension_of(info_);
    if (tracked()) {
      const auto of_track = [this](int at) {
        return [this, at](const int64_t* row) { return trace_.cell(Table::kTrack, row[0], at); };
      };
      add("pid", kDuckBigint, [this](const int64_t* row) {
        return trace_.cell(Table::kProcess, trace_.cell(Table::kTrack, row[0], column::Track::process),
                           column::Process::pid);
      });
      add("tid", kDuckBigint, [this](const int64_t* row) {
        const int64_t thread = trace_.cell(Table::kTrack, row[0], column::Track::thread);
        return thread > 0 ? trace_.cell(Table::kThread, thread, column::Thread::tid) : kUnknown;
      });
      add("device", kDuckBigint, [this](const int64_t* row) {
        const int64_t device = trace_.cell(Table::kTrack, row[0], column::Track::device);
        return device > 0 ? trace_.cell(Table::kDevice, device, column::Device::index) : kUnknown;
      });
      add(
          "device_name", kDuckVarchar,
          [this](const int64_t* row) {
            const int64_t device = trace_.cell(Table::kTrack, row[0], column::Track::device);
            return device > 0 ? trace_.cell(Table::kDevice, device, column::Device::name) : kUnknown;
          },
          [this](int64_t code) { return trace_.string(code); });
      add("queue", kDuckBigint, [this, native = of_track(column::Track::native)](const int64_t* row) {
        const auto kind = static_cast<event::TrackKind>(trace_.cell(Table::kTrack, row[0], column::Track::kind));
        return kind == event::TrackKind::kThread ? kUnknown : native(row);
      });
      if (table_ == Table::kReading)
        add(
            "name", kDuckVarchar,
            [this](const int64_t* row) {
              return trace_.cell(Table::kCounter, trace_.cell(Table::kTrack, row[0], column::Track::counter),
                                 column::Counter::name);
            },
            [this](int64_t code) { return trace_.string(code); });
    }
    if (dimension == Table::kKernel)
      add(
          "name", kDuckVarchar, [](const int64_t* row) { return row[column::Fact::dim]; },
          [this](int64_t code) { return shown_name(code); });
    if (dimension != Table::kEnd) {
      int dim_at = 0;
      for (size_t i = 0; i < info_.columns.size(); ++i)
        if (info_.columns[i].name == "dim") dim_at = static_cast<int>(i);
      const event::TableInfo& about = event::table_info(dimension);
      for (size_t i = 0; i < about.columns.size(); ++i) {
        if (dimension == Table::kKernel && i == column::Kernel::name) continue;
        const int at = static_cast<int>(i);
        add_column(
            about.columns[i], std::string(about.columns[i].name),
            [this, dimension, at, dim_at](const int64_t* row) { return trace_.cell(dimension, row[dim_at], at); });
      }
    }
    for (size_t i = 0; i < info_.columns.size(); ++i) {
      const event::Column& about = info_.columns[i];
      if (about.name == "track" || about.name == "dim") continue;
      if (about.type == Type::kRow && about.target == Table::kProcess) {
        process_column_ = static_cast<int>(i);
        continue;  // the folder's name gives it
      }
      add_column(about, std::string(about.name), [i](const int64_t* row) { return row[i]; });
      if (about.name == "start" && about.type == Type::kTime)
        add("start_unix", kDuckBigint, [this, i](const int64_t* row) { return unix_(row[i]); });
    }
    if (event::is_timed(table_))
      add("end", kDuckBigint, [](const int64_t* row) {
        return row[column::Fact::duration] == kUnknown
                   ? kUnknown
                   : time_after(row[column::Fact::start], row[column::Fact::duration]);
      });
  }

  const trace::Trace& trace_;
  const ExportOptions& options_;
  Table table_;
  const event::TableInfo& info_;
  const UnixTime& unix_;
  bool nameless_;
  std::vector<int> columns_;
  std::vector<Output> outputs_;
  std::map<int64_t, std::unique_ptr<std::string>> names_;
  int process_column_ = -1;
  std::vector<std::vector<int64_t>> values_;
  size_t chunk_ = 0, at_ = 0, length_ = 0;
  int64_t first_row_ = 0, next_row_ = 0, rows_ = 0;
};

// A database in memory with one table function, tacho_rows(), which returns the current source's rows.
class Desk {
 public:
  static Result<std::unique_ptr<Desk>> make() {
    TACHO_ASSIGN(const DuckLibrary* const duck, DuckLibrary::load());
    std::unique_ptr<Desk> desk(new Desk(*duck));
    if (duck->open(nullptr, &desk->database_) != 0 || duck->connect(desk->database_, &desk->connection_) != 0)
      return fail("DuckDB cannot be started");
    // One thread and little memory: rows pass through in order, a few row groups at a time.
    for (const char* setting : {"SET threads = 1", "SET memory_limit = '160MB'", "SET preserve_insertion_order = true",
                                "SET enable_progress_bar = false"})
      TACHO_TRY(desk->run(setting));
    return desk;
  }
  ~Desk() {
    if (connection_ != nullptr) duck_.disconnect(&connection_);
    if (database_ != nullptr) duck_.close(&database_);
  }

  /// Writes all rows of `source` to `path`.
  Status write(Source& source, const std::string& path) {
    source_ = &source;
    error_.clear();
    const DuckLibrary::Handle function = duck_.create_table_function();
    // A new name each time, because columns differ from table to table.
    const std::string name = fmt::format("tacho_rows_{}", ++functions_);
    duck_.table_function_set_name(function, name.c_str());
    duck_.table_function_set_extra_info(function, this, nullptr);
    duck_.table_function_set_bind(function, bind);
    duck_.table_function_set_init(function, init);
    duck_.table_function_set_function(function, produce);
    const int registered = duck_.register_table_function(connection_, function);
    DuckLibrary::Handle gone = function;
    duck_.destroy_table_function(&gone);
    if (registered != 0) return fail("DuckDB refused a table function");
    std::string quoted;
    for (const char c : path) quoted += c == '\'' ? std::string("''") : std::string(1, c);
    const Status done = run(fmt::format(
        "COPY (SELECT * FROM {}()) TO '{}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 61440)", name, quoted));
    source_ = nullptr;
    return done;
  }

 private:
  explicit Desk(const DuckLibrary& duck) : duck_(duck) { current_ = &duck; }
  Status run(const std::string& sql) {
    DuckResult result{};
    const bool failed = duck_.query(connection_, sql.c_str(), &result) != 0;
    std::string message;
    if (failed) {
      const char* const text = duck_.result_error(&result);
      message = error_.empty() ? text != nullptr ? text : "unknown error" : error_;
    }
    duck_.destroy_result(&result);
    if (!failed) return {};
    for (char& c : message)
      if (c == '\n') c = ' ';
    return fail("Parquet: {}", message);
  }

  static void bind(DuckLibrary::Handle info) {
    Desk& desk = *static_cast<Desk*>(current_->bind_get_extra_info(info));
    for (const Output& output : desk.source_->outputs()) {
      DuckLibrary::Handle type = desk.duck_.create_logical_type(output.type);
      desk.duck_.bind_add_result_column(info, output.name.c_str(), type);
      desk.duck_.destroy_logical_type(&type);
    }
  }
  static void init(DuckLibrary::Handle info) { current_->init_set_max_threads(info, 1); }
  static void produce(DuckLibrary::Handle info, DuckLibrary::Handle chunk) {
    Desk& desk = *static_cast<Desk*>(current_->function_get_extra_info(info));
    const auto filled = desk.source_->fill(desk.duck_, chunk, static_cast<size_t>(desk.duck_.vector_size()));
    if (!filled) {
      desk.error_ = filled.error().message;
      desk.duck_.function_set_error(info, desk.error_.c_str());
      return;
    }
    desk.duck_.data_chunk_set_size(chunk, *filled);
  }

  const DuckLibrary& duck_;
  static inline const DuckLibrary* current_ = nullptr;  // there is only one library, whichever desk uses it
  DuckLibrary::Handle database_ = nullptr, connection_ = nullptr;
  Source* source_ = nullptr;
  std::string error_;
  int functions_ = 0;
};

// A value as part of a folder's name. Escapes, like Hive, everything that could end the name or confuse a reader.
std::string partition_value(std::string_view text) {
  std::string value;
  const std::string valid = valid_utf8(text.substr(0, 1024));
  for (const char c : valid) {
    if ((c & 0xc0) != 0x80 && value.size() > 220) break;  // file systems take names of 255 bytes
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.')
      value += c;
    else
      value += fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return value.empty() ? "unknown" : value;
}

Status sync_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail("{}: {}", path, std::strerror(errno));
  const int failed = fsync(file) != 0 ? errno : 0;
  ::close(file);
  if (failed != 0) return fail("{}: {}", path, std::strerror(failed));
  return {};
}

// Keeps files under temporary names, which no reader's *.parquet matches, until all are complete.
class Files {
 public:
  ~Files() {
    for (const auto& [temporary, path] : files_) unlink(temporary.c_str());
  }
  std::string add(const std::string& path) {
    files_.emplace_back(fmt::format("{}.partial-{}", path, getpid()), path);
    return files_.back().first;
  }
  void drop_last() {
    unlink(files_.back().first.c_str());
    files_.pop_back();
  }
  Status commit(std::vector<std::string>& written) {
    for (const auto& [temporary, path] : files_) TACHO_TRY(sync_file(temporary));
    for (const auto& [temporary, path] : files_) {
      if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail("{}: {}", path, std::strerror(errno));
      written.push_back(path);
    }
    files_.clear();
    return {};
  }

 private:
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  if (trace.aggregated())
    return fail("{}: recorded with --aggregate: it holds no events that a dataset could hold", trace.path());
  TACHO_ASSIGN(const std::unique_ptr<Desk> desk, Desk::make());
  TACHO_ASSIGN(const UnixTime unix_time, UnixTime::make(trace));
  const auto of_process = [&](int at) {
    return options.process > 0 ? trace.cell(Table::kProcess, options.process, at) : 0;
  };
  const int64_t rank = of_process(column::Process::rank), run = of_process(column::Process::run);
  const fs::path folder = fs::path(target.folder) / fmt::format("run={}", run == kUnknown ? 0 : run) /
                          ("host=" + partition_value(trace.string(of_process(column::Process::host)))) /
                          fmt::format("rank={}", rank == kUnknown ? 0 : rank);
  // The first process also gets what belongs to no process.
  const bool first =
      std::none_of(written.begin(), written.end(), [](const std::string& path) { return path.ends_with(".parquet"); });
  Files files;
  for (size_t i = 0; i < event::kFactTables; ++i) {
    const auto table = static_cast<Table>(i);
    // Clock tuples, losses and notes describe the recording and not the program, so they stay in the trace.
    if (table == Table::kClock || table == Table::kLoss || table == Table::kNote) continue;
    if (!options.wants(table) || trace.rows(table) == 0) continue;
    const fs::path place = folder / ("table=" + std::string(event::table_info(table).name));
    const std::string path = (place / fmt::format("part-{}-{}.parquet", options.process, target.prefix)).string();
    std::error_code error;
    if (!options.overwrite && fs::exists(path, error))
      return fail("{}: exists already; choose another folder or add --overwrite", path);
    TACHO_TRY(create_folders(place.string()));
    Source source(trace, options, table, unix_time, first);
    TACHO_TRY(desk->write(source, files.add(path)));
    if (source.rows() == 0) {
      files.drop_last();
      fs::remove(place, error);  // only if it is empty
    }
  }
  return files.commit(written);
}

Status ready() {
  TACHO_TRY(DuckLibrary::load());
  return {};
}

}  // namespace tacho::format::parquet
