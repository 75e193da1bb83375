"""HTML to the fields of a page: title, content, and what stands around the content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualrank.extras import require
from dualrank.pages.markup import simplify

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_BYTES = 2 << 20
"""What stands beyond this in a page is not read."""

BOILERPLATE = (
    "nav, footer, aside, menu, dialog, "
    "[role=navigation], [role=banner], [role=contentinfo], [role=complementary], [role=search], "
    "#nav, #navigation, #navbar, #menu, #sidebar, #footer, #header, #breadcrumbs, "
    ".nav, .navigation, .navbar, .menu, .sidebar, .footer, .breadcrumb, .breadcrumbs, "
    ".cookie-banner, .related, .sphinxsidebar"
)
"""What is not content, by HTML's own elements and roles, and by names that many sites share."""

_BOILERPLATE = f":is({BOILERPLATE})"


@dataclass(frozen=True)
class Fields:
    """The text of a page by field.

    `surroundings` are what a reader sees around the content: navigation, headers, footers. They
    belong to the whole document, not to the content.
    """

    url: str = ""
    title: str = ""
    content: str = ""
    surroundings: str = ""


def extract_fields(text: str, url: str = "") -> Fields:
    """The fields of an HTML page.

    Scripts, styles and what else is never shown are left out, entities are decoded, and broken
    markup is repaired as a browser does, within bounds (see `markup`). `BOILERPLATE`, and a
    `<header>` outside `<main>` and `<article>`, go to the surroundings; a page that consists of
    nothing else keeps them as its content. Without `url` the page's canonical address is taken, if
    it names one.

    >>> extract_fields("<title>A &amp; B</title><nav>Home</nav><p>Some te<b>x</b>t")
    Fields(url='', title='A & B', content='Some text', surroundings='Home')
    """
    lexbor = require("pages", "selectolax.lexbor")
    tree = lexbor.LexborHTMLParser(simplify(text.encode("utf-8", "replace")))
    title = _text_of(tree.css_first("head title") or tree.css_first("title"))
    canonical = None if url else tree.css_first("link[rel=canonical]")
    if canonical is not None:
        url = canonical.attributes.get("href") or ""
    body = tree.body
    if body is None:
        return Fields(url, title)
    _take_out(body, "[hidden]", "[hidden] [hidden]")
    around = [
        *_take_out(body, _BOILERPLATE, f"{_BOILERPLATE} {_BOILERPLATE}"),
        *_take_out(body, "header", ":is(main, article, header) header"),
    ]
    content, surroundings = _text_of(body), " ".join(filter(None, around))
    return Fields(url, title, content or surroundings, surroundings if content else "")


def _take_out(body: LexborNode, selected: str, inner: str) -> list[str]:
    """Remove what is selected, and return its text; `inner` stays, or goes with what it is in."""
    left = {node.mem_id for node in body.css(inner)}
    texts = []
    for node in [node for node in body.css(selected) if node.mem_id not in left]:
        texts.append(_text_of(node))
        node.decompose()
    return texts


def _text_of(node: LexborNode | None) -> str:
    return " ".join(node.text(separator=" ").split()) if node is not None else ""
