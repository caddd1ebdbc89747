// Random traces as plain lists of slices, and what a server of the page would answer for them: written from the contract's
// words and without regard to speed, so that the page can be compared with it.
import { gzipSync } from 'node:zlib';

/** mulberry32: the same seed gives the same trace everywhere. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const kTables = ['dispatch', 'copy', 'api', 'marker'];
export const kOdd = [
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
  'abc \u202egnp.exe\u202c \u2067def',
  'kernel 🚀👩‍🚀 naïve 漢字 \u0000\u0007\n\t end',
  'void cutlass::Kernel<cutlass::gemm::kernel::DefaultGemm<float, 128, 128, 8>>(Params)',
];

/** A trace: names, tracks, slices {table, row, track, lane, start, duration, name, flags}, readings {track, start, value}. */
export function makeTrace(
  seed,
  { queues = 3, threads = 2, slices = 400, length = 1e6, odd = true, megabyte = false } = {},
) {
  const next = random(seed);
  const whole = (limit) => Math.floor(next() * limit);
  const names = ['', ...(odd ? kOdd : [])];
  if (megabyte) names.push('m'.repeat(1 << 20));
  const kinds = names.map(() => 'kernel');
  for (let i = 0; i < 12; ++i) {
    names.push(`kernel_${i}`);
    kinds.push('kernel');
  }
  const firstCall = names.length;
  for (const name of ['cudaLaunchKernel', 'cudaMemcpyAsync', 'cudaStreamSynchronize', 'cudaMalloc']) {
    names.push(name);
    kinds.push('api');
  }
  const tracks = [];
  const all = [];
  const readings = [];
  const rows = [0, 0, 0, 0];
  const track = (parent, kind, name, more = {}) => {
    tracks.push({ id: tracks.length, parent, kind, name, sort: tracks.length, lanes: 1, events: 0, ...more });
    return tracks.length - 1;
  };
  const put = (table, on, lane, start, duration, name, flags = 0) => {
    all.push({ table, row: rows[table]++, track: on, lane, start, duration, name, flags });
    ++tracks[on].events;
    tracks[on].lanes = Math.max(tracks[on].lanes, lane + 1);
  };
  const host = track(-1, 'host', 'node01');
  const process = track(host, 'process', 'train.py (4242)', { process: 1 });
  for (let t = 0; t < threads; ++t) {
    const id = track(process, 'thread', `THREAD ${t} (${4242 + t})`, { process: 1, tables: ['api', 'marker'] });
    // Nested calls: each lane lies within the one above it.
    const fill = (lane, from, to, count) => {
      const cuts = Array.from({ length: 2 * count }, () => from + whole(Math.max(1, to - from))).sort((a, b) => a - b);
      for (let i = 0; i + 1 < cuts.length; i += 2) {
        const duration = cuts[i + 1] - cuts[i];
        const last = i + 3 >= cuts.length && lane === 0 && next() < 0.2;
        put(lane === 0 ? 3 : 2, id, lane, cuts[i], last ? -1 : duration, firstCall + whole(4), next() < 0.05 ? 2 : 0);
        if (lane < 2 && duration > 50 && next() < 0.6) fill(lane + 1, cuts[i], cuts[i + 1], 1 + whole(3));
      }
    };
    fill(0, 0, length, Math.ceil(slices / 6));
  }
  for (let q = 0; q < queues; ++q) {
    const copies = q === queues - 1;
    const id = track(process, copies ? 'copy' : 'queue', copies ? 'Copies' : `Stream ${q}`, {
      process: 1,
      device: 'GPU 0',
    });
    let at = whole(length / 20);
    // Bursts of short slices, some long ones, gaps of every size, points.
    for (let i = 0; i < slices && at < length; ++i) {
      const size = 10 ** (next() * 4);
      const duration = next() < 0.03 ? 0 : Math.max(1, Math.min(Math.floor(size), length - at));
      put(copies ? 1 : 0, id, 0, at, duration, 1 + whole(firstCall - 1), duration === 0 ? 1 : 0);
      at += Math.max(duration, 1) + (next() < 0.5 ? 0 : Math.floor(10 ** (next() * 4)));
    }
  }
  const counter = track(host, 'telemetry', 'GPU 0 power', { unit: 'W', min: 0, max: 700, device: 'GPU 0' });
  for (let at = whole(1000); at < length; at += 1 + whole(length / 150))
    readings.push({ track: counter, start: at, value: Math.round(next() * 700) });
  tracks[counter].events = readings.length;
  return { names, kinds, tracks, slices: all, readings, length };
}

const hue = (text) => [...text].reduce((sum, each) => (sum * 31 + each.codePointAt(0)) % 360, 7);
const endOf = (trace, slice) =>
  slice.duration < 0 ? Math.max(trace.length, slice.start) : slice.start + slice.duration;
const idOf = (slice) => ((BigInt(slice.table) << 48n) | BigInt(slice.row)).toString();

/** Slices of a track, or of the queues below a group as one lane. */
export function slicesOf(trace, track) {
  const kind = trace.tracks[track].kind;
  if (kind !== 'host' && kind !== 'process') return trace.slices.filter((slice) => slice.track === track);
  const within = (id) => id === track || (id >= 0 && within(trace.tracks[id].parent));
  return trace.slices
    .filter((slice) => ['queue', 'copy'].includes(trace.tracks[slice.track].kind) && within(slice.track))
    .map((slice) => ({ ...slice, lane: 0 }));
}

const pad = (buffer) => Buffer.concat([buffer, Buffer.alloc((8 - (buffer.length % 8)) % 8)]);
const column = (Type, values) => {
  const typed = Type.from(values);
  return pad(Buffer.from(typed.buffer, typed.byteOffset, typed.byteLength));
};
function block(track, kind, level, lanes, count, columns) {
  const body = Buffer.concat(columns);
  const head = Buffer.alloc(32);
  head.writeUInt32LE(0x4c495454, 0);
  head.writeUInt32LE(track, 4);
  head.writeUInt8(kind, 8);
  head.writeUInt8(level, 9);
  head.writeUInt16LE(lanes, 10);
  head.writeUInt32LE(count, 12);
  head.writeUInt32LE(32 + body.length, 16);
  return Buffer.concat([head, body]);
}

/** Work of a group as stretches that do not overlap; each belongs to what began first. */
function stretchesOf(trace, slices) {
  const stretches = [];
  let until = -Infinity;
  for (const slice of [...slices].sort((a, b) => a.start - b.start || endOf(trace, b) - endOf(trace, a))) {
    const [start, end] = [Math.max(slice.start, until), Math.min(endOf(trace, slice), trace.length)];
    if (until > slice.start && end <= until) continue;
    until = Math.max(until, end);
    stretches.push({ ...slice, start, duration: Math.max(0, end - start) });
  }
  return stretches;
}

/** A tile as the contract describes it. `most`: slices up to which they are sent one by one. */
export function tile(trace, track, level, index, most = 4096) {
  const width = 2 ** level;
  const begin = index * 512 * width;
  const end = begin + 512 * width;
  const about = trace.tracks[track];
  if (about.kind === 'telemetry') {
    const bins = new Map();
    let before = NaN;
    for (const { track: on, start, value } of trace.readings) {
      if (on !== track) continue;
      if (start < begin) before = value;
      if (start < begin || start >= end) continue;
      const bin = Math.floor((start - begin) / width);
      const known = bins.get(bin);
      bins.set(
        bin,
        known === undefined
          ? { min: value, max: value, last: value }
          : { min: Math.min(known.min, value), max: Math.max(known.max, value), last: value },
      );
    }
    const list = [...bins];
    return block(track, 3, level, 1, list.length, [
      column(Float64Array, [before]),
      column(
        Uint16Array,
        list.map(([bin]) => bin),
      ),
      ...['min', 'max', 'last'].map((each) =>
        column(
          Float64Array,
          list.map(([, values]) => values[each]),
        ),
      ),
    ]);
  }
  const group = about.kind === 'host' || about.kind === 'process';
  const inside = slicesOf(trace, track)
    .filter(
      (slice) => slice.start < end && (endOf(trace, slice) > begin || (slice.start >= begin && slice.start < end)),
    )
    .sort((a, b) => a.lane - b.lane || a.start - b.start);
  if (inside.length === 0) return block(track, 0, level, about.lanes, 0, []);
  if (inside.length <= most) {
    const sent = group ? stretchesOf(trace, inside) : inside;
    return block(track, 2, level, about.lanes, sent.length, [
      column(
        Float64Array,
        sent.map((slice) => slice.start),
      ),
      column(
        Float64Array,
        sent.map((slice) => slice.duration),
      ),
      column(
        BigUint64Array,
        sent.map((slice) => (group ? 2n ** 64n - 1n : BigInt(idOf(slice)))),
      ),
      column(
        Uint32Array,
        sent.map((slice) => slice.name),
      ),
      column(
        Uint16Array,
        sent.map((slice) => slice.lane),
      ),
      column(
        Uint16Array,
        sent.map((slice) => (group ? 0 : slice.flags)),
      ),
    ]);
  }
  const bins = new Map();
  for (const slice of inside) {
    const stop = endOf(trace, slice);
    const first = Math.max(0, Math.floor((slice.start - begin) / width));
    const last = Math.min(511, stop > slice.start ? Math.ceil((stop - begin) / width) - 1 : first);
    for (let bin = first; bin <= last; ++bin) {
      const key = slice.lane * 512 + bin;
      const known = bins.get(key) ?? { parts: [], events: 0, names: new Map() };
      bins.set(key, known);
      const a = Math.max(slice.start, begin + bin * width);
      const b = Math.min(stop, begin + (bin + 1) * width);
      known.parts.push([a, b]);
      ++known.events;
      known.names.set(slice.name, (known.names.get(slice.name) ?? 0) + b - a);
    }
  }
  const list = [...bins].sort((a, b) => a[0] - b[0]);
  const cover = ({ parts }) => {
    let covered = 0;
    let at = -Infinity;
    for (const [a, b] of parts.sort((x, y) => x[0] - y[0])) {
      covered += Math.max(0, b - Math.max(a, at));
      at = Math.max(at, b);
    }
    return covered >= width ? 65535 : Math.max(1, Math.min(65534, Math.floor((covered / width) * 65535)));
  };
  return block(track, 1, level, about.lanes, list.length, [
    column(
      Uint16Array,
      list.map(([key]) => Math.floor(key / 512)),
    ),
    column(
      Uint16Array,
      list.map(([key]) => key % 512),
    ),
    column(
      Uint16Array,
      list.map(([, bin]) => cover(bin)),
    ),
    column(
      Uint32Array,
      list.map(([, bin]) => bin.events),
    ),
    column(
      Uint32Array,
      list.map(([, bin]) => [...bin.names].sort((a, b) => b[1] - a[1])[0][0]),
    ),
  ]);
}

export function documentOf(trace) {
  return {
    version: 'test',
    views: ['kernel'],
    runs: [
      {
        id: 0,
        name: 'random.tacho',
        command: './random <b>x</b>',
        t0: '1000',
        length: trace.length,
        complete: true,
        events: trace.slices.length,
        tracks: trace.tracks,
        ready: 1,
        losses: [],
      },
    ],
  };
}

function union(parts) {
  let covered = 0;
  let at = -Infinity;
  for (const [a, b] of parts.sort((x, y) => x[0] - y[0])) {
    covered += Math.max(0, b - Math.max(a, at));
    at = Math.max(at, b);
  }
  return covered;
}
const partsOf = (trace, tables, from, to) =>
  trace.slices
    .filter((slice) => tables.includes(kTables[slice.table]))
    .map((slice) => [Math.max(from, slice.start), Math.min(to, endOf(trace, slice))])
    .filter(([a, b]) => b > a);

export function entriesOf(trace, tables, from, to) {
  const byName = new Map();
  for (const slice of trace.slices) {
    if (!tables.includes(kTables[slice.table])) continue;
    const stop = endOf(trace, slice);
    if (slice.start >= to || (stop <= from && !(slice.start === stop && slice.start >= from))) continue;
    const time = Math.min(to, stop) - Math.max(from, slice.start);
    const known = byName.get(slice.name) ?? {
      name: slice.name,
      text: trace.names[slice.name],
      count: 0,
      total: 0,
      min: Infinity,
      max: 0,
    };
    byName.set(slice.name, known);
    ++known.count;
    known.total += time;
    known.min = Math.min(known.min, time);
    known.max = Math.max(known.max, time);
  }
  return [...byName.values()]
    .map((each) => ({ ...each, mean: each.total / each.count }))
    .sort((a, b) => b.total - a.total || (a.text < b.text ? -1 : 1));
}

export function overviewOf(trace) {
  const bins = 400;
  const width = trace.length / bins;
  const share = (tables) =>
    Array.from({ length: bins }, (_, i) => union(partsOf(trace, tables, i * width, (i + 1) * width)) / width);
  const busy = share(['dispatch']);
  const any = share(['dispatch', 'copy']);
  const total = (tables) => union(partsOf(trace, tables, 0, trace.length));
  const sum = (tables) => partsOf(trace, tables, 0, trace.length).reduce((all, [a, b]) => all + b - a, 0);
  const gpu = total(['dispatch']);
  const both = total(['dispatch', 'copy']);
  return {
    span: [0, trace.length],
    bins,
    bin_width: width,
    busy: any,
    compute: busy,
    copies: share(['copy']),
    exposed_copies: any.map((each, i) => each - busy[i]),
    totals: {
      gpu_busy: both,
      compute: gpu,
      gpu_idle: trace.length - both,
      copy: total(['copy']),
      exposed_copy: both - gpu,
      api: sum(['api']),
      kernels: sum(['dispatch']),
      span: trace.length,
      devices: 1,
    },
    kernels: entriesOf(trace, ['dispatch'], 0, trace.length).slice(0, 10),
    calls_top: entriesOf(trace, ['api'], 0, trace.length).slice(0, 10),
    copies_top: [],
    findings: [
      {
        rule: 'gap',
        state: 'found',
        sentence: 'The GPU waits for the host <b>here</b>.',
        evidence: ['12 gaps'],
        saves: [1000, 2000],
        spans: [
          {
            from: trace.length * 0.4,
            to: trace.length * 0.5,
            tracks: [trace.tracks.find((each) => each.kind === 'queue').id],
          },
        ],
      },
    ],
    not_judged: [{ rule: 'occupancy', needs: 'counters' }],
  };
}

export function sliceOf(trace, row) {
  const slice = trace.slices.find((each) => idOf(each) === row);
  if (slice === undefined) return null;
  const place = (each) => ({
    row: idOf(each),
    table: kTables[each.table],
    track: each.track,
    lane: each.lane,
    start: each.start,
    duration: each.duration,
  });
  const cause = trace.slices
    .filter((each) => each.table === 2 && each.start <= slice.start)
    .sort((a, b) => b.start - a.start)[0];
  return {
    ...place(slice),
    name: trace.names[slice.name],
    columns: [
      ['grid', '1024 x 1 x 1'],
      ['note', kOdd[0]],
    ],
    links: slice.table === 0 && cause !== undefined ? [{ ...place(cause), how: 'launched by' }] : [],
    stack: [],
  };
}

export function searchOf(trace, expression, matchCase, limit, after) {
  const pattern = new RegExp(expression, matchCase ? 'u' : 'iu');
  const matching = new Set(trace.names.flatMap((text, name) => (text !== '' && pattern.test(text) ? [name] : [])));
  const hits = trace.slices
    .filter((slice) => matching.has(slice.name))
    .sort((a, b) => a.start - b.start || Number(BigInt(idOf(a)) - BigInt(idOf(b))));
  const from = Number(after ?? 0);
  const names = [...matching].map((name) => {
    const of = hits.filter((slice) => slice.name === name);
    return {
      name,
      text: trace.names[name],
      kind: trace.kinds[name],
      count: of.length,
      total: of.reduce((sum, slice) => sum + endOf(trace, slice) - slice.start, 0),
    };
  });
  return {
    names: names.filter((each) => each.count > 0).sort((a, b) => b.total - a.total),
    hits: hits.slice(from, from + limit).map((slice) => ({
      row: idOf(slice),
      track: slice.track,
      lane: slice.lane,
      start: slice.start,
      duration: slice.duration,
      name: slice.name,
    })),
    more: from + limit < hits.length ? String(from + limit) : null,
  };
}

export function kernelOf(trace, name, from, to) {
  const launches = trace.slices
    .filter((slice) => slice.table === 0 && slice.name === name && slice.start < to && endOf(trace, slice) >= from)
    .sort((a, b) => a.start - b.start);
  if (launches.length === 0) return null;
  const sorted = launches.map((slice) => slice.duration).sort((a, b) => a - b);
  const total = sorted.reduce((sum, each) => sum + each, 0);
  const edges = Array.from(
    { length: 21 },
    (_, i) => Math.max(1, sorted[0]) * (Math.max(2, sorted.at(-1)) / Math.max(1, sorted[0])) ** (i / 20),
  );
  const counts = new Array(20).fill(0);
  for (const each of sorted) ++counts[Math.max(0, Math.min(19, edges.findIndex((edge) => edge >= each) - 1))];
  return {
    name,
    text: trace.names[name],
    count: launches.length,
    total,
    mean: total / launches.length,
    min: sorted[0],
    max: sorted.at(-1),
    p50: sorted[Math.ceil(sorted.length / 2) - 1],
    p90: sorted[Math.ceil(sorted.length * 0.9) - 1],
    p99: sorted[Math.ceil(sorted.length * 0.99) - 1],
    histogram: { edges, counts },
    launches: {
      start: launches.map((each) => each.start),
      duration: launches.map((each) => each.duration),
      row: launches.map(idOf),
    },
    sampled: false,
  };
}

// ---- the self-contained form

function varint(values) {
  const bytes = [];
  for (let value of values) {
    while (value >= 128) {
      bytes.push((value % 128) + 128);
      value = Math.floor(value / 128);
    }
    bytes.push(value);
  }
  return Buffer.from(bytes);
}
const zigzag = (value) => (value < 0 ? -2 * value - 1 : 2 * value);
const differences = (values) => values.map((value, i) => zigzag(value - (i > 0 ? values[i - 1] : 0)));

/** What stands in <script id="tacho-data">: tiles of bins as far down as a server would send them, and the slices. */
export function embedded(trace, most = 4096) {
  const bodies = [];
  let at = 0;
  const put = (buffer) => {
    bodies.push(buffer);
    at += buffer.length;
    return [at - buffer.length, buffer.length];
  };
  const lines = trace.tracks.map((track) => {
    const line = { line: track.id };
    if (track.kind === 'telemetry') {
      const mine = trace.readings.filter((each) => each.track === track.id);
      const value = Buffer.from(Float64Array.from(mine, (each) => each.value).buffer);
      return {
        ...line,
        readings: {
          count: mine.length,
          columns: { start: put(varint(differences(mine.map((each) => each.start)))), value: put(value) },
        },
      };
    }
    const tiles = [];
    const visit = (level, index) => {
      const bytes = tile(trace, track.id, level, index, most);
      if (bytes.readUInt8(8) !== 1) return;
      const count = bytes.readUInt32LE(12);
      const columns = [];
      let from = 32;
      for (const wide of [2, 2, 2, 4, 4]) {
        columns.push(Array.from({ length: count }, (_, i) => bytes.readUIntLE(from + i * wide, wide)));
        from += (count * wide + 7) & ~7;
      }
      tiles.push({ level, index, columns });
      if (level > 0) for (const half of [0, 1]) visit(level - 1, 2 * index + half);
    };
    visit(Math.ceil(Math.log2(trace.length / 512)), 0);
    if (tiles.length > 0) {
      const [lane, bin, cover, events, name] = [0, 1, 2, 3, 4].map((i) => tiles.flatMap((each) => each.columns[i]));
      const of = (key) => put(varint(tiles.map((each) => each[key])));
      line.tiles = {
        count: tiles.length,
        entries: lane.length,
        columns: {
          level: of('level'),
          index: of('index'),
          size: put(varint(tiles.map((each) => each.columns[0].length))),
          lane: put(varint(lane)),
          bin: put(varint(differences(bin))),
          cover: put(varint(cover)),
          events: put(varint(events)),
          name: put(varint(name)),
        },
      };
    }
    if (track.kind === 'host' || track.kind === 'process') {
      const within = (id) => id === track.id || (id >= 0 && within(trace.tracks[id].parent));
      return {
        ...line,
        below: trace.tracks
          .filter((each) => ['queue', 'copy'].includes(each.kind) && within(each.id))
          .map((each) => each.id),
      };
    }
    const mine = trace.slices
      .filter((slice) => slice.track === track.id)
      .sort((a, b) => a.start - b.start || b.duration - a.duration || a.table - b.table);
    const column = (key, more = 0) => put(varint(mine.map((each) => each[key] + more)));
    const rows = {};
    for (const table of new Set(mine.map((each) => each.table))) {
      const of = mine.filter((each) => each.table === table);
      rows[table] = {
        count: of.length,
        columns: { row: put(varint(differences(of.map((each) => each.row)))), shape: put(varint(of.map(() => 1))) },
      };
    }
    return {
      ...line,
      ...(track.kind === 'queue' || track.kind === 'copy' ? { device: 0 } : {}),
      slices: {
        count: mine.length,
        columns: {
          start: put(varint(differences(mine.map((each) => each.start)))),
          duration: column('duration', 1),
          name: column('name'),
          lane: column('lane'),
          flags: column('flags'),
          table: column('table'),
        },
        rows,
      },
    };
  });
  const names = {
    texts: trace.names,
    colors: trace.names.map(hue),
    kinds: trace.kinds,
    framework: [],
    communicates: [],
  };
  const header = Buffer.from(
    JSON.stringify({
      document: documentOf(trace),
      overview: overviewOf(trace),
      names,
      tables: kTables,
      lines,
      details: {},
      shapes: [[], [['grid', '1024 x 1 x 1']]],
    }),
  );
  const end = Buffer.alloc(4);
  end.writeUInt32LE(header.length, 0);
  return gzipSync(Buffer.concat([Buffer.from('TEMB\x02\0\0\0'), ...bodies, header, end])).toString('base64');
}
/** Answers of the server for a path of the contract; null = 404. */
export function answer(trace, url, most) {
  const query = (key) => url.searchParams.get(key);
  const number = (key) => Number(query(key));
  switch (url.pathname) {
    case '/api/document':
      return documentOf(trace);
    case '/api/overview':
      return overviewOf(trace);
    case '/api/tiles':
      return Buffer.concat(
        query('tracks')
          .split(',')
          .map((track) => tile(trace, Number(track), number('level'), number('index'), most)),
      );
    case '/api/names': {
      const ids = query('ids').split(',').map(Number);
      return { names: ids.map((id) => trace.names[id]), colors: ids.map((id) => hue(trace.names[id])) };
    }
    case '/api/span': {
      const [from, to] = [number('from'), number('to')];
      const busy = union(partsOf(trace, ['dispatch', 'copy'], from, to));
      return {
        kernels: entriesOf(trace, ['dispatch'], from, to),
        calls: entriesOf(trace, ['api'], from, to),
        copies: entriesOf(trace, ['copy'], from, to),
        markers: entriesOf(trace, ['marker'], from, to),
        devices: [{ text: 'GPU 0', busy, idle: to - from - busy }],
      };
    }
    case '/api/slice':
      return sliceOf(trace, query('row'));
    case '/api/search':
      try {
        return searchOf(trace, query('q'), query('case') === '1', number('limit'), query('after'));
      } catch {
        return { status: 400, error: 'That is not a regular expression.' };
      }
    case '/api/kernel':
      return kernelOf(trace, number('name'), number('from'), number('to'));
    case '/api/schema':
      return {
        tables: [
          {
            name: 'dispatch',
            columns: [
              { name: 'start', type: 'INTEGER', meaning: 'begin' },
              { name: 'duration', type: 'INTEGER', meaning: 'end - begin' },
            ],
          },
        ],
      };
    case '/api/query':
      return {
        columns: ['name', 'total'],
        types: ['TEXT', 'INTEGER'],
        rows: entriesOf(trace, ['dispatch'], 0, trace.length).map((each) => [each.text, each.total]),
        cut: false,
        seconds: 0.0012,
      };
    default:
      return null;
  }
}
