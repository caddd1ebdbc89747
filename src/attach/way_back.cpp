// Building a signal frame (way_back.h), as Linux lays it out on x86-64 (arch/x86/include/uapi/asm/sigcontext.h):
//
//   at + 0     flags, link        8 bytes each
//   at + 16    alternate stack    24 bytes
//   at + 40    registers          256 bytes: r8 ... r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags, segments, ...,
//                                 at 184 the address of the vectors
//   at + 296   signal mask        8 bytes
//   at + 320   vectors            as XSAVE writes them, with words of software's own at 464, and a mark behind them
#include "attach/way_back.h"

#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tacho::attach {
namespace {

constexpr size_t kContext = 40, kMask = 296, kVectors = 320, kVectorsAt = kContext + 184;
constexpr size_t kSoftware = 464, kHeader = 512, kSmallest = 576;  // in the vectors
constexpr uint64_t kTiles = uint64_t{3} << 17;                     // AMX, which a thread has only after it has asked

// How many bytes of the vectors the features take, in XSAVE's plain form.
size_t bytes_of_features(uint64_t features) {
  size_t bytes = kSmallest;
  for (uint32_t feature = 2; feature < 63; ++feature) {
    if ((features >> feature & 1) == 0) continue;
    uint32_t size = 0, offset = 0, more = 0, aligned = 0;
    __cpuid_count(0xd, feature, size, offset, more, aligned);
    bytes = std::max<size_t>(bytes, size_t{offset} + size);
  }
  return bytes;
}

template <typename T>
void put(std::vector<std::byte>& into, size_t at, T value) {
  std::memcpy(into.data() + at, &value, sizeof value);
}

}  // namespace

bool restarts_by_hand(uint64_t number) {
  static constexpr long kCalls[] = {SYS_epoll_wait,      SYS_epoll_pwait,
                                    SYS_semop,           SYS_semtimedop,
                                    SYS_rt_sigtimedwait, SYS_msgrcv,
                                    SYS_msgsnd,          SYS_read,
                                    SYS_readv,           SYS_recvfrom,
                                    SYS_recvmsg,         SYS_recvmmsg,
                                    SYS_accept,          SYS_accept4,
                                    SYS_sendto,          SYS_sendmsg,
                                    SYS_write,           SYS_writev,
                                    SYS_sendmmsg,        SYS_io_getevents,
                                    SYS_io_pgetevents,   441 /* epoll_pwait2 */};
  return std::any_of(std::begin(kCalls), std::end(kCalls),
                     [&](long each) { return each == static_cast<long>(number); });
}

size_t way_back_bytes(size_t vector_bytes) {
  return (kVectors + vector_bytes + sizeof(uint32_t) + 63) / 64 * 64;
}

std::vector<std::byte> way_back(const user_regs_struct& registers, uint64_t mask, std::span<const std::byte> vectors,
                                uint64_t at) {
  std::vector<std::byte> frame(way_back_bytes(vectors.size()));
  uint64_t result = registers.rax, next = registers.rip;
  // -ERESTARTSYS, -ERESTARTNOINTR, -ERESTARTNOHAND, -ERESTART_RESTARTBLOCK
  const auto error = -static_cast<int64_t>(registers.rax);
  const bool interrupted = error == 512 || error == 513 || error == 514 || error == 516 ||
                           (error == EINTR && restarts_by_hand(registers.orig_rax));
  if (static_cast<int64_t>(registers.orig_rax) >= 0 && interrupted) {
    result = registers.orig_rax;
    next -= 2;
  }
  constexpr uint64_t kFlags = 1 | 2 | 4;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
  put(frame, 0, kFlags);
  put(frame, 24, int32_t{-1});  // no flags of an alternate stack: the kernel leaves the thread's as it is
  const uint64_t words[] = {registers.r8,  registers.r9,  registers.r10,   registers.r11, registers.r12,
                            registers.r13, registers.r14, registers.r15,   registers.rdi, registers.rsi,
                            registers.rbp, registers.rbx, registers.rdx,   result,        registers.rcx,
                            registers.rsp, next,          registers.eflags};
  std::memcpy(frame.data() + kContext, words, sizeof words);
  const uint16_t segments[] = {static_cast<uint16_t>(registers.cs), 0, 0, static_cast<uint16_t>(registers.ss)};
  std::memcpy(frame.data() + kContext + sizeof words, segments, sizeof segments);
  put(frame, kMask, mask);
  if (vectors.size() < kSmallest) return frame;  // the kernel then makes them empty
  put(frame, kVectorsAt, at + kVectors);
  std::memcpy(frame.data() + kVectors, vectors.data(), vectors.size());
  uint64_t features = 0, used = 0;
  std::memcpy(&features, vectors.data() + kSoftware, sizeof features);
  std::memcpy(&used, vectors.data() + kHeader, sizeof used);
  if ((used & kTiles) == 0) features &= ~kTiles;
  const size_t bytes = std::min(bytes_of_features(features), vectors.size());
  std::memset(frame.data() + kVectors + kSoftware, 0, kHeader - kSoftware);
  put(frame, kVectors + kSoftware, uint32_t{0x46505853});  // FP_XSTATE_MAGIC1
  put(frame, kVectors + kSoftware + 4, static_cast<uint32_t>(bytes + sizeof(uint32_t)));
  put(frame, kVectors + kSoftware + 8, features);
  put(frame, kVectors + kSoftware + 16, static_cast<uint32_t>(bytes));
  put(frame, kVectors + bytes, uint32_t{0x46505845});  // FP_XSTATE_MAGIC2
  return frame;
}

}  // namespace tacho::attach
