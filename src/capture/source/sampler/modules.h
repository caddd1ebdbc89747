// Which files with code lie where in the process, and until when: a library may be closed and another one opened at its
// address.
#pragma once

namespace tacho::capture::sampler {

/// Describes what is loaded now. Call before the first sample.
void start_modules();
/// Begins anew in another pool.
void forget_modules();
/// Describes what has been loaded since the last call, if anything has. Cheap otherwise. Nothing before
/// start_modules().
void look_for_modules();

}  // namespace tacho::capture::sampler
