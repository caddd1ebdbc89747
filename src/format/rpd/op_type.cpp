// Names of GPU operations in .rpd files (op_type.h).
#include "format/rpd/op_type.h"

namespace tacho::format::rpd {

using event::CopyDirection;
using event::DispatchKind;
using event::Table;

OpType parse_op_type(std::string_view word) {
  OpType type;
  if (word == "KernelExecution") return type;
  if (word == "ConcurrentKernel" || word == "Kernel") {
    type.cuda = word == "ConcurrentKernel";
    return type;
  }
  if (word == "Task" || word == "TASK") {
    type.dispatch = DispatchKind::kTask;
    return type;
  }
  if (word == "NativeKernel") {
    type.dispatch = DispatchKind::kNativeKernel;
    return type;
  }
  if (word == "Graph") {
    type.dispatch = DispatchKind::kGraph;
    return type;
  }
  if (word == "Memset" || word == "FillBuffer" || word == "FillImage") {
    type.table = Table::kFill;
    type.cuda = word == "Memset";
    return type;
  }
  if (word == "Memcpy") {
    type.table = Table::kCopy;
    type.cuda = true;
    return type;
  }
  const auto contains = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (word.starts_with("Copy") || word.starts_with("MEMORY_COPY")) {
    type.table = Table::kCopy;
    if (contains("HostToDevice") || contains("HOST_TO_DEVICE"))
      type.direction = CopyDirection::kHostToDevice;
    else if (contains("DeviceToHost") || contains("DEVICE_TO_HOST"))
      type.direction = CopyDirection::kDeviceToHost;
    else if (contains("DeviceToDevice") || contains("DEVICE_TO_DEVICE"))
      type.direction = CopyDirection::kDeviceToDevice;
    else if (contains("HostToHost") || contains("HOST_TO_HOST"))
      type.direction = CopyDirection::kHostToHost;
    else if (contains("PeerToPeer"))
      type.direction = CopyDirection::kPeerToPeer;
    if (contains("Rect") || contains("2D")) type.copy = event::CopyKind::kRectangle;
    return type;
  }
  type.dispatch = DispatchKind::kTask;
  type.generic = true;
  return type;
}

RpdWord op_type_of_dispatch(DispatchKind kind) {
  switch (kind) {
    case DispatchKind::kTask:
      return RpdWord::kTask;
    case DispatchKind::kNativeKernel:
      return RpdWord::kNativeKernel;
    case DispatchKind::kGraph:
      return RpdWord::kGraph;
    default:
      return RpdWord::kKernelExecution;
  }
}

RpdWord op_type_of_copy(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::kHostToHost:
      return RpdWord::kCopyHostToHost;
    case CopyDirection::kHostToDevice:
      return RpdWord::kCopyHostToDevice;
    case CopyDirection::kDeviceToHost:
      return RpdWord::kCopyDeviceToHost;
    case CopyDirection::kDeviceToDevice:
      return RpdWord::kCopyDeviceToDevice;
    case CopyDirection::kPeerToPeer:
      return RpdWord::kCopyPeerToPeer;
    default:
      return RpdWord::kMemcpy;
  }
}

bool launches_items(std::string_view function) {
  return function.starts_with("hipExt") || function.starts_with("hipHccModuleLaunch");
}

}  // namespace tacho::format::rpd
