"""Cursors: issued tokens are accepted, and all others are refused."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.cursor_keys import CursorKeys
from dynashard.errors import ConfigurationError, InvalidCursorError, UnsupportedCursorError
from dynashard.reads.cursor import CursorCodec

pytestmark = pytest.mark.unit

KEY, OLD, OTHER = "the-newest-cursor-key", "an-older-cursor-key", "somebody-elses-key"
ASKED = b"question"
CODEC = CursorCodec([KEY])

texts = st.text(st.characters(exclude_categories=["Cs"]))
states = st.recursive(
    st.none() | texts | st.integers(-(2**53), 2**53), lambda inner: st.lists(inner, max_size=5), max_leaves=20
)


@given(states)
def test_an_issued_token_is_read_back(state: Any) -> None:
    assert CODEC.read(CODEC.issue(state, ASKED), ASKED) == state


def test_tokens_can_stand_in_urls() -> None:
    token = CODEC.issue(["käse", 1], ASKED)

    assert set(token) <= set(string.ascii_letters + string.digits + "-_.")


def refused(token: str, asked: bytes = ASKED, codec: CursorCodec = CODEC) -> str:
    with pytest.raises(InvalidCursorError) as raised:
        codec.read(token, asked)
    assert (raised.value.status, raised.value.code, raised.value.field) == (400, "invalid_cursor", "cursor")
    return str(raised.value)


@pytest.mark.parametrize("state", [["short"], ["long" * 100]], ids=["plain", "packed"])
def test_a_token_with_any_one_character_changed_is_refused(state: list[str]) -> None:
    token = CODEC.issue(state, ASKED)
    alphabet = string.ascii_letters + string.digits + "-_.= \n\0é"

    for place, was in enumerate(token):
        for character in alphabet:
            if character != was:
                refused(token[:place] + character + token[place + 1 :])


def test_a_token_with_any_one_bit_flipped_is_refused() -> None:
    token = CODEC.issue(["state"], ASKED)

    for place in range(len(token)):
        for bit in range(8):
            refused(token[:place] + chr(ord(token[place]) ^ 1 << bit) + token[place + 1 :])


def test_a_token_cut_short_or_made_longer_is_refused() -> None:
    token = CODEC.issue(["state"], ASKED)

    for length in range(len(token)):
        refused(token[:length])
        refused(token[length + 1 :])
    for extra in ("A", "=", " ", "\n", ".", "\0"):
        refused(token + extra)
        refused(extra + token)


@given(st.text() | st.text(string.ascii_letters + string.digits + "-_.", max_size=200))
def test_text_that_is_not_a_token_is_refused(text: str) -> None:
    refused(text)


def test_huge_texts_are_refused() -> None:
    token = CODEC.issue(["state"], ASKED)

    refused("A" * 10_000_000)
    refused("A" * 10_000_000 + "." + token.rpartition(".")[2])


def test_a_token_of_another_query_is_refused() -> None:
    assert "another listing" in refused(CODEC.issue(["state"], b"another!"))


def of_format(version: str, state: Any, codec: CursorCodec = CODEC) -> str:
    """Return a token as a release of another format signs it."""
    body = codec.issue(state, ASKED).rpartition(".")[0]
    return codec._signer.sign(version + body[1:]).decode()


@pytest.mark.parametrize("version", ["1", "2", "5", "9", "A"])
def test_a_genuine_token_of_a_format_that_is_not_read_is_refused_by_its_own_code(version: str) -> None:
    with pytest.raises(UnsupportedCursorError, match=f"format {version}, and this release reads") as raised:
        CODEC.read(of_format(version, ["state"]), ASKED)

    assert (raised.value.status, raised.value.code, raised.value.field) == (400, "unsupported_cursor", "cursor")


def test_a_forged_token_of_another_format_is_damaged() -> None:
    refused(of_format("2", ["state"], CursorCodec([OTHER])))


def test_a_token_of_format_3_is_read_as_one_without_fences() -> None:
    assert CODEC.read(of_format("3", [{"a": 1}, ["one"], ["two"]]), ASKED) == [{"a": 1}, None, ["one"], ["two"]]


def test_a_token_of_another_key_is_refused() -> None:
    refused(CursorCodec([OTHER]).issue(["state"], ASKED))


def test_the_signature_of_one_token_does_not_fit_another() -> None:
    one, other = CODEC.issue(["one"], ASKED), CODEC.issue(["two"], ASKED)

    refused(one.rpartition(".")[0] + "." + other.rpartition(".")[2])


def test_a_new_key_signs_while_the_old_one_still_verifies_until_it_is_removed() -> None:
    before, during, after = CursorCodec([OLD]), CursorCodec([KEY, OLD]), CursorCodec([KEY])
    old, new = before.issue(["state"], ASKED), during.issue(["state"], ASKED)

    assert during.read(old, ASKED) == during.read(new, ASKED) == ["state"]
    assert after.read(new, ASKED) == ["state"]
    refused(old, codec=after)
    refused(new, codec=before)


@pytest.mark.parametrize("keys", [[], ["fifteen-bytes-x"], [KEY, ""]])
def test_keys_that_are_missing_or_short_are_refused(keys: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="at least 16 bytes"):
        CursorCodec(keys)


@pytest.mark.parametrize("kept", [(), ("short",)], ids=["none", "short"])
def test_no_cursor_is_signed_while_kept_keys_are_missing_or_short(kept: tuple[str, ...]) -> None:
    codec = CursorCodec(CursorKeys(lambda: kept, lambda: 0.0))

    with pytest.raises(ConfigurationError):
        codec.issue(None, ASKED)
