"""Names in the text of a root file."""

from __future__ import annotations

import pytest

from envwatch.core.mentions import MAX_LETTERS, MAX_NAMES, mentions


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("source_env ../.envrc\n", ["../.envrc"]),
        ("  source_env_if_exists 'my.env' # x\n", ["my.env"]),
        ("watch_file a b\nwatch_file b c\n", ["a", "b", "c"]),
        ("source_up\n", [".envrc in a folder above"]),
        ("source_up_if_exists x.env", ["x.env in a folder above"]),
        ("dotenv\n. lib.sh\nsource other\n", [".env", "lib.sh", "other"]),
        ("A=1; watch_dir src && dotenv x\n", ["src", "x"]),
        ("if x; then source_env y; fi\n", ["y"]),
        ("# watch_file no\nexport A=watch_file\necho source_env\n", []),
        ("my_watch_file no\nwatch_filex no\n", []),
        ("", []),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    """Each once, in their order."""
    assert list(mentions(text.encode())) == names


def test_bounded() -> None:
    """Only so many are listed; bytes that are no UTF-8 are no error."""
    text = b"watch_file \xff\n" + b"".join(b"watch_file %d\n" % n for n in range(99))
    assert len(mentions(text)) == MAX_NAMES + 1
    assert mentions(text)[-1] == "and 80 more"


def test_a_name_that_is_too_long() -> None:
    """It is counted, and leaves the question its room."""
    text = f"watch_file a {'x' * MAX_LETTERS} b"
    assert mentions(text.encode()) == ("a", "and 2 more")
