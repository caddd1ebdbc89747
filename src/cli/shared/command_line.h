// Helpers for command lines: the program's words, sentences about mistakes, seconds and sizes, free names.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tacho::cli {

/// The words after `--` (or after the last option) of an app with prefix_command(). An error if there are none, or if the
/// first is an option that does not exist.
Result<std::vector<std::string>> target_command(const CLI::App& app);
/// One sentence for a parse error, with the nearest option's name when an option is unknown.
std::string option_error(const CLI::App& app, const CLI::ParseError& error);

/// Parses the command line. Nothing: the command goes on. Else its exit code, after --help was printed to stdout, or one
/// sentence about a mistake to stderr with `mistake` as the code.
std::optional<int> parse_options(CLI::App& app, int argc, char** argv, int mistake);
/// --help of a command: usage with the program's name, options in groups; lines fit a terminal. `more` ends the usage line.
void print_help(CLI::App& app, const std::string& more = {});
/// `text` with lines of at most `width` columns; further lines begin where the description of an option begins.
std::string wrapped_help(std::string_view text, size_t width);
/// wrapped_help() to a descriptor (STDOUT_FILENO or STDERR_FILENO) that is a terminal, else the text as it is.
void print_help_text(std::string_view text, int descriptor);

/// For options that take seconds: "" for a number from 0 on, else what is wrong with `text`.
std::string check_seconds(const std::string& text);

/// "64M", "1.5G", "4096" -> bytes; units k, M, G, T are powers of 1024 as users of rings expect.
Result<uint64_t> parse_size(const std::string& text);

/// Where a command that wrote `outputs` prints what else it has to say: to standard output, or to standard error when one of
/// them went to standard output, which then holds that output alone.
std::FILE* message_stream(std::span<const std::string> outputs);
/// Prints the paths of outputs to their message_stream(), one a line, but for standard output itself.
void print_outputs(std::span<const std::string> outputs);

/// `name` itself if it is free, else with .1, .2 ... before its extension.
std::string free_name(const std::string& name);

}  // namespace tacho::cli
