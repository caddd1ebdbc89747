// Display names (names.h).
#include "format/view/names.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>

#include "base/demangle.h"
#include "base/temporary.h"

namespace tacho::format {

namespace column = event::column;
using event::Domain;
using event::Table;

std::string_view KernelNames::name(int64_t kernel) {
  const int64_t string = trace_.cell(Table::kKernel, kernel, column::Kernel::name);
  const std::string_view raw = trace_.string(string);
  const bool changes =
      raw.starts_with("_Z") || raw.ends_with(".kd") || raw.ends_with(".kd]") || raw.ends_with(".kd)");
  if (!options_.truncate && (options_.mangled || !changes)) return raw;
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

// Names are kept in blocks; the first ones in memory, further ones in temporary files.
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

Domain domain_of(int64_t cell) {
  return cell >= 0 && cell < static_cast<int64_t>(Domain::kEnd) ? static_cast<Domain>(cell)
                                                                : Domain::kUnknown;
}

std::string_view enum_text(std::string_view enum_name, int64_t value) {
  const auto is = [&](std::string_view name) { return enum_name == name; };
  const auto text = [&]<typename E>(E) {
    return value >= 0 && value < static_cast<int64_t>(E::kEnd) ? event::to_string(static_cast<E>(value))
                                                               : std::string_view("unknown");
  };
  if (is("Domain")) return text(event::Domain{});
  if (is("TrackKind")) return text(event::TrackKind{});
  if (is("DeviceKind")) return text(event::DeviceKind{});
  if (is("DispatchKind")) return text(event::DispatchKind{});
  if (is("CopyDirection")) return text(event::CopyDirection{});
  if (is("CopyKind")) return text(event::CopyKind{});
  if (is("MemoryKind")) return text(event::MemoryKind{});
  if (is("AllocationOperation")) return text(event::AllocationOperation{});
  if (is("MarkerKind")) return text(event::MarkerKind{});
  if (is("PayloadKind")) return value == 1 ? "integer" : value == 2 ? "double" : "none";
  if (is("SyncKind")) return text(event::SyncKind{});
  if (is("OverheadKind")) return text(event::OverheadKind{});
  if (is("FrameKind")) return text(event::FrameKind{});
  if (is("LinkKind")) return text(event::LinkKind{});
  if (is("LossReason")) return text(event::LossReason{});
  if (is("NoteSeverity")) return text(event::NoteSeverity{});
  if (is("Table")) {
    for (const event::TableInfo& info : event::all_tables())
      if (static_cast<int64_t>(info.table) == value) return info.name;
    return "other";
  }
  return {};
}

std::string_view enum_of(const event::Column& column) {
  // "kEnd's number = ..." and the like follow the name.
  return column.text.substr(0, column.text.find_first_of(": ;,"));
}

}  // namespace tacho::format
