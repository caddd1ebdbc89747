// Guesses what users meant by `tacho FILE ...` if FILE is no command or no program.
#pragma once

#include <span>
#include <string>

namespace tacho::cli {

/// The command line that `tacho WORDS...` probably meant if the first word names a file or folder that is no command:
/// "tacho trace -- python3 hello.py", "tacho info run.tacho". Empty if nothing is likely.
std::string meant_command(std::span<const std::string> words);

/// True if `tacho WORDS...` names a program to trace: "--" first, a path to an executable, or a program in PATH whose
/// name resembles no command (`tacho stat` is a slip, `tacho python3 train.py` is not).
bool is_program(std::span<const std::string> words, std::span<const std::string> commands);

/// True for a path to a program that is not there: `tacho ./app` and `tacho trace -- ./app` end alike.
bool is_missing_program(const std::string& word);

/// One sentence for a first word that is neither a command nor a program; says what was probably meant.
std::string not_a_command(std::span<const std::string> words, std::span<const std::string> commands);

/// Whether `folder` holds counters as `tacho profile` and rocprof-compute leave them, in it or up to four levels below.
bool is_profile(const std::string& folder);

/// What `path` is instead of one trace, with the command that takes it, in one sentence; "" if nothing is likely.
std::string not_a_trace(const std::string& path);

/// Why none of `paths` could be read as traces: not_a_trace() of the first that is a profile folder or a program, else
/// `why`.
std::string none_is_a_trace(std::span<const std::string> paths, const std::string& why);

/// The same for a path that should be a profile folder.
std::string not_a_profile(const std::string& path);

/// A word as a shell needs it: quoted if it is empty or has blanks or special characters.
std::string shell_word(const std::string& word);

}  // namespace tacho::cli
