// From files and folders to runs: which files are traces, whose rank each is, and a pass over each of them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "trace/trace.h"

namespace tacho::ranks {

struct Job {
  std::vector<RankRun> runs;  // ascending by rank, each rank once
  Names names;
  Spools spools;
  std::vector<std::string> remarks;  // sentences: what tacho left out and why
};

/// Reads all traces among `inputs` (files; folders with all that lies below them), several at a time. Files that cannot
/// be read, second files of a rank and files of other programs become remarks. Fails if no trace is left.
Status load_job(const std::vector<std::string>& inputs, Job& job);

/// Files of `inputs` in the order given; of a folder all below it that are named like traces, in order of their names.
/// `remarks` gets a sentence about omitted files. Fails for a folder without traces.
Status list_traces(const std::vector<std::string>& inputs, std::vector<std::string>& files,
                   std::vector<std::string>& remarks);

/// The runs of a trace, before their passes: one for each rank that it names, else one.
Result<std::vector<RankRun>> runs_of(const trace::Trace& trace, const std::string& file);

/// Whether a trace is one for these answers: it holds several ranks, messages of MPI, or kernels of collectives.
bool tells_of_ranks(const trace::Trace& trace);

/// The rank in a path: "rank3.tacho", "kineto_rank3.json.gz", "out/3/trace.tacho"; kUnknown if it names none.
int64_t rank_in_path(const std::string& path);

}  // namespace tacho::ranks
