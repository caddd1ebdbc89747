/* Markers for programs that may run under tacho: marks, ranges, pause and resume. C99 and C++, header only.
 *
 *   #include <tacho/tacho.h>
 *
 *   tacho_range_push("load batch");
 *   ...
 *   tacho_range_pop();
 *
 * Nothing has to be linked. The first call looks for libtacho.so in the process: as a symbol of a preloaded
 * library, else as the file that the environment variable TACHO_LIBRARY names (`tacho trace` sets it). When
 * there is none, this and every later call cost one predictable branch. (glibc older than 2.34 keeps dlopen
 * in libdl: without -ldl there the header finds no profiler. Systems other than Linux: every call does
 * nothing.)
 *
 * Rules for all functions
 *  - May be called from any thread, before main, in signal handlers (there the very first call of a process
 * is ignored if it interrupts another first call), in forked children. Nothing is thrown, errno is kept.
 *  - Text is bytes ended by 0, taken as UTF-8, copied before the call returns; NULL is "". Text longer than
 * 60,000 bytes is cut there and the trace says how often that happened. Text needs no registration and may
 * differ from call to call.
 *  - A call that finds the profiler's buffer full is dropped and counted, never waited for.
 *  - Times are taken inside the call, in nanoseconds of the trace's clock.
 */
#ifndef TACHO_TACHO_H
#define TACHO_TACHO_H

#include <stddef.h>
#include <stdint.h>

#define TACHO_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TACHO_PAYLOAD_NONE = 0,
  TACHO_PAYLOAD_INTEGER = 1, /* payload.integer */
  TACHO_PAYLOAD_DOUBLE = 2   /* payload.real */
};

/* Attributes of a marker besides its text. Zero-initialise, set `size`, then the wanted fields:
 *   tacho_attributes a = TACHO_ATTRIBUTES; a.domain = "io"; */
typedef struct tacho_attributes {
  uint32_t size;         /* sizeof(tacho_attributes): fields beyond it count as 0 */
  uint32_t payload_kind; /* TACHO_PAYLOAD_*: which member of `payload` holds a value */
  const char* domain;    /* groups markers and has its own push/pop stacks; NULL = the default domain */
  const char* category;  /* groups markers within a domain; NULL = none */
  uint32_t has_color;    /* not 0: `color` is set */
  uint32_t color;        /* 0xAARRGGBB */
  union {
    int64_t integer;
    double real;
  } payload;
} tacho_attributes;

#define TACHO_ATTRIBUTES                                              \
  {                                                                   \
    sizeof(tacho_attributes), TACHO_PAYLOAD_NONE, NULL, NULL, 0, 0, { \
      0                                                               \
    }                                                                 \
  }

/* The functions behind this header, as libtacho.so gives them out. Fields are only ever appended. */
typedef struct tacho_functions {
  uint32_t size; /* of this struct in the library */
  uint32_t reserved;
  int (*active)(void);
  void (*mark)(const char* text, const tacho_attributes* attributes);
  void (*range_push)(const char* text, const tacho_attributes* attributes);
  void (*range_pop)(const char* domain);
  uint64_t (*range_start)(const char* text, const tacho_attributes* attributes);
  void (*range_stop)(uint64_t range);
  void (*pause)(void);
  void (*resume)(void);
  void (*flush)(void);
  void (*name_thread)(const char* name);
} tacho_functions;

#ifdef TACHO_LIBRARY_INTERFACE
/* The same functions as symbols of libtacho.so, for dlsym, ctypes and other languages. */
const tacho_functions* tacho_get_functions(uint32_t version);
int tacho_active(void);
void tacho_mark(const char* text);
void tacho_mark_with(const char* text, const tacho_attributes* attributes);
void tacho_range_push(const char* text);
void tacho_range_push_with(const char* text, const tacho_attributes* attributes);
void tacho_range_pop(void);
void tacho_range_pop_from(const char* domain);
uint64_t tacho_range_start(const char* text);
uint64_t tacho_range_start_with(const char* text, const tacho_attributes* attributes);
void tacho_range_stop(uint64_t range);
void tacho_pause(void);
void tacho_resume(void);
void tacho_flush(void);
void tacho_name_thread(const char* name);
void tacho_keep(const char* why);
int tacho_listen_here(void);
#else

#if defined(__linux__) && defined(__GNUC__) && defined(__LP64__)
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#pragma weak dlsym
#pragma weak dlopen
#pragma weak dlclose
#define TACHO_FINDS_LIBRARY 1
#endif

#ifdef TACHO_FINDS_LIBRARY

static inline const tacho_functions* tacho_find_(void);

/* Until the library has been looked for, `tacho_functions_` points to these, which look for it and pass the
 * call on. */
static inline int tacho_first_active_(void) {
  const tacho_functions* f = tacho_find_();
  return f != NULL ? f->active() : 0;
}
static inline void tacho_first_mark_(const char* text, const tacho_attributes* attributes) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->mark(text, attributes);
}
static inline void tacho_first_push_(const char* text, const tacho_attributes* attributes) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->range_push(text, attributes);
}
static inline void tacho_first_pop_(const char* domain) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->range_pop(domain);
}
static inline uint64_t tacho_first_start_(const char* text, const tacho_attributes* attributes) {
  const tacho_functions* f = tacho_find_();
  return f != NULL ? f->range_start(text, attributes) : 0;
}
static inline void tacho_first_stop_(uint64_t range) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->range_stop(range);
}
static inline void tacho_first_pause_(void) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->pause();
}
static inline void tacho_first_resume_(void) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->resume();
}
static inline void tacho_first_flush_(void) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->flush();
}
static inline void tacho_first_name_(const char* name) {
  const tacho_functions* f = tacho_find_();
  if (f != NULL) f->name_thread(name);
}
static const tacho_functions tacho_first_ = {sizeof(tacho_functions), 0,
                                             tacho_first_active_,     tacho_first_mark_,
                                             tacho_first_push_,       tacho_first_pop_,
                                             tacho_first_start_,      tacho_first_stop_,
                                             tacho_first_pause_,      tacho_first_resume_,
                                             tacho_first_flush_,      tacho_first_name_};

/* One for all files of a program or library that include this header. NULL: there is no profiler. */
__attribute__((weak, visibility("hidden"))) const tacho_functions* tacho_functions_ = &tacho_first_;

static inline const tacho_functions* tacho_find_(void) {
  typedef const tacho_functions* (*tacho_get)(uint32_t);
  const int kept_errno = errno;
  const tacho_functions* found = NULL;
  if (dlsym != NULL && dlopen != NULL) {
    void* get = dlsym((void*)0 /* RTLD_DEFAULT */, "tacho_get_functions");
    const char* path = getenv("TACHO_LIBRARY");
    if (get == NULL && path != NULL && path[0] == '/' && getauxval(AT_SECURE) == 0) {
      void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (library != NULL) get = dlsym(library, "tacho_get_functions");
    }
    if (get != NULL) {
      tacho_get call;
      __builtin_memcpy(&call, &get, sizeof call);
      found = call(TACHO_VERSION);
      if (found != NULL && found->size < sizeof(tacho_functions)) found = NULL;
    }
  }
  __atomic_store_n(&tacho_functions_, found, __ATOMIC_RELEASE);
  errno = kept_errno;
  return found;
}

#define TACHO_CALL_(call)                                                                   \
  do {                                                                                      \
    const tacho_functions* tacho_f_ = __atomic_load_n(&tacho_functions_, __ATOMIC_ACQUIRE); \
    if (__builtin_expect(tacho_f_ != NULL, 0)) tacho_f_->call;                              \
  } while (0)
#define TACHO_RETURN_(call, none)                                                         \
  const tacho_functions* tacho_f_ = __atomic_load_n(&tacho_functions_, __ATOMIC_ACQUIRE); \
  return __builtin_expect(tacho_f_ != NULL, 0) ? tacho_f_->call : (none)
#else
#define TACHO_CALL_(call) \
  do {                    \
  } while (0)
#define TACHO_RETURN_(call, none) return (none)
#endif

/* 1 while markers of this process are recorded, 0 without profiler or while paused: lets a program skip
 * making text. */
static inline int tacho_active(void) {
  TACHO_RETURN_(active(), 0);
}

/* A moment. */
static inline void tacho_mark(const char* text) {
  (void)text;
  TACHO_CALL_(mark(text, NULL));
}
static inline void tacho_mark_with(const char* text, const tacho_attributes* attributes) {
  (void)text, (void)attributes;
  TACHO_CALL_(mark(text, attributes));
}

/* Opens a range on the calling thread, inside the one that is open there. Every domain has a stack of its own
 * per thread. A range that is never popped ends in the trace as "open at exit". A range opened while
 * recording is on is closed in the trace also when recording was paused meanwhile; one opened while paused
 * never appears. */
static inline void tacho_range_push(const char* text) {
  (void)text;
  TACHO_CALL_(range_push(text, NULL));
}
static inline void tacho_range_push_with(const char* text, const tacho_attributes* attributes) {
  (void)text, (void)attributes;
  TACHO_CALL_(range_push(text, attributes));
}
/* Closes the calling thread's innermost range of the default domain, or of `domain`; without one it does
 * nothing. */
static inline void tacho_range_pop(void) {
  TACHO_CALL_(range_pop(NULL));
}
static inline void tacho_range_pop_from(const char* domain) {
  (void)domain;
  TACHO_CALL_(range_pop(domain));
}

/* A range that may end on another thread and overlap others. Returns its id, unique in the process; 0 when it
 * was not recorded, and stopping 0 does nothing. */
static inline uint64_t tacho_range_start(const char* text) {
  (void)text;
  TACHO_RETURN_(range_start(text, NULL), 0);
}
static inline uint64_t tacho_range_start_with(const char* text, const tacho_attributes* attributes) {
  (void)text, (void)attributes;
  TACHO_RETURN_(range_start(text, attributes), 0);
}
static inline void tacho_range_stop(uint64_t range) {
  (void)range;
  TACHO_CALL_(range_stop(range));
}

/* Stops and resumes recording of everything (not only markers) in all processes of the run, at once. Not
 * counted: one resume undoes any number of pauses. With `tacho trace --start-paused` the program resumes when
 * it gets interesting. */
static inline void tacho_pause(void) {
  TACHO_CALL_(pause());
}
static inline void tacho_resume(void) {
  TACHO_CALL_(resume());
}

/* Hands the calling thread's records to tacho without waiting for its buffer to fill. Does not wait
 * for the disk. Records are safe from the death of this process as soon as the call that made them returns,
 * with or without flush. */
static inline void tacho_flush(void) {
  TACHO_CALL_(flush());
}

/* Under `tacho watch --keep` this makes tacho write what has been kept of the last seconds into a file, of which
 * `why` is the reason; the program goes on meanwhile. In a trace it is a mark. Takes some microseconds also
 * without tacho, because tacho watch may have come since the last call. Not for signal handlers. */
static inline void tacho_keep(const char* why) {
#ifdef TACHO_FINDS_LIBRARY
  const int kept_errno = errno;
  void* library;
  void* found;
  if (dlsym == NULL || dlopen == NULL || dlclose == NULL) return;
  library = dlopen("libtacho-watch.so", RTLD_LAZY | 4 /* RTLD_NOLOAD */);
  found = dlsym(library, "tacho_keep"); /* NULL is RTLD_DEFAULT */
  if (found != NULL) {
    void (*call)(const char*);
    __builtin_memcpy(&call, &found, sizeof call);
    call(why);
  }
  if (library != NULL) dlclose(library);
  errno = kept_errno;
#else
  (void)why;
#endif
}

/* Names the calling thread in the trace. */
static inline void tacho_name_thread(const char* name) {
  (void)name;
  TACHO_CALL_(name_thread(name));
}

/* Lets `tacho attach PID` in by itself from now on: no thread of this process is stopped then, and the kernel's
 * rules for ptrace (yama, containers without CAP_SYS_PTRACE) do not matter. Who may do so: this process's user
 * and root, as far as the kernel shows them /proc/PID/fd. Call it early, before the first marker, so that
 * markers are in the recordings. Costs a sleeping thread and a file in memory; a forked child calls it anew.
 *
 * `library`: the path of libtacho.so; NULL: TACHO_LIBRARY, else libtacho.so where the loader finds it.
 * Returns 0 if the process listens, else an error number: ENOENT (there is no library), EBUSY (tacho has
 * started this process and records it), EAGAIN, ENOMEM, ENOSYS (this system cannot). Not for signal handlers. */
static inline int tacho_listen(const char* library) {
#ifdef TACHO_FINDS_LIBRARY
  int (*listen)(void);
  const tacho_functions* (*get)(uint32_t);
  void* handle = (void*)0; /* RTLD_DEFAULT */
  void *found, *found_get;
  int error;
  if (dlsym == NULL || dlopen == NULL) return ENOSYS;
  found = dlsym(handle, "tacho_listen_here");
  if (found == NULL) {
    const char* path = library;
    if (path == NULL && getauxval(AT_SECURE) == 0) path = getenv("TACHO_LIBRARY");
    handle = dlopen(path != NULL && path[0] != 0 ? path : "libtacho.so", RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) found = dlsym(handle, "tacho_listen_here");
    if (found == NULL) return ENOENT;
  }
  found_get = dlsym(handle, "tacho_get_functions");
  if (found_get == NULL) return ENOENT;
  __builtin_memcpy(&listen, &found, sizeof listen);
  __builtin_memcpy(&get, &found_get, sizeof get);
  error = listen();
  if (error == 0) __atomic_store_n(&tacho_functions_, get(TACHO_VERSION), __ATOMIC_RELEASE);
  return error;
#else
  (void)library;
  return 38; /* ENOSYS */
#endif
}

#undef TACHO_CALL_
#undef TACHO_RETURN_
#endif /* TACHO_LIBRARY_INTERFACE */

#ifdef __cplusplus
} /* extern "C" */

#ifndef TACHO_LIBRARY_INTERFACE
/* A range for the life of an object: tacho_scope range("solve"); */
class tacho_scope {
 public:
  explicit tacho_scope(const char* text) { tacho_range_push(text); }
  tacho_scope(const char* text, const tacho_attributes& attributes) : domain_(attributes.domain) {
    tacho_range_push_with(text, &attributes);
  }
  ~tacho_scope() { tacho_range_pop_from(domain_); }
  tacho_scope(const tacho_scope&) = delete;
  tacho_scope& operator=(const tacho_scope&) = delete;

 private:
  const char* domain_ = nullptr;
};
#endif
#endif

#endif /* TACHO_TACHO_H */
