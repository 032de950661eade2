"""One table written as CSV in every way that people have it: what the command says about each file, and the AUC.

    python bench/files.py
    python bench/files.py --rows 2000 --keep DIR

The table has numbers, amounts, shares, categories of text, dates and missing cells. The AUC of each file must be that
of the clean file; the exit code is 1 if one is not. What is said about the clean file is not repeated.
"""

import argparse
import contextlib
import gzip
import io
import sys
import tempfile
from pathlib import Path

import common  # noqa: F401  (it puts the modules of the folder above within reach)
import numpy as np
import pandas as pd

import exp

SETTINGS = ["--features", "linear", "--folds", "5", "--budget", "100"]  # in so much time, no machine is too slow
EMPTY = ["None", "-", "#N/A", "<NA>", "?", "n/a", "NULL", ""]


def make_table(n):
    """The clean table. Positives are older, pay more, are more often blue, and came later."""
    rng = np.random.RandomState(0)
    sick = rng.rand(n) < 0.2
    colour = np.where(rng.rand(n) < 0.3 + 0.3 * sick, "light blue", np.array(["red", "grün"])[rng.randint(0, 2, n)])
    table = pd.DataFrame(
        {
            "age": (rng.normal(50, 12, n) + 6 * sick).round(1),
            "amount": (1000 * rng.gamma(2, 2, n) * (1 + sick)).round(),
            "share": rng.randint(0, 101, n).astype(float),
            "member": (rng.rand(n) < 0.5 + 0.2 * sick).astype(float),
            "colour": colour,
            "visit": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.randint(0, 300, n) + 60 * sick, "D"),
            "sick": np.where(sick, "yes", "no"),
        }
    )
    for name in ("age", "amount", "colour", "visit"):
        table.loc[rng.rand(n) < 0.05, name] = None
    return table


def text(table, columns=None, **how):
    """The table as CSV text; ``columns`` are written anew, each by a function of its filled cells."""
    table = table.copy()
    for name, form in (columns or {}).items():
        table[name] = table[name].map(form, na_action="ignore").astype(object)
    return table.to_csv(**{"index": False, "float_format": "%g"} | how)


def in_words(table, empty):
    """The table as text, in which missing cells are written in different ways."""
    cells = [line.split(",") for line in text(table).splitlines()]
    gaps = (empty[i % len(empty)] for i in range(10**9))
    return "".join(",".join(cell or next(gaps) for cell in line) + "\n" for line in cells)


def strange_ages(table):
    """The table as text, with notes in four of the cells that are missing."""
    ages = table["age"].astype(object)
    ages[np.flatnonzero(ages.isna())[:4]] = ["see note", "?", "broken", "see note"]
    return text(table.assign(age=ages))


def files(table):
    """What kind of file it is, how its name ends, what is in it, and the options that it needs."""
    clean, n = text(table), len(table)
    semicolon = text(table, sep=";", decimal=",")
    german = table.assign(visit=table["visit"].dt.strftime("%d.%m.%Y"))
    moved = table[["sick", *table.columns[:-1]]]
    numbers = text(table.set_axis([str(j) for j in range(table.shape[1])], axis=1))
    noted = table.assign(remark=[f"remark {i} of many" for i in range(n)])[["remark", *table.columns]]
    as_written = {"amount": "${:,.0f}".format, "share": "{:.0f} %".format}
    yield "clean", ".csv", clean
    yield "semicolons", ".csv", text(table, sep=";")
    yield "tabs", ".csv", text(table, sep="\t")
    yield "bars", ".csv", text(table, sep="|")
    yield "another separator, `--sep`", ".csv", text(table, sep="~"), "--sep", "~"
    yield "semicolons, decimal comma", ".csv", semicolon
    yield "decimal comma in quotes", ".csv", text(table, decimal=",")
    yield "a .tsv file", ".tsv", text(table, sep="\t")
    yield "UTF-16", ".csv", clean.encode("utf-16")
    yield "latin-1, `--encoding`", ".csv", clean.encode("latin-1"), "--encoding", "latin-1"
    yield "byte order mark", ".csv", clean.encode("utf-8-sig")
    yield "comment lines", ".csv", f"# from the clinic\n# {n} rows\n\n{clean}"
    yield "a comma at the end of lines", ".csv", clean.replace("\n", ",\n")
    yield "line ends of Windows", ".csv", clean.replace("\n", "\r\n")
    yield "line ends of old Macs", ".csv", clean.replace("\n", "\r")
    yield "line breaks in quotes", ".csv", clean.replace("light blue", '"light\nblue"')
    yield "packed", ".csv.gz", gzip.compress(clean.encode())
    yield "Excel's first line", ".csv", "sep=;\n" + semicolon
    yield "index of pandas", ".csv", text(table, index=True)
    yield "row names of R", ".csv", text(table.set_axis(range(1, n + 1)), index=True, quoting=2)
    yield "index of shuffled rows", ".csv", text(table.set_axis(np.random.RandomState(1).permutation(n)), index=True)
    yield "names are numbers", ".csv", numbers
    yield "no header", ".csv", clean.partition("\n")[2]
    yield "1,234 and $5 and 12 %", ".csv", text(table, as_written)
    yield "missing in many words", ".csv", in_words(table, EMPTY)
    yield "True and False", ".csv", text(table, {"member": lambda x: str(x == 1)})
    yield "dates as 31.12.2025", ".csv", text(german)
    yield "notes among numbers", ".csv", strange_ages(table)
    yield "free text", ".csv", text(noted)
    yield "the label first, `outcome`", ".csv", text(moved.rename(columns={"sick": "outcome"}))
    yield "the label first, `--label`", ".csv", text(moved), "--label", "sick"


def run(*argv):
    """The AUC that the command prints, or its exit code, and the lines on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exp.main([str(arg) for arg in argv])
    return (out.getvalue().split()[-1] if code == 0 else f"exit {code}"), err.getvalue().splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600, metavar="N", help="rows of the table (default: 600)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the files there (default: they are deleted)")
    options = parser.parse_args()
    known, aucs = set(), []
    print("| file | what is said | AUC | as of the clean file |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for i, (kind, ending, content, *needed) in enumerate(files(make_table(options.rows))):
            path = folder / f"{i:02}{ending}"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            auc, said = run(path, *SETTINGS, *needed)
            notes = [line.removeprefix(f"{path}: ") for line in said if str(path) in line and " rows x " not in line]
            new = [note.replace("|", "\\|") for note in notes if note not in known]
            known |= set(notes) if i == 0 else set()
            aucs.append(auc)
            print(f"| {kind} | {'; '.join(new)} | {auc} | {'yes' if auc == aucs[0] else 'NO'} |", flush=True)
    return int(len(set(aucs)) > 1)


if __name__ == "__main__":
    sys.exit(main())
