
// Timelines of whatever is asked for, drawn into the page.

const SVG = "http://www.w3.org/2000/svg";
const LANE = 24;
const MOST_BARS = 1500;
const MOST_MATCHES = 20;
const MOST_STEPS = 40;
const SHORTEST_MS = 1000;
const TICKS = [1, 2, 5, 10, 30].map((n) => n * 6e4).concat([1, 3, 6, 12].map((n) => n * 36e5),
  [1, 2].map((n) => n * 864e5), [1, 2, 4, 13, 26, 52, 104, 260].map((n) => n * 6048e5));
const MONDAY = 4 * 864e5;

function shape(name, attributes, words = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = words;
  return made;
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function ticks([from, until]) {
  for (const step of TICKS) {
    const origin = step % 6048e5 ? 0 : MONDAY;
    const first = Math.ceil((from - origin) / step) * step + origin;
    if ((until - first) / step < 10) {
      return Array.from({ length: Math.floor((until - first) / step) + 1 }, (_, n) => first + n * step);
    }
  }
  return [from];
}

function tickName(ms) {
  const at = new Date(ms);
  if (ms % 864e5) return at.toISOString().slice(11, 16);
  return `${at.getUTCDate()} ${at.toLocaleString("en", { month: "short", timeZone: "UTC" })}`;
}

// Return the thing that a text names, as [kind, what].
function thingOf(text, data) {
  const [kind, ...rest] = text.split(":");
  const name = rest.join(":");
  const line = (wanted) => data.lines.find((each) => each[0] === wanted || each[0].startsWith(`${wanted} (topic id `));
  if (kind === "partition" && line(name)) return ["partition", line(name)];
  if (kind === "topic") return ["topic", name];
  if (kind === "broker" && data.brokers.some(([id]) => String(id) === name)) return ["broker", Number(name)];
  return null;
}

function timelines(data) {
  const place = document.getElementById("drawn");
  if (!place) return;
  const draw = (kind, what) => {
    const name = kind === "partition" ? what[0] : kind === "topic" ? what : `broker ${what}`;
    const model = kind === "partition" ? ofPartition(what, data) : kind === "topic" ? ofTopic(what, data) : ofBroker(what, data);
    const article = new Drawn(kind, name, model, data, draw).article;
    place.prepend(article);
    return article;
  };
  const go = (text) => {
    const found = thingOf(text, data);
    if (!found) return;
    const article = draw(...found);
    article.scrollIntoView({ block: "nearest" });
    article.querySelector("h3").focus();
  };
  data.asked.toReversed().forEach((text) => draw(...thingOf(text, data)));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-thing]");
    if (link && thingOf(link.dataset.thing, data)) {
      event.preventDefault();
      go(link.dataset.thing);
    }
  });
  asking(data, go);
}

function asking(data, go) {
  const field = document.getElementById("thing");
  const list = document.getElementById("matches");
  const count = document.getElementById("matches-said");
  const topics = [...new Set(data.lines.map((line) => line[1]))].map((name) => `topic:${name}`);
  const brokers = data.brokers.map(([id]) => `broker:${id}`);
  const all = [...topics, ...brokers, ...data.lines.map((line) => `partition:${line[0]}`)];
  document.getElementById("ask").hidden = false;
  const look = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? all.filter((each) => words.every((word) => each.toLowerCase().includes(word))) : [];
    found.sort((a, b) => a.length - b.length);
    count.textContent = words.length ? `${grouped(found.length)} found` : `${grouped(all.length)} can be drawn`;
    list.replaceChildren(...found.slice(0, MOST_MATCHES).map((each) => {
      const item = document.createElement("li");
      const button = element("button", each);
      button.type = "button";
      button.addEventListener("click", () => go(each));
      item.append(button);
      return item;
    }));
    return found;
  };
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    const [first] = event.key === "Enter" ? look() : [];
    if (first) go(first);
  });
  look();
}

class Drawn {
  constructor(kind, name, model, data, draw) {
    Object.assign(this, { kind, name, model, data, draw });
    this.whole = [data.period[0], Math.max(data.period[1], data.period[0] + SHORTEST_MS)];
    this.window = [...this.whole];
    this.article = element("article", "", "timeline");
    this.head = element("h3", name);
    this.head.tabIndex = -1;
    this.said = element("p", "", "matched");
    this.picture = element("div", "", "drawing lanes");
    this.table = document.createElement("div");
    this.article.append(this.head, this.tools(), this.said, this.keyOf(), this.picture, this.table);
    this.show();
  }

  tools() {
    const line = element("div", "", "tools");
    const add = (words, act) => {
      const button = element("button", words);
      button.type = "button";
      button.addEventListener("click", act);
      line.append(button);
    };
    const move = (by) => () => this.turnTo(this.window.map((each) => each + by * (this.window[1] - this.window[0])));
    const zoom = (by) => () => {
      const [from, until] = this.window;
      const half = ((until - from) * by) / 2;
      this.turnTo([(from + until) / 2 - half, (from + until) / 2 + half]);
    };
    add("Closer", zoom(1 / 3));
    add("Wider", zoom(3));
    add("Earlier", move(-0.5));
    add("Later", move(0.5));
    add("Whole period", () => this.turnTo(this.whole));
    const { worst } = this.model;
    if (worst) add("Worst time", () => this.turnTo([worst.from - (worst.until - worst.from), worst.until + (worst.until - worst.from)]));
    add("Remove", () => this.article.remove());
    return line;
  }

  turnTo([from, until]) {
    const length = Math.min(Math.max(until - from, SHORTEST_MS), this.whole[1] - this.whole[0]);
    const begin = Math.min(Math.max(from, this.whole[0]), this.whole[1] - length);
    this.window = [Math.round(begin), Math.round(begin + length)];
    this.show();
  }

  keyOf() {
    const list = element("ul", "", "key");
    for (const [words, tone] of this.model.key) {
      const item = element("li");
      const sign = shape("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
      sign.append(shape("rect", { class: tone, width: 10, height: 10 }));
      item.append(sign, words);
      list.append(item);
    }
    return list;
  }

  show() {
    const [from, until] = this.window;
    const names = element("ol", "", "names");
    const lanes = this.model.lanes;
    const height = lanes.length * LANE;
    const svg = shape("svg", { class: "plot", width: "100%", height: height + 22, role: "img",
      "aria-label": `${this.name} from ${moment(from)} to ${moment(until)} UTC` });
    const seen = lanes.flatMap((lane, place) => lane.bars
      .filter((bar) => bar.until >= from && bar.from <= until).map((bar) => [bar, place]));
    const kept = seen.length > MOST_BARS
      ? seen.sort(([a], [b]) => (b.until - b.from) - (a.until - a.from)).slice(0, MOST_BARS) : seen;
    const dropped = seen.length - kept.length;
    this.axis(svg, height);
    for (const lane of lanes) names.append(this.laneName(lane));
    this.picture.replaceChildren(names, svg);
    const least = 200 / Math.max(100, svg.clientWidth || 600);
    for (const [bar, place] of kept) svg.append(this.rect(bar, place, least));
    reachable(svg);
    this.said.textContent = [`${moment(from)} to ${moment(until)}.`,
      dropped ? `${grouped(dropped)} short pieces not drawn: look closer.` : "",
      this.model.left ? `${grouped(this.model.left)} ${this.model.leftNoun} not drawn.` : ""].join(" ");
    this.table.replaceChildren(...this.stepsTable());
  }

  laneName(lane) {
    const item = document.createElement("li");
    const words = lane.name.length > 22 ? `${lane.name.slice(0, 21)}\u2026` : lane.name;
    item.title = lane.name;
    if (!lane.thing) item.textContent = words;
    else {
      const button = element("button", words, "ref");
      button.type = "button";
      button.addEventListener("click", () => this.draw("partition", lane.thing).querySelector("h3").focus());
      item.append(button);
    }
    return item;
  }

  axis(svg, height) {
    svg.append(shape("line", { class: "rule", x1: 0, x2: "100%", y1: height, y2: height }));
    ticks(this.window).forEach((at, place) => {
      const x = this.percent(at);
      const anchor = x < 8 ? "start" : x > 92 ? "end" : "middle";
      const odd = place % 2 ? " odd" : "";
      svg.append(
        shape("line", { class: `rule${odd}`, x1: `${x}%`, x2: `${x}%`, y1: height, y2: height + 4 }),
        shape("text", { class: `tick${odd}`, "text-anchor": anchor, x: `${x}%`, y: height + 17 }, tickName(at)),
      );
    });
  }

  percent(at) {
    const [from, until] = this.window;
    return Math.min(100, Math.max(0, ((at - from) * 100) / (until - from)));
  }

  rect(bar, place, least) {
    const begin = Math.min(this.percent(bar.from), 100 - least);
    const width = Math.max(least, this.percent(bar.until) - begin);
    const room = LANE - 4;
    const high = room * (bar.high ?? 1);
    const made = shape("rect", { class: bar.tone, x: `${begin}%`, width: `${width}%`,
      y: place * LANE + 2 + room - high, height: high, "data-tip": bar.tip, "data-go": "" });
    behind.set(made, this.detail(bar.tip, bar, this.model.lanes[place].thing));
    return made;
  }

  detail(title, step, line) {
    const thing = line ? `partition:${line[0]}` : this.kind === "partition" ? `partition:${this.name}` : `broker:${this.name.slice(7)}`;
    const words = ["logberg", "audit", "history", this.data.where, thing.replace(/ \(topic id .*$/, ""),
      "--from", String(step.offset)];
    if (step.next !== undefined) words.push("--to", String(step.next));
    const known = this.data.records.find((each) => each[0] === step.offset);
    const record = known ?? [step.offset, step.from, "", "", "", thing, ""];
    return { title, total: 1, found: [record], command: words.map(quoted).join(" ") };
  }

  stepsTable() {
    const [from, until] = this.window;
    const seen = this.model.steps.filter((each) => each.until >= from && each.from <= until);
    if (!seen.length) return [];
    const partition = this.kind === "partition";
    const heads = partition ? ["From, UTC", "For", "Leader", "ISR", "Replicas", "Min ISR", "Offset"] : ["From, UTC", "For", "State", "Offset"];
    const more = element("details");
    more.append(element("summary", `The steps of ${this.name} as a table`));
    const table = document.createElement("table");
    table.append(element("caption", `Steps of ${this.name}`));
    const top = table.createTHead().insertRow();
    for (const each of heads) {
      const head = element("th", each);
      head.scope = "col";
      top.append(head);
    }
    const body = table.createTBody();
    for (const step of seen.slice(0, MOST_STEPS)) body.append(this.stepRow(step, heads, partition));
    const box = element("div", "", "table");
    box.append(table);
    more.append(box);
    const left = seen.length - Math.min(seen.length, MOST_STEPS);
    if (left) more.append(element("p", `The first ${MOST_STEPS} of ${grouped(seen.length)} steps: look closer for the others.`, "left-out"));
    return [more];
  }

  stepRow(step, heads, partition) {
    const head = element("th", moment(step.from));
    head.scope = "row";
    const values = partition
      ? [step.offline ? "none" : String(step.leader), step.isr.join(" "), step.replicas.join(" "), String(step.minIsr)]
      : [step.state];
    const cells = [step.lasts ? "to the end" : lasted(step.until - step.from), ...values];
    const offset = cell("Offset", "");
    const button = element("button", grouped(step.offset), "ref");
    button.type = "button";
    button.dataset.go = "";
    behind.set(button, this.detail(`${this.name} at offset ${step.offset}`, step));
    offset.append(button);
    return row([head, ...cells.map((words, place) => cell(heads[place + 1], words)), offset]);
  }
}
