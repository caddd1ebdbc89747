// Display names and their numbers (names.h).
#include "view/index/names.h"

#include "analysis/call_kind.h"
#include "base/text/demangle.h"
#include "trace/read/rows.h"
#include "trace/store/hash.h"
#include "vendor/collective_kernels.h"
#include "walk/hash_ids.h"
#include "walk/names/names.h"

namespace tacho::view {

using event::Table;
namespace column = event::column;

std::span<const Table> slice_tables() {
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy,  Table::kFill,     Table::kMarker,
                                      Table::kApi,      Table::kSync,  Table::kOverhead, Table::kAllocation,
                                      Table::kMessage,  Table::kSample};
  return kTables;
}

std::string display_name(const trace::Trace& trace, Table fact, int64_t dim) {
  const auto enum_text = [&]<typename E>(Table table, int at, E) {
    return std::string(event::to_string(event::from_cell<E>(trace.cell(table, dim, at))));
  };
  switch (fact) {
    case Table::kDispatch:
      return demangle(trace.text(Table::kKernel, dim, column::Kernel::name));
    case Table::kApi:
      return std::string(trace.text(Table::kFunction, dim, column::Function::name));
    case Table::kCopy:
      return enum_text(Table::kCopyShape, column::CopyShape::direction, event::CopyDirection());
    case Table::kFill:
      return "fill " + enum_text(Table::kFillShape, column::FillShape::memory, event::MemoryKind());
    case Table::kMarker:
      return std::string(trace.text(Table::kLabel, dim, column::Label::name));
    case Table::kSync:
      return enum_text(Table::kSyncShape, column::SyncShape::kind, event::SyncKind());
    case Table::kOverhead: {
      const std::string_view name = trace.text(Table::kOverheadShape, dim, column::OverheadShape::name);
      return name.empty() ? enum_text(Table::kOverheadShape, column::OverheadShape::kind, event::OverheadKind())
                          : std::string(name);
    }
    case Table::kAllocation: {
      const std::string_view what = trace.text(Table::kAllocationShape, dim, column::AllocationShape::name);
      std::string name =
          enum_text(Table::kAllocationShape, column::AllocationShape::operation, event::AllocationOperation());
      if (!what.empty()) name += fmt::format(" {}", what);
      return name;
    }
    case Table::kSample: {
      const int64_t frame = trace.cell(Table::kStack, dim, column::Stack::frame);
      const std::string_view function = trace.text(Table::kFrame, frame, column::Frame::function);
      return function.empty() ? std::string(trace.text(Table::kFrame, frame, column::Frame::module))
                              : demangle(function);
    }
    default:
      return std::string(walk::name_of_event(trace, fact, dim));
  }
}

std::string_view to_string(NameKind kind) {
  static constexpr std::string_view kNames[] = {"kernel",   "collective", "copy",   "api",
                                                "operator", "host",       "marker", "wait"};
  return kNames[static_cast<size_t>(kind)];
}

uint32_t colour_of(std::string_view text, NameKind kind) {
  struct Hues {
    uint32_t first, count;
  };
  // In the order of NameKind; web/src/view/colour.ts has the middle of each.
  static constexpr Hues kHues[] = {{134, 45}, {283, 25}, {50, 21}, {192, 27}, {88, 25}, {240, 29}, {332, 29}, {12, 25}};
  constexpr uint32_t kLightnesses = 4;
  const Hues& hues = kHues[static_cast<size_t>(kind)];
  const uint64_t hash = trace::hash_128(text).low;
  return hues.first + static_cast<uint32_t>(hash % hues.count) +
         360 * static_cast<uint32_t>(hash / hues.count % kLightnesses);
}

SliceNames::SliceNames(const trace::Trace& trace, const SliceNames* before)
    : trace_(trace), numbers_(static_cast<size_t>(Table::kEnd)) {
  walk::HashIds ids;  // from 1
  const auto number_of = [&](std::string_view text, Table fact, int64_t dim) {
    if (text.empty()) return uint32_t{0};
    int64_t& id = ids.of(text);
    if (id == 0) {
      id = static_cast<int64_t>(first_.size());
      first_.push_back({fact, static_cast<uint32_t>(dim)});
      communicates_.push_back(fact == Table::kDispatch && vendor::is_collective_kernel(text));
    }
    return static_cast<uint32_t>(id);
  };
  first_.push_back({Table::kEnd, 0});
  communicates_.push_back(false);
  // A growing recording appends rows to its dimensions: the same row has the same name.
  for (uint32_t i = 1; before != nullptr && kept_ && i < before->size(); ++i) {
    const auto [fact, dim] = before->first_[i];
    const bool there = static_cast<int64_t>(dim) < trace.rows(walk::dimension_of(fact));
    const std::string text = there ? display_name(trace, fact, dim) : std::string();
    kept_ = there && text == before->text(i) && number_of(text, fact, dim) == i;
  }
  for (const Table fact : slice_tables()) {
    const int64_t rows = trace.rows(walk::dimension_of(fact));
    if (trace.rows(fact) == 0 && !trace.aggregated()) continue;
    Numbers& numbers = numbers_[static_cast<size_t>(fact)];
    numbers.rows = static_cast<uint64_t>(rows);
    numbers.values = trace::Scratch::temporary(numbers.rows * sizeof(uint32_t) + 8);
    auto* const values = static_cast<uint32_t*>(numbers.values.data());
    // Rows that differ only in the shape of a launch come one after the other with the same string.
    int64_t last_string = -1;
    for (int64_t dim = 0; dim < rows; ++dim) {
      if (fact == Table::kDispatch) {
        const int64_t string = trace.cell(Table::kKernel, dim, column::Kernel::name);
        if (string == last_string) {
          values[dim] = values[dim - 1];
          continue;
        }
        last_string = string;
      }
      values[dim] = number_of(display_name(trace, fact, dim), fact, dim);
    }
  }
  framework_.assign(first_.size(), false);
  std::vector<bool> other(first_.size());
  for (int64_t dim = 0; dim < static_cast<int64_t>(numbers_[static_cast<size_t>(Table::kApi)].rows); ++dim) {
    const auto domain = event::from_cell<event::Domain>(trace.cell(Table::kFunction, dim, column::Function::domain));
    const bool framework = analysis::call_kind(domain, trace.text(Table::kFunction, dim, column::Function::name)) ==
                           analysis::CallKind::kNone;
    (framework ? framework_ : other)[of(Table::kApi, dim)] = true;
  }
  for (size_t i = 0; i < other.size(); ++i)
    if (other[i]) framework_[i] = false;
  for (uint32_t i = 1; i < first_.size(); ++i) kinds_ |= uint32_t{1} << static_cast<unsigned>(kind(i));
}

NameKind SliceNames::kind(uint32_t number) const {
  switch (table(number)) {
    case Table::kDispatch:
      return communicates(number) ? NameKind::kCollective : NameKind::kKernel;
    case Table::kCopy:
    case Table::kFill:
      return NameKind::kCopy;
    case Table::kMarker:
      return NameKind::kMarker;
    case Table::kMessage:
      return NameKind::kCollective;
    case Table::kSample:
      return NameKind::kHost;
    case Table::kApi:
      switch (event::from_cell(trace::cell<column::Function::domain>(trace_, first_[number].dim))) {
        case event::Domain::kOperator:
          return NameKind::kOperator;
        case event::Domain::kPython:
        case event::Domain::kHost:
          return NameKind::kHost;
        case event::Domain::kMarker:
          return NameKind::kMarker;
        case event::Domain::kMpi:
          return NameKind::kCollective;
        default:
          return NameKind::kApi;
      }
    default:
      return NameKind::kWait;
  }
}

std::string SliceNames::text(uint32_t number) const {
  if (number == 0 || number >= first_.size()) return {};
  return display_name(trace_, first_[number].table, first_[number].dim);
}

bool SliceNames::communicates(uint32_t number) const {
  return number < communicates_.size() && communicates_[number];
}

}  // namespace tacho::view
