"""The addresses of accounts, bots and players."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from tournament.players import views

app_name = "players"
urlpatterns = [
    path("account/", views.account, name="account"),
    path("account/sign-up/", views.sign_up, name="sign-up"),
    path("account/log-out/", LogoutView.as_view(), name="log-out"),
    path("account/password/", views.ForgottenPassword.as_view(), name="forgotten-password"),
    path(
        "account/password/<str:uidb64>/<str:token>/",
        views.SetPassword.as_view(),
        name="set-password",
    ),
    path("account/mail/<str:token>/confirm/", views.confirm, name="confirm-mail"),
    path("account/mail/<str:token>/stop/", views.stop, name="stop-mail"),
    path("account/tokens/", views.tokens, name="tokens"),
    path("account/tokens/<slug:prefix>/revoke/", views.revoke, name="revoke-token"),
    path("account/upload/", views.upload, name="upload"),
    path("account/versions/<int:pk>/", views.version, name="version"),
    path("account/versions/<int:pk>/log/", views.log, name="log"),
    path("account/versions/<int:pk>/wheel/", views.wheel, name="wheel"),
    path("account/versions/<int:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("bots/", views.bots, name="bots"),
    path("players/<slug:slug>/", views.player, name="player"),
]
