// Reading of executables with elfutils (module.h).
#include "decode/records/module.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/format.h"

namespace tacho::decode {
namespace {

// Separate debug information by build id only: elfutils' standard search would ask debuginfod servers.
int find_debug_file(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, const char* file,
                    const char* link, GElf_Word checksum, char** found) {
  static_cast<void>(file), static_cast<void>(link), static_cast<void>(checksum);
  return dwfl_build_id_find_debuginfo(module, user, name, base, file, nullptr, 0, found);
}
int find_no_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, ::Elf**) {
  return -1;
}

char* g_debug_folders = nullptr;  // null: elfutils' default, /usr/lib/debug
const Dwfl_Callbacks kCallbacks = {
    .find_elf = find_no_file,
    .find_debuginfo = find_debug_file,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &g_debug_folders,
};

std::vector<ExpressionStep> steps_of(const Dwarf_Op* ops, size_t count) {
  std::vector<ExpressionStep> steps;
  for (size_t i = 0; i < count; ++i)
    steps.push_back({ops[i].atom, static_cast<int64_t>(ops[i].number), static_cast<int64_t>(ops[i].number2)});
  return steps;
}

bool small_offset(int64_t offset) {
  return offset % 8 == 0 && offset / 8 > INT16_MIN && offset / 8 <= INT16_MAX;
}

}  // namespace

struct CodeModule::Elf {
  struct Entry {
    uint64_t start, size;
    const char* name;
    uint8_t rank;  // of several at one address: functions before data, global before local
  };
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
  ::Elf* elf = nullptr;
  Dwarf_CFI* eh_frame = nullptr;
  Dwarf_CFI* debug_frame = nullptr;
  GElf_Addr eh_bias = 0, debug_bias = 0;
  bool debug_frame_tried = false;
  std::vector<GElf_Phdr> segments;
  bool symbols_read = false;
  std::vector<Entry> symbols;
  std::vector<ComplexRule> complex;

  ~Elf() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }

  bool open(const std::string& path) {
    dwfl = dwfl_begin(&kCallbacks);
    if (dwfl == nullptr) return false;
    dwfl_report_begin(dwfl);
    if (path == "[vdso]") {
      // The same for every process of the kernel: our own.
      const auto image = static_cast<uintptr_t>(getauxval(AT_SYSINFO_EHDR));
      if (image == 0) return false;
      elf_version(EV_CURRENT);
      const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(image);
      const size_t size = header->e_shoff + static_cast<size_t>(header->e_shnum) * header->e_shentsize;
      // Written to a file in memory, since a module is made of a descriptor.
      const int file = memfd_create("vdso", MFD_CLOEXEC);
      if (file < 0) return false;
      if (write(file, reinterpret_cast<const void*>(image), size) != static_cast<ssize_t>(size)) {
        close(file);
        return false;
      }
      module = dwfl_report_elf(dwfl, "[vdso]", "[vdso]", file, 0, false);
      if (module == nullptr) close(file);
    } else {
      module = dwfl_report_elf(dwfl, path.c_str(), path.c_str(), -1, 0, false);
    }
    dwfl_report_end(dwfl, nullptr, nullptr);
    if (module == nullptr) return false;
    GElf_Addr bias = 0;
    elf = dwfl_module_getelf(module, &bias);
    if (elf == nullptr) return false;
    size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) return false;
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) != nullptr && segment.p_type == PT_LOAD)
        segments.push_back(segment);
    }
    eh_frame = dwfl_module_eh_cfi(module, &eh_bias);
    return true;
  }

  void read_symbols() {
    symbols_read = true;
    const int count = dwfl_module_getsymtab(module);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Addr address = 0;
      GElf_Word section = 0;
      const char* const name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
      if (name == nullptr || *name == '\0' || section == SHN_UNDEF || address == 0) continue;
      const auto type = GELF_ST_TYPE(symbol.st_info);
      if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) continue;
      const bool local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
      symbols.push_back(
          {address, symbol.st_size, name,
           static_cast<uint8_t>((type == STT_NOTYPE ? 4 : 0) | (symbol.st_size == 0 ? 2 : 0) | (local ? 1 : 0))});
    }
    std::sort(symbols.begin(), symbols.end(), [](const Entry& a, const Entry& b) {
      if (a.start != b.start) return a.start < b.start;
      if (a.rank != b.rank) return a.rank < b.rank;
      const size_t length_a = strlen(a.name), length_b = strlen(b.name);
      return length_a != length_b ? length_a < length_b : strcmp(a.name, b.name) < 0;
    });
    symbols.erase(
        std::unique(symbols.begin(), symbols.end(), [](const Entry& a, const Entry& b) { return a.start == b.start; }),
        symbols.end());
  }

  // The rule in the tables of `cfi`, or false.
  bool look_up(Dwarf_CFI* cfi, uint64_t address, UnwindRule& rule) {
    Dwarf_Frame* frame = nullptr;
    if (cfi == nullptr || dwarf_cfi_addrframe(cfi, address, &frame) != 0) return false;
    Dwarf_Addr start = 0, end = 0;
    bool signal = false;
    const int return_register = dwarf_frame_info(frame, &start, &end, &signal);
    rule.signal_frame = signal;
    const bool found = return_register >= 0 && read_rule(frame, return_register, rule);
    free(frame);
    return found;
  }

  bool read_rule(Dwarf_Frame* frame, int return_register, UnwindRule& rule) {
    Dwarf_Op* cfa = nullptr;
    size_t cfa_count = 0;
    if (dwarf_frame_cfa(frame, &cfa, &cfa_count) != 0 || cfa_count == 0) return false;
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_register(frame, return_register, memory, &ops, &count) != 0) return false;
    if (count == 0 && ops == memory) {  // undefined: no caller
      rule.kind = UnwindRule::Kind::kOutermost;
      return true;
    }
    // "register + offset" comes as one operation: bregN or bregx.
    bool simple = cfa_count == 1 && !rule.signal_frame;
    if (simple && cfa[0].atom >= DW_OP_breg0 && cfa[0].atom <= DW_OP_breg31) {
      rule.cfa_register = static_cast<uint8_t>(cfa[0].atom - DW_OP_breg0);
      rule.cfa_offset = static_cast<int32_t>(cfa[0].number);
    } else if (simple && cfa[0].atom == DW_OP_bregx && cfa[0].number < 17) {
      rule.cfa_register = static_cast<uint8_t>(cfa[0].number);
      rule.cfa_offset = static_cast<int32_t>(cfa[0].number2);
    } else {
      simple = false;
    }
    simple = simple && rule.cfa_register < 16;
    int64_t offset = 0;
    const auto at_cfa = [&offset](const Dwarf_Op* list, size_t length) {
      if (length == 0 || list[0].atom != DW_OP_call_frame_cfa) return false;
      if (length == 1) {
        offset = 0;
        return true;
      }
      if (length == 2 && list[1].atom == DW_OP_plus_uconst) {
        offset = static_cast<int64_t>(list[1].number);
        return true;
      }
      return false;
    };
    if (simple && at_cfa(ops, count) && small_offset(offset)) {
      rule.return_offset = static_cast<int16_t>(offset / 8);
      for (int i = 0; i < UnwindRule::kSaved && simple; ++i) {
        if (dwarf_frame_register(frame, UnwindRule::kSavedRegisters[i], memory, &ops, &count) != 0) return false;
        if (count == 0) continue;  // same value, or undefined: as good as the same
        if (at_cfa(ops, count) && small_offset(offset))
          rule.saved[i] = static_cast<int16_t>(offset / 8);
        else
          simple = false;
      }
    } else {
      simple = false;
    }
    if (simple) {
      rule.kind = UnwindRule::Kind::kOffsets;
      return true;
    }
    ComplexRule full;
    full.cfa = steps_of(cfa, cfa_count);
    for (int number = 0; number < 17; ++number) {
      if (dwarf_frame_register(frame, number == 16 ? return_register : number, memory, &ops, &count) != 0) return false;
      ComplexRule::Register& out = full.registers[number];
      if (count == 0) {
        out.how = ops == nullptr ? ComplexRule::How::kSame : ComplexRule::How::kUndefined;
      } else if (count >= 2 && ops[count - 1].atom == DW_OP_stack_value) {
        out.how = ComplexRule::How::kValueExpression;
        out.steps = steps_of(ops, count - 1);
      } else if (count == 1 && ops[0].atom == DW_OP_regx) {
        out.how = ComplexRule::How::kRegister;
        out.number = static_cast<int64_t>(ops[0].number);
      } else {
        out.how = ComplexRule::How::kExpression;
        out.steps = steps_of(ops, count);
      }
    }
    rule.kind = UnwindRule::Kind::kComplex;
    rule.complex = static_cast<uint32_t>(complex.size());
    complex.push_back(std::move(full));
    return true;
  }
};

CodeModule::CodeModule(const std::string& real_path, std::string name, uint32_t version, bool small)
    : name_(std::move(name)), version_(version), small_(small), elf_(std::make_unique<Elf>()) {
  if (real_path.empty() || !elf_->open(real_path)) elf_.reset();
}
CodeModule::~CodeModule() = default;

bool CodeModule::readable() const {
  return elf_ != nullptr;
}

uint64_t CodeModule::address_of(uint64_t file_offset) const {
  if (!elf_) return 0;
  for (const GElf_Phdr& segment : elf_->segments)
    if (file_offset >= segment.p_offset && file_offset - segment.p_offset < segment.p_filesz)
      return file_offset - segment.p_offset + segment.p_vaddr;
  return 0;
}

const UnwindRule& CodeModule::rule(uint64_t address) {
  const auto [found, fresh] = rules_.try_emplace(address);
  UnwindRule& rule = found->second;
  if (!fresh || !elf_) return rule;
  if (elf_->look_up(elf_->eh_frame, address - elf_->eh_bias, rule)) return rule;
  if (!elf_->debug_frame_tried) {
    elf_->debug_frame_tried = true;
    elf_->debug_frame = dwfl_module_dwarf_cfi(elf_->module, &elf_->debug_bias);
  }
  UnwindRule other;
  if (elf_->look_up(elf_->debug_frame, address - elf_->debug_bias, other)) {
    rule = other;
  } else {
    rule = UnwindRule{};
  }
  return rule;
}

const ComplexRule& CodeModule::complex(uint32_t index) const {
  return elf_->complex[index];
}

Symbol CodeModule::symbol(uint64_t address) {
  if (!elf_) return {};
  if (!elf_->symbols_read) elf_->read_symbols();
  const auto& symbols = elf_->symbols;
  auto after = std::upper_bound(symbols.begin(), symbols.end(), address,
                                [](uint64_t value, const Elf::Entry& entry) { return value < entry.start; });
  const auto plain = [](const char* name) {  // without the version, as in memcpy@@GLIBC_2.14
    const std::string_view text = name;
    return text.substr(0, text.find('@', 1));
  };
  // The nearest below that reaches here; symbols without a size (assembly) reach to the next.
  for (int looked = 0; after != symbols.begin() && looked < 16; ++looked) {
    --after;
    if (address - after->start < after->size || (after->size == 0 && looked == 0))
      return {plain(after->name), after->start};
  }
  return {};
}

SourceLine CodeModule::line(uint64_t address) {
  if (!elf_) return {};
  Dwfl_Line* const line = dwfl_module_getsrc(elf_->module, address);
  SourceLine found;
  if (line == nullptr) {
    // elfutils finds a unit by .debug_aranges, which clang does not write (neither for AMD's GPUs).
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(elf_->module, unit, &bias)) != nullptr;) {
      if (dwarf_haspc(unit, address - bias) != 1) continue;
      Dwarf_Line* const of_unit = dwarf_getsrc_die(unit, address - bias);
      const char* const name = of_unit != nullptr ? dwarf_linesrc(of_unit, nullptr, nullptr) : nullptr;
      if (name == nullptr || dwarf_lineno(of_unit, &found.line) != 0) return {};
      found.file = name;
      return found;
    }
    return {};
  }
  const char* const file = dwfl_lineinfo(line, nullptr, &found.line, nullptr, nullptr, nullptr);
  if (file != nullptr) found.file = file;
  return found;
}

CodeModule* ModuleCache::module(const std::string& path, uint32_t pid, const FileIdentity& was) {
  std::string real = path;
  struct stat status {};
  const bool none = path == "[vdso]";
  bool there = none;
  if (!there && pid != 0) {  // the file as the process sees it, if it is still there
    const std::string inside = fmt::format("/proc/{}/root{}", pid, path);
    if (stat(inside.c_str(), &status) == 0) {
      real = inside;
      there = true;
    }
  }
  if (!there) there = stat(path.c_str(), &status) == 0;
  const auto identity = [](const struct stat& file) {
    return FileIdentity{file.st_dev, file.st_ino,
                        static_cast<int64_t>(file.st_mtim.tv_sec) * 1'000'000'000 + file.st_mtim.tv_nsec};
  };
  const FileIdentity now = there && !none ? identity(status) : FileIdentity{};
  const FileIdentity& wanted = was.known() ? was : now;
  const std::string key = fmt::format("{}:{}:{}:{}", wanted.device, wanted.inode, wanted.modified, path);
  std::unique_ptr<CodeModule>& module = modules_[key];
  if (!module) {
    struct stat ours {};
    // The file itself if it is the same as ours: /proc/PID/root goes away with the process.
    if (real != path && stat(path.c_str(), &ours) == 0 && identity(ours) == now) real = path;
    // Paths come from targets: only a regular file is opened (a pipe would block, a device could do anything).
    const bool regular = none || (wanted == now && stat(real.c_str(), &ours) == 0 && S_ISREG(ours.st_mode));
    constexpr off_t kSmall = 4 << 20;
    module = std::make_unique<CodeModule>(regular ? real : std::string(), path, versions_[path]++,
                                          regular && !none && status.st_size <= kSmall);
  }
  return module.get();
}

}  // namespace tacho::decode
