// Names and links of libtacho.so (library_names.h).
#include "launch/library_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "base/files/temporary.h"

namespace tacho::launch {
namespace {

bool fits_in_list(const std::string& path) {
  return path.find_first_of(" :;$\t\n") == std::string::npos;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat one {
  }, two{};
  return stat(a.c_str(), &one) == 0 && stat(b.c_str(), &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Makes `link` lead to `target`; an older link is replaced.
Status make_link(const std::string& target, const std::string& link) {
  if (same_file(target, link)) return {};
  const std::string fresh = link + "." + random_name();
  if (symlink(target.c_str(), fresh.c_str()) != 0 || rename(fresh.c_str(), link.c_str()) != 0) {
    const int error = errno;
    unlink(fresh.c_str());
    return fail("{}: {}", link, strerror(error));
  }
  return {};
}

// A folder that only this user can write into.
Status make_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return fail("{}: {}", folder, strerror(errno));
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) return fail("{}: {}", folder, strerror(errno));
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
    return fail("{} belongs to somebody else", folder);
  return {};
}

Result<LibraryNames> linked_names(const std::string& library) {
  std::string tried;
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR", ""}) {
    const char* const value = *variable == '\0' ? "/tmp" : getenv(variable);
    if (value == nullptr || *value != '/' || !fits_in_list(value)) continue;
    const std::string folder = fmt::format("{}/tacho-{}-{:016x}", value, geteuid(), hash_of(library));
    const std::string own = folder_of(library);
    Status made = make_folder(folder);
    if (made) made = make_link(library, folder + "/libtacho.so");
    if (made) made = make_link(library, folder + "/" + kPreloadName);
    // Stand-ins for ROCTx are looked for beside the library.
    if (made && access((own + "/roctx").c_str(), X_OK) == 0) made = make_link(own + "/roctx", folder + "/roctx");
    if (made) return LibraryNames{folder + "/libtacho.so", folder + "/" + kPreloadName};
    tried += (tried.empty() ? "" : "; ") + made.error().message;
  }
  return fail("{}", tried.empty() ? "no folder for temporary files has a name without spaces and colons" : tried);
}

}  // namespace

Result<LibraryNames> library_names(const std::string& library) {
  const std::string beside = folder_of(library) + "/" + kPreloadName;
  const bool fits = fits_in_list(library);
  if (fits && same_file(library, beside)) return LibraryNames{library, beside};
  auto linked = linked_names(library);
  if (linked && fits) return LibraryNames{library, linked->preload};
  if (linked) return linked;
  if (fits) return LibraryNames{library, library};
  return fail("{} cannot be preloaded: LD_PRELOAD takes no path with a space, colon or dollar sign, and a link to it "
              "cannot be made "
              "({}); set TMPDIR to a folder that you own, or install tacho elsewhere",
              library, linked.error().message);
}

}  // namespace tacho::launch
