"""Published studies: their experiments repeated, the published figures beside ours.

    from airpath import study

    result = study.run("hsdpa-sim", only="rtt")
    result.to_dict()

A study is data: a folder in `studies/` with a `study.toml`, its scenarios and a README. The report
of a result in its JSON form is `airpath.study.report.write`, a figure of it
`airpath.study.figures.draw`.

| module | what |
| --- | --- |
| `definition` | reads `study.toml`, one case for each combination of its axes' values |
| `grid`, `tolerance` | published values, and when ours agrees with one |
| `metrics` | the formulas |
| `air_interface`, `arrivals`, `delays`, `mobile`, `sender`, `timelines` | formulas that need the event log |
| `observations` | the list of these observers |
| `rows`, `aggregate` | rows of cases, and rows over many repetitions or an axis |
| `checks` | the checks of findings |
| `runner`, `emulation` | runs the cases: in virtual time, and over emulated links with the kernel's TCP |
| `result` | rows and findings as data, text and Markdown |
| `report`, `figures`, `published_figures`, `choices` | the HTML report |
| `run_figure`, `run_plots`, `run_events` | its figures of single runs: which run, how it is drawn, which part |
"""

from airpath.study.definition import Study, studies
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.result import Finding, StudyResult
from airpath.study.rows import Row
from airpath.study.runner import run

__all__ = ["Finding", "Row", "Study", "StudyError", "StudyResult", "UnknownNameError", "run", "studies"]
