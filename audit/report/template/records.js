
// The records behind a figure. A figure names its detail by `data-ref`; a drawing that was made
// here has it in `behind`. Marks are reached by the arrow keys, so a drawing is one stop of Tab.

const behind = new WeakMap();

async function unpacked() {
  const text = document.getElementById("data").textContent;
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function element(name, words = "", className = "") {
  const made = document.createElement(name);
  made.textContent = words;
  if (className) made.className = className;
  return made;
}

function row(cells) {
  const made = document.createElement("tr");
  made.append(...cells);
  return made;
}

function cell(label, words, more = "") {
  const made = element("td", words);
  made.dataset.label = label;
  if (more) made.append(element("small", more));
  return made;
}

function moment(ms) {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function records(data) {
  const dialog = document.getElementById("records");
  const body = dialog.querySelector("tbody");
  const head = (record) => {
    const made = element("th", grouped(record[0]));
    made.scope = "row";
    return made;
  };
  const show = ({ title, total, found, command }) => {
    document.getElementById("h-records").textContent = title;
    const some = total > found.length ? `; ${found.length} of them` : "";
    document.getElementById("behind").textContent = `${grouped(total)} ${total === 1 ? "record" : "records"}${some}:`;
    body.replaceChildren(...found.map((record) => row([
      head(record),
      cell("When, UTC", record[1] ? moment(record[1]) : "before the log begins"),
      cell("Who", record[2] || "\u2013", record[3]),
      cell("What", record[5] || "\u2013", record[4]),
      cell("Why", record[6] || "\u2013"),
    ])));
    document.getElementById("command").textContent = command;
    dialog.showModal();
  };
  const open = (target) => {
    const place = target.dataset.ref;
    if (place === undefined) return show(behind.get(target));
    const [title, total, places, command] = data.details[place];
    return show({ title, total, found: places.map((each) => data.records[each]), command });
  };
  document.getElementById("close").addEventListener("click", () => dialog.close());
  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("[data-ref], [data-go]");
    if (target && (!target.dataset.ref || event.target.closest("button, rect"))) open(target);
  });
  document.addEventListener("keydown", (event) => {
    const mark = event.target.closest?.("rect[data-ref], rect[data-go]");
    if (mark && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      open(mark);
    }
  });
  document.querySelectorAll("td[data-ref] > span, dd[data-ref] > span").forEach((words) => {
    const button = element("button", words.textContent, "ref");
    button.type = "button";
    words.replaceChildren(button);
  });
  document.querySelectorAll("svg.plot").forEach(reachable);
}

// Let the arrow keys lead from mark to mark of a drawing.
function reachable(drawing) {
  const marks = [...drawing.querySelectorAll("[data-ref], [data-go]")];
  if (!marks.length) return;
  drawing.setAttribute("role", "group");
  marks.forEach((mark, place) => {
    mark.setAttribute("role", "button");
    mark.setAttribute("tabindex", place ? "-1" : "0");
    mark.setAttribute("aria-label", mark.dataset.tip);
  });
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = step && marks[marks.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    event.target.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}
