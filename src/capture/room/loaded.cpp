// Symbols and mappings of loaded objects (loaded.h).
#include "capture/room/loaded.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tacho::capture {

void* exported_by(const dl_phdr_info& object, const char* name) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i)
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* table = nullptr;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    // glibc has made addresses of these, but not in the kernel's own object.
    const uintptr_t at =
        dynamic->d_un.d_ptr < object.dlpi_addr ? object.dlpi_addr + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (dynamic->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at);
    if (dynamic->d_tag == DT_GNU_HASH) table = reinterpret_cast<const uint32_t*>(at);
  }
  if (symbols == nullptr || names == nullptr || table == nullptr || table[0] == 0) return nullptr;
  uint32_t hash = 5381;
  for (const char* at = name; *at != '\0'; ++at) hash = hash * 33 + static_cast<unsigned char>(*at);
  const uint32_t buckets = table[0], first = table[1], bloom = table[2];
  const uint32_t* const bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const uint32_t entry = chain[index - first];
    const ElfW(Sym)& symbol = symbols[index];
    if ((entry | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && strcmp(names + symbol.st_name, name) == 0)
      return reinterpret_cast<void*>(object.dlpi_addr + symbol.st_value);
    if ((entry & 1) != 0) return nullptr;
  }
}

bool is_code(const void* address) {
  struct Search {
    uintptr_t address;
    bool found;
  } search{reinterpret_cast<uintptr_t>(address), false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum && !wanted.found; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          wanted.found = part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 &&
                         wanted.address - (info->dlpi_addr + part.p_vaddr) < part.p_memsz;
        }
        return wanted.found ? 1 : 0;
      },
      &search);
  return search.found;
}

int rights_of(const void* address) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  // Lines are "BEGIN-END rwxp ..."; only their beginnings matter, so a long one may be cut.
  char text[4096], line[64];
  size_t length = 0;
  int rights = -1;
  for (ssize_t size; rights < 0 && (size = read(file, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < size && rights < 0; ++i) {
      if (text[i] != '\n') {
        if (length < sizeof line - 1) line[length++] = text[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      char* end = nullptr;
      const unsigned long begin = strtoul(line, &end, 16);
      if (*end != '-') continue;
      const unsigned long past = strtoul(end + 1, &end, 16);
      if (wanted < begin || wanted >= past || *end != ' ') continue;
      rights = (end[1] == 'r' ? PROT_READ : 0) | (end[2] == 'w' ? PROT_WRITE : 0) | (end[3] == 'x' ? PROT_EXEC : 0);
    }
  close(file);
  return rights;
}

}  // namespace tacho::capture
