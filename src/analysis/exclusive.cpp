// Self time of calls, markers and device work: exclusive() of questions.h.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analysis/host/host_kind.h"
#include "analysis/names.h"
#include "analysis/questions.h"
#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "trace/read/rows.h"
#include "trace/write/scratch.h"
#include "walk/names/names.h"
#include "walk/names/program_ranges.h"
#include "walk/sweep.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
using report::Answer;
using report::Unit;
namespace column = event::column;

namespace {

struct Sum {
  int64_t calls, total, own;
};

// The open intervals of a thread or device: the topmost gets the time; what ended below is dropped when it comes to
// the top.
class Line {
 public:
  void push(int64_t start, int64_t end, Sum* sum) {
    pass(start);
    now_ = start;
    stack_.push_back({end, sum});
  }
  void pass(int64_t to) {
    while (!stack_.empty()) {
      const Open& top = stack_.back();
      const int64_t until = std::min(to, top.end);
      if (until > now_) {
        add_saturating(top.sum->own, until - now_);
        now_ = until;
      }
      if (top.end > to) return;
      stack_.pop_back();
    }
    now_ = std::max(now_, to);
  }

 private:
  struct Open {
    int64_t end;
    Sum* sum;
  };
  std::vector<Open> stack_;
  int64_t now_ = 0;
};

// A sum for every row of every table that has names, one table after the other. Rows with one name become one.
class NamedSums {
 public:
  // Kinds of the host, GPU work, and last what only waits.
  enum Kind : size_t { kApi, kOperator, kPython, kFunction, kMarker, kGpu, kWait, kEnd };
  static constexpr std::string_view kKinds[] = {"API", "operator", "Python", "function", "marker", "GPU", "wait"};

  explicit NamedSums(const trace::Trace& trace) : trace_(trace) {
    for (Named& table : tables_) {
      table.from = rows_;
      table.count = std::max<int64_t>(trace.rows(walk::dimension_of(table.facts)), 1);
      rows_ += table.count;
    }
    scratch_ = trace::Scratch::temporary(static_cast<size_t>(rows_) * sizeof(Sum));
    sums_ = static_cast<Sum*>(scratch_.data());
  }

  int64_t rows() const { return rows_; }
  const Sum& operator[](int64_t row) const { return sums_[row]; }
  /// Own time of all rows of a kind.
  int64_t all(Kind kind) const { return all_[kind]; }

  Status add_host() {
    static constexpr Table kHost[] = {Table::kMarker, Table::kApi};
    return add(kHost, [](const walk::RowSlice& slice) { return slice.track; });
  }
  Status add_devices() {
    static constexpr Table kOperations[] = {Table::kDispatch, Table::kCopy, Table::kFill};
    return add(kOperations,
               [&](const walk::RowSlice& slice) { return trace::cell<column::Track::device>(trace_, slice.track); });
  }

  /// Adds what has one name to the first row with it. Returns how many names there are.
  Result<size_t> merge() {
    TACHO_ASSIGN(const SameNames names,
                 SameNames::make(rows_, [&](int64_t row) { return std::to_string(kind_of(row)) + name_of(row); }));
    for (int64_t row = 0; row < rows_; ++row) {
      add_saturating(all_[kind_of(row)], sums_[row].own);
      Sum& first = sums_[names.first(row)];
      if (&first == &sums_[row]) continue;
      first.calls += sums_[row].calls;
      add_saturating(first.total, sums_[row].total);
      add_saturating(first.own, sums_[row].own);
      sums_[row].calls = 0;
    }
    return names.names();
  }

  Kind kind_of(int64_t row) const {
    const Named& table = table_of(row);
    if (table.facts == Table::kMarker) return kMarker;
    if (table.facts != Table::kApi) return kGpu;
    const int64_t function = row - table.from;
    switch (host_kind(event::from_cell(trace::cell<column::Function::domain>(trace_, function)),
                      trace::text<column::Function::name>(trace_, function))) {
      case HostKind::kOperator:
        return kOperator;
      case HostKind::kPython:
        return kPython;
      case HostKind::kFunction:
        return kFunction;
      case HostKind::kWait:
        return kWait;
      default:
        return kApi;
    }
  }
  std::string name_of(int64_t row) const {
    const Named& table = table_of(row);
    const int64_t dim = row - table.from;
    switch (table.facts) {
      case Table::kApi:
        return std::string(trace::text<column::Function::name>(trace_, dim));
      case Table::kMarker:
        return std::string(trace::text<column::Label::name>(trace_, dim));
      case Table::kDispatch:
        return demangle(trace::text<column::Kernel::name>(trace_, dim));
      case Table::kCopy:
        return fmt::format("copy {}",
                           event::to_string(event::from_cell(trace::cell<column::CopyShape::direction>(trace_, dim))));
      default:
        return fmt::format("fill {}",
                           event::to_string(event::from_cell(trace::cell<column::FillShape::memory>(trace_, dim))));
    }
  }

 private:
  struct Named {
    Table facts;
    int64_t from = 0, count = 0;
  };

  template <typename LineOf>
  Status add(std::span<const Table> facts, LineOf line_of) {
    TACHO_ASSIGN(const walk::ProgramRanges ranges, walk::ProgramRanges::make(trace_));
    std::unordered_map<int64_t, Line> lines;
    walk::Sweep sweep(trace_, facts, walk::kSweepDim);
    walk::RowSlice slice;
    while (sweep.next(slice)) {
      Line& line = lines[line_of(slice)];
      const Named& table =
          *std::find_if(tables_.begin(), tables_.end(), [&](const Named& one) { return one.facts == slice.table; });
      for (size_t i = 0; i < slice.rows; ++i) {
        const int64_t dim = slice.dim[i];
        if (slice.table == Table::kMarker && !ranges.has(slice.track, dim)) continue;
        Sum& sum = sums_[table.from + (dim >= 0 && dim < table.count ? dim : 0)];
        ++sum.calls;
        if (slice.duration[i] == kUnknown) continue;
        add_saturating(sum.total, slice.duration[i]);
        line.push(slice.start[i], slice.start[i] + slice.duration[i], &sum);
      }
    }
    for (auto& [at, line] : lines) line.pass(INT64_MAX);
    return Status(sweep.status());
  }
  const Named& table_of(int64_t row) const {
    return *std::find_if(tables_.rbegin(), tables_.rend(), [row](const Named& one) { return one.from <= row; });
  }

  const trace::Trace& trace_;
  std::array<Named, 5> tables_{{{Table::kApi}, {Table::kMarker}, {Table::kDispatch}, {Table::kCopy}, {Table::kFill}}};
  int64_t rows_ = 0;
  trace::Scratch scratch_;
  Sum* sums_ = nullptr;
  std::array<int64_t, kEnd> all_{};
};

}  // namespace

Result<Answer> exclusive(const trace::Trace& trace) {
  const auto sums = std::make_shared<NamedSums>(trace);
  TACHO_TRY(sums->add_host());
  TACHO_TRY(sums->add_devices());
  TACHO_ASSIGN(const size_t names, sums->merge());
  struct Place {
    NamedSums::Kind kind;
    int64_t own, row;
  };
  struct Before {
    std::shared_ptr<const NamedSums> sums;
    bool by_name;
    bool operator()(const Place& a, const Place& b) const {
      if (a.kind != b.kind) return a.kind < b.kind;
      if (a.own != b.own) return a.own > b.own;
      return by_name ? sums->name_of(a.row) < sums->name_of(b.row) : a.row < b.row;
    }
  };
  const auto places = std::make_shared<SortedFile<Place, Before>>(8u << 20, Before{sums, names <= kSortedByName});
  for (int64_t row = 0; row < sums->rows(); ++row)
    if ((*sums)[row].calls > 0) places->add({sums->kind_of(row), (*sums)[row].own, row});
  TACHO_TRY(places->finish());
  Answer answer;
  answer.when_empty = "no API calls, markers or GPU operations";
  answer.columns = {{"kind", "Kind", Unit::kText},
                    {"exclusive_ns", "Exclusive", Unit::kNs},
                    {"percent", "% of kind", Unit::kPercent},
                    {"total_ns", "Inclusive", Unit::kNs},
                    {"calls", "Calls", Unit::kCount},
                    {"name", "Name", Unit::kText}};
  answer.next = [sums, places](std::vector<report::Cell>& row) {
    Place place;
    if (!places->next(place)) return false;
    const Sum& sum = (*sums)[place.row];
    const int64_t all = sums->all(place.kind);
    row = {std::string(NamedSums::kKinds[place.kind]),
           sum.own,
           all > 0 ? report::Cell(static_cast<double>(sum.own) / static_cast<double>(all) * 100.0) : report::Cell(),
           sum.total,
           sum.calls,
           sums->name_of(place.row)};
    return true;
  };
  return answer;
}

}  // namespace tacho::analysis
