// Names and links of libtacho.so (library_names.h).
#include "launch/library_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

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

constexpr const char* kLibraryName = "libtacho.so";
constexpr const char* kRoctxName = "roctx";

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

// The folder, locked for sharing; -1 if another run removes it at this moment.
int share(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat opened {
  }, named{};
  if (flock(descriptor, LOCK_SH | LOCK_NB) == 0 && fstat(descriptor, &opened) == 0 &&
      lstat(folder.c_str(), &named) == 0 && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino)
    return descriptor;
  close(descriptor);
  return -1;
}

// Removes a folder of links unless a run uses it; `descriptor` is of the folder and stays open.
void remove_unless_used(const std::string& folder, int descriptor) {
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) return;
  for (const char* const name : {kLibraryName, kPreloadName, kRoctxName}) unlinkat(descriptor, name, 0);
  rmdir(folder.c_str());
}

// Removes this user's folders of links in `place` that lead to deleted libraries.
void sweep(const std::string& place) {
  const std::string prefix = fmt::format("tacho-{}-", geteuid());
  DIR* const all = opendir(place.c_str());
  if (all == nullptr) return;
  while (const dirent* const entry = readdir(all)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || name.size() != prefix.size() + 16) continue;
    const std::string folder = place + "/" + entry->d_name, link = folder + "/" + kLibraryName;
    struct stat about {};
    if (lstat(link.c_str(), &about) != 0 || !S_ISLNK(about.st_mode) || about.st_uid != geteuid() ||
        stat(link.c_str(), &about) == 0 || errno != ENOENT)
      continue;
    if (const int descriptor = share(folder); descriptor >= 0) {
      remove_unless_used(folder, descriptor);
      close(descriptor);
    }
  }
  closedir(all);
}

// A folder with links to a library; its descriptor is locked for sharing.
struct LinkFolder {
  std::string path;
  int descriptor;
};

Result<LinkFolder> make_links(const std::string& library, const std::string& folder) {
  int descriptor = -1;
  for (int tries = 0; descriptor < 0; ++tries) {  // another run may remove it between two steps
    TACHO_TRY(make_folder(folder));
    descriptor = share(folder);
    if (descriptor < 0 && tries == 100) return fail("{} cannot be locked", folder);
  }
  const std::string own = folder_of(library);
  Status made = make_link(library, folder + "/" + kLibraryName);
  if (made) made = make_link(library, folder + "/" + kPreloadName);
  // Stand-ins for ROCTx are looked for beside the library.
  if (made && access((own + "/" + kRoctxName).c_str(), X_OK) == 0)
    made = make_link(own + "/" + kRoctxName, folder + "/" + kRoctxName);
  if (made) return LinkFolder{folder, descriptor};
  remove_unless_used(folder, descriptor);
  close(descriptor);
  return tl::unexpected(made.error());
}

Result<LinkFolder> find_link_folder(const std::string& library) {
  std::string tried;
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR", ""}) {
    const char* const value = *variable == '\0' ? "/tmp" : getenv(variable);
    if (value == nullptr || *value != '/' || !fits_in_list(value)) continue;
    sweep(value);
    auto made = make_links(library, fmt::format("{}/tacho-{}-{:016x}", value, geteuid(), hash_of(library)));
    if (made) return made;
    tried += (tried.empty() ? "" : "; ") + made.error().message;
  }
  return fail("{}", tried.empty() ? "no folder for temporary files has a name without spaces and colons" : tried);
}

}  // namespace

Result<LibraryLinks> LibraryLinks::create(const std::string& library) {
  LibraryLinks result;
  result.names_ = {library, library};
  const bool fits = fits_in_list(library);
  if (const std::string beside = folder_of(library) + "/" + kPreloadName; fits && same_file(library, beside)) {
    result.names_.preload = beside;
    return result;
  }
  auto folder = find_link_folder(library);
  if (!folder && !fits)
    return fail("{} cannot be preloaded: LD_PRELOAD takes no path with a space, colon or dollar sign, and a link to it "
                "cannot be made ({}); set TMPDIR to a folder that you own, or install tacho elsewhere",
                library, folder.error().message);
  if (folder) {
    if (!fits) result.names_.library = folder->path + "/" + kLibraryName;
    result.names_.preload = folder->path + "/" + kPreloadName;
    result.folder_ = folder->path;
    result.descriptor_ = folder->descriptor;
  }
  return result;
}

LibraryLinks::LibraryLinks(LibraryLinks&& other) noexcept
    : names_(std::move(other.names_)),
      folder_(std::move(other.folder_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

LibraryLinks& LibraryLinks::operator=(LibraryLinks&& other) noexcept {
  std::swap(names_, other.names_);
  std::swap(folder_, other.folder_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

LibraryLinks::~LibraryLinks() {
  if (descriptor_ < 0) return;
  remove_unless_used(folder_, descriptor_);
  close(descriptor_);
}

void LibraryLinks::keep() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace tacho::launch
