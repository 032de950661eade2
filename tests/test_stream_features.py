"""Whether a stream is learned from by its columns or by similarities to landmarks."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import call, make_rows
from sklearn.metrics import roc_auc_score

from tenfold import load_model
from tenfold.heads import read_head, whole_files
from tenfold.stream_features import fit_features
from tenfold.streams import learn_stream


@pytest.fixture
def rings(tmp_path):
    """Positives lie on a ring, which no straight line finds."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (8000, 3))
    y = np.where(np.abs(np.hypot(X[:, 0], X[:, 1]) - 0.6) + 0.1 * rng.randn(8000) < 0.08, 1, -1)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    return X, y, [tmp_path / "x.npy", tmp_path / "y.npy"]


def test_landmarks_are_learned_from_where_they_help(rings, tmp_path):
    X, y, files = rings
    code, out, err = call("--stream", *files, "--save", tmp_path / "model.npz")
    assert code == 0 and float(out.split()[-1]) > 0.85 and "similarities to landmarks" in err
    assert roc_auc_score(y, load_model(tmp_path / "model.npz").decision_function(X)) > 0.85
    code, out, err = call("--stream", *files, "--features", "linear")
    assert code == 0 and float(out.split()[-1]) < 0.65 and "similarities" not in err


def test_landmarks_in_parts(rings, monkeypatch):
    _, _, files = rings
    one = learn_stream(files, features="auto")
    monkeypatch.setattr("tenfold.streams.STEPS_OF_A_PART", 40)
    monkeypatch.setattr("tenfold.heads.LEAST_BYTES", 1000)
    parts = learn_stream(files, features="auto", jobs=2)
    assert parts.n_parts > 1 and parts.features == one.features == ["linear", "mixed"]
    assert parts.auc > one.auc - 0.03
    assert parts.ranker.predict_proba(rings[0]).shape == (8000, 2)


def test_long_streams_of_landmarks_are_thinned(rings, monkeypatch):
    monkeypatch.setattr("tenfold.streams.LANDMARK_ROWS", 700)
    result = learn_stream(rings[2])
    assert len(result.features) == 2 and 900 < result.n_learned < 1500 and result.auc > 0.8


def test_columns_are_enough_where_the_score_is_a_straight_line(tmp_path):
    X, y = make_rows(4000, 4, 1000)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    assert learn_stream([tmp_path / "x.npy", tmp_path / "y.npy"]).features == ["linear"]


def test_standard_columns_have_unit_variance_in_all(tmp_path):
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.randn(2000), np.exp(3 * rng.randn(2000)), rng.rand(2000) < 0.01, np.ones(2000)])
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.arange(2000) % 2)
    head = read_head(whole_files([(tmp_path / "x.npy", tmp_path / "y.npy")]), None, 0)
    function = fit_features(head, "linear", {}, 0)
    (linear,) = function.feature_sets.sets.values()
    F = linear.features({"scaled": function.scale(head.data.X)})
    assert F.var(axis=0).sum() == pytest.approx(1, rel=1e-3)
    assert F[:, 0].std() == pytest.approx(F[:, 1].std(), rel=0.5)  # though its range is so much larger
    assert F[:, 2].std() < 0.3 * F[:, 0].std()  # the rarest does not speak the loudest


def test_wide_sparse_streams_stay_sparse_and_linear(tmp_path):
    rng = np.random.RandomState(0)
    X = sp.random_array((600, 3000), density=0.01, format="csr", random_state=rng)
    y = (X[:, :300].sum(axis=1) > X[:, 300:600].sum(axis=1)).astype(int)
    (tmp_path / "a.svm").write_text(
        "".join(
            f"{label} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in zip(row.indices, row.data)) + "\n"
            for label, row in zip(y, (X[[i]] for i in range(600)))
        )
    )
    result = learn_stream([tmp_path / "a.svm"])
    assert result.features == ["linear"] and result.auc > 0.6
    assert sp.issparse(result.ranker.data_.X) and np.isfinite(result.ranker.decision_function(X)).all()
