// Names a command line's program in one word: the script instead of python3, the program instead of env.
#pragma once

#include <span>
#include <string>

namespace tacho {

/// The word to call a run by, without folders: "train" for `python3 -u train.py`, "pkg.mod" for `python3 -m pkg.mod`,
/// "app" for `env A=1 numactl -N 0 ./app`, "train" for `torchrun --nproc-per-node 4 train.py`, "job" for `bash job.sh`.
/// Otherwise the base name of the program; "trace" if that is empty.
std::string run_name(std::span<const std::string> words);

/// True if the words run a script or module through an interpreter or launcher; run_name() is then its name.
bool runs_script(std::span<const std::string> words);

/// True if the command may run Python: its words name an interpreter, a script or a launcher, or its program is a
/// script of any kind, which may start anything.
bool may_run_python(std::span<const std::string> words);

/// The interpreter of a file ("python3") by its "#!" line or extension; empty for ELF and unknown files.
std::string interpreter_of(const std::string& path);

/// True if the system can start the file without an interpreter's name: it begins with ELF's magic or "#!".
bool starts_by_itself(const std::string& path);

}  // namespace tacho
