// Options of tacho's commands: what a command line means, what is wrong with a bad one, and the lines of --help.
#include "cli/shared/command_options.h"

#include <gtest/gtest.h>

#include <optional>

namespace tacho::cli {
namespace {

// A command with one option of each kind.
struct Sample {
  explicit Sample(bool prefix = false) {
    app.add_option("file", file, "the input");
    app.add_option("more", more, "further inputs");
    output = app.add_option("-o,--output", out, "where to write");
    app.add_option("-n,--number", number, "how many").between(1, 100).capture_default_str();
    app.add_option("--size", size, "of what").type_name("BYTES");
    app.add_option("--rate", rate, "a second").positive();
    app.add_option("-k,--kernel", kernels, "names").expected(1, -1);
    app.add_option("--list", list, "what there is").expected(0, 1);
    app.add_flag("-q,--quiet", quiet, "say nothing");
    app.add_flag("-v", loud, "say more");
    app.add_flag("!--no-stacks", stacks, "without stacks");
    app.open_group("Kinds");
    app.add_option("--by", by, "what to count").one_of({"kernel", "copy"}).excludes(*output);
    if (prefix) app.prefix_command();
  }
  // The mistake in the command line, or "".
  std::string parse(std::vector<std::string> words) {
    words.insert(words.begin(), "tacho sample");
    std::vector<char*> line;
    for (std::string& word : words) line.push_back(word.data());
    line.push_back(nullptr);
    const CommandOptions::Parsed parsed = app.parse(static_cast<int>(words.size()), line.data());
    help = parsed.help;
    return parsed.mistake.value_or("");
  }

  CommandOptions app{"A sample.", "tacho sample"};
  std::string file, out, by;
  std::vector<std::string> more, kernels;
  int number = 5;
  size_t size = 0;
  double rate = 0;
  std::optional<std::string> list;
  bool quiet = false, loud = false, stacks = true, help = false;
  std::optional<CommandOption> output;
};

std::string mistake(const std::vector<std::string>& words) {
  Sample sample;
  std::string text = sample.parse(words);
  constexpr std::string_view kEnd = "; see tacho sample --help";
  if (text.ends_with(kEnd)) text.resize(text.size() - kEnd.size());
  return text;
}

TEST(CommandOptions, ReadEverySpelling) {
  Sample sample;
  EXPECT_EQ(
      sample.parse({"in", "-o", "a b", "--number=7", "--size", "0x10", "-qv", "--no-stacks", "two", "-kx", "--list"}),
      "");
  EXPECT_EQ(sample.file, "in");
  EXPECT_EQ(sample.more, std::vector<std::string>{"two"});
  EXPECT_EQ(sample.out, "a b");
  EXPECT_EQ(sample.number, 7);
  EXPECT_EQ(sample.size, 16u);
  EXPECT_TRUE(sample.quiet && sample.loud);
  EXPECT_FALSE(sample.stacks);
  EXPECT_EQ(sample.kernels, std::vector<std::string>{"x"});
  EXPECT_EQ(sample.list, "");
  EXPECT_EQ(sample.output->count(), 1u);
}

TEST(CommandOptions, ListsEndAtTheNextOptionAndAtTheSeparator) {
  Sample sample;
  EXPECT_EQ(sample.parse({"-k", "a", "-3", "b", "-q", "in", "-k", "c", "--", "--more"}), "");
  EXPECT_EQ(sample.kernels, (std::vector<std::string>{"a", "-3", "b", "c"})) << "-3 is no option";
  EXPECT_EQ(sample.file, "in");
  EXPECT_EQ(sample.more, std::vector<std::string>{"--more"}) << "behind -- nothing is an option";
}

TEST(CommandOptions, ValuesMayLookLikeOptions) {
  Sample sample;
  EXPECT_EQ(sample.parse({"-o", "-q", "--rate", "1.5", "--quiet=no"}), "");
  EXPECT_EQ(sample.out, "-q");
  EXPECT_FALSE(sample.quiet);
  EXPECT_EQ(sample.rate, 1.5);
}

TEST(CommandOptions, AProgramBehindThemKeepsItsWords) {
  Sample sample(true);
  sample.file = "";
  EXPECT_EQ(sample.parse({"-q", "--", "./app", "-q", "--", "x"}), "");
  EXPECT_EQ(sample.app.remaining(), (std::vector<std::string>{"--", "./app", "-q", "--", "x"}));
}

TEST(CommandOptions, RepeatableOptionsTakeOneValueEachTime) {
  CommandOptions app("A sample.", "tacho sample");
  std::vector<std::string> names, rest;
  app.add_option("more", rest, "further inputs");
  app.add_option("--name", names, "who").repeatable();
  std::vector<std::string> words = {"tacho sample", "--name", "a", "x", "--name=b", "y"};
  std::vector<char*> line;
  for (std::string& word : words) line.push_back(word.data());
  line.push_back(nullptr);
  EXPECT_EQ(app.parse(static_cast<int>(words.size()), line.data()).mistake.value_or(""), "");
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rest, (std::vector<std::string>{"x", "y"}));
}

TEST(CommandOptions, MistakesNameTheOptionAndWhatToWrite) {
  EXPECT_EQ(mistake({"--number", "x"}), "--number x: write a whole number");
  EXPECT_EQ(mistake({"--number", "1.5"}), "--number 1.5: write a whole number");
  EXPECT_EQ(mistake({"--number", "0"}), "--number: choose a number from 1 to 100, not 0");
  EXPECT_EQ(mistake({"--size", "-1"}), "--size: choose a whole number from 0 on, not -1");
  EXPECT_EQ(mistake({"--size", "99999999999999999999999"}), "--size 99999999999999999999999: write a whole number");
  EXPECT_EQ(mistake({"--size="}), "--size BYTES: the value is missing");
  EXPECT_EQ(mistake({"--rate", "fast"}), "--rate fast: write a number");
  EXPECT_EQ(mistake({"--rate", "-2"}), "--rate: choose a number above 0, not -2");
  EXPECT_EQ(mistake({"-o"}), "--output FILE: the value is missing");
  EXPECT_EQ(mistake({"-o", "--", "x"}), "--output FILE: the value is missing");
  EXPECT_EQ(mistake({"-o", "a", "-o", "b"}), "--output FILE is given 2 times, and takes one value");
  EXPECT_EQ(mistake({"--by", "line"}), "--by: choose kernel or copy, not 'line'");
  EXPECT_EQ(mistake({"-o", "a", "--by", "copy"}), "--output and --by do not go together");
  EXPECT_EQ(mistake({"--outptu", "x"}), "this argument was not expected: --outptu; did you mean --output?");
  EXPECT_EQ(mistake({"-qz"}), "this argument was not expected: -z");
  EXPECT_EQ(mistake({"--quiet=x"}), "--quiet=x: a flag takes no value but yes or no");
}

TEST(CommandOptions, AValueThatMayBeMissingIsOneOfItsWords) {
  const auto parse = [](std::vector<std::string> words, std::optional<std::string>& shapes) {
    CommandOptions app("A sample.", "tacho sample");
    app.add_option("--shapes", shapes, "which").expected(0, 1).one_of({"some", "all"});
    app.prefix_command();
    words.insert(words.begin(), "tacho sample");
    std::vector<char*> line;
    for (std::string& word : words) line.push_back(word.data());
    line.push_back(nullptr);
    const std::string mistake = app.parse(static_cast<int>(words.size()), line.data()).mistake.value_or("");
    return mistake.empty() ? app.remaining() : std::vector<std::string>{mistake};
  };
  using Words = std::vector<std::string>;
  std::optional<std::string> shapes;
  EXPECT_EQ(parse({"./app", "--shapes"}, shapes), (Words{"./app", "--shapes"}));
  EXPECT_FALSE(shapes.has_value());
  EXPECT_EQ(parse({"--shapes", "./app", "all"}, shapes), (Words{"./app", "all"}));
  EXPECT_EQ(shapes, "");
  EXPECT_EQ(parse({"--shapes", "all", "./app"}, shapes), Words{"./app"});
  EXPECT_EQ(shapes, "all");
  EXPECT_EQ(parse({"--shapes=few", "./app"}, shapes),
            Words{"--shapes: choose some or all, not 'few'; see tacho sample --help"});
}

TEST(CommandOptions, WhatIsRequiredIsNamed) {
  CommandOptions app("A sample.", "tacho sample");
  std::string file, format;
  app.add_option("file", file, "the input").required();
  app.add_option("-f,--format", format, "of the output").required();
  std::string name = "tacho sample";
  char* line[] = {name.data(), nullptr};
  EXPECT_EQ(app.parse(1, line).mistake, "FILE is missing: tacho sample FILE; see tacho sample --help");
}

TEST(CommandOptions, AListLeavesTheArgumentThatMustBeThere) {
  CommandOptions app("A sample.", "tacho sample");
  std::string file;
  std::vector<std::string> names;
  app.add_option("file", file, "the input").required();
  app.add_option("-k", names, "names");
  std::string words[] = {"tacho sample", "-k", "a", "b", "in"};
  std::vector<char*> line;
  for (std::string& word : words) line.push_back(word.data());
  EXPECT_FALSE(app.parse(5, line.data()).mistake.has_value());
  EXPECT_EQ(file, "in");
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST(CommandOptions, HelpNamesEverythingOnce) {
  Sample sample;
  EXPECT_EQ(sample.parse({"--help", "--number", "x"}), "") << "who asks for help gets it";
  EXPECT_TRUE(sample.help);
  EXPECT_EQ(sample.app.help(""), "A sample.\n"
                                 "Usage: tacho sample [FILE] [MORE...] [options]\n"
                                 "\n"
                                 "Arguments:\n"
                                 "  FILE                        the input\n"
                                 "  MORE...                     further inputs\n"
                                 "\n"
                                 "Options:\n"
                                 "  -h, --help                  this text\n"
                                 "  -o, --output FILE           where to write\n"
                                 "  -n, --number N              how many (1 to 100) (default: 5)\n"
                                 "  --size BYTES                of what\n"
                                 "  --rate N                    a second\n"
                                 "  -k, --kernel KERNEL...      names\n"
                                 "  --list [LIST]               what there is\n"
                                 "  -q, --quiet                 say nothing\n"
                                 "  -v                          say more\n"
                                 "  --no-stacks                 without stacks\n"
                                 "\n"
                                 "Kinds:\n"
                                 "  --by WHAT                   what to count (kernel or copy)\n"
                                 "\n");
}

TEST(CommandOptions, HelpSaysWhatMayStandForTheProgram) {
  CommandOptions program("A sample.", "tacho sample"), either("A sample.", "tacho sample");
  program.prefix_command();
  either.prefix_command("PID...");
  EXPECT_NE(program.help("").find("Usage: tacho sample [options] -- program [arguments]\n"), std::string::npos);
  EXPECT_NE(either.help("").find("Usage: tacho sample [options] {-- program [arguments] | PID...}\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tacho::cli
