"""What an interpreter and a notebook show of the library."""

from pathlib import Path

import airpath
from airpath import study
from support import DOWNLOAD, ROOT

CAPTURE = ROOT / "tests" / "captures" / "loss-server.pcapng"


def test_a_preset_is_one_line() -> None:
    text = repr(airpath.preset("gprs"))
    assert text.startswith("<bearer preset gprs-4+1: ")
    assert len(text) < 120
    assert "bearer preset" in repr(airpath.presets())


def test_a_preset_is_a_table_in_a_notebook() -> None:
    preset = airpath.preset("gprs")
    html = preset._repr_html_()
    assert html.count("<tr>") == 1 + len(preset.parameters)
    assert "&quot;cs-1&quot;" in html


def test_the_module_shows_its_public_names_only() -> None:
    names = dir(airpath)
    assert {"run", "link", "plot", "study", "__version__"} <= set(names)
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(names)
    assert all(hasattr(airpath, name) for name in names)
    assert set(airpath.__all__) <= set(names)


def test_every_result_is_one_line_and_a_table(tmp_path: Path) -> None:
    result = airpath.run(DOWNLOAD, out=tmp_path / "one")
    airpath.run(DOWNLOAD, set={"bearer.bler": 0.2}, out=tmp_path / "other")
    plan = airpath.make_plan(DOWNLOAD, {"bearer.bler": [0.0, 0.1]})
    shown = {
        "flow": result,
        "bearer.bler": plan,
        "case": airpath.sweep(plan, out=tmp_path / "swept"),
        "client": airpath.trace(CAPTURE),
        "verdict": airpath.compare(tmp_path / "one", tmp_path / "other"),
        "kind": airpath.Linked(0, result, b"x" * 1000, None),
    }
    for title, each in shown.items():
        text = repr(each)
        assert text.startswith(f"<airpath.{type(each).__name__} ")
        assert "\n" not in text
        assert len(text) < 300
        html = each._repr_html_()
        assert f"<th>{title}</th>" in html
        assert html.count("<tr>") > 1
    assert repr(study.studies()[0]).startswith("<airpath.study.Study ")


def test_a_title_is_text_in_html() -> None:
    named = DOWNLOAD.replace('"small"', '"<b>bold</b>"')
    assert "&lt;b&gt;bold" in airpath.run(named)._repr_html_()
