// Reads a program's symbol table (static_mpi.h).
#include "cli/target/static_mpi.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string_view>

namespace tacho::cli {
namespace {

// `count` things at `offset` of the file; empty where they are not whole.
template <typename T>
std::span<const T> elf_part(std::span<const char> file, uint64_t offset, uint64_t count) {
  if (offset > file.size() || offset % alignof(T) != 0 || count > (file.size() - offset) / sizeof(T)) return {};
  return {reinterpret_cast<const T*>(file.data() + offset), static_cast<size_t>(count)};
}

bool elf_defines(std::span<const char> file, std::string_view name) {
  const auto head = elf_part<Elf64_Ehdr>(file, 0, 1);
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0 || head[0].e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  const auto sections = elf_part<Elf64_Shdr>(file, head[0].e_shoff, head[0].e_shnum);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[table.sh_link];
    const auto text = elf_part<char>(file, strings.sh_offset, strings.sh_size);
    for (const Elf64_Sym& symbol : elf_part<Elf64_Sym>(file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym)))
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < text.size() &&
          std::string_view(text.data() + symbol.st_name,
                           strnlen(text.data() + symbol.st_name, text.size() - symbol.st_name)) == name)
        return true;
  }
  return false;
}

}  // namespace

bool holds_mpi(const std::string& program) {
  const int file = open(program.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about {};
  bool found = false;
  if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    const auto size = static_cast<size_t>(about.st_size);
    void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      found = elf_defines({static_cast<const char*>(bytes), size}, "PMPI_Init");
      munmap(bytes, size);
    }
  }
  close(file);
  return found;
}

}  // namespace tacho::cli
