"""The page on which to choose a threshold: its numbers, and what a real browser makes of it."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from browser import CHROMIUM, DRIVER, Browser
from conftest import FEW, call, make_rows, outcome, read_scores, refused, score
from numpy.testing import assert_array_equal
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support, roc_auc_score

from tenfold import __version__, page
from tenfold.comparison import LearnerResult
from tenfold.decisions import best_threshold, cost_by_threshold
from tenfold.folds import Experiment, Fold
from tenfold.metrics import auc_and_error, interval

pytestmark = pytest.mark.filterwarnings("error")
STRANGE = ["</script><script>document.title=1</script>", 'a "quoted" & <b>bold</b> name', "größe 身長 🙂", "x\u2028y"]
MOST_BYTES = 500_000


def read_content(path):
    """What is in a page, and how many bytes it has."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def make_scores(n=400, n_pos=40, n_values=None, seed=0):
    rng = np.random.RandomState(seed)
    y = np.where(rng.permutation(n) < n_pos, 1, -1)
    scores = rng.randn(n) + 1.5 * (y > 0)
    return y, np.round(scores * n_values) / n_values if n_values else scores


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [3000, 60])
@pytest.mark.parametrize("n_values", [None, 3])
def test_points_have_the_counts_of_a_plain_loop(monkeypatch, most, n_values):
    monkeypatch.setattr(page, "MOST_POINTS", most)
    y, scores = make_scores(n_values=n_values)
    points = page.make_points(y, scores)
    ends = {0: np.inf, len(points["tp"]) - 1: -np.inf}
    for k, threshold in enumerate(points["thresholds"]):
        assert (threshold is None) == (k in ends)
        above = scores > ends.get(k, threshold)
        assert (points["tp"][k], points["fp"][k]) == ((above & (y > 0)).sum(), (above & (y < 0)).sum())
    assert points["left_out"] == len(set(scores)) + 1 - len(points["tp"])
    assert (points["left_out"] > 0) == (most == 60 and n_values is None)


def test_the_cheapest_threshold_is_among_few_whatever_the_costs(monkeypatch):
    monkeypatch.setattr(page, "MOST_POINTS", 40)
    for seed in range(5):
        y, scores = make_scores(600, 60, seed=seed)
        points = page.make_points(y, scores)
        assert len(points["tp"]) < 100
        for missed in np.geomspace(0.01, 1000, 60):
            cost = np.tile([missed, 1.0], (600, 1))
            total = (60 - np.array(points["tp"])) * missed + np.array(points["fp"])
            threshold = points["thresholds"][page.first_least(total)]
            expected = best_threshold(scores, y, cost)
            assert threshold == (expected if np.isfinite(expected) else None)
            assert total.min() == pytest.approx(cost_by_threshold(scores, y, cost)[1].min())


def test_a_page_of_very_many_rows_is_small(tmp_path):
    y, scores = make_scores(300_000, 3000)
    write(tmp_path / "a.html", y, scores)
    assert (tmp_path / "a.html").stat().st_size < MOST_BYTES
    assert sum(
        map(sum, (read_content(tmp_path / "a.html")["histogram"][key] for key in ("positive", "negative")))
    ) == len(y)


@pytest.mark.parametrize("n_folds", [1, 4])
def test_the_interval_is_that_of_the_folds_or_of_the_test_rows(n_folds):
    y, scores = make_scores(300, 60)
    of_folds = [(y[k::n_folds], scores[k::n_folds]) for k in range(n_folds)]
    aucs = np.array([roc_auc_score(*of_fold) for of_fold in of_folds])
    folds = [SimpleNamespace(auc=auc) for auc in aucs]
    if n_folds > 1:
        low, high = interval(aucs)
        over = f"mean over 4 folds, standard deviation {np.std(aucs, ddof=1):.4f}"
    else:
        low, high = aucs[0] + np.array([-1.959964, 1.959964]) * auc_and_error(y, scores)[1]
        over = "on the rows of a test file"
    assert page.interval_words(of_folds, folds) == f"95 % interval {low:.4f} to {high:.4f}; {over}"


def test_an_interval_ends_at_0_and_1():
    y = np.array([1, -1, -1, -1])
    words = page.interval_words([(y, y)], [SimpleNamespace(auc=1.0)])
    assert words.endswith("to 1.0000; on the rows of a test file")
    words = page.interval_words([(y, -y)], [SimpleNamespace(auc=0.0)])
    assert words.startswith("95 % interval 0.0000 to ")


def write(path, y, scores, n_folds=2, comparison=()):
    """A page of these scores, as if folds had given them."""
    X = np.zeros((len(y), 1))
    experiment = (
        Experiment.cross_validation(X, y, n_folds, 0) if n_folds > 1 else Experiment.train_and_test(X, y, X, y, "a.mat")
    )
    folds = [
        Fold(roc_auc_score(y[test], scores[test]), scores[test], 1.0, 0.0, 50, {}, 1.0, {})
        for _, test in experiment.splits
    ]
    about = "a.mat", np.array([-1, 1]), [("seed", 0)], "python exp.py", ""
    content = page.make_content(*about, experiment, folds, None, None, comparison)
    page.write_page(path, content)
    return content


@pytest.mark.parametrize(
    "scores", [np.zeros(8), np.array([1e300, -1e300] * 4), np.arange(8) * 1e-300, np.array([0.0] * 7 + [1e-17])]
)
def test_no_scores_are_too_odd(tmp_path, scores):
    y = np.array([1, -1] * 4)
    content = write(tmp_path / "a.html", y, scores)
    assert read_content(tmp_path / "a.html") == json.loads(json.dumps(content))


def test_learners_are_listed_by_auc_and_those_without_in_the_end(tmp_path):
    y, scores = make_scores(40, 10)
    results = [
        LearnerResult("ours", [0.8, 0.9], seconds=3.0),
        LearnerResult("slow", trouble="stopped after 60 s"),
        LearnerResult("better", [0.9, 0.9], seconds=1.0),
    ]
    found = write(tmp_path / "a.html", y, scores, comparison=results)["comparison"]
    assert [row[0] for row in found["rows"]] == ["better", "ours", "slow"] and found["ours"] == 1
    assert found["rows"][2] == ["slow", "stopped after 60 s"]
    assert found["rows"][0][:4] == ["better", "0.9000", "0.0000", "1.0"]


# --- the command -----------------------------------------------------------------------------------------------------


def table_of(rows):
    return [" ".join(row).split() for row in rows]


def test_the_page_has_what_standard_error_says(train, tmp_path):
    path = tmp_path / "result.html"
    argv = [train, *FEW, "--cost", "7,2", "--explain"]
    code, out, err = call(*argv, "--page", path)
    assert code == 0 and f"the page is in {path}" in err
    content, lines = read_content(path), [line.split() for line in err.splitlines()]
    assert out == f"AUC Score: {content['auc']}\n"
    assert content["about"] in err and content["command"].endswith(f"--page {path}")
    for table in (content["decisions"], content["columns"]):
        assert all(row in lines for row in table_of(table["rows"]))
        assert table["about"] in err
    assert content["decisions"]["rule"] in err
    assert content["costs"] == [7.0, 2.0]
    threshold = content["points"]["thresholds"][content["start"]]
    assert f"or the score above {threshold:.6g} (moved threshold)" in err
    assert content["interval"].startswith("95 % interval 0.") and path.stat().st_size < MOST_BYTES


def test_a_page_changes_no_digit_and_may_be_all_that_is_asked_for(train, tmp_path):
    path = tmp_path / "result.html"
    assert score(train, *FEW, "--page", path) == score(train, *FEW) == float(read_content(path)["auc"])
    assert read_content(path)["costs"] == [3.0, 1.0]
    before = path.read_bytes()
    refused(f"--page {path} exists, expected another name, or --force to overwrite it", train, *FEW, "--page", path)
    assert path.read_bytes() == before
    assert score(train, *FEW, "--page", path, "--force") == float(read_content(path)["auc"])


def test_the_page_says_by_what_effort_and_warns_as_standard_error_does(save, train, tmp_path):
    path, (X, y) = tmp_path / "result.html", make_rows(3000, 10, 300)
    for argv, effort in (([train, *FEW], "1/16"), ([save("more.mat", x=X, y=y), "--budget", 0.2], "1/4")):
        code, _, err = call(*argv, "--page", path, "--force")
        content = read_content(path)
        assert code == 0 and dict(content["facts"])["effort"] == effort
        assert content["warnings"] == [line for line in err.splitlines() if line.startswith("warning: ")]
    assert len(content["warnings"]) == 1 and "--budget 0.6 gives more" in content["warnings"][0]


def test_the_page_of_a_sample_has_the_numbers_that_standard_error_has(save, tmp_path, monkeypatch):
    """Those of the whole file, of which the sample has all positives and a tenth of the negatives."""
    monkeypatch.setattr("tenfold.folds.MOST_ROWS", 400)
    X, y = make_rows(3000, 4, 100)
    code, _, err = call(save(x=X, y=y), *FEW, "--cost", "20,1", "--page", tmp_path / "result.html")
    content = read_content(tmp_path / "result.html")
    assert code == 0
    points, start = content["points"], content["start"]
    assert f"or the score above {points['thresholds'][start]:.6g} (moved threshold)" in err
    assert (points["tp"][-1], points["fp"][-1]) == pytest.approx(outcome(err, "act on every row")[:2])


def test_the_page_of_two_files_and_of_the_published_algorithm(train, tmp_path):
    path = tmp_path / "result.html"
    assert call(train, train, "--passes", 2, "--page", path)[0] == 0
    content = read_content(path)
    facts = dict(content["facts"])
    assert facts["learned from"] == f"{train}, 60 rows"
    learner = "the published algorithm, C 0.001, buffer 500, passes 2, update gradient"
    assert facts["learner"] == learner and facts["version"] == __version__ and facts["seed"] == "0"
    assert "effort" not in facts
    assert "on the rows of a test file" in content["interval"] and content["mean_roc"] is None


def test_pages_that_cannot_be_written_are_refused_before_the_run(train, tmp_path, model):
    (tmp_path / "other.html").write_text("<!doctype html><p>mine")
    refused("is a file to read", train, "--page", train)
    refused(
        "other.html exists, expected another name, or --force to overwrite it", train, "--page", tmp_path / "other.html"
    )
    refused("is a directory", train, "--page", tmp_path)
    refused("does not exist", train, "--page", tmp_path / "nowhere" / "a.html")
    refused("--page and --save are both", train, "--page", tmp_path / "a.npz", "--save", tmp_path / "a.npz")
    refused("--page does not go with --model", "--model", model, train, "--page", tmp_path / "a.html")
    streamed = ("--stream", train, "--features", "linear")
    refused("expected no option that needs folds", *streamed, "--page", tmp_path / "a.html")
    assert (tmp_path / "other.html").read_text() == "<!doctype html><p>mine"
    assert call(train, *FEW, "--page", tmp_path / "other.html", "--force")[0] == 0


def test_nothing_in_a_name_is_taken_for_html(strange):
    text = strange.read_text(encoding="utf-8")
    assert "<b>bold" not in text and text.count("</script>") == 2
    names = {row[0] for row in read_content(strange)["columns"]["rows"]}
    assert names == {" ".join(name.split()) if name == STRANGE[3] else name for name in STRANGE} or names == set(
        STRANGE
    )


# --- a real browser --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with chromedriver here")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file with strange names, and the page and the scores that the command has made of it."""
    folder = tmp_path_factory.mktemp("page")
    X, y = make_rows(240, 4, 48)
    lines = [",".join([*(f"{cell:.6f}" for cell in row), "yes" if label > 0 else "no"]) for row, label in zip(X, y)]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in [*STRANGE, "sick"])
    (folder / "a.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8", newline="\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        argv = ("a.csv", *FEW, "--cost", "7,2", "--explain", "--page", "result.html", "--scores", "scores.csv")
        code, _, err = call(*argv)
    assert code == 0, err
    (folder / "stderr.txt").write_text(err, encoding="utf-8")
    return folder, np.where(y > 0, 1, -1), read_scores(folder / "scores.csv")["score"]


@pytest.fixture
def strange(folder):
    return folder[0] / "result.html"


@pytest.fixture
def opened(browser, strange):
    browser.resize(1200)
    browser.look()
    browser.open(strange)
    yield browser
    assert browser.complaints() == []


def numbers(browser):
    """What the page shows: counts, rates and cost."""
    found = {key: browser.text(f"#{key}") for key in ("tp", "fp", "fn", "tn", "precision", "recall", "f1", "cost")}
    return {key: text.replace(",", "") for key, text in found.items()}


def expected_numbers(y, scores, threshold, missed, alarm):
    """The same by scikit-learn."""
    acted = scores > threshold
    (tn, fp), (fn, tp) = confusion_matrix(y > 0, acted, labels=[False, True])
    rates = precision_recall_fscore_support(y > 0, acted, average="binary", zero_division=0)[:3]
    counts = {"tp": f"{tp}", "fp": f"{fp}", "fn": f"{fn}", "tn": f"{tn}"}
    named = {name: f"{value:.4f}" for name, value in zip(("precision", "recall", "f1"), rates)}
    return {**counts, **named, "cost": f"{missed * fn + alarm * fp:.6g}"}


def threshold_of(browser):
    """The threshold that is chosen, to the last digit."""
    k, last, threshold = browser.run("return [chosen, last, thresholds[chosen]]")
    return {0: np.inf, last: -np.inf}.get(k, threshold)


def handle(browser):
    """Where the slider is, and the middle of its handle."""
    left, top, width, height, share = browser.run(
        "const s = document.querySelector('#threshold'), r = s.getBoundingClientRect();"
        "return [r.left, r.top, r.width, r.height, (s.value - s.min) / (s.max - s.min)]"
    )
    return (left + 12, width - 24, top + height / 2), left + 12 + share * (width - 24)


def test_the_first_threshold_is_the_one_that_standard_error_names(opened, folder):
    directory, y, scores = folder
    threshold = best_threshold(scores, y, np.tile([7.0, 2.0], (len(y), 1)))
    assert threshold_of(opened) == threshold
    assert numbers(opened) == expected_numbers(y, scores, threshold, 7, 2)
    err = (directory / "stderr.txt").read_text(encoding="utf-8")
    assert f"{threshold:.6g}" in opened.text("#sentence") and f"the score above {threshold:.6g}" in err
    shown = opened.run("return [...document.querySelectorAll('#decisions tbody tr')].map((row) => row.innerText)")
    for line in shown:
        assert line.split() in [words.split() for words in err.splitlines()]
    rule = outcome(err, "act on every row")
    assert f"on every row: {rule[7]:g}" in opened.text("#savings")
    assert opened.text("h1") == f"AUC {read_content(directory / 'result.html')['auc']}"


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_dragging_the_threshold_changes_all_numbers(opened, folder, kind):
    _, y, scores = folder
    opened.run("document.querySelector('#threshold').scrollIntoView({block: 'center'})")
    before = threshold_of(opened)
    for share in (0.9, 0.35, 0.62):
        (left, width, middle), place = handle(opened)
        target = left + share * width
        opened.drag((place, middle), ((place + target) / 2, middle), (target, middle), kind=kind)
        threshold = threshold_of(opened)
        assert threshold != before
        assert handle(opened)[1] == pytest.approx(target, abs=0.03 * width)
        assert numbers(opened) == expected_numbers(y, scores, threshold, 7, 2)
        before = threshold


def test_the_keyboard_moves_by_one_row_or_to_the_ends(opened, folder):
    _, y, scores = folder
    levels = np.sort(scores)[::-1]
    opened.type("#threshold", "end")
    assert threshold_of(opened) == np.inf and numbers(opened)["tp"] == "0" == numbers(opened)["fp"]
    for k in range(1, 4):
        opened.type("#threshold", "left")
        assert threshold_of(opened) == (levels[k - 1] + levels[k]) / 2
        assert numbers(opened) == expected_numbers(y, scores, threshold_of(opened), 7, 2)
    opened.type("#threshold", "page down")
    assert threshold_of(opened) == (levels[14] + levels[15]) / 2
    opened.type("#threshold", "right")
    assert threshold_of(opened) == (levels[13] + levels[14]) / 2
    opened.type("#threshold", "home")
    assert threshold_of(opened) == -np.inf and numbers(opened) == expected_numbers(y, scores, -np.inf, 7, 2)
    assert "every row" in opened.run("return document.querySelector('#threshold').ariaValueText")


@pytest.mark.parametrize("missed, alarm", [(1, 1), (40, 1), (3.5, 0.25), (0, 1), (1, 0)])
def test_other_costs_have_other_cheapest_thresholds(opened, folder, missed, alarm):
    _, y, scores = folder
    opened.fill("#cost-fn", str(missed))
    opened.fill("#cost-fp", str(alarm))
    assert numbers(opened) == expected_numbers(y, scores, threshold_of(opened), missed, alarm)
    opened.click("#cheapest")
    assert threshold_of(opened) == best_threshold(scores, y, np.tile([missed, alarm], (len(y), 1)).astype(float))
    assert numbers(opened) == expected_numbers(y, scores, threshold_of(opened), missed, alarm)


def test_a_cost_that_is_none_is_marked_and_the_last_good_one_stays(opened):
    before = numbers(opened)
    opened.run("document.querySelector('#cost-fn').value = -3")
    opened.type("#cost-fn", "0")
    assert opened.run("return document.querySelector('#cost-fn').ariaInvalid") == "true"
    assert (
        numbers(opened)["cost"] == str(round(3 * int(before["fn"]) + 2 * int(before["fp"])))
        or numbers(opened) == before
    )
    opened.fill("#cost-fn", "10")
    assert opened.run("return document.querySelector('#cost-fn').ariaInvalid") == "false"
    assert numbers(opened)["cost"] == str(10 * int(before["fn"]) + 2 * int(before["fp"]))


def test_false_alarms_a_day(opened):
    false = int(numbers(opened)["fp"])
    assert float(opened.text("#alarms")) == pytest.approx(1000 * false / 240, rel=5e-3)
    opened.fill("#cases", "48")
    assert float(opened.text("#alarms")) == pytest.approx(48 * false / 240, rel=5e-3)


def test_rates_are_rounded_as_python_does(opened):
    values = [0.03125, 0.09375, 0.5, 0.0, 1.0, 1 / 3, 0.00005, 0.00015, 0.99995, 0.84375]
    values += (np.arange(32) / 32).tolist() + np.random.RandomState(0).rand(200).tolist()
    assert opened.run("return arguments[0].map(rate)", values) == [f"{value:.4f}" for value in values]


def test_names_are_shown_as_they_are_and_nothing_else_runs(opened):
    shown = opened.run("return [...document.querySelectorAll('#columns tbody th')].map((cell) => cell.textContent)")
    assert sorted(shown) == sorted(row[0] for row in read_content_of(opened)["columns"]["rows"])
    assert set(STRANGE[:3]) <= set(shown)
    assert (
        opened.run("return document.title").startswith("AUC 0.")
        and opened.run("return document.querySelectorAll('b').length") == 0
    )
    assert (
        opened.run("return performance.getEntriesByType('resource').filter((e) => !e.name.startsWith('data:')).length")
        == 0
    )


def read_content_of(browser):
    return browser.run("return data")


@pytest.mark.parametrize("width", [320, 390, 800, 1600])
def test_nothing_is_wider_than_the_window(opened, width):
    opened.resize(width)
    widest = opened.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert widest[0] <= widest[1] == width
    (left, drawn, _), place = handle(opened)
    line = opened.run("const r = document.querySelector('.cut').getBoundingClientRect(); return r.left + r.width / 2")
    assert line == pytest.approx(place, abs=2)  # the slider's handle is where the line is
    assert left >= 0 and drawn > 150


def test_bars_are_not_cut_off_on_a_phone(opened):
    opened.resize(390)
    there, shown = opened.run(
        "const box = document.querySelector('#columns .scroll'); return [box.scrollWidth, box.clientWidth]"
    )
    assert 0 < there <= shown


@pytest.mark.parametrize("dark", [False, True])
def test_ink_stands_out_from_paper_in_the_light_and_in_the_dark(opened, dark):
    opened.look(dark)
    pairs = opened.run(
        "return ['body', '#about', 'button', '.card .soft', 'th'].map((selector) => {"
        "  let node = document.querySelector(selector); const ink = getComputedStyle(node).color;"
        "  while (getComputedStyle(node).backgroundColor === 'rgba(0, 0, 0, 0)') node = node.parentNode;"
        "  return [ink, getComputedStyle(node).backgroundColor]; })"
    )

    def light(colour):
        parts = np.array(re.findall(r"\d+", colour)[:3], float) / 255
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    for ink, paper in pairs:
        high, low = sorted([light(ink), light(paper)], reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5  # as the Web Content Accessibility Guidelines ask
    assert (light(pairs[0][1]) < 0.1) == dark


def test_printed_it_has_the_numbers_and_no_controls(opened):
    opened.look(dark=True, media="print")
    shown = "return [...arguments[0]].map((s) => getComputedStyle(document.querySelector(s)).display !== 'none')"
    selectors = ["#cheapest", "#threshold", "#tp", "#histogram", "#cost-fn"]
    assert opened.run(shown, selectors) == [False, False, True, True, True]
    assert opened.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_every_control_and_picture_has_a_name(opened):
    tree = opened.devtools("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for node in tree:
        role = node.get("role", {}).get("value")
        named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert named["slider"] == ["Threshold of the score"]
    assert named["spinbutton"] == ["cases a day", "cost of a missed positive", "cost of a false alarm"]
    assert named["button"] == ["Go to the cheapest threshold"] and named["checkbox"] == ["enlarge the left tenth"]
    pictures = named.get("image", []) + named.get("img", [])
    assert len(pictures) == 3 and all(pictures)
    assert len(named["heading"]) >= 6 and "main" in named


def test_the_left_tenth_of_the_roc_curve_can_be_enlarged(opened):
    opened.click("#enlarge")
    labels = opened.run("return [...document.querySelectorAll('#roc text')].map((node) => node.textContent)")
    assert "0.1" in labels and "0.02" in labels
    inside = opened.run(
        "const b = document.querySelector('#roc .curve').getBBox(), s = document.querySelector('#roc').viewBox.baseVal;"
        "return b.x + b.width <= s.width && b.y >= 0"
    )
    assert inside


@pytest.mark.parametrize("n_folds", [1, 2])
@pytest.mark.parametrize("scores", [np.zeros(8), np.array([1e300, -1e300] * 4), np.arange(8.0)])
def test_a_browser_can_show_odd_scores(browser, tmp_path, scores, n_folds):
    write(tmp_path / "a.html", np.array([1, -1] * 4), scores, n_folds)
    browser.open(tmp_path / "a.html")
    browser.type("#threshold", "home")
    assert numbers(browser)["tp"] == "4" and browser.complaints() == []
    assert "NaN" not in browser.run("return document.body.innerHTML.replace(/<script.*<\\/script>/gs, '')")


def test_a_page_of_very_many_rows_in_a_browser(browser, tmp_path):
    y, scores = make_scores(100_000, 900)
    write(tmp_path / "a.html", y, scores)
    browser.open(tmp_path / "a.html")
    browser.fill("#cost-fn", "55")
    browser.click("#cheapest")
    expected = best_threshold(scores, y, np.tile([55.0, 1.0], (len(y), 1)))
    assert threshold_of(browser) == expected
    assert numbers(browser) == expected_numbers(y, scores, expected, 55, 1)
    assert "can be chosen here" in browser.text("#few")
    assert_array_equal(browser.complaints(), [])
