"""`sudo atlasbridge hub install --system`: a hub of its own user, attacked by the person's tool, and taken back."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import system_story
from tests.support.tier import once_per_run

from atlasbridge.core.system_setup import SystemSetup, parse_setup, read_setup

can_make_users = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("useradd"),
    reason="a second user can be made by root alone, with unshare and useradd (Linux)",
)
ROOT = Path(__file__).parents[2]


def needs_root(test: Any) -> Any:
    """The whole story costs half a minute of processor: `.ci/run` has it (make test-main-paths)."""
    return pytest.mark.landing(can_make_users(test))


# Users, /run and /var/lib of this namespace alone; the home of who runs this is hidden but for the interpreter.
NAMESPACE = """
set -e
mkdir "$1/etc" "$1/python"
cp -a /etc/. "$1/etc"
mount --bind "$1/etc" /etc
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /home
case "$2" in "$5"/*)
  below=${2#"$5"/}
  top="$5/${below%%/*}"
  mount --bind "$top" "$1/python"
  mount -t tmpfs -o mode=755 tmpfs "$5"
  mkdir -p "$top"
  mount --bind "$1/python" "$top";;
esac
exec "$3" -P "$4"
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return once_per_run("system story", lambda: _tell(tmp_path_factory.mktemp("system")))


def _tell(place: Path) -> dict[str, Any]:
    words = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        NAMESPACE,
        "sh",
        str(place),
    ]
    home = pwd.getpwuid(os.getuid()).pw_dir
    words += [os.path.realpath(sys.executable), sys.executable, system_story.__file__, home]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(words, capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr[-6000:]
    return dict(json.loads(done.stdout))


pytestmark = pytest.mark.timeout(900)


@needs_root
def test_one_command_makes_the_user_the_folders_and_a_running_hub(told: dict[str, Any]) -> None:
    assert told["install"]["code"] == 0 and told["hub uid"] != "0"
    assert told["modes"] == {
        "/var/lib/atlasbridge": "0o700",
        "/run/atlasbridge": "0o751",
        "/etc/atlasbridge/system": "0o644",
    }
    assert told["again"]["code"] == 0, told["again"]["err"]


@needs_root
def test_no_attack_of_another_account_works_in_the_default_set_up(told: dict[str, Any]) -> None:
    """Files, sockets, processes and the page with a token that it has found."""
    default = told["default"]
    assert [name for name, why in default["tried"].items() if not why] == []
    kinds = {name.partition(" ")[0] for name in default["tried"]}
    assert kinds == {"read", "write", "speak", "list", "replace", "stop", "open", "trace", "answer"}, kinds
    assert default["still asked"] and not default["answered"]


@needs_root
def test_a_member_opens_the_page_in_a_browser_and_nobody_else_uses_that_link(told: dict[str, Any]) -> None:
    opened = told["opened"]
    assert opened["web"]["code"] == 0, opened["web"]
    assert opened["eve"]["code"] != 0 and "not_allowed" in opened["eve"]["err"], opened["eve"]
    assert opened["dev"]["code"] == 0 and json.loads(opened["dev"]["out"])["status"] == 422, opened["dev"]


@needs_root
def test_doctor_says_which_set_up_this_is(told: dict[str, Any]) -> None:
    (check,) = [one for one in json.loads(told["doctor"]) if one["name"] == "separation"]
    assert check["state"] == "ok" and "system setup: the hub runs as atlasbridge" in check["detail"]


@needs_root
def test_tokens_move_to_the_hub_and_settings_of_sessions_stay(told: dict[str, Any]) -> None:
    assert "CANARY" not in told["config left"] and 'detach_key = "^] d"' in told["config left"]


@needs_root
def test_no_attack_of_the_persons_own_tool_works(told: dict[str, Any]) -> None:
    assert [name for name, why in told["attacks"].items() if not why] == [], told["came"]
    assert len(told["attacks"]) >= 42
    assert not told["typed by an attack"] and told["still asked"]


@needs_root
def test_no_further_attack_works_and_none_outlives_its_host(told: dict[str, Any]) -> None:
    came = told["more attacks"]
    assert came["outlive host"]["reason"] in ("self", "not_allowed")
    assert came["pid namespace"]["reason"] in ("self", "not_allowed", "no namespace")
    assert all("only a person can decide" in said for said in came["environment"].values()), came["environment"]
    assert set(came["own terminal"]) == {"approvals", "attach", "reply"}
    assert told["still asked after more"]


@needs_root
def test_no_attack_of_another_account_works(told: dict[str, Any]) -> None:
    """Neither a member nor in a session: whatever the person's tool tries, and plainly at the socket."""
    assert [name for name, why in told["attacks of another account"].items() if not why] == []
    assert len(told["attacks of another account"]) >= 26


@needs_root
def test_a_browser_of_the_person_decides_and_their_tool_with_the_same_login_does_not(told: dict[str, Any]) -> None:
    assert told["page"]["status"] == 200, told["page"]
    assert told["page answer"] == "y"
    assert told["attacks"]["decide with the login of a browser"].startswith("403"), told["attacks"]


@needs_root
def test_with_sudo_only_a_terminal_decides_nothing_without_it(told: dict[str, Any]) -> None:
    assert told["sudo only"]["code"] == 0, told["sudo only"]["err"]
    assert told["without sudo"]["code"] != 0 and told["not answered without sudo"]
    assert told["with sudo"]["code"] == 0, told["with sudo"]["err"]
    assert told["sudo answer"] == "y"


@needs_root
def test_attacks_on_files_and_signals_are_stopped_by_the_kernel(told: dict[str, Any]) -> None:
    ways = [
        name for name in told["attacks"] if name.startswith(("read", "write", "kill", "stop the hub", "replace", "rem"))
    ]
    assert {told["attacks"][name] for name in ways} == {"PermissionError"}


@needs_root
@pytest.mark.parametrize("way", ["answer", "answer, cut loose", "let a browser in", "make a token", "enrol a passkey"])
def test_a_command_from_inside_a_session_is_refused(told: dict[str, Any], way: str) -> None:
    assert "only a person can decide" in told["attacks"][way]


@needs_root
def test_the_persons_own_commands_work_as_before(told: dict[str, Any]) -> None:
    assert told["reply"]["code"] == 0 and told["answer"] == "y"
    assert told["dev audit"]["code"] == 0 and "is whole" in told["dev audit"]["out"]
    assert {one["decided_by"] for one in json.loads(told["dev audit show"])} == {"cli:local", "web:page"}


@needs_root
def test_sudo_speaks_as_the_hub_and_leaves_its_files_to_it(told: dict[str, Any]) -> None:
    assert told["root audit"]["code"] == 0 and told["root config"]["code"] == 0, told["root config"]["err"]
    assert told["config owner"]
    assert told["passkey"]["code"] == 0, told["passkey"]["err"]
    assert "&enrol=" in json.loads(told["passkey"]["out"])["links"]["local"]


@needs_root
def test_a_hub_that_dies_is_started_again_and_sessions_come_back(told: dict[str, Any]) -> None:
    assert told["asked again"] and told["stop"]["code"] == 0 and told["start"]["code"] == 0


@needs_root
def test_uninstall_takes_everything_back(told: dict[str, Any]) -> None:
    assert told["uninstall"]["code"] == 0
    assert (told["left"], told["users left"]) == ([], [])
    assert "CANARY" in told["config back"] and "atlasbridge/hub.sock" not in told["config back"]
    assert told["config mode"] == "0o600"


@needs_root
def test_root_follows_no_link_that_a_tool_has_put_into_its_persons_folder(told: dict[str, Any]) -> None:
    linked = told["linked"]
    assert linked["install"]["code"] == 0 and linked["taken"] == [], linked
    assert linked["left"] == {name: ["# CANARY-of-root\n", 0] for name in ("config.toml", "policy.toml")}
    assert linked["uninstall"]["code"] == 0 and "not given back" in linked["uninstall"]["out"]


def test_only_a_file_of_roots_is_believed(tmp_path: Path) -> None:
    setup = SystemSetup("atlasbridge", 998, "/var/lib/atlasbridge", "/run/atlasbridge/hub.sock", (1000, 1001))
    assert parse_setup(setup.render()) == setup
    place = tmp_path / "system"
    place.write_text(setup.render())
    place.chmod(0o666)
    assert read_setup(str(place)) is None
    place.chmod(0o644)
    assert (read_setup(str(place)) == setup) is (place.stat().st_uid == 0)
    assert read_setup(str(tmp_path / "none")) is None


@pytest.mark.parametrize("text", ["", "user=x", "user=x\nuid=y\nhome=/\nsocket=/\nmembers=", "\0"])
def test_a_file_that_is_not_ours_says_nothing(text: str) -> None:
    assert parse_setup(text) is None
