"""The notebooks are kept without outputs; `tests/repository/test_documents.py` runs them."""

from pathlib import Path

import nbformat
import pytest

from support import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("**/*.ipynb"))


def test_there_is_one() -> None:
    assert ROOT / "docs" / "first-steps.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_holds_nothing_that_a_run_left_in_it(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    nbformat.validate(document)
    for cell in document.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    assert set(document.metadata) <= {"kernelspec", "language_info"}
