// Whether the process uses MPI (watch.h). It does once a library that has PMPI_Init is loaded: with the program, or by
// dlopen, as Python's mpi4py loads it. dlsym notices the later ones, because a program that loads a library next asks
// it for a function. Other processes load nothing and bind nothing, and libtacho.so has no MPI functions: a program
// that tests for a weak MPI_Init sees the same as without tacho.
#include "capture/source/mpi/watch.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "capture/capture.h"
#include "capture/source/sampler/modules.h"
#include "event/mpi_host.h"
#include "tape/writer.h"

namespace tacho::capture::mpi {
namespace {

// The functions that libtacho-mpi.so gets from its host

// Where tacho came late: a call that began before is none of this recording's, and may end in it all the same; one that
// ends when tacho leaves finds nobody who takes its record.
constinit std::atomic<uint64_t> g_late_since{0};
bool is_of_recording(uint64_t start) {
  const uint64_t since = g_late_since.load(std::memory_order_relaxed);
  return since == 0 || (start >= since && tape::pool()->closing.load(std::memory_order_relaxed) == 0);
}

bool host_begin(MpiCall& call) {
  tape::ThreadState& state = tape::t_state;
  if (!tape::enabled(tape::source_bit::kApi) || state.hidden != 0) return false;
  call.correlation = tape::next_correlation();
  call.outer = state.open_correlation;
  state.open_correlation = call.correlation;
  call.start = host_ticks();
  return true;
}
uint64_t host_now() {
  return host_ticks();
}
void host_end(const MpiCall& call, uint64_t end, uint32_t value) {
  tape::t_state.open_correlation = call.outer;
  if (!is_of_recording(call.start)) return;
  if (auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi, value,
                                                         static_cast<uint8_t>(event::Domain::kMpi))) {
    record->start = call.start;
    record->end = end;
    record->correlation = call.correlation;
    tape::commit();
  }
}
void host_drop(const MpiCall& call) {
  tape::t_state.open_correlation = call.outer;
  if (!is_of_recording(call.start)) return;
}
void host_message(const event::MessageRecord& message) {
  if (!is_of_recording(message.start)) return;
  if (auto* const record = tape::begin<event::MessageRecord>(event::RecordKind::kMessage, event::Table::kMessage,
                                                             message.header.value, message.header.flags)) {
    event::RecordHeader header = record->header;
    if (tape::configuration().api_args) header.value |= event::kMessageShown;
    *record = message;
    record->header = header;
    tape::commit();
  }
}
void host_communicator(event::CommunicatorRecord record, const char* name, const char* members) {
  record.header.kind = event::RecordKind::kCommunicator;
  record.header.size = sizeof record;
  if (name != nullptr && *name != '\0') record.name = tape::intern(name);
  if (members != nullptr) record.members = tape::intern(members);
  tape::define(&record.header);
}
void host_property(const char* key, const char* text) {
  tape::define_property(event::Table::kProcess, 0, key, text);
}
void host_warn(const char* sentence) {
  tape::note(event::NoteSeverity::kWarning, sentence);
}
constinit MpiHost g_host = {sizeof(MpiHost),   host_begin,    host_now,  host_end,           host_drop, host_message,
                            host_communicator, host_property, host_warn, tape::flush_thread, false};

// Looking

constinit std::atomic<bool> g_watching{false};
constinit std::atomic<bool> g_looking{false};
constinit std::atomic<uint64_t> g_seen{0};  // objects ever loaded, at the last look
constinit std::atomic<const MpiLibrary*> g_library{nullptr};
constinit bool g_failed = false;

const char* base_of(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Names of loaded objects that may have MPI's functions: libmpi.so.40, libmpich.so.12, libmpi_cray.so.12 ...
struct Candidates {
  char names[8][PATH_MAX];
  size_t count;
};
int see(dl_phdr_info* info, size_t, void* data) {
  auto& found = *static_cast<Candidates*>(data);
  if (info->dlpi_name != nullptr && strncmp(base_of(info->dlpi_name), "libmpi", 6) == 0 && found.count < 8)
    snprintf(found.names[found.count++], PATH_MAX, "%s", info->dlpi_name);
  return 0;
}

// A handle of a library by which PMPI_Init is found (libmpi.so itself or one that needs it); nullptr = there is none.
// The handle is kept: the library must not go while its functions are bound.
void* find_mpi() {
  static constinit Candidates found{};  // large; look() lets in one thread
  found.count = 0;
  dl_iterate_phdr(see, &found);
  for (size_t i = 0; i < found.count; ++i)
    if (void* const handle = dlopen(found.names[i], RTLD_NOLOAD | RTLD_LAZY)) {
      if (dlsym(handle, "PMPI_Init") != nullptr) return handle;
      dlclose(handle);
    }
  return nullptr;
}

int count_loaded(dl_phdr_info* info, size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
    *static_cast<uint64_t*>(data) = info->dlpi_adds;
  return 1;
}

// libtacho-mpi.so lies beside this library, or where this one's link leads.
const MpiLibrary* load(void* mpi) {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&g_host), &self) == 0 || self.dli_fname == nullptr) return nullptr;
  char own[PATH_MAX], path[PATH_MAX + 32];
  if (realpath(self.dli_fname, own) == nullptr) {
    if (g_host.late)
      tape::note(event::NoteSeverity::kWarning,
                 "the program uses MPI, but its calls are not recorded: it does not see tacho's files (a container), "
                 "of which libtacho-mpi.so is one");
    return nullptr;
  }
  *(strrchr(own, '/') + 1) = '\0';
  snprintf(path, sizeof path, "%s%s", own, kMpiLibrary);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    char line[PATH_MAX + 512];
    const char* const why = dlerror();
    snprintf(line, sizeof line, "the program uses MPI, but its calls are not recorded: %s cannot be loaded (%s)",
             kMpiLibrary, why != nullptr ? why : path);
    tape::note(event::NoteSeverity::kWarning, line);
    return nullptr;
  }
  auto* const start_mpi = reinterpret_cast<StartMpi*>(dlsym(library, kStartMpi));
  return start_mpi != nullptr ? start_mpi(&g_host, mpi) : nullptr;
}

// Looks whether objects have been loaded since the last look, and binds MPI's functions in them.
void look() {
  uint64_t loaded = 0;
  dl_iterate_phdr(count_loaded, &loaded);
  if (loaded == g_seen.load(std::memory_order_relaxed) || g_looking.exchange(true, std::memory_order_acquire)) return;
  g_seen.store(loaded, std::memory_order_relaxed);
  const MpiLibrary* library = g_library.load(std::memory_order_acquire);
  if (library == nullptr && !g_failed) {
    if (void* const mpi = find_mpi()) {
      library = start() ? load(mpi) : nullptr;
      g_failed = library == nullptr;
      g_library.store(library, std::memory_order_release);
    }
  }
  if (library != nullptr) library->bind();
  g_looking.store(false, std::memory_order_release);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__x86_64__)

// Dlsym

using Dlsym = void*(void*, const char*);
constinit std::atomic<Dlsym*> g_next{nullptr};

Dlsym* next_dlsym() {
  Dlsym* next = g_next.load(std::memory_order_relaxed);
  if (next == nullptr) {
    for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5"})
      if (next == nullptr) next = reinterpret_cast<Dlsym*>(dlvsym(RTLD_NEXT, "dlsym", version));
    g_next.store(next, std::memory_order_relaxed);
  }
  return next;
}

void* replaced_dlsym(void* handle, const char* name) {
  void* const found = next_dlsym()(handle, name);
  const MpiLibrary* const library = g_library.load(std::memory_order_acquire);
  return found != nullptr && library != nullptr ? library->symbol(found, name) : found;
}

// dlsym's result depends on its caller. So our dlsym below tail-jumps to the function returned here.
extern "C" __attribute__((visibility("hidden"), used)) Dlsym* tacho_dlsym_leads_to(void* handle, const char* name) {
  Dlsym* const next = next_dlsym();
  sampler::look_for_modules();
  if (!g_watching.load(std::memory_order_acquire)) return next;
  look();
  const bool by_caller = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
  if (by_caller || g_library.load(std::memory_order_relaxed) == nullptr || strncmp(name, "MPI_", 4) != 0) return next;
  return replaced_dlsym;
}

asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call tacho_dlsym_leads_to
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");

#endif

}  // namespace

void watch() {
  const char* const pool = getenv("TACHO_POOL");
  if (pool == nullptr || *pool == '\0') return;
  g_watching.store(true, std::memory_order_release);
  look();
}

namespace {
constinit uint32_t g_late_in = 0;  // tape::late_session()
}

void start_late() {
  const MpiLibrary* library = g_library.load(std::memory_order_acquire);
  // It is in the program from its start, and binds MPI's calls itself.
  if (library != nullptr && !g_host.late) return;
  if (g_late_in != tape::late_session()) g_failed = false;
  if (library == nullptr) {
    void* const mpi = g_failed ? nullptr : find_mpi();
    if (mpi == nullptr) return;
    g_host.late = true;
    library = load(mpi);
    g_failed = library == nullptr;
    g_library.store(library, std::memory_order_release);
    if (library == nullptr) return;
  }
  if (g_late_in != tape::late_session()) {
    g_late_since.store(host_ticks(), std::memory_order_relaxed);
    library->begin();
    tape::note(
        event::NoteSeverity::kInfo,
        "MPI: requests and windows from before tacho attached are not followed, and neither collectives nor the "
        "communicators that the program had made have numbers, by which tacho ranks would find the collectives and the "
        "messages on them of several ranks that belong together");
  }
  g_late_in = tape::late_session();
  if (!library->lead())
    tape::note(
        event::NoteSeverity::kWarning,
        "calls of MPI are not in this trace: the program's words that lead to them cannot be looked at (/proc is "
        "not there, or there is no memory)");
}

void leave_late() {
  const MpiLibrary* const library = g_library.load(std::memory_order_acquire);
  if (library != nullptr && g_host.late) library->lead_back();
}

void leave_late_in_child() {}

}  // namespace tacho::capture::mpi
