"""Write a view as files: figures, tables, setting and packed predictions, and links to them."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import json
import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NoReturn
from urllib.parse import quote

import pandas as pd

from packtools.drawing import FORMATS, WIDTHS, export_figure
from packtools.errors import PacktoolsError, SettingError, fail, unknown
from packtools.runs.write import write_whole
from packtools.table_words import delta_cells, latex_table, markdown_table, markdown_text
from packtools.words import label, setting_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from packtools.view import View

__all__ = ["export_view", "links_html", "slug", "table_caption"]

WHERE = "export_view"
WHAT = ("figure", "table", "setting", "packs")
LONGEST_NAME, HASH = 60, 8
DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(10))}
"""Names that Windows keeps for itself, with any ending."""
INSIDE = 1_000_000
"""Bytes of a file up to which a link holds the file itself."""


def export_view(
    view: View,
    folder: str | Path,
    *,
    what: Collection[str] = WHAT,
    formats: Collection[str] = FORMATS,
    width: str = "page",
    figures: Mapping[str, Figure] | None = None,
) -> list[Path]:
    """Write what the panel shows of a setting into a folder.

    1. "figure": each figure in each format, 300 dots an inch, with the setting inside.
    2. "table": the delta table as ``comparison.csv`` (full numbers), ``comparison.md`` and
       ``comparison.tex`` (as on the screen), ``per_query.csv`` and ``curve.csv``.
    3. "setting": ``settings.json``, from which the view can be made again.
    4. "packs": ``packed.jsonl``, which `load_predictions` reads.

    Parameters
    ----------
    view : View
    folder : path
        Made if it is not there; its other files stay as they are.
    what : collection of {"figure", "table", "setting", "packs"}, default all
    formats : collection of {"png", "svg", "pdf"}, default all
    width : {"page", "column"}, default "page"
        6.9 or 3.3 inches; the names of figures of a column end in ``_column``.
    figures : mapping of str to Figure, or None, default None
        File name without ending → a figure drawn at that width; None is ``trade_off``.

    Returns
    -------
    list of Path
        In the order above.

    Raises
    ------
    SettingError
        If a choice is unknown or empty, or the folder can't be written.
    RunFormatError
        If a text can't be stored as UTF-8.

    Notes
    -----
    The same view gives the same bytes. All files are made beside their place first: if one fails,
    none is changed.

    Examples
    --------
    >>> import packtools as pt, tempfile
    >>> view = pt.ExplorerModel(pt.load_sample(), counter="chars").view()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [p.name for p in export_view(view, folder, what=["setting", "packs"])]
    ['settings.json', 'packed.jsonl']
    """
    what, formats = _chosen("what", what, WHAT), _chosen("formats", formats, FORMATS)
    if width not in WIDTHS:
        unknown(SettingError, WHERE, "width", width, WIDTHS)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=target) as beside:
            place, made = Path(beside), []
            if "figure" in what:
                drawn = {"trade_off": view.figure(width)} if figures is None else figures
                made += _figures(view, drawn, place, formats, "_column" if width == "column" else "")
            if "table" in what:
                made += _tables(view, place)
            if "setting" in what:
                made.append(_settings(view, place))
            if "packs" in what:
                made.append(view.packed.save_predictions(place / "packed.jsonl"))
            return [path.replace(target / path.name) for path in made]
    except OSError as error:
        if isinstance(error, PacktoolsError):
            raise
        _not_written(target, error)


def _chosen(parameter: str, given: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Give the choices in the order of `known`, each once."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        fail(SettingError, WHERE, parameter, "a list", given)
    for name in (chosen := list(given)):
        if name not in known:
            unknown(SettingError, WHERE, parameter, name, known)
    if not chosen:
        fail(SettingError, WHERE, parameter, f"at least one of {', '.join(known)}", given)
    return tuple(name for name in known if name in chosen)


def _not_written(target: Path, error: OSError) -> NoReturn:
    at = Path(error.filename2).name if error.filename2 else ""
    why = f"{at}: {error.strerror}" if at else str(error.strerror or error)
    raise SettingError(
        f"{WHERE}: 'folder' must be a folder that can be written; got {str(target)!r} ({why}). "
        "Choose another folder, or free this one."
    ) from error


def _figures(
    view: View, figures: Mapping[str, Figure], place: Path, formats: tuple[str, ...], ending: str
) -> list[Path]:
    settings = view.to_dict()
    return [
        path
        for stem, figure in figures.items()
        for path in export_figure(figure, place / f"{slug(stem)}{ending}", settings=settings, formats=formats)
    ]


def _tables(view: View, place: Path) -> list[Path]:
    heads, rows = delta_cells(view.table, view.against, view.noun)
    caption = table_caption(view)
    notes = "".join(f"\n{markdown_text(note)}\n" for note in (caption, *view.missing))
    texts = {
        "comparison.csv": _csv(view.table),
        "comparison.md": markdown_table(heads, rows) + notes,
        "comparison.tex": latex_table(heads, rows, caption),
        "per_query.csv": _csv(view.per_query),
        "curve.csv": _csv(view.curve),
    }
    return [write_whole(place / name, [text], WHERE) for name, text in texts.items()]


def table_caption(view: View) -> str:
    """Say in one line what a table is of: n, run, counter, setting, baseline, how sure it is."""
    row = view.row(view.quality)
    parts = [
        f"means per query, n = {row['n']:,} of {row['N']:,} queries",
        view.prepared.run.name,
        view.prepared.counter.name,
        label(view.config, ("budget", "order"), view.noun),
        *setting_words(view.config, view.noun),
        f"baseline: {view.against}",
        "95 % paired bootstrap",
    ]
    return " · ".join(parts)


def _csv(frame: pd.DataFrame) -> str:
    def written(quoting: Literal[0, 1]) -> str:
        return frame.to_csv(lineterminator="\n", float_format="%.10g", quoting=quoting)

    text = written(csv.QUOTE_MINIMAL)
    return written(csv.QUOTE_ALL) if "\r" in text else text  # unquoted, it would end a line


def _settings(view: View, place: Path) -> Path:
    text = json.dumps(view.to_dict(), ensure_ascii=False, indent=1) + "\n"
    return write_whole(place / "settings.json", [text], WHERE)


def slug(name: str) -> str:
    """Make a file name of a name: letters, digits and "._-" stay, all others become "-".

    Parameters
    ----------
    name : str

    Returns
    -------
    str
        1 to 60 characters; no name that Windows keeps for itself. Where it is not `name` itself, it
        ends in a hash of it, so that two names stay two files.

    Notes
    -----
    Case is kept: "A" and "a" are one file where the disk does not tell them apart.

    Examples
    --------
    >>> slug("bm25"), slug("sample/bm25")
    ('bm25', 'sample-bm25-0286c52c')
    """
    text = unicodedata.normalize("NFC", name)
    kept = "".join(c if c.isalnum() or c in "._-" or unicodedata.category(c)[0] == "M" else "-" for c in text)
    kept = kept.strip("-.") or "run"
    if unicodedata.normalize("NFKC", kept.partition(".")[0]).upper() in DEVICES:
        kept = f"run-{kept}"
    if kept == name and len(kept) <= LONGEST_NAME:
        return kept
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH]
    return f"{kept[: LONGEST_NAME - HASH - 1].rstrip('-.')}-{digest}"


def links_html(paths: Iterable[str | Path], root: str | Path | None = None) -> str:
    """Say where files were written, as HTML for a widget, with a link to download each.

    1. Under the root of a Jupyter server: an address of that server, for files of any size.
    2. Elsewhere, up to 1 MB: the file itself in the link, which works wherever the page is shown.
    3. Else the name alone, below its folder.

    Parameters
    ----------
    paths : iterable of path
    root : path or None, default None
        The folder that the server shows; None finds that of the server which started this kernel.

    Returns
    -------
    str
        Escaped; "" for no files.

    Notes
    -----
    An HTML widget leaves addresses as they are, so one relative to the notebook leads nowhere.
    """
    served, prefix = _server()
    home = served if root is None else Path(root).resolve()
    folders: dict[Path, list[str]] = {}
    for path in (Path(p).resolve() for p in paths):
        folders.setdefault(path.parent, []).append(f"<li>{_link(path, home, prefix)}</li>")
    return "".join(
        f'<div class="quiet">Written to <b>{html.escape(str(folder))}</b>:'
        f'<ul style="margin:2px 0">{"".join(items)}</ul></div>'
        for folder, items in folders.items()
    )


def _link(path: Path, home: Path | None, prefix: str) -> str:
    name = html.escape(path.name)
    inside = path.relative_to(home) if home and path.is_relative_to(home) else None
    if inside is not None and not any(part.startswith(".") for part in inside.parts):  # hidden: not served
        address = f"{prefix}files/{quote(inside.as_posix())}"
    elif path.stat().st_size <= INSIDE:
        address = f"data:application/octet-stream;base64,{base64.b64encode(path.read_bytes()).decode()}"
    else:
        return name
    return f'<a download="{name}" href="{html.escape(address)}">{name}</a>'


def _server() -> tuple[Path | None, str]:
    """Find the root and the prefix of the addresses of the Jupyter server that started this kernel."""
    try:
        from jupyter_core.paths import jupyter_runtime_dir

        name = f"jpserver-{os.environ.get('JPY_PARENT_PID')}.json"
        told = json.loads(Path(jupyter_runtime_dir(), name).read_text("utf-8"))
        return Path(told["root_dir"]).resolve(), str(told["base_url"])
    except (ImportError, OSError, ValueError, KeyError):  # no server, or one that tells nothing
        return None, "/"
