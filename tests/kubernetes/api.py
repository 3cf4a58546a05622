"""The API: from paths and verbs to what is done to objects."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from tests.kubernetes import errors, lists, messages, patches, selectors, validation
from tests.kubernetes.access import Access, Attributes, User
from tests.kubernetes.clock import Clock
from tests.kubernetes.kinds import BY_PATH, GROUPS, JOB, ROLE_BINDING, Key, Kind, Object
from tests.kubernetes.messages import Answer, Request
from tests.kubernetes.registry import Deletion, Registry
from tests.kubernetes.store import Store
from tests.kubernetes.watches import Watch

HALF_HOUR = 1800.0
MOST_CALLS = 100_000  # that are remembered
MERGES: dict[str, Callable[[Object, Any], Object]] = {
    "application/json-patch+json": patches.json_patch,
    "application/merge-patch+json": patches.merge,
    "application/strategic-merge-patch+json": patches.strategic,
}
APPLY = "application/apply-patch+yaml"
ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)
LIST_OPTIONS = Kind("", "ListOptions", (), "meta.k8s.io")
VERSION = {
    "major": "1",
    "minor": "33",
    "emulationMajor": "1",
    "emulationMinor": "33",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "32",
    "gitVersion": "v1.33.13",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.24.11",
    "compiler": "gc",
    "platform": "linux/amd64",
}


class Target(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    part: str  # status, log, eviction …

    @property
    def key(self) -> Key:
        return Key(self.kind, self.namespace if self.kind.namespaced else "", self.name)


class Api:
    def __init__(self, registry: Registry, access: Access) -> None:
        self.registry, self.access = registry, access
        self.store: Store = registry.store
        self.clock: Clock = registry.clock
        self.watches: set[Watch] = set()
        self.calls: deque[tuple[str, Attributes]] = deque(maxlen=MOST_CALLS)
        self.parts: dict[tuple[str, str, str], Callable[[Target, Request], Answer]] = {
            ("POST", "serviceaccounts", "token"): self._token
        }

    def answer(self, request: Request) -> Answer:
        user = self.access.user(request.headers.get("authorization", ""))
        match request.path:
            case ("version",):
                return messages.told(VERSION)
            case ("readyz" | "livez" | "healthz",):
                return messages.text("ok")
            case ("api",):
                address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}
                versions = {"kind": "APIVersions", "versions": ["v1"]}
                return messages.told({**versions, "serverAddressByClientCIDRs": [address]})
            case ("apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"):
                return messages.told(self.access.access_review(user, json.loads(request.body)), 201)
            case ("apis", "authentication.k8s.io", "v1", "selfsubjectreviews"):
                return messages.told(self.access.self_review(user), 201)
        target = _target(request.path)
        if target is None:
            return messages.text("404 page not found\n", 404)
        return self._answer(target, request, user)

    def _answer(self, target: Target, request: Request, user: User) -> Answer:
        verb = _verb(target, request)
        resource = f"{target.kind.plural}/{target.part}" if target.part else target.kind.plural
        wanted = Attributes(verb, target.kind.group, resource, target.namespace, target.name)
        self.calls.append((user.name, wanted))
        self.access.check(user, target.kind, wanted)
        if verb == "create" and target.kind is ROLE_BINDING:
            self.access.check_binding(user, messages.read_object(request, target.kind), target.namespace)
        special = self.parts.get((request.method, target.kind.plural, target.part))
        if special is not None:
            return special(target, request)
        if target.part not in ("", "status"):
            raise errors.unknown_path()
        verbs: dict[str, Callable[[Target, Request], Answer]] = {
            "get": lambda target, request: messages.told(self.registry.read(target.key)),
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_all,
        }
        if verb == "watch":  # waits on its own, as a list of the future does
            return self._watch(target, request)
        with self.store.changed:
            return verbs[verb](target, request)

    def _list(self, target: Target, request: Request) -> Answer:
        options = request.options
        matches = _matches(target.kind, options)
        found = lists.listed(self.store, self.clock, target.kind, target.namespace, matches, options)
        return messages.told(found)

    def _watch(self, target: Target, request: Request) -> Answer:
        options = request.options
        if options.get("sendInitialEvents") == "true":
            why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise errors.invalid(LIST_OPTIONS, "", [errors.forbidden_field("sendInitialEvents", why)])
        matches = _matches(target.kind, options)
        since = lists.revision(options.get("resourceVersion", ""))
        seconds = float(options.get("timeoutSeconds") or HALF_HOUR)
        bookmarks = options.get("allowWatchBookmarks") == "true"
        watch = Watch(
            self.store, self.clock, target.kind, target.namespace, matches, since, seconds, bookmarks
        )
        return Answer(stream=self._lines(watch), headers={"Content-Type": "application/json"})

    def _lines(self, watch: Watch) -> Iterator[bytes]:
        self.watches.add(watch)
        try:
            for event in watch.events():
                yield json.dumps(event).encode() + b"\n"
        finally:
            self.watches.discard(watch)

    def _create(self, target: Target, request: Request) -> Answer:
        given = messages.read_object(request, target.kind)
        warnings = validation.decoded(target.kind, given, request.options.get("fieldValidation", "Warn"))
        dry_run = "dryRun" in request.options
        found = self.registry.create(target.kind, target.namespace, given, dry_run=dry_run)
        return messages.told(found, 201, warnings)

    def _update(self, target: Target, request: Request) -> Answer:
        given = messages.read_object(request, target.kind)
        warnings = validation.decoded(target.kind, given, request.options.get("fieldValidation", "Warn"))
        dry_run = "dryRun" in request.options
        found = self.registry.update(target.key, given, target.part, dry_run=dry_run)
        return messages.told(found, 200, warnings)

    def _patch(self, target: Target, request: Request) -> Answer:
        if request.content_type == APPLY:
            return self._apply(target, request)
        merge = MERGES.get(request.content_type)
        if merge is None:
            raise errors.RefusedError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        patch = json.loads(request.body)
        dry_run = "dryRun" in request.options
        found = self.registry.patch(target.key, lambda old: merge(old, patch), target.part, dry_run=dry_run)
        return messages.told(found)

    def _apply(self, target: Target, request: Request) -> Answer:
        applied, ownership = yaml.safe_load(request.body), self.registry.ownership
        manager, force = request.options["fieldManager"], request.options.get("force") == "true"
        if self.store.get(target.key) is None:
            applied.setdefault("metadata", {})["name"] = target.name
            made = self.registry.create(target.kind, target.namespace, applied)
            ownership.began(made["metadata"]["uid"], applied, manager)
            return messages.told(made, 201)

        def change(old: Object) -> Object:
            return ownership.apply(old, applied, manager, force=force)

        return messages.told(self.registry.patch(target.key, change, target.part))

    def _delete(self, target: Target, request: Request) -> Answer:
        how = _deletion(request)
        found, gone = self.registry.delete(target.key, how)
        warnings = [ORPHANS] if target.kind is JOB and not how.propagation else []
        if not gone or target.kind.answers_delete_with_object:
            return messages.told(found, 200, warnings)
        details = {"name": target.name, "kind": target.kind.plural, "uid": found["metadata"]["uid"]}
        if target.kind.group:
            details["group"] = target.kind.group
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return messages.told({**head, "details": details}, 200, warnings)

    def _delete_all(self, target: Target, request: Request) -> Answer:
        how, matches = _deletion(request), _matches(target.kind, request.options)
        found = [one for one in self.store.all(target.kind, target.namespace) if matches(one)]
        for one in found:
            self.registry.delete(target.key._replace(name=one["metadata"]["name"]), how)
        return messages.told(lists.of_items(target.kind, self.store.revision, found))

    def _token(self, target: Target, request: Request) -> Answer:
        return messages.told(self.access.token_request(target.key, json.loads(request.body)), 201)


def _target(path: tuple[str, ...]) -> Target | None:
    """None where there is no such group."""
    if path[:1] == ("api",):
        group, version, rest = "", path[1], path[2:]
    elif path[:1] == ("apis",) and len(path) > 2:
        group, version, rest = path[1], path[2], path[3:]
    else:
        return None
    if (group, version) not in GROUPS:
        return None
    namespace = ""
    if rest[:1] == ("namespaces",) and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    plural, name, part, *_ = *rest, "", "", ""
    kind = BY_PATH.get((group, version, plural))
    if kind is None:
        raise errors.unknown_path()
    return Target(kind, namespace, name, part)


def _verb(target: Target, request: Request) -> str:
    if target.part and request.method == "POST":
        return "create"
    verbs = {
        ("GET", True): "get",
        ("PUT", True): "update",
        ("PATCH", True): "patch",
        ("DELETE", True): "delete",
        ("GET", False): "watch" if request.options.get("watch") in ("true", "1", "True") else "list",
        ("POST", False): "create",
        ("DELETE", False): "deletecollection",
    }
    verb = verbs.get((request.method, bool(target.name)))
    if verb is None:
        raise errors.method_not_allowed()
    return verb


def _matches(kind: Kind, options: dict[str, str]) -> selectors.Matches:
    return selectors.parse(kind, options.get("labelSelector", ""), options.get("fieldSelector", ""))


def _deletion(request: Request) -> Deletion:
    told = {**request.options, **messages.read_options(request)}
    grace = told.get("gracePeriodSeconds")
    before = told.get("preconditions") or {}
    return Deletion(
        grace=None if grace is None else int(grace),
        propagation=told.get("propagationPolicy") or "",
        uid=before.get("uid") or "",
        revision=before.get("resourceVersion") or "",
        dry_run=bool(told.get("dryRun")),
    )
