// The views. Each asks the server and returns elements; `place` is what the URL says.

import { ask, save } from "./asking.js";
import { address, differing, fields, link, make, notice, number, plain, time, who } from "./drawing.js";

const SEARCH = {
  q: "Text: every word must occur", principal: "Principal", address: "Address", operation: "Operation",
  type: "Type of record", topic: "Topic", broker: "Broker", resource: "Thing or pattern",
  request: "Request id", outcome: "Outcome", since: "From (moment)", until: "To (moment)",
};
const HINTS = {
  q: "alice retention", principal: "User:alice, 'Broker:*'", address: "10.0.*", operation: "Alter*",
  type: "config", resource: "partition:orders-*", since: "-2d", until: "end",
};
const TABLES_OF_KIND = { topic: "topics", partition: "partitions", broker: "brokers", controller: "controllers",
  feature: "features", acl: "acls", token: "tokens", quota: "client_quotas" };

export async function overview(place, status) {
  const counted = await ask("counts", { at: place.at });
  const found = await findings(status);
  const proof = status.proof;
  const said = {
    waiting: "not verified yet", verifying: "being verified", sound: "sound", damaged: "NOT SOUND",
  }[proof.state];
  return [
    found,
    make("h1", {}, "Proof"),
    make("div", { class: "card" },
      make("p", { class: proof.state }, `The log is ${said}`,
        proof.verifiedTo ? `: verified from offset ${number(proof.verifiedFrom)} to ${number(proof.verifiedTo)}.` : "."),
      proof.head && make("p", { class: "mono" }, `${proof.verifiedTo}:${proof.head}`),
      proof.head && make("p", { class: "quiet" }, "Write this line down elsewhere: it proves everything before it."),
      proof.problems.map((one) => notice(one, true)),
      proof.notes.map((one) => make("p", { class: "quiet" }, plain(one)))),
    make("h1", {}, `State at offset ${number(counted.offset)}, ${time(counted.timeMs)}`),
    make("div", { class: "cards" }, Object.entries(counted.tables).map(([table, count]) =>
      make("div", { class: "card" }, link({ ...moments(place), view: "state", table }, `${table}: ${number(count)}`)))),
  ];
}

async function findings(status) {
  if (!status.hasFindings) return null;
  const found = await ask("findings");
  if (found.cannot) return [make("h1", {}, "Findings"), notice(plain(found.cannot), false)];
  return [
    make("h1", {}, found.items.length ? "Look at these first" : "Nothing stands out"),
    make("div", { id: "findings" }, found.items.map((one) => make("div", { class: "row" },
      make("div", { class: "head" },
        make("span", { class: plain(one.severity) }, plain(one.severity)),
        link({ view: "record", offset: one.offset, at: one.offset + 1 }, plain(one.sentence))),
      make("div", { class: "quiet" }, `${time(one.timeMs)}  ${who(one)}  ${plain(one.operation)}`,
        one.reason && `  “${plain(one.reason)}”`,
        one.subject && ["  ", link({ view: "search", resource: one.subject }, plain(one.subject))])))),
    make("p", { class: "quiet" }, found.total > found.items.length
      ? `and ${number(found.total - found.items.length)} more: logberg audit findings shows them all. ` : "",
      `Judged up to offset ${number(found.upTo)}.`),
  ];
}

export async function search(place) {
  const form = make("form", { onsubmit: (event) => {
    event.preventDefault();
    const said = Object.fromEntries(new FormData(form));
    location.hash = address({ ...moments(place), view: "search", ...said });
  } },
  Object.entries(SEARCH).map(([name, label]) => make("label", { class: name === "q" ? "wide" : null }, label,
    make("input", { name, value: place[name] || "", placeholder: HINTS[name] || "", autocomplete: "off", spellcheck: "false" }))),
  make("button", { type: "submit" }, "Search"));
  const list = make("div", { id: "rows" });
  const asked = asking(place);
  const page = await ask("search", asked);
  await more(list, "search", asked, page, "before", (one) => row(one, place));
  const count = `${page.isMore ? "more than " : ""}${number(page.total)} ${page.total === 1 ? "record" : "records"}, newest first`;
  return [form, tools(count, "search", asked), list];
}

function asking(place) {
  const asked = {};
  for (const name of Object.keys(SEARCH)) asked[name] = place[name];
  const { since, until, ...others } = asked;
  return { ...others, from: since, to: until };
}

function row(one, place) {
  return make("div", { class: "row" },
    make("div", { class: "head" },
      link({ ...moments(place), view: "record", offset: one.offset }, number(one.offset)),
      make("span", {}, plain(one.type.replace(/_RECORD$/, "").toLowerCase().replaceAll("_", " "))),
      subjects(one.subjects, place),
      one.outcome !== "settled" && make("span", { class: "removed" }, one.outcome.toUpperCase())),
    make("div", { class: "quiet" }, `${time(one.timeMs)}  ${who(one)}  ${plain(one.operation)}`,
      one.reason && `  “${plain(one.reason)}”`));
}

function subjects(words, place) {
  return words.slice(0, 3).map((word) => {
    const [kind, ...name] = word.split(":");
    const table = TABLES_OF_KIND[kind];
    const to = table && name.length
      ? { ...moments(place), view: "thing", table, name: name.join(":") }
      : { ...moments(place), view: "search", resource: word };
    return make("span", {}, link(to, plain(word)), " ");
  });
}

export async function record(place) {
  const one = await ask("record", { offset: place.offset });
  const end = { ...moments(place), at: one.batch + 1 };
  return [
    make("h1", {}, `Record ${number(one.offset)}: ${plain(one.type)}`),
    row(one, place),
    make("div", { class: "card" }, fields(one.data)),
    make("div", { class: "card" }, fields({ batch: one.batch, epoch: one.epoch, requestId: one.requestId,
      clientId: one.clientId, hash: one.hash })),
    make("p", { class: "tools" },
      link({ ...end, view: "overview" }, "the state after it"),
      link({ ...end, from: one.batch, view: "diff" }, "what its batch changed"),
      one.requestId && link({ ...moments(place), view: "search", request: one.requestId }, "its request")),
  ];
}

export async function state(place) {
  const counted = await ask("counts", { at: place.at });
  const table = place.table || Object.keys(counted.tables)[0] || "topics";
  const asked = { at: place.at, table, name: place.like };
  const list = make("div", { id: "rows" });
  const page = await ask("state", asked);
  await more(list, "state", asked, page, "after", (one) => make("div", { class: "row" },
    make("div", { class: "head" },
      link({ ...moments(place), view: "thing", table, name: one.name }, make("b", {}, plain(one.name)))),
    fields(one.fields)));
  return [
    make("h1", {}, `State at offset ${number(counted.offset)}, ${time(counted.timeMs)}`),
    tabs(place, counted.tables, table, "state"),
    part(place, "state"),
    tools(`${number(counted.tables[table] || 0)} in ${table}`, "state", asked),
    list,
  ];
}

export async function diff(place) {
  const asked = { from: place.from || "0", to: place.at };
  const counted = await ask("different", asked);
  const totals = Object.fromEntries(Object.entries(counted.tables).map(([table, kinds]) =>
    [table, Object.values(kinds).reduce((one, other) => one + other, 0)]));
  const wanted = { ...asked, table: place.table, name: place.like };
  const list = make("div", { id: "rows" });
  const page = await ask("diff", wanted);
  await more(list, "diff", wanted, page, "after", (one) => make("div", { class: "row" },
    make("div", { class: "head" },
      make("span", { class: one.kind }, one.kind),
      link({ ...moments(place), view: "thing", table: one.table, name: one.name },
        `${one.table.replaceAll("_", " ")}  `, make("b", {}, plain(one.name)))),
    differing(one.fields, one.kind)));
  const total = Object.values(totals).reduce((one, other) => one + other, 0);
  return [
    make("h1", {}, `From offset ${number(counted.before.offset)} to ${number(counted.after.offset)}`),
    make("p", { class: "quiet" }, `${time(counted.before.timeMs)} to ${time(counted.after.timeMs)}`),
    tabs(place, totals, place.table, "diff"),
    part(place, "diff"),
    tools(total ? `${number(total)} entries differ` : "no difference", "diff", wanted),
    list,
  ];
}

export async function thing(place) {
  const asked = { table: place.table, name: place.name, life: place.life, at: place.at };
  const one = await ask("thing", asked);
  const why = one.fields ? await reasons(one) : null;
  const list = make("div", { id: "rows" });
  await more(list, "thing", asked, { ...one, items: one.versions }, "before", (each) => change(each, place),
    (page) => page.versions);
  const kind = Object.entries(TABLES_OF_KIND).find(([, table]) => table === one.table);
  const lives = Array.from({ length: one.lives }, (_, life) => life);
  return [
    make("h1", {}, `${one.table.replaceAll("_", " ")}: ${plain(one.name)}`),
    one.lives > 1 && make("p", { class: "tabs" }, "It was created more than once: ",
      lives.map((life) => make("a", { href: address({ ...place, life }), "aria-current": life === one.life ? "true" : null },
        life ? `${life} before` : "the newest"))),
    make("div", { class: "card" }, one.fields
      ? [make("p", { class: "quiet" }, `at offset ${number(one.offset)}, ${time(one.timeMs)}`), fields(one.fields)]
      : `It is not there at offset ${number(one.offset)}.`),
    why,
    make("p", { class: "tools" },
      kind && link({ ...moments(place), view: "search", resource: `${kind[0]}:${one.name}` }, "the records that name it"),
      one.others.map((other) => link({ ...moments(place), view: "thing", table: other.table, name: other.name }, other.table)),
      one.table === "topics" && link({ ...moments(place), view: "state", table: "partitions", like: `${one.name}-` }, "its partitions"),
      one.table === "topics" && link({ ...moments(place), view: "thing", table: "configs", name: `topic:${one.name}` }, "its configs")),
    make("h2", {}, "Everything that happened to it"),
    tools("newest first", "thing", asked),
    list,
  ];
}

async function reasons(one) {
  const said = await ask("explain", { table: one.table, name: one.name, at: one.offset });
  if (!said.isKnown) return null;
  return make("div", { class: "card", id: "why" }, make("h2", {}, "Why it is so"),
    said.findings.length ? said.findings.map((one) => make("p", {}, plain(one.says)))
      : make("p", { class: "quiet" }, "Nothing is wrong with it."));
}

function change(each, place) {
  const cause = each.cause;
  return make("div", { class: "row" },
    make("div", { class: "head" },
      make("span", { class: each.kind }, each.kind),
      link({ ...moments(place), at: each.at, view: place.view, table: place.table, name: place.name }, `offset ${number(each.at)}`),
      cause && make("span", {}, time(cause.timeMs))),
    cause && make("div", { class: "quiet" }, `${who(cause)}  ${plain(cause.operation)}`,
      cause.reason && `  “${plain(cause.reason)}”`,
      "  ", link({ ...moments(place), view: "record", offset: cause.base }, "batch")),
    differing(each.fields, each.kind));
}

function tabs(place, counts, current, view) {
  return make("div", { class: "tabs" }, Object.entries(counts).map(([table, count]) =>
    make("a", { href: address({ ...moments(place), view, table: view === "diff" && table === current ? "" : table }),
      "aria-current": table === current ? "true" : null }, `${table.replaceAll("_", " ")} ${number(count)}`)));
}

function part(place, view) {
  const input = make("input", { name: "like", value: place.like || "", placeholder: "part of a name", autocomplete: "off" });
  return make("form", { onsubmit: (event) => {
    event.preventDefault();
    location.hash = address({ ...moments(place), view, table: place.table, like: input.value });
  } }, make("label", {}, "Name", input), make("button", { type: "submit" }, "Filter"));
}

function tools(count, view, asked) {
  const told = make("span", { class: "quiet" });
  const button = (format) => make("button", { type: "button", onclick: async () => {
    try {
      const done = await save({ ...asked, view, format });
      told.textContent = `${number(done.rows)} rows${done.whole ? "" : ", the first ones: there are more"}`;
    } catch (error) {
      told.textContent = error.message;
    }
  } }, format.toUpperCase());
  return make("div", { class: "tools" }, make("span", { id: "count" }, count), button("csv"), button("json"), told);
}

async function more(list, view, asked, page, name, drawn, items = (said) => said.items) {
  list.append(...(page.items || []).map(drawn));
  if (!page.next) return;
  const button = make("button", { type: "button", onclick: async () => {
    const next = await ask(view, { ...asked, [name]: page.next });
    button.remove();
    await more(list, view, asked, { items: items(next), next: next.next }, name, drawn, items);
  } }, "more");
  list.append(button);
}

export function moments(place) {
  return { at: place.at, from: place.from };
}

