// Standard input of a program that is started several times.
#pragma once

#include <cstddef>
#include <thread>

#include "base/result.h"

namespace tacho::counter {

/// What one run of the program reads from tacho's standard input. From a file, every run reads from where the first one
/// began. Of a pipe or a socket, tacho keeps what a run takes and gives it to the next run again, which then goes on
/// with the rest; what no run takes stays in it for others. Runs share a terminal or a device as they find it.
///
/// One at a time, around launch::run(): begin(), then started() while the program runs, then end().
class InputOfRun {
 public:
  static constexpr size_t kMostKept = size_t{64} << 20;  ///< bytes

  InputOfRun() = default;
  InputOfRun(const InputOfRun&) = delete;
  InputOfRun& operator=(const InputOfRun&) = delete;
  ~InputOfRun();

  /// Makes descriptor 0 what the program inherits. Starts no thread. The error tells the user that an earlier run read
  /// more than kMostKept bytes, and what to do.
  Status begin();
  /// The program has inherited it: descriptor 0 is tacho's own again.
  void started();
  /// The program has ended: keeps what it took.
  void end();

 private:
  void put_back();
  void pass_on();

  int source_ = -1;  // tacho's own standard input while descriptor 0 is the program's
  int to_ = -1;      // the end of the program's pipe that pass_on() writes
  int ending_ = -1;  // eventfd
  std::thread thread_;
};

}  // namespace tacho::counter
