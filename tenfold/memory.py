"""How Linux hands out memory."""

import ctypes
import sys
from contextlib import contextmanager, suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
USUAL = 2**25  # bytes of an array up to which freed memory may be kept: what glibc comes to by itself


@contextmanager
def freed_memory_kept(n_bytes=2**27):
    """Let arrays of up to so many bytes, while this lasts, take the memory of those freed before.

    Else it is given back to the system, which hands out more. Memory that is new to a process costs much on a virtual
    machine: reading a large CSV file, some rows at a time, would take a fourth longer.
    """
    _keep_up_to(n_bytes)
    try:
        yield
    finally:
        _keep_up_to(USUAL)


def _keep_up_to(n_bytes):
    """Memory that was kept until now is given back."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # there are other C libraries than glibc
            library = ctypes.CDLL(None)
            library.mallopt(M_MMAP_THRESHOLD, n_bytes)
            library.mallopt(M_TRIM_THRESHOLD, 2 * n_bytes)
            library.malloc_trim(0)
