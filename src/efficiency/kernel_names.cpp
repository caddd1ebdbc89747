// Reads kernels' names (kernel_names.h).
#include "efficiency/kernel_names.h"

#include <algorithm>
#include <charconv>

namespace tacho::efficiency {

namespace {

bool contains(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

// "12x34" at `at`; the characters it takes are added to `at`.
std::optional<ResultTile> tile_at(std::string_view text, size_t at) {
  unsigned rows = 0, columns = 0;
  const char *const from = text.data() + at, *const end = text.data() + text.size();
  const auto first = std::from_chars(from, end, rows);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != 'x') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, columns);
  if (second.ec != std::errc{} || rows < 8 || columns < 8 || rows > 1024 || columns > 1024) return std::nullopt;
  return ResultTile{static_cast<double>(rows), static_cast<double>(columns)};
}

// The first of a template's arguments; `rest` begins behind its "<", and then behind the argument.
std::string_view next_argument(std::string_view& rest) {
  size_t depth = 0, end = 0;
  for (; end < rest.size(); ++end) {
    if (rest[end] == '<') ++depth;
    if ((rest[end] == ',' || rest[end] == '>') && depth == 0) break;
    if (rest[end] == '>') --depth;
  }
  std::string_view argument = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  while (argument.starts_with(' ')) argument.remove_prefix(1);
  return argument;
}

// An element of a list by its name in a template: "float", "at::native::(anonymous namespace)::OpaqueType<2u>".
ElementType list_element(std::string_view name) {
  constexpr std::string_view kOpaque = "OpaqueType<";
  if (const size_t at = name.find(kOpaque); at != std::string_view::npos) {
    int bytes = 0;
    const auto [end, error] = std::from_chars(name.data() + at + kOpaque.size(), name.data() + name.size(), bytes);
    if (error != std::errc{} || bytes < 1 || bytes > 16) return {};
    return {Precision::kOther, bytes};
  }
  return element_type(name);
}

}  // namespace

std::optional<ResultTile> tile_of(std::string_view name) {
  for (const std::string_view before : {"_MT", "tilesize"})
    if (const size_t at = name.find(before); at != std::string_view::npos)
      if (const auto tile = tile_at(name, at + before.size())) return tile;
  if (!contains(name, "gemm") && !contains(name, "nvjet") && !contains(name, "cutlass")) return std::nullopt;
  for (size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1))
    if (const auto tile = tile_at(name, at + 1)) return tile;
  return std::nullopt;
}

int splits_of(std::string_view name) {
  // "_GSU4_"; "GSUAMBSK" is how its parts are added.
  for (size_t at = name.find("_GSU"); at != std::string_view::npos; at = name.find("_GSU", at + 1)) {
    int splits = 0;
    const char* const from = name.data() + at + 4;
    if (std::from_chars(from, name.data() + name.size(), splits).ec == std::errc{} && splits >= 1 && splits <= 1024)
      return splits;
  }
  return 1;
}

std::optional<int64_t> head_elements_of(std::string_view name) {
  const auto number_at = [&](size_t at) -> std::optional<int64_t> {
    if (name.substr(at).starts_with("(int)")) at += 5;
    int64_t value = 0;
    const bool read = std::from_chars(name.data() + at, name.data() + name.size(), value).ec == std::errc{};
    return read && value >= 8 && value <= 1024 ? std::optional(value) : std::nullopt;
  };
  for (const std::string_view before :
       {"Flash_fwd_kernel_traits<", "Flash_bwd_kernel_traits<", "Flash_kernel_traits<", "flash_fwd_hdim"})
    if (const size_t at = name.find(before); at != std::string_view::npos) return number_at(at + before.size());
  size_t at = name.find("TileFmhaShape<");
  if (at != std::string_view::npos) at = name.find("sequence<", at);
  for (int comma = 0; comma < 5 && at != std::string_view::npos; ++comma) at = name.find(',', at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  return number_at(name.find_first_not_of(", ", at));
}

bool moves_layout(std::string_view name) {
  for (const std::string_view word : {"transpose", "nchwtonhwc", "nhwctonchw", "convert_layout", "im2col", "col2im",
                                      "SubTensorOp", "Im2d2Col", "tensorTransform"})
    if (contains(name, word)) return true;
  return false;
}

Precision elements_of(std::string_view kernel) {
  struct Word {
    std::string_view word;
    Precision precision;
  };
  // The first that fits counts: "f16" is a part of "bf16".
  static constexpr Word kWords[] = {
      {"bf16", Precision::kBF16},  {"bfloat16", Precision::kBF16}, {"nvjet_tst", Precision::kBF16},
      {"_bbs_", Precision::kBF16}, {"_b_bs_", Precision::kBF16},   {"nvjet_hsh", Precision::kF16},
      {"_hhs_", Precision::kF16},  {"_h_hs_", Precision::kF16},    {"hgemm", Precision::kF16},
      {"fp16", Precision::kF16},   {"f16f16", Precision::kF16},    {"_f16_", Precision::kF16},
      {"::half", Precision::kF16}, {"dgemm", Precision::kF64},     {"f64f64", Precision::kF64},
      {"_db_", Precision::kF64},   {"_d_b_", Precision::kF64},     {"sgemm", Precision::kF32},
      {"f32f32", Precision::kF32}, {"tf32", Precision::kF32},      {"nvjet_sss", Precision::kF32},
      {"_sb_", Precision::kF32},   {"_s_b_", Precision::kF32}};
  for (const Word& each : kWords)
    if (contains(kernel, each.word)) return each.precision;
  return Precision::kUnknown;
}

ListElements list_elements_of(std::string_view kernel) {
  const auto behind = [&](std::string_view word, size_t from) {
    const size_t at = kernel.find(word, from);
    return at == std::string_view::npos ? at : at + word.size();
  };
  if (size_t at = behind("multi_tensor_apply_kernel<", 0); at != std::string_view::npos) {
    const size_t from = behind("Functor<", at);
    if (from == std::string_view::npos) return {};
    const bool converts = kernel.substr(0, from).ends_with("::CopyFunctor<");
    std::string_view rest = kernel.substr(from);
    const ElementType first = list_element(next_argument(rest));
    const ElementType second = converts ? list_element(next_argument(rest)) : first;
    return second.bytes > 0 ? ListElements{first, second} : ListElements();
  }
  if (size_t at = kernel.find("CatArrayBatchedCopy"); at != std::string_view::npos) {
    const size_t from = behind("<", at);
    if (from == std::string_view::npos) return {};
    std::string_view rest = kernel.substr(from);
    const ElementType type = list_element(next_argument(rest));
    return {type, type};
  }
  return {};
}

bool computes_tf32(std::string_view kernel) {
  for (const std::string_view word : {"tf32", "xf32", "s1688", "_xfloat32_"})
    if (contains(kernel, word)) return true;
  return false;
}

}  // namespace tacho::efficiency
