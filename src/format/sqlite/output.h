// Writes a SQLite file that appears complete or not at all.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::sqlite {

/// A temporary name beside `path` for building a database. Destruction without commit() removes the file.
class DatabaseOutput {
 public:
  /// Refuses what may_write() refuses, standard output and whatever is no regular file. A file that is replaced keeps
  /// its mode.
  static Result<DatabaseOutput> create(const std::string& path, bool overwrite);
  DatabaseOutput(DatabaseOutput&& other) noexcept;
  DatabaseOutput& operator=(DatabaseOutput&&) = delete;
  ~DatabaseOutput();
  /// The path to write to; no file exists there yet.
  const std::string& temporary() const { return temporary_; }
  /// The name that it will have, as the user wrote it.
  const std::string& path() const { return path_; }
  /// Gives the closed, synced file its name. Without `overwrite`, fails if that exists (given link()).
  Status commit();

 private:
  DatabaseOutput() = default;
  std::string path_, target_, temporary_;  // as given, without links, what is written
  unsigned mode_ = 0;                      // of the file that is replaced
  bool overwrite_ = false;
};

}  // namespace tacho::sqlite
