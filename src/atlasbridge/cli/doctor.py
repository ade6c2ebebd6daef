"""`atlasbridge doctor`: looks at this machine and says what to do."""

from __future__ import annotations

import click

from atlasbridge.cli.doctor_checks import Check, run_checks
from atlasbridge.cli.printing import home, json_option, print_json
from atlasbridge.core.errors import AtlasBridgeError

_MARKS = {"ok": "✓", "warning": "!", "fault": "✗"}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Put right what can safely be put right.")
@json_option
def command(fix: bool, as_json: bool) -> int:
    """Check this machine and say what to do.  Exit status 1 when something is wrong."""
    if fix:
        for check in run_checks(home()):
            if check.fix is not None:
                click.echo(_put_right(check), err=as_json)
    checks = list(run_checks(home()))
    if as_json:
        print_json([check.to_json() for check in checks])
    else:
        for check in checks:
            click.echo(f"{_MARKS[check.state]} {check.name:20} {check.detail}")
            if check.state != "ok" and check.hint:
                click.echo(f"  {'':20} → {check.hint}")
    return 1 if any(check.state == "fault" for check in checks) else 0


def _put_right(check: Check) -> str:
    """One that cannot be mended keeps no other from it."""
    assert check.fix is not None
    try:
        check.fix()
    except (OSError, AtlasBridgeError) as error:
        return f"cannot be put right: {check.name} ({error})"
    return f"put right: {check.name} ({check.detail})"
