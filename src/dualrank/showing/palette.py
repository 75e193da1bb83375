"""One palette, light and dark, for figures, pages and cards."""

from __future__ import annotations

# Okabe and Ito's colours, which stay apart for colour-blind readers; some a little darker
# (light) or lighter (dark) than the originals, for contrast with the paper they stand on.
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2128",
    "muted": "#5f6872",
    "line": "#dfe3e8",
    "blue": "#0072b2",
    "vermilion": "#d55e00",
    "green": "#008e68",
    "purple": "#b85a92",
    "orange": "#b87f00",
    "sky": "#3b9bd4",
    "gray": "#7d858e",
}
DARK = {
    "paper": "#14181d",
    "ink": "#e8ebee",
    "muted": "#9aa4ae",
    "line": "#2f363e",
    "blue": "#56b4e9",
    "vermilion": "#ff8f4d",
    "green": "#2fc99b",
    "purple": "#e592c4",
    "orange": "#f0b93a",
    "sky": "#9ad4f5",
    "gray": "#959ea8",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
