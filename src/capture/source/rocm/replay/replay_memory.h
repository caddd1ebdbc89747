// The memory that kernels can write, for kernel replay (replay.h): finding, copying and restoring it.
#pragma once

#include "capture/source/rocm/code_object.h"
#include "capture/source/rocm/rocm.h"
#include "event/spool/spool_instances.h"
#include "vendor/amd/sdk_sampling.h"

namespace tacho::capture::rocm::replay {

/// Notes from here on what memory HSA gives out. With the tables that the HSA runtime is about to hand to the SDK.
void take_tables(hsa::Tables* tables);

/// Notes the variables of a code object that has been loaded; `parts` nullptr: all of it may be variables.
void add_variables(const vendor::sdk::CodeObject& code, const CodeObjectParts* parts);
void drop_variables(uint64_t code_object);
/// Memory that the GPU and the processor share. The processor copies it, unless it is a GPU's own.
void add_managed(uint64_t address, uint64_t bytes);
void drop_managed(uint64_t address);
void drop_all_managed();
/// A `__managed__` variable of the program: where the address of its memory will be, and its size.
void note_managed_variable(void* const* pointer, uint64_t bytes);
bool has_managed_memory();
/// True while the program has mapped memory itself, which is not saved.
bool maps_memory();
/// True if kernels can write all memory of the process.
bool writes_pageable_memory();

// By a thread that is alone (replay.cpp):

/// Looks where an argument's words point to, and notes host memory there for save(). kNo, or why its launch cannot be
/// run again.
spool::RanOnce look_at(const void* argument, size_t bytes);
/// True if host memory is noted.
bool names_host_memory();
/// Copies all of it. kNo, or why that is not possible. From here to forget_named() copies of GPU memory stay.
spool::RanOnce save();
/// False if some of it could not be put back.
bool put_back();
/// Keeps the results that the first pass left in the noted host memory.
void note_first_results();
/// Writes those results again: if the program answers a kernel while it runs, the answer is among them.
void answer_again();
void forget_named();

}  // namespace tacho::capture::rocm::replay
