// The matrix instructions of CDNA and their kernels (mfma.h).
#include "roofline/mfma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "metric/catalog/builtin/builtin.h"

namespace tacho::roofline {
namespace {

// In the order of metric::kElements.
constexpr Element kElementOf[] = {Element::kHalf, Element::kBfloat, Element::kTf32,  Element::kE4m3,
                                  Element::kInt8, Element::kDouble, Element::kFloat, Element::kE4m3Fnuz};
static_assert(std::size(kElementOf) == std::size(metric::kElements));

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

std::vector<MfmaKind> mfma_kinds(std::string_view architecture) {
  std::vector<MfmaKind> kinds;
  const auto facts = metric::built_in_architecture(architecture);
  if (!facts) return kinds;
  for (const metric::MatrixInstruction& one : facts->matrix) {
    const auto* const element = std::find(std::begin(metric::kElements), std::end(metric::kElements), one.element);
    kinds.push_back({facts->name, kElementOf[element - std::begin(metric::kElements)],
                     fmt::format("v_mfma_{}", one.instruction), fmt::format("__builtin_amdgcn_mfma_{}", one.builtin),
                     one.operand, one.m, one.n, one.k, one.per_cycle});
  }
  return kinds;
}

std::string mfma_architectures() {
  std::string out;
  std::vector<std::string_view> all;
  for (const std::string_view each : metric::architectures("amd"))
    if (!mfma_kinds(each).empty()) all.push_back(each);
  for (size_t i = 0; i < all.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " and " : ", ", all[i]);
  return out;
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
      arg("operand_vector", space == std::string_view::npos
                                ? std::string()
                                : fmt::format(" __attribute__((ext_vector_type({})))", kind.operand.substr(space + 1))),
      arg("accumulator", kind.wide()                      ? "double"
                         : kind.element == Element::kInt8 ? "int"
                                                          : "float"),
      arg("results", kind.results()),
      // Formats of A and B (0: E4M3), then no scales; else no broadcast of A or B.
      arg("modifiers", kind.builtin.find("_scale_") != std::string_view::npos ? "0, 0, 0, 0, 0, 0" : "0, 0, 0"),
      arg("group", kMfmaGroup), arg("entry", kMfmaEntry), arg("items", kMfmaItems), arg("loads", 1 + kMfmaTiles),
      arg("table", kMfmaTable), arg("load_b", load_b), arg("zero_c", zero_c), arg("unroll", kMfmaUnroll),
      arg("steps", steps), arg("store_c", store_c));
}

std::string gfx_of(std::string_view name) {
  const size_t at = name.find("gfx");
  if (at == std::string_view::npos) return {};
  size_t end = at + 3;
  while (end < name.size() && std::isxdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  return end - at < 6 ? std::string() : std::string(name.substr(at, end - at));
}

}  // namespace tacho::roofline
