"""`python -m tests.figures accuracy|verdict|looks|weights`: makes docs/detection.md and docs/weights.md again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tests.figures.ablate import pictures_of
from tests.figures.accuracy import corpus_cases, judge_case, put_into, render_page
from tests.figures.looks import measure_looks, put_looks_into
from tests.figures.mutants import dialogs_of, judge_mutants, render_mutants

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
DETECTION_PAGE = ROOT / "docs" / "detection.md"


@click.group()
def command() -> None:
    """Make the pages on detection again."""


@command.command()
@click.option("--zoo", type=click.Path(exists=True, path_type=Path), help="What the zoo's judge wrote with --json.")
def accuracy(zoo: Path | None) -> None:
    """Judge all recordings, and write docs/detection.md."""
    cases = corpus_cases(CORPUS)
    moments = [moment for case in cases for moment in judge_case(case)]
    known = [case for case in cases if case.parts[-3] != "generic"]
    strangers = [moment for case in known for moment in judge_case(case, stranger=True)]
    mutants = render_mutants(list(judge_mutants(list(dialogs_of(CORPUS)))))
    zoo_cases = json.loads(zoo.read_text("utf-8")) if zoo else []
    DETECTION_PAGE.write_text(render_page(moments, strangers, zoo_cases, mutants), "utf-8")
    wrong = [moment for moment in moments if not moment.right]
    for moment in wrong:
        click.echo(f"wrong: {moment.tool} {moment.case} {moment.kind}: {moment.wrong}", err=True)
    raise SystemExit(1 if wrong else 0)


@command.command()
def verdict() -> None:
    """Write only the table of verdicts into docs/detection.md."""
    DETECTION_PAGE.write_text(put_into(DETECTION_PAGE.read_text("utf-8")), "utf-8")


@command.command()
def looks() -> None:
    """Measure a look at every recorded screen and at the hardest pages, and write it into docs/detection.md."""
    took = list(measure_looks(list(pictures_of(CORPUS))))
    DETECTION_PAGE.write_text(put_looks_into(DETECTION_PAGE.read_text("utf-8"), took), "utf-8")
    for name, ms in sorted(took, key=lambda one: -one[1])[:10]:
        click.echo(f"{ms:.2f} ms  {name}")


@command.command()
def weights() -> None:
    """Leave out each rule, group of words and number in turn, and write docs/weights.md."""
    from tests.figures.weigh import write_page

    raise SystemExit(write_page(CORPUS, ROOT / "docs" / "weights.md"))


if __name__ == "__main__":
    command()
