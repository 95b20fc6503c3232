// Asks the server. Rule: the token goes into a header, never into a URL that a log would keep.

const TOKEN = "logberg-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { authorization: `Bearer ${token}` } : {};
}

function url(view, asked) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  return `/api/${view}?${query}`;
}

async function fetched(view, asked, signal) {
  const reply = await fetch(url(view, asked), { headers: headers(), signal });
  if (reply.ok) return reply;
  let said = {};
  try {
    said = await reply.json();
  } catch {
    // An error without a sentence gets one below.
  }
  throw new Refused(reply.status, said.message || `the server answered ${reply.status}`);
}

export async function ask(view, asked = {}, signal = undefined) {
  return (await fetched(view, asked, signal)).json();
}

export async function save(asked) {
  const reply = await fetched("export", asked);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await reply.blob());
  const said = reply.headers.get("content-disposition") || "";
  link.download = (/filename="([^"]+)"/.exec(said) || [])[1] || "logberg-export";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  return { rows: reply.headers.get("x-logberg-rows"), whole: reply.headers.get("x-logberg-complete") === "yes" };
}
