// Adds the viewer's own time to each moment, which the page gives in UTC.
"use strict";

const here = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});

function showLocalTime(moment) {
  const instant = new Date(moment.dateTime);
  if (Number.isNaN(instant.getTime()) || instant.getTimezoneOffset() === 0) return;
  const note = document.createElement("small");
  note.className = "local-time";
  note.textContent = ` (${here.format(instant)})`;
  moment.after(note);
}

document.querySelectorAll("time[data-local]").forEach(showLocalTime);
