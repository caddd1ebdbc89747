// Finds display names (names.h).
#include "walk/names/names.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <tuple>

#include "base/files/temporary.h"
#include "base/format.h"
#include "base/text/demangle.h"

namespace tacho::walk {

namespace column = event::column;
using event::Table;

std::string_view KernelNames::name(int64_t kernel) {
  const int64_t string = trace_.cell(Table::kKernel, kernel, column::Kernel::name);
  const std::string_view raw = trace_.string(string);
  if (!naming_.truncate && (naming_.mangled || !may_be_mangled(raw))) return raw;
  int64_t& where = names_.of(string);
  if (where != 0) {
    const char* const at = reinterpret_cast<const char*>(where);
    uint32_t length;
    std::memcpy(&length, at, sizeof length);
    return {at + sizeof length, length};
  }
  const std::string shown = naming_.mangled ? std::string(raw) : demangle(raw);
  return keep(naming_.truncate ? short_name(shown) : shown, where);
}

// Keeps names in blocks: the first ones in memory, the others in temporary files.
std::string_view KernelNames::keep(std::string_view text, int64_t& where) {
  constexpr size_t kBlock = 4u << 20, kInMemory = 8;
  const auto length = static_cast<uint32_t>(text.size());
  const size_t bytes = sizeof length + length;
  if (room_ - used_ < bytes) {
    room_ = std::max(kBlock, bytes);
    used_ = 0;
    blocks_.emplace_back(room_, blocks_.size() < kInMemory ? std::string() : temporary_folder());
  }
  char* const at = static_cast<char*>(blocks_.back().data()) + used_;
  used_ += bytes;
  std::memcpy(at, &length, sizeof length);
  std::memcpy(at + sizeof length, text.data(), length);
  where = reinterpret_cast<int64_t>(at);
  return {at + sizeof length, length};
}

int64_t KernelNames::id(int64_t kernel) {
  if (const auto own = trace_.property(Table::kKernel, kernel, "kernel_id")) {
    int64_t value = 0;
    if (std::from_chars(own->data(), own->data() + own->size(), value).ec == std::errc()) return value;
  }
  const int64_t string = trace_.cell(Table::kKernel, kernel, column::Kernel::name);
  int64_t& id = ids_.of(string);
  if (id == 0) id = ++last_id_;
  return id;
}

Threads::Threads(const trace::Trace& trace) {
  const int64_t rows = trace.rows(Table::kThread);
  std::vector<std::tuple<int64_t, bool, int64_t, int64_t>> order;  // process, not main, tid, row
  for (int64_t row = 1; row < rows; ++row) {
    const int64_t process = trace.cell(Table::kThread, row, column::Thread::process);
    const int64_t tid = trace.cell(Table::kThread, row, column::Thread::tid);
    order.emplace_back(process, tid != trace.cell(Table::kProcess, process, column::Process::pid), tid, row);
  }
  std::sort(order.begin(), order.end());
  index_.resize(static_cast<size_t>(std::max<int64_t>(rows, 1)));
  int64_t process = -1, next = 0;
  for (const auto& [owner, other, tid, row] : order) {
    if (owner != process) {
      process = owner;
      next = other ? 1 : 0;
    }
    index_[static_cast<size_t>(row)] = next++;
  }
}

Table dimension_of(Table fact) {
  return event::table_info(fact).columns[column::Fact::dim].target;
}

std::string_view name_of_event(const trace::Trace& trace, Table fact, int64_t dim) {
  const event::TableInfo& dimension = event::table_info(dimension_of(fact));
  for (const event::Type type : {event::Type::kString, event::Type::kEnum})
    for (size_t i = 0; i < dimension.columns.size(); ++i) {
      if (dimension.columns[i].type != type) continue;
      const int64_t cell = trace.cell(dimension.table, dim, static_cast<int>(i));
      const std::string_view text =
          type == event::Type::kString ? trace.string(cell) : dimension.columns[i].enumeration->text(cell);
      if (!text.empty()) return text;
    }
  return event::table_info(fact).name;
}

std::string cell_text(const trace::Trace& trace, const event::Column& column, int64_t cell) {
  if (cell == event::kUnknown) return {};
  switch (column.type) {
    case event::Type::kString:
      return std::string(trace.string(cell));
    case event::Type::kEnum:
      return std::string(column.enumeration->text(cell));
    case event::Type::kDouble:
      return fmt::format("{}", std::bit_cast<double>(cell));
    case event::Type::kId:
      return fmt::format("{}", static_cast<uint64_t>(cell));
    case event::Type::kRow:
      return {};
    default:
      return fmt::format("{}", cell);
  }
}

}  // namespace tacho::walk
