-- The tables of `tacho ranks`, computed from a Parquet dataset that `tacho export -f parquet` wrote: {command}
-- For {engine}. docs/ranks.md defines the numbers; times are ns. Ranks are compared by start_unix where the traces know it, else by
-- their own clocks, as they are: causes, steps, messages and the correction of clocks are tacho's alone.
{settings}
-- Everything on the GPUs, and the calls of MPI.
{view} kernel AS
SELECT rank, pid, correlation, name, start, greatest(duration, 0) AS length, coalesce(start_unix, start) AS begins,
  coalesce(start_unix, start) + greatest(duration, 0) AS ends,
  CASE WHEN arguments LIKE 'Collective name=%' THEN arguments ELSE '' END AS told,
  arguments LIKE 'Collective name=%'
    OR {matches}(name, 'ncclDevKernel|ncclKernel|ncclSymk?DevKernel|rccl_main_kernel|rcclDevKernel|msccl') AS collective
FROM (SELECT CAST(rank AS {integer}) AS rank, pid, correlation, name, coalesce(arguments, '') AS arguments, start, start_unix, duration
      FROM {dispatch} WHERE duration IS NOT NULL) D;

{view} operation AS
SELECT rank, start AS begins, start + length AS ends, CASE WHEN collective THEN 'communication' ELSE 'compute' END AS kind FROM kernel
UNION ALL
SELECT CAST(rank AS {integer}), start, start + greatest(duration, 0), 'copy' FROM {copy} WHERE duration IS NOT NULL
UNION ALL
SELECT CAST(rank AS {integer}), start, start + greatest(duration, 0), 'copy' FROM {fill} WHERE duration IS NOT NULL
UNION ALL
SELECT CAST(rank AS {integer}), start, start + greatest(duration, 0), 'communication'
FROM {api}
WHERE domain = 'mpi' AND duration IS NOT NULL AND name NOT IN ('MPI_Init', 'MPI_Init_thread', 'MPI_Finalize', 'MPI_Abort');

-- How the ranks spent their time: lengths of unions. A row adds to one what of it lies behind all that began before it.
{table} rank_time AS
WITH reached AS (
  SELECT rank, begins, ends, kind,
    coalesce(max(ends) OVER earlier, begins) AS all_until,
    coalesce(max(CASE WHEN kind = 'compute' THEN ends END) OVER earlier, begins) AS compute_until,
    coalesce(max(CASE WHEN kind = 'communication' THEN ends END) OVER earlier, begins) AS communication_until,
    coalesce(max(CASE WHEN kind = 'copy' THEN ends END) OVER earlier, begins) AS copies_until,
    coalesce(max(CASE WHEN kind <> 'copy' THEN ends END) OVER earlier, begins) AS both_until
  FROM operation
  WINDOW earlier AS (PARTITION BY rank ORDER BY begins, ends ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
unions AS (
  SELECT rank, max(ends) - min(begins) AS span,
    sum(greatest(ends - greatest(begins, all_until), 0)) AS busy,
    sum(CASE WHEN kind = 'compute' THEN greatest(ends - greatest(begins, compute_until), 0) ELSE 0 END) AS compute,
    sum(CASE WHEN kind = 'communication' THEN greatest(ends - greatest(begins, communication_until), 0) ELSE 0 END) AS communication,
    sum(CASE WHEN kind = 'copy' THEN greatest(ends - greatest(begins, copies_until), 0) ELSE 0 END) AS copies,
    sum(CASE WHEN kind <> 'copy' THEN greatest(ends - greatest(begins, both_until), 0) ELSE 0 END) AS both_kinds
  FROM reached GROUP BY rank)
SELECT rank, span AS span_ns, busy AS busy_ns, span - busy AS idle_ns, compute AS compute_ns, communication AS communication_ns,
  both_kinds - compute AS exposed_communication_ns, communication - (both_kinds - compute) AS overlap_ns, copies AS copies_ns,
  busy - both_kinds AS exposed_copies_ns
FROM unions;

-- What is told of collectives: with the kernel by torch.profiler; by NCCL in marks that follow the launch on its thread, several
-- where it put several into one kernel.
{view} telling AS
SELECT DISTINCT rank, pid, correlation, told AS of_kernel, told AS line FROM kernel WHERE told <> ''
UNION ALL
SELECT M.rank, M.pid, A.correlation, '', M.name
FROM (SELECT CAST(rank AS {integer}) AS rank, pid, tid, start, name FROM {marker}
      WHERE domain = 'NCCL' AND name LIKE 'Collective name=%' AND start IS NOT NULL) M
ASOF JOIN (SELECT CAST(rank AS {integer}) AS rank, pid, tid, start, correlation FROM {api}
      WHERE name LIKE '%LaunchKernel%' AND correlation <> 0 AND start IS NOT NULL) A
  ON M.rank = A.rank AND M.pid = A.pid AND M.tid = A.tid AND M.start >= A.start;

{view} told AS
WITH parts AS (
  SELECT rank, pid, correlation, of_kernel,
    {extract}(line, 'Process Group Name=([^,]*)', 1) AS group_name,
    {extract}(line, 'Process Group Ranks=([[][^]]*[]])', 1) AS members,
    coalesce(CAST(nullif({extract}(line, 'Group size=([0-9]{1,9})', 1), '') AS {integer}), -1) AS group_size,
    replace(replace(lower({extract}(line, 'Collective name=([^,]*)', 1)), '_', ''), ' ', '') AS called,
    coalesce(CAST(nullif({extract}(line, 'In msg nelems=([0-9]{1,18})', 1), '') AS {integer}), -1) AS elements_in,
    coalesce(CAST(nullif({extract}(line, 'Out msg nelems=([0-9]{1,18})', 1), '') AS {integer}), -1) AS elements_out,
    replace(lower({extract}(line, 'dtype=([^,]*)', 1)), '_', '') AS data_type,
    coalesce(CAST(nullif({extract}(concat(', ', line), ', Seq=([0-9]{1,18})', 1), '') AS {integer}), -1) AS told_number,
    {extract}(concat(', ', line), ', Comms Id=([^,]*)', 1) AS told_identity
  FROM telling),
sized AS (
  SELECT *, {operation of called} AS operation,
    CASE WHEN data_type IN ('double', 'long', 'f64', 'float64', 'int64', 'uint64', 'u64', 'i64', 'complexfloat') THEN 8
         WHEN data_type = 'complexdouble' THEN 16
         WHEN data_type IN ('float', 'int', 'f32', 'float32', 'int32', 'uint32', 'u32', 'i32') THEN 4
         WHEN data_type IN ('half', 'bfloat16', 'short', 'f16', 'bf16', 'float16') THEN 2
         WHEN data_type IN ('char', 'byte', 'bool', 'uint8', 'int8', 'u8', 'i8', 'f8e4m3', 'f8e5m2')
           OR data_type LIKE 'float8%' THEN 1
         ELSE 0 END AS element_bytes
  FROM parts),
counted AS (
  SELECT *,
    CASE WHEN operation = 'all_gather' AND elements_out > 0 THEN elements_out
         WHEN operation = 'all_gather' THEN CASE WHEN elements_in > 0 AND group_size > 0 THEN elements_in * group_size ELSE 0 END
         WHEN operation IN ('broadcast', 'reduce') THEN greatest(elements_in, elements_out)
         ELSE elements_in END AS elements
  FROM sized)
SELECT rank, pid, correlation, of_kernel, group_name, members, group_size, operation, told_number,
  CASE WHEN told_identity = '0' THEN '' ELSE told_identity END AS told_identity,
  CASE WHEN elements > 0 THEN elements * element_bytes ELSE 0 END AS bytes
FROM counted;

{table} arrival_of_kernel AS
WITH plain AS (
  SELECT rank, pid, correlation, begins, ends, told AS of_kernel,
    replace(replace(lower({extract}(name, '^([^(]*)', 1)), '_', ''), ' ', '') AS called
  FROM kernel WHERE collective),
joined AS (
  SELECT K.rank AS rank, K.begins AS begins, K.ends AS ends, K.called AS called,
    min(coalesce(T.group_name, '')) AS told_group, min(coalesce(T.members, '')) AS told_members,
    max(coalesce(T.group_size, -1)) AS told_size, min(coalesce(T.operation, '')) AS least, max(coalesce(T.operation, '')) AS most,
    min(coalesce(T.told_number, -1)) AS told_number, min(coalesce(T.told_identity, '')) AS told_identity,
    CASE WHEN min(coalesce(T.bytes, 0)) > 0 THEN sum(T.bytes) ELSE 0 END AS told_bytes
  FROM plain K LEFT JOIN told T
    ON K.rank = T.rank AND K.pid = T.pid AND K.correlation = T.correlation AND K.of_kernel = T.of_kernel
  GROUP BY K.rank, K.pid, K.correlation, K.begins, K.ends, K.called),
known AS (
  SELECT rank, begins, ends, told_group, told_members, told_size, told_bytes, told_number, told_identity,
    CASE WHEN least = most AND least <> '' THEN least ELSE {operation of called} END AS operation
  FROM joined)
SELECT rank, told_group AS group_name, told_members AS members, told_size AS group_size,
  row_number() OVER (PARTITION BY rank, told_group, told_members ORDER BY begins, ends) - 1 AS counted_number, told_number,
  told_identity AS identity, operation, CASE WHEN operation = '' THEN 0 ELSE told_bytes END AS bytes, begins, ends
FROM known;

-- By what the ranks' collectives match: "Seq" where every rank of a group numbers them upwards; else "Comms Id" where every rank of
-- the group gives it, and always where a group has no name; else their number on the rank.
{table} kernel_to_match AS
WITH ordered AS (
  SELECT *,
    CASE WHEN told_number > coalesce(max(told_number) OVER earlier, -1) THEN 1 ELSE 0 END AS ascends,
    CASE WHEN identity <> '' THEN 1 ELSE 0 END AS identified,
    CASE WHEN group_name = '' AND members = '' THEN 1 ELSE 0 END AS unnamed,
    -- Operations that torch coalesces share their identity: they meet in their order.
    row_number() OVER (PARTITION BY rank, group_name, members, identity ORDER BY counted_number) AS occurrence
  FROM arrival_of_kernel
  WINDOW earlier AS (PARTITION BY rank, group_name, members ORDER BY counted_number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
rank_of_group AS (
  SELECT rank, group_name, members, min(told_number) AS lowest, min(identified) AS all_identified,
    CASE WHEN max(unnamed * identified) = 1 THEN 0 ELSE min(ascends) END AS all_ascend, min(unnamed * identified) AS gone
  FROM ordered GROUP BY rank, group_name, members),
whole_group AS (
  SELECT group_name, members, count(*) AS ranks_of_group, min(all_identified) AS identified_on_all,
    min(CASE WHEN gone = 1 THEN 1 ELSE all_ascend END) AS numbered_on_all, min(CASE WHEN gone = 0 THEN lowest END) AS first_number
  FROM rank_of_group GROUP BY group_name, members)
SELECT O.rank AS rank, O.group_name AS group_name, O.members AS members, O.group_size AS group_size, O.identity AS identity,
  O.occurrence AS occurrence, O.operation AS operation, O.bytes AS bytes, O.begins AS begins, O.ends AS ends,
  CASE WHEN O.unnamed * O.identified = 1 THEN 'identity of any group'
       WHEN G.numbered_on_all = 1 THEN 'number'
       WHEN G.identified_on_all = 1 AND G.ranks_of_group > 1 THEN 'identity'
       ELSE 'count' END AS matched_by,
  CASE WHEN G.numbered_on_all = 1 THEN O.told_number - G.first_number ELSE O.counted_number END AS number
FROM ordered O JOIN whole_group G ON O.group_name = G.group_name AND O.members = G.members;

-- Collectives by identity, with the ranks that have them.
{table} identified_collective AS
SELECT group_name, members, matched_by, identity, occurrence, min(begins) AS earliest, max(group_size) AS told_size,
  count(*) AS present, {list(}rank{)list} AS present_ranks,
  concat({list(}rank{)list}, ' of ', CAST(max(group_size) AS {text})) AS rank_set
FROM kernel_to_match WHERE matched_by IN ('identity', 'identity of any group')
GROUP BY group_name, members, matched_by, identity, occurrence;

-- Where no group is named, the ranks that share collectives are one. A collective that only some of a group recorded belongs to
-- the only group that has these ranks and is as large; where there are several, it lacks ranks.
{table} found_group AS
WITH rank_sets AS (
  SELECT rank_set, present_ranks, present, told_size,
    CASE WHEN CASE WHEN told_size > 0 THEN present = told_size ELSE present > 1 END THEN 1 ELSE 0 END AS is_whole
  FROM identified_collective WHERE matched_by = 'identity of any group'
  GROUP BY rank_set, present_ranks, present, told_size),
set_rank AS (
  SELECT DISTINCT I.rank_set AS rank_set, K.rank AS rank
  FROM kernel_to_match K JOIN identified_collective I ON K.matched_by = I.matched_by AND K.identity = I.identity AND K.occurrence = I.occurrence
  WHERE K.matched_by = 'identity of any group'),
shared AS (
  SELECT A.rank_set AS part, B.rank_set AS larger, count(*) AS shared_ranks
  FROM set_rank A JOIN set_rank B ON A.rank = B.rank GROUP BY A.rank_set, B.rank_set),
within_other AS (
  SELECT S.part AS part, S.larger AS larger
  FROM shared S JOIN rank_sets A ON S.part = A.rank_set JOIN rank_sets B ON S.larger = B.rank_set
  WHERE S.shared_ranks = A.present AND B.present > A.present AND (A.told_size = B.told_size OR A.told_size < 0)),
made AS (SELECT * FROM rank_sets WHERE is_whole = 1 OR rank_set NOT IN (SELECT part FROM within_other)),
belonging AS (
  SELECT part AS rank_set, count(*) AS holders, min(larger) AS holder
  FROM within_other
  WHERE part NOT IN (SELECT rank_set FROM made) AND larger IN (SELECT rank_set FROM made) GROUP BY part)
SELECT rank_set, concat('[', present_ranks, ']') AS members, concat('Comms Id, group of ', rank_set) AS found_by FROM made
UNION ALL
SELECT B.rank_set, concat('[', M.present_ranks, ']'), concat('Comms Id, group of ', M.rank_set)
FROM belonging B JOIN made M ON B.holder = M.rank_set WHERE B.holders = 1
UNION ALL
SELECT rank_set, '', 'Comms Id, unknown group' FROM belonging WHERE holders > 1;

{view} identified_number AS
WITH placed AS (
  SELECT identity, occurrence, earliest, group_name, members, '' AS found_by, members AS told_members
  FROM identified_collective WHERE matched_by = 'identity'
  UNION ALL
  SELECT I.identity, I.occurrence, I.earliest, I.group_name, F.members, F.found_by, I.members
  FROM identified_collective I JOIN found_group F ON I.rank_set = F.rank_set WHERE I.matched_by = 'identity of any group')
SELECT identity, occurrence, group_name, members, found_by, told_members,
  row_number() OVER (PARTITION BY group_name, members, found_by ORDER BY earliest, identity, occurrence) - 1 AS number
FROM placed;

-- A collective of MPI is a call, and says itself which one of its communicator it is.
{view} arrival_of_call AS
WITH calls AS (
  SELECT *, CAST(rank AS {integer}) AS own, replace(lower(function), '_', '') AS called,
    {matches}(function, '(v|w)(_c)?$') AS own_sizes, greatest(coalesce(size, 1), 1) AS n
  FROM {message}
  WHERE kind = 'collective' AND function NOT LIKE '%eighbor%' AND sequence IS NOT NULL AND duration IS NOT NULL),
-- In ClickHouse a name that a SELECT gives hides a column of that name in the same SELECT.
known AS (SELECT *, {operation of called} AS operation, coalesce(members, '') AS told_members FROM calls)
SELECT own AS rank,
  CASE WHEN coalesce(name, '') <> '' THEN name ELSE concat(coalesce(origin, ''), ' ', told_members) END AS group_name,
  CASE WHEN coalesce(identity, 0) <> 0 THEN concat('MPI ', CAST(identity AS {text}))
       ELSE concat('MPI, rank ', CAST(own AS {text}), ' ', coalesce(origin, '')) END AS members,
  n AS group_size, sequence AS number, operation,
  CASE WHEN sent IS NULL OR received IS NULL THEN 0
       WHEN operation = 'all_gather' THEN received
       WHEN operation = 'reduce_scatter' THEN sent
       WHEN operation IN ('all_to_all', 'gather', 'scatter') AND own_sizes THEN 0
       WHEN operation = 'all_to_all' THEN sent
       WHEN operation = 'gather' THEN CASE WHEN coalesce(peer, -1) = own THEN received ELSE sent * n END
       WHEN operation = 'scatter' THEN CASE WHEN coalesce(peer, -1) = own THEN sent ELSE received * n END
       ELSE greatest(sent, received) END AS bytes,
  coalesce(start_unix, start) - greatest(coalesce(begun_ahead, 0), 0) AS begins,
  coalesce(start_unix, start) + greatest(duration, 0) AS ends
FROM known;

-- Who came when to which collective. `found_by`: how the group was found that no file names. Sends and receives are of two
-- ranks only; they are no collective.
{table} arrival AS
SELECT rank, group_name, members, '' AS found_by, group_size, number, operation, bytes, begins, ends FROM kernel_to_match
WHERE matched_by IN ('number', 'count')
UNION ALL
SELECT K.rank, K.group_name, N.members, N.found_by, K.group_size, N.number, K.operation, K.bytes, K.begins, K.ends
FROM kernel_to_match K JOIN identified_number N
  ON K.group_name = N.group_name AND K.members = N.told_members AND K.identity = N.identity AND K.occurrence = N.occurrence
WHERE K.matched_by IN ('identity', 'identity of any group')
UNION ALL
SELECT rank, group_name, members, '', group_size, number, operation, bytes, begins, ends FROM arrival_of_call;

-- Arrivals with the same number of a group; left out where the ranks disagree on what it was.
{table} collective AS
WITH placed AS (
  SELECT *, max(begins) OVER same AS latest, count(*) OVER same AS present,
    row_number() OVER (PARTITION BY members, group_name, found_by, number ORDER BY begins, rank) AS place
  FROM arrival
  WINDOW same AS (PARTITION BY members, group_name, found_by, number)),
sums AS (
  SELECT group_name, members, found_by, number, min(operation) AS what, min(bytes) AS size, max(present) AS ranks,
    max(group_size) AS told_size, min(CASE WHEN begins = latest THEN rank END) AS last, min(begins) AS first_start,
    max(begins) AS last_start, max(ends) AS last_end,
    max(CASE WHEN place = greatest(floor(present / 2), 1) THEN begins END) AS median_of_others, sum(latest - begins) AS waited
  FROM placed GROUP BY group_name, members, found_by, number
  HAVING min(operation) = max(operation) AND min(bytes) = max(bytes) AND min(operation) <> 'send_recv'),
group_ranks AS (
  SELECT group_name, members, found_by, count(DISTINCT rank) AS expected FROM arrival GROUP BY group_name, members, found_by),
ended AS (
  SELECT S.group_name AS group_name, S.members AS members, S.found_by AS found_by, S.number AS number, S.what AS what,
    S.size AS size, S.ranks AS ranks, S.last AS last, S.first_start AS first_start, S.last_start AS last_start,
    S.median_of_others AS median_of_others, S.waited AS waited, greatest(S.last_end - S.last_start, 0) AS transfer,
    greatest(S.told_size, S.ranks) AS n, S.ranks = G.expected AND S.found_by <> 'Comms Id, unknown group' AS is_complete
  FROM sums S JOIN group_ranks G ON S.group_name = G.group_name AND S.members = G.members AND S.found_by = G.found_by)
SELECT group_name, members, found_by, number, CASE WHEN what = '' THEN 'collective' ELSE what END AS operation,
  size AS message_bytes, ranks, is_complete AS complete, last AS last_rank, first_start AS first_start_ns,
  last_start - first_start AS spread_ns, CASE WHEN ranks > 1 THEN last_start - median_of_others ELSE 0 END AS late_ns,
  waited AS waited_ns, transfer AS transfer_ns,
  CASE WHEN size > 0 AND transfer > 0 AND is_complete AND ranks > 1 THEN size / transfer END AS algorithm_gb_s,
  CASE WHEN size > 0 AND transfer > 0 AND is_complete AND ranks > 1 THEN size / transfer *
    CASE WHEN what = 'all_reduce' THEN 2 * (n - 1) / n
         WHEN what IN ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter') THEN (n - 1) / n
         WHEN what IN ('broadcast', 'reduce') THEN 1.0 END END AS bus_gb_s
FROM ended;

-- For whom the others waited.
{table} straggler AS
SELECT last_rank AS rank, count(*) AS last_in, sum(waited_ns) AS caused_ns, max(spread_ns) AS longest_spread_ns,
  100.0 * sum(waited_ns) / (SELECT nullif(sum(waited_ns), 0) FROM collective) AS percent_of_waiting
FROM collective WHERE ranks > 1 GROUP BY last_rank;

-- Collectives of one kind.
{table} kind_of_collective AS
SELECT operation, group_name, members, found_by, message_bytes, count(*) AS collectives, {median(}spread_ns{)} AS median_spread_ns,
  max(spread_ns) AS longest_spread_ns, {median(}transfer_ns{)} AS median_transfer_ns, sum(waited_ns) AS all_waited_ns
FROM collective GROUP BY operation, group_name, members, found_by, message_bytes;

SELECT * FROM rank_time ORDER BY rank;
SELECT * FROM straggler ORDER BY caused_ns DESC, rank;
SELECT * FROM kind_of_collective ORDER BY all_waited_ns DESC, operation, message_bytes;
SELECT * FROM collective ORDER BY waited_ns DESC, members, number LIMIT 20;
