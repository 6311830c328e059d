#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin under VK_LAYER_KHRONOS_validation, also of synchronisation: validate_test.py COMMAND LIBRARY

The first message of the layer fails every wait and plan that follows, so that no failure means no message. The product of 70,001
matrices has more workgroups than a dispatch may: drivers do not tell."""
import json
import sys

import support
import tap

command, library = sys.argv[1:]
support.skip_without_device(command, library)
groups = ["runtime.order", "runtime.stream", "runtime.event", "runtime.copy", "runtime.threads", "runtime.in_turn", "host.model",
          "host.memory", "numeric.matmul.f32.70001*"]
certificate, said = support.certify(command, library, "--profile", "train",
                                    *(word for group in groups for word in ("--filter", group)),
                                    environment={"BACKPLANE_VULKAN_VALIDATION": "1"})
if certificate is None:
    sys.exit(said)
failures = support.failures_of(certificate)
tap.check("the validation layer has nothing to say", not failures, json.dumps(failures[:20], indent=1))
passed = certificate["verdict"]["counts"]["pass"]
tap.check("cases ran", passed >= 200, f"{passed} passed")
tap.done()
