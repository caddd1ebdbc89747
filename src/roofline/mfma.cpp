// The matrix instructions of CDNA and their kernels (mfma.h).
#include "roofline/mfma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace tacho::roofline {
namespace {

#define TACHO_BUILTIN(name) "v_mfma_" name, "__builtin_amdgcn_mfma_" name
// Of the shapes with the best rate the largest: fewer registers are read for each FLOP.
constexpr std::array<MfmaKind, 22> kKinds = {{
    {"gfx908", Element::kFloat, TACHO_BUILTIN("f32_32x32x2f32"), "float", 32, 32, 2, 256},
    {"gfx908", Element::kHalf, TACHO_BUILTIN("f32_32x32x8f16"), "half 4", 32, 32, 8, 1024},
    {"gfx908", Element::kBfloat, TACHO_BUILTIN("f32_32x32x4bf16"), "short 2", 32, 32, 4, 512},
    {"gfx908", Element::kInt8, TACHO_BUILTIN("i32_32x32x8i8"), "int", 32, 32, 8, 1024},

    {"gfx90a", Element::kDouble, TACHO_BUILTIN("f64_16x16x4f64"), "double", 16, 16, 4, 256},
    {"gfx90a", Element::kFloat, TACHO_BUILTIN("f32_32x32x2f32"), "float", 32, 32, 2, 256},
    {"gfx90a", Element::kHalf, TACHO_BUILTIN("f32_32x32x8f16"), "half 4", 32, 32, 8, 1024},
    {"gfx90a", Element::kBfloat, TACHO_BUILTIN("f32_32x32x8bf16_1k"), "short 4", 32, 32, 8, 1024},
    {"gfx90a", Element::kInt8, TACHO_BUILTIN("i32_32x32x8i8"), "int", 32, 32, 8, 1024},

    {"gfx942", Element::kDouble, "v_mfma_f64_16x16x4_f64", "__builtin_amdgcn_mfma_f64_16x16x4f64", "double",
     16, 16, 4, 256},
    {"gfx942", Element::kFloat, "v_mfma_f32_32x32x2_f32", "__builtin_amdgcn_mfma_f32_32x32x2f32", "float", 32,
     32, 2, 256},
    {"gfx942", Element::kTf32, TACHO_BUILTIN("f32_32x32x4_xf32"), "float 2", 32, 32, 4, 1024},
    {"gfx942", Element::kHalf, "v_mfma_f32_32x32x8_f16", "__builtin_amdgcn_mfma_f32_32x32x8f16", "half 4", 32,
     32, 8, 2048},
    {"gfx942", Element::kBfloat, "v_mfma_f32_32x32x8_bf16", "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k",
     "short 4", 32, 32, 8, 2048},
    {"gfx942", Element::kE4m3Fnuz, TACHO_BUILTIN("f32_32x32x16_fp8_fp8"), "long", 32, 32, 16, 4096},
    {"gfx942", Element::kInt8, TACHO_BUILTIN("i32_32x32x16_i8"), "long", 32, 32, 16, 4096},

    {"gfx950", Element::kDouble, "v_mfma_f64_16x16x4_f64", "__builtin_amdgcn_mfma_f64_16x16x4f64", "double",
     16, 16, 4, 128},
    {"gfx950", Element::kFloat, "v_mfma_f32_32x32x2_f32", "__builtin_amdgcn_mfma_f32_32x32x2f32", "float", 32,
     32, 2, 256},
    {"gfx950", Element::kHalf, TACHO_BUILTIN("f32_32x32x16_f16"), "half 8", 32, 32, 16, 4096},
    {"gfx950", Element::kBfloat, TACHO_BUILTIN("f32_32x32x16_bf16"), "__bf16 8", 32, 32, 16, 4096},
    {"gfx950", Element::kE4m3, "v_mfma_f32_32x32x64_f8f6f4",
     "__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4", "int 8", 32, 32, 64, 8192},
    {"gfx950", Element::kInt8, TACHO_BUILTIN("i32_32x32x32_i8"), "int 4", 32, 32, 32, 8192},
}};
#undef TACHO_BUILTIN

constexpr std::string_view kText = R"(// {instruction}
#ifndef __has_builtin
#error "{unknown}{builtin}"
#elif !__has_builtin({builtin})
#error "{unknown}{builtin}"
#endif
{extension}
typedef {words} WORDS;
typedef {operand} OPERAND{operand_vector};
typedef {accumulator} ACCUMULATOR __attribute__((ext_vector_type({results})));
#define ADD_PRODUCT(c, b) c = {builtin}(a, b, c, {modifiers})

kernel __attribute__((reqd_work_group_size({group}, 1, 1)))
void {entry}(global const WORDS* restrict table, global ACCUMULATOR* restrict out, global ulong* restrict times,
             uint count) {{
  const ulong from = __builtin_amdgcn_s_memrealtime(), first = __builtin_amdgcn_s_memtime();
  const uint item = (uint)get_global_id(0) % {items};
  const uint at = item * {loads};
  const OPERAND a = __builtin_astype(table[at % {table}], OPERAND);
{load_b}
  ACCUMULATOR {zero_c};
  for (uint i = 0; i < count; ++i) {{
#pragma unroll
    for (int u = 0; u < {unroll}; ++u) {{
{steps}
    }}
  }}
{store_c}
  if (get_local_id(0) == 0) {{
    global ulong* const to = times + 3 * get_group_id(0);
    to[0] = __builtin_amdgcn_s_memtime() - first;
    to[1] = from;
    to[2] = __builtin_amdgcn_s_memrealtime();
  }}
}}
)";

}  // namespace

std::span<const MfmaKind> mfma_kinds() {
  return kKinds;
}

std::string mfma_source(const MfmaKind& kind) {
  const size_t space = kind.operand.find(' ');
  const std::string words = kind.operand_words() == 1 ? "uint" : fmt::format("uint{}", kind.operand_words());
  std::string load_b, zero_c, steps, store_c;
  for (uint32_t t = 0; t < kMfmaTiles; ++t) {
    load_b += fmt::format("{}  const OPERAND b{} = __builtin_astype(table[(at + {}) % {}], OPERAND);",
                          t == 0 ? "" : "\n", t, t + 1, kMfmaTable);
    zero_c += fmt::format("{}c{} = (ACCUMULATOR)(0)", t == 0 ? "" : ", ", t);
    steps += fmt::format("{}      ADD_PRODUCT(c{}, b{});", t == 0 ? "" : "\n", t, t);
    store_c += fmt::format("{}  out[item * {} + {}] = c{};", t == 0 ? "" : "\n", kMfmaTiles, t, t);
  }
  using fmt::arg;
  return fmt::format(
      kText, arg("instruction", kind.instruction), arg("unknown", kMfmaUnknown), arg("builtin", kind.builtin),
      arg("extension", kind.element == Element::kHalf ? "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"
                       : kind.wide()                  ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"
                                                      : ""),
      arg("words", words), arg("operand", kind.operand.substr(0, space)),
      arg("operand_vector",
          space == std::string_view::npos
              ? std::string()
              : fmt::format(" __attribute__((ext_vector_type({})))", kind.operand.substr(space + 1))),
      arg("accumulator", kind.wide()                      ? "double"
                         : kind.element == Element::kInt8 ? "int"
                                                          : "float"),
      arg("results", kind.results()),
      // Formats of A and B (0: E4M3), then no scales; else no broadcast of A or B.
      arg("modifiers",
          kind.builtin.find("_scale_") != std::string_view::npos ? "0, 0, 0, 0, 0, 0" : "0, 0, 0"),
      arg("group", kMfmaGroup), arg("entry", kMfmaEntry), arg("items", kMfmaItems),
      arg("loads", 1 + kMfmaTiles), arg("table", kMfmaTable), arg("load_b", load_b), arg("zero_c", zero_c),
      arg("unroll", kMfmaUnroll), arg("steps", steps), arg("store_c", store_c));
}

std::string gfx_of(std::string_view name) {
  const size_t at = name.find("gfx");
  if (at == std::string_view::npos) return {};
  size_t end = at + 3;
  while (end < name.size() && std::isxdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  return end - at < 6 ? std::string() : std::string(name.substr(at, end - at));
}

double amd_per_cycle(std::string_view architecture, std::string_view what) {
  struct Row {
    std::string_view architecture;
    double fp32, fp64;
  };
  static constexpr std::array<Row, 4> kRows = {
      {{"gfx908", 128, 64}, {"gfx90a", 256, 128}, {"gfx942", 256, 128}, {"gfx950", 256, 128}}};
  for (const Row& row : kRows)
    if (row.architecture == architecture)
      return what == "fp32" ? row.fp32 : what == "fp64" ? row.fp64 : kUnknown;
  return kUnknown;
}

AmdCaches amd_caches(std::string_view architecture) {
  constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
  if (architecture == "gfx908" || architecture == "gfx90a") return {16 * kKiB, 8 * kMiB, 8 * kMiB};
  if (architecture == "gfx942" || architecture == "gfx950") return {32 * kKiB, 4 * kMiB, 256 * kMiB};
  return {};
}

}  // namespace tacho::roofline
