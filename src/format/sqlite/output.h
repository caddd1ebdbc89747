// Writes a SQLite file that appears complete or not at all.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::sqlite {

/// Name for building a database beside its place; gives it its own name at the end, removes it otherwise.
class DatabaseOutput {
 public:
  /// Refuses an existing `path` unless `overwrite`.
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
  std::string path_, temporary_;
  bool overwrite_ = false;
};

}  // namespace tacho::sqlite
