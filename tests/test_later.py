"""Modules that are loaded only when they are used, each in a Python of its own."""

import subprocess
import sys

import pytest
from conftest import ROOT

HELPER = """
import sys
sys.path.append("tenfold")  # the package itself takes long to import
from later import loaded_later
is_loaded = lambda: hasattr(sys.modules.get("colorsys"), "__file__")
"""


def run(code, before=HELPER):
    """What this code prints, one word after the other."""
    done = subprocess.run([sys.executable, "-c", before + code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("use", "loads"),
    [
        ("import colorsys", False),
        ("from colorsys import rgb_to_hls", False),
        ("from colorsys import rgb_to_hls as f; assert f(0, 0, 0) == (0, 0, 0)", True),
        ("from colorsys import rgb_to_hls as f; assert f.__code__.co_argcount == 3", True),
        ("from colorsys import rgb_to_hsv as f; assert f(0, 0, 0) == (0, 0, 0)", True),
        ("import colorsys; assert colorsys.ONE_SIXTH * 6 == 1", True),
    ],
)
def test_a_module_is_loaded_when_something_of_it_is_used(use, loads):
    code = f"""
with loaded_later({{"colorsys": ("rgb_to_hls",)}}):
    {use}
    print(is_loaded())
print("colorsys" in sys.modules)
import colorsys
print(is_loaded(), colorsys.rgb_to_hls(0, 0, 0)[0])
"""
    assert run(code) == [str(loads), str(loads), "True", "0.0"]


def test_a_part_can_be_used_long_after():
    code = """
with loaded_later({"colorsys": ("rgb_to_hls",)}):
    from colorsys import rgb_to_hls
print(is_loaded(), *rgb_to_hls(0, 0, 0), is_loaded())
"""
    assert run(code) == ["False", "0.0", "0.0", "0.0", "True"]


def test_a_module_of_a_package():
    """As it stands in the package, and as it is after that."""
    code = """
import wsgiref
with loaded_later({"wsgiref.util": ("guess_scheme",), "wsgiref.headers": ()}):
    from wsgiref.util import guess_scheme
    from wsgiref import headers
    print(hasattr(wsgiref.util, "__file__"), hasattr(wsgiref, "headers"))
print(hasattr(wsgiref, "util"), hasattr(wsgiref, "headers"))
print(guess_scheme({"HTTPS": "on"}), headers.Headers([]).get("x"))
print(hasattr(wsgiref.util, "__file__"), wsgiref.headers.Headers is headers.Headers)
"""
    assert run(code) == ["False", "True", "False", "False", "https", "None", "True", "True"]


def test_beside_other_threads_all_is_loaded_at_once():
    code = """
import threading
done = threading.Event()
threading.Thread(target=done.wait).start()
with loaded_later({"colorsys": ("rgb_to_hls",)}):
    import colorsys
    print(is_loaded())
done.set()
"""
    assert run(code) == ["True"]


def test_a_part_can_be_copied():
    code = """
import copy
with loaded_later({"colorsys": ("rgb_to_hls",)}):
    from colorsys import rgb_to_hls
print(*copy.copy(rgb_to_hls)(0, 0, 0))
"""
    assert run(code) == ["0.0", "0.0", "0.0"]


def test_a_module_that_is_there_already_stays():
    code = """
import colorsys
with loaded_later({"colorsys": ("rgb_to_hls",)}):
    print(is_loaded(), sys.modules["colorsys"] is colorsys)
print(sys.modules["colorsys"] is colorsys)
"""
    assert run(code) == ["True", "True", "True"]


def test_a_part_of_a_package_is_an_import_error_and_nothing_is_left_behind():
    code = """
try:
    with loaded_later({"wsgiref": ()}):
        import wsgiref.util
except ImportError:
    print("wsgiref" in sys.modules)
import wsgiref.util
print(wsgiref.util.__name__)
"""
    assert run(code) == ["False", "wsgiref.util"]


def test_scikit_learn_does_what_it_does_elsewhere():
    """Those of its parts that use scipy.stats, imported before and after."""
    code = """
import {first}
import {second}
import numpy as np
from sklearn.covariance import MinCovDet
from sklearn.isotonic import IsotonicRegression, check_increasing
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.preprocessing import SplineTransformer
x = np.random.RandomState(0).normal(size=(50, 2))
print(MinCovDet(random_state=0).fit(x).covariance_.sum(), check_increasing(x[:, 0], x[:, 1]))
print(SplineTransformer().fit_transform(x).sum(), IsotonicRegression().fit(x[:, 0], x[:, 1]).predict([0.1]))
print(label_ranking_average_precision_score(x > 0, x))
import scipy.stats
print(scipy.stats.norm.cdf(0))
"""
    orders = ("tenfold", "scipy.stats"), ("scipy.stats", "tenfold")
    late, early = (run(code.format(first=first, second=second), before="") for first, second in orders)
    assert late == early


def test_docstrings_are_those_of_scipy_but_for_notes_and_are_parsed_again_later():
    code = """
import sys
if {with_tenfold}:
    import tenfold
import scipy.optimize, scipy.special
sections = ["Parameters", "Returns", "Examples"]
for part in (scipy.special.logsumexp, scipy.special.softmax, scipy.optimize.minimize_scalar):
    words = part.__doc__.split()
    print(*words[:20], *(words.count(section) for section in sections))
from scipy._lib._docscrape import FunctionDoc
print(*{{module.FunctionDoc.__name__ for module in sys.modules.values() if hasattr(module, "FunctionDoc")}})
print(len(FunctionDoc(scipy.special.logsumexp)["Parameters"]))
"""
    assert run(code.format(with_tenfold=True), "") == run(code.format(with_tenfold=False), "")
