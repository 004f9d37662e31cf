"""Find a Chromium for the browser tests, or install one: ``python -m tests.ui.chromium``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "No Chromium for the browser tests: install chromium or google-chrome so that it is on PATH "
    "(Debian: apt-get install chromium), or run the other tests with `make test-fast`."
)


def find_chromium() -> Path | None:
    """The first browser that starts: on PATH, else the one Playwright downloaded."""
    on_path = [Path(found) for name in NAMES if (found := shutil.which(name))]
    return next((path for path in [*on_path, *_downloaded()] if _starts(path)), None)


def _downloaded() -> list[Path]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return [path] if path.exists() else []


def _starts(path: Path) -> bool:
    # Ubuntu's chromium-browser is a script that only asks to install the snap.
    try:
        run = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0


def _download_with_playwright() -> None:
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], timeout=900, check=False)


def _install_debian_package() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", "-q", *arguments], env=environment, timeout=900, check=False)


def install_chromium() -> Path | None:
    """Try Playwright's download, then Debian's package; the browser found afterwards, or None."""
    attempts: list[Callable[[], None]] = [_download_with_playwright, _install_debian_package]
    for attempt in attempts:
        try:
            attempt()
        except subprocess.TimeoutExpired as error:
            sys.stderr.write(f"Gave up on {error.cmd} after {error.timeout:.0f} s.\n")
        if found := find_chromium():
            return found
    return None


if __name__ == "__main__":
    chosen = find_chromium() or install_chromium()
    sys.exit(None if chosen else MISSING)
