"""Run the command on damaged files and print how many it answered, refused in one line, or got wrong.

    python bench/faults.py                          2,000 files of all kinds
    python bench/faults.py --count 10000 --seed 3   others, and more of them
    python bench/faults.py csv packed               only of kinds with one of these words in the name

Whatever the file, the command must print a valid number, or refuse it with exit code 2 and one line of error, within
its ten seconds and 2 GB of memory. Anything else is wrong, and the file is kept.
"""

import argparse
import bz2
import contextlib
import functools
import gzip
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import scipy.sparse as sp
from common import ROOT, peak_megabytes
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

SECONDS = 10
MEGABYTES = 2000
LONG = 400  # rows of a stream
QUICK = ("-q", "--folds", "2", "--jobs", "1", "--passes", "1")
PLAIN = ("--folds", "2", "--jobs", "1", "--budget", "1")  # of the recipe
NASTY = (0, 1, 2, 5, 7, 8, 14, 15, 20, 255, 0xFFFF, 0x10001, 0x50001, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
WORDS = rb', | |"|""|:|-1:|0:1|1:nan|2147483647:1|1e999|nan|-|#|1_0|99999999999999999999|a'.split(b"|")
WORDS += b"\n", b"\n\n", b"\r", b"\0", b"\xff", b"\xc3\xa9"


# --- good files ------------------------------------------------------------------------------------------------------


def make_rows(rng, n=40, d=4):
    """Rows of few digits, with labels of 0 and 1 that depend on them."""
    X = rng.integers(-99, 99, (n, d)) / 4
    return X, (X[:, 0] + rng.normal(0, 20, n) > 0).astype(int)


def mat_elements(name, A, order="<"):
    """An array as the elements of a level 5 MATLAB file, pairs of a type and the bytes: flags, shape, name, array."""

    def pack(type_, kind, values):
        return type_, np.asarray(values).astype(order + kind).tobytes("F")

    if sp.issparse(A):
        class_, array = 5, [pack(5, "i4", A.indices), pack(5, "i4", A.indptr), pack(9, "f8", A.data)]
    elif A.dtype.kind == "U":
        class_, array = 4, [pack(4, "u2", A.view(np.uint32))]
    else:
        class_, type_ = {"f8": (6, 9), "i1": (8, 1), "u1": (9, 2)}[A.dtype.str[1:]]
        array = [pack(type_, A.dtype.str[1:], A)]
    flags = struct.pack(order + "2I", class_, A.nnz if sp.issparse(A) else 0)
    return [(6, flags), (5, struct.pack(order + "2i", *A.shape)), (1, name.encode()), *array]


def mat_variable(elements, order="<"):
    """The bytes of elements that make an array, with a tag before each; those of four bytes at most lie in the tag."""
    parts = []
    for type_, content in elements:
        if 0 < len(content) <= 4:
            parts.append(struct.pack(order + "I", len(content) << 16 | type_) + content.ljust(4, b"\0"))
        else:
            parts.append(struct.pack(order + "2I", type_, len(content)) + content + bytes(-len(content) % 8))
    content = b"".join(parts)
    return struct.pack(order + "2I", 14, len(content)) + content


def mat_head(order="<"):
    return b"MATLAB 5.0 MAT-file".ljust(124) + (b"\0\1IM" if order == "<" else b"\1\0MI")


def mat5(rng, order="<", x=np.asarray, y=lambda y: y[:, None].astype(float)):
    X, labels = make_rows(rng)
    pairs = ("x_tr", x(X)), ("y_tr", y(labels))
    return [mat_head(order), *(mat_variable(mat_elements(name, A, order), order) for name, A in pairs)]


def sparse_mat5(rng, order="<"):
    return mat5(rng, order, lambda X: sp.csc_matrix(np.where(X > 10, X, 0)))


def pack_mat(parts, order="<"):
    head, *variables = parts
    packed = [zlib.compress(variable) for variable in variables]
    return b"".join([head, *(struct.pack(order + "2I", 15, len(content)) + content for content in packed)])


def saved_mat(rng, **how):
    X, y = make_rows(rng)
    file = io.BytesIO()
    x = sp.coo_matrix(np.where(X > 10, X, 0)) if rng.random() < 0.5 else X
    labels = np.array(["no", "yes"])[y] if rng.random() < 0.5 else y
    other = "text" if how.get("format") == "4" else np.array([X, "text"], object)
    savemat(file, {"other": other, "x_tr": x, "y_tr": labels}, **how)
    return [file.getvalue()]


def mat73(rng):
    import h5py

    X, y = make_rows(rng)
    S = sp.csc_matrix(np.where(X > 10, X, 0))
    file = io.BytesIO()
    with h5py.File(file, "w", userblock_size=512) as h5:
        if rng.random() < 0.5:
            how = {"compression": "gzip", "chunks": (2, 16), "shuffle": True} if rng.random() < 0.5 else {}
            h5.create_dataset("x_tr", data=X.T, **how)
        else:
            group = h5.create_group("x_tr")
            group.attrs["MATLAB_sparse"] = np.uint64(len(X))
            group.update({"data": S.data, "ir": S.indices.astype(np.uint64), "jc": S.indptr.astype(np.uint64)})
        h5["y_tr"] = y[None]
    content = bytearray(file.getvalue())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"
    return [bytes(content)]


def npz_arrays(rng, n=40):
    X, y = make_rows(rng, n)
    parts = []
    for A in (X, np.array(["no", "yes"])[y] if rng.random() < 0.5 else y):
        file = io.BytesIO()
        np.save(file, A)
        parts.append(file.getvalue())
    return parts


def pack_npz(parts, method=zipfile.ZIP_DEFLATED, names=("x_tr.npy", "y_tr.npy")):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in zip(names, parts):
            archive.writestr(name, content)
    return file.getvalue()


@functools.cache
def saved_model(features):
    """The members of a model file: their names, and their bytes."""
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder, "good.mat"), Path(folder, "model.npz")
        data.write_bytes(b"".join(mat5(np.random.default_rng(0))))
        argv = [sys.executable, ROOT / "exp.py", data, "--features", features, "--save", model, "-q", *PLAIN]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        with zipfile.ZipFile(model) as file:
            return {name: file.read(name) for name in file.namelist()}


def model_arrays(rng):
    return list(saved_model("auto" if rng.random() < 0.5 else "linear").values())


def pack_model(parts):
    names = next(names for names in map(list, map(saved_model, ("auto", "linear"))) if len(names) == len(parts))
    return pack_npz(parts, names=names)


def long(make):
    """As many rows as a stream needs, of which some are held out."""
    return lambda rng: make(rng, LONG)


def npy_rows(rng):
    return npz_arrays(rng, LONG)[:1]


def csv_text(rng, n=40):
    X, y = make_rows(rng, n)
    return ["".join(f"{','.join(map(str, row))},{label}\n" for row, label in zip(X.tolist(), y)).encode()]


def csv_table(rng):
    """With names, text, and missing cells."""
    X, y = make_rows(rng)
    colours = rng.choice(["red", "blue", ""], len(y))
    lines = [f"{a},{colour},{label}\n" for a, colour, label in zip(X[:, 0], colours, np.array(["no", "yes"])[y])]
    return ["".join(["size,colour,sick\n", *lines]).encode()]


def libsvm_text(rng, n=40):
    X, y = make_rows(rng, n)
    file = io.BytesIO()
    dump_svmlight_file(np.where(X > 0, X, 0), y, file, zero_based=False)
    return [file.getvalue()]


def parquet_table(rng, n=40):
    """Row groups of numbers and text, and behind them what describes them."""
    import pyarrow as pa
    from pyarrow import parquet

    X, y = make_rows(rng, n)
    columns = {f"c{j}": column for j, column in enumerate(X.T)}
    text = {"colour": rng.choice(["red", "blue"], n).tolist(), "sick": np.array(["no", "yes"])[y].tolist()}
    file = io.BytesIO()
    how = {"compression": str(rng.choice(["none", "snappy", "gzip"])), "use_dictionary": bool(rng.random() < 0.5)}
    parquet.write_table(pa.table({**columns, **text}), file, row_group_size=n // 3, **how)
    content = file.getvalue()
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return [content[:at], content[at:]]


# --- kinds of files --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """How to make a good file in parts, one of which will be damaged, and to join them.

    In the ``arguments`` of the command, FILE stands for the file, and a name that begins with "good" for a good one.
    """

    ending: str
    make: "callable"
    join: "callable" = b"".join
    arguments: tuple = ("FILE", *QUICK)

    def command(self, name):
        """The arguments of the command for a file of this name."""
        return [name if argument == "FILE" else argument for argument in self.arguments]


def sealed(make, join):
    """Parts that are joined before the damage, so that a checksum may find it."""
    return lambda rng: [join(make(rng))]


def swapped(function):
    """The same in the other byte order."""
    return lambda *args: function(*args, ">")


def whole(pack):
    return lambda parts: pack(b"".join(parts))


def int8_mat5(rng):
    return mat5(rng, "<", lambda X: X.astype("i1"), lambda y: np.array(["n", "y"])[y][:, None])


USE_MODEL = ("--model", "FILE", "good.mat", "-q")
KINDS = {
    "mat 5": Kind(".mat", mat5),
    "mat 5, int8 and text": Kind(".mat", int8_mat5),
    "mat 5, sparse": Kind(".mat", sparse_mat5),
    "mat 5, big-endian": Kind(".mat", swapped(mat5)),
    "mat 5, sparse, big-endian": Kind(".mat", swapped(sparse_mat5)),
    "mat 5, packed": Kind(".mat", sealed(mat5, pack_mat)),
    "mat 5, then packed": Kind(".mat", mat5, pack_mat),
    "mat 5, sparse, then packed": Kind(".mat", sparse_mat5, pack_mat),
    "mat 5, big-endian, then packed": Kind(".mat", swapped(mat5), swapped(pack_mat)),
    "mat 5, second file": Kind(".mat", sparse_mat5, arguments=("good.mat", "FILE", *QUICK)),
    "mat by SciPy": Kind(".mat", saved_mat),
    "mat by SciPy, packed": Kind(".mat", lambda rng: saved_mat(rng, do_compression=True)),
    "mat 4": Kind(".mat", lambda rng: saved_mat(rng, format="4")),
    "mat 7.3": Kind(".mat", mat73),
    "npz": Kind(".npz", sealed(npz_arrays, lambda parts: pack_npz(parts, zipfile.ZIP_STORED))),
    "npz, packed": Kind(".npz", sealed(npz_arrays, pack_npz)),
    "npz, then packed": Kind(".npz", npz_arrays, pack_npz),
    "csv": Kind(".csv", csv_text),
    "csv table": Kind(".csv", csv_table),
    "csv table, packed": Kind(".csv.gz", sealed(csv_table, whole(gzip.compress))),
    "csv table, then packed": Kind(".csv.gz", csv_table, whole(gzip.compress)),
    "csv table, second file": Kind(".csv", csv_table, arguments=("good.csv", "FILE", *QUICK)),
    "svm": Kind(".svm", libsvm_text),
    "svm, packed": Kind(".txt.bz2", sealed(libsvm_text, whole(bz2.compress))),
    "svm, then packed": Kind(".svm.gz", libsvm_text, whole(gzip.compress)),
    "svm, second file": Kind(".svm", libsvm_text, arguments=("good.svm", "FILE", *QUICK)),
    "parquet": Kind(".parquet", parquet_table),
    "parquet, second file": Kind(".parquet", parquet_table, arguments=("good.parquet", "FILE", *QUICK)),
    "model": Kind(".npz", sealed(model_arrays, pack_model), arguments=USE_MODEL),
    "model, then packed": Kind(".npz", model_arrays, pack_model, USE_MODEL),
    "stream of npy": Kind(".npy", npy_rows, arguments=("--stream", "FILE", "good.npy", "-q")),
    "stream of csv": Kind(".csv", long(csv_text), arguments=("--stream", "FILE", "-q")),
    "stream of svm, packed": Kind(
        ".svm.bz2", sealed(long(libsvm_text), whole(bz2.compress)), arguments=("--stream", "FILE", "-q")
    ),
    "stream of svm": Kind(".svm.gz", long(libsvm_text), whole(gzip.compress), ("--stream", "FILE", "-q")),
    "stream of parquet": Kind(".parquet", long(parquet_table), arguments=("--stream", "FILE", "-q")),
    "stream of parquet, one of two": Kind(
        ".parquet", long(parquet_table), arguments=("--stream", "good.parquet", "FILE", "-q")
    ),
}
GOOD = {"good.mat": "mat 5", "good.csv": "csv table", "good.svm": "svm", "good.parquet": "parquet"}


def usable_kinds(words=()):
    """The names of the kinds with one of the words in it, all but those that need what is not installed."""
    needed = {"h5py": "mat 7.3", "pyarrow": "parquet"}
    missing = [kinds for library, kinds in needed.items() if find_spec(library) is None]
    names = [name for name in KINDS if not any(kinds in name for kinds in missing)]
    return [name for name in names if not words or any(word in name for word in words)]


# --- damage ----------------------------------------------------------------------------------------------------------


def place(rng, content, step=1):
    """Where to damage: half of the time near the beginning, where headers are."""
    limit = len(content) if rng.random() < 0.5 else min(len(content), 150)
    return int(rng.integers(0, max(limit, 1))) // step * step


def block(rng, content):
    a = place(rng, content)
    return a, a + int(rng.choice([1, 2, 4, 8, 16, 64, 300]))


def flip_bit(rng, content):
    at = place(rng, content)
    content[at : at + 1] = bytes(byte ^ 1 << rng.integers(8) for byte in content[at : at + 1])


def set_byte(rng, content):
    at = place(rng, content)
    content[at : at + 1] = rng.bytes(1)


def set_word(rng, content):
    """A nasty number in place of four bytes, in either byte order."""
    at = place(rng, content, step=4)
    content[at : at + 4] = struct.pack(rng.choice(["<I", ">I"]), int(rng.choice(NASTY)))


def set_words(rng, content):
    """The same nasty number twice, as sizes and shapes have it."""
    at = place(rng, content, step=4)
    content[at : at + 8] = 2 * struct.pack(rng.choice(["<I", ">I"]), int(rng.choice(NASTY)))


def set_text(rng, content):
    a, b = block(rng, content)
    content[a : b if rng.random() < 0.3 else a] = WORDS[rng.integers(len(WORDS))]


def cut(rng, content):
    del content[place(rng, content) :]


def remove(rng, content):
    a, b = block(rng, content)
    del content[a:b]


def insert(rng, content):
    a, b = block(rng, content)
    content[a:a] = rng.bytes(b - a)


def zero(rng, content):
    a, b = block(rng, content)
    content[a:b] = bytes(len(content[a:b]))


def repeat(rng, content):
    a, b = block(rng, content)
    content[a:a] = content[a:b] * int(rng.choice([1, 2, 50]))


def swap(rng, content):
    a, b = sorted([place(rng, content), place(rng, content)])
    n = min(b - a, len(content) - b, 64)
    content[a : a + n], content[b : b + n] = content[b : b + n], content[a : a + n]


DAMAGES = (flip_bit, set_byte, set_word, set_word, set_words, set_text, cut, remove, insert, zero, repeat, swap)


def damage(rng, content):
    content = bytearray(content)
    for _ in range(rng.geometric(0.6)):
        DAMAGES[rng.integers(len(DAMAGES))](rng, content)
    return bytes(content)


def make_damaged(kind, rng):
    parts = kind.make(rng)
    k = rng.integers(len(parts))
    parts[k] = damage(rng, parts[k])
    return kind.join(parts)


# --- the command -----------------------------------------------------------------------------------------------------


@dataclass
class Verdict:
    """What came of a file; ``word`` is answered, refused or wrong, ``message`` what was said."""

    word: str
    message: str
    seconds: float = 0.0
    megabytes: float = 0.0


def judge(code, out, err):
    if (
        code == 0
        and re.fullmatch(r"(warning: [^\n]+\n)?", err)
        and re.fullmatch(r"AUC Score: (0\.\d{4}|1\.0000)\n", out)
    ):
        return Verdict("answered", out)
    if code == 2 and out == "" and re.fullmatch(r"exp\.py: error: [^\n]+\n", err):
        return Verdict("refused", err)
    return Verdict("wrong", f"exit {code}, standard output {out[-300:]!r}, standard error {err[-3000:]!r}")


def serve():
    """Run the command for each line of standard input, a list of arguments, and answer with a line of results.

    What libraries write to standard error behind Python's back is caught too.
    """
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (3 * MEGABYTES * 10**6,) * 2)  # lest the machine suffer
    import exp

    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryFile() as behind:
        os.dup2(behind.fileno(), 1)
        os.dup2(behind.fileno(), 2)
        for line in sys.stdin:
            out, err = io.StringIO(), io.StringIO()
            start = time.perf_counter()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    code = exp.main(json.loads(line))
                except BaseException as error:
                    import traceback

                    code = repr(error)
                    traceback.print_exc()
            seconds = time.perf_counter() - start
            behind.seek(0)
            said = behind.read().decode(errors="replace")
            behind.truncate(0)
            result = [code, out.getvalue(), err.getvalue() + said, seconds, peak_megabytes()]
            print(json.dumps(result), file=answers, flush=True)


class Worker:
    """A process that runs the command on one file after the other. If one kills or stops it, it is started anew."""

    def __init__(self, folder):
        self.folder = folder
        self.process = None

    def start(self):
        command = [sys.executable, __file__, "--serve"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=self.folder
        )

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def run(self, arguments):
        """The `Verdict` on the command with these arguments."""
        if self.process is None:
            self.start()
        limit = 2 * SECONDS + 20  # imports, and a busy machine
        watchdog = threading.Timer(limit, self.process.kill)
        watchdog.start()
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        is_late = not watchdog.is_alive()
        watchdog.cancel()
        if not answer:
            code = self.process.wait()
            self.stop()
            return Verdict("wrong", f"no end in {limit} s" if is_late else f"the process died with {code}")
        code, out, err, seconds, megabytes = json.loads(answer)
        verdict = judge(code, out, err)
        verdict.seconds, verdict.megabytes = seconds, megabytes
        if seconds > SECONDS or megabytes > MEGABYTES:
            verdict.word = "wrong"
            verdict.message += f"{seconds:.1f} s, {megabytes:.0f} MB"
            self.stop()
        return verdict


def write_good(folder):
    """The files that some kinds name in their arguments."""
    usable = usable_kinds()
    for file, name in GOOD.items():
        if name not in usable:
            continue
        (folder / file).write_bytes(KINDS[name].join(KINDS[name].make(np.random.default_rng(0))))
    np.save(folder / "good.npy", make_rows(np.random.default_rng(0), LONG)[1])


def examine(names, count, seed, jobs, folder):
    """Yield the name of its kind, the path and the `Verdict` for each of ``count`` damaged files."""
    write_good(folder)
    idle = SimpleQueue()
    for _ in range(jobs):
        idle.put(Worker(folder))

    def run(number):
        name = names[number % len(names)]
        kind = KINDS[name]
        path = folder / f"{re.sub('[^a-z0-9]+', '-', name)}-{seed}-{number}{kind.ending}"
        path.write_bytes(make_damaged(kind, np.random.default_rng([seed, number])))
        worker = idle.get()
        verdict = worker.run(kind.command(path.name))
        idle.put(worker)
        if verdict.word != "wrong":
            path.unlink()
        return name, path, verdict

    try:
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(run, range(count))
    finally:
        while not idle.empty():
            idle.get().stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="words in the names of the kinds to make")
    parser.add_argument("--count", type=int, default=2000, help="files (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the damage (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one for each core)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    verdicts = defaultdict(list)
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    start = time.perf_counter()
    for name, path, verdict in examine(usable_kinds(options.words), options.count, options.seed, options.jobs, folder):
        verdicts[name].append(verdict)
        if verdict.word == "wrong":
            print(f"{path}: {verdict.message}", flush=True)
    print(f"{'kind':32s} files answered refused wrong   slowest   memory")
    everything = [verdict for some in verdicts.values() for verdict in some]
    for name, some in [*verdicts.items(), ("all", everything)]:
        counts = [sum(verdict.word == word for verdict in some) for word in ("answered", "refused", "wrong")]
        slowest, most = max(verdict.seconds for verdict in some), max(verdict.megabytes for verdict in some)
        print("{:32s} {:5d} {:8d} {:7d} {:5d} {:7.1f} s {:5.0f} MB".format(name, len(some), *counts, slowest, most))
    print(f"seed {options.seed}, {time.perf_counter() - start:.0f} s")
    if counts[-1]:
        print(f"the files that went wrong are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
