/** The case of one person: who it is, the decision, and three ways to look at it. */

import { button, fill, h, tabs } from "./dom.js";
import { showDecision } from "./decision.js";
import { keptView } from "./kept.js";
import { wishPanel } from "./panel.js";
import { plansView } from "./plans.js";
import { ask, leave } from "./session.js";
import { features, on, state } from "./state.js";
import { cell, number, say, title } from "./words.js";
import { whatIfView } from "./whatif.js";

/** `edit` opens the form with this person's values. */
export function caseView(edit) {
  const result = h("div", { class: "decision", id: "decision" });
  const showResult = () => showDecision(result, state.decision);
  on("decision", showResult);
  showResult();
  on("wishes", () => ask());
  const whatIf = whatIfView();
  const panels = {
    plans: h("div", { class: "columns" }, wishPanel(), plansView((row) => { whatIf.start(row); open("whatif"); whatIf.scrollIntoView({ block: "start" }); })),
    whatif: whatIf,
    kept: keptView(),
  };
  const entries = Object.keys(panels).map((key) => ({ key, text: say(`tab_${key}`), panel: `panel-${key}` }));
  const bar = tabs(say("views"), entries, "plans", (key) => open(key));
  const holders = entries.map(({ key, panel }) =>
    h("div", { role: "tabpanel", id: panel, "aria-labelledby": `tab-${key}` }, panels[key]));
  const open = (wanted) => {
    state.shown.tab = wanted;
    bar.select(wanted);
    entries.forEach(({ key }, at) => (holders[at].hidden = key !== wanted));
  };
  const countKept = () => {
    const n = state.kept.length;
    fill(bar.children[2], say("tab_kept"), n ? h("span", { class: "count" }, number(n)) : null);
  };
  on("kept", countKept);
  countKept();
  open(state.shown.tab);
  return h("div", { class: "case" }, h("section", { class: "card hero", "aria-labelledby": "h-person" },
    h("div", { class: "who" },
      h("p", { class: "kicker" }, say("decision_on")),
      h("h1", { id: "h-person", tabindex: -1 }, state.person.name),
      h("div", { class: "actions" }, button(say("other_person"), leave), button(say("edit"), edit)),
      ), result, values()), bar, holders);
}

/** All that is known of the person, folded away. */
const values = () =>
  h("details", { class: "values" }, h("summary", {}, say("all_values")),
    h("dl", {}, features().map((feature) => h("div", {}, h("dt", {}, title(feature)), h("dd", {}, cell(feature, state.person.values[feature.name]))))));
