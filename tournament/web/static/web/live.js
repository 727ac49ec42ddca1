// Fetches the page anew every few seconds and puts its live parts in place, until none of them is live any more.
"use strict";

const LIVE_SECONDS = Number(document.currentScript.dataset.seconds || 3);

function isRead(part) {
  const chosen = document.getSelection();
  return part.contains(document.activeElement) || (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode));
}

// What was scrolled aside (a wide bracket, a table) stays so.
function replace(part, newer) {
  const regions = ".bracket-scroll, .table-scroll";
  const offsets = [...part.querySelectorAll(regions)].map((region) => region.scrollLeft);
  part.replaceWith(document.adoptNode(newer));
  newer.querySelectorAll(regions).forEach((region, index) => { region.scrollLeft = offsets[index] || 0; });
}

async function showNewest() {
  if (document.hidden) return true;
  const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
  if (!answer.ok) return true;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const newer = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!newer) return false;
    if (!isRead(part) && newer.innerHTML !== part.innerHTML) replace(part, newer);
  }
  return true;
}

async function keepFresh() {
  let goesOn = true;
  try {
    goesOn = await showNewest();
  } catch (error) {
    console.warn("The page could not be fetched anew", error);
  }
  if (goesOn) setTimeout(keepFresh, 1000 * LIVE_SECONDS);
  else location.reload();
}

setTimeout(keepFresh, 1000 * LIVE_SECONDS);
