// Whether an MPI is part of a program itself, where no library can be put between the two.
#pragma once

#include <string>

namespace tacho::cli {

/// The program's own symbols say that it holds PMPI_Init. False for scripts, stripped programs and what cannot be read.
bool holds_mpi(const std::string& program);

}  // namespace tacho::cli
