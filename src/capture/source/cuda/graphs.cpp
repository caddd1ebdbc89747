// Contents of CUDA graphs (graphs.h).
#include "capture/source/cuda/graphs.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <string_view>

#include "capture/room/pages.h"
#include "capture/source/marker/marker.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::cuda {
namespace {

struct Driver {
  abi::DriverResult (*get_nodes)(void* graph, void** nodes, size_t* count);
  abi::DriverResult (*node_type)(void* node, int* type);
  abi::DriverResult (*kernel_node)(void* node, abi::KernelNode* parameters);
  abi::DriverResult (*child_graph)(void* node, void** graph);
  abi::DriverResult (*function_name)(const char** name, void* function);  // CUDA 12.3
  abi::DriverResult (*kernel_name)(const char** name, void* kernel);      // CUDA 12.3
};

bool load_driver(Driver& driver) {
  driver.get_nodes = reinterpret_cast<decltype(driver.get_nodes)>(find_in_driver("cuGraphGetNodes"));
  driver.node_type = reinterpret_cast<decltype(driver.node_type)>(find_in_driver("cuGraphNodeGetType"));
  driver.kernel_node = reinterpret_cast<decltype(driver.kernel_node)>(find_in_driver("cuGraphKernelNodeGetParams_v2"));
  driver.child_graph = reinterpret_cast<decltype(driver.child_graph)>(find_in_driver("cuGraphChildGraphNodeGetGraph"));
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
constexpr int kKernelType = 0, kGraphType = 4, kDeepest = 8;

// The contents of a graph. The nodes of a child graph are counted in place of the child. The driver does not list the
// body of a conditional node.
struct Contents {
  Group groups[kGroups];
  size_t used = 0;
  size_t other = 0;  // nodes for which there was no group
  size_t nodes = 0;
};

const char* kernel_name(const Driver& driver, void* node) {
  const char* name = nullptr;
  abi::KernelNode kernel{};
  if (driver.kernel_node == nullptr || driver.kernel_node(node, &kernel) != 0) return nullptr;
  if (kernel.function != nullptr && driver.function_name != nullptr) driver.function_name(&name, kernel.function);
  if (name == nullptr && kernel.kernel != nullptr && driver.kernel_name != nullptr)
    driver.kernel_name(&name, kernel.kernel);
  return name;
}

void count_node(Contents& contents, int type, const char* name) {
  const auto same = [&](const Group& group) {
    return group.type == type &&
           (group.name == name || (name != nullptr && group.name != nullptr && strcmp(group.name, name) == 0));
  };
  size_t at = 0;
  while (at < contents.used && !same(contents.groups[at])) ++at;
  if (at < contents.used)
    ++contents.groups[at].count;
  else if (contents.used < kGroups)
    contents.groups[contents.used++] = {name, type, 1};
  else
    ++contents.other;
  ++contents.nodes;
}

// False if the graph exceeds the limits of the description.
bool count_nodes(const Driver& driver, void* graph, int depth, Contents& contents) {
  size_t count = 0;
  if (driver.get_nodes(graph, nullptr, &count) != 0 || contents.nodes + count > kMostNodes) return false;
  if (count == 0) return true;
  const size_t bytes = count * sizeof(void*);
  void* const memory = map_pages(bytes);
  if (memory == nullptr) return false;
  auto* const nodes = static_cast<void**>(memory);
  bool whole = driver.get_nodes(graph, nodes, &count) == 0;
  for (size_t n = 0; whole && n < count; ++n) {
    int type = -1;
    if (driver.node_type(nodes[n], &type) != 0) continue;
    void* inner = nullptr;
    if (type == kGraphType && depth < kDeepest && driver.child_graph != nullptr &&
        driver.child_graph(nodes[n], &inner) == 0)
      whole = count_nodes(driver, inner, depth + 1, contents);
    else
      count_node(contents, type, type == kKernelType ? kernel_name(driver, nodes[n]) : nullptr);
  }
  munmap(memory, bytes);
  return whole;
}

}  // namespace

void number_graph(const Cupti& cupti, void* graph) {
  uint32_t id = 0;
  if (cupti.get_graph_id != nullptr && graph != nullptr) cupti.get_graph_id(graph, &id);
}

void mark_graph_node(const Cupti& cupti, void* node, void* original) {
  uint64_t id = 0, original_id = 0;
  if (cupti.get_graph_node_id == nullptr || !marker::active() || cupti.get_graph_node_id(node, &id) != abi::kSuccess)
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
  Contents contents;
  if (!load_driver(driver) || !count_nodes(driver, graph, 0, contents) || contents.used == 0) return;
  size_t other = contents.other;

  // "nodes\n" then a line "count type name" a group, in the order of first use.
  char text[8192];
  size_t length = static_cast<size_t>(snprintf(text, sizeof text, "%zu\n", contents.nodes));
  for (size_t at = 0; at < contents.used; ++at) {
    const Group& group = contents.groups[at];
    const auto type = static_cast<size_t>(group.type);
    const int size = snprintf(text + length, sizeof text - length, "%zu\t%s\t%s\n", group.count,
                              type < sizeof kTypes / sizeof *kTypes ? kTypes[type] : "unknown",
                              group.name != nullptr ? group.name : "");
    if (size < 0 || length + static_cast<size_t>(size) >= sizeof text) {
      other += group.count;
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
