// Shortened names stay different, and tables use a narrow and a wide screen.
#include "report/shorten.h"

#include <gtest/gtest.h>

#include <set>

#include "report/table.h"

namespace tacho::report {
namespace {

const std::vector<std::string> kTorch = {
    "void at::native::elementwise_kernel<128, 4, "
    "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int, "
    "at::native::gpu_kernel_impl_nocast<int>)",
    "void at::native::elementwise_kernel<128, 4, "
    "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::DivFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int, "
    "at::native::gpu_kernel_impl_nocast<int>)",
    "void at::native::elementwise_kernel<128, 4, "
    "at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16> "
    ">(at::TensorIteratorBase&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<int>)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int> >(int)",
    "vecCopy(double*, double*, double*, int, int)"};

void expect_apart(const std::vector<std::string>& names, size_t width) {
  const auto cut = shortened_apart(names, width);
  ASSERT_EQ(cut.size(), names.size());
  std::set<std::string> seen(cut.begin(), cut.end());
  EXPECT_EQ(seen.size(), std::set<std::string>(names.begin(), names.end()).size()) << "at " << width << ": " << cut[0];
  for (const std::string& text : cut) EXPECT_LE(display_width(text), width) << text;
}

TEST(Shorten, DifferentNamesStayDifferentAtEveryWidth) {
  for (size_t width = 10; width < 260; width += 3) expect_apart(kTorch, width);
}

TEST(Shorten, TheDifferenceIsShown) {
  const auto cut = shortened_apart(kTorch, 40);
  EXPECT_NE(cut[0].find("Mul"), std::string::npos) << cut[0];
  EXPECT_NE(cut[1].find("Div"), std::string::npos) << cut[1];
  EXPECT_NE(cut[2].find("CUDA"), std::string::npos) << cut[2];
  EXPECT_EQ(cut[3], "vectorized_elementwise_ker…unctor<int> >") << cut[3];
}

// Equal beginnings and equal ends of any length, differences of one character anywhere, many of them.
TEST(Shorten, OneCharacterAnywhere) {
  std::vector<std::string> names;
  for (size_t at = 0; at < 60; ++at) {
    std::string name = "void kernel<" + std::string(120, 'a') + ">(int)";
    name[15 + at] = 'b';
    names.push_back(std::move(name));
  }
  for (const size_t width : {16, 34, 60}) expect_apart(names, width);
  expect_apart({std::string(100, 'x'), std::string(101, 'x'), std::string(102, 'x')}, 12);
  expect_apart({"日本日本日本日本日本日本日本日本一", "日本日本日本日本日本日本日本日本二"}, 12);
}

TEST(Shorten, EqualNamesAreEqualAndShortOnesUntouched) {
  const std::vector<std::string> names = {kTorch[0], "add", kTorch[0], "scale"};
  const auto cut = shortened_apart(names, 30);
  EXPECT_EQ(cut[0], cut[2]);
  EXPECT_EQ(cut[1], "add");
  EXPECT_EQ(cut[3], "scale");
}

TEST(Shorten, CompactNames) {
  EXPECT_EQ(compact_name("void a::f<b::T>(int, c::U)", 1), "a::f<b::T>(…)");
  EXPECT_EQ(compact_name("void a::f<b::T>(int, c::U)", 2), "f<T>(…)");
  EXPECT_EQ(compact_name("a::(anonymous namespace)::f<2u>(int) const", 2), "f<2u>(…)");
  EXPECT_EQ(compact_name("torch/nn/modules/module.py(1511): _call_impl", 2),
            "torch/nn/modules/module.py(1511): _call_impl");
  EXPECT_EQ(compact_name("clEnqueueNDRangeKernel", 2), "clEnqueueNDRangeKernel");
  EXPECT_EQ(compact_name("f()", 2), "f()");
}

TEST(Shorten, Paths) {
  EXPECT_EQ(shortened_path("/opt/venv/lib/model.py:58", 11), "model.py:58");
  EXPECT_EQ(shortened_path("/opt/venv/lib/model.py:58", 17), "…/lib/model.py:58");
  EXPECT_EQ(shortened_path("/opt/venv/lib/model.py:58", 40), "/opt/venv/lib/model.py:58");
  EXPECT_EQ(shortened_path("/opt/a_rather_long_file_name.py:58", 10), "…ame.py:58");
  EXPECT_EQ(shortened_path("model.py:58", 11), "model.py:58");
  EXPECT_EQ(shortened_path("python3;main (a.py:1);loop (a.py:8)", 20, ';'), "…;loop (a.py:8)");
}

TEST(Shorten, Middle) {
  EXPECT_EQ(shortened_middle("abcdefghij", 7), "abcd…ij");
  EXPECT_EQ(shortened_middle("abc", 7), "abc");
}

PrintedTable many_columns() {
  PrintedTable table;
  table.columns = {{"Time", Align::kRight},
                   {"Mean", Align::kRight},
                   {"Min", Align::kRight},
                   {"Max", Align::kRight},
                   {"Name", Align::kLeft, -1, true}};
  table.columns[2].leave_out = 1;
  table.columns[3].leave_out = 2;
  for (const std::string& name : kTorch)
    table.rows.push_back(
        {std::string("123.45 ms"), std::string("123.45 ms"), std::string("123.45 ms"), std::string("123.45 ms"), name});
  return table;
}

TEST(Shorten, LongWordsOfSentences) {
  EXPECT_EQ(with_short_words("kernel abcdefghijklmnop took 3 us", 10), "kernel abcdef…nop took 3 us");
  EXPECT_EQ(with_short_words("  all short ", 5), "  all short ");
}

TEST(Shorten, TablesLeaveColumnsOutBeforeNamesGetUnreadable) {
  for (const size_t width : {50, 66, 67, 77, 78, 120, 200}) {
    std::vector<std::string> gone;
    TextStyle style;
    style.width = width;
    style.left_out = &gone;
    const std::string text = to_text(many_columns(), style);
    for (size_t from = 0; from < text.size();) {
      const size_t to = text.find('\n', from);
      EXPECT_LE(display_width(text.substr(from, to - from)), width) << text;
      from = to + 1;
    }
    EXPECT_EQ(gone.size(), width < 67 ? 2U : width < 78 ? 1U : 0U) << width << "\n" << text;
    EXPECT_EQ(text.find("Max") == std::string::npos, !gone.empty()) << text;
  }
}

TEST(Shorten, SentencesWrapUnderTheirColumn) {
  PrintedTable table;
  table.columns = {{"Source"}, {"What it means", Align::kLeft, -1, true}};
  table.columns[1].cut = Cut::kWrap;
  table.rows = {{std::string("opencl"), std::string("no libOpenCL.so.1: install an ICD loader")}};
  TextStyle style;
  style.width = 32;
  EXPECT_EQ(to_text(table, style), "Source  What it means\n"
                                   "opencl  no libOpenCL.so.1:\n"
                                   "        install an ICD loader\n");
}

}  // namespace
}  // namespace tacho::report
