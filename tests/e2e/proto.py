"""A Perfetto trace read with a few lines: tracks, slices and counters of a file that tacho wrote."""


def fields(data):
    """(number, value) of a protobuf message; value is an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind == 1:
            yield number, int.from_bytes(data[at:at + 8], "little")
            at += 8
        elif kind == 2:
            size = varint()
            yield number, data[at:at + size]
            at += size
        elif kind == 5:
            yield number, int.from_bytes(data[at:at + 4], "little")
            at += 4
        else:
            raise ValueError(f"wire type {kind}")


class Perfetto:
    """tracks: names; slices: (track name, slice name); counters: {name: [values]}; units: {counter: unit};
    categories; annotations: names seen; samples: how many PerfSamples; depth: deepest nesting by track."""

    def __init__(self, path):
        import struct
        names, threads, interned, annotation_names, category_names = {}, {}, {}, {}, {}
        self.slices, self.counters, self.units, self.categories, self.annotations = [], {}, {}, set(), set()
        self.samples, self.depth, stacks = 0, {}, {}
        self.texts = set()
        for number, packet in fields(path.read_bytes()):
            if number != 1:
                continue
            # Names that a packet brings along are for its own event too.
            for field, value in sorted(fields(packet), key=lambda entry: entry[0] != 12):
                if field == 12:  # interned data
                    for kind, entry in fields(value):
                        if kind in (1, 2, 3, 29):
                            entry = dict(fields(entry))
                            {2: interned, 3: annotation_names, 1: category_names}.get(kind, {})[entry[1]] = entry[2].decode()
                            if kind == 29:
                                self.texts.add(entry[2].decode())
                elif field == 60:  # track descriptor
                    track = dict(fields(value))
                    if 4 in track:
                        thread = dict(fields(track[4]))
                        names[track[1]] = thread.get(5, b"").decode()
                        threads[track[1]] = thread.get(2)
                    elif 3 in track:
                        process = dict(fields(track[3]))
                        names[track[1]] = "process " + process.get(6, b"").decode()
                    else:
                        names[track[1]] = track.get(2, b"").decode()
                    if 8 in track:
                        self.units[names[track[1]]] = dict(fields(track[8])).get(6, b"").decode()
                        self.counters.setdefault(names[track[1]], [])
                elif field == 66:
                    self.samples += 1
                elif field == 11:  # track event
                    event = list(fields(value))
                    get = dict(event)
                    kind, track = get.get(9), names.get(get.get(11), "?")
                    for n, v in event:
                        if n == 4:
                            for m, w in fields(v):
                                if m == 1:
                                    self.annotations.add(annotation_names[w])
                        if n == 3:
                            self.categories.add(category_names[v])
                    if kind == 1:
                        name = get[23].decode() if 23 in get else interned.get(get.get(10), "?")
                        self.slices.append((track, name))
                        stacks.setdefault(get.get(11), []).append(name)
                        self.depth[track] = max(self.depth.get(track, 0), len(stacks[get.get(11)]))
                    elif kind == 2:
                        stacks[get.get(11)].pop()
                    elif kind == 4:
                        number = struct.unpack("<d", get[44].to_bytes(8, "little"))[0] if 44 in get else get.get(30, 0)
                        self.counters.setdefault(track, []).append(number)
        self.tracks = set(names.values())
        self.unbalanced = [track for track, open_slices in stacks.items() if open_slices]

    def on(self, track_part):
        return [name for track, name in self.slices if track_part in track]
