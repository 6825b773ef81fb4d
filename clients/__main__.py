"""Run every script of this folder in a process of its own, and say which of them failed."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """The number of scripts that failed."""
    failed = 0
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONWARNINGS": "ignore"}
    for script in sorted(path for path in HERE.glob("*.py") if not path.name.startswith("_")):
        command = [sys.executable, "-m", f"clients.{script.stem}"]
        ran = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True)
        print(f"{'ok    ' if ran.returncode == 0 else 'FAILED'} {script.stem}: {ran.stdout.strip()}", flush=True)
        if ran.returncode:
            failed += 1
            print(ran.stderr[-3000:])
    return failed


if __name__ == "__main__":
    sys.exit(main())
