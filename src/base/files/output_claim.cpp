// Checks and claims names of output files (output_claim.h).
#include "base/files/output_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/temporary.h"

namespace tacho {
namespace {

std::string real_folder(const std::string& path) {
  char* const real = realpath(folder_of(path).c_str(), nullptr);
  if (real == nullptr) return {};
  const std::string folder = real;
  free(real);
  return folder;
}

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

NameClaim claim_of(const std::string& path) {
  constexpr size_t kLongest = 200;  // of the 255 bytes that file systems allow for a name
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
  return NameClaim(folder, path.substr(folder.size(), kLongest));
}

}  // namespace

Status may_write(const std::string& path, bool overwrite) {
  struct stat link {
  }, file{};
  if (lstat(path.c_str(), &link) != 0) {
    if (errno != ENOENT) return fail("{}: {}", path, strerror(errno));
    const std::string folder = folder_of(path);
    if (stat(folder.c_str(), &file) != 0)
      return fail("{}: the folder {} {}", path, folder, errno == ENOENT ? "does not exist" : strerror(errno));
    if (!S_ISDIR(file.st_mode)) return fail("{}: {} is not a folder", path, folder);
    return {};
  }
  if (stat(path.c_str(), &file) != 0) {
    if (S_ISLNK(link.st_mode) && errno == ENOENT)
      return fail("{} is a link to a file that does not exist; remove it, or give another name", path);
    return fail("{}: {}", path, strerror(errno));
  }
  if (S_ISDIR(file.st_mode)) return fail("{}: is a folder, not a file", path);
  if (!S_ISREG(file.st_mode)) return {};
  if (!overwrite) return fail("{} exists; give another name, or --overwrite to replace it", path);
  if (S_ISLNK(link.st_mode)) {
    char* const real = realpath(path.c_str(), nullptr);
    const std::string target = real != nullptr ? real : path;
    free(real);
    if (folder_of(target) != real_folder(path))
      return fail("{} is a link to {}, in another folder: --overwrite does not follow it; give that name instead", path,
                  target);
  }
  return {};
}

int move_into_place(const std::string& temporary, const std::string& target, bool overwrite) {
  const char* const from = temporary.c_str();
  const char* const to = target.c_str();
  if (overwrite) return rename(from, to) == 0 ? 0 : errno;
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that does not know this: a link never replaces a file, and without links an empty file
  // takes the name first.
  if (link(from, to) == 0) {
    unlink(from);
    return 0;
  }
  if (errno == EEXIST) return errno;
  const int claim = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (claim < 0) return errno;
  close(claim);
  if (rename(from, to) == 0) return 0;
  const int error = errno;
  unlink(to);
  return error;
}

Result<OutputClaim> OutputClaim::exactly(const std::string& name, bool overwrite) {
  TACHO_TRY(may_write(name, overwrite));
  OutputClaim output;
  output.name_ = name;
  struct stat status {};
  if (stat(name.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return output;  // a device or a pipe
  output.claim_ = claim_of(name);
  if (!output.claim_.held())
    return fail("another tacho is about to write {}; wait for its end, or give another name", name);
  // Its owner may have finished between the check and the claim.
  TACHO_TRY(may_write(name, overwrite));
  return output;
}

Result<OutputClaim> OutputClaim::numbered(const std::string& name) {
  const std::filesystem::path path(name);
  std::string candidate = name;
  for (int i = 1; i < 1'000'000; ++i) {
    if (!exists(candidate)) {
      OutputClaim output;
      output.name_ = candidate;
      output.claim_ = claim_of(candidate);
      if (output.claim_.held() && !exists(candidate)) {
        TACHO_TRY(may_write(candidate, false));
        return output;
      }
    }
    candidate =
        (path.parent_path() / fmt::format("{}.{}{}", path.stem().string(), i, path.extension().string())).string();
  }
  return fail("{} and a million names like it are taken; give another name", name);
}

}  // namespace tacho
