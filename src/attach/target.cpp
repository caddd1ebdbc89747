// What a process is, and whether tacho may attach to it (target.h).
#include "attach/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "attach/listen_file.h"
#include "attach/remote_memory.h"

namespace tacho::attach {
namespace {

namespace fs = std::filesystem;
using vendor::Check;
using State = vendor::Check::State;

constexpr int kSysPtrace = 19;  // CAP_SYS_PTRACE

std::string file_of(pid_t pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(16 * 1024, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

// The words behind "Name:" in a status file.
std::vector<std::string_view> words_of(std::string_view status, std::string_view name) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < status.size();) {
    const size_t end = std::min(status.find('\n', at), status.size());
    std::string_view line = status.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    line.remove_prefix(name.size() + 1);
    while (!line.empty()) {
      const size_t begin = line.find_first_not_of(" \t");
      if (begin == std::string_view::npos) break;
      line.remove_prefix(begin);
      const size_t length = std::min(line.find_first_of(" \t"), line.size());
      words.push_back(line.substr(0, length));
      line.remove_prefix(length);
    }
    break;
  }
  return words;
}

template <typename T>
T number(std::string_view text, int base = 10) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}
template <typename T>
T number_of(std::string_view status, std::string_view name, size_t index = 0) {
  const auto words = words_of(status, name);
  return index < words.size() ? number<T>(words.at(index)) : T{};
}

bool has_capability(std::string_view status, int capability) {
  const auto words = words_of(status, "CapEff");
  return !words.empty() && (number<uint64_t>(words.front(), 16) >> capability & 1) != 0;
}

// The field behind the name, which may hold anything, of /proc/PID/stat; 1 is the state.
uint64_t stat_field(pid_t pid, size_t field) {
  const std::string text = text_of(file_of(pid, "stat"));
  size_t at = text.rfind(')');
  for (size_t i = 0; at != std::string::npos && i < field; ++i) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : number<uint64_t>(std::string_view(text).substr(at + 1));
}

std::string link_of(const std::string& path) {
  std::error_code ignored;
  return fs::read_symlink(path, ignored).string();
}

// Reads what kind of program an ELF file is. False if it cannot be read.
bool read_program(const std::string& path, TargetFacts& facts) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  Elf64_Ehdr header{};
  const bool is_elf = pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                      memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  if (is_elf) {
    facts.word_bits = header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    facts.x86_64 = facts.word_bits == 64 && header.e_machine == EM_X86_64;
  }
  for (uint16_t i = 0; facts.x86_64 && i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const auto at = static_cast<off_t>(header.e_phoff + uint64_t{i} * sizeof part);
    if (pread(file, &part, sizeof part, at) != static_cast<ssize_t>(sizeof part)) break;
    if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > 4096) continue;
    std::string name(part.p_filesz, '\0');
    const ssize_t size = pread(file, name.data(), name.size(), static_cast<off_t>(part.p_offset));
    name.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    facts.interpreter = name.c_str();
    break;
  }
  close(file);
  return is_elf;
}

// The longest run of hexadecimal digits in a cgroup's path that is as long as containers' ids are.
std::string container_in(std::string_view groups) {
  constexpr size_t kShortest = 32;
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find_first_not_of("0123456789abcdef", at), groups.size());
    if (end - at >= kShortest) return std::string(groups.substr(at, std::min<size_t>(end - at, 12)));
    at = end + 1;
  }
  return {};
}

bool same_namespace(pid_t pid, std::string_view name) {
  struct stat ours {
  }, theirs{};
  if (stat(fmt::format("/proc/self/ns/{}", name).c_str(), &ours) != 0) return true;
  if (stat(file_of(pid, fmt::format("ns/{}", name)).c_str(), &theirs) != 0) return true;
  return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

bool same_root(pid_t pid) {
  struct stat ours {
  }, theirs{};
  if (stat("/proc/self/root/", &ours) != 0 || stat(file_of(pid, "root/").c_str(), &theirs) != 0) return true;
  return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

// The filters of system calls that the first process of the target's pid namespace has.
std::optional<uint32_t> filters_of_container(const TargetFacts& facts) {
  struct stat theirs {};
  if (stat(file_of(facts.pid, "ns/pid").c_str(), &theirs) != 0) return std::nullopt;
  pid_t first = facts.pid;
  for (int steps = 0; steps < 256; ++steps) {
    const auto parent = number_of<pid_t>(text_of(file_of(first, "status")), "PPid");
    struct stat of_parent {};
    if (parent <= 0 || stat(file_of(parent, "ns/pid").c_str(), &of_parent) != 0 || of_parent.st_ino != theirs.st_ino)
      break;
    first = parent;
  }
  const auto words = words_of(text_of(file_of(first, "status")), "Seccomp_filters");
  if (first == facts.pid || words.empty()) return std::nullopt;
  return number<uint32_t>(words.front());
}

std::string user_text(uid_t user) {
  return user == 0 ? std::string("root") : fmt::format("user {}", user);
}

std::string program_text(const TargetFacts& facts) {
  return fmt::format("{} ({})", facts.pid, facts.name.empty() ? "its program is not shown" : facts.name);
}

Check target_line(const TargetFacts& facts) {
  const auto bad = [](std::string found, std::string mend) {
    return Check{"target", State::kBad, std::move(found), std::move(mend)};
  };
  const std::string who = program_text(facts);
  if (facts.process != facts.pid)
    return bad(fmt::format("{} is a thread of process {}", who, facts.process),
               fmt::format("tacho attach {}", facts.process));
  if (facts.pid == getpid()) return bad(fmt::format("{} is this tacho itself", who), "give the program's number");
  if (facts.pid == 1) return bad(fmt::format("{} is init, which nothing may stop", who), "give the program's number");
  if (facts.kernel_thread) return bad(fmt::format("{} is a thread of the kernel", who), "give the program's number");
  if (facts.state == 'Z' || facts.state == 'X')
    return bad(fmt::format("{} has ended; its parent {} has not asked for its exit code yet", who, facts.parent), "");
  if (facts.name == "tacho") return bad(fmt::format("{} is a tacho", who), "give the number of the program it started");
  if (facts.tracer != 0) {
    const auto tracer = look_at(facts.tracer);
    return bad(fmt::format("{} is traced by process {}{}", who, facts.tracer,
                           tracer && !tracer->name.empty() ? " (" + tracer->name + ")" : std::string()),
               "end that debugger or tracer; a process has only one");
  }
  if (facts.state == 'T')
    return bad(fmt::format("{} is stopped by a signal", who), fmt::format("kill -CONT {}", facts.pid));
  if (facts.word_bits == 32) return bad(fmt::format("{} is a 32-bit program; tacho's library has 64 bits", who), "");
  if (facts.word_bits == 64 && !facts.x86_64) return bad(fmt::format("{} is not a program for x86-64", who), "");
  if (facts.x86_64 && facts.interpreter.empty())
    return bad(fmt::format("{} is linked statically: it has no loader that could load tacho's library", who),
               "start it with tacho trace --sampler perf, which samples its call stacks from outside");
  if (facts.interpreter.find("musl") != std::string::npos)
    return bad(fmt::format("{} runs on musl ({}); tacho's library needs glibc", who, facts.interpreter), "");
  if (facts.shares_memory)
    return bad(fmt::format("{} is between vfork and exec, in the memory of its parent {}", who, facts.parent),
               "try again in a moment");
  if (facts.seccomp == 1)
    return bad(fmt::format("{} is in seccomp's strict mode, which ends it at any call but read and write", who), "");
  if (facts.seccomp == 2 && facts.outer_known && facts.seccomp_filters > facts.outer_filters)
    return bad(fmt::format("{} has installed filters of system calls (seccomp), which may end it when tacho's library "
                           "makes a call that they do not allow",
                           who),
               "start it with tacho trace, which keeps to what the filter allows");
  return {"target", State::kGood, fmt::format("{}, {} thread{}", who, facts.threads, facts.threads == 1 ? "" : "s"),
          ""};
}

bool same_user(const TargetFacts& facts) {
  const uid_t user = getuid();
  const gid_t group = getgid();
  return std::all_of(facts.users.begin(), facts.users.end(), [&](uid_t each) { return each == user; }) &&
         std::all_of(facts.groups.begin(), facts.groups.end(), [&](gid_t each) { return each == group; });
}

Check user_line(const TargetFacts& facts, bool capable) {
  const std::string command = fmt::format("{}tacho attach {}", vendor::sudo(), facts.pid);
  if (capable) return {"user", State::kGood, "this tacho may look at any user's process (CAP_SYS_PTRACE)", ""};
  if (!same_user(facts))
    return {"user", State::kBad,
            facts.users[1] != facts.users[0]
                ? fmt::format("{} started the process, which has the rights of {} (setuid); this tacho belongs to {}",
                              user_text(facts.users[0]), user_text(facts.users[1]), user_text(getuid()))
                : fmt::format("the process belongs to {}, this tacho to {}", user_text(facts.users[0]),
                              user_text(getuid())),
            command};
  if (!facts.dumpable)
    return {"user", State::kBad, "the process protects itself (setuid, or prctl PR_SET_DUMPABLE)", command};
  return {"user", State::kGood, fmt::format("the process belongs to {}, as this tacho does", user_text(getuid())), ""};
}

Check yama_line(const TargetFacts& facts, bool capable) {
  const std::string text = text_of("/proc/sys/kernel/yama/ptrace_scope");
  if (text.empty()) return {"yama", State::kGood, "this kernel has none", ""};
  const int scope = number<int>(text);
  const std::string allow = vendor::sudo() + "sysctl kernel.yama.ptrace_scope=0";
  if (scope == 0 || (capable && scope < 3))
    return {"yama", State::kGood, fmt::format("kernel.yama.ptrace_scope is {}", scope), ""};
  if (scope == 3)
    return {"yama", State::kBad, "kernel.yama.ptrace_scope is 3: nobody may attach until the machine starts again",
            "start the program with tacho trace, or change that setting and start the machine again"};
  if (scope == 2)
    return {"yama", State::kBad, "kernel.yama.ptrace_scope is 2: only root may attach",
            fmt::format("{}tacho attach {}", vendor::sudo(), facts.pid)};
  return {"yama", State::kBad, "kernel.yama.ptrace_scope is 1: a process may attach only to those that it started",
          allow};
}

Check container_line(const TargetFacts& facts, bool enters) {
  if (!facts.own_pids && !facts.own_files && !facts.own_users)
    return {"container", State::kGood, "the process sees the same files and processes as this tacho", ""};
  std::vector<std::string> own;
  for (const auto& [is_own, what] :
       {std::pair{facts.own_pids, "processes"}, {facts.own_files, "files"}, {facts.own_users, "users"}})
    if (is_own) own.emplace_back(what);
  std::string has;
  for (size_t i = 0; i < own.size(); ++i) has += (i == 0 ? "" : i + 1 == own.size() ? " and " : ", ") + own[i];
  const std::string where =
      fmt::format("the process has its own {}{}", has,
                  facts.container.empty() ? std::string() : " (container " + facts.container + ")");
  if (!enters && facts.own_users)
    return {"container", State::kBad, where + ", and this tacho has no rights there",
            fmt::format("{}tacho attach {}", vendor::sudo(), facts.pid)};
  return {"container", State::kGood,
          where + (facts.own_pids ? fmt::format("; there it is process {}", facts.inner_pid) : std::string()), ""};
}

// Whether the kernel lets this process attach. Opening a process's memory needs the same permission as ptrace.
bool may_attach(pid_t pid) {
  const int file = open(file_of(pid, "mem").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  close(file);
  return true;
}

}  // namespace

Result<TargetFacts> look_at(pid_t pid) {
  TargetFacts facts;
  facts.pid = pid;
  const std::string status = pid > 0 ? text_of(file_of(pid, "status")) : std::string();
  if (status.empty()) return fail("there is no process {}", pid);
  facts.process = number_of<pid_t>(status, "Tgid");
  facts.parent = number_of<pid_t>(status, "PPid");
  facts.tracer = number_of<pid_t>(status, "TracerPid");
  if (const auto words = words_of(status, "State"); !words.empty()) facts.state = words.front().front();
  for (size_t i = 0; i < facts.users.size(); ++i) {
    facts.users.at(i) = number_of<uid_t>(status, "Uid", i);
    facts.groups.at(i) = number_of<gid_t>(status, "Gid", i);
  }
  facts.threads = number_of<uint32_t>(status, "Threads");
  facts.seccomp = number_of<uint32_t>(status, "Seccomp");
  facts.seccomp_filters = number_of<uint32_t>(status, "Seccomp_filters");
  const auto numbers = words_of(status, "NSpid");
  facts.inner_pid = numbers.empty() ? pid : number<pid_t>(numbers.back());
  constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD in the field "flags"
  facts.kernel_thread = (stat_field(pid, 7) & kKernelThread) != 0;
  facts.started = stat_field(pid, 20);
  const std::string program = link_of(file_of(pid, "exe"));
  facts.readable = !program.empty();
  std::string_view name = program;
  if (constexpr std::string_view kDeleted = " (deleted)"; name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  facts.name = name.substr(name.rfind('/') + 1);
  if (facts.name.empty())
    if (const auto words = words_of(status, "Name"); !words.empty()) facts.name = words.front();
  facts.name = one_line(std::move(facts.name));
  if (facts.readable) read_program(file_of(pid, "exe"), facts);
  // The folder itself stays the user's.
  struct stat memory {};
  facts.dumpable = stat(file_of(pid, "mem").c_str(), &memory) != 0 || memory.st_uid == facts.users[1];
  facts.shares_memory =
      facts.parent > 0 && facts.process == pid && syscall(SYS_kcmp, pid, facts.parent, KCMP_VM, 0, 0) == 0;
  facts.own_pids = !same_namespace(pid, "pid");
  facts.own_files = !same_namespace(pid, "mnt") || !same_root(pid);
  facts.own_users = !same_namespace(pid, "user");
  if (const std::string groups = text_of(file_of(pid, "cgroup")); groups != text_of("/proc/self/cgroup"))
    facts.container = container_in(groups);
  if (facts.seccomp == 2) {
    const auto outer = filters_of_container(facts);
    facts.outer_known = outer.has_value();
    facts.outer_filters = outer.value_or(0);
  }
  return facts;
}

namespace {
// One that listens lets tacho in by itself: neither the kernel's rules for ptrace nor a debugger stand in the way.
std::vector<Check> checks_of_listener(const TargetFacts& facts, bool capable) {
  std::vector<Check> lines = {{"target", State::kGood,
                               fmt::format("{}, {} thread{}, listens for tacho (tacho_listen)", program_text(facts),
                                           facts.threads, facts.threads == 1 ? "" : "s"),
                               ""},
                              user_line(facts, capable),
                              {"yama", State::kGood, "not asked: no thread is stopped", ""},
                              container_line(facts, true)};
  if (facts.state == 'T')
    lines.front() = {"target", State::kBad, fmt::format("{} is stopped by a signal", program_text(facts)),
                     fmt::format("kill -CONT {}", facts.pid)};
  return lines;
}
}  // namespace

std::vector<Check> checks(const TargetFacts& facts) {
  if (facts.process == facts.pid && facts.pid != getpid() && listener_of(facts.pid, facts.inner_pid))
    return checks_of_listener(facts, has_capability(text_of("/proc/self/status"), kSysPtrace));
  const bool enters = may_attach(facts.pid);
  const bool capable = has_capability(text_of("/proc/self/status"), kSysPtrace);
  std::vector<Check> lines = {target_line(facts), user_line(facts, capable), yama_line(facts, capable),
                              container_line(facts, enters)};
  const bool refused =
      std::any_of(lines.begin(), lines.end(), [](const Check& line) { return line.state == State::kBad; });
  // The kernel says no, and none of the known reasons explains it: a security module.
  if (!enters && !refused)
    lines.at(1) = {"user", State::kBad, "the kernel refuses to let this tacho in, for a reason that it does not tell",
                   "look into the machine's security module (AppArmor, SELinux) or the container's options "
                   "(--cap-add SYS_PTRACE)"};
  return lines;
}

Status permitted_to_attach(const TargetFacts& facts) {
  for (const Check& line : checks(facts))
    if (line.state == State::kBad)
      return fail("{}{}", line.found, line.mend.empty() ? std::string() : "; " + line.mend);
  return {};
}

std::vector<std::string> command_of(pid_t pid) {
  std::ifstream file(file_of(pid, "cmdline"), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

bool has_ended(const TargetFacts& facts) {
  const auto now = look_at(facts.pid);
  return !now || now->started != facts.started || now->state == 'Z' || now->state == 'X';
}

}  // namespace tacho::attach
