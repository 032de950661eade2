"""What the scripts beside this one share. Importing it puts the modules of the folder above within reach."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def read(path):
    """The raw rows of a data file, and +1 for each row of its rarer class, -1 for each of the other."""
    from preprocess import InputError, find_classes, signs
    from tenfold import load

    try:
        data = load(path)
        return data.X, signs(data.y, find_classes(data.y))
    except InputError as error:
        sys.exit(f"error: {error}")


def fold_aucs(path, ranker, n_folds, seed=0):
    """The AUC of a ranker on each of the first of the command's ten folds of a file, not cut by the clock."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    X, y = read(path)
    folds = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))[:n_folds]
    fitted = ((clone(ranker).set_params(random_state=seed).fit(X, y, rows=train), test) for train, test in folds)
    return np.array([roc_auc_score(y[test], model.decision_function(X[test])) for model, test in fitted])


# Run in a process of its own: the greatest memory of children is that of all so far.
MEASURE = """
import subprocess, sys, time
begun = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.perf_counter() - begun
try:
    import resource
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
except ImportError:
    megabytes = 0.0
sys.stdout.write(done.stdout)
sys.stderr.write(f"{done.stderr}\\n{seconds} {megabytes}")
sys.exit(done.returncode)
"""


def measure(*argv, root=ROOT, before=None):
    """What came of the command with these arguments, its seconds, and the memory, in MB, of its largest process.

    ``before`` is called in the process that starts it.
    """
    command = [sys.executable, "-c", MEASURE, sys.executable, root / "exp.py", *map(str, argv)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=before)
    done.stderr, _, measured = done.stderr.rpartition("\n")
    seconds, megabytes = map(float, measured.split())
    return done, seconds, megabytes


def run_exp(*argv, root=ROOT):
    """The AUC that the command prints with these arguments, and its seconds and memory as of `measure`."""
    done, seconds, megabytes = measure(*argv, "-q", root=root)
    score = re.fullmatch(r"AUC Score: (\d\.\d{4})\n", done.stdout)
    if not score:
        sys.exit(done.stderr.strip() or f"exp.py printed {done.stdout!r}, expected one score")
    return float(score[1]), seconds, megabytes


def peak_megabytes():
    """The greatest memory of this process so far, 0 where the platform does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
