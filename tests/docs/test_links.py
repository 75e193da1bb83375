"""Links between pages lead somewhere in the repository too, which the site's build does not ask."""

import re

from .printed_blocks import PAGES


def test_links_of_the_docs_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
