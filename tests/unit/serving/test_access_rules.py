"""Access rules: declarations that are refused, what callers meet, and deny by default."""

from typing import Any

import pytest

from dynashard import Entity, Index, Key, new_id
from dynashard.errors import DeclarationError, NewerItemError, NotFoundError, UndecodableItemError
from dynashard_serving.declare import ANYONE, READS, Access, Caller, Claim, Endpoint, Exposed, ServedEdges, endpoint
from dynashard_serving.operations.computed import computed
from dynashard_serving.operations.edges import EdgesWanted, Graph
from dynashard_serving.operations.permits import FREE, InsufficientScopeError, NotPermittedError, admitted
from dynashard_serving.operations.served import JUDGING, NEEDS, Served

pytestmark = pytest.mark.unit


class Note(
    Entity,
    name="note.v1.AccessNote",
    key=Key("{tenant_id}", "{id}"),
    indexes=[
        Index("GSI1", "by_owner", partition="{tenant_id}:{owner}", sort="{id}"),
        Index("GSI2", "by_text", partition="{tenant_id}:{owner}", sort="{text}"),
    ],
):
    tenant_id: str
    id: str = new_id()
    owner: str | None = None
    number: int = 0
    text: str = ""


def caller(*scopes: str, **claims: Any) -> Caller:
    return Caller("abc", {"sub": "ada", "scope": " ".join(scopes), **claims})


@pytest.mark.parametrize(
    ("access", "problem"),
    [
        ("users:read", "write Access"),
        (Access(), "no operation is allowed to anybody"),
        (Access(owner="{owner}"), "no operation is allowed to anybody"),
        (Access(read="users read"), "the scope 'users read'"),
        (Access(read=""), "the scope ''"),
        (Access(read='a"b'), "write one without blanks and quotes"),
        (Access(read=()), "empty tuple"),
        (Access(read=["a"]), "a tuple of them"),  # type: ignore[arg-type]
        (Access(read="a", operations={"remove": "a"}), "operations names 'remove'"),
        (Access(read="a", operations={"delete": 7}), r"operations\['delete'\] is 7"),  # type: ignore[dict-item]
        (Access(read="a", owner="{nobody}"), "owner names 'nobody'"),
        (Access(read="a", owner="{number}"), "owner names 'number'"),
        (Access(read="a", owner="owner"), "one field in braces"),
        (Access(read="a", owner="{owner}{id}"), "one field in braces"),
        (Access(read="a", owner="{owner}", identity="sub"), "one claim in braces"),
        (Access(read="a", owner="{owner}", owned="write"), "owned is 'write'"),  # type: ignore[arg-type]
        (Access(read="a", owner="{owner}", owned=("writes",)), "owned names 'writes'"),
        (Access(read="a", any_owner="b"), "write owner= too"),
        (Access(read="a", owner="{owner}", index="by_nobody"), "index is 'by_nobody'"),
        (Access(read="a", owner="{id}", index="by_owner"), "index is 'by_owner'"),
        (Access(read="a", owner="{owner}", index="by_text"), "has the sort key {text}"),
        (Access(read="a", policy="function"), "write a function"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_declaration_is_refused_with_the_entitys_name(access: Any, problem: str) -> None:
    with pytest.raises(DeclarationError, match=problem) as refused:
        Exposed(Note, path="notes", access=access)

    assert refused.value.entity == "note.v1.AccessNote"


def test_rules_of_operations_that_are_not_served_are_refused() -> None:
    with pytest.raises(DeclarationError, match="operations names 'delete'; write some of list, get"):
        Exposed(Note, path="notes", operations=READS, access=Access(read="a", operations={"delete": "b"}))


def test_edges_are_owned_by_their_node_only() -> None:
    from domain.samples.follows import FOLLOWS  # noqa: PLC0415

    with pytest.raises(DeclarationError, match="there are node"):
        ServedEdges(FOLLOWS, path="follows", verb="follow", access=Access(read="a", owner="{other}"))


def test_edges_are_listed_and_counted_by_the_owner_of_their_node_only() -> None:
    from domain.samples.follows import FOLLOWS  # noqa: PLC0415

    rules = Access(read="a", owner="{node}", identity="User.{sub}")
    graph = Graph(None, ServedEdges(FOLLOWS, path="follows", verb="follow", access=rules))  # type: ignore[arg-type]

    with pytest.raises(NotPermittedError, match=r"node=User\.ada only"):
        graph.count(caller("a"), "User.bob", "forward")
    with pytest.raises(NotPermittedError, match=r"node=User\.ada only"):
        graph.page(caller("a"), EdgesWanted(of="User.bob"))


def test_a_reads_rules_are_about_its_request() -> None:
    from domain.samples.revenue import Revenue, RevenueWanted  # noqa: PLC0415

    def read(db: Any, tenant_id: str, request: RevenueWanted) -> Revenue:
        """Read."""
        raise NotImplementedError

    read.__annotations__ |= {"request": RevenueWanted, "return": Revenue}
    endpoint(path="a", access=Access(read="a", owner="{month}"))(read)
    with pytest.raises(DeclarationError, match="owner names 'owner'"):
        endpoint(path="b", access=Access(read="a", owner="{owner}"))(read)


def test_a_reads_owner_rule_judges_its_request() -> None:
    from domain.samples.revenue import Revenue, RevenueWanted  # noqa: PLC0415

    rules = Access(read="a", owner="{month}")
    read = Endpoint("a", lambda *_: "read", RevenueWanted, Revenue, many=False, summary="", text="", access=rules)
    mine, theirs = (caller("a", sub=month) for month in ("2026-11", "2026-12"))

    assert computed(read, None, mine, RevenueWanted(month="2026-11")) == "read"  # type: ignore[arg-type]
    with pytest.raises(NotPermittedError, match="for items whose month is 2026-12 only"):
        computed(read, None, theirs, RevenueWanted(month="2026-11"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requirement", "claims", "met"),
    [
        ("a:read", {"scope": "b a:read"}, True),
        ("a:read", {"scope": "a:reads a"}, False),
        ("a:read", {"scope": "[a:read b]"}, True),
        ("a:read", {"scope": ["a:read"]}, True),
        ("a:read", {"scope": None}, False),
        ("a:read", {"scope": 7}, False),
        ("a:read", {"scope": {"a:read": True}}, False),
        ("a:read", {}, False),
        (("a", "b"), {"scope": "b"}, True),
        (("a", "b"), {"scope": "ab b:c [a"}, False),
        (Claim("role", "admin"), {"role": "admin"}, True),
        (Claim("role", "admin"), {"role": "admin user"}, False),
        (Claim("role", "admin"), {"role": "[user admin]"}, True),
        (Claim("role", "admin"), {"role": ["user", "admin"]}, True),
        (Claim("role", "admin"), {"role": "administrator"}, False),
        (("a", Claim("role", "admin")), {"role": "admin"}, True),
        (ANYONE, {}, True),
    ],
)
def test_a_caller_meets_a_requirement(requirement: Any, claims: dict[str, Any], *, met: bool) -> None:
    assert Caller("abc", claims).meets(requirement) is met


def test_scopes_come_from_the_claim_that_the_settings_name() -> None:
    found = Caller("abc", {"cognito:groups": "[a b]", "scope": "c"}, "cognito:groups")

    assert found.scopes == {"a", "b"}


@pytest.mark.parametrize(
    ("identity", "claims", "name"),
    [
        ("{sub}", {"sub": "ada"}, "ada"),
        ("User.{sub}", {"sub": "ada"}, "User.ada"),
        ("{custom:id}", {"custom:id": "7"}, "7"),
        ("{sub}", {}, None),
        ("{sub}", {"sub": ""}, None),
        ("{sub}", {"sub": 7}, None),
    ],
)
def test_an_identity_is_made_of_a_claim(identity: str, claims: dict[str, Any], name: str | None) -> None:
    assert Access(read="a", owner="{owner}", identity=identity).identity_of(Caller("abc", claims)) == name


RULES = Access(read="n:read", write="n:write", owner="{owner}", any_owner="n:all")


def test_what_no_rule_names_is_denied() -> None:
    reads = Access(read="n:read")

    with pytest.raises(NotPermittedError, match="No rule allows put"):
        admitted(reads, "note", ["put"], caller("n:read", "n:write"))


def test_a_request_without_a_caller_is_denied_where_there_are_rules() -> None:
    with pytest.raises(NotPermittedError, match="does not say who sends it"):
        admitted(RULES, "note", ["get"], None)
    assert admitted(None, "note", ["get"], None) is FREE


def test_no_rule_limits_a_service_that_acts_for_itself() -> None:
    assert admitted(RULES, "note", ["get"], Caller("abc", trusted=True)) is FREE


def test_a_missing_scope_is_named() -> None:
    with pytest.raises(InsufficientScopeError) as refused:
        admitted(Access(read=("a", "b", Claim("c", "d"))), "note", ["get"], caller())

    assert refused.value.details == {"scopes": ["a", "b"]}
    assert str(refused.value) == "get of note needs the scope a or b."


def test_a_caller_without_an_identity_owns_nothing() -> None:
    with pytest.raises(NotPermittedError, match=r"no claim for \{sub\}"):
        admitted(RULES, "note", ["get"], Caller("abc", {"scope": "n:read"}))


def test_an_item_without_an_owner_is_nobodys() -> None:
    permit = admitted(RULES, "note", ["get"], caller("n:read"))

    assert permit.allows(Note(tenant_id="abc", owner="ada"))
    assert not permit.allows(Note(tenant_id="abc", owner=None))
    assert not permit.allows(Note(tenant_id="abc", owner="bob"))


@pytest.mark.parametrize("answer", [None, 1, "yes", [True], ValueError("broken")])
def test_a_policy_that_does_not_answer_true_refuses(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    def policy(_caller: Caller, _operation: str, _item: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    permit = admitted(Access(read="n:read", policy=policy), "note", ["get"], caller("n:read"))

    assert not permit.allows(Note(tenant_id="abc"))
    assert ("the policy of note failed" in caplog.text) is isinstance(answer, Exception)


def test_a_new_operation_is_denied_to_limited_callers_until_it_applies_their_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(NEEDS, "look_up", ["get"])
    served = Served(Exposed(Note, path="notes", access=RULES))

    assert "look_up" not in JUDGING
    with pytest.raises(NotPermittedError, match="look_up of note"):
        served.permit("look_up", caller("n:read"))
    assert not served.permit("look_up", caller("n:read", "n:all")).narrow
    with pytest.raises(InsufficientScopeError):
        served.permit("look_up", caller("n:all"))


def test_every_operation_names_the_rights_that_it_needs() -> None:
    served = Served(Exposed(Note, path="notes", access=Access(operations={"get": "a"})))

    for operation, rights in NEEDS.items():
        if rights == ["get"]:
            served.permit(operation, caller("a"))
        else:
            with pytest.raises(NotPermittedError):
                served.permit(operation, caller("a"))


def test_an_item_that_cannot_be_decoded_does_not_exist_for_a_limited_caller() -> None:
    def unreadable() -> Note:
        raise UndecodableItemError("it does not fit")

    with pytest.raises(NotFoundError):
        admitted(RULES, "note", ["get"], caller("n:read")).found(unreadable)
    with pytest.raises(UndecodableItemError):
        admitted(RULES, "note", ["get"], caller("n:read", "n:all")).found(unreadable)


def test_an_owner_and_a_policy_have_to_allow_an_item_both() -> None:
    def policy(_caller: Caller, _operation: str, item: Note | None) -> bool:
        return item is None or item.text == "public"

    permit = admitted(Access(read="n:read", owner="{owner}", policy=policy), "note", ["get"], caller("n:read"))

    assert permit.allows(Note(tenant_id="abc", owner="ada", text="public"))
    assert not permit.allows(Note(tenant_id="abc", owner="bob", text="public"))
    assert not permit.allows(Note(tenant_id="abc", owner="ada", text="private"))


@pytest.mark.parametrize(
    ("owned", "limited"),
    [
        (("delete",), {"delete"}),
        (("list", "put"), {"list", "put"}),
        (("read",), {"list", "get"}),
        (("write", "get"), {"create", "put", "update", "delete", "get"}),
    ],
)
def test_the_owner_rule_limits_the_operations_that_are_named(owned: tuple[str, ...], limited: set[str]) -> None:
    rules = Access(read="n:read", write="n:write", owner="{owner}", owned=owned)
    served, ada = Served(Exposed(Note, path="notes", access=rules)), caller("n:read", "n:write")

    for operation in ("list", "get", "create", "put", "update", "delete"):
        assert served.permit(operation, ada).narrow is (operation in limited), operation


def test_an_operation_that_needs_several_rights_needs_each_of_them() -> None:
    rules = Access(read="n:read", operations={"delete": "n:delete", "put": ANYONE}, owner="{owner}", owned=("read",))

    for rights in (["put", "delete"], ["delete", "put"]):
        with pytest.raises(InsufficientScopeError, match="n:delete"):
            admitted(rules, "note", rights, caller("n:read"))
    for rights in (["get", "put"], ["put", "get"]):
        assert admitted(rules, "note", rights, caller("n:read")).owner == "ada"
    with pytest.raises(NotPermittedError, match="names no right"):
        admitted(rules, "note", [], caller("n:read", "n:delete"))


def test_a_policy_decides_about_a_listing_as_a_whole_first() -> None:
    rules = Access(read="n:read", policy=lambda _caller, right, item: right == "get" or item is not None)
    served = Served(Exposed(Note, path="notes", access=rules))

    for operation in ("list", "count"):
        with pytest.raises(NotPermittedError, match="policy of note"):
            served.permit(operation, caller("n:read"))
    assert served.permit("get", caller("n:read")).narrow


def test_who_may_write_an_item_may_not_read_it_for_that() -> None:
    permit = admitted(
        Access(read="n:read", write="n:write", owner="{owner}", owned=("read",)), "note", ["update"], caller("n:write")
    )
    both = admitted(
        Access(read="n:read", write="n:write", owner="{owner}", owned=("read",)),
        "note",
        ["update"],
        caller("n:read", "n:write"),
    )

    assert not permit.reads()
    assert both.reads()
    assert both.reads(Note(tenant_id="abc", owner="ada"))
    assert not both.reads(Note(tenant_id="abc", owner="bob"))


def test_an_item_of_a_later_version_is_not_said_to_be_missing() -> None:
    def newer() -> Note:
        raise NewerItemError("of a later version", version=2, known=1)

    with pytest.raises(NewerItemError):
        admitted(RULES, "note", ["get"], caller("n:read")).found(newer)


@pytest.mark.parametrize("subject", [None, "", 7, ["ada"]])
def test_a_subject_is_a_text_that_is_not_empty(subject: Any) -> None:
    assert Caller("abc", {"sub": subject}).subject is None
    assert caller().subject == "ada"
