// Finding and changing words of loaded libraries (slots.h). Everything is looked at under the loader's lock
// (dl_iterate_phdr), so that no library goes meanwhile; nothing in there calls the loader.
#include "capture/room/slots.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/room/pages.h"

namespace tacho::capture {
namespace {

constexpr uintptr_t kPage = 4096;

struct Mapping {
  uintptr_t begin, end;
  int rights;
};
// What /proc/self/maps shows, in its order: by address.
struct Mappings {
  static constexpr size_t kMost = 1 << 16;
  size_t count;
  Mapping all[kMost];
};

bool read_mappings(Mappings& into) {
  into.count = 0;
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[4096];
  uintptr_t number = 0, begin = 0;
  int rights = 0, field = 0;  // 0: begin, 1: end, 2: rights, 3: the rest of the line
  for (ssize_t size; (size = read(file, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < size; ++i) {
      const char c = text[i];
      if (c == '\n') {
        if (field == 3 && into.count < Mappings::kMost) into.all[into.count++] = {begin, number, rights};
        number = 0, rights = 0, field = 0;
      } else if (field == 0 && c == '-') {
        begin = number, number = 0, field = 1;
      } else if (field < 2 && c == ' ') {
        field = 2;
      } else if (field < 2) {
        number = number << 4 | static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (field == 2) {
        if (c == 'r') rights |= PROT_READ;
        if (c == 'w') rights |= PROT_WRITE;
        if (c == 'x') rights |= PROT_EXEC;
        if (c == ' ') field = 3;
      }
    }
  close(file);
  return into.count != 0;
}

// Words that were changed, for ever: a library that went away is only one that is not met again.
struct Changed {
  void** at;
  void* own;
};
constexpr size_t kMostChanged = 1 << 15;
constinit Changed* g_changed = nullptr;
constinit size_t g_changed_count = 0;

void* own_of(void** at) {
  for (size_t i = g_changed_count; i-- > 0;)
    if (g_changed[i].at == at) return g_changed[i].own;
  return nullptr;
}
bool remember(void** at, void* own) {
  for (size_t i = 0; i < g_changed_count; ++i)
    if (g_changed[i].at == at) {
      g_changed[i].own = own;
      return true;
    }
  if (g_changed_count == kMostChanged) return false;
  g_changed[g_changed_count++] = {at, own};
  return true;
}

bool put(void** at, void* value, const Mapping& mapping) {
  const bool closed = (mapping.rights & PROT_WRITE) == 0;
  auto* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) & ~(kPage - 1));
  if (closed && mprotect(page, kPage, mapping.rights | PROT_WRITE) != 0) return false;
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
  if (closed) mprotect(page, kPage, mapping.rights);
  return true;
}

const char* file_name_of(const dl_phdr_info& object) {
  const char* const path = object.dlpi_name != nullptr ? object.dlpi_name : "";
  const char* const slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool is_left_alone(const dl_phdr_info& object, const SlotRules& rules) {
  const char* const name = file_name_of(object);
  static constexpr const char* kNames[] = {"libc.so",  "libc-2",     "libdl.so", "libdl-2", "libpthread",
                                           "ld-linux", "linux-vdso", "ld-2",     "libtacho"};
  for (const char* const each : kNames)
    if (strncmp(name, each, strlen(each)) == 0) return true;
  return rules.stays != nullptr && rules.stays(object, name);
}

// Looks at words of libraries' data.
class Walk {
 public:
  /// In a child of fork() it must not be used: another thread may have held the loader's lock.
  template <typename Object>
  static bool over_objects(const SlotRules& rules, Object object) {
    auto* const mappings = static_cast<Mappings*>(map_pages(sizeof(Mappings)));
    if (mappings == nullptr) return false;
    struct State {
      Walk walk;
      const SlotRules& rules;
      Object& object;
      bool begun, good;
    } state{Walk(*mappings), rules, object, false, true};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
          auto& all = *static_cast<State*>(data);
          // Under the lock: no library comes or goes from here on.
          if (!all.begun) all.good = read_mappings(all.walk.mappings_);
          all.begun = true;
          if (all.good && !is_left_alone(*info, all.rules)) all.object(all.walk, *info);
          return all.good ? 0 : 1;
        },
        &state);
    const bool good = state.good;
    munmap(mappings, sizeof(Mappings));
    return good;
  }

  /// Calls body(word, mapping, end) for the object's words that may be changed and that anything has been written into;
  /// so have the words from there to `end`.
  template <typename Body>
  void over_words(const dl_phdr_info& object, Body body) const {
    // Only a program that is always at the same address has functions' addresses in its data as the file has them.
    const bool as_in_file = object.dlpi_addr == 0;
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object.dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
      const uintptr_t begin = object.dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
      for (size_t at = first_behind(begin); at < mappings_.count && mappings_.all[at].begin < end; ++at) {
        const Mapping& mapping = mappings_.all[at];
        if ((mapping.rights & PROT_READ) == 0) continue;
        over_runs(begin > mapping.begin ? begin : mapping.begin, end < mapping.end ? end : mapping.end, as_in_file,
                  [&](uintptr_t from, uintptr_t to) {
                    auto** const last = reinterpret_cast<void**>(to & ~uintptr_t{7});
                    for (auto** word = reinterpret_cast<void**>((from + 7) & ~uintptr_t{7}); word < last; ++word)
                      body(word, mapping, last);
                  });
      }
    }
  }

  /// nullptr where there is none.
  const Mapping* mapping_of(const void* address) const {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    const size_t at = first_behind(wanted);
    return at < mappings_.count && mappings_.all[at].begin <= wanted ? &mappings_.all[at] : nullptr;
  }

  ~Walk() {
    if (pagemap_ >= 0) close(pagemap_);
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

 private:
  explicit Walk(Mappings& mappings) : mappings_(mappings), pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

  // The first mapping that ends behind the address.
  size_t first_behind(uintptr_t address) const {
    size_t low = 0, high = mappings_.count;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (mappings_.all[middle].end <= address)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  // Calls body(from, to) for runs of pages that have been written to, and for those of the file that are in memory if
  // `as_in_file`. No other is touched: it holds no address of a running program, and would come into its memory.
  template <typename Body>
  void over_runs(uintptr_t begin, uintptr_t end, bool as_in_file, Body body) const {
    constexpr uint64_t kThere = uint64_t{3} << 62;   // in memory, or swapped out
    constexpr uint64_t kOfFile = uint64_t{1} << 61;  // the file's own page
    constexpr size_t kAtOnce = 512;
    uint64_t entries[kAtOnce];
    uintptr_t run = 0;  // where it began; 0 = there is none
    for (uintptr_t page = begin & ~(kPage - 1); page < end; page += kAtOnce * kPage) {
      const auto place = static_cast<off_t>(page / kPage * sizeof *entries);
      const ssize_t size = pagemap_ >= 0 ? pread(pagemap_, entries, sizeof entries, place) : -1;
      for (size_t i = 0; i < kAtOnce && page + i * kPage < end; ++i) {
        const uintptr_t from = page + i * kPage > begin ? page + i * kPage : begin;
        const bool known = size >= static_cast<ssize_t>((i + 1) * sizeof *entries);
        const bool wanted = !known || ((entries[i] & kThere) != 0 && (as_in_file || (entries[i] & kOfFile) == 0));
        if (wanted && run == 0) run = from;
        if (!wanted && run != 0) body(run, from);
        if (!wanted) run = 0;
      }
    }
    if (run != 0) body(run, end);
  }

  Mappings& mappings_;
  int pagemap_;
};

// Hooks by what a word holds.
class ByValue {
 public:
  enum class Key { kFound, kHook };
  ByValue(const SlotHook* hooks, size_t count, Key key) : count_(count < kMostSlotHooks ? count : kMostSlotHooks) {
    for (size_t i = 0; i < count_; ++i) {
      const auto value = reinterpret_cast<uintptr_t>(key == Key::kFound ? hooks[i].found : hooks[i].hook);
      size_t at = i;
      for (; at > 0 && all_[at - 1].value > value; --at) all_[at] = all_[at - 1];
      all_[at] = {value, &hooks[i]};
    }
  }
  const SlotHook* find(const void* word) const {
    const auto value = reinterpret_cast<uintptr_t>(word);
    if (count_ == 0 || value < all_[0].value || value > all_[count_ - 1].value) return nullptr;
    size_t low = 0, high = count_;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (all_[middle].value < value)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count_ && all_[low].value == value ? all_[low].hook : nullptr;
  }

 private:
  struct Each {
    uintptr_t value;
    const SlotHook* hook;
  };
  size_t count_;
  Each all_[kMostSlotHooks];
};

// Most symbols are none of the hooks': the first two letters tell.
class FirstLetters {
 public:
  FirstLetters(const SlotHook* hooks, size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (hooks[i].symbol != nullptr) set_[place(hooks[i].symbol)] = true;
  }
  bool has(const char* name) const { return set_[place(name)]; }

 private:
  static size_t place(const char* name) {
    const auto letter = [](char c) { return static_cast<size_t>(static_cast<unsigned char>(c) & 31); };
    return letter(name[0]) * 32 + (name[0] != '\0' ? letter(name[1]) : 0);
  }
  bool set_[32 * 32] = {};
};

// The slots of calls into other libraries that have not been made yet: they lead to the loader, which would bind them.
template <typename Body>
void over_unbound_calls(const dl_phdr_info& object, Body body) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i)
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* calls = nullptr;
  size_t bytes = 0;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t at =
        dynamic->d_un.d_ptr < object.dlpi_addr ? object.dlpi_addr + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (dynamic->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at);
    if (dynamic->d_tag == DT_JMPREL) calls = reinterpret_cast<const ElfW(Rela)*>(at);
    if (dynamic->d_tag == DT_PLTRELSZ) bytes = dynamic->d_un.d_val;
  }
  if (symbols == nullptr || names == nullptr || calls == nullptr) return;
  const auto is_inside = [&](const void* address) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object.dlpi_phdr[i];
      if (part.p_type == PT_LOAD &&
          reinterpret_cast<uintptr_t>(address) - (object.dlpi_addr + part.p_vaddr) < part.p_memsz)
        return true;
    }
    return false;
  };
  for (size_t i = 0; i < bytes / sizeof *calls; ++i) {
    if (ELF64_R_TYPE(calls[i].r_info) != R_X86_64_JUMP_SLOT) continue;
    const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(calls[i].r_info)];
    auto** const slot = reinterpret_cast<void**>(object.dlpi_addr + calls[i].r_offset);
    if (symbol.st_shndx == SHN_UNDEF && is_inside(*slot)) body(names + symbol.st_name, slot);
  }
}

// Calls body(word, hook, mapping) for the words that hold a hook's function, or will once they are bound.
template <typename Body>
bool over_slots(const SlotHook* hooks, size_t count, const SlotRules& rules, Body body) {
  const ByValue by_found(hooks, count, ByValue::Key::kFound);
  const FirstLetters linked(hooks, count);
  return Walk::over_objects(rules, [&](const Walk& walk, const dl_phdr_info& object) {
    walk.over_words(object, [&](void** word, const Mapping& mapping, void**) {
      if (const SlotHook* const hook = by_found.find(__atomic_load_n(word, __ATOMIC_RELAXED)))
        body(word, *hook, mapping);
    });
    over_unbound_calls(object, [&](const char* symbol, void** slot) {
      const char* const known = rules.known_as != nullptr ? rules.known_as(file_name_of(object), symbol) : nullptr;
      const char* const name = known != nullptr ? known : symbol;
      if (!linked.has(name)) return;
      for (size_t i = 0; i < count; ++i)
        if (hooks[i].symbol != nullptr && strcmp(hooks[i].symbol, name) == 0)
          if (const Mapping* const mapping = walk.mapping_of(slot)) return body(slot, hooks[i], *mapping);
    });
  });
}

}  // namespace

SlotCount lead_slots(const SlotHook* hooks, size_t count, const SlotRules& rules) {
  SlotCount result;
  if (g_changed == nullptr) g_changed = static_cast<Changed*>(map_pages(kMostChanged * sizeof(Changed)));
  if (g_changed == nullptr) {
    result.looked = false;
    return result;
  }
  result.looked = over_slots(hooks, count, rules, [&](void** word, const SlotHook& hook, const Mapping& mapping) {
    if (remember(word, *word) && put(word, hook.hook, mapping))
      ++result.led;
    else
      ++result.refused;
  });
  return result;
}

SlotCount count_slots(const SlotHook* hooks, size_t count, const SlotRules& rules) {
  SlotCount result;
  result.looked = over_slots(hooks, count, rules, [&](void**, const SlotHook&, const Mapping&) { ++result.led; });
  return result;
}

void lead_back(const SlotHook* hooks, size_t count, const SlotRules& rules) {
  const ByValue by_hook(hooks, count, ByValue::Key::kHook);
  Walk::over_objects(rules, [&](const Walk& walk, const dl_phdr_info& object) {
    walk.over_words(object, [&](void** word, const Mapping& mapping, void**) {
      const SlotHook* const hook = by_hook.find(__atomic_load_n(word, __ATOMIC_RELAXED));
      if (hook == nullptr) return;
      void* const own = own_of(word);
      put(word, own != nullptr ? own : hook->found, mapping);
    });
  });
}

bool over_open_words(const SlotRules& rules,
                     void (*body)(const dl_phdr_info& object, void** word, void** end, void* data), void* data) {
  return Walk::over_objects(rules, [&](const Walk& walk, const dl_phdr_info& object) {
    uintptr_t closed_from = 0, closed_to = 0;
    for (int i = 0; i < object.dlpi_phnum; ++i)
      if (object.dlpi_phdr[i].p_type == PT_GNU_RELRO) {
        closed_from = object.dlpi_addr + object.dlpi_phdr[i].p_vaddr;
        closed_to = closed_from + object.dlpi_phdr[i].p_memsz;
      }
    walk.over_words(object, [&](void** word, const Mapping& mapping, void** end) {
      const auto at = reinterpret_cast<uintptr_t>(word);
      if ((mapping.rights & PROT_WRITE) != 0 && (at < closed_from || at >= closed_to)) body(object, word, end, data);
    });
  });
}

}  // namespace tacho::capture
