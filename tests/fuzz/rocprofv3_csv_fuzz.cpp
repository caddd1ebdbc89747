// rocprofv3's CSV files: any bytes with any of its headers give a trace or a sentence.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr const char* kSeeds[] = {
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
    ""
    "\"KERNEL_DISPATCH\",\"Agent 4\",1,0,77,1,12,\"vcopy(double*, "
    "\"\"x\"\")\",3,100,250,512,0,8,4,16,64,1,1,1024,1,1\n\"KERNEL_DISPATCH\",\"GPU "
    "0\",1,2,77,2,12,\"b\",4,300,,0,0,8,4,16,64,1,1,1024,1,1\n",
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\"HIP_RUNTIME_API\",\"hipLaunchKernel\",77,78,3,50,90\n"
    ""
    "\"MARKER_CORE_API\",\"here\",77,78,0,60,60\n\"MARKER_CORE_RANGE_API\",\"range\",77,78,0,60,70\n",
    "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    ""
    "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,\"Agent 0\",\"Agent 4\",9,100,200\n",
    "\"Kind\",\"Operation\",\"Agent_Id\",\"Allocation_Size\",\"Address\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    ""
    "\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_ALLOCATE\",\"Agent 4\",4096,\"0x00007f0000000000\",9,100,200\n",
    "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\",\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\",\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    ""
    "1,1,\"Agent 4\",1,77,78,1024,12,\"vcopy\",64,0,0,8,4,16,\"SQ_WAVES\",16.5,100,250\n1,1,\"Agent "
    "4\",1,77,78,1024,12,\"vcopy\",64,0,0,8,4,16,\"GRBM_COUNT\",1e9,100,250\n",
    // Commas without quotes, an index without a name, floating-point numbers, cut rows.
    "Kind,Agent_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp\nK,Agent 4,1,void add<int, "
    "float>(int*),100,200\n0,K,Agent 4,2,k,100.0,2e2\nK,Agent 4,3,k,0,0\nK,Agent 4,4,k,1,000,2,000\nK,Agent 4,nan,k,5",
    // rocprof v2's header of 21 with rows of 19.
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,"
    "DispatchNs,BeginNs,EndNs,CompleteNs\n\n0,\"k\",4,1,0,900,901,1024,256,0,0,64,0,32,64,0,0x7f0,1000,1400\n",
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size < 4) {
    const char* const text = kSeeds[seed % std::size(kSeeds)];
    size = std::min(strlen(text), max_size);
    memcpy(data, text, size);
  }
  // Mostly behind the header: a file that is not recognised is soon read.
  size_t from = 0;
  if (seed % 8 != 0)
    if (const void* const line = memchr(data, '\n', size))
      from = static_cast<size_t>(static_cast<const uint8_t*>(line) - data) + 1;
  return from + LLVMFuzzerMutate(data + from, size - from, max_size - from);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  using namespace tacho::format::rocprofv3_csv;
  const std::string& path = file.write(data, size);
  (void)accepts(path, {reinterpret_cast<const char*>(data), std::min<size_t>(size, 4096)}, false);
  tacho::fuzz::CheckingWriter writer;
  tacho::fuzz::expect_sentence(read_into(path, writer));
  return 0;
}
