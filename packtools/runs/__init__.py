"""Saved runs: every file format becomes one `Run`, with a report of what was read and repaired."""

from packtools.runs.load import load_run, load_sample, sample_path
from packtools.runs.model import Run
from packtools.runs.report import LoadReport

__all__ = ["LoadReport", "Run", "load_run", "load_sample", "sample_path"]
