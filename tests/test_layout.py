"""How the modules lie: who imports whom, how long they are, and what is at the top of the repository.

Imports are read from the source, those inside functions included.
"""

import ast
import shutil
import subprocess
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest
from conftest import ROOT

# From the top down. A module imports others of its own layer or of those below, never of one above.
LAYERS = [
    {"exp"},
    {"tenfold.reports", "tenfold.scoring", "tenfold.online"},
    {"tenfold.comparison", "tenfold.figures", "tenfold.page", "tenfold.streams", "tenfold.terminal"},
    {"tenfold.explain", "tenfold.rounds"},
    {
        "tenfold.baselines",
        "tenfold.decisions",
        "tenfold.folds",
        "tenfold.parallel",
        "tenfold.engines",
        "tenfold.pieces",
    },
    {"tenfold.models", "tenfold.ranker"},
    {
        "tenfold.calibration",
        "tenfold.columns",
        "tenfold.features",
        "tenfold.lanes",
        "tenfold.metrics",
        "tenfold.options",
        "tenfold.plan",
        "tenfold.words",
        "tenfold.writing",
    },
    {"tenfold.readers", "preprocess"},
    {"oam", "tenfold"},
]
# What not everybody has, or takes long to import.
LATE = ("matplotlib", "h5py", "pyarrow", "pandas", "distributed", "dask", "sklearn.datasets")
MOST_LINES = 600
AT_THE_TOP = {
    *("exp.py", "oam.py", "preprocess.py", "tenfold", "tests", "bench", "figures"),
    *("README.md", "report.md", "requirements.txt"),
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {
    module_name(path): path
    for path in [ROOT / "exp.py", ROOT / "oam.py", ROOT / "preprocess.py", *sorted((ROOT / "tenfold").rglob("*.py"))]
}


@cache
def tree(module):
    """The source of a module, but for what the package imports only when it is asked for it."""
    tree = ast.parse(PATHS[module].read_text(encoding="utf-8"))
    if module == "tenfold":
        tree.body = [node for node in tree.body if getattr(node, "name", "") != "__getattr__"]
    return tree


def names(node, module):
    """The full names that an import statement asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = ""
    if node.level:
        here = module.split(".") + ["__init__"] * (PATHS[module].stem == "__init__")
        package = ".".join(here[: -node.level]) + "."
    source = (package + (node.module or "")).strip(".")
    return [f"{source}.{alias.name}" for alias in node.names]


def imported_names(node, module):
    """The full names of all that is imported in this part of a module."""
    found = [inside for inside in ast.walk(node) if isinstance(inside, (ast.Import, ast.ImportFrom))]
    return {name for inside in found for name in names(inside, module)}


def imports(module):
    """The modules of this project that a module imports."""
    owners = {name if name in PATHS else name.rpartition(".")[0] for name in imported_names(tree(module), module)}
    return owners & set(PATHS)


def layer(module):
    """The number of a module's layer; a package's modules are in that of the package."""
    parts = module.split(".")
    unit = ".".join(parts[:2])
    (number,) = [number for number, units in enumerate(LAYERS) if unit in units]
    return number


def test_imports_are_found_in_whatever_way_they_are_written():
    source = "import oam\ndef f():\n  from tenfold import plan\n  from . import lanes\n  from .readers.base import Data"
    PATHS["tenfold.made_up"] = ROOT / "tenfold" / "made_up.py"
    try:
        found = imported_names(ast.parse(source), "tenfold.made_up")
    finally:
        del PATHS["tenfold.made_up"]
    assert found == {"oam", "tenfold.plan", "tenfold.lanes", "tenfold.readers.base.Data"}
    assert "oam" in imports("tenfold.lanes")
    assert {"tenfold.readers.csv_text", "tenfold.readers.base", "preprocess"} <= imports("tenfold.readers")


def test_there_is_no_cycle():
    try:
        TopologicalSorter({module: imports(module) - {module} for module in PATHS}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_the_learner_stands_alone_and_preprocessing_knows_nothing_of_the_package():
    assert imports("oam") == set()
    assert not any(module.split(".")[0] == "tenfold" for module in imports("preprocess"))


@pytest.mark.parametrize("module", PATHS)
def test_no_module_imports_from_a_layer_above(module):
    above = {other for other in imports(module) if layer(other) < layer(module)}
    assert above == set()
    assert module == "exp" or "exp" not in imports(module)


@pytest.mark.parametrize("module", [module for module in PATHS if module != "exp"])
def test_imports_stand_at_the_top(module):
    """But for libraries that are optional or slow; and none goes by a name that is made up on the way."""
    functions = [node for node in ast.walk(tree(module)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = set().union(*(imported_names(function, module) for function in functions))
    assert {name for name in inside if not f"{name}.".startswith(tuple(f"{late}." for late in LATE))} == set()
    used = {node.id for node in ast.walk(tree(module)) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute)}
    made_up = used & {"__import__", "import_module"}
    assert not made_up or module == "tenfold.engines"  # which sends the program itself, under a name for its content


def test_of_the_package_itself_its_modules_ask_for_nothing_but_the_version():
    """All else it imports for those who ask, from layers above."""
    own = {
        name
        for module in PATHS
        for name in imported_names(tree(module), module)
        if name not in PATHS and name.rpartition(".")[0] == "tenfold"
    }
    assert own == {"tenfold.__version__"}
    assert imports("tenfold") == set()


@pytest.mark.parametrize("module", PATHS)
def test_no_module_is_too_long_to_read(module):
    assert len(PATHS[module].read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_module_has_a_file_of_tests():
    units = {module.split(".")[1] for module in PATHS if module.startswith("tenfold.")} | {"oam", "preprocess", "cli"}
    assert {unit for unit in units if not (ROOT / "tests" / f"test_{unit}.py").exists()} == set()


def test_what_is_at_the_top_of_the_repository():
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode or not (ROOT / ".git").exists():
        pytest.skip("this is not a repository")
    top = {path.split("/")[0] for path in listed.stdout.split("\0") if path}
    assert {name for name in top - AT_THE_TOP if not name.startswith(".")} == set()
