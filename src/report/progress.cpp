// Draws progress lines (progress.h).
#include "report/progress.h"

#include <unistd.h>

#include "base/clock.h"
#include "report/output.h"

namespace tacho::report {
namespace {
constexpr int64_t kQuiet = 2'000'000'000, kPeriod = 200'000'000;  // ns
}

Progress::Progress(std::string what)
    : what_(std::move(what)), began_(raw_now()), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_ != 0) print_error("\r\033[K");
}

void Progress::at(uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const int64_t now = raw_now();
  if (now - began_ < kQuiet || now - drawn_ < kPeriod) return;
  drawn_ = now;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
  const double spent = static_cast<double>(now - began_) * 1e-9;
  print_error("\r\033[Ktacho: {}: {:.0f} %{}", what_, share * 100,
              share > 0.02 ? fmt::format(", {:.0f} s left", spent / share * (1 - share)) : "");
}

}  // namespace tacho::report
