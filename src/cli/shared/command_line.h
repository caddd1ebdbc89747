// Helpers for command lines: the program's words, sentences about mistakes, seconds, sizes, free names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/shared/command_options.h"
#include "report/output.h"

namespace tacho::cli {

/// The words after `--` (or after the last option) of an app with prefix_command(). Fails if there are none, or if the
/// first one is an unknown option.
Result<std::vector<std::string>> target_command(const CommandOptions& app);

/// Parses the command line. nullopt: the command continues. Otherwise its exit code: 0 after printing --help to stdout,
/// `mistake` after printing one sentence to stderr.
std::optional<int> parse_options(CommandOptions& app, int argc, char** argv, int mistake);
/// Prints --help: usage, then options in groups; lines fit a terminal. `more` ends the usage line.
void print_help(const CommandOptions& app, const std::string& more = {});
/// `text` in lines of at most `width` columns; further lines start below the option's description.
std::string wrapped_help(std::string_view text, size_t width);
/// Prints wrapped_help() if `descriptor` (STDOUT_FILENO or STDERR_FILENO) is a terminal, else the plain text.
void print_help_text(std::string_view text, int descriptor);

/// For options that take seconds: "" for a number from 0 up, else what is wrong with `text`.
std::string check_seconds(const std::string& text);

/// "64M", "1.5G", "4096" -> bytes. k, M, G and T are powers of 1024, as is usual for buffers.
Result<uint64_t> parse_size(const std::string& text);

/// Where a command that wrote `outputs` prints everything else: standard output, or standard error if one of the
/// outputs went to standard output, which must then hold nothing else.
report::Stream message_stream(std::span<const std::string> outputs);
/// Prints the paths of `outputs`, except standard output, one per line to their message_stream().
void print_outputs(std::span<const std::string> outputs);

/// `name` if it is free, else with .1, .2 ... before its extension.
std::string free_name(const std::string& name);

}  // namespace tacho::cli
