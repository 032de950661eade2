"""Importing without what others import and hardly ever use."""

import sys
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


@contextmanager
def loaded_later(name, parts):
    """While this lasts, importing the module, or these parts of it, does not load it.

    It is loaded when one of them is used, or as soon as anything else of the module is asked for.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = stand_in = _StandIn(name)
    vars(stand_in).update({part: _Part(name, part) for part in parts})
    try:
        yield
    finally:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]


class _StandIn(ModuleType):
    """In place of a module that is not loaded yet."""

    def __getattr__(self, attribute):
        if attribute.startswith("__"):  # Python asks for these on its own
            raise AttributeError(attribute)
        return getattr(_load(self.__name__), attribute)


class _Part:
    """In place of a function or another object of such a module."""

    def __init__(self, module, name):
        self._of = module, name

    def __getattr__(self, attribute):
        module, name = self._of
        return getattr(getattr(_load(module), name), attribute)

    def __call__(self, *arguments, **settings):
        module, name = self._of
        return getattr(_load(module), name)(*arguments, **settings)


def _load(name):
    """The module itself."""
    if isinstance(sys.modules.get(name), _StandIn):
        del sys.modules[name]
    return import_module(name)
