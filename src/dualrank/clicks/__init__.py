"""How users click: from grades and positions to clicks."""
