"""Decodes tacho's Perfetto files by Perfetto's descriptors and checks every packet (perfetto.sh)."""
import collections
import json
import subprocess
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "perfetto.protos."
BOOTTIME, INCREMENTAL = 6, 64
CLEARED, NEEDS = 1, 2
COMPUTE = 6
APIS = {3: "OpenCL", 4: "CUDA", 5: "HIP"}


def load(folder):
    """The Trace class, and extensions by name."""
    files = descriptor_pb2.FileDescriptorSet()
    with open(folder + "/perfetto.bin", "rb") as file:
        files.ParseFromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    extensions = {}
    for name in ("GpuTrackEvent.gpu_correlation", "GpuInternedData.compute_kernels", "GpuInternedData.compute_arg_names"):
        extension = pool.FindExtensionByName(PACKAGE + name)
        factory.GetPrototype(extension.containing_type).RegisterExtension(extension)
        extensions[name.split(".")[1]] = extension
    return factory.GetPrototype(pool.FindMessageTypeByName(PACKAGE + "TracePacket")), extensions


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def packets_of(data):
    at = 0
    while at < len(data):
        assert data[at] == 0x0A, f"byte {at} begins no packet"
        size, at = varint(data, at + 1)
        assert size > 0, f"an empty packet before byte {at}"
        assert at + size <= len(data), "the last packet is cut"
        yield data[at:at + size]
        at += size


def unknown_fields(message):
    """Names of messages with fields that Perfetto does not have."""
    if len(message.UnknownFields()):
        yield message.DESCRIPTOR.full_name
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if field.label == field.LABEL_REPEATED else [value]:
            yield from unknown_fields(each)


class Sequence:
    def __init__(self):
        self.interned = collections.defaultdict(dict)
        self.time = None


class Check:
    def __init__(self, packet_type, extensions):
        self.packet_type, self.extensions = packet_type, extensions
        self.problems = collections.Counter()
        self.sequences, self.tracks, self.gpus, self.machines = {}, {}, {}, {}
        self.events, self.submitted, self.calls = {}, {}, {}
        self.open = collections.defaultdict(list)
        self.works = []
        self.values = collections.defaultdict(float)
        self.counters, self.kinds = {}, collections.Counter()
        self.processes = set()

    def wrong(self, text):
        self.problems[text] += 1

    def lookup(self, sequence, kind, iid, what):
        found = sequence.interned[kind].get(iid)
        if found is None:
            self.wrong(f"{what}: {kind} has no {iid}")
        return found

    def intern(self, sequence, data):
        for field, entries in data.ListFields():
            kind = field.name
            for entry in entries:
                if entry.iid == 0 or entry.iid in sequence.interned[kind]:
                    self.wrong(f"{kind}: iid 0 or twice the same")
                sequence.interned[kind][entry.iid] = entry
        for kind in (self.extensions["compute_kernels"], self.extensions["compute_arg_names"]):
            for entry in data.Extensions[kind]:
                sequence.interned[kind.name][entry.iid] = entry

    def packet(self, data):
        packet = self.packet_type()
        packet.ParseFromString(data)
        for name in unknown_fields(packet):
            self.wrong(f"{name} has unknown fields")
        key = (packet.machine_id, packet.trusted_packet_sequence_id)
        flags = packet.sequence_flags
        if flags & CLEARED:
            if key in self.sequences:
                self.wrong("a sequence is cleared twice")
            self.sequences[key] = Sequence()
        sequence = self.sequences.get(key)
        if sequence is None:
            if not packet.HasField("clock_snapshot") or key[1]:
                self.wrong("a packet before its sequence begins")
            sequence = Sequence()
        if packet.HasField("interned_data"):
            if not flags & NEEDS:
                self.wrong("interned data without flags")
            self.intern(sequence, packet.interned_data)
        if packet.HasField("clock_snapshot"):
            self.snapshot(packet, sequence)
        time = packet.timestamp
        if packet.HasField("timestamp") and not packet.HasField("timestamp_clock_id"):
            sequence.time += time
            time = sequence.time
        kind = packet.WhichOneof("data")
        self.kinds[kind] += 1
        take = getattr(self, kind, None)
        if take is None:
            self.wrong(f"tacho writes no {kind}")
        elif kind != "clock_snapshot":
            take(getattr(packet, kind), sequence, time, key[0])

    def snapshot(self, packet, sequence):
        clocks = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
        if INCREMENTAL in clocks:
            if not clocks[INCREMENTAL].is_incremental or packet.trace_packet_defaults.timestamp_clock_id != INCREMENTAL:
                self.wrong("the clock of the sequence is not incremental, or not its default")
            sequence.time = clocks[INCREMENTAL].timestamp
        if BOOTTIME not in clocks:
            self.wrong("a snapshot without CLOCK_BOOTTIME")

    def clock_snapshot(self, *_):
        pass

    def system_info(self, info, _sequence, _time, machine):
        if not info.machine_name:
            self.wrong("a machine without a name")
        self.machines[machine] = info.machine_name

    def gpu_info(self, info, _sequence, _time, machine):
        names = [gpu.name for gpu in info.gpus if gpu.name]
        if len(names) != len(set(names)):
            self.wrong("two GPUs of one name")
        for gpu in info.gpus:
            if gpu.uuid and len(gpu.uuid) != 16:
                self.wrong("a GPU's uuid has not 16 bytes")
        self.gpus[machine] = info.gpus

    def track_descriptor(self, track, _sequence, _time, _machine):
        if track.uuid in self.tracks:
            self.wrong("a track is described twice")
        if track.HasField("parent_uuid") and track.parent_uuid not in self.tracks:
            self.wrong("a track before its parent")
        self.tracks[track.uuid] = track
        if track.HasField("process"):
            self.processes.add(track.process.pid)

    def track_event(self, event, sequence, time, machine):
        track = self.tracks.get(event.track_uuid)
        if track is None:
            return self.wrong("an event before its track")
        if event.type == 2:
            if not self.open[event.track_uuid]:
                self.wrong("an end without a begin")
            else:
                self.open[event.track_uuid].pop()
            return None
        if event.type == 4:
            if not track.HasField("counter"):
                self.wrong("a value on a track without a counter")
            return None
        if track.HasField("counter"):
            self.wrong("a slice on a counter's track")
        if event.type == 1:
            self.open[event.track_uuid].append(time)
        for iid in event.category_iids:
            self.lookup(sequence, "event_categories", iid, "category")
        if event.HasField("name_iid"):
            self.lookup(sequence, "event_names", event.name_iid, "name")
        correlation = None
        for note in event.debug_annotations:
            name = self.lookup(sequence, "debug_annotation_names", note.name_iid, "annotation")
            if note.HasField("string_value_iid"):
                self.lookup(sequence, "debug_annotation_string_values", note.string_value_iid, "annotation")
            if name is not None and name.name == "corr_id":
                correlation = note.uint_value
        submitted = event.Extensions[self.extensions["gpu_correlation"]].render_stage_submission_event_ids
        for each in submitted:
            self.submitted.setdefault(each, set()).add(correlation)
        return None

    def gpu_render_stage_event(self, stage, sequence, time, machine):
        if stage.event_id in self.events:
            self.wrong("two works of one id")
        self.events[stage.event_id] = stage
        queue = self.lookup(sequence, "gpu_specifications", stage.hw_queue_iid, "queue")
        kind = self.lookup(sequence, "gpu_specifications", stage.stage_iid, "stage")
        context = self.lookup(sequence, "graphics_contexts", stage.context, "context")
        name = self.lookup(sequence, "event_names", stage.name_iid, "work") if stage.HasField("name_iid") else stage
        if None in (queue, kind, context, name):
            return
        if not queue.name or not name.name:
            self.wrong("a queue or work without a name")
        if stage.gpu_id >= len(self.gpus.get(machine, [])):
            self.wrong("work on a GPU that is not described")
        if context.api and context.api not in APIS:
            self.wrong("a context of an API that Perfetto does not have")
        arguments = {}
        for argument in stage.launch.args:
            key = self.lookup(sequence, "compute_arg_names", argument.name_iid, "argument")
            which = argument.WhichOneof("value")
            value = getattr(argument, which)
            if which == "string_value_iid":
                text = self.lookup(sequence, "debug_annotation_string_values", value, "argument")
                value = text.str.decode(errors="replace") if text is not None else ""
            if key is not None:
                if key.name in arguments:
                    self.wrong("an argument twice")
                arguments[key.name] = value
        if kind.category == 2:
            kernel = self.lookup(sequence, "compute_kernels", stage.kernel_iid, "kernel")
            if kernel is not None and not kernel.name:
                self.wrong("a kernel without a name")
            if stage.launch.HasField("grid_size"):
                grid, group = stage.launch.grid_size, stage.launch.workgroup_size
                if grid.x * grid.y * grid.z != arguments.get("grid_size") or \
                        group.x * group.y * group.z != arguments.get("workgroup_size"):
                    self.wrong("a grid whose sizes do not agree")
        if "device" not in arguments:
            self.wrong("work without device")
        self.works.append((kind.name, name.name, stage.duration if stage.HasField("duration") else None, arguments,
                           stage.event_id))

    def gpu_counter_event(self, event, sequence, time, machine):
        source = self.lookup(sequence, "gpu_counter_descriptors", event.counter_descriptor_iid, "counter")
        if source is None:
            return
        specs = {spec.counter_id: spec for spec in source.counter_descriptor.specs}
        grouped = {each for group in source.counter_descriptor.counter_groups for each in group.counter_ids}
        if any(group.group_id < 8 or not group.name for group in source.counter_descriptor.counter_groups):
            self.wrong("a group of counters without a name, or with one of Perfetto's numbers")
        for counter in event.counters:
            spec = specs.get(counter.counter_id)
            if spec is None or not spec.name or counter.counter_id not in grouped:
                self.wrong("a counter without a name or group")
                continue
            if COMPUTE in spec.groups:
                self.values[spec.name] += counter.double_value

    def perf_sample(self, sample, sequence, time, machine):
        stack = self.lookup(sequence, "callstacks", sample.callstack_iid, "sample")
        for frame in stack.frame_ids if stack is not None else ():
            found = self.lookup(sequence, "frames", frame, "stack")
            if found is not None:
                self.lookup(sequence, "function_names", found.function_name_id, "frame")
                self.lookup(sequence, "mappings", found.mapping_id, "frame")

    def finish(self):
        for opened in self.open.values():
            if opened:
                self.wrong("a slice without an end")
        calls = {correlation for each in self.submitted.values() for correlation in each}
        for _, _, _, arguments, event_id in self.works:
            correlation = arguments.get("correlation")
            if correlation in calls and correlation not in self.submitted.get(event_id, ()):
                self.wrong("work whose call does not name it")


def query(tacho, path, sql):
    done = subprocess.run([tacho, "query", path, sql, "--output-format", "json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["rows"]


def sums_of_tacho(tacho, path):
    """{kind: (rows, rows with an end, ns)}, and for each counter of kernels its sum."""
    found = {}
    for kind, table in (("Kernel", "dispatch"), ("Memcpy", "copy"), ("Memset", "fill")):
        rows, ends, total = query(tacho, path,
                                  f"SELECT count(*), count(duration), total(duration) FROM tacho.{table}")[0]
        if rows:
            found[kind] = (rows, ends, int(total))
    for name, total in query(tacho, path, "SELECT c.name, total(v.value) FROM tacho.counter_value v "
                             "JOIN tacho.counter c ON c.id = v.dim GROUP BY 1"):
        found[name] = round(total, 6)
    return found


def main():
    tacho, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    packet_type, extensions = load(folder)
    wrong = 0
    for path in files:
        out = folder + "/out.pftrace"
        done = subprocess.run([tacho, "export", path, "-f", "pftrace", "-o", out, "--overwrite"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            print(f"{path}: {done.stderr.decode().strip()}")
            wrong += 1
            continue
        check = Check(packet_type, extensions)
        with open(out, "rb") as file:
            for packet in packets_of(file.read()):
                check.packet(packet)
        check.finish()
        sums = {}
        for kind, _, duration, _, _ in check.works:
            rows, ends, total = sums.get(kind, (0, 0, 0))
            sums[kind] = (rows + 1, ends + (duration is not None), total + (duration or 0))
        sums.update({name: round(total, 6) for name, total in check.values.items()})
        expected = sums_of_tacho(tacho, path)
        back = sums_of_tacho(tacho, out)
        if sums != expected:
            check.wrong(f"sums {sums}, tacho has {expected}")
        if back != expected:
            check.wrong(f"read back: sums {back}, not {expected}")
        linked = sum(1 for work in check.works if work[4] in check.submitted)
        print(f"{path}: {sum(check.kinds.values())} packets, {len(check.works)} works ({linked} with a call), "
              f"{sum(len(each) for each in check.gpus.values())} GPUs, {len(check.values)} counters of kernels: "
              f"{'good' if not check.problems else 'WRONG'}")
        for problem, count in check.problems.items():
            print(f"  {problem} ({count} times)")
        wrong += len(check.problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
