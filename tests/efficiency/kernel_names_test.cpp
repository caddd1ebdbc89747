// Tiles and layouts in names of kernels that libraries have.
#include "efficiency/kernel_names.h"

#include <gtest/gtest.h>

namespace tacho::efficiency {
namespace {

std::pair<double, double> tile(std::string_view name) {
  const auto found = tile_of(name);
  return found ? std::pair(found->rows, found->columns) : std::pair(0.0, 0.0);
}

TEST(KernelNames, TellTheTile) {
  EXPECT_EQ(tile("Cijk_Ailk_Bljk_BBS_BH_Bias_AS_SAV_UserArgs_MT256x128x64_MI16x16x1_SN"), std::pair(256.0, 128.0));
  EXPECT_EQ(tile("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"),
            std::pair(128.0, 128.0));
  EXPECT_EQ(tile("nvjet_tst_144x128_64x5_2x1_v_bz_TNT"), std::pair(144.0, 128.0));
  EXPECT_EQ(tile("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_128x64_64x2_tn"), std::pair(128.0, 64.0));
  EXPECT_EQ(tile("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"),
            std::pair(0.0, 0.0));
  EXPECT_EQ(tile("gemm_9999999999999x1_"), std::pair(0.0, 0.0));
  EXPECT_EQ(tile("gemm_"), std::pair(0.0, 0.0));
}

TEST(KernelNames, TellLayoutsAndPrecision) {
  EXPECT_TRUE(moves_layout("batched_transpose_32x32_half"));
  EXPECT_TRUE(moves_layout("void cudnn::engines_precompiled::nchwToNhwcKernel<float>"));
  EXPECT_FALSE(moves_layout("sm90_xmma_fprop_implicit_gemm"));
  EXPECT_TRUE(computes_tf32("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16"));
  EXPECT_FALSE(computes_tf32("ampere_sgemm_128x64_nn"));
}

TEST(KernelNames, TellTheTypeOfElements) {
  EXPECT_EQ(elements_of("Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT16x16x256"), Precision::kBF16);
  EXPECT_EQ(elements_of("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64"), Precision::kBF16);
  EXPECT_EQ(elements_of("Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128"), Precision::kF32);
  EXPECT_EQ(elements_of("Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16"), Precision::kF32);
  EXPECT_EQ(elements_of("Cijk_Ailk_Bljk_HHS_BH_Bias_AS_SAV_MT128x128x32"), Precision::kF16);
  EXPECT_EQ(elements_of("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"), Precision::kBF16);
  EXPECT_EQ(elements_of("cutlass_80_simt_sgemm_128x32_8x5_nn_align1"), Precision::kF32);
  EXPECT_EQ(elements_of("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16"), Precision::kF32);
  EXPECT_EQ(elements_of("nvjet_tst_144x128_64x5_2x1_v_bz_TNT"), Precision::kBF16);
  EXPECT_EQ(elements_of("triton_mm_kernel"), Precision::kUnknown);
}

TEST(KernelNames, TellTheElementsOfLists) {
  const ElementType f32 = {Precision::kF32, 4}, bf16 = {Precision::kBF16, 2};
  const auto apply = [](std::string_view functor) {
    return list_elements_of(
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
        "TensorListScalarListMetadata<double, 2>, at::native::(anonymous namespace)::" +
        std::string(functor) + ">(at::native::(anonymous namespace)::TensorListMetadata<2>)");
  };
  EXPECT_EQ(apply("BinaryOpListAlphaFunctor<c10::BFloat16, 2, 2, 0>, std::plus<float>, float"),
            (ListElements{bf16, bf16}));
  EXPECT_EQ(apply("FusedAdamMathFunctor<float, 4, (at::native::(anonymous namespace)::ADAM_MODE)1, false>"),
            (ListElements{f32, f32}));
  EXPECT_EQ(apply("UnaryOpFunctor<c10::complex<float>, 1, 1, 0>").first.bytes, 8);
  // A copy into another type names the written one first.
  EXPECT_EQ(apply("CopyFunctor<float, c10::BFloat16, 2, 1, 1>, Copy<float, float>"), (ListElements{f32, bf16}));
  EXPECT_FALSE(apply("CopyFunctor<float, Unheard, 2, 1, 1>").known());
  EXPECT_FALSE(apply("CopyFunctor<float").known());
  EXPECT_FALSE(apply("SomeFunctor<Unheard, 2>").known());
  EXPECT_FALSE(apply("Functor<").known());
  const auto cat = [](std::string_view type) {
    return list_elements_of("void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<" + std::string(type));
  };
  EXPECT_EQ(cat("at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 1, 128, 1>").first.bytes, 2);
  EXPECT_EQ(cat("float, unsigned int, 4, 64, 64>").first, f32);
  for (const std::string_view wrong : {"OpaqueType<0u>, int>", "OpaqueType<99999999999u>", "OpaqueType<", "", "<<<<"})
    EXPECT_FALSE(cat(wrong).known()) << wrong;
  EXPECT_FALSE(list_elements_of("void at::native::vectorized_elementwise_kernel<4, Functor<float>>").known());
}

TEST(KernelNames, TellSplitsAndHeads) {
  EXPECT_EQ(splits_of("Cijk_Ailk_Bljk_BBS_BH_GSUAMBSK_MT256x128x64_GSU4_NTA0"), 4);
  EXPECT_EQ(splits_of("Cijk_Ailk_Bljk_BBS_BH_GSUAMBSK_MT256x128x64"), 1);
  EXPECT_EQ(splits_of("_GSU99999999999"), 1);
  EXPECT_EQ(splits_of(""), 1);
  EXPECT_EQ(head_elements_of("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<96, 128, 64, 4, false>>"),
            96);
  EXPECT_EQ(
      head_elements_of("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<(int)192, (int)64>>"),
      192);
  EXPECT_EQ(
      head_elements_of("ck_tile::FmhaFwdKernel<ck_tile::TileFmhaShape<ck_tile::sequence<128, 64, 16, 128, 32, 256>"),
      256);
  EXPECT_EQ(head_elements_of("TileFmhaShape<ck_tile::sequence<128, 64"), std::nullopt);
  EXPECT_EQ(head_elements_of("TileFmhaShape<"), std::nullopt);
  EXPECT_EQ(head_elements_of("Flash_fwd_kernel_traits<"), std::nullopt);
  EXPECT_EQ(head_elements_of("Flash_fwd_kernel_traits<Type, 3>"), std::nullopt);
  EXPECT_EQ(head_elements_of("attn_fwd.kd"), std::nullopt);
}

}  // namespace
}  // namespace tacho::efficiency
