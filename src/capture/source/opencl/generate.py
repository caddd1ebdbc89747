#!/usr/bin/env python3
"""Writes functions.inc (beside this file) and src/event/functions/functions_opencl.h from the installed Khronos headers.

Run by hand when the headers grow: `python3 src/capture/source/opencl/generate.py`. The number of a function is its slot
in the ICD dispatch table plus one; the table is an ABI that is only ever appended to, so numbers stay. Extension
functions are numbered from 1000 in the order of the list below: append only.
"""
import os
import re
import subprocess
import sys

HEADER = os.environ.get("TACHO_CL_ICD_HEADER", "CL/cl_icd.h")

EXTENSIONS = [
    # cl_khr_command_buffer
    "clCreateCommandBufferKHR", "clFinalizeCommandBufferKHR", "clRetainCommandBufferKHR", "clReleaseCommandBufferKHR",
    "clEnqueueCommandBufferKHR", "clCommandBarrierWithWaitListKHR", "clCommandCopyBufferKHR",
    "clCommandCopyBufferRectKHR", "clCommandCopyBufferToImageKHR", "clCommandCopyImageKHR",
    "clCommandCopyImageToBufferKHR", "clCommandFillBufferKHR", "clCommandFillImageKHR", "clCommandNDRangeKernelKHR",
    "clGetCommandBufferInfoKHR",
    # cl_intel_unified_shared_memory
    "clHostMemAllocINTEL", "clDeviceMemAllocINTEL", "clSharedMemAllocINTEL", "clMemFreeINTEL",
    "clMemBlockingFreeINTEL", "clGetMemAllocInfoINTEL", "clSetKernelArgMemPointerINTEL", "clEnqueueMemsetINTEL",
    "clEnqueueMemFillINTEL", "clEnqueueMemcpyINTEL", "clEnqueueMigrateMemINTEL", "clEnqueueMemAdviseINTEL",
    # cl_khr_create_command_queue
    "clCreateCommandQueueWithPropertiesKHR",
]


def arguments(text):
    """The number of parameters in a parameter list."""
    depth, count = 0, 1
    for c in text:
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            count += 1
    return 0 if text.strip() in ("", "void") else count


def split(text):
    """The parameters of a parameter list."""
    depth, out = 0, [""]
    for c in text:
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(c, 0)
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [] if text.strip() in ("", "void") else [" ".join(parameter.split()) for parameter in out]


# How a parameter is shown (src/decode/records/arguments.cpp): p pointers and objects, b cl_bool, i signed, u unsigned, x bits
# and codes; flags whose names are known have letters of their own.
KINDS = {"cl_bool": "b", "cl_int": "i", "cl_uint": "u", "size_t": "u", "cl_mem_flags": "f", "cl_svm_mem_flags": "f",
         "cl_map_flags": "m", "cl_mem_migration_flags": "g", "cl_command_queue_properties": "q"}
OBJECTS = {"cl_platform_id", "cl_device_id", "cl_context", "cl_command_queue", "cl_mem", "cl_program", "cl_kernel", "cl_event",
           "cl_sampler", "cl_command_buffer_khr", "cl_mutable_command_khr"}


def parameter(text):
    """name:kind of one parameter."""
    function = re.search(r"\(\s*(?:CL_CALLBACK)?\s*\*\s*(\w+)\s*\)\s*\(", text)
    if function:
        return f"{function.group(1)}:p"
    array = re.fullmatch(r"(.*?)(\w+)\s*\[.*\]", text)
    name = (array.group(2) if array else re.search(r"(\w+)$", text).group(1))
    kind = text[:len(text) - len(name)].replace("const", " ").split()
    if array or "*" in text or kind[-1] in OBJECTS:
        return f"{name}:p"
    return f"{name}:{KINDS.get(kind[-1], 'x')}"


def matching(text, at):
    """The position after the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced parentheses")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    source = f"#define CL_TARGET_OPENCL_VERSION 300\n#include <{HEADER}>\n"
    text = subprocess.run(["gcc", "-E", "-P", "-xc", "-"], input=source, text=True, check=True, capture_output=True).stdout
    arity = {}
    for found in re.finditer(r"\(\s*\*\s*(cl_api_\w+)\s*\)\s*\(", text):
        open_at = found.end() - 1
        arity[found.group(1)] = arguments(text[open_at + 1:matching(text, open_at) - 1])
    # Names of parameters from the API's own headers: those of the dispatch table abbreviate some.
    api = "#define CL_TARGET_OPENCL_VERSION 300\n#define CL_USE_DEPRECATED_OPENCL_1_0_APIS\n" + "".join(
        f"#define CL_USE_DEPRECATED_OPENCL_{v}_APIS\n" for v in ("1_1", "1_2", "2_0", "2_1", "2_2")) + \
        "#include <CL/cl.h>\n#include <CL/cl_ext.h>\n#include <CL/cl_gl.h>\n#include <CL/cl_egl.h>\n"
    declared = subprocess.run(["gcc", "-E", "-P", "-xc", "-"], input=api, text=True, check=True, capture_output=True).stdout
    parameters = {}
    for found in re.finditer(r"\b(cl[A-Z]\w+)\s*\(", declared):
        end = matching(declared, found.end() - 1)
        if declared[end:].lstrip()[:1] in (";", "_"):
            parameters[found.group(1)] = " ".join(parameter(one) for one in split(declared[found.end():end - 1]))
    for found in re.finditer(r"\(\s*\*\s*(cl\w+)_fn\s*\)\s*\(", declared):
        end = matching(declared, found.end() - 1)
        parameters.setdefault(found.group(1), " ".join(parameter(one) for one in split(declared[found.end():end - 1])))
    table = re.search(r"typedef struct _cl_icd_dispatch\s*\{(.*?)\}\s*cl_icd_dispatch;", text, re.S).group(1)
    slots = re.findall(r"(cl_api_\w+)\s+(cl\w+);", table)
    if len(slots) < 149:
        sys.exit(f"{HEADER} has {len(slots)} functions in its dispatch table; 149 were expected")

    with open(os.path.join(here, "functions.inc"), "w") as out:
        out.write("// Generated by generate.py from the Khronos headers: do not edit.\n"
                  "// TACHO_CL_FUNCTION(number, name, parameters); TACHO_CL_OPAQUE(number, name) where these headers have no\n"
                  "// signature (functions of another operating system).\n")
        for number, (kind, name) in enumerate(slots, 1):
            if kind in arity:
                out.write(f"TACHO_CL_FUNCTION({number}, {name}, {arity[kind]})\n")
            else:
                out.write(f"TACHO_CL_OPAQUE({number}, {name})\n")

    header = os.path.join(here, "..", "..", "..", "event", "functions", "functions_opencl.h")
    with open(header, "w") as out:
        out.write("// Generated by src/capture/source/opencl/generate.py: do not edit. The numbers of OpenCL's functions in ApiRecord for\n"
                  "// Domain::kOpenCL: the slot in the ICD dispatch table plus one; extension functions from 1000.\n"
                  "#pragma once\n\n#include <cstdint>\n#include <string_view>\n\n"
                  "namespace tacho::event::opencl {\n\n"
                  "enum class Function : uint16_t {\n  kNone = 0,\n")
        for number, (_, name) in enumerate(slots, 1):
            out.write(f"  {name} = {number},\n")
        for number, name in enumerate(EXTENSIONS, 1000):
            out.write(f"  {name} = {number},\n")
        out.write("};\n\n"
                  f"inline constexpr uint16_t kCoreFunctions = {len(slots)};  // numbers 1 .. this\n"
                  "inline constexpr uint16_t kFirstExtension = 1000;\n"
                  "inline constexpr std::string_view kCoreNames[] = {\n    \"\",\n")
        for _, name in slots:
            out.write(f"    \"{name}\",\n")
        out.write("};\ninline constexpr std::string_view kExtensionNames[] = {\n")
        for name in EXTENSIONS:
            out.write(f"    \"{name}\",\n")
        for title, numbered in (("kCoreParameters", [""] + [name for _, name in slots]), ("kExtensionParameters", EXTENSIONS)):
            out.write(f"}};\n/// name:kind of every parameter, by function; the kinds are generate.py's.\n"
                      f"inline constexpr std::string_view {title}[] = {{\n")
            for name in numbered:
                out.write(f"    \"{parameters.get(name, '')}\",\n")
        out.write("};\n\n"
                  "/// The function's name; empty for a number that stands for none.\n"
                  "constexpr std::string_view function_name(uint16_t number) {\n"
                  "  if (number < sizeof kCoreNames / sizeof *kCoreNames) return kCoreNames[number];\n"
                  "  if (number >= kFirstExtension &&\n"
                  "      number - kFirstExtension < static_cast<int>(sizeof kExtensionNames / sizeof *kExtensionNames))\n"
                  "    return kExtensionNames[number - kFirstExtension];\n"
                  "  return {};\n"
                  "}\n\n"
                  "/// Its parameters as above; empty where the headers do not name them.\n"
                  "constexpr std::string_view function_parameters(uint16_t number) {\n"
                  "  if (number < sizeof kCoreParameters / sizeof *kCoreParameters) return kCoreParameters[number];\n"
                  "  if (number >= kFirstExtension && number - kFirstExtension <\n"
                  "                                       static_cast<int>(sizeof kExtensionParameters / sizeof *kExtensionParameters))\n"
                  "    return kExtensionParameters[number - kFirstExtension];\n"
                  "  return {};\n"
                  "}\n\n"
                  "/// False for functions that tell no result code: their ApiRecord's result means nothing.\n"
                  "constexpr bool has_result(uint16_t number) {\n"
                  "  switch (static_cast<Function>(number)) {\n"
                  "    case Function::clGetExtensionFunctionAddress:\n"
                  "    case Function::clGetExtensionFunctionAddressForPlatform:\n"
                  "    case Function::clSVMAlloc:\n"
                  "    case Function::clSVMFree: return false;\n"
                  "    default: return !function_name(number).empty();\n"
                  "  }\n"
                  "}\n\n"
                  "}  // namespace tacho::event::opencl\n")


if __name__ == "__main__":
    main()
