"""Importing without what others import and hardly ever use."""

import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from inspect import getdoc
from types import ModuleType

# These take a third of the time to import scikit-learn, and what we use of it never asks for them.
UNUSED = {
    "numpy.f2py": (),
    "numpy.testing": (),
    "scipy.interpolate": ("BSpline",),
    "scipy.stats": ("chi2", "gmean", "rankdata", "spearmanr"),
}


@contextmanager
def loaded_later(modules):
    """While this lasts, importing one of these modules, or these parts of it, does not load it.

    ``modules`` has the names of parts by that of the module. It is loaded when one of them is used, or as soon as
    anything else of the module is asked for. If there are other threads, which may import it too, it is loaded at once.
    """
    new = {name: parts for name, parts in modules.items() if name not in sys.modules and threading.active_count() == 1}
    stand_ins = [_StandIn(name, parts) for name, parts in new.items()]
    for stand_in in stand_ins:
        stand_in.enter()
    try:
        yield
    finally:
        for stand_in in stand_ins:
            stand_in.leave()


@contextmanager
def docstrings_as_they_are():
    """While this lasts, SciPy does not parse docstrings, as it does while it is imported, to add notes to them.

    That takes a sixth of the time to import scikit-learn.
    """
    try:
        parsed = import_module("scipy._lib._docscrape").FunctionDoc

        class AsItIs(parsed):
            def _parse(self):
                """No section is found, and none is missed."""

            def __str__(self):
                return f"\n{getdoc(self._f) or ''}"  # behind a first line that is left out

    except (ImportError, AttributeError, TypeError):  # of SciPy's own affairs, which may change
        yield
        return
    sys.modules["scipy._lib._docscrape"].FunctionDoc = AsItIs
    try:
        yield
    finally:
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get("FunctionDoc") is AsItIs:
                module.FunctionDoc = parsed


class _StandIn(ModuleType):
    """In place of a module that is not loaded yet."""

    def __init__(self, name, parts):
        super().__init__(name)
        vars(self).update({part: _Part(self, part) for part in parts})

    def enter(self):
        package, _, name = self.__name__.rpartition(".")
        sys.modules[self.__name__] = self
        if package:
            setattr(import_module(package), name, self)

    def leave(self):
        package, _, name = self.__name__.rpartition(".")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        if package and vars(sys.modules[package]).get(name) is self:
            delattr(sys.modules[package], name)

    def load(self):
        """The module itself."""
        self.leave()
        return import_module(self.__name__)

    def __getattr__(self, attribute):
        if attribute.startswith("__"):  # Python asks for these on its own
            raise AttributeError(attribute)
        return getattr(self.load(), attribute)


class _Part:
    """In place of a function or another object of such a module."""

    def __init__(self, stand_in, name):
        self._stand_in, self._name = stand_in, name

    def __getattr__(self, attribute):
        if attribute in ("_stand_in", "_name"):  # a copy that is being made has none yet
            raise AttributeError(attribute)
        return getattr(getattr(self._stand_in.load(), self._name), attribute)

    def __call__(self, *arguments, **settings):
        return getattr(self._stand_in.load(), self._name)(*arguments, **settings)
