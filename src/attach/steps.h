// Where tests stop tacho on its way into a process and out of it: in a build with tests TACHO_ATTACH_STEP=NAME makes it
// stop itself (SIGSTOP) when it comes to that step. Other builds have none of it.
#pragma once

namespace tacho::attach {

#ifdef TACHO_ATTACH_STEPS
void at_step(const char* name);
#else
inline void at_step(const char*) {}
#endif

}  // namespace tacho::attach
