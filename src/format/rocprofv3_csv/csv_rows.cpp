// Fits rows to their header and reads their cells (csv_rows.h).
#include "format/rocprofv3_csv/csv_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <span>

#include "base/format.h"
#include "base/text/last_digit.h"
#include "base/text/utf8.h"
#include "format/source/source.h"

namespace tacho::format::rocprofv3_csv {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53: a double holds every whole number up to it

// What rocprof v1 and v2 call rocprofv3's columns, in their results.csv: one row a kernel.
constexpr std::pair<std::string_view, std::string_view> kOlderColumns[] = {
    {"KernelName", "Kernel_Name"},
    {"BeginNs", "Start_Timestamp"},
    {"EndNs", "End_Timestamp"},
    {"gpu-id", "Gpu_Id"},
    {"GPU_ID", "Gpu_Id"},
    {"queue-id", "Queue_Id"},
    {"Queue_ID", "Queue_Id"},
    {"pid", "Process_Id"},
    {"PID", "Process_Id"},
    {"tid", "Thread_Id"},
    {"TID", "Thread_Id"},
    {"Index", "Dispatch_Id"},
    {"Dispatch_ID", "Dispatch_Id"},
    {"grd", "Grid_Size"},
    {"wgr", "Workgroup_Size"},
    {"lds", "LDS_Block_Size"},
    {"LDS_Per_Workgroup", "LDS_Block_Size"},
    {"scr", "Scratch_Size"},
    {"Scratch_Per_Workitem", "Scratch_Size"},
    {"vgpr", "VGPR_Count"},
    {"arch_vgpr", "VGPR_Count"},
    {"Arch_VGPR", "VGPR_Count"},
    {"accum_vgpr", "Accum_VGPR_Count"},
    {"Accum_VGPR", "Accum_VGPR_Count"},
    {"sgpr", "SGPR_Count"},
    {"SGPR", "SGPR_Count"},
    {"Correlation_ID", "Correlation_Id"},
    {"Stop_Timestamp", "End_Timestamp"},
};

constexpr std::string_view kNames[] = {"Kernel_Name", "Function", "Message"};
constexpr std::string_view kNumbers[] = {
    "Process_Id",       "Thread_Id",        "Queue_Id",         "Stream_Id",     "Dispatch_Id", "Kernel_Id",
    "Correlation_Id",   "Timestamp",        "Start_Timestamp",  "End_Timestamp", "DispatchNs",  "CompleteNs",
    "DurationNs",       "Gpu_Id",           "LDS_Block_Size",   "Scratch_Size",  "VGPR_Count",  "Accum_VGPR_Count",
    "SGPR_Count",       "Grid_Size",        "Grid_Size_X",      "Grid_Size_Y",   "Grid_Size_Z", "Workgroup_Size",
    "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z", "Counter_Value", "Size_Bytes",  "Allocation_Size",
    "Address",          "ROCTX_ID",         "queue-index",      "wave_size",     "Wave_Size",   "sig"};

// Further columns, whose cells are texts.
constexpr std::string_view kTexts[] = {"Kind",
                                       "Agent_Id",
                                       "Agent_Type",
                                       "Counter_Name",
                                       "Domain",
                                       "Source_Agent_Id",
                                       "Destination_Agent_Id",
                                       "Direction",
                                       "Operation",
                                       "Alloc_Flags",
                                       "Node_Id",
                                       "Logical_Node_Id",
                                       "Model_Name",
                                       "Product_Name",
                                       "Vendor_Name"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool unknown_cell(std::string_view cell) {
  const CellNumber number = parse_number(cell);
  return number.ok && std::isnan(number.value);
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A number as tools write it: no leading zeros, which only parts of "1,000,234" have.
bool looks_like_number(std::string_view cell) {
  cell = trimmed(cell);
  if (unknown_cell(cell)) return true;
  if (cell.size() > 1 && cell[0] == '0' && all_digits(cell)) return false;
  int64_t value = 0;
  return whole(cell, value) || parse_number(cell).ok;
}

bool is_one_of(std::span<const std::string_view> list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

std::string rows_are(int64_t rows) {
  return fmt::format("{} row{}", rows, rows == 1 ? "" : "s");
}

}  // namespace

bool whole(std::string_view text, int64_t& value) {
  text = trimmed(text);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  const char* const end = text.data() + text.size();
  if (base == 10 && text.starts_with('-')) {
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec == std::errc() && parsed.ptr == end) return true;
  } else {
    uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), end, number, base);
    value = static_cast<int64_t>(number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return true;
    if (parsed.ec != std::errc() || base == 16) return false;
  }
  double fraction = 0;
  return text.find_first_of(".eE") != std::string_view::npos && parse_timestamp(text, value, fraction) && fraction == 0;
}

std::string_view column_name(std::string_view name) {
  name = trimmed(name);
  for (const auto& [older, ours] : kOlderColumns)
    if (older == name) return ours;
  // Scripts that pass tables on write "kernel_name" or "Kernel Name".
  const auto letter = [](char c) {
    return c == ' ' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const auto same = [&](std::string_view ours) { return std::ranges::equal(ours, name, {}, letter, letter); };
  for (const std::span<const std::string_view> list :
       {std::span<const std::string_view>(kNames), std::span<const std::string_view>(kNumbers),
        std::span<const std::string_view>(kTexts)})
    if (const auto found = std::ranges::find_if(list, same); found != list.end()) return *found;
  return name;
}

Result<CsvRows> CsvRows::open(const std::string& path) {
  TACHO_ASSIGN(source::SourceStream stream, source::SourceStream::open(path));
  const auto shared = std::make_shared<source::SourceStream>(std::move(stream));
  // Some spreadsheets end lines with a carriage return alone.
  enum class Ends : uint8_t { kUnknown, kUsual, kReturns };
  CsvRows rows(CsvReader::from_bytes(
      [shared, ends = Ends::kUnknown](char* to, size_t size) mutable -> Result<size_t> {
        const size_t got = shared->read(to, size);
        if (got == 0) TACHO_TRY(Status(shared->status()));
        if (ends == Ends::kUnknown) {
          const std::string_view text(to, got);
          const size_t first = text.find('\r');  // as the last one it may be half of an end
          const bool returns =
              first != std::string_view::npos && first + 1 < got && text.find('\n') == std::string_view::npos;
          ends = returns ? Ends::kReturns : Ends::kUsual;
        }
        if (ends == Ends::kReturns) std::replace(to, to + got, '\r', '\n');
        return got;
      },
      path));
  rows.stream_ = shared;
  TACHO_ASSIGN(const bool any, rows.header());
  if (!any) return fail("{}: it is empty: not one of rocprofv3's files", path);
  for (size_t i = 0; i < rows.columns_.size(); ++i) {
    if (is_one_of(kNames, rows.columns_[i])) rows.names_.push_back(i);
    if (is_one_of(kNumbers, rows.columns_[i])) rows.numbers_.push_back(i);
  }
  return rows;
}

// The first line with names of columns; lines of a log or comments may stand in front of it. Without such a line the
// first one is the header. False if the file is empty.
Result<bool> CsvRows::header() {
  std::vector<std::string> first;
  for (int64_t line = 0; line <= kMostLinesBefore; ++line) {
    TACHO_ASSIGN(const bool any, reader_.next(fields_));
    if (!any) break;
    if (fields_.size() == 1 && fields_[0].empty()) continue;
    columns_.clear();
    for (const std::string_view name : fields_) columns_.emplace_back(column_name(name));
    const auto known = std::ranges::count_if(columns_, [](const std::string& name) {
      return is_one_of(kNames, name) || is_one_of(kNumbers, name) || is_one_of(kTexts, name);
    });
    if (known >= 2 || (line == 0 && known == 1)) return true;  // process_info's has one
    if (first.empty()) first = columns_;
    ++lines_before_;
  }
  columns_ = std::move(first);
  lines_before_ = 0;
  return !columns_.empty();
}

bool CsvRows::is_header_again() const {
  return fields_.size() > 1 && std::ranges::equal(fields_, columns_, {}, column_name);
}

int CsvRows::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

Status CsvRows::require(std::string_view what, std::initializer_list<std::string_view> names) const {
  std::string missing;
  size_t count = 0;
  for (const std::string_view name : names) {
    if (column(name) >= 0) continue;
    if (count++ > 0) missing += ", ";
    missing += name;
  }
  if (count == 0) return {};
  return fail("{}: its header has no column{} {}, which {} needs", name(), count == 1 ? "" : "s", missing, what);
}

void CsvRows::RowCount::add(uint64_t row) {
  if (++rows <= 3) first += fmt::format("{}{}", rows == 1 ? "" : ", ", row);
  if (rows == 4) first += ", ...";
}

Result<bool> CsvRows::next() {
  for (;;) {
    TACHO_ASSIGN(const bool more, next_record());
    if (!more) return false;
    if (fields_.size() == columns_.size()) {
      if (is_header_again()) {
        ++headers_again_;
        continue;
      }
      cells_.assign(fields_.begin(), fields_.end());
    } else if (!fit()) {
      if (refused_.rows == 0) refused_cells_ = fields_.size();
      refused_.add(reader_.row());
      cut_off_ = reader_.unterminated() && fields_.size() < columns_.size();
      continue;
    }
    ++read_;
    return true;
  }
}

Result<bool> CsvRows::next_record() {
  for (;;) {
    TACHO_ASSIGN(const bool more, reader_.next(fields_));
    // rocprof v2 has an empty line behind the header.
    if (!more || fields_.size() > 1 || columns_.size() == 1 || !fields_[0].empty()) return more;
  }
}

bool CsvRows::fit() {
  if (fields_.size() < columns_.size()) return without_two_times();
  // A comma behind the last cell.
  if (std::all_of(fields_.begin() + static_cast<ptrdiff_t>(columns_.size()), fields_.end(),
                  [](std::string_view cell) { return cell.empty(); })) {
    cells_.assign(fields_.begin(), fields_.begin() + static_cast<ptrdiff_t>(columns_.size()));
    if (numbers_parse(cells_)) return true;
  }
  return drop_index() || join_name();
}

// rocprof v2 gives its newer columns to the header of v1, but not their cells.
bool CsvRows::without_two_times() {
  const int before = column("DispatchNs"), after = column("CompleteNs");
  if (before < 0 || after < 0 || fields_.size() + 2 != columns_.size()) return false;
  cells_.clear();
  size_t at = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const bool none = static_cast<int>(i) == before || static_cast<int>(i) == after;
    cells_.push_back(none ? std::string_view() : fields_[at++]);
  }
  return numbers_parse(cells_);
}

// pandas and R write an index without giving it a name.
bool CsvRows::drop_index() {
  int64_t index = 0;
  if (fields_.size() != columns_.size() + 1 || !whole(fields_[0], index)) return false;
  cells_.assign(fields_.begin() + 1, fields_.end());
  return numbers_parse(cells_);
}

bool CsvRows::join_name() {
  if (names_.size() != 1) return false;
  const size_t at = names_[0], surplus = fields_.size() - columns_.size();
  joined_.clear();
  int64_t depth = 0;
  for (size_t i = at; i <= at + surplus; ++i) {
    // A number beside a name, outside of its brackets, is no part of it: "1,000" has a comma, too.
    if (depth <= 0 && all_digits(trimmed(fields_[i]))) return false;
    if (i > at) joined_ += reader_.separator();
    joined_ += fields_[i];
    for (const char c : fields_[i])
      depth += c == '<' || c == '(' || c == '[' || c == '{' ? 1 : c == '>' || c == ')' || c == ']' || c == '}' ? -1 : 0;
  }
  cells_.assign(fields_.begin(), fields_.begin() + static_cast<ptrdiff_t>(at));
  cells_.push_back(joined_);
  cells_.insert(cells_.end(), fields_.begin() + static_cast<ptrdiff_t>(at + surplus + 1), fields_.end());
  if (!numbers_parse(cells_)) return false;
  ++joined_rows_;
  return true;
}

bool CsvRows::numbers_parse(const std::vector<std::string_view>& cells) const {
  return std::all_of(numbers_.begin(), numbers_.end(), [&](size_t at) { return looks_like_number(cells[at]); });
}

std::string_view CsvRows::text(int column) const {
  return column >= 0 ? cells_[static_cast<size_t>(column)] : std::string_view();
}

int64_t CsvRows::number(int column, int64_t missing) const {
  int64_t value;
  const std::string_view cell = text(column);
  return !cell.empty() && whole(cell, value) ? value : missing;
}

int64_t CsvRows::time(int column, bool& known) {
  const std::string_view cell = text(column);
  int64_t value = event::kUnknown;
  known = true;
  if (!cell.empty() && whole(cell, value)) {
    if (std::fabs(static_cast<double>(value)) > kExact && cell.find_first_of(".eE") != std::string_view::npos)
      largest_float_ = std::max(largest_float_, std::fabs(static_cast<double>(value)));
    if (const double step = value == 0 ? 0 : last_digit(trimmed(cell)); step > 0)
      finest_step_ = finest_step_ == 0 ? step : std::min(finest_step_, step);
    return value;
  }
  known = !unknown_cell(cell);
  return event::kUnknown;
}

bool CsvRows::rounded_away(int start, int end) const {
  return tacho::rounded_away(trimmed(text(start)), trimmed(text(end)));
}

void CsvRows::refuse_time(int column) {
  if (bad_times_.rows == 0) bad_time_ = valid_utf8(text(column).substr(0, 40));
  bad_times_.add(reader_.row());
}

Status CsvRows::finish(trace::TraceWriter& writer, event::Table table) const {
  if (refused_.rows > 0 && read_ == 0)
    return fail("{}: its header has {} columns, but {} cells: not one of {} can be read", name(), columns_.size(),
                refused_.rows == 1 ? fmt::format("its row has {}", refused_cells_)
                                   : fmt::format("its first row has {}", refused_cells_),
                rows_are(refused_.rows));
  if (refused_.rows + bad_times_.rows > 0)
    writer.lose(0, table, event::LossReason::kBadInput, refused_.rows + bad_times_.rows);
  say(writer);
  return {};
}

void CsvRows::say(trace::TraceWriter& writer) const {
  using event::NoteSeverity;
  const auto numbered = [](const RowCount& count) {
    return fmt::format("{} {}", count.rows == 1 ? "row" : "rows", count.first);
  };
  if (refused_.rows > 0)
    writer.note(0, NoteSeverity::kWarning,
                fmt::format("{}: {} not read: the header has {} columns, {} {} {} cells{}", name(),
                            rows_are(refused_.rows), columns_.size(), numbered(refused_),
                            refused_.rows == 1 ? "has" : "have another number:", refused_cells_,
                            cut_off_ ? "; the last row is cut off" : ""));
  if (bad_times_.rows > 0)
    writer.note(0, NoteSeverity::kWarning,
                fmt::format("{}: {} not read: \"{}\" is no time in ns ({})", name(), rows_are(bad_times_.rows),
                            bad_time_, numbered(bad_times_)));
  if (const std::string foreign = stream_ ? stream_->foreign_bytes() : ""; !foreign.empty())
    writer.note(0, NoteSeverity::kWarning, fmt::format("{}: {}", name(), foreign));
  if (lines_before_ > 0)
    writer.note(0, NoteSeverity::kInfo,
                fmt::format("{}: {} before the header {} not read", name(),
                            lines_before_ == 1 ? "1 line" : fmt::format("{} lines", lines_before_),
                            lines_before_ == 1 ? "is" : "are"));
  if (headers_again_ > 0)
    writer.note(0, NoteSeverity::kInfo,
                fmt::format("{}: the header comes {} more: files were put together", name(),
                            headers_again_ == 1 ? "once" : fmt::format("{} times", headers_again_)));
  if (joined_rows_ > 0)
    writer.note(0, NoteSeverity::kInfo,
                fmt::format("{}: {} had a {} in an unquoted name", name(), rows_are(joined_rows_),
                            reader_.separator() == ',' ? "comma" : "separator"));
  if (finest_step_ >= kCoarseTime)
    writer.note(
        0, NoteSeverity::kWarning,
        fmt::format("{}: its times were saved with few digits, as spreadsheets do: they are rounded to steps of "
                    "{:.15g} ns",
                    name(), finest_step_));
  else if (largest_float_ > 0)
    writer.note(0, NoteSeverity::kWarning,
                fmt::format("{}: its times were saved as floating-point numbers, as pandas does: they are rounded to "
                            "steps of {} ns",
                            name(), std::nextafter(largest_float_, INFINITY) - largest_float_));
}

}  // namespace tacho::format::rocprofv3_csv
