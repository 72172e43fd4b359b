"""The quick tests are one of each kind; those marked `full` repeat what another shows, or take long: FULL=1 runs them too."""

import os

import pytest

FULL = os.environ.get("FULL", "0") not in ("", "0")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: runs with FULL=1 only")


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if not FULL and item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def full_but(values, *quick):
    """Parameters, of which only these also run in the quick form."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.full) for value in values]
