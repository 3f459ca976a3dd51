/**
 * Calls of the service.
 *
 * A failed call throws a Failure that holds what was wrong with each field. An answer that came too
 * late, because a newer call was made in the meantime, is dropped.
 */

const KEY = "mcce.token";
let token = sessionStorage.getItem(KEY);
let askForToken = null;

/** What went wrong: a status (0: no connection), and details of the contract. */
export class Failure extends Error {
  constructor(status, details, wait = null) {
    super(details.map((one) => one.msg).join(" ") || String(status));
    this.status = status;
    this.details = details;
    this.wait = wait;
  }

  /** Messages of one field, by the last part of their place. */
  of(field) {
    return this.details.filter((one) => String(one.loc?.at(-1)) === field).map((one) => one.msg);
  }
}

/** `ask` is called when a token is missing or wrong; it resolves to a new one. */
export function onToken(ask) {
  askForToken = ask;
}

export const get = (path, signal) => call(path, { signal });

export const post = (path, body, signal, read = readJson) =>
  call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }, read);

/** The file that a call makes, byte for byte: a browser that read its JSON would round long numbers. */
export const postForFile = (path, body) => post(path, body, undefined, readFile);

export const upload = (path, form) => call(path, { method: "POST", body: form });

export const remove = (path) => call(path, { method: "DELETE" });

export const download = (path) => call(path, {}, readFile);

async function call(path, options, read = readJson) {
  const used = token;
  const headers = { ...options.headers };
  if (used) headers.Authorization = `Bearer ${used}`;
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" })
    .catch((error) => {
      throw error.name === "AbortError" ? error : new Failure(0, []);
    });
  if (response.status === 401) {
    await renew(used);
    return call(path, options, read);
  }
  if (!response.ok) throw await failure(response);
  return read(response);
}

const readJson = (response) => (response.status === 204 ? null : response.json());
const readFile = (response) => response.blob();

async function failure(response) {
  const content = await response.json().catch(() => null);
  const details = Array.isArray(content?.detail) ? content.detail : [];
  return new Failure(response.status, details, response.headers.get("Retry-After"));
}

let asking = null;
/** One question at a time, however many calls wait for the token. */
async function renew(used) {
  if (used !== token) return;
  asking ??= askForToken(Boolean(used)).finally(() => (asking = null));
  token = await asking;
  sessionStorage.setItem(KEY, token);
}

/** Runs only what was asked last: earlier calls are cancelled, and their answers dropped. */
export class Latest {
  constructor(delay = 0) {
    this.delay = delay;
    this.control = null;
  }

  cancel() {
    this.control?.abort();
    this.control = null;
  }

  /** What `work(signal)` gives, or undefined if something newer was asked. */
  async run(work, delay = this.delay) {
    this.cancel();
    const control = (this.control = new AbortController());
    if (delay) await new Promise((resolve) => setTimeout(resolve, delay));
    if (control.signal.aborted) return undefined;
    try {
      const result = await work(control.signal);
      return control.signal.aborted ? undefined : result;
    } catch (error) {
      if (control.signal.aborted) return undefined;
      throw error;
    }
  }
}

/** Works on the newest of many requests, one at a time: what follows a drag never falls behind. */
export class Following {
  constructor(work, onresult) {
    Object.assign(this, { work, onresult, next: null, busy: false, closed: false });
  }

  /** Asks for something; what waits is replaced. */
  async push(request) {
    this.next = { request };
    if (this.busy) return;
    this.busy = true;
    while (this.next && !this.closed) {
      const { request: newest } = this.next;
      this.next = null;
      const result = await this.work(newest).catch((failure) => ({ failure }));
      if (!this.closed && !this.next) this.onresult(result, newest);
    }
    this.busy = false;
  }

  close() {
    this.closed = true;
  }
}
