"""Parquet files: columns of every kind, row groups, and what cannot be read."""

import datetime
import decimal
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import FEW, QUICK, call, refused, score

from preprocess import InputError
from tenfold.readers import length, load, stream

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table():
    """Columns of all kinds that can be used; the label depends on two of them."""
    rng, n = np.random.RandomState(0), 600
    number, colour = rng.randn(n), rng.choice(["red", "blue", "green"], n)
    return pd.DataFrame(
        {
            "number": number,
            "small": rng.randint(0, 9, n).astype(np.int16),
            "flag": rng.rand(n) > 0.5,
            "colour": pd.Categorical(colour),
            "text": rng.choice(["u", "v", None], n),
            "day": pd.date_range("2020-01-01 06:00", periods=n, freq="7h"),
            "half": rng.randn(n).astype(np.float16),
            "price": [decimal.Decimal("1.25") * int(i) for i in rng.randint(0, 50, n)],
            "nothing": [None] * n,
            "maybe": pd.array(rng.choice([1, 2, None], n), dtype="Int64"),
            "sick": np.where(number + (colour == "red") + 0.5 * rng.randn(n) > 1, "yes", "no"),
        }
    )


def test_a_table_is_read_as_its_text_is(table, tmp_path):
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    csv, parquet = (load(tmp_path / f"a.{kind}", label="sick") for kind in ("csv", "parquet"))
    np.testing.assert_allclose(parquet.X, csv.X, atol=1e-3)  # half a number has few digits
    assert parquet.y.tolist() == csv.y.tolist() and parquet.csv == csv.csv
    assert parquet.categories == {3: ["blue", "green", "red"], 4: ["u", "v"]}
    assert [note.split(": ", 1)[1] for note in parquet.notes] == [note.split(": ", 1)[1] for note in csv.notes]
    assert score(tmp_path / "a.parquet", *QUICK) == pytest.approx(score(tmp_path / "a.csv", *QUICK), abs=0.01)


def test_row_groups_are_read_some_at_a_time(table, tmp_path, monkeypatch):
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1)
    table.index = np.random.RandomState(0).permutation(len(table))  # which pandas writes too
    path = tmp_path / "a.pq"
    table.to_parquet(path, row_group_size=100)
    whole = load(path)
    assert length([path]) == 6 and whole.X.shape == (600, 14)  # a day is five columns
    like = next(stream([path]))[0]
    for cuts in ([0, 6], [0, 1, 6], [0, 2, 2, 5, 6]):
        parts = [data for a, b in pairwise(cuts) for data, _ in stream([path], a, b, like=like)]
        np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), whole.X)
        assert np.concatenate([part.y for part in parts]).tolist() == whole.y.tolist()


def test_a_model_scores_a_table_whose_columns_are_in_another_order_and_without_labels(table, tmp_path):
    table = table.drop(columns="half")  # text has fewer of its digits
    table.to_parquet(tmp_path / "a.parquet")
    other = table[table.columns[::-1]].drop(columns="sick").assign(more=1.0)
    other.to_parquet(tmp_path / "b.parquet")
    other.to_csv(tmp_path / "b.csv", index=False)
    assert call(tmp_path / "a.parquet", *FEW, "--save", tmp_path / "m.npz")[0] == 0
    for kind in ("parquet", "csv"):
        argv = "--model", tmp_path / "m.npz", tmp_path / f"b.{kind}", "--scores", tmp_path / f"{kind}.out"
        code, _, err = call(*argv)
        assert code == 0 and "not in the training file, and ignored: more" in err
    columns = [pd.read_csv(tmp_path / f"{kind}.out")["score"] for kind in ("parquet", "csv")]
    np.testing.assert_allclose(*columns, atol=0.02)


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 2.5], [False, True], ["a", "b"]])
def test_labels_of_every_kind(tmp_path, labels):
    y = np.array(labels)[np.arange(40) % 2]
    pd.DataFrame({"a": np.arange(40.0), "b": np.sin(np.arange(40.0)), "y": y}).to_parquet(tmp_path / "a.parquet")
    data = load(tmp_path / "a.parquet")
    assert data.X.shape == (40, 2) and len(np.unique(data.y)) == 2
    assert (data.y == data.y[0]).tolist() == (y == y[0]).tolist()


def test_tables_that_cannot_be(table, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"

    def write(**columns):
        pq.write_table(pa.table({"a": [1.0, 2.0] * 20, **columns, "y": [0, 1] * 20}), path)

    for message, column in [
        ("column 'x' holds list<", [[1.0], [2.0, 3.0]] * 20),
        ("column 'x' holds struct<", [{"b": 1}, {"b": 2}] * 20),
        ("column 'x' holds binary", [b"a", b"b"] * 20),
        ("column 'x' holds time64", [datetime.time(1), datetime.time(2)] * 20),
        ("column 'x' holds duration", [datetime.timedelta(1)] * 40),
    ]:
        write(x=column)
        refused(message, path)
        refused(message, "--stream", path)
    write()
    refused("has no column 'sick'; its columns are a, y", path, "--label", "sick")
    refused("--sep has no effect", path, "--sep", ";")
    good = path.read_bytes()
    for content in (good[:-20], good[:100], b"PAR1" + bytes(50) + b"PAR1", b"hello", good[:4] + bytes(60) + good[64:]):
        path.write_bytes(content)
        assert "a.parquet" in refused("error:", path, "-q") and "a.parquet" in refused("error:", "--stream", path, "-q")
    pq.write_table(pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}), path)
    refused("expected at least one row", path)
    refused("has no rows", "--stream", path)
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, None]}), path)
    refused("labels are missing", path)
    pq.write_table(pa.table({"y": [0, 1]}), path)
    refused("has no column to learn from, expected at least one", path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused("is a Parquet file, for which pyarrow is needed", path, "-q").count("\n") == 1
    with pytest.raises(InputError, match="pyarrow is needed"):
        next(stream([path]))


def test_a_page_that_does_not_match_its_checksum(tmp_path):
    path, numbers = tmp_path / "a.parquet", np.arange(2000.0)
    table = pa.table({"number": numbers, "label": np.arange(2000) % 2})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = path.read_bytes()
    assert content.count(numbers[700:710].tobytes()) == 1
    path.write_bytes(content.replace(numbers[700:710].tobytes(), numbers[800:810].tobytes()))
    for read in (load, lambda path: list(stream([path]))):
        with pytest.raises(InputError, match=r"a.parquet is damaged.*could not verify page integrity, CRC checksum"):
            read(path)


def test_a_stream_of_tables_of_other_types(table, tmp_path):
    """Numbers are numbers, however they are stored."""
    for i, kind in enumerate([np.float32, np.float64, np.int32]):
        part = table[["number", "small", "sick"]].copy()
        part["small"] = part["small"].astype(kind)
        part.to_parquet(tmp_path / f"{i}.parquet")
    code, out, err = call("--stream", tmp_path, "--features", "linear")
    assert code == 0 and "1,800 rows" in err and float(out.split()[-1]) > 0.8
    table[["number", "text", "sick"]].rename(columns={"text": "small"}).to_parquet(tmp_path / "3.parquet")
    assert "3.parquet" in refused("column 'small' holds text, expected numbers", "--stream", tmp_path, "-q")
