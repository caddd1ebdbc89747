// Steps at which tests stop tacho (steps.h).
#include "attach/steps.h"

#ifdef TACHO_ATTACH_STEPS
#include <signal.h>

#include <cstdlib>
#include <string_view>

namespace tacho::attach {

void at_step(const char* name) {
  static bool stopped = false;  // once
  const char* const wanted = getenv("TACHO_ATTACH_STEP");
  if (stopped || wanted == nullptr || std::string_view(wanted) != name) return;
  stopped = true;
  raise(SIGSTOP);
}

}  // namespace tacho::attach
#endif
