// Descriptions as text and as mappings.
//
// The text has a line for each run of enumerators whose codes follow each other, and for each table; fields are
// separated by tabs:
//
//   enum       Domain     0        unknown        opencl        ...
//   timed      0          dispatch track:row:track  start:time  ...
//   fact       13         loss     process:row:process  table:enum:Table  ...
//   dimension  38         kernel   name:string  kind:enum:DispatchKind  ...
#include "trace/store/description.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <set>

#include "base/format.h"
#include "trace/store/layout.h"
#include "trace/store/section.h"

namespace tacho::trace {
namespace {

using event::Type;

constexpr std::string_view kTypes[] = {"integer", "time", "duration", "bytes", "double", "enum", "id", "string", "row"};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::kRow) + 1);
constexpr std::string_view kKinds[] = {"timed", "fact", "dimension"};
constexpr int kLevel = 9;                 // of zstd: smaller files than at 1, and still under a millisecond
constexpr int64_t kMaxCode = 4096;        // codes count from 0; a table of them is made
constexpr size_t kMaxTableColumns = 255;  // ChunkHead::columns has 8 bits
constexpr size_t kMaxName = 200;

std::string_view type_name(Type type) {
  return kTypes[static_cast<size_t>(type)];
}

// Takes what is in front of the next `separator` from `text`.
std::string_view take(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view piece = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return piece;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != 127; });
}

bool number_of(std::string_view text, int64_t least, int64_t most, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
}

bool same(const event::Column& ours, const Description::Column& file) {
  if (file.type != type_name(ours.type)) return false;
  if (ours.type == Type::kRow) return file.of == event::table_info(ours.target).name;
  if (ours.type == Type::kEnum) return file.of == ours.enumeration->name;
  return true;
}

TableKind kind_of(const event::TableInfo& info) {
  return !event::is_fact(info.table) ? TableKind::kDimension : info.timed ? TableKind::kTimed : TableKind::kFact;
}

}  // namespace

// Text

Description Description::ours() {
  Description made;
  for (const event::Enumeration* enumeration : event::all_enumerations()) {
    Enumeration& copy = made.enumerations.emplace_back();
    copy.name = enumeration->name;
    for (const event::Enumerator& value : enumeration->values)
      copy.values.push_back({value.code, std::string(value.text)});
  }
  for (const event::TableInfo& info : event::all_tables()) {
    Table& copy = made.tables.emplace_back();
    copy.kind = kind_of(info);
    copy.number = static_cast<uint8_t>(info.table);
    copy.name = info.name;
    for (const event::Column& column : info.columns) {
      copy.columns.push_back({std::string(column.name), std::string(type_name(column.type)),
                              std::string(column.type == Type::kRow    ? event::table_info(column.target).name
                                          : column.type == Type::kEnum ? column.enumeration->name
                                                                       : std::string_view())});
    }
  }
  return made;
}

std::string Description::text() const {
  std::string out;
  for (const Enumeration& enumeration : enumerations) {
    for (size_t i = 0; i < enumeration.values.size(); ++i) {
      const Value& value = enumeration.values[i];
      if (i == 0 || value.code != enumeration.values[i - 1].code + 1) {
        if (i > 0) out += '\n';
        out += fmt::format("enum\t{}\t{}", enumeration.name, value.code);
      }
      out += '\t';
      out += value.text;
    }
    out += '\n';
  }
  for (const Table& table : tables) {
    out += fmt::format("{}\t{}\t{}", kKinds[static_cast<size_t>(table.kind)], table.number, table.name);
    for (const Column& column : table.columns) {
      out += fmt::format("\t{}:{}", column.name, column.type);
      if (!column.of.empty()) out += ':' + column.of;
    }
    out += '\n';
  }
  return out;
}

Result<Description> Description::parse(std::string_view text) {
  Description made;
  if (text.size() > kMaxDescription) return fail("is longer than {} bytes", kMaxDescription);
  std::map<std::string, size_t, std::less<>> enumerations;
  std::set<std::string, std::less<>> tables;
  std::set<int64_t> numbers;
  size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const auto bad = [&](std::string_view what) { return fail("has a line {} that {}", line_number, what); };
    std::string_view line = take(text, '\n');
    const std::string_view word = take(line, '\t');
    if (word == "enum") {
      const std::string_view name = take(line, '\t');
      int64_t code = 0;
      if (!is_name(name) || !number_of(take(line, '\t'), 0, kMaxCode, code)) return bad("is no enumeration");
      const auto [at, fresh] = enumerations.try_emplace(std::string(name), made.enumerations.size());
      if (fresh) made.enumerations.push_back({std::string(name), {}});
      std::vector<Value>& values = made.enumerations[at->second].values;
      while (!line.empty()) {
        const std::string_view value = take(line, '\t');
        if (!is_name(value) || code > kMaxCode || (!values.empty() && code <= values.back().code))
          return bad("has an enumerator without a text or a code of its own");
        values.push_back({code++, std::string(value)});
      }
      continue;
    }
    const auto kind = std::find(std::begin(kKinds), std::end(kKinds), word);
    int64_t number = 0;
    if (kind == std::end(kKinds) || !number_of(take(line, '\t'), 0, kUpdateTable - 1, number))
      return bad("is neither an enumeration nor a table");
    const std::string_view name = take(line, '\t');
    if (!is_name(name) || !tables.insert(std::string(name)).second || !numbers.insert(number).second)
      return bad("has a table without a name or a number of its own");
    Table& table = made.tables.emplace_back();
    table.kind = static_cast<TableKind>(kind - std::begin(kKinds));
    table.number = static_cast<uint8_t>(number);
    table.name = name;
    std::set<std::string, std::less<>> columns;
    while (!line.empty()) {
      std::string_view field = take(line, '\t');
      Column column;
      column.name = take(field, ':');
      column.type = take(field, ':');
      column.of = field;
      if (!is_name(column.name) || !is_name(column.type) || table.columns.size() == kMaxTableColumns ||
          !columns.insert(column.name).second)
        return bad("has a column without a name of its own or a type");
      table.columns.push_back(std::move(column));
    }
    if (table.columns.empty() && name != "string") return bad("has a table without columns");
  }
  const auto strings =
      std::find_if(made.tables.begin(), made.tables.end(), [](const Table& table) { return table.name == "string"; });
  if (strings == made.tables.end() || strings->kind != TableKind::kDimension || !strings->columns.empty())
    return fail("has no table of strings");
  for (const Table& table : made.tables) {
    for (const Column& column : table.columns) {
      const bool there = column.type == type_name(Type::kRow)    ? tables.contains(column.of)
                         : column.type == type_name(Type::kEnum) ? enumerations.contains(column.of)
                                                                 : true;
      if (!there)
        return fail("names {} in column {} of table {} and describes it nowhere", column.of, column.name, table.name);
    }
  }
  return made;
}

std::string_view our_description() {
  static const std::string text = Description::ours().text();
  return text;
}

std::span<const uint8_t> our_packed_description() {
  static const std::vector<uint8_t> bytes = pack_description(our_description());
  return bytes;
}

uint64_t description_hash(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::vector<uint8_t> pack_description(std::string_view text) {
  std::vector<uint8_t> bytes(1 + sizeof(uint32_t) + ZSTD_compressBound(text.size()));
  bytes[0] = kZstdText;
  const auto plain = static_cast<uint32_t>(text.size());
  std::memcpy(bytes.data() + 1, &plain, sizeof plain);
  constexpr size_t kFront = 1 + sizeof plain;
  const size_t packed = ZSTD_compress(bytes.data() + kFront, bytes.size() - kFront, text.data(), text.size(), kLevel);
  if (ZSTD_isError(packed) || packed + kFront > text.size()) {
    bytes.assign(1, kPlainText);
    bytes.insert(bytes.end(), text.begin(), text.end());
  } else {
    bytes.resize(kFront + packed);
  }
  return bytes;
}

Result<std::string> unpack_description(std::span<const uint8_t> bytes) {
  const auto bad = [] { return fail("cannot be decoded"); };
  if (bytes.empty()) return bad();
  const uint8_t form = bytes[0];
  bytes = bytes.subspan(1);
  if (form == kPlainText) return std::string(bytes.begin(), bytes.end());
  if (form != kZstdText || bytes.size() < sizeof(uint32_t)) return bad();
  const auto plain = load<uint32_t>(bytes.data());
  bytes = bytes.subspan(sizeof plain);
  if (plain > kMaxDescription) return bad();
  std::string text(plain, '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) || got != plain) return bad();
  return text;
}

// Mapping

Mapping::Mapping(const Description& file) {
  // Codes of every enumeration that both know by name.
  std::map<std::string_view, const CodeMap*> codes;
  for (const event::Enumeration* ours : event::all_enumerations()) {
    auto map = std::make_unique<CodeMap>();
    map->unknown = ours->unknown;
    map->known_as = ours;
    for (const Description::Enumeration& theirs : file.enumerations) {
      if (theirs.name != ours->name) continue;
      for (const Description::Value& value : theirs.values) {
        map->to.resize(static_cast<size_t>(value.code) + 1, map->unknown);
        if (const auto code = ours->code(value.text)) {
          map->to.back() = *code;
        } else {
          map->foreign.push_back(value);
        }
      }
    }
    codes[ours->name] = map.get();
    codes_.push_back(std::move(map));
  }

  by_table_.resize(static_cast<size_t>(event::Table::kEnd));
  for (const event::TableInfo& info : event::all_tables()) {
    std::vector<Column>& columns = by_table_[static_cast<size_t>(info.table)];
    for (const event::Column& column : info.columns) {
      const bool is_enum = column.type == Type::kEnum;
      columns.push_back({-1, is_enum ? column.enumeration->unknown : column.unset,
                         is_enum ? codes.at(column.enumeration->name) : nullptr});
    }
  }

  by_number_.resize(kUpdateTable);
  for (const Description::Table& theirs : file.tables) {
    auto table = std::make_unique<Table>();
    table->kind = theirs.kind;
    table->name = theirs.name;
    table->columns = theirs.columns.size();
    table->to_ours.assign(theirs.columns.size(), -1);
    const auto tables = event::all_tables();
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const event::TableInfo& info) {
      return info.name == theirs.name && kind_of(info) == theirs.kind;
    });
    if (found != tables.end()) {
      table->ours = found->table;
      std::vector<Column>& columns = by_table_[static_cast<size_t>(found->table)];
      for (size_t c = 0; c < theirs.columns.size(); ++c) {
        size_t own = 0;
        while (own < found->columns.size() && found->columns[own].name != theirs.columns[c].name) ++own;
        if (own < found->columns.size() && same(found->columns[own], theirs.columns[c])) {
          columns[own].at = static_cast<int>(c);
          table->to_ours[c] = static_cast<int>(own);
        } else {
          table->foreign.push_back(theirs.columns[c].name);
        }
      }
    }
    by_number_[theirs.number] = std::move(table);
  }
}

std::shared_ptr<const Mapping> Mapping::ours() {
  static const auto made = std::make_shared<const Mapping>(Description::ours());
  return made;
}

}  // namespace tacho::trace
