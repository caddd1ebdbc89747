#!/usr/bin/python3
"""Called by otlp.sh: exports each trace, parses every line as the message that OpenTelemetry's .proto files declare, and compares
calls and times of kernels, and the time of devices under stacks, with tacho's SQL."""
import json
import pathlib
import subprocess
import sys

from google.protobuf import json_format
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData


def answer(tacho, trace, sql):
    out = subprocess.run([tacho, "query", trace, sql, "--output-format", "json"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)["rows"]


def parsed(path, kind):
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [json_format.Parse(line, kind()) for line in lines]  # fails for a field or type that the message lacks


def text(value):
    return getattr(value, value.WhichOneof("value"))


def kernels_of(messages):
    found = {}
    for message in messages:
        for resource in message.resource_metrics:
            for metric in resource.scope_metrics[0].metrics:
                if metric.name == "tacho.gpu.kernel.duration":
                    for point in metric.histogram.data_points:
                        [name] = [text(each.value) for each in point.attributes if each.key == "tacho.kernel.name"]
                        count, total = found.get(name, (0, 0))
                        found[name] = (count + point.count, total + point.sum)
    return {name: (count, round(total * 1e9)) for name, (count, total) in found.items()}


def device_time(message):
    texts = message.dictionary.string_table
    return sum(sample.values[0] for resource in message.resource_profiles for scope in resource.scope_profiles
               for profile in scope.profiles if texts[profile.sample_type.type_strindex] == "gpu" for sample in profile.samples)


def check(tacho, work, trace):
    metrics, profiles = work / "run.otlp.jsonl", work / "run.profiles.otlp.jsonl"
    profiles.unlink(missing_ok=True)
    subprocess.run([tacho, "export", trace, "-f", "otlp", "-o", metrics, "--overwrite"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    messages = parsed(metrics, MetricsData)
    expected = {name: (count, total) for name, count, total in
                answer(tacho, trace, "SELECT name, count(duration), sum(duration) FROM tacho.dispatch GROUP BY name HAVING count(duration) > 0")}
    faults = [] if kernels_of(messages) == expected else ["calls or times of kernels differ"]
    time = sum(answer(tacho, trace, f"SELECT total(duration) FROM tacho.{table}")[0][0] for table in ("dispatch", "copy", "fill"))
    stacks = device_time(parsed(profiles, ProfilesData)[0]) if profiles.exists() else 0
    if stacks != time:
        faults.append(f"{stacks} ns of devices under stacks, {time:.0f} in the trace")
    print(f"{'; '.join(faults) or 'same'}: {pathlib.Path(trace).name}, {len(messages)} lines of metrics, {len(expected)} kernels, "
          f"{stacks / 1e6:.3f} ms of devices")
    return not faults


def main():
    tacho, work, *traces = sys.argv[1:]
    results = [check(tacho, pathlib.Path(work), trace) for trace in traces]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
