#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command from outside: command_test.py COMMAND SCHEMAS REFERENCE_FOLDER NULL_LIBRARY ABI.

Runs every subcommand with the reference plugin, without plugins, and with five broken plugins. Checks --json against
the published schemas. An error message must name the missing file or plugin. Each run has its own environment, so that
no installed plugin is found."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    sys.exit("command_test.py: this Python has no jsonschema; install python3-jsonschema")

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "checks"))
import tap

command, schemas, reference, null_library, abi = sys.argv[1:]
work = tempfile.mkdtemp(prefix="backplane-command-")
architecture = json.load(open(os.path.join(reference, "reference.json"), encoding="utf-8"))["architectures"][0]


def strict(schema):
    """Returns a schema that forbids additional properties, so that the test detects fields that the schema lacks."""
    if isinstance(schema, dict):
        schema = {key: strict(value) for key, value in schema.items()}
        if "properties" in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [strict(item) for item in schema]
    return schema


validators = {}
for file in sorted(os.listdir(schemas)):
    if file.endswith(".schema.json"):
        schema = json.load(open(os.path.join(schemas, file), encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validators["backplane." + file[: -len(".schema.json")]] = jsonschema.Draft202012Validator(strict(schema))


def run(*arguments, path="", **variables):
    """Runs the command with `path` as the only search path, and returns the finished process."""
    environment = {"PATH": os.environ["PATH"], "HOME": work, "XDG_DATA_HOME": work + "/none", "XDG_DATA_DIRS": work + "/none",
                   "XDG_CONFIG_HOME": work + "/none", "BACKPLANE_PLUGIN_PATH": path, **variables}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return subprocess.run([command, *arguments], env=environment, text=True, capture_output=True, timeout=60, check=False)


def shown(process):
    return f"{' '.join(process.args)}\nexit status {process.returncode}\n{process.stdout[-2000:]}\n{process.stderr[-2000:]}"


def document(name, schema, *arguments, status=0, **where):
    """Checks one run with --json: exit status, empty stderr, and the schema. Returns the
    document, or {} if the run failed."""
    process = run(*arguments, "--json", **where)
    try:
        value = json.loads(process.stdout)
        fault = jsonschema.exceptions.best_match(validators["backplane." + schema].iter_errors(value))
        fault = f"{list(fault.absolute_path)}: {fault.message}" if fault else ""
    except (ValueError, KeyError) as failure:
        value, fault = {}, str(failure)
    good = process.returncode == status and not fault and value.get("schema") == "backplane." + schema
    return value if tap.check(name, good, f"{fault}\n{shown(process)}") else {}


def refused(name, words, status, *arguments, **where):
    """Checks that a run fails with this exit status, an empty stdout, and one line with `words`
    on stderr. Checks the same with --json."""
    process = run(*arguments, **where)
    lines = process.stderr.splitlines()
    good = process.returncode == status and process.stdout == "" and len(lines) == 1 and lines[0].startswith("backplane: ")
    tap.check(name, good and all(word in lines[0] for word in words), f"wanted {words}\n{shown(process)}")
    document(name + ", as JSON", "error", *arguments, status=status, **where)


def says(name, words, *arguments, status=0, **where):
    process = run(*arguments, **where)
    text = process.stdout
    missing = [word for word in words if word not in text]
    tap.check(name, process.returncode == status and not missing and process.stderr == "", f"missing {missing}\n{shown(process)}")
    return text


def manifest(folder, name, library, **changes):
    os.makedirs(folder, mode=0o755, exist_ok=True)
    keys = {"manifest_version": 1, "name": name, "library": library, "abi": {"min": abi, "max": abi}, "architectures": [architecture]}
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
        json.dump({**keys, **changes}, file)


def bad_plugins(folder):
    """Writes five candidates, each broken in its own way."""
    manifest(folder, "missing_library", "libnot_there.so")
    manifest(folder, "wrong_abi", "libwrong_abi.so", abi={"min": "9.0", "max": "9.9"})
    manifest(folder, "wrong_types", "libx.so", architectures=7)
    manifest(folder, "truncated", "libtruncated.so")
    with open(os.path.join(folder, "libtruncated.so"), "wb") as file:
        file.write(open(null_library, "rb").read()[:200])
    with open(os.path.join(folder, "not_json.json"), "w", encoding="utf-8") as file:
        file.write('{"name": "\x1b[31mred')
    return folder


def general():
    says("--help shows examples", ["Examples:", "backplane list", "doctor", "bench"], "--help")
    for subcommand in (["list"], ["info"], ["doctor"], ["run"], ["new"], ["bench", "dispatch"], ["bench", "ops"], ["bench", "model"], ["bench", "memory"], ["bench", "compare"]):
        says(f"{' '.join(subcommand)} --help", ["Usage:", subcommand[-1]], *subcommand, "--help")
    says("--version", ["backplane ", "plugin ABI " + abi], "--version")
    document("--version as JSON", "version", "--version")
    refused("no subcommand", ["subcommand is missing", "list"], 2)
    refused("unknown subcommand", ["lst"], 2, "lst")
    refused("unknown option", ["--nonsense"], 2, "list", "--nonsense")
    refused("info without a device", ["DEVICE"], 2, "info")
    refused("info of a device and of the table", ["--operators", "DEVICE"], 2, "info", "reference:0", "--operators")
    refused("bench without what", ["subcommand"], 2, "bench")


def table():
    """Checks the operator table and the bounds, which need no plugin."""
    says("info --operators", ["OPERATOR", "matmul", "norm_bwd", "U(4)"], "info", "--operators")
    rows = {row["name"]: row for row in document("info --operators --json", "operators", "info", "--operators").get("operators", [])}
    kinds = [row["kind"] for row in rows.values()]
    tap.check("the table has every operator", kinds.count("primitive") == 43 and kinds.count("composite") == 38, kinds)
    fields = {field["name"]: field for field in rows.get("cross_entropy", {}).get("attributes", {}).get("fields", [])}
    ends = {name: (field["least"], field["greatest"]) for name, field in fields.items()}
    tap.check("the table has attributes with their ranges", ends == {"reduction": (0, 2), "ignore_index": (-2**63, 2**63 - 1),
              "label_smoothing": (0, 1)}, ends)
    tap.check("the table has the patterns of a composite", rows.get("linear", {}).get("signature") ==
              {"inputs": ["t*K", "hNK", "pN"], "outputs": ["t*N"]}, rows.get("linear"))
    says("certify --bound", ["exp, class U(4)", "f32, f64", "≤ 4 ulp", "f16, bf16", "accuracy.md"], "certify", "--bound", "exp")
    text = says("certify --bound of a dtype", ["≤ 1 ulp"], "certify", "--bound", "exp", "f16")
    tap.check("certify --bound of a dtype has that alone", "4 ulp" not in text, text)
    bounds = {name: document(f"certify --bound {name}", "bound", "certify", "--bound", name).get("bounds") for name in ("erf", "layer_norm")}
    tap.check("a bound may have parts", [line["part"] for line in bounds["layer_norm"] or []] == ["", "mean, rstd"], bounds)
    silent = [name for name in rows if len(run("certify", "--bound", name, rows[name]["dtypes"][-1]).stdout.splitlines()) < 3]
    tap.check("every operator has a bound", rows and not silent, silent)
    refused("certify --bound of no operator", ["'planted'", "info --operators"], 2, "certify", "--bound", "planted")
    refused("certify --bound of a dtype that it lacks", ["'i32'", "f16, bf16, f32, f64"], 2, "certify", "--bound", "exp", "i32")


def without_plugin():
    text = says("list without a plugin is one line with the next command", ["backplane doctor"], "list")
    tap.check("list without a plugin: one line", len(text.splitlines()) == 1, text)
    value = document("list --json without a plugin", "list", "list")
    tap.check("list --json without a plugin says what next", value.get("plugins") == [] and "doctor" in value.get("next", ""), value)
    says("doctor without a plugin", ["0 usable", "0 broken"], "doctor")
    document("doctor --json without a plugin", "doctor", "doctor")
    refused("info of a device that is not there", ["reference:0", "available devices: none"], 1, "info", "reference:0")
    refused("run without a plugin", ["no plugin"], 1, "run", "add")
    refused("list of a name that is not there", ["'nothing'", "none"], 1, "list", "nothing")


def traced():
    """Checks that the file of the layer `trace` matches the schema, and that the command reports the layer's errors."""
    file = os.path.join(work, "trace.json")
    where = {"path": reference, "BACKPLANE_LAYERS": "trace"}
    process = run("run", "matmul", "--repeat", "3", "--device", "reference:0", BACKPLANE_TRACE=file, **where)
    try:
        value = json.load(open(file, encoding="utf-8"))
        fault = jsonschema.exceptions.best_match(validators["backplane.trace"].iter_errors(value))
    except (OSError, ValueError) as failure:
        value, fault = {"traceEvents": []}, failure
    tap.check("a trace is what its schema says", process.returncode == 0 and fault is None, f"{fault}\n{shown(process)}")
    plans = [event["args"]["plan"] for event in value["traceEvents"] if event["ph"] == "X" and event["name"] == "matmul"]
    tap.check("a trace has every execution, the first with a new plan", plans == ["miss", "hit", "hit", "hit"], plans)
    refused("a trace without a file", ["BACKPLANE_TRACE"], 1, "run", "matmul", **where)
    refused("a trace that cannot be written", ["/nowhere/trace.json", "cannot be written"], 1, "run", "matmul",
            BACKPLANE_TRACE="/nowhere/trace.json", **where)


def with_reference():
    where = {"path": reference}
    says("list", ["reference:0", "cpu", "reference.json", "search_path"], "list", **where)
    says("list --all", ["reference:0", "usable", "CANDIDATE"], "list", "--all", **where)
    value = document("list --json", "list", "list", **where)
    tap.check("list --json has the device", [d["name"] for p in value.get("plugins", []) for d in p["devices"]] == ["reference:0"], value)
    says("list NAME", ["reference:0"], "list", "reference", **where)
    says("list DEVICE", ["reference:0"], "list", "reference:0", **where)
    refused("list of a name that is not there names what is", ["'nothing'", "reference"], 1, "list", "nothing", **where)
    says("--plugin-path", ["reference:0"], "list", "--plugin-path", reference)
    says("info", ["reference:0", "alignment", "unary", "binary", "matmul"], "info", "reference:0", **where)
    says("info --all", ["reduce_sum", "philox", "softmax", "bf16"], "info", "reference", "--all", **where)
    value = document("info --json", "info", "info", "reference:0", **where)
    operators = {row["name"]: row for row in value.get("operators", [])}
    tap.check("info --json has every operator", len(operators) == 43 + 38, sorted(operators))
    tap.check("info: add f32 is there", operators.get("add", {}).get("dtypes", {}).get("f32", {}).get("status") == "OK", operators.get("add"))
    refused("info of an index that is not there", ["reference:7", "reference:0"], 1, "info", "reference:7", **where)
    says("doctor", ["✓", "reference", "1 usable", "0 broken", "BACKPLANE_PLUGIN_PATH"], "doctor", **where)
    value = document("doctor --json", "doctor", "doctor", **where)
    tap.check("doctor names the directories that were searched, and nothing else",
              value.get("places", "").startswith(reference) and "no_such_plugin" not in json.dumps(value), value.get("places"))
    tap.check("doctor --json: usable", value.get("usable") == 1 and value["candidates"][0]["devices"] == ["reference:0"], value)


def operators_run():
    where = {"path": reference}
    names = [row["name"] for row in document("info for the names", "info", "info", "reference:0", **where).get("operators", [])
             if row["kind"] == "primitive"]
    tap.check("43 primitives", len(names) == 43, names)
    for name in names:
        document(f"run {name} with defaults", "run", "run", name, "--repeat", "1", "--device", "reference:0", **where)

    def result(name, expected, *arguments):
        value = document(f"run: {name}", "run", "run", *arguments, "--repeat", "2", **where)
        outputs = [output["values"] for output in value.get("outputs", [])]
        tap.check(f"run: {name}: values", outputs == expected, f"{outputs} instead of {expected}")

    result("add of given data", [[11, 22, 33]], "add", "--shape", "3", "--data", "1,2,3", "--data", "10,20,30")
    result("negative data", [[1, -2]], "neg", "--shape", "2", "--data", "-1,2")
    result("matmul of vectors", [[11]], "matmul", "--shape", "1x2", "--shape", "2x1", "--data", "1,2", "--data", "3,4")
    result("fill with a scalar", [[3.5, 3.5]], "fill", "--shape", "2", "--scalar", "3.5")
    result("integer dtype", [[-7, 3]], "copy", "--dtype", "i32", "--shape", "2", "--data", "-7,3")
    result("strides", [[1, 3, 2, 4]], "copy", "--shape", "2x2", "--strides", "1,2", "--data", "1,3,2,4")
    result("a negative stride", [[1, 2, 3]], "copy", "--shape", "3", "--strides", "-1", "--data", "1,2,3")
    result("rank 0", [[6]], "mul", "--shape", "scalar", "--data", "2", "--data", "3")
    result("no elements", [[]], "add", "--shape", "0x3")
    result("reduction along an axis", [[3, 7]], "reduce_sum", "--shape", "2x2", "--data", "1,2,3,4", "--attr", "axes=2")
    result("cast to another dtype", [[1, 2]], "cast", "--shape", "2", "--data", "1.5,2.5", "--out-dtype", "i32")
    result("compare", [[True, False]], "compare", "--shape", "2", "--data", "1,2", "--data", "2,1", "--attr", "predicate=2")
    result("infinities and NaN", [["inf", "-inf", "nan"]], "neg", "--shape", "3", "--data", "-inf,inf,nan")
    result("sort gives values and indices", [[1, 2, 3], [1, 2, 0]], "sort", "--shape", "3", "--data", "3,1,2")
    one = document("run: a seed", "run", "run", "exp", "--seed", "7", **where)
    two = document("run: the seed again", "run", "run", "exp", "--seed", "7", **where)
    tap.check("the same seed gives the same data", one.get("inputs") and one["inputs"] == two.get("inputs"), f"{one}\n{two}")
    says("run for people", ["input 0: f32 64x32", "output 0: f32 64x16", "median", "GB/s", "any size"], "run", "matmul",
         "--shape", "64x32", "--shape", "32x16", "--attr", "precision=0", "--seed", "1", "--device", "reference:0", **where)


def run_refuses():
    where = {"path": reference}
    refused("unknown operator", ["ad"], 2, "run", "ad", **where)
    refused("unknown attribute", ["'axs'", "axes"], 2, "run", "reduce_sum", "--attr", "axs=1", **where)
    refused("attribute out of range", ["'9'", "0..7"], 2, "run", "argmax", "--attr", "axis=9", **where)
    refused("attribute of an operator without", ["has none"], 2, "run", "add", "--attr", "x=1", **where)
    refused("unknown dtype", ["'f31'", "f32"], 2, "run", "add", "--dtype", "f31", **where)
    refused("dtype that the operator does not take", ["sqrt", "i32", "f32"], 2, "run", "sqrt", "--dtype", "i32", **where)
    refused("malformed shape", ["'2xx3'"], 2, "run", "add", "--shape", "2xx3", **where)
    refused("rank 9", ["rank 9", "8"], 2, "run", "add", "--shape", "1x1x1x1x1x1x1x1x1", **where)
    refused("too many elements", ["4294967296"], 2, "run", "add", "--shape", "4294967297", **where)
    refused("wrong number of values", ["3 elements", "2"], 2, "run", "neg", "--shape", "3", "--data", "1,2", **where)
    refused("no number", ["'x'", "f32"], 2, "run", "neg", "--shape", "1", "--data", "x", **where)
    refused("too many inputs", ["1 input"], 2, "run", "neg", "--data", "1", "--data", "2", **where)
    refused("too many scalars", ["scalar"], 2, "run", "add", "--scalar", "2", **where)
    refused("shapes that differ", ["add"], 1, "run", "add", "--shape", "2", "--shape", "3", **where)
    refused("overlapping output", ["copy"], 1, "run", "copy", "--shape", "2", "--strides", "1", "--strides", "0", **where)
    refused("unknown device", ["nothing", "reference"], 1, "run", "add", "--device", "nothing:0", **where)


def with_bad_plugins():
    bad = bad_plugins(work + "/bad")
    only = {"path": bad}
    text = says("list with bad plugins alone", ["5 candidate(s) are broken", "backplane doctor"], "list", **only)
    tap.check("list with bad plugins alone: one line", len(text.splitlines()) == 1, text)
    both = {"path": f"{bad}:{reference}"}
    text = says("list with five bad plugins", ["reference:0", "5 broken", "backplane doctor"], "list", **both)
    tap.check("the short list shows none of them", "wrong_abi" not in text, text)
    text = says("list --all shows them with their reason", ["reference:0", "missing_library", "wrong_abi", "truncated"], "list", "--all", **both)
    tap.check("nothing drives the terminal", "\x1b" not in text, text)
    value = document("list --json with bad plugins", "list", "list", **both)
    tap.check("list --json counts them", value.get("broken") == 5 and len(value["plugins"]) == 1, value)
    refused("list of a broken plugin says so", ["wrong_abi", "doctor"], 1, "list", "wrong_abi", **both)
    text = says("doctor names each rule and side", ["✗", "to change", "rule", "missing_library", "wrong_abi", "truncated", "5 broken"],
                "doctor", status=1, **both)
    tap.check("doctor: nothing drives the terminal", "\x1b" not in text, text)
    value = document("doctor --json with bad plugins", "doctor", "doctor", status=1, **both)
    broken = [one for one in value.get("candidates", []) if one["status"] != "OK"]
    tap.check("doctor --json: five, each with rule, side and message", len(broken) == 5 and
              all(one["rule"] and one["side"] and one["message"] for one in broken), broken)
    says("info with bad plugins", ["reference:0"], "info", "reference:0", **both)
    document("run with bad plugins", "run", "run", "add", "--device", "reference:0", **both)


def shadowing():
    first, second = work + "/first", work + "/second"
    for folder in (first, second):
        manifest(folder, "null", "libnull.so")
        shutil.copy(null_library, folder + "/libnull.so")
    where = {"path": f"{first}:{second}"}
    value = document("shadowed plugin", "doctor", "doctor", **where)
    tap.check("the second of a name is shadowed", [one["shadowed"] for one in value.get("candidates", [])] == [False, True], value)
    says("doctor says so", ["○", "an earlier candidate has this name"], "doctor", **where)
    says("list --all says so", ["shadowed"], "list", "--all", **where)


def golden():
    """Compares one whole document with a stored document, so that a change of any stable field is detected."""
    folder = work + "/golden"
    manifest(folder, "null", "libnull.so")
    shutil.copy(null_library, folder + "/libnull.so")
    value = document("golden list", "list", "list", path=folder)
    text = json.dumps(value, indent=1, sort_keys=True).replace(folder, "FOLDER") + "\n"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_list.json"), encoding="utf-8") as file:
        expected = file.read()
    tap.check("list --json is the golden document", text == expected, f"{text}\ninstead of\n{expected}")


def memory_unknown():
    """Checks that the command does not print unknown memory sizes as EiB."""
    folder = work + "/memory_unknown"
    manifest(folder, "null", "libnull.so")
    shutil.copy(null_library, folder + "/libnull.so")
    text = says("info of a device that does not say how much memory it has", ["size unknown, free unknown"], "info", "null:0", path=folder)
    tap.check("info claims no memory for it", "EiB free" not in text, text)
    value = document("info --json of such a device", "info", "info", "null:0", path=folder)
    tap.check("info --json has null for it", {each["total_bytes"] for each in value.get("memory", [])} == {None} ==
              {each["free_bytes"] for each in value.get("memory", [])}, value.get("memory"))


def bench():
    where = {"path": reference}
    arguments = ["bench", "dispatch", "--null-plugin", null_library, "--batches", "3", "--calls", "50"]
    says("bench dispatch", ["MEDIAN", "BUDGET", "eager call, cached plan", "heap allocations"], *arguments, **where)
    value = document("bench dispatch --json", "bench_dispatch", *arguments, **where)
    figures = {one["key"]: one for one in value.get("figures", [])}
    tap.check("an eager call allocates nothing", figures.get("allocations", {}).get("median") == 0, figures.get("allocations"))
    keys = ["direct_call", "kit_binding", "eager_call", "eager_share", "eager_call_7", "replay", "allocations", "allocator", "plan_create", "load_device", "torch_add"]
    tap.check("bench dispatch has every figure", all(key in figures for key in keys), sorted(figures))
    refused("bench with a null plugin that is not there", ["/nowhere.so"], 1, "bench", "dispatch", "--null-plugin", "/nowhere.so", **where)


def contents(folder):
    return {name: open(os.path.join(folder, name), encoding="utf-8").read() for name in sorted(os.listdir(folder))}


def new():
    skeleton = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../samples/skeleton_plugin")
    folder = work + "/new/skeleton"
    os.mkdir(work + "/new")
    text = says("new", ["plugin.cpp", "meson.build", "README.md", "manifest.json.in", "cd ", "meson setup build", "meson test -C build"],
                "new", "skeleton", "--dir", folder)
    tap.check("samples/skeleton_plugin is what new writes", contents(folder) == contents(skeleton), text)
    lines = sum(text.count("\n") for text in contents(folder).values())
    source = contents(folder)["plugin.cpp"]
    functions = [line for line in source.splitlines() if re.match(r"[^/]*\)( :.*| const| override)* \{$", line) and not re.match(r"\s*(if|for|while|switch)\b", line)]
    tap.check("a project of new has at most 200 lines and 12 functions", lines <= 200 and 3 <= len(functions) <= 12, f"{lines} {functions}")
    value = document("new --json", "new", "new", "acme_1", "--dir", work + "/new/other place")
    made = contents(work + "/new/other place")
    tap.check("new --json names every file", {one["name"]: one["lines"] for one in value.get("files", [])} ==
              {name: text.count("\n") for name, text in made.items()} and value["directory"] == work + "/new/other place", value)
    tap.check("a project of new bears its name alone", not any("skeleton" in text for text in made.values()) and
              '"name": "acme_1"' in made["manifest.json.in"] and "libbackplane_acme_1.so" in made["manifest.json.in"], made)
    tap.check("the commands that new shows suit a shell", value.get("next", [""])[0] == f"cd '{work}/new/other place'", value)
    sample = os.path.join(os.path.dirname(skeleton), "queue_plugin")
    text = says("new --queue", ["plugin.cpp", "card.cpp", "card.h", "meson test -C build"], "new", "skeleton", "--queue", "--dir", work + "/new/queue")
    tap.check("samples/queue_plugin is what new --queue writes", contents(work + "/new/queue") == contents(sample), text)
    tap.check("a plugin for a queue has at most 150 lines", contents(sample)["plugin.cpp"].count("\n") <= 150)
    before = contents(folder)
    refused("new never overwrites", ["exists already", "--dir"], 2, "new", "acme", "--dir", folder)
    os.mkdir(work + "/new/empty")
    refused("new takes no directory that is there", ["exists already"], 2, "new", "acme", "--dir", work + "/new/empty")
    tap.check("what was there is as it was", contents(folder) == before and not os.listdir(work + "/new/empty"))
    refused("new without a name", ["NAME"], 2, "new")
    for bad in ("Acme", "a-b", "a/b", "../a", "a" * 64, "é", "a b", ""):
        refused(f"new of the bad name '{bad[:8]}'", ["no plugin's name", "a-z"], 2, "new", bad, "--dir", work + "/new/bad")
    refused("new of a plugin that is there", ["'reference'", "already", "reference.json"], 2, "new", "reference",
            "--dir", work + "/new/bad", path=reference)
    refused("new below a directory that is not there", ["No such file", "--dir"], 1, "new", "acme", "--dir", work + "/none/acme")
    refused("new in a place that is a file", ["Not a directory"], 1, "new", "acme", "--dir", f"{folder}/README.md/acme")
    if os.geteuid() != 0:  # root may write everywhere
        os.mkdir(work + "/new/read_only", mode=0o555)
        refused("new in a place that cannot be written", ["Permission denied"], 1, "new", "acme", "--dir", work + "/new/read_only/acme")
    tap.check("a refusal leaves nothing", not os.path.exists(work + "/new/bad") and not os.path.exists(work + "/none"))


def new_on_a_full_disk():
    """Simulates a full disk with a limit on file sizes. A write that exceeds the limit fails in the same way."""
    folder = work + "/new/full"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    process = subprocess.run([command, "new", "acme", "--dir", folder], preexec_fn=limit, capture_output=True, text=True, check=False)
    tap.check("new on a full disk names the file, and leaves nothing",
              process.returncode == 1 and folder in process.stderr and "too large" in process.stderr and not os.path.exists(folder),
              shown(process))


def certificates():
    """Checks the documents of certify and verify against their schemas. certify_test.py and verify_test.cpp check
    the contents."""
    library, folder = os.path.join(reference, "libbackplane_reference.so"), work + "/certificates"
    value = document("certify --list --json", "cases", "certify", "--list")
    tap.check("certify --list --json has every case", len(value.get("cases", [])) > 20_000, len(value.get("cases", [])))
    part = ["certify", library, "--filter", "abi.library", "--filter", "numeric.exp.f32", "--seed", "7", "--output", folder, "--quiet"]
    value = document("certify --json", "certificate", *part)
    cells = {(cell["op"], cell["dtype"]): cell for cell in value.get("matrix", [])}
    tap.check("certify --json has errors against bounds", 0 < cells.get(("exp", "f32"), {}).get("error", {}).get("worst_share", 0) <= 1, cells)
    made = os.path.join(folder, "libbackplane_reference.json")
    value = document("verify --json", "verify", "verify", made, library, "--quiet", status=1)
    states = {part["name"]: part["state"] for part in value.get("parts", [])}
    tap.check("verify of a part is refused, and only for that", value.get("verdict") == "refused" and
              [name for name, state in states.items() if state == "refused"] == ["run"] and states["sample"] == "unchecked", states)
    says("verify for people", ["✓ digest", "✗ run", "refused: run"], "verify", made, library, "--quiet", status=1)
    with open(made, encoding="utf-8") as file:
        text = file.read()
    with open(made, "w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
    says("verify of half a file", ["✗ file", "refused: file"], "verify", made, library, "--quiet", status=1)
    document("verify of half a file, as JSON", "verify", "verify", made, library, "--quiet", status=1)
    refused("verify of a file that is not there", ["cannot be read"], 2, "verify", folder + "/nothing.json", library)
    refused("verify of a folder", ["cannot be read"], 2, "verify", folder, library)
    refused("verify with a plugin that is not there", ["verify: ", "nothing.so"], 2, "verify", made, "./nothing.so")
    refused("verify without a plugin", ["PLUGIN"], 2, "verify", made)
    refused("verify of no case", ["--sample"], 2, "verify", made, library, "--sample", "0")


try:
    for part in (general, table, without_plugin, with_reference, operators_run, run_refuses, traced, with_bad_plugins, shadowing, golden, memory_unknown, bench,
                 new, new_on_a_full_disk):
        part()
finally:
    shutil.rmtree(work)
tap.done()
