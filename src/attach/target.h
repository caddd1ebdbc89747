// The process that tacho is to attach to, as /proc shows it: what it is, whose it is, where it runs, and whether the
// kernel lets this tacho in. Nothing here touches the process.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "vendor/check.h"

namespace tacho::attach {

/// Facts of a process, from its files in /proc. Numbers are those of tacho's own pid namespace.
struct TargetFacts {
  pid_t pid = 0;
  pid_t process = 0;  ///< differs from `pid` if that is a thread's number
  pid_t parent = 0;
  pid_t tracer = 0;               ///< 0 = none
  char state = '?';               ///< R, S, D, T, t, Z ... as ps shows it
  std::string name;               ///< of the program, without its folder
  std::array<uid_t, 3> users{};   ///< real, effective, saved
  std::array<gid_t, 3> groups{};  ///< the same
  uint32_t threads = 0;
  bool kernel_thread = false;
  bool readable = true;        ///< false: /proc hides what the program is, for it is another user's
  bool dumpable = true;        ///< false: setuid, or it protects itself (prctl PR_SET_DUMPABLE)
  int word_bits = 0;           ///< 64 or 32; 0 = unknown
  bool x86_64 = false;         ///< instructions of x86-64
  std::string interpreter;     ///< its loader (PT_INTERP); "" = statically linked, or unknown
  bool shares_memory = false;  ///< with its parent: between vfork and exec
  uint32_t seccomp = 0;        ///< 0 none, 1 strict, 2 filters
  uint32_t seccomp_filters = 0;
  uint32_t outer_filters = 0;  ///< of the first process of its pid namespace: those of its container
  bool outer_known = false;    ///< `outer_filters` is known
  pid_t inner_pid = 0;         ///< its number in its own pid namespace
  bool own_pids = false;       ///< it has a pid namespace of its own
  bool own_files = false;      ///< a mount namespace or root of its own
  bool own_users = false;      ///< a user namespace of its own
  std::string container;       ///< a container's id, as its cgroup names it; "" = none seen
  uint64_t started = 0;        ///< clock ticks after boot; with `pid`, names the process for ever
};

/// Reads the facts of `pid`; an error if there is no such process.
Result<TargetFacts> look_at(pid_t pid);

/// The four lines of `tacho doctor PID`: target, user, yama, container. Attaches nothing; the kernel is asked by
/// opening the process's memory for reading, which needs the same permission.
std::vector<vendor::Check> checks(const TargetFacts& facts);

/// An error with the first reason for which tacho cannot attach, and what mends it.
Status permitted_to_attach(const TargetFacts& facts);

/// The words of the process's command line; none where /proc hides them.
std::vector<std::string> command_of(pid_t pid);

/// True once `pid` is not the process any more that `facts` describe: it has ended.
bool has_ended(const TargetFacts& facts);

}  // namespace tacho::attach
