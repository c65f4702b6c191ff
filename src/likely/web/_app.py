"""The application: access control, routing, and dispatch of work to threads."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from likely import __version__
from likely.web import _openapi as openapi
from likely.web._journal import JournalEntry
from likely.web._json_tables import SCANNED, read_table
from likely.web._messages import HttpError, Request, Response, answer
from likely.web._model_routes import describe, explain, predict_row, predict_table, read_update
from likely.web._online_learning import OnlineLearner
from likely.web._pages import PAGE_POLICY, page, static_file
from likely.web._request_metrics import RequestMetrics
from likely.web._served_model import ModelState, ServedModel
from likely.web._workbench import Workbench

Handler = Callable[[Request], "Response | Awaitable[Response]"]
VERBS = ("predict", "explain", "update", "forget", "reload", "score")
LONGEST = {"score": 64 << 20, "tables": 64 << 20, "predict": 64 << 20, "update": 8 << 20, "forget": 8 << 20}
WAITING = 64  # jobs that may run or wait for a thread; beyond it, 503
EXPERIMENTS = ("candy", "em", "surface", "tennis", "network")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass
class App:
    """All routes over the served models.

    Attributes
    ----------
    models : dict
        The served models by name; the first one answers where no name is given.
    learners : dict
        The writers of models that may be changed.
    token : str
        What changing calls must send as `Authorization: Bearer`.
    hosts : frozenset
        Names that the Host header may hold, besides addresses of this machine.
    workbench : Workbench or None
        Uploads and learning; None where a model was given.
    """

    models: dict[str, ServedModel]
    learners: dict[str, OnlineLearner]
    token: str
    hosts: frozenset[str]
    workbench: Workbench | None
    open_host: bool = False  # listens on all interfaces: any address of this machine is a valid host
    metrics: RequestMetrics = field(default_factory=RequestMetrics)
    connections: Callable[[], int] = lambda: 0

    def __post_init__(self) -> None:
        # Not workers of `kernels`, which start no others: a request hands large tables to the one pool that scores.
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="likely-work")
        self._running = 0
        self._routes: dict[str, Mapping[str, Handler]] = {
            "/": {"GET": self._page},
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
            "/openapi.json": {"GET": self._openapi},
            "/api/models": {"GET": self._models},
            "/api/model": {"GET": lambda request: self._verb("", "", request)},
        }
        for verb in VERBS:
            self._routes[f"/api/{verb}"] = {"POST": self._of_default(verb)}
        for name in EXPERIMENTS:
            self._routes[f"/api/lab/{name}"] = {"POST": self._lab(name)}
        if self.workbench:
            self._routes |= self.workbench.routes(self)

    # -------------------------------------------------------------- access control

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        """Answer a request, directly or by a coroutine."""
        self._check_host(request.headers.get("host"))
        if request.method not in ("GET", "HEAD"):
            self._check_origin(request.headers)
        method = "GET" if request.method == "HEAD" else request.method
        known = self._routes.get(request.path) or self._dynamic(request.path)
        if known is None:
            raise HttpError(404, "there is no such address; /openapi.json lists them")
        if method not in known:
            raise HttpError(405, f"{request.method} is not possible here", headers={"Allow": ", ".join(known)})
        return known[method](request)

    def _check_host(self, host: str | None) -> None:
        """Refuse unknown Host headers: a page whose name was rebound to this machine (DNS rebinding) has another Host."""
        if not host:
            raise HttpError(400, "the Host header is missing")
        if not self._known(_hostname(f"//{host}")):
            raise HttpError(403, "this Host is not served here: start with --allow-host NAME to accept another name")

    def _known(self, name: str | None) -> bool:
        if name is None:
            return False
        if name in self.hosts:
            return True
        try:
            return self.open_host and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        if origin is not None and not (_hostname(origin) and f"//{headers['host']}" == origin.partition(":")[2]):
            raise HttpError(403, "requests from pages of another origin are refused")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HttpError(403, "requests from pages of another site are refused")

    def check_token(self, request: Request) -> None:
        """Refuse a changing call without the token."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise HttpError(401, "changing calls need the token: send 'Authorization: Bearer TOKEN'")

    # -------------------------------------------------------------- routing

    def route_of(self, path: str) -> str:
        """The route of a path, for counters: names that clients invent must not make new ones."""
        if path in self._routes:
            return path
        parts = path.split("/")
        if path.startswith("/api/models/") and len(parts) > 3 and parts[3] in self.models:
            return "/api/models/{name}" + (f"/{parts[4]}" if len(parts) == 5 and parts[4] in VERBS else "")
        return "/static" if path.startswith("/static/") else "/api/workbench" if "/workbench/" in path else "other"

    def body_limit(self, method: str, path: str) -> int:
        """Largest body of a route, in bytes."""
        return LONGEST.get(path.rpartition("/")[2], 1 << 20) if method == "POST" else 0

    def _dynamic(self, path: str) -> Mapping[str, Handler] | None:
        parts = path.split("/")[1:]
        if parts[:2] == ["api", "models"] and len(parts) in (3, 4) and parts[2] in self.models:
            name, verb = parts[2], parts[3] if len(parts) == 4 else ""
            if not verb:
                return {"GET": lambda request: self._verb(name, "", request)}
            return {"POST": lambda request: self._verb(name, verb, request)} if verb in VERBS else None
        if parts[0] == "static" and len(parts) == 2:
            return {"GET": lambda request: static_file(parts[1], request)}
        return self.workbench.dynamic(parts) if self.workbench else None

    def _of_default(self, verb: str) -> Handler:
        return lambda request: self._verb("", verb, request)

    def _verb(self, name: str, verb: str, request: Request) -> Response | Awaitable[Response]:
        if not self.models:
            raise HttpError(404, "no model is served yet: learn one on the page, or start with a model file")
        served = self.models[name] if name else next(iter(self.models.values()))
        state = served.state
        if not verb:
            return answer(describe(served.name, state) | {"writable": served.name in self.learners})
        if verb == "predict":
            return self._predict(state, request)
        if verb == "explain":
            self.metrics.rows["explain"] += 1
            return self.in_thread(lambda: explain(state, request))
        if verb == "score":
            return self._score(served, request)
        self.check_token(request)
        return self._reload(served) if verb == "reload" else self._change(served, verb, request)

    # -------------------------------------------------------------- the routes

    def _predict(self, state: ModelState, request: Request) -> Response | Awaitable[Response]:
        table = read_table(request, state.kinds) if len(request.body) < SCANNED else None
        if table is not None and table.by_row and table.many == 1:
            self.metrics.rows["predict"] += 1
            return predict_row(state, table.rows[0])

        def work() -> Response:
            found = table or read_table(request, state.kinds)
            self.metrics.rows["predict"] += found.many
            return predict_table(state, found)

        return self.in_thread(work)

    async def _change(self, served: ServedModel, verb: str, request: Request) -> Response:
        learner = self.learners.get(served.name)
        if learner is None:
            raise HttpError(403, "this model cannot be changed: start the server with --writable")
        identifier, rows = read_update(served.state, request)
        entry = JournalEntry(identifier, verb, rows)
        try:
            done = await learner.submit(entry)
        except asyncio.QueueFull:
            raise HttpError(503, "too many updates are waiting: try again later") from None
        self.metrics.rows[verb] += done["rows"]
        return answer(done)

    async def _reload(self, served: ServedModel) -> Response:
        if served.name in self.learners:
            raise HttpError(409, "a writable model is not loaded again: its updates are in its journal")
        await self.in_thread(lambda: self.reload(served))
        return answer({"model_version": served.state.version})

    def reload(self, served: ServedModel) -> Response:
        """Load a model file again."""
        try:
            served.reload()
        except BaseException:
            self.metrics.reloads["failed"] += 1
            raise
        self.metrics.reloads["ok"] += 1
        return Response()

    def _score(self, served: ServedModel, request: Request) -> Awaitable[Response]:
        from likely.web._uploads import score_file

        return score_file(served, request)

    def _lab(self, name: str) -> Handler:
        def work(request: Request) -> Response:
            from likely.web import _lab as lab  # networks and mixtures, which a service of predictions never needs

            return answer(lab.ROUTES[name](request))

        return lambda request: self.in_thread(lambda: work(request))

    async def in_thread(self, work: Callable[[], Response]) -> Response:
        """Run work in a thread; an error if too many jobs are waiting."""
        if self._running >= WAITING:
            raise HttpError(503, "too many requests are being worked on: try again later")
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._running -= 1

    def _page(self, _: Request) -> Response:
        return page()

    def _health(self, _: Request) -> Response:
        return answer({"status": "ok", "version": __version__, "models": {n: m.state.version for n, m in self.models.items()}})

    def _models(self, _: Request) -> Response:
        listed = [{"name": n, "model_version": m.state.version, "target": m.state.model.schema.target.name}
                  for n, m in self.models.items()]  # fmt: skip
        return answer({"models": listed, "workbench": self.workbench is not None})

    def _metrics(self, _: Request) -> Response:
        text = self.metrics.text(self.models.values(), self.connections(), self._running)
        return Response(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _openapi(self, _: Request) -> Response:
        return answer(openapi.document(self.models.values(), bool(self.learners)))

    def close(self) -> None:
        """Finish updates and stop threads."""
        for learner in self.learners.values():
            learner.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self.workbench:
            self.workbench.close()


@lru_cache(256)
def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(24)


__all__ = ["PAGE_POLICY", "App", "new_token"]
