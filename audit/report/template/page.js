"use strict";
// What the page can do beyond being read: sort and filter tables, show a mark's words when it is
// pointed at, show the records behind a figure, draw timelines. Without it all tables and pictures
// are there.

const said = document.getElementById("said");

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending"
        || (!head.hasAttribute("aria-sort") && head.classList.contains("num"));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const sign = falling ? -1 : 1;
      const rows = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
      rows.sort(([a], [b]) => sign * compare(a, b));
      body.append(...rows.map(([, row]) => row));
      said.textContent = `Sorted by ${head.textContent}, ${head.getAttribute("aria-sort")}`;
    });
  });
}

function keyOf(cell) {
  const key = cell.dataset.sort ?? cell.textContent.trim();
  const number = Number(key);
  return key !== "" && Number.isFinite(number) ? number : key;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function filterable(table, number) {
  const label = document.createElement("label");
  const field = document.createElement("input");
  field.type = "search";
  field.id = `filter-${number}`;
  label.htmlFor = field.id;
  label.textContent = "Filter";
  const line = document.createElement("p");
  line.className = "filter";
  const shown = document.createElement("span");
  line.append(label, field, shown);
  table.parentElement.before(line);
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.replace(/\s+/g, " ").toLowerCase()]));
  const tell = (count) => { shown.textContent = `${count} of ${rows.length} rows`; };
  tell(rows.length);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      count += row.hidden ? 0 : 1;
    }
    tell(count);
    said.textContent = shown.textContent;
  });
}

function tips() {
  const tip = document.getElementById("tip");
  document.addEventListener("pointerover", (event) => {
    const words = event.target.closest?.("[data-tip]")?.dataset.tip;
    tip.hidden = !words;
    tip.textContent = words ?? "";
  });
  document.addEventListener("focusin", (event) => {
    const words = event.target.dataset?.tip;
    if (words) said.textContent = words;
  });
  document.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, room))}px`;
    const below = event.clientY + 20 + tip.offsetHeight < window.innerHeight;
    tip.style.top = `${below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 12}px`;
  });
}
