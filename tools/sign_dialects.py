"""Signs rules for tools' dialogs: `atlasbridge adapters update --from BUNDLE` uses them apart from a release.

    python tools/sign_dialects.py --new-key KEY
    python tools/sign_dialects.py --key KEY --serial 4 --examples EXAMPLES.json claude.toml > bundle.json

EXAMPLES.json holds, tool by tool, screens and how they are read: {"claude": [{"screen": "...", "type": "yes_no",
"choices": ["Yes", "No"]}]}.  The key's public half is printed to standard error: people trust it by that.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from atlasbridge.adapters.dialect_updates import check, signed_text
from atlasbridge.core.fleet_wire import from_text, to_text


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new-key", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--serial", type=int, default=1)
    parser.add_argument("--examples", type=Path)
    parser.add_argument("--revoke", action="append", default=[])
    parser.add_argument("dialects", nargs="*", type=Path)
    told = parser.parse_args(words)
    if told.new_key:
        made = Ed25519PrivateKey.generate()
        told.new_key.touch(mode=0o600, exist_ok=False)
        told.new_key.write_text(to_text(made.private_bytes_raw()))
        sys.stdout.write(to_text(made.public_key().public_bytes_raw()) + "\n")
        return 0
    if told.key is None:
        parser.error("--key or --new-key is needed")
    key = Ed25519PrivateKey.from_private_bytes(from_text(told.key.read_text().strip()))
    examples = json.loads(told.examples.read_text("utf-8")) if told.examples else {}
    dialects = {path.stem: path.read_text("utf-8") for path in told.dialects}
    for name, text in dialects.items():
        check(name, text, examples.get(name, []))
    public = to_text(key.public_key().public_bytes_raw())
    bundle = {"serial": told.serial, "dialects": dialects, "examples": examples, "revoked": told.revoke, "key": public}
    json.dump({**bundle, "signature": to_text(key.sign(signed_text(bundle)))}, sys.stdout, indent=1)
    sys.stderr.write(f"signed by {public}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
