// Building a database under a temporary name (output.h).
#include "format/sqlite/output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/output_file.h"

namespace tacho::sqlite {

Result<DatabaseOutput> DatabaseOutput::create(const std::string& path, bool overwrite) {
  DatabaseOutput output;
  output.path_ = path;
  output.overwrite_ = overwrite;
  if (is_standard_output(path))
    return fail("{}: a database cannot be written to standard output; give it a name", path);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return fail("{}: is a folder", path);
    if (!overwrite) return fail("{}: exists already; choose another name or add --overwrite", path);
  }
  std::string name = path + ".partial-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return fail("{}: cannot be created: {}", path, std::strerror(errno));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor, 0666 & ~mask);
  ::close(descriptor);
  // SQLite makes its files itself and wants none there; an empty one it would take too, but BulkFile insists
  // on its own.
  ::unlink(name.c_str());
  output.temporary_ = std::move(name);
  return output;
}

DatabaseOutput::DatabaseOutput(DatabaseOutput&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      overwrite_(other.overwrite_) {}

DatabaseOutput::~DatabaseOutput() {
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  ::unlink((temporary_ + "-journal").c_str());
}

Status DatabaseOutput::commit() {
  // link() refuses to replace a file that appeared meanwhile; not every file system has it.
  if (!overwrite_) {
    if (::link(temporary_.c_str(), path_.c_str()) == 0) {
      ::unlink(temporary_.c_str());
      temporary_.clear();
      return {};
    }
    if (errno == EEXIST) return fail("{}: exists already; choose another name or add --overwrite", path_);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return fail("{}: {}", path_, std::strerror(errno));
  temporary_.clear();
  return {};
}

}  // namespace tacho::sqlite
