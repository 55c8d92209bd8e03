"""What an interpreter and a notebook show of the library."""

import airpath


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
