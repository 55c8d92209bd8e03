"""Published studies: their experiments run again, the printed figures beside ours.

    from airpath import study

    result = study.run("hsdpa-sim", only="rtt")
    result.to_dict()

A study is data: a folder in `studies/` with a `study.toml`, its scenarios and a README.

| module | what |
| --- | --- |
| `definition` | reads `study.toml` and multiplies its axes out |
| `metrics` | the formulas |
| `air_interface`, `arrivals`, `delays`, `sender` | those that need the event log |
| `observations` | what is read from the log for them |
| `aggregate` | rows over many repetitions, or over an axis |
| `grid` | published values, nested as the axes are |
| `interval` | means and their 95 % intervals |
| `checks` | what it takes for a finding to hold |
| `real` | runs cases over emulated links, with the kernel's TCP |
| `runner` | runs the cases and fills in the rows |
| `result` | rows and findings as data, text, Markdown and report |
"""

from airpath.study.definition import Study, studies
from airpath.study.errors import StudyError, UnknownNameError
from airpath.study.result import Finding, StudyResult
from airpath.study.rows import Row
from airpath.study.runner import run

__all__ = ["Finding", "Row", "Study", "StudyError", "StudyResult", "UnknownNameError", "run", "studies"]
