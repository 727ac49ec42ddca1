"""The addresses of the operations app: its page in the admin. What machines ask has none (`operations.views`)."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tournament.operations.queue_page import queue_page

urlpatterns = [
    path("admin/queue/", admin.site.admin_view(queue_page), name="queue"),
]
