// What a command line runs, in one word for people: the script instead of python3, the program instead of env.
#pragma once

#include <span>
#include <string>

namespace tacho {

/// The word after which a run is called, without folders: "train" for `python3 -u train.py`, "pkg.mod" for
/// `python3 -m pkg.mod`, "app" for `env A=1 numactl -N 0 ./app`, "train" for `torchrun --nproc-per-node 4 train.py`, "job" for
/// `bash job.sh`. Else the base name of the first word; "trace" where that is empty.
std::string run_name(std::span<const std::string> words);

/// Whether an interpreter or launcher runs a script or module there, whose name run_name() gives.
bool runs_script(std::span<const std::string> words);

/// Whether the command may come to run Python: its words name an interpreter, a script or a launcher, or its program is a script
/// of any kind, which may start everything.
bool may_run_python(std::span<const std::string> words);

/// "python3" for a file that this interpreter runs, by its first line ("#!") or its ending; empty for programs and others.
std::string interpreter_of(const std::string& path);

/// Whether the file begins as programs do that the system starts by itself: ELF or "#!".
bool starts_by_itself(const std::string& path);

}  // namespace tacho
