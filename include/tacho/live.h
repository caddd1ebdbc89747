/* Lets a program record itself while it runs, with the command `tacho attach`. C99 and C++, header only, POSIX.
 *
 *   #include <tacho/live.h>
 *
 *   tacho_listen(NULL);                          // at the start: no thread is stopped later
 *   tacho_snapshot("now.tacho", 5, NULL);        // five seconds from now, then the file is there
 *
 * All functions return 0, or an error number: ENOENT (there is no program tacho: it is looked for as
 * TACHO_PROGRAM, else in PATH), EBUSY (a recording is under way), ECHILD (there is none), EIO (tacho has refused
 * or failed; it has said why on standard error). Not for signal handlers; one thread at a time. `options`: words
 * of tacho attach, ended by NULL, or NULL for none.
 */
#ifndef TACHO_LIVE_H
#define TACHO_LIVE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacho.h"

#ifdef __cplusplus
extern "C" {
#endif

extern char** environ;

/* The tacho that records this process, and what it says; one for all files of a program or library. */
typedef struct tacho_live_ {
  pid_t process;
  int says;
} tacho_live_;
__attribute__((weak, visibility("hidden"))) tacho_live_ tacho_live_now_ = {0, -1};

/* Waits for the file of the recording. */
static inline int tacho_live_finish_(void) {
  char text[4096];
  int status = -1;
  while (read(tacho_live_now_.says, text, sizeof text) > 0) {
  }
  close(tacho_live_now_.says);
  while (waitpid(tacho_live_now_.process, &status, 0) < 0 && errno == EINTR) {
  }
  tacho_live_now_.process = 0;
  tacho_live_now_.says = -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EIO;
}

static inline int tacho_live_begin_(const char* file, double seconds, const char* const* options) {
  enum { kMost = 64 };
  const char* words[kMost + 8];
  char pid[24], time[40], line[1024];
  const char* program = getenv("TACHO_PROGRAM");
  int count = 0, pipes[2], error;
  size_t length = 0;
  posix_spawn_file_actions_t actions;
  if (tacho_live_now_.process != 0) {
    siginfo_t ended;
    ended.si_pid = 0;
    if (waitid(P_PID, (id_t)tacho_live_now_.process, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0)
      return EBUSY;
    tacho_live_finish_();
  }
  if (program == NULL || program[0] == 0) program = "tacho";
  snprintf(pid, sizeof pid, "%ld", (long)getpid());
  words[count++] = program;
  words[count++] = "attach";
  words[count++] = pid;
  words[count++] = "-o";
  words[count++] = file;
  if (seconds > 0) {
    snprintf(time, sizeof time, "%.6f", seconds);
    words[count++] = "--duration";
    words[count++] = time;
  }
  for (; options != NULL && *options != NULL && count < kMost + 7; ++options) words[count++] = *options;
  words[count] = NULL;
  if (options != NULL && *options != NULL) return E2BIG;
  if (pipe(pipes) != 0) return errno;
  fcntl(pipes[0], F_SETFD, FD_CLOEXEC);
  fcntl(pipes[1], F_SETFD, FD_CLOEXEC);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
  error = posix_spawnp(&tacho_live_now_.process, program, &actions, NULL, (char* const*)(const void*)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  if (error != 0) {
    close(pipes[0]);
    tacho_live_now_.process = 0;
    return error;
  }
  tacho_live_now_.says = pipes[0];
  /* Until it says that it records; what it says else goes where it would have gone. */
  for (;;) {
    const ssize_t size = read(pipes[0], line + length, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size > 0 && line[length] != '\n' && length < sizeof line - 2) {
      ++length;
      continue;
    }
    line[length] = 0;
    if (strstr(line, "attached to ") != NULL) return 0;
    if (length > 0) fprintf(stderr, "%s\n", line);
    length = 0;
    if (size <= 0) {
      tacho_live_finish_();
      return EIO;
    }
  }
}

/* Begins a recording into `file`, until tacho_stop(). Returns when tacho records. */
static inline int tacho_start(const char* file, const char* const* options) {
  return tacho_live_begin_(file, 0, options);
}
/* Ends the recording of tacho_start() or tacho_trigger(), and returns when its file is complete. */
static inline int tacho_stop(void) {
  if (tacho_live_now_.process == 0) return ECHILD;
  kill(tacho_live_now_.process, SIGINT);
  return tacho_live_finish_();
}
/* Records the next `seconds` into `file`; returns when the recording has begun. */
static inline int tacho_trigger(const char* file, double seconds, const char* const* options) {
  return tacho_live_begin_(file, seconds, options);
}
/* Records `seconds` from now on, and returns when the file is complete. */
static inline int tacho_snapshot(const char* file, double seconds, const char* const* options) {
  const int error = tacho_live_begin_(file, seconds, options);
  return error != 0 ? error : tacho_live_finish_();
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TACHO_LIVE_H */
