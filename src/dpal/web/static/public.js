// An officer's page: what may be passed on, and nothing else.

import { message, showPublic, stageWords } from "./public_facts.js";
import { enter, get } from "./requests.js";

const base = location.pathname.replace(/public$/, "");
const FILES = [
  ["public-report.html", "Report"],
  ["certificate.zip", "Certificate"],
];

async function refresh() {
  const { status } = await get(`${base}api/public`);
  document.getElementById("stage").textContent = stageWords(status);
  showPublic(status, `${base}api/public`, FILES);
  document.getElementById("view").hidden = false;
}

try {
  await enter(`${base}session`);
  await refresh();
  setInterval(() => refresh().catch(() => {}), 15000);
} catch (error) {
  message("This page cannot be opened", error.message);
}
