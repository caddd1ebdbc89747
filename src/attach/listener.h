// Processes that listen for tacho (tacho_listen in include/tacho/tacho.h): no thread of theirs is stopped.
#pragma once

#include "attach/intruder.h"

namespace tacho::attach {

/// As enter(), by asking. An error, with the process as it was before, where it does not answer or refuses.
Result<EnterResult> ask(const TargetFacts& facts, int listener, const EnterRequest& request);

}  // namespace tacho::attach
