// What may be passed on about a campaign, as the dashboard and an officer's page show it.

const $ = (id) => document.getElementById(id);

export function stageWords(status) {
  if (status.stage === "finished") return "Finished.";
  // Not twice: "Waiting for labels. Next: wait for labels of …".
  if (status.next_step.startsWith("wait for")) return `Waiting${status.next_step.slice("wait".length)}.`;
  const stage = status.stage.replaceAll("-", " ");
  return `${stage[0].toUpperCase()}${stage.slice(1)}. Next: ${status.next_step}.`;
}

export const MODEL = "model.zip";
const PROMISES = {
  inside: "selections stay inside: models, cuts and the plan are released; who is labelled, and how many, is not",
  released: "selections are released too: models, and which records are labelled",
};

// `base` is where the curve and the files are; `baseline` the name of another campaign, or nothing.
export function showPublic(status, base, files, baseline = "") {
  // A spent ε is never shown as less than it is.
  const spent = (Math.ceil(status.epsilon_spent * 1e4) / 1e4).toFixed(4);
  const facts = [
    ["promise", `for one ${status.unit}; ${PROMISES[status.selections]}`],
    ["privacy", `ε ${spent} of ${status.epsilon_budget} at δ = ${status.target_delta}`],
    ["phases", `${status.phases_done} of ${status.phases} trained`],
    ["pool", `${status.pool_size.toLocaleString("en")} ${status.units}`],
  ];
  if (!status.is_private) facts.unshift(["warning", "NOT PRIVATE: made with a known seed, or a selection that is not private"]);
  if (status.encoder) facts.push(["encoder", status.encoder]);
  $("public-facts").replaceChildren(
    ...facts.flatMap(([name, words]) => {
      const term = document.createElement("dt");
      const meaning = document.createElement("dd");
      term.textContent = name;
      meaning.textContent = words;
      return [term, meaning];
    }),
  );
  $("epsilon").max = status.epsilon_budget;
  $("epsilon").value = status.epsilon_spent;
  $("epsilon").textContent = `${spent} of ${status.epsilon_budget}`;
  const measured = status.held_out_in_words;
  $("curve").hidden = measured.length === 0;
  if (measured.length > 0) {
    const address = `${base}/curve?phases=${measured.length}&baseline=${encodeURIComponent(baseline)}`;
    const image = $("curve").querySelector("img");
    // Drawn again only when there is something new.
    if (image.getAttribute("src") !== address) image.src = address;
    $("held-out").textContent = measured.at(-1);
  }
  // Before the first model there is none to download.
  const made = files.filter(([file]) => file !== MODEL || status.phases_done > 0);
  showFiles("public-downloads", base, made);
}

export function showFiles(id, base, files) {
  if ($(id).childElementCount === files.length && $(id).dataset.base === base) return;
  $(id).dataset.base = base;
  $(id).replaceChildren(
    ...files.map(([file, words]) => {
      const link = document.createElement("a");
      link.href = `${base}/download/${file}`;
      link.download = file;
      link.textContent = words;
      return link;
    }),
  );
}

export function message(title, words) {
  $("message-title").textContent = title;
  $("message-words").textContent = words;
  $("message").hidden = false;
}
