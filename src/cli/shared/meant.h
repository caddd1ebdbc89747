// What somebody meant who typed `tacho FILE ...`: files that are no commands, programs that are no programs.
#pragma once

#include <span>
#include <string>

namespace tacho::cli {

/// The command line that was probably meant by `tacho WORDS...` when the first word names a file or folder that tacho cannot
/// start: "tacho trace -- python3 hello.py", "tacho info run.tacho". Empty when nothing is likely.
std::string meant_command(std::span<const std::string> words);

/// Whether `tacho WORDS...` names a program to trace: "--" first, a path to something executable, or a program in PATH whose
/// name is not nearly a command's (`tacho stat` is a slip, `tacho python3 train.py` is none).
bool is_program(std::span<const std::string> words, std::span<const std::string> commands);

/// One sentence for a first word that is neither a command nor something to start; names what was probably meant.
std::string not_a_command(std::span<const std::string> words, std::span<const std::string> commands);

/// A word as a shell takes it: quoted where it has blanks or signs.
std::string shell_word(const std::string& word);

}  // namespace tacho::cli
