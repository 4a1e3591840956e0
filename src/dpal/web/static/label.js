// The labelling page: one record at a time, an answer by key or tap, and on to the next.

import { Outbox } from "./outbox.js";
import { Records } from "./records.js";
import { enter, get, post, Refused, Unreachable } from "./requests.js";
import { Viewer } from "./viewer.js";

const $ = (id) => document.getElementById(id);
const base = location.pathname;
const SKIP = "skip";
const CANNOT_TELL = "cannot-tell";
// One key for each class; letters are left out that mean something else.
const KEYS = [..."1234567890", ..."adehjklmopqtvwxyz"];
const COMMAND_KEYS = "csubfngir";
const REFRESH_SECONDS = 15;
// While nothing is asked, and somebody waits for it.
const IDLE_SECONDS = 3;
// From when a record can be seen until a tap counts.
const TAP_MILLISECONDS = 250;

const page = {
  task: null,
  // The key of each class.
  keys: [],
  // Names of all questions on this page: those answered before, then those that wait, in this person's order.
  names: [],
  at: 0,
  // By name: the answer that was given and its note; a name that is not here waits.
  said: new Map(),
  // Names in the order in which they were answered here, for undo.
  acts: [],
  // The targets chosen for a record with several labels, until they are saved.
  chosen: new Set(),
  all: { decided: 0, asked: 0 },
  finished: false,
  viewers: [],
  look: { inverted: false, brightness: 100, contrast: 100 },
  // [center, width] of images with more than 8 bits, if this person has chosen one.
  window: null,
  records: new Records(base),
  outbox: null,
  // The record that is asked about, and whether it can be seen: before that, no answer is taken.
  shown: null,
  ready: false,
  // By name: notes and chosen classes of records that are not answered yet.
  drafts: new Map(),
};

// ---- What is stored on this device, if it lets us.

function stored(name) {
  try {
    return localStorage.getItem(`dpal ${name}`);
  } catch {
    return null;
  }
}

function store(name, value) {
  try {
    localStorage.setItem(`dpal ${name}`, value);
  } catch {
    // Only this visit, then.
  }
}

// ---- Words.

function notice(words) {
  $("notice").textContent = words;
  $("notice").hidden = !words;
}

function speak(words) {
  $("spoken").textContent = words;
}

function inWords(answer) {
  if (answer === SKIP) return "skipped";
  if (answer === CANNOT_TELL) return "cannot tell";
  if (Array.isArray(answer)) {
    const names = page.task.classes.filter((_, place) => answer[place] > 0.5);
    return names.length ? names.join(", ") : "none of them";
  }
  return page.task.classes[answer];
}

// What is labelled, with a capital: a record, or whoever gets one label for all of theirs.
const what = () => (page.task.unit === null ? "Record" : page.task.unit[0].toUpperCase() + page.task.unit.slice(1));
const placed = (number) => `${what()} ${number} of ${page.names.length}`;

function message(title, words) {
  $("message-title").textContent = title;
  $("message-words").textContent = words;
  $("message").hidden = false;
  $("question").hidden = true;
  $("view-tools").hidden = true;
}

// ---- The queue.

async function refresh() {
  const version = page.outbox.version;
  const queue = await get(`${base}api/queue`);
  if (version !== page.outbox.version) return;
  page.all = queue.all;
  page.finished = queue.finished;
  for (const { name, answer, note } of queue.done) page.said.set(name, { answer, note });
  const done = new Set(queue.done.map(({ name }) => name));
  // What is not sent yet counts more than what the server knows.
  for (const { question, answer, note } of page.outbox.waiting) {
    if (answer === null) page.said.delete(question);
    else page.said.set(question, { answer, note });
  }
  const unsent = new Set(page.outbox.waiting.map(({ question }) => question));
  for (const name of [...page.said.keys()]) if (!done.has(name) && !unsent.has(name)) page.said.delete(name);
  const waiting = new Set(queue.waiting);
  const shown = page.names[page.at];
  if (page.names.length === 0) {
    const before = queue.done.map(({ name }) => name).filter((name) => !waiting.has(name));
    page.names = [...before, ...queue.waiting];
    page.at = page.names.findIndex((name) => !page.said.has(name));
    if (page.at < 0) page.at = page.names.length;
  } else {
    // Others may have answered in the meantime, and new questions may have come.
    const known = new Set(page.names);
    page.names = page.names.filter((name) => page.said.has(name) || waiting.has(name) || name === shown);
    page.names.push(...queue.waiting.filter((name) => !known.has(name)));
    const place = page.names.indexOf(shown);
    page.at = place >= 0 ? place : nextOpen(0);
  }
}

function nextOpen(from) {
  for (let place = from; place < page.names.length; place += 1) if (!page.said.has(page.names[place])) return place;
  for (let place = 0; place < Math.min(from, page.names.length); place += 1) {
    if (!page.said.has(page.names[place])) return place;
  }
  return page.names.length;
}

function showProgress() {
  const done = page.names.filter((name) => page.said.has(name)).length;
  const { decided, asked } = page.all;
  $("progress-words").textContent = page.names.length
    ? `${done} of ${page.names.length} done${asked ? `; everyone: ${decided} of ${asked} decided` : ""}`
    : "";
  $("progress").hidden = page.names.length === 0;
  $("progress").max = Math.max(1, page.names.length);
  $("progress").value = done;
  showConnection();
}

// When the last answer is saved, what everyone has done is looked up again.
let hadUnsent = false;
function outboxChanged() {
  showConnection();
  const hasUnsent = page.outbox.waiting.length > 0;
  if (hadUnsent && !hasUnsent && page.shown === null) refreshNow();
  hadUnsent = hasUnsent;
}

function showConnection() {
  const count = page.outbox.waiting.length;
  const answers = count === 1 ? "1 answer waits" : `${count} answers wait`;
  let words = "All answers are saved.";
  if (page.outbox.locked) {
    notice("This link is not valid any more. Open your new link in this browser: your answers are kept here until then.");
    words = `${answers} here for a valid link.`;
  } else if (count > 0) words = page.outbox.reachable ? "Saving …" : `No connection: ${answers} here and will be sent.`;
  if (!page.outbox.storageWorks && count > 0) words += " This browser keeps nothing: do not close the tab.";
  if (page.said.size === 0 && count === 0) words = "";
  if ($("connection").textContent !== words) $("connection").textContent = words;
}

// ---- One record.

async function show({ focus = true } = {}) {
  const name = page.names[page.at];
  $("back").disabled = page.at === 0;
  $("forward").disabled = page.at >= page.names.length;
  $("undo").disabled = page.said.size === 0;
  // No model will use what is said after the end.
  for (const part of [$("choices"), $("undo").parentElement]) part.hidden = page.finished;
  showProgress();
  keepDraft();
  setReady(false);
  if (name === undefined) {
    page.shown = null;
    nothingWaits();
    markSaid(undefined);
    return;
  }
  page.shown = name;
  page.viewers = [];
  $("record").replaceChildren();
  $("message").hidden = true;
  $("question").hidden = false;
  const number = page.at + 1;
  $("position").textContent = placed(number);
  $("name").textContent = name;
  const said = page.said.get(name);
  const draft = page.drafts.get(name);
  const given = Array.isArray(said?.answer) ? said.answer.flatMap((on, i) => (on > 0.5 ? [i] : [])) : [];
  page.chosen = new Set(draft?.chosen ?? given);
  $("note").value = draft?.note ?? said?.note ?? "";
  markSaid(said?.answer);
  // What others said is shown as it is now.
  if (page.task.role === "arbiter") page.records.forget(name);
  let record;
  try {
    record = await page.records.get(name);
    if (page.shown !== name) return;
    draw(record, number);
    await Promise.all(page.viewers.map((viewer) => viewer.image.decode()));
  } catch (error) {
    if (page.shown !== name) return;
    $("record").replaceChildren(paragraph(error.message));
    page.viewers = [];
    // A record that cannot be seen can be left out, and nothing else.
    setReady(!(error instanceof Unreachable), { labels: false });
    if (error instanceof Unreachable) setTimeout(() => page.shown === name && show({ focus: false }), 2000);
    return;
  }
  if (page.shown !== name) return;
  setReady(true);
  if (focus && document.activeElement?.tagName !== "INPUT") $("position").focus({ preventScroll: true });
  const upcoming = page.names.slice(page.at + 1).filter((other) => !page.said.has(other));
  page.records.prefetch(upcoming);
}

// Answers are taken once the record can be seen; a tap a moment later, so that a double tap does not answer two.
let readyTimer = 0;
function setReady(ready, { labels = true } = {}) {
  clearTimeout(readyTimer);
  page.ready = ready;
  page.labels = ready && labels;
  $("question").dataset.ready = ready ? page.shown : "";
  const enable = () => {
    for (const button of [...$("choices").children, $("save")]) button.disabled = !page.labels;
    for (const button of [$("cannot-tell"), $("skip")]) button.disabled = !page.ready;
  };
  if (ready) readyTimer = setTimeout(enable, TAP_MILLISECONDS);
  else enable();
}

// What was begun for the record that is left, and is not said yet.
function keepDraft() {
  const name = page.shown;
  if (name === null) return;
  const note = $("note").value;
  const said = page.said.get(name);
  if (said !== undefined) {
    page.drafts.delete(name);
    // A note to an answered record belongs to its answer.
    if (page.names.includes(name) && note.trim() !== said.note) {
      page.said.set(name, { answer: said.answer, note: note.trim() });
      page.outbox.add({ question: name, answer: said.answer, note: note.trim() });
    }
  } else if (note || page.chosen.size) page.drafts.set(name, { note, chosen: [...page.chosen] });
  else page.drafts.delete(name);
}

function paragraph(words) {
  const element = document.createElement("p");
  element.textContent = words;
  return element;
}

function draw(record, number) {
  page.viewers = record.urls.map((url, i) => {
    const which = record.urls.length > 1 ? `, picture ${i + 1} of ${record.urls.length}` : "";
    const viewer = new Viewer(url, `${what()} ${number}${which}`);
    if (record.urls.length > 1) viewer.element.dataset.which = `${i + 1} of ${record.urls.length}`;
    return viewer;
  });
  const texts = record.texts.flatMap((parts, i) =>
    parts.map((part, j) => {
      const element = document.createElement("div");
      element.className = "text";
      if (parts.length > 1 || record.texts.length > 1) {
        const heading = document.createElement("h3");
        heading.textContent = `Text ${parts.length > 1 ? j + 1 : i + 1}`;
        element.append(heading);
      }
      element.append(document.createTextNode(part));
      return element;
    }),
  );
  $("record").className = page.viewers.length ? "pictures" : "";
  $("record").replaceChildren(...page.viewers.map((viewer) => viewer.element), ...texts);
  if (page.task.shows === "name") $("record").append(paragraph("This record is numbers; look it up by its name."));
  $("view-tools").hidden = page.viewers.length === 0;
  for (const viewer of page.viewers) viewer.look(page.look);
  if (page.window !== null) showWindow();
  $("others").hidden = record.others.length === 0;
  $("others-list").replaceChildren(
    ...record.others.map((answer) => {
      const item = document.createElement("li");
      item.textContent = inWords(answer);
      return item;
    }),
  );
}

function nothingWaits() {
  if (page.finished) message("The campaign is finished", "Thank you. There is nothing left to label.");
  else if (page.task.role === "arbiter") message("Nothing to decide", "Records on which experts differ come up here.");
  else if (page.names.length) message("All done for now", "New records come up here when the campaign asks for them.");
  else message("Nothing to label yet", "Records come up here when the campaign asks for them.");
}

function markSaid(answer) {
  const { classes, multi_label: several } = page.task;
  classes.forEach((_, place) => {
    const button = $("choices").children[place];
    if (several) button.setAttribute("aria-pressed", String(page.chosen.has(place)));
    else button.classList.toggle("said", answer === place);
  });
  $("cannot-tell").classList.toggle("said", answer === CANNOT_TELL);
  $("skip").classList.toggle("said", answer === SKIP);
}

// ---- Answers.

function give(answer) {
  const name = page.shown;
  const isLabel = answer !== SKIP && answer !== CANNOT_TELL;
  if (name === null || !page.ready || (isLabel && !page.labels)) return;
  const note = $("note").value.trim();
  page.drafts.delete(name);
  page.said.set(name, { answer, note });
  page.acts = [...page.acts.filter((other) => other !== name), name];
  page.outbox.add({ question: name, answer, note });
  page.at = nextOpen(page.at + 1);
  const next = page.at < page.names.length ? `${placed(page.at + 1)}.` : "All done for now.";
  speak(`${inWords(answer)}. ${next}`);
  document.activeElement?.blur();
  show();
}

function choose(place) {
  if (page.shown === null || !page.ready || !page.labels) return;
  if (!page.task.multi_label) {
    give(place);
    return;
  }
  if (!page.chosen.delete(place)) page.chosen.add(place);
  markSaid(undefined);
  speak(`${page.task.classes[place]} ${page.chosen.has(place) ? "chosen" : "not chosen"}`);
}

function save() {
  if (page.task.multi_label) give(page.task.classes.map((_, place) => (page.chosen.has(place) ? 1 : 0)));
}

// The last answer is taken back, whichever record it was for, and that record is shown again.
function undo() {
  const name = page.acts.pop() ?? [...page.said.keys()].at(-1);
  if (name === undefined || !page.said.has(name)) return;
  keepDraft();
  const { answer, note } = page.said.get(name);
  page.said.delete(name);
  page.outbox.add({ question: name, answer: null, note });
  const chosen = Array.isArray(answer) ? answer.flatMap((on, i) => (on > 0.5 ? [i] : [])) : [];
  page.drafts.set(name, { note, chosen });
  page.shown = null;
  const place = page.names.indexOf(name);
  if (place >= 0) page.at = place;
  speak(`Taken back. ${placed(page.at + 1)}.`);
  show();
}

function go(step) {
  page.at = Math.min(page.names.length, Math.max(0, page.at + step));
  show();
}

// ---- Keys.

const view = {
  zoom: (factor) => page.viewers.forEach((viewer) => viewer.zoom(factor)),
  pan: (x, y) => page.viewers.forEach((viewer) => viewer.pan(x, y)),
  look(changes) {
    Object.assign(page.look, changes);
    $("invert").setAttribute("aria-pressed", String(page.look.inverted));
    $("brightness").value = page.look.brightness;
    $("contrast").value = page.look.contrast;
    page.viewers.forEach((viewer) => viewer.look(page.look));
  },
  reset() {
    page.viewers.forEach((viewer) => viewer.reset());
    view.look({ inverted: false, brightness: 100, contrast: 100 });
    if (page.task.window !== null && page.window !== null) {
      [$("level").value, $("width").value] = page.task.window;
      page.window = null;
      showWindow();
    }
  },
};

// The pictures that are shown, through the window that this person has chosen.
let windowTimer = 0;
async function showWindow() {
  const { shown, viewers, window } = page;
  for (const [number, viewer] of viewers.entries()) {
    try {
      const url = await page.records.picture(shown, number, window);
      if (page.viewers !== viewers || page.window !== window) {
        URL.revokeObjectURL(url);
        return;
      }
      // The stated window's picture stays for the next time; each of one's own is let go.
      if (viewer.own) URL.revokeObjectURL(viewer.image.src);
      viewer.own = true;
      viewer.image.src = url;
    } catch (error) {
      notice(error.message);
      return;
    }
  }
}

const COMMANDS = {
  c: ["cannot tell", () => give(CANNOT_TELL)],
  s: ["skip", () => give(SKIP)],
  u: ["undo: take the last answer back", undo],
  b: ["back to the record before", () => go(-1)],
  f: ["forward to the next record", () => go(1)],
  n: ["write a note", () => $("note").focus()],
  g: ["guidelines", () => $("open-guidelines").click()],
  i: ["invert the picture", () => view.look({ inverted: !page.look.inverted })],
  r: ["reset the view", () => view.reset()],
  "+": ["zoom in", () => view.zoom(1.4)],
  "-": ["zoom out", () => view.zoom(1 / 1.4)],
};
const ARROWS = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const { target, key } = event;
  if (target instanceof HTMLInputElement && target.type === "text") {
    if (key === "Enter" || key === "Escape") target.blur();
    return;
  }
  if (!$("shortcuts").checked || $("answers").hidden || page.finished) return;
  // Enter on a button or on what folds in and out is for that; held down, it saves one record and not all of them.
  if (key === "Enter" && page.task.multi_label && !target.closest("button, summary")) {
    event.preventDefault();
    if (!event.repeat) save();
    return;
  }
  const place = page.keys.indexOf(key.toLowerCase());
  if (place >= 0 && !event.repeat) {
    event.preventDefault();
    choose(place);
  } else if (key.toLowerCase() in COMMANDS && !event.repeat) {
    event.preventDefault();
    COMMANDS[key.toLowerCase()][1]();
  } else if (key === "=") {
    view.zoom(1.4);
  } else if (key in ARROWS && page.viewers.some((viewer) => viewer.scale > 1) && !(target instanceof HTMLInputElement)) {
    event.preventDefault();
    view.pan(...ARROWS[key]);
  }
}

// ---- Setting up.

// Classes that are called by a single letter or digit have that key; others are counted.
function keysFor(classes) {
  const own = classes.map((name) => name.toLowerCase());
  const fit = own.every((name) => /^[a-z0-9]$/.test(name) && !COMMAND_KEYS.includes(name));
  return fit && new Set(own).size === own.length ? own : classes.slice(0, KEYS.length).map((_, place) => KEYS[place]);
}

function setUpAnswers() {
  const { classes } = page.task;
  page.keys = keysFor(classes);
  $("choices").classList.toggle("many", classes.length > 12);
  const words = classes.flatMap((name) => name.split(/[\s-]+/));
  $("choices").style.setProperty("--letters", Math.max(...words.map((word) => [...word].length)));
  $("choices").replaceChildren(
    ...classes.map((name, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(name);
      if (page.keys[place] !== undefined) {
        const key = document.createElement("kbd");
        key.textContent = page.keys[place];
        if (page.keys[place] !== name) button.append(" ", key);
        button.setAttribute("aria-keyshortcuts", page.keys[place]);
      }
      button.addEventListener("click", (event) => {
        choose(place);
        // After a click or a tap, Enter saves; a person who came here by Tab stays here.
        if (event.detail > 0) button.blur();
      });
      return button;
    }),
  );
  $("save").hidden = !page.task.multi_label;
  $("save").addEventListener("click", save);
  $("cannot-tell").addEventListener("click", COMMANDS.c[1]);
  $("skip").addEventListener("click", COMMANDS.s[1]);
  $("back").addEventListener("click", COMMANDS.b[1]);
  $("forward").addEventListener("click", COMMANDS.f[1]);
  $("undo").addEventListener("click", undo);
  $("answers").hidden = false;
}

function setUpView() {
  // On a phone the picture comes first.
  $("view-tools").open = innerWidth > 640;
  $("zoom-in").addEventListener("click", COMMANDS["+"][1]);
  $("zoom-out").addEventListener("click", COMMANDS["-"][1]);
  $("invert").addEventListener("click", COMMANDS.i[1]);
  $("view-reset").addEventListener("click", COMMANDS.r[1]);
  if (page.task.window !== null) {
    const [center, width] = page.task.window;
    for (const [id, least, most, now] of [
      ["level", center - width, center + width, center],
      ["width", width / 50, width * 2, width],
    ]) {
      Object.assign($(id), { min: least, max: most });
      $(id).value = now;
      $(`${id}-label`).hidden = false;
      $(id).addEventListener("input", () => {
        page.window = [Number($("level").value), Number($("width").value)];
        clearTimeout(windowTimer);
        windowTimer = setTimeout(showWindow, 80);
      });
    }
  }
  for (const id of ["brightness", "contrast"]) {
    $(id).addEventListener("input", () => view.look({ [id]: Number($(id).value) }));
  }
}

function setUpGuidelines() {
  const { text, examples } = page.task.guidelines;
  $("guidelines-text").textContent = text;
  $("rule").textContent = `How labels come about: ${page.task.rule}.`;
  $("examples").replaceChildren(
    ...examples.map((words, number) => {
      const figure = document.createElement("figure");
      const image = document.createElement("img");
      image.src = `${base}api/example?number=${number}`;
      image.alt = words;
      const caption = document.createElement("figcaption");
      caption.textContent = words;
      figure.append(image, caption);
      return figure;
    }),
  );
  $("open-guidelines").hidden = !text && examples.length === 0;
  $("open-guidelines").addEventListener("click", () => $("guidelines").showModal());
}

function setUpSettings() {
  $("open-settings").addEventListener("click", () => $("settings").showModal());
  $("shortcuts").checked = stored("shortcuts") !== "off";
  $("shortcuts").addEventListener("change", () => store("shortcuts", $("shortcuts").checked ? "on" : "off"));
  $("look").value = stored("look") ?? "";
  $("look").addEventListener("change", () => {
    store("look", $("look").value);
    document.documentElement.dataset.look = $("look").value;
  });
  const keys = page.keys.map((key, place) => [key, page.task.classes[place]]);
  if (page.task.multi_label) keys.push(["Enter", "save"]);
  for (const [key, [words]] of Object.entries(COMMANDS)) keys.push([key, words]);
  for (const [key, words] of keys) {
    const term = document.createElement("dt");
    const keyboard = document.createElement("kbd");
    keyboard.textContent = key;
    term.append(keyboard);
    const meaning = document.createElement("dd");
    meaning.textContent = words;
    $("keys").append(term, meaning);
  }
  $("leave").addEventListener("click", async () => {
    try {
      await post(`${base}leave`, {});
      location.reload();
    } catch (error) {
      notice(`Not signed out: ${error.message}`);
    }
  });
}

async function refreshNow() {
  try {
    const [before, wasFinished] = [page.shown, page.finished];
    await refresh();
    if (before === null || page.names[page.at] !== before || page.finished !== wasFinished) await show({ focus: false });
    else showProgress();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) notice(error.message);
  }
}

async function start() {
  document.documentElement.dataset.look = stored("look") ?? "";
  try {
    await enter(`${base}session`);
    page.task = await get(`${base}api/task`);
  } catch (error) {
    message("This page cannot be opened", error.message);
    if (error instanceof Unreachable) setTimeout(() => location.reload(), 3000);
    return;
  }
  const { campaign, person, role } = page.task;
  $("title").textContent = `${campaign}: ${person}`;
  document.title = `Labelling: ${campaign}`;
  if (role === "officer") {
    location.replace(`${base}public`);
    return;
  }
  page.outbox = new Outbox(`${base}api/answer`, page.task.owner, {
    changed: outboxChanged,
    refused: (entry, error) => notice(`An answer was not saved (${entry.question}): ${error.message}`),
  });
  setUpAnswers();
  setUpView();
  setUpGuidelines();
  setUpSettings();
  addEventListener("keydown", pressed);
  $("note").addEventListener("change", keepDraft);
  // A new link that is pasted into this tab.
  addEventListener("hashchange", () => location.hash.includes("token=") && location.reload());
  try {
    await refresh();
  } catch (error) {
    message("This page cannot be opened", error.message);
    if (error instanceof Unreachable) setTimeout(() => location.reload(), 3000);
    return;
  }
  await show();
  page.outbox.send();
  let seconds = 0;
  setInterval(() => {
    seconds += 1;
    if (document.visibilityState !== "visible") return;
    if (seconds < (page.shown === null && !page.finished ? IDLE_SECONDS : REFRESH_SECONDS)) return;
    seconds = 0;
    refreshNow();
  }, 1000);
  addEventListener("focus", refreshNow);
}

start();
