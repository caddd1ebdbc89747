// Writes a SQLite file that appears complete or not at all.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::sqlite {

/// Name for building a database beside its place; gives it its own name at the end, removes it otherwise.
class DatabaseOutput {
 public:
  /// Refuses what may_write() refuses, standard output and whatever is no regular file. A file that is replaced keeps its mode.
  static Result<DatabaseOutput> create(const std::string& path, bool overwrite);
  DatabaseOutput(DatabaseOutput&& other) noexcept;
  DatabaseOutput& operator=(DatabaseOutput&&) = delete;
  ~DatabaseOutput();
  /// Where to write.
  const std::string& temporary() const { return temporary_; }
  /// The file is closed and synced: gives it its name.
  Status commit();

 private:
  DatabaseOutput() = default;
  std::string path_, target_, temporary_;  // as given, without links, what is written
  unsigned mode_ = 0;                      // of the file that is replaced
  bool overwrite_ = false;
};

}  // namespace tacho::sqlite
