#include "base/text/demangle.h"

#include <gtest/gtest.h>

namespace tacho {
namespace {

TEST(Demangle, SymbolsAndOtherTexts) {
  EXPECT_EQ(demangle("_Z3addPff"), "add(float*, float)");
  EXPECT_EQ(demangle("_Z3addPff.kd"), "add(float*, float)");
  EXPECT_EQ(demangle("vcopy.kd"), "vcopy");
  EXPECT_EQ(demangle("vcopy"), "vcopy");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
  EXPECT_EQ(demangle(""), "");
}

TEST(Demangle, StaticKernelsOfNvcc) {
  EXPECT_EQ(
      demangle(
          "__nv_static_46__131e69d4_19_cuda_graph_kinds_cu_bc44b694_7257__ZN57_GLOBAL__N__131e69d4_19_cuda_graph_kinds_cu_bc44b694_72573addEPff"
          ""),
      "(anonymous namespace)::add(float*, float)");
  EXPECT_EQ(demangle("__nv_static_5__abcd__Z3addPff"), "add(float*, float)");
  EXPECT_EQ(demangle("__nv_static_5__abcd_add"), "add");
  for (const char* text :
       {"__nv_static_", "__nv_static_5", "__nv_static_5__", "__nv_static_5__abcd_", "__nv_static_x__add",
        "__nv_static_99999999999999999999__add", "__nv_static_18446744073709551615__add"})
    EXPECT_EQ(demangle(text), text);
}

TEST(Demangle, OnlyWhatMayBeMangledChanges) {
  for (const char* const text :
       {"_Z3addPf", "add.kd", "_Z3addPf.kd", "add [clone .kd]", "add (.kd)", "__nv_static_3__a_b__Z3addPf"})
    EXPECT_TRUE(may_be_mangled(text)) << text;
  for (const char* const text : {"", "add", "void add<int>(int*)", "Cijk_Alik_Bljk", ".kdx"}) {
    EXPECT_FALSE(may_be_mangled(text)) << text;
    EXPECT_EQ(demangle(text), text);
  }
}

TEST(ShortName, WithoutScopeArgumentsAndReturnType) {
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<4, float>(int, float)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(short_name("(anonymous namespace)::add(float*, float)"), "add");
  EXPECT_EQ(short_name("add"), "add");
}

}  // namespace
}  // namespace tacho
