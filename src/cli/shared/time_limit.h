// A limit of time for an answer, and a sign of life at a terminal until it comes.
#pragma once

namespace tacho::cli {

/// While it lives, the process ends with exit code 1 and a sentence when `seconds` have passed (0 = no limit). Where stderr is a
/// terminal, a line says from the third second on for how long it has been working, until answered() is called.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  /// The first row is there: the line goes. The limit stays.
  void answered();
};

}  // namespace tacho::cli
