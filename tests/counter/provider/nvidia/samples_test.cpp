// PC samples of NVIDIA GPUs: records, disassembly, and source lines of a real module (lines.cubin, of lines.cu).
#include "counter/provider/nvidia/samples.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "counter/provider/nvidia/host.h"
#include "event/spool/spool_samples.h"

namespace {

using namespace tacho::counter;
using tacho::spool::PcSampleRecord;

std::string record(uint64_t cubin, uint64_t offset, std::string name,
                   const std::vector<std::pair<uint32_t, uint32_t>>& reasons) {
  PcSampleRecord head{};
  head.magic = tacho::spool::kSampleMagic;
  head.cubin = cubin;
  head.offset = offset;
  head.reasons = static_cast<uint32_t>(reasons.size());
  head.name_bytes = static_cast<uint32_t>(name.size());
  name.resize((name.size() + 7) / 8 * 8);
  head.bytes = static_cast<uint32_t>(sizeof head + reasons.size() * 8 + name.size());
  std::string out(reinterpret_cast<const char*>(&head), sizeof head);
  for (const auto& [index, count] : reasons) {
    out.append(reinterpret_cast<const char*>(&index), 4);
    out.append(reinterpret_cast<const char*>(&count), 4);
  }
  return out + name;
}

const std::map<uint32_t, std::string> kReasons = {{1, "stalled_wait"}, {2, "stalled_selected"}};

TEST(PcSamples, RecordsOfOnePlaceAreAddedUp) {
  nvidia::RawSamples raw;
  const std::string bytes = record(7, 16, "kernel", {{1, 3}, {2, 0}}) + record(7, 16, "kernel", {{1, 4}, {2, 5}}) +
                            record(7, 32, "kernel", {{9, 1}}) + record(8, 16, "kernel", {{1, 1}});
  ASSERT_TRUE(nvidia::parse_samples(bytes, kReasons, raw));
  ASSERT_EQ(raw.places.size(), 3u);
  EXPECT_EQ(raw.places[0].reasons, (std::map<std::string, uint64_t>{{"stalled_wait", 7}, {"stalled_selected", 5}}));
  EXPECT_EQ(raw.places[1].reasons.begin()->first, "reason 9");
}

TEST(PcSamples, LossesAreTold) {
  PcSampleRecord head{};
  head.magic = tacho::spool::kSampleMagic;
  head.bytes = sizeof head;
  head.function = tacho::spool::kNoSamples;
  head.total = 100;
  head.dropped = 3;
  nvidia::RawSamples raw;
  ASSERT_TRUE(nvidia::parse_samples({reinterpret_cast<const char*>(&head), sizeof head}, kReasons, raw));
  EXPECT_EQ(raw.total, 100u);
  EXPECT_EQ(raw.dropped, 3u);
  EXPECT_TRUE(raw.places.empty());
}

TEST(PcSamples, EveryPrefixIsRefusedOrWhole) {
  const std::string whole = record(7, 16, "kernel", {{1, 3}});
  for (size_t size = 1; size < whole.size(); ++size) {
    nvidia::RawSamples raw;
    EXPECT_FALSE(nvidia::parse_samples(std::string_view(whole).substr(0, size), kReasons, raw)) << size;
  }
  std::string wrong = whole;
  const uint32_t many = 0x7fffffff;
  std::memcpy(wrong.data() + offsetof(PcSampleRecord, reasons), &many, sizeof many);
  nvidia::RawSamples raw;
  EXPECT_FALSE(nvidia::parse_samples(wrong, kReasons, raw));
}

TEST(PcSamples, Reasons) {
  EXPECT_EQ(nvidia::parse_reasons("3 wait\nnonsense\n12 long name\n5"),
            (std::map<uint32_t, std::string>{{3, "wait"}, {12, "long name"}}));
}

TEST(PcSamples, Disassembly) {
  const auto sass = nvidia::parse_disassembly(R"(
	code for sm_90
		Function : _Z4axpyfPKfPfi
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                 /* 0x00000a00ff017b82 */
                                                                          /* 0x000fe20000000800 */
        /*0010*/              @!P0 EXIT ;                                 /* 0x000000000000894d */
                                                                          /* 0x000fea0003800000 */
		..........
		Function : other
        /*0000*/                   BRA 0x0;                               /* 0xfffffffc00fc7947 */
)");
  ASSERT_EQ(sass.size(), 2u);
  EXPECT_EQ(sass.at("_Z4axpyfPKfPfi"),
            (std::map<uint64_t, std::string>{{0, "LDC R1, c[0x0][0x28]"}, {16, "@!P0 EXIT"}}));
  EXPECT_EQ(sass.at("other").at(0), "BRA 0x0");
}

TEST(PcSamples, SourceLinesOfARealModule) {
  if (nvidia::Host::library().empty()) GTEST_SKIP() << "no CUPTI on this machine";
  std::ifstream file(TACHO_TEST_DATA "/lines.cubin", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.view().empty());
  std::set<std::string> lines;
  for (uint64_t offset = 0; offset < 0x200; offset += 16)
    lines.insert(nvidia::source_place(text.view(), "_Z4axpyfPKfPfi", offset).line);
  EXPECT_TRUE(lines.contains("lines.cu:4")) << *lines.begin();
  EXPECT_EQ(nvidia::source_place(text.view(), "no_such_function", 0).line, "");
  EXPECT_EQ(nvidia::source_place("not a module", "_Z4axpyfPKfPfi", 0).line, "");
}

}  // namespace
