// Description: the tables, columns and enumerators that a file holds, by name. Every file carries one, so that a reader
// of another build knows what lies where (docs/trace-file.md has its text). Mapping: what of a file's description this
// build knows, and where it finds it.
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
    uint8_t number;  // what chunks call it
    std::string name;
    std::vector<Column> columns;
  };
  std::vector<Enumeration> enumerations;
  std::vector<Table> tables;

  /// What this build writes.
  static Description ours();
  /// Out of text(). An error is one clause without the file's name ("line 3 names no type").
  static Result<Description> parse(std::string_view text);
  std::string text() const;
};

/// Text of Description::ours(), made once.
std::string_view our_description();
/// The same as pack_description() makes it.
std::span<const uint8_t> our_packed_description();
/// The hash in a file's header: of its description's text.
uint64_t description_hash(std::string_view text);

/// A description's text as a file's section holds it, compressed where that pays, and back. Bytes that are none give a
/// clause without the file's name.
std::vector<uint8_t> pack_description(std::string_view text);
Result<std::string> unpack_description(std::span<const uint8_t> bytes);
/// Longest text that a reader takes.
inline constexpr size_t kMaxDescription = size_t{64} << 10;

/// Format version 1 had no description: its files have this schema in their header, and this one layout.
inline constexpr uint64_t kSchemaOfVersion1 = 0xaa1c05ef4e359246;
std::string_view description_of_version_1();

/// A file's codes of one enumeration as ours.
struct CodeMap {
  std::vector<int64_t> to;                       // by the file's code
  int64_t unknown = 0;                           // for every other
  std::vector<Description::Value> foreign;       // values of the file that this build does not know
  const event::Enumeration* known_as = nullptr;  // what this build calls the enumeration

  int64_t operator()(int64_t code) const {
    return static_cast<uint64_t>(code) < to.size() ? to[static_cast<size_t>(code)] : unknown;
  }
};

/// Where a reader finds our tables and columns in a file of some description. Holds no reference to the description.
class Mapping {
 public:
  struct Column {
    int at = -1;                     // number in the file; -1: the file has no such column
    int64_t absent = 0;              // then every row holds this
    const CodeMap* codes = nullptr;  // for enum columns
  };
  struct Table {
    TableKind kind = TableKind::kFact;
    std::string name;                        // in the file
    event::Table ours = event::Table::kEnd;  // kEnd: this build does not know the table
    size_t columns = 0;                      // in the file
    std::vector<int> to_ours;                // by the file's column numbers; -1: not known
    std::vector<std::string> foreign;        // columns of the file that this build does not know
    bool known() const { return ours != event::Table::kEnd; }
  };

  explicit Mapping(const Description& file);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// That of our own description, made once.
  static std::shared_ptr<const Mapping> ours();

  /// The table of a number in the file; nullptr: the file describes none.
  const Table* in_file(int64_t number) const {
    return number >= 0 && number < static_cast<int64_t>(by_number_.size())
               ? by_number_[static_cast<size_t>(number)].get()
               : nullptr;
  }
  /// Where our column lies. Contract: a table of the schema, one of its columns.
  const Column& column(event::Table table, size_t column) const {
    return by_table_[static_cast<size_t>(table)][column];
  }

 private:
  std::vector<std::unique_ptr<Table>> by_number_;
  std::vector<std::vector<Column>> by_table_;  // by our table numbers: also those that the file does not have
  std::vector<std::unique_ptr<CodeMap>> codes_;
};

}  // namespace tacho::trace
