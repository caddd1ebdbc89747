// Kinds of calls by name (call_kind.h).
#include "analysis/call_kind.h"

#include <algorithm>
#include <string>

#include "event/collective_kernels.h"

namespace tacho::analysis {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool has_one(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(text, part); });
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

CallKind call_kind(event::Domain domain, std::string_view function) {
  switch (domain) {
    case event::Domain::kMarker:
    case event::Domain::kPython:
    case event::Domain::kMpi:
    case event::Domain::kHost:
    case event::Domain::kOperator:
      return CallKind::kNone;
    case event::Domain::kRccl:
      return CallKind::kLaunch;
    default:
      break;
  }
  if (has_one(function, {"Synchronize", "clFinish", "clWaitForEvents", "signal_wait"})) return CallKind::kWait;
  // hipModuleLaunchKernel before the modules; cuLaunchHostFunc is no launch on the device.
  if (has(function, "Launch"))
    return has(function, "HostFunc") || has(function, "LaunchConfig") ? CallKind::kOther : CallKind::kLaunch;
  if (has_one(function, {"EnqueueNDRange", "EnqueueTask", "EnqueueNativeKernel"})) return CallKind::kLaunch;
  // Before the copies: clEnqueueSVMFree, clCreateBuffer.
  if (has_one(function, {"Malloc",
                         "cudaFree",
                         "hipFree",
                         "hipHostFree",
                         "MemAlloc",
                         "MemFree",
                         "HostAlloc",
                         "HostRegister",
                         "HostUnregister",
                         "clCreateBuffer",
                         "clCreateSubBuffer",
                         "clCreateImage",
                         "clReleaseMemObject",
                         "SVMAlloc",
                         "SVMFree",
                         "memory_allocate",
                         "memory_free",
                         "pool_allocate",
                         "pool_free",
                         "MemCreate",
                         "MemRelease",
                         "MemAddressReserve",
                         "MemMap",
                         "MemUnmap"}) &&
      !has(function, "UnmapMemObject"))
    return CallKind::kAllocate;
  if (has_one(function,
              {"Memcpy", "Memset", "memcpy", "clEnqueueRead", "clEnqueueWrite", "clEnqueueCopy", "clEnqueueMap",
               "clEnqueueUnmap", "clEnqueueFill", "clEnqueueMigrate", "clEnqueueSVM", "async_copy", "memory_copy"}))
    return CallKind::kCopy;
  if (has_one(function, {"BuildProgram", "CompileProgram", "LinkProgram", "CreateProgram", "ModuleLoad", "LibraryLoad",
                         "LinkComplete", "LinkAddData", "RegisterFatBinary", "clCreateContext", "CtxCreate",
                         "PrimaryCtxRetain", "executable_load", "executable_freeze"}) ||
      function == "cuInit" || function == "hipInit" || function == "hsa_init" || function == "clGetPlatformIDs")
    return CallKind::kLoad;
  return CallKind::kOther;
}

bool is_loader(std::string_view name) {
  const std::string text = lower_case(name);
  return has_one(text, {"dataloader", "data_loader", "data loading", "load_batch", "next_batch", "data_load"});
}

bool is_collective(std::string_view kernel) {
  return kernel.starts_with("nccl") || kernel.starts_with("rccl") || event::is_collective_kernel(kernel);
}

}  // namespace tacho::analysis
