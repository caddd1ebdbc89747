// Declaring them (process_options.h).
#include "cli/target/process_options.h"

namespace tacho::cli {

void declare_process_options(CommandOptions& app, attach::ProcessChoice& choice) {
  app.add_option(
         "--name", choice.names,
         "processes that run this program or script; python stands for python3.11, too, and * and ? for letters")
      .type_name("NAME")
      .repeatable();
  app.add_option("--cgroup", choice.cgroups, "processes of this cgroup and of those inside it")
      .type_name("PATH")
      .repeatable();
  app.add_option("--container", choice.containers, "processes of the container whose id begins so")
      .type_name("ID")
      .repeatable();
  app.add_flag("--children", choice.children, "their children and children's children, too");
}

}  // namespace tacho::cli
