#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python peers of `backplane bench ops` and `bench model`: peer.py torch|onnxruntime|torch_gpu|torch_gpu_graph.

The process reads and writes one JSON object per line on its standard streams. It first writes
{"name": .., "version": ..}, or {"error": why}. Then it replies to each line that it reads with one line:
  {"do": "prepare", "op", "dtype", "inputs": [[dtype, shape, file], ..],
   "outputs": [[dtype, shape], ..], "attributes": {..}, "threads": n, "folder": for its outputs}
    -> {"ns": time of the first call, "outputs": [file, ..]} or {"error": why}
  {"do": "prepare_model", "values": [{"role", "dtype", "shape", "file"}, ..],
   "nodes": [{"op", "attributes", "inputs": [view, ..], "outputs": [view, ..]}, ..],
   "threads": n, "folder"}
    -> like the reply to "prepare", with the values whose role is output
  {"do": "time", "calls": n, "wait_each": whether to wait after each call and not only at the end} -> {"ns": time of n calls}
  {"do": "release"} -> {}
A view is {"number": n}, or {"value": index} with optional "reshape", "slice": [axis, begin, end],
"permute" and "broadcast", which apply in this order.
The peer measures the times, so the times exclude the pipe and the files. Files contain raw, dense data in the
machine's byte order."""
import json
import os
import sys
import time

from unsupported import Unsupported


def files_of(request):
    if request["do"] == "prepare":
        return [given[2] for given in request["inputs"]]
    return [value["file"] for value in request["values"] if "file" in value]


def contents(path):
    with open(path, "rb") as file:
        return bytearray(file.read())


def main(kind):
    # The output of libraries must not mix with the lines of the protocol.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(value):
        replies.write(json.dumps(value) + "\n")
        replies.flush()

    try:
        if kind == "onnxruntime":
            from onnxruntime_peer import OnnxRuntime
            peer = OnnxRuntime()
        else:
            from pytorch_peer import Torch
            peer = Torch(gpu=kind.startswith("torch_gpu"), graph=kind == "torch_gpu_graph")
    except (ImportError, Unsupported) as error:
        reply({"error": str(error)})
        return
    reply({"name": peer.name, "version": peer.version})
    call = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] in ("prepare", "prepare_model"):
                peer.files = {path: contents(path) for path in files_of(request)}
                begin = time.perf_counter_ns()
                call = peer.prepare(request) if request["do"] == "prepare" else peer.prepare_model(request)
                results = call()
                peer.wait()
                ns = time.perf_counter_ns() - begin
                peer.files, files = {}, []
                for index, result in enumerate(results):
                    files.append(os.path.join(request["folder"], f"output{index}"))
                    with open(files[-1], "wb") as file:
                        file.write(peer.bytes_of(result))
                reply({"ns": ns, "outputs": files})
            elif request["do"] == "time":
                begin = time.perf_counter_ns()
                for _ in range(request["calls"]):
                    call()
                    if request["wait_each"]:
                        peer.wait()
                peer.wait()
                reply({"ns": time.perf_counter_ns() - begin})
            else:
                call = None
                reply({})
        except Exception as error:  # every exception of a library becomes an error reply
            call = None
            reply({"error": f"{type(error).__name__}: {error}" if not isinstance(error, Unsupported) else str(error)})


main(sys.argv[1])
