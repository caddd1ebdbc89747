// `tacho profile`, also for the personality rocprof-compute.
#pragma once

#include <string>

#include "cli/profile/face.h"

namespace tacho::metric {
struct Catalog;
}

namespace tacho::cli {

/// argv[0] is the name shown in help and messages ("tacho profile", "rocprof-compute profile").
int profile(int argc, char** argv, ProfileFace face);

/// The lists, as text for standard output. `program` is the command in their examples. Numbers are those of 3.3, or
/// with `seed` those of the users' documents (or a slug, if these use the number for another metric).
std::string list_of_metrics(const metric::Catalog& catalog, bool seed);
/// Lists on stderr the numbers that the users' documents give to two metrics.
void complain_of_seed_ids(const metric::Catalog& catalog);
std::string list_of_blocks(const metric::Catalog& catalog);
std::string list_of_sets(const metric::Catalog& catalog, const std::string& program, bool seed);

}  // namespace tacho::cli
