# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suite with the command `backplane`."""
import json
import os
import shutil
import subprocess
from typing import Any, Iterable, Optional

from . import errors
from ._library import _pkg_config

VARIABLE = "BACKPLANE_COMMAND"


class Certificate:
    """The certificate of a plugin. `document` is the JSON document, whose schema is certificate.schema.json."""

    def __init__(self, document: "dict[str, Any]") -> None:
        self.document = document

    @property
    def level(self) -> str:
        """The highest profile that the plugin reached: "none", "core", "infer" or "train"."""
        return self.document["verdict"]["level"]

    @property
    def statement(self) -> str:
        return self.document["verdict"]["statement"]

    @property
    def counts(self) -> "dict[str, int]":
        """Number of cases for each outcome."""
        return self.document["verdict"]["counts"]

    @property
    def failures(self) -> "list[dict[str, Any]]":
        """The cases that were run and did not pass, except cases that are not claimed, with the
        reasons."""
        return [each for each in self.document["non_passes"] if each["outcome"] not in ("not_claimed", "not_run")]

    @property
    def passed(self) -> bool:
        """Whether the requested profile was reached. With filters: whether every selected case passed."""
        run = self.document["run"]
        if run["filters"]:
            return not self.failures and not run["error"] and self.counts["pass"] > 0
        profiles = ("none", "core", "infer", "train")
        return profiles.index(self.level) >= profiles.index(run["profile"])

    def __repr__(self) -> str:
        return f"<Certificate: {self.statement}>"


def _executable(path):
    return path if path and os.access(path, os.X_OK) else None


def find_command() -> str:
    """Returns the command `backplane`: the file that BACKPLANE_COMMAND names, the one of the SDK that pkg-config finds,
    or the one in PATH. Raises Unavailable if there is none."""
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE]
    folder = _pkg_config("bindir")
    found = _executable(folder and os.path.join(folder, "backplane")) or shutil.which("backplane")
    if found is None:
        raise errors.Unavailable(f"certify: the command backplane is neither in the SDK that pkg-config finds nor in PATH; set {VARIABLE} to its "
                                 "file, or install the SDK")
    return found


def certify(plugin: "str | os.PathLike[str]", *, profile: str = "core", filters: "Iterable[str]" = (), output: "str | os.PathLike[str] | None" = None,
            device: Optional[int] = None, seed: Optional[int] = None, jobs: Optional[int] = None, timeout: Optional[float] = None,
            command: "str | os.PathLike[str] | None" = None) -> Certificate:
    """Runs the conformance suite on a plugin, which is the path of a library or the name of a plugin.

    With filters (case ids, prefixes or patterns) the run is only a part of the suite, and certifies no profile.
    `output` is a folder that receives the certificate as JSON, JUnit XML and HTML. The other parameters are options of
    the command. Raises Unavailable if the command cannot run. If the command wrote no certificate, raises
    InvalidArgument for wrong parameters, and Internal for any other reason."""
    options = ["--profile", profile]
    for each in filters:
        options += ["--filter", each]
    for name, value in (("output", output), ("device", device), ("seed", seed), ("jobs", jobs), ("timeout", timeout)):
        if value is not None:
            options += [f"--{name}", str(value)]
    line = [os.fspath(command) if command else find_command(), "--json", "certify", os.fspath(plugin), "--quiet", *options]
    try:
        run = subprocess.run(line, capture_output=True, text=True)
    except OSError as failure:
        raise errors.Unavailable(f"certify: cannot run {line[0]}: {failure.strerror}; correct {VARIABLE}, or pass command=") from None
    return _certificate(line, run)


def _certificate(line, run):
    try:
        document = json.loads(run.stdout)
    except ValueError:
        document = {}
    if document.get("schema") == "backplane.certificate":
        return Certificate(document)
    reason = document.get("message") or (run.stderr.strip().splitlines() or ["no output"])[-1]
    kind = errors.InvalidArgument if run.returncode == 2 else errors.Internal
    raise kind(f"certify: {' '.join(line)} ended with status {run.returncode} and no certificate: {reason}")
