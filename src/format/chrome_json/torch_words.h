// The words of torch.profiler's files: categories, names of copies and waits, numbers of devices, arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json_writer.h"
#include "trace/trace.h"
#include "walk/names/agents.h"

namespace tacho::format {

/// "cuda_runtime" (of HIP's functions, too), "cuda_driver", "opencl_runtime" ...; "cpu_op" and "python_function" for a
/// framework's own.
std::string call_category(event::Domain domain, std::string_view function);
/// "user_annotation"; the range's own category where it came without a domain and names no kind of work.
std::string_view range_category(std::string_view domain, std::string_view category);
/// "Memcpy HtoD (Pageable -> Device)" for a row of table copy_shape.
std::string copy_name(const trace::Trace& trace, int64_t shape);
/// "Memset (Device)" for a row of table fill_shape.
std::string fill_name(const trace::Trace& trace, int64_t shape);
/// "Stream Sync" and so on for a cell of SyncKind.
std::string_view sync_name(int64_t kind);

/// Adds the arguments of a launch: what torch.distributed told about a collective as its own members, anything else as
/// "arguments".
void put_arguments(std::vector<std::pair<std::string_view, std::string_view>>& scratch, std::string_view text,
                   JsonFileWriter& json);

/// Launch shapes as torch.profiler gives them: "grid" counts workgroups, "block" work-items. A grid that is no whole
/// number of workgroups, or whose workgroup the runtime chose, is given as "work-items".
void put_launch_shape(const trace::Trace& trace, int64_t kernel, JsonWriter& json);

/// Inputs of operators as torch.profiler gives them: "Input Dims" and so on.
class OperatorInputs {
 public:
  explicit OperatorInputs(const trace::Trace& trace)
      : trace_(trace), forms_(static_cast<size_t>(trace.rows(event::Table::kString))) {}
  /// Adds the members of a row of table operator_input; none for row 0.
  void put(int64_t row, JsonFileWriter& json);

 private:
  enum class Form : uint8_t { kUnknown, kJson, kText };
  const trace::Trace& trace_;
  std::vector<Form> forms_;  // by string, of those met so far
};

/// Numbers for devices in torch.profiler's sense: GPUs keep their index, every other device gets one that no GPU has.
class TorchDevices {
 public:
  TorchDevices(const trace::Trace& trace, const walk::Agents& agents);
  /// event::kUnknown for row 0.
  int64_t of(int64_t device) const { return numbers_[static_cast<size_t>(device)]; }
  /// Adds "blocks per SM" and "warps per SM" of a row of table kernel, if all devices are NVIDIA's with equally many
  /// multiprocessors.
  void put_load(int64_t kernel, JsonWriter& json) const;
  /// Adds the member deviceProperties.
  void put_properties(JsonFileWriter& json) const;

 private:
  void find_multiprocessors();
  const trace::Trace& trace_;
  std::vector<int64_t> numbers_;  // by row
  int64_t multiprocessors_ = 0;   // of each device; 0 = not known, or they differ
};

}  // namespace tacho::format
