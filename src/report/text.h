// Text for people and machines in one place: numbers, durations, sizes, display width, cleaning, colour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::report {

/// A number with a fixed count of decimals ("163840.00"); "inf", "-inf"; NaN gives "". Never "-0.00".
std::string format_fixed(double value, int decimals);
/// The same scaled by k, M, G, T, P, E where it is 1000 or more: "163.84k". Below 1000 as format_fixed.
std::string format_si(double value, int decimals);
/// Nanoseconds in the unit that suits them: "812 ns", "1.53 us", "20.4 ms", "3.21 s", "2 min 05 s".
std::string format_duration(double nanoseconds);
/// Bytes in binary units: "512 B", "1.50 KiB", "2.25 GiB".
std::string format_bytes(double bytes);
/// Shortest text that reads back as the same double: "0.1", "163840", "1e+20"; "inf", "-inf", "nan".
std::string format_exact(double value);

/// Columns that the text takes on a terminal: UTF-8 code points, wide ones counted twice, combining ones not at all.
size_t display_width(std::string_view text);
/// The text with everything a terminal might take for a command made visible: U+FFFD for bytes that are not UTF-8, '?'
/// for control characters.
std::string clean(std::string_view text);
/// Truncates to at most `width` columns, with an ellipsis.
std::string shortened(std::string_view text, size_t width);
/// Padded with spaces to `width` columns.
std::string padded_right(std::string_view text, size_t width);
std::string padded_left(std::string_view text, size_t width);
/// Broken at spaces into lines of at most `width` columns, joined by newlines and `indent` spaces; words longer than a
/// line stay whole.
std::string wrapped(std::string_view text, size_t width, size_t indent = 0);

/// The text in lines of at most `width` columns (0 = any), broken at spaces: the first begins after `indent` blanks,
/// the others after `further`. Words longer than a line stay whole; newlines in the text begin a line like the first.
std::string paragraph(std::string_view text, size_t width, size_t indent = 0, size_t further = 0);

/// Abilities of a stream. Colour: only on a terminal, not with NO_COLOR set nor TERM=dumb. Width: of the terminal, or
/// $COLUMNS, or 80; at least 40.
struct Screen {
  bool terminal = false;
  bool colour = false;
  size_t width = 80;

  /// What tables and sentences that are an answer by themselves must fit into: a terminal's width. 0, any, elsewhere:
  /// names in files and pipes stay whole, for grep. Reports of several parts fit `width` everywhere.
  size_t fit() const { return terminal ? width : 0; }
  /// The sentence and a newline, wrapped to fit(). It may begin with blanks; further lines begin two columns further
  /// right, or below it where it is indented.
  std::string sentence(std::string_view text) const;
};
Screen screen_of(int descriptor);

/// Escape sequences, empty without colour.
enum class Paint : uint8_t { kBold, kDim, kRed, kYellow, kGreen, kCyan };
std::string painted(std::string_view text, Paint paint, bool colour);

}  // namespace tacho::report
