// Finds display names (names.h).
#include "format/view/names.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <tuple>

#include "base/files/temporary.h"
#include "base/format.h"
#include "base/text/demangle.h"

namespace tacho::format {

namespace column = event::column;
using event::Domain;
using event::Table;

std::string_view KernelNames::name(int64_t kernel) {
  const int64_t string = trace_.cell(Table::kKernel, kernel, column::Kernel::name);
  const std::string_view raw = trace_.string(string);
  if (!options_.truncate && (options_.mangled || !may_be_mangled(raw))) return raw;
  int64_t& where = names_.of(string);
  if (where != 0) {
    const char* const at = reinterpret_cast<const char*>(where);
    uint32_t length;
    std::memcpy(&length, at, sizeof length);
    return {at + sizeof length, length};
  }
  const std::string shown = options_.mangled ? std::string(raw) : demangle(raw);
  return keep(options_.truncate ? short_name(shown) : shown, where);
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

std::string_view copy_direction_name(int64_t direction) {
  switch (static_cast<event::CopyDirection>(direction)) {
    case event::CopyDirection::kHostToHost:
      return "MEMORY_COPY_HOST_TO_HOST";
    case event::CopyDirection::kHostToDevice:
      return "MEMORY_COPY_HOST_TO_DEVICE";
    case event::CopyDirection::kDeviceToHost:
      return "MEMORY_COPY_DEVICE_TO_HOST";
    case event::CopyDirection::kDeviceToDevice:
      return "MEMORY_COPY_DEVICE_TO_DEVICE";
    case event::CopyDirection::kPeerToPeer:
      return "MEMORY_COPY_PEER_TO_PEER";
    default:
      return "MEMORY_COPY_UNKNOWN";
  }
}

bool is_free(int64_t operation) {
  return operation == static_cast<int64_t>(event::AllocationOperation::kFree);
}
std::string_view allocation_name(int64_t operation) {
  return is_free(operation) ? "MEMORY_ALLOCATION_FREE" : "MEMORY_ALLOCATION_ALLOCATE";
}

std::string_view api_of(Domain domain) {
  switch (domain) {
    case Domain::kOpenCL:
      return "opencl";
    case Domain::kCudaRuntime:
    case Domain::kCudaDriver:
      return "cuda";
    case Domain::kHipRuntime:
    case Domain::kHipCompiler:
      return "hip";
    case Domain::kHsa:
      return "hsa";
    case Domain::kRccl:
      return "rccl";
    case Domain::kMarker:
      return "marker";
    case Domain::kPython:
      return "python";
    case Domain::kMpi:
      return "mpi";
    case Domain::kHost:
      return "host";
    case Domain::kOperator:
      return "operator";
    default:
      return "";
  }
}

std::string_view api_domain_name(Domain domain) {
  switch (domain) {
    case Domain::kOpenCL:
      return "OPENCL_API";
    case Domain::kCudaRuntime:
      return "CUDA_RUNTIME_API";
    case Domain::kCudaDriver:
      return "CUDA_DRIVER_API";
    case Domain::kHipRuntime:
      return "HIP_RUNTIME_API_EXT";
    case Domain::kHipCompiler:
      return "HIP_COMPILER_API_EXT";
    case Domain::kHsa:
      return "HSA_CORE_API";
    case Domain::kRccl:
      return "RCCL_API";
    case Domain::kMarker:
      return "MARKER_CORE_API";
    case Domain::kPython:
      return "PYTHON";
    case Domain::kMpi:
      return "MPI_API";
    case Domain::kHost:
      return "HOST";
    case Domain::kOperator:
      return "OPERATOR";
    default:
      return "UNKNOWN_API";
  }
}

Domain domain_of_kind(std::string_view kind) {
  for (int64_t at = 0; at < static_cast<int64_t>(Domain::kEnd); ++at)
    if (api_domain_name(static_cast<Domain>(at)) == kind) return static_cast<Domain>(at);
  return kind.starts_with("HIP_COMPILER") ? Domain::kHipCompiler
         : kind.starts_with("HIP")        ? Domain::kHipRuntime
         : kind.starts_with("HSA")        ? Domain::kHsa
         : kind.starts_with("RCCL")       ? Domain::kRccl
         : kind.starts_with("MARKER")     ? Domain::kMarker
                                          : Domain::kHost;
}

Domain domain_of(int64_t cell) {
  return event::from_cell<Domain>(cell);
}

}  // namespace tacho::format
