"""Pictures of the page for the docs, of a real demo after users have changed their habits.

`python -m benchmarks.screenshots` writes docs/images/live-light.png, live-dark.png and
live-phone.png, and prints what the page said while it was watched. Needs chromium.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import Any

IMAGES = Path(__file__).parents[1] / "docs" / "images"
QUIET = ("background-networking", "component-update", "sync", "gpu")
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1100, "height": 1600}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1100, "height": 1600}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 1500}, "color_scheme": "light"},
}


def main() -> int:
    """Start a demo, wait until it has something to show, and take pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=210, help="how long to watch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=IMAGES)
    asked = parser.parse_args()
    chromium = which("chromium") or which("chromium-browser")
    if chromium is None:
        print("chromium is not installed")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        words = ["serve", "--demo", "--port", "0", "--json", "--seed", str(asked.seed)]
        demo = subprocess.Popen(
            [sys.executable, "-m", "dualrank", *words, "--out", f"{folder}/demo"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = address_of(demo)
            watch(address, asked.seconds)
            photograph(address, chromium, asked.out)
        finally:
            demo.terminate()
            demo.wait(20)
    return 0


def address_of(demo: subprocess.Popen[str]) -> str:
    """Where a demo says that it is, when it answers."""
    assert demo.stdout is not None
    said = ""
    while not said.endswith("}\n"):
        said += demo.stdout.readline()
    return str(json.loads(said)["url"])


def watch(address: str, seconds: float) -> None:
    """Print every few seconds what the page is told."""
    print("seconds  η    sessions  version  curve off by  nDCG@10  frozen  delay  alarms")
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        time.sleep(5)
        with urllib.request.urlopen(f"{address}/status") as answer:
            state = json.load(answer)
        demo, latest = state["demo"], (state["rounds"] or [None])[-1]
        off = float("nan")
        if latest is not None and latest["examination"]:
            pairs = zip(latest["examination"], demo["examination"], strict=True)
            off = max(abs(truth / learned - 1) for learned, truth in pairs)
        quality = (demo["quality"] or [{"shown": float("nan"), "frozen": float("nan")}])[-1]
        print(
            f"{time.monotonic() - begun:7.0f}  {demo['knobs']['eta']:.1f}  "
            f"{state['counts']['impressions']:8,}  {state['live']['number']:7}  {off:12.1%}  "
            f"{quality['shown']:7.3f}  {quality['frozen']:6.3f}  "
            f"{latest['delay'] if latest else float('nan'):5.1f}  {len(state['alarms'])}",
            flush=True,
        )


def photograph(address: str, chromium: str, out: Path) -> None:
    """A picture for every look."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    flags = ["--headless", "--no-sandbox", *(f"--disable-{each}" for each in QUIET)]
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=flags)
        for name, look in LOOKS.items():
            page = browser.new_page(**look)
            page.goto(address)
            page.get_by_text("following").wait_for()
            page.wait_for_timeout(1_500)
            path = out / f"live-{name}.png"
            # Few colours are enough, and make a small file.
            picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
            print(f"{path}: {path.stat().st_size / 1024:.0f} KB")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
