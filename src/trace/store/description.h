// Description: the names of the tables, columns and enumerators in a file. Every file carries one, so that a reader of
// another build can find them (docs/trace-file.md gives its text). Mapping: the parts of a file's description that this
// build knows, and where they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/schema.h"

namespace tacho::trace {

enum class TableKind : uint8_t { kTimed, kFact, kDimension };

struct Description {
  struct Value {
    int64_t code;
    std::string text;
  };
  struct Enumeration {
    std::string name;
    std::vector<Value> values;
  };
  struct Column {
    std::string name;
    std::string type;  // name of an event::Type: "integer", "row" ...
    std::string of;    // the table of a row, the enumeration of an enum; else empty
  };
  struct Table {
    TableKind kind;
    uint8_t number;  // as in chunks
    std::string name;
    std::vector<Column> columns;
  };
  std::vector<Enumeration> enumerations;
  std::vector<Table> tables;

  /// The description that this build writes.
  static Description ours();
  /// Parses the result of text(). The error is one clause without the file's name ("line 3 names no type").
  static Result<Description> parse(std::string_view text);
  std::string text() const;
};

/// Text of Description::ours(), made once.
std::string_view our_description();
/// The same, packed by pack_description().
std::span<const uint8_t> our_packed_description();
/// The hash of a description's text, as in a file's header.
uint64_t description_hash(std::string_view text);

/// Pack a description's text for a file's section, compressed if that saves space, and unpack it. The error is one
/// clause without the file's name.
std::vector<uint8_t> pack_description(std::string_view text);
Result<std::string> unpack_description(std::span<const uint8_t> bytes);
/// Longest text that a reader accepts, in bytes.
inline constexpr size_t kMaxDescription = size_t{64} << 10;

/// Files of format version 1 have no description. They all have this schema in their header, and one layout.
inline constexpr uint64_t kSchemaOfVersion1 = 0xaa1c05ef4e359246;
std::string_view description_of_version_1();

/// Translates a file's codes of one enumeration to ours.
struct CodeMap {
  std::vector<int64_t> to;                       // by the file's code
  int64_t unknown = 0;                           // for every other code
  std::vector<Description::Value> foreign;       // values of the file that this build does not know
  const event::Enumeration* known_as = nullptr;  // this build's enumeration

  int64_t operator()(int64_t code) const {
    return static_cast<uint64_t>(code) < to.size() ? to[static_cast<size_t>(code)] : unknown;
  }
};

/// Locates our tables and columns in a file with some description. Holds no reference to the description.
class Mapping {
 public:
  struct Column {
    int at = -1;                     // number in the file; -1: the file has no such column
    int64_t absent = 0;              // the value of every row in that case
    const CodeMap* codes = nullptr;  // for enum columns
  };
  struct Table {
    TableKind kind = TableKind::kFact;
    std::string name;                        // in the file
    event::Table ours = event::Table::kEnd;  // kEnd: this build does not know the table
    size_t columns = 0;                      // in the file
    std::vector<int> to_ours;                // by the file's column numbers; -1: unknown
    std::vector<std::string> foreign;        // columns of the file that this build does not know
    bool known() const { return ours != event::Table::kEnd; }
  };

  explicit Mapping(const Description& file);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// The mapping of our own description, made once.
  static std::shared_ptr<const Mapping> ours();

  /// The table with a number in the file; nullptr when the file describes none.
  const Table* in_file(int64_t number) const {
    return number >= 0 && number < static_cast<int64_t>(by_number_.size())
               ? by_number_[static_cast<size_t>(number)].get()
               : nullptr;
  }
  /// The place of our column. Contract: a table of the schema, one of its columns.
  const Column& column(event::Table table, size_t column) const {
    return by_table_[static_cast<size_t>(table)][column];
  }

 private:
  std::vector<std::unique_ptr<Table>> by_number_;
  std::vector<std::vector<Column>> by_table_;  // by our table numbers, including tables that the file lacks
  std::vector<std::unique_ptr<CodeMap>> codes_;
};

}  // namespace tacho::trace
