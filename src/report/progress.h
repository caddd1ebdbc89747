// Progress display for long work, at a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace tacho::report {

/// Draws one line on stderr ("tacho: writing run.pftrace: 43 %, 5 s left") once the work has taken two seconds, and
/// removes it at the end. Does nothing if stderr is not a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Reports `done` of `total` units. Cheap enough to call after every thousand units.
  void at(uint64_t done, uint64_t total);

 private:
  std::string what_;
  int64_t began_ = 0, drawn_ = 0;
  bool terminal_ = false;
};

}  // namespace tacho::report
