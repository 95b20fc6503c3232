// Makes elements. Rule: text becomes a text node, so nothing that a log says is ever markup.

export function make(name, attributes = {}, ...inner) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...inner.flat(9).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

// Shows characters that would reorder or hide text.
export function plain(text) {
  return String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function value(said) {
  if (said === null || said === undefined) return "—";
  return plain(typeof said === "object" ? JSON.stringify(said) : said);
}

export function time(ms) {
  return ms ? new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC") : "the beginning";
}

export function number(count) {
  return Number(count).toLocaleString("en");
}

export function link(asked, ...inner) {
  return make("a", { href: address(asked) }, ...inner);
}

export function address(asked) {
  const query = new URLSearchParams();
  for (const [name, said] of Object.entries(asked)) {
    if (said !== undefined && said !== null && said !== "") query.set(name, said);
  }
  return `#${query}`;
}

export function fields(all) {
  return make("div", { class: "fields" },
    Object.entries(all).map(([name, said]) => make("span", {}, make("b", {}, `${plain(name)} `), value(said))));
}

// Of what was created or removed, only the side that is there is shown.
export function differing(all, kind = "changed") {
  const sides = ([before, after]) => [
    kind !== "created" && make("span", { class: "was" }, value(before)),
    kind === "changed" && " → ",
    kind !== "removed" && make("span", { class: "now" }, value(after)),
  ];
  return make("div", { class: "fields" }, Object.entries(all).map(([name, both]) =>
    make("span", {}, make("b", {}, `${plain(name)} `), sides(both))));
}

// The server sends a name beside a pseudonym if it can open it.
function person(principal, name) {
  return name ? `User:${plain(name)} (${plain(principal.slice("User:".length))})` : plain(principal);
}

export function who(cause) {
  const { principal, principalName, actedAs, onBehalfOf, onBehalfOfName } = cause;
  const { authMethod, clientAddress } = cause;
  let said = person(principal || "-", principalName);
  if (actedAs) said += ` as ${plain(actedAs)}`;
  if (onBehalfOf) said += ` for ${person(onBehalfOf, onBehalfOfName)}`;
  const carried = [authMethod === "internal" ? "" : authMethod, clientAddress && `from ${clientAddress}`];
  const words = carried.filter(Boolean).map(plain).join(" ");
  return words ? `${said} (${words})` : said;
}

export function notice(text, bad = false) {
  return make("p", { class: bad ? "notice bad" : "notice", role: "status" }, plain(text));
}
