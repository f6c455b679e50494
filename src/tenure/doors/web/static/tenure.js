// What a page can do beyond links and forms. Without this file everything still works; it only comes by itself.
"use strict";

(() => {
  const dot = document.getElementById("dot");
  const say = (state, words) => {
    if (!dot) return;
    dot.dataset.state = state;
    dot.textContent = words;
    // That it is paused is said aloud; the seconds that go by are not.
    dot.setAttribute("aria-live", state === "paused" ? "polite" : "off");
  };

  // The stream only says that something changed; htmx asks for the page and puts the changed part in place.
  let stale = false;
  const refresh = () => {
    const part = document.getElementById("live");
    if (!part) return;
    if (document.hidden) { stale = true; return; }
    stale = false;
    htmx.trigger(part, "refresh");
  };
  let updated = Date.now();
  let paused = false;
  document.addEventListener("changed", refresh);
  document.addEventListener("over", () => { location.reload(); });
  document.addEventListener("htmx:sse:after:connection", () => { paused = false; say("live", "live"); });
  for (const name of ["htmx:sse:error", "htmx:sse:close"]) {
    document.addEventListener(name, () => { paused = true; say("paused", "paused: the server can't be heard"); });
  }
  document.addEventListener("htmx:after:swap", () => { updated = Date.now(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) refresh(); });
  setInterval(() => {
    if (!dot || paused || dot.dataset.state !== "live") return;
    const seconds = Math.round((Date.now() - updated) / 1000);
    dot.textContent = seconds < 60 ? `live, updated ${seconds} s ago` : "live";
  }, 1000);
  // Leases and ages go on by themselves: a page that has nothing to hear looks again now and then.
  setInterval(() => { if (!paused && document.getElementById("live")) refresh(); }, 20000);

  // What is being typed is left alone by a refresh.
  document.addEventListener("input", (event) => event.target.form?.setAttribute("hx-morph-skip", ""));
  for (const form of document.querySelectorAll("form:has([aria-invalid])")) form.setAttribute("hx-morph-skip", "");
  document.addEventListener("reset", (event) => event.target.removeAttribute("hx-morph-skip"));

  // Copying what is shown.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const from = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(from.textContent.trim());
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;

  // A page that shows a secret once: reloading it goes to the thing itself, and does not send the form again.
  const once = document.querySelector("[data-instead]");
  if (once) history.replaceState(null, "", once.dataset.instead);

  // Keys. The list of them is the page's own: `?` shows it.
  const go = {};
  for (const link of document.querySelectorAll("nav [data-key]")) go[`g ${link.dataset.key}`] = () => link.click();
  const rows = () => [...document.querySelectorAll("main a.row-link, main td:first-child a, main a.card-link")];
  const step = (by) => {
    const all = rows();
    const at = all.indexOf(document.activeElement);
    all[Math.min(all.length - 1, Math.max(0, at + by))]?.focus();
  };
  const keys = document.getElementById("keys");
  const themes = document.querySelector(".themes");
  const bound = {
    ...go,
    j: () => step(1),
    k: () => step(-1),
    t: () => {
      const now = getComputedStyle(document.documentElement).colorScheme;
      themes?.querySelector(`[value=${now === "dark" ? "light" : "dark"}]`)?.click();
    },
    "[Shift]+?": () => (keys?.open ? keys.close() : keys?.showModal()),
    "/": (event) => {
      const search = document.querySelector("main [data-search]");
      if (search) { event.preventDefault(); search.focus(); }
    },
  };
  tinykeys.tinykeys(window, bound);
})();
