// AMD's libraries in tacho avail.
#include "vendor/amd/runtime.h"

#include <gtest/gtest.h>

namespace tacho::vendor {
namespace {

TEST(AmdRuntime, TheSdkWhereTheRuntimeCanLoadIt) {
  const std::string text =
      describe_road({"/opt/rocm/lib/libhsa-runtime64.so.1", true, "/opt/rocm/lib/librocprofiler-sdk.so.1", "1.0.0"});
  EXPECT_EQ(text,
            "kernels, copies and HIP calls through rocprofiler-sdk 1.0.0 (/opt/rocm/lib/librocprofiler-sdk.so.1)");
}
TEST(AmdRuntime, OtherwiseHsaAndWhy) {
  const std::string debian = describe_road({"/usr/lib/libhsa-runtime64.so.1", false, "", ""});
  EXPECT_NE(debian.find("HSA's interface for tools (/usr/lib/libhsa-runtime64.so.1)"), std::string::npos) << debian;
  EXPECT_NE(debian.find("built without rocprofiler-register"), std::string::npos) << debian;
  const std::string slim = describe_road({"/opt/rocm/lib/libhsa-runtime64.so.1", true, "", ""});
  EXPECT_NE(slim.find("no rocprofiler-sdk beside it"), std::string::npos) << slim;
  // A library that the runtime cannot load is no road.
  const std::string both =
      describe_road({"/usr/lib/libhsa-runtime64.so.1", false, "/opt/rocm/lib/librocprofiler-sdk.so.1", "1.0.0"});
  EXPECT_NE(both.find("HSA's interface for tools"), std::string::npos) << both;
}

}  // namespace
}  // namespace tacho::vendor
