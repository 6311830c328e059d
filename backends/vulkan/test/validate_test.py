#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the plugin with all checks of VK_LAYER_KHRONOS_validation: validate_test.py COMMAND LIBRARY [WORD...]

After the layer's first message, every wait and plan fails, so a run without failures has produced no message.
The script passes the WORDs to `certify`. Without WORDs, a part of the suite runs. With only `--seed 1`, the
whole suite runs. The GEMM of 70,001 matrices needs more workgroups than one dispatch may have. If the plugin did
not divide the GEMM, only the layer would report the error."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library, *words = sys.argv[1:]
certified.skip_without_device(command, library)
groups = ["runtime.order", "runtime.stream", "runtime.event", "runtime.copy", "runtime.threads", "runtime.in_turn", "host.model",
          "host.memory", "runtime.import", "numeric.matmul.f32.70001*"]
# Cases that fail because of the layer (1.3.239). The layer leaks memory with each submission, and
# fails if a process exits during a call.
of_the_layer = {"runtime.leak.stream_used", "host.life.again_and_again", "runtime.process.exits.while_a_thread_enqueues",
                "abi.instance.reload_and_work"}
words = words or certified.filters(groups)


def run(said_of, least, *words, **environment):
    certificate, said, _ = certified.certify(command, library, "--profile", "train", *words,
                                        environment={"BACKPLANE_VULKAN_VALIDATION": "1", "BACKPLANE_VULKAN_CACHE": "off", **environment})
    if certificate is None:
        sys.exit(said)
    failures = [one for one in certified.failures_of(certificate)
                if one["id"] not in of_the_layer or "validation layer objects" in json.dumps(one)]
    certified.check_failures(f"the validation layer has nothing to say{said_of}", failures)
    passed = certificate["verdict"]["counts"]["pass"]
    tap.check(f"cases ran{said_of}", passed >= least, f"{passed} passed")


run("", 200, *words)
run(", where copies are batches of their own", 200, "--filter", "runtime.copy", "--filter", "runtime.order", "--filter", "host.model",
    BACKPLANE_VULKAN_COPY_QUEUE="all")
tap.done()
