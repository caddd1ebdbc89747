/* What the stand-in of the CUDA driver tells the stand-in of CUPTI: calls, modules, contexts, kernels and graphs about to run. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Hook {
  void (*call)(int id, const char* name, const void* parameters, int* result, int exit, const char* symbol,
               void* context);
  void (*module)(const void* image, size_t bytes);
  void (*context)(void* context, int created);
  /* A kernel is about to run: what it finds in memory. */
  void (*executing)(const char* symbol, uint64_t threads, uint64_t memory);
  /* The kernels that come next are a graph's. */
  void (*graph)(void);
};

/* pm.c and what it shares with the other two */
#define FAKE_PM_MAGIC 0x504d5350u
int fake_fails(const char* function);
int fake_pm_values(const void* image, size_t index, const char** names, size_t count, double* values);
