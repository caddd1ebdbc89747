// Under which names libtacho.so goes into a target's environment. LD_PRELOAD and its like are lists: a path with a
// space, a colon or a dollar sign cannot be in them.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::launch {

struct LibraryNames {
  std::string library;  ///< for OPENCL_LAYERS, injection variables, TACHO_LIBRARY
  std::string preload;  ///< for LD_PRELOAD: the same file
};

/// Names of `library`, an absolute path. Where it lies below a folder whose name cannot be in a list, both are links in
/// a folder of this user's in $XDG_RUNTIME_DIR, $TMPDIR or /tmp, which stays for programs that outlive tacho. The error
/// says why there is none.
Result<LibraryNames> library_names(const std::string& library);

/// AddressSanitizer refuses to run behind a library whose name does not look like its own. libtacho.so interposes
/// nothing that it checks for, so that it is preloaded as a link of this name.
inline constexpr const char* kPreloadName = "libtacho-libclang_rt.asan-libasan.so";

}  // namespace tacho::launch
