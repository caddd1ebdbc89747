#!/usr/bin/env python3
"""Files of torch.profiler with one planted fault each, on an H100, an A100 and an MI300X: findings name exactly that fault and where
in the program it is, and nothing in the same program without it."""
import functools
import json
import random

from harness import Case, TACHO, main
from torch_file import BF16, FLOAT, GPUS, H100, HALF, WIDTH, TorchFile, train


class Planted(Case):
    def findings(self, file):
        document = json.loads(self.run_command(TACHO, "report", "findings", file.write(self.folder / "t.json"), "--output-format", "json").stdout)
        return {finding["rule"]: finding for finding in document["findings"]}

    def names(self, make, *rules, said=(), also=()):
        """`make(gpu)` has exactly the fault: the rules `rules`, in whose text all of `said` stands, and at most those of `also`."""
        for gpu in GPUS:
            with self.subTest(gpu=gpu.name):
                found = self.findings(make(gpu))
                self.assertLessEqual(set(rules), set(found), {rule: each["sentence"] for rule, each in found.items()})
                self.assertLessEqual(set(found), {*rules, *also}, {rule: each["sentence"] for rule, each in found.items()})
                text = " ".join(" ".join([each["sentence"], *each["evidence"]]) for each in found.values())
                for part in said:
                    self.assertIn(part, text)

    @staticmethod
    def trained(hook, plant, **options):
        def make(gpu):
            file = TorchFile(gpu)
            return train(file, **{hook: lambda number: plant(file, number)}, **options)
        return make


class Healthy(Planted):
    def test_a_program_without_a_fault(self):
        self.names(lambda gpu: train(TorchFile(gpu)))


class Operators(Planted):
    """Causes by shape, grid and kernel name."""

    def layer(self, plant):
        return self.trained("during", lambda file, number: plant(file))

    def below(self, plant, *said, also=()):
        self.names(self.layer(plant), "operators-below-roof", said=said, also=also)

    def test_unaligned_rows(self):
        self.below(lambda file: file.mm(8191, 4097, 4097, share=0.2), "rows of 4097 elements of 2 bytes do not begin on 16 bytes")

    def test_few_workgroups(self):
        self.below(lambda file: file.mm(256, 131072, 512, share=0.08, groups=8), "8 workgroups for", also=["small-grids"])

    def test_few_workgroups_without_a_grid(self):
        # Files of ROCm have no grid: the tile of the kernel's name and the shape tell.
        def plant(file):
            with file.op("aten::mm", [[256, 131072], [131072, 512]], [BF16, BF16]):
                file.kernel("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_GSU2_" if file.gpu.hip else
                            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x64", 2 * 256 * 131072 * 512 / file.gpu.bf16 / 0.08 * 1e6)
        self.below(plant, " workgroups for ")

    def test_few_workgroups_within_a_healthy_operator(self):
        # The operator as a whole reaches its roof's half: the other kernel may be blamed nevertheless.
        def plant(file):
            with file.op("aten::mm", [[8192, 8192], [8192, 8192]], [BF16, BF16]):
                roof = 2 * 8192 ** 3 / file.gpu.bf16 * 1e6
                file.kernel("Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_" if file.gpu.hip else "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                            roof / 0.75, 64 * file.gpu.units)
                file.kernel("splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>", roof / 2, 8)
        self.names(self.layer(plant), "small-grids", said=["splitKreduce_kernel"])

    def test_a_last_wave_that_fills_little(self):
        for share in (0.33, 0.22):
            self.below(lambda file, share=share: file.mm(4096, 4096, 4096, share=share, groups=file.gpu.units + 4), "in the last round")
        # A full last wave is no cause, and at a third of the roof no finding.
        self.names(self.layer(lambda file: file.mm(4096, 4096, 4096, share=0.33, groups=2 * file.gpu.units)))

    def test_tiles_larger_than_the_result(self):
        self.below(lambda file: file.mm(32768, 512, 8, share=0.1), "tiles of", also=["small-batch"])

    def test_few_rows(self):
        self.below(lambda file: file.mm(8, 16384, 16384, share=0.4), "with only 8 rows", also=["small-batch"])
        # At the memory's rate there is nothing to gain for one batch.
        self.names(self.layer(lambda file: [file.mm(8, 16384, 16384, share=0.85) for _ in range(4)]), "small-batch", said=["8 rows"])

    def test_padded_heads(self):
        def plant(head, kernel):
            def attention(file):
                shape = [8, 2048, 32, head]
                with file.op("aten::_flash_attention_forward", [shape] * 3 + [[]] * 12, [BF16] * 3 + ["Scalar"] * 12, [""] * 7 + ["0.", "False"] + [""] * 6):
                    file.kernel(kernel, 4 * 8 * 32 * 2048 * 2048 * head / file.gpu.bf16 / 0.35 * 1e6, 4096)
            return attention
        self.below(plant(72, "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<96, 128, 64, 4, false>>"),
                   "its heads have 72 elements, and its kernels compute with 96")
        self.below(plant(72, "attn_fwd"), "its heads have 72 elements, and its kernels compute with 96")
        self.below(plant(192, "void ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipeline<ck_tile::TileFmhaShape<ck_tile::sequence<128, 128, 32, 256, 32, 256>>>>"),
                   "its heads have 192 elements, and its kernels compute with 256")
        self.names(self.layer(plant(128, "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>")))

    def test_layouts_changed_by_a_convolution(self):
        def plant(file):
            name = "aten::miopen_convolution" if file.gpu.hip else "aten::cudnn_convolution"
            values = ["", "", ""] if file.gpu.hip else ["", ""]
            dims = [[32, 64, 112, 112], [64, 64, 3, 3]] + [[]] * 7
            with file.op(name, dims, [HALF, HALF] + [""] * 7, [*values, "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "False"][:9]):
                move = 4 * 32 * 64 * 112 * 112 / file.gpu.bandwidth / 0.5 * 1e6
                file.kernel("batched_transpose_32x32_half" if file.gpu.hip else "void cudnn::engines_precompiled::nchwToNhwcKernel<__half>", move, 8192)
                file.kernel("igemm_fwd_gtcx3_nhwc_fp16" if file.gpu.hip else "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32", move, 8192)
        self.names(self.layer(plant), "converting-operators", said=["changes the layout of data"], also=["operators-below-roof"])

    @staticmethod
    def linear(file, copy):
        with file.op("aten::linear", [[8192, 4096], [4096, 4096], [4096]], [BF16, FLOAT, FLOAT]):
            copy()
            file.mm(8192, 4096, 4096)

    def test_types_changed_in_a_product(self):
        def plant(file):
            def cast():
                for _ in range(3):
                    with file.op("aten::to", [[4096, 4096]], [FLOAT]), file.op("aten::_to_copy", [[4096, 4096]], [FLOAT]), \
                            file.op("aten::copy_", [[4096, 4096], [4096, 4096], []], [BF16, FLOAT, "Scalar"], ["", "", "False"]):
                        file.kernel("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>",
                                    6 * 4096 * 4096 / file.gpu.bandwidth / 0.8 * 1e6, 8192)
            self.linear(file, cast)
        self.names(self.layer(plant), "converting-operators", said=["aten::linear", "changes the type of data, f32 to bf16"])

    def test_layouts_changed_in_a_product(self):
        def plant(file):
            def transpose():
                with file.op("aten::contiguous", [[8192, 4096]], [BF16]), file.op("aten::clone", [[8192, 4096]], [BF16]), \
                        file.op("aten::copy_", [[8192, 4096], [8192, 4096], []], [BF16, BF16, "Scalar"], ["", "", "False"],
                                [[4096, 1], [1, 8192], []]):
                    file.kernel("void at::native::elementwise_kernel<direct_copy_kernel_cuda>", 4 * 8192 * 4096 / file.gpu.bandwidth / 0.55 * 1e6, 8192)
            self.linear(file, lambda: [transpose() for _ in range(2)])
        self.names(self.layer(plant), "converting-operators", said=["changes the layout of data"], also=["operators-below-roof"])

    def test_products_in_32_bits(self):
        def plant(file):
            file.mm(4096, 4096, 4096, share=0.8, kind=FLOAT, kernel="Cijk_Ailk_Bljk_SB_MT128x128x16_" if file.gpu.hip else "ampere_sgemm_128x128_nn")
        self.names(self.layer(plant), "products-in-f32", said=["aten::mm [[4096, 4096], [4096, 4096]]"])

    def test_attention_that_is_not_fused(self):
        def plant(file):
            q = [8, 16, 1024, 64]
            with file.op("aten::scaled_dot_product_attention", [q, q, q], [BF16] * 3), \
                    file.op("aten::_scaled_dot_product_attention_math", [q, q, q], [BF16] * 3):
                file.mm(16 * 8 * 1024, 64, 1024, share=0.8)
                with file.op("aten::_softmax", [[8, 16, 1024, 1024], [], []], [BF16, "Scalar", "Scalar"], ["", "-1", "False"]):
                    file.kernel("softmax_warp_forward", 4 * 8 * 16 * 1024 * 1024 / file.gpu.bandwidth / 0.8 * 1e6, 8192)
                file.mm(16 * 8 * 1024, 1024, 64, share=0.8)
        self.names(self.layer(plant), "unfused-attention", said=["aten::scaled_dot_product_attention [[8, 16, 1024, 64]"])

    Q, HEADS = [8, 16, 1024, 64], 8 * 16

    def by_hand(self, file, kind=BF16, mask=True):
        """As Hugging Face's "eager" attention has it."""
        scores = [8, 16, 1024, 1024]
        with file.function("nn.Module: LlamaAttention_3"):
            with file.op("aten::matmul", [self.Q, [8, 16, 64, 1024]], [kind, kind]):
                file.bmm(self.HEADS, 1024, 64, 1024, kind=kind)
            file.elementwise("aten::mul", scores)
            if mask:
                with file.op("aten::add", [scores, [8, 1, 1024, 1024], []], [kind, kind, "Scalar"], ["", "", "1"]):
                    file.kernel("void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<c10::BFloat16>>",
                                17 / 16 * 2 * 2 * self.HEADS * 1024 * 1024 / file.gpu.bandwidth / 0.75 * 1e6, 8192)
            file.softmax(scores, kind)
            with file.op("aten::matmul", [scores, self.Q], [kind, kind]):
                file.bmm(self.HEADS, 1024, 1024, 64, kind=kind)

    def test_attention_by_hand(self):
        said = ["the attention around aten::_softmax [[8, 16, 1024, 1024]] in LlamaAttention", "in 60 calls; a fused kernel at 30 to 75 % of its roof takes"]
        self.names(self.layer(self.by_hand), "unfused-attention", said=said)

        def one_product(file):
            file.bmm(self.HEADS, 1024, 64, 1024, name="aten::baddbmm")
            file.softmax([8, 16, 1024, 1024])
            with file.op("aten::einsum"):
                file.bmm(self.HEADS, 1024, 1024, 64)
        self.names(self.layer(one_product), "unfused-attention", said=["the attention around aten::_softmax [[8, 16, 1024, 1024]]"])

        def shared_keys(file):  # all heads are rows of one product
            file.bmm(8, 16 * 1024, 64, 1024)
            file.softmax([8, 16, 1024, 1024])
            file.bmm(8, 16 * 1024, 1024, 64)
        self.names(self.layer(shared_keys), "unfused-attention")

        def on_its_side(file):  # as autoencoders of latent diffusion have it: values times scores
            file.bmm(8, 4096, 512, 4096)
            file.softmax([8, 4096, 4096])
            file.bmm(8, 512, 4096, 4096)
        self.names(self.layer(on_its_side), "unfused-attention")

    def test_all_of_attention_by_hand_counts(self):
        """The time of the finding is that of the products, softmax and what lies between, forwards and backwards."""
        def part(file):
            self.by_hand(file)
            file.elementwise("aten::mul", self.Q)  # queries are no scores
            with file.op("autograd::engine::evaluate_function: BmmBackward0"), file.op("BmmBackward0"):
                file.bmm(self.HEADS, 1024, 1024, 64)
                file.bmm(self.HEADS, 64, 1024, 1024)
            with file.op("autograd::engine::evaluate_function: SoftmaxBackward0"), file.op("SoftmaxBackward0"), \
                    file.op("aten::_softmax_backward_data", [[8, 16, 1024, 1024]] * 2 + [[], []], [BF16, BF16, "Scalar", "Scalar"], ["", "", "-1", "15"]):
                file.kernel("softmax_warp_backward", 6 * self.HEADS * 1024 * 1024 / file.gpu.bandwidth / 0.8 * 1e6, 8192)
        for gpu in GPUS:
            with_it, without = TorchFile(gpu), TorchFile(gpu)
            train(with_it, during=lambda number: part(with_it))
            train(without, during=lambda number: without.elementwise("aten::mul", self.Q))
            times = [sum(event["dur"] for event in file.events if event["cat"] == "kernel") for file in (with_it, without)]
            found = self.findings(with_it)["unfused-attention"]
            self.assertTrue(found["sentence"].startswith(f"{(times[0] - times[1]) / 1e3:.2f} ms ("), (found["sentence"], times))

    def test_softmax_that_is_no_attention(self):
        def linear_attention(file):  # of features: the scores' matrix is never made
            file.softmax([8, 16, 1024, 64])
            file.bmm(self.HEADS, 64, 1024, 64)
            file.bmm(self.HEADS, 1024, 64, 64)
        self.names(self.layer(linear_attention))

        def classes(file):
            file.mm(8192, 4096, 4096, share=0.8)
            file.softmax([8192, 4096])
        self.names(self.layer(classes))

        def one_head(file):  # is attention
            file.mm(4096, 512, 4096)
            file.softmax([4096, 4096])
            file.mm(4096, 4096, 512)
        self.names(self.layer(one_head), "unfused-attention")

        def over_rows(file):
            file.bmm(self.HEADS, 1024, 64, 1024)
            file.softmax([8, 16, 1024, 1024], dim=2)
            file.bmm(self.HEADS, 1024, 1024, 64)
        self.names(self.layer(over_rows))

    def test_an_activation_of_many_kernels(self):
        def gelu(names):
            return self.layer(lambda file: [file.elementwise(f"aten::{name}", [8192, 4096]) for name in names])
        self.names(gelu(("pow", "mul", "add", "mul", "tanh", "add", "mul", "mul")), "elementwise-rows",
                   said=["GPU 0 ran in 60 rows of four to eight"])
        self.names(gelu(("gelu", "mul")))

    def test_numbers_of_64_bits(self):
        def product(file):
            with file.op("aten::mm", [[2048, 2048], [2048, 2048]], ["double", "double"]):
                file.kernel("Cijk_Ailk_Bljk_DB_MT128x128x16_" if file.gpu.hip else "sm80_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize64x64x16",
                            2 * 2048 ** 3 / file.gpu.f32 / 0.7 * 1e6, 256)
        self.names(self.layer(product), "double-precision", said=["aten::mm [[2048, 2048], [2048, 2048]]"], also=["operators-below-roof"])

        def elementwise(file):
            with file.op("aten::mul", [[8192, 4096], [8192, 4096]], ["double", "double"]):
                file.kernel("void at::native::vectorized_elementwise_kernel<2, at::native::BinaryFunctor<double, double, double>>",
                            24 * 8192 * 4096 / file.gpu.bandwidth / 0.85 * 1e6, 8192)
        self.names(self.layer(elementwise), "double-precision", said=["in 60 calls"])

    @staticmethod
    def copied(file, outer, kinds, strides=None, share=0.75):
        """A copy on the device that `outer` asked for."""
        shape = [8192, 4096]
        with file.op(outer, [shape], kinds[1:]), file.op("aten::_to_copy" if outer == "aten::to" else "aten::clone", [shape], kinds[1:]), \
                file.op("aten::copy_", [shape, shape, []], [*kinds, "Scalar"], ["", "", "False"], strides):
            file.kernel("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>",
                        sum(WIDTH[kind] for kind in kinds) * 8192 * 4096 / file.gpu.bandwidth / share * 1e6, 8192)

    def test_copies_on_the_device(self):
        self.names(self.layer(lambda file: [self.copied(file, "aten::to", [BF16, FLOAT]) for _ in range(4)]), "copies-on-device",
                   said=["change the type -, most of it in aten::to [[8192, 4096]]", "in 240 copies, which change the type, f32 to bf16"])
        self.names(self.layer(lambda file: [self.copied(file, "aten::contiguous", [BF16, BF16], [[4096, 1], [1, 8192], []]) for _ in range(4)]),
                   "copies-on-device", said=["change the layout -, most of it in aten::contiguous"], also=["operators-below-roof"])
        self.names(self.layer(lambda file: [self.copied(file, "aten::contiguous", [BF16, BF16]) for _ in range(4)]),
                   "copies-on-device", said=["change neither -"])
        self.names(self.trained("before", lambda file, number: self.copied(file, "aten::to", [BF16, FLOAT])))

    def test_an_optimizer_of_single_tensors(self):
        def steps(names, hidden):
            def plant(file, number):
                with file.range("Optimizer.step#AdamW.step"):
                    for _ in range(40):
                        for name in names:
                            with file.op(f"aten::{name}", [[1024, hidden]], [FLOAT]):
                                file.kernel(f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}_functor<float>>",
                                            12 * 1024 * hidden / file.gpu.bandwidth / 0.8 * 1e6, 1024)
            return self.trained("after", plant)
        adamw = ("mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_")
        self.names(steps(adamw, 4096), "single-tensor-optimizer", said=["Optimizer.step#AdamW.step", "in 10 steps, 320 kernels each"],
                   also=["elementwise-rows"])
        self.names(steps(("_fused_adamw_",), 4096))

    def test_an_input_that_is_not_contiguous(self):
        def plant(file):
            with file.op("aten::mul", [[8192, 4096], [8192, 4096]], [BF16, BF16], None, [[4096, 1], [1, 8192]]):
                file.kernel("void at::native::elementwise_kernel<128, 4, MulFunctor>", 6 * 8192 * 4096 / file.gpu.bandwidth / 0.3 * 1e6, 8192)
        self.below(plant, "an input is not contiguous in memory")

    def test_few_channels_of_a_group(self):
        def plant(file):
            name = "aten::miopen_convolution" if file.gpu.hip else "aten::cudnn_convolution"
            values = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "64", "False", "False"] if file.gpu.hip else \
                ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "64", "False", "False", "False"]
            with file.op(name, [[32, 64, 112, 112], [64, 1, 3, 3]] + [[]] * 7, [HALF, HALF] + [""] * 7, values):
                file.kernel("conv_depthwise2d_forward_kernel", 2 * 2 * 32 * 64 * 112 * 112 / file.gpu.bandwidth / 0.2 * 1e6, 8192)
        self.below(plant, "made of only one channel")


class SlowDown(Planted):
    """A clock that falls, without readings of it."""

    @staticmethod
    def several(factor, steps=12):
        """`factor(step, name)`: how many times as long a kernel takes."""
        def make(gpu):
            file, step, noise, run = TorchFile(gpu), [0], random.Random(7), TorchFile.run

            def slowed(category, name, us, *arguments, **named):
                run(file, category, name, us * noise.uniform(0.99, 1.01) * factor(step[0], name), *arguments, **named)
            file.run = slowed
            for step[0] in range(steps):
                with file.step(step[0]):
                    for _ in range(4):
                        for columns in (4096, 8192):
                            file.mm(8192, 4096, columns)
                        file.mm(8192, 4096, 1024, kernel="Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x16x1_" if gpu.hip else
                                "sm80_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x64x64")
                        file.add_([8192, 4096])
                        file.elementwise("aten::gelu", [8192, 4096])
                        file.softmax([8192, 1024])
            return file
        return make

    @staticmethod
    def product(name):
        return "gemm" in name or "Cijk" in name

    def test_a_clock_that_falls(self):
        self.names(self.several(lambda step, name: 1.35 if step >= 5 and self.product(name) else 1), "kernels-slow-down",
                   said=[" on, 3 kernels on GPU 0 take 1.35 times as long", "; 3 others take as long as before: the clock went down by about 26 %"])
        self.names(self.several(lambda step, name: 1.15 if step >= 8 else 1), "kernels-slow-down",
                   said=["6 kernels on GPU 0 take 1.15 times as long", "went down by about 13 %"])
        self.names(self.several(lambda step, name: 1.3 if step == 1 else 1, steps=2), "kernels-slow-down", said=["went down by about 23 %"])

    def test_a_slow_step(self):
        self.names(self.several(lambda step, name: 1.5 if step == 6 else 1), "kernels-slow-down", said=["From ", "went down by about 33 %"])

    def test_no_clock_that_falls(self):
        noise = random.Random(3)
        self.names(self.several(lambda step, name: noise.uniform(0.8, 1.25)))
        steps = [noise.uniform(0.97, 1.04) for _ in range(12)]
        self.names(self.several(lambda step, name: steps[step]))
        self.names(self.several(lambda step, name: 1.5 if step < 2 else 1))  # warming up
        # One kernel alone, and each by another factor: what they work on has changed.
        self.names(self.several(lambda step, name: 1.3 if step >= 5 and "softmax" in name else 1))
        factors = {"256x256": 1.2, "128x128x64_f": 1.2, "n_tilesize128x128": 1.2, "Functor": 2.4, "softmax": 1.9}
        self.names(self.several(lambda step, name: 1 if step < 5 else next((by for part, by in factors.items() if part in name), 1.6)), also=["operators-below-roof"])


class Host(Planted):
    """What the host does to the device."""

    def test_synchronisations_in_a_loop(self):
        def plant(file, number):
            with file.function("train.py(40): log_time"):
                file.synchronize()
                file.host(90)
        self.names(self.trained("during", plant), "host-waits", said=["mostly in train.py(40): log_time"])

    def test_item_in_a_loop(self):
        def plant(host_us):
            def item(file, number):
                with file.function("/home/u/train.py(31): step"), file.function("torch/_tensor.py(20): item"), \
                        file.op("aten::item", [[]], [FLOAT]), file.op("aten::_local_scalar_dense", [[]], [FLOAT]):
                    file.copy("DtoH", 4, 1.5, pageable=True)
                    file.synchronize()
                file.host(host_us)
            return item
        self.names(self.trained("during", plant(90)), "host-waits", said=["mostly in aten::item, called in train.py(31): step"])
        # The host's own code after it is what the device waits for; the wait is why.
        said = ["Such gaps after a wait for the device", "most of these gaps follow a wait for the device in aten::item"]
        self.names(self.trained("during", plant(250)), "host-computes", said=said)

    def test_small_copies(self):
        def plant(file, number):
            with file.function("train.py(12): upload"):
                for _ in range(200):
                    with file.op("aten::copy_"):
                        file.copy("HtoD", 512, 1.6)
        self.names(self.trained("before", plant), "small-copies", said=["aten::copy_, called in train.py(12): upload"],
                   also=["exposed-copies", "launch-bound"])

    def test_a_data_loader_that_is_waited_for(self):
        def plant(file, number):
            with file.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
                file.host(15000)
        self.names(self.trained("before", plant), "data-loading")

    def test_pageable_copies(self):
        def plant(file, number):
            for _ in range(4):
                with file.op("aten::to", [[2048, 4096]], [BF16]), file.op("aten::copy_"):
                    file.copy("HtoD", 8 << 20, 1500, pageable=True, blocks=True)
        self.names(self.trained("before", plant), "pageable-copies", said=["most of these calls are in aten::to"],
                   also=["synchronous-copies", "exposed-copies"])

    def test_many_tiny_kernels(self):
        def plant(file, number):
            with file.range("Optimizer.step#Adam.step"):
                for _ in range(2000):
                    with file.op("aten::add_", [[512], [512], []], [FLOAT, FLOAT, "Scalar"], ["", "", "1"]):
                        file.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", 2.0, 1)
        self.names(self.trained("after", plant, layers=1), "tiny-kernels", said=["vectorized_elementwise_kernel"],
                   also=["launch-bound", "small-grids", "queued-gaps", "single-tensor-optimizer", "elementwise-rows"])

    def test_recompilations(self):
        def plant(file, number):
            with file.op("_compile.compile_inner (dynamo_timed)"):
                file.host(20000)
        self.names(self.trained("before", lambda file, number: plant(file, number) if number % 2 else None), "recompilation")
        # Compiling before the work repeats is a start-up.
        self.names(self.trained("before", lambda file, number: plant(file, number) if number == 0 else None))

    def test_garbage_collections(self):
        for name, category in (("Python GC", "cpu_op"), ("<built-in function collect>", "python_function")):
            def plant(file, number, name=name, category=category):
                if number % 3 == 1:
                    with file.span(category, name):
                        file.host(15000)
            self.names(self.trained("before", plant), "garbage-collection")

    def test_work_of_the_host_is_named(self):
        def plant(file, number):
            with file.function("train.py(50): augment"), file.op("aten::sort", [[1000000]], [FLOAT]):
                file.host(12000)
        self.names(self.trained("before", plant), "host-computes", said=["in aten::sort"])

    def test_allocations_in_a_loop(self):
        def plant(file, number):
            file.call("cudaMalloc", "hipMalloc", 300)
            file.call("cudaFree", "hipFree", 400)
        self.names(self.trained("during", plant), "allocation-churn", also=["dominant-call"])

    def test_a_cache_that_is_emptied(self):
        def plant(file, number):
            file.synchronize(device=True)
            for _ in range(12):
                file.call("cudaFree", "hipFree", 250)
            for _ in range(12):
                file.call("cudaMalloc", "hipMalloc", 180)
        self.names(self.trained("after", plant, steps=2), "returned-memory", said=["gave memory back 12 times and got memory 12 times"],
                   also=["dominant-call"])

    def test_memory_that_every_step_gets(self):
        def plant(file, number, steps=16):
            file.synchronize()
            if number < steps:
                file.call("cudaMalloc", "hipMalloc", 900)
        self.names(self.trained("before", plant, steps=16), "steady-allocations", said=["of 8 equal parts of the run"], also=["dominant-call"])
        # Only the first steps: the allocator warms up.
        self.names(self.trained("before", lambda file, number: plant(file, number, 4), steps=16), also=["dominant-call"])

    def test_launches_that_wait(self):
        def make(gpu):
            file = TorchFile(gpu)
            file.run = functools.partial(file.run, blocks=True)
            return train(file)
        self.names(make, "waiting-launches", said=["120 of 120 launches"])

    def test_a_layer_on_the_host(self):
        def plant(file, number):
            with file.function("model.py(50): head"):
                with file.op("aten::to", [[2048, 4096]], [BF16]), file.op("aten::copy_"):
                    file.copy("DtoH", 16 << 20, 1400, pageable=True, blocks=True)
                with file.op("aten::mm", [[2048, 4096], [4096, 4096]], [FLOAT, FLOAT]):
                    file.host(9000)
                with file.op("aten::to", [[2048, 4096]], [BF16]), file.op("aten::copy_"):
                    file.copy("HtoD", 16 << 20, 1400, pageable=True, blocks=True)
        self.names(self.trained("after", plant), "host-computes", said=["in aten::mm"],
                   also=["exposed-copies", "pageable-copies", "synchronous-copies", "host-waits"])

    def test_weights_copied_in_every_step(self):
        def plant(file, number):
            with file.function("offload.py(20): fetch"), file.op("aten::to", [[4096, 4096]], [BF16]), file.op("aten::copy_"):
                file.copy("HtoD", 32 << 20, 700)
        self.names(self.trained("during", plant), "exposed-copies")

    def test_tensors_logged_in_every_step(self):
        def plant(file, number):
            with file.function("log.py(5): dump"), file.op("aten::to", [[8192, 4096]], [BF16]), file.op("aten::_to_copy", [[8192, 4096]], [BF16]), \
                    file.op("aten::copy_", [[8192, 4096], [8192, 4096], []], [BF16, BF16, "Scalar"], ["", "", "False"]):
                file.copy("DtoH", 64 << 20, 6000, pageable=True, blocks=True)
        self.names(self.trained("after", plant, steps=15), "pageable-copies", said=["most of these calls are in aten::to, called in log.py(5): dump"],
                   also=["exposed-copies", "synchronous-copies"])

    def test_an_optimizer_that_steps_each_parameter(self):
        def plant(file, number):
            with file.range("Optimizer.step#AdamW.step"):
                for _ in range(300):
                    for name in ("mul_", "lerp_", "addcmul_", "sqrt", "div", "add_", "addcdiv_"):
                        with file.op(f"aten::{name}", [[1024]], [FLOAT]):
                            file.kernel(f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}_functor<float>>", 1.6, 1)
        self.names(self.trained("after", plant), "tiny-kernels", "single-tensor-optimizer",
                   also=["launch-bound", "small-grids", "queued-gaps", "elementwise-rows"])

    def test_a_collective_that_nothing_hides(self):
        def plant(file, number):
            with file.op("record_param_comms", [[1 << 24]], [BF16]):
                file.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 500, 24)
        self.names(self.trained("during", plant), "exposed-collectives", also=["small-grids"])

    def test_code_compiled_at_the_start(self):
        def plant(file, number):
            if number == 0:
                file.host(20000)
                file.call("cuModuleLoadData", "hipModuleLoadData", 60000)
        self.names(self.trained("before", plant), "start-up", also=["idle-start", "dominant-call"])

    def test_a_lookup_of_scattered_rows(self):
        def plant(file, number):
            with file.op("aten::index_select", [[1000000, 64], [], [400000]], [FLOAT, "Scalar", "long int"], ["", "0", ""]):
                file.kernel("void at::native::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>",
                            (2 * 4 * 64 + 8) * 400000 / file.gpu.bandwidth / 0.1 * 1e6, 4224)
        self.names(self.trained("during", plant), "operators-below-roof", said=["aten::index_select [[1000000, 64], [], [400000]]", "10.0 % of its memory roof"])

    def test_a_slow_rank(self):
        def rank(number, slow):
            file = TorchFile(H100, rank=(number, 4))
            for step in range(12):
                with file.step(step):
                    for _ in range(3):
                        file.mm(8192, 4096, 4096)
                        if slow:
                            file.host(600)
                    begin[number].append((file, step))
                    file.now = max(file.now, file.free.get(7, 0))
                    yield file
        # The collective of a step begins on all ranks, and ends when the last one is there.
        for late in (True, False):
            begin = {number: [] for number in range(4)}
            ranks = [rank(number, late and number == 2) for number in range(4)]
            files = {}
            while True:
                step = [next(each, None) for each in ranks]
                if None in step:
                    break
                there = max(max(file.now, file.free.get(7, 0)) for file in step)
                for number, file in enumerate(step):
                    files[number] = file
                    start = max(file.now, file.free.get(7, 0)) + 8
                    with file.op("record_param_comms"):
                        file.run("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", there + 300 - start, 20, 5.0, "cudaLaunchKernelExC",
                                 "hipExtLaunchKernel", {"Collective name": "allreduce", "In msg nelems": 1 << 22, "Out msg nelems": 1 << 22,
                                                        "Group size": 4, "dtype": "BFloat16", "Process Group Name": "0",
                                                        "Process Group Ranks": "[0, 1, 2, 3]", "grid": [24, 1, 1], "block": [512, 1, 1]})
                    file.free[7] = file.free[20]
                    file.now = file.free[20]
            paths = [file.write(self.folder / f"rank{number}.json") for number, file in files.items()]
            self.run_command(TACHO, "merge", *paths, "-o", "ranks.tacho", "--overwrite")
            document = json.loads(self.run_command(TACHO, "report", "findings", "ranks.tacho", "--output-format", "json").stdout)
            found = {finding["rule"]: finding["sentence"] for finding in document["findings"]}
            if late:
                self.assertIn("Rank 2 came last", found.get("late-rank", ""), found)
            else:
                self.assertNotIn("late-rank", found)


if __name__ == "__main__":
    main()
