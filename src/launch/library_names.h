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

/// The names of libtacho.so for one run, some of which are links. Movable; empty until created.
///
/// If the library lies below a folder whose name cannot be in a list, the names are links in this user's folder in
/// $XDG_RUNTIME_DIR, $TMPDIR or /tmp. Runs of the same library share that folder; the last of them removes it. Creating
/// one also removes such folders whose library no longer exists.
class LibraryLinks {
 public:
  LibraryLinks() = default;
  /// Of `library`, an absolute path. The error says why there are no names.
  static Result<LibraryLinks> create(const std::string& library);
  LibraryLinks(LibraryLinks&& other) noexcept;
  LibraryLinks& operator=(LibraryLinks&& other) noexcept;
  ~LibraryLinks();

  const LibraryNames& names() const { return names_; }
  /// The folder stays, for programs that outlive tacho. A later run removes it once the library no longer exists.
  void keep();

 private:
  LibraryNames names_;
  std::string folder_;   // "" if there are no links
  int descriptor_ = -1;  // of the folder, locked for sharing
};

/// AddressSanitizer refuses to run behind a library whose name does not look like its own. libtacho.so interposes
/// nothing that it checks for, so it is preloaded through a link of this name.
inline constexpr const char* kPreloadName = "libtacho-libclang_rt.asan-libasan.so";

}  // namespace tacho::launch
