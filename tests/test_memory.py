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
def write_and_free():
    arrays = [np.ones(2**23) for _ in range(2)]
def count():
    write_and_free()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        write_and_free()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
with freed_memory_kept() if sys.argv[1] == "kept" else nullcontext():
    inside = count()
print(inside, count())
"""


def faults(how):
    """How often new memory had to be asked for, a page at a time, to write and free arrays of 64 MB; and after it."""
    command = [sys.executable, "-c", FAULTS, how]
    environment = {"PYTHONPATH": str(ROOT), "NUMPY_MADVISE_HUGEPAGE": "0"}
    return map(int, subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ways")
def test_what_is_freed_is_used_again():
    """Where the C library is not glibc, nothing is changed, and nothing is lost."""
    (kept, after), (usual, _) = faults("kept"), faults("usual")
    assert kept <= usual
    if platform.libc_ver()[0] == "glibc":
        assert kept < 1000 < 4 * 2 * 2**26 / 4096 * 0.9 < min(usual, after)
