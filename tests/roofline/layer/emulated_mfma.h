// AMD's matrix builtins in software, for OpenCL devices that have none: the kernels of the ceilings run and are checked
// without an AMD GPU. Where elements lie in the registers of a wave is written down here from AMD's manuals once more.
#pragma once

#include <cstdlib>
#include <string>

// Every item of a work-group hands its operands to the others; each computes the results that its lane has.
inline constexpr const char* kEmulation = R"(
#define VALUE_F32(p, k) as_float(((local const uint*)(p))[k])
#define VALUE_XF32(p, k) as_float(((local const uint*)(p))[k] & 0xFFFFE000)
#define VALUE_F64(p, k) ((local const double*)(p))[k]
#define VALUE_F16(p, k) vload_half(k, (local const half_storage*)(p))
#define VALUE_BF16(p, k) as_float((uint)((local const ushort*)(p))[k] << 16)
#define VALUE_I8(p, k) ((local const char*)(p))[k]
#define VALUE_F8(p, k) small_float(((local const uchar*)(p))[k])

ulong ticks(void) {
  uint low = 0, high = 0;
#ifdef __x86_64__
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
#endif
  return (ulong)high << 32 | low;
}

float small_float(uchar bits) {
  const uint exponent = bits >> 3 & 15, fraction = bits & 7;
  const float least = BIAS == 8 ? 0x1p-10f : 0x1p-9f;
  const float size = exponent == 0 ? least * fraction : as_float((exponent + 127 - BIAS) << 23 | fraction << 20);
  return bits & 0x80 ? -size : size;
}

ACCUMULATOR multiply(OPERAND a, OPERAND b, ACCUMULATOR c, local uint* all) {
  union { ACCUMULATOR v; SCALAR each[M * M / 64]; } sum;
  sum.v = c;
  local OPERAND* const operands = (local OPERAND*)all;
  const uint item = (uint)get_local_id(0), wave = item / 64 * 64, lane = item % 64;
  operands[2 * item] = a;
  operands[2 * item + 1] = b;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint depth = K * M / 64;  // elements of a lane
  for (uint r = 0; r < M * M / 64; ++r) {
#ifdef ROWS_APART
    uint row = 4 * r + lane / 16;
#elif M == 32
    uint row = r / 4 * 8 + lane / 32 * 4 + r % 4;
#else
    uint row = lane / 16 * 4 + r;
#endif
    row = (row + TWIST) % M;
    for (uint k = 0; k < K; ++k) {
      local const OPERAND* const left = &operands[2 * (wave + k / depth * M + row)];
      local const OPERAND* const right = &operands[2 * (wave + k / depth * M + lane % M) + 1];
      sum.each[r] += (SCALAR)VALUE(left, k % depth) * (SCALAR)VALUE(right, k % depth);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum.v;
}
)";

// `source` with its matrix builtin, if it has one, replaced.
inline std::string emulated(std::string source, bool twisted) {
  const std::string prefix = "__builtin_amdgcn_mfma_";
  const size_t at = source.find(prefix);
  if (at == std::string::npos) return source;
  const std::string builtin = source.substr(at, source.find_first_of("\"( ", at) - at);
  const bool scaled = builtin.find("_scale_") != std::string::npos,
             gfx942 = builtin.find("_fp8_fp8") != std::string::npos;
  // i32_32x32x8i8, f32_32x32x8bf16_1k, scale_f32_32x32x64_f8f6f4
  const size_t shape = builtin.find("x32x") != std::string::npos ? builtin.find("_32x32x") : builtin.find("_16x16x");
  const int m = std::atoi(builtin.c_str() + shape + 1), k = std::atoi(builtin.c_str() + shape + 7);
  const std::string of = builtin.substr(shape + 8);
  const std::string value = gfx942 || scaled                       ? "F8"
                            : of.find("bf16") != std::string::npos ? "BF16"
                            : of.find("xf32") != std::string::npos ? "XF32"
                            : of.find("f16") != std::string::npos  ? "F16"
                            : of.find("f32") != std::string::npos  ? "F32"
                            : of.find("f64") != std::string::npos  ? "F64"
                                                                   : "I8";
  std::string head = "#define __has_builtin(x) 1\n#define " + builtin + "(a, b, c, ...) multiply(a, b, c, all)\n";
  head += "typedef half half_storage;\n#define half ushort\n#define __bf16 ushort\n";
  head += "#define __builtin_amdgcn_s_memtime() ticks()\n";
  head += "#define __builtin_amdgcn_s_memrealtime() ticks()\n";
  head +=
      "#define M " + std::to_string(m) + "\n#define K " + std::to_string(k) + "\n#define VALUE VALUE_" + value + "\n";
  head += "#define BIAS " + std::string(gfx942 ? "8" : "7") + "\n#define TWIST " + (twisted ? "1" : "0") + "\n";
  head += "#define SCALAR " + std::string(value == "F64" ? "double" : value == "I8" ? "int" : "float") + "\n";
  if (value == "F64") head += "#define ROWS_APART\n";
  const size_t kernel = source.find("kernel __attribute__");
  const size_t body = source.find("{\n", kernel) + 2;
  return head + source.substr(0, kernel) + kEmulation + source.substr(kernel, body - kernel) +
         "  local uint all[256 * 16];\n" + source.substr(body);
}
