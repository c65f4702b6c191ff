"""The workbench: choose a table, correct how its columns are read, learn, evaluate, compare, download the model."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from likely.families import ALL
from likely.web._messages import JSON, HttpError, Request, Response, answer, decoded, plain
from likely.web._pages import report_page
from likely.web._served_model import ServedModel, loaded
from likely.web._uploads import CHILD, UNPACKED, ending_of, stored, without_paths

if TYPE_CHECKING:
    from likely.web._app import App

Handler = Callable[[Request], "Response | Awaitable[Response]"]
MOST_TABLES, MOST_MODELS = 20, 20
FAMILIES = ("auto", *(each.name for each in ALL if each.named_for_a_column()), "ignore")
LEARN_SECONDS = 600
STAGES = {"learn": "learning and cross-validating", "report": "writing the report", "compare": "comparing with baselines"}


class Example(msgspec.Struct, forbid_unknown_fields=True):
    """A bundled table, by name."""

    example: str


class Learn(msgspec.Struct, forbid_unknown_fields=True):
    """What to learn: table, target, and the family of each column that is not to be chosen from the data."""

    table: str
    target: str
    families: dict[str, str] = {}
    plain: bool = False


class Compare(msgspec.Struct, forbid_unknown_fields=True):
    """A table and target to compare with baselines on."""

    table: str
    target: str


EXAMPLE, LEARN, COMPARE = (msgspec.json.Decoder(kind) for kind in (Example, Learn, Compare))


@dataclass
class Job:
    """A task in a child process: state, progress, and result or error."""

    verb: str
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stage: str = ""
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    fault: HttpError | None = None
    task: asyncio.Task[None] | None = None

    def begin(self, stage: str) -> None:
        """Start a new stage, without progress so far."""
        self.stage, self.progress = stage, None

    def on_progress(self, progress: dict[str, Any]) -> None:
        """Store the progress of the current stage: activity, amount done, and estimated seconds left."""
        self.progress = progress

    def document(self) -> dict[str, Any]:
        """State, stage, progress, seconds and result."""
        state = "running" if self.ended is None else "failed" if self.fault else "done"
        seconds = round((self.ended or time.monotonic()) - self.started, 1)
        found: dict[str, Any] = {"state": state, "stage": self.stage, "progress": self.progress, "seconds": seconds}
        if self.fault:
            found["error"] = {"code": "bad_data", "message": self.fault.message, "details": plain(self.fault.details)}
        return found | {"result": self.result}


class Workbench:
    """Tables, jobs and models of the page; all in a temporary folder that is removed at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="likely-workbench-"))
        self.tables: dict[str, Path] = {}
        self.jobs: dict[str, Job] = {}
        self.learned: dict[str, Path] = {}  # model files by the name of the model

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def routes(self, app: App) -> dict[str, Mapping[str, Handler]]:
        """Routes with fixed addresses."""
        return {
            "/api/workbench/examples": {"GET": lambda _: answer({"examples": sorted(examples())})},
            "/api/workbench/tables": {"POST": self._add_table},
            "/api/workbench/learn": {"POST": lambda request: self._learn(app, request)},
            "/api/workbench/compare": {"POST": self._compare},
        }

    def dynamic(self, parts: list[str]) -> Mapping[str, Handler] | None:
        """Routes of jobs and models."""
        if parts[:3] == ["api", "workbench", "jobs"] and len(parts) == 4 and parts[3] in self.jobs:
            job = self.jobs[parts[3]]
            return {"GET": lambda _: answer(job.document())}
        if parts[:3] == ["api", "workbench", "models"] and len(parts) == 5 and parts[3] in self.learned:
            path = self.learned[parts[3]]
            if parts[4] == "download":
                return {"GET": lambda _: _download(path, parts[3])}
            if parts[4] == "report":
                return {"GET": lambda _: _report(path)}
        return None

    async def _add_table(self, request: Request) -> Response:
        """Store a table, and describe how its columns are read."""
        if request.headers.get("content-type", "").startswith(JSON) and "name" not in request.query:
            name = decoded(request, EXAMPLE.decode).example
            if name not in examples():
                raise HttpError(404, f"there is no example {name!r}", known=sorted(examples()))
            path = examples()[name]
        else:
            ending_of(request.query.get("name", ""))
            path = stored(self.folder, request)
        try:
            found = json.loads(await CHILD.run(["inspect", str(path), "--max-unpacked", UNPACKED, "--json"]))
        except HttpError as fault:
            if path.parent == self.folder:
                path.unlink(missing_ok=True)
            raise without_paths(fault, path) from None
        key = secrets.token_hex(8)
        self.tables[key] = path
        for old in list(self.tables)[:-MOST_TABLES]:
            gone = self.tables.pop(old)
            if gone.parent == self.folder:
                gone.unlink(missing_ok=True)
        return answer({"table": key, "columns": found["columns"], "families": FAMILIES})

    def _table(self, key: str) -> Path:
        if key not in self.tables:
            raise HttpError(404, "this table is no longer here: send it again")
        return self.tables[key]

    def _start(self, verb: str, work: Callable[[Job], Awaitable[dict[str, Any]]]) -> Response:
        """Start a job; its progress is at /api/workbench/jobs/ID."""
        job, key = Job(verb, stage=STAGES[verb]), secrets.token_hex(8)
        if sum(1 for each in self.jobs.values() if each.ended is None) >= 8:
            raise HttpError(503, "several tables are being learned from: try again later")

        async def run() -> None:
            try:
                job.result = await work(job)
            except HttpError as fault:
                job.fault = without_paths(fault, *self.tables.values())
            except Exception as fault:  # the error is shown on the page
                job.fault = HttpError(422, str(fault))
            finally:
                job.ended = time.monotonic()

        job.task = asyncio.ensure_future(run())
        self.jobs[key] = job
        for old in [k for k, each in self.jobs.items() if each.ended is not None][:-50]:
            del self.jobs[old]
        return answer({"job": key}, 202)

    def _learn(self, app: App, request: Request) -> Response:
        asked: Learn = decoded(request, LEARN.decode)
        data = self._table(asked.table)
        words = ["learn", str(data), f"--target={asked.target}", "--folds", "5", "--max-unpacked", UNPACKED, "--json"]
        for name, family in asked.families.items():
            if family not in FAMILIES:
                raise HttpError(422, f"there is no family {family!r}", column=name, known=list(FAMILIES))
            if family == "ignore":
                words.append(f"--ignore={_option_name(name)}")
            elif family != "auto":
                words.append(f"--family={_option_name(name)}={family}")
        if asked.plain:
            words.append("--plain")

        async def work(job: Job) -> dict[str, Any]:
            path = self.folder / f"model-{secrets.token_hex(8)}.likely"
            found = json.loads(await CHILD.run([*words, "-o", str(path)], LEARN_SECONDS, job.on_progress))
            name = f"learned-{len(self.learned) + 1}"
            state = await asyncio.get_running_loop().run_in_executor(None, loaded, path)
            app.models[name] = ServedModel(name, None, state)
            self.learned[name] = path
            for old in [each for each in app.models if each in self.learned][:-MOST_MODELS]:
                del app.models[old]
            job.begin(STAGES["report"])
            report = await self._write_report(path, data, job)
            return {"model": name, "learned": found | {"model": name}, "report": report}

        return self._start("learn", work)

    async def _write_report(self, model: Path, data: Path, job: Job) -> bool:
        """Write the report of a model beside it; False where that is not possible."""
        words = ["report", str(model), "--data", str(data), "-o", str(model.with_suffix(".html"))]
        try:
            await CHILD.run(words, LEARN_SECONDS, job.on_progress)
        except HttpError:
            return False
        return True

    def _compare(self, request: Request) -> Response:
        asked: Compare = decoded(request, COMPARE.decode)
        words = ["compare", str(self._table(asked.table)), f"--target={asked.target}", "--json"]

        async def work(job: Job) -> dict[str, Any]:
            found: dict[str, Any] = json.loads(await CHILD.run(words, LEARN_SECONDS, job.on_progress))
            return found

        return self._start("compare", work)


def examples() -> dict[str, Path]:
    """The bundled tables by name."""
    folder = Path(str(files("likely").joinpath("data")))
    return {path.stem: path for path in folder.glob("*.csv")}


def _option_name(name: str) -> str:
    """A column name as the options of a command take it."""
    return '"' + name.replace('"', '""') + '"' if re.search(r'[,"]', name) else name


def _download(path: Path, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.likely"'}
    return Response(200, path.read_bytes(), "application/octet-stream", headers)


def _report(path: Path) -> Response:
    written = path.with_suffix(".html")
    if not written.exists():
        raise HttpError(404, "there is no report of this model")
    return report_page(written.read_bytes())
