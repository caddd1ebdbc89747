// ROCTx's functions as tacho has them, by names of its own: what the loader finds under ROCTx's may be of another
// library.
#pragma once

#include <cstdint>

namespace tacho::capture::roctx {

void mark(const char* message);
int push(const char* message);
int pop();
uint64_t start(const char* message);
void stop(uint64_t range);
int pause();
int resume();
int name_thread(const char* name);
int name_agent(const char* name, const void* agent);
int name_device(const char* name, int device);
int name_stream(const char* name, const void* stream);

}  // namespace tacho::capture::roctx
