// tacho_catalog_compiler OUT.cpp FOLDER...: checks catalog/<vendor>/*.yaml, resolves it for every architecture and
// writes the bytes that are linked into tacho. Runs at build time only.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "metric/catalog/add_rules.h"
#include "metric/catalog/architectures.h"
#include "metric/catalog/blob.h"
#include "metric/catalog/files.h"
#include "metric/catalog/string_store.h"
#include "metric/catalog/yaml/yaml.h"

namespace tacho::metric {
namespace {

Status compile(const std::string& output, std::span<const std::string> folders) {
  std::vector<Catalog> catalogs;
  std::vector<Architecture> architectures;
  RuleBook rules;
  rules.strings = std::make_shared<StringStore>();
  for (const std::string& folder : folders) {
    const std::string vendor = std::filesystem::path(folder).filename().string();
    TACHO_ASSIGN(const std::vector<CatalogFile> files, read_catalog_folder(folder));
    const std::string_view owner = rules.strings->intern(vendor);
    const auto add_owned = [&](RuleBook more) {
      for (Rule& rule : more.rules) rule.vendor = owner;
      for (RuleCheck& check : more.checks) check.vendor = owner;
      for (RuleScreen& screen : more.screens) screen.vendor = owner;
      add_rules(rules, more);
    };
    if (vendor == kTraceRules) {
      for (const CatalogFile& file : files) {
        TACHO_ASSIGN(RuleBook more, parse_trace_rules(file.text, file.name));
        add_owned(std::move(more));
      }
      continue;
    }
    TACHO_ASSIGN(const std::vector<Architecture> declared, read_architectures(files, vendor));
    const size_t first = catalogs.size();
    for (const Architecture& architecture : declared) {
      architectures.push_back(architecture);
      if (!architecture.metrics) continue;
      Catalog& catalog = catalogs.emplace_back();
      catalog.strings = std::make_shared<StringStore>();
      catalog.vendor = architecture.vendor;
      catalog.architecture = architecture.name;
      catalog.facts = architecture;
      TACHO_TRY(apply_catalog_files(catalog, files, {}));
    }
    if (catalogs.size() == first) return fail("{}: no file declares architectures", folder);
    for (const CatalogFile& file : files) {
      // Every rule must make sense on the newest architecture; load_rules drops it where metrics are missing.
      TACHO_ASSIGN(RuleBook more, parse_rules(file.text, file.name, &catalogs.back()));
      add_owned(std::move(more));
    }
  }

  const std::string blob = encode_blob(architectures, catalogs, rules);
  std::string source = "// Made by tacho_catalog_compiler from catalog/*/*.yaml. Do not edit.\n"
                       "#include \"metric/catalog/builtin/bytes.h\"\n\nnamespace tacho::metric {\n\n"
                       "const size_t kEmbeddedCatalogSize = " +
                       std::to_string(blob.size()) + ";\nconst unsigned char kEmbeddedCatalog[] =";
  // A string literal compiles many times faster than a list of numbers; octal escapes cannot swallow what follows.
  size_t column = 0;
  for (const char c : blob) {
    if (column == 0) source += "\n    \"";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 32 && byte < 127 && c != '"' && c != '\\' && c != '?') {
      source += c;
      column += 1;
    } else {
      source += fmt::format("\\{:03o}", byte);
      column += 4;
    }
    if (column > 100) {
      source += '"';
      column = 0;
    }
  }
  if (column != 0) source += '"';
  source += ";\n\n}  // namespace tacho::metric\n";

  std::ofstream stream(output, std::ios::binary);
  stream << source;
  stream.close();
  if (!stream) return fail("{}: cannot be written", output);
  return {};
}

}  // namespace
}  // namespace tacho::metric

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: tacho_catalog_compiler OUT.cpp FOLDER...\n", stderr);
    return 1;
  }
  const std::vector<std::string> folders(argv + 2, argv + argc);
  if (const auto done = tacho::metric::compile(argv[1], folders); !done.has_value()) {
    fmt::print(stderr, "tacho_catalog_compiler: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
