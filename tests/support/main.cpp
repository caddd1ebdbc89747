// Entry of every GoogleTest program: tells tests where build and source trees are, so that a program can also be
// started by hand.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("TACHO_BUILD", TACHO_TEST_BUILD, 0);
  setenv("TACHO_SOURCE", TACHO_TEST_SOURCE, 0);
  setenv("TACHO_DATA", TACHO_TEST_SOURCE "/../shared/data", 0);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
