// `tacho recover [POOL]`: saves the trace of a run whose tacho was killed.

#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "launch/launcher.h"
#include "report/output.h"

namespace tacho::cli {

int run_recover(int argc, char** argv) {
  CommandOptions app("Take what is left in the shared memory of a run whose tacho was killed, together with its "
                     "unfinished trace file, and write a trace.",
                     "tacho recover");
  std::string pool, output;
  bool overwrite = false, list = false, keep = false;
  app.add_option("pool", pool, "pool file; without it the only abandoned one is taken");
  app.add_option("-o,--output", output, "trace file (default: recovered.tacho)");
  app.add_flag("--overwrite", overwrite, "replace an existing output");
  app.add_flag("--list", list, "only list abandoned pools");
  app.add_flag("--keep", keep, "do not remove the pool and the unfinished file afterwards");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (list || pool.empty()) {
    const std::vector<std::string> pools = launch::abandoned_pools();
    if (list) {
      for (const std::string& path : pools) report::print("{}\n", path);
      return kOk;
    }
    if (pools.empty()) return complain(kBadInput, "there is no abandoned pool of yours on this machine");
    if (pools.size() > 1)
      return complain(kBadInput, "there are several abandoned pools (tacho recover --list): name one");
    pool = pools.front();
  }
  if (output.empty()) output = overwrite ? "recovered.tacho" : free_name("recovered.tacho");
  std::vector<std::string> notes;
  if (const Status done = launch::recover(pool, output, overwrite, !keep, notes); !done)
    return complain(kBadInput, done.error().message);
  for (const std::string& note : notes) report::print("{}\n", note);
  print_outputs({&output, 1});
  return kOk;
}

}  // namespace tacho::cli
