// The console: what the URL says is what is shown. Rule: every view has an address of its own.

import { ask, keepToken, Refused } from "./asking.js";
import { address, make, notice, number, plain, time } from "./drawing.js";
import { Slider } from "./slider.js";
import * as views from "./views.js";

const DRAWN = new Set(["overview", "search", "state", "diff", "thing", "record"]);
const VIEWS = { overview: "Overview", search: "Search", state: "State", diff: "Difference" };
const EVERY_MS = 2000;
const $ = (id) => document.getElementById(id);
let status = null;
let shownAt = null; // the moment that is shown: {offset, timeMs, batch}
let shownFrom = null;
let asked = 0; // the newest drawing; an older answer that comes later is dropped
let drawnParts = -1;

function place() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function go(changes, replace = false) {
  const to = address({ ...place(), ...changes });
  if (replace) {
    history.replaceState(null, "", to);
    return draw();
  }
  location.hash = to;
  return undefined;
}

// -- the slider -----------------------------------------------------------------------------

const wanted = { from: null, to: null };
let looking = false;

const slider = new Slider(
  (which, part) => {
    const span = status.lastMs - status.firstMs;
    wanted[which] = part >= 1 ? "end" : new Date(status.firstMs + Math.round(part * span)).toISOString();
    look(which);
  },
  () => dropped(),
  (which, way) => step(which, way),
);

// While a handle is dragged, one question at a time is asked, always for the newest place. The
// address before the drag stays in the history, so that Back returns to it.
async function look(which) {
  if (looking) return;
  looking = true;
  if (!isDragged) {
    isDragged = true;
    history.pushState(null, "", address(place()));
  }
  try {
    while (wanted[which] !== null) {
      const at = wanted[which];
      wanted[which] = null;
      const found = await moment(at);
      await go(which === "to" ? { at: found.offset } : { from: found.offset, view: "diff" }, true);
    }
  } finally {
    looking = false;
  }
}

let isDragged = false;

function dropped() {
  isDragged = false;
}

async function moment(at) {
  try {
    return await ask("moment", { at });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return ask("moment", { at: status.logStart });
  }
}

async function step(which, way) {
  const now = which === "to" ? shownAt : shownFrom || shownAt;
  if (!now) return;
  const at = way < 0 ? (now.batch ? now.batch.base : now.offset) : Math.min(now.offset + 1, status.logEnd);
  if (which === "to") go({ at });
  else go({ from: at, view: "diff" });
}

function placeHandles() {
  const span = Math.max(1, status.lastMs - status.firstMs);
  const part = (one) => (one && one.timeMs ? Math.min(1, Math.max(0, (one.timeMs - status.firstMs) / span)) : 0);
  if (slider.dragging !== "to") slider.place("to", part(shownAt));
  if (slider.dragging !== "from") slider.place("from", part(shownFrom || shownAt));
  $("told").textContent = shownAt ? `offset ${number(shownAt.offset)}, ${time(shownAt.timeMs)}` : "";
  $("to").setAttribute("aria-valuetext", $("told").textContent);
  if (document.activeElement !== $("at")) $("at").value = place().at || "end";
  $("first").textContent = time(status.firstMs);
  $("last").textContent = time(status.lastMs);
}

$("at").addEventListener("change", () => {
  const said = $("at").value.trim();
  go({ at: said === "end" ? "" : said });
});
$("newest").addEventListener("click", () => go({ at: "" }));
$("back").addEventListener("click", () => step("to", -1));
$("on").addEventListener("click", () => step("to", 1));

// -- drawing --------------------------------------------------------------------------------

async function draw() {
  const now = place();
  if (now.token) {
    keepToken(now.token);
    const { token, ...others } = now;
    history.replaceState(null, "", address(others));
    return draw();
  }
  const mine = ++asked;
  try {
    if (!status || !status.ready) {
      status = await ask("status");
      if (!status.ready) return building();
    }
    $("time").hidden = false;
    drawFrame(now);
    const view = DRAWN.has(now.view) ? now.view : "overview";
    const [at, from, drawn] = await Promise.all([
      ask("moment", { at: now.at }),
      now.from ? ask("moment", { at: now.from }) : null,
      views[view](now, status),
    ]);
    if (mine !== asked) return undefined;
    shownAt = at;
    shownFrom = from;
    $("main").replaceChildren(...drawn.flat(9).filter(Boolean));
    placeHandles();
    await drawActivity();
  } catch (error) {
    if (mine !== asked) return undefined;
    $("main").replaceChildren(...refusal(error));
  }
  return undefined;
}

function refusal(error) {
  if (error.status !== 401) return [notice(error.message, true)];
  const input = make("input", { type: "password", name: "token", autocomplete: "off", "aria-label": "Token" });
  return [make("form", { onsubmit: (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    draw();
  } }, make("label", {}, "This console needs its token", input), make("button", { type: "submit" }, "Open"))];
}

function drawFrame(now) {
  const current = now.view || "overview";
  $("views").replaceChildren(...Object.entries(VIEWS).map(([view, name]) =>
    make("a", { href: address({ ...views.moments(now), view }), "aria-current": view === current ? "page" : null }, name)));
  $("place").textContent = plain(status.location);
  const proof = status.proof;
  const bad = proof.state === "damaged" || status.damage;
  $("proof").className = `badge ${bad ? "damaged" : proof.state}`;
  $("proof").textContent = bad ? "damaged" : { waiting: "not verified yet", verifying: "verifying…",
    sound: `verified to ${number(proof.verifiedTo)}` }[proof.state];
  document.title = `${VIEWS[current] || plain(now.name || current)} · Logberg console`;
  const said = $("damage");
  if (said) said.remove();
  if (status.damage || status.trouble) {
    const told = notice(status.damage ? `The log is damaged, and ends here: ${status.damage}` : status.trouble, true);
    told.id = "damage";
    $("time").after(told);
  }
}

async function drawActivity() {
  if (drawnParts === status.logEnd) return;
  drawnParts = status.logEnd;
  slider.show((await ask("activity", { parts: 240 })).parts);
}

function building() {
  const { what, done, total } = status.progress;
  const said = { building: "Building the index", verifying: "Verifying the log", judging: "Judging the log" }[what] || "Opening the log";
  $("main").replaceChildren(
    make("h1", {}, `${said}…`),
    make("progress", { max: total || 1, value: done, "aria-label": said }),
    make("p", { class: "quiet" }, total ? `${number(done)} of ${number(total)} records` : ""),
    status.trouble ? notice(status.trouble, true) : "");
  setTimeout(draw, 300);
}

function isNews(before, after) {
  return after.proof.state !== before.proof.state || after.hasFindings !== before.hasFindings;
}

async function follow() {
  if (status && status.ready && !document.hidden) {
    try {
      const before = status;
      status = await ask("status");
      const grew = status.logEnd !== before.logEnd;
      drawFrame(place());
      if (shownAt) placeHandles();
      if (grew && !place().at && !slider.dragging && document.activeElement.tagName !== "INPUT") draw();
      else if (isNews(before, status) && (place().view || "overview") === "overview") draw();
    } catch {
      // The next look may find the server again.
    }
  }
  setTimeout(follow, EVERY_MS);
}

addEventListener("hashchange", draw);
draw();
setTimeout(follow, EVERY_MS);
