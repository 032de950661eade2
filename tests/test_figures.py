"""The figures: that they show the numbers they should, and that no run is too odd to be drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import auc, average_precision_score, roc_auc_score, roc_curve

from tenfold import figures
from tenfold.decisions import decide, decide_by_folds
from tenfold.explain import Column, Dependence, Explanation
from tenfold.folds import Experiment, Fold
from tenfold.metrics import interval
from tenfold.rounds import Round

pytestmark = pytest.mark.filterwarnings("error")


def make_results(n_folds=4, n=60, n_pos=12, seed=0):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < n_pos, 1, -1)
    return [(y, rng.randn(n) + (y > 0)) for _ in range(n_folds)]


def make_rounds(n_folds=4, efforts=(1 / 4, 1, 4), seed=0):
    """Rounds in which each fold takes longer, sees more rows and ranks better than in the one before."""
    rng = np.random.RandomState(seed)
    return [
        Round(
            effort,
            [
                Fold(
                    0.7 + 0.05 * k + 0.01 * rng.rand(),
                    None,
                    4.0**k * (1 + rng.rand()),
                    0.1,
                    100 * 2**k + i,
                    {},
                    1.0,
                    {},
                )
                for i in range(n_folds)
            ],
            5.0,
        )
        for k, effort in enumerate(efforts)
    ]


def lines(figure):
    """The lines of a figure by what the legend calls them, as pairs of x and y."""
    return {line.get_label(): line.get_data() for line in figure.axes[0].get_lines()}


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def check_pictures(directory, names, least=400):
    from matplotlib.image import imread

    assert sorted(path.name for path in directory.iterdir()) == [f"{name}.png" for name in names]
    for name in names:
        picture = imread(directory / f"{name}.png")
        assert min(picture.shape[:2]) > least
        assert picture[..., :3].std() > 0.01


def test_each_roc_curve_is_that_of_its_fold():
    results = make_results()
    drawn = figures.roc(results).axes[0].get_lines()
    for line, (y, s) in zip(drawn, results):
        fpr, tpr, _ = roc_curve(y, s)
        assert_array_equal(line.get_data(), (fpr, tpr))
    assert_array_equal(drawn[-1].get_data(), ([0, 1], [0, 1]))  # chance


def test_the_mean_roc_curve_has_the_mean_auc():
    results = make_results()
    aucs = [roc_auc_score(y, s) for y, s in results]
    figure = figures.roc(results)
    label = f"mean, AUC {np.mean(aucs):.4f} ± {np.std(aucs, ddof=1):.4f}"
    assert label in legend(figure)
    fpr, tpr = lines(figure)[label]
    assert auc(fpr, tpr) == pytest.approx(np.mean(aucs), abs=2e-3)
    assert (np.diff(tpr) >= 0).all()


def test_a_single_roc_curve_has_no_band():
    results = make_results(1)
    figure = figures.roc(results)
    assert legend(figure) == [f"test rows, AUC {roc_auc_score(*results[0]):.4f}", "chance"]
    assert not figure.axes[0].collections and not figure.axes[1].collections


@pytest.mark.parametrize("value", [lambda fold: fold.seconds, lambda fold: fold.rows], ids=["time", "rows"])
@pytest.mark.parametrize("n_folds", [1, 4])
@pytest.mark.parametrize("efforts", [(1 / 4,), (None,), (1 / 16, 1 / 4, 1, 1.5)])
def test_auc_over_time_and_rows_has_a_point_for_each_fold_and_round(value, n_folds, efforts):
    rounds = make_rounds(n_folds, efforts)
    figure = figures.auc_over(rounds, value, "what", "title")
    (axes,) = figure.axes
    *dots, means = axes.get_lines()
    shown = {point for line in dots for point in zip(*line.get_data())}
    expected = {(value(fold), fold.auc) for one in rounds for fold in one.folds}
    assert shown == (expected if n_folds > 1 else set())
    assert_allclose(
        means.get_data(), np.transpose([np.mean([(value(f), f.auc) for f in one.folds], axis=0) for one in rounds])
    )
    said = [text.get_text() for text in axes.texts]
    assert said == [f"effort {effort}" for effort in ("1/16", "1/4", "1", "1.5")[: len(efforts)]] or len(efforts) == 1
    assert len(efforts) > 1 or said == ["effort 1/4"] * (efforts[0] is not None)
    assert legend(figure) == [f"{n_folds} test folds"] * (n_folds > 1) + [f"mean, in the end {rounds[-1].auc:.4f}"]
    assert axes.get_xlabel() == "what"
    assert (axes.get_xscale() == "log") == (len(efforts) > 1)  # where the points lie far apart


def test_histograms_count_every_row_of_both_classes():
    results = make_results(3, 500, 7)
    figure = figures.scores(results)
    assert legend(figure) == ["1,479 negative", "21 positive"]
    assert figure.axes[0].get_yscale() == "log"
    y, s = (np.concatenate(part) for part in zip(*results))
    edges = np.histogram_bin_edges(s, 40)
    outlines = [patch.get_xy() for patch in figure.axes[0].patches]
    for sign in (-1, 1):
        counts, _ = np.histogram(s[y == sign], edges)
        assert any(set(counts[counts > 0]) <= set(np.round(xy[:, 1])) for xy in outlines)


def test_learners_have_a_row_each_sorted_by_auc_with_the_lead_of_ours():
    learners = {f"learner {k}": make_results(seed=k) for k in range(20)}
    left, right = figures.compare(learners).axes
    names = [label.get_text() for label in left.get_yticklabels()]
    aucs = {name: np.array([roc_auc_score(*fold) for fold in folds]) for name, folds in learners.items()}
    assert names == sorted(aucs, key=lambda name: aucs[name].mean())
    dots, means = left.get_lines()[::2], left.get_lines()[1::2]
    for row, name in enumerate(names):
        assert_array_equal(dots[row].get_data(), (aucs[name], [row] * 4))
        assert_allclose(means[row].get_data(), ([aucs[name].mean()], [row]))
    drawn = {line.get_ydata()[0]: line.get_xdata() for line in right.get_lines()[:-1] if line.get_marker() == "None"}
    for row, name in enumerate(names):
        if name != "learner 0":
            assert_allclose(drawn[row], interval(aucs["learner 0"] - aucs[name]))


def test_the_best_three_of_the_others_are_beside_our_roc_curve():
    learners = {f"learner {k}": make_results(seed=k) for k in range(9)}
    figure = figures.roc(learners["learner 0"], learners)
    means = {name: np.mean([roc_auc_score(*fold) for fold in folds]) for name, folds in learners.items()}
    best = sorted(set(means) - {"learner 0"}, key=means.get, reverse=True)[:3]
    assert legend(figure)[3:-1] == [f"{name}, AUC {means[name]:.4f}" for name in best]
    assert figure.axes[0].get_xlim()[1] == 1 and figure.axes[1].get_xlim()[1] == 0.1


@pytest.mark.parametrize("which", ["roc", "scores", "auc_over", "precision_recall", "cost"])
def test_a_legend_covers_nothing(which):
    y, decisions = make_decisions(True)
    drawn = {
        "roc": lambda: figures.roc(make_results()),
        "scores": lambda: figures.scores(make_results()),
        "auc_over": lambda: figures.auc_over(make_rounds(), lambda fold: fold.seconds, "what", "title"),
        "precision_recall": lambda: figures.precision_recall(y, decisions),
        "cost": lambda: figures.cost(y, decisions),
    }
    figure = drawn[which]()
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0


ODD = [Round(1.0, [Fold(0.5, None, 0.0, 0.0, 1, {}, 1.0, {})] * 2, 0.0)]  # in no time, from one row


@pytest.mark.parametrize(
    "results, rounds",
    [
        (make_results(), make_rounds()),
        (make_results(1), make_rounds(1)),
        (make_results(2, 3, 1), make_rounds(2, [None])),
        ([(np.array([1, -1, -1]), np.zeros(3))] * 2, ODD),
        ([(np.array([1, -1]), np.array([1e300, -1e300]))] * 2, make_rounds(2, [1, 1.5])),
    ],
)
def test_whatever_is_drawn_is_a_picture(tmp_path, results, rounds):
    figures.draw(tmp_path, results, rounds, {"ours": results, "theirs": results})
    check_pictures(tmp_path, ["auc_steps", "auc_time", "compare", "roc", "scores"], 300)


def make_explanation(n, n_folds, names=("a", "b $x$ $", "größe")):
    rng = np.random.RandomState(0)
    columns = [Column(names[j % len(names)], np.array([j])) for j in range(n)]
    columns[-1].values = ["red $", "blue"]
    found = Explanation(columns, rng.rand(n, max(n_folds, 5)), n_folds)
    for column in columns[:6]:
        values = np.array(column.values or np.arange(7.0), object if column.values else float)
        found.dependences.append(Dependence(column, values, rng.rand(len(values), n_folds)))
    return found


@pytest.mark.parametrize("n, n_folds", [(1, 2), (4, 1), (30, 3)])
def test_columns_that_matter_are_drawn(tmp_path, n, n_folds):
    explanation = make_explanation(n, n_folds)
    axes = figures.columns(explanation).axes[0]
    assert_allclose([bar.get_width() for bar in axes.patches][::-1], explanation.means[:15])
    small = figures.dependence(explanation).axes
    assert len(small) == min(n, 6)
    if n > 1:
        assert_allclose(
            small[0].get_lines()[0].get_data(), (np.arange(7), explanation.dependences[0].scores.mean(axis=1))
        )
    figures.draw_explanation(tmp_path, explanation)
    check_pictures(tmp_path, ["columns", "dependence"], 200)


# --- decisions -------------------------------------------------------------------------------------------------------


def make_decisions(by_folds, n=60, n_pos=12):
    ((y, s),) = make_results(1, n, n_pos)
    cost = np.tile([7.0, 2.0], (n, 1))
    if by_folds:
        return y, decide_by_folds(Experiment.cross_validation(s[:, None], y, 3, 0), s, cost)
    return y, decide(y, s, expit(s), cost)


@pytest.mark.parametrize("by_folds", [True, False])
def test_decisions_lie_where_their_precision_and_recall_are(by_folds):
    y, decisions = make_decisions(by_folds)
    figure = figures.precision_recall(y, decisions)
    area = average_precision_score(y, decisions.scores)
    rules = ["Bayes minimum risk", "moved threshold"][: 1 + by_folds]
    assert legend(figure) == [f"average precision {area:.4f}", "share of positives 0.2000", *rules]
    for rule in rules:
        outcome = decisions.outcomes[rule]
        assert_array_equal(lines(figure)[rule], [[outcome.recall], [outcome.precision]])


@pytest.mark.parametrize("by_folds", [True, False])
def test_costs_over_thresholds_and_the_chosen_one(by_folds):
    y, decisions = make_decisions(by_folds)
    drawn = lines(figures.cost(y, decisions))
    (thresholds, costs), *_ = drawn.values()
    for threshold, found in zip(thresholds, costs):
        missed, false = (decisions.scores <= threshold) & (y > 0), (decisions.scores > threshold) & (y < 0)
        assert found == pytest.approx((7 * missed.sum() + 2 * false.sum()) / 60)
    assert drawn[f"act on no row: {7 * 12 / 60:.4g}"][1] == [7 * 12 / 60] * 2
    assert drawn[f"act on every row: {2 * 48 / 60:.4g}"][1] == [2 * 48 / 60] * 2
    chosen = [xy for label, xy in drawn.items() if label.startswith("threshold")]
    assert len(chosen) == by_folds
    if by_folds:
        assert_array_equal(chosen[0], [[decisions.threshold], [costs.min()]])


def test_figures_of_a_sample_are_those_of_the_rows_it_stands_for():
    """A file with four times the negatives that are in the sample."""
    ((y, s),) = make_results(1)
    cost = np.tile([7.0, 2.0], (60, 1))
    sample = Experiment.cross_validation(s[:, None], y, 3, 0, np.arange(60), {1: 12, -1: 4 * 48})
    decisions = decide_by_folds(sample, s, cost)
    again = np.repeat(np.arange(60), np.where(y > 0, 1, 4))
    area = average_precision_score(y[again], s[again])
    assert legend(figures.precision_recall(y, decisions))[:2] == [
        f"average precision {area:.4f}",
        f"share of positives {12 / 204:.4f}",
    ]
    drawn = lines(figures.cost(y, decisions))
    assert drawn[f"act on no row: {7 * 12 / 204:.4g}"][1] == pytest.approx([7 * 12 / 204] * 2)
    assert drawn[f"act on every row: {2 * 192 / 204:.4g}"][1] == pytest.approx([2 * 192 / 204] * 2)
    (thresholds, costs), *_ = drawn.values()
    for threshold, found in list(zip(thresholds, costs))[::9]:
        missed, false = (s[again] <= threshold) & (y[again] > 0), (s[again] > threshold) & (y[again] < 0)
        assert found == pytest.approx((7 * missed.sum() + 2 * false.sum()) / 204)


@pytest.mark.parametrize("by_folds, n, n_pos", [(True, 60, 12), (False, 60, 12), (True, 300, 297), (False, 8, 3)])
def test_whatever_is_decided_can_be_drawn(tmp_path, by_folds, n, n_pos):
    figures.draw_decisions(tmp_path, *make_decisions(by_folds, n, n_pos))
    check_pictures(tmp_path, ["cost", "precision_recall"])
