// Reads for kernel replay from a code object (ELF, as ROCr loads it) where its variables are and what arguments each
// kernel takes. Sources: LLVM's AMDGPUUsage, "Code Object Metadata" V3 to V6 (MessagePack in a note of type 32, name
// "AMDGPU"). Nothing here allocates memory or trusts a length.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::capture::rocm {

struct CodeObjectParts {
  static constexpr size_t kMost = 16;
  struct Segment {
    uint64_t address, bytes;  // as linked: the loader adds where it put the object
  };
  const uint8_t* metadata;  ///< MessagePack, in the image; nullptr = none
  size_t metadata_bytes;
  Segment writable[kMost];  ///< segments that kernels can write: `__device__` variables
  size_t writable_count;
};
/// False if `image` is not a 64-bit ELF file of this byte order, or one with inconsistent parts.
bool read_code_object(const uint8_t* image, size_t bytes, CodeObjectParts& out);

struct KernelArguments {
  static constexpr size_t kMost = 256;
  bool
      calls_host;  ///< may print, assert or take memory from the device's heap, all of which go on outside of its memory
  size_t count;    ///< of the arguments that the program hands over, in order
  uint32_t size[kMost];  ///< bytes of each
};
/// Finds a kernel (mangled name, without ".kd") in a code object's metadata. False if it is not there, has more
/// arguments than kMost, or the metadata cannot be read.
bool read_kernel_arguments(const uint8_t* metadata, size_t bytes, const char* kernel, KernelArguments& out);

}  // namespace tacho::capture::rocm
