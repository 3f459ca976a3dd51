/** The question for a token. Until there is one, the page shows nothing else. */

import { byId, fill, h } from "./dom.js";
import { say } from "./words.js";

/** Asks until something is typed; `wrong` says that the last one was refused. */
export function askForToken(wrong) {
  const [app, gate] = [byId("app"), byId("gate")];
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const send = (event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      fill(gate).hidden = true;
      app.hidden = false;
      resolve(field.value.trim());
    };
    app.hidden = true;
    fill(gate, h("main", { class: "gate" }, h("form", { class: "card", onsubmit: send },
      h("h1", {}, say("h_token")),
      h("p", {}, say("token_hint")),
      h("div", { class: "field" }, h("label", { for: "token" }, say("token")), field),
      wrong ? h("p", { class: "failure", role: "alert" }, say("token_wrong")) : null,
      h("button", { type: "submit", class: "primary" }, say("go_on"))))).hidden = false;
    field.focus();
  });
}
