// Finding HSA's tables by the code of the runtime's exported functions (hsa_tables.h), and changing them.
#include "capture/source/rocm/late_hsa/hsa_tables.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include <cstddef>

#include "capture/room/loaded.h"
#include "tape/attach_block.h"

namespace tacho::capture::rocm {
namespace {

struct Member {
  const char* name;
  uint32_t entry;
};
constexpr Member kCore[] = {
#define TACHO_HSA_CORE(name) {#name, offsetof(hsa::CoreTable, name)},
#include "event/functions/functions_hsa.def"
};
constexpr Member kAmd[] = {
#define TACHO_HSA_AMD(name) {#name, offsetof(hsa::AmdTable, name)},
#include "event/functions/functions_hsa.def"
};

// The last entries without which tacho cannot do.
constexpr uint32_t kCoreNeeded = offsetof(hsa::CoreTable, hsa_executable_iterate_agent_symbols) + sizeof(void*);
constexpr uint32_t kAmdNeeded = offsetof(hsa::AmdTable, hsa_amd_queue_intercept_register) + sizeof(void*);
constexpr uint32_t kLargestTable = 1 << 14;

// Whether [at, at + bytes) lies in a part of the object that has these rights when it is loaded.
bool lies_in(const dl_phdr_info& object, const void* at, uint64_t bytes, uint32_t rights) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    const uintptr_t from = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && (part.p_flags & rights) == rights && begin >= from && begin - from <= part.p_memsz &&
        part.p_memsz - (begin - from) >= bytes)
      return true;
  }
  return false;
}

struct Search {
  FoundTables found;
  uint32_t runtimes;
};

constexpr char kUnlike[] = "the functions of this HSA runtime do not go through its tables in a way that tacho knows";

// The word that has the address of the table that the runtime's functions of `members` go through; nullptr when they do
// not agree.
template <size_t Count>
const void* word_of(const dl_phdr_info& runtime, const Member (&members)[Count]) {
  const void* word = nullptr;
  uint32_t exported = 0, agree = 0;
  for (const Member& member : members) {
    const auto* const code = static_cast<const uint8_t*>(exported_by(runtime, member.name));
    if (code == nullptr) continue;
    ++exported;
    constexpr uint32_t kBytes = 32;
    if (!lies_in(runtime, code, kBytes, PF_R | PF_X)) return nullptr;
    const ThroughTable through = through_table(code, kBytes);
    if (through.word == nullptr) continue;
    if (word == nullptr) word = through.word;
    if (through.word != word || through.entry != member.entry) return nullptr;
    ++agree;
  }
  // Functions that widen an argument first are written differently: one in twelve.
  return agree >= 32 && agree * 4 >= exported * 3 && reinterpret_cast<uintptr_t>(word) % alignof(void*) == 0 &&
                 lies_in(runtime, word, sizeof(void*), PF_R | PF_W)
             ? word
             : nullptr;
}

// The table whose address is in `word`; nullptr when it is none.
template <typename Table>
Table* table_at(const dl_phdr_info& runtime, const void* word, uint32_t needed) {
  Table* table = nullptr;
  memcpy(static_cast<void*>(&table), word, sizeof table);
  if (reinterpret_cast<uintptr_t>(table) % alignof(Table) != 0 ||
      !lies_in(runtime, table, sizeof(hsa::Version), PF_R | PF_W))
    return nullptr;
  const hsa::Version& version = table->version;
  if (version.major == 0 || version.major > 2 || version.size < needed || version.size > kLargestTable ||
      version.size % sizeof(void*) != 0 || !lies_in(runtime, table, version.size, PF_R | PF_W))
    return nullptr;
  constexpr int kWritable = PROT_READ | PROT_WRITE;
  return (rights_of(table) & kWritable) == kWritable &&
                 (rights_of(reinterpret_cast<const char*>(table) + version.size - 1) & kWritable) == kWritable
             ? table
             : nullptr;
}

// The entries lead into the runtime itself, but for one: the extension for images puts it there as the runtime starts.
constexpr char kOfImages[] = "hsa_amd_image_create";

template <size_t Count>
const char* check_entries(const dl_phdr_info& runtime, const void* table, const Member (&members)[Count],
                          uint32_t size) {
  for (const Member& member : members) {
    if (member.entry + sizeof(void*) > size) break;
    const void* entry = nullptr;
    memcpy(static_cast<void*>(&entry), static_cast<const char*>(table) + member.entry, sizeof entry);
    if (lies_in(runtime, entry, 1, PF_X) || strcmp(member.name, kOfImages) == 0) continue;
    return entry != nullptr && is_code(entry)
               ? "another profiler has its functions in HSA's tables; end it there, or start the program with tacho trace"
               : kUnlike;
  }
  return nullptr;
}

FoundTables examine(const dl_phdr_info& runtime) {
  const void *const of_core = word_of(runtime, kCore), *const of_amd = word_of(runtime, kAmd);
  if (of_core == nullptr || of_amd == nullptr) return {nullptr, nullptr, kUnlike};
  const void* first = nullptr;
  memcpy(static_cast<void*>(&first), of_core, sizeof first);
  if (first == nullptr) return {nullptr, nullptr, nullptr};
  auto* const core = table_at<hsa::CoreTable>(runtime, of_core, kCoreNeeded);
  auto* const amd = table_at<hsa::AmdTable>(runtime, of_amd, kAmdNeeded);
  if (core == nullptr || amd == nullptr) return {nullptr, nullptr, kUnlike};
  const char* why = check_entries(runtime, core, kCore, core->version.size);
  if (why == nullptr) why = check_entries(runtime, amd, kAmd, amd->version.size);
  return {core, amd, why};
}

int see_object(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (exported_by(*object, tape::kAttachEntry) != nullptr || exported_by(*object, "hsa_queue_create") == nullptr ||
      exported_by(*object, "hsa_system_get_info") == nullptr)
    return 0;
  if (search.runtimes++ == 0) search.found = examine(*object);
  return 0;
}

// What has been changed

struct Change {
  void** entry;
  void *theirs, *ours;
};
constexpr uint32_t kMostChanges = std::size(kCore) + std::size(kAmd);
constinit Change g_changes[kMostChanges] = {};
constinit uint32_t g_change_count = 0;

template <typename Table>
void put_table(Table& table, const Table& wanted) {
  const uint32_t size = table.version.size < sizeof table ? table.version.size : sizeof table;
  auto** const entries = reinterpret_cast<void**>(&table);
  const auto* const ours = reinterpret_cast<void* const*>(&wanted);
  for (uint32_t at = sizeof(hsa::Version) / sizeof(void*); at < size / sizeof(void*); ++at) {
    if (entries[at] == ours[at] || g_change_count == kMostChanges) continue;
    g_changes[g_change_count++] = {&entries[at], entries[at], ours[at]};
    __atomic_store_n(&entries[at], ours[at], __ATOMIC_RELEASE);
  }
}

}  // namespace

//   [endbr64] [push %rbp; mov %rsp,%rbp]   mov word(%rip),%rax
//   [pop %rbp] jmp *entry(%rax)   |   mov entry(%rax),%rax   [pop %rbp] jmp *%rax
ThroughTable through_table(const uint8_t* code, uint64_t bytes) {
  const uint8_t* const end = code + bytes;
  const auto skip = [&](std::initializer_list<uint8_t> form) {
    if (static_cast<uint64_t>(end - code) < form.size() || memcmp(code, form.begin(), form.size()) != 0) return false;
    code += form.size();
    return true;
  };
  const auto number = [&](int32_t& out) {
    if (end - code < static_cast<ptrdiff_t>(sizeof out)) return false;
    memcpy(&out, code, sizeof out);
    code += sizeof out;
    return true;
  };
  int32_t distance = 0, entry = 0;
  skip({0xf3, 0x0f, 0x1e, 0xfa});
  const bool frame = skip({0x55, 0x48, 0x89, 0xe5});
  if (!skip({0x48, 0x8b, 0x05}) || !number(distance)) return {};
  const uint8_t* const word = code + distance;
  const auto displacement = [&](bool wide) {
    if (wide) return number(entry);
    if (code == end) return false;
    entry = *code++;
    return entry < 0x80;
  };
  if (skip({0x48, 0x8b, 0x40}) ? !displacement(false) : skip({0x48, 0x8b, 0x80}) && !displacement(true)) return {};
  const bool loaded = entry != 0;
  if (frame && !skip({0x5d})) return {};
  if (loaded ? !skip({0xff, 0xe0})
             : !(skip({0xff, 0x60}) ? displacement(false) : skip({0xff, 0xa0}) && displacement(true)))
    return {};
  if (entry < static_cast<int32_t>(sizeof(hsa::Version)) || entry % static_cast<int32_t>(sizeof(void*)) != 0) return {};
  return {word, static_cast<uint32_t>(entry)};
}

FoundTables find_tables() {
  Search search{{nullptr, nullptr, "its HSA runtime is not among the loaded libraries"}, 0};
  dl_iterate_phdr(see_object, &search);
  if (search.runtimes > 1 && search.found.why == nullptr)
    search.found.why = "the program has more than one HSA runtime loaded";
  return search.found;
}

void put_into(const FoundTables& tables, const hsa::CoreTable& core, const hsa::AmdTable& amd) {
  put_table(*tables.core, core);
  put_table(*tables.amd, amd);
}

bool put_back() {
  bool all = true;
  while (g_change_count > 0) {
    const Change& change = g_changes[--g_change_count];
    void* ours = change.ours;
    all &= __atomic_compare_exchange_n(change.entry, &ours, change.theirs, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ||
           ours == change.theirs;
  }
  return all;
}

}  // namespace tacho::capture::rocm
