# SPDX-License-Identifier: Apache-2.0
"""The exception of a peer that does not run a case."""


class Unsupported(Exception):
    pass
