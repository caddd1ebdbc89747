// What a flame graph says in words: of its runs, of what the search found, of the kernel that is chosen.
import { percent, shownWhole, time } from '../view/units';
import { hostTime, type FlameNode, type FlameRun, type Order, type Widths } from './tree';

/** The share of what matches below `top`; of nested matches the outermost counts. */
export function matchedText(top: FlameNode, widths: Widths, matches: (node: FlameNode) => boolean): string {
  let [sum, frames] = [0, 0];
  const list = [top];
  for (let i = 0; i < list.length; ++i) {
    const node = list[i];
    if (node.parent !== null && matches(node)) {
      sum += widths.value(node, 0);
      ++frames;
    } else for (const each of node.children.values()) list.push(each);
  }
  return frames > 0 ? `${percent(sum, widths.value(top, 0))} in matches` : 'no match';
}

/** The share of the kernel `chosen`, whose frames are among `kept`, of `whole` ns. */
export function chosenText(kept: Set<FlameNode>, chosen: string, whole: number, order: Order): string {
  let [sum, places] = [0, 0];
  for (const node of kept)
    if (node.frame.part === 'device' && node.frame.name === chosen && (order === 'top-down' || node.depth === 1)) {
      sum += node.gpu[0];
      ++places;
    }
  return `${percent(sum, whole)} of GPU time in the kernel chosen${order === 'top-down' && places > 1 ? `, at ${places} places` : ''}`;
}

/** The totals of a run, or of two that are compared. */
export function factsText(runs: FlameRun[]): string {
  const run = runs[0];
  const list: string[] = [];
  if (runs.length > 1) {
    // Samples and recorded functions do not measure the same: where the runs differ in that, each says which it has.
    const [now, before] = runs.map(hostTime);
    if (runs.some((each) => each.hostNs > 0))
      list.push(
        now === before
          ? `host ${time(run.hostNs)}, compared with ${time(runs[1].hostNs)}`
          : `host ${time(run.hostNs)} ${now}, compared with ${time(runs[1].hostNs)} ${before}`,
      );
    if (runs.some((each) => each.gpuNs > 0)) list.push(`GPU ${time(run.gpuNs)}, compared with ${time(runs[1].gpuNs)}`);
    return list.join(' · ');
  }
  if (run.hostNs > 0)
    list.push(
      `host ${time(run.hostNs)} ${hostTime(run)}${run.recorded === true ? '' : `, ${shownWhole(run.samples)} ${run.samples === 1 ? 'sample' : 'samples'}`}`,
    );
  if (run.gpuNs > 0) {
    const known = (run.gpuExactNs + run.gpuNearNs) / run.gpuNs;
    list.push(
      `GPU ${time(run.gpuNs)}${known > 0 ? `, ${percent(run.gpuExactNs, run.gpuNs)} by the stack at its launch` : ''}${known > 0 && known < 0.9995 ? `, ${percent((1 - known) * run.gpuNs, run.gpuNs)} without a stack` : ''}`,
    );
  }
  return list.join(' · ');
}
