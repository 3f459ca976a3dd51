/** Many people at once: a file goes up, its progress is watched, answers and a report come down. */

import { download, get, remove, upload } from "./api.js";
import { announce, button, byId, fill, h, save } from "./dom.js";
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
  const list = () => fill(jobs, sent.map((job) => job.draw()));
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
      const job = jobItem(id, chosen.name, () => {
        sent = sent.filter((other) => other !== job);
        job.element.remove();
        announce(say("job_removed", { name: chosen.name }));
        byId("file")?.focus();
      });
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

/** An upload that was sent; `onRemoved` is called once the service has forgotten it. */
function jobItem(id, name, onRemoved) {
  const bar = h("progress", { max: 1, value: 0 });
  const status = h("p", { class: "job-state" });
  const actions = h("p", { class: "actions" });
  const element = h("li", { class: "job" }, h("h2", {}, name), bar, status, actions);
  let last, ended;
  const update = () => {
    const { state: stage, done, total, error } = last;
    bar.hidden = ended;
    if (total) bar.value = done / total;
    else bar.removeAttribute("value");
    status.textContent = stateText(stage, done, total, error);
    status.classList.toggle("failure", stage === "failed");
  };
  // In the language of the page, which may have changed.
  const draw = () => {
    update();
    bar.setAttribute("aria-label", say("progress_of", { name }));
    fill(actions, ended ? [...last.files.map((file) => fileButton(id, file)), removeButton(id, name, onRemoved)] : stopButton(id, show));
    return element;
  };
  const show = (found) => {
    if (ended) return;
    [last, ended] = [found, ENDED.has(found.state)];
    update();
    if (!ended) return;
    draw();
    announce(`${name}: ${status.textContent}`);
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
  return { element, draw, watch };
}

function stopButton(id, show) {
  const made = button(say("stop"), async () => {
    made.disabled = true;
    await remove(`jobs/${id}`).catch(() => null);
    show({ state: "cancelled", files: [] });
  }, { class: "quiet" });
  return made;
}

function removeButton(id, name, onRemoved) {
  const made = button(say("remove_job"), async () => {
    made.disabled = true;
    try {
      await remove(`jobs/${id}`);
    } catch (failure) {
      // One that is not there any more is what the reader wants.
      if (failure.status !== 404) {
        made.after(h("span", { class: "failure", role: "alert" }, reason(failure)));
        made.disabled = false;
        return;
      }
    }
    onRemoved();
  }, { class: "quiet", "aria-label": `${say("remove_job")}: ${name}` });
  return made;
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
