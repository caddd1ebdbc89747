// Names of kernels and threads for exports.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "format/view/hash_ids.h"
#include "trace/trace.h"

namespace tacho::format {

/// Display names of kernels (options mangled, truncate); computes each one once.
class KernelNames {
 public:
  KernelNames(const trace::Trace& trace, const ExportOptions& options)
      : trace_(trace),
        options_(options),
        names_(trace.rows(event::Table::kString)),
        ids_(trace.rows(event::Table::kString)) {}
  /// The name of a row of table kernel. Valid as long as this object.
  std::string_view name(int64_t kernel);
  /// A number for the kernel, whatever its launch shape: the source's own (property kernel_id), else numbered from 1 in
  /// order of first use.
  int64_t id(int64_t kernel);

 private:
  const trace::Trace& trace_;
  ExportOptions options_;
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

/// rocprofv3's dispatch ids count from 1, a trace's ordinals from 0; kUnknown for none, and for the last number there
/// is.
inline int64_t dispatch_id(int64_t ordinal) {
  return ordinal == event::kUnknown || ordinal == std::numeric_limits<int64_t>::max() ? event::kUnknown : ordinal + 1;
}

/// "MEMORY_COPY_HOST_TO_DEVICE" and so on.
std::string_view copy_direction_name(int64_t direction);
/// "MEMORY_ALLOCATION_ALLOCATE" or "MEMORY_ALLOCATION_FREE", for a cell of AllocationOperation.
std::string_view allocation_name(int64_t operation);
bool is_free(int64_t operation);
/// The API of a domain as it appears in rocprofv3's file names ("hip", "opencl", "cuda"); "" for kUnknown.
std::string_view api_of(event::Domain domain);
/// The text in column Domain of an API trace: "HIP_RUNTIME_API_EXT", "OPENCL_API", "CUDA_DRIVER_API" ...
std::string_view api_domain_name(event::Domain domain);
/// The domain for a kind of calls in rocprofv3's files: the names of api_domain_name() and rocprofv3's other kinds
/// ("HIP_COMPILER_API", "HSA_AMD_EXT_API"); kHost for calls of other libraries.
event::Domain domain_of_kind(std::string_view kind);
/// The domain in a cell; kUnknown if the value is invalid.
event::Domain domain_of(int64_t cell);

}  // namespace tacho::format
