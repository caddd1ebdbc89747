"""Writes the files that the kernel driver shows under /sys for a machine with GPUs of one kind: FOLDER/topology, as under
/sys/class/kfd/kfd, and FOLDER/pci, the devices as under /sys/devices/pci0000:00, for the libraries that read sensors.

    topology.py ARCHITECTURE GPUS FOLDER

ARCHITECTURE is a key of GPUS below. Node 0 is the processor; each further node is a GPU with links to the processor and to
all other GPUs. ROCr wants caches and links of a GPU, and of `capability` doorbells of type 2 and bit 30 clear.
"""
import pathlib
import struct
import sys

# Differences between architectures. simds = compute units * 4. A card in partitions shows each as a GPU (-cpx: one XCD each).
GPUS = {
    "gfx90a": dict(target=90010, device=0x7408, simds=416, arrays=8, cus_per_array=16, lds=64, xccs=1, memory=64 << 30),
    "gfx942": dict(target=90402, device=0x74A1, simds=1216, arrays=32, cus_per_array=10, lds=64, xccs=8, memory=192 << 30),
    "gfx942-cpx": dict(target=90402, device=0x74A1, simds=152, arrays=4, cus_per_array=10, lds=64, xccs=1, memory=24 << 30,
                       partitions=8),
    "gfx950": dict(target=90500, device=0x75A3, simds=1024, arrays=32, cus_per_array=10, lds=160, xccs=8, memory=288 << 30),
}
CAPABILITY = 25728  # watch points, AQL queues, doorbells of type 2, double-mapped queues, SVM
FIRST_RENDER_MINOR = 128


def write(path, facts):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{key} {value}\n" for key, value in facts.items()) if isinstance(facts, dict) else f"{facts}\n"
    path.write_text(text)


def link(source, target, kind):
    return dict(type=kind, version_major=0, version_minor=0, node_from=source, node_to=target, weight=20 if kind == 2 else 15,
                min_latency=0, max_latency=0, min_bandwidth=312, max_bandwidth=64000, recommended_transfer_size=0,
                recommended_sdma_engine_id_mask=0, flags=1)


def node_properties(**changed):
    keys = """cpu_cores_count simd_count mem_banks_count caches_count io_links_count p2p_links_count cpu_core_id_base
        simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size array_count
        simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version vendor_id device_id
        location_id domain drm_render_minor hive_id num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine
        num_cp_queues max_engine_clk_ccompute""".split()
    return {**{key: 0 for key in keys}, "max_engine_clk_ccompute": 3800, **changed}


def processor(folder, gpus):
    write(folder / "gpu_id", 0)
    write(folder / "name", "")
    write(folder / "properties", node_properties(cpu_cores_count=2, mem_banks_count=1, io_links_count=gpus))
    write(folder / "mem_banks/0/properties",
          dict(heap_type=0, size_in_bytes=16 << 30, flags=0, width=64, mem_clk_max=3200))
    for gpu in range(gpus):
        write(folder / f"io_links/{gpu}/properties", link(0, gpu + 1, 2))


def gpu(folder, facts, number, gpus):
    first_simd = 0x80000040 + number * 0x1000
    write(folder / "gpu_id", 1000 + number)
    write(folder / "name", "ip discovery")
    write(folder / "properties", node_properties(
        simd_count=facts["simds"], mem_banks_count=1, caches_count=3, io_links_count=gpus, simd_id_base=first_simd,
        max_waves_per_simd=8, lds_size_in_kb=facts["lds"], num_gws=64, wave_front_size=64, array_count=facts["arrays"],
        simd_arrays_per_engine=1, cu_per_simd_array=facts["cus_per_array"], simd_per_cu=4, max_slots_scratch_cu=32,
        gfx_target_version=facts["target"], vendor_id=0x1002, device_id=facts["device"], location_id=((5 + number // facts.get("partitions", 1)) << 8) + number % facts.get("partitions", 1),
        drm_render_minor=FIRST_RENDER_MINOR + number, hive_id=0, num_sdma_engines=2, num_sdma_xgmi_engines=14,
        num_sdma_queues_per_engine=8, num_cp_queues=24, max_engine_clk_fcompute=2100, local_mem_size=0, fw_version=171,
        capability=CAPABILITY, capability2=0, debug_prop=1511, sdma_fw_version=22, unique_id=1234567890123 + number // facts.get("partitions", 1),
        num_xcc=facts["xccs"]))
    write(folder / "mem_banks/0/properties",
          dict(heap_type=1, size_in_bytes=facts["memory"], flags=0, width=8192, mem_clk_max=1300))
    for cache, (level, size) in enumerate([(1, 32), (2, 4096), (3, 262144)]):
        write(folder / f"caches/{cache}/properties",
              dict(processor_id_low=first_simd, level=level, size=size, cache_line_size=128, cache_lines_per_tag=1,
                   association=16, latency=0, type=9, sibling_map="1,0,0,0"))
    peers = [0] + [other + 1 for other in range(gpus) if other != number]
    for at, peer in enumerate(peers):
        write(folder / f"io_links/{at}/properties", link(number + 1, peer, 2 if peer == 0 else 11))


def gpu_metrics(number):
    """The driver's binary table (struct gpu_metrics_v1_3 of kgd_pp_interface.h), which AMD SMI reads."""
    unknown = 0xFFFF
    return struct.pack("<HBB 6H 3H H QQ 7H 7H I 3H 2x II 4H Q 3H 2x Q", 120, 1, 3,
                       40 + number, 50 + number, 45 + number, unknown, unknown, unknown,  # temperatures
                       30 + number, 20 + number, 10 + number, 100 + number, 1 << 20, 1 << 30,  # activity, power, energy, time
                       1700, 1000, 1300, 0, 0, 0, 0, 1700, 1000, 1300, 0, 0, 0, 0, 0, unknown, 16, 320, 0, 0,
                       45 + number, 45 + number, 45 + number, 45 + number, 0, unknown, unknown, unknown, 0)


def pci_device(folder, facts, number):
    """A GPU's sensors, each with a value that a test recognises: 40 + number degrees, 100 + number W ..."""
    partitions = facts.get("partitions", 1)
    device = folder / f"0000:{5 + number // partitions:02x}:00.{number % partitions}"
    for name, value in {
        "vendor": "0x1002", "device": hex(facts["device"]), "revision": "0x00", "subsystem_vendor": "0x1002",
        "subsystem_device": "0x0c34", "class": "0x120000", "unique_id": hex(1234567890123 + number // partitions)[2:],
        "gpu_busy_percent": 30 + number, "mem_busy_percent": 20 + number, "mem_info_vram_total": facts["memory"],
        "mem_info_vram_used": (3 + number) << 30, "mem_info_gtt_total": 8 << 30, "mem_info_gtt_used": 1 << 20,
        "mem_info_vis_vram_total": facts["memory"], "mem_info_vis_vram_used": (3 + number) << 30,
        "pp_dpm_sclk": "0: 500Mhz\n1: 1700Mhz *\n2: 2100Mhz", "pp_dpm_mclk": "0: 900Mhz\n1: 1300Mhz *",
        "current_compute_partition": "CPX" if partitions > 1 else "SPX", "numa_node": "0",
        "uevent": f"DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:{facts['device']:04X}\nPCI_SLOT_NAME={device.name}",
        "hwmon/hwmon%d/name" % number: "amdgpu",
        "hwmon/hwmon%d/temp1_input" % number: (40 + number) * 1000, "hwmon/hwmon%d/temp1_label" % number: "edge",
        "hwmon/hwmon%d/temp2_input" % number: (50 + number) * 1000, "hwmon/hwmon%d/temp2_label" % number: "junction",
        "hwmon/hwmon%d/temp3_input" % number: (45 + number) * 1000, "hwmon/hwmon%d/temp3_label" % number: "mem",
        "hwmon/hwmon%d/power1_average" % number: (100 + number) * 1_000_000,
        "drm/card%d/dev" % number: f"226:{number}",
        "drm/renderD%d/dev" % (FIRST_RENDER_MINOR + number): f"226:{FIRST_RENDER_MINOR + number}",
    }.items():
        write(device / name, value)
    (device / "gpu_metrics").write_bytes(gpu_metrics(number))
    for node in (f"card{number}", f"renderD{FIRST_RENDER_MINOR + number}"):
        (device / "drm" / node / "device").symlink_to("../..")


def main(architecture, gpus, folder):
    if architecture not in GPUS:
        sys.exit(f"topology.py: no GPU '{architecture}' (there are {', '.join(GPUS)})")
    gpus *= GPUS[architecture].get("partitions", 1)
    if not 1 <= gpus <= 8:
        sys.exit(f"topology.py: {gpus} GPUs; the bed has 1 to 8")
    top = pathlib.Path(folder) / "topology"
    write(top / "generation_id", 2)
    write(top / "system_properties", dict(platform_oem=35498446626881, platform_id=19795890081870145, platform_rev=1))
    processor(top / "nodes/0", gpus)
    for number in range(gpus):
        gpu(top / f"nodes/{number + 1}", GPUS[architecture], number, gpus)
        pci_device(pathlib.Path(folder) / "pci", GPUS[architecture], number)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
