// A small document of rocprofv3's JSON with every section that is read: for tests and as a seed of fuzzing.
#pragma once

#include <string>

namespace tacho::test {

/// Everything before the records: names, agents, kernels. Not closed.
inline const std::string kSections =
    R"({"metadata": {"node": {"hostname": "box"}, "pid": 42, "init_time": 1000, "fini_time": 9000, "command": ["/bin/app", "-n", "3"]},
"agents": [{"id": {"handle": 7}, "type": 1, "name": "EPYC", "product_name": "EPYC", "vendor_name": "CPU", "node_id": 0, "logical_node_id": 0, "logical_node_type_id": 0},
           {"id": {"handle": 8}, "type": 2, "name": "gfx942", "product_name": "MI300X", "vendor_name": "AMD", "node_id": 4, "logical_node_id": 1, "logical_node_type_id": 0,
            "fw_version": {"uCode": 38, "Major": 1, "Minor": 0, "Stepping": 2}}],
"counters": [{"id": {"handle": 70}, "name": "SQ_WAVES", "description": "waves"}],
"strings": {"buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipMalloc"]},
   {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"]},
   {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxRangePushA"]},
   {"kind": "MEMORY_ALLOCATION", "operations": ["NONE", "MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE"]}],
   "marker_api": [{"key": 31, "value": "step \"one\""}]},
"kernel_symbols": [{"kernel_id": 5, "kernel_name": "_Z4workPf.kd", "sgpr_count": 16, "arch_vgpr_count": 12, "accum_vgpr_count": 4, "group_segment_size": 100}],)";
/// The records, and the end of the object.
inline const std::string kRecords =
    R"("callback_records": {"counter_collection": [{"thread_id": 42, "dispatch_data": {"correlation_id": {"internal": 1}, "start_timestamp": 2000, "end_timestamp": 2500,
   "dispatch_info": {"agent_id": {"handle": 8}, "queue_id": {"handle": 1}, "kernel_id": 5, "dispatch_id": 1, "private_segment_size": 0, "group_segment_size": 612,
   "workgroup_size": {"x": 64, "y": 1, "z": 1}, "grid_size": {"x": 640, "y": 1, "z": 1}}},
   "records": [{"counter_id": {"handle": 70}, "value": 3.5}, {"counter_id": {"handle": 70}, "value": 4}]}]},
"buffer_records": {"kernel_dispatch": [
   {"thread_id": 42, "correlation_id": {"internal": 1}, "start_timestamp": 2000, "end_timestamp": 2500, "dispatch_info": {"agent_id": {"handle": 8}, "queue_id": {"handle": 1}, "kernel_id": 5, "dispatch_id": 1}},
   {"thread_id": 42, "correlation_id": {"internal": 2}, "start_timestamp": 3000, "end_timestamp": 2900, "stream_id": {"handle": 9}, "dispatch_info": {"agent_id": {"handle": 8}, "queue_id": {"handle": 1}, "kernel_id": 5, "dispatch_id": 2}}],
 "hip_api": [{"kind": 1, "operation": 1, "thread_id": 42, "correlation_id": {"internal": 30}, "start_timestamp": 1500, "end_timestamp": 1600}],
 "marker_api": [{"kind": 3, "operation": 1, "thread_id": 43, "correlation_id": {"internal": 31}, "start_timestamp": 1500, "end_timestamp": 1700}],
 "memory_copy": [{"kind": 2, "operation": 2, "thread_id": 42, "correlation_id": {"internal": 33}, "start_timestamp": 1800, "end_timestamp": 1900, "src_agent_id": {"handle": 7}, "dst_agent_id": {"handle": 8}, "bytes": 4096}],
 "memory_allocation": [{"kind": 4, "operation": 1, "thread_id": 42, "correlation_id": {"internal": 34}, "start_timestamp": 1100, "end_timestamp": 1150, "agent_id": {"handle": 8}, "address": "0xabc", "allocation_size": 4096}],
 "scratch_memory": [{"kind": 9, "operation": 1, "start_timestamp": 1, "end_timestamp": 2}]}})";

/// The whole.
inline std::string rocprofv3_document() {
  return "{\"rocprofiler-sdk-tool\": [" + kSections + kRecords + "]}";
}

}  // namespace tacho::test
