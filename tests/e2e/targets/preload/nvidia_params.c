/* Preloaded into tacho: a machine on which the NVIDIA driver has the settings of the file NVIDIA_PARAMS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE* redirected(const char* function, const char* path, const char* mode) {
  FILE* (*const next)(const char*, const char*) = (FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, function);
  const char* const params = getenv("NVIDIA_PARAMS");
  return next(params != NULL && strcmp(path, "/proc/driver/nvidia/params") == 0 ? params : path, mode);
}

FILE* fopen(const char* path, const char* mode) {
  return redirected("fopen", path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return redirected("fopen64", path, mode);
}
