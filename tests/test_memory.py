"""Memory that was freed is used again."""

import platform
import subprocess
import sys

import pytest
from conftest import ROOT

FAULTS = """
import resource, sys
import numpy as np
from contextlib import nullcontext
from tenfold.memory import freed_memory_kept
def count():
    np.ones(5 * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        np.ones(5 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
with freed_memory_kept() if sys.argv[1] == "kept" else nullcontext():
    inside = count()
print(inside, count())
"""


def faults(how):
    """How often new memory had to be asked for, a page at a time, to write and free arrays of 40 MB; and after it."""
    command = [sys.executable, "-c", FAULTS, how]
    environment = {"PYTHONPATH": str(ROOT), "NUMPY_MADVISE_HUGEPAGE": "0"}
    return map(int, subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ways")
def test_what_is_freed_is_used_again():
    """Where the C library is not glibc, nothing is changed, and nothing is lost."""
    (kept, after), (usual, _) = faults("kept"), faults("usual")
    assert kept <= usual
    if platform.libc_ver()[0] == "glibc":
        assert kept < 1000 < 3 * 5 * 2**23 / 4096 * 0.9 < min(usual, after)
