# SPDX-License-Identifier: Apache-2.0
"""python3 -m backplane_onnx is the command backplane-onnx."""
import sys

from .command import main

sys.exit(main())
