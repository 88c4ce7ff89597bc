"""The texts that are valid tenants, and the patterns that may define them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard_local.gateway.events import claim_text
from dynashard_serving.tenants import DEFAULT_PATTERN, MAX_LENGTH, TenantRule, check

pytestmark = pytest.mark.unit

NO_TENANTS = [
    *("", " ", "a b", " a", "a ", "a\n", "\na", "a\r", "a\t", "a\u2028", "a\0", "a:b", "a/b", "a.b", "a#b", "[a b]"),
    *("é", "٣", "a" * 65, "\ud800", "null", "true", "false", "True", "NULL", "nil", "undefined", "None"),
    *(7, True, None, ["a"], {"a": 1}, b"a"),
]


@pytest.mark.parametrize("tenant", ["a", "abc", "A-1_b", "0", "42", "a" * 64, "nullable", "truest"])
def test_text_of_the_pattern_is_a_tenant(tenant: str) -> None:
    assert TenantRule().allows(tenant)


@pytest.mark.parametrize("value", NO_TENANTS, ids=ascii)
def test_other_text_is_not_a_tenant(value: object) -> None:
    assert not TenantRule().allows(value)


@given(st.none() | st.booleans() | st.lists(st.text("ab")) | st.dictionaries(st.text("ab"), st.text("ab")))
def test_only_claims_that_are_text_or_numbers_become_tenants(claim: object) -> None:
    assert not TenantRule().allows(claim_text(claim))


@pytest.mark.parametrize(
    "pattern",
    [
        DEFAULT_PATTERN,
        "^[a-z0-9-]{3,40}$",
        "^org_[A-Za-z0-9]{20}$",
        "^[0-9]{1,12}$",
        "^[a-z]{2}-[0-9]{4}$",
        "^[a-z0-9.@~_-]{1,128}$",
    ],
)
def test_a_pattern_of_classes_and_lengths_is_allowed(pattern: str) -> None:
    rule = TenantRule(pattern)

    @given(st.from_regex(re.compile(pattern, re.ASCII)))
    def check(text: str) -> None:
        # `$` also matches before a line break, which `from_regex` draws.
        expected = not text.endswith("\n") and text.lower() not in {"null", "true", "false", "nil", "none", "undefined"}
        assert rule.allows(text) == expected

    check()


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", r"must start with \^ and end with \$"),
        ("[a-z]{1,9}", r"must start with \^"),
        ("^[a-z]{1,9}", r"end with \$"),
        ("^$", "matches 0 to 0 characters"),
        ("^[a-z]{0,9}$", "matches 0 to 9 characters"),
        (f"^[a-z]{{1,{MAX_LENGTH + 1}}}$", "matches 1 to 129 characters; 1 to 128 are allowed"),
        ("^[a-z]{9,1}$", "repeats 9 to 1 times"),
        ("^(a+)+$", "not allowed from position 1"),
        ("^.*$", "not allowed from position 1"),
        ("^[a-z]+$", "not allowed from position 6"),
        ("^[a-z]{1,}$", "not allowed from position 6"),
        (r"^\w{1,9}$", "not allowed from position 1"),
        ("^[^a]{1,9}$", "not allowed from position 1"),
        ("^a|b$", "not allowed from position 2"),
        ("^[a-z]$\n", r"end with \$"),
        ("^[z-a]$", "is not a character class"),
        ("^[A-z]{1,9}$", r"matches '\['"),
        ("^[.-@]{1,9}$", "matches '/'"),
        ("^[é]$", "not allowed from position 1"),
        ("^[a:]{1,9}$", "not allowed from position 1"),
        ("^[a-z]{1,9}[a-z]{1,9}[a-z]{1,9}[a-z]{1,9}$", "4 pieces with"),
    ],
)
def test_any_other_pattern_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TenantRule(pattern)


def test_the_slowest_pattern_takes_bounded_work() -> None:
    rule = TenantRule("^[a-z]{1,42}[a-z]{1,42}[a-z]{1,42}$")

    # At most 42 cubed matches are tried, which takes milliseconds. A nested repeat would not end.
    assert not any(rule.allows("a" * length) for length in range(127, 227))


def test_the_default_pattern_is_one_that_a_setting_could_be() -> None:
    check(DEFAULT_PATTERN)

    with pytest.raises(ValueError, match="is not allowed from position 6"):
        check("^[a-z](b)$")
