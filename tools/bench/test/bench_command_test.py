#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command `backplane bench`: bench_command_test.py COMMAND SCHEMAS REFERENCE_FOLDER PEER_FOLDER.

Checks reports against their published schemas, and checks error messages. Does not check times."""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    sys.exit("bench_command_test.py: this Python has no jsonschema; install python3-jsonschema")

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "checks"))
import tap

command, schemas, reference, peers = sys.argv[1:]
work = tempfile.mkdtemp(prefix="backplane-bench-")


# A script that replaces peer.py. As the peer `torch` and as the peer `onnxruntime`, it supports only `add`, and returns
# wrong results for operands of 7 elements. The peer `onnxruntime` exits at the request "time".
peer_script = """
import array, json, os, sys
kind = sys.argv[1]
def answer(value):
    print(json.dumps(value), flush=True)
answer({"name": kind, "version": "1"})
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "prepare":
        if request["op"] != "add" or request["inputs"][0][0] != "f32":
            answer({"error": "it only adds"})
            continue
        a, b = (array.array("f", open(given[2], "rb").read()) for given in request["inputs"])
        wrong = 1.0 if request["inputs"][0][1] == [7] else 0.0
        path = os.path.join(os.environ["PEER_WORK"], "output")
        open(path, "wb").write(array.array("f", [x + y + wrong for x, y in zip(a, b)]).tobytes())
        answer({"ns": 1000, "outputs": [path]})
    elif request["do"] == "time":
        if kind == "onnxruntime":
            sys.exit(1)
        answer({"ns": 5000000 * request["calls"]})
    else:
        answer({})
"""


def run(*arguments, **extra):
    environment = {**os.environ, "HOME": work, "XDG_DATA_HOME": work, "XDG_DATA_DIRS": work, "XDG_CONFIG_HOME": work,
                   "BACKPLANE_PLUGIN_PATH": reference, "BACKPLANE_BENCH_PEERS": peers, "PEER_WORK": work, **extra}
    for name in ("BACKPLANE_DEVICE", "BACKPLANE_LAYERS"):
        environment.pop(name, None)
    return subprocess.run([command, "bench", *arguments], env=environment, text=True, capture_output=True, timeout=120, check=False)


def shown(process):
    return f"{' '.join(process.args)}\nexit status {process.returncode}\n{process.stdout[-2000:]}\n{process.stderr[-2000:]}"


def document(name, schema, *arguments):
    """Returns the document of one run with --json. The document's schema must not allow additional properties."""
    process = run(*arguments, "--json")
    with open(os.path.join(schemas, schema + ".schema.json"), encoding="utf-8") as file:
        rules = json.load(file)
    jsonschema.Draft202012Validator.check_schema(rules)
    try:
        value = json.loads(process.stdout)
        fault = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(rules).iter_errors(value))
        fault = f"{list(fault.absolute_path)}: {fault.message}" if fault else ""
    except ValueError as failure:
        value, fault = {}, str(failure)
    tap.check(name, process.returncode == 0 and not fault, f"{fault}\n{shown(process)}")
    return value


def refused(name, words, *arguments):
    process = run(*arguments)
    lines = process.stderr.splitlines()
    tap.check(name, process.returncode == 2 and len(lines) == 1 and all(word in lines[0] for word in words) and not process.stdout,
              f"wanted {words}\n{shown(process)}")


def file(name, text):
    path = os.path.join(work, name)
    with open(path, "w", encoding="utf-8") as target:
        target.write(text)
    return path


def ops():
    shapes = file("mine.txt", "add f32 64 64\nmatmul f32 8x8 8x8\nattention f32 1x2x4x4\nadd i64 16 16\n")
    short = ("ops", "--device", "reference:0", "--seconds", "0.01", "--threads", "1", "--quiet")
    page = os.path.join(work, "page.html")
    value = document("bench ops --json", "bench_ops", *short, "--shapes", shapes, "--html", page)
    rows = {row["case"]: row for row in value.get("rows", [])}
    tap.check("bench ops measures every case of the file", len(rows) == 4 and all(row["group"] == "mine" for row in rows.values()), rows)
    add = rows.get("add f32 64 64", {})
    tap.check("a row has first call, latency, throughput, limit and memory",
              add.get("device", {}).get("measured") and add["device"]["first_ns"] > 0 and add["of_limit"]["median"] > 0
              and add["device"]["latency_ns"]["samples"] >= 1 and add["device"]["device_peak_bytes"] > 0, add)
    if os.path.isdir(peers) and any(name.endswith(".so") for name in os.listdir(peers)):
        peer = add.get("peers", [{}])[0]
        tap.check("a peer's row has the paired ratio", peer.get("measured") and peer["ratio"]["samples"] >= 1, add)
        other = rows.get("add i64 16 16", {}).get("peers", [{}])[0]
        tap.check("what a peer lacks is reported", other.get("measured") is False and "dtype" in other.get("reason", ""), other)
    alone = document("bench ops --no-peers", "bench_ops", *short, "--shapes", shapes, "--no-peers", "--filter", "matmul")
    tap.check("--no-peers and --filter", alone.get("peers") == [] and [row["case"] for row in alone["rows"]] == ["matmul f32 8x8 8x8"], alone)
    html = open(page, encoding="utf-8").read()
    tap.check("the page has charts and no reference to the outside", "<svg" in html and "http" not in html and "<link" not in html
              and "add f32 64 64" in html, html[:500])
    process = run(*short, "--shapes", shapes, "--filter", "add")
    tap.check("bench ops for people", process.returncode == 0 and all(word in process.stdout for word in
              ("reference:0", "LATENCY", "THROUGHPUT", "OF LIMIT", "add f32 64 64")), shown(process))
    layouts = document("bench ops of strided views", "bench_ops", *short, "--shapes", file("strided.txt", "copy f32 32x16@1,0\nadd f32 8x8/2 8x8\nsoftmax f32 8x8@1,0 axis=1\n"))
    tap.check("strided views are measured and summed up apart", all(row["device"]["measured"] for row in layouts["rows"]), layouts)
    both = document("bench ops --decomposed", "bench_ops", *short, "--shapes", shapes, "--decomposed", "--no-peers")
    tap.check("a composite says its path", [row["path"] for row in both["rows"]] == ["native", "native", "decomposed", "native"], both)
    packed = document("bench ops --packed", "bench_ops", *short, "--shapes", shapes, "--packed", "--no-peers", "--filter", "matmul")
    by = packed["rows"][0]["peers"]
    tap.check("packed weights are measured", [peer["name"] for peer in by] == ["packed"] and by[0]["measured"] and by[0]["ratio"]["median"] > 0, packed)
    process = run("ops", "--list", "--filter", "bert_base")
    tap.check("bench ops --list", process.returncode == 0 and "bert_base/softmax" in process.stdout and "resnet50" not in process.stdout,
              shown(process))
    return value


def refusals():
    refused("a bad line is named", ["bad.txt:2:", "there is no dtype 'f31'", "write: OP DTYPE"], "ops", "--shapes",
            file("bad.txt", "add f32 4 4\nadd f31 4 4\n"))
    refused("a file of shapes that is not there", ["/nowhere.txt", "no file"], "ops", "--shapes", "/nowhere.txt")
    refused("a filter that chooses nothing", ["none of", "zebra"], "ops", "--filter", "zebra")
    refused("a page that cannot be written", ["--html", "/nowhere/page.html"], "ops", "--filter", "tiny", "--html", "/nowhere/page.html")
    refused("a plugin and a device", ["--plugin", "--device"], "ops", "-p", "reference", "-d", "reference:0", "--filter", "tiny")


def with_peers(script, shapes, **environment):
    """Runs with the peers of `script`. Returns {case: {name of a peer: results}}."""
    file("peers/peer.py", script)
    process = run("ops", "--device", "reference:0", "--seconds", "0.01", "--threads", "1", "--quiet", "--shapes", shapes, "--peers",
                  os.path.join(work, "peers"), "--json", **environment)
    return {row["case"]: {peer["name"]: peer for peer in row["peers"]} for row in json.loads(process.stdout)["rows"]}


def processes():
    """Tests peers in separate processes. One peer works, one returns wrong results, and one exits early."""
    folder = os.path.join(work, "peers")
    os.mkdir(folder)
    file("peers/peer.py", peer_script)
    shapes = file("process.txt", "add f32 9 9\nadd f32 7 7\nexp f32 4\n")
    value = document("bench ops with peers in processes", "bench_ops", "ops", "--device", "reference:0", "--seconds", "0.01", "--threads",
                     "1", "--quiet", "--shapes", shapes, "--peers", folder)
    rows = {row["case"]: {peer["name"]: peer for peer in row["peers"]} for row in value.get("rows", [])}
    device = {row["case"]: row["device"] for row in value.get("rows", [])}
    good = rows.get("add f32 9 9", {})
    tap.check("a peer that ends in the middle is named, and costs the row only its peers",
              "its process ended" in good.get("onnxruntime", {}).get("reason", "") and device["add f32 9 9"]["measured"], rows)
    tap.check("a peer whose output differs has no times", "differs from the device's" in rows.get("add f32 7 7", {}).get("torch", {})
              .get("reason", ""), rows)
    tap.check("what a process lacks is reported", rows.get("exp f32 4", {}).get("torch", {}).get("reason") == "it only adds", rows)
    # After a malformed line, the peer receives no further request, because a late line could be
    # mistaken for the next reply.
    broken = peer_script.replace('sys.exit(1)', 'print("no json", flush=True)')
    rows = with_peers(broken, shapes)
    tap.check("a peer that is not understood is not used again", all("measured with dense" in row["onnxruntime"]["reason"] or "parse error" in row[
              "onnxruntime"]["reason"] for row in rows.values()) and rows["add f32 9 9"]["torch"]["measured"], rows)
    rows = with_peers(peer_script.replace('"outputs": [path]', '"outputs": []'), shapes)
    tap.check("a peer without outputs has no times", "it gives no output" in rows["add f32 9 9"]["torch"]["reason"], rows)
    rows = with_peers(peer_script.replace('"outputs": [path]', '"outputs": 7'), shapes)
    tap.check("a reply of another form is reported", "type must be array" in rows["add f32 9 9"]["torch"]["reason"], rows)
    own = os.path.join(work, "temporary")
    os.mkdir(own)
    rows = with_peers(peer_script.replace('os.environ["PEER_WORK"]', 'request["folder"]'), shapes, TMPDIR=own)
    tap.check("what a peer writes into its folder is read, and nothing stays", rows["add f32 9 9"]["torch"]["measured"] and os.listdir(own)
              == [], (rows, os.listdir(own)))
    file("peers/peer.py", peer_script.replace('if kind == "onnxruntime"', 'if False'))
    value = document("the same where none ends", "bench_ops", "ops", "--device", "reference:0", "--seconds", "0.01", "--threads", "1",
                     "--quiet", "--shapes", shapes, "--peers", folder)
    peer = {one["name"]: one for one in value["rows"][0]["peers"]}["torch"]
    tap.check("a process takes its times itself", peer["measured"] and peer["throughput_ns"]["median"] == 5000000 and peer["first_ns"] == 1000,
              peer)


# A script that replaces peer.py. The peer runs models, and returns outputs with the right size and wrong values.
model_script = """
import json, os, sys
def answer(value):
    print(json.dumps(value), flush=True)
answer({"name": sys.argv[1], "version": "1"})
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "prepare_model":
        shape = [value["shape"] for value in request["values"] if value["role"] == "output"][0]
        bytes = 4
        for extent in shape:
            bytes *= extent
        path = os.path.join(os.environ["PEER_WORK"], "output")
        open(path, "wb").write(b"?" * bytes)
        answer({"ns": 1000, "outputs": [path]} if request["nodes"][0]["op"] != "conv" else {"error": "it has no images"})
    else:
        answer({"ns": 1})
"""


def model():
    short = ("model", "--device", "reference:0", "--small", "--seconds", "0.01", "--threads", "1", "--quiet")
    page = os.path.join(work, "models.html")
    value = document("bench model --json", "bench_model", *short, "--no-peers", "--steps", "24", "--html", page)
    rows = {row["model"]: row for row in value.get("rows", [])}
    tap.check("bench model measures every model", list(rows) == ["bert_layer", "resnet_block", "gpt_step", "unet_block", "llama_layer", "mlp"] and all(
        row["device"]["measured"] and row["device"]["latency_ns"]["samples"] >= 1 and row["device"]["first_ns"] > 0 and row["flops"] > 0
        and row["device"]["device_peak_bytes"] > 0 for row in rows.values()), rows)
    tap.check("the reference plugin runs composites as primitives, and makes its plans in the first run", all(
        row["decomposed"] > 0 and row["plans_first"] > 0 and row["plans_after"] == 0 for row in rows.values()), rows)
    decode = value.get("decode", {})
    tap.check("a decode whose cache grows makes no plan after its first steps", decode.get("measured") and decode["plans_after"] == 0
              and decode["plans_warm"] > 0 and decode["class_hits"] > 0 and decode["ratio"]["samples"] == 16, decode)
    html = open(page, encoding="utf-8").read()
    tap.check("the page of models has charts and no reference to the outside", html.count("<svg") == 8 and "http" not in html
              and "<link" not in html and "gpt_decode" in html, html[:500])
    packed = document("bench model --packed", "bench_model", *short, "--no-peers", "--packed", "--filter", "bert_layer")
    by = packed["rows"][0]["peers"]
    tap.check("a plugin that packs no weight of a model says so", [peer["name"] for peer in by] == ["packed"] and not by[0]["measured"]
              and "plain" in by[0]["reason"], packed)
    graph = document("bench model --graph", "bench_model", *short, "--no-peers", "--graph", "--filter", "gpt_step")
    by = graph["rows"][0]["peers"]
    tap.check("a model is replayed as a graph", [peer["name"] for peer in by] == ["graph"] and by[0]["measured"] and by[0]["ratio"]["median"] > 0, graph)
    process = run(*short, "--no-peers", "--steps", "2")
    tap.check("bench model for people", process.returncode == 0 and all(word in process.stdout for word in
              ("reference:0", "LATENCY", "bert_layer", "plans made", "2 steps of a GPT decode")), shown(process))
    folder = os.path.join(work, "model_peers")
    os.mkdir(folder)
    file("model_peers/peer.py", model_script)
    value = document("bench model with peers", "bench_model", *short, "--filter", "bert_layer", "--filter", "resnet_block", "--peers", folder)
    reasons = {row["model"]: row["peers"][0]["reason"] for row in value["rows"]}
    tap.check("a peer whose model differs has no times", "differs from the device's" in reasons.get("bert_layer", "") and "decode" not in value
              and "geometric_mean" not in value["peers"][0], value)
    file("model_peers/peer.py", model_script.replace('"outputs": [path]', '"outputs": []'))
    few = document("bench model with a peer without outputs", "bench_model", *short, "--filter", "bert_layer", "--peers", folder)
    tap.check("a peer that gives too few outputs has no times", "0 of 1 outputs" in few["rows"][0]["peers"][0]["reason"], few)
    one = file("models.json", json.dumps(value))
    same = document("two reports of models compared", "bench_compare", "compare", one, one)
    tap.check("figures of models are compared", same.get("unmoved", 0) == 4 and same.get("moves") == [], same)
    tap.check("what a peer cannot run is said", reasons.get("resnet_block") == "it has no images", reasons)
    refused("a model that is none", ["none", "bert_layer", "zebra"], "model", "--filter", "zebra", "--device", "reference:0", "--no-peers")
    refused("an unknown model next to a known one", ["none", "zebra"], "model", "--filter", "bert_layer", "--filter", "zebra", "--device", "reference:0")
    refused("a page of models that cannot be written", ["--html", "/nowhere/page.html"], "model", "--html", "/nowhere/page.html")


def memory():
    value = document("bench memory --json", "bench_memory", "memory", "--device", "reference:0", "--seconds", "0.01", "--most", "8192")
    what = {row["what"] for row in value.get("rows", [])}
    tap.check("bench memory has copies, transfers and allocations", len(value.get("rows", [])) == 16 and
              {"copy in device memory, read and written", "host to device, from HOST memory", "buffer created and released, cached"} <= what, what)
    process = run("memory", "--device", "reference:0", "--seconds", "0.01", "--most", "1024")
    tap.check("bench memory for people", process.returncode == 0 and "GB/s" in process.stdout, shown(process))
    return value


def compare(report, other):
    one = file("one.json", json.dumps(report))
    slower = copy.deepcopy(report)
    for key in ("p10", "median", "p90"):
        slower["rows"][0]["device"]["latency_ns"][key] *= 1000
    two = file("two.json", json.dumps(slower))
    same = document("a report compared with itself", "bench_compare", "compare", one, one)
    tap.check("nothing moved", same.get("moves") == [] and same.get("unmoved", 0) > 0, same)
    moved = document("compare --json", "bench_compare", "compare", one, two)
    tap.check("what moved is said", [move["key"] for move in moved.get("moves", [])] == ["mine/add f32 64 64 | device | latency"], moved)
    process = run("compare", one, two)
    tap.check("compare for people", process.returncode == 0 and "1 figure(s) moved" in process.stdout and "slower" in process.stdout,
              shown(process))
    refused("two kinds of report", ["bench_memory", "one kind"], "compare", one, file("memory.json", json.dumps(other)))
    refused("a report that is none", ["text.json", "give a report"], "compare", one, file("text.json", "{"))
    refused("a report that is not there", ["/nowhere.json", "cannot be read"], "compare", one, "/nowhere.json")


try:
    made = ops()
    refusals()
    processes()
    model()
    compare(made, memory())
finally:
    shutil.rmtree(work)
tap.done()
