// A time limit for an answer, and a sign of life on a terminal until it comes.
#pragma once

namespace tacho::cli {

/// While it lives, the process ends with exit code 1 and a sentence after `seconds` (0 = no limit). On a terminal,
/// stderr shows the time spent from 3 s on, until answered(). Only one may live at a time.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  /// The first row is there: removes the line and keeps the limit.
  void answered();
};

}  // namespace tacho::cli
