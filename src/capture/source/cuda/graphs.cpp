// Contents of CUDA graphs (graphs.h).
#include "capture/source/cuda/graphs.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <string_view>

#include "capture/source/marker/marker.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::cuda {
namespace {

struct Driver {
  abi::DriverResult (*get_nodes)(void* graph, void** nodes, size_t* count);
  abi::DriverResult (*node_type)(void* node, int* type);
  abi::DriverResult (*kernel_node)(void* node, abi::KernelNode* parameters);
  abi::DriverResult (*function_name)(const char** name, void* function);  // CUDA 12.3
  abi::DriverResult (*kernel_name)(const char** name, void* kernel);      // CUDA 12.3
};

bool load_driver(Driver& driver) {
  driver.get_nodes = reinterpret_cast<decltype(driver.get_nodes)>(find_in_driver("cuGraphGetNodes"));
  driver.node_type = reinterpret_cast<decltype(driver.node_type)>(find_in_driver("cuGraphNodeGetType"));
  driver.kernel_node =
      reinterpret_cast<decltype(driver.kernel_node)>(find_in_driver("cuGraphKernelNodeGetParams_v2"));
  driver.function_name = reinterpret_cast<decltype(driver.function_name)>(find_in_driver("cuFuncGetName"));
  driver.kernel_name = reinterpret_cast<decltype(driver.kernel_name)>(find_in_driver("cuKernelGetName"));
  return driver.get_nodes != nullptr && driver.node_type != nullptr;
}

// CUgraphNodeType 0..13
constexpr const char* kTypes[] = {"kernel",
                                  "copy",
                                  "fill",
                                  "host function",
                                  "graph",
                                  "empty",
                                  "wait event",
                                  "event record",
                                  "semaphore signal",
                                  "semaphore wait",
                                  "allocation",
                                  "free",
                                  "batched memory operation",
                                  "conditional"};

struct Group {  // nodes of one type and, for kernels, one name
  const char* name;
  int type;
  size_t count;
};
constexpr size_t kGroups = 64;
constexpr size_t kMostNodes = 1 << 17;

}  // namespace

void mark_graph_node(const Cupti& cupti, void* node, void* original) {
  uint64_t id = 0, original_id = 0;
  if (cupti.get_graph_node_id == nullptr || !marker::active() ||
      cupti.get_graph_node_id(node, &id) != abi::kSuccess)
    return;
  if (original != nullptr && cupti.get_graph_node_id(original, &original_id) != abi::kSuccess) return;
  const auto mark = [](std::string_view text, uint64_t number) {
    marker::mark({.text = {},
                  .interned = tape::intern(text),
                  .domain = tape::intern("torch"),
                  .payload_flag = event::kMarkerInteger,
                  .payload = number});
  };
  if (original == nullptr) {
    mark("graph node", id);
  } else {
    mark("graph node copy", id);
    mark("graph node origin", original_id);
  }
}

void describe_graph(const Cupti& cupti, void* graph, void* executable) {
  Driver driver{};
  size_t count = 0;
  if (!load_driver(driver) || driver.get_nodes(graph, nullptr, &count) != 0 || count == 0 ||
      count > kMostNodes)
    return;
  const size_t bytes = count * sizeof(void*);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* const nodes = static_cast<void**>(memory);
  Group groups[kGroups];
  size_t used = 0, other = 0;
  if (driver.get_nodes(graph, nodes, &count) == 0) {
    for (size_t n = 0; n < count; ++n) {
      int type = -1;
      if (driver.node_type(nodes[n], &type) != 0) continue;
      const char* name = nullptr;
      abi::KernelNode kernel{};
      if (type == 0 && driver.kernel_node != nullptr && driver.kernel_node(nodes[n], &kernel) == 0) {
        if (kernel.function != nullptr && driver.function_name != nullptr)
          driver.function_name(&name, kernel.function);
        if (name == nullptr && kernel.kernel != nullptr && driver.kernel_name != nullptr)
          driver.kernel_name(&name, kernel.kernel);
      }
      size_t at = 0;
      while (at < used && !(groups[at].type == type &&
                            (groups[at].name == name || (name != nullptr && groups[at].name != nullptr &&
                                                         strcmp(groups[at].name, name) == 0))))
        ++at;
      if (at < used)
        ++groups[at].count;
      else if (used < kGroups)
        groups[used++] = {name, type, 1};
      else
        ++other;
    }
  }
  munmap(memory, bytes);
  if (used == 0) return;

  // "nodes\n" then a line "count type name" a group, in the order of first use.
  char text[8192];
  size_t length = static_cast<size_t>(snprintf(text, sizeof text, "%zu\n", count));
  for (size_t at = 0; at < used; ++at) {
    const auto type = static_cast<size_t>(groups[at].type);
    const int size = snprintf(text + length, sizeof text - length, "%zu\t%s\t%s\n", groups[at].count,
                              type < sizeof kTypes / sizeof *kTypes ? kTypes[type] : "unknown",
                              groups[at].name != nullptr ? groups[at].name : "");
    if (size < 0 || length + static_cast<size_t>(size) >= sizeof text) {
      other += groups[at].count;
      text[length] = '\0';
      continue;
    }
    length += static_cast<size_t>(size);
  }
  if (other != 0 && sizeof text - length > 48)
    length += static_cast<size_t>(snprintf(text + length, sizeof text - length, "%zu\tother\t\n", other));
  uint32_t id = 0;
  if (cupti.get_graph_exec_id != nullptr && cupti.get_graph_exec_id(executable, &id) == abi::kSuccess)
    tape::define_name(kBlocks, event::NameSpace::kGraph, id, {text, length});
  if (cupti.get_graph_id != nullptr && cupti.get_graph_id(graph, &id) == abi::kSuccess)
    tape::define_name(kBlocks, event::NameSpace::kGraph, id, {text, length});
}

}  // namespace tacho::capture::cuda
