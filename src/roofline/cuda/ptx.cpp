// Writing of the PTX (ptx.h).
#include "roofline/cuda/ptx.h"

#include <array>

#include "base/format.h"

namespace tacho::roofline {
namespace {

constexpr std::array<VectorKind, 6> kVectors = {{
    {"fp32", "fma.rn.f32", "f32", 4, 2},
    {"fp64", "fma.rn.f64", "f64", 8, 2},
    {"fp16", "fma.rn.f16x2", "b32", 4, 4},
    {"i32", "mad.lo.s32", "s32", 4, 2},
    {"i64", "mad.lo.s64", "s64", 8, 2},
    {"i8", "dp4a.s32.s32", "s32", 4, 8},
}};

constexpr std::array<MmaKind, 7> kMmas = {{
    {"mma_f16", "m16n8k16.row.col.f32.f16.f16.f32", "7.0", "sm_80", Element::kHalf, 16, 8, 16, 4, 2, 4, 8},
    {"mma_bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", "7.0", "sm_80", Element::kBfloat, 16, 8, 16, 4, 2, 4, 8},
    {"mma_tf32", "m16n8k8.row.col.f32.tf32.tf32.f32", "7.0", "sm_80", Element::kTf32, 16, 8, 8, 4, 2, 4, 8},
    {"mma_f8", "m16n8k32.row.col.f32.e4m3.e4m3.f32", "8.4", "sm_89", Element::kE4m3, 16, 8, 32, 4, 2, 4, 8},
    {"mma_i8", "m16n8k32.row.col.s32.s8.s8.s32", "7.0", "sm_80", Element::kInt8, 16, 8, 32, 4, 2, 4, 8},
    {"mma_f64", "m8n8k4.row.col.f64.f64.f64.f64", "7.0", "sm_80", Element::kDouble, 8, 8, 4, 1, 1, 2, 8},
    {"mma_f64_k16", "m16n8k16.row.col.f64.f64.f64.f64", "7.8", "sm_90", Element::kDouble, 16, 8, 16, 8, 4, 4, 4},
}};

constexpr std::array<WgmmaKind, 5> kWgmmas = {{
    {"wgmma_f16", "m64n256k16.f32.f16.f16", Element::kHalf, 16},
    {"wgmma_bf16", "m64n256k16.f32.bf16.bf16", Element::kBfloat, 16},
    {"wgmma_tf32", "m64n256k8.f32.tf32.tf32", Element::kTf32, 8},
    {"wgmma_f8", "m64n256k32.f32.e4m3.e4m3", Element::kE4m3, 32},
    {"wgmma_i8", "m64n256k32.s32.s8.s8", Element::kInt8, 32},
}};

// Parameters, the thread's numbers, and the clocks of block 0.
std::string begin(std::string_view version, std::string_view target, uint32_t threads) {
  return fmt::format(R"(.version {}
.target {}
.address_size 64
.visible .entry {}(.param .u64 p_table, .param .u64 p_target, .param .u64 p_out, .param .u64 p_clock,
                   .param .u32 p_count, .param .u32 p_extra)
.maxntid {}, 1, 1
{{
  .reg .pred %first, %more;
  .reg .b32 %local, %block, %threads, %blocks, %thread, %all, %count, %extra, %x, %y, %z;
  .reg .b64 %table, %target, %out, %times, %c0, %c1, %g0, %g1, %p, %q, %s;
  ld.param.u64 %table, [p_table];
  ld.param.u64 %target, [p_target];
  ld.param.u64 %out, [p_out];
  ld.param.u64 %times, [p_clock];
  ld.param.u32 %count, [p_count];
  ld.param.u32 %extra, [p_extra];
  cvta.to.global.u64 %table, %table;
  cvta.to.global.u64 %target, %target;
  cvta.to.global.u64 %out, %out;
  cvta.to.global.u64 %times, %times;
  mov.u32 %local, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %thread, %block, %threads, %local;
  mul.lo.u32 %all, %blocks, %threads;
  setp.eq.u32 %first, %thread, 0;
)",
                     version, target, kEntry, threads);
}

constexpr std::string_view kStartClock = R"(  bar.sync 0;
  mov.u64 %c0, %clock64;
  mov.u64 %g0, %globaltimer;
)";
constexpr std::string_view kStopClock = R"(  bar.sync 0;
  mov.u64 %c1, %clock64;
  mov.u64 %g1, %globaltimer;
  sub.u64 %c1, %c1, %c0;
  sub.u64 %g1, %g1, %g0;
  @%first st.global.v2.u64 [%times], {%c1, %g1};
)";
constexpr std::string_view kLoop = "LOOP:\n";
constexpr std::string_view kNext = R"(  sub.u32 %count, %count, 1;
  setp.ne.u32 %more, %count, 0;
  @%more bra LOOP;
)";
constexpr std::string_view kEnd = "  ret;\n}\n";

// "{%a0, %a1}"
std::string registers(std::string_view name, uint32_t first, uint32_t count) {
  std::string text = "{";
  for (uint32_t i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, first + i);
  return text + "}";
}

}  // namespace

std::span<const VectorKind> vector_kinds() {
  return kVectors;
}
std::span<const MmaKind> mma_kinds() {
  return kMmas;
}
std::span<const WgmmaKind> wgmma_kinds() {
  return kWgmmas;
}

std::string vector_ptx(const VectorKind& kind) {
  std::string text = begin("6.4", "sm_70", 256);
  text += fmt::format("  .reg .{} %a<{}>, %b, %c;\n", kind.type, kChains);
  const auto load = [&](std::string_view to, std::string_view index) {
    text += fmt::format("  mul.wide.u32 %p, {}, {};\n  add.u64 %p, %p, %table;\n  ld.global.{} {}, [%p];\n", index,
                        kind.bytes, kind.type, to);
  };
  for (uint32_t k = 0; k < kChains; ++k) {
    text += fmt::format("  mad.lo.u32 %x, %thread, {}, {};\n  and.b32 %x, %x, {};\n", kChains, k, kStarts - 1);
    load(fmt::format("%a{}", k), "%x");
  }
  text += fmt::format("  and.b32 %x, %thread, {};\n  add.u32 %x, %x, {};\n", kFactors - 1, kStarts);
  load("%b", "%x");
  text += fmt::format("  add.u32 %x, %x, {};\n", kFactors);
  load("%c", "%x");
  text += kStartClock;
  text += kLoop;
  for (uint32_t u = 0; u < kVectorUnroll; ++u)
    for (uint32_t k = 0; k < kChains; ++k)
      text += fmt::format("  {} %a{}, %a{}, %b, {};\n", kind.instruction, k, k,
                          kind.name == "fp64" ? fmt::format("%a{}", k) : std::string("%c"));
  text += kNext;
  text += kStopClock;
  text += fmt::format("  mul.wide.u32 %p, %thread, {};\n  add.u64 %p, %p, %out;\n", kChains * kind.bytes);
  for (uint32_t k = 0; k < kChains; ++k)
    text += fmt::format("  st.global.{} [%p+{}], %a{};\n", kind.type, k * kind.bytes, k);
  text += kEnd;
  return text;
}

namespace {

// The text of a kernel that reads or writes memory.
class MemoryKernel {
 public:
  explicit MemoryKernel(std::string_view name) : name_(name) {}

  std::string text() && {
    const bool small = name_ == "l1" || name_ == "shared";
    text_ = begin("7.4", "sm_70", small ? kSmallThreads : 256);
    text_ += fmt::format("  .reg .{} %v<{}>, %w<{}>, %s<4>;\n", type(), 4 * kMemoryUnroll, 4 * kMemoryUnroll);
    if (name_.starts_with("dram_")) {
      add_dram();
    } else if (name_ == "l2") {
      add_l2();
    } else {
      add_small();
    }
    text_ += kEnd;
    return std::move(text_);
  }

 private:
  bool is_float() const { return name_ == "dram_triad"; }
  std::string_view type() const { return is_float() ? "f32" : "u32"; }

  void load(std::string_view how, std::string_view reg, uint32_t j, std::string_view address) {
    text_ += fmt::format("  {}.v4.{} {}, [{}];\n", how, type(), registers(reg, 4 * j, 4), address);
  }
  void add_up() {
    for (uint32_t j = 0; j < 4 * kMemoryUnroll; ++j)
      text_ += fmt::format("  add.u32 %s{}, %s{}, %v{};\n", j % 4, j % 4, j);
  }
  // Four sums a thread, put together and stored for the check.
  void begin_sums() {
    for (int i = 0; i < 4; ++i) text_ += fmt::format("  mov.u32 %s{}, 0;\n", i);
  }
  void end_sums() {
    text_ += "  add.u32 %s0, %s0, %s1;\n  add.u32 %s2, %s2, %s3;\n  add.u32 %s0, %s0, %s2;\n";
    text_ += "  mul.wide.u32 %p, %thread, 4;\n  add.u64 %p, %p, %out;\n  st.global.u32 [%p], %s0;\n";
  }

  void add_dram() {
    const bool reads = name_ != "dram_write", writes = name_ != "dram_read";
    constexpr uint32_t kStep = kDramThreads * 16, kPiece = kStep * kMemoryUnroll;
    text_ +=
        fmt::format("  mul.wide.u32 %q, %block, {};\n  mul.wide.u32 %p, %local, 16;\n  add.u64 %q, %q, %p;\n", kPiece);
    text_ += fmt::format("  mul.wide.u32 %s, %blocks, {};\n", kPiece);
    if (name_ == "dram_triad") text_ += "  .reg .b64 %r;\n  add.u64 %r, %q, %out;\n";
    if (reads) text_ += "  add.u64 %p, %q, %table;\n";
    if (writes) text_ += "  add.u64 %q, %q, %target;\n";
    if (name_ == "dram_read") begin_sums();
    if (name_ == "dram_write") {
      // The values to write: a vector of the table's for each thread.
      text_ += fmt::format("  and.b32 %x, %thread, {};\n  mul.wide.u32 %p, %x, 16;\n  add.u64 %p, %p, %table;\n",
                           kStarts - 1);
      load("ld.global", "v", 0, "%p");
    }
    text_ += kStartClock;
    text_ += kLoop;
    for (uint32_t j = 0; reads && j < kMemoryUnroll; ++j)
      load("ld.global.L1::no_allocate", "v", j, fmt::format("%p+{}", j * kStep));
    for (uint32_t j = 0; is_float() && j < kMemoryUnroll; ++j)
      load("ld.global.L1::no_allocate", "w", j, fmt::format("%r+{}", j * kStep));
    for (uint32_t j = 0; is_float() && j < 4 * kMemoryUnroll; ++j)
      text_ += fmt::format("  fma.rn.f32 %v{}, %w{}, 0f{:08X}, %v{};\n", j, j, 0x3F400000U, j);
    for (uint32_t j = 0; writes && j < kMemoryUnroll; ++j)
      text_ += fmt::format("  st.global.v4.{} [%q+{}], {};\n", type(), j * kStep, registers("v", reads ? 4 * j : 0, 4));
    if (reads) text_ += "  add.u64 %p, %p, %s;\n";
    if (is_float()) text_ += "  add.u64 %r, %r, %s;\n";
    if (writes) text_ += "  add.u64 %q, %q, %s;\n";
    if (name_ == "dram_read") add_up();
    text_ += kNext;
    text_ += kStopClock;
    if (name_ == "dram_read") end_sums();
  }

  // Every block walks through the whole set, from its own start; past the L1, whose lines would serve other blocks.
  void add_l2() {
    begin_sums();
    text_ += R"(  mul.wide.u32 %p, %block, 4096;
  cvt.u32.u64 %y, %p;
  mul.lo.u32 %y, %y, 37;
  mad.lo.u32 %y, %local, 16, %y;
)";
    text_ += kStartClock;
    text_ += kLoop;
    for (uint32_t j = 0; j < kMemoryUnroll; ++j) {
      text_ += "  and.b32 %x, %y, %extra;\n  cvt.u64.u32 %p, %x;\n  add.u64 %p, %p, %table;\n";
      load("ld.global.cg", "v", j, "%p");
      text_ += "  mad.lo.u32 %y, %threads, 16, %y;\n";
    }
    add_up();
    text_ += kNext;
    text_ += kStopClock;
    end_sums();
  }

  // A block reads its own 32 KiB again and again, a step further in every round so that no load is like the last.
  void add_small() {
    const bool shared = name_ == "shared";
    begin_sums();
    if (shared) {
      text_ += fmt::format("  .shared .align 128 .b8 set[{}];\n", kSmallSet);
      text_ += "  .reg .b32 %base;\n  mov.u32 %base, set;\n";
      for (uint32_t j = 0; j < kSmallSet / (16 * kSmallThreads); ++j) {
        text_ += fmt::format("  mad.lo.u32 %x, %local, 16, {};\n  cvt.u64.u32 %p, %x;\n  add.u64 %p, %p, %table;\n",
                             j * 16 * kSmallThreads);
        load("ld.global", "v", 0, "%p");
        text_ += fmt::format("  add.u32 %x, %x, %base;\n  st.shared.v4.u32 [%x], {};\n", registers("v", 0, 4));
      }
    } else {
      text_ += fmt::format("  mul.wide.u32 %q, %block, {};\n  add.u64 %q, %q, %table;\n", kSmallSet);
    }
    text_ += "  mul.lo.u32 %y, %local, 16;\n";
    text_ += kStartClock;
    text_ += kLoop;
    for (uint32_t j = 0; j < kMemoryUnroll; ++j) {
      text_ += fmt::format("  and.b32 %x, %y, {};\n", kSmallSet - 1);
      if (shared) {
        text_ += "  add.u32 %x, %x, %base;\n";
        load("ld.shared", "v", j, "%x");
      } else {
        text_ += "  cvt.u64.u32 %p, %x;\n  add.u64 %p, %p, %q;\n";
        load("ld.global.ca", "v", j, "%p");
      }
      text_ += fmt::format("  add.u32 %y, %y, {};\n", 16 * kSmallThreads);
    }
    add_up();
    text_ += kNext;
    text_ += kStopClock;
    end_sums();
  }

  std::string_view name_;
  std::string text_;
};

}  // namespace

std::string memory_ptx(std::string_view name) {
  return MemoryKernel(name).text();
}

std::string mma_ptx(const MmaKind& kind) {
  const bool wide = kind.element == Element::kDouble;
  const std::string_view operand = wide ? "f64" : "b32";
  const std::string_view result = wide ? "f64" : kind.element == Element::kInt8 ? "s32" : "f32";
  const uint32_t bytes = wide ? 8 : 4;
  std::string text = begin(kind.version, kind.target, 256);
  text += fmt::format("  .reg .{} %a<{}>, %b<{}>;\n  .reg .{} %d<{}>;\n", operand, kind.a, kind.b * kind.tiles, result,
                      kind.c * kind.tiles);
  const uint32_t loads = kind.a + kind.b * kind.tiles;
  for (uint32_t r = 0; r < loads; ++r) {
    text += fmt::format("  mad.lo.u32 %x, %thread, {}, {};\n  and.b32 %x, %x, {};\n", loads, r, kStarts - 1);
    text += fmt::format("  mul.wide.u32 %p, %x, {};\n  add.u64 %p, %p, %table;\n  ld.global.{} %{}{}, [%p];\n", bytes,
                        operand, r < kind.a ? "a" : "b", r < kind.a ? r : r - kind.a);
  }
  for (uint32_t i = 0; i < kind.c * kind.tiles; ++i)
    text += fmt::format("  mov.{} %d{}, {};\n", result, i,
                        result == "s32" ? "0"
                        : wide          ? "0d0000000000000000"
                                        : "0f00000000");
  text += kStartClock;
  text += kLoop;
  for (uint32_t u = 0; u < kMmaUnroll; ++u)
    for (uint32_t t = 0; t < kind.tiles; ++t) {
      const std::string d = registers("d", t * kind.c, kind.c);
      text += fmt::format("  mma.sync.aligned.{} {}, {}, {}, {};\n", kind.instruction, d, registers("a", 0, kind.a),
                          registers("b", t * kind.b, kind.b), d);
    }
  text += kNext;
  text += kStopClock;
  text += fmt::format("  mul.wide.u32 %p, %thread, {};\n  add.u64 %p, %p, %out;\n", kind.c * kind.tiles * bytes);
  for (uint32_t i = 0; i < kind.c * kind.tiles; ++i)
    text += fmt::format("  st.global.{} [%p+{}], %d{};\n", result, i * bytes, i);
  text += kEnd;
  return text;
}

std::string wgmma_ptx(const WgmmaKind& kind, bool streamed) {
  constexpr uint32_t kAccumulators = 128, kTileA = 2048, kTileB = 8192, kCopies = kWgmmaSet / (16 * 256);
  const bool integer = kind.element == Element::kInt8;
  const std::string_view result = integer ? "s32" : "f32";
  std::string text = begin("8.0", "sm_90a", 256);
  text.insert(text.find(".visible"), ".extern .shared .align 128 .b8 tiles[];\n");
  text += fmt::format(R"(  .reg .{} %d<{}>;
  .reg .pred %keep;
  .reg .b32 %base, %set, %to;
  .reg .b64 %a<{}>, %b<{}>, %half;
  mov.u32 %base, tiles;
  mov.u64 %half, 0;
  and.b32 %set, %block, {};
)",
                      result, kAccumulators, kWgmmaSteps, kWgmmaSteps, kWgmmaSets - 1);
  // Copies set %set to the address in %to, 16 bytes a thread at a time.
  const auto copy = [&] {
    text += fmt::format(R"(  mul.wide.u32 %p, %set, {};
  mul.wide.u32 %q, %local, 16;
  add.u64 %p, %p, %q;
  add.u64 %p, %p, %table;
  mad.lo.u32 %to, %local, 16, %to;
)",
                        kWgmmaSet);
    for (uint32_t j = 0; j < kCopies; ++j)
      text += fmt::format("  cp.async.cg.shared.global [%to+{}], [%p+{}], 16;\n", j * 16 * 256, j * 16 * 256);
    text += "  cp.async.commit_group;\n";
  };
  // Makes the threads' stores visible to the tensor cores.
  constexpr std::string_view kArrived = "  cp.async.wait_group 0;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n";
  text += "  mov.u32 %to, %base;\n";
  copy();
  // Matrix descriptors, in units of 16 bytes:
  //    63 62 | 61 52 | 51 49 | 48 46 | 45        32 | 31 30 | 29       16 | 15 14 | 13      0
  //  swizzle |       | offset|       | 8 rows on    |       | 16 B of K on|       | address
  const auto descriptor = [&](std::string_view to, uint32_t rows, uint32_t at) {
    const uint64_t strides = uint64_t{128 / 16} << 32 | uint64_t{rows / 8 * 128 / 16} << 16;
    text += fmt::format(R"(  add.u32 %y, %z, {};
  shr.u32 %y, %y, 4;
  and.b32 %y, %y, 16383;
  cvt.u64.u32 {}, %y;
  or.b64 {}, {}, {};
)",
                        at, to, to, to, strides);
  };
  text += fmt::format("  shr.u32 %x, %local, 7;\n  mad.lo.u32 %z, %x, {}, %base;\n", kTileA * kWgmmaSteps);
  for (uint32_t s = 0; s < kWgmmaSteps; ++s) descriptor(fmt::format("%a{}", s), 64, s * kTileA);
  text += "  mov.u32 %z, %base;\n";
  for (uint32_t s = 0; s < kWgmmaSteps; ++s)
    descriptor(fmt::format("%b{}", s), 256, 2 * kWgmmaSteps * kTileA + s * kTileB);
  for (uint32_t i = 0; i < kAccumulators; ++i)
    text += fmt::format("  mov.{} %d{}, {};\n", result, i, integer ? "0" : "0f00000000");
  text += "  setp.eq.u32 %keep, 0, 0;\n";
  text += kArrived;
  text += kStartClock;
  text += kLoop;
  text += "  wgmma.fence.sync.aligned;\n";
  const std::string d = registers("d", 0, kAccumulators);
  const std::string_view tail = integer                                                              ? ""
                                : kind.element == Element::kHalf || kind.element == Element::kBfloat ? ", 1, 1, 0, 0"
                                                                                                     : ", 1, 1";
  for (uint32_t u = 0; u < kWgmmaUnroll; ++u)
    for (uint32_t s = 0; s < kWgmmaSteps; ++s)
      text +=
          fmt::format("  wgmma.mma_async.sync.aligned.{} {}, %a{}, %b{}, %keep{};\n", kind.instruction, d, s, s, tail);
  text += "  wgmma.commit_group.sync.aligned;\n";
  if (streamed) {
    // The half that is not being multiplied: %half is 0 or the distance of the halves, in units of 16 bytes.
    text += fmt::format(R"(  add.u32 %set, %set, 1;
  and.b32 %set, %set, {};
  sub.u64 %half, {}, %half;
  cvt.u32.u64 %to, %half;
  shl.b32 %to, %to, 4;
  add.u32 %to, %to, %base;
)",
                        kWgmmaSets - 1, kWgmmaSet / 16);
    copy();
  }
  text += "  wgmma.wait_group.sync.aligned 0;\n";
  if (streamed) {
    text += fmt::format("  shl.b64 %s, %half, 1;\n  sub.u64 %s, %s, {};\n", kWgmmaSet / 16);
    for (uint32_t s = 0; s < kWgmmaSteps; ++s)
      text += fmt::format("  add.u64 %a{0}, %a{0}, %s;\n  add.u64 %b{0}, %b{0}, %s;\n", s);
    text += kArrived;
  }
  text += kNext;
  text += kStopClock;
  text += fmt::format("  mul.wide.u32 %p, %thread, {};\n  add.u64 %p, %p, %out;\n", kAccumulators * 4);
  for (uint32_t i = 0; i < kAccumulators; ++i) text += fmt::format("  st.global.{} [%p+{}], %d{};\n", result, i * 4, i);
  text += kEnd;
  return text;
}

}  // namespace tacho::roofline
