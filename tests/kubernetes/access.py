"""Who asks, and what Roles and RoleBindings let that user do."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from tests.kubernetes import errors
from tests.kubernetes.clock import Clock
from tests.kubernetes.kinds import ROLE, ROLE_BINDING, SERVICE_ACCOUNT, Key, Kind, Object
from tests.kubernetes.store import Store

AUDIENCE = "https://kubernetes.default.svc.cluster.local"
HOUR = 3600


@dataclass(frozen=True)
class User:
    name: str
    is_administrator: bool = False
    account: Key | None = None
    uid: str = ""


@dataclass(frozen=True)
class Attributes:
    """What a user wants to do to what."""

    verb: str
    group: str
    resource: str  # with its part: `pods/log`
    namespace: str = ""
    name: str = ""


ANONYMOUS = User("system:anonymous")
ADMINISTRATOR = User("system:admin", is_administrator=True)


class Access:
    def __init__(self, store: Store, clock: Clock, administrator: str) -> None:
        self._store, self._clock, self._administrator = store, clock, administrator
        self._tokens: dict[str, User] = {}

    def user(self, authorization: str) -> User:
        """By the header of a request. A token counts as long as its account is there."""
        if not authorization:
            return ANONYMOUS
        token = authorization.removeprefix("Bearer ")
        if secrets.compare_digest(token, self._administrator):
            return ADMINISTRATOR
        user = self._tokens.get(token)
        if user is None or user.account is None:
            raise errors.unauthorized()
        account = self._store.get(user.account)
        if account is None or account["metadata"]["uid"] != user.uid:
            raise errors.unauthorized()
        return user

    def token(self, account: Key) -> str:
        """A new one, for a pod or for who asks with a TokenRequest."""
        found = self._store.get(account)
        if found is None:
            raise errors.not_found(SERVICE_ACCOUNT, account.name)
        token = secrets.token_urlsafe(32)
        name = f"system:serviceaccount:{account.namespace}:{account.name}"
        self._tokens[token] = User(name, account=account, uid=found["metadata"]["uid"])
        return token

    def kubeconfig(self, url: str, account: Key) -> Object:
        """For clients in a pod, with a token of its account."""
        user, cluster = {"token": self.token(account)}, {"server": url}
        context = {"cluster": "double", "user": account.name, "namespace": account.namespace}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "double", "cluster": cluster}],
            "users": [{"name": account.name, "user": user}],
            "contexts": [{"name": "double", "context": context}],
            "current-context": "double",
        }

    def check(self, user: User, kind: Kind, wanted: Attributes) -> None:
        if self.reason(user, wanted) is not None:
            return
        where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        why = (
            f'User "{user.name}" cannot {wanted.verb} resource "{wanted.resource}" '
            f'in API group "{wanted.group}" {where}'
        )
        raise errors.forbidden(kind, wanted.name, why)

    def check_binding(self, user: User, binding: Object, namespace: str) -> None:
        """Only administrators bind a role that is not known, as one is not on a real server just after it was made."""
        known = self._store.get(Key(ROLE, namespace, binding["roleRef"]["name"])) is not None
        if not (known or user.is_administrator):
            raise errors.not_found(ROLE_BINDING, binding["metadata"]["name"])

    def reason(self, user: User, wanted: Attributes) -> str | None:
        """Why this is allowed, None if it is not."""
        if user.is_administrator:
            return ""
        for binding in self._store.all(ROLE_BINDING, wanted.namespace) if wanted.namespace else ():
            name = binding["roleRef"]["name"]
            role = self._store.get(Key(ROLE, wanted.namespace, name))
            if role is None or not any(
                _is_subject(user, one, wanted.namespace) for one in _subjects(binding)
            ):
                continue
            if any(_allows(rule, wanted) for rule in role.get("rules") or []):
                account = user.account
                bound = f'RoleBinding "{binding["metadata"]["name"]}/{wanted.namespace}"'
                to = f'ServiceAccount "{account.name}/{account.namespace}"' if account else user.name
                return f'RBAC: allowed by {bound} of Role "{name}" to {to}'
        return None

    def token_request(self, account: Key, asked: Object) -> Object:
        seconds = int((asked.get("spec") or {}).get("expirationSeconds") or HOUR)
        named = {"name": account.name, "namespace": account.namespace}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**named, "creationTimestamp": self._clock.stamp()},
            "spec": {"audiences": [AUDIENCE], "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": self.token(account), "expirationTimestamp": self._clock.stamp(seconds)},
        }

    def access_review(self, user: User, asked: Object) -> Object:
        resource = asked["spec"]["resourceAttributes"]
        part = f"/{resource['subresource']}" if resource.get("subresource") else ""
        wanted = Attributes(
            resource["verb"],
            resource.get("group", ""),
            resource["resource"] + part,
            resource.get("namespace", ""),
            resource.get("name", ""),
        )
        reason = self.reason(user, wanted)
        status: Object = {"allowed": reason is not None, **({"reason": reason} if reason else {})}
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {"creationTimestamp": None},
            "spec": asked["spec"],
            "status": status,
        }

    def self_review(self, user: User) -> Object:
        info: Object = {"username": user.name}
        groups = ["system:authenticated"]
        if user.account is not None:
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{user.account.namespace}", *groups]
            identifier = f"JTI={user.uid}"
            info |= {"uid": user.uid, "extra": {"authentication.kubernetes.io/credential-id": [identifier]}}
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": self._clock.stamp()},
            "status": {"userInfo": {**info, "groups": groups}},
        }


def _subjects(binding: Object) -> list[Object]:
    return binding.get("subjects") or []


def _is_subject(user: User, subject: Object, namespace: str) -> bool:
    if subject["kind"] == "ServiceAccount" and user.account is not None:
        account = subject.get("namespace", namespace), subject["name"]
        return account == (user.account.namespace, user.account.name)
    return subject["kind"] == "User" and subject["name"] == user.name


def _allows(rule: Object, wanted: Attributes) -> bool:
    def has(name: str, value: str) -> bool:
        return bool({"*", value} & set(rule.get(name) or []))

    named = rule.get("resourceNames")
    return (
        has("verbs", wanted.verb)
        and has("apiGroups", wanted.group)
        and has("resources", wanted.resource)
        and (not named or wanted.name in named)
    )
