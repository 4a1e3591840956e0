// Requests to this server, and one kind of error for whatever goes wrong.

export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

// No answer from the server at all: the connection is lost, or the server is restarting.
export class Unreachable extends Error {}

async function answered(request) {
  let response;
  try {
    response = await request();
  } catch {
    throw new Unreachable("The server cannot be reached.");
  }
  if (response.ok) return response;
  let words = `The server answered ${response.status}.`;
  try {
    words = (await response.json()).error ?? words;
  } catch {
    // Not from our server: a proxy in between, perhaps, while ours restarts.
    if (response.status >= 500) throw new Unreachable(words);
  }
  if (response.status === 502 || response.status === 503 || response.status === 504) throw new Unreachable(words);
  throw new Refused(response.status, words);
}

export async function get(address) {
  return (await answered(() => fetch(address))).json();
}

export async function getBlob(address) {
  return (await answered(() => fetch(address))).blob();
}

export async function post(address, body) {
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await answered(() => fetch(address, request))).json();
}

// The token of the link this page was opened with, exchanged for a cookie. It does not stay in the address.
export async function enter(address) {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  await post(address, { token });
  history.replaceState(null, "", location.pathname);
}
