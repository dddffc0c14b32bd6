"""A real browser for the operator screens: the system's Chromium, driven by Playwright."""

import importlib.util
import os
import shutil
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in _NAMES if (path := shutil.which(name))), None)
SCREENSHOTS = os.environ.get("SCREENSHOTS")
"""Folder that keeps the screenshots; unset = none are kept."""


def missing() -> str | None:
    """Why there is no browser; None where there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install -r requirements-dev.txt"
    if CHROMIUM is None:
        return "no Chromium on this machine: apt-get install chromium"
    return None


def picture(name: str) -> Path | None:
    """Where a screenshot is kept."""
    if SCREENSHOTS is None:
        return None
    folder = Path(SCREENSHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.png"


CONTRAST = """
() => {
  const parse = (text) => {
    const found = text.match(/-?[\\d.]+(?:e-?\\d+)?%?/g);
    const numbers = found.map((n) => n.endsWith('%') ? parseFloat(n) / 100 : parseFloat(n));
    const scale = text.startsWith('color(') ? 255 : 1;
    const rgb = text.startsWith('oklch') ? null : numbers.slice(0, 3).map((n) => n * scale);
    return rgb && { rgb, a: numbers.length > 3 ? numbers[3] : 1 };
  };
  const over = (top, under) => top.rgb.map((v, i) => v * top.a + under[i] * (1 - top.a));
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color && color.a > 0) { layers.push(color); if (color.a === 1) break; }
    }
    let base = document.documentElement.classList.contains('dark') ? [17, 24, 39] : [255, 255, 255];
    for (const layer of layers.reverse()) base = over(layer, base);
    return base;
  };
  const luminance = (rgb) => {
    const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const bad = [];
  for (const element of document.querySelectorAll('.tito *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest('svg') || !element.getClientRects().length) continue;
    const ink = parse(getComputedStyle(element).color);
    if (!ink) continue;
    const ground = background(element);
    const [one, two] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    const name = `${element.className || element.tagName}: ${element.textContent.trim().slice(0, 20)}`;
    if (ratio < 4.5) bad.push(`${name} ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)];
}
"""
"""Texts of a page whose contrast is below WCAG AA."""
