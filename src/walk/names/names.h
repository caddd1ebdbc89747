// Names of kernels and threads for exports.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "walk/filter.h"
#include "walk/hash_ids.h"

namespace tacho::walk {

/// Display names of kernels as `naming` asks for; computes each one once.
class KernelNames {
 public:
  KernelNames(const trace::Trace& trace, const Naming& naming)
      : trace_(trace),
        naming_(naming),
        names_(trace.rows(event::Table::kString)),
        ids_(trace.rows(event::Table::kString)) {}
  /// The name of a row of table kernel. Valid as long as this object.
  std::string_view name(int64_t kernel);
  /// A number for the kernel, whatever its launch shape: the source's own (property kernel_id), else numbered from 1 in
  /// order of first use.
  int64_t id(int64_t kernel);

 private:
  const trace::Trace& trace_;
  Naming naming_;
  std::string_view keep(std::string_view text, int64_t& where);
  RowNumbers names_;  // by string row: place of the name, its length first; only if it differs from the string
  RowNumbers ids_;
  int64_t last_id_ = 0;
  std::vector<trace::Scratch> blocks_;
  size_t used_ = 0, room_ = 0;  // of the last block
};

/// Numbers the threads of each process in the order of their tids; the main thread, whose tid is the pid, is number 0.
class Threads {
 public:
  explicit Threads(const trace::Trace& trace);
  /// The thread's number in its process; 0 for row 0.
  int64_t index(int64_t thread) const {
    return thread > 0 && thread < static_cast<int64_t>(index_.size()) ? index_[static_cast<size_t>(thread)] : 0;
  }

 private:
  std::vector<int64_t> index_;
};

/// The table of a timed fact's dimension.
event::Table dimension_of(event::Table fact);
/// An event's name, for tables without a special rule: the first text among its dimension's columns, else the first
/// enumerator, else the table's name.
std::string_view name_of_event(const trace::Trace& trace, event::Table fact, int64_t dim);
/// A column's cell as text: numbers, texts, enumerators; "" for unknown values and references to rows.
std::string cell_text(const trace::Trace& trace, const event::Column& column, int64_t cell);

}  // namespace tacho::walk
