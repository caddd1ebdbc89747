// The data after a SampleRecord: how a target hands over a moment of a thread, to be unwound in tacho's process.
//
//    +--------------+-----------------+-----------------------+--------------------+------------------+
//    | SampleHeader | registers[17]   | frame-pointer chain   | Python frames      | stack bytes      |
//    | 24 B         | DWARF order, ip | return addresses      | innermost first    | from sp upwards  |
//    +--------------+-----------------+-----------------------+--------------------+------------------+
//
// A stack that a thread read itself at a launch (SampleHeader::launch) has no registers: the Python frames follow the
// header. CPU time that no moment of a thread stands for (SampleHeader::of) is a header alone.
//
// A Python frame is one word:
//
//     63           32  31   30   29                0
//    +---------------+----+----+--------------------+
//    | code number   | S  | E  | instruction offset |   code number: CodeRecord, 0 = unknown
//    +---------------+----+----+--------------------+   offset in bytes + 2 (0: not started)
//
// E: ends the frames of one native eval frame; S: ends them without being a frame itself (a shim).
#pragma once

#include <cstdint>

namespace tacho::event {

/// DWARF numbers of x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then the instruction pointer.
inline constexpr uint32_t kSampleRegisters = 17;
inline constexpr uint32_t kRegisterBp = 6, kRegisterSp = 7, kRegisterIp = 16;

enum class SampleClock : uint8_t { kCpu, kWall };

enum class PythonState : uint8_t {
  kNone,  // no Python thread here
  kWhole,
  kTruncated,  // deeper than is recorded
  kBroken,     // the interpreter was changing its frames: only those that could be read safely, perhaps none
};

/// What a sample's period is the time of.
enum class SampleOf : uint32_t {
  kMoment,      // a moment of a thread
  kRest,        // threads that ended without a further sample; stack_begin: the function with which they began, 0 =
                // unknown
  kBeforeMain,  // a process before its samples began. Also holds what an earlier program of the process (exec) used
};

struct SampleHeader {
  SampleClock clock;
  PythonState python;
  uint8_t stack_whole;   // 1: the stack bytes reach to the thread's outermost frame
  uint8_t launch;        // read by the thread itself, without registers and native stack; the record's period is 0.
                         // 1: at a call that launches device work; 2: for the BlockMemoryRecord that comes next
  uint16_t chain;        // words of the frame-pointer chain
  uint16_t frames;       // words of Python frames
  uint64_t stack_begin;  // address of the first stack byte
  uint32_t stack_bytes;  // multiple of 8
  SampleOf of;
};
static_assert(sizeof(SampleHeader) == 24);

inline constexpr uint64_t kPythonShim = 1ULL << 31;
inline constexpr uint64_t kPythonEnd = 1ULL << 30;
inline constexpr uint64_t kPythonOffsetMask = (1ULL << 30) - 1;

}  // namespace tacho::event
