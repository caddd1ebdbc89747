// Profile folders written by tests, and the recorded ones.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/folder.h"

namespace tacho::testing {

using test::Folder;

constexpr const char* kSysInfo =
    "workload_name,ip_blocks,gpu_model,gpu_arch,cu_per_gpu,simd_per_cu,se_per_gpu,wave_size,max_waves_per_cu,max_sclk,max_mclk,cur_sclk,cur_mclk,total_l2_chan,lds_banks_per_cu,sqc_per_gpu,pipes_per_gpu,num_xcd,num_hbm_channels\n"
    ""
    "w,SQ,MI200,gfx90a,104,4,8,64,32,1700,1600,1700,1600,32,32,56,4,1,32\n";

/// The folder of recorded data, "" when it is not there. With TACHO_REQUIRE_DATA=1 a test must fail instead of
/// skipping.
inline std::string data_folder() {
  const char* given = std::getenv("TACHO_DATA");
  const char* source = std::getenv("TACHO_SOURCE");
  const std::string folder =
      given != nullptr ? given : std::string(source != nullptr ? source : ".") + "/../shared/data";
  return std::filesystem::is_directory(folder + "/workloads") ? folder : std::string();
}

}  // namespace tacho::testing

/// First line of a test that needs recorded data.
#define TACHO_NEED_DATA(name)                                                                  \
  const std::string name = ::tacho::testing::data_folder();                                    \
  if (name.empty()) {                                                                          \
    if (const char* must = std::getenv("TACHO_REQUIRE_DATA"); must != nullptr && *must == '1') \
      FAIL() << "no recorded data: set TACHO_DATA";                                            \
    GTEST_SKIP() << "no recorded data: set TACHO_DATA";                                        \
  }
