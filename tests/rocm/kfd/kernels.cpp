// Finds the kernel of a dispatch (driver.h). ROCr keeps a list of loaded code objects for debuggers (struct r_debug, as
// the dynamic linker's). A code object's symbol NAME.kd is the address of a kernel's descriptor, which a dispatch
// packet names.
//
// A program may bring a host version of a kernel: an exported function bed_NAME(const kfd::Dispatch*, const void*
// arguments). A kernel without a name is one of ROCr's own: copies are made.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstring>

#include "driver.h"

namespace kfd {
namespace {

std::mutex g_mutex;
std::map<uint64_t, std::string>& names() {
  static auto* const made = new std::map<uint64_t, std::string>;
  return *made;
}

// ROCr's list; it exports the symbol for debuggers.
const r_debug* code_objects() {
  void* const runtime = dlopen("libhsa-runtime64.so.1", RTLD_NOLOAD | RTLD_LAZY);
  return runtime == nullptr ? nullptr : static_cast<const r_debug*>(dlsym(runtime, "_amdgpu_r_debug"));
}

uint64_t number_after(const std::string& text, const char* key) {
  const size_t at = text.find(key);
  return at == std::string::npos ? 0 : strtoull(text.c_str() + at + strlen(key), nullptr, 0);
}

// The bytes of a code object: "file://PATH[#offset=N&size=N]" or "memory://PID#offset=ADDRESS&size=N".
std::vector<char> bytes_of(const std::string& uri) {
  const uint64_t offset = number_after(uri, "offset="), size = number_after(uri, "size=");
  std::vector<char> bytes;
  if (uri.starts_with("memory://")) {
    const auto* const from = reinterpret_cast<const char*>(offset);
    bytes.assign(from, from + size);
  } else if (uri.starts_with("file://")) {
    const int file = open(uri.substr(7, uri.find('#') - 7).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return bytes;
    bytes.resize(size != 0 ? size : static_cast<size_t>(lseek(file, 0, SEEK_END)));
    if (pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes.size()))
      bytes.clear();
    close(file);
  }
  return bytes;
}

void add_kernels(const link_map& object) {
  const std::vector<char> bytes = bytes_of(object.l_name);
  if (bytes.size() < sizeof(Elf64_Ehdr)) return;
  Elf64_Ehdr header;
  memcpy(&header, bytes.data(), sizeof header);
  const auto within = [&](uint64_t at, uint64_t size) { return at <= bytes.size() && size <= bytes.size() - at; };
  if (!within(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr))) return;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  memcpy(sections.data(), bytes.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    if (!within(section.sh_offset, section.sh_size) || !within(strings.sh_offset, strings.sh_size)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      memcpy(&symbol, bytes.data() + section.sh_offset + at, sizeof symbol);
      if (symbol.st_name >= strings.sh_size) continue;
      const std::string name(bytes.data() + strings.sh_offset + symbol.st_name);
      if (name.ends_with(".kd")) names()[object.l_addr + symbol.st_value] = name.substr(0, name.size() - 3);
    }
  }
}

}  // namespace

std::string kernel_name(uint64_t object) {
  const std::lock_guard lock(g_mutex);
  const auto known = names().find(object);
  if (known != names().end()) return known->second;
  const r_debug* const list = code_objects();
  if (list == nullptr) return {};
  for (const link_map* at = list->r_map; at != nullptr; at = at->l_next)
    if (at->l_name != nullptr) add_kernels(*at);
  const auto found = names().find(object);
  return found == names().end() ? std::string() : found->second;
}

// The arguments of ROCr's own copies between addresses of one GPU (amd_blit_kernel.h of ROCr 5 to 7), which are in no
// code object: where each phase begins, for both sides, then where the last one ends, and the number of work-items.
bool run_copy(const void* arguments) {
  uint64_t at[10];
  memcpy(at, arguments, sizeof at);
  for (const size_t phases : {4, 2}) {  // of aligned addresses, of others
    const uint64_t bytes = at[2 * phases] - at[0];
    bool is = at[0] != 0 && at[1] != 0 && bytes < 1ull << 40;
    for (size_t phase = 1; phase <= phases && is; ++phase)
      is = at[2 * phase] >= at[2 * phase - 2] && at[2 * phase] - at[0] == at[2 * phase + 1] - at[1];
    if (!is) continue;
    memcpy(memory().host(at[1]), memory().host(at[0]), bytes);
    return true;
  }
  return false;
}

bool run_on_host(const std::string& name, const Dispatch& dispatch, void* arguments) {
  if (name.empty()) return run_copy(arguments);
  using Kernel = void (*)(const Dispatch*, const void*);
  const auto kernel = reinterpret_cast<Kernel>(dlsym(RTLD_DEFAULT, ("bed_" + name).c_str()));
  if (kernel == nullptr) return false;
  kernel(&dispatch, arguments);
  return true;
}

}  // namespace kfd
