// Launch shapes in the words of the GPU's vendor.
#include "analysis/kernels/launch_shape.h"

#include <gtest/gtest.h>

#include <memory>

#include "trace/rows.h"

namespace tacho::analysis {
namespace {

namespace row = event::row;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

struct Made {
  Folder folder;
  std::unique_ptr<TraceWriter> writer = must(TraceWriter::create(folder / "k.tacho", {}));
  std::shared_ptr<const trace::Trace> trace;
  int64_t kernel(int64_t grid, int64_t group) const {
    return writer->dimension(row::Kernel{.name = writer->string("k"),
                                         .grid_x = grid,
                                         .grid_y = grid == event::kUnknown ? event::kUnknown : 2,
                                         .grid_z = grid == event::kUnknown ? event::kUnknown : 1,
                                         .group_x = group,
                                         .group_y = group == event::kUnknown ? event::kUnknown : 1,
                                         .group_z = group == event::kUnknown ? event::kUnknown : 1});
  }
  void gpu(std::string_view vendor, event::DeviceKind kind = event::DeviceKind::kGpu) const {
    writer->dimension(row::Device{.kind = kind, .name = writer->string("x"), .vendor = writer->string(vendor)});
  }
  void function(event::Domain domain) const {
    writer->dimension(row::Function{.name = writer->string("f"), .domain = domain});
  }
  bool blocks() {
    trace = must(writer->finish_and_open());
    return grids_in_blocks(*trace);
  }
};

TEST(LaunchShape, WhoWritesBlocks) {
  const auto of = [](std::initializer_list<const char*> vendors, event::Domain calls) {
    Made made;
    made.gpu("AuthenticAMD", event::DeviceKind::kCpu);
    for (const char* vendor : vendors) made.gpu(vendor);
    made.function(calls);
    return made.blocks();
  };
  EXPECT_TRUE(of({"NVIDIA"}, event::Domain::kOpenCL));
  EXPECT_TRUE(of({"NVIDIA Corporation", ""}, event::Domain::kOpenCL));
  EXPECT_TRUE(of({""}, event::Domain::kCudaRuntime));
  EXPECT_FALSE(of({""}, event::Domain::kHipRuntime));
  EXPECT_FALSE(of({"AMD"}, event::Domain::kCudaRuntime));
  EXPECT_FALSE(of({"NVIDIA", "AMD"}, event::Domain::kCudaRuntime)) << "one unit for a table of both";
  EXPECT_FALSE(of({}, event::Domain::kOpenCL));
}

TEST(LaunchShape, Texts) {
  Made made;
  made.gpu("NVIDIA");
  const int64_t even = made.kernel(50688, 384), odd = made.kernel(1000, 256),
                no_group = made.kernel(1000, event::kUnknown), none = made.kernel(event::kUnknown, event::kUnknown);
  ASSERT_TRUE(made.blocks());
  const auto text = [&](int64_t kernel, bool blocks) {
    const LaunchShapeText shape = launch_shape(*made.trace, kernel, blocks);
    return shape.grid + ", " + std::string(shape.group_title) + " " + shape.group;
  };
  EXPECT_EQ(text(even, true), "132 x 2 x 1 blocks, block 384 x 1 x 1 threads");
  EXPECT_EQ(text(even, false), "50688 x 2 x 1 work-items, workgroup 384 x 1 x 1 work-items");
  EXPECT_EQ(text(odd, true), "4 x 2 x 1 blocks, block 256 x 1 x 1 threads");
  EXPECT_EQ(text(no_group, true), "1000 x 2 x 1 threads, block ");
  EXPECT_EQ(text(none, true), ", block ");
  EXPECT_EQ(launch_shape(*made.trace, even, true, "x").grid, "132x2x1 blocks");
}

}  // namespace
}  // namespace tacho::analysis
