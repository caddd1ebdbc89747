// libFuzzer target of code objects and their metadata, as kernel replay reads them: any bytes end in parts that lie
// within them, and in as many sizes of arguments as there is room for.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "capture/source/rocm/code_object.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacho::capture::rocm;
  // Exactly as long as it says, so that a read behind it is seen.
  const std::unique_ptr<uint8_t[]> image(new uint8_t[size]);
  if (size != 0) memcpy(image.get(), data, size);
  CodeObjectParts parts;
  if (read_code_object(image.get(), size, parts)) {
    if (parts.writable_count > CodeObjectParts::kMost) abort();
    if (parts.metadata != nullptr && (parts.metadata < image.get() || parts.metadata_bytes > size ||
                                      parts.metadata + parts.metadata_bytes > image.get() + size))
      abort();
  }
  KernelArguments arguments;
  if (read_kernel_arguments(image.get(), size, "k", arguments) && arguments.count > KernelArguments::kMost) abort();
  return 0;
}
