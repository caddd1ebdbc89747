// Builds a database under a temporary name (output.h).
#include "format/sqlite/output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files/output_claim.h"
#include "base/files/output_file.h"

namespace tacho::sqlite {

Result<DatabaseOutput> DatabaseOutput::create(const std::string& path, bool overwrite) {
  DatabaseOutput output;
  output.path_ = path;
  output.target_ = path;
  output.overwrite_ = overwrite;
  if (is_standard_output(path))
    return fail("{}: a database cannot be written to standard output; give it a name", path);
  TACHO_TRY(may_write(path, overwrite));
  mode_t mode = 0;  // of the file that is replaced
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) return fail("{}: is not a regular file; give the database another name", path);
    mode = status.st_mode & 07777;
    if (char* const real = ::realpath(path.c_str(), nullptr); real != nullptr) {
      output.target_ = real;
      ::free(real);
    }
  }
  std::string name = output.target_ + ".partial-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return fail("{}: cannot be created: {}", path, std::strerror(errno));
  ::close(descriptor);
  // SQLite creates its files itself. It would accept an empty one, but BulkFile insists on creating its own.
  ::unlink(name.c_str());
  output.temporary_ = std::move(name);
  output.mode_ = mode;
  return output;
}

DatabaseOutput::DatabaseOutput(DatabaseOutput&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      mode_(other.mode_),
      overwrite_(other.overwrite_) {}

DatabaseOutput::~DatabaseOutput() {
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  ::unlink((temporary_ + "-journal").c_str());
}

Status DatabaseOutput::commit() {
  if (mode_ != 0) ::chmod(temporary_.c_str(), mode_);
  if (const int error = move_into_place(temporary_, target_, overwrite_); error == EEXIST)
    return fail("{} has appeared meanwhile; left as it is", path_);
  else if (error != 0)
    return fail("{}: {}", path_, std::strerror(error));
  temporary_.clear();
  return {};
}

}  // namespace tacho::sqlite
