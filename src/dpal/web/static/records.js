// Records as the server gives them: fetched once, a few ahead of the one that is shown, and let go again.

import { get, getBlob, Refused } from "./requests.js";

const AHEAD = 3;
const KEPT = 12;

export class Records {
  constructor(base) {
    this.base = base;
    this.known = new Map();
  }

  async fetched(name) {
    const asked = encodeURIComponent(name);
    const question = await get(`${this.base}api/question?name=${asked}`);
    const pictures = [];
    for (let number = 0; number < question.pictures; number += 1) pictures.push(await this.picture(name, number));
    return { ...question, urls: pictures };
  }

  // Through a window, [center, width], where images have more than 8 bits.
  async picture(name, number, window = null) {
    const seen = window === null ? "" : `&center=${window[0]}&width=${window[1]}`;
    return URL.createObjectURL(
      await getBlob(`${this.base}api/picture?name=${encodeURIComponent(name)}&number=${number}${seen}`),
    );
  }

  // What may have changed on the server since.
  forget(name) {
    this.known.delete(name);
  }

  get(name) {
    if (!this.known.has(name)) {
      const record = this.fetched(name);
      this.known.set(name, record);
      // What failed is fetched again when it is asked for again.
      record.catch(() => this.known.delete(name));
    }
    return this.known.get(name);
  }

  // Fetch the next ones, and let go of those that are far away.
  async prefetch(names) {
    for (const name of names.slice(0, AHEAD)) {
      try {
        await this.get(name);
      } catch (error) {
        if (!(error instanceof Refused)) return;
      }
    }
    const near = new Set(names.slice(0, AHEAD));
    for (const [name, record] of [...this.known].slice(0, Math.max(0, this.known.size - KEPT))) {
      if (near.has(name)) continue;
      this.known.delete(name);
      record.then(({ urls }) => urls.forEach((url) => URL.revokeObjectURL(url))).catch(() => {});
    }
  }
}
