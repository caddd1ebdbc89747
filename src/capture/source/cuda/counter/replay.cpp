// Running a batch of launches again (replay.h).
#include "capture/source/cuda/counter/replay.h"

#include <elf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <type_traits>

#include "capture/room/list.h"
#include "capture/room/lock.h"
#include "capture/source/cuda/counter/kernels.h"
#include "capture/source/cuda/counter/l2.h"
#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::counter {
namespace {

using Result = int;  // CUresult
using Address = uint64_t;

struct Driver {
  Result (*memory_alloc)(Address*, size_t);
  Result (*memory_free)(Address);
  Result (*copy)(Address, Address, size_t, void*);
  Result (*copy_out)(void*, Address, size_t);
  Result (*copy_in)(Address, const void*, size_t);
  Result (*fill)(Address, unsigned char, size_t);
  Result (*synchronize)();
  Result (*push)(void*);
  Result (*pop)(void**);
  Result (*current)(void**);
  Result (*context_device)(int*);
  Result (*device_attribute)(int*, int, int);
  Result (*device_address)(char*, int, int);
  Result (*module_load)(void**, const void*);
  Result (*module_unload)(void*);
  Result (*module_function)(void**, void*, const char*);
  Result (*link_create)(unsigned, void*, void**, void**);
  Result (*link_add)(void*, int, const void*, size_t, const char*, unsigned, void*, void**);
  Result (*link_complete)(void*, void**, size_t*);
  Result (*link_destroy)(void*);
  Result (*module_global)(Address*, size_t*, void*, const char*);
  Result (*library_global)(Address*, size_t*, void*, const char*);
  Result (*library_managed)(Address*, size_t*, void*, const char*);
  Result (*pointer_attribute)(void*, int, Address);
  Result (*function_module)(void**, void*);
  Result (*kernel_function)(void**, void*);
  Result (*parameter_info)(void*, size_t, size_t*, size_t*);
  Result (*kernel_parameter_info)(void*, size_t, size_t*, size_t*);
  Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  Result (*launch_cooperative)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                               void**);
  Result (*launch_extended)(const void*, void*, void**, void**);
  Result (*launch_graph)(void*, void*);
  Result (*function_load)(void*);
  Result (*memory_info)(size_t*, size_t*);
};
constinit Driver g_driver{};

enum class Where : uint8_t { kDevice, kGlobal, kHost };
struct Memory {
  Address address;
  size_t bytes;
  void* context;
  Where where;
};
struct Piece {
  Address address;
  size_t bytes, saved;  // offset of the copy
};
struct Layout {  // of a function's arguments
  void* function;
  uint32_t count, bytes, first;  // in g_offsets and g_sizes
};
struct Kept {
  replay::LaunchCall::Kind kind;
  bool packed, emptied;
  uint32_t grid[3], block[3], shared;
  void *handle, *stream;
  uint32_t layout;
  size_t arguments, argument_bytes, attributes, attribute_count;
};
struct Buffer {  // on the device, or in host memory if that is full
  Address device = 0;
  uint8_t* host = nullptr;
  size_t bytes = 0;
};

constinit List<Memory> g_memory{};
constinit List<Piece> g_pieces{};
constinit List<Piece> g_written{};
constinit List<Layout> g_layouts{};
constinit List<uint32_t> g_offsets{}, g_sizes{};
constinit List<Kept> g_kept{};
constinit List<uint8_t> g_blob{};
// One after the other with a zero behind each. Modules may be loaded by launches that hold no lock of ours.
struct Names {
  List<char> list;
  LockWord busy{0};
};
constinit Names g_names{};            // of variables
constinit List<void*> g_modules{};    // modules whose variables are in g_memory
constinit bool g_lost = false;        // the driver did not describe some kernels or variables well enough
constinit bool g_managed = false;     // a module has managed variables: any kernel may change host-visible memory
constinit Names g_managed_names{};    // of these
constinit List<void*> g_libraries{};  // that the program has loaded
struct Loaded {
  void *module, *context;
};
constinit List<Loaded> g_loaded{};  // modules that the program has loaded itself
constinit bool g_unloaded = false;  // a module or library, with its variables
constinit List<uint8_t> g_flags{};
constinit List<void*> g_pointers{};
constinit Buffer g_before{}, g_after{};
constinit const char* g_problem = nullptr;
constinit uint32_t g_generation = 1;
constinit bool g_peers = false, g_put_back = false;
constinit void* g_batch_context = nullptr;

// Our kernels and buffers in one context.
struct Tools {
  void* context;
  void *compare, *sweep, *chase;
  Address sweep_buffer, flags;
  size_t sweep_bytes, flag_bytes;
  vendor::rm::Gpu l2;
  void* cubin;  // of a module that is loaded to empty the caches of instructions and constants
  size_t cubin_bytes;
  bool by_driver;  // that works, and the kernel driver empties the L2
};
constinit List<Tools> g_tools{};

constinit char g_why[256] = {};

const char* failed(const char* what, Result result) {
  snprintf(g_why, sizeof g_why, "%s (CUDA error %d)", what, result);
  return g_why;
}

class InContext {
 public:
  explicit InContext(void* context) : pushed_(g_driver.push(context) == 0) {}
  ~InContext() {
    void* ignored = nullptr;
    if (pushed_) g_driver.pop(&ignored);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  bool pushed_;
};

bool starts(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// Memory

void add_memory(Address address, size_t bytes, void* context, Where where) {
  if (address == 0 || bytes == 0) return;
  if (!g_memory.add({address, bytes, context, where}))
    g_problem = "there is no memory to keep a list of its allocations";
}

void remove_memory(Address address) {
  for (size_t i = 0; i < g_memory.count; ++i)
    if (g_memory.data[i].address == address && g_memory.data[i].where != Where::kGlobal) return g_memory.drop(i);
}

template <typename T>
T word(const void* parameters, size_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(parameters) + offset, sizeof value);
  return value;
}
Address pointed(const void* parameters) {  // the first argument points to where the address went
  const auto* const to = word<const Address*>(parameters, 0);
  return to == nullptr ? 0 : *to;
}

size_t host_memory_available() {
  FILE* const file = fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  char line[128];
  unsigned long kilobytes = 0;
  while (fgets(line, sizeof line, file) != nullptr)
    if (sscanf(line, "MemAvailable: %lu", &kilobytes) == 1) break;
  fclose(file);
  return size_t{kilobytes} * 1024;
}

void release(Buffer& buffer) {
  if (buffer.device != 0) g_driver.memory_free(buffer.device);
  if (buffer.host != nullptr) munmap(buffer.host, buffer.bytes);
  buffer = Buffer{};
}

bool reserve(Buffer& buffer, size_t bytes) {
  if (buffer.bytes >= bytes && bytes != 0) return true;
  release(buffer);
  if (bytes == 0) return true;
  if (g_driver.memory_alloc(&buffer.device, bytes) == 0) {
    buffer.bytes = bytes;
    return true;
  }
  buffer.device = 0;
  if (bytes > host_memory_available() / 2) return false;
  void* const map = map_pages(bytes);
  if (map == nullptr) return false;
  buffer.host = static_cast<uint8_t*>(map);
  buffer.bytes = bytes;
  return true;
}

// Between a piece and its copy. Copies within the device run on behind one another; the caller synchronizes.
Result save(const Buffer& buffer, const Piece& piece) {
  if (buffer.device != 0) return g_driver.copy(buffer.device + piece.saved, piece.address, piece.bytes, nullptr);
  return g_driver.copy_out(buffer.host + piece.saved, piece.address, piece.bytes);
}
Result restore(const Buffer& buffer, const Piece& piece) {
  if (buffer.device != 0) return g_driver.copy(piece.address, buffer.device + piece.saved, piece.bytes, nullptr);
  return g_driver.copy_in(piece.address, buffer.host + piece.saved, piece.bytes);
}

size_t rounded(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Kernels of other GPUs must not change memory that is about to be saved.
void settle_others(void* context) {
  void* last = context;
  for (size_t i = 0; i < g_memory.count; ++i) {
    const Memory& memory = g_memory.data[i];
    if (memory.where == Where::kHost || memory.context == context || memory.context == last) continue;
    const InContext inside(last = memory.context);
    g_driver.synchronize();
  }
}

// Host memory that went with its context.
void drop_gone_memory() {
  constexpr int kMemoryType = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  unsigned type = 0;
  for (size_t i = g_memory.count; i-- > 0;)
    if (g_memory.data[i].where == Where::kHost &&
        g_driver.pointer_attribute(&type, kMemoryType, g_memory.data[i].address) != 0)
      g_memory.drop(i);
}

// Our kernels

// A module ready to be loaded again and again; false when the driver does not make one.
bool link_nothing(Tools& tools) {
  void *state = nullptr, *linked = nullptr, *copy = nullptr;
  size_t bytes = 0;
  constexpr int kPtx = 1;  // CU_JIT_INPUT_PTX
  if (g_driver.link_create == nullptr || g_driver.link_create(0, nullptr, nullptr, &state) != 0) return false;
  if (g_driver.link_add(state, kPtx, kNothing, sizeof kNothing, "tacho", 0, nullptr, nullptr) == 0 &&
      g_driver.link_complete(state, &linked, &bytes) == 0) {
    copy = map_pages(bytes);
    if (copy != nullptr) memcpy(copy, linked, bytes);
  }
  g_driver.link_destroy(state);
  if (copy == nullptr) return false;
  tools.cubin = copy;
  tools.cubin_bytes = bytes;
  return true;
}

// New code on the device: the driver has to invalidate the caches of instructions and constants.
bool load_nothing(const Tools& tools) {
  void *module = nullptr, *function = nullptr;
  if (g_driver.module_load(&module, tools.cubin) != 0) return false;
  const bool loaded = g_driver.module_function(&function, module, "tacho_nothing") == 0 &&
                      (g_driver.function_load == nullptr || g_driver.function_load(function) == 0);
  return g_driver.module_unload(module) == 0 && loaded;
}
void give_back(Tools& tools) {
  vendor::rm::close_gpu(tools.l2);
  if (tools.cubin != nullptr) munmap(tools.cubin, tools.cubin_bytes);
  tools.cubin = nullptr;
}

// Whether the kernel driver empties the L2: reads that find their lines in it take a fraction of those that do not.
bool driver_empties(Tools& tools, int device) {
  char pci[64] = {};
  if (tools.chase == nullptr || tools.sweep_bytes < (size_t{kChased} << 12) || g_driver.device_address == nullptr ||
      g_driver.device_address(pci, sizeof pci, device) != 0 || vendor::rm::open_gpu(pci, tools.l2) != nullptr)
    return false;
  Address from = tools.sweep_buffer, to = tools.sweep_buffer + tools.sweep_bytes;
  void* arguments[] = {&from, &to};
  uint64_t cycles = 0;
  const auto chase = [&] {
    return g_driver.launch(tools.chase, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == 0 &&
           g_driver.copy_out(&cycles, to, sizeof cycles) == 0;
  };
  uint64_t within = ~uint64_t{0}, without = within;
  for (int i = 0; i < 3; ++i) {
    if (!chase() || !chase()) return false;  // the first brings the lines in
    if (cycles < within) within = cycles;
    if (!empty_l2(tools.l2) || !chase()) return false;
    if (cycles < without) without = cycles;
  }
  return without > within + within / 2;
}

Tools* tools_of(void* context) {
  for (size_t i = 0; i < g_tools.count; ++i)
    if (g_tools.data[i].context == context) return &g_tools.data[i];
  Tools tools{};
  tools.context = context;
  void* module = nullptr;
  int device = 0, l2 = 0;
  constexpr int kL2Bytes = 38;  // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
  if (g_driver.module_load(&module, kKernels) != 0 ||
      g_driver.module_function(&tools.compare, module, "tacho_compare") != 0 ||
      g_driver.module_function(&tools.sweep, module, "tacho_sweep") != 0 ||
      g_driver.module_function(&tools.chase, module, "tacho_chase") != 0)
    tools.compare = tools.sweep = tools.chase = nullptr;
  if (tools.sweep != nullptr && g_driver.context_device(&device) == 0 &&
      g_driver.device_attribute(&l2, kL2Bytes, device) == 0 && l2 > 0) {
    tools.sweep_bytes = static_cast<size_t>(l2) * 2 / 4096 * 4096;
    if (g_driver.memory_alloc(&tools.sweep_buffer, tools.sweep_bytes + 256) != 0 ||
        g_driver.fill(tools.sweep_buffer, 0, tools.sweep_bytes + 256) != 0)
      tools.sweep_bytes = 0;
  }
  tools.by_driver = link_nothing(tools) && driver_empties(tools, device);
  if (!tools.by_driver) give_back(tools);
  return g_tools.add(tools) ? &g_tools.data[g_tools.count - 1] : nullptr;
}

// Flags of all pieces one after the other, a byte for kChunk bytes; nullptr when everything counts as written.
const uint8_t* compare() {
  Tools* const tools = g_before.device == 0 ? nullptr : tools_of(g_batch_context);
  if (tools == nullptr || tools->compare == nullptr) return nullptr;
  size_t chunks = 0;
  for (size_t i = 0; i < g_pieces.count; ++i) chunks += (g_pieces.data[i].bytes + kChunk - 1) / kChunk;
  if (tools->flag_bytes < chunks) {
    if (tools->flags != 0) g_driver.memory_free(tools->flags);
    tools->flags = 0;
    tools->flag_bytes = 0;
    if (g_driver.memory_alloc(&tools->flags, chunks) != 0) return nullptr;
    tools->flag_bytes = chunks;
  }
  if (g_driver.fill(tools->flags, 0, chunks) != 0) return nullptr;
  size_t at = 0;
  for (size_t i = 0; i < g_pieces.count; ++i) {
    const Piece& piece = g_pieces.data[i];
    const size_t blocks = (piece.bytes + kChunk - 1) / kChunk;
    Address a = piece.address, b = g_before.device + piece.saved, flags = tools->flags + at;
    uint64_t words = piece.bytes / 16;
    void* arguments[] = {&a, &b, &words, &flags};
    at += blocks;
    if (words == 0 || a % 16 != 0) continue;
    if (g_driver.launch(tools->compare, static_cast<unsigned>(blocks), 1, 1, 256, 1, 1, 0, nullptr, arguments,
                        nullptr) != 0)
      return nullptr;
  }
  g_flags.count = 0;
  if (g_flags.grow(chunks) == nullptr || g_driver.copy_out(g_flags.data, tools->flags, chunks) != 0) return nullptr;
  return g_flags.data;
}

// Variables of modules

// Iterates over `copy`, because the driver may load modules meanwhile.
template <typename Visit>
void each_name(Names& names, List<char>& copy, Visit visit) {
  {
    const Guard guard(names.busy);
    copy.count = 0;
    if (char* const to = names.list.count == 0 ? nullptr : copy.grow(names.list.count); to != nullptr)
      memcpy(to, names.list.data, names.list.count);
  }
  for (size_t at = 0; at < copy.count; at += strlen(copy.data + at) + 1) visit(copy.data + at);
}
void add_name(Names& names, const char* name) {
  const size_t length = strlen(name) + 1;
  const Guard guard(names.busy);
  if (char* const to = names.list.grow(length); to != nullptr) memcpy(to, name, length);
}

bool names_variable(const Elf64_Sym& symbol, const Elf64_Shdr* sections, size_t count, const char* names) {
  if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0 || symbol.st_shndx >= count) return false;
  return starts(names + sections[symbol.st_shndx].sh_name, ".nv.global");
}

void add_variable(Address address, size_t bytes) {
  constexpr int kIsManaged = 8;  // CU_POINTER_ATTRIBUTE_IS_MANAGED
  for (size_t i = 0; i < g_memory.count; ++i)
    if (g_memory.data[i].address == address && g_memory.data[i].where == Where::kGlobal) return;
  unsigned managed = 0;
  void* context = nullptr;
  g_driver.current(&context);
  if (g_driver.pointer_attribute(&managed, kIsManaged, address) != 0 || managed == 0)
    return add_memory(address, bytes, context, Where::kGlobal);
  for (size_t i = 0; i < g_memory.count; ++i)
    if (g_memory.data[i].address == address) return;
  g_managed = true;
  add_memory(address, bytes, context, Where::kHost);
}

// Managed variables belong to libraries and are the same in all contexts. False: there is one that cannot be found.
bool find_managed() {
  static constinit List<char> s_names{};
  bool all = true;
  each_name(g_managed_names, s_names, [&](const char* name) {
    bool found = false;
    Address address = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < g_libraries.count; ++i)
      if (g_driver.library_managed != nullptr &&
          g_driver.library_managed(&address, &bytes, g_libraries.data[i], name) == 0) {
        found = true;
        add_variable(address, bytes);
      }
    for (size_t i = 0; i < g_modules.count; ++i)  // also of libraries
      if (g_driver.module_global(&address, &bytes, g_modules.data[i], name) == 0) {
        found = true;
        add_variable(address, bytes);
      }
    for (size_t i = 0; i < g_loaded.count; ++i) {
      const InContext inside(g_loaded.data[i].context);
      if (g_driver.module_global(&address, &bytes, g_loaded.data[i].module, name) == 0) {
        found = true;
        add_variable(address, bytes);
      }
    }
    all = all && (found || g_unloaded);
  });
  return all;
}

void resolve_module(void* function) {
  void* module = nullptr;
  if (g_driver.function_load != nullptr)
    g_driver.function_load(function);  // modules may be loaded as late as by a launch
  if (g_driver.function_module(&module, function) != 0) {
    void* inner = nullptr;
    if (g_driver.kernel_function(&inner, function) != 0 || g_driver.function_module(&module, inner) != 0) {
      g_lost = true;
      return;
    }
  }
  for (size_t i = 0; i < g_modules.count; ++i)
    if (g_modules.data[i] == module) return;
  g_modules.add(module);
  static constinit List<char> s_names{};
  each_name(g_names, s_names, [&](const char* name) {
    Address address = 0;
    size_t bytes = 0;
    if (g_driver.module_global(&address, &bytes, module, name) == 0) add_variable(address, bytes);
  });
}

// A node of a graph was made or changed: `parameters` of the call, where its description is found at `offset`.
void note_node(const void* parameters, size_t offset, bool any_kind) {
  constexpr int kKernel = 0, kAllocation = 10;  // CUgraphNodeType
  const auto* description = word<const char*>(parameters, offset);
  if (description == nullptr) return;
  if (any_kind) {  // CUgraphNodeParams: the kind, then the node's parameters
    const int kind = word<int>(description, 0);
    if (kind == kAllocation) g_problem = "the program's graphs allocate memory";
    if (kind != kKernel) return;
    description += 16;
  }
  void* function = word<void*>(description, 0);
  // The first version of the description has no kernel; its function is never null.
  if (function == nullptr) function = word<void*>(description, 56);
  if (function != nullptr) resolve_module(function);
}

// Arguments

const Layout* layout_of(void* function) {
  for (size_t i = 0; i < g_layouts.count; ++i)
    if (g_layouts.data[i].function == function) return &g_layouts.data[i];
  Layout layout{function, 0, 0, static_cast<uint32_t>(g_offsets.count)};
  // CUDA_ERROR_INVALID_VALUE (1) ends the list. Other errors may mean that the handle is a kernel's.
  bool ended = false;
  decltype(g_driver.parameter_info) const asked[] = {g_driver.parameter_info, g_driver.kernel_parameter_info};
  for (auto* const ask : asked) {
    layout.count = layout.bytes = 0;
    g_offsets.count = g_sizes.count = layout.first;
    Result result = 0;
    for (size_t i = 0; i < 4096; ++i) {
      size_t offset = 0, bytes = 0;
      if ((result = ask(function, i, &offset, &bytes)) != 0) break;
      if (!g_offsets.add(static_cast<uint32_t>(offset)) || !g_sizes.add(static_cast<uint32_t>(bytes))) return nullptr;
      layout.bytes = static_cast<uint32_t>(offset + bytes);
      ++layout.count;
    }
    ended = result == 1;
    if (ended) break;
  }
  if (!ended || !g_layouts.add(layout)) return nullptr;
  return &g_layouts.data[g_layouts.count - 1];
}

// Where the calls have their arguments; `extra` holds all of them in one buffer.
struct Arguments {
  void** values = nullptr;
  const uint8_t* packed = nullptr;
  size_t packed_bytes = 0;
};
Arguments arguments_of(const replay::LaunchCall& call) {
  Arguments out;
  void** extra = nullptr;
  switch (call.kind) {
    case replay::LaunchCall::Kind::kKernel:
      out.values = word<void**>(call.parameters, 48);
      extra = word<void**>(call.parameters, 56);
      break;
    case replay::LaunchCall::Kind::kCooperative:
      out.values = word<void**>(call.parameters, 48);
      break;
    case replay::LaunchCall::Kind::kExtended:
      out.values = word<void**>(call.parameters, 16);
      extra = word<void**>(call.parameters, 24);
      break;
    case replay::LaunchCall::Kind::kGraph:
      break;
  }
  for (; out.values == nullptr && extra != nullptr && *extra != nullptr; extra += 2) {
    if (*extra == reinterpret_cast<void*>(1)) out.packed = static_cast<const uint8_t*>(extra[1]);
    if (*extra == reinterpret_cast<void*>(2)) out.packed_bytes = *static_cast<const size_t*>(extra[1]);
  }
  return out;
}

bool points_to_host(const uint8_t* bytes, size_t size) {
  for (size_t at = 0; at + 8 <= size; at += 8) {
    Address value;
    memcpy(&value, bytes + at, sizeof value);
    for (size_t i = 0; i < g_memory.count; ++i) {
      const Memory& memory = g_memory.data[i];
      if (memory.where == Where::kHost && value >= memory.address && value < memory.address + memory.bytes) return true;
    }
  }
  return false;
}

bool any_host_memory() {
  if (g_managed) return true;
  for (size_t i = 0; i < g_memory.count; ++i)
    if (g_memory.data[i].where == Where::kHost) return true;
  return false;
}

}  // namespace

Effect effect_of(const char* function) {
  struct Known {
    const char* prefix;
    Effect effect;
  };
  static constexpr Known kKnown[] = {
      {"cuLaunchCooperativeKernelMultiDevice", Effect::kNone},
      {"cuLaunchKernel", Effect::kLaunch},
      {"cuLaunchCooperativeKernel", Effect::kLaunch},
      {"cuGraphLaunch", Effect::kLaunch},
      {"cuMemcpyDtoH", Effect::kReads},
      {"cuMemcpyAtoH", Effect::kReads},
      {"cuMemGet", Effect::kNone},
      {"cuMemPoolGet", Effect::kNone},
      {"cuMemPoolSet", Effect::kNone},
      {"cuMemHostGet", Effect::kNone},
      {"cuMemRangeGet", Effect::kNone},
      {"cuMemRelease", Effect::kNone},
      {"cuMemRetain", Effect::kNone},
      {"cuMem", Effect::kChanges},
      {"cuModuleLoad", Effect::kChanges},
      {"cuModuleUnload", Effect::kChanges},
      {"cuLibraryLoad", Effect::kChanges},
      {"cuLibraryUnload", Effect::kChanges},
      {"cuArrayGet", Effect::kNone},
      {"cuArray", Effect::kChanges},
      {"cuMipmappedArrayGet", Effect::kNone},
      {"cuMipmapped", Effect::kChanges},
      {"cuGraphics", Effect::kChanges},
      {"cuGL", Effect::kChanges},
      {"cuEGL", Effect::kChanges},
      {"cuExternalMemory", Effect::kChanges},
      {"cuImportExternal", Effect::kChanges},
      {"cuSignalExternal", Effect::kChanges},
      {"cuWaitExternal", Effect::kChanges},
      {"cuDestroyExternal", Effect::kChanges},
      {"cuIpcOpen", Effect::kChanges},
      {"cuIpcClose", Effect::kChanges},
      {"cuMulticast", Effect::kChanges},
      {"cuTexRefSet", Effect::kChanges},
      {"cuStreamDestroy", Effect::kChanges},
      {"cuStreamWriteValue", Effect::kChanges},
      {"cuStreamWaitValue", Effect::kChanges},
      {"cuStreamBatchMemOp", Effect::kChanges},
      {"cuStreamAttach", Effect::kChanges},
      {"cuStreamBeginCapture", Effect::kCaptureBegins},
      {"cuStreamEndCapture", Effect::kCaptureEnds},
      {"cuGraphExecGet", Effect::kNone},
      {"cuGraphExec", Effect::kChanges},
      {"cuGraphAddMemAlloc", Effect::kChanges},
      {"cuGraphAddKernelNode", Effect::kChanges},
      {"cuGraphAddNode", Effect::kChanges},
      {"cuGraphKernelNodeSetParams", Effect::kChanges},
      {"cuGraphNodeSetParams", Effect::kChanges},
      {"cuModuleGetGlobal", Effect::kChanges},
      {"cuLibraryGetGlobal", Effect::kChanges},
      {"cuLibraryGetManaged", Effect::kChanges},
      {"cuDeviceGraphMemTrim", Effect::kChanges},
      {"cuCtxDestroy", Effect::kChanges},
      {"cuCtxDetach", Effect::kChanges},
      {"cuCtxSetLimit", Effect::kChanges},
      {"cuCtxEnablePeer", Effect::kChanges},
      {"cuCtxDisablePeer", Effect::kChanges},
      {"cuCtxResetPersisting", Effect::kChanges},
      {"cuDevicePrimaryCtxRe", Effect::kChanges},
      {"cuGreenCtxDestroy", Effect::kChanges},
      {"cuFuncSet", Effect::kChanges},
      {"cuKernelSet", Effect::kChanges},
  };
  for (const Known& known : kKnown)
    if (starts(function, known.prefix)) return known.effect;
  return Effect::kNone;
}

namespace replay {

bool find_functions() {
  const auto find = [](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(cuda::find_in_driver(symbol));
    return to != nullptr;
  };
  find(g_driver.function_load, "cuFuncLoad");
  find(g_driver.device_address, "cuDeviceGetPCIBusId");
  if (!find(g_driver.link_add, "cuLinkAddData_v2") || !find(g_driver.link_complete, "cuLinkComplete") ||
      !find(g_driver.link_destroy, "cuLinkDestroy") || !find(g_driver.link_create, "cuLinkCreate_v2"))
    g_driver.link_create = nullptr;
  find(g_driver.library_global, "cuLibraryGetGlobal");
  find(g_driver.library_managed, "cuLibraryGetManaged");
  return find(g_driver.memory_info, "cuMemGetInfo_v2") && find(g_driver.memory_alloc, "cuMemAlloc_v2") &&
         find(g_driver.memory_free, "cuMemFree_v2") && find(g_driver.copy, "cuMemcpyAsync") &&
         find(g_driver.copy_out, "cuMemcpyDtoH_v2") && find(g_driver.copy_in, "cuMemcpyHtoD_v2") &&
         find(g_driver.fill, "cuMemsetD8_v2") && find(g_driver.synchronize, "cuCtxSynchronize") &&
         find(g_driver.push, "cuCtxPushCurrent_v2") && find(g_driver.pop, "cuCtxPopCurrent_v2") &&
         find(g_driver.current, "cuCtxGetCurrent") && find(g_driver.context_device, "cuCtxGetDevice") &&
         find(g_driver.device_attribute, "cuDeviceGetAttribute") && find(g_driver.module_load, "cuModuleLoadData") &&
         find(g_driver.module_unload, "cuModuleUnload") && find(g_driver.module_function, "cuModuleGetFunction") &&
         find(g_driver.module_global, "cuModuleGetGlobal_v2") &&
         find(g_driver.pointer_attribute, "cuPointerGetAttribute") &&
         find(g_driver.function_module, "cuFuncGetModule") && find(g_driver.kernel_function, "cuKernelGetFunction") &&
         find(g_driver.parameter_info, "cuFuncGetParamInfo") &&
         find(g_driver.kernel_parameter_info, "cuKernelGetParamInfo") && find(g_driver.launch, "cuLaunchKernel") &&
         find(g_driver.launch_cooperative, "cuLaunchCooperativeKernel") &&
         find(g_driver.launch_extended, "cuLaunchKernelEx") && find(g_driver.launch_graph, "cuGraphLaunch");
}

void note_call(const char* function, const void* parameters, void* context) {
  if (starts(function, "cuMemAllocPitch"))
    return add_memory(pointed(parameters), *word<const size_t*>(parameters, 8) * word<size_t>(parameters, 24), context,
                      Where::kDevice);
  if (starts(function, "cuMemAllocManaged") || starts(function, "cuMemAllocHost"))
    return add_memory(pointed(parameters), word<size_t>(parameters, 8), context, Where::kHost);
  if (starts(function, "cuMemAlloc"))
    return add_memory(pointed(parameters), word<size_t>(parameters, 8), context, Where::kDevice);
  if (starts(function, "cuMemHostAlloc"))
    return add_memory(pointed(parameters), word<size_t>(parameters, 8), context, Where::kHost);
  if (starts(function, "cuMemHostRegister"))
    return add_memory(word<Address>(parameters, 0), word<size_t>(parameters, 8), context, Where::kHost);
  if (starts(function, "cuMemMap")) {
    if (!starts(function, "cuMemMapArray"))
      return add_memory(word<Address>(parameters, 0), word<size_t>(parameters, 8), context, Where::kDevice);
    g_problem = "the program uses arrays, whose contents cannot be saved";
  }
  if (starts(function, "cuMemUnmap")) {  // of several mappings at once
    const auto from = word<Address>(parameters, 0);
    const auto bytes = word<size_t>(parameters, 8);
    for (size_t i = g_memory.count; i-- > 0;)
      if (g_memory.data[i].where == Where::kDevice && g_memory.data[i].address - from < bytes) g_memory.drop(i);
    return;
  }
  if (starts(function, "cuMemFree") || starts(function, "cuMemHostUnregister"))
    return remove_memory(word<Address>(parameters, 0));
  if (starts(function, "cuCtxEnablePeer")) g_peers = true;
  if (starts(function, "cuArray") || starts(function, "cuMipmapped"))
    g_problem = "the program uses arrays, whose contents cannot be saved";
  if (starts(function, "cuGraphics") || starts(function, "cuGL") || starts(function, "cuEGL") ||
      starts(function, "cuImportExternal"))
    g_problem = "the program shares memory with a graphics interface";
  if (starts(function, "cuIpcOpen") || starts(function, "cuMulticast"))
    g_problem = "the program shares memory with other processes or GPUs";
  if (starts(function, "cuGraphAddMemAlloc")) g_problem = "the program's graphs allocate memory";
  if (starts(function, "cuGraphAddKernelNode")) note_node(parameters, 32, false);
  if (starts(function, "cuGraphAddNode"))
    note_node(parameters, strcmp(function, "cuGraphAddNode") == 0 ? 32 : 40, true);
  if (starts(function, "cuGraphExecKernelNodeSetParams")) note_node(parameters, 16, false);
  if (starts(function, "cuGraphKernelNodeSetParams")) note_node(parameters, 8, false);
  if (starts(function, "cuGraphExecNodeSetParams")) note_node(parameters, 16, true);
  if (starts(function, "cuGraphNodeSetParams")) note_node(parameters, 8, true);
  if (starts(function, "cuModuleGetGlobal") || starts(function, "cuLibraryGetGlobal") ||
      starts(function, "cuLibraryGetManaged")) {
    // The program may ask for one of the two only.
    Address address = 0;
    size_t bytes = 0;
    auto* const ask = starts(function, "cuModuleGetGlobal")    ? g_driver.module_global
                      : starts(function, "cuLibraryGetGlobal") ? g_driver.library_global
                                                               : g_driver.library_managed;
    if (ask != nullptr && ask(&address, &bytes, word<void*>(parameters, 16), word<const char*>(parameters, 24)) == 0)
      add_variable(address, bytes);
    else
      g_lost = true;
  }
  if (starts(function, "cuModuleLoad"))
    if (auto* const module = word<void* const*>(parameters, 0); module != nullptr) {
      void* current = nullptr;
      g_driver.current(&current);
      g_loaded.add({*module, current});
    }
  if (starts(function, "cuModuleUnload"))
    for (size_t i = g_loaded.count; i-- > 0;)
      if (g_loaded.data[i].module == word<void*>(parameters, 0)) g_loaded.drop(i);
  if (starts(function, "cuLibraryLoad"))
    if (auto* const library = word<void* const*>(parameters, 0); library != nullptr) g_libraries.add(*library);
  if (starts(function, "cuLibraryUnload"))
    for (size_t i = g_libraries.count; i-- > 0;)
      if (g_libraries.data[i] == word<void*>(parameters, 0)) g_libraries.drop(i);
  if (starts(function, "cuModuleUnload") || starts(function, "cuLibraryUnload")) {
    // The call does not name the variables that it removed, but their addresses no longer have attributes.
    g_unloaded = true;
    constexpr int kMemoryType = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    unsigned type = 0;
    for (size_t i = g_memory.count; i-- > 0;)
      if ((g_memory.data[i].where == Where::kGlobal || g_managed) &&
          g_driver.pointer_attribute(&type, kMemoryType, g_memory.data[i].address) != 0)
        g_memory.drop(i);
    g_modules.count = 0;
    g_layouts.count = g_offsets.count = g_sizes.count = 0;
    ++g_generation;
  }
}

void note_module(const void* image, size_t bytes) {
  const auto* const file = static_cast<const char*>(image);
  Elf64_Ehdr head;
  if (image == nullptr || bytes < sizeof head) return;
  memcpy(&head, file, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shoff > bytes ||
      head.e_shnum > (bytes - head.e_shoff) / sizeof(Elf64_Shdr) || head.e_shstrndx >= head.e_shnum)
    return;
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(file + head.e_shoff);
  const auto inside = [&](const Elf64_Shdr& section) {
    return section.sh_offset <= bytes && section.sh_size <= bytes - section.sh_offset;
  };
  const Elf64_Shdr& names = sections[head.e_shstrndx];
  if (!inside(names) || names.sh_size == 0 || file[names.sh_offset + names.sh_size - 1] != '\0') return;
  for (size_t s = 0; s < head.e_shnum; ++s)
    if (sections[s].sh_name >= names.sh_size) return;
  for (size_t s = 0; s < head.e_shnum; ++s) {
    const Elf64_Shdr& table = sections[s];
    if (table.sh_type != SHT_SYMTAB || !inside(table) || table.sh_link >= head.e_shnum ||
        !inside(sections[table.sh_link]))
      continue;
    const Elf64_Shdr& strings = sections[table.sh_link];
    if (strings.sh_size == 0 || file[strings.sh_offset + strings.sh_size - 1] != '\0') continue;
    for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      memcpy(&symbol, file + table.sh_offset + i * sizeof symbol, sizeof symbol);
      if (!names_variable(symbol, sections, head.e_shnum, file + names.sh_offset) || symbol.st_name >= strings.sh_size)
        continue;
      constexpr unsigned char kManaged = 4;  // the st_other that nvcc gives a __managed__ variable
      const char* const name = file + strings.sh_offset + symbol.st_name;
      if ((symbol.st_other & kManaged) != 0) {
        g_managed = true;
        add_name(g_managed_names, name);
      } else {
        add_name(g_names, name);
      }
      g_modules.count = 0;  // a name may be of a module that was looked through before
      ++g_generation;
    }
  }
}

bool variables_known() {
  return !g_lost;
}

const char* problem() {
  return g_problem;
}
uint32_t generation() {
  return g_generation;
}

LaunchCall::Kind kind_of(const char* function) {
  return starts(function, "cuLaunchKernelEx")            ? LaunchCall::Kind::kExtended
         : starts(function, "cuLaunchCooperativeKernel") ? LaunchCall::Kind::kCooperative
         : starts(function, "cuGraphLaunch")             ? LaunchCall::Kind::kGraph
                                                         : LaunchCall::Kind::kKernel;
}

bool prepare(const LaunchCall& call) {
  const size_t before = g_memory.count;
  if (call.kind != LaunchCall::Kind::kGraph) resolve_module(call.handle);
  return g_memory.count == before;
}

bool touches_host(const LaunchCall& call) {
  if (!any_host_memory()) return false;
  if (call.kind == LaunchCall::Kind::kGraph || g_managed) return true;
  const Arguments arguments = arguments_of(call);
  if (arguments.packed != nullptr) return points_to_host(arguments.packed, arguments.packed_bytes);
  const Layout* const layout = layout_of(call.handle);
  if (layout == nullptr || arguments.values == nullptr) return layout == nullptr;
  for (uint32_t i = 0; i < layout->count; ++i)
    if (points_to_host(static_cast<const uint8_t*>(arguments.values[i]), g_sizes.data[layout->first + i])) return true;
  return false;
}

const char* begin(void* context, bool with_host) {
  if (g_batch_context != nullptr && g_batch_context != context) {
    const InContext old(g_batch_context);
    release(g_before);
    release(g_after);
  }
  if (g_peers || with_host) settle_others(context);
  const InContext inside(context);
  if (with_host) drop_gone_memory();
  if (!find_managed()) return "a managed variable of a module cannot be found";
  tools_of(context);  // their memory before that of copies, which may take all
  g_kept.count = 0;
  g_blob.count = 0;
  g_pieces.count = 0;
  g_written.count = 0;  // places of a batch before this one mean nothing in this one's copies
  g_put_back = false;
  g_batch_context = context;
  size_t total = 0;
  for (size_t i = 0; i < g_memory.count; ++i) {
    const Memory& memory = g_memory.data[i];
    if (memory.where == Where::kHost ? !with_host : memory.context != context && !g_peers) continue;
    if (!g_pieces.add({memory.address, memory.bytes, total})) return "there is no memory for a list of saved memory";
    total += rounded(memory.bytes);
  }
  if (const Result result = g_driver.synchronize(); result != 0) return failed("the GPU reports an error", result);
  if (!reserve(g_before, total)) {
    snprintf(g_why, sizeof g_why,
             "%zu MB of memory in use cannot be saved: neither the GPU nor the host has as much free", total >> 20);
    return g_why;
  }
  for (size_t i = 0; i < g_pieces.count; ++i)
    if (const Result result = save(g_before, g_pieces.data[i]); result != 0)
      return failed("memory in use cannot be read", result);
  if (const Result result = g_driver.synchronize(); result != 0) return failed("memory in use cannot be read", result);
  return nullptr;
}

bool keep(const LaunchCall& call) {
  Kept kept{};
  kept.kind = call.kind;
  kept.handle = call.handle;
  const char* const words = static_cast<const char*>(call.parameters);
  if (call.kind == LaunchCall::Kind::kGraph) {
    kept.stream = word<void*>(words, 8);
    return g_kept.add(kept);
  }
  const char* const shape = call.kind == LaunchCall::Kind::kExtended ? word<const char*>(words, 0) : words + 8;
  memcpy(kept.grid, shape, sizeof kept.grid);
  memcpy(kept.block, shape + 12, sizeof kept.block);
  memcpy(&kept.shared, shape + 24, sizeof kept.shared);
  kept.stream = word<void*>(shape, 32);
  const size_t start = g_blob.count;
  if (call.kind == LaunchCall::Kind::kExtended) {
    constexpr size_t kAttribute = 72;  // sizeof(CUlaunchAttribute)
    kept.attribute_count = word<uint32_t>(shape, 48);
    kept.attributes = g_blob.count;
    if (kept.attribute_count != 0) {
      uint8_t* const to = g_blob.grow(kept.attribute_count * kAttribute);
      if (to == nullptr) return false;
      memcpy(to, word<const void*>(shape, 40), kept.attribute_count * kAttribute);
    }
  }
  const Arguments arguments = arguments_of(call);
  g_blob.grow((16 - g_blob.count % 16) % 16);
  kept.arguments = g_blob.count;
  if (arguments.packed != nullptr) {
    kept.packed = true;
    kept.argument_bytes = arguments.packed_bytes;
    uint8_t* const to = g_blob.grow(arguments.packed_bytes);
    if (to == nullptr) return false;
    memcpy(to, arguments.packed, arguments.packed_bytes);
  } else {
    const Layout* const layout = layout_of(call.handle);
    if (layout == nullptr || (layout->count != 0 && arguments.values == nullptr)) {
      g_blob.count = start;
      return false;
    }
    kept.layout = static_cast<uint32_t>(layout - g_layouts.data);
    uint8_t* const to = g_blob.grow(layout->bytes);
    if (to == nullptr && layout->bytes != 0) return false;
    for (uint32_t i = 0; i < layout->count; ++i)
      memcpy(to + g_offsets.data[layout->first + i], arguments.values[i], g_sizes.data[layout->first + i]);
  }
  return g_kept.add(kept);
}

void note_emptied() {
  if (g_kept.count != 0) g_kept.data[g_kept.count - 1].emptied = true;
}

size_t kept() {
  return g_kept.count;
}

const char* first_done() {
  const InContext inside(g_batch_context);
  if (const Result result = g_driver.synchronize(); result != 0) return failed("the GPU reports an error", result);
  const uint8_t* const flags = compare();
  g_written.count = 0;
  size_t total = 0, at = 0;
  for (size_t i = 0; i < g_pieces.count; ++i) {
    const Piece& piece = g_pieces.data[i];
    const size_t chunks = (piece.bytes + kChunk - 1) / kChunk;
    // The comparison sees whole words of aligned pieces only.
    const bool seen = flags != nullptr && piece.address % 16 == 0 && piece.bytes >= 16;
    for (size_t c = 0; c < chunks; ++c) {
      const size_t offset = c * kChunk, bytes = piece.bytes - offset < kChunk ? piece.bytes - offset : kChunk;
      if (seen && flags[at + c] == 0 && bytes % 16 == 0) continue;
      // Only within one allocation: a copy across the border of two neighbours is refused (CUDA_ERROR_INVALID_VALUE).
      Piece* const last = offset == 0 || g_written.count == 0 ? nullptr : &g_written.data[g_written.count - 1];
      if (last != nullptr && last->address + last->bytes == piece.address + offset)
        last->bytes += bytes;
      else if (!g_written.add({piece.address + offset, bytes, piece.saved + offset}))
        return "there is no memory for a list of written memory";
      total += bytes;
    }
    at += chunks;
  }
  // The results of the first execution lie at the same offsets in their own buffer, without the gaps.
  if (!reserve(g_after, total + g_written.count * 256)) return "there is no memory for a copy of the kernels' results";
  size_t place = 0;
  for (size_t i = 0; i < g_written.count; ++i) {
    const Piece& piece = g_written.data[i];
    if (const Result result = save(g_after, {piece.address, piece.bytes, place}); result != 0)
      return failed("the kernels' results cannot be saved", result);
    place += rounded(piece.bytes);
  }
  const Result result = g_driver.synchronize();
  return result == 0 ? nullptr : failed("the kernels' results cannot be saved", result);
}

const char* put_back() {
  const InContext inside(g_batch_context);
  g_put_back = true;
  for (size_t i = 0; i < g_written.count; ++i)
    if (const Result result = restore(g_before, g_written.data[i]); result != 0)
      return failed("memory cannot be put back", result);
  const Result result = g_driver.synchronize();
  return result == 0 ? nullptr : failed("memory cannot be put back", result);
}

const char* run_again() {
  const InContext inside(g_batch_context);
  for (size_t k = 0; k < g_kept.count; ++k) {
    const Kept& each = g_kept.data[k];
    if (each.emptied && empty_cache(g_batch_context) == Emptied::kFailed) return "the L2 cannot be emptied";
    uint8_t* const values = g_blob.data + each.arguments;
    size_t packed_bytes = each.argument_bytes;
    void* extra[] = {reinterpret_cast<void*>(1), values, reinterpret_cast<void*>(2), &packed_bytes, nullptr};
    void** pointers = nullptr;
    if (each.kind != LaunchCall::Kind::kGraph && !each.packed) {
      const Layout& layout = g_layouts.data[each.layout];
      g_pointers.count = 0;
      pointers = g_pointers.grow(layout.count + 1);
      if (pointers == nullptr) return "there is no memory for a kernel's arguments";
      for (uint32_t i = 0; i < layout.count; ++i) pointers[i] = values + g_offsets.data[layout.first + i];
    }
    void** const packed = each.packed ? extra : nullptr;
    Result result = 0;
    switch (each.kind) {
      case LaunchCall::Kind::kKernel:
        result = g_driver.launch(each.handle, each.grid[0], each.grid[1], each.grid[2], each.block[0], each.block[1],
                                 each.block[2], each.shared, each.stream, pointers, packed);
        break;
      case LaunchCall::Kind::kCooperative:
        result = g_driver.launch_cooperative(each.handle, each.grid[0], each.grid[1], each.grid[2], each.block[0],
                                             each.block[1], each.block[2], each.shared, each.stream, pointers);
        break;
      case LaunchCall::Kind::kExtended: {
        struct {  // CUlaunchConfig
          uint32_t grid[3], block[3], shared;
          void* stream;
          const void* attributes;
          uint32_t count;
        } config{};
        memcpy(config.grid, each.grid, sizeof config.grid);
        memcpy(config.block, each.block, sizeof config.block);
        config.shared = each.shared;
        config.stream = each.stream;
        config.attributes = each.attribute_count == 0 ? nullptr : g_blob.data + each.attributes;
        config.count = static_cast<uint32_t>(each.attribute_count);
        result = g_driver.launch_extended(&config, each.handle, pointers, packed);
        break;
      }
      case LaunchCall::Kind::kGraph:
        result = g_driver.launch_graph(each.handle, each.stream);
        break;
    }
    if (result != 0) return failed("a kernel cannot be launched again", result);
  }
  const Result result = g_driver.synchronize();
  return result == 0 ? nullptr : failed("a kernel that ran again failed", result);
}

const char* end() {
  g_kept.count = 0;
  g_blob.count = 0;
  if (!g_put_back) return nullptr;
  const InContext inside(g_batch_context);
  g_put_back = false;
  size_t place = 0;
  Result result = 0;
  for (size_t i = 0; i < g_written.count && result == 0; ++i) {
    result = restore(g_after, {g_written.data[i].address, g_written.data[i].bytes, place});
    place += rounded(g_written.data[i].bytes);
  }
  if (result == 0) result = g_driver.synchronize();
  return result == 0 ? nullptr : failed("the kernels' results cannot be put back", result);
}

const char* drop() {
  const char* const problem = g_kept.count != 0 ? put_back() : nullptr;
  g_kept.count = 0;
  g_blob.count = 0;
  g_written.count = 0;
  g_put_back = false;
  return problem;
}

bool settle(void* context) {
  const InContext inside(context);
  return g_driver.synchronize != nullptr && g_driver.synchronize() == 0;
}

Emptied emptied_by(void* context) {
  const Tools* const tools = tools_of(context);
  return tools == nullptr || tools->sweep_bytes == 0 ? Emptied::kFailed
         : tools->by_driver                          ? Emptied::kByDriver
                                                     : Emptied::kBySweep;
}

Emptied empty_cache(void* context) {
  const Emptied way = emptied_by(context);
  if (way == Emptied::kFailed) return way;
  const Tools& tools = *tools_of(context);
  if (way == Emptied::kByDriver)
    return load_nothing(tools) && settle(context) && empty_l2(tools.l2) ? way : Emptied::kFailed;
  Address from = tools.sweep_buffer, sink = tools.sweep_buffer + tools.sweep_bytes;
  uint64_t words = tools.sweep_bytes / 16;
  void* arguments[] = {&from, &words, &sink};
  return g_driver.launch(tools.sweep, 1024, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr) == 0 ? way
                                                                                                  : Emptied::kFailed;
}

void give_memory_back() {
  if (g_batch_context == nullptr || (g_before.bytes == 0 && g_after.bytes == 0)) return;
  const InContext inside(g_batch_context);
  size_t free = 0, total = 0;
  if (g_driver.memory_info(&free, &total) == 0 && free > total / 8) return;
  release(g_before);
  release(g_after);
}

void forget(void* context) {
  if (context == g_batch_context) {
    // The context's end frees its device memory.
    g_before.device = g_after.device = 0;
    release(g_before);
    release(g_after);
    g_batch_context = nullptr;
  }
  for (size_t i = g_tools.count; i-- > 0;)
    if (g_tools.data[i].context == context) {
      give_back(g_tools.data[i]);
      g_tools.drop(i);
    }
  for (size_t i = g_loaded.count; i-- > 0;)
    if (g_loaded.data[i].context == context) g_loaded.drop(i);
  for (size_t i = g_memory.count; i-- > 0;)
    if (g_memory.data[i].context == context && g_memory.data[i].where != Where::kHost) g_memory.drop(i);
  // Handles may come again for other functions and modules.
  g_unloaded = true;
  g_modules.count = 0;
  g_layouts.count = g_offsets.count = g_sizes.count = 0;
  ++g_generation;
}

}  // namespace replay
}  // namespace tacho::capture::counter
