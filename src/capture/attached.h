// The stay of a tacho in a program that was running before.
#pragma once

#include "tape/attach_block.h"

namespace tacho::capture {

/// Attaches to the pool that the block names, answers in the block, records until tacho leaves or has ended, and takes
/// everything away. On a thread of tacho's own.
void serve(tape::AttachBlock& block);

/// The process has called tacho_listen().
bool listens();

}  // namespace tacho::capture
