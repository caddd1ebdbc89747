// The CUPTI structures declared in this source tree against NVIDIA's headers, where they are installed.
#include <gtest/gtest.h>

#if __has_include(<cupti_range_profiler.h>)
#include <cupti.h>
#include <cupti_pcsampling.h>
#if __has_include(<cupti_pmsampling.h>)
#include <cupti_pmsampling.h>
#include <cupti_target.h>
#endif
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include "vendor/nvidia/cupti_host.h"
#include "vendor/nvidia/cupti_pm.h"
#include "vendor/nvidia/cupti_range.h"
#include "vendor/nvidia/cupti_sampling.h"

namespace host = tacho::vendor::cupti::host;
namespace pm = tacho::vendor::cupti::pm;
namespace range = tacho::vendor::cupti::range;
namespace sampling = tacho::vendor::cupti::sampling;

#define SAME_SIZE(ours, kSize, theirs) EXPECT_EQ(kSize<ours>, theirs##_STRUCT_SIZE) << #theirs
#define SAME_FIELD(ours, field, theirs, their_field) \
  EXPECT_EQ(offsetof(ours, field), offsetof(theirs, their_field)) << #theirs "." #their_field

TEST(CuptiHeaders, HostStructures) {
  SAME_SIZE(host::HostInitialize, host::kSizeOf, CUpti_Profiler_Host_Initialize_Params);
  SAME_SIZE(host::Deinitialize, host::kSizeOf, CUpti_Profiler_Host_Deinitialize_Params);
  SAME_SIZE(host::Chips, host::kSizeOf, CUpti_Profiler_Host_GetSupportedChips_Params);
  SAME_SIZE(host::BaseMetrics, host::kSizeOf, CUpti_Profiler_Host_GetBaseMetrics_Params);
  SAME_SIZE(host::SubMetrics, host::kSizeOf, CUpti_Profiler_Host_GetSubMetrics_Params);
  SAME_SIZE(host::Properties, host::kSizeOf, CUpti_Profiler_Host_GetMetricProperties_Params);
  SAME_SIZE(host::AddMetrics, host::kSizeOf, CUpti_Profiler_Host_ConfigAddMetrics_Params);
  SAME_SIZE(host::ConfigImageSize, host::kSizeOf, CUpti_Profiler_Host_GetConfigImageSize_Params);
  SAME_SIZE(host::ConfigImage, host::kSizeOf, CUpti_Profiler_Host_GetConfigImage_Params);
  SAME_SIZE(host::Passes, host::kSizeOf, CUpti_Profiler_Host_GetNumOfPasses_Params);
  SAME_SIZE(host::Evaluate, host::kSizeOf, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  SAME_SIZE(host::DataInfo, host::kSizeOf, CUpti_RangeProfiler_GetCounterDataInfo_Params);
  SAME_FIELD(host::Evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
  SAME_FIELD(host::Evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
  SAME_FIELD(host::SubMetrics, names, CUpti_Profiler_Host_GetSubMetrics_Params, ppSubMetrics);
  SAME_FIELD(host::HostInitialize, object, CUpti_Profiler_Host_Initialize_Params, pHostObject);
  EXPECT_EQ(host::kRangeProfiler, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
}

TEST(CuptiHeaders, RangeProfilerStructures) {
  SAME_SIZE(range::Initialize, range::kSizeOf, CUpti_Profiler_Initialize_Params);
  SAME_SIZE(range::Enable, range::kSizeOf, CUpti_RangeProfiler_Enable_Params);
  SAME_SIZE(range::Disable, range::kSizeOf, CUpti_RangeProfiler_Disable_Params);
  SAME_SIZE(range::Disable, range::kSizeOf, CUpti_RangeProfiler_Start_Params);
  SAME_SIZE(range::SetConfig, range::kSizeOf, CUpti_RangeProfiler_SetConfig_Params);
  SAME_SIZE(range::Stop, range::kSizeOf, CUpti_RangeProfiler_Stop_Params);
  SAME_SIZE(range::DecodeData, range::kSizeOf, CUpti_RangeProfiler_DecodeData_Params);
  SAME_SIZE(range::ImageSize, range::kSizeOf, CUpti_RangeProfiler_GetCounterDataSize_Params);
  SAME_SIZE(range::DataInfo, range::kSizeOf, CUpti_RangeProfiler_GetCounterDataInfo_Params);
  SAME_SIZE(range::ImageInitialize, range::kSizeOf, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
  SAME_FIELD(range::SetConfig, range, CUpti_RangeProfiler_SetConfig_Params, range);
  SAME_FIELD(range::SetConfig, max_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
  SAME_FIELD(range::SetConfig, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
  SAME_FIELD(range::SetConfig, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
  SAME_FIELD(range::ImageSize, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
  EXPECT_EQ(range::kAutoRange, CUPTI_AutoRange);
  EXPECT_EQ(range::kApplicationReplay, CUPTI_ApplicationReplay);
  EXPECT_EQ(range::kKernelReplay, CUPTI_KernelReplay);
  EXPECT_EQ(range::kUserReplay, CUPTI_UserReplay);
}

TEST(CuptiHeaders, SamplingStructures) {
  EXPECT_EQ(sizeof(sampling::ContextCall), CUpti_PCSamplingEnableParamsSize);
  EXPECT_EQ(sizeof(sampling::ContextCall), CUpti_PCSamplingDisableParamsSize);
  EXPECT_EQ(sizeof(sampling::ReasonCount), CUpti_PCSamplingGetNumStallReasonsParamsSize);
  EXPECT_EQ(sizeof(sampling::Reasons), CUpti_PCSamplingGetStallReasonsParamsSize);
  EXPECT_EQ(sizeof(sampling::Configure), CUpti_PCSamplingConfigurationInfoParamsSize);
  EXPECT_EQ(sizeof(sampling::GetData), CUpti_PCSamplingGetDataParamsSize);
  EXPECT_EQ(sizeof(sampling::SamplingSetting), sizeof(CUpti_PCSamplingConfigurationInfo));
  EXPECT_EQ(sizeof(sampling::Sampled), sizeof(CUpti_PCSamplingPCData));
  EXPECT_EQ(sizeof(sampling::Data), sizeof(CUpti_PCSamplingData));
  EXPECT_EQ(sizeof(sampling::Crc), CUpti_GetCubinCrcParamsSize);
  SAME_FIELD(sampling::Sampled, name, CUpti_PCSamplingPCData, functionName);
  SAME_FIELD(sampling::Sampled, reasons, CUpti_PCSamplingPCData, stallReason);
  SAME_FIELD(sampling::Sampled, correlation, CUpti_PCSamplingPCData, correlationId);
  SAME_FIELD(sampling::Data, sampled, CUpti_PCSamplingData, pPcData);
  SAME_FIELD(sampling::Data, remaining, CUpti_PCSamplingData, remainingNumPcs);
  SAME_FIELD(sampling::Data, hardware_buffer_full, CUpti_PCSamplingData, hardwareBufferFull);
  SAME_FIELD(sampling::SamplingSetting, value, CUpti_PCSamplingConfigurationInfo, attributeData);
  SAME_FIELD(sampling::Crc, crc, CUpti_GetCubinCrcParams, cubinCrc);
  EXPECT_EQ(sampling::kScratchBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
  EXPECT_EQ(sampling::kCollectionMode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
  EXPECT_EQ(sampling::kOutputFormat, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT);
  EXPECT_EQ(sampling::kDataBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
  EXPECT_EQ(sampling::kContinuous, static_cast<uint32_t>(CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS));
  EXPECT_EQ(sampling::kParsed, static_cast<uint32_t>(CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED));
}
#if __has_include(<cupti_pmsampling.h>)
TEST(CuptiHeaders, PmSamplingStructures) {
  SAME_SIZE(pm::ChipName, pm::kSizeOf, CUpti_Device_GetChipName_Params);
  SAME_SIZE(pm::Availability, pm::kSizeOf, CUpti_PmSampling_GetCounterAvailability_Params);
  SAME_SIZE(pm::PmEnable, pm::kSizeOf, CUpti_PmSampling_Enable_Params);
  SAME_SIZE(pm::PmObject, pm::kSizeOf, CUpti_PmSampling_Disable_Params);
  SAME_SIZE(pm::PmObject, pm::kSizeOf, CUpti_PmSampling_Start_Params);
  SAME_SIZE(pm::PmObject, pm::kSizeOf, CUpti_PmSampling_Stop_Params);
  SAME_SIZE(pm::PmSetConfig, pm::kSizeOf, CUpti_PmSampling_SetConfig_Params);
  SAME_SIZE(pm::PmImageSize, pm::kSizeOf, CUpti_PmSampling_GetCounterDataSize_Params);
  SAME_SIZE(pm::PmImageInitialize, pm::kSizeOf, CUpti_PmSampling_CounterDataImage_Initialize_Params);
  SAME_SIZE(pm::Decode, pm::kSizeOf, CUpti_PmSampling_DecodeData_Params);
  SAME_SIZE(pm::PmDataInfo, pm::kSizeOf, CUpti_PmSampling_GetCounterDataInfo_Params);
  SAME_SIZE(pm::SampleInfo, pm::kSizeOf, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
  SAME_FIELD(pm::PmSetConfig, config, CUpti_PmSampling_SetConfig_Params, pConfig);
  SAME_FIELD(pm::PmSetConfig, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
  SAME_FIELD(pm::PmSetConfig, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
  SAME_FIELD(pm::PmImageSize, most, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
  SAME_FIELD(pm::PmImageInitialize, bytes, CUpti_PmSampling_CounterDataImage_Initialize_Params, counterDataSize);
  SAME_FIELD(pm::Decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);
  SAME_FIELD(pm::PmDataInfo, completed, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);
  SAME_FIELD(pm::SampleInfo, start, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp);
  EXPECT_EQ(pm::kPmSampling, CUPTI_PROFILER_TYPE_PM_SAMPLING);
  EXPECT_EQ(pm::kByClock, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
  EXPECT_EQ(pm::kByTime, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
  EXPECT_EQ(pm::kImageFull, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
}
#endif
#else
TEST(CuptiHeaders, Absent) {
  GTEST_SKIP() << "no CUDA headers with the range profiler on this machine";
}
#endif
