// Answers that are not on the server yet. They are kept in the browser, so that they survive a lost connection and a
// closed tab, and are sent in order, each with a key by which the server knows one that it already has.

import { post, Refused, Unreachable } from "./requests.js";

const PAUSES = [500, 1000, 2000, 5000, 10000];

// Works without TLS too, where crypto.randomUUID is missing.
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// One that was written by half does not keep the others from being sent.
function readable(place) {
  try {
    return [{ place, ...JSON.parse(localStorage.getItem(place)) }];
  } catch {
    return [];
  }
}

export class Outbox {
  // `changed` is called after every change; `refused` with an answer that the server does not take, and its words.
  constructor(address, owner, { changed, refused }) {
    this.address = address;
    this.prefix = `dpal outbox ${owner} `;
    this.changed = changed;
    this.refused = refused;
    this.waiting = this.stored();
    this.reachable = true;
    // The link ended: answers stay here until this person opens a new one.
    this.locked = false;
    this.sending = false;
    this.failures = 0;
    this.storageWorks = true;
    // Grows with every answer that is added or sent: what was asked of the server before is out of date then.
    this.version = 0;
    addEventListener("online", () => this.send());
  }

  stored() {
    try {
      return Object.keys(localStorage)
        .filter((name) => name.startsWith(this.prefix))
        .sort()
        .flatMap(readable);
    } catch {
      return [];
    }
  }

  add(answer) {
    const key = newKey();
    // Each in a place of its own, so that two tabs never overwrite each other's; the place sorts by time,
    // and later ones come later, also where the clock was set back.
    const newest = this.waiting.length ? Number(this.waiting.at(-1).place.slice(this.prefix.length).split(" ")[0]) : 0;
    const place = `${this.prefix}${String(Math.max(Date.now(), newest + 1)).padStart(15, "0")} ${key}`;
    const entry = { ...answer, key };
    try {
      localStorage.setItem(place, JSON.stringify(entry));
    } catch {
      this.storageWorks = false;
    }
    this.waiting.push({ place, ...entry });
    this.version += 1;
    this.changed();
    this.send();
  }

  // The newest answer to a question that is not sent yet, if there is one.
  newest(name) {
    return this.waiting.findLast((entry) => entry.question === name);
  }

  async send() {
    if (this.sending || this.locked) return;
    this.sending = true;
    try {
      while (this.waiting.length > 0) {
        const { place, ...entry } = this.waiting[0];
        try {
          const answer = await post(this.address, entry);
          // Only our own server's word counts.
          if (typeof answer.saved !== "number") throw new Unreachable("That was not the server's answer.");
        } catch (error) {
          if (error instanceof Refused && error.status === 401) {
            this.locked = true;
            this.changed();
            return;
          }
          if (!(error instanceof Refused && error.final)) {
            this.reachable = false;
            this.changed();
            const pause = PAUSES[Math.min(this.failures, PAUSES.length - 1)];
            this.failures += 1;
            setTimeout(() => this.send(), pause);
            return;
          }
          this.refused(entry, error);
        }
        this.waiting.shift();
        this.version += 1;
        try {
          localStorage.removeItem(place);
        } catch {
          // It could not be stored either.
        }
        this.reachable = true;
        this.failures = 0;
        this.changed();
      }
    } finally {
      this.sending = false;
    }
  }
}
