// Getting tacho's library into a running process (intruder.h).
#include "attach/intruder.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <span>

#include "attach/steps.h"
#include "attach/way_back.h"
#include "base/clock.h"
#include "event/schema.h"
#include "launch/installation.h"

// What runs in the process, wherever it lies. At the stub a new thread begins: %rdi is the AttachBlock. At the return
// the stopped thread ends its call: it makes the system call rt_sigreturn (way_back.h), with the result as a parameter.
// tacho, which waits for that, gives the registers back itself and lets the thread not come so far.
asm(R"(
  .pushsection .text
  .globl tacho_attach_stub, tacho_attach_return, tacho_attach_end
  .hidden tacho_attach_stub, tacho_attach_return, tacho_attach_end
tacho_attach_stub:
  pushq %rbx
  movq %rdi, %rbx
  movq (%rbx), %rax
  testq %rax, %rax
  jnz 2f
  leaq 88(%rbx), %rdi
  movl $2, %esi
  callq *8(%rbx)
  testq %rax, %rax
  jz 1f
  movq %rax, %rdi
  leaq 48(%rbx), %rsi
  callq *16(%rbx)
  testq %rax, %rax
  jnz 2f
1:
  movq 24(%rbx), %rax
  testq %rax, %rax
  jz 3f
  callq *%rax
3:
  movq %rax, 32(%rbx)
  movl $1, 40(%rbx)
  popq %rbx
  xorl %eax, %eax
  retq
2:
  movq %rbx, %rdi
  popq %rbx
  jmpq *%rax
tacho_attach_return:
  movq %rax, %rdi
4:
  movl $15, %eax
  syscall
  jmp 4b
tacho_attach_end:
  .popsection
)");
extern "C" const char tacho_attach_stub[], tacho_attach_return[], tacho_attach_end[];

namespace tacho::attach {
namespace {

using tape::AttachBlock;
using tape::AttachState;

constexpr size_t kPage = 4096;
constexpr int kSealedAgainstRunning = 0x20;  // F_SEAL_EXEC, which the kernel may set by itself
constexpr size_t kStackBytes = 64 * 1024;    // for pthread_create
constexpr size_t kDataBytes = (sizeof(AttachBlock) + kPage - 1) / kPage * kPage;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kStopPatience = 500 * kMillisecond;   // for a thread to stop
constexpr int64_t kCallPatience = 1000 * kMillisecond;  // for pthread_create

void pause_for(int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

// The functions that are needed in the process, and where not to stop.
struct Places {
  uint64_t create = 0, open = 0, symbol = 0, error = 0;
  uint64_t syscall_instruction = 0;  // in libc's syscall(), before its return
  uint64_t sigreturn = 0;            // where libc makes the system call rt_sigreturn; 0 = not found
  uint64_t entry = 0;                // of a library that is there already
  std::vector<RemoteModule::Part> unsafe;
  std::vector<RemoteModule::Part> program;  // the code of a program that is no allocator
};

// Functions in which a thread may hold the allocator's lock, and others of libc's by whose locks pthread_create waits.
constexpr const char* kAllocating[] = {"malloc",        "free",           "calloc",    "realloc",     "memalign",
                                       "aligned_alloc", "posix_memalign", "valloc",    "pvalloc",     "mallopt",
                                       "malloc_trim",   "mallinfo",       "mallinfo2", "malloc_info", "malloc_stats"};
constexpr const char* kLocking[] = {"fork",
                                    "vfork",
                                    "pthread_create",
                                    "pthread_exit",
                                    "pthread_join",
                                    "pthread_getattr_np",
                                    "pthread_setattr_default_np",
                                    "pthread_atfork",
                                    "__register_atfork",
                                    "dlopen",
                                    "dlclose",
                                    "dlsym",
                                    "dlvsym",
                                    "dladdr",
                                    "dl_iterate_phdr",
                                    "__cxa_thread_atexit_impl",
                                    "exit",
                                    "__libc_freeres"};

// mov $15,%rax; syscall: libc's way out of handlers of signals.
uint64_t find_sigreturn(const RemoteMemory& memory, const RemoteModule& libc) {
  constexpr std::string_view kCode("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
  constexpr size_t kMost = size_t{16} << 20;
  for (const RemoteModule::Part& part : libc.code) {
    std::string code(std::min<uint64_t>(part.end - part.begin, kMost), '\0');
    if (!memory.read(part.begin, code.data(), code.size())) continue;
    if (const size_t at = code.find(kCode); at != std::string::npos) return part.begin + at;
  }
  return 0;
}

Result<Places> find_places(const RemoteMemory& memory, const std::vector<RemoteModule>& modules,
                           const TargetFacts& facts, std::string_view entry) {
  Places places;
  const auto take = [&](uint64_t& place, const RemoteModule& module, std::string_view name) {
    if (place != 0) return;
    if (const auto found = find_function(memory, module, name)) place = found->begin;
  };
  const auto add_functions = [&](std::span<const char* const> names, const RemoteModule& module) {
    for (const char* const function : names)
      if (const auto found = find_function(memory, module, function))
        places.unsafe.push_back({found->begin, found->begin + std::max<uint64_t>(found->bytes, 1)});
  };
  const std::string_view loader = std::string_view(facts.interpreter).substr(facts.interpreter.rfind('/') + 1);
  for (const RemoteModule& module : modules) {
    const std::string_view name = module.file_name();
    const bool is_loader = name == loader || name.starts_with("ld-linux") || name.starts_with("ld-2");
    const bool is_libc = name.starts_with("libc.so") || name.starts_with("libc-2");
    if (is_loader) places.unsafe.insert(places.unsafe.end(), module.code.begin(), module.code.end());
    if (is_libc || name.starts_with("libpthread")) take(places.create, module, "pthread_create");
    if (is_libc || name.starts_with("libdl")) {
      take(places.open, module, "dlopen");
      take(places.symbol, module, "dlsym");
      take(places.error, module, "dlerror");
    }
    if (!is_libc) {
      take(places.entry, module, entry);
      // Allocators of the program's own (jemalloc, tcmalloc, sanitizers), by whose locks pthread_create could wait: a
      // library of that kind as a whole; of a program that holds one, as bash does, those of its functions.
      const bool is_program = name == facts.name;
      if (find_function(memory, module, "malloc") && find_function(memory, module, "free")) {
        if (is_program)
          add_functions(kAllocating, module);
        else
          places.unsafe.insert(places.unsafe.end(), module.code.begin(), module.code.end());
      } else if (is_program) {
        places.program.insert(places.program.end(), module.code.begin(), module.code.end());
      }
      continue;
    }
    if (const auto call = find_function(memory, module, "syscall"); call && call->bytes <= kPage) {
      std::string code(call->bytes, '\0');
      if (memory.read(call->begin, code.data(), code.size()))
        if (const size_t at = code.find("\x0f\x05"); at != std::string::npos)
          places.syscall_instruction = call->begin + at;
    }
    places.sigreturn = find_sigreturn(memory, module);
    add_functions(kAllocating, module);
    add_functions(kLocking, module);
  }
  if (places.open == 0 || places.symbol == 0)
    // Before glibc 2.34 these lie in libdl, which the program may not have loaded; libc has them for itself.
    for (const RemoteModule& module : modules)
      if (module.file_name().starts_with("libc.so") || module.file_name().starts_with("libc-2")) {
        places.open = places.symbol = 0;
        take(places.open, module, "__libc_dlopen_mode");
        take(places.symbol, module, "__libc_dlsym");
      }
  if (places.syscall_instruction == 0)
    return fail("process {} has no glibc loaded, which tacho's library needs", facts.pid);
  if (places.create == 0)
    return fail("process {} has no threads' library loaded (libpthread), which tacho's library needs; start it with "
                "tacho trace",
                facts.pid);
  if (places.open == 0 || places.symbol == 0) return fail("the glibc of process {} has no dlopen", facts.pid);
  return places;
}

// Mappings that threads may have as stacks, as the kernel lists them.
struct Mapping {
  uint64_t begin, end;
  bool main_stack;
};
std::vector<Mapping> stacks_of(pid_t process) {
  std::vector<Mapping> stacks;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const uint64_t begin = strtoull(line.c_str(), &end, 16);
    if (*end != '-') continue;
    const uint64_t past = strtoull(end + 1, &end, 16);
    if (strncmp(end, " rw", 3) == 0) stacks.push_back({begin, past, line.ends_with("[stack]")});
  }
  return stacks;
}

// A stopped thread. The destructor gives it back as it was found.
class StoppedThread {
 public:
  /// Stops the thread; an error if it does not stop or has ended.
  static Result<StoppedThread> stop(pid_t thread);
  StoppedThread(StoppedThread&& other) noexcept : data_(other.data_) { other.data_.thread = 0; }
  StoppedThread& operator=(StoppedThread&&) = delete;
  StoppedThread(const StoppedThread&) = delete;
  ~StoppedThread() { resume(); }

  /// True where pthread_create needs no lock that this thread may hold.
  bool is_safe(const RemoteMemory& memory, const Places& places) const;
  /// Prepares the way back on the thread's own stack, before it is made to do anything. Without one, on stacks that are
  /// not the system's (coroutines), the thread goes nowhere if tacho is killed before create_thread() has begun.
  void prepare_way_back(const RemoteMemory& memory, const Places& places, const std::vector<Mapping>& stacks);
  /// A system call by the thread; -errno for a refusal.
  Result<int64_t> call_kernel(const Places& places, long number, std::array<uint64_t, 6> parameters);
  /// pthread_create(&created, nullptr, stub, block) on a stack of its own; its result.
  Result<int64_t> create_thread(const Places& places, const RemoteMemory& memory, uint64_t code, uint64_t stack,
                                uint64_t stack_bytes, uint64_t block);
  /// Gives the thread back. False if it has ended meanwhile.
  bool resume();
  int64_t stopped_ns() const { return stopped_ns_; }

 private:
  struct Data {
    pid_t thread = 0;
    int64_t since = 0;
    user_regs_struct registers{};
    uint64_t mask = 0;
    uint64_t way_back = 0;  // 0 = none
    bool masked = false, changed = false, at_event = true;
    size_t vector_bytes = 0;
    std::array<std::byte, 16 * 1024> vectors{};
  };
  StoppedThread() = default;
  // Blocks the thread's signals, so that no handler of the program runs meanwhile.
  bool block_signals();
  std::span<const std::byte> vectors() const { return {data_.vectors.data(), data_.vector_bytes}; }
  enum class Stop { kEvent, kCall, kSignal, kGone, kLate };
  Stop wait_for_stop(int64_t patience);
  bool set(user_regs_struct registers) const {
    iovec part{&registers, sizeof registers};
    return ptrace(PTRACE_SETREGSET, data_.thread, NT_PRSTATUS, &part) == 0;
  }
  bool get(user_regs_struct& registers) const {
    iovec part{&registers, sizeof registers};
    return ptrace(PTRACE_GETREGSET, data_.thread, NT_PRSTATUS, &part) == 0 && part.iov_len == sizeof registers;
  }
  Error gone() const { return {fmt::format("thread {} ended while tacho was attaching", data_.thread)}; }

  Data data_;
  int signal_ = 0;
  int64_t stopped_ns_ = 0;
};

StoppedThread::Stop StoppedThread::wait_for_stop(int64_t patience) {
  const int64_t begin = raw_now();
  for (int64_t pause = 5'000;; pause = std::min<int64_t>(pause * 2, 200'000)) {
    int status = 0;
    const pid_t found = waitpid(data_.thread, &status, __WALL | WNOHANG);
    if (found == data_.thread) {
      if (!WIFSTOPPED(status)) {
        data_.thread = 0;
        return Stop::kGone;
      }
      const int event = status >> 16;
      if (event == PTRACE_EVENT_STOP) return Stop::kEvent;
      if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return Stop::kCall;
      signal_ = WSTOPSIG(status);
      return Stop::kSignal;
    }
    if (found < 0 && errno != EINTR) {
      data_.thread = 0;
      return Stop::kGone;
    }
    if (raw_now() - begin > patience) return Stop::kLate;
    pause_for(pause);
  }
}

// Threads that are to be let go as soon as they stop. Of the one thread that attaches.
std::vector<pid_t> g_late_threads;

Result<StoppedThread> StoppedThread::stop(pid_t thread) {
  StoppedThread stopped;
  if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0)
    return fail("the kernel does not let tacho stop thread {}: {}", thread, strerror(errno));
  stopped.data_.thread = thread;
  stopped.data_.since = raw_now();
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return fail("thread {}: {}", thread, strerror(errno));
  for (;;) {
    const Stop how = stopped.wait_for_stop(kStopPatience);
    if (how == Stop::kEvent) break;
    if (how == Stop::kGone) return tl::unexpected<Error>(stopped.gone());
    if (how == Stop::kLate) {
      // In the kernel, where nothing interrupts it: it will stop when it comes out.
      g_late_threads.push_back(thread);
      stopped.data_.thread = 0;
      return fail("thread {} does not stop: it waits in the kernel for a device or file", thread);
    }
    // A signal was on its way: the thread gets it, and stops afterwards.
    ptrace(PTRACE_CONT, thread, nullptr, stopped.signal_);
  }
  iovec vectors{stopped.data_.vectors.data(), stopped.data_.vectors.size()};
  if (!stopped.get(stopped.data_.registers) || ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &vectors) != 0 ||
      ptrace(PTRACE_GETSIGMASK, thread, sizeof stopped.data_.mask, &stopped.data_.mask) != 0)
    return fail("the registers of thread {} cannot be read: {}", thread, strerror(errno));
  stopped.data_.vector_bytes = vectors.iov_len;
  return stopped;
}

// Calls that wait, and that neither allocators nor the loader make.
bool only_waits(const user_regs_struct& registers) {
  static constexpr long kCalls[] = {SYS_wait4,           SYS_waitid,       SYS_poll,        SYS_ppoll,   SYS_select,
                                    SYS_pselect6,        SYS_epoll_wait,   SYS_epoll_pwait, SYS_pause,   SYS_nanosleep,
                                    SYS_clock_nanosleep, SYS_accept,       SYS_accept4,     SYS_recvmsg, SYS_recvfrom,
                                    SYS_rt_sigtimedwait, SYS_rt_sigsuspend};
  return std::any_of(std::begin(kCalls), std::end(kCalls),
                     [&](long each) { return each == static_cast<long>(registers.orig_rax); });
}

bool StoppedThread::is_safe(const RemoteMemory& memory, const Places& places) const {
  // What lies on the stack of a thread that waits for long may be of functions that returned long ago.
  if (only_waits(data_.registers)) return true;
  const auto lies_in = [](uint64_t address, const std::vector<RemoteModule::Part>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const RemoteModule::Part& part) { return address >= part.begin && address < part.end; });
  };
  if (lies_in(data_.registers.rip, places.unsafe)) return false;
  // In a restartable sequence, which must begin again if it is interrupted.
  struct {
    uint64_t area;
    uint32_t bytes, signature, flags, pad;
  } sequences{};
  constexpr int kGetSequences = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION
  if (ptrace(static_cast<__ptrace_request>(kGetSequences), data_.thread, sizeof sequences, &sequences) > 0 &&
      sequences.area != 0)
    if (memory.value<uint64_t>(sequences.area + 8).value_or(0) != 0) return false;
  // Return addresses of the innermost frames. What else looks like one only makes tacho choose another moment. A thread
  // in the program's own code, and in no handler of a signal, is in no allocator, because none calls the program, and
  // where the loader does, for a constructor, threads may be made: there such words are of calls that have returned.
  constexpr uint64_t kLooked = 2048;
  const uint64_t from = data_.registers.rsp & ~7ull;
  bool any = false, in_handler = places.sigreturn == 0;
  for (uint64_t at = from; at < from + kLooked; at += 8) {
    const auto word = memory.value<uint64_t>(at);
    if (!word) break;
    any = any || lies_in(*word, places.unsafe);
    in_handler = in_handler || *word == places.sigreturn;
  }
  return !any || (!in_handler && lies_in(data_.registers.rip, places.program));
}

void StoppedThread::prepare_way_back(const RemoteMemory& memory, const Places& places,
                                     const std::vector<Mapping>& stacks) {
  constexpr uint64_t kRedZone = 128, kRoom = 256;
  const uint64_t stack = data_.registers.rsp;
  const uint64_t at = (stack - kRedZone - way_back_bytes(data_.vector_bytes)) & ~uint64_t{63};
  const auto mapping = std::find_if(stacks.begin(), stacks.end(),
                                    [&](const Mapping& each) { return stack >= each.begin && stack < each.end; });
  if (mapping == stacks.end() || places.sigreturn == 0) return;
  // Behind a thread's stack, in its mapping, libc has the thread's own data.
  const uint64_t own = data_.registers.fs_base;
  const bool of_system = mapping->main_stack || (own > stack && own < mapping->end);
  if (!of_system || at > stack || at < mapping->begin + kRoom) return;
  const std::vector<std::byte> frame = way_back(data_.registers, data_.mask, vectors(), at);
  if (memory.write(at, frame.data(), frame.size()) && memory.write(at - 8, &places.sigreturn, sizeof places.sigreturn))
    data_.way_back = at;
}

bool StoppedThread::block_signals() {
  uint64_t all = ~uint64_t{0};
  data_.masked = ptrace(PTRACE_SETSIGMASK, data_.thread, sizeof all, &all) == 0;
  return data_.masked;
}

Result<int64_t> StoppedThread::call_kernel(const Places& places, long number, std::array<uint64_t, 6> parameters) {
  user_regs_struct registers = data_.registers;
  registers.rip = places.syscall_instruction;
  registers.rax = static_cast<uint64_t>(number);
  registers.orig_rax = ~uint64_t{0};
  registers.rdi = parameters.at(0);
  registers.rsi = parameters.at(1);
  registers.rdx = parameters.at(2);
  registers.r10 = parameters.at(3);
  registers.r8 = parameters.at(4);
  registers.r9 = parameters.at(5);
  if (data_.way_back != 0) registers.rsp = data_.way_back - 8;
  data_.changed = true;
  if (!set(registers)) return fail("the registers of thread {} cannot be set: {}", data_.thread, strerror(errno));
  if (!data_.masked && !block_signals())
    return fail("signals of thread {} cannot be blocked: {}", data_.thread, strerror(errno));
  for (int stops = 0; stops < 2;) {
    data_.at_event = false;
    if (ptrace(PTRACE_SYSCALL, data_.thread, nullptr, nullptr) != 0) return tl::unexpected<Error>(gone());
    const Stop how = wait_for_stop(kCallPatience);
    if (how == Stop::kGone) return tl::unexpected<Error>(gone());
    if (how == Stop::kLate) return fail("thread {} does not come back from a system call", data_.thread);
    if (how == Stop::kSignal) return fail("thread {} got signal {} while tacho was attaching", data_.thread, signal_);
    if (how == Stop::kCall) ++stops;
  }
  if (!get(registers)) return tl::unexpected<Error>(gone());
  return static_cast<int64_t>(registers.rax);
}

Result<int64_t> StoppedThread::create_thread(const Places& places, const RemoteMemory& memory, uint64_t code,
                                             uint64_t stack, uint64_t stack_bytes, uint64_t block) {
  const auto return_at = code + static_cast<uint64_t>(tacho_attach_return - tacho_attach_stub);
  // Below it the return address, behind it the place for the thread's number.
  const uint64_t bytes = way_back_bytes(data_.vector_bytes);
  const uint64_t back = (stack + stack_bytes - bytes - 64) & ~uint64_t{63};
  const std::vector<std::byte> frame = way_back(data_.registers, data_.mask, vectors(), back);
  user_regs_struct registers = data_.registers;
  registers.rip = places.create;
  registers.rsp = back - 8;
  registers.rbp = 0;
  registers.rax = 0;
  registers.orig_rax = ~uint64_t{0};
  registers.rdi = back + bytes;
  registers.rsi = 0;
  registers.rdx = code;
  registers.rcx = block;
  registers.eflags &= ~0x400ull;  // the direction flag, as functions expect it
  data_.changed = true;
  if (!memory.write(back, frame.data(), frame.size()) || !memory.write(back - 8, &return_at, sizeof return_at) ||
      !set(registers))
    return fail("thread {} cannot be made to call pthread_create", data_.thread);
  const int64_t until = raw_now() + kCallPatience;
  for (;;) {
    data_.at_event = false;
    if (ptrace(PTRACE_SYSCALL, data_.thread, nullptr, nullptr) != 0) return tl::unexpected<Error>(gone());
    const Stop how = wait_for_stop(std::max<int64_t>(until - raw_now(), kMillisecond));
    if (how == Stop::kGone) return tl::unexpected<Error>(gone());
    if (how == Stop::kLate) {
      ptrace(PTRACE_INTERRUPT, data_.thread, nullptr, nullptr);
      if (wait_for_stop(kStopPatience) == Stop::kGone) return tl::unexpected<Error>(gone());
      data_.at_event = true;
      return fail("thread {} waits for a lock in pthread_create", data_.thread);
    }
    if (how == Stop::kSignal) return fail("thread {} got signal {} in pthread_create", data_.thread, signal_);
    if (!get(registers)) return tl::unexpected<Error>(gone());
    if (how == Stop::kCall && registers.rip > return_at && registers.rip < return_at + 64) {
      const auto result = static_cast<int32_t>(registers.rdi);
      // Not rt_sigreturn, after which the kernel would not go on with a call that waits for a time.
      registers.orig_rax = SYS_getpid;
      if (!set(registers)) return tl::unexpected<Error>(gone());
      return result;
    }
  }
}

bool StoppedThread::resume() {
  if (data_.thread == 0) return false;
  const pid_t thread = data_.thread;
  // Only at an event does the kernel look at the registers once more and restart a call that was interrupted.
  if (!data_.at_event) {
    ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    for (;;) {
      if (ptrace(PTRACE_CONT, thread, nullptr, nullptr) != 0) break;
      const Stop how = wait_for_stop(kStopPatience);
      if (how == Stop::kGone) return false;
      if (how == Stop::kEvent || how == Stop::kLate) break;
    }
  }
  user_regs_struct registers = data_.registers;
  if (static_cast<int64_t>(registers.rax) == -EINTR && static_cast<int64_t>(registers.orig_rax) >= 0 &&
      restarts_by_hand(registers.orig_rax)) {
    registers.rax = registers.orig_rax;
    registers.rip -= 2;
    registers.orig_rax = ~uint64_t{0};
    data_.changed = true;
  }
  if (data_.changed) {
    set(registers);
    iovec vectors{data_.vectors.data(), data_.vector_bytes};
    ptrace(PTRACE_SETREGSET, thread, NT_X86_XSTATE, &vectors);
  }
  if (data_.masked) ptrace(PTRACE_SETSIGMASK, thread, sizeof data_.mask, &data_.mask);
  ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  data_.thread = 0;
  stopped_ns_ = raw_now() - data_.since;
  return true;
}

// The threads of a process, those first that are best to stop: waiting in a call that the kernel restarts by itself,
// then waiting elsewhere, then running. Those that nothing can stop are left out.
std::vector<pid_t> threads_to_stop(pid_t pid) {
  std::vector<std::pair<int, pid_t>> found;
  DIR* const folder = opendir(fmt::format("/proc/{}/task", pid).c_str());
  if (folder == nullptr) return {};
  while (const dirent* const entry = readdir(folder)) {
    const pid_t thread = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (thread <= 0) continue;
    std::ifstream stat(fmt::format("/proc/{}/task/{}/stat", pid, thread));
    const std::string text{std::istreambuf_iterator<char>(stat), {}};  // a name may have several lines
    const size_t name_end = text.rfind(')');
    const char state = name_end != std::string::npos && name_end + 2 < text.size() ? text.at(name_end + 2) : 'D';
    if (state != 'S' && state != 'R') continue;
    long call = -1;
    std::ifstream(fmt::format("/proc/{}/task/{}/syscall", pid, thread)) >> call;
    static constexpr long kGood[] = {SYS_futex,    SYS_poll,      SYS_ppoll,           SYS_select,
                                     SYS_pselect6, SYS_nanosleep, SYS_clock_nanosleep, SYS_wait4,
                                     SYS_waitid,   SYS_pause,     SYS_restart_syscall};
    const bool good = std::any_of(std::begin(kGood), std::end(kGood), [&](long each) { return each == call; });
    found.emplace_back(state == 'R' ? 2 : good ? 0 : 1, thread);
    constexpr size_t kEnough = 64;
    if (found.size() >= kEnough) break;
  }
  closedir(folder);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<pid_t> threads;
  for (const auto& [rank, thread] : found) threads.push_back(thread);
  return threads;
}

template <size_t N>
bool put_text(char (&into)[N], std::string_view text) {
  if (text.size() >= N) return false;
  memcpy(into, text.data(), text.size());
  into[text.size()] = '\0';
  return true;
}

// Pages of the process that hold the stub, the block and a stack, while a thread of it is stopped.
struct Pages {
  uint64_t code = 0, data = 0, bytes = 0;
  int64_t descriptor = -1;  // of the library's copy, in the process
};

// Opens the file in memory that the process has just made, to write. Another thread of it may have put another file in
// its place: only one that is empty, has no name and may be sealed, as files with names may not, is taken.
Result<int> open_new_file(pid_t pid, int64_t descriptor) {
  const int found = open(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(), O_PATH | O_CLOEXEC);
  struct stat status {};
  int file = -1;
  if (found >= 0 && fstat(found, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
      status.st_nlink == 0)
    file = open(fmt::format("/proc/self/fd/{}", found).c_str(), O_WRONLY | O_CLOEXEC);
  if (found >= 0) close(found);
  if (file >= 0 && (fcntl(file, F_GET_SEALS) & ~kSealedAgainstRunning) == 0) return file;
  if (file >= 0) close(file);
  return fail("it has put another file in the place of the one for tacho's library");
}

// Copies the library into a file in memory that the process has opened.
Status copy_library(pid_t pid, int64_t descriptor, const std::string& library) {
  std::ifstream from(library, std::ios::binary);
  if (!from) return fail("{} cannot be read: {}", library, strerror(errno));
  TACHO_ASSIGN(const int to, open_new_file(pid, descriptor));
  std::vector<char> part(1 << 20);
  bool good = true;
  while (good && from) {
    from.read(part.data(), static_cast<std::streamsize>(part.size()));
    for (std::streamsize done = 0; good && done < from.gcount();) {
      const ssize_t size = write(to, part.data() + done, static_cast<size_t>(from.gcount() - done));
      good = size > 0;
      done += size;
    }
  }
  close(to);
  if (!good) return fail("{} cannot be copied into it: {}", library, strerror(errno));
  return {};
}

class Intruder {
 public:
  Intruder(const TargetFacts& facts, const EnterRequest& request, RemoteMemory memory, Places places)
      : facts_(facts), request_(request), memory_(std::move(memory)), places_(std::move(places)) {}

  bool is_other_program() const { return memory_.is_gone() && has_memory(facts_.pid); }

  Result<EnterResult> run() {
    result_.parked = places_.entry != 0;
    TACHO_TRY(start_thread());
    return wait_for_answer();
  }

 private:
  // The program that tacho has looked at is there no more.
  Status changed() const {
    if (!has_memory(facts_.pid)) return fail("process {} ended while tacho was attaching", facts_.pid);
    return fail("process {} began to run another program (exec) while tacho was attaching; attach to that", facts_.pid);
  }

  // Tries threads and moments until one of them has started our thread.
  Status start_thread() {
    constexpr int64_t kPatience = 5'000'000'000;
    const int64_t begin = raw_now();
    std::string why = "no thread of it can be stopped";
    for (int64_t pause = kMillisecond; raw_now() - begin < kPatience; pause = std::min(pause * 2, 50 * kMillisecond)) {
      release_late_threads();
      stacks_ = stacks_of(facts_.pid);
      for (const pid_t thread : threads_to_stop(facts_.pid)) {
        if (std::find(g_late_threads.begin(), g_late_threads.end(), thread) != g_late_threads.end()) continue;
        auto stopped = StoppedThread::stop(thread);
        if (!stopped) {
          why = stopped.error().message;
          if (memory_.is_gone()) return changed();
          continue;
        }
        ++result_.attempts;
        at_step("stopped");
        if (memory_.is_gone()) return changed();
        const bool safe = stopped->is_safe(memory_, places_);
        Status done;
        if (safe) done = use(*stopped);
        if (safe && !done) give_pages_back(*stopped);
        stopped->resume();
        result_.stopped_s += static_cast<double>(stopped->stopped_ns()) * 1e-9;
        if (safe && done) return {};
        if (memory_.is_gone()) return changed();
        if (!safe) {
          why = "its threads were in the loader or the allocator whenever tacho looked";
          continue;
        }
        why = done.error().message;
        if (refused_) return fail("process {}: {}", facts_.pid, why);
      }
      pause_for(pause);
      // A program that ended while a thread was tried has none left that is tried again.
      if (memory_.is_gone()) return changed();
    }
    return fail("tacho found no moment to get into process {}: {}", facts_.pid, why);
  }

  // Puts the code and the block there and lets the thread start another.
  Status use(StoppedThread& thread) {
    thread.prepare_way_back(memory_, places_, stacks_);
    const auto map = [&](uint64_t bytes, int rights) {
      return thread.call_kernel(
          places_, SYS_mmap, {0, bytes, static_cast<uint64_t>(rights), MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0});
    };
    const auto refused = [&](const char* what, int64_t error) {
      refused_ = true;
      return fail("{} is refused there ({}): a seccomp filter or a security module", what,
                  strerror(static_cast<int>(-error)));
    };
    TACHO_ASSIGN(const int64_t code, map(kPage, PROT_READ | PROT_EXEC));
    if (code < 0 && code > -4096) return refused("memory for code", code);
    pages_.code = static_cast<uint64_t>(code);
    pages_.bytes = kDataBytes + kStackBytes;
    TACHO_ASSIGN(const int64_t data, map(pages_.bytes, PROT_READ | PROT_WRITE));
    if (data < 0 && data > -4096) return refused("memory", data);
    pages_.data = static_cast<uint64_t>(data);
    at_step("mapped");
    TACHO_TRY(fill_block(thread));
    at_step("filled");
    TACHO_ASSIGN(const int64_t created, thread.create_thread(places_, memory_, pages_.code, pages_.data + kDataBytes,
                                                             kStackBytes, pages_.data));
    if (created != 0) {
      refused_ = true;
      return fail("it cannot start another thread: {}", strerror(static_cast<int>(created)));
    }
    at_step("created");
    return {};
  }

  Status fill_block(StoppedThread& thread) {
    AttachBlock block{};
    std::string library = request_.inner_library;
    if (places_.entry == 0 && library.empty()) {
      const std::string name = request_.library_name();
      if (!memory_.write(pages_.data, name.c_str(), name.size() + 1)) return fail("its memory cannot be written");
      TACHO_ASSIGN(pages_.descriptor,
                   thread.call_kernel(places_, SYS_memfd_create, {pages_.data, MFD_CLOEXEC | MFD_ALLOW_SEALING}));
      if (pages_.descriptor < 0)
        return fail("it may not open a file in memory: {}", strerror(static_cast<int>(-pages_.descriptor)));
      at_step("opened");
      if (Status copied = copy_library(facts_.pid, pages_.descriptor, request_.library); !copied) {
        refused_ = true;
        return copied;
      }
      library = fmt::format("/proc/self/fd/{}", pages_.descriptor);
    }
    block.entry = places_.entry;
    block.open = places_.open;
    block.symbol = places_.symbol;
    block.error = places_.error;
    block.version = tape::kAttachVersion;
    block.code = pages_.code;
    block.code_bytes = kPage;
    block.data_bytes = pages_.bytes;
    block.descriptor = static_cast<int32_t>(pages_.descriptor);
    block.schema_hash = event::schema_hash();
    if (!put_text(block.entry_name, request_.entry) || !put_text(block.library, library) ||
        !put_text(block.pool, request_.pool))
      return fail("a path is too long: {}", request_.pool);
    const auto size = static_cast<size_t>(tacho_attach_end - tacho_attach_stub);
    if (!memory_.write(pages_.data, &block, sizeof block) || !memory_.write(pages_.code, tacho_attach_stub, size))
      return fail("its memory cannot be written: {}", strerror(errno));
    return {};
  }

  void give_pages_back(StoppedThread& thread) {
    if (pages_.code != 0) static_cast<void>(thread.call_kernel(places_, SYS_munmap, {pages_.code, kPage}));
    if (pages_.data != 0) static_cast<void>(thread.call_kernel(places_, SYS_munmap, {pages_.data, pages_.bytes}));
    if (pages_.descriptor >= 0)
      static_cast<void>(thread.call_kernel(places_, SYS_close, {static_cast<uint64_t>(pages_.descriptor)}));
    pages_ = {};
  }

  // After our thread has refused or failed: it has left the pages, or does so in a moment.
  void clean_up() {
    pause_for(20 * kMillisecond);
    for (const pid_t thread : threads_to_stop(facts_.pid)) {
      auto stopped = StoppedThread::stop(thread);
      if (!stopped) continue;
      stopped->prepare_way_back(memory_, places_, stacks_);
      give_pages_back(*stopped);
      return;
    }
  }

  Result<EnterResult> wait_for_answer() {
    at_step("waiting");
    const int64_t begin = raw_now();
    const auto at = [&](size_t offset) { return pages_.data + offset; };
    for (int64_t pause = 50'000;; pause = std::min(pause * 2, 5 * kMillisecond)) {
      const auto state = memory_.value<uint32_t>(at(offsetof(AttachBlock, state)));
      if (!state) {
        if (!memory_.is_gone()) return fail("process {} has answered, and tacho came too late for it", facts_.pid);
        return tl::unexpected<Error>(changed().error());
      }
      if (*state == static_cast<uint32_t>(AttachState::kAttached)) {
        seen();
        return result_;
      }
      if (*state == static_cast<uint32_t>(AttachState::kRefused)) {
        const std::string why = memory_.text(at(offsetof(AttachBlock, message)), sizeof(AttachBlock::message));
        seen();
        return fail("process {}: {}", facts_.pid, why);
      }
      if (*state == static_cast<uint32_t>(AttachState::kNotLoaded)) {
        const auto text = memory_.value<uint64_t>(at(offsetof(AttachBlock, loader_error)));
        const std::string why =
            text && *text != 0 ? memory_.text(*text, 512) : std::string("its loader does not say why");
        clean_up();
        return fail("process {} cannot load {}: {}", facts_.pid, request_.library_name(), why);
      }
      if (static_cast<double>(raw_now() - begin) * 1e-9 > request_.patience_s) {
        return fail("process {} has not loaded {} within {} s: its loader is busy with another library", facts_.pid,
                    request_.library_name(), request_.patience_s);
      }
      pause_for(pause);
    }
  }

  void seen() {
    const auto state = static_cast<uint32_t>(AttachState::kSeen);
    memory_.write(pages_.data + offsetof(AttachBlock, state), &state, sizeof state);
  }

  const TargetFacts& facts_;
  const EnterRequest& request_;
  RemoteMemory memory_;
  Places places_;
  Pages pages_;
  std::vector<Mapping> stacks_;
  EnterResult result_;
  bool refused_ = false;
};

// `changed`: another program runs in the process since.
Result<EnterResult> enter_once(const TargetFacts& facts, const EnterRequest& request, bool& changed) {
  TACHO_ASSIGN(RemoteMemory memory, RemoteMemory::open(facts.pid));
  auto places = find_places(memory, modules_of(facts.pid), facts, request.entry);
  changed = memory.is_gone();
  if (!places) return fail_with(std::move(places));
  Intruder intruder(facts, request, std::move(memory), std::move(*places));
  auto result = intruder.run();
  changed = intruder.is_other_program();
  return result;
}

}  // namespace

void release_late_threads() {
  std::erase_if(g_late_threads, [](pid_t thread) {
    int status = 0;
    const pid_t found = waitpid(thread, &status, __WALL | WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return false;
    if (found == thread && WIFSTOPPED(status))
      ptrace(PTRACE_DETACH, thread, nullptr, (status >> 16) == 0 ? WSTOPSIG(status) : 0);
    return true;
  });
}

Result<EnterResult> enter(const TargetFacts& facts, const EnterRequest& request) {
  // A launcher may become the program that it starts (exec) at this very moment.
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    TACHO_ASSIGN(const TargetFacts now, look_at(facts.pid));
    if (now.started != facts.started) return fail("process {} ended while tacho was attaching", facts.pid);
    TACHO_TRY(permitted_to_attach(now));
    bool changed = false;
    auto entered = enter_once(now, request, changed);
    if (entered || !changed || tries == kTries) return entered;
  }
}

}  // namespace tacho::attach
