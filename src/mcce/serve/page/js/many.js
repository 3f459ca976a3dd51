/** Many people at once: a file goes up, its progress is watched, answers and a report come down. */

import { download, get, remove, upload } from "./api.js";
import { announce, button, fill, h, save } from "./dom.js";
import { state } from "./state.js";
import { currentLanguage, number, percent, reason, say } from "./words.js";

const PAUSE = 700;
const ENDED = new Set(["done", "failed", "cancelled"]);
// Files that were sent, the newest first; they stay when the reader looks at something else.
let sent = [];

export function manyView() {
  const file = h("input", { type: "file", id: "file", accept: ".csv,.parquet", onchange: () => file.files.length && send(file.files[0]) });
  const problem = h("div", {});
  const jobs = h("ul", { class: "jobs" });
  const options = { search: searchField(), n_counterfactuals: answersField() };
  const list = () => fill(jobs, sent.map((job) => job.element));
  const zone = h("div", { class: "zone" },
    h("p", {}, h("label", { for: "file", class: "button primary" }, say("choose_file")), file),
    h("p", { class: "hint" }, say("drop_hint")));
  const send = async (chosen) => {
    fill(problem);
    const form = new FormData();
    form.append("language", currentLanguage());
    for (const [name, field] of Object.entries(options)) form.append(name, field.value);
    form.append("file", chosen);
    try {
      const { id } = await upload("jobs", form);
      const job = jobItem(id, chosen.name);
      sent = [job, ...sent];
      list();
      job.watch();
    } catch (failure) {
      fill(problem, h("p", { class: "failure", role: "alert" }, reason(failure)));
    }
    file.value = "";
  };
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
  list();
  return h("section", { class: "card many", "aria-labelledby": "h-many" },
    h("h1", { id: "h-many" }, say("h_many")), h("p", { class: "lead" }, say("many_hint")),
    h("div", { class: "grid" }, optionField("search_used", options.search), optionField("n_answers", options.n_counterfactuals)),
    zone, problem, jobs);
}

/** Options of an upload; an empty one is what the explainer was made with. */
const searchField = () => selection("many-search", state.schema.searches.map((name) => [name, say(`search_${name}`)]));

const answersField = () => selection("many-answers",
  Array.from({ length: state.schema.limits.answers }, (_, at) => [at + 1, number(at + 1)]));

const selection = (id, entries) => h("select", { id }, h("option", { value: "" }, say("as_set_up")),
  entries.map(([value, text]) => h("option", { value }, text)));

const optionField = (key, field) => h("div", { class: "field" }, h("label", { for: field.id }, say(key)), field);

function jobItem(id, name) {
  const bar = h("progress", { max: 1, value: 0, "aria-label": say("progress_of", { name }) });
  const status = h("p", { class: "job-state" });
  const actions = h("p", { class: "actions" });
  const stop = button(say("stop"), async () => {
    stop.disabled = true;
    await remove(`jobs/${id}`).catch(() => null);
    show({ state: "cancelled", files: [] });
  }, { class: "quiet" });
  const element = h("li", { class: "job" }, h("h2", {}, name), bar, status, actions);
  let ended = false;
  const show = ({ state: stage, done, total, error, files }) => {
    if (ended) return;
    ended = ENDED.has(stage);
    bar.hidden = ended;
    if (total) bar.value = done / total;
    else bar.removeAttribute("value");
    status.textContent = stateText(stage, done, total, error);
    status.classList.toggle("failure", stage === "failed");
    fill(actions, ended ? files.map((file) => fileButton(id, file)) : stop);
    if (ended) announce(`${name}: ${status.textContent}`);
  };
  const watch = async () => {
    while (!ended) {
      try {
        show(await get(`jobs/${id}`));
      } catch (failure) {
        if (failure.status !== 429 && failure.status !== 0) show({ state: "failed", error: reason(failure), files: [] });
      }
      if (!ended) await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  };
  show({ state: "waiting", done: 0, total: null });
  return { element, watch };
}

function stateText(stage, done, total, error) {
  if (stage === "failed") return error || say("job_failed");
  if (stage === "running" && !total) return say("job_counting", { done: number(done) });
  if (stage === "running") return say("job_running", { done: number(done), total: number(total), share: percent(done / total) });
  return say(`job_${stage}`);
}

function fileButton(id, name) {
  const made = button(say("save_file", { name }), async () => {
    made.disabled = true;
    try {
      save(name, await download(`jobs/${id}/${encodeURIComponent(name)}`));
    } catch (failure) {
      made.after(h("span", { class: "failure", role: "alert" }, reason(failure)));
    }
    made.disabled = false;
  }, { class: "primary" });
  return made;
}
