// What the names of libraries' kernels tell of what they do.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "efficiency/inputs.h"

namespace tacho::efficiency {

/// Rows and columns of the result that a workgroup makes; which is which differs between libraries.
struct ResultTile {
  double rows = 0, columns = 0;
};

/// The tile of a matrix product's kernel: Tensile's MT256x128x64, cuBLAS's tilesize128x128x64, nvjet's _144x128_,
/// CUTLASS's _128x64_.
std::optional<ResultTile> tile_of(std::string_view kernel);

/// Into how many workgroups the sums of one tile are divided (Tensile's GSU4); 1 where the name tells none.
int splits_of(std::string_view kernel);

/// The elements of a head that an attention kernel computes with, padding included: FlashAttention's
/// Flash_fwd_kernel_traits<96, ...>, and the sixth number of Composable Kernel's TileFmhaShape.
std::optional<int64_t> head_elements_of(std::string_view kernel);

/// Whether it puts data into another layout: transposes, im2col, NCHW to NHWC.
bool moves_layout(std::string_view kernel);

/// The type of the elements that a matrix product's kernel reads, where its name tells: "bf16bf16", "sgemm", Tensile's
/// _BBS_, nvjet_tst. kUnknown for others.
Precision elements_of(std::string_view kernel);

/// The elements of the lists that a kernel works on: multi_tensor_apply's by the type of its functor, those that cat
/// joins by their size. A copy into another type has two: of the list that is written and of the one that is read.
struct ListElements {
  ElementType first, second;
  bool known() const { return first.bytes > 0; }
  auto operator<=>(const ListElements&) const = default;
};
/// Not known() where the name tells none.
ListElements list_elements_of(std::string_view kernel);

/// Whether a product of 32-bit numbers is computed with fewer bits: TF32, or XF32 of AMD.
bool computes_tf32(std::string_view kernel);

}  // namespace tacho::efficiency
