"""Opens a page in headless Chromium, at a width, in light or dark, and measures it."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120.0
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_HEIGHT = 3000
_SCRIPT = """
function luminance(colour) {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(value => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function measure(page, view) {
  const style = element => view.getComputedStyle(element);
  const back = luminance(style(page.body).backgroundColor);
  const found = {scroll: page.documentElement.scrollWidth, back, texts: 0, smallest: 99,
                 contrast: 99, outside: [], covering: 0, looks: {}};
  for (const element of page.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some(node => node.nodeType == 3 && node.data.trim());
    const box = element.getBoundingClientRect();
    if (box.width && (box.right > view.innerWidth + 1 || box.left < -1))
      found.outside.push(element.tagName + ' ' + element.className);
    if (!own || !box.width) continue;
    const ink = luminance(style(element).color);
    const ratio = (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
    found.texts += 1;
    found.smallest = Math.min(found.smallest, parseFloat(style(element).fontSize));
    found.contrast = Math.min(found.contrast, ratio);
  }
  for (const letter of page.body.querySelectorAll('.letter'))
    found.covering += letter.getBoundingClientRect().bottom
      > letter.parentElement.getBoundingClientRect().top + 1;
  for (const kind of ['device', 'holder', 'waiting']) {
    const element = page.querySelector('.span.' + kind);
    if (element) found.looks[kind] =
      [style(element).backgroundImage != 'none', style(element).borderTopStyle];
  }
  return found;
}
addEventListener('load', () => {
  const frame = document.querySelector('iframe');
  const found = measure(frame.contentDocument, frame.contentWindow);
  document.querySelector('output').textContent = JSON.stringify(found);
});
"""


@dataclass(frozen=True, slots=True)
class PageLook:
    """What a reader meets. Lengths are in CSS pixels."""

    scroll: float
    """The width that the page needs."""
    back: float
    """The luminance of the background, from 0 (black) to 1 (white)."""
    texts: int
    """How many elements have text."""
    smallest: float
    """The size of the smallest text."""
    contrast: float
    """The smallest contrast of a text with the background, by WCAG's formula."""
    outside: list[str]
    """Elements that are partly outside the window."""
    covering: int
    """How many letters of claims cover their bars."""
    looks: dict[str, list[Any]]
    """By kind of bar: whether it has a pattern, and the style of its border."""


def program() -> str:
    """The path of Chromium; skips the test where there is none."""
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no browser on this machine: none of {', '.join(_NAMES)}")


async def look(page: str, width: int, *, dark: bool) -> PageLook:
    """Open a page in a frame of ``width`` pixels, and measure it."""
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;height:{_HEIGHT}px;border:0">'
    body = f"<!doctype html><body>{frame}</iframe><output></output><script>{_SCRIPT}</script>"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frame.html"
        file.write_text(body, encoding="utf-8")
        dom = await _dom(file, Path(folder) / "profile", width, dark=dark)
    told = dom.split("<output>")[-1].split("</output>")[0]
    return PageLook(**json.loads(unescape(told)))


async def _dom(file: Path, profile: Path, width: int, *, dark: bool) -> str:
    process = await asyncio.create_subprocess_exec(
        program(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={profile}",
        f"--window-size={width + 100},{_HEIGHT}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--dump-dom",
        file.as_uri(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode(errors="replace")
    return out.decode()
