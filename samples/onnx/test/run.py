#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of one file with the runner of the Python package: run.py FILE"""
import os
import runpy

runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../core/python/test/run.py"), run_name="__main__")
