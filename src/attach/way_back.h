// The way back of a thread that tacho makes do something: what the kernel would have left on its stack for the handler
// of a signal to return by. rt_sigreturn gives the thread its registers, its vectors and its signal mask from there, so
// that it goes on where it was even if tacho is killed in that very moment.
#pragma once

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tacho::attach {

/// Bytes of a way back for a thread with so many bytes of vectors (NT_X86_XSTATE); a multiple of 64.
size_t way_back_bytes(size_t vector_bytes);

/// What belongs at `at`, a multiple of 64: rt_sigreturn with the stack pointer at `at` restores `registers`, `mask` and
/// `vectors`. A system call that the stop has interrupted begins anew.
std::vector<std::byte> way_back(const user_regs_struct& registers, uint64_t mask, std::span<const std::byte> vectors,
                                uint64_t at);

/// Calls that come back with EINTR after a stop and that the kernel does not restart by itself (signal(7)).
bool restarts_by_hand(uint64_t number);

}  // namespace tacho::attach
