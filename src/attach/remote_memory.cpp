// Reads another process's memory and the tables of symbols in it (remote_memory.h).
#include "attach/remote_memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

namespace tacho::attach {
namespace {

// Bounds for what a process may claim about itself.
constexpr uint32_t kMostParts = 128, kMostDynamic = 1024, kMostBuckets = 1u << 24, kMostChain = 1u << 16;

// A module's tables, as the loader has left them.
struct Tables {
  uint64_t bias = 0, symbols = 0, names = 0, names_bytes = 0, gnu_hash = 0, hash = 0, versions = 0;
};

std::optional<Tables> tables_of(const RemoteMemory& memory, const RemoteModule& module) {
  const auto header = memory.value<Elf64_Ehdr>(module.begin);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  Tables tables;
  uint64_t dynamic = 0;
  bool found_first = false;
  for (uint32_t i = 0; i < std::min<uint32_t>(header->e_phnum, kMostParts); ++i) {
    const auto part = memory.value<Elf64_Phdr>(module.begin + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) return std::nullopt;
    if (part->p_type == PT_LOAD && part->p_offset == 0 && !found_first) {
      tables.bias = module.begin - part->p_vaddr;
      found_first = true;
    }
    if (part->p_type == PT_DYNAMIC) dynamic = part->p_vaddr;
  }
  if (!found_first || dynamic == 0) return std::nullopt;
  dynamic += tables.bias;
  for (uint32_t i = 0; i < kMostDynamic; ++i) {
    const auto entry = memory.value<Elf64_Dyn>(dynamic + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    // glibc makes addresses of these when it loads a library, musl and the kernel do not.
    const uint64_t at = entry->d_un.d_ptr < module.begin ? tables.bias + entry->d_un.d_ptr : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) tables.symbols = at;
    if (entry->d_tag == DT_STRTAB) tables.names = at;
    if (entry->d_tag == DT_STRSZ) tables.names_bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = at;
    if (entry->d_tag == DT_HASH) tables.hash = at;
    if (entry->d_tag == DT_VERSYM) tables.versions = at;
  }
  if (tables.symbols == 0 || tables.names == 0) return std::nullopt;
  return tables;
}

// The symbol's function, if it is one of that name. `hidden`: of an old version, kept for programs linked long ago.
std::optional<RemoteFunction> function_at(const RemoteMemory& memory, const RemoteModule& module, const Tables& tables,
                                          uint32_t index, std::string_view name, bool& hidden) {
  const auto symbol = memory.value<Elf64_Sym>(tables.symbols + uint64_t{index} * sizeof(Elf64_Sym));
  if (!symbol || symbol->st_shndx == SHN_UNDEF || symbol->st_name >= tables.names_bytes) return std::nullopt;
  if (const auto type = ELF64_ST_TYPE(symbol->st_info); type != STT_FUNC && type != STT_NOTYPE) return std::nullopt;
  std::string there(name.size() + 1, '\0');
  if (!memory.read(tables.names + symbol->st_name, there.data(), there.size()) || there.back() != '\0' ||
      std::string_view(there).substr(0, name.size()) != name)
    return std::nullopt;
  const uint64_t at = tables.bias + symbol->st_value;
  if (!module.holds(at)) return std::nullopt;
  constexpr uint16_t kHidden = 0x8000;
  hidden = tables.versions != 0 && (memory.value<uint16_t>(tables.versions + index * 2ull).value_or(0) & kHidden) != 0;
  return RemoteFunction{at, symbol->st_size};
}

std::optional<RemoteFunction> by_gnu_hash(const RemoteMemory& memory, const RemoteModule& module, const Tables& tables,
                                          std::string_view name) {
  struct Header {
    uint32_t buckets, first, bloom_words, shift;
  };
  const auto header = memory.value<Header>(tables.gnu_hash);
  if (!header || header->buckets == 0 || header->buckets > kMostBuckets || header->bloom_words > kMostBuckets)
    return std::nullopt;
  uint32_t hash = 5381;
  for (const char each : name) hash = hash * 33 + static_cast<unsigned char>(each);
  const uint64_t buckets = tables.gnu_hash + sizeof *header + uint64_t{header->bloom_words} * 8;
  const uint64_t chains = buckets + uint64_t{header->buckets} * 4;
  const auto first = memory.value<uint32_t>(buckets + uint64_t{hash % header->buckets} * 4);
  if (!first || *first < header->first) return std::nullopt;
  std::optional<RemoteFunction> old;
  for (uint32_t index = *first, steps = 0; steps < kMostChain; ++index, ++steps) {
    const auto entry = memory.value<uint32_t>(chains + uint64_t{index - header->first} * 4);
    if (!entry) break;
    bool hidden = false;
    if ((*entry | 1) == (hash | 1))
      if (const auto found = function_at(memory, module, tables, index, name, hidden)) {
        if (!hidden) return found;
        old = found;
      }
    if ((*entry & 1) != 0) break;
  }
  return old;
}

std::optional<RemoteFunction> by_old_hash(const RemoteMemory& memory, const RemoteModule& module, const Tables& tables,
                                          std::string_view name) {
  const auto buckets = memory.value<uint32_t>(tables.hash), count = memory.value<uint32_t>(tables.hash + 4);
  if (!buckets || !count || *buckets == 0 || *buckets > kMostBuckets) return std::nullopt;
  uint32_t hash = 0;
  for (const char each : name) {
    hash = (hash << 4) + static_cast<unsigned char>(each);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  std::optional<RemoteFunction> old;
  auto index = memory.value<uint32_t>(tables.hash + 8 + uint64_t{hash % *buckets} * 4);
  for (uint32_t steps = 0; index && *index != 0 && *index < *count && steps < kMostChain; ++steps) {
    bool hidden = false;
    if (const auto found = function_at(memory, module, tables, *index, name, hidden)) {
      if (!hidden) return found;
      old = found;
    }
    index = memory.value<uint32_t>(tables.hash + 8 + (uint64_t{*buckets} + *index) * 4);
  }
  return old;
}

}  // namespace

std::string one_line(std::string text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, ' ');
  return text;
}

std::string_view RemoteModule::file_name() const {
  const std::string_view whole = path;
  return whole.substr(whole.rfind('/') + 1);
}

Result<RemoteMemory> RemoteMemory::open(pid_t pid) {
  RemoteMemory memory;
  memory.file_ = ::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC);
  if (memory.file_ < 0) return fail("cannot open the memory of process {}: {}", pid, strerror(errno));
  return memory;
}
RemoteMemory::RemoteMemory(RemoteMemory&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
RemoteMemory& RemoteMemory::operator=(RemoteMemory&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}
RemoteMemory::~RemoteMemory() {
  if (file_ >= 0) close(file_);
}

bool RemoteMemory::read(uint64_t at, void* into, size_t bytes) const {
  auto* const to = static_cast<char*>(into);
  for (size_t done = 0; done < bytes;) {
    const ssize_t size = pread(file_, to + done, bytes - done, static_cast<off_t>(at + done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<size_t>(size);
  }
  return true;
}

bool RemoteMemory::write(uint64_t at, const void* from, size_t bytes) const {
  const auto* const source = static_cast<const char*>(from);
  for (size_t done = 0; done < bytes;) {
    const ssize_t size = pwrite(file_, source + done, bytes - done, static_cast<off_t>(at + done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<size_t>(size);
  }
  return true;
}

bool RemoteMemory::is_gone() const {
  // Where nothing is mapped the kernel says EIO, of a memory that is no more it reads nothing.
  char each = 0;
  constexpr off_t kNowhere = 0x1000;
  return pread(file_, &each, 1, kNowhere) == 0;
}

bool has_memory(pid_t pid) {
  const auto memory = RemoteMemory::open(pid);
  return memory && !memory->is_gone();
}

std::string RemoteMemory::text(uint64_t at, size_t most) const {
  std::string text;
  char each = 0;
  while (text.size() < most && read(at + text.size(), &each, 1) && each != '\0') text += each;
  return one_line(std::move(text));
}

std::vector<RemoteModule> modules_of(pid_t pid) {
  std::vector<RemoteModule> modules;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    // BEGIN-END rwxp OFFSET MAJOR:MINOR INODE   PATH
    uint64_t begin = 0, end = 0, offset = 0, major = 0, minor = 0, inode = 0;
    char rights[8] = {};
    int path_at = 0;
    if (sscanf(line.c_str(), "%lx-%lx %7s %lx %lx:%lx %lu %n", &begin, &end, rights, &offset, &major, &minor, &inode,
               &path_at) < 7 ||
        inode == 0 || static_cast<size_t>(path_at) >= line.size())
      continue;
    std::string path = line.substr(static_cast<size_t>(path_at));
    if (constexpr std::string_view kDeleted = " (deleted)"; path.ends_with(kDeleted))
      path.resize(path.size() - kDeleted.size());
    const uint64_t device = major << 32 | minor;
    const bool same = !modules.empty() && modules.back().inode == inode && modules.back().device == device &&
                      offset != 0 && modules.back().path == path;
    if (!same && offset != 0) continue;  // mapped without its beginning: not as a library
    if (!same) modules.push_back({path, inode, device, begin, end, {}});
    modules.back().end = std::max(modules.back().end, end);
    if (rights[2] == 'x') modules.back().code.push_back({begin, end});
  }
  std::erase_if(modules, [](const RemoteModule& module) { return module.code.empty(); });
  return modules;
}

std::optional<RemoteFunction> find_function(const RemoteMemory& memory, const RemoteModule& module,
                                            std::string_view name) {
  const auto tables = tables_of(memory, module);
  if (!tables) return std::nullopt;
  if (tables->gnu_hash != 0) return by_gnu_hash(memory, module, *tables, name);
  return tables->hash != 0 ? by_old_hash(memory, module, *tables, name) : std::nullopt;
}

}  // namespace tacho::attach
