/* Between the stand-ins of the CUDA driver and of CUPTI. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Hook {
  void (*call)(int id, const char* name, const void* parameters, int* result, int exit, const char* symbol, void* context);
  void (*module)(const void* image, size_t bytes);
  void (*context)(void* context, int created);
  /* A kernel is about to run: what it finds in memory. */
  void (*executing)(const char* symbol, uint64_t threads, uint64_t memory);
};
