// Encoder (used by the catalog compiler) and decoder (used by load_catalog) of the compact form: both walk the lists of
// fields.h.
#include "metric/catalog/blob.h"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "metric/catalog/fields.h"
#include "metric/catalog/string_store.h"

namespace tacho::metric {
namespace {

constexpr std::string_view kMagic = "TCAT0005";

class Encoder {
 public:
  void operator()(const auto&... fields) { (visit_fields(*this, fields), ...); }
  template <typename T>
  requires std::integral<T> || std::is_enum_v<T>
  void value(const T& x) { number(static_cast<uint64_t>(x)); }
  void list(const auto& x) { number(x.size()); }
  void bits(bool first, bool second) { number((first ? 1u : 0u) | (second ? 2u : 0u)); }

  void number(uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(static_cast<unsigned char>(value | 0x80));
      value >>= 7;
    }
    out_ += static_cast<char>(static_cast<unsigned char>(value));
  }
  void value(Like<double> auto& x) {
    const auto bits = std::bit_cast<uint64_t>(x);
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(static_cast<unsigned char>(bits >> (8 * i)));
  }
  void value(std::string_view text) {
    if (text.empty()) return number(0);
    const auto [entry, fresh] = ids_.try_emplace(std::string(text), offsets_.size());
    if (fresh) {
      pool_ += text;
      offsets_.push_back(static_cast<uint32_t>(pool_.size()));
    }
    number(entry->second);
  }
  size_t size() const { return out_.size(); }

  /// magic | string count, pool size, body size, section offsets | body | string ends | pool
  std::string finish(std::span<const uint32_t> sections) const {
    std::string blob(kMagic);
    put32(blob, static_cast<uint32_t>(offsets_.size()));
    put32(blob, static_cast<uint32_t>(pool_.size()));
    put32(blob, static_cast<uint32_t>(out_.size()));
    put32(blob, static_cast<uint32_t>(sections.size()));
    for (const uint32_t section : sections) put32(blob, section);
    blob += out_;
    for (const uint32_t offset : offsets_) put32(blob, offset);
    blob += pool_;
    return blob;
  }

 private:
  static void put32(std::string& out, uint32_t value) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }

  std::string out_;
  std::string pool_;
  std::vector<uint32_t> offsets_ = {0};  // end of string i in the pool; string 0 is ""
  std::unordered_map<std::string, size_t> ids_;
};

/// Reads what Encoder wrote. The bytes are ours, yet every step is checked: a wrong one sets `bad` and yields zeros.
class Decoder {
 public:
  explicit Decoder(std::string_view blob) {
    if (!blob.starts_with(kMagic) || blob.size() < kMagic.size() + 16) return;
    size_t at = kMagic.size();
    const auto next32 = [&] {
      const uint32_t value = get32(blob, at);
      at += 4;
      return value;
    };
    strings_ = next32();
    const size_t pool = next32();
    const size_t body = next32();
    const size_t sections = next32();
    if (blob.size() != at + 4 * sections + body + 4 * size_t{strings_} + pool) return;
    sections_ = blob.substr(at, 4 * sections);
    body_ = blob.substr(at + 4 * sections, body);
    offsets_ = blob.substr(at + 4 * sections + body, 4 * size_t{strings_});
    pool_ = blob.substr(blob.size() - pool);
    bad = false;
  }

  void operator()(auto&... fields) { (visit_fields(*this, fields), ...); }
  void value(std::string_view& x) { x = text(); }
  void value(double& x) {
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= uint64_t{byte()} << (8 * i);
    x = std::bit_cast<double>(bits);
  }
  void value(bool& x) { x = number() != 0; }
  void value(int& x) { x = small(); }
  void value(uint32_t& x) { x = static_cast<uint32_t>(small()); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void value(Enum& x) {
    const uint64_t value = number();
    x = static_cast<Enum>(value <= static_cast<uint64_t>(Fields::last_of(x)) ? value : spoil());
  }
  /// Every item takes a byte at least, so that a wrong count cannot ask for memory without bound.
  void list(auto& x) {
    const uint64_t value = number();
    x.resize(value <= body_.size() - at_ ? value : spoil());
  }
  void bits(bool& first, bool& second) {
    const uint64_t value = number();
    first = (value & 1) != 0;
    second = (value & 2) != 0;
  }

  bool seek(size_t section) {
    if (bad || 4 * section + 4 > sections_.size()) return false;
    at_ = get32(sections_, 4 * section);
    return at_ <= body_.size();
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const unsigned char next = byte();
      value |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return value;
    }
    return spoil();
  }
  std::string_view text() {
    const uint64_t id = number();
    if (id == 0) return {};
    if (id >= strings_) return spoil(), std::string_view();
    const size_t begin = get32(offsets_, 4 * static_cast<size_t>(id) - 4);
    const size_t end = get32(offsets_, 4 * static_cast<size_t>(id));
    if (begin > end || end > pool_.size()) return spoil(), std::string_view();
    return pool_.substr(begin, end - begin);
  }
  int small() {
    const uint64_t value = number();
    return value <= 100'000 ? static_cast<int>(value) : static_cast<int>(spoil());
  }

  bool bad = true;

 private:
  static uint32_t get32(std::string_view bytes, size_t at) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return value;
  }
  unsigned char byte() { return static_cast<unsigned char>(at_ < body_.size() ? body_[at_++] : spoil()); }
  uint64_t spoil() {
    bad = true;
    at_ = body_.size();
    return 0;
  }

  std::string_view sections_, body_, offsets_, pool_;
  uint32_t strings_ = 0;
  size_t at_ = 0;
};

/// Sections of the blob: 0 the architectures, 1 the rules, 2... one catalog an architecture with metrics.
constexpr size_t kArchitectures = 0;
constexpr size_t kRules = 1;
constexpr size_t kFirstCatalog = 2;

Status decode(std::string_view blob, size_t section, auto& out) {
  Decoder in(blob);
  const bool found = in.seek(section);
  if (found) in(out);
  if (!found || in.bad) return fail("the built-in metric catalog is damaged; reinstall tacho");
  return {};
}

/// The ids of tables and metrics follow from their places.
void number_rows(Catalog& catalog) {
  for (Block& block : catalog.blocks)
    for (MetricTable& table : block.tables) {
      table.block = block.number;
      int row = 0;
      for (Metric& metric : table.metrics) metric.id = {block.number, table.number, row++};
    }
}

}  // namespace

std::string encode_blob(std::span<const Architecture> architectures, std::span<const Catalog> catalogs,
                        const RuleBook& rules) {
  Encoder out;
  std::vector<uint32_t> sections;
  const auto add_section = [&](const auto& content) {
    sections.push_back(static_cast<uint32_t>(out.size()));
    out(content);
  };
  add_section(architectures);
  add_section(rules);
  for (const Catalog& catalog : catalogs) add_section(catalog);
  return out.finish(sections);
}

Result<std::vector<Architecture>> decode_architectures(std::string_view blob) {
  std::vector<Architecture> out;
  TACHO_TRY(decode(blob, kArchitectures, out));
  return out;
}

Result<Catalog> decode_catalog(std::string_view blob, std::span<const Architecture> architectures,
                               std::string_view architecture) {
  size_t section = kFirstCatalog;
  std::string names;
  for (const Architecture& one : architectures) {
    if (!one.metrics) continue;
    if (one.name == architecture) {
      Catalog catalog;
      TACHO_TRY(decode(blob, section, catalog));
      number_rows(catalog);
      catalog.strings = std::make_shared<StringStore>();
      catalog.vendor = one.vendor;
      catalog.architecture = one.name;
      catalog.facts = one;
      return catalog;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    ++section;
  }
  return fail("there is no metric catalog for the architecture \"{}\"; known are {}", architecture, names);
}

Result<RuleBook> decode_rules(std::string_view blob) {
  RuleBook book;
  TACHO_TRY(decode(blob, kRules, book));
  book.strings = std::make_shared<StringStore>();
  return book;
}

}  // namespace tacho::metric
