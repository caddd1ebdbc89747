// Kernels that carry out collectives (rank_kernels.h).
#include "ranks/read/rank_kernels.h"

#include <algorithm>
#include <string_view>

#include "trace/read/rows.h"
#include "vendor/collective_kernels.h"

namespace tacho::ranks {

using event::Table;
namespace column = event::column;

namespace {

// By row of a dimension; row 0 is false.
template <typename Test>
std::vector<bool> rows_that(const trace::Trace& trace, Table table, Test test) {
  std::vector<bool> rows(static_cast<size_t>(std::max<int64_t>(trace.rows(table), 1)), false);
  for (size_t row = 1; row < rows.size(); ++row) rows[row] = test(static_cast<int64_t>(row));
  return rows;
}

}  // namespace

RankKernels::RankKernels(const trace::Trace& trace, Names& names) : trace_(&trace), names_(&names) {
  is_collective_ = rows_that(trace, Table::kKernel, [&](int64_t row) {
    return vendor::is_collective_kernel(trace::text<column::Kernel::name>(trace, row));
  });
  numbers_.resize(is_collective_.size(), 0);
  first_of_name_.resize(is_collective_.size(), 0);
  operations_.resize(is_collective_.size(), Operation::kUnknown);
  std::unordered_map<uint64_t, size_t> first;
  for (size_t row = 1; row < numbers_.size(); ++row) {
    const std::string_view name = trace::text<column::Kernel::name>(trace, static_cast<int64_t>(row));
    numbers_[row] = names.number(name);
    first_of_name_[row] = first.try_emplace(numbers_[row], row).first->second;
    if (is_collective_[row]) operations_[row] = operation_of_kernel(name);
  }
}

Result<RankKernels> RankKernels::make(const trace::Trace& trace, int64_t process, Names& names) {
  RankKernels kernels(trace, names);
  TACHO_TRY(kernels.read_marks(process));
  return kernels;
}

// NCCL marks a collective right after it has launched the kernel, on the same thread: the mark belongs to the launch
// before it.
Status RankKernels::read_marks(int64_t process) {
  const std::vector<bool> is_mark = rows_that(*trace_, Table::kLabel, [&](int64_t row) {
    return trace::text<column::Label::domain>(*trace_, row) == "NCCL" &&
           trace::text<column::Label::name>(*trace_, row).starts_with("Collective name=");
  });
  if (std::find(is_mark.begin(), is_mark.end(), true) == is_mark.end()) return {};
  const std::vector<bool> launches = rows_that(*trace_, Table::kFunction, [&](int64_t row) {
    return trace::text<column::Function::name>(*trace_, row).find("LaunchKernel") != std::string_view::npos;
  });
  trace::RowCursor<column::Api::track, column::Api::dim, column::Api::correlation> calls(*trace_);
  trace::RowCursor<column::Marker::track, column::Marker::dim> marks(*trace_);
  struct Newest {
    int64_t correlation = 0;
    size_t place = SIZE_MAX;  // in marks_; SIZE_MAX = no mark yet
  };
  std::unordered_map<int64_t, Newest> launched;  // by thread
  bool more = calls.next();
  while (marks.next()) {
    if (!is_mark[static_cast<size_t>(marks->dim)]) continue;
    const auto track = trace::row<event::row::Track>(*trace_, marks->track);
    if (process != 0 && track.process != process) continue;
    for (; more && calls.start() <= marks.start(); more = calls.next())
      if (calls->correlation != 0 && launches[static_cast<size_t>(calls->dim)])
        launched[trace::cell<column::Track::thread>(*trace_, calls->track)] = {calls->correlation};
    const auto found = launched.find(track.thread);
    if (found == launched.end()) continue;
    Newest& newest = found->second;
    if (newest.place == SIZE_MAX) {
      newest.place = marks_.size();
      marks_.emplace_back();
      marks_of_.add(track.process, newest.correlation, newest.place);
    }
    marks_[newest.place].push_back(marks->dim);
  }
  TACHO_TRY(calls.status());
  TACHO_TRY(marks.status());
  return marks_of_.finish();
}

RankKernels::Collective RankKernels::by_arguments(int64_t arguments, size_t place) {
  const auto [found, fresh] = stated_.try_emplace(arguments);
  auto& [kept, communicator] = found->second;
  if (fresh) {
    kept = stated_by(trace_->string(arguments));
    communicator = names_->communicator(kept);
  }
  StatedCollective stated = kept;
  if (stated.operation == Operation::kUnknown) stated.operation = operations_[place];
  return {stated.operation, communicator,    message_bytes(stated, stated.group_size),
          stated.number,    stated.identity, stated.group_size};
}

// Of a kernel that carries out several: the whole of their messages; no operation when they differ.
RankKernels::Collective RankKernels::by_marks(const std::vector<int64_t>& labels, size_t place) {
  const auto stated_of = [&](int64_t label) { return stated_by(trace::text<column::Label::name>(*trace_, label)); };
  const StatedCollective first = stated_of(labels.front());
  Collective all{first.operation, names_->communicator(first), 0, first.number, first.identity, first.group_size};
  for (const int64_t label : labels) {
    const StatedCollective stated = stated_of(label);
    if (stated.operation != all.operation) all.operation = Operation::kUnknown;
    const int64_t bytes = message_bytes(stated, stated.group_size);
    all.bytes = bytes > 0 && all.bytes >= 0 ? all.bytes + bytes : -1;
  }
  if (all.operation == Operation::kUnknown) all.operation = operations_[place];
  all.bytes = all.operation == Operation::kUnknown ? 0 : std::max<int64_t>(all.bytes, 0);
  return all;
}

std::optional<RankKernels::Collective> RankKernels::collective(size_t place, int64_t arguments, int64_t process,
                                                               int64_t correlation) {
  const bool by_name = is_collective_[place];
  if (arguments != 0 && (by_name || trace_->string(arguments).starts_with("Collective name=")))
    return by_arguments(arguments, place);
  if (!by_name) return std::nullopt;
  const size_t* const marks = marks_of_.find(process, correlation);
  return marks != nullptr ? by_marks(marks_[*marks], place) : by_arguments(0, place);
}

}  // namespace tacho::ranks
