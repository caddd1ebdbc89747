// Findings about memory: for each rule a trace with its fault, one without, and one below what is worth a word.
#include <gtest/gtest.h>

#include <string>

#include "analysis/findings/findings.h"
#include "base/format.h"
#include "support/memory_maker.h"

namespace tacho::analysis {
namespace {

constexpr int64_t kMillisecond = 1'000'000, kMiB = 1 << 20;

class MemoryFaultMaker : public MemoryMaker {
 public:
  int64_t now = kMillisecond;

  /// One step of training: an operator `name` allocates at `address`; `inside` runs while it is open.
  template <typename F>
  void operation(const char* name, F&& inside) {
    const int64_t start = now;
    now += 10'000;
    inside();
    now += 10'000;
    range(start, now, name, "");
    now += 10'000;
  }
  Findings findings() {
    const auto made = trace();
    return trace::must(find(*made));
  }
};

std::string memory_sentences_of(const Findings& findings) {
  std::string out;
  for (const TraceFinding& finding : findings.findings)
    out += fmt::format("{} {}: {}\n", finding.rule, gains_text(finding), finding.sentence);
  return out;
}

const TraceFinding* memory_finding(const Findings& findings, std::string_view rule) {
  for (const TraceFinding& finding : findings.findings)
    if (finding.rule == rule) return &finding;
  return nullptr;
}

void expect_memory(const Findings& findings, std::string_view rule, std::string_view state) {
  const TraceFinding* const finding = memory_finding(findings, rule);
  EXPECT_EQ(finding == nullptr  ? "silent"
            : finding->possible ? "possible"
                                : "found",
            state)
      << rule << "\n"
      << memory_sentences_of(findings);
}

// Parameters of 64 MiB, and an operator whose result is freed before it ends.
Findings temporary(int64_t bytes) {
  MemoryFaultMaker made;
  made.operation("aten::empty", [&] { made.allocate(made.now, 1, 64 * kMiB); });
  made.operation("aten::softmax", [&] {
    made.allocate(made.now, 2, bytes);
    made.now += 1000;
    made.free(made.now, 2);
  });
  made.operation("aten::add", [&] { made.allocate(made.now, 3, 1 * kMiB); });
  return made.findings();
}

TEST(MemoryFindings, OneTemporaryMakesThePeak) {
  const Findings found = temporary(64 * kMiB);
  const TraceFinding* const finding = memory_finding(found, "peak-temporary");
  ASSERT_NE(finding, nullptr) << memory_sentences_of(found);
  EXPECT_FALSE(finding->possible);
  EXPECT_EQ(finding->where, "GPU 0: Fast, tensors");
  EXPECT_NE(finding->sentence.find("128.00 MiB, 64.00 MiB (50 %) are temporary memory of aten::softmax"),
            std::string::npos)
      << finding->sentence;
  EXPECT_EQ(gains_text(*finding), "could free up to 64.00 MiB");
  EXPECT_FALSE(finding->saves);
  expect_memory(temporary(64 * kMiB), "peak-temporary", "found");
  expect_memory(temporary(2 * kMiB), "peak-temporary", "silent");
}

// Twenty steps in each of which 4 MiB are allocated and kept, or freed.
Findings growing_steps(bool keep, int64_t bytes = 4 * kMiB) {
  MemoryFaultMaker made;
  made.operation("aten::empty", [&] { made.allocate(made.now, 1, 16 * bytes); });
  for (int step = 0; step < 20; ++step) {
    made.range(made.now, made.now + 5, "Optimizer.step#SGD.step", "");
    made.operation("aten::cat", [&] { made.allocate(made.now, 100 + step, bytes); });
    if (!keep) made.free(made.now, 100 + step);
    made.now += kMillisecond;
  }
  return made.findings();
}

TEST(MemoryFindings, MemoryGrows) {
  const Findings found = growing_steps(true);
  const TraceFinding* const finding = memory_finding(found, "memory-grows");
  ASSERT_NE(finding, nullptr) << memory_sentences_of(found);
  EXPECT_NE(finding->sentence.find("aten::cat allocated in 20 of 20 steps what was never freed, 80.00 MiB in all"),
            std::string::npos)
      << finding->sentence;
  expect_memory(growing_steps(true), "memory-grows", "found");
  expect_memory(growing_steps(false), "memory-grows", "silent");
  expect_memory(growing_steps(true, 1000), "memory-grows", "silent");  // a few KiB are not worth a word
}

// 64 MiB live at most, of `reserved`.
Findings reserve(int64_t reserved) {
  MemoryFaultMaker made;
  made.allocate(made.now, 1, 64 * kMiB, 64 * kMiB, reserved);
  made.free(2 * made.now, 1, 64 * kMiB, 0, reserved);
  return made.findings();
}

TEST(MemoryFindings, ReservedMemoryLiesIdle) {
  const Findings found = reserve(128 * kMiB);
  const TraceFinding* const finding = memory_finding(found, "fragmentation");
  ASSERT_NE(finding, nullptr) << memory_sentences_of(found);
  EXPECT_NE(finding->sentence.find("reserved up to 128.00 MiB, of which 64.00 MiB (50 %)"), std::string::npos)
      << finding->sentence;
  EXPECT_EQ(gains_text(*finding), "could free up to 64.00 MiB");
  expect_memory(reserve(128 * kMiB), "fragmentation", "found");
  expect_memory(reserve(72 * kMiB), "fragmentation", "silent");
  expect_memory(reserve(kUnknown), "fragmentation", "silent");  // the allocator does not tell
}

// What the forward pass allocates and the backward pass frees, beside parameters.
Findings training(int64_t parameters) {
  MemoryFaultMaker made;
  made.operation("aten::empty", [&] { made.allocate(made.now, 1, parameters); });
  for (int layer = 0; layer < 4; ++layer)
    made.operation("aten::addmm", [&] { made.allocate(made.now, 10 + layer, 16 * kMiB); });
  for (int layer = 0; layer < 4; ++layer) made.operation("AddmmBackward0", [&] { made.free(made.now, 10 + layer); });
  return made.findings();
}

TEST(MemoryFindings, ActivationsFillTheMemory) {
  const Findings found = training(16 * kMiB);
  const TraceFinding* const finding = memory_finding(found, "activations");
  ASSERT_NE(finding, nullptr) << memory_sentences_of(found);
  EXPECT_NE(finding->sentence.find("Activations are 64.00 MiB of the peak of GPU 0: Fast, tensors, 80.00 MiB (80 %)"),
            std::string::npos)
      << finding->sentence;
  EXPECT_EQ(gains_text(*finding), "could free 16.00 MiB to 32.00 MiB");
  expect_memory(training(16 * kMiB), "activations", "found");
  expect_memory(training(256 * kMiB), "activations", "silent");
}

TEST(MemoryFindings, MemoryRanOut) {
  MemoryFaultMaker made;
  made.allocate(made.now, 1, 64 * kMiB);
  expect_memory(MemoryFaultMaker().findings(), "memory-ran-out", "silent");
  made.add(2 * made.now, AllocationOperation::kOutOfMemory, 0, kUnknown);
  const Findings found = made.findings();
  expect_memory(found, "memory-ran-out", "found");
  ASSERT_NE(memory_finding(found, "memory-ran-out"), nullptr);
  EXPECT_NE(memory_finding(found, "memory-ran-out")->sentence.find("ran out once; up to 64.00 MiB"), std::string::npos)
      << memory_finding(found, "memory-ran-out")->sentence;
}

}  // namespace
}  // namespace tacho::analysis
