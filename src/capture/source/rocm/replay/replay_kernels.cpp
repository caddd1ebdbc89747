// Kernels and the code that they are in (replay_kernels.h).
#include "capture/source/rocm/replay/replay_kernels.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/source/rocm/replay/replay_memory.h"
#include "capture/source/rocm/rocm.h"
#include "vendor/collective_kernels.h"

namespace tacho::capture::rocm::replay {

namespace {

struct Code {
  uint64_t id;
  uint8_t* metadata;  // a copy; nullptr = none
  size_t bytes;
  bool loaded;
};
struct LoadedKernel {
  uint64_t hash;
  char* name;
  size_t code;                       // among the codes
  const KernelArguments* arguments;  // nullptr = not read yet, or there are none to read
  bool read;
  bool differs;  // kernels of this name take different arguments
  bool wanted, collective;
  bool waits;  // it did not end on its own
};
constinit List<Code> g_codes{};
constinit List<LoadedKernel> g_kernels{};
constinit List<uint32_t> g_slots{};
constinit std::atomic<uint32_t> g_codes_loaded{0};
constinit std::atomic<uint32_t> g_kernels_lock{0};
constexpr size_t kSlots = 1u << 20;

uint64_t hash_of(const char* name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<uint8_t>(*name)) * 0x100000001b3ull;
  return hash;
}
// With the lock. `slot`: where it is, or belongs.
LoadedKernel* look_up(const char* name, uint64_t hash, size_t& slot) {
  if (!g_slots.reserve(kSlots)) return nullptr;
  const auto* const slots = g_slots.data;
  for (slot = static_cast<size_t>(hash >> 20) % kSlots; slots[slot] != 0; slot = (slot + 1) % kSlots)
    if (LoadedKernel& known = g_kernels.data[slots[slot] - 1]; known.hash == hash && strcmp(known.name, name) == 0)
      return &known;
  return nullptr;
}

// Also what vLLM and others make themselves waits for other GPUs.
bool waits_for_others(const char* name) {
  return vendor::is_collective_kernel(name) || strstr(name, "rocshmem") != nullptr ||
         strstr(name, "cross_device_reduce") != nullptr;
}

const KernelArguments* read_arguments(const Code& code, const char* name) {
  auto* const made = static_cast<KernelArguments*>(malloc(sizeof(KernelArguments)));
  if (made == nullptr || !code.loaded || !read_kernel_arguments(code.metadata, code.bytes, name, *made)) {
    free(made);
    return nullptr;
  }
  return made;
}
bool equal(const KernelArguments& a, const KernelArguments& b) {
  return a.calls_host == b.calls_host && a.count == b.count && memcmp(a.size, b.size, a.count * sizeof a.size[0]) == 0;
}

// A code object in a file: "file://PATH#offset=N&size=N".
struct ImageFile {
  const uint8_t* image = nullptr;
  size_t bytes = 0;

  void open(const char* uri) {
    char path[4096];
    const size_t length = uri != nullptr && strncmp(uri, "file://", 7) == 0 ? strcspn(uri + 7, "#") : 0;
    if (length == 0 || length >= sizeof path) return;
    memcpy(path, uri + 7, length);
    path[length] = '\0';
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const off_t end = lseek(file, 0, SEEK_END);
    const char *const offset = strstr(uri, "offset="), *const size = strstr(uri, "size=");
    const uint64_t all = end > 0 ? static_cast<uint64_t>(end) : 0;
    const uint64_t from = offset != nullptr ? strtoull(offset + 7, nullptr, 0) : 0;
    const uint64_t want = size != nullptr ? strtoull(size + 5, nullptr, 0) : all > from ? all - from : 0;
    if (want != 0 && from <= all && want <= all - from) {
      mapped_ = mmap(nullptr, all, PROT_READ, MAP_PRIVATE, file, 0);
      mapped_bytes_ = all;
      if (mapped_ != MAP_FAILED) {
        image = static_cast<const uint8_t*>(mapped_) + from;
        bytes = want;
      }
    }
    close(file);
  }
  ~ImageFile() {
    if (mapped_ != MAP_FAILED) munmap(mapped_, mapped_bytes_);
  }

 private:
  void* mapped_ = MAP_FAILED;
  size_t mapped_bytes_ = 0;
};

}  // namespace

void see_code_object(const vendor::sdk::CodeObject& code, bool loaded) {
  if (!loaded) {
    drop_variables(code.id);
    const Guard lock(g_kernels_lock);
    for (size_t i = 0; i < g_codes.count; ++i)
      if (g_codes.data[i].id == code.id && g_codes.data[i].loaded) {
        free(g_codes.data[i].metadata);
        g_codes.data[i] = {code.id, nullptr, 0, false};
      }
    return;
  }
  ImageFile file;
  const bool in_memory = code.storage == vendor::sdk::CodeObject::kInMemory;
  if (!in_memory) file.open(code.uri);
  const uint8_t* const image = in_memory ? reinterpret_cast<const uint8_t*>(code.memory) : file.image;
  const size_t bytes = in_memory ? code.memory_bytes : file.bytes;
  CodeObjectParts parts{};
  const bool known = image != nullptr && read_code_object(image, bytes, parts);
  add_variables(code, known ? &parts : nullptr);
  Code made{code.id, nullptr, 0, true};
  if (known && parts.metadata != nullptr) {
    made.metadata = static_cast<uint8_t*>(malloc(parts.metadata_bytes));
    if (made.metadata != nullptr) {
      memcpy(made.metadata, parts.metadata, parts.metadata_bytes);
      made.bytes = parts.metadata_bytes;
    }
  }
  g_codes_loaded.fetch_add(1);
  const Guard lock(g_kernels_lock);
  g_codes.add(made);
}

void see_kernel(uint64_t code_object, const char* name, const counter::CounterSpool& filter) {
  const Guard lock(g_kernels_lock);
  size_t code = g_codes.count;
  for (size_t i = g_codes.count; i-- > 0 && code == g_codes.count;)
    if (g_codes.data[i].id == code_object && g_codes.data[i].loaded) code = i;
  if (code == g_codes.count) return;
  size_t slot = 0;
  const uint64_t hash = hash_of(name);
  if (LoadedKernel* const kernel = look_up(name, hash, slot); kernel != nullptr) {
    // Copies of the same code for several GPUs, or another piece of code with a kernel of that name.
    const Code &before = g_codes.data[kernel->code], &now = g_codes.data[code];
    if (!before.loaded) {
      kernel->arguments = nullptr;  // a launch may be about to read the old ones
      kernel->read = kernel->differs = false;
    } else if (before.bytes != now.bytes || memcmp(before.metadata, now.metadata, now.bytes) != 0) {
      const KernelArguments* const old = read_arguments(before, name);
      const KernelArguments* const fresh = read_arguments(now, name);
      kernel->differs = kernel->differs || old == nullptr || fresh == nullptr || !equal(*old, *fresh);
      free(const_cast<KernelArguments*>(old));
      free(const_cast<KernelArguments*>(fresh));
    }
    kernel->code = code;
    return;
  }
  if (g_slots.capacity == 0 || g_kernels.count >= kSlots / 2) return;
  LoadedKernel made{};
  made.hash = hash;
  made.name = strdup(name);
  made.code = code;
  if (made.name == nullptr) return;
  made.wanted = filter.name_passes(name);
  made.collective = waits_for_others(name);
  if (g_kernels.add(made)) g_slots.data[slot] = static_cast<uint32_t>(g_kernels.count);
}

uint32_t codes_loaded() {
  return g_codes_loaded.load();
}

bool find_kernel(const char* name, KnownKernel& out) {
  const Guard lock(g_kernels_lock);
  size_t slot = 0;
  LoadedKernel* const kernel = look_up(name, hash_of(name), slot);
  if (kernel == nullptr) return false;
  if (kernel->wanted && !kernel->read) {
    kernel->arguments = read_arguments(g_codes.data[kernel->code], kernel->name);
    kernel->read = true;
  }
  out = {static_cast<size_t>(kernel - &g_kernels.data[0]),
         kernel->name,
         kernel->differs ? nullptr : kernel->arguments,
         kernel->wanted,
         kernel->collective,
         kernel->waits};
  return true;
}

void note_waiting(size_t number) {
  const Guard lock(g_kernels_lock);
  g_kernels.data[number].waits = true;
}

}  // namespace tacho::capture::rocm::replay
