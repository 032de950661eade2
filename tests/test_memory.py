"""Memory that was freed is used again."""

import platform
import subprocess
import sys

import pytest
from conftest import ROOT

FAULTS = """
import resource, sys
import numpy as np
from tenfold.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def write_and_free():
    arrays = [np.ones(2**20) for _ in range(4)]
write_and_free()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    write_and_free()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    """How often new memory had to be asked for, a page at a time, while the same is written and freed 20 times."""
    command = [sys.executable, "-c", FAULTS, how]
    environment = {"PYTHONPATH": str(ROOT), "NUMPY_MADVISE_HUGEPAGE": "0"}
    return int(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ways")
def test_what_is_freed_is_used_again():
    """Each round writes 8192 pages; where the C library is not glibc, nothing is changed, and nothing is lost."""
    kept, usual = faults("kept"), faults("usual")
    assert kept <= usual
    if platform.libc_ver()[0] == "glibc":
        assert kept < 20 * 8192 / 10 < usual
