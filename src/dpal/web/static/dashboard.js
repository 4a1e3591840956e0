// The dashboard: all campaigns at a glance, and one of them in full.

import { message, MODEL, showFiles, showPublic, stageWords } from "./public_facts.js";
import { enter, get, post, Refused, Unreachable } from "./requests.js";

const $ = (id) => document.getElementById(id);
const POLL_SECONDS = 3;
const PAUSE_MILLISECONDS = 250;
const PUBLIC_FILES = [
  ["public-report.html", "Report to pass on"],
  ["certificate.zip", "Certificate"],
  [MODEL, "Model and its card"],
];
const INTERNAL_FILES = [["report.html", "Report with internal numbers"]];
// What can be done to a person by a slip, and what it does.
const CHANGES = [
  ["renew", "New link", "The link that this person has stops working, and you give them the new one. Go on?"],
  ["remove", "Remove", "Their link stops working, their answers stay, and others are asked in their place. Remove?"],
];
// The campaign that is shown, and what its controls were filled with.
let filled = null;
// Nothing is asked again until a link is opened.
let signedOut = false;

// A link that is being opened is no campaign's name.
const name = () => (location.hash.includes("token=") ? "" : decodeURIComponent(location.hash.slice(1)));
const place = () => `/api/campaigns/${encodeURIComponent(name())}`;

function notice(words) {
  $("notice").textContent = words;
  $("notice").hidden = !words;
}

function element(kind, words, attributes = {}) {
  const made = document.createElement(kind);
  made.textContent = words;
  Object.assign(made, attributes);
  return made;
}

// ---- All campaigns.

function card({ name: title, status, internal, problem }) {
  const link = element("a", "", { className: "card", href: `#${encodeURIComponent(title)}` });
  link.append(element("h2", title));
  if (problem) {
    link.append(element("p", problem));
    return link;
  }
  link.append(element("p", stageWords(status)));
  const meter = element("meter", "", { min: 0, max: status.epsilon_budget, value: status.epsilon_spent });
  const spent = (Math.ceil(status.epsilon_spent * 100) / 100).toFixed(2);
  meter.setAttribute("aria-label", `ε spent: ${spent} of ${status.epsilon_budget}`);
  const budget = element("p", `ε ${spent} of ${status.epsilon_budget} `);
  budget.append(meter);
  link.append(budget, element("p", `${internal.decided} of ${internal.asked} labels (internal)`));
  const waiting = Object.entries(internal.waiting).map(([who, count]) => `${who} (${count})`);
  if (waiting.length) link.append(element("p", `Waiting for ${waiting.join(", ")}.`));
  if (internal.running) link.append(element("p", runningWords(internal.running)));
  return link;
}

function runningWords({ lines }) {
  return lines.length ? `Running: ${lines.at(-1)}` : "Running.";
}

// ---- One campaign.

function showCampaign(campaign) {
  const { status, internal } = campaign;
  if (campaign.problem) {
    notice(campaign.problem);
    return;
  }
  $("campaign-name").textContent = campaign.name;
  $("stage").textContent = stageWords(status);
  const running = internal.running !== null;
  $("live").textContent = running ? runningWords(internal.running) : "Not running.";
  const stopped = status.stage === "stopped-at-chance";
  $("start").disabled = running || status.stage === "finished";
  $("start").textContent = status.stage === "planned" ? "Start" : "Continue";
  $("go-on").hidden = !stopped;
  $("go-on").disabled = running;
  $("stop").disabled = !running;
  if (filled !== campaign.name) fill(campaign);
  showPublic(status, place(), PUBLIC_FILES, $("baseline").value);
  showFiles("internal-downloads", place(), INTERNAL_FILES);
  $("labels").max = Math.max(1, internal.asked);
  $("labels").value = internal.decided;
  const waiting = Object.entries(internal.waiting).map(([who, count]) => `${who} (${count})`);
  const differ = internal.differ ? ` Experts differ on ${internal.differ}, which wait for an arbiter.` : "";
  $("labels-words").textContent = `${internal.decided} of ${internal.asked} questions decided.${
    waiting.length ? ` Waiting for ${waiting.join(", ")}.` : ""
  }${differ}`;
  $("agreement").textContent = agreementWords(campaign.agreement);
  $("rule-words").textContent = `Now: ${campaign.rule}.`;
  $("close-round").disabled = running || status.stage !== "waiting-for-labels";
  if ($("output").textContent !== campaign.output) $("output").textContent = campaign.output;
  showPeople(campaign.people);
}

function agreementWords({ questions, alpha, pairs }) {
  if (questions === 0) return "No question was answered by two experts yet, so there is no agreement to state.";
  const number = (value) => (value === null ? "not defined" : value.toFixed(2));
  const each = pairs.map(({ experts, kappa, questions: count }) => `${experts.join(" and ")} κ ${number(kappa)} (${count})`);
  return `Agreement on ${questions} questions: Krippendorff's α ${number(alpha)}; ${each.join("; ")}.`;
}

function showPeople(people) {
  const key = JSON.stringify(people);
  // The table stays as it is while nothing changes: somebody may be about to press a button in it.
  if ($("people").dataset.key === key) return;
  $("people").dataset.key = key;
  $("people").replaceChildren(
    ...people.map((person) => {
      const row = document.createElement("tr");
      const address = `${location.origin}${person.link}`;
      const link = element("a", "open", { href: address, target: "_blank", rel: "noopener" });
      link.setAttribute("aria-label", `open the link of ${person.name}`);
      const copy = element("button", "Copy", { type: "button" });
      copy.setAttribute("aria-label", `copy the link of ${person.name}`);
      copy.addEventListener("click", () => copied(address));
      const links = document.createElement("td");
      links.append(copy, link);
      const changes = document.createElement("td");
      for (const [what, words, warning] of CHANGES) {
        const button = element("button", words, { type: "button" });
        button.setAttribute("aria-label", `${words}: ${person.name}`);
        button.addEventListener("click", () => {
          if (confirm(`${warning} (${person.name})`)) act("people", { do: what, name: person.name });
        });
        changes.append(button);
      }
      const cells = [["name", person.name], ["role", person.role], ["answered", person.answered], ["waiting", person.waiting]];
      row.append(...cells.map(([what, cell]) => labelled(element("td", String(cell ?? "")), what)), links, changes);
      return row;
    }),
  );
}

// On a phone the table's head is not shown, and each cell says what it is.
function labelled(cell, what) {
  cell.dataset.what = what;
  return cell;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied. Send it to this person only.");
  } catch {
    // Without TLS a page may not write to the clipboard.
    notice(`Copy this link and send it to this person only: ${text}`);
  }
}

// Controls get the campaign's values once, and then keep what the person does with them.
function fill(campaign) {
  filled = campaign.name;
  $("see").value = campaign.arrangement.see;
  $("overlap").value = Math.round(campaign.arrangement.overlap * 100);
  $("rule").value = campaign.arrangement.rule;
  $("baseline").replaceChildren(element("option", "nothing", { value: "" }), ...campaign.others.map((other) => element("option", other)));
  $("baseline-label").hidden = campaign.others.length === 0;
  // As in the demonstration: what random labels give is what everyone wants to compare with.
  $("baseline").value = campaign.others.includes("random") ? "random" : "";
  const { epsilon, labels, phases, pool_size: size } = campaign.plan;
  // ε in steps of a fifth of a doubling, so that 1 is as far from 2 as 4 from 8.
  $("if-epsilon").value = Math.round(5 * Math.log2(epsilon));
  $("if-labels").min = Math.max(2, Math.min(10, labels));
  $("if-labels").max = Math.min(size, Math.max(4 * labels, 100));
  $("if-labels").value = labels;
  $("if-phases").value = phases;
  own = { epsilon, value: $("if-epsilon").value };
  whatIf();
}

// ---- What if.

// One plan at a time is worked out; whoever drags on gets the newest one next.
let planning = false;
let moved = false;
let timer = 0;

// The ε of the campaign itself, and where that is on the slider, which has only some values.
let own = { epsilon: 0, value: "" };

function numbers() {
  const value = $("if-epsilon").value;
  const epsilon = value === own.value ? own.epsilon : Number((2 ** (Number(value) / 5)).toPrecision(3));
  return { epsilon, labels: $("if-labels").value, phases: $("if-phases").value };
}

function whatIf() {
  const now = numbers();
  $("if-epsilon-out").textContent = now.epsilon;
  $("if-labels-out").textContent = now.labels;
  $("if-phases-out").textContent = now.phases;
  clearTimeout(timer);
  timer = setTimeout(redraw, PAUSE_MILLISECONDS);
}

async function redraw() {
  moved = true;
  if (planning) return;
  planning = true;
  $("if-words").textContent = "Planning …";
  let answer;
  while (moved) {
    moved = false;
    try {
      answer = await get(`${place()}/what-if?${new URLSearchParams(numbers())}`);
    } catch (error) {
      answer = { problem: error.message };
    }
  }
  planning = false;
  $("if-picture").hidden = !answer.picture;
  if (answer.problem) {
    $("if-words").textContent = answer.problem;
    return;
  }
  const { steps, noise, labels, is_own: isOwn } = answer.plan;
  $("if-words").textContent = `${isOwn ? "This campaign's plan: labels" : "Labels"} ${labels.join(" + ")}; steps ${steps.join(" + ")}; noise multipliers ${noise.join(", ")}.`;
  if ($("if-picture").src) URL.revokeObjectURL($("if-picture").src);
  $("if-picture").src = URL.createObjectURL(new Blob([answer.picture], { type: "image/svg+xml" }));
}

// ---- Actions.

async function act(what, body = {}) {
  notice("");
  try {
    const answer = await post(`${place()}/${what}`, body);
    await refresh();
    return answer;
  } catch (error) {
    notice(error.message);
    return null;
  }
}

async function refresh() {
  try {
    const shown = name();
    $("overview").hidden = Boolean(shown);
    $("campaign").hidden = !shown;
    if (shown) {
      const campaign = await get(place());
      if (shown === name()) showCampaign(campaign);
    } else {
      $("overview").replaceChildren(...(await get("/api/campaigns")).map(card));
    }
    $("message").hidden = true;
    $("reached").textContent = "";
  } catch (error) {
    if (error instanceof Unreachable) $("reached").textContent = "The server cannot be reached; trying again.";
    else if (error instanceof Refused && error.status === 401) {
      signedOut = true;
      $("overview").hidden = true;
      $("campaign").hidden = true;
      message("Open the link that dpal serve printed", error.message);
    } else notice(error.message);
  }
}

$("start").addEventListener("click", () => act("start"));
$("go-on").addEventListener("click", () => act("start", { go_on: true }));
$("stop").addEventListener("click", () => act("stop"));
$("close-round").addEventListener("click", () => {
  const warning = "Close the round at a set time or when every answer is there, never because enough labels have come. Close it?";
  if (confirm(warning)) act("close-round");
});
$("add-person").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await act("people", { do: "add", name: $("person-name").value, role: $("person-role").value })) $("person-name").value = "";
});
$("arrange").addEventListener("submit", (event) => {
  event.preventDefault();
  act("people", { do: "arrange", see: $("see").value, overlap: Number($("overlap").value) / 100, rule: $("rule").value });
});
$("what-if").addEventListener("input", whatIf);
$("what-if").addEventListener("submit", (event) => event.preventDefault());
$("baseline").addEventListener("change", refresh);
// The link of this page's operator, also where it is pasted into a tab that is open.
async function open() {
  filled = null;
  signedOut = false;
  notice("");
  try {
    await enter("/session");
  } catch (error) {
    notice(error.message);
  }
  await refresh();
}

addEventListener("hashchange", open);
await open();
setInterval(() => document.visibilityState === "visible" && !signedOut && refresh(), POLL_SECONDS * 1000);
