"""What a page may load and run, as the header Content-Security-Policy tells browsers."""

from __future__ import annotations

import base64
import functools
import hashlib
import re

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.template import Context, Template
from django.template.loader import get_template

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
_HTMX_STYLE = (
    "      .htmx-indicator{opacity:0}"
    "      .htmx-request .htmx-indicator{opacity:1; transition: opacity 200ms ease-in;}"
    "      .htmx-request.htmx-indicator{opacity:1; transition: opacity 200ms ease-in;}      "
)
"""What the admin's htmx adds to each page."""


def content_security_policy(path: str) -> str:
    """The policy of the page at `path`: everything from the site itself, no inline scripts or styles."""
    relaxed = _admin_policy() if path.startswith("/admin/") else {}
    return "; ".join(f"{name} {value}" for name, value in {**_POLICY, **relaxed}.items())


@functools.cache
def _admin_policy() -> dict[str, str]:
    """What the admin needs beyond: its Alpine compiles expressions, and its pages have styles on elements.

    Of elements that hold styles it may have the two that it brings, by their hashes, and no other: selectors and
    imports, by which an injected one could read a page and tell, stay shut out.
    """
    if not settings.USE_UNFOLD:
        return {}
    styles = " ".join(_source(text) for text in (*_theme(), _HTMX_STYLE))
    return {
        "script-src": "'self' 'unsafe-eval'",
        "style-src": f"'self' {styles}",
        "style-src-attr": "'unsafe-inline'",
    }


def _theme() -> list[str]:
    """The colours that Unfold writes into each page: made from its template and our settings, nothing of a request's."""
    source = get_template("unfold/layouts/skeleton.html").template.source  # type: ignore[attr-defined] # Django's backend
    request = HttpRequest()
    request.META["SCRIPT_NAME"], request.user = "", AnonymousUser()
    context = Context(admin.site.each_context(request))
    styles = re.findall(r"<style[^>]*>(.*?)</style>", source, re.DOTALL)
    return [Template(style).render(context) for style in styles]


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
