// From files and folders to runs: which files are traces, whose rank each is, and a pass over each of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "ranks/read/recordings.h"
#include "ranks/read/step_marks.h"
#include "trace/trace.h"

namespace tacho::ranks {

struct Job {
  std::vector<RankRun> runs;  // ascending by rank, each rank once
  Names names;
  Spools spools;
  std::vector<std::string> remarks;  // sentences: what tacho left out and why
};

/// Reads all traces among `inputs` (files; folders with all that lies below them), several at a time. Files that cannot
/// be read, recordings that come twice and second files of a rank become remarks, and so do traces of other jobs where
/// a single folder is given; files that are named one by one are ranks of one job. Fails if no trace is left, and for a
/// folder with traces of several jobs.
Status load_job(const std::vector<std::string>& inputs, Job& job);

/// Files of `inputs` in the order given; of a folder all below it that are named like traces, in order of their names.
/// `remarks` gets a sentence about omitted files. Fails for a folder without traces.
Status list_traces(const std::vector<std::string>& inputs, std::vector<std::string>& files,
                   std::vector<std::string>& remarks);

/// The runs of a trace, before their passes: one for each rank that it names, else one.
Result<std::vector<RankRun>> runs_of(const trace::Trace& trace, const std::string& file);

/// The runs of a trace after their passes, by steps as long as `period` where nothing marks them.
Result<PassedTrace> pass_over_runs(const trace::Trace& trace, const std::string& file, const Period& period,
                                   Names& names, Spools& spools);

/// Numbers the hosts of runs that have one name and were started at different times: "node", "node (2)".
void keep_machines_apart(std::span<RankRun* const> runs);

/// Whether a trace is one for these answers: it holds several ranks, messages of MPI, or kernels of collectives.
bool tells_of_ranks(const trace::Trace& trace);

/// The rank in a path: "rank3.tacho", "kineto_Rank-3.json.gz", "out/3/trace.tacho"; kUnknown if it names none.
int64_t rank_in_path(const std::string& path);
/// The ranks of paths that differ in one number alone, which counts from 0: "trace_0.json", "trace_1.json" ...; empty
/// for all other paths.
std::vector<int64_t> ranks_in_paths(const std::vector<std::string>& paths);

}  // namespace tacho::ranks
