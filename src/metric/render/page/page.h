// The part of an analysis for the HTML report alone: its tables as a program that the browser runs over any choice of
// dispatches.
#pragma once

#include "base/text/json_writer.h"
#include "metric/analysis/analysis.h"
#include "report/table.h"

namespace tacho::metric {

/// Writes one value, the object "page":
///
///   normalisations   the four names, in the order of "values"
///   operations       names of the operations
///   nodes            [op, a, b, c] of every node in one flat array (Program::Graph)
///   lists, constants, inputs
///                    of the graph; inputs: one array a counter
///   values           per normalisation the node of each place
///   places           [table, row, column] in one flat array; the column behind the last is the error of the row's mean
///   dispatches       {id, kernel, gpu, duration, flops, l1, l2, hbm, lds}: arrays; the last six are nodes
///   kernel_names
///   chosen           {kernels, dispatches, gpus}: what -k, -d and --gpu-id chose
///   metrics, blocks, tables
///                    what there is to show; cells that are computed are null
///
/// A run with more than kMostPageValues counter values has no nodes but "fixed": per kernel and normalisation the
/// values of all places, for the longest kernels and for all together.
void write_page(JsonWriter& json, const Analysis& run);

constexpr size_t kMostPageValues = 4'000'000;

}  // namespace tacho::metric
