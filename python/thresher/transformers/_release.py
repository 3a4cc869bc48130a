"""Which releases of transformers this was tested with."""

import logging
import re

import transformers

from .._errors import UnsupportedError

TESTED = ("5.17.0", "5.24.0")  # the oldest and the newest


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)[:3]))


def expect_tested(found: str = transformers.__version__) -> None:
    """Refuses an older release, whose interfaces are other ones. Of a newer one a line is logged."""
    oldest, newest = TESTED
    said = f"thresher.transformers was tested with transformers {oldest} to {newest}, but {found} is installed"
    if _number(found) < _number(oldest):
        raise UnsupportedError(f"{said}: install a newer one")
    if _number(found) > _number(newest):
        logging.getLogger("thresher.transformers").warning("%s: look at its results before you rely on them", said)
