"""Learning online from every row of a stream: what is held out, what is learned, and that nobody's share matters."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import RESULT, call, make_rows, refused, score
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from stream_files import KINDS, Here, write_parts, write_stream

from oam import PairLearner, Reservoir
from preprocess import Preprocessor
from tenfold import AUCRanker, load_model, online
from tenfold.metrics import _shares_of_pairs
from tenfold.online import Part, Scaling, learn_online, make_learner, merge, plan_parts
from tenfold.pieces import find_pieces
from tenfold.ranker import PublishedRanker
from tenfold.readers import load
from tenfold.streams import Kept

pytestmark = pytest.mark.filterwarnings("error")

LINEAR = ("--features", "linear")


@pytest.fixture
def big():
    X, y = make_rows(6000, 4, 600, seed=3)
    return X.round(3), y


@pytest.fixture
def many_parts(monkeypatch):
    """A stream of few rows is learned from in several parts and rounds."""
    monkeypatch.setattr(online, "STEPS_OF_A_PART", 3)
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 2000)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 4000)


def sparse_rows(n, d=2500, seed=0):
    """Rows of some thirty words, most of which are rare, and labels, of which a fifth are 1, that follow from them."""
    rng = np.random.RandomState(seed)
    frequency = np.minimum(5 / np.arange(1, d + 1), 0.5)
    X = sp.csr_array(rng.rand(n, d) < frequency).astype(float)
    margin = X @ np.random.RandomState(99).randn(d)
    return X, (margin + 2 * rng.logistic(size=n) > np.quantile(margin, 0.85)).astype(int)


def compare_aucs(y, scores, others):
    """By how much the AUC of ``others`` is above that of ``scores``, and the standard error of it (DeLong 1988)."""
    differences = [b - a for a, b in zip(_shares_of_pairs(y, scores), _shares_of_pairs(y, others))]
    return differences[0].mean(), np.sqrt(sum(part.var(ddof=1) / len(part) for part in differences))


def test_held_out_rows_are_neither_learned_from_nor_scaled_by(big, tmp_path, many_parts, monkeypatch):
    """Each row carries its number in a column; what is learned from and what is tested on share none."""
    X, y = big
    files = write_stream("npy", np.column_stack([X, np.arange(6000)]), y, tmp_path)
    number, seen = {}, {"scaled": set(), "learned": set(), "sampled": set(), "held": set()}
    features, fit, learn, add = Scaling.features, Preprocessor.fit, PairLearner.learn, Kept.add

    def spy_features(scaling, X):
        F = features(scaling, X)
        number.update({row.tobytes(): int(n) for row, n in zip(F, X[:, -1])})
        return F

    def spy_learn(self, F, y):
        seen["learned"] |= {number[row.tobytes()] for row in F}
        learn(self, F, y)

    def spy_add(self, numbers, places, F):
        seen["held"] |= {number[row.tobytes()] for row in F}
        add(self, numbers, places, F)

    monkeypatch.setattr(Scaling, "features", spy_features)
    monkeypatch.setattr(
        Preprocessor, "fit", lambda self, X: seen["scaled"].update(X[:, -1].astype(int)) or fit(self, X)
    )
    monkeypatch.setattr(PairLearner, "learn", spy_learn)
    monkeypatch.setattr(Kept, "add", spy_add)
    result, _ = learn_online(files, Here())
    assert len(seen["scaled"]) > 500 and seen["scaled"] <= seen["learned"]
    assert not seen["learned"] & seen["held"] and seen["learned"] | seen["held"] == set(range(6000))
    assert (result.n_rows, result.n_learned) == (6000, len(seen["learned"]))
    for sign, share in ((1, 0.3), (-1, 0.1)):  # of the rarer class more, but not half
        held, n = len(seen["held"] & set(np.flatnonzero(y == sign))), (y == sign).sum()
        assert held == pytest.approx(share * n, abs=5 * np.sqrt(share * n))
    assert sum(result.to_choose) + sum(result.to_test) == len(seen["held"])


@pytest.mark.parametrize("kind", KINDS)
def test_streams_of_every_kind_are_learned_from(big, tmp_path, kind):
    X, y = big
    code, out, err = call("--stream", *write_stream(kind, X, y, tmp_path), *LINEAR)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) > 0.88  # the best is 0.92
    assert re.search(r"^6,000 rows in [\d.]+ s; learned online from 5,\d{3} of them, row by row$", err, re.M)
    assert re.search(r"^C chosen among \d+ values by \d+ positive and \d+ negative rows held out$", err, re.M)
    said = (
        r"^AUC 0\.\d{4} \+/- 0\.\d{4} \(standard error\), on \d+ positive and \d+ negative rows held out of the stream$"
    )
    assert re.search(said, err, re.M)


@pytest.mark.parametrize("kind", ["npy", "csv", "csv.gz", "svm", "parquet"])
def test_the_digits_are_the_same_for_any_number_of_jobs_and_any_order(big, tmp_path, many_parts, kind):
    folder = write_parts(kind, *big, tmp_path / "days")
    one, *others = (
        call("--stream", *names, *LINEAR, "--jobs", jobs)
        for names, jobs in (([folder], 1), ([folder], 3), (sorted(folder.iterdir(), reverse=True), 2))
    )
    assert one[0] == 0 and float(RESULT.fullmatch(one[1])[1]) > 0.85
    for other in others:
        assert other[1] == one[1]
        assert re.sub(r" in [\d.]+ s", "", other[2]) == re.sub(r" in [\d.]+ s", "", one[2])


def test_sparse_rows_rank_as_with_logistic_regression(tmp_path):
    """On rows that neither has seen, those of the stream are learned from once."""
    X, y = sparse_rows(6000)
    new, y_new = sparse_rows(4000, seed=1)
    (path,), model = write_stream("svm", X, y, tmp_path), tmp_path / "model.npz"
    code, out, err = call("--stream", path, "--save", model)
    assert code == 0 and "row by row" in err  # without --features linear
    scores = load_model(model).decision_function(new)
    usual = max(
        (LogisticRegression(C=C, max_iter=500).fit(X, y).decision_function(new) for C in (0.01, 0.1, 1)),
        key=lambda scores: roc_auc_score(y_new, scores),
    )
    lead, error = compare_aucs(np.where(y_new > 0, 1, -1), usual, scores)
    assert roc_auc_score(y_new, usual) > 0.8 and lead > -0.02 - 3 * error, (lead, error)
    error = float(re.search(r"AUC 0.\d+ \+/- ([\d.]+)", err)[1])
    assert abs(float(out.split()[-1]) - roc_auc_score(y_new, scores)) < 4 * error < 0.12


@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "magic04"])
def test_parts_merged_rank_as_one_pass_does(assignment, tmp_path, monkeypatch, name):
    """Sixteen pieces, two parts at a time in eight rounds, against one part, on rows that are in none of them."""
    path = assignment.parent / f"{name}.mat"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    data = load(path)
    X, y = data.X, np.where(data.y.ravel() > 0, 1, -1)
    test, *files = np.array_split(np.random.RandomState(0).permutation(len(y)), 17)
    for i, rows in enumerate(files):
        write_stream("npy", X[rows].toarray() if sp.issparse(X) else X[rows], y[rows], tmp_path, f"{i:02}")
    monkeypatch.setattr(online, "ROUNDS", 99)
    one, _ = learn_online([tmp_path], Here(), settings=None)
    for constant, value in {"STEPS_OF_A_PART": 1, "MOST_PARTS": 2, "ROUNDS": 8}.items():
        monkeypatch.setattr(online, constant, value)
    merged, _ = learn_online([tmp_path], Here())
    assert merged.to_test == one.to_test
    lead, error = compare_aucs(y[test], *(result.ranker.decision_function(X[test]) for result in (one, merged)))
    assert lead > -0.002 - 2 * error, (lead, error)


# --- what comes of it ------------------------------------------------------------------------------------------------

GIVEN = [None, {"C": 1e-7, "buffer": 50}, {"buffer": 50}, {"update": "sequential", "C": 1e-5, "buffer": 10}]


@pytest.mark.parametrize("settings", GIVEN)
def test_a_stream_ends_in_a_ranker_and_what_its_auc_rests_on(big, tmp_path, many_parts, settings):
    X, y = big
    reports, paths = [], write_stream("csv", X, y, tmp_path)
    how = {"seed": 2, "settings": settings}
    result, notes = learn_online(paths, Here(), **how, report=lambda *report: reports.append(report))
    assert isinstance(result.ranker, PublishedRanker if settings else AUCRanker) and result.auc > 0.85
    assert result.n_rows == 6000 and notes == [f"{paths[0]}: the label is 'label'"]
    assert result.n_choices == (1 if settings and "C" in settings else len(online.STEP_SIZES))
    assert [n for n, _ in reports] == sorted(n for n, _ in reports) and reports[-1] == (6000, pytest.approx(1))
    if settings:
        expected = {
            "C": result.ranker.C,
            "passes": 1,
            "buffer": 500,
            "update": "gradient",
            "random_state": 2,
            "categories": None,
        }
        assert result.ranker.get_params() == {**expected, **settings}
    assert abs(roc_auc_score(y, result.ranker.decision_function(X)) - result.auc) < 5 * result.error
    result.ranker.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.decision_function(X), result.ranker.decision_function(X))
    assert [column["name"] for column in loaded.data_.csv["columns"]] == ["a", "b", "c", "d"]
    assert loaded.score_function_.is_calibrated == (not settings)
    assert learn_online(paths, Here(), **how)[0].auc == result.auc
    assert learn_online(paths, Here(), **{**how, "seed": 3})[0].auc != result.auc


@pytest.mark.parametrize("how", [("--C", "1e-7", "--buffer", 50), ("--update", "sequential", "--C", "1e-6"), LINEAR])
def test_the_command_saves_a_model_that_scores(big, tmp_path, how):
    files, model = write_stream("csv", *big, tmp_path), tmp_path / "model.npz"
    code, out, err = call("--stream", *files, *how, "--save", model)
    assert code == 0 and re.search(r"the model, learned from 5\d{3} rows, is in", err)
    assert ("C chosen" in err) == (how == LINEAR)
    assert score("--model", model, *files) == pytest.approx(float(out.split()[-1]), abs=0.04)


def test_probabilities_of_a_stream_add_up_to_its_positives(big, tmp_path):
    X, y = big
    result, _ = learn_online(write_stream("npy", X, y, tmp_path), Here())
    assert result.ranker.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=0.03)


def test_the_positive_class_and_the_label_column_can_be_named(big, tmp_path):
    X, y = big
    lines = (f"{'yes' if label > 0 else 'no'},{a},{b}\n" for (a, b, *_), label in zip(X, y))
    (tmp_path / "rows.csv").write_text("sick,a,b\n" + "".join(lines))
    for positive, classes in ((None, ["no", "yes"]), ("no", ["yes", "no"])):
        result, _ = learn_online([tmp_path / "rows.csv"], Here(), label="sick", positive=positive)
        assert result.ranker.classes_.tolist() == classes and result.auc > 0.8


@pytest.mark.parametrize("first", [1, -1])
def test_sorted_labels_give_an_auc_of_all_rows(big, tmp_path, many_parts, first):
    """All positives in one part, at the end or at the beginning: the AUC is that of the model on all rows."""
    X, y = big
    order = np.argsort(-first * y, kind="stable")
    result, _ = learn_online(write_stream("npy", X[order], y[order], tmp_path), Here())
    assert result.n_rows == 6000 and result.auc > 0.88
    assert abs(result.auc - roc_auc_score(y, result.ranker.decision_function(X))) < 5 * result.error


def test_parts_without_rows_take_nothing_back(big, tmp_path, monkeypatch):
    """Not even where all parts of a round are without rows, the last one."""
    monkeypatch.setattr(online, "STEPS_OF_A_PART", 3)
    folder = write_parts("csv", *big, tmp_path / "days", 14)
    for name in ("day-29.csv", "day-99.csv"):  # the eighth and the sixteenth
        (folder / name).write_text("a,b,c,d,label\n")
    assert score("--stream", folder, *LINEAR) > 0.85


def test_what_cannot_be_learned_from(tmp_path, big):
    (tmp_path / "few.csv").write_text("1,0\n2,1\n" + 9 * "3,0\n")
    (tmp_path / "ones.csv").write_text(50 * "1,1\n")
    X, y = big
    files = write_stream("npy", X, y, tmp_path)
    for message, *argv in [
        ("the rows held out of 11 lack a class", tmp_path / "few.csv", *LINEAR),
        ("all 50 labels of the stream are 1, expected two classes", tmp_path / "ones.csv", *LINEAR),
        ("expected no option that needs folds", *files, *LINEAR, "--explain"),
        ("expected no option that needs folds", *files, "--C", "1e-7", "--cost", "9,1"),
        ("expected no option that needs folds", *files, "--buffer", 20, "--sample-rows", 100),
    ]:
        assert refused(message, "--stream", *argv, "-q").count("\n") == 1


def test_few_rows_to_test_on_are_warned_of(tmp_path):
    X, y = make_rows(2000, 3, 40)
    code, _, err = call("--stream", *write_stream("npy", X, y, tmp_path), *LINEAR, "-q")
    assert code == 0
    assert re.fullmatch(r"warning: the AUC rests on \d+ positive and \d+ negative rows only, expected 30 .*\n", err)


def test_which_streams_are_learned_from_row_by_row(tmp_path, big):
    """Sparse ones, unless something needs folds; dense ones are sampled, and sparse ones of few columns."""
    X, y = sparse_rows(400)
    (wide,) = write_stream("svm", X, y, tmp_path, "wide")
    (narrow,) = write_stream("svm", *big, tmp_path, "narrow")
    short = ("--folds", 2, "--effort", "1/16")
    assert "row by row" in call("--stream", wide)[2]
    assert "of them are used" in call("--stream", wide, *short)[2]
    assert "of them are used" in call("--stream", narrow, *short)[2]


# --- parts -----------------------------------------------------------------------------------------------------------


def test_parts_and_rounds_follow_from_the_stream(big, tmp_path, many_parts):
    found, _ = find_pieces(write_stream("npy", *big, tmp_path))
    block, rounds = plan_parts(found, 6000)
    assert block == 64 and len(rounds) == online.ROUNDS
    assert sorted((piece for parts in rounds for part in parts for piece in part), key=found.index) == found
    assert max(map(len, rounds)) == 3 and all(part for parts in rounds for part in parts)
    starts = [[part[0].start for part in parts] for parts in rounds]
    assert all(each[-1] > 3000 for each in starts)  # each round goes through all of the stream
    assert plan_parts(found[:1], 6000) == (64, [[found[:1]]])
    block, rounds = plan_parts(found, 10**8)
    assert block == 512 and max(map(len, rounds)) <= online.MOST_PARTS


def test_step_sizes_shrink_with_the_pairs_and_grow_with_the_parts(big):
    X, _ = big
    scaling, held = Scaling.fit(X, {}), {1: 0.0, -1: 0.0}

    def C(n, n_parts, **settings):
        return make_learner(scaling, X, {1: n, -1: 9 * n}, held, 64, n_parts, settings, 0)

    short, long = C(100, 4).C, C(30_000, 4).C
    assert sorted(short) == list(short) and len(short) > 3
    np.testing.assert_allclose(short / long, 300**2, rtol=1e-5)
    np.testing.assert_allclose(short, 2 * C(100, 1).C, rtol=1e-6)
    one = C(100, 1, C=0.5, update="sequential")
    assert (one.C.tolist(), one.update, one.block) == ([0.5], "sequential", 1)


def test_a_merged_learner_counts_what_was_before_once(rng):
    """Parts go on from one learner: rows seen add up, and weights are a mean by rows that were new."""

    def learner(n_pos, n_neg, w):
        found = PairLearner(1, [1.0], 10, "gradient", 4, np.float32, rng)
        for name, n in (("P", n_pos), ("N", n_neg)):
            reservoir = Reservoir(10)
            reservoir.add(np.zeros((n, 1), np.float32), None, np.arange(n), reservoir.slots(rng.random_sample(n)))
            setattr(found, name, reservoir)
        found.W[:], found.W_mean[:] = w, 2 * w
        return found

    def part(n_pos, n_neg, w):
        return Part(learner(n_pos, n_neg, w), {}, n_pos + n_neg, n_pos + n_neg)

    base = learner(30, 70, 9)
    merged = merge(base, [part(10, 20, 1), part(20, 70, 2), part(0, 0, 9)], rng)
    assert (merged.P.seen, merged.N.seen, len(merged.P)) == (60, 160, 10)
    assert merged.W[0, 0] == pytest.approx((30 * 1 + 90 * 2) / 120) and merged.W_mean[0, 0] == 2 * merged.W[0, 0]
    assert merge(base, [part(0, 0, 9)], rng) is base
