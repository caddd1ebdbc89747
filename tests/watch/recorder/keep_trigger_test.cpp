// The words of --trigger.
#include "watch/recorder/keep_trigger.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tacho::watch {
namespace {

TEST(KeepTrigger, ReadsEachKind) {
  const auto read = [](const char* text) {
    const auto trigger = parse_keep_trigger(text);
    EXPECT_TRUE(trigger) << text;
    return trigger.value_or(KeepTrigger{});
  };
  EXPECT_EQ(read("signal:USR1").signal, SIGUSR1);
  EXPECT_EQ(read("signal:SIGUSR2").signal, SIGUSR2);
  EXPECT_EQ(read("crash").cause, KeepCause::kCrash);
  EXPECT_EQ(read("program").cause, KeepCause::kProgram);
  EXPECT_EQ(read("marker:epoch: 3").text, "epoch: 3");
  EXPECT_EQ(read("slow-step:20%:train step").text, "train step");
  EXPECT_EQ(read("out-of-memory").cause, KeepCause::kOutOfMemory);
  EXPECT_DOUBLE_EQ(read("slow-step:20%").share, 0.2);
  EXPECT_DOUBLE_EQ(read("idle:50%").seconds, 1);
  EXPECT_DOUBLE_EQ(read("idle:50%:500ms").seconds, 0.5);
  EXPECT_DOUBLE_EQ(read("new-kernel").seconds, 10);
  EXPECT_DOUBLE_EQ(read("new-kernel:1min").seconds, 60);
  EXPECT_DOUBLE_EQ(read("memory:90%").share, 0.9);
  EXPECT_DOUBLE_EQ(read("collective:100ms").seconds, 0.1);
  EXPECT_EQ(read("collective:100ms").words, "collective:100ms");
}

TEST(KeepTrigger, RefusesTheRestWithWhatThereIs) {
  for (const char* const text : {"",
                                 "often",
                                 "key",
                                 "signal",
                                 "signal:KILL",
                                 "crash:1",
                                 "program:now",
                                 "marker",
                                 "marker:",
                                 "slow-step:20%:",
                                 "slow-step",
                                 "slow-step:20",
                                 "slow-step:-5%",
                                 "slow-step:nan%",
                                 "idle:100%",
                                 "idle:50%:",
                                 "idle:50%:soon",
                                 "new-kernel:10",
                                 "memory:101%",
                                 "memory:0%",
                                 "collective",
                                 "collective:5",
                                 "collective:-1s",
                                 "collective:1h"}) {
    const auto trigger = parse_keep_trigger(text);
    ASSERT_FALSE(trigger) << text;
    EXPECT_TRUE(trigger.error().message.starts_with("--trigger ")) << trigger.error().message;
  }
  // No more of a marker's text is kept.
  EXPECT_TRUE(parse_keep_trigger("marker:" + std::string(184, 'm')));
  EXPECT_FALSE(parse_keep_trigger("marker:" + std::string(185, 'm')));
  EXPECT_NE(parse_keep_trigger("often").error().message.find("slow-step:20%"), std::string::npos);
}

}  // namespace
}  // namespace tacho::watch
