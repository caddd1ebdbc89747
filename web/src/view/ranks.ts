// What /api/ranks tells (schema tacho-ranks/1, docs/ranks.md), as far as the page shows it. Nothing is computed here but places on
// the screen. Times are ns; moments count from the run's first event.

export interface RankTimes {
  span_ns: number;
  busy_ns: number;
  idle_ns: number;
  compute_ns: number;
  communication_ns: number;
  exposed_communication_ns: number;
  overlap_ns: number;
  copies_ns: number;
  exposed_copies_ns: number;
  launch_bound_ns: number;
}
export interface RankStep extends RankTimes {
  step: number;
  begin_ns: number;
  end_ns: number;
  late_ns: number;
  waited_ns: number;
  caused_ns: number;
}
export interface RankOfJob extends RankTimes {
  rank: number;
  file: string;
  host: string;
  kernels: number;
  collectives: number;
  messages: number;
  /** The trace has the calls that launched the GPU's work. */
  launches_known: boolean;
  waited_ns: number;
  caused_ns: number;
  last_in: number;
  steps: RankStep[];
}
export interface RankCause {
  kind: string;
  text: string;
}
export interface PathPiece {
  rank: number;
  kind: 'stretch' | 'transfer' | 'tail';
  duration_ns: number;
  compute_ns?: number;
  copies_ns?: number;
  idle_ns?: number;
  host_ns?: number;
  collective: number;
}
export interface StepOfJob {
  step: number;
  begin_ns: number;
  length_ns: number;
  collectives: number;
  last_rank: number;
  last_in: number;
  late_ns: number;
  waited_ns: number;
  imbalance_percent: number;
  cause: RankCause;
  path: PathPiece[];
}
export interface CollectiveOfJob {
  index: number;
  group: string;
  number: number;
  operation: string;
  message_bytes: number | null;
  step: number | null;
  ranks: number;
  complete: boolean;
  last_rank: number;
  blamed_rank: number;
  first_start_ns: number;
  spread_ns: number;
  late_ns: number;
  waited_ns: number;
  transfer_ns: number;
  algorithm_gb_s: number | null;
  bus_gb_s: number | null;
  cause: RankCause;
  /** Rank, arrival after the first, time waited, end after the first arrival. */
  arrivals?: [number, number, number, number][];
}
export interface KindOfCollective {
  operation: string;
  group: string;
  message_bytes: number;
  count: number;
  median_spread_ns: number;
  longest_spread_ns: number;
  median_transfer_ns: number;
  waited_ns: number;
  algorithm_gb_s: number | null;
  bus_gb_s: number | null;
  peak_gb_s: number | null;
  /** A sentence: what the bus bandwidth is compared with, or why nothing is. */
  peak: string;
}
export interface LateMessage {
  from: number;
  to: number;
  communicator: string;
  tag: number | null;
  number: number;
  bytes: number;
  sent_ns: number;
  waited_ns: number;
  /** What the sender did while the receiver waited. */
  meanwhile: RankCause | null;
}
export interface RanksDocument {
  schema: string;
  remarks: string[];
  sentences: string[];
  clocks: { text: string; aligned: boolean; residual_ns: number };
  steps_from: string;
  ranks: RankOfJob[];
  stragglers: { rank: number; last_in: number; waited_ns: number; steps: number[]; cause: RankCause }[];
  steps: StepOfJob[];
  collectives: CollectiveOfJob[];
  steps_left_out: number;
  collectives_left_out: number;
  kinds: KindOfCollective[];
  late_messages: LateMessage[];
  messages: { from: number; to: number; messages: number; bytes: number }[];
  bytes: { from: number; to: number; bytes: number }[];
}

export interface HeatChoice {
  id: string;
  title: string;
  about: string;
  colour: 'exposed' | 'copies' | 'busy' | 'comm' | 'cpu';
  of: (step: RankStep) => number;
  /** It is about other ranks. */
  others?: boolean;
}
/** What can colour the heat map. */
export const kHeat: HeatChoice[] = [
  {
    id: 'late',
    title: 'late',
    about: 'the latest arrival at a collective behind the first rank',
    colour: 'exposed',
    of: (step) => step.late_ns,
    others: true,
  },
  {
    id: 'waited',
    title: 'waited',
    about: 'time waited for other ranks',
    colour: 'copies',
    of: (step) => step.waited_ns,
    others: true,
  },
  {
    id: 'caused',
    title: 'made others wait',
    about: 'time that the others waited for this rank',
    colour: 'exposed',
    of: (step) => step.caused_ns,
    others: true,
  },
  {
    id: 'exposed',
    title: 'exposed communication',
    about: 'communication beside no compute',
    colour: 'comm',
    of: (step) => step.exposed_communication_ns,
  },
  {
    id: 'compute',
    title: 'compute',
    about: 'some kernel ran that is no collective',
    colour: 'busy',
    of: (step) => step.compute_ns,
  },
  { id: 'idle', title: 'idle', about: 'the GPU did nothing', colour: 'cpu', of: (step) => step.idle_ns },
];

/** From when to when a rank was in a collective; null where the page does not know. */
export function stayOf(of: CollectiveOfJob, rank: number): [number, number] | null {
  const found = of.arrivals?.find((each) => each[0] === rank);
  return found === undefined ? null : [of.first_start_ns + found[1], of.first_start_ns + found[3]];
}

/** "all-reduce 3" as a title of a collective. */
export const collectiveTitle = (each: { operation: string; number: number }): string =>
  `${each.operation} ${each.number}`;
