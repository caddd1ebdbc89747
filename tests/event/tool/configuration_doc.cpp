// Writes docs/target-configuration.md from the list of keys: prints it, or with --check FILE says whether FILE is it.
#include <stdio.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/format.h"
#include "event/configuration_text.h"

int main(int argc, char** argv) {
  std::string text =
      "# The configuration of a target\n\n"
      "`libtacho.so` gets its settings from `tacho` through the pool's header: one `key=value` line for each key that\n"
      "differs from its default. `src/event/configuration.h` lists the keys; this page is made from that list\n"
      "(`build/tests/configuration_doc`). You set them through the options of `tacho trace`, `tacho sys` and the\n"
      "personalities, never directly.\n\n"
      "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const tacho::event::ConfigurationKey& key : tacho::event::configuration_keys())
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.key, key.type,
                        key.otherwise.empty() ? "" : fmt::format("`{}`", key.otherwise), key.meaning);
  if (argc < 3 || strcmp(argv[1], "--check") != 0) {
    fputs(text.c_str(), stdout);
    return 0;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  if (found == text) return 0;
  fprintf(stderr, "%s is not what the list of keys says; make it anew with %s\n", argv[2], argv[0]);
  return 1;
}
