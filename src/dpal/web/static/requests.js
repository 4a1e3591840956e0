// Requests to this server, and one kind of error for whatever goes wrong.

export class Refused extends Error {
  // `final` only where the server says that the same request can never succeed.
  constructor(status, words, final) {
    super(words);
    this.status = status;
    this.final = final;
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
  let said;
  try {
    said = await response.json();
  } catch {
    said = {};
  }
  // Without our words it is not from our server: a proxy in between, perhaps, while ours restarts.
  if (typeof said.error !== "string") throw new Unreachable(`Something in between answered ${response.status}.`);
  if (response.status >= 502) throw new Unreachable(said.error);
  throw new Refused(response.status, said.error, said.final === true);
}

// The page of a hotel's network is not our server either.
async function json(response) {
  try {
    return await response.json();
  } catch {
    throw new Unreachable("Something in between answered in the server's place.");
  }
}

export async function get(address) {
  return json(await answered(() => fetch(address)));
}

export async function getBlob(address) {
  return (await answered(() => fetch(address))).blob();
}

export async function post(address, body) {
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return json(await answered(() => fetch(address, request)));
}

// The token of the link this page was opened with, exchanged for a cookie. It does not stay in the address.
export async function enter(address) {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  await post(address, { token });
  history.replaceState(null, "", location.pathname);
}
