// PTX of the kernels that replay needs: they compare memory with its saved copy, read through a buffer larger than the
// L2, and time dependent reads.
#pragma once

namespace tacho::capture::counter {

/// Bytes that one flag of tacho_compare covers.
inline constexpr unsigned long long kChunk = 65536;
/// Number of reads in tacho_chase.
inline constexpr unsigned kChased = 64;

/// An empty module, for the side effects of loading one (replay.h).
inline constexpr char kNothing[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry tacho_nothing() {
  ret;
}
)";

/// tacho_compare(a, b, words, flags): 256 threads a block; block i sets byte flags[i] if any of the 16-byte words [4096
/// i, 4096 (i + 1)) below `words` differ. tacho_sweep(from, words, sink): reads 16-byte words, bypassing the L1.
/// tacho_chase(from, cycles): one thread reads kChased words 4096 bytes apart, bypassing the L1. Each address depends
/// on the word before, which must be 0. Writes the SM cycles that it took to `cycles` (u64).
inline constexpr char kKernels[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry tacho_compare(.param .u64 a, .param .u64 b, .param .u64 words, .param .u64 flags) {
  .reg .pred %p;
  .reg .b32 %x<4>, %y<4>, %d, %block, %thread;
  .reg .b64 %at, %end, %words, %a, %b, %f, %o, %from, %to;
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %at, %block, 4096;
  add.u64 %end, %at, 4096;
  ld.param.u64 %words, [words];
  min.u64 %end, %end, %words;
  cvt.u64.u32 %o, %thread;
  add.u64 %at, %at, %o;
  ld.param.u64 %a, [a];
  ld.param.u64 %b, [b];
  mov.b32 %d, 0;
next:
  setp.ge.u64 %p, %at, %end;
  @%p bra done;
  shl.b64 %o, %at, 4;
  add.u64 %from, %a, %o;
  add.u64 %to, %b, %o;
  ld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%from];
  ld.global.v4.b32 {%y0, %y1, %y2, %y3}, [%to];
  xor.b32 %x0, %x0, %y0;
  xor.b32 %x1, %x1, %y1;
  xor.b32 %x2, %x2, %y2;
  xor.b32 %x3, %x3, %y3;
  or.b32 %x0, %x0, %x1;
  or.b32 %x2, %x2, %x3;
  or.b32 %x0, %x0, %x2;
  or.b32 %d, %d, %x0;
  add.u64 %at, %at, 256;
  bra next;
done:
  setp.eq.b32 %p, %d, 0;
  @%p bra end;
  ld.param.u64 %f, [flags];
  cvt.u64.u32 %o, %block;
  add.u64 %f, %f, %o;
  mov.b32 %d, 1;
  st.global.u8 [%f], %d;
end:
  ret;
}

.visible .entry tacho_sweep(.param .u64 from, .param .u64 words, .param .u64 sink) {
  .reg .pred %p;
  .reg .b32 %x<4>, %d, %t, %n, %g;
  .reg .b64 %at, %words, %a, %o, %step;
  mov.u32 %t, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %g, %nctaid.x;
  mul.wide.u32 %at, %t, %n;
  mul.wide.u32 %step, %g, %n;
  mov.u32 %t, %tid.x;
  cvt.u64.u32 %o, %t;
  add.u64 %at, %at, %o;
  ld.param.u64 %words, [words];
  ld.param.u64 %a, [from];
  mov.b32 %d, 0;
next:
  setp.ge.u64 %p, %at, %words;
  @%p bra done;
  shl.b64 %o, %at, 4;
  add.u64 %o, %a, %o;
  ld.global.cg.v4.b32 {%x0, %x1, %x2, %x3}, [%o];
  or.b32 %x0, %x0, %x1;
  or.b32 %x2, %x2, %x3;
  or.b32 %x0, %x0, %x2;
  or.b32 %d, %d, %x0;
  add.u64 %at, %at, %step;
  bra next;
done:
  setp.ne.b32 %p, %d, 0x7ac0;
  @%p bra end;
  ld.param.u64 %o, [sink];
  st.global.b32 [%o], %d;
end:
  ret;
}

.visible .entry tacho_chase(.param .u64 from, .param .u64 cycles) {
  .reg .pred %p;
  .reg .b32 %i, %x;
  .reg .b64 %a, %o, %begin, %end;
  ld.param.u64 %a, [from];
  mov.b32 %i, 64;
  mov.u64 %begin, %clock64;
next:
  ld.global.cg.b32 %x, [%a];
  cvt.u64.u32 %o, %x;
  add.u64 %a, %a, %o;
  add.u64 %a, %a, 4096;
  sub.u32 %i, %i, 1;
  setp.ne.u32 %p, %i, 0;
  @%p bra next;
  and.b64 %o, %a, 1;
  mov.u64 %end, %clock64;
  add.u64 %end, %end, %o;
  sub.u64 %end, %end, %begin;
  ld.param.u64 %o, [cycles];
  st.global.u64 [%o], %end;
  ret;
}
)";

}  // namespace tacho::capture::counter
