#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules for the repository's text: source.py ROOT.

The rules concern licence lines, neutrality, allowed includes, slot comments, names, and cited documents."""
import functools
import os
import re
import subprocess
import sys
import tempfile

import tap

# Names that neutral folders must not contain, as whole words in upper or lower case. "vendor" and
# device types are allowed.
vendor_names = """amd ampere apple ascend aten aws blackwell cann cublas cuda cudnn cutlass directml gaudi gfx90a gfx942 google
graphcore habana hip hipblas hopper huawei inferentia intel levelzero level_zero lavapipe libtorch mesa metal miopen mkl musa nccl
nvcc nvidia nvrtc onednn dnnl opencl openvino oneapi ptx pytorch qualcomm rocm rocblas samsung sycl tenstorrent tensorrt tpu trainium
vulkan xilinx xpu""".split()
neutral_folders = ("abi/", "core/", "conformance/")
code = (".c", ".h", ".hpp", ".cpp", ".def")
commented = code + (".py", ".sh", ".cmake.in")

# Allowed includes. Each key is a folder, and its value contains the folders whose public headers it
# may use. A folder may always use its own headers.
may_include = {
    "abi": (),
    "abi/test": ("abi", "core", "backends/kit", "conformance"),
    "core": ("abi",),
    "backends/kit": ("abi",),
    "backends/cpu_kernels": ("abi", "backends/kit"),
    "backends/cache": ("abi", "backends/kit"),
    "backends/simt": ("abi", "backends/kit", "backends/cache"),
    "backends/gpu_host": ("abi", "backends/kit", "backends/simt"),
    "backends": ("abi", "backends/kit", "backends/cache", "backends/cpu_kernels", "backends/gpu_host", "backends/simt"),
    "conformance": ("abi", "core"),
    "conformance/mutants": ("abi", "backends/kit"),
    "samples": ("abi", "core", "backends/kit"),
    "tools": ("abi", "core", "conformance"),
    "tools/bench/peers": ("abi",),
    "tools/bench/direct": ("abi", "core", "backends/kit", "backends/simt"),
}
# Each key is a folder, and its value is another folder whose private headers the first folder may include. A mutant is
# the reference plugin with a defect. The peer oneDNN of the benchmarks uses the onednn plugin's wrapper of oneDNN. The
# growth test rebuilds core with one more function. The programs in tools/bench/direct call the driver and the libraries
# that a GPU plugin calls.
made_of = {"conformance/mutants": "backends/reference", "tools/bench/peers": "backends/onednn", "abi/test": "core/src",
           "tools/bench/direct": "backends/cuda"}
public = {"abi": "abi/include", "core": "core/include", "backends/kit": "backends/kit/include",
          "backends/cache": "backends/cache", "backends/cpu_kernels": "backends/cpu_kernels/include",
          "backends/simt": "backends/simt", "backends/gpu_host": "backends", "conformance": "conformance"}
# Patterns of names that this project used in the past, and the standard terms that replace these names.
private_words = [(re.compile(pattern), term) for pattern, term in (
    (r"\bby_" r"four\b", "vec4"), (r"\b[hH]eld_?[rR]ow\w*", "register-resident"), (r"\b[rR]ow_?[dD]eal\w*", "launch shape"),
    (r"\bproduct_(?:way|params|division)\b", "gemm"), (r"\bk?[sS]um_?[oO]f_?[pP]arts\b", "split-K reduction"),
    (r"\benough_" r"groups\b", "occupancy"), (r"\bgoes_" r"along\b", "K-major"), (r"\b(?:enum class|struct|class) Way\b", "algorithm, access, route"))]
# Folders whose sources have the names of operator families. The first item lists values of the column `kind` of
# ops.def. Each operator of these kinds needs a source of its family in the folder. The second item lists the stems of
# the sources that belong to no family.
operator_folders = {
    "core/src/composite": (("COMPOSITE",), "builder builder_temporaries program views".split()),
    "backends/cpu_kernels": (("PRIMITIVE",), []),
    "conformance/oracle": (("PRIMITIVE", "COMPOSITE"), "comparison dot number oracle sum".split()),
    "conformance/cases/numeric": (("PRIMITIVE", "COMPOSITE"), """arena axis_cases cases check composite data_pattern deviations execution
        execution_decomposed execution_run far fill_data large logits long mixed narrow problem test_matrix values view window_problems""".split()),
    "backends/onednn/ops": ((), "gemm operators packed_weights vector_loop".split()),
    "backends/simt/ops": (("PRIMITIVE",), "block gemm gemm_library nest operators tile".split()),
    "backends/vulkan/ops": ((), "gemm gemm_algorithm gemm_params gemm_split_k loop_nest operators reduction".split()),
    "backends/vulkan/shaders": ((), []),
}
generated = {"suite_digest.h"}  # the build generates this file
frozen = re.compile(r"abi/test/frozen/[^/]+/include/")  # copies of the headers of earlier versions
sections = ["Ownership", "Threads", "Stream", "Errors", "Since"]


def files_of(root):
    """Returns all files that git tracks or does not ignore."""
    run = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return sorted(set(name for name in run.stdout.splitlines() if os.path.isfile(os.path.join(root, name)) and not frozen.match(name)))


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def script(text):
    return text.startswith("#!")


def licence_faults(root, files):
    faults = []
    for name in files:
        if name.endswith(commented) or name.startswith(("tools/", ".ci/")) and script(read(root, name)):
            if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(read(root, name).splitlines()[:2]):
                faults.append(f"{name}: the first line (second of a script) is not SPDX-License-Identifier: Apache-2.0")
    return faults


def neutrality_faults(root, files):
    names = re.compile(r"(?<![A-Za-z0-9])(" + "|".join(vendor_names) + r")(?![a-z0-9])", flags=re.I)
    faults = []
    for name in files:
        if name.startswith(neutral_folders):
            for number, line in enumerate(read(root, name).splitlines(), 1):
                faults += [f"{name}:{number}: names '{word}'" for word in names.findall(line)]
    return faults


def owner_of(name):
    """Returns the innermost folder among the keys of may_include that contains the file. Returns None if no key
    does."""
    owners = [folder for folder in may_include if name.startswith(folder + "/")]
    return max(owners, key=len) if owners else None


def backend_of(name):
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] == "backends" and len(parts) > 2 else None


def include_faults(root, files):
    """Checks each include that is quoted or has the form <backplane/...>. The header must be next to the file, in the
    file's component, or in an allowed folder."""
    headers = set(files)
    faults = []

    @functools.cache
    def offered_by(folder):
        """Returns the texts with which an include may name a file of the folder: its path below the folder, and every
        end of this path that follows a slash."""
        parts = [name.split("/") for name in files if name.startswith(folder + "/")]
        return {"/".join(path[i:]) for path in parts for i in range(1, len(path))}

    for name in files:
        owner = owner_of(name)
        if not owner or not name.endswith(code):
            continue
        for quote, header in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', read(root, name), flags=re.M):
            holders = [folder for folder, path in public.items() if f"{path}/{header}" in headers]
            if holders:
                # Plugins in tests may use the kit.
                allowed = may_include[owner] + (("backends/kit",) if "/test/" in name else ())
                if holders[0] != owner and holders[0] not in allowed:
                    faults.append(f"{name}: includes {header} of {holders[0]}; {owner} may use {may_include[owner] or 'nothing'}")
                continue
            if header.startswith("backplane/"):
                faults.append(f"{name}: includes {header}, which no folder offers")
                continue
            if quote == "<" or header in generated:
                continue
            own = backend_of(name) or owner
            relative = os.path.normpath(os.path.join(os.path.dirname(name), header))
            if relative.split("/")[0] == ".." or relative in headers and not relative.startswith(own + "/"):
                faults.append(f"{name}: reaches into {relative}")
            elif relative not in headers and not any(header in offered_by(folder) for folder in (own, made_of.get(owner, own))):
                faults.append(f"{name}: includes {header}, which is not of {own}")
    return faults


def slot_faults(root, files):
    """Checks that every slot and the exported function have a comment. The comment must contain each section once, in
    order."""
    faults, slots = [], 0
    for name in files:
        if not name.startswith("abi/include/") or not name.endswith(".h"):
            continue
        text = read(root, name)
        slot = re.compile(r"(?P<comment>/\*(?:(?!\*/).)*\*/)?\s*(?:#define BP_PLUGIN_QUERY_SYMBOL[^\n]*\n)?"
                          r"(?P<declaration>^  [\w \*]+\(\*(?P<slot>\w+)\)\([^;]*\);|^BP_EXPORT bp_status (?P<export>\w+)\([^;]*\);)",
                          flags=re.S | re.M)
        for match in slot.finditer(text):
            slots += 1
            found = re.findall(r"^ \s*\* (\w+):", match["comment"] or "", flags=re.M)
            if found != sections:
                faults.append(f"{name}: {match['slot'] or match['export']}: the comment has {found}, the rule is {sections}")
    return faults if slots > 20 else faults + [f"only {slots} slots were found in abi/include"]


def definition_faults(root, files):
    """Finds different types with the same name in one namespace. The linker would merge functions of such types."""
    faults, seen = [], {}
    for name in files:
        if not name.endswith(".hpp") or "/test/" in name:
            continue
        text = read(root, name)
        space = re.search(r"^namespace ([\w:]+) \{", text, flags=re.M)
        for match in re.finditer(r"^(?:struct|class|enum class|union) (\w+)\b(?!::)[^;{]*\{", text, flags=re.M):
            key = (space and space[1], match[1])
            if seen.setdefault(key, name) != name:
                faults.append(f"{name}: {match[1]} is defined in {seen[key]}, too: name it otherwise")
    return faults


def family_faults(root, files):
    """Checks the names of the sources in operator_folders. An operator's source must be FAMILY.cpp or FAMILY_PART.cpp,
    where FAMILY is the operator's family in ops.def. Shaders have the extension .comp."""
    rows = re.findall(r"^BP_OP_ROW\(\d+, \w+, \"(\w+)\", (\w+),.*, (\w+), \"", read(root, "abi/include/backplane/ops.def"), flags=re.M)
    families = {family for _, _, family in rows}
    faults = []

    def family_of(stem):
        """Returns the longest family that equals the stem or is the stem's first part."""
        return max((each for each in families if stem == each or stem.startswith(each + "_")), key=len, default=None)

    for folder, (kinds, helpers) in operator_folders.items():
        stems = {os.path.splitext(name[len(folder) + 1:])[0]: name for name in files
                 if name.startswith(folder + "/") and "/" not in name[len(folder) + 1:] and name.endswith((".cpp", ".comp"))}
        held = {family_of(stem) for stem in stems}
        faults += [f"{name}: its stem is no family of ops.def; name it FAMILY.cpp or FAMILY_PART.cpp, or list it as a helper in source.py"
                   for stem, name in stems.items() if not family_of(stem) and stem not in helpers]
        faults += [f"tools/checks/source.py: {folder}/{stem} is listed as a helper and is not there" for stem in helpers if stem not in stems]
        for name, kind, family in rows:
            if kind in kinds and family not in held:
                faults.append(f"{folder}: no {family}.cpp or {family}_PART.cpp for {name}")
    return faults


def private_word_faults(root, files):
    """Checks that code contains none of the names in private_words (docs/dev/writing.md, docs/glossary.md)."""
    faults = []
    for name in files:
        if not name.endswith(code + (".comp", ".glsl")):
            continue
        text = read(root, name)
        for pattern, term in private_words:
            if pattern.search(text):
                for number, line in enumerate(text.splitlines(), 1):
                    faults += [f"{name}:{number}: {found[0]}: the field's term is {term}" for found in pattern.finditer(line)]
    return faults


def cited_in(name, text):
    """Returns the documents that a page links to or that comments name."""
    if name.endswith(".md"):
        return re.findall(r"\]\(([^)#:]+\.md)[)#]", text)
    comments = r"//[^\n]*|/\*.*?\*/" if name.endswith(code + (".glsl", ".comp")) else r'#[^\n]*|^\s*""".*?"""'
    found = "\n".join(re.findall(comments, text, flags=re.S | re.M))
    return re.findall(r"(?<![\w./*-])([\w./-]+\.md)\b(?!\w)", found)


def document_faults(root, files):
    """Checks that cited documents exist. A comment may cite a document by the path from the root, or from the folder of
    the comment's file. For pages of docs, the file name suffices."""
    known = set(files)
    bare = {os.path.basename(name) for name in files if name.startswith("docs/")}
    faults, citations = [], 0
    for name in files:
        if not name.endswith(commented + (".md", ".glsl", ".comp", ".build")):
            continue
        page = name.endswith(".md")
        for cited in cited_in(name, read(root, name)):
            citations += 1
            candidates = {os.path.normpath(os.path.join(os.path.dirname(name), cited))} | (set() if page else {os.path.normpath(cited.lstrip("/"))})
            if not candidates & known and (page or cited not in bare):
                faults.append(f"{name}: cites {cited}, which is not there")
    return sorted(set(faults)) if citations > 50 else faults + [f"only {citations} citations were found"]


checks = {
    "every source begins with its licence": licence_faults,
    "no vendor is named in abi, core, conformance": neutrality_faults,
    "includes keep to the layers": include_faults,
    "a type's name is its own": definition_faults,
    "an operator's sources have the name of its family": family_faults,
    "names use the field's terms": private_word_faults,
    "every document that is cited exists": document_faults,
    "every slot states ownership, threads, stream, errors, since": slot_faults,
}

# Tests of the checks. Each entry has the check, a file, and the file's text. The check must report
# the planted error.
slot_text = "struct bp_planted_api {\n  /* Does a thing.\n   * Ownership: none.\n   * Threads:   any.\n   * Errors:    none.\n" \
            "   * Stream:    synchronous.\n   * Since:     0.1. */\n  void (*planted)(void);\n};\n"
plants = [
    (licence_faults, "core/src/planted.cpp", "int planted;\n"),
    (neutrality_faults, "core/src/planted.cpp", "// falls back to " + "CU" + "DA\n"),
    (neutrality_faults, "abi/planted.h", "/* as nv" + "idia_planted does */\n"),
    (include_faults, "core/src/planted.cpp", "#include <backplane/kit/planted.hpp>\n"),
    (include_faults, "backends/planted/planted.cpp", "#include <backplane/backplane.h>\n"),
    (include_faults, "tools/planted.cpp", '#include "../core/src/base/error.hpp"\n'),
    (definition_faults, "core/src/planted.hpp", "namespace backplane::core {\nclass PlanCache final {\n};\n}\n"),
    (family_faults, "backends/cpu_kernels/planted.cpp", "int planted;\n"),
    (family_faults, "conformance/oracle/planted_rope.cpp", "int planted;\n"),
    (private_word_faults, "backends/planted/ops/planted.cpp", "int " + "product" + "_way;\n"),
    (document_faults, "core/src/planted.cpp", "/* docs/spec/planted" + ".md */\n"),
    (document_faults, "backends/planted/planted.cpp", "// see planted" + ".md\n"),
    (document_faults, "docs/planted.md", "[planted](planted_too" + ".md#exp)\n"),
    (slot_faults, "abi/include/backplane/planted.h", slot_text),
]


def main(root):
    files = files_of(root)
    for name, faults_of in checks.items():
        faults = faults_of(root, files)
        tap.check(name, not faults, "\n".join(faults))
    with tempfile.TemporaryDirectory() as folder:
        for link in files:
            os.makedirs(os.path.join(folder, os.path.dirname(link)), exist_ok=True)
            os.symlink(os.path.join(os.path.abspath(root), link), os.path.join(folder, link))
        for faults_of, name, text in plants:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            planted = [fault for fault in faults_of(folder, files + [name]) if "planted" in fault]
            tap.check(f"caught: {faults_of.__name__} in {name}", planted, "a planted fault went unseen")
            os.remove(path)
    tap.done()


main(*sys.argv[1:])
