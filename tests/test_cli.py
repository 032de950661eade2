"""The command as a user meets it: what it prints where, its exit code, and that its number is honest.

Most tests call ``exp.main`` in this process, which is quick; those for which the process matters start one.
"""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.metrics
from conftest import (
    EFFORT,
    FEW,
    QUICK,
    RESULT,
    ROOT,
    call,
    command,
    fold_aucs,
    linux,
    make_rows,
    read_scores,
    refused,
    said_aucs,
    score,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from sklearn.model_selection import StratifiedKFold

import exp
from oam import OnlineAUC
from preprocess import Preprocessor
from tenfold import AUCRanker, ranker
from tenfold.features import FEATURE_SETS

pytestmark = pytest.mark.filterwarnings("error")


# --- what is printed -------------------------------------------------------------------------------------------------


def test_one_line_on_stdout_in_time_and_no_file_written(tmp_path):
    begun = time.monotonic()
    process = command("--budget", 4, cwd=tmp_path)
    out, err = process.communicate()
    assert time.monotonic() - begun < 6
    assert process.returncode == 0 and RESULT.fullmatch(out)
    assert "embedded sample" in err and "Warning" not in err and "over the budget" not in err
    assert list(tmp_path.iterdir()) == []


def test_one_line_on_stdout_and_no_file_written_for_a_file_either(tmp_path, train, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, out, err = call(train, *EFFORT)
    assert code == 0 and RESULT.fullmatch(out)
    assert "Warning" not in err
    assert list(here.iterdir()) == []


# --- the number ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [EFFORT, ["--passes", 1]])
def test_the_number_is_the_mean_auc_over_stratified_folds(train, rows, tmp_path, argv):
    """Of the scores that it writes, against ``roc_auc_score`` on folds made here, in the file's order of rows."""
    X, y = rows
    printed = score(train, *argv, "--folds", 5, "--seed", 3, "--scores", tmp_path / "scores.csv")
    scores = read_scores(tmp_path / "scores.csv")["score"]
    folds = StratifiedKFold(5, shuffle=True, random_state=3).split(X, y)
    aucs = [sklearn.metrics.roc_auc_score(y[test], scores[test]) for _, test in folds]
    assert printed == pytest.approx(np.mean(aucs), abs=6e-5)


@pytest.mark.parametrize("update", ["gradient", "sequential"])
def test_it_learns(save, update):
    X, y = make_rows(200, 5, 40)
    X[:, 0] += 3 * (y > 0)
    assert score(save(x=X, y=y), "--update", update, "--passes", 2) > 0.97


def test_shuffled_labels_give_about_one_half(save):
    X, y = make_rows(300, 5, 100)
    y = np.random.RandomState(1).permutation(y)
    path = save(x=np.random.RandomState(2).randn(*X.shape), y=y)
    assert np.mean([score(path, *FEW, "--seed", seed) for seed in range(3)]) == pytest.approx(0.5, abs=0.08)


def test_the_seed_decides_every_digit(train):
    first = fold_aucs(train, *FEW)
    assert fold_aucs(train, *FEW) == first != fold_aucs(train, *FEW, "--seed", 1)


def test_naming_the_other_class_positive_leaves_the_auc_about_the_same(save):
    X, y = make_rows(200, 5, 50)
    path = save(x=X, y=y)
    assert score(path, "--positive", -1, *FEW) == pytest.approx(score(path, *FEW), abs=0.05)


def test_sparse_rows_work_too(save, rows):
    X, y = rows
    assert score(save(x=sp.csc_matrix(np.where(X > 0.5, X, 0)), y=y), *FEW) > 0.5


@pytest.mark.parametrize("two_files", [False, True])
def test_no_leakage(save, rows, tmp_path, two_files):
    """Other values in some test rows leave the scores of the other test rows as they are, bit for bit."""
    X, y = rows[0][:-1], rows[1][:-1]
    test = np.arange(len(y)) if two_files else next(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))[1]
    changed, same = test[::2], test[1::2]
    scores = []
    for factor in (1, -1000):
        X_changed = X.copy()
        X_changed[changed] *= factor
        tested = save("test.mat", x=X_changed, y=y)
        files = [save(x=X, y=y), tested] if two_files else [tested]
        score(*files, "--folds", 2, *EFFORT, "--scores", tmp_path / "scores.csv", "--force")
        scores.append(read_scores(tmp_path / "scores.csv")["score"])
    np.testing.assert_array_equal(scores[0][same], scores[1][same])
    assert (scores[0][changed] != scores[1][changed]).all()


# --- two files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["te", "tr"])
def test_train_on_one_file_and_test_on_another(save, train, rows, ending):
    X, y = make_rows(seed=1)
    printed = score(train, save("test.mat", f"x_{ending}", f"y_{ending}", x=X, y=y), *EFFORT)
    model = AUCRanker(effort=1 / 16, random_state=0).fit(*rows)
    assert printed == pytest.approx(sklearn.metrics.roc_auc_score(y, model.decision_function(X)), abs=6e-5)


@pytest.mark.parametrize(
    "x, y, message",
    [
        (np.ones((4, 3)), [1, -1, 1, -1], "3 features, expected 4 as in the training file"),
        (np.ones((4, 4)), [1, 1, 1, 1], "test.mat: all labels are of the positive class, expected both"),
        (np.ones((4, 4)), [1, -1, 0, 1], "label 0 is not one of -1 and 1"),
    ],
)
def test_test_files_that_do_not_fit(save, train, x, y, message):
    refused(message, train, save("test.mat", x=x, y=y))


def test_mixed_storage_of_train_and_test(save, train, rows):
    assert score(train, save("test.mat", x=sp.csc_matrix(rows[0]), y=rows[1]), *EFFORT) == score(train, train, *EFFORT)


# --- bad input -------------------------------------------------------------------------------------------------------


X4, Y4 = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    "x, y, message",
    [
        ({"a": 1}, Y4, "x holds a struct, a cell array or objects, expected real numbers"),
        (np.array([[1, "a"]], object), Y4, "x holds a struct, a cell array"),
        ("text", Y4, "x holds text, expected real numbers"),
        (X4 * 1j, Y4, "x holds complex numbers, expected real numbers"),
        (np.ones((4, 2, 2)), Y4, "x has 3 dimensions, expected 2"),
        (X4[:0], Y4[:0], "x is 0 x 2, expected at least one row and one feature"),
        (X4[:, :0], Y4, "x is 4 x 0, expected at least one row and one feature"),
        (X4[:3], Y4, "x has 3 rows and y has 4 labels"),
        (X4.T, Y4, "x has 2 rows and y has 4 labels, expected the same number; x seems to be transposed"),
        (X4, [1, 1, 1, 1], "all 4 labels are 1, expected two classes"),
        (X4, [1, 2, 3, 1], "the labels take 3 values (1, 2, 3), expected two classes"),
        (X4, [1, np.nan, 0, 1], "1 of 4 labels are missing"),
        (X4, [1, 0, 0, 0], "single row, expected at least 2"),
        (np.ones((4, 2)), Y4, "no feature varies"),
        (np.full((4, 2), np.nan), Y4, "no feature varies"),
        (X4[:1, :1], Y4[:1], "all 1 labels are 0"),
    ],
)
def test_unusable_data(save, x, y, message):
    assert len(refused(message, save(x=x, y=y), "-q").splitlines()) == 1


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"hello\n" * 100, "is not a MATLAB file"),
        (b"MATLAB 7.3 MAT-file".ljust(600), "h5py"),
        ("cut", "damaged"),
        ("directory", "is a directory"),
    ],
)
def test_unusable_files(tmp_path, train, monkeypatch, content, message):
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "bad.mat"
    if content == "directory":
        path.mkdir()
    elif content is not None:
        path.write_bytes(train.read_bytes()[:-100] if content == "cut" else content)
    assert len(refused(message, path).splitlines()) == 1


def test_absent_variables_are_named_beside_those_that_are_there(save, rows):
    path = save("odd.mat", "A", "b", x=rows[0], y=rows[1])
    refused("odd.mat holds A, b; expected x_tr (--x-name and --y-name choose other variables)", path)
    assert score(path, "--x-name", "A", "--y-name", "b", *QUICK) == score(save(x=rows[0], y=rows[1]), *QUICK)


@pytest.mark.parametrize(
    "argv",
    [
        ["--folds", "1"],
        ["--folds", "two"],
        ["--seed", "-1"],
        ["--budget", "0"],
        ["--budget", "nan"],
        ["--effort", "0"],
        ["--effort", "-1"],
        ["--effort", "nan"],
        ["--effort", "1/0"],
        ["--effort", "1025"],
        ["--effort", "1/1025"],
        ["--effort", "all"],
        ["--C", "inf"],
        ["--C", "-1"],
        ["--buffer", "0"],
        ["--update", "newton"],
        ["--passes", "0"],
        ["--jobs", "0"],
        ["--seed", "4294967296"],
        ["--C", "1e300"],
        ["--features", "cubic"],
        ["--features", "auto", "--C", "1"],
        ["--features", "auto", "--buffer", "9"],
        ["--passes", "2", "--features", "auto"],
        ["--compare-seconds", "0", "--compare"],
        ["--compare-seconds", "5"],
        ["--cost", "5"],
        ["--cost", "5,1,1"],
        ["--cost", "5,0"],
        ["--cost", "inf,1"],
        ["--cost", "much,little"],
        ["--wat"],
        ["a.mat", "b.mat", "c.mat"],
    ],
)
def test_bad_options_are_refused_in_one_line(argv):
    option = next((arg for arg in argv if arg.startswith("--") and arg != "--features"), "--features")
    assert refused(option if argv[0].startswith("--") else "3 files", *argv).count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["--stream", "x.csv", "--features", "auto", "--C", "1"],
        ["--stream", "x.csv", "--x-name", "a"],
        ["--stream", "x.csv", "--y-name", "a"],
        ["--stream"],
        ["--sample-rows", "50", "x.csv"],
        ["--scheduler", " ", "x.csv"],
        ["--model", "m.npz", "x.mat", "--effort", "1"],
        ["--effort", "1", "--passes", "2"],
        ["--effort", "1", "--update", "gradient"],
        ["--stream", "x.csv", "--model", "m.npz"],
        ["--stream", "x.csv", "--passes", "2"],
        ["--model", "m.npz", "x.mat", "--save", "m.npz"],
        ["--model", "m.npz", "x.mat", "--plots", "figures"],
        ["--model", "m.npz", "x.mat", "--C", "1"],
        ["--model", "m.npz"],
        ["--model", "m.npz", "x.mat", "--page", "page.html"],
        ["--model", "m.npz", "x.mat", "--json", "result.json"],
        ["--model", "m.npz", "x.mat", "--explain"],
        ["--model", "m.npz", "x.mat", "--compare"],
        ["--model", "m.npz", "x.mat", "--features", "linear"],
        ["--model", "m.npz", "x.mat", "--scheduler", "tcp://192.0.2.1:8786"],
        ["a.mat", "b.mat", "--cost", "5,1", "--passes", "2"],
        ["a.mat", "b.mat", "--cost-name", "c", "--C", "1"],
        ["a.mat", "--cost", "5,1", "--cost-name", "c"],
    ],
)
def test_options_that_do_not_go_together(argv):
    assert refused("--", *argv).count("\n") == 1


def test_an_error_ends_the_process_with_code_2_and_one_line(tmp_path):
    process = command("nothing.mat", cwd=tmp_path)
    assert process.communicate() == ("", "exp.py: error: nothing.mat: no such file\n")
    assert process.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n_pos", [2, 3])
def test_fewer_positives_than_folds(save, n_pos):
    X, _ = make_rows()
    code, out, err = call(save(x=X, y=np.arange(60) < n_pos), "--passes", 1)
    assert code == 0 and RESULT.fullmatch(out)
    warning = f"warning: {n_pos} folds instead of 10: one class has only {n_pos} rows\n"
    assert warning in err
    assert call(save(x=X, y=np.arange(60) < n_pos), "--passes", 1, "-q") == (0, out, warning)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c(tmp_path):
    process = command("--passes", 2000, "--budget", 60, cwd=tmp_path)
    assert "embedded sample" in process.stderr.readline()  # so it runs
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err and "Traceback" not in err


# --- what is learned from --------------------------------------------------------------------------------------------


def test_features_are_the_columns_alone_or_weighed_against_similarities(train):
    said = {}
    for features in ("linear", "auto"):
        code, out, err = call(train, "--features", features, *FEW)
        assert code == 0 and RESULT.fullmatch(out)
        shares = re.search(r"^shares in the score: (.*)$", err, re.M)
        said[features] = [] if shares is None else re.findall(r"(\D+?) (\d+)%(?:, )?", shares[1])
    assert said["linear"] == [] and len(said["auto"]) > 1
    assert {words for words, _ in said["auto"]} <= {kind.words for kind in FEATURE_SETS}
    assert sum(int(percent) for _, percent in said["auto"]) == pytest.approx(100, abs=len(said["auto"]))
    assert score(train, *FEW) == float(out.split()[-1])  # auto is the default


@pytest.mark.parametrize("written", ["0.0625", "1/16", "2/32", "6.25e-2"])
def test_an_effort_is_a_number_or_a_fraction(train, written):
    assert fold_aucs(train, "--folds", 3, "--effort", written) == fold_aucs(train, *FEW)


@linux
@pytest.mark.parametrize(
    "argv, parameters, passes",
    [
        (["--C", "1e-3"], {"C": 1e-3}, 1),
        (["--buffer", "7"], {"buffer": 7}, 1),
        (["--update", "sequential", "--buffer", "9"], {"update": "sequential", "buffer": 9}, 1),
        (["--update", "gradient", "--features", "linear"], {}, 1),
        (["--passes", "2", "--C", "0.01", "--seed", "4294967295"], {"C": 0.01}, 2),
    ],
)
def test_options_of_the_published_algorithm_run_it(train, rows, tmp_path, monkeypatch, argv, parameters, passes):
    """Against `OnlineAUC` on the same rows in the same order, whatever the size of the pieces they come in."""
    monkeypatch.setattr(ranker, "CHUNK", 16)
    X, y = rows
    seed = int(argv[-1]) if "--seed" in argv else 0
    score(train, *argv, "--folds", 3, "--scores", tmp_path / "scores.csv")
    scores = read_scores(tmp_path / "scores.csv")["score"]
    for rows_in, rows_out in StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y):
        preprocessor = Preprocessor().fit(X[rows_in])
        rng = np.random.RandomState(seed)
        model = OnlineAUC(random_state=rng, **parameters)
        for _ in range(passes):
            order = rng.permutation(rows_in)
            model.partial_fit(preprocessor.transform(X[order]), y[order])
        expected = model.decision_function(preprocessor.transform(X[rows_out]))
        np.testing.assert_allclose(scores[rows_out], expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())


def test_a_budget_that_is_too_short_cuts_the_published_algorithm_and_no_fold(train):
    begun = time.monotonic()
    code, out, err = call(train, "--passes", 10**6, "--budget", 1)
    assert code == 0 and RESULT.fullmatch(out) and time.monotonic() - begun < 3
    assert len(said_aucs(err).split()) == 10 and "effort" not in err
    assert re.search(
        r"^warning: time ran out, learning stopped at \d\d?% of the plan; --budget 3 gives more$", err, re.M
    )


def test_what_only_some_options_need_is_not_imported_without_them(train):
    """Matplotlib, h5py and Dask take long to import, and not everybody has them."""
    program = "import sys, exp; exp.main(sys.argv[1:]); print(*{'matplotlib', 'h5py', 'distributed'} & {*sys.modules})"
    argv = [sys.executable, "-c", program, str(train), "-q", *map(str, QUICK)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    assert re.fullmatch(r"AUC Score: \S+\n\n", done.stdout), done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["--folds", "1"]])
def test_what_needs_no_learning_needs_no_imports(argv):
    """So help, and what is wrong with the options, are there at once."""
    program = f"""
import sys, exp
try:
    exp.main({argv})
except SystemExit:
    others = [name for name in ("numpy", "scipy", "sklearn", "oam", "preprocess") if name in sys.modules]
    ours = [name for name in sys.modules if name.startswith("tenfold.") and name != "tenfold.options"]
    sys.exit(str(others + ours))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == "[]"


# --- where the output goes -------------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")


def shell(line, *argv):
    """Run a line of shell in which "$@" is the command."""
    arguments = [sys.executable, str(ROOT / "exp.py"), *map(str, argv)]
    return subprocess.run(["sh", "-c", line, "sh", *arguments], capture_output=True, text=True)


@posix
def test_without_standard_error_the_result_is_printed_all_the_same(train):
    done = shell('"$@" 2>&- <&-', train, *QUICK)
    assert (done.returncode, done.stderr) == (0, "") and RESULT.fullmatch(done.stdout)


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_result_that_cannot_be_written_is_one_line_of_error(train):
    done = shell('"$@" >/dev/full', train, *QUICK, "-q")
    assert done.returncode == 2
    assert re.fullmatch(r"exp\.py: error: cannot write the result: .+\n", done.stderr)


@posix
@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_what_is_written_to_a_pipe_comes_through(train):
    done = shell('"$@" | cat', train, *QUICK, "-q", "--scores", "/dev/stdout")
    result, header, *lines = done.stdout.splitlines()
    assert (done.stderr, header, len(lines)) == ("", "row,score", 60) and RESULT.fullmatch(result + "\n")


@posix
def test_a_reader_that_has_gone_is_no_traceback(train):
    done = shell('"$@" | true', train, *QUICK, "-q")
    assert re.fullmatch(r"(exp\.py: error: cannot write the result: .+\n)?", done.stderr)


@pytest.mark.parametrize(
    "error, message",
    [
        (BrokenProcessPool("no more"), "a worker process was killed"),
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device"), "cannot write the result: No space left on device"),
    ],
)
def test_what_goes_wrong_around_the_run_is_one_line_too(train, monkeypatch, error, message):
    def fail(options, terminal, reports):
        raise error

    monkeypatch.setattr(sys, "stdout", sys.stdout)  # which is restored after the test
    monkeypatch.setattr(exp, "cross_validate", fail)
    assert len(refused(message, train).splitlines()) == 1


# --- anything else ---------------------------------------------------------------------------------------------------

TYPES = st.sampled_from(["float64", "float32", "uint8", "int8", "int64", "uint64", "bool", "complex128"])
LABELS = st.sampled_from([[-1, 1], [0.5, 1.5], [True, False], ["a", "b"], [1, 2, 3], [1, np.nan], [0, np.inf]])
SHAPES = st.tuples(st.integers(4, 12), st.integers(1, 3)) | hnp.array_shapes(min_dims=1, max_dims=3, min_side=0)


@st.composite
def odd_data(draw):
    """Small arrays of any type and shape, with NaN, infinite and huge cells, and labels that often fit them."""
    X = draw(hnp.arrays(draw(TYPES), draw(SHAPES), fill=st.nothing()))
    y = np.resize(draw(LABELS), draw(st.just(len(X)) | st.integers(0, 9)))
    return X, y[:, None] if draw(st.booleans()) else y, draw(st.booleans())


@settings(max_examples=70, deadline=None, derandomize=True)
@given(odd_data(), st.sampled_from(["mat", "npz", "csv"]), st.sampled_from(["published", "auto", "linear"]))
@example((np.array([[1e308], [-1e308], [1e308], [0]]), np.array([0, 1, 0, 1]), False), "mat", "published")
@example((np.array([[1e39, 0], [0, 1], [0, 2], [0, 3]]), np.array([0, 0, 1, 1]), False), "mat", "published")
@example((np.arange(12)[:, None] % 2, np.arange(12) % 4 == 0, False), "mat", "auto")
def test_any_file_gives_an_auc_or_one_line_of_error(tmp_path_factory, data, ending, learner):
    X, y, sparse = data
    path = tmp_path_factory.getbasetemp() / f"any.{ending}"
    if ending == "csv":
        cells = X.reshape(len(X), int(np.prod(X.shape[1:]))).astype(str).tolist()
        lines = [[*row, str(label)] for row, label in zip(cells, y.ravel())]
        path.write_text("\n".join(map(",".join, lines)), encoding="utf-8")
    elif ending == "npz":
        np.savez(path, x_tr=X, y_tr=y)
    else:
        savemat(path, {"x_tr": sp.csc_matrix(X) if sparse and X.ndim == 2 else X, "y_tr": y})
    options = QUICK if learner == "published" else [*FEW, "--folds", 2, "--features", learner]
    code, out, err = call(path, "-q", *options)
    if code == 0:
        assert RESULT.fullmatch(out) and err == ""
    else:
        assert (code, out) == (2, "") and re.fullmatch(r"exp\.py: error: .*any.*\n|exp\.py: error: .*expected.*\n", err)


def test_a_wide_sparse_file_of_zeros(save):
    refused("no feature varies", save(x=sp.csc_matrix((40, 3000)), y=np.arange(40) % 2))
