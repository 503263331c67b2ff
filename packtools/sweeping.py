"""`sweep`: evaluate a grid of settings over a run in memory, or over the parts of one by workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtools import __version__, grids
from packtools.budget import FILLS
from packtools.config import PackerConfig
from packtools.counters import TokenCounter, counter_for
from packtools.errors import SettingError, WorkersDied, fail
from packtools.joining import put_together
from packtools.ordering import ORDERINGS
from packtools.pieces import Piece, Shelf, fingerprint_of_files, fingerprint_of_run, mark_of
from packtools.prepared import MIN_JACCARD, PreparedRun, prepare
from packtools.progress import progress
from packtools.runs.layout import find_parts, part_files
from packtools.runs.load import Paths, load_run
from packtools.runs.model import Run
from packtools.runs.parts import is_partition
from packtools.runs.read_parts import name_of
from packtools.selecting import check_names
from packtools.selection import SELECTORS
from packtools.sentences import SPLITTERS
from packtools.stats import check_rng
from packtools.swept import SweepResult
from packtools.tradeoff import SHOWN, unpacked

__all__ = ["sweep"]

DEATHS = 4
"""Times in a row that a pool of workers may break before nothing is handed out again."""
TABLES: dict[str, dict[str, Any]] = {
    "order": ORDERINGS,
    "fill": FILLS,
    "sentence_selection": SELECTORS,
    "splitter": SPLITTERS,
}
PROBES = ("The 1,234 moons of Saturn.", "naïve café", "東京は首都", "a\n\nb")
"""Texts whose counts tell counters of the same name apart."""
WEIGHED = {"tfidf", "mmr"}
WHOLE = "run"


def sweep(
    run: PreparedRun | Run | Paths,
    *,
    base: PackerConfig = SHOWN,
    baseline: PackerConfig | None = None,
    counter: str | TokenCounter | None = None,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    rng: int = 0,
    **grid: object,
) -> SweepResult:
    """Evaluate every setting of a grid, query by query, against one baseline.

    1. Every combination of the values given is one setting; budgets are one axis of the fit.
    2. A run in memory is prepared once. A folder of parts (see `partition`) is read part by part, each
       by whichever worker takes it; only the metrics of its queries come back.
    3. Ctrl-C ends the sweep early: the result holds what was finished and says what is missing.

    Parameters
    ----------
    run : PreparedRun, Run or path(s)
        Paths go through `load_run`.
    base : PackerConfig, default with separator "\\\\n\\\\n"
        Whatever the grid does not set.
    baseline : PackerConfig or None, default None
        What every setting is compared with; None is the unpacked run.
    counter : str, TokenCounter or None, default None
        See `counter_for`; None is that of the prepared run, else cl100k_base.
    n_jobs : int or None, default None
        Workers, as joblib counts them: None is 1, or what ``joblib.parallel_config`` says; -1 is every
        core. That call also chooses who works: processes (the default), threads, Dask, Ray or Spark.
    checkpoint : path or None, default None
        A folder where finished work is kept; a sweep that finds it there does not do it again.
    rng : int, default 0
        Seed of the intervals and tests.
    **grid
        Settings of `PackerConfig`, each a value or a list of values.

    Returns
    -------
    SweepResult

    Raises
    ------
    SettingError
        If the grid names no setting, a list is empty, or a threshold is below what was prepared.
    PackerError
        If a combination breaks a rule of `PackerConfig`.

    Notes
    -----
    Every value equals that of `PreparedRun.evaluate`, whoever works and however the run is cut: the
    same bits. Cost: one `evaluate` a setting and query, one fit for all budgets. Processes get the
    run in memory handed to them; for a large one, a folder of parts is what to give.

    Examples
    --------
    >>> from packtools import load_sample, prepare
    >>> prepared = prepare(load_sample(), counter="chars")
    >>> found = sweep(prepared, budget=[4000, 8000], order=["descending", "lost_in_middle"])
    >>> found.table[["budget", "order"]].iloc[:3].to_numpy().tolist()
    [[nan, 'descending'], [4000.0, 'descending'], [8000.0, 'descending']]
    """
    configs = grids.expand(_checked(base), grid)
    against = unpacked(configs[0]) if baseline is None else baseline
    check_rng("sweep", rng)
    if not isinstance(against, PackerConfig):
        fail(SettingError, "sweep", "baseline", "a PackerConfig or None", baseline)
    wanted = list(dict.fromkeys([against, *configs]))
    for config in wanted:
        check_names(config)
    _check_jobs(n_jobs)
    source = _source(run, counter, wanted)
    shelf = Shelf(checkpoint, {} if checkpoint is None else _marks(source, wanted))
    found = _work(source, wanted, shelf, n_jobs)
    return put_together(source.name, source.counter, against, configs, source.names, found, rng)


def _checked(base: object) -> PackerConfig:
    if not isinstance(base, PackerConfig):
        fail(SettingError, "sweep", "base", "a PackerConfig", base)
    return base


def _check_jobs(n_jobs: object) -> None:
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0):
        fail(SettingError, "sweep", "n_jobs", "a whole number but 0, or None", n_jobs)


def _marks(source: Source, configs: Sequence[PackerConfig]) -> dict[str, Any]:
    """Tell what values depend on beside data and setting: versions, the counter, functions registered."""
    counts = [source.used.count(text) for text in PROBES]
    functions = [
        [named, name, mark_of(value)]
        for named, some in _registered(configs).items()
        for name, value in some.items()
    ]
    return {"counter": source.counter, "counts": counts, "functions": functions, "version": __version__}


# --- sources: a run in memory, or the parts of one -------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Hold where the queries come from: parts by name, each a prepared run or a folder.

    Parameters
    ----------
    name : str
    used : TokenCounter
    parts : mapping of name to PreparedRun or Path
    how : mapping
        Arguments of `prepare` for the folders.
    """

    name: str
    used: TokenCounter
    parts: Mapping[str, PreparedRun | Path]
    how: Mapping[str, Any]

    @property
    def counter(self) -> str:
        return self.used.name

    @property
    def names(self) -> list[str]:
        return list(self.parts)

    def fingerprint(self, name: str) -> str:
        part = self.parts[name]
        if isinstance(part, PreparedRun):
            return fingerprint_of_run(part.run)
        return fingerprint_of_files(part_files(part))


def _source(
    run: PreparedRun | Run | Paths, counter: str | TokenCounter | None, configs: Sequence[PackerConfig]
) -> Source:
    thresholds = [c.jaccard_threshold for c in configs if c.jaccard_threshold is not None]
    separators = sorted({c.separator for c in configs if c.separator is not None})
    how: dict[str, Any] = {"min_jaccard": min([MIN_JACCARD, *thresholds]), "separators": separators}
    if isinstance(run, str | Path) and is_partition(Path(run)):
        folder, used = Path(run), counter_for(counter or "cl100k_base")
        parts = {p.relative_to(folder.parent).as_posix(): p for p in find_parts(folder)}
        _check_weights(list(parts.values()), configs)
        return Source(name_of(list(parts.values())), used, parts, {**how, "counter": used})
    if not isinstance(run, PreparedRun):
        loaded = run if isinstance(run, Run) else load_run(run)
        run = prepare(loaded, counter=counter or "cl100k_base", **how)
    elif counter is not None:
        run = run.with_counter(counter)
    for config in configs:
        run.check_threshold(config)
    return Source(run.run.name, run.counter, {WHOLE: run}, {})


def _check_weights(parts: Sequence[Path], configs: Sequence[PackerConfig]) -> None:
    """Refuse weights of terms that differ from part to part."""
    weighed = {c.sentence_selection for c in configs} & WEIGHED
    if weighed and len({part.parent for part in parts}) > 1:
        rule = "one partition, for the sentence selections " + " and ".join(sorted(WEIGHED))
        hint = "Each partition weighs terms by its own passages: partition the whole run at once."
        fail(SettingError, "sweep", "run", rule, f"{len(parts)} parts of several", hint)


# --- the work --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Hold what a worker needs: a part, the settings, and whatever the user registered."""

    name: str
    part: PreparedRun | Path
    how: Mapping[str, Any]
    configs: tuple[PackerConfig, ...]
    registered: Mapping[str, Mapping[str, Any]]


def evaluate_task(task: Task) -> Piece:
    """Do a task in a worker."""
    for setting, named in task.registered.items():
        TABLES[setting].update(named)
    return Piece.join(list(_evaluate(task)))


def _evaluate(task: Task) -> Iterator[Piece]:
    """Evaluate the settings of a task, ladder by ladder."""
    part = task.part
    prepared = part if isinstance(part, PreparedRun) else prepare(load_run(part), **task.how)
    for ladder in grids.ladders(task.configs):
        packs = prepared.each_budget(ladder[0], [c.budget for c in ladder])
        ids = [grids.setting_id(c) for c in ladder]
        yield Piece.of(task.name, ids, [p.per_query for p in packs], prepared.unavailable)


def _work(source: Source, configs: Sequence[PackerConfig], shelf: Shelf, n_jobs: int | None) -> list[Piece]:
    """Do all work that the shelf does not hold; Ctrl-C ends it with what is finished."""
    prints = {name: source.fingerprint(name) for name in source.names} if shelf.folder is not None else {}
    found = [piece for name in prints for piece in shelf.find(name, prints[name])]
    deaths = 0
    try:
        while tasks := _tasks(source, configs, found, n_jobs):
            try:
                for piece in progress(_done(tasks, n_jobs), "sweep", _steps(tasks, n_jobs)):
                    found.append(piece)
                    shelf.put(piece, prints.get(piece.source, ""))
                    deaths = 0
            except BrokenExecutor as error:  # a worker died: what is not finished is handed out again
                deaths += 1
                if deaths == DEATHS:
                    raise WorkersDied(
                        f"sweep: workers died {deaths} times in a row ({error}). Give them less at a time: "
                        "fewer n_jobs, or smaller parts; with a checkpoint, what is finished is kept."
                    ) from error
    except KeyboardInterrupt:
        pass
    return found


def _steps(tasks: Sequence[Task], n_jobs: int | None) -> int:
    """Count the pieces that will come: a ladder each where nobody else works, else a task each."""
    return sum(len(grids.ladders(t.configs)) for t in tasks) if _alone(n_jobs) else len(tasks)


def _tasks(
    source: Source, configs: Sequence[PackerConfig], found: Iterable[Piece], n_jobs: int | None
) -> list[Task]:
    """Cut what is missing into tasks: a part each; a run in memory by its settings."""
    done = {(piece.source, i) for piece in found for i in piece.ids}
    registered = _registered(configs)
    tasks = []
    for name, part in source.parts.items():
        missing = [c for c in configs if (name, grids.setting_id(c)) not in done]
        shares = _shares(missing, n_jobs) if isinstance(part, PreparedRun) else [missing]
        tasks += [Task(name, part, source.how, tuple(s), registered) for s in shares if s]
    return tasks


def _registered(configs: Sequence[PackerConfig]) -> dict[str, dict[str, Any]]:
    """Give what the settings name in each table, for workers who may not have it."""
    return {
        setting: {
            name: TABLES[setting][name]
            for name in sorted({str(getattr(c, setting)) for c in configs} & TABLES[setting].keys())
        }
        for setting in TABLES
    }


def _shares(configs: Sequence[PackerConfig], n_jobs: int | None) -> list[list[PackerConfig]]:
    """Deal ladders out to two tasks a worker, one ladder a task where nobody else works."""
    ladders = grids.ladders(configs)
    n = len(ladders) if _alone(n_jobs) else min(2 * _workers(n_jobs), len(ladders))
    return [[c for ladder in ladders[i::n] for c in ladder] for i in range(n)]


def _workers(n_jobs: int | None) -> int:
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def _alone(n_jobs: int | None) -> bool:
    """Whether there is one worker and it is this process: a cluster of one is not."""
    from joblib.parallel import get_active_backend

    here = type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")
    return here and _workers(n_jobs) == 1


def _done(tasks: Sequence[Task], n_jobs: int | None) -> Iterator[Piece]:
    """Give pieces as they are finished."""
    if _alone(n_jobs):
        for task in tasks:
            yield from _evaluate(task)
        return
    from joblib import Parallel, delayed

    try:
        workers = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    except ValueError as error:  # a backend that can't give results as they come
        raise SettingError(f"sweep: joblib can't work so: {error}") from error
    yield from workers(delayed(evaluate_task)(task) for task in tasks)
