// Draws progress lines (progress.h).
#include "base/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/format.h"

namespace tacho {
namespace {
constexpr int64_t kQuiet = 2'000'000'000, kPeriod = 200'000'000;  // ns
}

Progress::Progress(std::string what)
    : what_(std::move(what)), began_(raw_now()), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_ != 0) fmt::print(stderr, "\r\033[K");
}

void Progress::at(uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const int64_t now = raw_now();
  if (now - began_ < kQuiet || now - drawn_ < kPeriod) return;
  drawn_ = now;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
  const double spent = static_cast<double>(now - began_) * 1e-9;
  fmt::print(stderr, "\r\033[Ktacho: {}: {:.0f} %", what_, share * 100);
  if (share > 0.02) fmt::print(stderr, ", {:.0f} s left", spent / share * (1 - share));
  std::fflush(stderr);
}

}  // namespace tacho
