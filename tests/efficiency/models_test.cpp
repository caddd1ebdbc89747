// CallWork of operators against figures worked out by hand, and inputs that contradict themselves.
#include "efficiency/models.h"

#include <gtest/gtest.h>

#include "efficiency/products.h"

namespace tacho::efficiency {
namespace {

std::vector<OperatorArgument> inputs(std::string_view dims, std::string_view types, std::string_view concrete = "",
                                     std::string_view strides = "") {
  auto read = read_inputs(dims, types, strides, concrete);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? *read : std::vector<OperatorArgument>();
}

const Models& models() {
  static const Models built_in = [] {
    auto read = Models::load();
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return std::move(*read);
  }();
  return built_in;
}

TEST(Models, MatrixProducts) {
  const auto work =
      models().work("aten::mm", inputs("[[8, 4096], [4096, 1024]]", R"(["c10::BFloat16", "c10::BFloat16"])"));
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->flops, 2.0 * 8 * 4096 * 1024);
  EXPECT_DOUBLE_EQ(work->bytes, 2.0 * (8 * 4096 + 4096 * 1024 + 8 * 1024));
  EXPECT_TRUE(work->matrix);
  EXPECT_EQ(work->precision, Precision::kBF16);
  EXPECT_EQ(work->output[0], 8);
  EXPECT_EQ(work->output[1], 1024);
  const auto batched = models().work("aten::bmm", inputs("[[3, 8, 16], [3, 16, 5]]", R"(["float", "float"])"));
  ASSERT_TRUE(batched);
  EXPECT_DOUBLE_EQ(batched->flops, 2.0 * 3 * 8 * 16 * 5);
  // aten::addmm with a bias of one row adds once for each element of the result.
  const auto biased = models().work(
      "aten::addmm", inputs("[[10], [4, 6], [6, 10], [], []]", R"(["float", "float", "float", "Scalar", "Scalar"])",
                            R"(["", "", "", "1", "1"])"));
  ASSERT_TRUE(biased);
  EXPECT_DOUBLE_EQ(biased->flops, 2.0 * 4 * 6 * 10 + 40);
}

TEST(Models, ConvolutionsCountTheOutputsPixels) {
  // ResNet's first: 3 to 64 channels, 7 x 7, stride 2, padding 3: 224 -> 112.
  const auto first = models().work(
      "aten::miopen_convolution",
      inputs("[[10, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []]",
             R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "Scalar", "Scalar"])",
             R"(["", "", "", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False"])"));
  ASSERT_TRUE(first);
  EXPECT_DOUBLE_EQ(first->flops, 2.0 * 10 * 64 * 112 * 112 * 3 * 49);
  EXPECT_DOUBLE_EQ(first->bytes, 4.0 * (10 * 3 * 224 * 224 + 64 * 3 * 49 + 10 * 64 * 112 * 112));
  // Both gradients of the same layer cost as much as the layer twice; one of them once.
  const auto backward = [&](std::string_view mask) {
    return models().work(
        "aten::convolution_backward",
        inputs(
            "[[10, 64, 112, 112], [10, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], [], []]",
            R"(["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", "ScalarList"])",
            std::string(R"(["", "", "", "[0]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1", ")") +
                std::string(mask) + "\"]"));
  };
  ASSERT_TRUE(backward("[True, True, False]"));
  EXPECT_DOUBLE_EQ(backward("[True, True, False]")->flops, 2 * first->flops);
  EXPECT_DOUBLE_EQ(backward("[False, True, False]")->flops, first->flops);
  // A transposed convolution works on each input pixel.
  const auto transposed = models().work(
      "aten::convolution",
      inputs("[[2, 8, 5, 5], [8, 4, 3, 3], [], [], [], [], [], [], []]",
             R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"])",
             R"(["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"])"));
  ASSERT_TRUE(transposed);
  EXPECT_DOUBLE_EQ(transposed->flops, 2.0 * 2 * 8 * 25 * 4 * 9);
  EXPECT_DOUBLE_EQ(transposed->bytes, 4.0 * (2 * 8 * 25 + 8 * 4 * 9 + 2 * 4 * 11 * 11));
}

TEST(Models, AttentionCountsWhatACausalMaskLeaves) {
  const auto attention = [](std::string_view causal) {
    return models().work(
        "aten::_flash_attention_forward",
        inputs("[[2, 100, 4, 64], [2, 100, 4, 64], [2, 100, 4, 64], [], [], [], [], [], []]",
               R"(["c10::Half", "c10::Half", "c10::Half", "", "", "Scalar", "Scalar", "Scalar", "Scalar"])",
               std::string(R"(["", "", "", "", "", "100", "100", "0.", ")") + std::string(causal) + "\"]"));
  };
  ASSERT_TRUE(attention("False"));
  const double whole = 2.0 * 2 * 4 * 100 * 100 * (64 + 64);
  EXPECT_DOUBLE_EQ(attention("False")->flops, whole);
  EXPECT_DOUBLE_EQ(attention("True")->flops, whole * 101 / 200);
  // Sequences of several lengths leave it open.
  EXPECT_FALSE(models().work(
      "aten::_flash_attention_forward",
      inputs("[[200, 4, 64], [200, 4, 64], [200, 4, 64], [3], [3], [], [], [], []]",
             R"(["c10::Half", "c10::Half", "c10::Half", "int", "int", "Scalar", "Scalar", "Scalar", "Scalar"])",
             R"(["", "", "", "", "", "100", "100", "0.", "True"])")));
}

TEST(Models, ElementwiseReadsBroadcastInputsOnce) {
  const auto work = models().work("aten::mul", inputs("[[16, 559, 1024], [16, 559, 1]]", R"(["float", "float"])"));
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->bytes, 4.0 * (2 * 16 * 559 * 1024 + 16 * 559));
  EXPECT_FALSE(work->matrix);
  // A dimension of stride 0 is one element in memory.
  const auto expanded =
      models().work("aten::mul", inputs("[[100, 64], [100, 64]]", R"(["float", "float"])", "", "[[64, 1], [0, 1]]"));
  ASSERT_TRUE(expanded);
  EXPECT_DOUBLE_EQ(expanded->bytes, 4.0 * (2 * 6400 + 64));
}

TEST(Models, ReductionsKeepWhatIsNotReduced) {
  const auto sum = [](std::string_view list) {
    return models().work("aten::sum", inputs("[[10, 20, 30], [], [], []]", R"(["float", "ScalarList", "Scalar", ""])",
                                             std::string(R"(["", ")") + std::string(list) + R"(", "False", ""])"));
  };
  ASSERT_TRUE(sum("[0, -1]"));
  EXPECT_DOUBLE_EQ(sum("[0, -1]")->bytes, 4.0 * (6000 + 20));
  EXPECT_DOUBLE_EQ(sum("[]")->bytes, 4.0 * (6000 + 1));
  EXPECT_FALSE(sum("[7]")) << "there is no dimension 7";
}

TEST(Models, WhatTheInputsDoNotTellHasNoWork) {
  EXPECT_FALSE(models().work("aten::mm", inputs("[[8, 4096]]", R"(["float"])")));
  EXPECT_FALSE(models().work("aten::mm", {}));
  EXPECT_FALSE(models().work("aten::mm", inputs("[[8, 9], [9, 2]]", R"(["strange", "strange"])")));
  EXPECT_FALSE(models().work("aten::mul", inputs("[[3, 4], [5, 4]]", R"(["float", "float"])"))) << "they do not fit";
  EXPECT_FALSE(models().work("my::operator", inputs("[[3, 4]]", R"(["float"])")));
  // A list of tensors without types.
  EXPECT_FALSE(
      models().work("aten::cat", inputs("[[[1, 2], [1, 2]], []]", R"(["TensorList", "Scalar"])", R"(["", "0"])")));
}

// Lists as a trace has them, with the types that kernels' names tell.
std::vector<OperatorArgument> lists(std::string_view dims, std::string_view types) {
  auto read = inputs(dims, types);
  for (OperatorArgument& input : read)
    for (Tensor& tensor : input.tensors) tensor.type = {Precision::kF32, 4};
  return read;
}

TEST(Models, ListsAreSummedUp) {
  constexpr double kElements = 128 * 128 + 128;
  const std::string_view two = R"(["TensorList", "TensorList", "Scalar"])";
  const std::string list = "[[128, 128], [128]]";
  const auto of = [&](std::string_view name, std::string_view dims, std::string_view types) {
    return models().work(name, lists(dims, types));
  };
  const auto added = of("aten::_foreach_add_", "[" + list + ", " + list + ", []]", two);
  ASSERT_TRUE(added);
  EXPECT_DOUBLE_EQ(added->flops, kElements);
  EXPECT_DOUBLE_EQ(added->bytes, 3 * 4 * kElements);
  EXPECT_EQ(added->precision, Precision::kF32);
  EXPECT_FALSE(added->matrix);
  const auto scaled = of("aten::_foreach_mul_", "[" + list + ", []]", R"(["TensorList", "Scalar"])");
  ASSERT_TRUE(scaled);
  EXPECT_DOUBLE_EQ(scaled->bytes, 2 * 4 * kElements);
  // Adam squares gradients: both factors may be one list.
  const auto squared = of("aten::_foreach_addcmul_", "[" + list + ", " + list + ", " + list + ", []]",
                          R"(["TensorList", "TensorList", "TensorList", "Scalar"])");
  ASSERT_TRUE(squared);
  EXPECT_DOUBLE_EQ(squared->bytes, 3 * 4 * kElements);
  EXPECT_DOUBLE_EQ(squared->bytes_most, 4 * 4 * kElements);
  const auto adam = [&](std::string_view most) {
    const std::string dims =
        "[" + list + ", " + list + ", " + list + ", " + list + ", " + std::string(most) + ", [[], []], [], []]";
    return of(
        "aten::_fused_adamw_", dims,
        R"(["TensorList", "TensorList", "TensorList", "TensorList", "TensorList", "TensorList", "Scalar", "Scalar"])");
  };
  ASSERT_TRUE(adam("[]"));
  EXPECT_DOUBLE_EQ(adam("[]")->bytes, 7 * 4 * kElements);
  EXPECT_DOUBLE_EQ(adam(list)->bytes, 9 * 4 * kElements) << "the maxima of amsgrad are read and written, too";
  const auto momentum = of("aten::_fused_sgd_", "[" + list + ", " + list + ", " + list + ", []]",
                           R"(["TensorList", "TensorList", "TensorList", "Scalar"])");
  ASSERT_TRUE(momentum);
  EXPECT_DOUBLE_EQ(momentum->bytes, 5 * 4 * kElements);
  // Without types or without sizes there is no work, and what lacks is told.
  EXPECT_FALSE(models().work("aten::_foreach_add_", inputs("[[[8]], [[8]], []]", two)));
  const auto unsized = inputs("[[], [], []]", two);
  EXPECT_FALSE(models().work("aten::_foreach_add_", unsized));
  EXPECT_TRUE(models().lacks_sizes("aten::_foreach_add_", unsized));
  EXPECT_FALSE(models().lacks_sizes("aten::_foreach_add_", inputs("[[[8]], [[8]], []]", two)));
  EXPECT_FALSE(models().lacks_sizes("aten::mm", unsized));
  // One list without sizes beside one with them is a contradiction.
  EXPECT_FALSE(
      of("aten::_foreach_addcmul_", "[" + list + ", [], []]", R"(["TensorList", "TensorList", "TensorList"])"));
}

TEST(Models, AFactorThatMayBeTheOtherIsARange) {
  const auto work = models().work(
      "aten::addcmul_", inputs("[[64, 32], [64, 32], [64, 32], []]", R"(["float", "float", "float", "Scalar"])"));
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->bytes, 3.0 * 4 * 64 * 32);
  EXPECT_DOUBLE_EQ(work->bytes_most, 4.0 * 4 * 64 * 32);
}

TEST(Models, ExpertsAreARange) {
  const auto work = models().work("vllm::inplace_fused_experts",
                                  inputs("[[4, 64], [8, 32, 64], [8, 64, 16], [4, 2], [4, 2]]",
                                         R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "float", "int"])"));
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->flops, 2.0 * 4 * 2 * 64 * (32 + 16));
  EXPECT_LT(work->bytes, work->bytes_most);
}

TEST(Inputs, RefusesWhatContradictsItself) {
  EXPECT_FALSE(read_inputs("[[-3, 4]]", R"(["float"])", "", ""));
  EXPECT_FALSE(read_inputs("[[3, 4]]", R"(["float"])", "[[4, 1, 1]]", ""));
  EXPECT_FALSE(read_inputs("[[3.5]]", R"(["float"])", "", ""));
  EXPECT_FALSE(read_inputs("not JSON", "", "", ""));
  EXPECT_FALSE(read_inputs("[[1e300]]", R"(["float"])", "", ""));
  EXPECT_FALSE(read_inputs(std::string(100'000, '['), "", "", ""));
  std::string many = "[";
  for (int i = 0; i < 100'000; ++i) many += "1,";
  EXPECT_FALSE(read_inputs(many + "1]", "", "", ""));
  EXPECT_TRUE(read_inputs("[[], [s0, 4]]", "", "", "") ? false : true) << "symbolic shapes are no numbers";
  EXPECT_TRUE(read_inputs("", "", "", ""));
}

TEST(Models, FilesOfUsersAreCheckedAndComeFirst) {
  const auto read = Models::parse(
      "models:\n  - {operators: [my::op], engine: vector, type: 0, flops: 3 * n0, bytes: t0, source: mine}\n",
      "operators.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_DOUBLE_EQ(read->work("my::op", inputs("[[7]]", R"(["float"])"))->flops, 21);
  for (const auto& [text, said] :
       {std::pair("models: [{operators: [a]}]", "lacks \"engine\""),
        std::pair("models: [{operators: [a], engine: gpu, type: 0, flops: 1, bytes: 1, source: s}]", "must be one of"),
        std::pair("models: [{operators: [a], engine: matrix, type: 0, flops: 1 +, bytes: 1, source: s}]", "expected"),
        std::pair("other: 1", "other")}) {
    const auto wrong = Models::parse(text, "operators.yaml");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find(said), std::string::npos) << wrong.error().message;
    EXPECT_EQ(wrong.error().message.find("operators.yaml:1:"), 0u) << wrong.error().message;
  }
}

TEST(Products, AreFoundByNameOrByWhatTheyAre) {
  const auto products = Products::load();
  ASSERT_TRUE(products) << products.error().message;
  const auto name = [&](std::string_view device, int64_t units = 0, double memory = 0) {
    const Product* const found = products->find(device, units, memory);
    return found == nullptr ? std::string() : found->name;
  };
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "H100 SXM");
  EXPECT_EQ(name("NVIDIA H100 PCIe"), "H100 PCIe");
  EXPECT_EQ(name("NVIDIA H200"), "H200");
  EXPECT_EQ(name("NVIDIA A100-SXM4-40GB"), "A100 40 GB");
  EXPECT_EQ(name("AMD Instinct MI250X/MI250"), "one die of an MI250X");
  EXPECT_EQ(name("AMD Instinct MI300X VF"), "MI300X");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "RTX 4090");
  EXPECT_EQ(name("AMD Radeon Graphics", 304, 206), "MI300X");
  EXPECT_EQ(name("AMD Radeon Graphics", 304, 274), "MI325X");
  EXPECT_EQ(name("AMD Radeon Graphics"), "");
  EXPECT_EQ(name("", 12, 3), "");
  EXPECT_EQ(name("NVIDIA GeForce GTX 1080"), "");
  EXPECT_EQ(products->named("mi300x")->name, "MI300X");
  EXPECT_EQ(products->named("h100 sxm")->name, "H100 SXM");
  EXPECT_EQ(products->named("warp drive"), nullptr);
}

TEST(Products, HaveTheLinkToTheirHost) {
  const auto products = Products::load();
  ASSERT_TRUE(products);
  EXPECT_EQ(products->named("MI300X")->host_link, "PCIe 5.0 x16");
  EXPECT_EQ(products->named("MI300X")->host_rate, 63);
  EXPECT_EQ(products->named("A100 SXM 80 GB")->host_rate, 31.5);
  EXPECT_EQ(products->named("MI300A")->host_link, "") << "it is its own host";
  EXPECT_FALSE(Products::parse("links: [{link: A}]\nproducts: []", "p"));
  EXPECT_FALSE(Products::parse("products: [{product: P, names: [P], units: 1, matrix: {}, vector: {}, bandwidth: 1, "
                               "host-link: Rope, source: s}]",
                               "p"));
}

TEST(Inputs, TakesListsAndTypesThatItDoesNotKnow) {
  const auto lists = inputs("[[[1024], [64, 64]], [], [[]]]", R"([["float", "Unheard"], "TensorList", ["float"]])");
  ASSERT_EQ(lists.size(), 3u);
  EXPECT_TRUE(lists[0].list);
  ASSERT_EQ(lists[0].tensors.size(), 2u);
  EXPECT_EQ(lists[0].tensors[1].type.precision, Precision::kUnknown);
  EXPECT_TRUE(lists[1].list && lists[1].tensors.empty());
  // An element of unknown size has no bytes, so there is no work; nothing is taken for 4 bytes.
  EXPECT_FALSE(models().work("aten::mm", inputs("[[8, 4], [4, 2]]", R"(["Unheard", "Unheard"])")));
  EXPECT_FALSE(models().work("aten::mm", inputs("[[8, 4]]", R"(["float"])")));
  EXPECT_FALSE(models().work("aten::mm", inputs("[[[8, 4]], [[4, 2]]]", R"([["float"], ["float"]])")));
  EXPECT_FALSE(models().work("aten::mm", inputs("[[8, 4], [5, 2]]", R"(["float", "float"])"))) << "4 is not 5";
  EXPECT_FALSE(models().work("aten::mm", {}));
  EXPECT_FALSE(read_inputs(R"([["s0", 4]])", R"(["float"])", "", ""));
  EXPECT_FALSE(read_inputs("[[[1], 2]]", R"([["float"]])", "", "")) << "a list with an entry that is no shape";
  EXPECT_FALSE(read_inputs("[[[-1]]]", R"([["float"]])", "", ""));
}

TEST(Products, PeaksAreThoseOfTheEngineAndPrecision) {
  const auto products = Products::load();
  ASSERT_TRUE(products);
  const Product& mi300x = *products->named("MI300X");
  EXPECT_DOUBLE_EQ(compute_peak(mi300x, true, Precision::kBF16)->rate, 708e12);
  EXPECT_TRUE(compute_peak(mi300x, true, Precision::kBF16)->achievable);
  EXPECT_DOUBLE_EQ(compute_peak(mi300x, true, Precision::kTF32)->rate, 653.7e12);
  const Product& h100 = *products->named("H100 SXM");
  EXPECT_DOUBLE_EQ(compute_peak(h100, true, Precision::kF32)->rate, 66.9e12) << "without tensor cores";
  EXPECT_DOUBLE_EQ(compute_peak(h100, true, Precision::kTF32)->rate, 494.7e12);
  EXPECT_FALSE(compute_peak(h100, true, Precision::kF4));
}

}  // namespace
}  // namespace tacho::efficiency
