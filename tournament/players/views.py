"""Pages of accounts, tokens, uploads and versions, and the list of bots."""

from __future__ import annotations

from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Any

from axes.utils import reset as forget_failures
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.contrib.auth.views import (
    INTERNAL_RESET_SESSION_TOKEN,
    PasswordResetConfirmView,
    PasswordResetView,
)
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from engine.errors import UsageError, WheelError
from engine.games import GAMES
from tournament.players import selectors
from tournament.players.errors import AccountError, SubmissionError, TokenError
from tournament.players.forms import (
    AccountForm,
    ForgottenForm,
    PasswordForm,
    SignUpForm,
    TokenForm,
    UploadForm,
)
from tournament.players.models import VERSION_TRANSITIONS, BotVersion, Player, VersionState
from tournament.players.services import (
    ask_to_confirm,
    confirm_mail,
    create_token,
    read_link,
    reset_password,
    revoke_token,
    revoke_tokens,
    stop_mail,
    submit_wheel,
    withdraw_version,
)

BOTS_A_PAGE = 50


def player_of(request: HttpRequest) -> Player:
    """The player who is logged in. For views behind a login only."""
    if not isinstance(request.user, Player):
        raise PermissionDenied
    return request.user


def client_address(request: HttpRequest) -> str | None:
    """The network address of the visitor; behind TLS what the server before this one has seen."""
    seen = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
    address = seen if settings.HTTPS and seen else request.META.get("REMOTE_ADDR", "")
    try:
        found = ip_address(address)
    except ValueError:  # a Unix socket has none
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)  # where IPv6 listens for both, IPv4 comes as ::ffff:192.0.2.1


def locked_out(
    request: HttpRequest,
    original_response: HttpResponse | None,
    credentials: dict[str, str] | None,
) -> HttpResponse:
    """Too many wrong passwords: says when the next try is taken."""
    username = (credentials or {}).get("username", "")
    until = selectors.locked_until(username=username, address=client_address(request))
    now = timezone.now()
    seconds = max(1, int((until - now).total_seconds()) + 1) if until else 1
    context = {"username": username, "until": until, "minutes": -(-seconds // 60)}
    answer = render(
        request, "players/locked_out.html", context, status=HTTPStatus.TOO_MANY_REQUESTS
    )
    answer.headers["Retry-After"] = str(seconds)
    return answer


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    """Make an account and log in with it."""
    if request.user.is_authenticated:
        return redirect("my-bots")
    form = SignUpForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and (player := form.save(client_address(request))) is not None:
        login(request, player, backend=settings.AUTHENTICATION_BACKENDS[-1])
        messages.success(request, f"Welcome, {player.username}. Upload your first bot.")
        return redirect("my-bots")
    return render(request, "players/sign_up.html", {"form": form})


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Change the time zone, the address or the password."""
    player = player_of(request)
    sent = request.POST.get("form")
    account_form = AccountForm(
        request.POST if sent == "account" else None, instance=player, prefix="account"
    )
    password_form = PasswordForm(
        player, request.POST if sent == "password" else None, prefix="password"
    )
    if account_form.is_valid():
        account_form.save()
        is_asked = ask_to_confirm(player=player)
        sent = f" A link that confirms the address is on its way to {player.email}." * is_asked
        messages.success(request, f"Saved.{sent}")
        return redirect("players:account")
    if password_form.is_valid():
        is_wanted = password_form.cleaned_data["revoke_tokens"]
        told = (
            _spell_revoked(revoke_tokens(player=player)) if is_wanted else "Your API tokens go on."
        )
        update_session_auth_hash(request, password_form.save())
        messages.success(
            request, f"The password is changed, and you are logged out everywhere else. {told}"
        )
        return redirect("players:account")
    forms = {"account_form": account_form, "password_form": password_form}
    return render(request, "players/account.html", {"section": "account", **forms})


def _spell_revoked(tokens: int) -> str:
    match tokens:
        case 0:
            return "You have no API token in use."
        case 1:
            return "Your API token is revoked: make another for the programs that used it."
    return f"Your {tokens} API tokens are revoked: make others for the programs that used them."


class ForgottenPassword(PasswordResetView):
    """Ask for a link that sets another password. What it answers is the same whether there is such an account or not."""

    form_class = ForgottenForm
    template_name = "players/forgotten_password.html"
    success_url = reverse_lazy("log-in")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Says whether this site sends mail; where it does not, the page tells what to do instead."""
        return super().get_context_data(sends_mail=settings.ARENA_SENDS_MAIL, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Note the address."""
        if not settings.ARENA_SENDS_MAIL:
            return self.get(request, *args, **kwargs)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: PasswordResetForm) -> HttpResponse:
        """Say what happens now."""
        messages.success(
            self.request,
            "If an account here has confirmed this address, a link that sets another password is on its way there. "
            "If none comes within ten minutes, look into your spam, then ask the operators of this site.",
        )
        return super().form_valid(form)


class SetPassword(PasswordResetConfirmView):
    """Set a password by the link that was sent; the link then is in the session, and in no address any more."""

    template_name = "players/set_password.html"
    success_url = reverse_lazy("log-in")

    def form_valid(self, form: SetPasswordForm[Player]) -> HttpResponse:
        """Set it, and tell what ended with the old one."""
        token: str = self.request.session.pop(INTERNAL_RESET_SESSION_TOKEN)
        revoked = reset_password(
            player=self.user, token=token, password=form.cleaned_data["new_password1"]
        )
        if revoked is None:
            self.validlink = False
            return self.render_to_response(self.get_context_data())
        # Who has the mail need not wait for what they tried before; other addresses still do.
        forget_failures(ip=client_address(self.request), username=self.user.username)
        told = f"The password is set, and you are logged out everywhere. {_spell_revoked(revoked)}"
        messages.success(self.request, told)
        return redirect(self.get_success_url())

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """The form, or that the link is gone."""
        status = HTTPStatus.OK if self.validlink else HTTPStatus.GONE
        return super().render_to_response(context, status=status, **kwargs)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Confirm an address by the link that was sent to it; by a button, since mail programs look at links."""
    try:
        player = (confirm_mail if request.method == "POST" else read_link)(token=token)
    except AccountError as error:
        return render(request, "players/mail.html", {"why": str(error)}, status=HTTPStatus.GONE)
    context = {"doing": "confirm", "name": player.username, "is_done": request.method == "POST"}
    return render(request, "players/mail.html", context)


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest, token: str) -> HttpResponse:
    """End the mail to whom the link was sent. Mail programs post it as RFC 8058 says, without a cookie."""
    if request.method == "POST":
        try:
            stop_mail(token=token)
        except AccountError as error:
            return render(request, "players/mail.html", {"why": str(error)}, status=HTTPStatus.GONE)
    context = {"doing": "stop", "is_done": request.method == "POST"}
    return render(request, "players/mail.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The player's tokens; a new one is shown once, in the answer to its form, and stored nowhere."""
    player = player_of(request)
    form, fresh = TokenForm(request.POST if request.method == "POST" else None), None
    if form.is_valid():
        try:
            _, fresh = create_token(player=player, **form.cleaned_data)
            form = TokenForm()
        except TokenError as error:
            form.add_error("name", str(error))
    context = {
        "section": "tokens",
        "form": form,
        "fresh": fresh,
        "tokens": selectors.tokens_of(player),
        "now": timezone.now(),
    }
    return render(request, "players/tokens.html", context)


@login_required
@require_POST
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """End one of the player's tokens."""
    token = get_object_or_404(selectors.tokens_of(player_of(request)), prefix=prefix)
    revoke_token(token=token)
    messages.success(request, f"The token {token.name or token.prefix} is revoked.")
    return redirect("players:tokens")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Take a wheel, or say everything that is wrong with it."""
    form = UploadForm(request.POST or None, request.FILES or None)
    reasons: tuple[str, ...] = ()
    if request.method == "POST" and form.is_valid():
        try:
            version = submit_wheel(owner=player_of(request), data=form.cleaned_data["wheel"])
        except WheelError as error:
            reasons = error.reasons
        except UsageError as error:
            reasons = (str(error),)
        else:
            messages.success(request, f"{version} is here; this page shows how its check goes.")
            return redirect("players:version", version.pk)
    context = {"section": "account", "form": form, "reasons": reasons}
    return render(request, "players/upload.html", context, status=422 if reasons else 200)


def _own_version(request: HttpRequest, pk: int) -> BotVersion:
    """A version that the player owns; anyone else's is not there."""
    versions = BotVersion.objects.select_related("bot__owner", "parent")
    return get_object_or_404(versions, pk=pk, bot__owner=player_of(request))


@login_required
@require_GET
def version(request: HttpRequest, pk: int) -> HttpResponse:
    """A version's status, for its owner."""
    row = _own_version(request, pk)
    context = {
        "section": "account",
        "version": row,
        "games": [
            {
                "title": GAMES[game.game].title if game.game in GAMES else game.game,
                "options": _spell_options(game.options),
            }
            for game in row.games.order_by("game")
        ],
        "queue": selectors.place_of_check(row),
        "may_withdraw": VERSION_TRANSITIONS.allows(VersionState(row.state), VersionState.WITHDRAWN),
    }
    return render(request, "players/version.html", context)


def _spell_options(options: dict[str, list[Any]]) -> list[tuple[str, str]]:
    return [
        (name, ", ".join(_spell(value) for value in values)) for name, values in options.items()
    ]


def _spell(value: object) -> str:
    return (
        {True: "true", False: "false", None: "null"}[value]
        if (value is None or isinstance(value, bool))
        else str(value)
    )


@login_required
@never_cache
@require_GET
def log(request: HttpRequest, pk: int) -> HttpResponse:
    """What a version printed while it was checked, as text, for its owner."""
    row = _own_version(request, pk)
    context = {"section": "account", "version": row, "parts": selectors.version_log_parts(row)}
    return render(request, "players/log.html", context)


@login_required
@never_cache
@require_GET
def wheel(request: HttpRequest, pk: int) -> HttpResponse:
    """The wheel as it was submitted, for its owner."""
    row = _own_version(request, pk)
    return HttpResponse(
        selectors.wheel_of(row),
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{selectors.wheel_name(row)}"'},
    )


@login_required
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Retire a version of one's own."""
    row = _own_version(request, pk)
    try:
        withdraw_version(version=row)
    except SubmissionError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{row} is withdrawn.")
    return redirect("players:version", pk)


@require_GET
def bots(request: HttpRequest) -> HttpResponse:
    """Everybody's bots that have an accepted version."""
    query, game = request.GET.get("q", "")[:60], request.GET.get("game", "")
    found = selectors.public_bots(search=query, game=game if game in GAMES else "")
    page = Paginator(found, BOTS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "bots",
        "page": page,
        "bots": [selectors.public_bot(bot) for bot in page.object_list],
        "query": query,
        "game": game,
        "games": GAMES.values(),
    }
    return render(request, "players/bots.html", context)


@require_GET
def player(request: HttpRequest, slug: str) -> HttpResponse:
    """A player's public page: their accepted bots."""
    row = get_object_or_404(Player, slug=slug)
    bots = [selectors.public_bot(bot) for bot in selectors.public_bots(owner=row)]
    context = {"section": "bots", "player": row, "bots": bots}
    return render(request, "players/player.html", context)
